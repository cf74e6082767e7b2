"""Dropout from fifteen random bits an element.

Formula: y = x m / (1 - p), with m = 0 with probability p and else 1, Srivastava et al. 2014, "Dropout: A Simple Way to
Prevent Neural Networks from Overfitting", section 4, in the inverted form that leaves inference alone.

torch draws a double for each element on a CPU (7 ns; a tenth of a training step of a small encoder goes into it). Here
one 64-bit draw serves four elements, so p is rounded to a multiple of 1 / 32768, and the factor belongs to the rounded
p: the mean is exact. The draws are NumPy's SFC64, which makes them in less than half of the time of torch's Mersenne
twister and takes its seed from it. A mask is made and applied by operations on whole numbers, which cost a
fraction of comparisons and products, in bfloat16 above all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

STEPS = 32_768  # values of fifteen bits
FEW = 4096  # draws; seeding a generator takes as long as torch takes for so many
_WHOLE = {2: torch.int16, 4: torch.int32, 8: torch.int64}  # by the bytes of an element


def kept(like: torch.Tensor, p: float) -> torch.Tensor:
    """Draw for each element all ones with probability 1 - p and all zeros with p, in whole numbers of its size.

    A function of the state of torch's generator, which moves on.
    """
    n = like.numel()
    bits = _random((n + 3) // 4).view(torch.int16)[:n]
    # the sign bit set, a number of -32768 to -1, each as likely; the shift leaves -1 where it is still below zero
    bits.bitwise_or_(-STEPS).add_(_dropped_steps(p)).bitwise_right_shift_(15)
    return bits.to(_WHOLE[like.element_size()]).view(like.shape)


def masked(x: torch.Tensor, mask: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    """Return `x` where `mask`, drawn by `kept`, has ones, and 0 elsewhere; `out` may be `x` itself."""
    if out is None:
        return torch.bitwise_and(x.view(mask.dtype), mask).view(x.dtype)
    torch.bitwise_and(x.view(mask.dtype), mask, out=out.view(mask.dtype))
    return out


def factor(p: float) -> float:
    """1 / (1 - p) for the p that `kept` draws with."""
    return STEPS / (STEPS - _dropped_steps(p))


def _dropped_steps(p: float) -> int:
    return min(round(p * STEPS), STEPS - 1)


def _random(n: int) -> torch.Tensor:
    """Draw `n` times 64 bits."""
    if n < FEW:
        return torch.empty(n, dtype=torch.int64).random_(-(2**63), None)
    seed = int(torch.empty((), dtype=torch.int64).random_().item())
    return torch.from_numpy(np.random.SFC64(seed).random_raw(n).view(np.int64))


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, p: float) -> torch.Tensor:
        mask = kept(x, p)
        ctx.save_for_backward(mask)
        ctx.factor = factor(p)
        return masked(x, mask).mul_(ctx.factor)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        (mask,) = ctx.saved_tensors
        if torch.is_grad_enabled():  # to be derived once more, which operations on whole numbers can't
            return gradient * (mask != 0) * ctx.factor, None
        return masked(gradient, mask).mul_(ctx.factor), None


def dropout(x: torch.Tensor, p: float) -> torch.Tensor:
    """Drop elements of a CPU tensor of any shape with probability `p`, and scale the others by 1 / (1 - p)."""
    dropped: torch.Tensor = _Dropout.apply(x, p)  # type: ignore[no-untyped-call]
    return dropped


class Dropout(nn.Dropout):
    """torch's dropout, drawn as this module does where that is faster: in training, on a CPU.

    Examples
    --------
    >>> dropped = Dropout(0.5)(torch.ones(1000))
    >>> sorted(set(dropped.tolist()))
    [0.0, 2.0]
    """

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Drop elements of `x`, of any shape, in training; return it as it is otherwise."""
        here = self.training and 0.0 < self.p < 1.0 and x.device.type == "cpu" and x.is_floating_point()
        return dropout(x, self.p) if here and not torch.compiler.is_compiling() else super().forward(x)
