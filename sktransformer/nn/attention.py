"""Attention: each query takes the mean of the values, weighted by how well their keys fit it.

Formula: softmax(Q K^T / sqrt(d_k)) V, Vaswani et al. 2017, section 3.2.1, in several heads with projections of their
own, section 3.2.2. `scaled_dot_product` writes it out; `MultiHeadAttention` computes it with torch's fused kernels,
which Transformers finds by the name in ``config._attn_implementation``, so that packed rows and GPU kernels come in
by that door.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from transformers.cache_utils import Cache, EncoderDecoderCache
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from .config import TransformerConfig
from .positions import Rotation, rotate
from .residual import ResidualLinear


def scaled_dot_product(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None = None,
    *,
    scale: float | None = None,
    dropout: float = 0.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attend, step by step, and return the weights too.

    Parameters
    ----------
    query : tensor of shape (B, heads, T_q, d_k)
        What is looked for.
    key : tensor of shape (B, groups, T_k, d_k)
        What is compared with it; `groups` divides `heads`.
    value : tensor of shape (B, groups, T_k, d_v)
        What is averaged.
    mask : tensor that broadcasts to (B, heads, T_q, T_k), optional
        Bool: True is seen. Float: added to the scores.
    scale : float, optional
        Factor on the scores; ``1 / sqrt(d_k)`` when None: the products of d_k independent numbers of variance 1 have
        variance d_k, and large scores leave the softmax without a gradient.
    dropout : float, default=0.0
        Probability of dropping a weight.

    Returns
    -------
    attended : tensor of shape (B, heads, T_q, d_v)
        Weighted means of the values.
    weights : tensor of shape (B, heads, T_q, T_k)
        Rows sum to 1 (before dropout).

    References
    ----------
    Vaswani et al. 2017, section 3.2.1 and footnote 4; Ainslie et al. 2023, "GQA", section 2.2 (groups of queries).

    Examples
    --------
    >>> import torch
    >>> one = torch.eye(2)[None, None]
    >>> attended, weights = scaled_dot_product(one, one, one, scale=10.0)
    >>> weights.round().int().tolist()
    [[[[1, 0], [0, 1]]]]
    """
    key, value = repeat_groups(key, query.shape[1]), repeat_groups(value, query.shape[1])
    scale = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = query @ key.transpose(-2, -1) * scale  # (B, heads, T_q, T_k)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype is torch.bool else scores + mask
    weights = torch.softmax(scores, dim=-1)
    return F.dropout(weights, dropout) @ value, weights


