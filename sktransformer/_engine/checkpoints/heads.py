"""The heads that a task puts on a body: which Auto class builds each, and what it reads of a document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from transformers import (
    AutoModel,
    AutoModelForCausalLM,
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
