"""What training leaves beside its seconds: accuracy on new documents, and peak memory; against Trainer.

The same number of optimizer steps at the same settings, a few seeds; short documents, to afford it. The competitors
are those of training.py, in the fastest precision of the chip.

    python -m benchmarks.training_outcome [--quick]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from transformers import AutoTokenizer

from .common import (
    MINILM,
    Sample,
    arguments,
    best_precision,
    classifier_folder,
    in_subprocess,
    peak_rss,
    prepare,
    ratio,
    reset_peak,
    say,
    write,
)
from .competitors import BATCH, COMPETITORS, DYNAMIC, GROUPED, OURS, PADDED, Settings
from .corpus import TOPICS, mails
from .training import described


def accuracies(shared: Settings, tokenizer: Any, quick: bool) -> Iterator[dict[str, Any]]:
    """Accuracy on new documents after the same number of steps, of a seed more at each turn."""
    n_train, epochs, seeds = (64, 1, 1) if quick else (384, 4, 3)
    sizes = {"median": 27, "longest": 128, "topical": 0.3}
    train, test = mails(tokenizer, n_train, 1, **sizes), mails(tokenizer, 1000, 2, **sizes)
    accuracy: dict[str, list[float]] = {OURS: [], DYNAMIC: []}
    times: dict[str, list[Sample]] = {OURS: [], DYNAMIC: []}
    for seed in range(seeds):
        for name in accuracy:
            done = COMPETITORS[name](train, replace(shared, epochs=epochs, seed=seed), test.texts)
            accuracy[name].append(float((done.logits.argmax(1) == test.labels).mean()))
            times[name].append(done.sample)
            say(f"  seed {seed}  {name:<34} accuracy {accuracy[name][-1]:.3f}  {done.sample.cpu:7.1f} s")
        yield {
            "documents": n_train,
            "epochs": epochs,
            "tokens": train.n_tokens,
            "accuracy": accuracy,
            "times_faster": {DYNAMIC: ratio(times[DYNAMIC], times[OURS])},
        }


def memory(quick: bool) -> dict[str, Any]:
    """Peak memory of a process that trains, above what it held with the model loaded and documents made."""
    found = {}
    for name in (OURS, DYNAMIC, GROUPED, PADDED):
        found[name] = in_subprocess(
            "benchmarks.training_outcome", "--peak-of", name, *(["--quick"] if quick else [])
        )
        say(f"  peak of {name:<34} {found[name]['above_bytes'] / 1e6:8.0f} MB above the start of training")
    return found


def peak_of(name: str, options: argparse.Namespace) -> None:
    prepare(options)
    with classifier_folder(MINILM, len(TOPICS)) as folder:
        tokenizer = AutoTokenizer.from_pretrained(folder)
        corpus = mails(tokenizer, 16 if options.quick else 2 * BATCH, 3)
        settings = Settings(folder, precision=best_precision())
        small = mails(tokenizer, 16, 4, longest=16)
        COMPETITORS[name](small, settings)  # imports and allocations that any run makes
        before = reset_peak()
        COMPETITORS[name](corpus, settings)
        peak = peak_rss()
    say(json.dumps({"peak_bytes": peak, "above_bytes": peak - before}))


def main() -> None:
    parser = arguments(__doc__ or "", rounds=1)
    parser.add_argument("--peak-of", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak_of:
        peak_of(options.peak_of, options)
        return
    prepare(options)
    results: dict[str, Any] = {"memory": memory(options.quick)}
    ours_, *trainers = (results["memory"][name]["peak_bytes"] for name in (OURS, DYNAMIC, GROUPED))
    results["memory_times_trainer"] = ours_ / min(trainers)
    with classifier_folder(MINILM, len(TOPICS)) as folder:
        tokenizer = AutoTokenizer.from_pretrained(folder)
        shared = Settings(folder, precision=best_precision())
        settings = described(mails(tokenizer, 16 if options.quick else 2 * BATCH, 3), shared)
        write("training_outcome", options, results, settings)
        for results["accuracy"] in accuracies(shared, tokenizer, options.quick):
            write("training_outcome", options, results, settings)  # a seed more: an hour's run may be cut


if __name__ == "__main__":
    main()
