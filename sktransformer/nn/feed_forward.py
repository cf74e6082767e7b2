"""The feed-forward layer: each token by itself, up to a wider space, through a nonlinearity, and back.

Formula: FFN(x) = f(x W_1 + b_1) W_2 + b_2, Vaswani et al. 2017, section 3.3 (f is ReLU). Gated: (f(x W) * (x V)) W_2,
Shazeer 2020, "GLU Variants Improve Transformer", equations 5 and 6.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from .config import TransformerConfig
from .config_checks import GATED_FEED_FORWARDS
from .residual import ResidualLinear

# GELU, exact and by its tanh, and SiLU, also called Swish: Hendrycks and Gimpel 2016, section 2.
_gelu_tanh = partial(F.gelu, approximate="tanh")
ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": _gelu_tanh,
    "silu": F.silu,
    "reglu": F.relu,
    "geglu": F.gelu,
    "geglu_tanh": _gelu_tanh,
    "swiglu": F.silu,
}


class FeedForward(nn.Module):
    """Two linear layers with a nonlinearity between them, or three with a gate.

    Parameters
    ----------
    config : TransformerConfig
        Widths, nonlinearity, biases.

    References
    ----------
    Vaswani et al. 2017, section 3.3; Shazeer 2020, section 2.

    Examples
    --------
    >>> from sktransformer.nn import TransformerConfig
    >>> FeedForward(TransformerConfig(hidden_size=8, feed_forward="swiglu"))(torch.randn(1, 3, 8)).shape
    torch.Size([1, 3, 8])
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        width, inner, bias = config.hidden_size, config.intermediate_size, config.feed_forward_bias
        assert inner is not None  # a config fills it in
        self.activation = ACTIVATIONS[config.feed_forward]
        self.up = nn.Linear(width, inner, bias=bias)
        self.gate = nn.Linear(width, inner, bias=bias) if config.feed_forward in GATED_FEED_FORWARDS else None
        self.down = ResidualLinear(inner, width, bias=bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map each token's vector: (..., H) to (..., H)."""
        inner = (
            self.activation(self.up(x)) if self.gate is None else self.activation(self.gate(x)) * self.up(x)
        )
        mapped: torch.Tensor = self.down(inner)
        return mapped
