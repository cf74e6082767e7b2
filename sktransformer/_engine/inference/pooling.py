"""One vector a window out of its tokens' hidden states."""

from __future__ import annotations

import torch
from transformers import PreTrainedModel

from ..text.batches import Batch
from .forward import Reader

POOLINGS = ("mean", "cls")


def mean(hidden: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Mean of the hidden states of real tokens: (B, T, H) or a packed (1, N, H) becomes (B, H)."""
    if batch.packed is not None:
        total = torch.zeros(len(batch), hidden.shape[-1], device=hidden.device, dtype=torch.float32)
        total.index_add_(0, batch.owners(), hidden[0].float())
        return total / batch.packed.bounds.diff()[:, None]
    if batch.attention_mask is None:
        return hidden.float().mean(dim=1)
    mask = batch.attention_mask[..., None].float()  # (B, T, 1)
    return (hidden.float() * mask).sum(dim=1) / mask.sum(dim=1)


def cls(hidden: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Hidden state of each window's first token, (B, H)."""
    return hidden[0].index_select(0, batch.packed.starts) if batch.packed is not None else hidden[:, 0]


def reader(pooling: str) -> Reader:
    """Return the function that runs a model and pools its last hidden states."""
    pool = {"mean": mean, "cls": cls}[pooling]

    def read(model: PreTrainedModel, batch: Batch) -> torch.Tensor:
        return pool(model(**batch.inputs()).last_hidden_state, batch)

    return read
