"""Prediction against Hugging Face's pipeline, and embedding against sentence-transformers, on the same weights.

The pipeline runs at batch_size=32, as its documentation shows for throughput, and one by one, its default; documents
come unsorted, as they do in a service. sentence-transformers sorts by length itself; it runs at its default batch size
and at the best of several, found on the same documents before the rounds begin. All in float32.

    python -m benchmarks.inference [--rounds N] [--quick]
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from transformers import AutoConfig, AutoTokenizer, pipeline

from .common import (
    MINILM,
    Ceiling,
    Sample,
    arguments,
    bundled,
    classifier_folder,
    forward_flops,
    interleave,
    prepare,
    ratio,
    say,
    seconds,
    timed,
    write,
)
from .corpus import TOPICS, Corpus, mails

TOLERANCE = 1e-5
MAX_LENGTH = 512
BATCH_SIZES = (4, 8, 16, 32, 64, 128)
SENTENCE_TRANSFORMERS_DEFAULT = 32


def classify(folder: Path, corpus: Corpus, rounds: int) -> dict[str, Any]:
    """Probabilities of `corpus`: ours, and the pipeline's in batches and one by one."""
    from sktransformer import TransformerClassifier

    classifier = TransformerClassifier.from_pretrained(
        folder, max_length=MAX_LENGTH, device="cpu", precision="float32"
    )
    classify = pipeline("text-classification", model=str(folder), device="cpu", top_k=None)
    options = {"truncation": True, "max_length": MAX_LENGTH}

    def peer(batch_size: int) -> np.ndarray:
        column = {label: i for i, label in enumerate(classifier.classes_)}
        rows = np.zeros((len(corpus.texts), len(column)), dtype=np.float32)
        for row, scores in zip(rows, classify(corpus.texts, batch_size=batch_size, **options), strict=True):
            for score in scores:
                row[column[score["label"]]] = score["score"]
        return rows

    difference = same(classifier.predict_proba(corpus.texts), peer(32), "probabilities")
    ceiling = Ceiling()
    runs = {
        "sktransformer predict_proba": timed(lambda: classifier.predict_proba(corpus.texts)),
        "HF pipeline, batch_size=32": timed(lambda: peer(32)),
        "HF pipeline, one by one": timed(lambda: peer(1)),
    }
    return {"largest_difference": difference, **compared(runs, ceiling, corpus, folder, rounds)}


def embed(corpus: Corpus, rounds: int) -> dict[str, Any]:
    """Normalised mean-pooled vectors of `corpus`: ours, and sentence-transformers'."""
    from sentence_transformers import SentenceTransformer

    from sktransformer import TransformerEmbedder

    folder = bundled(MINILM)
    embedder = TransformerEmbedder(folder, max_length=MAX_LENGTH, device="cpu", precision="float32")
    embedder.fit(corpus.texts[:1])
    encoder = SentenceTransformer(str(folder), device="cpu")
    encoder.max_seq_length = MAX_LENGTH  # this checkpoint asks for 256

    def peer(batch_size: int) -> np.ndarray:
        return np.asarray(encoder.encode(corpus.texts, batch_size=batch_size, normalize_embeddings=True))

    difference = same(embedder.transform(corpus.texts), peer(SENTENCE_TRANSFORMERS_DEFAULT), "vectors")
    tried = {size: timed(lambda size=size: peer(size))().cpu for size in BATCH_SIZES}
    best = min(tried, key=lambda size: tried[size])
    say(f"  sentence-transformers is fastest at batch_size={best}")
    runs = {
        "sktransformer transform": timed(lambda: embedder.transform(corpus.texts)),
        f"sentence-transformers, batch_size={SENTENCE_TRANSFORMERS_DEFAULT}": timed(
            lambda: peer(SENTENCE_TRANSFORMERS_DEFAULT)
        ),
    }
    best_name = f"sentence-transformers, batch_size={best}"
    runs[best_name] = timed(lambda: peer(best))
    found = compared(runs, Ceiling(), corpus, folder, rounds)
    found["times_faster_than_best"] = found["times_faster"][best_name]
    return {"largest_difference": difference, "cpu_seconds_by_batch_size": tried, **found}


def same(ours: np.ndarray, theirs: np.ndarray, what: str) -> float:
    """Largest difference of two outputs; nothing is timed unless it is rounding."""
    difference = float(np.abs(ours - theirs).max())
    say(f"{what}: equal within {difference:.1e}")
    if difference > TOLERANCE:
        raise SystemExit(f"the competitors' {what} differ by {difference:.2g}, more than {TOLERANCE:g}")
    return difference


def compared(
    runs: dict[str, Callable[[], Sample]], ceiling: Ceiling, corpus: Corpus, folder: Path, rounds: int
) -> dict[str, Any]:
    """Milliseconds a document, ratios to the first of `runs`, and the part of the matrix ceiling that each reached."""
    first, *others = runs
    samples = interleave({**runs, "matrix product": ceiling.probe}, rounds, warm_up=False)
    flops = forward_flops(AutoConfig.from_pretrained(folder), corpus.lengths)
    return {
        "documents": len(corpus.texts),
        "tokens": corpus.n_tokens,
        "milliseconds_per_document": {
            name: seconds(samples[name], len(corpus.texts) / 1000) for name in runs
        },
        "times_faster": {name: ratio(samples[name], samples[first]) for name in others},
        "ceiling_gflops": ceiling.best / 1e9,
        "share_of_ceiling": {name: ceiling.share(flops, samples[name]) for name in runs},
    }


def main() -> None:
    options = arguments(__doc__ or "", rounds=7).parse_args()
    prepare(options)
    n_documents = 32 if options.quick else 256
    with classifier_folder(MINILM, len(TOPICS)) as folder:
        corpus = mails(AutoTokenizer.from_pretrained(folder), n_documents, 10)
        results = {
            "classify": classify(folder, corpus, options.rounds),
            "embed": embed(corpus, options.rounds),
        }
    settings = {
        "model": MINILM,
        "max_length": MAX_LENGTH,
        "documents": n_documents,
        "mean_tokens": float(corpus.lengths.mean()),
        "longest_tokens": int(corpus.lengths.max()),
        "precision": "float32",
    }
    write("inference", options, results, settings)


if __name__ == "__main__":
    main()
