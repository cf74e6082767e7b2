"""What is fitted, scored, timed and reported."""

import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, get_scorer, make_scorer
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sktransformer.model_selection as room
from sktransformer import compare_models, tfidf_svm
from sktransformer.model_selection._inputs import named_estimators, named_scorers
from sktransformer.model_selection.comparison._runs import Watched, seeded_clone

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(60, 3))
Y = np.where(X[:, 0] + GENERATOR.normal(size=60) > 0, "yes", "no")
TEXTS = [f"facture {i}" for i in range(15)] + [f"colis {i}" for i in range(15)]
LABELS = ["facture"] * 15 + ["colis"] * 15


class Fragile(ClassifierMixin, BaseEstimator):
    """Fails where a training part holds row 0."""

    def fit(self, X, y):
        if (self.forbidden == X).all(axis=1).any():
            raise RuntimeError("row 0 is not for me")
        self.classes_ = np.unique(y)
        return self

    forbidden = X[0]

    def predict(self, X):
        return np.repeat(self.classes_[:1], len(X))


# -- scores -----------------------------------------------------------------------------------------------------------


def test_scores_are_those_of_cross_validate():
    models = {"logistic": LogisticRegression(C=0.5), "neighbours": KNeighborsClassifier(3)}
    scoring = ("f1_macro", "accuracy", "roc_auc")
    result = compare_models(models, X, Y, cv=4, scoring=scoring, random_state=3)
    folds = StratifiedKFold(4, shuffle=True, random_state=3)
    for name, model in models.items():
        expected = cross_validate(model, X, Y, cv=folds, scoring=scoring)
        own = result.runs[result.runs["estimator"] == name]
        for metric in scoring:
            assert own[metric].tolist() == expected[f"test_{metric}"].tolist()
            assert result.frame.loc[name, metric] == pytest.approx(expected[f"test_{metric}"].mean())
            assert result.frame.loc[name, f"{metric}_fold_std"] == pytest.approx(own[metric].std())
            assert np.isnan(result.frame.loc[name, f"{metric}_seed_std"])


def test_seeds_redraw_the_folds_and_reach_every_random_state():
    forest = make_pipeline(StandardScaler(), RandomForestClassifier(n_estimators=3, random_state=99))
    result = compare_models({"forest": forest}, X, Y, cv=3, n_seeds=2, random_state=5)
    assert result.runs["seed"].unique().tolist() == [5, 6]
    for seed, own in result.runs.groupby("seed"):
        model = make_pipeline(StandardScaler(), RandomForestClassifier(n_estimators=3, random_state=seed))
        folds = StratifiedKFold(3, shuffle=True, random_state=seed)
        expected = cross_validate(model, X, Y, cv=folds, scoring="accuracy")["test_score"]
        assert own["accuracy"].tolist() == expected.tolist()
    means = result.runs.groupby("seed")["accuracy"].mean()
    assert result.frame.loc["forest", "accuracy_seed_std"] == pytest.approx(means.std())
    assert forest[-1].random_state == 99


def test_seeded_clone_reaches_nested_parameters():
    search = GridSearchCV(make_pipeline(StandardScaler(), RandomForestClassifier()), {})
    candidate = seeded_clone(search, 7)
    assert candidate.estimator[-1].random_state == 7
    assert search.estimator[-1].random_state is None


def test_a_frozen_estimator_stays_fitted():
    frozen = FrozenEstimator(LogisticRegression().fit(X, Y))
    result = compare_models({"frozen": frozen}, X, Y, cv=3)
    assert (result.frame["failed"] == 0).all()
    expected = cross_validate(
        frozen, X, Y, cv=StratifiedKFold(3, shuffle=True, random_state=0), scoring="accuracy"
    )
    assert result.runs["accuracy"].tolist() == expected["test_score"].tolist()


