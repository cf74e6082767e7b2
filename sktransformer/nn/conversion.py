"""Weights of Transformers' BERT, RoBERTa, GPT-2, Llama, Marian and T5, put into the models of this room.

Each family is two tables: what its configuration says in the words of `TransformerConfig`, and what its weights are
called here. That the hidden states are the same shows that the parts of this room are those of the published models.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import torch
from transformers import PreTrainedModel

from .config import TransformerConfig
from .conversion_tables import FAMILIES, Family
from .encoder_decoder import EncoderDecoderModel
from .heads import (
    EncoderForQuestionAnswering,
    EncoderForSequenceClassification,
    EncoderForTokenClassification,
)
from .language_models import DecoderForCausalLM, EncoderDecoderForSeq2SeqLM, EncoderForMaskedLM
from .models import DecoderModel, EncoderModel, TransformerPreTrainedModel

_BODIES: dict[str, type[TransformerPreTrainedModel]] = {
    "encoder": EncoderModel,
    "decoder": DecoderModel,
    "encoder-decoder": EncoderDecoderModel,
}
# What the name of a class of Transformers ends in, and what stands for it here.
_HEADS: dict[str, type[TransformerPreTrainedModel]] = {
    "ForMaskedLM": EncoderForMaskedLM,
    "ForSequenceClassification": EncoderForSequenceClassification,
    "ForTokenClassification": EncoderForTokenClassification,
    "ForQuestionAnswering": EncoderForQuestionAnswering,
    "LMHeadModel": DecoderForCausalLM,
    "ForCausalLM": DecoderForCausalLM,
    "ForConditionalGeneration": EncoderDecoderForSeq2SeqLM,
    "MTModel": EncoderDecoderForSeq2SeqLM,
}


def from_transformers(model: PreTrainedModel) -> TransformerPreTrainedModel:
    """Build the same model from the parts of this room.

    Parameters
    ----------
    model : PreTrainedModel
        A BERT, RoBERTa, CamemBERT, XLM-RoBERTa, GPT-2, Llama, Marian or T5 model of Transformers: the body, or one with
        a head that this room has too.

    Returns
    -------
    TransformerPreTrainedModel
        In evaluation mode, with copies of the weights; hidden states agree to rounding.

    Raises
    ------
    TypeError
        For anything but a model.
    ValueError
        When the architecture, its head or one of its options has no counterpart.

    Notes
    -----
    BERT's pooler goes into a classification head, and is left out of a body. RoBERTa numbers positions from
    ``pad_token_id + 1``; the rows before that are left out. Marian's and T5's decoders share the encoder's embeddings.

    Examples
    --------
    >>> from transformers import AutoModelForCausalLM
    >>> from sktransformer.nn import from_transformers
    >>> from sktransformer.testing.checkpoints import tiny_checkpoint
    >>> theirs = AutoModelForCausalLM.from_pretrained(tiny_checkpoint("llama"))
    >>> ours = from_transformers(theirs)
    >>> type(ours).__name__, ours.config.positions
    ('DecoderForCausalLM', 'rotary')
    """
    if not isinstance(model, PreTrainedModel):
        raise TypeError(
            f"model must be a model of Transformers, got {type(model).__name__}; load one with "
            "AutoModel.from_pretrained."
        )
    family = FAMILIES.get(model.config.model_type)
    if family is None:
        raise ValueError(
            f"{model.config.model_type!r} models have no counterpart here; there are {', '.join(FAMILIES)}."
        )
    config = TransformerConfig(**family.config(model.config))
    config.id2label, config.label2id = model.config.id2label, model.config.label2id
    ours = _class_for(model, config)(config)
    with torch.no_grad():
        _copy(ours, _renamed(model, family))
    PreTrainedModel.eval(ours)
    if getattr(model, "generation_config", None) is not None and hasattr(ours, "generation_config"):
        ours.generation_config = model.generation_config
    return ours


def _class_for(
    model: PreTrainedModel, config: TransformerConfig
) -> Callable[[Any], TransformerPreTrainedModel]:
    name = type(model).__name__
    found = next((kind for ending, kind in _HEADS.items() if name.endswith(ending)), None)
    if found is None:
        if not name.endswith("Model"):
            raise ValueError(
                f"a {name} has a head without counterpart here; pass its body, model.base_model."
            )
        return _BODIES[config.architecture]
    if found.config_class is not type(config):
        raise ValueError(f"a {name} has a head without counterpart here; pass its body, model.base_model.")
    return found


def _renamed(model: PreTrainedModel, family: Family) -> dict[str, torch.Tensor]:
    """Return the weights under the names of this room, body and head."""
    prefix = model.base_model_prefix + "."
    found: dict[str, torch.Tensor] = {}
    for name, tensor in model.state_dict().items():
        bare = name.removeprefix(prefix)
        for pattern, replacement in family.names:
            if re.fullmatch(pattern, bare):
                if replacement is not None:
                    found[re.sub(pattern, replacement, bare)] = tensor
                break
        else:
            raise ValueError(f"the weight {name} has no counterpart here; the model has an unknown option.")
    return family.reshape(found, model.config)


def _copy(ours: TransformerPreTrainedModel, weights: dict[str, torch.Tensor]) -> None:
    """Copy weights, and see that none of ours is left as it was drawn."""
    body = "" if isinstance(ours, tuple(_BODIES.values())) else "model."
    state = ours.state_dict()
    left = set(state) - set(getattr(ours, "all_tied_weights_keys", {}))
    for name, tensor in weights.items():
        own = name.removeprefix("head.") if name.startswith("head.") else body + name
        if own not in state:
            if name.startswith("head."):
                continue  # BERT's pooler, beside a body
            raise ValueError(f"there is no place for the weight {name}; the model has an unknown option.")
        state[own].copy_(tensor.reshape(state[own].shape))
        left.discard(own)
    if left:
        raise ValueError(
            f"the model lacks weights of {', '.join(sorted(left)[:3])}; it has an unknown option."
        )
