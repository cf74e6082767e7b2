"""Sentences that a tiny random tagger learns in half a second."""

from __future__ import annotations

from typing import Any

from sktransformer import TransformerTokenClassifier
from sktransformer.testing import tiny_checkpoint

X = [
    ["Marie", "habite", "à", "Lyon"],
    ["je", "vais", "à", "Paris", "avec", "Paul"],
    ["Groenlinks", "l'hôpital", "5.975,74", "euros"],
    ["Jean", "Valjean", "est", "à", "Montreuil"],
] * 4
Y = [
    ["B-PER", "O", "O", "B-LOC"],
    ["O", "O", "O", "B-LOC", "O", "B-PER"],
    ["B-ORG", "I-ORG", "O", "O"],
    ["B-PER", "I-PER", "O", "O", "B-LOC"],
] * 4
PARTS = [
    ["PROPN", "VERB", "ADP", "PROPN"],
    ["PRON", "VERB", "ADP", "PROPN", "ADP", "PROPN"],
    ["PROPN", "NOUN", "NUM", "NOUN"],
    ["PROPN", "PROPN", "AUX", "ADP", "PROPN"],
] * 4

LEARNING: dict[str, Any] = {
    "learning_rate": 8e-3,
    "max_epochs": 10,
    "batch_size": 4,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "precision": "float32",  # "auto" is bfloat16 where the processor has it
    "device": "cpu",
    "random_state": 0,
}


def tagger(name: str = "bert", **parameters: Any) -> TransformerTokenClassifier:
    """A tagger that learns the sentences; parameters replace those of `LEARNING`."""
    return TransformerTokenClassifier(str(tiny_checkpoint(name)), **{**LEARNING, **parameters})


def quick(name: str = "bert", **parameters: Any) -> TransformerTokenClassifier:
    """A tagger of one epoch, for tests that look at anything but what is learned."""
    return tagger(name, **{"max_epochs": 1, "batch_size": 8, **parameters})
