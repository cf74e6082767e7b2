"""Weights told apart by content, and one checkpoint shared by those who only read it."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from sktransformer._engine.checkpoints.fingerprint import fingerprint, shared_checkpoint
from sktransformer._engine.checkpoints.loading import Checkpoint
from sktransformer.testing.checkpoints import tiny_checkpoint

Fresh = Callable[..., Checkpoint]


def test_weights_and_tokenizer_decide(fresh_checkpoint: Fresh) -> None:
    one, same, other = (fresh_checkpoint(name, "encoder") for name in ("bert", "bert", "electra"))
    first = fingerprint(one.model, one.tokenizer)
    assert fingerprint(same.model, same.tokenizer) == first
    assert fingerprint(other.model, other.tokenizer) != first
    changed = fresh_checkpoint("bert", "encoder")
    with torch.no_grad():
        next(changed.model.parameters())[0, 0] += 1e-6
    assert fingerprint(changed.model, changed.tokenizer) != first
    spelt, words = fresh_checkpoint("bert", "encoder"), fresh_checkpoint("camembert", "encoder")
    assert fingerprint(spelt.model, words.tokenizer) != first
    python = fresh_checkpoint("flaubert", "encoder")
    assert fingerprint(python.model, python.tokenizer) != first


def test_it_is_computed_once_a_model(fresh_checkpoint: Fresh, monkeypatch: Any) -> None:
    loaded = fresh_checkpoint("bert", "encoder")
    first = fingerprint(loaded.model, loaded.tokenizer)
    monkeypatch.setattr(type(loaded.model), "state_dict", lambda self: 1 / 0)
    assert fingerprint(loaded.model, loaded.tokenizer) == first


def test_one_checkpoint_for_the_same_files(tmp_path: Path, fresh_checkpoint: Fresh) -> None:
    folder = tmp_path / "bert"
    shutil.copytree(tiny_checkpoint("bert"), folder)
    loads: list[str] = []

    def ask(name: str, where: Path, device: str = "cpu") -> Checkpoint:
        def load() -> Checkpoint:
            loads.append(name)
            return fresh_checkpoint(name, "encoder")

        return shared_checkpoint(where, device, load)

    first = ask("bert", folder)
    assert ask("bert", folder) is first
    assert ask("bert", folder, "meta") is not first
    assert loads == ["bert"] * 2
    ask("bert", folder)  # one is held, the newest
    os.utime(folder / "model.safetensors", (1, 1))
    ask("bert", folder)  # the files have changed
    assert loads == ["bert"] * 4
    python = tiny_checkpoint("flaubert")
    assert ask("flaubert", python) is not ask("flaubert", python)  # its tokenizer is not for threads to share
