"""French to English by a 2017 model trained from scratch: what it remembers of its pairs, and what it makes of others.

``../shared/data/tatoeba`` holds 1,000 pairs of the LASER test set. 900 are trained on, 100 held out: far too few to
learn a language from, and enough to see that training, teacher forcing and beam search fit together.

    python -m benchmarks.translation [--quick]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from .common import ROOT, Stopwatch, arguments, prepare, say, write

DATA = ROOT.parent / "shared" / "data" / "tatoeba"  # beside the repository
SEED = 0
Pairs = tuple[list[str], list[str]]


def read(folder: Path) -> Pairs:
    """Return the French and the English sentences, or end with what is missing."""
    sides = []
    for language in ("fra", "eng"):
        path = folder / f"tatoeba.fra-eng.{language}"
        if not path.exists():
            raise SystemExit(
                f"{path} is missing: put it there from github.com/facebookresearch/LASER (data/tatoeba/v1/)."
            )
        sides.append(path.read_text(encoding="utf-8").splitlines())
    return sides[0], sides[1]


def split(pairs: Pairs, n_train: int, n_held: int) -> tuple[Pairs, Pairs]:
    """Return the pairs to train on and those held out, drawn once. No held-out source is trained on."""
    order = np.random.default_rng(SEED).permutation(len(pairs[0]))
    parts = order[:n_train], order[-n_held:]
    return tuple(([pairs[0][i] for i in part], [pairs[1][i] for i in part]) for part in parts)  # type: ignore[return-value]


def model(options: argparse.Namespace) -> Any:
    """Return the estimator: sinusoids, ReLU, tied embeddings, label smoothing, as in 2017, and smaller."""
    from sktransformer import Seq2SeqGenerator
    from sktransformer.nn import TransformerConfig

    config = TransformerConfig(
        architecture="encoder-decoder", hidden_size=options.width, num_layers=options.layers, num_attention_heads=4,
        feed_forward="relu", vocab_size=options.vocabulary, max_position_embeddings=256, dropout=options.dropout,
        attention_dropout=0.0,
    )  # fmt: skip
    return Seq2SeqGenerator(
        config, max_length=256, max_epochs=options.epochs, batch_size=32, learning_rate=options.learning_rate,
        lr_schedule="cosine", label_smoothing=0.1, num_beams=4, max_new_tokens=64, token_budget=2048,
        precision="float32", random_state=SEED,
    )  # fmt: skip


def judged(estimator: Any, pairs: Pairs) -> dict[str, float]:
    """Return exact match, chrF and BLEU of what is written for the sources."""
    from sktransformer import bleu_score, chrf_score

    written = estimator.predict(pairs[0])
    exact = float(np.mean([text == reference for text, reference in zip(written, pairs[1], strict=True)]))
    return {
        "exact_match": exact,
        "chrf": chrf_score(pairs[1], written),
        "bleu": bleu_score(pairs[1], written),
    }


def main() -> None:
    parser = arguments(__doc__ or "", rounds=1, threads=1)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the two files (%(default)s)")
    parser.add_argument("--pairs", type=int, default=900, help="to train on (%(default)s)")
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--vocabulary", type=int, default=2000)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--learning-rate", type=float, default=2e-3)
    options = parser.parse_args()
    n_held = 100
    if options.quick:
        options.pairs, options.epochs, options.width, n_held = 32, 2, 32, 8
    prepare(options)
    train, held = split(read(options.data), options.pairs, n_held)
    estimator, watch = model(options), Stopwatch()
    watch.start()
    estimator.fit(*train)
    fitted = watch.stop()
    results = {
        "train": judged(estimator, train),
        "held_out": judged(estimator, held),
        # what a system that knows nothing scores: the source itself
        "held_out, source copied": {"chrf": _copied(held)},
        "fit_seconds": fitted.wall,
        "fit_cpu_seconds": fitted.cpu,
        "parameters": sum(parameter.numel() for parameter in estimator.model_.parameters()),
    }
    say(
        f"  train: exact match {results['train']['exact_match']:.3f}, chrF {results['train']['chrf']:.3f}; held out: "
        f"chrF {results['held_out']['chrf']:.3f}, BLEU {results['held_out']['bleu']:.3f}; fit {fitted.cpu:.0f} s of CPU"
    )
    settings = {
        "pairs": options.pairs, "held_out": n_held, "epochs": options.epochs, "width": options.width,
        "layers": options.layers, "vocabulary": options.vocabulary, "dropout": options.dropout,
        "learning_rate": options.learning_rate, "label_smoothing": 0.1, "num_beams": 4, "seed": SEED,
    }  # fmt: skip
    write("translation", options, results, settings)


def _copied(pairs: Pairs) -> float:
    from sktransformer import chrf_score

    return chrf_score(pairs[1], pairs[0])


if __name__ == "__main__":
    main()
