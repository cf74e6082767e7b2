"""OptunaSearch behind scikit-learn's search interface."""

import joblib
import numpy as np
import optuna
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, f1_score, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from sktransformer import OptunaSearch, tfidf_svm

from .helpers import Counting, X, Y

C = {"C": (1e-3, 10.0, "log")}
GRID = [0.01, 1.0, 100.0]


def over_grid(estimator, name, values, **options):
    """A search that visits every value once, in an order of its own."""
    sampler = optuna.samplers.GridSampler({name: values}, seed=0)
    return OptunaSearch(estimator, {name: values}, n_trials=len(values), sampler=sampler, **options)


def test_parameters_round_trip_and_init_only_assigns():
    search = OptunaSearch(LogisticRegression(), C, n_trials=3, pruner="median", storage="sqlite:///never.db")
    copy = clone(search)
    assert copy.get_params()["estimator__C"] == 1.0
    assert {k: v for k, v in copy.get_params(deep=False).items() if k != "estimator"} == {
        k: v for k, v in search.get_params(deep=False).items() if k != "estimator"
    }
    assert not [name for name in vars(search) if name.endswith("_")]
    assert OptunaSearch(LogisticRegression()).set_params(estimator__C=3.0).estimator.C == 3.0


def test_results_are_those_of_a_grid_search():
    options = {"cv": 4, "scoring": ["accuracy", "f1"], "refit": "f1", "return_train_score": True}
    grid = GridSearchCV(LogisticRegression(), {"C": GRID}, **options).fit(X, Y)
    search = over_grid(LogisticRegression(), "C", GRID, **options).fit(X, Y)
    order = [GRID.index(row["C"]) for row in search.cv_results_["params"]]
    assert sorted(order) == [0, 1, 2]
    assert set(grid.cv_results_) | {"trial_number", "trial_state"} == set(search.cv_results_)
    for key, column in grid.cv_results_.items():
        if "time" in key or key == "params":
            continue
        np.testing.assert_allclose(
            search.cv_results_[key].astype(float), column[order].astype(float), err_msg=key
        )
    assert search.cv_results_["param_C"].dtype == grid.cv_results_["param_C"].dtype
    assert search.best_params_ == grid.best_params_
    assert search.best_score_ == pytest.approx(grid.best_score_)
    assert (search.n_splits_, search.multimetric_, set(search.scorer_)) == (4, True, {"accuracy", "f1"})
    np.testing.assert_allclose(search.predict_proba(X), grid.predict_proba(X))
    np.testing.assert_allclose(search.decision_function(X), grid.decision_function(X))
    assert search.score(X, Y) == grid.score(X, Y) == f1_score(Y, grid.predict(X))
    assert list(search.classes_) == [0, 1]
    assert search.n_features_in_ == 5
    assert search.refit_time_ > 0


def test_kinds_and_methods_are_the_estimator_s():
    assert is_classifier(OptunaSearch(LogisticRegression()))
    assert is_regressor(OptunaSearch(Ridge()))
    assert not hasattr(OptunaSearch(Ridge()), "predict_proba")
    assert hasattr(OptunaSearch(LogisticRegression()), "predict_proba")
    assert not hasattr(OptunaSearch(LogisticRegression()), "transform")
    scaled = OptunaSearch(
        StandardScaler(), {"with_mean": [True, False]}, n_trials=2, cv=2, scoring=lambda e, X: e.mean_[0]
    )
    assert np.allclose(scaled.fit(X).transform(X), StandardScaler(**scaled.best_params_).fit_transform(X))
    assert "OptunaSearch" in OptunaSearch(LogisticRegression())._repr_html_()


def test_the_same_seed_gives_the_same_trials_and_leaves_global_state():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    searches = [
        OptunaSearch(LogisticRegression(), C, n_trials=12, cv=2, random_state=seed).fit(X, Y)
        for seed in (0, 0, 1)
    ]
    drawn = [[row["C"] for row in search.cv_results_["params"]] for search in searches]
    assert drawn[0] == drawn[1] != drawn[2]
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002
    again = [row["C"] for row in searches[0].fit(X, Y).cv_results_["params"]]
    assert again == drawn[0]
    free = OptunaSearch(LogisticRegression(), C, n_trials=2, cv=2)
    assert free.fit(X, Y).best_params_ != clone(free).fit(X, Y).best_params_


