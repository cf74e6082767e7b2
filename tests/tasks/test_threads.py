"""Threads and processes: seeded fits at once, workers, other processes, signals, silence."""

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_predict

from sktransformer.tasks.classification import TransformerClassifier
from sktransformer.tasks.embedding import TransformerEmbedder
from sktransformer.testing.checkpoints import tiny_checkpoint

Maker = Callable[..., TransformerClassifier]
# a random model of one epoch takes every mail for one class, and says so
collapses = pytest.mark.filterwarnings("ignore:training collapsed:sklearn.exceptions.ConvergenceWarning")
ROOT = Path(__file__).parents[2]

# What every child process begins with: this package, one thread, and no network.
PRELUDE = """
import os, sys, json, socket, pathlib

def refuse(*args, **kwargs):
    raise OSError("the network is cut")

socket.socket.connect = refuse
socket.getaddrinfo = refuse
"""


def start(script: str, *arguments: object, cwd: Path, **environment: str) -> "subprocess.Popen[str]":
    code = PRELUDE + textwrap.dedent(script)
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **environment}
    return subprocess.Popen(
        [sys.executable, "-W", "default", "-c", code, *map(str, arguments)],
        cwd=cwd,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(child: "subprocess.Popen[str]") -> tuple[str, str]:
    out, err = child.communicate(timeout=240)
    assert child.returncode == 0, err
    return out, err


# -- other processes --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_file_is_read_elsewhere(
    tmp_path: Path, mails: list[str], labels: list[str], learning: dict[str, Any]
) -> None:
    """In another process and folder, off line, without a GPU, and with the folder of the checkpoint gone."""
    source = tiny_checkpoint("flaubert", tmp_path / "source")
    fitted = TransformerClassifier(source, **learning).fit(mails, labels)
    embedder = TransformerEmbedder(tiny_checkpoint("camembert", tmp_path / "other"), precision="float32").fit(
        mails
    )
    joblib.dump({"router": fitted, "embedder": embedder}, tmp_path / "router.joblib")
    np.savez(tmp_path / "expected.npz", p=fitted.predict_proba(mails), v=embedder.transform(mails))
    (tmp_path / "mails.json").write_text(json.dumps(mails))
    shutil.rmtree(source)
    shutil.rmtree(tmp_path / "other")
    (tmp_path / "empty").mkdir()
    script = """
    import joblib, numpy as np
    folder = sys.argv[1]
    mails = json.loads(pathlib.Path(folder, "mails.json").read_text())
    stored = joblib.load(f"{folder}/router.joblib")
    expected = np.load(f"{folder}/expected.npz")
    np.testing.assert_allclose(stored["router"].predict_proba(mails), expected["p"], atol=1e-6)
    np.testing.assert_allclose(stored["embedder"].transform(mails), expected["v"], atol=1e-6)
    print(stored["router"].predict(mails).tolist())
    print(sorted(os.listdir()))
    """
    child = start(
        script,
        tmp_path,
        cwd=tmp_path / "empty",
        CUDA_VISIBLE_DEVICES="",
        HF_HUB_OFFLINE="1",
        HF_HOME=str(tmp_path / "nowhere"),
    )
    out, err = finish(child)
    assert out.splitlines() == [str(fitted.predict(mails).tolist()), "[]"]
    assert err == ""


