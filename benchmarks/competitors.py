"""The competitors of training.py: one workload in, seconds of the training loop (and logits, when asked) out.

Trainer has fused AdamW, sdpa attention and the precision of ours; skorch has its tokenizer padded to max_length, as its
documentation shows, and fused AdamW, which it does not. Schedules, decay and clipping are the same everywhere.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from skorch import NeuralNetClassifier
from skorch.callbacks import Callback, GradientNormClipping, LRScheduler
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    get_linear_schedule_with_warmup,
)
from transformers.trainer_pt_utils import get_length_grouped_indices

from .common import Sample, Stopwatch
from .corpus import Corpus

GROUPED_BATCHES = 4  # that group_by_length sorts at once, in a data set of 512 documents
FEW_BATCHES = 2  # the same in one of 256 documents, as many as a half of the sample inbox holds
OURS = "sktransformer"
DYNAMIC = "HF Trainer, dynamic padding"
PADDED = "skorch, padded to max_length"
GROUPED = "HF Trainer, group by length"
GROUPED_FEW = "HF Trainer, group by length, of 256 documents"
BATCH, LEARNING_RATE, WARMUP, WEIGHT_DECAY, MAX_NORM, MAX_LENGTH = 32, 2e-4, 0.1, 0.01, 1.0, 512


@dataclass(frozen=True)
class Run:
    """What a training run leaves: its seconds without loading, and logits of the texts that were asked about."""

    sample: Sample
    logits: np.ndarray | None = None


@dataclass(frozen=True)
class Settings:
    """One workload; the same for every competitor."""

    folder: Path
    epochs: int = 1
    attention_dropout: float = 0.1
    dropout: float = 0.1
    warmup: float = WARMUP
    seed: int = 0
    precision: str = "float32"  # or "bfloat16": of everyone's matrix products


# -- ours ------------------------------------------------------------------------------------------


class SkorchWatch(Callback):  # type: ignore[misc]
    """Seconds of the training loop."""

    def on_train_begin(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
        self.watch = Stopwatch()
        self.watch.start()

    def on_train_end(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
        self.sample = self.watch.stop()


def ours(corpus: Corpus, settings: Settings, ask: list[str] | None = None, **parameters: Any) -> Run:
    from sktransformer import TransformerClassifier

    watch = SkorchWatch()
    classifier = TransformerClassifier(
        settings.folder,
        max_length=MAX_LENGTH,
        max_epochs=settings.epochs,
        batch_size=BATCH,
        learning_rate=LEARNING_RATE,
        warmup_ratio=settings.warmup,
        weight_decay=WEIGHT_DECAY,
        max_grad_norm=MAX_NORM,
        dropout=settings.dropout,
        attention_dropout=settings.attention_dropout,
        callbacks=[watch],
        random_state=settings.seed,
        **{"device": "cpu", "precision": settings.precision, **parameters},
    )
    classifier.fit(corpus.texts, corpus.labels)
    return Run(watch.sample, None if ask is None else classifier.decision_function(ask))


# -- the peers -------------------------------------------------------------------------------------


class TrainerWatch(TrainerCallback):  # type: ignore[misc]
    """Seconds of the training loop."""

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.watch = Stopwatch()
        self.watch.start()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.sample = self.watch.stop()


def load(settings: Settings) -> Any:
    return AutoModelForSequenceClassification.from_pretrained(
        settings.folder,
        dtype=torch.float32,
        attention_probs_dropout_prob=settings.attention_dropout,
        hidden_dropout_prob=settings.dropout,
    )


def hf_trainer(corpus: Corpus, settings: Settings, ask: list[str] | None = None, *, grouped: int = 0) -> Run:
    tokenizer = AutoTokenizer.from_pretrained(settings.folder)
    model = load(settings)
    if grouped:  # batches that group_by_length sorts at once
        order = get_length_grouped_indices(corpus.lengths.tolist(), BATCH, mega_batch_mult=grouped)
        corpus = corpus.take(order)
    ids = tokenizer(corpus.texts, truncation=True, max_length=MAX_LENGTH)["input_ids"]
    rows = [{"input_ids": i, "labels": int(label)} for i, label in zip(ids, corpus.labels, strict=True)]
    watch = TrainerWatch()
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            model,
            TrainingArguments(
                output_dir=folder,
                per_device_train_batch_size=BATCH,
                num_train_epochs=settings.epochs,
                learning_rate=LEARNING_RATE,
                lr_scheduler_type="linear",
                warmup_steps=settings.warmup,
                weight_decay=WEIGHT_DECAY,
                max_grad_norm=MAX_NORM,
                optim="adamw_torch_fused",
                train_sampling_strategy="sequential" if grouped else "random",
                bf16=settings.precision == "bfloat16",
                use_cpu=True,
                dataloader_pin_memory=False,
                save_strategy="no",
                logging_strategy="no",
                report_to="none",
                disable_tqdm=True,
                seed=settings.seed,
            ),
            data_collator=DataCollatorWithPadding(tokenizer),
            train_dataset=rows,
            callbacks=[watch],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return Run(watch.sample, None if ask is None else logits(model, tokenizer, ask))


class Module(torch.nn.Module):
    """A Transformers model as a skorch module: logits instead of an output object."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.model = load(settings)
        self.narrow = settings.precision == "bfloat16"

    def forward(self, **inputs: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.narrow):
            result: torch.Tensor = self.model(**inputs).logits
        return result.float()


def skorch_padded(corpus: Corpus, settings: Settings, ask: list[str] | None = None) -> Run:
    tokenizer = AutoTokenizer.from_pretrained(settings.folder)
    inputs = tokenizer(
        corpus.texts, padding="max_length", truncation=True, max_length=MAX_LENGTH, return_tensors="pt"
    )
    n_steps = settings.epochs * -(-len(corpus.texts) // BATCH)
    watch = SkorchWatch()
    torch.manual_seed(settings.seed)
    net = NeuralNetClassifier(
        Module,
        module__settings=settings,
        criterion=torch.nn.CrossEntropyLoss,
        optimizer=torch.optim.AdamW,
        optimizer__fused=True,
        optimizer__weight_decay=WEIGHT_DECAY,
        lr=LEARNING_RATE,
        max_epochs=settings.epochs,
        batch_size=BATCH,
        iterator_train__shuffle=True,
        train_split=None,
        verbose=0,
        callbacks=[
            LRScheduler(
                get_linear_schedule_with_warmup,
                num_warmup_steps=int(np.ceil(settings.warmup * n_steps)),
                num_training_steps=n_steps,
                step_every="batch",
            ),
            GradientNormClipping(MAX_NORM),
            watch,
        ],
    )
    net.fit(dict(inputs), torch.from_numpy(corpus.labels))
    return Run(watch.sample, None if ask is None else logits(net.module_.model, tokenizer, ask))


def logits(model: Any, tokenizer: Any, texts: list[str]) -> np.ndarray:
    model.eval()
    rows = []
    with torch.inference_mode():
        for text in texts:
            inputs = tokenizer(text, truncation=True, max_length=MAX_LENGTH, return_tensors="pt")
            rows.append(model(**inputs).logits[0].numpy())
    return np.stack(rows)


COMPETITORS: dict[str, Callable[..., Run]] = {
    OURS: ours,
    DYNAMIC: hf_trainer,
    GROUPED: partial(hf_trainer, grouped=GROUPED_BATCHES),
    GROUPED_FEW: partial(hf_trainer, grouped=FEW_BATCHES),
    PADDED: skorch_padded,
}
