"""SeedEnsemble: members, their scores, and runs that collapse."""

import joblib
import numpy as np
import pandas as pd
import pytest
import skops.io
from scipy.sparse import csr_array
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import make_regression
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import f1_score, r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from sktransformer.ensemble import SeedEnsemble

from .conftest import Moody, healthy, held_out_rows

FOREST = RandomForestClassifier(5)
COLUMNS = ["member", "seed", "score", "collapsed", "reason", "seconds", "kept"]


def test_probabilities_are_the_mean_of_members_with_different_seeds(numbers):
    X, y = numbers
    ensemble = healthy().fit(X, y)
    seeds = [member.random_state for member in ensemble.estimators_]
    assert len(set(seeds)) == 3
    assert ensemble.seed_results_["seed"].tolist() == seeds
    mean = sum(member.predict_proba(X) for member in ensemble.estimators_) / 3
    np.testing.assert_allclose(ensemble.predict_proba(X), mean, rtol=1e-12)
    assert ensemble.predict(X).tolist() == ensemble.classes_[mean.argmax(axis=1)].tolist()
    assert ensemble.classes_.tolist() == ["facture", "livraison", "panne"]
    assert ensemble.score(X, y) == np.mean(ensemble.predict(X) == y) > 0.7


def test_scores_are_those_of_one_held_out_part(numbers):
    X, y = numbers
    ensemble = healthy(validation_fraction=0.2).fit(X, y)
    held = held_out_rows(ensemble, X)
    counts = pd.Series(y).value_counts()
    assert pd.Series(y[held]).value_counts().to_dict() == {c: round(0.2 * n) for c, n in counts.items()}
    for member in ensemble.estimators_:  # the same part for all
        np.testing.assert_array_equal(member.rows_, X[~held])
    expected = [f1_score(y[held], m.predict(X[held]), average="macro") for m in ensemble.estimators_]
    np.testing.assert_allclose(ensemble.validation_scores_, expected, rtol=1e-12)
    assert ensemble.validation_mean_ == pytest.approx(np.mean(expected), rel=1e-12)
    assert ensemble.validation_std_ == pytest.approx(np.std(expected, ddof=1), rel=1e-12)
    results = ensemble.seed_results_
    assert list(results.columns) == COLUMNS
    assert results["score"].tolist() == ensemble.validation_scores_.tolist()
    assert results["kept"].all()
    assert not results["collapsed"].any()
    assert (results["seconds"] > 0).all()


def eighth_of_hits(estimator, X, y):
    return 0.125 * (estimator.predict(X) == y).sum()


@pytest.mark.parametrize("scoring", ["accuracy", "neg_log_loss", eighth_of_hits])
def test_any_scorer(numbers, scoring):
    X, y = numbers
    ensemble = healthy(n_seeds=1, scoring=scoring).fit(X, y)
    held = held_out_rows(ensemble, X)
    member = ensemble.estimators_[0]
    right = {
        "accuracy": np.mean(member.predict(X[held]) == y[held]),
        "neg_log_loss": np.log(
            member.predict_proba(X[held])[np.arange(held.sum()), np.unique(y, return_inverse=True)[1][held]]
        ).mean(),
    }
    expected = right[scoring] if isinstance(scoring, str) else 0.125 * right["accuracy"] * held.sum()
    assert ensemble.validation_scores_[0] == pytest.approx(expected, rel=1e-9)
    assert ensemble.validation_std_ == 0.0


def test_every_nested_seed_is_set(numbers):
    pipe = make_pipeline(StandardScaler(), GridSearchCV(FOREST, {"max_depth": [2, 4]}, cv=2))
    ensemble = SeedEnsemble(pipe, n_seeds=2, random_state=3).fit(*numbers)
    for member, seed in zip(ensemble.estimators_, ensemble.seed_results_["seed"], strict=True):
        assert member.get_params()["gridsearchcv__estimator__random_state"] == seed
        assert member[-1].best_estimator_.random_state == seed
    assert pipe.get_params()["gridsearchcv__estimator__random_state"] is None


