"""Tiny models that write, with weights spread so that their texts differ, beside Transformers' own `generate`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM

from sktransformer._engine.checkpoints.quiet import quiet_transformers
from sktransformer._engine.inference.generation import schedule
from sktransformer._engine.inference.generation.generate import generate
from sktransformer._engine.inference.generation.options import Decoding
from sktransformer._engine.inference.generation.rows import Generated, Prompt
from sktransformer.testing.checkpoints import tiny_checkpoint

CPU = torch.device("cpu")
LENGTHS = (1, 5, 20, 3, 9, 33, 2, 17)
LONGEST = 12


class Writer:
    """A model, prompts of many lengths, stop tokens that it comes upon, and two ways to run it."""

    def __init__(self, name: str) -> None:
        self.encodes = name in ("t5", "bart", "marian")
        kind = AutoModelForSeq2SeqLM if self.encodes else AutoModelForCausalLM
        with quiet_transformers():
            self.model: Any = kind.from_pretrained(tiny_checkpoint(name)).eval()
        _spread(self.model)
        self.config = self.model.config
        self.begin = (int(self.config.decoder_start_token_id),) if self.encodes else ()
        self.stops = tuple(sorted({int(self.config.eos_token_id), *range(7, self.config.vocab_size, 9)}))
        random = np.random.default_rng(0)
        self.ids = [random.integers(5, self.config.vocab_size, size=n).astype(np.int32) for n in LENGTHS]

    @property
    def prompts(self) -> list[Prompt]:
        return [Prompt(ids, self.begin) for ids in self.ids]

    def run(self, token_budget: int = 100_000) -> schedule.Run:
        return schedule.Run(self.model, CPU, torch.float32, token_budget)

    def write(
        self, prompts: list[Prompt] | None = None, budget: int = 100_000, hooks: Any = None, **options: Any
    ) -> list[list[Generated]]:
        options = {"max_new_tokens": LONGEST, "stop_ids": self.stops, **options}
        prompts = self.prompts if prompts is None else prompts
        return generate(self.run(budget), prompts, Decoding(**options), **(hooks or {}))

    def transformers(self, **options: Any) -> list[tuple[list[int], float | None]]:
        """Return ids and score of each prompt, from a batch of its own."""
        return [self._one(ids, options) for ids in self.ids]

    def _one(self, ids: Any, options: dict[str, Any]) -> tuple[list[int], float | None]:
        output = self.model.generate(
            torch.tensor(ids[None].astype(np.int64)),
            attention_mask=torch.ones(1, len(ids), dtype=torch.long),
            do_sample=False,
            eos_token_id=list(self.stops),
            pad_token_id=self.config.pad_token_id,
            return_dict_in_generate=True,
            output_scores=True,
            **{"max_new_tokens": LONGEST, "forced_eos_token_id": None, **options},
        )
        found = output.sequences[0].tolist()[1 if self.encodes else len(ids) :]
        end = next((i for i, token in enumerate(found) if token in self.stops), len(found))
        scores = getattr(output, "sequences_scores", None)
        return found[:end], None if scores is None else float(scores[0])


def _spread(model: Any) -> None:
    """Move the weights, so that a model with random ones does not say one token for ever."""
    random = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter += 0.3 * torch.randn(parameter.shape, generator=random)


@pytest.fixture(scope="session")
def writer() -> Callable[[str], Writer]:
    """Return a shared writer, by the name of its tiny checkpoint."""
    return functools.cache(Writer)


@pytest.fixture
def most_rows(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Say how many rows a batch may have."""
    return lambda rows: monkeypatch.setattr(schedule, "CPU_ROWS", rows)


@pytest.fixture(scope="session")
def spread() -> Callable[[Any], None]:
    """Move the weights of a model."""
    return _spread