def repeat_groups(x: torch.Tensor, n_heads: int) -> torch.Tensor:
    """Give each head of queries its head of keys or values: (B, groups, T, d) becomes (B, heads, T, d)."""
    return x if x.shape[1] == n_heads else x.repeat_interleave(n_heads // x.shape[1], dim=1)


class MultiHeadAttention(nn.Module):
    """Several attentions side by side, each on projections of its own, joined by one more projection.

    With fewer key and value heads than query heads it is grouped-query attention, with one multi-query attention. It is
    self-attention, or cross-attention where `memory` is given.

    Parameters
    ----------
    config : TransformerConfig
        Width, heads, biases, dropout.
    layer : int
        Number of the layer, under which the cache keeps keys and values.
    causal : bool, default=False
        Whether a query sees what comes before it only.

    References
    ----------
    Vaswani et al. 2017, section 3.2.2: MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W_O with
    head_i = Attention(Q W_Q_i, K W_K_i, V W_V_i); Shazeer 2019, "Fast Transformer Decoding", section 3 (one head of
    keys and values); Ainslie et al. 2023, "GQA", section 2.2.

    Examples
    --------
    >>> import torch
    >>> from sktransformer.nn import TransformerConfig
    >>> from sktransformer.nn.attention import MultiHeadAttention
    >>> attention = MultiHeadAttention(TransformerConfig(hidden_size=8, num_attention_heads=2), layer=0)
    >>> attended, weights = attention(torch.randn(1, 3, 8), need_weights=True)
    >>> attended.shape, weights.shape
    (torch.Size([1, 3, 8]), torch.Size([1, 2, 3, 3]))
    """

    def __init__(self, config: TransformerConfig, layer: int, *, causal: bool = False) -> None:
        super().__init__()
        heads, groups, size = config.num_attention_heads, config.num_key_value_heads, config.head_dim
        assert heads is not None  # a config fills them in
        assert groups is not None
        assert size is not None
        self.config = config
        self.layer_idx = layer
        # Transformers' attention functions read these three names
        self.is_causal = causal
        self.num_key_value_groups = heads // groups
        self.scaling = 1.0 / math.sqrt(size) if config.attention_scale is None else config.attention_scale
        self.head_dim = size
        self.dropout = config.attention_dropout
        width, bias = config.hidden_size, config.attention_bias
        self.query = nn.Linear(width, heads * size, bias=bias)
        self.key = nn.Linear(width, groups * size, bias=bias)
        self.value = nn.Linear(width, groups * size, bias=bias)
        self.output = ResidualLinear(heads * size, width, bias=bias)

    def forward(
        self,
        hidden: torch.Tensor,
        memory: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
        *,
        rotation: Rotation | None = None,
        cache: Cache | None = None,
        need_weights: bool = False,
        keys_from: torch.Tensor | None = None,
        **kwargs: Any,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Attend from `hidden` to itself, or to `memory`.

        Parameters
        ----------
        hidden : tensor of shape (B, T_q, H)
            Where queries come from.
        memory : tensor of shape (B, T_k, H), optional
            The encoder's hidden states: cross-attention.
        mask : tensor that broadcasts to (B, heads, T_q, T_k), optional
            Bool, True is seen, or float, added to the scores.
        rotation : Rotation, optional
            Angles of rotary positions.
        cache : Cache, optional
            Keys and values of earlier tokens, to which these are added. Those of `memory` are computed once.
        need_weights : bool, default=False
            Return the weights; written out then, without a fused kernel.
        keys_from : tensor of shape (B, T_k, H), optional
            Where keys and values of self-attention come from, when `hidden` holds a part of the tokens only.
        **kwargs : object
            Handed on to the attention function, for instance the layout of a packed row.

        Returns
        -------
        attended : tensor of shape (B, T_q, H)
        weights : tensor of shape (B, heads, T_q, T_k) or None
        """
        query = self._split(self.query(hidden))  # (B, heads, T_q, d)
        if memory is None:
            key, value = self._own(hidden if keys_from is None else keys_from, rotation, cache)
            if rotation is not None:
                query = rotate(
                    query, rotation if keys_from is None else rotation.first(hidden.shape[1], kwargs)
                )
        else:
            key, value = self._of_memory(memory, cache)
        dropout = self.dropout if self.training else 0.0
        if need_weights and "packed_layout" in kwargs:
            raise ValueError("a packed row has no attention weights; pass the texts as padded rows.")
        if need_weights or self.config._attn_implementation == "eager":
            mixed, weights = self._written_out(query, key, value, mask, dropout)
        else:
            attend = ALL_ATTENTION_FUNCTIONS[self.config._attn_implementation or "sdpa"]
            mixed, weights = attend(
                self, query, key, value, mask, dropout=dropout, scaling=self.scaling, **kwargs
            )
        joined: torch.Tensor = mixed.flatten(2)  # (B, T_q, heads, d) becomes (B, T_q, heads * d)
        attended: torch.Tensor = self.output(joined)
        return attended, weights

    def _split(self, x: torch.Tensor) -> torch.Tensor:
        """(B, T, heads * d) becomes (B, heads, T, d)."""
        heads: torch.Tensor = x.unflatten(-1, (-1, self.head_dim))
        return heads.transpose(1, 2)

    def _own(
        self, hidden: torch.Tensor, rotation: Rotation | None, cache: Cache | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return keys and values of the tokens, those in the cache before the new ones."""
        key, value = self._split(self.key(hidden)), self._split(self.value(hidden))
        if rotation is not None:
            key = rotate(key, rotation)
        if cache is None:
            return key, value
        own = cache.self_attention_cache if isinstance(cache, EncoderDecoderCache) else cache
        both: tuple[torch.Tensor, torch.Tensor] = own.update(key, value, self.layer_idx)
        return both

    def _of_memory(self, memory: torch.Tensor, cache: Cache | None) -> tuple[torch.Tensor, torch.Tensor]:
        """Return keys and values of the encoder's states: the same for each token that is written, computed once."""
        if not isinstance(cache, EncoderDecoderCache):
            return self._split(self.key(memory)), self._split(self.value(memory))
        if cache.is_updated.get(self.layer_idx):
            kept: Any = cache.cross_attention_cache.layers[self.layer_idx]
            return kept.keys, kept.values
        key, value = self._split(self.key(memory)), self._split(self.value(memory))
        stored: tuple[torch.Tensor, torch.Tensor] = cache.cross_attention_cache.update(
            key, value, self.layer_idx
        )
        cache.is_updated[self.layer_idx] = True
        return stored

    def _written_out(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        mask: torch.Tensor | None,
        dropout: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The reference, which has no flag for a causal attention without a mask."""
        if mask is None and self.is_causal and query.shape[2] > 1:
            mask = torch.ones(query.shape[2], key.shape[2], dtype=torch.bool, device=query.device).tril(
                key.shape[2] - query.shape[2]
            )
        mixed, weights = scaled_dot_product(query, key, value, mask, scale=self.scaling, dropout=dropout)
        return mixed.transpose(1, 2), weights
