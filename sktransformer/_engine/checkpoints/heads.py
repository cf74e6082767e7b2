"""The heads that a task puts on a body: which Auto class builds each, and what it reads of a document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForQuestionAnswering,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
)

Head = Literal["causal", "classification", "encoder", "seq2seq", "spans", "tokens"]


@dataclass(frozen=True)
class HeadKind:
    """An Auto class, how messages call its head, and whether that reads the first token of a document only."""

    auto_class: Any
    name: str
    first_token: bool = False  # then the last layer computes no other


# Bundles name their head by these keys. Classes and numbers of a document come out of the same kind of head.
HEADS: dict[Head, HeadKind] = {
    "causal": HeadKind(AutoModelForCausalLM, "language modelling"),
    "classification": HeadKind(AutoModelForSequenceClassification, "classification", first_token=True),
    "encoder": HeadKind(AutoModel, "encoder"),
    "seq2seq": HeadKind(AutoModelForSeq2SeqLM, "sequence to sequence"),
    "spans": HeadKind(AutoModelForQuestionAnswering, "question answering"),
    "tokens": HeadKind(AutoModelForTokenClassification, "token classification"),
}


def writes(config: Any) -> Literal["causal", "seq2seq"] | None:
    """Say how a model of this config writes texts: it goes on from one, or reads one and writes another; or not at all.

    Transformers has heads that go on from a text for BERT and its like too, which read in both directions unless their
    config says ``is_decoder``.
    """
    causal: Any = HEADS["causal"].auto_class._model_mapping
    seq2seq: Any = HEADS["seq2seq"].auto_class._model_mapping
    if getattr(config, "is_encoder_decoder", False):
        return "seq2seq" if type(config) in seq2seq else None
    fills_gaps: Any = AutoModelForMaskedLM._model_mapping
    if type(config) not in causal or (
        type(config) in fills_gaps and not getattr(config, "is_decoder", False)
    ):
        return None
    return "causal"
