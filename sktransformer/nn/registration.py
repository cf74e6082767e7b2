"""The models of this room under Transformers' Auto classes, registered when the room is first entered."""

from __future__ import annotations

from typing import Any

from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForQuestionAnswering,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
)

from .config import DecoderConfig, EncoderDecoderConfig, TransformerConfig
from .encoder_decoder import EncoderDecoderModel
from .heads import (
    DecoderForSequenceClassification,
    EncoderForQuestionAnswering,
    EncoderForSequenceClassification,
    EncoderForTokenClassification,
)
from .language_models import DecoderForCausalLM, EncoderDecoderForSeq2SeqLM, EncoderForMaskedLM
from .models import DecoderModel, EncoderModel

MODELS: dict[Any, tuple[type[Any], ...]] = {
    AutoModel: (EncoderModel, DecoderModel, EncoderDecoderModel),
    AutoModelForSequenceClassification: (EncoderForSequenceClassification, DecoderForSequenceClassification),
    AutoModelForTokenClassification: (EncoderForTokenClassification,),
    AutoModelForQuestionAnswering: (EncoderForQuestionAnswering,),
    AutoModelForMaskedLM: (EncoderForMaskedLM,),
    AutoModelForCausalLM: (DecoderForCausalLM,),
    AutoModelForSeq2SeqLM: (EncoderDecoderForSeq2SeqLM,),
}


def register() -> None:
    """Make the Auto classes know the configurations and models; a second call changes nothing."""
    for config in (TransformerConfig, DecoderConfig, EncoderDecoderConfig):
        AutoConfig.register(config.model_type, config, exist_ok=True)
    for auto, models in MODELS.items():
        for model in models:
            auto.register(model.config_class, model, exist_ok=True)
