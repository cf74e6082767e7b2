"""The resume file: nothing is done twice, nothing of another comparison is taken over, a crash costs one run."""

import json
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, make_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from sktransformer import compare_models
from sktransformer.model_selection.comparison._store import data_mark, estimator_mark

X = np.random.default_rng(0).normal(size=(40, 3))
Y = np.where(X[:, 0] + X[:, 1] > 0, "a", "b")
Y01 = (Y == "a").astype(int)
SCORES = ["estimator", "seed", "fold", "f1_macro", "accuracy"]


class Counting(LogisticRegression):
    """Counts its fits, and stops the process or raises where it is told to."""

    fits = 0
    stop_at = None
    with_error: BaseException = KeyboardInterrupt()

    def fit(self, X, y, sample_weight=None):
        if Counting.fits == Counting.stop_at:
            raise Counting.with_error
        Counting.fits += 1
        return super().fit(X, y, sample_weight)


@pytest.fixture(autouse=True)
def _counted_from_zero(monkeypatch):
    monkeypatch.setattr(Counting, "fits", 0)
    monkeypatch.setattr(Counting, "stop_at", None)


def compare(store=None, **changes):
    arguments = {
        "estimators": {"one": Counting(), "two": Counting(C=0.1)},
        "X": X,
        "y": Y,
        "cv": 3,
        "n_seeds": 2,
    }
    return compare_models(**{**arguments, **changes}, store=store)


def test_a_second_call_fits_nothing(tmp_path):
    path = tmp_path / "runs.jsonl"
    first = compare(path)
    assert Counting.fits == 12
    content = path.read_bytes()
    again = compare(path)
    assert Counting.fits == 12
    assert path.read_bytes() == content
    pd.testing.assert_frame_equal(first.runs, again.runs)
    assert first.verdict == again.verdict


def test_nothing_is_written_without_a_store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    compare()
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_leaves_what_was_finished(tmp_path, monkeypatch):
    path = tmp_path / "runs.jsonl"
    monkeypatch.setattr(Counting, "stop_at", 5)
    with pytest.raises(KeyboardInterrupt):
        compare(path)
    assert len(path.read_text().splitlines()) == 1 + 5
    monkeypatch.setattr(Counting, "stop_at", None)
    resumed = compare(path)
    assert Counting.fits == 12
    pd.testing.assert_frame_equal(resumed.runs[SCORES], compare().runs[SCORES])


