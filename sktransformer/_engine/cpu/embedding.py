"""Rows of an embedding table whose gradient touches only them."""

from __future__ import annotations

from typing import Any

import torch


def embedding(
    input: Any,  # torch's names, by which models may pass them
    weight: Any,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> torch.Tensor | None:
    """Look up the rows of a table that is trained; None, for torch to do it, where there is more to it."""
    if max_norm is not None or scale_grad_by_freq or sparse or not torch.is_grad_enabled():
        return None
    if weight.device.type != "cpu" or not (weight.requires_grad and weight.is_leaf) or weight.dim() != 2:
        return None
    if input.dtype not in (torch.int64, torch.int32):  # torch says what is wrong with them
        return None
    if padding_idx is not None and padding_idx < 0:  # counted from the end
        padding_idx += len(weight)
    rows: torch.Tensor = _Embedding.apply(weight, input, padding_idx)  # type: ignore[no-untyped-call]
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
        return weight.detach().index_select(0, ids.flatten()).view(*ids.shape, weight.shape[1])

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, None, None]:
        (ids,) = ctx.saved_tensors
        weight = ctx.weight
        flat, rows = ids.flatten(), gradient.reshape(-1, gradient.shape[-1])
        if ctx.padding_idx is not None:  # that row stays as it is
            real = (flat != ctx.padding_idx).nonzero()[:, 0]
            flat, rows = flat[real], rows[real]
        if not _accumulates(weight):
            return torch.zeros_like(weight).index_add_(0, flat, rows.to(weight.dtype)), None, None
        if weight.grad is None:
            weight.grad = torch.zeros_like(weight)
        weight.grad.index_add_(0, flat, rows.to(weight.dtype))
        return None, None, None


def _accumulates(weight: torch.Tensor) -> bool:
    """Whether this backward pass adds to ``weight.grad``, and nobody waits for the gradient itself.

    `torch.autograd.grad` returns it, hooks are called with it, and ``create_graph=True`` derives it again.
    """
    if (
        torch.is_grad_enabled()
        or weight._backward_hooks
        or getattr(weight, "_post_accumulate_grad_hooks", None)
    ):
        return False
    node = torch.autograd.graph.get_gradient_edge(weight).node
    try:
        return bool(torch._C._will_engine_execute_node(node))
    except RuntimeError:  # which it raises for a leaf that autograd.grad asks for
        return False
