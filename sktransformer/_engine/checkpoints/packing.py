"""Which models take packed rows, and how: one attention function and one hook.

Transformers looks attention up by name. The function registered here attends within each document of a packed row, and
hands everything else to the stock sdpa function. Heads read the first token of each row; in a packed row that is the
first token of each document, so a hook on the encoder gathers those before the head sees them. Both find the layout of
the call in its keyword arguments: neither keeps state, so one model serves many threads.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers import AttentionInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

from ...nn.packed_attention import packed_attention

ATTENTION = "sktransformer_packed"

# Encoders with full bidirectional attention through the attention interface, whose `encoder` passes keyword arguments
# on. ModernBERT is not among them (its sliding windows would span documents), nor FlauBERT (attention of its own).
PACKABLE = frozenset({"bert", "roberta", "camembert", "xlm-roberta", "electra"})


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
    attended = packed_attention(
        query, key, value, layout.bounds, layout.lengths, dropout=dropout, scale=scaling
    )
    return attended, None


AttentionInterface.register(ATTENTION, _attention)
# without an attention mask (a packed row has none) this returns None for bidirectional models
AttentionMaskInterface.register(ATTENTION, sdpa_mask)


def _gather_first_tokens(
    module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any
) -> Any:
    """Turn a packed row (1, N, H) into its documents' first tokens (B, 1, H)."""
    layout = kwargs.get("packed_layout")
    if layout is None:
        return None
    output.last_hidden_state = output.last_hidden_state[0].index_select(0, layout.starts)[:, None]
    return output


def enable_packing(model: PreTrainedModel, *, gather: bool) -> bool:
    """Let `model` take packed rows, if its architecture can; return whether it does.

    With `gather` the encoder hands on each document's first token only (classification heads); without it, all tokens.
    """
    if model.config.model_type not in PACKABLE or getattr(model.config, "is_decoder", False):
        return False
    if getattr(model.config, "position_embedding_type", "absolute") != "absolute":
        return False
    model.set_attn_implementation(ATTENTION)
    if gather:
        encoder: Any = model.base_model.encoder
        encoder.register_forward_hook(_gather_first_tokens, with_kwargs=True)
    return True
