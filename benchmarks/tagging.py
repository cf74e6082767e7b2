"""Tagging: parts of speech in French, entities in English noise by three decodings, and what a CRF costs.

``../shared/data/ud_french_sequoia`` holds UD_French-Sequoia (train, dev); ``../shared/data/wnut17`` the files of the
WNUT 2017 shared task on emerging entities (train, dev, test). Settings are the same for all decodings and were not
tuned on what is scored here: the development part of Sequoia, the test part of WNUT.

    python -m benchmarks.tagging [--quick] [--parts cost legal entities words]
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from skorch.callbacks import Callback

from .common import (
    E5,
    ROOT,
    Sample,
    Stopwatch,
    arguments,
    interleave,
    prepare,
    ratio,
    say,
    seconds,
    write,
)

DATA = ROOT.parent / "shared" / "data"  # beside the repository
PARTS = ("cost", "legal", "entities", "words")
SHARED: dict[str, Any] = {
    "max_length": 256,
    "batch_size": 16,
    "learning_rate": 2e-4,
    "precision": "float32",
    "attention_dropout": 0.0,
    "random_state": 0,
}
WORDS: dict[str, Any] = {"freeze": 4, "max_epochs": 3}
ENTITIES: dict[str, Any] = {"freeze": "embeddings", "max_epochs": 4}
RANDOM, CLASSES = 10_000, ("PER", "LOC", "ORG")

Rows = tuple[list[list[str]], list[list[str]]]


# -- data ----------------------------------------------------------------------------------------------------------


def read_columns(path: Path, word: int, tag: int) -> Rows:
    """Read a file of a word a line, with its columns between tabs and sentences between empty lines."""
    if not path.exists():
        raise SystemExit(f"{path} is missing: see the top of this file for what belongs there.")
    X: list[list[str]] = [[]]
    y: list[list[str]] = [[]]
    for line in path.read_text(encoding="utf-8").split("\n"):
        columns = line.split("\t")
        if not line.strip():
            X.append([])
            y.append([])
        elif not line.startswith("# ") and len(columns) > tag and columns[0].isdigit() | (word == 0):
            X[-1].append(columns[word])
            y[-1].append(columns[tag])
    return [row for row in X if row], [row for row in y if row]


def sequoia(data: Path, part: str) -> Rows:
    """Words and universal parts of speech; lines of joined words ("1-2") are left out."""
    return read_columns(data / "ud_french_sequoia" / f"fr_sequoia-ud-{part}.conllu", 1, 3)


def wnut(data: Path, part: str) -> Rows:
    """Words and entities in IOB2."""
    names = {"train": "wnut17train.conll", "dev": "emerging.dev.conll", "test": "emerging.test.annotated"}
    return read_columns(data / "wnut17" / names[part], 0, 1)


def some(rows: Rows, n: int | None) -> Rows:
    return rows[0][:n], rows[1][:n]


# -- parts ---------------------------------------------------------------------------------------------------------


class StepClock(Callback):
    """Adds up the seconds of a fit's optimizer steps, with their forward and backward passes."""

    def on_train_begin(self, net: Any, **kwargs: Any) -> None:
        self.wall = self.cpu = 0.0
        self.steps = 0

    def on_batch_begin(self, net: Any, **kwargs: Any) -> None:
        self.begun = time.perf_counter(), time.process_time()

    def on_batch_end(self, net: Any, **kwargs: Any) -> None:
        self.wall += time.perf_counter() - self.begun[0]
        self.cpu += time.process_time() - self.begun[1]
        self.steps += 1


def tagger(**settings: Any) -> Any:
    from sktransformer import TransformerTokenClassifier

    return TransformerTokenClassifier(E5, **{**SHARED, **settings})


def cost(data: Path, quick: bool, rounds: int) -> dict[str, Any]:
    """Optimizer steps with a CRF beside those without, on the same sentences in the same order, in turns."""
    X, y = some(wnut(data, "train"), 32 if quick else 160)

    def run(decoding: str) -> Any:
        def measure() -> Sample:
            clock = StepClock()
            tagger(decoding=decoding, freeze="embeddings", max_epochs=1, callbacks=[clock]).fit(X, y)
            return Sample(clock.wall / clock.steps, clock.cpu / clock.steps)

        return measure

    samples = interleave({"softmax": run("argmax"), "crf": run("crf")}, rounds)
    found = {name: seconds(rows) for name, rows in samples.items()}
    more = ratio(samples["crf"], samples["softmax"])
    say(f"  a step with a CRF takes {more['cpu']['median']:.3f} times one without (processor time)")
    alone = chain_alone(
        [len(row) for row in X[: SHARED["batch_size"]]], len({tag for row in y for tag in row})
    )
    share = alone["cpu"]["median"] / found["softmax"]["cpu"]["median"]
    say(f"  its sums and their gradient alone are {share:.4f} of a step (processor time)")
    return {
        "seconds_a_step": found,
        "times_longer": more,
        "chain_alone": alone,
        "chain_over_step": share,
        "sentences": len(X),
    }


