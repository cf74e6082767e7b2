"""Scaled dot-product attention over documents laid end to end in one row.

Formula: softmax(Q K^T / sqrt(d_k)) V, Vaswani et al. 2017, "Attention Is All You Need", section 3.2.1; here computed
one document at a time, so that no token attends to another document and none is padding.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch.autograd.function import once_differentiable

from .attention_products import Products, products_for
from .attention_tiles import Tile, tiles
from .dropout import factor, kept, masked


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

    Tokens behind the last document belong to none: they get zeros, and no gradient comes from them.

    Parameters
    ----------
    query : tensor of shape (1, heads, N, d) or (1, heads, B, d)
        All documents' tokens, end to end; or one token a document, when only those are read afterwards.
    key, value : tensor of shape (1, heads, N, d)
        All documents' tokens, end to end.
    bounds : int32 tensor of shape (B + 1,)
        Cumulative lengths; ``bounds[-1] <= N``.
    lengths : tuple of int
        The same lengths on the host.
    dropout : float
        Probability of dropping an attention weight.
    scale : float, optional
        Factor on the scores; 1 / sqrt(d) when None.

    Returns
    -------
    tensor of shape (1, N, heads, d), or (1, B, heads, d)
    """
    asked = lengths if query.shape[2] == key.shape[2] else (1,) * len(lengths)
    if _is_written_out((query, key, value), dropout):
        root = 1.0 / math.sqrt(query.shape[-1])
        parts = (query[0], key[0], value[0])
        attended: torch.Tensor = _WrittenOut.apply(  # type: ignore[no-untyped-call]
            *parts, asked, lengths, dropout, root if scale is None else scale
        )
        return attended[None]
    if query.is_cuda and query.dtype in (torch.bfloat16, torch.float16) and dropout == 0.0:
        return _flash(query, key, value, bounds, asked, lengths, scale)
    # the kernel writes (tokens, heads, d): joined in that order, nothing is copied twice
    n_asked, n_read = sum(asked), sum(lengths)
    documents = zip(
        query[:, :, :n_asked].split(asked, dim=2),
        key[:, :, :n_read].split(lengths, dim=2),
        value[:, :, :n_read].split(lengths, dim=2),
        strict=True,
    )
    rows = [
        F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, scale=scale).transpose(1, 2)
        for q, k, v in documents
    ]
    behind = query.shape[2] - n_asked
    if behind:
        rows.append(rows[0].new_zeros(1, behind, *rows[0].shape[2:]))
    return torch.cat(rows, dim=1)  # (1, N, heads, d)


def _is_written_out(given: tuple[torch.Tensor, ...], dropout: float) -> bool:
    """Whether torch's own attention is the slower one: with dropout, and in training in bfloat16, on a CPU."""
    query = given[0]
    if query.device.type != "cpu" or query.dtype not in (torch.float32, torch.float64, torch.bfloat16):
        return False
    if dropout:
        return True
    trained = torch.is_grad_enabled() and any(x.requires_grad for x in given)
    return trained and query.dtype is torch.bfloat16


def _flash(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    bounds: torch.Tensor,
    asked: tuple[int, ...],
    lengths: tuple[int, ...],
    scale: float | None,
) -> torch.Tensor:
    """Run the variable-length flash kernel: one launch for all documents."""
    from torch.nn.attention.varlen import varlen_attn

    root = math.sqrt(query.shape[-1])
    # the kernel's own scale is 1 / sqrt(d), and that of torch 2.10 takes no other
    if scale is not None and not math.isclose(scale * root, 1.0):
        query = query * (scale * root)
    n_asked, n_read = sum(asked), sum(lengths)
    behind = query.shape[2] - n_asked
    q, k, v = (
        x[0, :, :n].transpose(0, 1).contiguous()
        for x, n in ((query, n_asked), (key, n_read), (value, n_read))
    )  # (N, heads, d)
    rows = bounds if asked is lengths else torch.arange(len(bounds), dtype=bounds.dtype, device=bounds.device)
    attended = varlen_attn(q, k, v, rows, bounds, max(asked), max(lengths))
    assert isinstance(attended, torch.Tensor)  # a pair only where auxiliary results are asked for
    return F.pad(attended, (0, 0, 0, 0, 0, behind))[None]


class _WrittenOut(torch.autograd.Function):
    """Attention by its formula, for the CPU.

    torch's own leaves its fused path when weights are dropped, and then spends more on drawing, on guarding against
    rows that are masked whole (there are none here) and on temporaries than on the products. In bfloat16 the gradient
    of its fused path takes longer than this.
    """

    @staticmethod
    def forward(
        ctx: Any,
        query: torch.Tensor,  # (heads, N, d)
        key: torch.Tensor,
        value: torch.Tensor,
        asked: tuple[int, ...],
        lengths: tuple[int, ...],
        p: float,
        scale: float,
    ) -> torch.Tensor:
        attended = value.new_empty(query.shape[1], query.shape[0], value.shape[2])  # (N, heads, d)
        saved = []
        for tile in tiles(query.element_size(), len(query), asked, lengths):
            products = products_for(query.dtype, tile.n_queries, tile.n_keys)
            q, k, v = _gathered(tile, products, query, key, value)
            scores = products.scores(q * scale, k)
            tile.hide(products.by_head(scores))
            weights = torch.softmax(scores, dim=-1)
            mask = kept(weights, p) if p else None
            read = weights if mask is None else masked(weights, mask, out=scores)
            tile.put_queries(products.read(read, v).mul_(factor(p)), attended)
            saved += [weights, mask]
        ctx.save_for_backward(query, key, value, *saved)
        ctx.asked, ctx.lengths, ctx.p, ctx.scale = asked, lengths, p, scale
        attended[sum(asked) :] = 0.0
        return attended

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        query, key, value, *saved = ctx.saved_tensors
        by_token = ((x.shape[1], x.shape[0], x.shape[2]) for x in (query, key, value))  # (N, heads, d)
        d_query, d_key, d_value = (query.new_empty(shape) for shape in by_token)
        for i, tile in enumerate(tiles(query.element_size(), len(query), ctx.asked, ctx.lengths)):
            products = products_for(query.dtype, tile.n_queries, tile.n_keys)
            weights, mask = saved[2 * i : 2 * i + 2]
            q, k, v = _gathered(tile, products, query, key, value)
            above = tile.queries(gradient.transpose(0, 1), products.by_token) * factor(ctx.p)
            read = weights if mask is None else masked(weights, mask)
            tile.put_keys(products.gathered(read, above), d_value)
            d_weights = products.scores(above, v)
            if mask is not None:
                masked(d_weights, mask, out=d_weights)
            d_scores = torch.ops.aten._softmax_backward_data(d_weights, weights, -1, weights.dtype)
            tile.put_queries(products.read(d_scores, k).mul_(ctx.scale), d_query)
            tile.put_keys(products.gathered(d_scores, q).mul_(ctx.scale), d_key)
        d_query[sum(ctx.asked) :] = 0.0
        d_key[sum(ctx.lengths) :] = d_value[sum(ctx.lengths) :] = 0.0
        gradients = (x.transpose(0, 1) for x in (d_query, d_key, d_value))
        return (*gradients, None, None, None, None)


def _gathered(tile: Tile, products: Products, *given: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return a tile's query, key and value, of (heads, N, d) each, as its products take them best."""
    query, *others = given
    return tile.queries(query, products.by_token), *(tile.keys(x, products.by_token) for x in others)