def test_the_same_call_gives_the_same_scores_also_in_parallel_threads():
    models = [RandomForestClassifier(n_estimators=3), DummyClassifier(strategy="stratified")]
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first = compare_models(models, X, Y, cv=3, n_seeds=2).runs
    with joblib.parallel_config(backend="threading"):
        second = compare_models(models, X, Y, cv=3, n_seeds=2, n_jobs=2).runs
    columns = ["estimator", "seed", "fold", "f1_macro", "accuracy"]
    pd.testing.assert_frame_equal(first[columns], second[columns], check_exact=True)
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


def test_random_state_none_draws_a_seed():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    seeds = {
        compare_models([DummyClassifier()], X, Y, cv=2, random_state=None).runs["seed"][0] for _ in range(3)
    }
    assert len(seeds) == 3
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002
    generator = np.random.RandomState(0)
    drawn = compare_models([DummyClassifier()], X, Y, cv=2, random_state=generator).runs["seed"][0]
    assert drawn == np.random.RandomState(0).randint(2**31 - 1)


@pytest.mark.parametrize(
    "wrap",
    [
        tuple,
        np.array,
        lambda texts: np.array(texts, dtype=object).reshape(-1, 1),
        lambda texts: pd.Series(texts, index=[5] * len(texts)),
        lambda texts: pd.DataFrame({"text": texts}, index=range(len(texts), 0, -1)),
        pl.Series,
        lambda texts: pl.DataFrame({"text": texts}),
        lambda texts: (text for text in texts),
    ],
)
def test_containers_give_the_same_scores(wrap):
    expected = compare_models([tfidf_svm(char_ngrams=(1, 1))], TEXTS, LABELS, cv=3).runs["f1_macro"]
    labels = pd.Series(LABELS, index=np.arange(30)[::-1], dtype="category")
    found = compare_models([tfidf_svm(char_ngrams=(1, 1))], wrap(TEXTS), labels, cv=3).runs["f1_macro"]
    assert found.tolist() == expected.tolist()


def test_nothing_is_changed():
    model, texts, labels = tfidf_svm(char_ngrams=(1, 1)), list(TEXTS), np.array(LABELS)
    frozen = model.get_params()["svm__random_state"], hasattr(model[-1], "coef_")
    compare_models({"m": model}, texts, labels, cv=2)
    assert (model.get_params()["svm__random_state"], hasattr(model[-1], "coef_")) == frozen
    assert texts == TEXTS
    assert labels.tolist() == LABELS


# -- scoring ----------------------------------------------------------------------------------------------------------


def halves(estimator, X, y):
    return accuracy_score(y, estimator.predict(X)) / 2


@pytest.mark.parametrize(
    ("scoring", "names"),
    [
        ("accuracy", ["accuracy"]),
        (["f1_macro", "accuracy"], ["f1_macro", "accuracy"]),
        (halves, ["halves"]),
        ({"half": halves, "whole": "accuracy"}, ["half", "whole"]),
        (make_scorer(f1_score, average="macro"), ["f1_score"]),
        ([get_scorer("accuracy"), halves], ["accuracy_score", "halves"]),
    ],
)
def test_scoring_by_name_list_dict_and_callable(scoring, names):
    result = compare_models([DummyClassifier()], X, Y == "yes", cv=2, scoring=scoring)
    assert result.scoring == names
    assert result.runs[names].notna().all(axis=None)
    assert list(named_scorers(scoring)) == names


@pytest.mark.parametrize(
    ("scoring", "error", "message"),
    [
        ("f1_marco", ValueError, "scoring='f1_marco' is not known.*Did you mean 'f1_macro'?"),
        ([], ValueError, "scoring is empty"),
        ({}, ValueError, "scoring is empty"),
        (["accuracy", "accuracy"], ValueError, "scoring has a name twice"),
        ({"seed": "accuracy"}, ValueError, "can't name a scorer 'seed'"),
        (3, TypeError, "scoring must be a name, a callable, or several"),
        (None, TypeError, "scoring must be a name"),
    ],
)
def test_bad_scoring(scoring, error, message):
    with pytest.raises(error, match=message):
        compare_models([DummyClassifier()], X, Y, scoring=scoring)