def test_same_state_same_members_and_the_global_generator_is_left_alone(numbers):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    one, two = (healthy().fit(*numbers).predict_proba(numbers[0]) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    other = healthy(random_state=1).fit(*numbers).predict_proba(numbers[0])
    assert not np.array_equal(one, other)
    drawn = {tuple(healthy(random_state=None).fit(*numbers).seed_results_["seed"]) for _ in range(2)}
    assert len(drawn) == 2
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    state = np.random.RandomState(5)
    drawn = {tuple(healthy(random_state=state).fit(*numbers).seed_results_["seed"]) for _ in range(2)}
    assert len(drawn) == 2


def test_in_parallel_as_in_a_row(numbers):
    X, y = numbers
    alone = SeedEnsemble(FOREST, 3, random_state=0).fit(X, y)
    together = SeedEnsemble(FOREST, 3, random_state=0, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(alone.predict_proba(X), together.predict_proba(X))
    drop = ["seconds"]
    pd.testing.assert_frame_equal(
        alone.seed_results_.drop(columns=drop), together.seed_results_.drop(columns=drop)
    )


# -- what is kept --------------------------------------------------------------------------------------------------


def test_only_the_best_is_kept(numbers):
    X, y = numbers
    every, best = (
        healthy(n_seeds=5, validation_fraction=0.3, keep=keep).fit(X, y) for keep in ("all", "best")
    )
    scores = every.validation_scores_
    assert len(set(scores)) > 1
    np.testing.assert_array_equal(best.validation_scores_, scores)
    assert best.seed_results_["kept"].sum() == 1
    assert best.seed_results_["kept"].idxmax() == scores.argmax()
    (member,) = best.estimators_
    np.testing.assert_array_equal(
        member.predict_proba(X), every.estimators_[scores.argmax()].predict_proba(X)
    )


def test_members_may_be_fitted_again_on_all_rows(numbers):
    X, y = numbers
    part, whole = healthy().fit(X, y), healthy(refit=True).fit(X, y)
    assert [len(member.rows_) for member in part.estimators_] == [180] * 3
    assert [len(member.rows_) for member in whole.estimators_] == [200] * 3
    assert [m.seed_ for m in whole.estimators_] == [m.seed_ for m in part.estimators_]
    np.testing.assert_array_equal(part.validation_scores_, whole.validation_scores_)


# -- weights, classes, kinds -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("piped", [False, True])
def test_weights_reach_the_members(numbers, piped):
    X, y = numbers
    weights = np.linspace(0, 2, len(y))
    member = make_pipeline(StandardScaler(), Moody(every=10**12)) if piped else Moody(every=10**12)
    ensemble = SeedEnsemble(member, 2, random_state=0).fit(X, y, sample_weight=weights)
    plain = SeedEnsemble(member, 2, random_state=0).fit(X, y)
    inner = [m[-1] if piped else m for m in ensemble.estimators_]
    held = held_out_rows(healthy(n_seeds=2).fit(X, y), X)
    for one in inner:
        np.testing.assert_array_equal(one.weights_, weights[~held])
    assert not np.allclose(ensemble.predict_proba(X), plain.predict_proba(X))


def test_weights_an_estimator_does_not_take(numbers):
    with pytest.raises(TypeError, match="fit of Weightless takes none; leave it out, or use class_weight"):
        SeedEnsemble(Weightless(), 2).fit(*numbers, sample_weight=np.ones(200))


class Weightless(DecisionTreeClassifier):
    def fit(self, X, y):
        return super().fit(X, y)


def test_classifiers_without_probabilities_vote(numbers):
    X, y = numbers
    ensemble = SeedEnsemble(SGDClassifier(max_iter=5, tol=None), 5, random_state=0)
    assert not hasattr(ensemble, "predict_proba")
    ensemble.fit(X, y)
    votes = np.stack([member.predict(X) for member in ensemble.estimators_])
    expected = [max(ensemble.classes_, key=lambda c, v=column: (v == c).sum()) for column in votes.T]
    assert ensemble.predict(X).tolist() == expected
    assert not hasattr(ensemble, "predict_proba")
    assert len({tuple(row) for row in votes}) > 1


def test_regressors_are_averaged():
    X, y = make_regression(120, 4, random_state=0)
    ensemble = SeedEnsemble(RandomForestRegressor(5), 3, validation_fraction=0.25, random_state=0).fit(X, y)
    assert is_regressor(ensemble)
    assert not is_classifier(ensemble)
    np.testing.assert_allclose(
        ensemble.predict(X), np.mean([m.predict(X) for m in ensemble.estimators_], axis=0)
    )
    assert ensemble.score(X, y) == r2_score(y, ensemble.predict(X)) > 0.8
    assert (ensemble.validation_scores_ > 0.2).all()
    assert not hasattr(ensemble, "classes_")
    assert not hasattr(ensemble, "predict_proba")
    stump = RandomForestRegressor(2, min_samples_leaf=119)  # one leaf: the mean
    with pytest.raises(RuntimeError, match=r"all 2 runs collapsed.*predicts -?\d+\.\d+ alone"):
        SeedEnsemble(stump, 2, random_state=0).fit(X, y)


# -- life inside scikit-learn ----------------------------------------------------------------------------------------


def test_clone_and_parameters():
    ensemble = SeedEnsemble(FOREST, 7, scoring="accuracy", on_collapse="retrain", keep="best", refit=True)
    copy = clone(ensemble)
    for name, value in ensemble.get_params(deep=False).items():
        assert copy.get_params()[name] == value or name == "estimator"
    copy.set_params(estimator__n_estimators=3)
    assert (copy.estimator.n_estimators, FOREST.n_estimators) == (3, 5)
    assert "RandomForestClassifier" in ensemble._repr_html_()


def test_cross_validation_is_stratified_and_runs_in_a_pipeline(numbers):
    X, y = numbers
    assert is_classifier(SeedEnsemble(FOREST))
    pipe = make_pipeline(StandardScaler(), healthy())
    scores = cross_val_score(pipe, X, y, cv=3, error_score="raise")
    assert scores.shape == (3,)
    assert scores.min() > 0.6
    search = GridSearchCV(healthy(), {"n_seeds": [1, 2]}, cv=2, error_score="raise").fit(X, y)
    assert len(search.best_estimator_.estimators_) == search.best_params_["n_seeds"]


def test_joblib_round_trip(numbers, tmp_path):
    ensemble = SeedEnsemble(FOREST, 2, random_state=0).fit(*numbers)
    joblib.dump(ensemble, tmp_path / "ensemble.joblib")
    again = joblib.load(tmp_path / "ensemble.joblib")
    np.testing.assert_array_equal(again.predict_proba(numbers[0]), ensemble.predict_proba(numbers[0]))
    pd.testing.assert_frame_equal(again.seed_results_, ensemble.seed_results_)
    stored = skops.io.dumps(ensemble)
    safe = skops.io.loads(stored, trusted=skops.io.get_untrusted_types(data=stored))
    pd.testing.assert_frame_equal(safe.seed_results_, ensemble.seed_results_)


def test_rows_are_taken_by_position_and_left_alone(numbers):
    X, y = numbers
    expected = SeedEnsemble(FOREST, 2, random_state=0).fit(X, y).predict_proba(X)
    index = np.random.default_rng(0).permutation(len(y)) // 2
    frame, series = pd.DataFrame(X, index=index, columns=list("abcdef")), pd.Series(y, index=index[::-1])
    copies = frame.copy(), series.copy()
    ensemble = SeedEnsemble(FOREST, 2, random_state=0).fit(frame, series)
    np.testing.assert_array_equal(ensemble.predict_proba(frame), expected)
    pd.testing.assert_frame_equal(frame, copies[0])
    pd.testing.assert_series_equal(series, copies[1])
    assert ensemble.n_features_in_ == 6
    assert ensemble.feature_names_in_.tolist() == list("abcdef")
    sparse = SeedEnsemble(LogisticRegression(), 2, random_state=0).fit(csr_array(X), y)
    assert sparse.predict(csr_array(X)).shape == y.shape


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"n_seeds": 0}, ValueError, "n_seeds must be at least 1, got 0"),
        ({"n_seeds": 2.0}, TypeError, "n_seeds must be an integer, got float"),
        ({"max_retrain": -1}, ValueError, "max_retrain must be at least 0"),
        ({"validation_fraction": 1.0}, ValueError, "validation_fraction must be above 0 and below 1"),
        ({"on_collapse": "dorp"}, ValueError, "on_collapse='dorp' is not known; .* Did you mean 'drop'"),
        ({"keep": "first"}, ValueError, "keep='first' is not known"),
        ({"refit": 1}, TypeError, "refit must be True or False"),
        ({"scoring": "f1_makro"}, ValueError, "Did you mean 'f1_macro'"),
        ({"scoring": 3}, TypeError, "scoring must be a scorer's name or a callable, got int"),
        ({"random_state": "0"}, ValueError, "random_state must be None, an int"),
        ({"random_state": -1}, ValueError, r"random_state must lie in \[0, 2\*\*32\)"),
        ({"estimator": GaussianNB()}, ValueError, "GaussianNB has no parameter random_state"),
        ({"estimator": StandardScaler()}, TypeError, "classifier or a regressor, got StandardScaler"),
        ({"estimator": 3}, TypeError, "classifier or a regressor, got int"),
        ({"scoring": "roc_auc"}, ValueError, "scoring='roc_auc' can't be computed on the 20 rows held out"),
        ({"scoring": lambda *_: np.nan}, ValueError, "it is nan; raise validation_fraction"),
    ],
)
def test_parameters_are_checked(numbers, parameters, error, message):
    with pytest.raises(error, match=message):
        SeedEnsemble(**{"estimator": Moody(every=10**12), "random_state": 0, **parameters}).fit(*numbers)


@pytest.mark.parametrize(
    ("X", "y", "error", "message"),
    [
        ("facture", ["a"], TypeError, "bare str"),
        ([[0.0], [1.0]], None, ValueError, "requires y"),
        ([[0.0], [1.0]], ["a"], ValueError, "inconsistent"),
        ([[0.0], [1.0]], ["a", "a"], ValueError, "only one class: 'a'"),
        ([[0.0], [1.0], [2.0]], ["a", None, "b"], ValueError, r"1 missing value\(s\), in row\(s\) 1"),
        ([[0.0], [1.0]], [0.5, 1.25], ValueError, "continuous"),
        ([[0.0], [1.0]], [[0, 1], [1, 0]], ValueError, "1d array"),
        ([], [], ValueError, r"0 sample\(s\)"),
    ],
)
def test_data_is_checked(X, y, error, message):
    with pytest.raises(error, match=message):
        healthy().fit(X, y)
