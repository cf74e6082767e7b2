"""Scaled dot-product attention over documents laid end to end in one row.

Formula: softmax(Q K^T / sqrt(d_k)) V, Vaswani et al. 2017, "Attention Is All You Need", section 3.2.1; here computed
one document at a time, so that no token attends to another document and none is padding.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F


def packed_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    bounds: torch.Tensor,
    lengths: tuple[int, ...],
    *,
    dropout: float = 0.0,
    scale: float | None = None,
) -> torch.Tensor:
    """Attend within each document of a packed row.

    Parameters
    ----------
    query, key, value : tensor of shape (1, heads, N, d)
        All documents' tokens, end to end.
    bounds : int32 tensor of shape (B + 1,)
        Cumulative lengths; ``bounds[-1] == N``.
    lengths : tuple of int
        The same lengths on the host.
    dropout : float
        Probability of dropping an attention weight.
    scale : float, optional
        Factor on the scores; 1 / sqrt(d) when None.

    Returns
    -------
    tensor of shape (1, N, heads, d)
    """
    if query.is_cuda and query.dtype in (torch.bfloat16, torch.float16) and dropout == 0.0:
        return _flash(query, key, value, bounds, max(lengths), scale)
    parts = [
        F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, scale=scale)
        for q, k, v in zip(*(x.split(lengths, dim=2) for x in (query, key, value)), strict=True)
    ]
    return torch.cat(parts, dim=2).transpose(1, 2)  # (1, N, heads, d)


def _flash(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    bounds: torch.Tensor,
    longest: int,
    scale: float | None,
) -> torch.Tensor:
    """Run the variable-length flash kernel: one launch for all documents."""
    from torch.nn.attention.varlen import varlen_attn

    root = math.sqrt(query.shape[-1])
    # the kernel's own scale is 1 / sqrt(d), and that of torch 2.10 takes no other
    if scale is not None and not math.isclose(scale * root, 1.0):
        query = query * (scale * root)
    q, k, v = (x[0].transpose(0, 1).contiguous() for x in (query, key, value))  # (N, heads, d)
    attended = varlen_attn(q, k, v, bounds, bounds, longest, longest)
    assert isinstance(attended, torch.Tensor)  # a pair only where auxiliary results are asked for
    return attended[None]