def test_random_state_may_be_a_random_state():
    def drawn(seed):
        random_state = np.random.RandomState(seed)
        return (
            OptunaSearch(LogisticRegression(), C, n_trials=2, cv=2, random_state=random_state)
            .fit(X, Y)
            .best_params_
        )

    assert drawn(0) == drawn(0)


def test_a_search_is_an_estimator_in_cross_validation_and_a_pipeline():
    search = OptunaSearch(LogisticRegression(), C, n_trials=2, cv=2, random_state=0)
    scores = cross_val_score(make_pipeline(StandardScaler(), search), X, Y, cv=3)
    for score, (train, test) in zip(scores, StratifiedKFold(3).split(X, Y), strict=True):
        scaler = StandardScaler().fit(X[train])
        alone = clone(search).fit(scaler.transform(X[train]), Y[train])
        assert score == alone.score(scaler.transform(X[test]), Y[test])


def test_frames_of_any_index_lists_and_generators_are_alike():
    mails = [
        f"{mail} {i}" for i in range(3) for mail in ("facture fausse", "erreur de facture", "colis", "retard")
    ]
    labels = ["facturation", "facturation", "livraison", "livraison"] * 3
    search = OptunaSearch(tfidf_svm(), {"svm__C": (0.01, 10.0, "log")}, n_trials=2, cv=3, random_state=0)
    index = np.random.default_rng(0).permutation(12)
    series = clone(search).fit(pd.Series(mails, index=index), pd.Series(labels, index=index + 5))
    listed = clone(search).fit(mails, labels)
    generated = clone(search).fit((mail for mail in mails), labels)
    viewed = clone(search).fit(dict(enumerate(mails)).values(), labels)
    expected = listed.best_estimator_.decision_function(mails)
    for other in (series, generated, viewed):
        assert other.best_params_ == listed.best_params_
        np.testing.assert_array_equal(other.best_estimator_.decision_function(mails), expected)
    frame = OptunaSearch(LogisticRegression(), C, n_trials=1, cv=2).fit(
        pd.DataFrame(X, columns=list("abcde")), Y
    )
    assert list(frame.feature_names_in_) == list("abcde")
    assert OptunaSearch(LogisticRegression(), C, n_trials=1, cv=2).fit(csr_array(X), Y).n_features_in_ == 5


def test_sample_weight_and_groups_reach_fit_and_splitter(monkeypatch):
    monkeypatch.setattr(Counting, "weights", None)
    weights, groups = np.linspace(1, 2, 60), np.repeat(np.arange(6), 10)
    search = OptunaSearch(
        Counting(), {"shift": [0.0]}, n_trials=1, cv=GroupKFold(3), refit=False, scoring="accuracy"
    )
    search.fit(X, Y, sample_weight=weights, groups=groups)
    train = list(GroupKFold(3).split(X, Y, groups))[-1][0]
    np.testing.assert_array_equal(Counting.weights, weights[train])
    test = next(iter(GroupKFold(3).split(X, Y, groups)))[1]
    predicted = Counting().fit(X, Y).predict(X[test])
    assert search.cv_results_["split0_test_score"][0] == accuracy_score(
        Y[test], predicted, sample_weight=weights[test]
    )


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_metadata_routing_holds_in_threads_too(n_jobs, monkeypatch):
    monkeypatch.setattr(Counting, "weights", None)
    with config_context(enable_metadata_routing=True):
        estimator = make_pipeline(Counting().set_fit_request(sample_weight=True))
        scorer = make_scorer(accuracy_score).set_score_request(sample_weight=True)
        search = OptunaSearch(estimator, {"counting__shift": [0.0]}, n_trials=2, cv=2, n_jobs=n_jobs)
        search.set_params(scoring=scorer, refit=False)
        search.fit(X, Y, sample_weight=np.arange(60.0))
    assert Counting.weights.shape == (30,)


