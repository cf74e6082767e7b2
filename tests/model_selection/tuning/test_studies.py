"""Studies in files: shared by processes, locked, foreign, broken; and what optuna says meanwhile."""

import json
import logging
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import optuna
import pandas as pd
import pytest
from optuna.storages import InMemoryStorage, JournalStorage
from optuna.storages.journal import JournalFileBackend
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_val_score

from sktransformer import OptunaSearch
from sktransformer.model_selection.tuning._studies import SeededByNumber

from .helpers import Counting, X, Y

C = {"C": (1e-3, 10.0, "log")}
REPOSITORY = Path(__file__).parents[3]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "s.log"


def named(path, **options):
    options = {"n_trials": 2, "cv": 2, "study_name": "r", "random_state": 0, **options}
    return OptunaSearch(LogisticRegression(), C, storage=path, **options)


# -- several processes ----------------------------------------------------------------------------------------------

WORKER = """
import sys
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sktransformer import OptunaSearch
X, y = make_classification(n_samples=60, n_features=5, random_state=0)
search = OptunaSearch(LogisticRegression(), {"C": (1e-3, 10.0, "log")}, n_trials=8, cv=2, storage=sys.argv[1],
                      study_name="r", random_state=0).fit(X, y)
print(len(search.cv_results_["params"]))
"""


@pytest.mark.parametrize("kind", ["journal", pytest.param("sqlite", marks=pytest.mark.slow)])
def test_two_processes_share_a_study_and_lose_no_trial(kind, tmp_path):
    storage = str(tmp_path / "s.log") if kind == "journal" else f"sqlite:///{tmp_path}/s.db"
    command = [sys.executable, "-W", "error", "-c", WORKER, storage]
    workers = [
        subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    done = [worker.communicate(timeout=300) for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0], done
    whole = named(storage, n_trials=1).fit(X, Y)
    assert list(whole.cv_results_["trial_number"]) == list(range(17))
    assert set(whole.cv_results_["trial_state"]) == {"complete"}
    assert (
        len({row["C"] for row in whole.cv_results_["params"]}) == 17
    )  # one seed for all, and yet no trial twice


# -- what a study is for --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"estimator__fit_intercept": False}, "fit_intercept was True, is False"),
        (
            {"space": {"C": (1e-3, 20.0, "log")}},
            r"space\['C'\] was 0.001 to 10.0 \(log\), is 0.001 to 20.0 \(log\)",
        ),
        ({"space": {**C, "tol": [1e-4]}}, r"space\['tol'\] was not searched over, is \[0.0001\]"),
        (
            {"space": lambda trial: {"C": trial.suggest_float("C", 0.1, 1)}},
            "the function that is the space was not",
        ),
        ({"scoring": "f1"}, r"scoring was None \(score\), is 'f1' \(score\)"),
        ({"cv": KFold(2)}, "cv makes other folds"),
    ],
)
def test_another_search_is_told_from_the_one_before(path, change, said):
    named(path).fit(X, Y)
    with pytest.raises(ValueError, match=said):
        named(path).set_params(**change).fit(X, Y)


def test_other_data_is_told_from_the_data_before_whatever_holds_it(path):
    named(path).fit(X, Y)
    with pytest.raises(ValueError, match="other data"):
        named(path).fit(X + 1, Y)
    with pytest.raises(ValueError, match="other data"):
        named(path).fit(X, 1 - Y)
    assert len(named(path).fit(pd.DataFrame(X).to_numpy(), pd.Series(Y, index=Y + 7)).study_.trials) == 4


def test_texts_are_the_same_data_in_a_list_an_array_and_a_series():
    from sktransformer.model_selection.tuning._fingerprints import _hash, _plain

    texts = ["un", "deux", "trois"]
    kinds = [texts, tuple(texts), np.array(texts), np.array(texts, object), pd.Series(texts, index=[5, 6, 7])]
    assert len({_hash(_plain(kind)) for kind in kinds}) == 1
    assert _hash(_plain(texts)) != _hash(_plain(texts[::-1]))


def test_what_only_costs_time_may_change(path):
    search = named(path).fit(X, Y)
    search.set_params(n_jobs=2, pruner="median", timeout=60, estimator__n_jobs=None, estimator__verbose=1)
    assert len(search.fit(X, Y).study_.trials) == 4


