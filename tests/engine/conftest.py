"""Tiny checkpoints, loaded once: tests read them and leave them as they are."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import settings
from transformers import AutoTokenizer

from sktransformer._engine.checkpoints.heads import Head
from sktransformer._engine.checkpoints.loading import Checkpoint, load_checkpoint
from sktransformer._engine.checkpoints.sources import resolve
from sktransformer._engine.devices import seeded
from sktransformer.testing.checkpoints import tiny_checkpoint

# The same examples each time, on machines of any speed, and no folder of examples beside the tests.
settings.register_profile("engine", deadline=None, derandomize=True, database=None)
settings.load_profile("engine")

# Models of width 32: a second thread costs more than it brings, and tests may run side by side.
torch.set_num_threads(1)

CPU = torch.device("cpu")


@functools.cache
def _tokenizer(name: str) -> Any:
    return AutoTokenizer.from_pretrained(tiny_checkpoint(name), local_files_only=True)


def _fresh(name: str, head: Head, n_labels: int = 3, **options: Any) -> Checkpoint:
    with seeded(0, CPU):
        return load_checkpoint(
            resolve(str(tiny_checkpoint(name))), head, config_changes={"num_labels": n_labels}, **options
        )


@pytest.fixture(scope="session")
def tokenizer() -> Callable[[str], Any]:
    """Return the shared tokenizer of a tiny checkpoint."""
    return _tokenizer


@pytest.fixture(scope="session")
def checkpoint() -> Callable[[str, Head], Checkpoint]:
    """Return a shared tiny checkpoint, to be read only."""
    return functools.cache(_fresh)


@pytest.fixture(scope="session")
def fresh_checkpoint() -> Callable[..., Checkpoint]:
    """Return a tiny checkpoint of the test's own, which may be trained."""
    return _fresh
