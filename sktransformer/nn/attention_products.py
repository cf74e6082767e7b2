"""The three products of attention on a CPU, for some heads of one document, in two layouts of its weights.

Scores are q k^T, what is read is w v, and what a key or value gets from all tokens is w^T x; the gradients are the same
three, of other tensors. `Batched` gives them to torch's batched product. `Grouped` writes scores and readings as a
convolution over single tokens in groups, a group a head: oneDNN computes that, with AVX-512 also on chips
where the library of torch's batched product does without (`_engine/cpu/linear.py` says more). For short documents its
call costs more than it saves.
"""

from __future__ import annotations

from functools import cache
from typing import Protocol

import torch

SHORTEST = 128  # tokens of a document that is worth a convolution


class Products(Protocol):
    """How products are computed: h heads, of one document or several; weights as `scores` lays them out."""

    by_token: bool  # whether it takes heads (h, t, d) best where they are side by side in memory, (t, h, d)

    def by_head(self, weights: torch.Tensor) -> torch.Tensor:
        """Return a view (h, t, s) of weights."""

    def scores(self, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        """Return q k^T for query (h, t, d) and key (h, s, d), its last dimension that of keys."""

    def read(self, weights: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """Return w v, of shape (h, t, d), for weights laid out as scores and value (h, s, d)."""

    def gathered(self, weights: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """Return w^T x, of shape (h, s, d), for weights laid out as scores and x (h, t, d)."""


class Batched:
    """Scores of shape (h, t, s)."""

    by_token = False

    def by_head(self, weights: torch.Tensor) -> torch.Tensor:
        """See `Products`."""
        return weights

    def scores(self, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        """See `Products`."""
        return torch.bmm(query, key.transpose(1, 2))

    def read(self, weights: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """See `Products`."""
        return torch.bmm(weights, value)

    def gathered(self, weights: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """See `Products`."""
        return torch.bmm(weights.transpose(1, 2), x)


class Grouped:
    """Scores of shape (t, h, s): for each token, its rows of all heads."""

    by_token = True

    def by_head(self, weights: torch.Tensor) -> torch.Tensor:
        """See `Products`."""
        return weights.transpose(0, 1)

    def scores(self, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        """See `Products`."""
        return _convolved(query.transpose(0, 1), key)

    def read(self, weights: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """See `Products`."""
        return _convolved(weights, value.transpose(1, 2)).transpose(0, 1)

    def gathered(self, weights: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """See `Products`."""
        # over tokens, which no convolution sums: the batched product reads the heads where they are
        return torch.bmm(weights.permute(1, 2, 0), x)


def _convolved(x: torch.Tensor, kernels: torch.Tensor) -> torch.Tensor:
    """Return x_h k_h^T for each h, as (t, h, n), for x (t, h, c) and kernels (h, n, c)."""
    n_tokens, heads, width = x.shape
    rows = x.reshape(1, 1, n_tokens, heads * width).permute(0, 3, 1, 2)  # an image of one line, channels last
    filters = kernels.reshape(-1, width, 1, 1)
    found = torch.mkldnn_convolution(rows, filters, None, (0, 0), (1, 1), (1, 1), heads)
    return found.permute(0, 2, 3, 1).reshape(n_tokens, heads, -1)


def products_for(dtype: torch.dtype, n_queries: int, n_keys: int) -> Products:
    """Return the faster products for a document of so many tokens."""
    long = min(n_queries, n_keys) >= SHORTEST and dtype is torch.float32
    return Grouped() if long and has_wide_onednn() and torch.backends.mkldnn.enabled else Batched()


@cache
def has_wide_onednn() -> bool:
    """Whether torch has oneDNN, on a chip with AVX-512."""
    return torch.backends.mkldnn.is_available() and torch.backends.cpu.get_cpu_capability() == "AVX512"
