"""Objectives of heads that give a row of logits a token: one loss a window, the mean over the tokens that count."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from ..text.batches import Batch

NOT_COUNTED = -100  # in the place of a label
BEGINS, ENDS = 1, 2  # marks of a token whose label is the first (last) of its document


class OnTokens:
    """Mean over a window's labelled tokens of -log softmax(z)_y; 0 for a window without any.

    Targets (N,) are the classes of a batch's tokens, `NOT_COUNTED` where a token has none.
    """

    def __call__(self, model: nn.Module, batch: Batch, targets: torch.Tensor) -> torch.Tensor:
        """Return the losses (B,)."""
        logits = batch.flat(model(**batch.inputs()).logits).float()  # (N, C)
        losses = F.cross_entropy(logits, targets, ignore_index=NOT_COUNTED, reduction="none")
        owners = batch.owners()
        total = torch.zeros(len(batch), device=losses.device).index_add(0, owners, losses)
        counted = (targets != NOT_COUNTED).float()
        return total / torch.zeros_like(total).index_add(0, owners, counted).clamp(min=1)


class OnChain:
    """-log p(y | x) of the labels of a window's tokens under the model's `crf`, divided by their number.

    Targets (N, 2) are the classes of a batch's tokens, `NOT_COUNTED` where a token has none, and the sum of the marks
    `BEGINS` and `ENDS`: at a cut between two windows the chain neither begins nor ends. Tokens that do not count are
    skipped; those that do are neighbours.
    """

    def __call__(self, model: nn.Module, batch: Batch, targets: torch.Tensor) -> torch.Tensor:
        """Return the losses (B,)."""
        crf: Any = model.crf
        logits = batch.flat(model(**batch.inputs()).logits).float()  # (N, C)
        kept = targets[:, 0] != NOT_COUNTED
        labels, marks = targets[kept].unbind(dim=1)
        owners = batch.owners()[kept]
        counts = torch.bincount(owners, minlength=len(batch))  # (B,)
        firsts = counts.cumsum(0) - counts
        steps = torch.arange(len(owners), device=owners.device) - firsts[owners]
        width = max(1, int(counts.max()))
        mask = torch.arange(width, device=owners.device) < counts[:, None]  # (B, W)
        emissions = logits.new_zeros(*mask.shape, logits.shape[1]).index_put((owners, steps), logits[kept])
        gold = torch.zeros_like(mask, dtype=torch.int64).index_put((owners, steps), labels)
        at_ends = torch.zeros_like(gold).index_put((owners, steps), marks)
        last = (counts - 1).clamp(min=0)[:, None]
        likelihood: torch.Tensor = crf(
            emissions,
            gold,
            mask,
            begins=(at_ends[:, 0] & BEGINS) > 0,
            ends=(at_ends.gather(1, last)[:, 0] & ENDS) > 0,
        )
        return -likelihood / counts.clamp(min=1)
