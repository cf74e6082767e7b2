"""A resume file that two processes share: neither loses a run of the other's, and a killed one holds nobody up."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock
from sklearn.linear_model import LogisticRegression

from sktransformer import compare_models
from sktransformer.model_selection.comparison import _store
from sktransformer.model_selection.comparison._runs import Outcome
from sktransformer.model_selection.comparison._store import Store

REPOSITORY = Path(__file__).parents[3]
X = np.random.default_rng(0).normal(size=(40, 3))
HEADER = {"X": "mark"}
START = """
import sys, time
from pathlib import Path
folder, me = Path(sys.argv[1]), sys.argv[2]

def meet(name):
    (folder / f"{name}-{me}").touch()
    while len(list(folder.glob(f"{name}-*"))) < 2:
        time.sleep(0.0005)
"""
# many files, each begun by both at the same moment: that is when one could write over the other
RACE = (
    START
    + """
from sktransformer.model_selection.comparison._runs import Outcome
from sktransformer.model_selection.comparison._store import Store
for i in range(30):
    meet(f"round{i}")
    store = Store(folder / f"{i}.jsonl", {"X": "mark"})
    for fold in range(3):
        store.append(Outcome(me, 0, fold, {"accuracy": 0.5}))
"""
)
WHOLE = (
    START
    + """
import numpy as np
from sklearn.linear_model import LogisticRegression
from sktransformer import compare_models
X = np.random.default_rng(0).normal(size=(40, 3))
meet("start")
models = {"a": LogisticRegression(), "b": LogisticRegression(C=0.1)}
print(compare_models(models, X, X[:, 0] > 0, cv=4, store=folder / "runs.jsonl").frame["accuracy"].to_json())
"""
)


def two_at_once(script, folder):
    command = [sys.executable, "-W", "error", "-c", script, str(folder)]
    both = [
        subprocess.Popen(
            [*command, name], cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for name in ("first", "second")
    ]
    done = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], done
    return [out for out, _ in done]


def test_files_that_two_processes_begin_at_once_hold_the_runs_of_both(tmp_path):
    two_at_once(RACE, tmp_path)
    expected = {(name, 0, fold) for name in ("first", "second") for fold in range(3)}
    for i in range(30):
        assert set(Store(tmp_path / f"{i}.jsonl", HEADER).outcomes) == expected
        assert len((tmp_path / f"{i}.jsonl").read_text().splitlines()) == 1 + 6


def test_two_comparisons_share_a_file(tmp_path):
    one, other = two_at_once(WHOLE, tmp_path)
    models = {"a": LogisticRegression(), "b": LogisticRegression(C=0.1)}
    alone = compare_models(models, X, X[:, 0] > 0, cv=4)
    assert json.loads(one) == json.loads(other) == json.loads(alone.frame["accuracy"].to_json())
    before = (tmp_path / "runs.jsonl").read_bytes()
    assert 1 + 8 <= len(before.splitlines()) <= 1 + 16  # what both were doing stands there twice
    compare_models(models, X, X[:, 0] > 0, cv=4, store=tmp_path / "runs.jsonl")
    assert (tmp_path / "runs.jsonl").read_bytes() == before  # and nothing is done again


HOLDER = """
import sys, time
from filelock import FileLock
with FileLock(sys.argv[1]):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no SIGKILL")
def test_a_killed_process_holds_nobody_up(tmp_path):
    command = [sys.executable, "-c", HOLDER, str(tmp_path / ".runs.jsonl.lock")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        os.kill(holder.pid, signal.SIGKILL)
    start = time.perf_counter()
    Store(tmp_path / "runs.jsonl", HEADER)
    assert time.perf_counter() - start < 5


def test_a_lock_that_is_held_for_too_long_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(_store, "LOCK_WAIT", 0.1)
    with (
        FileLock(tmp_path / ".runs.jsonl.lock"),
        pytest.raises(TimeoutError, match=r"runs\.jsonl.* was locked by another process for 0\.1 s; wait"),
    ):
        Store(tmp_path / "runs.jsonl", HEADER)


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="the system has no /proc, where nobody may write")
def test_a_folder_that_cannot_be_written_to_is_told_at_once():
    start = time.perf_counter()
    with pytest.raises(OSError, match=r"store='/proc/runs\.jsonl' can't be written: .*; pass another path"):
        Store("/proc/runs.jsonl", HEADER)
    assert time.perf_counter() - start < 5


@pytest.mark.skipif(not Path(os.devnull).exists(), reason="the system has no such file")
def test_a_device_is_no_store():
    with pytest.raises(ValueError, match="is a device or a pipe; pass the path of a file"):
        Store(os.devnull, HEADER)


def test_a_failure_does_not_hide_the_result_of_another_process(tmp_path):
    ours, theirs = (Store(tmp_path / "runs.jsonl", HEADER) for _ in range(2))
    ours.append(Outcome("a", 0, 0, {"accuracy": 0.5}))
    theirs.append(Outcome("a", 0, 0, {"accuracy": np.nan}, error="MemoryError in fit"))
    read = Store(tmp_path / "runs.jsonl", HEADER).outcomes["a", 0, 0]
    assert (read.error, read.scores) == ("", {"accuracy": 0.5})
    theirs.append(Outcome("a", 0, 0, {"accuracy": 0.25}))
    assert Store(tmp_path / "runs.jsonl", HEADER).outcomes["a", 0, 0].scores == {"accuracy": 0.25}
