"""soft_vote and the weights learned on held-out folds."""

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import VotingClassifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC

from sktransformer.ensemble import WeightedSoftVote, soft_vote
from sktransformer.ensemble._pool import best_temperature, likelihoods, losses, pool_weights, tempered

BAYES, NEIGHBOURS = ("bayes", GaussianNB()), ("neighbours", KNeighborsClassifier(25))
LOGISTIC, GUESS = ("logistic", LogisticRegression()), ("guess", DummyClassifier(strategy="uniform"))


def test_default_is_camembert_and_flaubert():
    vote = soft_vote(max_epochs=5, class_weight="balanced", random_state=0)
    assert type(vote) is VotingClassifier
    assert vote.voting == "soft"
    assert vote.weights is None
    assert [name for name, _ in vote.estimators] == ["camembert-base", "flaubert_base_cased"]
    models = [member.model for _, member in vote.estimators]
    assert models == ["almanach/camembert-base", "flaubert/flaubert_base_cased"]
    for _, member in vote.estimators:
        assert type(member).__name__ == "TransformerClassifier"
        assert (member.max_epochs, member.class_weight, member.random_state) == (5, "balanced", 0)
    vote.set_params(**{"camembert-base__learning_rate": 1e-5})
    assert [member.learning_rate for _, member in vote.estimators] == [1e-5, 3e-5]
    clone(vote)


def test_names_come_from_models(tmp_path):
    from sktransformer.testing import tiny_checkpoint

    folder = tmp_path / "my__model"
    vote = soft_vote([folder, "bundled:all-MiniLM-L6-v2", "roberta/"])
    assert [name for name, _ in vote.estimators] == ["my_model", "all-MiniLM-L6-v2", "roberta"]
    assert vote.estimators[0][1].model is folder
    assert soft_vote([tiny_checkpoint("bert"), BAYES]).estimators[1] is BAYES


def test_pairs_weights_and_jobs_arrive():
    vote = soft_vote([BAYES, LOGISTIC], weights=(3, 1), n_jobs=2)
    assert vote.estimators == [BAYES, LOGISTIC]
    assert (vote.weights, vote.n_jobs) == ([3, 1], 2)
    fitted = soft_vote([BAYES, LOGISTIC], weights="fit", cv=3, n_jobs=2)
    assert type(fitted) is WeightedSoftVote
    assert (fitted.cv, fitted.n_jobs) == (3, 2)


@pytest.mark.parametrize(
    ("models", "parameters", "error", "message"),
    [
        (
            "almanach/camembert-base",
            {},
            ValueError,
            "models must be a list of two models or more, got 'almanach",
        ),
        ([BAYES], {}, ValueError, "two models or more"),
        (
            ["a/bert", "b/bert"],
            {},
            ValueError,
            r"models\[1\] is called 'bert' like one before it; pass \('another",
        ),
        ([BAYES, GaussianNB()], {}, TypeError, r"models\[1\] is a GaussianNB without a name"),
        (
            ["a", "b"],
            {"lerning_rate": 1},
            TypeError,
            "lerning_rate is no parameter .* Did you mean 'learning_rate'",
        ),
        ([BAYES, LOGISTIC], {"max_epochs": 1}, TypeError, "max_epochs would go to a TransformerClassifier"),
        (
            ["a", "b"],
            {"weights": "best"},
            ValueError,
            "weights='best' is not known; pass 'fit', None or one number",
        ),
        (["a", "b"], {"weights": [1]}, ValueError, "one number for each of 2 models, got 1"),
        (["a", "b"], {"weights": [1, -1]}, ValueError, r"weights\[1\] must be at least 0, got -1"),
        (["a", "b"], {"weights": [0, 0]}, ValueError, "all zero"),
        (["a", "b"], {"weights": 3}, TypeError, "weights must be 'fit', None or one number a model, got int"),
        (["a", "b"], {"model": "c"}, TypeError, "model is no parameter .* Its models are the first argument"),
        ([1, 2], {}, TypeError, r"models\[0\] must be a checkpoint .* got int \(1\)"),
        ([None, "b"], {}, TypeError, r"models\[0\] must be a checkpoint .* got NoneType"),
        ([GaussianNB, "b"], {}, TypeError, r"models\[0\] must be a checkpoint .* got ABCMeta"),
        ([("a__b", GaussianNB()), BAYES], {}, ValueError, "'a__b' can't be the name of a member"),
        ([("weights", GaussianNB()), BAYES], {}, ValueError, "'weights' can't be the name of a member"),
        ([("", GaussianNB()), BAYES], {}, ValueError, "'' can't be the name of a member"),
    ],
)
def test_what_is_refused(models, parameters, error, message):
    with pytest.raises(error, match=message):
        soft_vote(models, **parameters)


