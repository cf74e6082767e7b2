"""A layer: attention to its own stack, attention to the encoder's in a decoder that has one, then feed-forward.

Formula: around each sublayer Norm(x + Dropout(Sublayer(x))), Vaswani et al. 2017, sections 3.1 and 5.4; or with the
norm before, x + Dropout(Sublayer(Norm(x))), Xiong et al. 2020, "On Layer Normalization in the Transformer
Architecture", section 3 and figure 1, which trains without warm-up.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import nn
from transformers.cache_utils import Cache
from transformers.modeling_layers import GradientCheckpointingLayer

from .attention import MultiHeadAttention
from .config import TransformerConfig
from .dropout import Dropout
from .experts import MixtureOfExperts, make_feed_forward
from .norms import make_norm
from .positions import Rotation


class LayerOutput(NamedTuple):
    """What a layer makes: hidden states (B, T, H), and weights of its attentions where they were asked for."""

    hidden: torch.Tensor
    weights: torch.Tensor | None
    cross_weights: torch.Tensor | None


class TransformerLayer(GradientCheckpointingLayer):
    """One layer of an encoder or of a decoder.

    Parameters
    ----------
    config : TransformerConfig
        Shape of the sublayers, kind and place of the norms.
    layer : int
        Its number, from 0.
    causal : bool
        Whether a token sees what comes before it only.
    cross : bool, default=False
        Whether it attends to an encoder too.

    References
    ----------
    Vaswani et al. 2017, section 3.1 and figure 1; Xiong et al. 2020, figure 1.

    Examples
    --------
    >>> from sktransformer.nn import TransformerConfig
    >>> layer = TransformerLayer(TransformerConfig(hidden_size=8), 0, causal=False)
    >>> layer(torch.randn(1, 3, 8)).hidden.shape
    torch.Size([1, 3, 8])
    """

    def __init__(self, config: TransformerConfig, layer: int, *, causal: bool, cross: bool = False) -> None:
        super().__init__()
        self.before = config.norm_position == "pre"
        self.first_tokens_only = False  # set on the last layer of a classifier, see `_queries`
        self.self_attention = MultiHeadAttention(config, layer, causal=causal)
        self.self_attention_norm = make_norm(config)
        self.cross_attention = MultiHeadAttention(config, layer) if cross else None
        self.cross_attention_norm = make_norm(config) if cross else None
        self.feed_forward = make_feed_forward(config)
        self.feed_forward_norm = make_norm(config)
        self.dropout = Dropout(config.dropout)

    def forward(
        self,
        hidden: torch.Tensor,
        mask: torch.Tensor | None = None,
        memory: torch.Tensor | None = None,
        memory_mask: torch.Tensor | None = None,
        *,
        rotation: Rotation | None = None,
        cache: Cache | None = None,
        need_weights: bool = False,
        real: torch.Tensor | None = None,
        **kwargs: Any,
    ) -> LayerOutput:
        """Run the sublayers.

        Parameters
        ----------
        hidden : tensor of shape (B, T, H)
            What the layer below made.
        mask : tensor that broadcasts to (B, heads, T, T_k), optional
            For self-attention.
        memory : tensor of shape (B, T_m, H), optional
            What the encoder made.
        memory_mask : tensor that broadcasts to (B, heads, T, T_m), optional
            For cross-attention.
        rotation : Rotation, optional
            Angles of rotary positions.
        cache : Cache, optional
            Keys and values of earlier tokens.
        need_weights : bool, default=False
            Return attention weights.
        real : tensor of shape (B, T), optional
            1 for a token, 0 for padding, which has no share in the balance of experts.
        **kwargs : object
            Handed on to the attention function, for instance the layout of a packed row.

        Returns
        -------
        LayerOutput
        """
        inner = self.self_attention_norm(hidden) if self.before else hidden
        hidden, inner, keys_from = self._queries(hidden, inner, kwargs)
        attended, weights = self.self_attention(
            inner,
            mask=mask,
            rotation=rotation,
            cache=cache,
            need_weights=need_weights,
            keys_from=keys_from,
            **kwargs,
        )
        hidden = self._add(hidden, attended, self.self_attention_norm)
        cross_weights = None
        if self.cross_attention is not None and memory is not None:
            assert self.cross_attention_norm is not None
            inner = self.cross_attention_norm(hidden) if self.before else hidden
            attended, cross_weights = self.cross_attention(
                inner, memory, memory_mask, cache=cache, need_weights=need_weights
            )
            hidden = self._add(hidden, attended, self.cross_attention_norm)
        inner = self.feed_forward_norm(hidden) if self.before else hidden
        told = (real,) if isinstance(self.feed_forward, MixtureOfExperts) else ()
        hidden = self._add(hidden, self.feed_forward(inner, *told), self.feed_forward_norm)
        return LayerOutput(hidden, weights, cross_weights)

    def _add(self, hidden: torch.Tensor, made: torch.Tensor, norm: nn.Module) -> torch.Tensor:
        """Add what a sublayer made to what went into it."""
        total: torch.Tensor = hidden + self.dropout(made)
        return total if self.before else norm(total)

    def _queries(
        self, hidden: torch.Tensor, inner: torch.Tensor, kwargs: dict[str, Any]
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """Narrow a packed row (1, N, H) to the first tokens of its documents, (1, B, H), where only those are read.

        Their keys and values remain those of all tokens, so the numbers are the same.
        """
        layout = kwargs.get("packed_layout")
        if not self.first_tokens_only or layout is None:
            return hidden, inner, None
        return hidden[:, layout.starts], inner[:, layout.starts], inner
