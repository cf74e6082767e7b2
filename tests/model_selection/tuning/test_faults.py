"""What a search is given in a bad hour: folds that are none, scores that are no numbers, copies, processes that die."""

import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import optuna
import pandas as pd
import pytest
from sklearn.exceptions import DataConversionWarning, FitFailedWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold

from sktransformer import OptunaSearch, tfidf_svm

from .helpers import Counting, X, Y, shifted

REPOSITORY = Path(__file__).parents[3]
C = {"C": [0.1, 1.0]}


def search(**options):
    return OptunaSearch(**{"estimator": LogisticRegression(), "space": C, "n_trials": 2, "cv": 2, **options})


def over(values, scores, **options):
    """Visit each value once; what a trial scores is read off the table."""
    sampler = optuna.samplers.GridSampler({"shift": values}, seed=0)
    options = {
        "n_trials": len(values),
        "cv": 2,
        "scoring": shifted(dict(zip(values, scores, strict=True))),
        **options,
    }
    return OptunaSearch(Counting(), {"shift": values}, sampler=sampler, **options)


@pytest.mark.parametrize(
    ("cv", "said"),
    [
        ([], "cv gives no fold"),
        ([(range(30), range(30, 90))], "test part of fold 0 must hold positions from 0 to 59"),
        ([(range(30), range(30, 60)), ([], range(9))], "training part of fold 1 is empty"),
        ([(range(30), [0.5])], "test part of fold 0 must hold positions"),
        ([(np.ones(60, dtype=bool), np.ones(59, dtype=bool))], "test part of fold 0 is a mask of 59, not 60"),
        ([(np.ones(60, dtype=bool), np.zeros(60, dtype=bool))], "test part of fold 0 is empty"),
    ],
)
def test_folds_that_are_none_are_told_before_a_fit(cv, said, monkeypatch):
    monkeypatch.setattr(Counting, "fits", 0)
    with pytest.raises(ValueError, match=said):
        OptunaSearch(Counting(), {"shift": [0.0]}, n_trials=1, cv=cv).fit(X, Y)
    assert Counting.fits == 0


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_a_score_that_is_no_finite_number_fails_its_trial(bad, n_jobs):
    with pytest.warns(
        FitFailedWarning, match=f"1 of 3 trials .*the score of fold 0 is {str(bad).replace('nan', 'NaN')}"
    ):
        found = over([1.0, 2.0, 3.0], [0.25, bad, 0.75], n_jobs=n_jobs).fit(X, Y)
    assert (found.best_params_, found.best_score_) == ({"shift": 3.0}, 0.75)
    states = dict(
        zip(
            [row["shift"] for row in found.cv_results_["params"]],
            found.cv_results_["trial_state"],
            strict=True,
        )
    )
    assert states == {1.0: "complete", 2.0: "fail", 3.0: "complete"}
    with pytest.raises(ValueError, match="0 complete, 1 failed"):
        over([2.0], [bad]).fit(X, Y)


def test_a_range_without_end_is_named():
    for space in ({"C": (0.1, np.inf)}, {"C": (-np.inf, 1.0)}):
        with pytest.raises(ValueError, match=r"space\['C'\] must go from low to high, both finite"):
            search(space=space).fit(X, Y)


def test_labels_come_as_everywhere():
    plain = search(random_state=0).fit(X, Y)
    names = np.array(["colis", "facture"])[Y]
    for y in (pd.Series(names, dtype="str"), names.astype(np.dtypes.StringDType()), list(names)):
        fitted = search(random_state=0).fit(X, y)
        assert fitted.classes_.tolist() == ["colis", "facture"]
        assert fitted.best_score_ == plain.best_score_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataConversionWarning)  # scikit-learn's, of each fit
        assert search(random_state=0).fit(X, pd.DataFrame({"y": Y})).best_score_ == plain.best_score_
    for absent in (None, np.nan):
        with pytest.raises(ValueError, match=r"y has 1 missing value\(s\), None or nan, in row\(s\) 3"):
            search().fit(X, [*names[:3], absent, *names[4:]])
    with pytest.raises(TypeError, match="mixes labels of type"):
        search().fit(X, [*names[:-1], 3])


MAILS = ["ma facture est fausse", "le colis est perdu"] + [
    f"{word} {i}" for i in range(5) for word in ("facture", "colis")
]
LABELS = ["facture", "colis"] * 6


def test_copies_across_folds_are_told():
    texts = [*MAILS, "Ma  facture est fausse", "un autre colis"]
    labels = [*LABELS, "facture", "colis"]
    tuned = OptunaSearch(tfidf_svm(), {"svm__C": [1.0]}, n_trials=1, cv=2)
    with pytest.warns(
        UserWarning, match=r"2 documents in 1 group\(s\) of duplicates .* rows 0, 12 of X.*groups="
    ) as caught:
        tuned.fit(texts, labels)
    assert len(caught) == 1
    groups = [*range(12), 0, 12]
    tuned.set_params(cv=StratifiedGroupKFold(2)).fit(
        texts, labels, groups=groups
    )  # kept together: nothing to tell
    tuned.set_params(cv=2).fit(MAILS, LABELS)


KILLED = """
import os, signal, sys
from sktransformer import OptunaSearch
from tests.model_selection.tuning.helpers import Counting, X, Y

class Mortal(Counting):
    fits = 0
    def fit(self, X, y):
        super().fit(X, y)
        if type(self).fits == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
        return self

OptunaSearch(Mortal(), {"shift": (-1.0, 1.0)}, n_trials=3, cv=2, storage=sys.argv[1], study_name="r",
             random_state=0).fit(X, Y)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no SIGKILL")
@pytest.mark.parametrize("kind", ["journal", "sqlite"])
def test_a_killed_search_goes_on_from_its_finished_trials(kind, tmp_path):
    storage = str(tmp_path / "s.log") if kind == "journal" else f"sqlite:///{tmp_path}/s.db"
    command = [sys.executable, "-c", KILLED, storage]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    for kill_at, code in (
        (4, -signal.SIGKILL),
        (0, 0),
    ):  # in the second fold of the second trial; and not at all
        done = subprocess.run(
            [*command, str(kill_at)],
            cwd=REPOSITORY,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stderr
    kept = (
        optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(storage))
        if kind == "journal"
        else storage
    )
    study = optuna.load_study(study_name="r", storage=kept)
    # nobody can know that the second one's process is gone: it may be another machine's
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "RUNNING", *["COMPLETE"] * 3]
    assert len({trial.params["shift"] for trial in study.trials}) == 5
