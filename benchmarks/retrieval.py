"""Search: French questions to their paragraphs (PIAF), and the approximate index against the exact search.

``../shared/data/piaf`` holds 3,835 questions about 761 paragraphs of 191 articles of the French Wikipedia. Each
question is asked of all paragraphs, and the one it was written about is right. Settings are chosen by the questions of
a third of the articles, and judged by the others. Vectors are kept in ``--cache`` where one is named: encoding takes
minutes of one core.

    python -m benchmarks.retrieval [--part piaf | approximate] [--cache FOLDER] [--quick]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import CountVectorizer

from sktransformer.tasks._retrieval.approximate import ApproximateIndex
from sktransformer.tasks._retrieval.neighbours import dense_neighbours

from .common import (
    E5,
    RESULTS,
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

DATA = ROOT.parent / "shared" / "data" / "piaf"  # beside the repository
CHOSEN_BY = 1 / 3  # share of the articles
TOP = 10
EXPANSIONS = (32, 64, 128, 256)
WORDS = {"strip_accents": "unicode"}
COUNTERS: dict[str, dict[str, Any]] = {
    "words": {},
    "words without accents": WORDS,
    "first six letters of words": {**WORDS, "token_pattern": r"(?u)\b(\w\w{1,5})\w*\b"},
    "words and pairs of words": {**WORDS, "ngram_range": (1, 2)},
    "3 to 5 characters of words": {**WORDS, "analyzer": "char_wb", "ngram_range": (3, 5)},
}
K1 = (0.6, 1.2, 2.0)
FUSIONS = {
    "ranks": {"rrf_constant": (0, 5, 60), "fusion_weights": ((1, 1), (2, 1), (1, 2))},
    "scores": {"rrf_constant": (60,), "fusion_weights": ((2, 1), (1, 1), (1, 2), (1, 3))},
}

# -- PIAF --------------------------------------------------------------------------------------------------------------


class Questions:
    """Paragraphs, questions, the paragraph of each question, and which questions settings are chosen by."""

    def __init__(self, folder: Path, quick: bool) -> None:
        path = folder / "piaf-v1.0.json"
        if not path.exists():
            raise SystemExit(f"{path} is missing: put PIAF 1.0 (github.com/etalab-ia/piaf-code) there.")
        articles = json.loads(path.read_text(encoding="utf-8"))["data"][: 20 if quick else None]
        self.paragraphs: list[str] = []
        self.questions: list[str] = []
        gold, article = [], []
        for number, one in enumerate(articles):
            for paragraph in one["paragraphs"]:
                for asked in paragraph["qas"]:
                    self.questions.append(asked["question"])
                    gold.append(len(self.paragraphs))
                    article.append(number)
                self.paragraphs.append(paragraph["context"])
        self.gold = np.array(gold)
        self.article = np.array(article)
        order = np.random.default_rng(0).permutation(len(articles))
        self.choosing = np.isin(self.article, order[: round(len(articles) * CHOSEN_BY)])

    def judge(self, search: Any) -> dict[str, float]:
        """Recall at 1 and at 10 on both parts, and milliseconds a question."""
        watch = Stopwatch()
        watch.start()
        found = search.kneighbors(self.questions, TOP, return_distance=False)
        took = watch.stop()
        first, among = found[:, 0] == self.gold, (found == self.gold[:, None]).any(axis=1)
        return {
            "recall_1": float(first[~self.choosing].mean()),
            "recall_10": float(among[~self.choosing].mean()),
            "recall_1_choosing": float(first[self.choosing].mean()),
            "recall_1_all": float(first.mean()),
            "recall_10_all": float(among.mean()),
            "cpu_milliseconds_per_question": took.cpu / len(self.questions) * 1000,
        }


class Remembered(TransformerMixin, BaseEstimator):
    """An embedder that has read these texts before."""

    def __init__(self, vectors: Any = None) -> None:
        self.vectors = vectors

    def __sklearn_clone__(self) -> Remembered:
        return self

    def fit(self, X: Any, y: Any = None) -> Remembered:
        return self

    def transform(self, X: Any, role: str = "query") -> np.ndarray:
        return np.stack([self.vectors[role, text] for text in X])


def encoded(asked: Questions, cache: Path | None) -> tuple[Remembered, dict[str, float]]:
    """Encode all texts in their roles with the frozen encoder, as SemanticSearch would, or take them from the cache."""
    from sktransformer import TransformerEmbedder

    texts = {"query": ("query: ", asked.questions), "document": ("passage: ", asked.paragraphs)}
    embedder = TransformerEmbedder(E5, precision="float32").fit(asked.questions[:1])
    vectors: dict[str, np.ndarray] = {}
    took: dict[str, float] = {}
    for role, (prompt, given) in texts.items():
        path = None if cache is None else cache / f"piaf-{role}-{len(given)}.npy"
        if path is not None and path.exists():
            rows = np.load(path)
        else:
            watch = Stopwatch()
            watch.start()
            rows = embedder.set_params(prompt=prompt).transform(given)
            took[f"{role}_cpu_seconds"] = watch.stop().cpu
            if path is not None:
                np.save(path, rows)
        vectors.update(zip(((role, text) for text in given), rows, strict=True))
    return Remembered(vectors), took


def sparse(asked: Questions) -> tuple[dict[str, Any], dict[str, Any]]:
    """TF-IDF and BM25 over several ways to count, and the settings of BM25 that the choosing part prefers."""
    from sktransformer import SemanticSearch

    found: dict[str, Any] = {}
    settings: dict[str, dict[str, Any]] = {}
    for name, parameters in COUNTERS.items():
        for weighting, k1 in (("tfidf", 1.2), *(("bm25", k1) for k1 in K1)):
            label = f"BM25, k1 {k1}, {name}" if weighting == "bm25" else f"TF-IDF, {name}"
            settings[label] = {"vectorizer": CountVectorizer(**parameters), "weighting": weighting, "k1": k1}
            search = SemanticSearch(mode="sparse", **settings[label]).fit(asked.paragraphs)
            found[label] = asked.judge(search)
            say(f"  {label:<50} {found[label]['recall_1']:.3f}  {found[label]['recall_10']:.3f}")
    return found, settings


def hybrids(asked: Questions, embedder: Remembered, words: dict[str, Any]) -> dict[str, Any]:
    """Both fusions with several constants and weights, over one sparse side."""
    from sktransformer import SemanticSearch

    search = SemanticSearch(embedder, mode="hybrid", **words).fit(asked.paragraphs)
    found = {}
    for fusion, grid in FUSIONS.items():
        for constant in grid["rrf_constant"]:
            for weights in grid["fusion_weights"]:
                search.set_params(fusion=fusion, rrf_constant=constant, fusion_weights=weights)
                label = f"{fusion}, weights {weights[0]}:{weights[1]}"
                label += f", constant {constant}" if fusion == "ranks" else ""
                found[label] = asked.judge(search)
                say(f"  {label:<50} {found[label]['recall_1']:.3f}  {found[label]['recall_10']:.3f}")
    return found


def preferred(found: dict[str, Any], start: str) -> str:
    """Return the best of some settings on the choosing part."""
    return max(
        (name for name in found if name.startswith(start)), key=lambda name: found[name]["recall_1_choosing"]
    )


def piaf(asked: Questions, cache: Path | None) -> dict[str, Any]:
    from sktransformer import SemanticSearch

    by_words, settings = sparse(asked)
    embedder, took = encoded(asked, cache)
    dense = asked.judge(SemanticSearch(embedder).fit(asked.paragraphs))
    say(f"  dense {dense['recall_1']:.3f}  {dense['recall_10']:.3f}")
    bm25 = preferred(by_words, "BM25")
    default = hybrids(asked, embedder, {})
    tuned = hybrids(asked, embedder, settings[bm25])
    chosen = {
        "TF-IDF, words": by_words["TF-IDF, words"],
        f"sparse as chosen: {bm25}": by_words[bm25],
        "sparse as it comes: BM25, k1 1.2, words without accents": by_words[
            "BM25, k1 1.2, words without accents"
        ],
        "dense: frozen multilingual-e5-small with its prompts": dense,
        "hybrid as it comes: scores, weights 1:2": default["scores, weights 1:2"],
    }
    for fusion in FUSIONS:
        best = preferred(tuned, fusion)
        chosen[f"hybrid as chosen: {best}"] = tuned[best]
    parts = [found["recall_1"] for name, found in chosen.items() if not name.startswith("hybrid")]
    gain = chosen["hybrid as it comes: scores, weights 1:2"]["recall_1"] - max(parts)
    say(f"  hybrid as it comes against the best of its parts: {100 * gain:+.1f} points")
    return {"chosen": chosen, "points_gained": 100 * gain, "sparse": by_words, "hybrid": default,
            "hybrid_over_chosen_sparse": tuned, "encoding": took}  # fmt: skip


# -- the approximate index ---------------------------------------------------------------------------------------------


def clusters(n: int, width: int, n_clusters: int, spread: float) -> np.ndarray:
    """Draw unit vectors round centres of unit variance: topics, and documents that lie close together within them."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((n_clusters, width), dtype=np.float32)
    vectors = centres[rng.integers(n_clusters, size=n)]
    vectors += spread * rng.standard_normal((n, width), dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


class Asked:
    """Queries of a corpus of vectors, exact and through a graph."""

    def __init__(self, quick: bool) -> None:
        n, self.width, self.n_queries = (5000, 64, 50) if quick else (100_000, 384, 200)
        vectors = clusters(n + self.n_queries, self.width, n // 100, 1.0)
        self.queries, self.vectors = vectors[n:], np.ascontiguousarray(vectors[:n])
        self.graph = ApproximateIndex(self.width, connectivity=16, expansion_add=128)
        self.watch = Stopwatch()
        self.watch.start()
        self.graph.add(np.arange(n), self.vectors, None)
        self.built = self.watch.stop()
        say(f"  built in {self.built.cpu:.0f} s")

    def neighbours(self, queries: np.ndarray, expansion: int | None) -> np.ndarray:
        return dense_neighbours(
            queries, self.vectors, TOP, graph=None if expansion is None else self.graph,
            positions=np.arange(len(self.vectors)), expansion_search=expansion or 1, n_jobs=None,
        )[1]  # fmt: skip

    def timed(self, expansion: int | None, one_by_one: bool) -> Callable[[], Sample]:
        def run() -> Sample:
            self.watch.start()
            for queries in self.queries[:, None] if one_by_one else [self.queries]:
                self.neighbours(queries, expansion)
            return self.watch.stop()

        return run


def approximate(options: argparse.Namespace) -> dict[str, Any]:
    """Recall and time of the graph by its expansion, many queries a call and one query a call."""
    asked = Asked(options.quick)
    names = {None: "exact", **{size: f"expansion {size}" for size in EXPANSIONS}}
    truth = asked.neighbours(asked.queries, None)
    recalls = {}
    for size in EXPANSIONS:
        found = asked.neighbours(asked.queries, size)
        recalls[names[size]] = float(
            np.mean([np.isin(a, b).mean() for a, b in zip(truth, found, strict=True)])
        )
    say(f"  recall at {TOP}: {recalls}")
    n = len(asked.vectors)
    results: dict[str, Any] = {
        "recall_10": recalls, "build_cpu_seconds": asked.built.cpu, "vectors_bytes": asked.vectors.nbytes,
        "graph_bytes": len(asked.graph.__getstate__()["graph"]), "documents": n, "width": asked.width,
        "queries": asked.n_queries, "clusters": n // 100, "spread": 1.0,
    }  # fmt: skip
    for key, alone in (("together", False), ("one_by_one", True)):
        samples = interleave({names[size]: asked.timed(size, alone) for size in names}, options.rounds)
        results[key] = {
            "seconds_per_query": {name: seconds(took, asked.n_queries) for name, took in samples.items()},
            "times_faster": {name: ratio(samples["exact"], samples[name]) for name in recalls},
        }
    return results


def main() -> None:
    parser = arguments(__doc__ or "", rounds=3)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of PIAF (%(default)s)")
    parser.add_argument(
        "--part", choices=("piaf", "approximate"), help="one part alone; the other is kept as it is"
    )
    parser.add_argument("--cache", type=Path, help="folder for vectors; none by default")
    options = parser.parse_args()
    prepare(options)
    path = (RESULTS / "quick" if options.quick else RESULTS) / "retrieval.json"
    results = (
        json.loads(path.read_text(encoding="utf-8"))["results"] if path.exists() and options.part else {}
    )
    asked = Questions(options.data, options.quick)
    settings = {
        "paragraphs": len(asked.paragraphs), "questions": len(asked.questions),
        "questions_to_choose_by": int(asked.choosing.sum()), "encoder": E5,
    }  # fmt: skip
    parts = {"piaf": lambda: piaf(asked, options.cache), "approximate": lambda: approximate(options)}
    for name, run in parts.items():
        if options.part in (None, name):
            say(name)
            results[name] = run()
            write("retrieval", options, results, settings)


if __name__ == "__main__":
    main()
