"""Normalisation: a token's vector is brought to one size, so that layers can be stacked.

LayerNorm: y = (x - mean) / sqrt(var + eps) * gain + bias, Ba, Kiros and Hinton 2016, "Layer Normalization", section 3.
RMSNorm: y = x / sqrt(mean(x^2) + eps) * gain, Zhang and Sennrich 2019, "Root Mean Square Layer Normalization",
section 4. Mean and variance are those of the H numbers of one token.
"""

from __future__ import annotations

import torch
from torch import nn

from .config import TransformerConfig


class RMSNorm(nn.Module):
    """Division by the root mean square; nothing is subtracted.

    Parameters
    ----------
    width : int
        H.
    eps : float, default=1e-6
        Added to the mean square.

    References
    ----------
    Zhang and Sennrich 2019, section 4, equation 4.

    Examples
    --------
    >>> RMSNorm(2, eps=0.0)(torch.tensor([3.0, 3.0])).tolist()
    [1.0, 1.0]
    """

    def __init__(self, width: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Normalise `x` (..., H); the mean square is taken in float32 at least."""
        wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
        root = torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)
        return self.weight * (wide * root).to(x.dtype)


def make_norm(config: TransformerConfig) -> nn.Module:
    """Return the norm that a configuration names; for "layer" torch's own, which is the formula above."""
    kind: type[nn.LayerNorm] | type[RMSNorm] = nn.LayerNorm if config.norm == "layer" else RMSNorm
    return kind(config.hidden_size, eps=config.norm_eps)