@pytest.mark.slow
def test_a_normal_run_is_silent_and_leaves_nothing(
    tmp_path: Path, mails: list[str], labels: list[str]
) -> None:
    """Nothing on the outputs, no file where the process stands, no variable of the environment changed."""
    here = tmp_path / "here"
    here.mkdir()
    (tmp_path / "mails.json").write_text(json.dumps([mails, labels]))
    script = """
    import torch, transformers, skorch, sklearn.linear_model, joblib  # some of them set variables of their own
    before = dict(os.environ)
    from transformers import CamembertConfig
    from sktransformer.tasks.classification import TransformerClassifier
    from sktransformer.tasks.embedding import TransformerEmbedder
    folder, camembert, flaubert = sys.argv[1:]
    mails, labels = json.loads(pathlib.Path(folder, "mails.json").read_text())
    learning = dict(learning_rate=4e-3, max_epochs=12, n_iter_no_change=12, batch_size=4, dropout=0.0)
    learning |= dict(precision="float32", random_state=0)
    scratch = CamembertConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64)
    for model in (camembert, flaubert, scratch):
        fitted = TransformerClassifier(
            model, early_stopping=True, gradient_checkpointing=model is not flaubert, **learning
        ).fit(mails, labels)
        fitted.predict_proba(mails), fitted.score(mails, labels), repr(fitted)
    fitted.save_pretrained(f"{folder}/saved")
    TransformerClassifier.from_pretrained(f"{folder}/saved").predict(mails)
    TransformerEmbedder(camembert).fit_transform(mails)
    joblib.dump(fitted, f"{folder}/router.joblib")
    joblib.load(f"{folder}/router.joblib").predict(mails)
    report = {"variables": sorted(set(before.items()) ^ set(os.environ.items())), "files": os.listdir()}
    pathlib.Path(folder, "report.json").write_text(json.dumps(report))
    """
    here.chmod(0o555)
    try:
        child = start(script, tmp_path, tiny_checkpoint("camembert"), tiny_checkpoint("flaubert"), cwd=here)
        out, err = finish(child)
    finally:
        here.chmod(0o755)
    assert (out, err) == ("", "")
    assert json.loads((tmp_path / "report.json").read_text()) == {"variables": [], "files": []}
    assert list(here.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to another process there")
@pytest.mark.slow
def test_ctrl_c_from_outside(
    tmp_path: Path, mails: list[str], labels: list[str]
) -> None:  # long: a process, what it does, and what is asked of it
    """The first fit leaves an unfitted estimator; the second leaves what an earlier fit had learned."""
    (tmp_path / "mails.json").write_text(json.dumps([mails, labels]))
    script = """
    import warnings
    import numpy as np
    from skorch.callbacks import Callback
    from sklearn.exceptions import NotFittedError
    from sktransformer.tasks.classification import TransformerClassifier
    warnings.simplefilter("ignore")
    mails, labels = json.loads(pathlib.Path(sys.argv[1]).read_text())

    class Ready(Callback):
        def on_batch_begin(self, net, **kwargs):
            if len(net.history) == 2 and len(net.history[-1]["batches"]) == 1:
                print("ready", flush=True)

    def interrupted(estimator):
        try:
            estimator.set_params(max_epochs=10**6, callbacks=[Ready()]).fit(mails, labels)
        except KeyboardInterrupt:
            return True
        return False

    estimator = TransformerClassifier(sys.argv[2], batch_size=8, random_state=0)
    outcome = {"first": interrupted(estimator)}
    outcome["attributes"] = [name for name in vars(estimator) if name.endswith("_")]
    try:
        estimator.predict(mails)
    except NotFittedError:
        outcome["unfitted"] = True
    estimator.set_params(max_epochs=1, callbacks=None).fit(mails, labels)
    before = estimator.predict_proba(mails)
    outcome["second"] = interrupted(estimator)
    outcome["same"] = bool(np.array_equal(before, estimator.predict_proba(mails)))
    print(json.dumps(outcome), flush=True)
    """
    child = start(script, tmp_path / "mails.json", tiny_checkpoint("camembert"), cwd=tmp_path)
    assert child.stdout is not None
    for _ in range(2):
        assert child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGINT)
    out, err = finish(child)
    assert json.loads(out.splitlines()[-1]) == {
        "first": True,
        "attributes": [],
        "unfitted": True,
        "second": True,
        "same": True,
    }
    assert err == ""


@collapses
@pytest.mark.slow
def test_workers(
    quick: Maker, mails: list[str], labels: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    """Two workers of loky give what one process gives, and neither they nor this process complain about forks."""
    estimator = quick()
    expected = cross_val_predict(estimator, mails, labels, cv=2, method="predict_proba")
    with joblib.parallel_config(backend="loky", n_jobs=2):
        got = cross_val_predict(estimator, mails, labels, cv=2, method="predict_proba", n_jobs=2)
    np.testing.assert_allclose(got, expected, atol=1e-6)
    out, err = capfd.readouterr()
    assert out == ""
    said = [
        line
        for line in err.splitlines()
        if "ConvergenceWarning" not in line and "training collapsed" not in line
    ]
    assert [line for line in said if line.strip() and not line.startswith("  ")] == []


# -- threads ----------------------------------------------------------------------------------------------------------


def test_seeded_fits_in_threads_draw_from_their_own_streams(
    quick: Maker, mails: list[str], labels: list[str]
) -> None:
    """torch has one generator for the whole process; dropout and new heads draw from it."""
    settings = {"dropout": 0.3, "attention_dropout": 0.3, "max_epochs": 2}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        expected = [
            quick(random_state=i, **settings).fit(mails, labels).predict_proba(mails) for i in range(4)
        ]
        assert np.abs(expected[0] - expected[1]).max() > 1e-4
        got: dict[int, np.ndarray] = {}

        def work(i: int) -> None:
            torch.set_num_threads(1)
            got[i] = quick(random_state=i, **settings).fit(mails, labels).predict_proba(mails)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for i in range(4):
        np.testing.assert_array_equal(got[i], expected[i])


@collapses
def test_global_generators_are_left_alone(quick: Maker, mails: list[str], labels: list[str]) -> None:
    torch.manual_seed(11)
    state = torch.get_rng_state()
    for seed in (0, None):
        fitted = quick(random_state=seed, dropout=0.2).fit(mails, labels)
        fitted.predict(mails)
    TransformerEmbedder(tiny_checkpoint("camembert")).fit_transform(mails)
    assert torch.equal(torch.get_rng_state(), state)


@collapses
def test_no_threads_and_no_processes_are_left(quick: Maker, mails: list[str], labels: list[str]) -> None:
    before = set(threading.enumerate())
    quick(early_stopping=True).fit(mails, labels).predict(mails)
    assert set(threading.enumerate()) == before
