"""What it costs to keep, move and import: joblib files, memory while writing them, loading, clone, import.

Memory and loading are measured in a fresh process each; imports are processes that take turns.

    python -m benchmarks.persistence [--rounds N] [--quick]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .common import (
    E5,
    MINILM,
    ROOT,
    Sample,
    arguments,
    classifier_folder,
    in_subprocess,
    interleave,
    peak_rss,
    prepare,
    ratio,
    reset_peak,
    say,
    seconds,
    summary,
    timed,
    write,
)
from .corpus import TOPICS

IMPORTS = {
    "import sklearn": "import sklearn",
    "import sktransformer": "import sktransformer",
    "from sktransformer import EmailCleaner": "from sktransformer import EmailCleaner",
    "from sktransformer import TransformerClassifier": "from sktransformer import TransformerClassifier",
}


def fresh_import(statement: str) -> Callable[[], Sample]:
    """Return a run of a new interpreter that executes `statement`."""

    def run() -> Sample:
        before, start = os.times(), time.perf_counter()
        subprocess.run([sys.executable, "-c", statement], cwd=ROOT, check=True)
        wall, after = time.perf_counter() - start, os.times()
        spent = after.children_user + after.children_system - before.children_user - before.children_system
        return Sample(wall, spent)

    return run


def imports(rounds: int) -> dict[str, Any]:
    """Seconds of each of `IMPORTS`, the bare interpreter taken off."""
    runs = {name: fresh_import(statement) for name, statement in {"python": "pass", **IMPORTS}.items()}
    samples = interleave(runs, rounds)
    bare = samples.pop("python")
    own = {
        name: [Sample(a.wall - b.wall, a.cpu - b.cpu) for a, b in zip(measured, bare, strict=True)]
        for name, measured in samples.items()
    }
    names = list(IMPORTS)
    return {
        "seconds": {name: seconds(measured) for name, measured in own.items()},
        "times_sklearn": ratio(own[names[1]], own[names[0]]),
    }


def saving(model: str, rounds: int) -> dict[str, Any]:
    """File size, peak memory of dump, seconds of dump and load, for a fitted classifier on `model`."""
    with classifier_folder(model, len(TOPICS)) as folder:
        runs = [
            in_subprocess("benchmarks.persistence", "--dump-and-load", str(folder)) for _ in range(rounds)
        ]
    for run in runs:
        say(f"  {model}: " + ", ".join(f"{key} {value:.4g}" for key, value in run.items()))
    return {key: summary([run[key] for run in runs]) for key in runs[0]}


def dump_and_load(folder: Path) -> None:  # long: one measurement, read from top to bottom
    """Measure in this process, and print one JSON object."""
    import joblib
    from sklearn.base import clone

    from sktransformer import TransformerClassifier

    classifier = TransformerClassifier.from_pretrained(folder, device="cpu", precision="float32")
    expected = classifier.predict_proba(["bonjour", "où est ma facture ?"])
    for parameter in classifier.model_.parameters():
        parameter.sum()  # weights may be mapped from their file: touched, they are part of what the process holds
    weights = sum(
        parameter.numel() * parameter.element_size() for parameter in classifier.model_.parameters()
    )
    with tempfile.TemporaryDirectory() as made:
        path = Path(made) / "model.joblib"
        held = reset_peak()
        dumped = timed(lambda: joblib.dump(classifier, path))()
        above = peak_rss() - held
        size = path.stat().st_size
        clones = [timed(lambda: clone(classifier))().wall for _ in range(50)]
        command = [sys.executable, "-m", "benchmarks.persistence", "--load", str(path)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = json.loads(done.stdout.splitlines()[-1])
    difference = max(
        abs(a - b) for a, b in zip(expected.ravel().tolist(), loaded.pop("probabilities"), strict=True)
    )
    if difference > 1e-6:
        raise SystemExit(f"the loaded classifier differs by {difference:.2g}")
    say(
        json.dumps(
            {
                "weights_bytes": weights,
                "file_bytes": size,
                "file_over_weights": size / weights,
                "dump_seconds": dumped.wall,
                "dump_peak_above_bytes": above,
                "dump_peak_above_over_weights": above / weights,
                "clone_seconds": statistics.median(clones),
                **loaded,
            }
        )
    )


def load(path: Path) -> None:
    """Load in this process, where nothing but the imports has happened, and print one JSON object."""
    import joblib

    held = reset_peak()
    start = time.perf_counter()
    classifier = joblib.load(path)
    took = time.perf_counter() - start
    above = peak_rss() - held
    probabilities = classifier.predict_proba(["bonjour", "où est ma facture ?"]).ravel().tolist()
    say(json.dumps({"load_seconds": took, "load_peak_above_bytes": above, "probabilities": probabilities}))


def main() -> None:
    parser = arguments(__doc__ or "", rounds=9)
    parser.add_argument("--dump-and-load", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--load", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    prepare(options)
    if options.dump_and_load:
        dump_and_load(options.dump_and_load)
        return
    if options.load:
        load(options.load)
        return
    models = [MINILM] if options.quick else [MINILM, E5]
    results = {
        "imports": imports(options.rounds),
        "saving": {model: saving(model, min(options.rounds, 3)) for model in models},
    }
    write("persistence", options, results, {"models": models})


if __name__ == "__main__":
    main()
