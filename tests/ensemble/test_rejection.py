"""RejectOption: what is answered, and what goes to a person."""

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from sktransformer.ensemble import RejectOption, SeedEnsemble, risk_coverage_curve

FOLDS = StratifiedKFold(4, shuffle=True, random_state=0)


def option(**parameters):
    return RejectOption(LogisticRegression(), cv=FOLDS, **parameters)


def test_below_the_threshold_a_person_answers(numbers):
    X, y = numbers
    router = option(threshold=0.8, reject_label="a person").fit(X[::2], y[::2])
    alone = LogisticRegression().fit(X[::2], y[::2])
    proba = alone.predict_proba(X)
    expected = np.where(proba.max(axis=1) >= 0.8, alone.predict(X), "a person")
    assert 0.2 < (expected == "a person").mean() < 0.8
    assert router.predict(X).tolist() == expected.tolist()
    np.testing.assert_array_equal(router.predict_proba(X), proba)
    assert router.accepts(X).tolist() == (expected != "a person").tolist()
    assert router.classes_.tolist() == ["facture", "livraison", "panne"]
    answered = router.accepts(X)
    assert router.score(X, y) == accuracy_score(y[answered], alone.predict(X)[answered])
    assert (router.threshold_, hasattr(router, "coverage_"), hasattr(router, "risk_coverage_")) == (
        0.8,
        False,
        False,
    )


@pytest.mark.parametrize("target", [0.25, 0.5, 0.803, 1.0])
def test_coverage_is_reached_with_the_highest_threshold(numbers, target):
    X, y = numbers
    router = option(target_coverage=target).fit(X, y)
    confidence = cross_val_predict(LogisticRegression(), X, y, cv=FOLDS, method="predict_proba").max(axis=1)
    assert router.coverage_ == (confidence >= router.threshold_).mean() >= target
    higher = confidence[confidence > router.threshold_].min(initial=2.0)
    assert (confidence >= higher).mean() < target


@pytest.mark.parametrize("target", [0.075, 0.1, 0.15])
def test_risk_is_kept_to_with_the_highest_coverage(numbers, target):
    X, y = numbers
    router = option(target_risk=target).fit(X, y)
    proba = cross_val_predict(LogisticRegression(), X, y, cv=FOLDS, method="predict_proba")
    coverage, risk, thresholds = risk_coverage_curve(y, proba)
    assert router.risk_ <= target
    place = thresholds.tolist().index(router.threshold_)
    assert (coverage[place], risk[place]) == (router.coverage_, router.risk_)
    assert (risk[place + 1 :] > target).all()
    assert len(risk[place + 1 :])
    pd.testing.assert_frame_equal(
        router.risk_coverage_, pd.DataFrame({"coverage": coverage, "risk": risk, "threshold": thresholds})
    )
    np.testing.assert_array_equal(router.predict_proba(X), LogisticRegression().fit(X, y).predict_proba(X))


def test_a_risk_out_of_reach():
    X, y = np.zeros((40, 1)), np.array(["a", "b"] * 20)
    guess = RejectOption(DummyClassifier(strategy="prior"), target_risk=0.1)
    with pytest.raises(ValueError, match=r"=0\.1 is out of reach: .*lowest risk is 0\.5, at a coverage of 1"):
        guess.fit(X, y)
    with pytest.raises(NotFittedError):
        guess.predict(X)
    assert guess.set_params(target_risk=0.5).fit(X, y).coverage_ == 1.0


def test_a_frozen_classifier_is_taken_as_it_is(numbers):
    X, y = numbers
    fitted = LogisticRegression().fit(X[::2], y[::2])
    router = RejectOption(FrozenEstimator(fitted), target_coverage=0.7).fit(X[1::2], y[1::2])
    confidence = np.sort(fitted.predict_proba(X[1::2]).max(axis=1))[::-1]
    assert router.threshold_ == confidence[69]
    np.testing.assert_array_equal(router.predict_proba(X), fitted.predict_proba(X))


def test_thresholds_at_the_ends(numbers):
    X, y = numbers
    everything = option(threshold=0.0).fit(X, y)
    assert everything.accepts(X).all()
    assert everything.predict(X).tolist() == LogisticRegression().fit(X, y).predict(X).tolist()
    nothing = option(threshold=1).fit(X, y)
    assert not nothing.accepts(X).any()
    assert nothing.predict(X).tolist() == [None] * len(y)
    assert np.isnan(nothing.score(X, y))


@pytest.mark.parametrize(
    ("names", "label", "dtype"),
    [
        (["f", "l", "p"], None, "O"),
        (["f", "l", "p"], "to a person", "U"),
        ([3, 5, 7], -1, "i"),
        ([3, 5, 7], None, "O"),
        ([3, 5, 7], "person", "O"),
        ([0.0, 1.0, 2.0], np.nan, "f"),
        (np.array(["f", "l", "p"], dtype=object), "to a person", "O"),
    ],
)
def test_reject_labels_keep_their_kind(numbers, names, label, dtype):
    X, y = numbers
    codes = np.unique(y, return_inverse=True)[1]
    router = option(threshold=0.8, reject_label=label).fit(X, np.asarray(names)[codes])
    predicted = router.predict(X)
    assert predicted.dtype.kind == dtype
    rejected = predicted[~router.accepts(X)].tolist()
    assert rejected
    assert all(one is label or one == label or (one != one and label != label) for one in rejected)
    assert router.predict(X[router.accepts(X)]).dtype.kind == dtype  # whether or not one is rejected