# -- weights -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_members", [2, 4])
def test_weights_are_the_optimum(seed, n_members):
    random = np.random.default_rng(seed)
    likelihood = random.beta(1, 0.7, size=(150, n_members)) * 0.998 + 0.001
    row_weights = random.random(150) if seed % 2 else None
    weights = pool_weights(likelihood, row_weights)
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    reference = minimize(
        lambda w: losses((likelihood @ w)[:, None], row_weights)[0],
        np.full(n_members, 1 / n_members),
        bounds=[(0, 1)] * n_members,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        options={"ftol": 1e-12},
    )
    assert losses((likelihood @ weights)[:, None], row_weights)[0] <= reference.fun + 1e-7
    np.testing.assert_allclose(weights, reference.x, atol=2e-3)


def test_a_member_that_is_better_everywhere_gets_all():
    likelihood = np.column_stack([np.linspace(0.5, 0.9, 40), np.linspace(0.4, 0.8, 40)])
    assert pool_weights(likelihood).tolist() == [1.0, 0.0]


def test_members_that_are_alike_share():
    likelihood = np.column_stack([np.linspace(0.2, 0.9, 40)] * 2)
    weights = pool_weights(likelihood)
    assert losses((likelihood @ weights)[:, None])[0] == pytest.approx(losses(likelihood)[0], abs=1e-12)


def test_certain_errors_do_not_break_the_weights():
    probabilities = [np.array([[1, 0], [0, 1]], np.float32), np.array([[0.5, 0.5], [0.5, 0.5]], np.float32)]
    likelihood = likelihoods(probabilities, np.array([1, 1]))
    assert np.isfinite(losses(likelihood)).all()
    assert pool_weights(likelihood).sum() == pytest.approx(1)


@pytest.mark.parametrize("members", [[BAYES, NEIGHBOURS], [BAYES, LOGISTIC, NEIGHBOURS], [LOGISTIC, GUESS]])
def test_at_or_above_the_better_half_on_the_held_out_folds(numbers, members):
    X, y = numbers
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    vote = WeightedSoftVote(members, cv=folds, calibrate=False).fit(X, y)
    crossed = [cross_val_predict(member, X, y, cv=folds, method="predict_proba") for _, member in members]
    expected = {name: log_loss(y, p) for (name, _), p in zip(members, crossed, strict=True)}
    expected["equal weights"] = log_loss(y, np.mean(crossed, axis=0))
    expected["fitted weights"] = log_loss(y, np.average(crossed, axis=0, weights=vote.weights_))
    assert vote.held_out_log_loss_.to_dict() == pytest.approx(expected, abs=1e-9)
    assert (
        vote.held_out_log_loss_["fitted weights"]
        <= vote.held_out_log_loss_.drop("fitted weights").min() + 1e-7
    )
    assert vote.weights_.sum() == pytest.approx(1)


def test_members_are_fitted_on_everything_and_weighted(numbers):
    X, y = numbers
    vote = WeightedSoftVote([BAYES, NEIGHBOURS], cv=3, calibrate=False).fit(X, y)
    each = [clone(member).fit(X, y).predict_proba(X) for _, member in (BAYES, NEIGHBOURS)]
    assert 0 < vote.weights_[0] < 1
    np.testing.assert_allclose(
        vote.predict_proba(X), np.average(each, axis=0, weights=vote.weights_), rtol=1e-12
    )
    assert vote.predict(X).tolist() == vote.classes_[vote.predict_proba(X).argmax(axis=1)].tolist()
    np.testing.assert_array_equal(vote.transform(X), np.hstack(each))
    assert vote.get_feature_names_out().tolist() == [
        f"{n}{i}" for n in ("bayes", "neighbours") for i in range(3)
    ]
    assert vote.named_estimators_["bayes"] is vote.estimators_[0]


def test_a_dropped_member_gets_no_weight(numbers):
    X, y = numbers
    vote = WeightedSoftVote([BAYES, LOGISTIC, NEIGHBOURS], cv=3).set_params(logistic="drop").fit(X, y)
    pair = WeightedSoftVote([BAYES, NEIGHBOURS], cv=3).fit(X, y)
    np.testing.assert_array_equal(vote.weights_, pair.weights_)
    np.testing.assert_array_equal(vote.predict_proba(X), pair.predict_proba(X))


