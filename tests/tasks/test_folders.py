"""Folders that Transformers reads, and disks that are full."""

import errno
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from sktransformer._engine.checkpoints.bundled.cache import ABANDONED
from sktransformer.tasks.classification import TransformerClassifier

resource = pytest.importorskip("resource")  # not on Windows

Maker = Callable[..., TransformerClassifier]
# a random model of one epoch takes every mail for one class, and says so
pytestmark = pytest.mark.filterwarnings("ignore:training collapsed:sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize("name", ["camembert", "bert", "t5", "flaubert", "modernbert", "gpt2"])
def test_save_pretrained_is_read_by_transformers(
    tmp_path: Path, quick: Maker, mails: list[str], labels: list[str], name: str
) -> None:
    fitted = quick(name).fit(mails, labels)
    folder = tmp_path / "new" / "folder"
    fitted.save_pretrained(folder)
    assert "sktransformer" not in (folder / "config.json").read_text()
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert model.config.id2label == {0: "facture", 1: "livraison"}
    logits = []
    with torch.no_grad():
        for mail in mails:
            logits.append(model(**tokenizer(mail, return_tensors="pt")).logits[0].numpy())
    margin = np.array(logits)[:, 1] - np.array(logits)[:, 0]
    np.testing.assert_allclose(margin, fitted.decision_function(mails), atol=1e-5)

    again = TransformerClassifier.from_pretrained(folder, precision="float32")
    np.testing.assert_allclose(again.predict_proba(mails), fitted.predict_proba(mails), atol=1e-6)
    assert again.predict(mails).tolist() == fitted.predict(mails).tolist()
    assert stat_of(folder / "model.safetensors") == stat_of(folder / "config.json")


def stat_of(path: Path) -> int:
    return path.stat().st_mode


def test_from_pretrained_knows_several_labels_and_takes_pairs(
    tmp_path: Path, quick: Maker, mails: list[str]
) -> None:
    y = pd.DataFrame({"urgent": [0, 1] * 12, "colis": [1, 1, 0] * 8})
    pairs = list(zip(mails, mails[::-1], strict=True))
    fitted = quick("bert").fit(pairs, y)
    fitted.save_pretrained(tmp_path)
    again = TransformerClassifier.from_pretrained(str(tmp_path), precision="float32")
    np.testing.assert_allclose(again.predict_proba(pairs), fitted.predict_proba(pairs), atol=1e-6)
    assert again.predict(pairs).shape == (24, 2)
    assert again.predict(mails).shape == (24, 2)
    assert again.classes_.tolist() == ["urgent", "colis"]
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(again)).predict_proba(pairs), again.predict_proba(pairs)
    )


# -- full disks -------------------------------------------------------------------------------------------------------