def test_weights_reach_the_classifier(numbers):
    X, y = numbers
    weights = np.linspace(0.1, 3, len(y))
    router = make_pipeline(StandardScaler(), LogisticRegression())
    weighted = RejectOption(router, target_coverage=0.5, cv=FOLDS).fit(X, y, sample_weight=weights)
    alone = clone(router).fit(X, y, logisticregression__sample_weight=weights)
    np.testing.assert_array_equal(weighted.predict_proba(X), alone.predict_proba(X))
    answered = weighted.accepts(X)
    right = alone.predict(X)[answered] == y[answered]
    assert weighted.score(X, y, weights) == pytest.approx(np.average(right, weights=weights[answered]))
    plain = RejectOption(router, target_coverage=0.5, cv=FOLDS).fit(X, y)
    assert plain.threshold_ != weighted.threshold_


def test_another_way_leaves_nothing_of_the_first(numbers):
    router = option(target_coverage=0.5).fit(*numbers)
    assert router.coverage_ >= 0.5
    router.set_params(target_coverage=None, threshold=0.5).fit(*numbers)
    assert not hasattr(router, "coverage_")
    assert not hasattr(router, "risk_coverage_")


def test_a_class_rarer_than_the_folds():
    X = np.r_[np.zeros((9, 2)), np.ones((9, 2)), [[5.0, -5.0]]] + np.random.default_rng(0).normal(
        0, 0.3, (19, 2)
    )
    y = ["facture"] * 9 + ["livraison"] * 9 + ["juridique"]
    router = RejectOption(LogisticRegression(), target_risk=0.1).fit(X, y)
    assert router.classes_.tolist() == ["facture", "juridique", "livraison"]
    assert router.coverage_ > 0.5


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({}, ValueError, "exactly one of threshold, target_coverage, target_risk, got none"),
        ({"threshold": 0.5, "target_risk": 0.1}, ValueError, "got threshold and target_risk"),
        ({"threshold": 1.5}, ValueError, "threshold must be at least 0 and at most 1, got 1.5"),
        ({"threshold": "high"}, TypeError, "threshold must be a number, got str"),
        ({"target_coverage": 0}, ValueError, "target_coverage must be above 0 and at most 1"),
        ({"target_risk": -0.1}, ValueError, "target_risk must be at least 0"),
        (
            {"threshold": 0.5, "reject_label": "panne"},
            ValueError,
            "reject_label='panne' is one of the classes",
        ),
        (
            {"estimator": LinearSVC(), "threshold": 0.5},
            TypeError,
            "RejectOption needs probabilities, but estimator=L",
        ),
    ],
)
def test_parameters_are_checked(numbers, parameters, error, message):
    with pytest.raises(error, match=message):
        RejectOption(**{"estimator": LogisticRegression(), **parameters}).fit(*numbers)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[0.0], [1.0]], None, "requires y"),
        ([[0.0], [1.0]], ["a", "a"], "only one class: 'a'"),
        ([[0.0], [1.0]], ["a"], "inconsistent"),
        ([[0.0], [1.0]], ["a", "b"], "every class has one; pass more documents"),
    ],
)
def test_data_is_checked(X, y, message):
    with pytest.raises(ValueError, match=message):
        RejectOption(LogisticRegression(), target_risk=0.1).fit(X, y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["a", 1], "y mixes labels of type int and str"),
        ([("a",), ("b", 2)], r"y\[0\] must be one label .* got tuple"),
        ([{"a"}, {"b"}], r"y\[0\] must be one label .* got set"),
    ],
)
def test_labels_that_are_none(y, message):
    with pytest.raises(TypeError, match=message):
        RejectOption(LogisticRegression(), threshold=0.5).fit([[0.0], [1.0]], y)


@pytest.mark.parametrize(
    "wrap", [lambda inner: inner, SeedEnsemble, lambda inner: RejectOption(inner, threshold=0)]
)
@pytest.mark.parametrize("given", [None, "svm", LogisticRegression])
def test_an_estimator_that_is_none_is_named_however_deep_it_is(wrap, given):
    with pytest.raises(TypeError, match=r"but estimator is .*; pass an instance"):
        wrap(RejectOption(given, threshold=0.5)).fit([[0.0], [1.0]] * 4, ["a", "b"] * 4)


def test_life_inside_scikit_learn(numbers, tmp_path):
    X, y = numbers
    router = RejectOption(LogisticRegression(), target_coverage=0.8, reject_label="?", cv=3)
    assert is_classifier(router)
    assert clone(router).get_params()["estimator__C"] == 1.0
    scores = cross_val_score(make_pipeline(StandardScaler(), router), X, y, cv=3, error_score="raise")
    assert scores.min() > 0.75
    strict = cross_val_score(router, X, y, cv=3, scoring="accuracy", error_score="raise")
    assert strict.max() < scores.max()  # rejected rows count as errors there
    search = GridSearchCV(
        router, {"target_coverage": [0.5, 0.9]}, cv=2, scoring="accuracy", error_score="raise"
    )
    assert search.fit(X, y).best_params_ == {"target_coverage": 0.9}
    router.fit(X, y)
    joblib.dump(router, tmp_path / "router.joblib")
    again = joblib.load(tmp_path / "router.joblib")
    assert again.predict(X).tolist() == router.predict(X).tolist()
    pd.testing.assert_frame_equal(again.risk_coverage_, router.risk_coverage_)
    frame = pd.DataFrame(X, index=np.arange(len(y))[::-1] // 2, columns=list("abcdef"))
    second = clone(router).fit(frame, pd.Series(y, index=frame.index))
    assert second.threshold_ == router.threshold_
    assert second.feature_names_in_.tolist() == list("abcdef")
    assert second.predict(frame).tolist() == router.predict(X).tolist()
