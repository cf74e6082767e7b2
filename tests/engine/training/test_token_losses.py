"""Losses of tokens, by window: against the formulas by hand, packed and padded alike."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from sktransformer._engine.text.batches import Batch, Collator, Layout
from sktransformer._engine.text.windows import Encoded
from sktransformer._engine.training.data import TokenTargets
from sktransformer._engine.training.schedules import parameter_groups
from sktransformer._engine.training.token_losses import BEGINS, ENDS, NOT_COUNTED, OnChain, OnTokens
from sktransformer.nn.crf import LinearChainCRF

CLASSES = 3
LENGTHS = [4, 2, 3]
LABELS = [[-100, 1, 2, -100], [-100, -100], [-100, 0, 2]]
MARKS = [
    [0, BEGINS, 0, 0],
    [0, 0],
    [0, 0, ENDS],
]  # a sentence of two windows, and one without words between them


class Table(nn.Module):
    """A model whose logits are a row a token id."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.rows = nn.Parameter(torch.randn(sum(LENGTHS) + 1, CLASSES, generator=generator))
        self.crf = LinearChainCRF(CLASSES, learning_rate_factor=50.0)
        with torch.no_grad():
            for parameter in self.crf.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator))

    def forward(self, input_ids: torch.Tensor, **kwargs: Any) -> SimpleNamespace:
        return SimpleNamespace(logits=self.rows[input_ids])


def batch_of(layout: Layout, order: list[int]) -> tuple[Batch, torch.Tensor, torch.Tensor]:
    """A batch of the windows in `order`, and the targets of both objectives for it."""
    encoded = Encoded(
        np.arange(1, sum(LENGTHS) + 1, dtype=np.int32),
        np.cumsum([0, *LENGTHS]),
        np.arange(len(LENGTHS), dtype=np.int32),
        len(LENGTHS),
    )
    windows = np.array(order)
    labels, marks = (torch.tensor([one for row in rows for one in row]) for rows in (LABELS, MARKS))
    batch = Collator(layout, 0, 0, torch.device("cpu")).batch(encoded, windows)
    pairs = torch.stack([labels, marks], dim=1)
    return batch, TokenTargets(labels).of(encoded, windows), TokenTargets(pairs).of(encoded, windows)


def logits_of(model: Table, window: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits and labels of a window's tokens that count."""
    start = sum(LENGTHS[:window]) + 1
    labels = torch.tensor(LABELS[window])
    return model.rows[start : start + LENGTHS[window]][labels >= 0], labels[labels >= 0]


@pytest.mark.parametrize("layout", ["packed", "padded"])
def test_tokens(layout: Layout) -> None:
    model = Table()
    batch, targets, _ = batch_of(layout, [2, 0, 1])
    expected = [F.cross_entropy(*logits_of(model, window)).item() for window in (2, 0)]
    assert OnTokens()(model, batch, targets).tolist() == pytest.approx([*expected, 0.0], abs=1e-6)


@pytest.mark.parametrize("layout", ["packed", "padded"])
def test_chains(layout: Layout) -> None:
    """Start scores count where a sentence begins, end scores where it ends, and neither at a cut."""
    model = Table()
    batch, _, targets = batch_of(layout, [2, 0, 1])
    expected = []
    for window, begins, ends in ((2, False, True), (0, True, False)):
        logits, labels = logits_of(model, window)
        one = torch.ones(1, len(labels), dtype=torch.bool)
        likelihood = model.crf(
            logits[None], labels[None], one, begins=torch.tensor([begins]), ends=torch.tensor([ends])
        )
        expected.append(-likelihood.item() / len(labels))
    losses = OnChain()(model, batch, targets)
    assert losses.tolist() == pytest.approx([*expected, 0.0], abs=1e-5)
    losses.sum().backward()
    assert torch.isfinite(model.rows.grad).all()
    assert model.crf.transition_scores.grad.abs().sum() > 0


def test_a_batch_without_a_word() -> None:
    model = Table()
    batch, labels, pairs = batch_of("packed", [1])
    assert (labels == NOT_COUNTED).all()
    for objective, targets in ((OnTokens(), labels), (OnChain(), pairs)):
        loss = objective(model, batch, targets)
        assert loss.tolist() == [0.0]
        loss.sum().backward()


def test_the_chain_learns_at_a_rate_of_its_own(fresh_checkpoint: Any) -> None:
    model = fresh_checkpoint("bert", "classification", 2).model
    model.add_module("crf", LinearChainCRF(2, learning_rate_factor=50.0))
    groups = parameter_groups(model, 1e-3, 0.01, 0.5)
    rates = {id(p): group["lr"] for group in groups for p in group["params"]}
    assert {rates[id(p)] for p in model.crf.parameters()} == {0.05}
    assert groups[0]["lr"] == 1e-3  # the head's: the history shows the first group
    assert rates[id(model.classifier.weight)] == 1e-3