def test_nested_cross_validation_does_not_mix_its_folds(path):
    with pytest.raises(ValueError, match="other data"):
        cross_val_score(named(path), X, Y, cv=3, error_score="raise")
    scores = cross_val_score(named(path, study_name=None), X, Y, cv=3)
    assert scores.shape == (3,)


def test_folds_shuffled_without_a_seed_cannot_be_resumed(path):
    search = named(path, cv=KFold(3, shuffle=True)).fit(X, Y)
    with pytest.raises(ValueError, match="random_state"):
        search.fit(X, Y)


def test_a_study_of_somebody_else_is_not_taken_over(path):
    storage = JournalStorage(JournalFileBackend(str(path)))
    optuna.create_study(storage=storage, study_name="down", direction="minimize")
    optuna.create_study(storage=storage, study_name="two", directions=["maximize", "maximize"])
    for name in ("down", "two"):
        with pytest.raises(ValueError, match=f"study '{name}' does not maximize one value"):
            named(path, study_name=name).fit(X, Y)
    other = optuna.create_study(storage=storage, study_name="r", direction="maximize")
    other.optimize(lambda trial: trial.suggest_categorical("C", [1, 2]), n_trials=1)
    with pytest.raises(ValueError, match=r"space\['C'\] was \[1, 2\], is 0.001 to 10.0"):
        named(path).fit(X, Y)


def test_the_study_says_what_it_was_made_for(path):
    record = named(path).fit(X, Y).study_.user_attrs["sktransformer"]
    assert record["estimator"][""] == "LogisticRegression"
    assert record["estimator"]["max_iter"] == "100"
    assert "C" not in record["estimator"]
    assert json.loads(record["space"]["C"])["attributes"]["high"] == 10.0


# -- storages -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("held", ["before", "EXCLUSIVE"])
def test_a_locked_database_is_an_error_that_says_so(tmp_path, held):
    file = tmp_path / "s.db"
    url = f"sqlite:///{file}?timeout=0.1"
    if held == "before":
        named(url).fit(X, Y)
    other = sqlite3.connect(file)
    try:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(TimeoutError, match=r"s\.db.* is locked by another process; wait"):
            named(url).fit(X, Y)
    finally:
        other.rollback()
        other.close()
    assert len(named(url).fit(X, Y).study_.trials) == (4 if held == "before" else 2)


def test_a_database_locked_in_the_middle_ends_the_search_and_keeps_what_is_done(tmp_path):
    file = tmp_path / "s.db"
    others = []

    def locks(estimator, X, y):
        if len(others) == 0 and estimator.shift > 0.5:
            others.append(sqlite3.connect(file))
            others[0].execute("BEGIN EXCLUSIVE")
        return 1.0

    values = [0.1, 0.9]
    search = OptunaSearch(
        Counting(), {"shift": values}, n_trials=2, cv=2, scoring=locks, storage=f"sqlite:///{file}?timeout=0.1",
        study_name="r", sampler=optuna.samplers.GridSampler({"shift": values}, seed=1),
    )  # fmt: skip
    try:
        with pytest.raises(TimeoutError, match="is locked by another process"):
            search.fit(X, Y)
    finally:
        for other in others:
            other.rollback()
            other.close()
    assert len(others) == 1
    assert "COMPLETE" not in {
        trial.state.name for trial in search.study_.trials if trial.params["shift"] == 0.9
    }


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda folder: folder, ValueError, "is a folder"),
        (lambda folder: folder / "absent" / "s.log", ValueError, "which does not exist"),
        (lambda folder: folder / "text.log", ValueError, "is no journal of optuna"),
        (lambda folder: folder / "other.json", ValueError, "is no journal of optuna"),
        (lambda folder: folder / "real.db", ValueError, r"is an SQLite file; pass 'sqlite:///"),
        (lambda folder: f"sqlite:///{folder}/text.log", OSError, "not a database"),
        (lambda folder: f"sqlite:///{folder}/absent/s.db", OSError, "unable to open database file"),
    ],
)
def test_a_storage_that_is_none_is_named(make, error, said, tmp_path):
    (tmp_path / "text.log").write_text("one,two\n" * 200, encoding="utf-8")
    sqlite3.connect(tmp_path / "real.db").execute("CREATE TABLE t (a)").connection.close()
    (tmp_path / "other.json").write_text('{"ours": 1}', encoding="utf-8")
    with pytest.raises(error, match=said) as caught:
        named(make(tmp_path)).fit(X, Y)
    assert str(caught.value).count("storage=") == 1
    assert (tmp_path / "other.json").read_text() == '{"ours": 1}'


