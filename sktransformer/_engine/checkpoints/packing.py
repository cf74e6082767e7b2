"""Which models take packed rows, and how: one attention function and one layer.

Transformers looks attention up by name. The function registered here attends within each document of a packed row, and
hands everything else to the stock sdpa function. Heads read the first token of each row; in a packed row that is the
first token of each document, so the last layer of a classifier computes those only: its keys and values are of all
tokens, its queries and all that follows of one token a document (a seventh of MiniLM's work, and the same numbers).
Both find the layout of the call in its keyword arguments: neither keeps state, so one model serves many threads.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers import AttentionInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

from ...nn import TransformerConfig
from ...nn.attention import repeat_groups
from ...nn.packed_attention import packed_attention

ATTENTION = "sktransformer_packed"

# Encoders with full bidirectional attention through the attention interface, whose `encoder` passes keyword arguments
# on. ModernBERT is not among them (its sliding windows would span documents), nor FlauBERT (attention of its own).
PACKABLE = frozenset({"bert", "roberta", "camembert", "xlm-roberta", "electra"})
# Positions of our own encoder that know a document's beginning from the position ids alone. ALiBi and relative ones
# add to the scores, by the distance in the row.
PACKABLE_POSITIONS = frozenset({"sinusoidal", "sinusoidal_halves", "learned", "rotary", "none"})


def _attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    layout = kwargs.pop("packed_layout", None)
    if layout is None:
        attended, _ = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **kwargs
        )
        return attended, None
    n_heads = query.shape[1]
    attended = packed_attention(
        query,
        repeat_groups(key, n_heads),
        repeat_groups(value, n_heads),
        layout.bounds,
        layout.lengths,
        dropout=dropout,
        scale=scaling,
    )
    return attended, None


AttentionInterface.register(ATTENTION, _attention)
# without an attention mask (a packed row has none) this returns None for bidirectional models
AttentionMaskInterface.register(ATTENTION, sdpa_mask)


class _FirstTokens:
    """The forward pass of a last layer: as ever for padded rows, first tokens (B, 1, H) for a packed row (1, N, H).

    References
    ----------
    Devlin et al. 2019, "BERT", section 3.2: a classifier reads the final hidden state of the first token.
    """

    def __init__(self, layer: nn.Module) -> None:
        self.layer: Any = layer

    def __call__(self, hidden: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        layout = kwargs.get("packed_layout")
        if layout is None:
            whole: torch.Tensor = type(self.layer).forward(self.layer, hidden, *args, **kwargs)
            return whole
        attention = self.layer.attention
        first = hidden[:, layout.starts]  # (1, B, H)
        query, key, value = (
            project(x).unflatten(-1, (-1, attention.self.attention_head_size)).transpose(1, 2)
            for project, x in (
                (attention.self.query, first),
                (attention.self.key, hidden),
                (attention.self.value, hidden),
            )
        )
        attended = packed_attention(
            query,
            key,
            value,
            layout.bounds,
            layout.lengths,
            dropout=attention.self.dropout.p if self.layer.training else 0.0,
            scale=attention.self.scaling,
        )
        mixed = attention.output(attended.flatten(2), first)
        pooled: torch.Tensor = self.layer.feed_forward_chunk(mixed)
        return pooled.transpose(0, 1)


def enable_packing(model: PreTrainedModel, *, gather: bool) -> bool:
    """Let `model` take packed rows, if its architecture can; return whether it does.

    With `gather` the last layer computes only the first token of each document (classification heads).
    """
    if type(model.config) is TransformerConfig:
        return _enable_packing_of_ours(model, model.config, gather)
    if model.config.model_type not in PACKABLE or getattr(model.config, "is_decoder", False):
        return False
    if getattr(model.config, "position_embedding_type", "absolute") != "absolute":
        return False
    model.set_attn_implementation(ATTENTION)
    if gather:
        encoder: Any = model.base_model.encoder
        last = encoder.layer[-1]
        last.forward = _FirstTokens(last)
    return True


def _enable_packing_of_ours(model: PreTrainedModel, config: TransformerConfig, gather: bool) -> bool:
    """Do the same for an encoder of `nn`, whose layers know by themselves how to read first tokens only."""
    if config.positions not in PACKABLE_POSITIONS or config.attention_window is not None:
        return False
    model.set_attn_implementation(ATTENTION)
    if gather:
        body: Any = model.base_model
        body.encoder.layers[-1].first_tokens_only = True
    return True