def test_predictions_are_computed_once_for_all_scorers():
    class Counted(DummyClassifier):
        calls = 0

        def predict(self, X):
            Counted.calls += 1
            return super().predict(X)

    compare_models([Counted()], X, Y, cv=3, scoring=("f1_macro", "accuracy", "balanced_accuracy", "roc_auc"))
    assert Counted.calls == 3


def test_watched_answers_anew_for_other_documents():
    watched = Watched(KNeighborsClassifier(1).fit(X, Y))
    assert watched.predict(X[:5]).tolist() == Y[:5].tolist()
    assert watched.predict(X[5:9]).tolist() == Y[5:9].tolist()
    assert watched.classes_.tolist() == ["no", "yes"]
    assert set(watched.seconds) == {"predict"}


# -- failures ---------------------------------------------------------------------------------------------------------


def test_a_failing_estimator_is_recorded_and_the_others_are_not_lost():
    with pytest.warns(
        FitFailedWarning, match="'fragile' failed in 2 of 3 runs; the first: RuntimeError in fit: row 0"
    ):
        result = compare_models({"guess": DummyClassifier(), "fragile": Fragile()}, X, Y, cv=3)
    failed = result.runs[result.runs["error"] != ""]
    assert failed["estimator"].tolist() == ["fragile"] * 2
    assert failed["accuracy"].isna().all()
    assert failed["traceback"].str.contains("row 0 is not for me").all()
    assert result.frame["failed"].to_dict() == {"guess": 0, "fragile": 2}
    assert list(result.frame.index) == ["guess", "fragile"]  # whatever the one fold that went well says
    assert np.isnan(result.frame.loc["fragile", "p_value"])
    assert "fragile failed in 2 of 3 runs and is not ranked" in result.verdict


def test_when_all_fail_the_first_cause_is_raised():
    with pytest.raises(
        ValueError,
        match=r"All 6 runs failed to give a score of f1_macro. The first, 'a' with seed 0 in fold 0: .*n_neighbors",
    ) as raised:
        compare_models({"a": KNeighborsClassifier(-1), "b": KNeighborsClassifier(-2)}, X, Y, cv=3)
    assert "Traceback" in raised.value.__notes__[0]


def test_a_scorer_that_fails_costs_only_its_own_column():
    def undefined(estimator, X, y):
        return float("nan")

    models = {"a": DummyClassifier(), "b": LogisticRegression()}
    with pytest.warns(
        FitFailedWarning, match="failed in 2 of 2 runs; the first: ValueError in scoring undefined"
    ):
        result = compare_models(models, X, Y, cv=2, scoring=["accuracy", undefined])
    assert result.frame.loc["b", "accuracy"] > 0.5
    assert np.isfinite(result.frame.loc["b", "p_value"])  # the first scorer is whole
    assert np.isnan(result.frame.loc["b", "undefined"])


def test_warnings_come_once_with_the_number_of_runs():
    short = LogisticRegression(max_iter=1)
    with pytest.warns(ConvergenceWarning, match=r"'short', in 6 run\(s\): lbfgs failed") as caught:
        compare_models({"short": short}, X, Y, cv=3, n_seeds=2)
    assert len(caught) == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_is_no_fault_of_an_estimator_is_not_swallowed(error):
    class Stopping(DummyClassifier):
        def fit(self, X, y, sample_weight=None):
            raise error

    with pytest.raises(error):
        compare_models([Stopping()], X, Y)


# -- what is passed ---------------------------------------------------------------------------------------------------


