"""The layers that write into the residual stream: what each sublayer adds to its input goes through one of them.

Vaswani et al. 2017, section 5.4: dropout on what is added, before it is added. Radford et al. 2019, section 2.3: with N
sublayers adding up, the last weights of each are drawn smaller by sqrt(N), so that the sum keeps its size.
"""

from __future__ import annotations

from torch import nn


class ResidualLinear(nn.Linear):
    """A linear layer whose output is added to the residual stream; told apart by its class when weights are drawn."""


class TokenTable(nn.Embedding):
    """The table of token embeddings; told apart by its class when weights are drawn."""
