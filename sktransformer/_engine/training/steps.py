"""How the gradient of an optimizer batch is made without holding the batch in memory.

A loss that is a sum over documents is cut into micro-batches (`SummedLosses`). One that compares documents needs the
vectors of all of them first, and then the passes once more (`CachedGradients`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import nn

from ...nn.experts import balance_losses
from ..devices import autocast, generators
from ..inference.aggregation import pooled
from ..text.batches import Batch, Collator, Rows, plan


@dataclass(frozen=True)
class Work:
    """What a step is made of: `data` and `objective` are those that the step was written for."""

    model: nn.Module
    objective: Any
    data: Any
    collator: Collator
    token_budget: int
    precision: torch.dtype


class Step(Protocol):
    """Adds the gradient of a batch of rows to the model's parameters; returns the batch's loss, detached."""

    def __call__(self, work: Work, rows: Rows) -> torch.Tensor: ...


class SummedLosses:
    """The mean over documents of their windows' weighted losses: `TrainingData`, an `Objective`."""

    def __call__(self, work: Work, rows: Rows) -> torch.Tensor:
        """Go through micro-batches of windows, longest first."""
        data, device = work.data, work.collator.device
        total = torch.zeros((), device=device)
        for windows in plan(data.windows_of(rows), data.costs, work.token_budget, work.collator.layout):
            batch = work.collator.batch(data.encoded, windows)
            targets = data.targets_of(windows).to(device, non_blocking=True)
            weights = data.window_weights[torch.from_numpy(windows)].to(device, non_blocking=True)
            with autocast(device, work.precision), balance_losses() as balance:
                losses = work.objective(work.model, batch, targets)
            loss = (losses * weights).sum() / len(rows)
            if balance:  # of the mixtures of experts, by the share of the batch that this micro-batch is
                config: Any = work.model.config
                share = config.router_aux_loss_coef * weights.sum() / len(rows)
                loss = loss + share * torch.stack(balance).mean()
            loss.backward()
            total += loss.detach()
        return total


class CachedGradients:
    """The loss of all documents of a batch together: `GroupedData`, a `BatchObjective`.

    Every micro-batch is read without a gradient; the loss of all vectors gives the gradient of each; every micro-batch
    is read again, with the random draws of the first time, and its vectors' gradients go on down. Memory is that of one
    micro-batch and the vectors. A batch that is one micro-batch is read once.

    References
    ----------
    Gao et al. 2021, "Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup", section 3.
    """

    def __init__(self, read: Callable[[Any, Batch], torch.Tensor], aggregation: str) -> None:
        self.read = read
        self.aggregation = aggregation

    def __call__(self, work: Work, rows: Rows) -> torch.Tensor:
        """Go through the micro-batches twice."""
        data, device = work.data, work.collator.device
        windows, owners, places = data.windows_of(rows)
        parts = _parts(windows, data.encoded.lengths, work)
        order = np.concatenate(parts)
        as_given, placed = (torch.from_numpy(i).to(device) for i in (np.argsort(order), places))
        targets = data.targets[torch.from_numpy(rows)].to(device)

        def loss_of(vectors: torch.Tensor) -> torch.Tensor:
            found = pooled(vectors[as_given], owners, data.encoded.lengths[windows], self.aggregation)
            loss: torch.Tensor = work.objective(found[placed], targets)
            return loss

        if len(parts) == 1:
            loss = loss_of(self._vectors(work, windows[order]))
            loss.backward()
            return loss.detach()
        before, found = [], []
        with torch.no_grad():
            for part in parts:
                before.append([one.get_state() for one in generators(device)])
                found.append(self._vectors(work, windows[part]))
        vectors = torch.cat(found).requires_grad_()
        loss = loss_of(vectors)
        loss.backward()
        assert vectors.grad is not None
        self._read_again(work, [windows[part] for part in parts], before, vectors.grad)
        return loss.detach()

    def _read_again(
        self, work: Work, parts: list[Rows], before: list[list[torch.Tensor]], gradient: torch.Tensor
    ) -> None:
        sources = generators(work.collator.device)
        after = [one.get_state() for one in sources]
        for windows, states, above in zip(
            parts, before, gradient.split([len(p) for p in parts]), strict=True
        ):
            for one, state in zip(sources, states, strict=True):
                one.set_state(state)
            self._vectors(work, windows).backward(above)
        for one, state in zip(sources, after, strict=True):
            one.set_state(state)

    def _vectors(self, work: Work, windows: Rows) -> torch.Tensor:
        with autocast(work.collator.device, work.precision):
            return self.read(work.model, work.collator.batch(work.data.encoded, windows)).float()


def _parts(windows: Rows, lengths: Rows, work: Work) -> list[Rows]:
    """Cut a batch's windows into micro-batches: positions in `windows`."""
    return plan(np.arange(len(windows)), lengths[windows], work.token_budget, work.collator.layout)
