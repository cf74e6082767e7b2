"""Semantic similarity of French pairs (STS-B, translated): the cosine of an encoder, frozen and
tuned on graded pairs, and a cross-encoder.

``../shared/data/stsb_fr`` holds 5,749 training and 1,500 development pairs with scores from 0 to 5. The development
part is scored once a model; nothing is chosen on it.

    python -m benchmarks.regression [--quick]
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score

from .common import E5, ROOT, Stopwatch, arguments, prepare, say, write

DATA = ROOT.parent / "shared" / "data" / "stsb_fr"  # beside the repository
SEED = 0
Pairs = list[tuple[str, str]]


def read(folder: Path, part: str) -> tuple[Pairs, np.ndarray]:
    """Return the pairs and scores of a split, or end with what is missing."""
    path = folder / f"stsb-fr-{part}.csv"
    if not path.exists():
        raise SystemExit(
            f"{path} is missing: put stsb-fr-{part}.csv of github.com/PhilipMay/stsb-multi-mt (data/) there."
        )
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    return [(row[0], row[1]) for row in rows], np.array([float(row[2]) for row in rows])


class Cosine:
    """The cosine of two vectors, and a line from it to the score; the encoder is frozen, or tuned on grades."""

    def __init__(self, **tuned: Any) -> None:
        from sktransformer import TransformerEmbedder

        self.tuned = bool(tuned)
        options = {"prompt": "query: ", "precision": "float32", "max_length": 128, "random_state": SEED}
        self.embedder = TransformerEmbedder(E5, **options, **tuned)
        self.line = LinearRegression()

    def fit(self, X: Pairs, y: np.ndarray) -> Cosine:
        self.embedder.fit(*((X, y) if self.tuned else ([X[0][0]],)))
        self.line.fit(self._cosine(X), y)
        return self

    def predict(self, X: Pairs) -> np.ndarray:
        return self.line.predict(self._cosine(X))

    def _cosine(self, X: Pairs) -> np.ndarray:
        first, second = (self.embedder.transform([pair[i] for pair in X]) for i in (0, 1))
        return (first * second).sum(axis=1, keepdims=True)  # vectors have length 1


def score(name: str, estimator: Any, train: tuple[Pairs, np.ndarray], dev: tuple[Pairs, np.ndarray]) -> Any:
    """Fit on the training part and score the development part."""
    watch = Stopwatch()
    watch.start()
    estimator.fit(*train)
    fitted = watch.stop()
    watch.start()
    predicted = estimator.predict(dev[0])
    asked = watch.stop()
    found = {
        "spearman": float(spearmanr(dev[1], predicted).statistic),
        "r2": float(r2_score(dev[1], predicted)),
        "fit_cpu_seconds": fitted.cpu,
        "milliseconds_per_pair": asked.cpu / len(dev[0]) * 1000,
    }
    say(f"  {name:<44} Spearman {found['spearman']:.3f}  R2 {found['r2']:.3f}  fit {fitted.cpu:.1f} s")
    return found


def main() -> None:
    parser = arguments(__doc__ or "", rounds=1, threads=1)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the two files (%(default)s)")
    parser.add_argument("--pairs", type=int, default=1500, help="pairs to train on (%(default)s)")
    parser.add_argument("--epochs", type=int, default=3)
    options = parser.parse_args()
    prepare(options)
    from sktransformer import TransformerRegressor

    X, y = read(options.data, "train")
    dev = read(options.data, "dev")
    n = 64 if options.quick else min(options.pairs, len(X))
    rows = np.random.default_rng(SEED).permutation(len(X))[:n]
    train = [X[i] for i in rows], y[rows]
    if options.quick:
        dev = dev[0][:100], dev[1][:100]
    tuned = TransformerRegressor(
        E5, max_length=128, batch_size=16, learning_rate=2e-4, max_epochs=1 if options.quick else options.epochs,
        freeze="embeddings", attention_dropout=0.0, precision="float32", random_state=SEED,
    )  # fmt: skip
    graded = Cosine(
        fine_tune="graded", batch_size=32, learning_rate=1e-4, freeze="embeddings", attention_dropout=0.0,
        max_epochs=1 if options.quick else options.epochs,
    )  # fmt: skip
    results = {}
    settings = {"train": n, "dev": len(dev[0]), "encoder": E5, "epochs": tuned.max_epochs, "seed": SEED}
    for name, estimator in (
        ("frozen multilingual-e5-small, cosine", Cosine()),
        ("multilingual-e5-small tuned on graded pairs, cosine", graded),
        ("fine-tuned multilingual-e5-small, pairs", tuned),
    ):
        results[name] = score(name, estimator, train, dev)
        write("regression", options, results, settings)


if __name__ == "__main__":
    main()
