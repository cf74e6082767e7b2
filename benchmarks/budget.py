"""Which token budget is fastest, packed and padded, in float32 and bfloat16; and how time grows with the input.

The "auto" budgets of the estimators come from here. A budget changes no result, only how many tokens a forward pass
holds; padded batches are what architectures that can't be packed run on.

    python -m benchmarks.budget [--rounds N] [--quick]
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer

from sktransformer import TransformerClassifier

from .common import (
    MINILM,
    Sample,
    arguments,
    classifier_folder,
    interleave,
    matrix_ceiling,
    prepare,
    ratio,
    seconds,
    timed,
    write,
)
from .competitors import BATCH, SkorchWatch
from .corpus import TOPICS, Corpus, mails

BUDGETS = (256, 512, 1024, 2048, 4096)


class PaddedClassifier(TransformerClassifier):  # type: ignore[misc]
    """The classifier as it runs on an architecture that takes no packed rows."""

    def _collator(self, *args: Any) -> Any:
        return dataclasses.replace(super()._collator(*args), layout="padded")


LAYOUTS = {"packed": TransformerClassifier, "padded": PaddedClassifier}


def step(folder: Path, corpus: Corpus, layout: str, **parameters: Any) -> Callable[[], Sample]:
    """Return a run of one epoch of training, without loading."""

    def run() -> Sample:
        watch = SkorchWatch()
        parameters_ = {"precision": "float32", "device": "cpu", "random_state": 0, **parameters}
        classifier = LAYOUTS[layout](folder, batch_size=BATCH, max_epochs=1, callbacks=[watch], **parameters_)
        classifier.fit(corpus.texts, corpus.labels)
        return watch.sample

    return run


def predict(folder: Path, corpus: Corpus, layout: str, **parameters: Any) -> Callable[[], Sample]:
    """Return a run of predict_proba."""
    parameters = {"precision": "float32", "device": "cpu", **parameters}
    classifier = LAYOUTS[layout].from_pretrained(folder, **parameters)
    return timed(lambda: classifier.predict_proba(corpus.texts))


def budgets(folder: Path, tokenizer: Any, options: argparse.Namespace) -> dict[str, Any]:
    """Processor and wall seconds for each layout and budget: a training step, and predictions."""
    corpus = mails(tokenizer, 8 if options.quick else BATCH, 20)
    asked = mails(tokenizer, 8 if options.quick else 2 * BATCH, 21)
    tried = BUDGETS[1:3] if options.quick else BUDGETS
    found = {}
    for name, make, documents in (("training", step, corpus), ("inference", predict, asked)):
        runs = {
            f"{layout}, {budget}": make(folder, documents, layout, token_budget=budget)
            for layout in LAYOUTS
            for budget in tried
        }
        samples = interleave(runs, options.rounds, warm_up=False)
        found[name] = {
            "documents": len(documents.texts),
            "tokens": documents.n_tokens,
            "seconds": {key: seconds(values) for key, values in samples.items()},
            "best": min(samples, key=lambda key: statistics.median(sample.cpu for sample in samples[key])),
        }
    return found


def precisions(folder: Path, tokenizer: Any, options: argparse.Namespace) -> dict[str, Any]:
    """What bfloat16 brings on this processor, and how far it moves probabilities."""
    from sktransformer._engine.devices import has_bfloat16

    if not has_bfloat16(torch.device("cpu")):
        return {"has_bfloat16": False}
    corpus = mails(tokenizer, 8 if options.quick else BATCH, 22)
    runs = {
        f"{name}, {precision}": make(folder, corpus, "packed", precision=precision)
        for name, make in (("training", step), ("inference", predict))
        for precision in ("float32", "bfloat16")
    }
    samples = interleave(runs, options.rounds, warm_up=False)
    exact, rounded = (
        TransformerClassifier.from_pretrained(folder, device="cpu", precision=precision).predict_proba(
            corpus.texts
        )
        for precision in ("float32", "bfloat16")
    )
    return {
        "has_bfloat16": True,
        "ceiling_gflops": {
            name: matrix_ceiling(dtype) / 1e9
            for name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16))
        },
        "seconds": {name: seconds(values) for name, values in samples.items()},
        "times_faster": {
            name: ratio(samples[f"{name}, float32"], samples[f"{name}, bfloat16"])
            for name in ("training", "inference")
        },
        "largest_difference_of_probabilities": float(abs(exact - rounded).max()),
    }


def growth(folder: Path, tokenizer: Any, options: argparse.Namespace) -> dict[str, Any]:
    """Exponents of time: documents x1, x4, x16 at one length, and lengths x1, x4 at one number of documents."""
    few = 8 if options.quick else BATCH
    corpora = {
        "documents x1": mails(tokenizer, few, 30, median=27, longest=128),
        "documents x4": mails(tokenizer, 4 * few, 30, median=27, longest=128),
        "documents x16": mails(tokenizer, 16 * few, 30, median=27, longest=128),
        "lengths x4": mails(tokenizer, few, 30, median=108, longest=512),
    }
    found: dict[str, Any] = {"tokens": {name: corpus.n_tokens for name, corpus in corpora.items()}}
    for what, make in (("training", step), ("inference", predict)):
        runs = {name: make(folder, corpus, "packed") for name, corpus in corpora.items()}
        samples = interleave(runs, min(options.rounds, 3), warm_up=False)
        middle = {name: statistics.median(sample.cpu for sample in samples[name]) for name in runs}
        first = middle["documents x1"]
        found[what] = {
            "seconds": {name: seconds(values) for name, values in samples.items()},
            "exponent_of_documents": math.log(middle["documents x16"] / first) / math.log(16),
            "exponent_of_lengths": math.log(middle["lengths x4"] / first) / math.log(4),
        }
    return found


def main() -> None:
    options = arguments(__doc__ or "", rounds=5).parse_args()
    prepare(options)
    with classifier_folder(MINILM, len(TOPICS)) as folder:
        tokenizer = AutoTokenizer.from_pretrained(folder)
        parts = {"budgets": budgets, "precision": precisions, "growth": growth}
        results = {name: part(folder, tokenizer, options) for name, part in parts.items()}
    settings = {
        "model": MINILM,
        "budgets": BUDGETS,
        "batch_size": BATCH,
        "dropout": 0.1,
        "precision": "float32",
    }
    write("budget", options, results, settings)


if __name__ == "__main__":
    main()
