"""Linear layers under bfloat16 autocast: what autocast computes, with fewer copies and few shapes.

Autocast narrows the weights once for each forward pass, and an input once for each layer that reads it; torch's product
then copies the bias into its result before it adds to it. Here a weight is narrowed once a step, and the bias is added
in the kernel. Rows come in multiples of `linear.GRAIN`, for the reason given there.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd.function import once_differentiable

from .linear import call, filled_rows, fits, is_on

WIDE, NARROW = torch.float32, torch.bfloat16


class NarrowWeights:
    """bfloat16 copies of the float32 parameters met in one step or one prediction."""

    def __init__(self) -> None:
        self._copies: dict[tuple[Any, ...], tuple[torch.Tensor, int, torch.Tensor]] = {}

    def of(self, weight: torch.Tensor) -> torch.Tensor:
        """Return a copy of a parameter, or of a view of one, as it is now."""
        owner = weight if weight._base is None else weight._base
        if weight.dtype is NARROW or type(owner) is not torch.nn.Parameter:
            return weight.detach().to(NARROW)
        version = 0 if weight.is_inference() else weight._version
        key = (weight.data_ptr(), weight.shape, weight.stride())
        held = self._copies.get(key)
        if held is None or held[1] != version:
            # the weight too, or another could take its address
            held = self._copies[key] = weight, version, weight.detach().to(NARROW)
        return held[2]


def narrow_linear(input: Any, weight: Any, bias: Any, weights: NarrowWeights) -> torch.Tensor | None:
    """Return x W^T + b in bfloat16 for x (..., K), W (N, K), b (N,) or None; None, for torch to do it, elsewhere."""
    if not torch.is_autocast_enabled("cpu") or torch.get_autocast_dtype("cpu") is not NARROW:
        return None
    if not fits(input, weight, bias, dtypes=(WIDE, NARROW)) or not is_on():
        return None
    narrow = weights.of(weight), None if bias is None else weights.of(bias)
    given = (input, weight) if bias is None else (input, weight, bias)
    if torch.is_grad_enabled() and any(one.requires_grad for one in given):
        product: torch.Tensor = _NarrowLinear.apply(input, weight, bias, *narrow)  # type: ignore[no-untyped-call]
        return product
    return _times(filled_rows(input, NARROW), input.shape, *narrow)


def _times(
    rows: torch.Tensor, shape: torch.Size, weight: torch.Tensor, bias: torch.Tensor | None
) -> torch.Tensor:
    """Return the product of the rows that are those of an input of `shape`."""
    n = shape[:-1].numel()
    return call(rows, weight, bias)[:n].view(*shape[:-1], weight.shape[0])


class _NarrowLinear(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor | None,
        narrow_weight: torch.Tensor,
        narrow_bias: torch.Tensor | None,
    ) -> torch.Tensor:
        rows = filled_rows(x, NARROW)
        ctx.shape = x.shape
        # what no gradient asks for is not kept
        ctx.save_for_backward(
            rows if ctx.needs_input_grad[1] else None, narrow_weight if ctx.needs_input_grad[0] else None
        )
        return _times(rows, x.shape, narrow_weight, narrow_bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Return gradients in bfloat16, as autocast does; autograd widens them."""
        rows, weight = ctx.saved_tensors
        above = filled_rows(gradient, NARROW)
        d_x = None
        if weight is not None:
            d_x = call(above, weight.t(), None)[: ctx.shape[:-1].numel()].view(ctx.shape)
        d_weight = None if rows is None else torch.mm(above.t(), rows)
        d_bias = above.sum(0) if ctx.needs_input_grad[2] else None
        return d_x, d_weight, d_bias, None, None