def test_weights_of_rows_count(numbers):
    X, y = numbers
    doubled = np.where(np.arange(len(y)) % 3 == 0, 2.0, 1.0)
    members = [LOGISTIC, BAYES]
    parts = list(StratifiedKFold(3).split(X, y))
    weighted = WeightedSoftVote(members, cv=parts).fit(X, y, sample_weight=doubled)
    twice = np.r_[np.arange(len(y)), np.flatnonzero(doubled == 2)]
    extra = len(y) + np.arange((doubled == 2).sum())
    source = dict(zip(twice[len(y) :], extra, strict=True))
    grown = [tuple(np.r_[rows, [source[r] for r in rows if r in source]] for rows in part) for part in parts]
    repeated = WeightedSoftVote(members, cv=grown).fit(X[twice], y[twice])
    np.testing.assert_allclose(weighted.weights_, repeated.weights_, atol=1e-3)
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-3)
    plain = WeightedSoftVote(members, cv=parts).fit(X, y)
    assert not np.allclose(weighted.predict_proba(X), plain.predict_proba(X), atol=1e-3)


def test_weights_reach_pipelines(numbers):
    X, y = numbers
    weights = np.linspace(0.1, 3, len(y))
    piped = WeightedSoftVote([("a", make_pipeline(StandardScaler(), LogisticRegression())), BAYES], cv=3)
    vote = piped.fit(X, y, sample_weight=weights)
    index = np.unique(y, return_inverse=True)[1]
    first = clone(piped.estimators[0][1]).fit(X, index, logisticregression__sample_weight=weights)
    np.testing.assert_array_equal(vote.estimators_[0].predict_proba(X), first.predict_proba(X))


def test_a_class_rarer_than_the_folds():
    X = np.r_[np.zeros((9, 2)), np.ones((9, 2)), [[5.0, -5.0]]] + np.random.default_rng(0).normal(
        0, 0.3, (19, 2)
    )
    y = ["facture"] * 9 + ["livraison"] * 9 + ["juridique"]
    vote = WeightedSoftVote([LOGISTIC, ("other", LogisticRegression(C=0.1))], cv=5).fit(X, y)
    assert vote.classes_.tolist() == ["facture", "juridique", "livraison"]
    assert vote.predict(X).tolist() == y
    with pytest.raises(ValueError, match="every class has one; pass more documents"):
        WeightedSoftVote([LOGISTIC, BAYES]).fit([[0.0], [1.0]], ["a", "b"])


def test_folds_without_a_class_give_it_no_probability():
    X, y = np.arange(12.0)[:, None], np.repeat(["a", "b", "c"], 4)
    parts = [(np.arange(8), np.arange(8, 12)), (np.arange(4, 12), np.arange(4))]
    vote = WeightedSoftVote(
        [LOGISTIC, ("flat", DummyClassifier(strategy="prior"))], cv=parts, calibrate=False
    ).fit(X, y)
    assert np.isfinite(vote.held_out_log_loss_).all()
    assert vote.held_out_log_loss_.min() > 30  # a class that was never seen: as wrong as can be


def test_members_see_the_labels_themselves(numbers):
    X, y = numbers
    heavy, light = (LogisticRegression(class_weight={y[0]: weight}) for weight in (50.0, 1.0))
    vote = WeightedSoftVote([("heavy", heavy), ("light", light)], cv=3).fit(X, y)
    assert all(member.classes_.tolist() == vote.classes_.tolist() for member in vote.estimators_)
    taken = [(member.predict(X) == y[0]).sum() for member in vote.estimators_]
    assert taken[0] > taken[1]


def test_a_member_that_collapses_names_the_label():
    from sktransformer.testing import tiny_checkpoint

    X = ["où est ma facture ?", "le colis est en retard"] * 6
    y = ["facture", "livraison"] * 6
    lazy = (tiny_checkpoint("bert"), {"learning_rate": 0.0, "max_epochs": 1, "random_state": 0})
    vote = soft_vote([lazy[0], ("guess", DummyClassifier())], weights="fit", cv=2, **lazy[1])
    with pytest.warns(ConvergenceWarning, match="every document is taken for '(facture|livraison)'"):
        vote.fit(X, y)


def test_bad_members_and_labels(numbers):
    X, y = numbers
    with pytest.raises(TypeError, match=r"svm=LinearSVC has no predict_proba; wrap it in sklearn\.calib"):
        WeightedSoftVote([("svm", LinearSVC()), BAYES]).fit(X, y)
    with pytest.raises(TypeError, match="needs a scikit-learn estimator, but svm is None; pass an instance"):
        WeightedSoftVote([("svm", None), BAYES]).fit(X, y)
    with pytest.raises(TypeError, match="fit of KNeighborsClassifier takes none"):
        WeightedSoftVote([BAYES, NEIGHBOURS]).fit(X, y, sample_weight=np.ones(len(y)))
    with pytest.raises(ValueError, match="only one class: 'a'"):
        WeightedSoftVote([BAYES, LOGISTIC]).fit(X, ["a"] * len(y))
    for wrong in ([], [BAYES, BAYES], [("a", "drop")], (BAYES, LOGISTIC)):
        with pytest.raises(ValueError, match=r"estimators must be a list of .* different names"):
            WeightedSoftVote(wrong).fit(X, y)
    for name in ("cv", "a__b", ""):
        with pytest.raises(ValueError, match="can't be the name of a member"):
            WeightedSoftVote([(name, GaussianNB()), BAYES]).fit(X, y)
    for call in ("predict", "predict_proba"):
        with pytest.raises(NotFittedError):
            getattr(WeightedSoftVote([BAYES, LOGISTIC]), call)(X)
    tuples = np.empty(len(y), dtype=object)
    tuples[:] = [("a", label) for label in y]
    for wrong, message in (
        (tuples, r"y\[0\] must be one label"),
        ([1, *y[1:].astype(str)], "y mixes labels of type"),
    ):
        with pytest.raises(TypeError, match=message):
            WeightedSoftVote([BAYES, LOGISTIC]).fit(X, wrong)
    with pytest.raises(TypeError, match="bare str"):
        WeightedSoftVote([BAYES, LOGISTIC]).fit("facture", ["a"])
    with pytest.raises(ValueError, match="three dimensions with flatten_transform=False"):
        WeightedSoftVote([BAYES, LOGISTIC], flatten_transform=False).fit(X, y).get_feature_names_out()


