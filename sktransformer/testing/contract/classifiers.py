"""A classifier inside scikit-learn's meta-estimators: the rest of line 21 of the contract."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401 - importing it enables the class
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import (
    HalvingGridSearchCV,
    StratifiedKFold,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_validate,
    learning_curve,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils import resample

from ._require import require, require_close, require_different, require_equal
from .registry import check, classifies, has, offers, takes
from .subject import Subject

FOLDS = StratifiedKFold(2)


def _train(subject: Subject) -> tuple[list[Any], np.ndarray[Any, Any]]:
    y = subject.sample.y or []
    if not subject.sample.words:
        return list(subject.sample.X), np.array(y)
    ragged = np.empty(len(y), dtype=object)
    ragged[:] = y
    return list(subject.sample.X), ragged


def _take(X: list[Any], rows: Any) -> list[Any]:
    return [X[i] for i in rows]


def _require_distribution(probability: Any, n_classes: int, what: str) -> None:
    require_equal(probability.shape[1], n_classes, f"columns of {what}")
    require(np.isfinite(probability).all(), f"{what} is not finite")
    require_close(probability.sum(axis=1), np.ones(len(probability)), f"sums of {what}", tolerance=1e-5)


@check(21, classifies, offers("predict_proba"))
def cross_validation(subject: Subject) -> None:
    """`cross_val_predict` and `cross_validate` give what fits on the folds give by hand."""
    X, y = _train(subject)
    crossed = cross_val_predict(subject.new(), X, y, cv=FOLDS, method="predict_proba")
    scores = cross_validate(
        subject.new(), X, y, cv=FOLDS, error_score="raise", scoring=("accuracy", "f1_macro", "neg_log_loss")
    )
    for i, (training, test) in enumerate(FOLDS.split(X, y)):
        fold = subject.new().fit(_take(X, training), y[training])
        require_close(
            crossed[test], fold.predict_proba(_take(X, test)), f"probabilities of fold {i}", tolerance=1e-6
        )
        accuracy = accuracy_score(y[test], fold.predict(_take(X, test)))
        require_equal(float(scores["test_accuracy"][i]), float(accuracy), f"accuracy of fold {i}")
        require_equal(float(fold.score(_take(X, test), y[test])), float(accuracy), f"score of fold {i}")
    require(
        np.isfinite(scores["test_f1_macro"]).all() and np.isfinite(scores["test_neg_log_loss"]).all(),
        "NaN scores",
    )


@check(21, classifies)
def halving_search(subject: Subject) -> None:
    """HalvingGridSearchCV runs on texts, and refits a candidate of the grid."""
    X, y = _train(subject)
    grid = {"batch_size": [4, 8]} if has("batch_size")(subject) else {}
    search = HalvingGridSearchCV(
        subject.new(),
        grid,
        cv=FOLDS,
        min_resources=9,
        random_state=0,
        scoring="neg_log_loss",
        error_score="raise",
    ).fit(X, y)
    require(np.isfinite(search.cv_results_["mean_test_score"]).all(), "scores that are not finite")
    alone = subject.read(subject.fit(**search.best_params_))
    subject.same(subject.read(search.best_estimator_), "output of the refitted winner", alone)


@check(21, classifies)
def curve_of_learning(subject: Subject) -> None:
    """`learning_curve` runs on texts, with finite scores for each size and fold."""
    X, y = _train(subject)
    sizes, training, test = learning_curve(
        subject.new(), X, y, cv=FOLDS, train_sizes=[6, 9], shuffle=True, random_state=0, error_score="raise"
    )
    require_equal(sizes.tolist(), [6, 9], "sizes")
    for scores in (training, test):
        require_equal(scores.shape, (2, 2), "shape of the scores")
        require(((scores >= 0) & (scores <= 1)).all(), f"accuracies out of range: {scores}")


@check(21, classifies)
def calibration(subject: Subject) -> None:
    """CalibratedClassifierCV calibrates it by folds, and frozen without fitting it again."""
    X, y = _train(subject)
    calibrated = CalibratedClassifierCV(subject.new(), cv=FOLDS).fit(X, y)
    _require_distribution(calibrated.predict_proba(subject.sample.X_new), 3, "calibrated probabilities")
    require_equal(calibrated.classes_.tolist(), subject.fitted.classes_.tolist(), "classes_")
    kept = CalibratedClassifierCV(FrozenEstimator(subject.fitted), cv=FOLDS).fit(X, y)
    _require_distribution(kept.predict_proba(subject.sample.X_new), 3, "probabilities of a frozen one")
    subject.same(subject.read(subject.fitted), "output of the frozen estimator")


@check(21, classifies, offers("predict_proba"))
def soft_voting(subject: Subject) -> None:
    """VotingClassifier gives the mean of its members' probabilities, in the order of the labels."""
    X, y = _train(subject)
    members = [
        ("a", subject.new()),
        ("b", subject.new(random_state=7) if has("random_state")(subject) else subject.new()),
    ]
    vote = VotingClassifier(members, voting="soft").fit(X, y)
    mean = np.mean([subject.read(clone(member).fit(X, y)) for _, member in members], axis=0)
    require_close(vote.predict_proba(subject.sample.X_new), mean, "probabilities of the vote", tolerance=1e-6)
    require_equal(
        vote.predict(subject.sample.X_new), vote.classes_[mean.argmax(axis=1)], "labels of the vote"
    )


