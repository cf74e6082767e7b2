"""Cases O1 and O2: resumed studies, and searches in which trials fail."""

import optuna
import pytest
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sktransformer import OptunaSearch

from .helpers import Counting, X, Y


@pytest.fixture(autouse=True)
def _no_fits_yet(monkeypatch):
    monkeypatch.setattr(Counting, "fits", 0)


# -- O1 -------------------------------------------------------------------------------------------------------------


def resumed(url, choices, *, estimator=None, name="r"):
    pipe = make_pipeline(StandardScaler(), Counting()) if estimator is None else estimator
    step = pipe.steps[-1][0] if hasattr(pipe, "steps") else ""
    parameter = f"{step}__shift" if step == "counting" else f"{step}__C"
    return OptunaSearch(
        pipe, {parameter: choices}, n_trials=2, cv=3, storage=url, study_name=name, random_state=0
    )


@pytest.fixture(params=["sqlite", "journal"])
def url(request, tmp_path):
    return f"sqlite:///{tmp_path}/s.db" if request.param == "sqlite" else str(tmp_path / "s.log")


@pytest.fixture
def journal(tmp_path):
    return str(tmp_path / "s.log")


def trials_in(url, name="r"):
    storage = url
    if "://" not in url:
        storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(url))
    return optuna.load_study(study_name=name, storage=storage).trials


def test_o1a_resuming_adds_trials_and_the_best_is_over_all(url):
    first = resumed(url, [0.0, 0.5]).fit(X, Y)
    assert len(first.cv_results_["params"]) == 2
    second = resumed(url, [0.0, 0.5]).fit(X, Y)
    assert list(second.cv_results_["trial_number"]) == [0, 1, 2, 3]
    assert second.best_score_ == max(trial.value for trial in trials_in(url))
    assert second.best_score_ >= first.best_score_
    assert Counting.fits == 2 * 3 + 1 + 2 * 3 + 1


def test_o1a_resumed_trials_are_those_of_one_long_run(journal):
    space = {"counting__shift": (-1.0, 1.0)}
    for _ in range(2):
        resumed_search = resumed(journal, space["counting__shift"]).fit(X, Y)
    pipe = make_pipeline(StandardScaler(), Counting())
    whole = OptunaSearch(pipe, space, n_trials=4, cv=3, random_state=0).fit(X, Y)
    assert resumed_search.cv_results_["params"] == whole.cv_results_["params"]
    assert len({row["counting__shift"] for row in whole.cv_results_["params"]}) == 4


def test_o1b_other_choices_are_refused_before_the_first_fit(url):
    for _ in range(2):
        resumed(url, [0.0, 0.5]).fit(X, Y)
    Counting.fits = 0
    with pytest.raises(ValueError, match="made for another search") as caught:
        resumed(url, [0.0, 0.5, 0.7]).fit(X, Y)
    message = str(caught.value)
    assert "counting__shift" in message
    assert "[0.0, 0.5], is [0.0, 0.5, 0.7]" in message
    assert "new study_name" in message
    assert Counting.fits == 0
    assert len(trials_in(url)) == 4


def test_o1c_another_estimator_is_refused_before_the_first_fit(journal):
    for _ in range(2):
        resumed(journal, [0.0, 0.5]).fit(X, Y)
    Counting.fits = 0
    other = make_pipeline(StandardScaler(with_mean=False), LogisticRegression())
    with pytest.raises(ValueError, match=r"logisticregression was absent, is .*LogisticRegression") as caught:
        resumed(journal, [0.0, 0.5], estimator=other).fit(X, Y)
    assert "standardscaler__with_mean was True, is False" in str(caught.value)
    assert "new study_name" in str(caught.value)
    assert Counting.fits == 0
    assert len(trials_in(journal)) == 4


def test_o1d_without_a_name_each_search_has_a_study_of_its_own(url):
    searches = [resumed(url, [0.0, 0.5], name=None).fit(X, Y) for _ in range(2)]
    assert [len(search.cv_results_["params"]) for search in searches] == [2, 2]
    names = {search.study_name_ for search in searches}
    assert len(names) == 2
    assert all(len(trials_in(url, name)) == 2 for name in names)


# -- O2 -------------------------------------------------------------------------------------------------------------


def booms(estimator, X, y):
    raise RuntimeError("boom 42")


def nan(estimator, X, y):
    return float("nan")


class AlwaysPrune(optuna.pruners.BasePruner):
    def prune(self, study, trial):
        return True


