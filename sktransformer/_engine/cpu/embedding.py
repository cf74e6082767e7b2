"""Rows of an embedding table whose gradient touches only them."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd.function import once_differentiable


def embedding(
    ids: torch.Tensor, weight: torch.Tensor, padding_idx: int | None = None, *args: Any, **kwargs: Any
) -> torch.Tensor | None:
    """Look up the rows of a table that is trained; None, for torch to do it, where there is more to it."""
    plain = all(option is None or option in (False, 2.0) for option in (*args, *kwargs.values()))
    if not plain or weight.device.type != "cpu" or not (weight.requires_grad and weight.is_leaf):
        return None
    if not torch.is_grad_enabled():
        return None
    rows: torch.Tensor = _Embedding.apply(weight, ids, padding_idx)  # type: ignore[no-untyped-call]
    return rows


class _Embedding(torch.autograd.Function):
    """Rows of a table, whose gradient goes straight into ``weight.grad``.

    The stock backward pass fills a dense gradient of the whole table each time and adds it to the one before: for the
    250,000 rows of a multilingual vocabulary that costs more than a small encoder does.
    """

    @staticmethod
    def forward(ctx: Any, weight: torch.Tensor, ids: torch.Tensor, padding_idx: int | None) -> torch.Tensor:
        ctx.weight, ctx.padding_idx = weight, padding_idx
        ctx.save_for_backward(ids)
        return weight.detach()[ids]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[None, None, None]:
        (ids,) = ctx.saved_tensors
        weight = ctx.weight
        if weight.grad is None:
            weight.grad = torch.zeros_like(weight)
        flat, rows = ids.flatten(), gradient.reshape(-1, gradient.shape[-1])
        if ctx.padding_idx is not None:  # that row stays as it is
            real = (flat != ctx.padding_idx).nonzero()[:, 0]
            flat, rows = flat[real], rows[real]
        weight.grad.index_add_(0, flat, rows.to(weight.dtype))
        return None, None, None