@pytest.mark.parametrize("lost", [1, 5, 200, 1500])
def test_a_journal_cut_in_a_line_goes_on(path, lost):
    named(path).fit(X, Y)
    whole = path.read_bytes()
    path.write_bytes(whole[:-lost])
    lines = path.read_bytes().count(b"\n")
    before = sum(
        b'"state":1' in line for line in whole[:-lost].splitlines(keepends=True) if line.endswith(b"\n")
    )
    search = named(path).fit(X, Y)
    assert path.read_bytes().splitlines()[:lines] == whole.splitlines()[:lines]
    assert search.cv_results_["trial_state"].tolist().count("complete") == before + 2
    for line in path.read_text(encoding="utf-8").splitlines():
        json.loads(line)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_broken_line_of_a_journal_is_an_error_that_names_the_file(path):
    named(path).fit(X, Y)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], b'{"op_code": garb\n', *lines[3:]]))
    with pytest.raises(OSError, match=r"^storage=.*s\.log' has a line that is broken"):
        named(path).fit(X, Y)


def test_a_tilde_is_the_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    named("~/s.log").fit(X, Y)
    assert [file.name for file in tmp_path.iterdir()] == ["s.log"]


@pytest.mark.parametrize(
    ("options", "documents", "error", "said"),
    [
        (
            {"estimator": LogisticRegression},
            X,
            TypeError,
            "estimator must be an instance with a fit method, got <class",
        ),
        ({"study_name": ""}, X, TypeError, "study_name must be None or a str that is not empty, got ''"),
        ({"space": {1: [2]}}, X, TypeError, "space names 1; names of parameters are str"),
        ({}, "one text", TypeError, "got a bare str"),
        ({}, [], ValueError, r"X and y hold 0 sample\(s\)"),
    ],
)
def test_what_makes_no_search_is_told_before_a_fit(options, documents, error, said):
    search = OptunaSearch(**{"estimator": LogisticRegression(), "space": C, **options})
    with pytest.raises(error, match=said):
        search.fit(documents, Y[: len(documents)])


def test_a_storage_object_is_used_as_it_is():
    storage = InMemoryStorage()
    for _ in range(2):
        search = named(storage).fit(X, Y)
    assert len(search.cv_results_["params"]) == 4
    assert optuna.load_study(study_name="r", storage=storage).user_attrs.keys() == {"sktransformer"}


def test_nothing_is_written_into_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    named(None).fit(X, Y)
    assert list(tmp_path.iterdir()) == []


# -- what optuna says, and its sampler ------------------------------------------------------------------------------


def test_optuna_is_quiet_meanwhile_and_as_before_afterwards(capfd, caplog):
    before = optuna.logging.get_verbosity()
    try:
        for level in (logging.WARNING, logging.INFO):
            optuna.logging.set_verbosity(level)
            named(None).fit(X, Y)
            assert optuna.logging.get_verbosity() == level
        with pytest.raises(ValueError, match="no score"):
            named(None, scoring=lambda estimator, X, y: 1 / 0).fit(X, Y)
        assert optuna.logging.get_verbosity() == logging.INFO
        assert capfd.readouterr() == ("", "")
        assert caplog.records == []
        named(None, verbose=1).fit(X, Y)
        assert "Trial 1 finished" in caplog.text
    finally:
        optuna.logging.set_verbosity(before)


def test_the_sampler_is_tpe_seeded_by_the_trial_s_number():
    def drawn(n_trials):
        study = optuna.create_study(sampler=SeededByNumber(3))
        study.optimize(lambda trial: (trial.suggest_float("x", 0, 1) - 0.2) ** 2, n_trials=n_trials)
        return [trial.params["x"] for trial in study.trials]

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    values = drawn(40)
    assert values == drawn(40)
    assert len(set(values)) == 40
    # the first ten are uniform; then TPE closes in on 0.2, where uniform draws would stay 0.3 away on average
    assert np.abs(np.array(values[20:]) - 0.2).mean() < 0.15
