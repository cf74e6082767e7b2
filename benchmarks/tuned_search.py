"""Fine-tuning an embedder for search: French questions to their paragraphs (PIAF), before and after.

The questions of four fifths of the articles and their paragraphs are the pairs that ``fine_tune="pairs"`` learns from,
with the articles as groups: an encoder that was trained on questions seldom errs between articles, and random pairs
teach it nothing. The questions of the other articles are asked, of all 761 paragraphs and of those of their own part.
An epoch takes some five minutes of one core.

    python -m benchmarks.tuned_search [--quick]
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .common import E5, Stopwatch, arguments, prepare, say, write
from .retrieval import DATA, Questions

TRAINED_ON = 0.8  # share of the articles
MAX_LENGTH = 256  # tokens; one paragraph in twenty has more
TUNED: dict[str, Any] = {
    "fine_tune": "pairs",
    "max_length": MAX_LENGTH,
    "batch_size": 64,
    "learning_rate": 1e-4,
    "max_epochs": 2,
    "freeze": 6,
    "attention_dropout": 0.0,
    "temperature": 0.01,
}
SEED = 0


class Split:
    """Pairs of the training articles; questions of the others, and which paragraphs are theirs."""

    def __init__(self, asked: Questions) -> None:
        self.asked = asked
        n_articles = int(asked.article.max()) + 1
        order = np.random.default_rng(SEED).permutation(n_articles)
        train = np.isin(asked.article, order[: round(TRAINED_ON * n_articles)])
        self.rows = np.flatnonzero(~train)
        self.own = np.unique(asked.gold[self.rows])
        self.pairs = [(asked.questions[i], asked.paragraphs[asked.gold[i]]) for i in np.flatnonzero(train)]
        self.groups = asked.article[train]

    def judge(self, name: str, embedder: Any) -> dict[str, float]:
        """Recall at 1 and 10 of the questions held out."""
        embedder.set_params(precision="float32")  # whatever it was fitted in: no ties by rounding
        queries = embedder.transform([self.asked.questions[i] for i in self.rows], role="query")
        documents = embedder.transform(self.asked.paragraphs, role="document")
        gold = self.asked.gold[self.rows]
        cosines = queries @ documents.T
        found = {}
        for part, columns in (("", np.arange(len(documents))), ("_own", self.own)):
            best = columns[np.argsort(-cosines[:, columns], axis=1, kind="stable")[:, :10]]
            found[f"recall_1{part}"] = float((best[:, 0] == gold).mean())
            found[f"recall_10{part}"] = float((best == gold[:, None]).any(axis=1).mean())
        say(f"  {name}: recall at 1 {found['recall_1']:.3f}, of its own part {found['recall_1_own']:.3f}")
        return found


def main() -> None:
    parser = arguments(__doc__ or "", rounds=1)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of PIAF (%(default)s)")
    options = parser.parse_args()
    prepare(options)
    from sktransformer import TransformerEmbedder

    split = Split(Questions(options.data, options.quick))
    settings = {
        "encoder": E5, "pairs": len(split.pairs), "questions": len(split.rows), "seed": SEED,
        "paragraphs": len(split.asked.paragraphs), "own_paragraphs": len(split.own), **TUNED,
    }  # fmt: skip
    frozen = TransformerEmbedder(E5, max_length=MAX_LENGTH).fit(["à"])
    results: dict[str, Any] = {"frozen": split.judge("frozen", frozen)}
    few = {"max_epochs": 1, "freeze": 10} if options.quick else {}
    tuned = TransformerEmbedder(E5, random_state=SEED, **{**TUNED, **few})
    watch = Stopwatch()
    watch.start()
    tuned.fit(split.pairs, split.groups)
    took = watch.stop()
    results["fine_tuned"] = {**split.judge("fine-tuned", tuned), "fit_cpu_seconds": took.cpu}
    results["points_gained"] = 100 * (results["fine_tuned"]["recall_1"] - results["frozen"]["recall_1"])
    say(f"  {results['points_gained']:+.1f} points, fitted in {took.cpu:.0f} s of processor time")
    write("tuned_search", options, results, settings)


if __name__ == "__main__":
    main()