@check(21, classifies, offers("predict_proba"))
def stacking(subject: Subject) -> None:
    """StackingClassifier learns from its members' cross-validated probabilities."""
    X, y = _train(subject)
    stack = StackingClassifier([("a", subject.new())], LogisticRegression(), cv=FOLDS).fit(X, y)
    features = cross_val_predict(subject.new(), X, y, cv=FOLDS, method="predict_proba")
    final = LogisticRegression().fit(features, y)
    probability = stack.predict_proba(subject.sample.X_new)
    require_close(
        probability, final.predict_proba(subject.expected), "probabilities of the stack", tolerance=1e-5
    )


@check(21, classifies)
def one_versus_rest(subject: Subject) -> None:
    """OneVsRestClassifier trains one of it a class, each as the same classifier on that class against the others."""
    X, y = _train(subject)
    model = OneVsRestClassifier(subject.new()).fit(X, y)
    columns = [
        subject.new().fit(X, (y == label).astype(int)).predict_proba(subject.sample.X_new)[:, 1]
        for label in model.classes_
    ]
    stacked = np.column_stack(columns)
    stacked /= stacked.sum(axis=1, keepdims=True)
    require_close(model.predict_proba(subject.sample.X_new), stacked, "probabilities", tolerance=1e-5)


@check(21, classifies)
def tuned_threshold(subject: Subject) -> None:
    """TunedThresholdClassifierCV moves the threshold of two classes and keeps the probabilities."""
    X, y = _train(subject)
    two = np.where(y == y[0], "oui", "non")
    tuned = TunedThresholdClassifierCV(subject.new(), cv=FOLDS, thresholds=10).fit(X, two)
    probability = tuned.predict_proba(subject.sample.X_new)
    alone = subject.new().fit(X, two).predict_proba(subject.sample.X_new)
    require_close(probability, alone, "probabilities behind the threshold", tolerance=1e-6)
    require(set(tuned.predict(subject.sample.X_new)) <= {"oui", "non"}, "labels outside the classes")


@check(21, classifies)
def permutation_of_a_column(subject: Subject) -> None:
    """`permutation_importance` takes a column of texts, and shuffling it costs accuracy."""
    X, y = _train(subject)
    column = np.array(X, dtype=object)[:, None]
    fitted = subject.new().fit(column, y)
    result = permutation_importance(fitted, column, fitted.predict(column), n_repeats=3, random_state=0)
    require_equal(result.importances.shape, (1, 3), "shape of the importances")
    # against its own predictions the estimator is always right, so shuffling can only cost
    require((result.importances >= 0).all(), f"negative importances: {result.importances}")
    require(
        len(set(fitted.predict(column))) == 1 or result.importances.max() > 0,
        "shuffling the texts changes nothing",
    )


@check(21, classifies)
def bagging(subject: Subject) -> None:
    """BaggingClassifier runs on an (n, 1) array of texts, and averages its members."""
    X, y = _train(subject)
    column = np.array(X, dtype=object)[:, None]
    new = np.array(subject.sample.X_new, dtype=object)[:, None]
    bag = BaggingClassifier(subject.new(), n_estimators=2, random_state=0).fit(column, y)
    probability = bag.predict_proba(new)
    _require_distribution(probability, 3, "bagged probabilities")
    mean = np.mean([member.predict_proba(new) for member in bag.estimators_], axis=0)
    require_close(probability, mean, "probabilities of the bag", tolerance=1e-6)


@contextmanager
def _routing(on: bool) -> Iterator[None]:
    with config_context(enable_metadata_routing=on):
        yield


@check(21, takes("sample_weight"))
def sample_weight_is_routed(subject: Subject) -> None:
    """`sample_weight` reaches `fit` through a pipeline and a search, with metadata routing on and off."""
    X, y = _train(subject)
    weights = resample(np.linspace(0.2, 3.0, len(X)), replace=False, random_state=0)
    expected = subject.read(subject.new().fit(X, y, sample_weight=weights))
    require_different(expected, subject.expected, "weighted output against the plain one")
    name = type(subject.estimator).__name__.lower()
    with _routing(False):
        pipeline = make_pipeline(subject.new()).fit(X, y, **{f"{name}__sample_weight": weights})
        subject.same(subject.read(pipeline), "output of a pipeline without routing", expected)
    with _routing(True):
        asking = subject.new().set_fit_request(sample_weight=True)
        if hasattr(asking, "set_score_request"):
            asking.set_score_request(sample_weight=False)
        pipeline = make_pipeline(asking).fit(X, y, sample_weight=weights)
        subject.same(subject.read(pipeline), "output of a pipeline with routing", expected)
        if subject.classifies:
            _require_routed_by_folds(subject, pipeline, X, y, weights)


def _require_routed_by_folds(subject: Subject, pipeline: Any, X: list[Any], y: Any, weights: Any) -> None:
    crossed = cross_val_predict(
        pipeline, X, y, cv=FOLDS, method="predict_proba", params={"sample_weight": weights}
    )
    for training, test in FOLDS.split(X, y):
        fold = subject.new().fit(_take(X, training), y[training], sample_weight=weights[training])
        require_close(
            crossed[test],
            fold.predict_proba(_take(X, test)),
            "probabilities of a weighted fold",
            tolerance=1e-6,
        )
