"""Mails of two and three kinds, and settings under which a tiny random model learns them in half a second."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from sktransformer.tasks._base import TransformerEstimator
from sktransformer.tasks.classification import TransformerClassifier
from sktransformer.testing.checkpoints import tiny_checkpoint

INVOICES = [
    "facture impayée du mois de mai",
    "ma facture est fausse, merci de corriger",
    "je conteste le montant de cette facture",
    "double prélèvement sur la facture d'avril",
    "pouvez-vous m'envoyer ma facture en PDF",
    "le montant facturé ne correspond pas au devis",
]
PARCELS = [
    "le colis est en retard",
    "où est mon colis ?",
    "le livreur n'est jamais passé",
    "colis reçu ouvert et abîmé, que faire",
    "la livraison était prévue lundi",
    "livraison à la mauvaise adresse !",
]
CANCELLATIONS = [
    "je veux résilier mon contrat",
    "merci de résilier l'abonnement au 1er juin",
    "comment résilier sans frais ?",
    "résiliation demandée, sans réponse",
    "je résilie, votre service est trop lent",
    "demande de résiliation par e-mail",
]

LEARNING: dict[str, Any] = {
    "learning_rate": 4e-3,
    "max_epochs": 12,
    "batch_size": 4,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "precision": "float32",  # "auto" is bfloat16 where the processor has it
    "device": "cpu",  # where results are the same to the bit
    "random_state": 0,
}


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> Iterator[None]:
    """Models of width 32 gain nothing from threads, and lose much where others use the cores too."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def mails() -> list[str]:
    """24 mails, facture and livraison in turns."""
    return [text for pair in zip(INVOICES, PARCELS, strict=True) for text in pair] * 2


@pytest.fixture
def labels() -> list[str]:
    return ["facture", "livraison"] * 12


@pytest.fixture
def three_mails() -> list[str]:
    """18 mails of three kinds in turns."""
    return [text for row in zip(INVOICES, PARCELS, CANCELLATIONS, strict=True) for text in row]


@pytest.fixture
def three_labels() -> list[str]:
    return ["facture", "livraison", "résiliation"] * 6


@pytest.fixture
def classifier() -> Callable[..., TransformerClassifier]:
    """Make a classifier that learns the mails; parameters replace those of `LEARNING`."""

    def make(name: str = "camembert", **parameters: Any) -> TransformerClassifier:
        return TransformerClassifier(tiny_checkpoint(name), **{**LEARNING, **parameters})

    return make


@pytest.fixture
def quick(classifier: Callable[..., TransformerClassifier]) -> Callable[..., TransformerClassifier]:
    """Make a classifier of one epoch, for tests that look at anything but what is learned."""

    def make(name: str = "camembert", **parameters: Any) -> TransformerClassifier:
        return classifier(name, **{"max_epochs": 1, "batch_size": 8, "learning_rate": 1e-3, **parameters})

    return make


@pytest.fixture
def padded(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return a function after which everything is padded, also where the model could be packed."""
    collator = TransformerEstimator._collator

    def force() -> None:
        monkeypatch.setattr(
            TransformerEstimator,
            "_collator",
            lambda self, *args: dataclasses.replace(collator(self, *args), layout="padded"),
        )

    return force


@pytest.fixture
def learning() -> dict[str, Any]:
    return dict(LEARNING)