def chain_alone(lengths: Sequence[int], n_tags: int) -> dict[str, Any]:
    """Seconds of a CRF's likelihood and gradient for one batch, without the encoder: where noise hides the ratio."""
    from sktransformer.nn.crf import LinearChainCRF

    generator = torch.Generator().manual_seed(0)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    emissions = torch.randn(*mask.shape, n_tags, generator=generator, requires_grad=True)
    labels = torch.randint(n_tags, mask.shape, generator=generator)
    crf, samples = LinearChainCRF(n_tags), []
    for _ in range(30):
        watch = Stopwatch()
        watch.start()
        (-crf(emissions, labels, mask).mean()).backward()
        samples.append(watch.stop())
    return seconds(samples[5:])


def legal(data: Path, quick: bool, rounds: int) -> dict[str, Any]:
    """Count illegal sequences in random scores, by scheme and decoding."""
    from sktransformer.tasks._tagging.chains import best_tags, chain_of
    from sktransformer.tasks._tagging.schemes import PREFIXES, first_fault

    n, found = (500 if quick else RANDOM), {}
    for scheme, prefixes in PREFIXES.items():
        tags = ["O", *(f"{prefix}-{kind}" for prefix in prefixes for kind in CLASSES)]
        random = np.random.default_rng(0)
        scores = [
            10 * random.standard_normal((length, len(tags)), dtype=np.float32)
            for length in random.integers(1, 40, n)
        ]
        learned = chain_of(tags, scheme)
        generator = torch.Generator().manual_seed(0)
        for parameter in learned.parameters():
            parameter.data = 5 * torch.randn(parameter.shape, generator=generator)
        chains = {"argmax": None, "bio": chain_of(tags, scheme).double(), "crf": learned.double()}
        found[scheme] = {
            decoding: sum(
                first_fault([tags[c] for c in row], scheme) is not None for row in best_tags(scores, chain)
            )
            for decoding, chain in chains.items()
        }
        say(f"  {scheme}: illegal sequences of {n}: {found[scheme]}")
    return {"sequences": n, "illegal": found}


def entities(data: Path, quick: bool, rounds: int) -> dict[str, Any]:
    """Entity F1 of the three decodings; "argmax" and "bio" are two readings of one fit."""
    train, test = (
        some(wnut(data, "train"), 64 if quick else None),
        some(wnut(data, "test"), 64 if quick else None),
    )
    found: dict[str, Any] = {"train": len(train[0]), "test": len(test[0])}
    for fitted_with, read_with in (("argmax", ("argmax", "bio")), ("crf", ("crf",))):
        watch = Stopwatch()
        watch.start()
        model = tagger(decoding=fitted_with, **{**ENTITIES, **({"max_epochs": 1} if quick else {})}).fit(
            *train
        )
        spent = watch.stop()
        for decoding in read_with:
            score = float(model.set_params(decoding=decoding).score(*test))
            found[decoding] = {"entity_f1": score, "fit_cpu_seconds": spent.cpu, **illegal(model, test[0])}
            say(f"  {decoding:<8} entity F1 {score:.4f}  fit {spent.cpu:.0f} s  {illegal(model, test[0])}")
    return found


def illegal(model: Any, X: Sequence[Sequence[str]]) -> dict[str, int]:
    from sktransformer.tasks._tagging.schemes import first_fault

    return {
        "illegal_sentences": sum(first_fault(row.tolist(), "IOB2") is not None for row in model.predict(X))
    }


def words(data: Path, quick: bool, rounds: int) -> dict[str, Any]:
    """Accuracy of parts of speech on the development part."""
    train = some(sequoia(data, "train"), 64 if quick else None)
    dev = some(sequoia(data, "dev"), 64 if quick else None)
    watch = Stopwatch()
    watch.start()
    model = tagger(decoding="argmax", **{**WORDS, **({"max_epochs": 1} if quick else {})}).fit(*train)
    spent = watch.stop()
    score = float(model.score(*dev))
    say(f"  parts of speech: accuracy {score:.4f}  fit {spent.cpu:.0f} s")
    return {
        "train": len(train[0]),
        "dev": len(dev[0]),
        "dev_words": sum(map(len, dev[0])),
        "accuracy": score,
        "fit_cpu_seconds": spent.cpu,
        "tags": model.classes_.tolist(),
    }


def main() -> None:
    parser = arguments(__doc__ or "", rounds=7)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the two corpora (%(default)s)")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="what to run (all)")
    options = parser.parse_args()
    prepare(options)
    warnings.simplefilter("ignore", ConvergenceWarning)  # a quick run finds nothing but "O"
    settings = {"encoder": E5, "shared": SHARED, "words": WORDS, "entities": ENTITIES}
    runs = {"cost": cost, "legal": legal, "entities": entities, "words": words}
    for part in options.parts:  # a file each: all of it takes an hour of one core
        say(part)
        write(f"tagging_{part}", options, runs[part](options.data, options.quick, options.rounds), settings)


if __name__ == "__main__":
    main()
