"""Fine-tuning against Hugging Face's Trainer and against a plain skorch loop, an optimizer step for an optimizer step.

The peers get their best documented settings: Trainer with dynamic padding or, where that is faster, with
``train_sampling_strategy="group_by_length"`` (which draws other batches: documents of like length share a step), fused
AdamW, sdpa attention, float32 as ours; skorch with its tokenizer padded to max_length, as its documentation shows, and
with fused AdamW, which it does not. Seconds run from the beginning of training to its end, as each library's own
callbacks see them: no loading, no tokenizing.

    python -m benchmarks.training [--rounds N] [--quick]
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from skorch import NeuralNetClassifier
from skorch.callbacks import Callback, GradientNormClipping, LRScheduler
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    get_linear_schedule_with_warmup,
)

from .common import (
    MINILM,
    Ceiling,
    Sample,
    Stopwatch,
    arguments,
    classifier_folder,
    forward_flops,
    in_subprocess,
    interleave,
    peak_rss,
    prepare,
    ratio,
    reset_peak,
    say,
    seconds,
    write,
)
from .corpus import TOPICS, Corpus, mails

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
        **{"device": "cpu", "precision": "float32", **parameters},
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


def hf_trainer(
    corpus: Corpus, settings: Settings, ask: list[str] | None = None, *, sampling: str = "random"
) -> Run:
    tokenizer = AutoTokenizer.from_pretrained(settings.folder)
    model = load(settings)
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
                train_sampling_strategy=sampling,
                bf16=False,
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

    def forward(self, **inputs: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.model(**inputs).logits
        return result


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


TRAINERS: dict[str, Callable[..., Run]] = {
    "sktransformer": ours,
    "HF Trainer, dynamic padding": hf_trainer,
    "HF Trainer, group by length": lambda *a, **k: hf_trainer(*a, **k, sampling="group_by_length"),
    "skorch, padded to max_length": skorch_padded,
}

# -- the sections ----------------------------------------------------------------------------------


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
    ceiling = Ceiling()
    runs: dict[str, Callable[[], Sample]] = {
        name: lambda train=TRAINERS[name]: train(corpus, settings).sample for name in names
    }
    samples = interleave({**runs, "matrix product": ceiling.probe}, rounds, warm_up=False)
    flops = 3 * settings.epochs * forward_flops(AutoConfig.from_pretrained(settings.folder), corpus.lengths)
    return {
        "steps": n_steps,
        "tokens": settings.epochs * corpus.n_tokens,
        "seconds_per_step": {name: seconds(samples[name], n_steps) for name in names},
        "times_faster": {name: ratio(samples[name], samples[names[0]]) for name in names[1:]},
        "ceiling_gflops": ceiling.best / 1e9,
        "share_of_ceiling": {name: ceiling.share(flops, samples[name]) for name in names},
    }


def accuracies(folder: Path, tokenizer: Any, quick: bool) -> dict[str, Any]:
    """Accuracy on new documents after the same number of steps, for several seeds; short documents, to afford it."""
    n_train, epochs, seeds = (64, 1, 1) if quick else (640, 4, 3)
    train, test = (mails(tokenizer, n, seed, median=27, longest=128) for n, seed in ((n_train, 1), (800, 2)))
    found: dict[str, Any] = {"documents": n_train, "epochs": epochs, "tokens": train.n_tokens, "accuracy": {}}
    times: dict[str, list[Sample]] = {}
    for seed in range(seeds):
        for name, run in TRAINERS.items():
            if name.startswith("skorch"):
                continue
            done = run(train, Settings(folder, epochs=epochs, seed=seed), test.texts)
            accuracy = float((done.logits.argmax(1) == test.labels).mean())
            found["accuracy"].setdefault(name, []).append(accuracy)
            times.setdefault(name, []).append(done.sample)
            say(f"  seed {seed}  {name:<34} accuracy {accuracy:.3f}  {done.sample.wall:7.1f} s")
    first = times["sktransformer"]
    found["times_faster"] = {name: ratio(times[name], first) for name in times if name != "sktransformer"}
    return found


def memory(quick: bool) -> dict[str, Any]:
    """Peak memory of a process that trains, above what it held with the model loaded and documents made."""
    found = {}
    for name in TRAINERS:
        found[name] = in_subprocess("benchmarks.training", "--peak-of", name, *(["--quick"] if quick else []))
        say(f"  peak of {name:<34} {found[name]['above_bytes'] / 1e6:8.0f} MB above the start of training")
    return found


def peak_of(name: str, options: argparse.Namespace) -> None:
    prepare(options)
    with classifier_folder(MINILM, len(TOPICS)) as folder:
        tokenizer = AutoTokenizer.from_pretrained(folder)
        corpus = mails(tokenizer, 16 if options.quick else 128, 3)
        settings = Settings(folder)
        small = mails(tokenizer, 2, 4, longest=16)
        TRAINERS[name](small, settings)  # imports and allocations that any run makes
        before = reset_peak()
        TRAINERS[name](corpus, settings)
        peak = peak_rss()
    say(json.dumps({"peak_bytes": peak, "above_bytes": peak - before}))


def main() -> None:
    parser = arguments(__doc__ or "", rounds=5)
    parser.add_argument("--peak-of", help=argparse.SUPPRESS)
    parser.add_argument(
        "--sections", nargs="+", default=["steps", "accuracy", "memory"], help="which parts to run"
    )
    options = parser.parse_args()
    if options.peak_of:
        peak_of(options.peak_of, options)
        return
    prepare(options)
    results: dict[str, Any] = {}
    with classifier_folder(MINILM, len(TOPICS)) as folder:
        tokenizer = AutoTokenizer.from_pretrained(folder)
        corpus = mails(tokenizer, BATCH if options.quick else 4 * BATCH, 0)
        results["same_step"] = {"largest_difference_of_logits": same_step(folder, tokenizer)}
        say(f"same step: logits differ by {results['same_step']['largest_difference_of_logits']:.1e}")
        if "steps" in options.sections:
            names = list(TRAINERS)
            results["steps"] = steps(corpus, Settings(folder), names, options.rounds)
            without = Settings(folder, attention_dropout=0.0)
            results["steps_without_attention_dropout"] = steps(corpus, without, names[:3], options.rounds)
        if "accuracy" in options.sections:
            results["accuracy"] = accuracies(folder, tokenizer, options.quick)
    if "memory" in options.sections:
        results["memory"] = memory(options.quick)
        ours_, *trainers = (results["memory"][name]["peak_bytes"] for name in list(TRAINERS)[:3])
        results["memory_times_trainer"] = ours_ / min(trainers)
    write(
        "training",
        options,
        results,
        {
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
            "precision": "float32",
            "optimizer": "fused AdamW",
        },
    )


if __name__ == "__main__":
    main()