FRUITLESS = {
    "a": ({"scoring": booms}, r"0 complete, 3 failed, 0 pruned", "boom 42"),
    "b": ({"scoring": nan}, r"0 complete, 3 failed, 0 pruned", "is NaN"),
    "c": ({"pruner": AlwaysPrune()}, r"0 complete, 0 failed, 3 pruned", "milder"),
    "e": ({"timeout": 0}, r"0 complete, 0 failed, 0 pruned", "timeout=0 s"),
}


@pytest.mark.parametrize("case", FRUITLESS)
def test_o2_no_complete_trial_is_an_error_with_counts(case):
    options, counted, said = FRUITLESS[case]
    search = OptunaSearch(Counting(), {"shift": (-1.0, 1.0)}, n_trials=3, cv=3, random_state=0, **options)
    with pytest.raises(ValueError, match=counted) as caught:
        search.fit(X, Y)
    assert said in str(caught.value)
    if case == "a":
        assert isinstance(caught.value.__cause__, RuntimeError)
        assert str(caught.value.__cause__) == "boom 42"
    assert not hasattr(search, "best_estimator_")
    assert not hasattr(search, "cv_results_")
    with pytest.raises(NotFittedError):
        search.predict(X)
    assert len(search.study_.trials) == (0 if case == "e" else 3)


def test_o2_a_failed_search_leaves_what_the_one_before_it_learned():
    search = OptunaSearch(Counting(), {"shift": [0.0, 0.5]}, n_trials=3, cv=3, random_state=0).fit(X, Y)
    first = vars(search).copy()
    with pytest.raises(ValueError, match="3 failed"):
        search.set_params(scoring=booms).fit(X, Y)
    changed = {name for name in first if vars(search)[name] is not first[name]}
    assert changed == {"scoring", "study_", "study_name_"}  # the failures can be looked at
    assert {trial.state.name for trial in search.study_.trials} == {"FAIL"}
    search.set_params(scoring=None, refit=False).fit(X, Y)
    assert not hasattr(search, "best_estimator_")  # of an earlier fit: gone once another one has ended


def good_once(estimator, X, y):
    if estimator.shift != 2.0:
        raise RuntimeError("boom 42")
    return 0.75


@pytest.mark.parametrize("bad", ["raises", "nan"])
def test_o2d_one_good_trial_of_three_wins_with_one_warning(bad):
    def score(estimator, X, y):
        return good_once(estimator, X, y) if bad == "raises" or estimator.shift == 2.0 else float("nan")

    sampler = optuna.samplers.GridSampler({"shift": [1.0, 2.0, 3.0]}, seed=0)
    search = OptunaSearch(
        Counting(), {"shift": [1.0, 2.0, 3.0]}, n_trials=3, cv=3, sampler=sampler, scoring=score
    )
    with pytest.warns(FitFailedWarning, match="2 of 3 trials") as caught:
        search.fit(X, Y)
    assert len(caught) == 1
    assert ("boom 42" if bad == "raises" else "is NaN") in str(caught[0].message)
    assert search.best_params_ == {"shift": 2.0}
    assert search.best_score_ == 0.75
    assert search.best_estimator_.shift == 2.0
    assert sorted(search.cv_results_["trial_state"]) == ["complete", "fail", "fail"]
    assert search.cv_results_["trial_state"][search.best_index_] == "complete"


class Interrupting(Counting):
    """Is interrupted in its fourth fit, the first of the second trial."""

    def fit(self, X, y):
        super().fit(X, y)
        if type(self).fits == 4:
            raise KeyboardInterrupt
        return self


@pytest.mark.parametrize("stored", [False, True])
def test_o2_an_interrupt_in_trial_2_keeps_trial_1(stored, tmp_path, monkeypatch):
    monkeypatch.setattr(Interrupting, "fits", 0)
    url = f"sqlite:///{tmp_path}/s.db" if stored else None
    search = OptunaSearch(
        Interrupting(), {"shift": [0.0, 0.5]}, n_trials=5, cv=3, storage=url, study_name="r"
    )
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, Y)
    states = [trial.state.name for trial in search.study_.trials]
    assert states == ["COMPLETE", "FAIL"]
    assert search.study_.best_trial.number == 0
    assert not hasattr(search, "best_estimator_")
    if stored:  # and the search goes on from there
        search.fit(X, Y)
        assert list(search.cv_results_["trial_state"]) == ["complete", "fail", *["complete"] * 5]