@contextmanager
def disk_of(n_bytes: int) -> Iterator[None]:
    """Let no file grow beyond `n_bytes`, as the system itself enforces it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_full_disk_leaves_no_half_written_folder(
    tmp_path: Path, quick: Maker, mails: list[str], labels: list[str]
) -> None:
    fitted = quick().fit(mails, labels)
    expected = fitted.predict_proba(mails)
    message = "so the checkpoint was not written; make room or pass another folder"
    with disk_of(20_000), pytest.raises(OSError, match=message) as caught:
        fitted.save_pretrained(tmp_path / "router")
    assert caught.value.errno == errno.EFBIG
    assert caught.value.filename == str(tmp_path / "router")
    assert list(tmp_path.iterdir()) == []
    np.testing.assert_array_equal(fitted.predict_proba(mails), expected)
    fitted.save_pretrained(tmp_path / "router")
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= tree(tmp_path / "router").keys()


def test_a_full_disk_leaves_an_older_checkpoint_as_it_was(
    tmp_path: Path, quick: Maker, mails: list[str], labels: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted = quick().fit(mails, labels)
    folder = tmp_path / "router"
    fitted.save_pretrained(folder)
    (folder / "README.md").write_text("ours")
    before = tree(folder)
    other = quick(random_state=1).fit(mails, labels)

    def full(*args: Any, **kwargs: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:  # the weights are written, the tokenizer finds no room
        patch.setattr(type(other.tokenizer_), "save_pretrained", full)
        with pytest.raises(
            OSError, match="No space left on device, so the checkpoint was not written"
        ) as caught:
            other.save_pretrained(folder)
    assert caught.value.errno == errno.ENOSPC
    assert tree(folder) == before
    assert [path.name for path in tmp_path.iterdir()] == ["router"]
    other.save_pretrained(folder)
    after = tree(folder)
    assert after.keys() == before.keys()
    assert after["README.md"] == b"ours"
    assert after["model.safetensors"] != before["model.safetensors"]


def test_a_file_in_the_place_of_the_folder(
    tmp_path: Path, quick: Maker, mails: list[str], labels: list[str]
) -> None:
    (tmp_path / "router").write_text("not a folder")
    with pytest.raises(FileExistsError, match="router' is a file; pass a folder"):
        quick().fit(mails, labels).save_pretrained(tmp_path / "router")
    assert (tmp_path / "router").read_text() == "not a folder"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("way", ["joblib", "pickle"])
def test_a_dump_on_a_full_disk(quick: Maker, mails: list[str], labels: list[str], way: str) -> None:
    fitted = quick().fit(mails, labels)
    expected, attributes = fitted.predict_proba(mails), dict(vars(fitted))
    with pytest.raises(OSError, match="No space left on device"):  # noqa: PT012 - closing the file writes too
        if way == "joblib":
            joblib.dump(fitted, "/dev/full")
        else:
            with open("/dev/full", "wb") as file:
                pickle.dump(fitted, file)
    assert all(vars(fitted)[name] is value for name, value in attributes.items())
    np.testing.assert_array_equal(fitted.predict_proba(mails), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict_proba(mails), expected)


@pytest.mark.parametrize(
    ("folder", "error"), [("", ValueError), (" ", ValueError), (None, TypeError), (3, TypeError)]
)
def test_what_names_no_folder_is_refused_and_nothing_is_written(
    tmp_path: Path,
    quick: Maker,
    mails: list[str],
    labels: list[str],
    monkeypatch: pytest.MonkeyPatch,
    folder: Any,
    error: type[Exception],
) -> None:
    fitted = quick().fit(mails, labels)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=r"^folder"):
        fitted.save_pretrained(folder)
    assert list(tmp_path.iterdir()) == []


# -- killed processes --------------------------------------------------------------------------------------------------

KILLED = """
import os, signal, sys, types
from sktransformer._engine.checkpoints import writing

def killed(checkpoint, folder):
    (folder / "model.safetensors").write_bytes(b"half of it")
    os.kill(os.getpid(), signal.SIGKILL)

writing._write = killed
writing.require_bare = lambda model: None
writing.write_checkpoint(types.SimpleNamespace(model=None), sys.argv[1])
"""


def test_what_a_killed_process_left_is_removed_by_the_next_save(
    tmp_path: Path, quick: Maker, mails: list[str], labels: list[str]
) -> None:
    folder = tmp_path / "router[1]"
    assert subprocess.run([sys.executable, "-c", KILLED, str(folder)], check=False).returncode == -9
    [left] = tmp_path.iterdir()
    assert left.name.startswith(".router[1].unfinished-")
    ours = left.name.replace(left.name.split("-")[1], str(os.getpid()))  # a process that lives
    strange, old, other = ".router[1].unfinished-abc", ".router[1].unfinished-def", ".router1.unfinished-abc"
    for name in (ours, strange, old, other):
        (tmp_path / name).mkdir()
    long_ago = time.time() - ABANDONED - 60
    os.utime(tmp_path / old, (long_ago, long_ago))
    quick().fit(mails, labels).save_pretrained(folder)
    assert {path.name for path in tmp_path.iterdir()} == {"router[1]", ours, strange, other}
