"""A stack of layers: an encoder, or a decoder.

Vaswani et al. 2017, section 3.1: N identical layers; with norms before the sublayers one more stands at the end (Xiong
et al. 2020, figure 1). Masks and biases of attention are made here, once for all layers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import nn
from transformers.cache_utils import Cache

from .config import TransformerConfig
from .layer import LayerOutput, TransformerLayer
from .masks import padding_mask, self_attention_mask
from .norms import make_norm
from .positions import RelativeBias, alibi, rotary

_Tensors = tuple[torch.Tensor, ...]


class StackOutput(NamedTuple):
    """Last hidden states (B, T, H); and where asked for all L + 1 of them, and each layer's attention weights."""

    hidden: torch.Tensor
    all_hidden: _Tensors | None = None
    weights: _Tensors | None = None
    cross_weights: _Tensors | None = None


class Stack(nn.Module):
    """Layers one above the other.

    Parameters
    ----------
    config : TransformerConfig
        Shape of the layers, kind of positions.
    num_layers : int
        How many.
    causal : bool
        Whether a token sees what comes before it only: a decoder.
    cross : bool, default=False
        Whether the layers attend to an encoder too.

    References
    ----------
    Vaswani et al. 2017, section 3.1.

    Examples
    --------
    >>> from sktransformer.nn import TransformerConfig
    >>> stack = Stack(TransformerConfig(hidden_size=8), 2, causal=False)
    >>> stack(torch.randn(1, 3, 8), torch.arange(3)[None]).hidden.shape
    torch.Size([1, 3, 8])
    """

    def __init__(
        self, config: TransformerConfig, num_layers: int, *, causal: bool, cross: bool = False
    ) -> None:
        super().__init__()
        assert config.num_attention_heads is not None  # a config fills them in
        assert config.head_dim is not None
        self.config = config
        self.causal = causal
        self.n_heads, self.head_dim = config.num_attention_heads, config.head_dim
        self.layers = nn.ModuleList(
            TransformerLayer(config, number, causal=causal, cross=cross) for number in range(num_layers)
        )
        self.norm = make_norm(config) if config.norm_position == "pre" else None
        self.position_bias = (
            RelativeBias(
                self.n_heads,
                config.relative_buckets,
                config.relative_max_distance,
                bidirectional=not causal,
            )
            if config.positions == "relative"
            else None
        )

    def forward(
        self,
        hidden: torch.Tensor,
        position_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        memory: torch.Tensor | None = None,
        memory_mask: torch.Tensor | None = None,
        *,
        cache: Cache | None = None,
        n_before: int = 0,
        keep_hidden: bool = False,
        need_weights: bool = False,
        **kwargs: Any,
    ) -> StackOutput:
        """Run the layers.

        Parameters
        ----------
        hidden : tensor of shape (B, T, H)
            Embeddings.
        position_ids : int tensor of shape (B or 1, T)
            Positions, for rotary ones.
        attention_mask : tensor of shape (B, n_before + T), optional
            1 for a token, 0 for padding.
        memory : tensor of shape (B, T_m, H), optional
            What the encoder made.
        memory_mask : tensor of shape (B, T_m), optional
            1 for a token of it, 0 for padding.
        cache : Cache, optional
            Keys and values of the tokens before.
        n_before : int, default=0
            Tokens that the cache holds.
        keep_hidden, need_weights : bool, default=False
            Return what each layer made, and each layer's attention weights.
        **kwargs : object
            Handed on to the attention functions, for instance the layout of a packed row.

        Returns
        -------
        StackOutput
        """
        mask = self._mask(hidden, attention_mask, n_before)
        seen = None if memory_mask is None else padding_mask(memory_mask)
        rotation = None
        if self.config.positions == "rotary":
            rotation = rotary(position_ids, self.head_dim, self.config.rotary_base, hidden.dtype)
        made: list[LayerOutput] = []
        states = [hidden]
        for layer in self.layers:
            output = layer(
                states[-1] if keep_hidden else hidden,
                mask,
                memory,
                seen,
                rotation=rotation,
                cache=cache,
                need_weights=need_weights,
                real=None if attention_mask is None else attention_mask[:, n_before:],
                **kwargs,
            )
            hidden = output.hidden
            if keep_hidden:
                states.append(hidden)
            if need_weights:
                made.append(output)
        if self.norm is not None:
            hidden = self.norm(hidden)
        if self.layers[-1].first_tokens_only and "packed_layout" in kwargs:
            hidden = hidden.transpose(0, 1)  # a packed row's first tokens (1, B, H) become rows (B, 1, H)
        return StackOutput(
            hidden,
            (*states[:-1], hidden) if keep_hidden else None,
            tuple(one.weights for one in made if one.weights is not None) if need_weights else None,
            tuple(one.cross_weights for one in made if one.cross_weights is not None)
            if need_weights
            else None,
        )

    def _mask(
        self, hidden: torch.Tensor, attention_mask: torch.Tensor | None, n_before: int
    ) -> torch.Tensor | None:
        """Combine what hides keys, and what is added to their scores."""
        n_queries, n_keys = hidden.shape[1], n_before + hidden.shape[1]
        mask = self_attention_mask(
            attention_mask,
            n_queries,
            n_keys,
            causal=self.causal,
            window=self.config.attention_window,
            device=hidden.device,
        )
        if self.position_bias is not None:
            bias: torch.Tensor = self.position_bias(n_queries, n_keys)
        elif self.config.positions == "alibi":
            bias = alibi(n_queries, n_keys, self.n_heads, hidden.device)
        else:
            return mask
        if mask is None and self.causal and n_queries > 1:
            mask = torch.ones(n_queries, n_keys, dtype=torch.bool, device=hidden.device).tril(n_before)
        bias = bias.to(hidden.dtype)
        return bias if mask is None else bias.masked_fill(~mask, -torch.inf)
