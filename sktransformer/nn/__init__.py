"""The Transformer in pure torch: nothing in this room knows of scikit-learn, tokenizers or checkpoints.

To be read from leaf to root: `config` says what can be chosen; `masks`, `positions`, `attention`, `norms`,
`feed_forward` and `experts` are the parts; `embeddings`, `layer` and `stack` put them together; `models`, `heads` and
`language_models` are what is trained. Shapes: B texts, T tokens, H hidden width, V vocabulary, L layers, C classes, d
width of a head.
"""

from __future__ import annotations

from .config import DecoderConfig, EncoderDecoderConfig, TransformerConfig
from .conversion import from_transformers
from .encoder_decoder import EncoderDecoderModel
from .heads import (
    DecoderForSequenceClassification,
    EncoderForQuestionAnswering,
    EncoderForSequenceClassification,
    EncoderForTokenClassification,
)
from .language_models import DecoderForCausalLM, EncoderDecoderForSeq2SeqLM, EncoderForMaskedLM
from .models import DecoderModel, EncoderModel
from .parameters import Cost, ParameterCount, estimate_cost, parameter_count
from .registration import register

__all__ = [
    "Cost",
    "DecoderConfig",
    "DecoderForCausalLM",
    "DecoderForSequenceClassification",
    "DecoderModel",
    "EncoderDecoderConfig",
    "EncoderDecoderForSeq2SeqLM",
    "EncoderDecoderModel",
    "EncoderForMaskedLM",
    "EncoderForQuestionAnswering",
    "EncoderForSequenceClassification",
    "EncoderForTokenClassification",
    "EncoderModel",
    "ParameterCount",
    "TransformerConfig",
    "estimate_cost",
    "from_transformers",
    "parameter_count",
]

register()
