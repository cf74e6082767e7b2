"""One vector a window out of its tokens' hidden states."""

from __future__ import annotations

import torch
from transformers import PreTrainedModel

from ..text.batches import Batch
from .forward import Reader

POOLINGS = ("mean", "cls", "max", "last", "mean_last")


def mean(hidden: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Mean of the hidden states of real tokens: (B, T, H) or a packed (1, N, H) becomes (B, H)."""
    if batch.packed is not None:
        total = torch.zeros(len(batch), hidden.shape[-1], device=hidden.device, dtype=torch.float32)
        total.index_add_(0, batch.owners(), batch.flat(hidden).float())
        return total / batch.packed.bounds.diff()[:, None]
    if batch.attention_mask is None:
        return hidden.float().mean(dim=1)
    mask = batch.attention_mask[..., None].float()  # (B, T, 1)
    return (hidden.float() * mask).sum(dim=1) / mask.sum(dim=1)


def cls(hidden: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Hidden state of each window's first token, (B, H)."""
    return hidden[0].index_select(0, batch.packed.starts) if batch.packed is not None else hidden[:, 0]


def largest(hidden: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Largest value of each column over the real tokens, (B, H)."""
    if batch.packed is not None:
        owners = batch.owners()[:, None].expand(-1, hidden.shape[-1])
        empty = hidden.new_full((len(batch), hidden.shape[-1]), float("-inf"))
        return empty.scatter_reduce(0, owners, batch.flat(hidden), "amax", include_self=False)
    if batch.attention_mask is None:
        return hidden.amax(dim=1)
    return hidden.masked_fill(~batch.attention_mask.bool()[..., None], float("-inf")).amax(dim=1)


def last(hidden: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Hidden state of each window's last real token, (B, H): the only one of a decoder that has seen them all."""
    if batch.packed is not None:
        return hidden[0].index_select(0, batch.packed.bounds[1:].long() - 1)
    if batch.attention_mask is None:
        return hidden[:, -1]
    ends = batch.attention_mask.sum(dim=1).long() - 1  # padding stands on the right
    return hidden[torch.arange(len(batch), device=hidden.device), ends]


def reader(pooling: str, last_layers: int = 1) -> Reader:
    """Return the function that runs a model and pools its hidden states.

    Parameters
    ----------
    pooling : {"mean", "cls", "max", "last", "mean_last"}
        "mean_last" is the mean over real tokens of the mean of the last `last_layers` layers.
    last_layers : int
        How many layers "mean_last" reads.
    """
    if pooling == "mean_last":

        def read_layers(model: PreTrainedModel, batch: Batch) -> torch.Tensor:
            states = model(**batch.inputs(), output_hidden_states=True).hidden_states[-last_layers:]
            return mean(torch.stack([state.float() for state in states]).mean(dim=0), batch)

        return read_layers
    pool = {"mean": mean, "cls": cls, "max": largest, "last": last}[pooling]

    def read(model: PreTrainedModel, batch: Batch) -> torch.Tensor:
        return pool(model(**batch.inputs()).last_hidden_state, batch)

    return read
