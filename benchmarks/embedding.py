"""Embeddings: what fewer bytes cost, what the cache saves.

``../shared/data`` holds BANKING77 (customer questions in 77 classes) and short French customer messages.

- bytes: how many of the ten nearest documents by float32 are among the ten nearest by int8 and by binary vectors.
- cache: a grid search of 5 folds x 20 points over 1000 messages, with a cache and without. Without, `--points-off` of
  the 20 points are measured and the time is multiplied: all points cost about the same.

    python -m benchmarks.embedding [--quick] [--sections bytes cache] [--points-off N]
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from sktransformer import TransformerEmbedder

from .cleaning_gain import read
from .common import E5, MINILM, ROOT, Sample, Stopwatch, arguments, prepare, say, summary, write

DATA = ROOT.parent / "shared" / "data"  # beside the repository
SECTIONS = ("bytes", "cache")


def rows_of(*parts: str) -> list[list[str]]:
    """Return the rows of a CSV file of the data folder, or end with what is missing."""
    path = DATA.joinpath(*parts)
    if not path.exists():
        raise SystemExit(
            f"{path} is missing; see the SOURCE.txt files of the data folder for where it comes from."
        )
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def measured(run: Callable[[], Any]) -> tuple[Any, Sample]:
    """Return what a function returns, and how long it took."""
    watch = Stopwatch()
    watch.start()
    found = run()
    return found, watch.stop()


def questions(part: str) -> tuple[list[str], np.ndarray]:
    rows = rows_of("banking77", f"{part}.csv")[1:]
    return [text for text, _ in rows], np.array([label for _, label in rows])


# -- bytes ---------------------------------------------------------------------------------------------------------


def nearest(queries: np.ndarray, documents: np.ndarray, dtype: str) -> np.ndarray:
    """Rows of the ten nearest documents: by cosine, by Hamming distance for binary."""
    if dtype == "binary":
        a, b = (np.unpackbits(one, axis=1).astype(np.float32) * 2 - 1 for one in (queries, documents))
    else:
        a, b = queries.astype(np.float32), documents.astype(np.float32)
        b = b / np.linalg.norm(b, axis=1, keepdims=True)
    return np.argsort(-(a @ b.T), axis=1, kind="stable")[:, :10]


def fewer_bytes(options: argparse.Namespace) -> dict[str, Any]:
    (corpus, _), (queries, _) = questions("train"), questions("test")
    corpus, queries = (corpus[::100], queries[::300]) if options.quick else (corpus[::2], queries[::6])
    found: dict[str, Any] = {"documents": len(corpus), "queries": len(queries), "recall_at_10": {}}
    for model in (MINILM, E5):
        embedder = TransformerEmbedder(model, memory="memory")
        kept: dict[str, np.ndarray] = {}
        recall: dict[str, float] = {}
        for dtype in ("float32", "float16", "int8", "binary"):
            embedder.set_params(output_dtype=dtype).fit(corpus)
            kept[dtype] = nearest(
                embedder.transform(queries, role="query"), embedder.transform(corpus, role="document"), dtype
            )
            shared = [len(np.intersect1d(a, b)) for a, b in zip(kept[dtype], kept["float32"], strict=True)]
            recall[dtype] = float(np.mean(shared)) / 10
        found["recall_at_10"][model] = recall
        say(f"  {model}: {recall}")
    return found


# -- cache ---------------------------------------------------------------------------------------------------------


def messages() -> tuple[list[str], np.ndarray]:
    """Different messages in an order of their own, so that folds and parts hold every class."""
    texts, labels = read(DATA / "fr_customer_messages")
    order = np.random.default_rng(0).permutation(len(texts))
    return [texts[i] for i in order], labels[order]


def cache(options: argparse.Namespace) -> dict[str, Any]:
    texts, labels = messages()
    n, folds, points = (60, 2, 3) if options.quick else (1000, 5, 20)
    texts, labels = texts[:n], labels[:n]
    strengths = np.logspace(-2, 2, points)

    def search(memory: str | None, values: np.ndarray) -> GridSearchCV:
        pipeline = make_pipeline(
            TransformerEmbedder(MINILM, memory=memory), LogisticRegression(max_iter=1000)
        )
        grid = {"logisticregression__C": values}
        return GridSearchCV(pipeline, grid, cv=folds, refit=False, error_score="raise").fit(texts, labels)

    search(None, strengths[:1]) if options.quick else TransformerEmbedder(MINILM).fit_transform(texts[:8])
    on, with_cache = measured(lambda: search("memory", strengths))
    few = strengths[:: max(1, points // options.points_off)][: options.points_off]
    off, without = measured(lambda: search(None, few))
    shared = np.isin(strengths, few)
    scale = points / len(few)
    found = {
        "documents": len(texts),
        "folds": folds,
        "points": points,
        "points_measured_without": len(few),
        "cpu_seconds": {"on": with_cache.cpu, "off": without.cpu * scale},
        "times_faster": {
            "cpu": summary([without.cpu * scale / with_cache.cpu]),
            "wall": summary([without.wall * scale / with_cache.wall]),
        },
        "largest_difference_of_scores": float(
            np.abs(on.cv_results_["mean_test_score"][shared] - off.cv_results_["mean_test_score"]).max()
        ),
    }
    say(f"  {found}")
    return found


def main() -> None:
    parser = arguments(__doc__ or "", rounds=1)
    parser.add_argument("--sections", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument(
        "--points-off", type=int, default=2, help="points measured without a cache (%(default)s)"
    )
    options = parser.parse_args()
    prepare(options)
    warnings.filterwarnings("ignore", message="lbfgs failed to converge")
    results: dict[str, Any] = {}

    if "bytes" in options.sections:
        results["bytes"] = fewer_bytes(options)
        write("embedding", options, results, {})
    if "cache" in options.sections:
        results["cache"] = cache(options)
        write("embedding", options, results, {})


if __name__ == "__main__":
    main()