def test_threads_lose_no_trial():
    search = OptunaSearch(LogisticRegression(), C, n_trials=8, cv=2, n_jobs=4, random_state=0).fit(X, Y)
    assert list(search.cv_results_["trial_number"]) == list(range(8))
    assert not np.isnan(search.cv_results_["mean_test_score"]).any()
    assert len({row["C"] for row in search.cv_results_["params"]}) == 8
    with joblib.parallel_config(n_jobs=2):
        assert len(clone(search).set_params(n_jobs=None).fit(X, Y).cv_results_["params"]) == 8


def test_n_jobs_runs_trials_at_the_same_time():
    import threading

    barrier = threading.Barrier(2, timeout=30)

    def meets(estimator, X, y):
        barrier.wait()  # a thread alone would break it
        return 1.0

    search = OptunaSearch(Counting(), {"shift": (0.0, 1.0)}, n_trials=2, cv=2, n_jobs=2, scoring=meets)
    assert search.fit(X, Y).best_score_ == 1.0


def test_refit_false_gives_results_alone():
    search = OptunaSearch(Counting(), {"shift": [0.0]}, n_trials=1, cv=2, refit=False).fit(X, Y)
    assert search.best_params_ == {"shift": 0.0}
    assert not hasattr(search, "best_estimator_")
    assert not hasattr(search, "predict")
    several = OptunaSearch(
        Counting(), {"shift": [0.0]}, n_trials=1, cv=2, refit=False, scoring=["accuracy", "f1"]
    ).fit(X, Y)
    assert not hasattr(several, "best_params_")
    assert {"mean_test_accuracy", "mean_test_f1"} <= set(several.cv_results_)


def test_refit_may_be_a_function_of_the_results():
    search = over_grid(
        LogisticRegression(), "C", GRID, cv=3, refit=lambda results: results["mean_test_score"].argmin()
    )
    search.fit(X, Y)
    assert (
        search.cv_results_["mean_test_score"][search.best_index_]
        == search.cv_results_["mean_test_score"].min()
    )
    assert search.best_params_ == {"C": search.best_estimator_.C}


def test_a_function_may_give_several_scores():
    def both(estimator, X, y):
        return {"hits": accuracy_score(y, estimator.predict(X)), "shift": -estimator.shift}

    search = over_grid(Counting(), "shift", [0.5, 1.0, 3.0], cv=2, scoring=both, refit="shift").fit(X, Y)
    assert search.best_params_ == {"shift": 0.5}
    assert (search.best_score_, search.multimetric_, search.score(X, Y)) == (-0.5, True, -0.5)
    with pytest.raises(ValueError, match="refit must be set to a scorer key"):
        clone(search).set_params(refit=True).fit(X, Y)


def test_a_numeric_error_score_lets_a_failed_fold_count():
    class FailsInOneFold(Counting):
        fits = 0

        def fit(self, X, y):
            super().fit(X, y)
            if type(self).fits == 2:
                raise RuntimeError("second fold")
            return self

    search = OptunaSearch(FailsInOneFold(), {"shift": [0.0]}, n_trials=1, cv=3, error_score=0.25)
    with pytest.warns(FitFailedWarning, match=r"1 of 1 trials .* failed.*second fold"):
        search.fit(X, Y)
    assert search.cv_results_["split1_test_score"][0] == 0.25
    assert search.best_score_ == np.mean([search.cv_results_[f"split{i}_test_score"][0] for i in range(3)])
    with pytest.raises(RuntimeError, match="told to fail"):
        OptunaSearch(Counting(fail=True), {"shift": [0.0]}, n_trials=1, cv=3, error_score="raise").fit(X, Y)


def test_searching_over_estimators_leaves_them_unfitted():
    choices = [SVC(C=2.0), LogisticRegression()]
    pipe = make_pipeline(StandardScaler(), DummyClassifier())
    search = over_grid(pipe, "dummyclassifier", ["placeholder"], cv=2)
    search.set_params(space={"dummyclassifier": choices}, sampler=None, n_trials=4, random_state=0).fit(X, Y)
    assert {type(row["dummyclassifier"]) for row in search.cv_results_["params"]} == {SVC, LogisticRegression}
    assert not any(hasattr(choice, "classes_") for choice in choices)
    assert not any(hasattr(row["dummyclassifier"], "classes_") for row in search.cv_results_["params"])
    assert type(search.best_estimator_[-1]) is type(search.best_params_["dummyclassifier"])