def test_life_inside_scikit_learn(numbers, tmp_path):
    X, y = numbers
    vote = WeightedSoftVote([BAYES, LOGISTIC], cv=3)
    assert clone(vote).get_params()["logistic__C"] == 1.0
    assert cross_val_score(make_pipeline(StandardScaler(), vote), X, y, cv=3, error_score="raise").min() > 0.6
    search = GridSearchCV(vote, {"logistic__C": [0.01, 1.0]}, cv=2, error_score="raise").fit(X, y)
    assert search.best_estimator_.weights_.shape == (2,)
    vote.fit(X, y)
    joblib.dump(vote, tmp_path / "vote.joblib")
    np.testing.assert_array_equal(
        joblib.load(tmp_path / "vote.joblib").predict_proba(X), vote.predict_proba(X)
    )
    pd.testing.assert_series_equal(
        joblib.load(tmp_path / "vote.joblib").held_out_log_loss_, vote.held_out_log_loss_
    )
    again = clone(vote).set_params(n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(X), vote.predict_proba(X))
    frame = pd.DataFrame(X, index=np.arange(len(y))[::-1] // 2)
    np.testing.assert_array_equal(
        clone(vote).fit(frame, pd.Series(y, index=frame.index)).predict_proba(frame), vote.predict_proba(X)
    )
    with sklearn.config_context(enable_metadata_routing=True):
        np.testing.assert_array_equal(clone(vote).fit(X, y).predict_proba(X), vote.predict_proba(X))
    calibrated = CalibratedClassifierCV(vote, method="temperature", cv=2, ensemble=False).fit(X, y)
    assert calibrated.predict(X).tolist() == vote.predict(X).tolist()


def test_temperature_is_the_one_that_made_the_probabilities():
    """Labels are drawn from p; a member says softmax(log p / 3), too timid: the temperature that mends it is 1 / 3."""
    random = np.random.default_rng(0)
    p = random.dirichlet(np.ones(4), size=20_000)
    index = (p.cumsum(axis=1) < random.random((len(p), 1))).sum(axis=1)
    timid = tempered(p, 3.0)
    assert best_temperature(timid, index) == pytest.approx(1 / 3, rel=0.05)
    assert best_temperature(tempered(p, 0.25), index) == pytest.approx(4.0, rel=0.05)
    np.testing.assert_allclose(tempered(timid, 1 / 3), p, atol=1e-6)
    assert tempered(p, 1.0) is p


def test_a_timid_member_that_is_right_outvotes_a_sure_one_that_is_not():
    """Both are logistic: one is held back by its penalty, the other sees one of four features and is sure."""
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    timid = ("timid", LogisticRegression(C=1e-4))
    sure = ("sure", make_pipeline(FunctionTransformer(_first), LogisticRegression(C=1e6, max_iter=5000)))
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    vote = WeightedSoftVote([timid, sure], cv=folds).fit(X, y)
    assert vote.temperatures_[0] < 0.2
    raw = WeightedSoftVote([timid, sure], cv=folds, calibrate=False).fit(X, y)
    assert vote.held_out_log_loss_["fitted weights"] < raw.held_out_log_loss_["fitted weights"]
    assert vote.weights_[0] > raw.weights_[0]
    each = [
        tempered(m.predict_proba(X), t) for m, t in zip(vote.estimators_, vote.temperatures_, strict=True)
    ]
    np.testing.assert_allclose(
        vote.predict_proba(X), np.average(each, axis=0, weights=vote.weights_), rtol=1e-9
    )
    losses_ = vote.held_out_log_loss_
    assert losses_["fitted weights"] <= losses_.drop("fitted weights").min() + 1e-7


def _first(X):
    return X[:, :1]
