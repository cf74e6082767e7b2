"""Products of linear layers by oneDNN in float32, where the chip has AVX-512.

torch gives float32 products to MKL, which takes its AVX2 kernels on chips of other makers than its own: half of what an
AVX-512 chip can do. oneDNN, which torch ships too and uses for bfloat16, makes its kernels for the chip it runs on.
Where MKL has kernels for the chip, the two are equally fast.

The operators are those that torch's own compiler calls; where a build lacks them, torch computes as ever.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from ...nn.attention_products import has_wide_onednn

FEWEST_ROWS = 4  # below, a product is bound by memory, and MKL's call is the shorter
# oneDNN makes a kernel for each number of rows, and keeps a megabyte for each that is not given back: batches of all
# sizes would fill the memory. So it gets multiples of this; packed rows come as such (`Collator.grain`).
GRAIN = 64


def linear(input: Any, weight: Any, bias: Any = None) -> torch.Tensor | None:  # torch's names
    """Return x W^T + b, of shape (..., N), for x (..., K) and W (N, K); None, for torch to do it, elsewhere."""
    if torch.is_autocast_enabled("cpu") or not fits(input, weight, bias) or not is_on():
        return None
    given = (input, weight) if bias is None else (input, weight, bias)
    if torch.is_grad_enabled() and any(one.requires_grad for one in given):
        product: torch.Tensor = _Linear.apply(input, weight, bias)  # type: ignore[no-untyped-call]
        return product
    return _product(input, weight, bias)


def fits(x: Any, weight: Any, bias: Any, dtypes: tuple[torch.dtype, ...] = (torch.float32,)) -> bool:
    """Whether this is a layer of plain tensors, with rows enough; torch takes others too, or says what is wrong."""
    if not all(_is_plain(one, dtypes) for one in ((x, weight) if bias is None else (x, weight, bias))):
        return False
    if weight.dim() != 2 or x.dim() < 2 or x.shape[-1] != weight.shape[1] or not weight.shape[1]:
        return False
    if weight.shape[0] < 2:
        return False
    if not (weight.is_contiguous() or weight.t().is_contiguous()):
        return False  # a slice of columns: oneDNN has only its reference code for it, a thousand times slower
    return x.numel() >= FEWEST_ROWS * x.shape[-1] and (bias is None or bias.shape == weight.shape[:1])


def _is_plain(x: Any, dtypes: tuple[torch.dtype, ...]) -> bool:
    kind = type(x)  # no subclass: quantized weights and the like have products of their own
    if kind is not torch.Tensor and kind is not torch.nn.Parameter:
        return False
    return x.dtype in dtypes and x.is_cpu and x.layout is torch.strided


def is_on() -> bool:
    """Whether oneDNN is to multiply: it is worth it here, and nobody has switched it off."""
    return has_operators() and bool(torch.backends.mkldnn.enabled)


@cache
def has_operators() -> bool:
    """Whether oneDNN is there, and the chip one on which it is worth the detour."""
    return (
        has_wide_onednn()
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
        and hasattr(torch.ops.aten, "mkldnn_linear_backward_weights")
    )


def filled_rows(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Lay x (..., K) out as rows of `dtype`, filled up with zeros to a multiple of the grain."""
    rows = x.reshape(-1, x.shape[-1])
    over = -len(rows) % GRAIN if len(rows) > GRAIN else 0
    if not over:
        return rows.to(dtype)
    filled = rows.new_empty(len(rows) + over, rows.shape[1], dtype=dtype)
    filled[: len(rows)] = rows
    filled[len(rows) :] = 0.0
    return filled


def _product(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """Return x W^T + b by oneDNN, for any number of rows by the kernels of a few."""
    rows = x.reshape(-1, x.shape[-1])
    n, width = len(rows), weight.shape[0]
    over = n % GRAIN if n > GRAIN else 0
    if not over or rows.shape[1] <= width:  # rows of zeros are the smaller copy
        product = call(filled_rows(x, x.dtype), weight, bias)[:n]
    else:
        product = rows.new_empty(n, width)
        product[:-over] = call(rows[:-over], weight, bias)
        product[-over:] = torch.nn.functional.linear(rows[-over:], weight, bias)
    return product.view(*x.shape[:-1], width)


def call(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """Return x W^T + b by oneDNN, for rows x (n, K) as they are."""
    product: torch.Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return product


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        # what no gradient asks for is not kept
        ctx.save_for_backward(
            x if ctx.needs_input_grad[1] else None, weight if ctx.needs_input_grad[0] else None
        )
        return _product(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        if torch.is_grad_enabled():  # to be derived once more, which oneDNN's operators can't
            return _derivable(gradient, x, weight, ctx.needs_input_grad[2])
        d_x = None if weight is None else _product(gradient, weight.t(), None)
        rows = gradient.reshape(-1, gradient.shape[-1])
        if x is None:
            return d_x, None, rows.sum(0) if ctx.needs_input_grad[2] else None
        # the operator takes oneDNN's own tensors: copies, which cost less than a transposition would
        own = (rows.to_mkldnn(), x.reshape(-1, x.shape[-1]).to_mkldnn())
        d_weight, d_bias = torch.ops.aten.mkldnn_linear_backward_weights(
            *own, gradient.new_empty(0), ctx.needs_input_grad[2]
        )
        return d_x, d_weight, d_bias if ctx.needs_input_grad[2] else None


def _derivable(
    gradient: torch.Tensor, x: torch.Tensor | None, weight: torch.Tensor | None, has_bias: bool
) -> tuple[torch.Tensor | None, ...]:
    """Return the gradients of a product's x, weight and bias by operators that have derivatives themselves."""
    rows = gradient.reshape(-1, gradient.shape[-1])
    d_x = None if weight is None else gradient @ weight
    d_weight = None if x is None else rows.t() @ x.reshape(-1, x.shape[-1])
    return d_x, d_weight, rows.sum(0) if has_bias else None
