"""A small task of two classes that a tiny model learns in a few steps, and what trains on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

from sktransformer._engine.checkpoints.loading import Checkpoint
from sktransformer._engine.checkpoints.structure import first_position
from sktransformer._engine.text.batches import Collator, Layout
from sktransformer._engine.text.documents import Documents
from sktransformer._engine.text.encoding import TextEncoder
from sktransformer._engine.text.windows import Cut
from sktransformer._engine.training.data import DocumentTargets, TrainingData, normalized_weights
from sktransformer._engine.training.fit import TrainingSettings
from sktransformer._engine.training.losses import CrossEntropy, OnLogits
from sktransformer._engine.training.net import MicroBatchNet

CPU = torch.device("cpu")
GOOD = [
    "ce film était great",
    "I loved this movie",
    "merci pour le film",
    "le chat est assis sur le tapis rouge .",
]
BAD = ["affreux", "je l'ai détesté , détesté", "this was affreux , the lazy dog", "ça coûte 12 euros"]
TEXTS = [text for pair in zip(GOOD, BAD, strict=True) for text in pair] * 2


@dataclass
class Task:
    """A model without dropout, encoded documents and labels 0 and 1 in turn."""

    model: Any
    data: TrainingData
    collator: Collator
    settings: TrainingSettings

    def net(self, **changes: Any) -> MicroBatchNet:
        """Return a net that is ready to step."""
        options: dict[str, Any] = {
            "collator": self.collator,
            "token_budget": 64,
            "precision": torch.float32,
            "weight_decay": 0.01,
            "layer_decay": 1.0,
            "seed": 0,
            "lr": 1e-3,
            "max_epochs": 2,
            "batch_size": 4,
            **changes,
        }
        net = MicroBatchNet(self.model, OnLogits(CrossEntropy()), **options)
        net.data_ = self.data
        net.warned_ = False
        return net

    def with_settings(self, **changes: Any) -> TrainingSettings:
        return replace(self.settings, **changes)


SETTINGS = TrainingSettings(
    max_epochs=3,
    batch_size=4,
    learning_rate=2e-3,
    lr_schedule="linear",
    warmup_ratio=0.1,
    weight_decay=0.01,
    layer_decay=1.0,
    max_grad_norm=1.0,
    token_budget=64,
    precision=torch.float32,
    gradient_checkpointing=False,
    n_iter_no_change=2,
    seed=0,
    verbose=0,
)


@pytest.fixture
def make_task(fresh_checkpoint: Callable[..., Checkpoint]) -> Callable[..., Task]:
    """Return a function that makes a task of its own."""

    def make(
        name: str = "bert",
        layout: Layout = "packed",
        weights: Any = None,
        dropout: float | None = 0.0,
        **options: Any,
    ) -> Task:
        loaded = fresh_checkpoint(name, "classification", 2, dropout=dropout, attention_dropout=dropout)
        encoded = TextEncoder(loaded.tokenizer).encode(Documents(TEXTS), Cut(64))
        targets = torch.arange(len(TEXTS)) % 2
        data = TrainingData(encoded, DocumentTargets(targets), normalized_weights(weights, len(TEXTS)))
        config = loaded.model.config
        collator = Collator(
            layout if loaded.packable else "padded",
            loaded.tokenizer.pad_token_id,
            first_position(config),
            CPU,
            getattr(config, "type_vocab_size", 0) > 1,
        )
        return Task(loaded.model, data, collator, replace(SETTINGS, **options))

    return make
