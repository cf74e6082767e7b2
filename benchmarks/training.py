"""Fine-tuning against Hugging Face's Trainer and against a plain skorch loop, an optimizer step for an optimizer step.

The peers get their best documented settings (competitors.py), and all the faster precision of the chip: bfloat16 where
it has that, and then float32 beside it. Seconds run from the beginning of training to its end, as each library's own
callbacks see them: no loading, no tokenizing.

Grouping by length is another training: documents of like length share a step, so that batches are no longer drawn at
random. How well it groups depends on the size of the data set: it sorts runs of n / (4 * batch_size) batches, at most
50, and none below 8 * batch_size documents. The documents of a timed run are ordered as in a data set of 512, and of
256.

    python -m benchmarks.training [--rounds N] [--quick]
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoConfig, AutoTokenizer

from .common import (
    MINILM,
    Ceiling,
    Sample,
    arguments,
    best_precision,
    classifier_folder,
    forward_flops,
    interleave,
    prepare,
    ratio,
    say,
    seconds,
    write,
)
from .competitors import (
    BATCH,
    COMPETITORS,
    GROUPED_BATCHES,
    LEARNING_RATE,
    MAX_LENGTH,
    MAX_NORM,
    PADDED,
    WARMUP,
    WEIGHT_DECAY,
    Settings,
    hf_trainer,
    ours,
)
from .corpus import TOPICS, Corpus, mails


def same_step(folder: Path, tokenizer: Any) -> float:
    """Largest difference of logits after three steps of ours and of Trainer's, without dropout; it must be rounding.

    One batch an epoch, so that both see the same documents at each step.
    """
    corpus = mails(tokenizer, BATCH, 5, median=27, longest=128)
    settings = Settings(folder, epochs=3, attention_dropout=0.0, dropout=0.0, warmup=0.0)
    asked = corpus.texts[:8]
    difference = float(
        np.abs(ours(corpus, settings, asked).logits - hf_trainer(corpus, settings, asked).logits).max()
    )
    if difference > 1e-3:
        raise SystemExit(
            f"the competitors train differently: logits differ by {difference:.2g} after three steps"
        )
    return difference


def steps(corpus: Corpus, settings: Settings, names: list[str], rounds: int) -> dict[str, Any]:
    """Seconds a step of `names`, and how many times faster ours is than each."""
    n_steps = settings.epochs * -(-len(corpus.texts) // BATCH)
    ceiling = Ceiling(getattr(torch, settings.precision))

    def run(name: str) -> Sample:
        if name != PADDED:
            return COMPETITORS[name](corpus, settings).sample
        # padded to max_length each step costs the same: one is enough, counted as if all had been run
        part = corpus.take(range(min(BATCH, len(corpus.texts))))
        sample = COMPETITORS[name](part, settings).sample
        share = len(corpus.texts) / len(part.texts)
        return Sample(sample.wall * share, sample.cpu * share)

    runs = {name: partial(run, name) for name in names}
    samples = interleave({**runs, "matrix product": ceiling.probe}, rounds, warm_up=False)
    flops = 3 * settings.epochs * forward_flops(AutoConfig.from_pretrained(settings.folder), corpus.lengths)
    return {
        "precision": settings.precision,
        "steps": n_steps,
        "tokens": settings.epochs * corpus.n_tokens,
        "seconds_per_step": {name: seconds(samples[name], n_steps) for name in names},
        "times_faster": {name: ratio(samples[name], samples[names[0]]) for name in names[1:]},
        "ceiling_gflops": ceiling.best / 1e9,
        "share_of_ceiling": {name: ceiling.share(flops, samples[name]) for name in names},
    }


def main() -> None:
    options = arguments(__doc__ or "", rounds=5).parse_args()
    prepare(options)
    results: dict[str, Any] = {}
    with classifier_folder(MINILM, len(TOPICS)) as folder:
        tokenizer = AutoTokenizer.from_pretrained(folder)
        corpus = mails(tokenizer, BATCH if options.quick else GROUPED_BATCHES * BATCH, 0)
        results["same_step"] = {"largest_difference_of_logits": same_step(folder, tokenizer)}
        say(f"same step: logits differ by {results['same_step']['largest_difference_of_logits']:.1e}")
        best = Settings(folder, precision=best_precision())
        unpadded = [name for name in COMPETITORS if name != PADDED]
        results["steps"] = steps(corpus, best, list(COMPETITORS), options.rounds)
        write("training", options, results, described(corpus, best))  # so far: a run may be cut
        results["steps_without_attention_dropout"] = steps(
            corpus, replace(best, attention_dropout=0.0), unpadded, options.rounds
        )
        write("training", options, results, described(corpus, best))
        wide = replace(best, precision="float32")
        results["steps_float32"] = (
            results["steps"] if wide == best else steps(corpus, wide, unpadded, options.rounds)
        )
        write("training", options, results, described(corpus, best))


def described(corpus: Corpus, settings: Settings) -> dict[str, Any]:
    """Return the settings that all competitors share."""
    return {
        "model": MINILM,
        "batch_size": BATCH,
        "learning_rate": LEARNING_RATE,
        "lr_schedule": "linear",
        "warmup_ratio": WARMUP,
        "weight_decay": WEIGHT_DECAY,
        "max_grad_norm": MAX_NORM,
        "dropout": 0.1,
        "max_length": MAX_LENGTH,
        "documents": len(corpus.texts),
        "mean_tokens": float(corpus.lengths.mean()),
        "longest_tokens": int(corpus.lengths.max()),
        "precision": settings.precision,
        "optimizer": "fused AdamW",
    }


if __name__ == "__main__":
    main()