def test_names_of_a_list():
    models = [
        tfidf_svm(),
        DummyClassifier(),
        DummyClassifier(),
        make_pipeline(StandardScaler(), DummyClassifier()),
    ]
    expected = [
        "text + tfidf + svm",
        "DummyClassifier",
        "DummyClassifier (2)",
        "standardscaler + dummyclassifier",
    ]
    assert list(named_estimators(models)) == expected
    assert list(named_estimators([("x", DummyClassifier()), ("y", DummyClassifier())])) == ["x", "y"]


@pytest.mark.parametrize(
    ("models", "error", "message"),
    [
        ([], ValueError, "estimators is empty"),
        (DummyClassifier(), TypeError, r"pass \[estimator\] for a single one"),
        (
            {"a": DummyClassifier},
            TypeError,
            r"estimators\['a'\] must be an instance, got the class DummyClassifier",
        ),
        ({"a": "svm"}, TypeError, r"estimators\['a'\] must be a scikit-learn estimator, got str"),
        ({1: DummyClassifier()}, TypeError, "Names of estimators must be non-empty str, got 1"),
        ([("a", DummyClassifier()), ("a", DummyClassifier())], ValueError, "estimators has a name twice"),
    ],
)
def test_bad_estimators(models, error, message):
    with pytest.raises(error, match=message):
        compare_models(models, X, Y)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"X": "one text"}, TypeError, r"got a bare str; pass \[text\]"),
        ({"X": X[:5]}, ValueError, "X has 5 documents and y 60 targets"),
        ({"X": [], "y": []}, ValueError, "at least 2 documents, got 0"),
        ({"y": None}, ValueError, "y is None"),
        (
            {"y": ["yes", None, *Y[2:]]},
            ValueError,
            r"y has 1 missing value\(s\), None or nan, in row\(s\) 1;",
        ),
        ({"y": np.where(np.arange(60) > 40, np.nan, 1)}, ValueError, r"y has 19 .* 49, 50, \.\.\.;"),
        (
            {"y": [*Y[:-1], float("nan")]},
            ValueError,
            r"y has 1 missing value\(s\), None or nan, in row\(s\) 59;",
        ),
        ({"y": [*Y[:-1], 1]}, TypeError, "y mixes labels of type int and str"),
        ({"y": ["yes"] * 60}, ValueError, "y holds one class only, 'yes'"),
        ({"y": "yes"}, TypeError, "y must hold one target a document, got a bare str"),
        ({"groups": [None] * 60}, ValueError, "groups has 60 missing"),
        ({"n_seeds": 0}, ValueError, "n_seeds must be at least 1"),
        ({"n_seeds": 1.5}, TypeError, "n_seeds must be an integer"),
        ({"random_state": -1}, ValueError, "random_state must be at least 0"),
        ({"random_state": "x"}, TypeError, "random_state must be an integer"),
        ({"baseline": "Gues"}, ValueError, "baseline='Gues' is none of the estimators.*Did you mean 'guess'"),
    ],
)
def test_bad_arguments(changes, error, message):
    with pytest.raises(error, match=message):
        compare_models(**{"estimators": {"guess": DummyClassifier()}, "X": X, "y": Y, **changes})


def test_one_bar_at_verbose_1_and_silence_at_0(capfd):
    compare_models([DummyClassifier()], X, Y, cv=3)
    assert capfd.readouterr() == ("", "")
    compare_models([DummyClassifier()], X, Y, cv=3, verbose=1)
    out, err = capfd.readouterr()
    assert out == ""
    assert "3/3" in err
    assert "DummyClassifier, seed 0, fold 2" in err


def test_the_result_can_be_pickled():
    result = compare_models([DummyClassifier(), LogisticRegression()], X, Y, cv=3)
    again = pickle.loads(pickle.dumps(result))
    pd.testing.assert_frame_equal(again.frame, result.frame)
    assert again.verdict == result.verdict


def test_the_room_lists_its_names():
    assert set(room.__all__) <= set(dir(room))
    with pytest.raises(AttributeError, match="has no attribute 'compare'"):
        room.compare  # noqa: B018