SCRIPT = """
import os, signal, sys
import numpy as np
from sklearn.linear_model import LogisticRegression
from sktransformer import compare_models

class Logging(LogisticRegression):
    def fit(self, X, y):
        log = sys.argv[2]
        done = open(log).read().count("x") if os.path.exists(log) else 0
        if done == int(sys.argv[3]):
            os.kill(os.getpid(), signal.SIGKILL)
        with open(log, "a") as file:
            file.write("x")
        return super().fit(X, y)

X = np.random.default_rng(0).normal(size=(40, 3))
result = compare_models({"a": Logging(), "b": Logging(C=0.1)}, X, X[:, 0] > 0, cv=4, store=sys.argv[1])
print(result.frame["accuracy"].to_json())
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no SIGKILL")
def test_a_killed_process_is_taken_up_again(tmp_path):
    script, store, log = tmp_path / "script.py", tmp_path / "runs.jsonl", tmp_path / "log"
    script.write_text(textwrap.dedent(SCRIPT), encoding="utf-8")

    def start(kill_at):
        command = [sys.executable, str(script), str(store), str(log), str(kill_at)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    assert start(5).returncode == -signal.SIGKILL
    assert log.read_text() == "x" * 5
    assert len(store.read_text().splitlines()) == 1 + 5
    done = start(-1)
    assert done.returncode == 0, done.stderr
    assert log.read_text() == "x" * 8  # eight runs in all, none of them twice
    models = {"a": LogisticRegression(), "b": LogisticRegression(C=0.1)}
    unstopped = compare_models(models, X, X[:, 0] > 0, cv=4)
    assert json.loads(done.stdout) == json.loads(unstopped.frame["accuracy"].to_json())


def test_a_line_cut_half_way_costs_one_run(tmp_path):
    path = tmp_path / "runs.jsonl"
    whole = compare(path)
    path.write_bytes(path.read_bytes()[:-30])
    resumed = compare(path)
    assert Counting.fits == 13
    pd.testing.assert_frame_equal(whole.runs[SCORES], resumed.runs[SCORES])
    compare(path)
    assert Counting.fits == 13


@pytest.mark.parametrize("n_bytes", [0, 3, 40])
def test_a_first_line_cut_half_way_costs_nothing(tmp_path, n_bytes):
    path = tmp_path / "runs.jsonl"
    compare(path)
    path.write_bytes(path.read_bytes()[:n_bytes])
    compare(path)
    assert Counting.fits == 24
    compare(path)
    assert Counting.fits == 24


def test_lines_that_are_no_runs_are_passed_over(tmp_path):
    path = tmp_path / "runs.jsonl"
    compare(path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], b"\xff\x00{\n", b"[1, 2]\n", b"{}\n", *lines[2:]]))
    compare(path)
    assert Counting.fits == 13


def test_failed_runs_are_tried_again(tmp_path, monkeypatch):
    path = tmp_path / "runs.jsonl"
    monkeypatch.setattr(Counting, "stop_at", 10)
    monkeypatch.setattr(Counting, "with_error", RuntimeError("no memory left"))
    message = "failed in 1 of 6 runs; the first: RuntimeError in fit: no memory left"
    with pytest.warns(FitFailedWarning, match=message):
        compare(path)
    monkeypatch.setattr(Counting, "stop_at", None)
    assert (compare(path).runs["error"] == "").all()
    assert Counting.fits == 12


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": X + 1}, "X differs"),
        ({"y": np.where(X[:, 0] > 0, "a", "b")}, "y differs"),
        ({"cv": 4}, r"folds differs \(cv, groups, n_seeds, random_state or duplicates\)"),
        ({"random_state": 7}, r"seeds is \[0, 1\] in the file and \[7, 8\] here"),
        ({"n_seeds": 1}, r"seeds is \[0, 1\] in the file and \[0\] here"),
        ({"scoring": "accuracy"}, "scoring.f1_macro is only in the file"),
        ({"sample_weight": np.arange(40) + 1.0}, "sample_weight differs|sample_weight is None"),
        (
            {"estimators": {"one": Counting(), "two": Counting(C=0.2)}},
            r"estimators\['two'\].C is 0.1 in the file and 0.2 here",
        ),
        ({"estimators": {"one": Counting()}}, r"estimators\['two'\] is only in the file"),
        (
            {"estimators": {"one": Counting(), "two": Counting(C=0.1), "three": DummyClassifier()}},
            r"estimators\['three'\] is only in this call",
        ),
        (
            {"estimators": {"one": DummyClassifier(), "two": Counting(C=0.1)}},
            r"estimators\['one'\].class is '.*Counting",
        ),
    ],
)
def test_another_comparison_is_refused_by_name(tmp_path, changes, message):
    path = tmp_path / "runs.jsonl"
    compare(path)
    content = path.read_bytes()
    with pytest.raises(ValueError, match=message) as raised:
        compare(path, **changes)
    assert "another file" in str(raised.value)
    assert path.read_bytes() == content


@pytest.mark.parametrize("content", ["a,b\n1,2\n", "no line end", '{"kind": "something else"}\n'])
def test_a_file_of_somebody_else_is_left_alone(tmp_path, content):
    path = tmp_path / "data.csv"
    path.write_text(content)
    with pytest.raises(ValueError, match="is not a file of compare_models, and is left as it is"):
        compare(path)
    assert path.read_text() == content


def test_a_newer_format_is_refused(tmp_path):
    path = tmp_path / "runs.jsonl"
    path.write_text('{"kind": "sktransformer comparison", "format": 99}\n')
    with pytest.raises(ValueError, match="written by a newer version"):
        compare(path)


def test_bad_paths(tmp_path):
    with pytest.raises(ValueError, match="is a folder; pass the path of a file"):
        compare(tmp_path)
    with pytest.raises(FileNotFoundError, match="nowhere does not exist; make it"):
        compare(tmp_path / "nowhere" / "runs.jsonl")
    with pytest.raises(TypeError, match="store must be a str or a path, got int"):
        compare(3)
    for unseeded in (None, np.random.RandomState(0)):
        with pytest.raises(ValueError, match="store needs an int for random_state"):
            compare(tmp_path / "runs.jsonl", random_state=unseeded)
    assert Counting.fits == 0


def test_scores_survive_the_file_to_the_last_bit(tmp_path):
    path = tmp_path / "runs.jsonl"
    compare(path)
    pd.testing.assert_frame_equal(compare(path).runs[SCORES], compare().runs[SCORES], check_exact=True)


def test_the_container_does_not_count_but_the_order_does():
    texts = ["un", "deux", "trois"]
    marks = {data_mark(wrap(texts)) for wrap in (list, np.array, pd.Series, lambda t: pd.DataFrame({"t": t}))}
    assert len(marks) == 1
    assert data_mark(["deux", "un", "trois"]) not in marks


def test_marks_of_estimators():
    mark = estimator_mark(
        make_pipeline(FunctionTransformer(lambda x: x), StandardScaler(), LogisticRegression())
    )
    assert (
        mark
        == estimator_mark(
            make_pipeline(
                FunctionTransformer(lambda x: x), StandardScaler(), LogisticRegression(random_state=3)
            )
        )
        or "lambda" in mark["functiontransformer__func"]
    )
    assert "logisticregression__random_state" not in mark
    json.dumps(mark, allow_nan=False)


def test_scorers_with_other_options_differ(tmp_path):
    path = tmp_path / "runs.jsonl"
    compare(path, y=Y01, scoring={"f": make_scorer(f1_score, average="macro")})
    with pytest.raises(ValueError, match=r"scoring.f is .make_scorer.*macro.*micro"):
        compare(path, y=Y01, scoring={"f": make_scorer(f1_score, average="micro")})


def test_the_parallel_way_fills_the_same_file(tmp_path):
    models = {"a": LogisticRegression(), "b": DummyClassifier(strategy="stratified")}
    one, two = (compare(tmp_path / f"{n}.jsonl", estimators=models, n_jobs=n).runs[SCORES] for n in (1, 2))
    pd.testing.assert_frame_equal(one, two, check_exact=True)
    assert len((tmp_path / "2.jsonl").read_text().splitlines()) == 13