@pytest.mark.parametrize("storage", [None, "journal"])
def test_a_pickled_search_predicts_and_leaves_the_study_behind(storage, tmp_path):
    path = None if storage is None else tmp_path / "s.log"
    search = OptunaSearch(
        LogisticRegression(), C, n_trials=2, cv=2, storage=path, study_name="r", random_state=0
    ).fit(X, Y)
    joblib.dump(search, tmp_path / "search.joblib")
    if path is not None:
        path.unlink()
    loaded = joblib.load(tmp_path / "search.joblib")
    np.testing.assert_array_equal(loaded.predict_proba(X), search.predict_proba(X))
    assert loaded.cv_results_["params"] == search.cv_results_["params"]
    assert not hasattr(loaded, "study_")
    assert loaded.study_name_ == "r"
    assert len(search.study_.trials) == 2 if path is None else not path.exists()


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"estimator": "svm"}, TypeError, "estimator must be an instance with a fit method"),
        ({"n_trials": 0}, ValueError, "n_trials must be at least 1"),
        ({"n_trials": None}, ValueError, "needs a timeout"),
        ({"timeout": -1}, ValueError, "timeout must be at least 0"),
        ({"n_jobs": 1.5}, TypeError, "n_jobs must be an integer"),
        ({"error_score": "nan"}, ValueError, "error_score must be 'raise' or a number"),
        ({"study_name": 3}, TypeError, "study_name must be None or a str that is not empty, got 3"),
        ({"return_train_score": 1}, TypeError, "return_train_score must be True or False"),
        ({"pruner": "medain"}, ValueError, "Did you mean 'median'"),
        ({"pruner": 3}, TypeError, "pruner must be None, one of"),
        ({"sampler": "tpe"}, TypeError, "sampler must be None or an optuna sampler, got str"),
        ({"random_state": -1}, ValueError, "random_state must be None"),
        ({"storage": 3}, TypeError, "storage must be None, a database URL"),
        ({"scoring": "f1_makro"}, ValueError, "f1_makro"),
    ],
)
def test_bad_parameters_are_named(options, error, said):
    search = OptunaSearch(**{"estimator": LogisticRegression(), "space": C, "cv": 2, **options})
    with pytest.raises(error, match=said):
        search.fit(X, Y)


def test_a_class_with_fewer_members_than_folds_is_named():
    labels = np.array(["a"] * 30 + ["b"] * 27 + ["rare"] * 3)
    search = OptunaSearch(Counting(), {"shift": [0.0]}, n_trials=1, cv=5, scoring="accuracy")
    with pytest.raises(ValueError, match=r"class 'rare' has 3 member\(s\), fewer than the 5 folds") as caught:
        search.fit(X, labels)
    assert "KFold" in str(caught.value)
    clone(search).set_params(cv=3).fit(X, labels)
    clone(search).set_params(cv=KFold(5, shuffle=True, random_state=0)).fit(X, labels)


def test_timeout_ends_a_search_without_a_number_of_trials():
    search = OptunaSearch(Counting(), {"shift": (0.0, 1.0)}, n_trials=None, timeout=0.3, cv=2).fit(X, Y)
    assert len(search.cv_results_["params"]) >= 1


def test_folds_are_the_same_for_all_trials():
    search = OptunaSearch(Counting(), {"shift": [0.0]}, n_trials=4, cv=ShuffleSplit(2), random_state=0).fit(
        X, Y
    )
    assert len(set(search.cv_results_["split0_test_score"])) == 1


def test_inputs_and_parameters_are_as_before():
    sampler = optuna.samplers.RandomSampler(seed=0)
    space, data, labels = {"C": [0.1, 1.0]}, X.copy(), Y.copy()
    search = OptunaSearch(LogisticRegression(), space, n_trials=2, cv=2, sampler=sampler)
    first = search.fit(data, labels).cv_results_["params"]
    assert search.sampler is sampler
    assert search.fit(data, labels).cv_results_["params"] == first  # a sampler that had drawn would go on
    assert space == {"C": [0.1, 1.0]}
    np.testing.assert_array_equal(data, X)
    assert not hasattr(search.estimator, "coef_")
