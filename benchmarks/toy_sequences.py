"""Copy and reversal of random sequences by a 2017 model trained from scratch: exact match on held-out sequences.

    python -m benchmarks.toy_sequences [--quick]

Different sequences of 2 to 8 letters out of 16; those held out have lengths seen in training, and none of them was
trained on.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from .common import Stopwatch, arguments, prepare, say, write

SEED = 0
LETTERS = list("abcdefghijklmnop")
LONGEST = 8
TASKS = {"copy": lambda text: text, "reversal": lambda text: text[::-1]}


def sequences(n: int, seed: int) -> list[str]:
    """Return `n` different sequences, letters with blanks between."""
    random = np.random.default_rng(seed)
    found: dict[str, None] = {}
    while len(found) < n:  # of the shortest there are few, and soon none that is new
        found[" ".join(random.choice(LETTERS, size=random.integers(2, LONGEST + 1)))] = None
    return list(found)


def model(options: argparse.Namespace) -> Any:
    """Return the estimator: 2 layers a side of width 64, post-norm and ReLU, without dropout."""
    from sktransformer import Seq2SeqGenerator
    from sktransformer.nn import TransformerConfig

    config = TransformerConfig(
        architecture="encoder-decoder", hidden_size=64, num_layers=2, num_attention_heads=4, feed_forward="relu",
        vocab_size=200, max_position_embeddings=64, dropout=0.0, attention_dropout=0.0,
    )  # fmt: skip
    return Seq2SeqGenerator(
        config, max_length=64, max_epochs=options.epochs, batch_size=64, learning_rate=1e-3, lr_schedule="cosine",
        num_beams=1, max_new_tokens=24, token_budget=4096, precision="float32", random_state=SEED,
    )  # fmt: skip


def run(task: str, options: argparse.Namespace) -> dict[str, Any]:
    """Train on one task, and write the held-out sequences."""
    texts = sequences(options.sequences + options.held_out, SEED)
    order = np.random.default_rng(SEED).permutation(len(texts))
    texts = [texts[i] for i in order]
    train, held = texts[: options.sequences], texts[options.sequences :]
    solve = TASKS[task]
    estimator, watch = model(options), Stopwatch()
    watch.start()
    estimator.fit(train, [solve(text) for text in train])
    fitted = watch.stop()
    written = estimator.predict(held)
    right = [text == solve(source) for source, text in zip(held, written, strict=True)]
    found = {
        "exact_match": float(np.mean(right)),
        "held_out": len(held),
        "fit_seconds": fitted.wall,
        "fit_cpu_seconds": fitted.cpu,
        "last_loss": float(estimator.history_["train_loss"].iloc[-1]),
    }
    say(
        f"  {task:<9} exact match {found['exact_match']:.3f}  fit {fitted.cpu:.0f} s of CPU, {fitted.wall:.0f} s"
    )
    return found


def main() -> None:
    parser = arguments(__doc__ or "", rounds=1, threads=1)
    parser.add_argument("--sequences", type=int, default=4000, help="to train on (%(default)s)")
    parser.add_argument("--held-out", type=int, default=1000, help="(%(default)s)")
    parser.add_argument("--epochs", type=int, default=20)
    options = parser.parse_args()
    if options.quick:
        options.sequences, options.held_out, options.epochs = 200, 50, 2
    prepare(options)
    settings = {
        "sequences": options.sequences, "epochs": options.epochs, "lengths": [2, LONGEST], "letters": len(LETTERS),
        "seed": SEED,
    }  # fmt: skip
    results: dict[str, Any] = {}
    for task in TASKS:
        results[task] = run(task, options)
        write("toy_sequences", options, results, settings)


if __name__ == "__main__":
    main()
