"""Fine-tuning an embedder for search: French questions to their paragraphs (PIAF), before and after.

The questions of four fifths of the articles and their paragraphs are the pairs that ``fine_tune="pairs"`` learns from,
with the articles as groups: an encoder that was trained on questions seldom errs between articles, and random pairs
teach it nothing. The questions of the last fifth are asked, of all 761 paragraphs and of those of their own part.

Settings were chosen on three quarters of the first four fifths, by questions of the fourth quarter, so the last fifth
had no say in them; the others, which ``--fifths`` names, had. A fit takes some ten minutes of one core. A fifth that
results/tuned_search.json holds from the same commit and settings is not run again.

    python -m benchmarks.tuned_search [--quick] [--fifths 4 0 1 2 3]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from .common import E5, Stopwatch, arguments, best_precision, found_before, prepare, say, write
from .retrieval import DATA, Questions

PARTS = 5  # of the articles; one is held out
JUDGED = PARTS - 1  # no setting was chosen on it
MAX_LENGTH = 256  # tokens; one paragraph in twenty has more
TUNED: dict[str, Any] = {
    "fine_tune": "pairs",
    "max_length": MAX_LENGTH,
    "batch_size": 256,
    "learning_rate": 2e-4,
    "max_epochs": 2,
    "freeze": "embeddings",
    "attention_dropout": 0.0,
    "temperature": 0.01,
    "mixing": 0.5,
}
SEED = 0


class Split:
    """Pairs of the training articles; questions of the others, and which paragraphs are theirs."""

    def __init__(self, asked: Questions, fifth: int) -> None:
        self.asked = asked
        n_articles = int(asked.article.max()) + 1
        order = np.random.default_rng(SEED).permutation(n_articles)
        ends = [round(part / PARTS * n_articles) for part in range(PARTS + 1)]
        train = ~np.isin(asked.article, order[ends[fifth] : ends[fifth + 1]])
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


def judged(split: Split, quick: bool) -> dict[str, Any]:
    """Return the figures of one fifth."""
    from sktransformer import TransformerEmbedder

    frozen = TransformerEmbedder(E5, max_length=MAX_LENGTH).fit(["à"])
    found: dict[str, Any] = {"pairs": len(split.pairs), "questions": len(split.rows)}
    found |= {"own_paragraphs": len(split.own), "frozen": split.judge("frozen", frozen)}
    few = {"max_epochs": 1, "freeze": 10} if quick else {}
    tuned = TransformerEmbedder(E5, random_state=SEED, **{**TUNED, **few})
    watch = Stopwatch()
    watch.start()
    tuned.fit(split.pairs, split.groups)
    took = watch.stop()
    found["fine_tuned"] = {**split.judge("fine-tuned", tuned), "fit_cpu_seconds": took.cpu}
    found["points_gained"] = 100 * (found["fine_tuned"]["recall_1"] - found["frozen"]["recall_1"])
    say(f"  {found['points_gained']:+.1f} points, fitted in {took.cpu:.0f} s of processor time")
    return found


def known(options: argparse.Namespace, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of fifths that the file holds by now."""
    return dict(found_before("tuned_search", options, settings).get("fifths", {}))


def main() -> None:
    parser = arguments(__doc__ or "", rounds=1)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of PIAF (%(default)s)")
    parser.add_argument(
        "--fifths", nargs="+", type=int, choices=range(PARTS), default=[JUDGED], help="held out (%(default)s)"
    )
    options = parser.parse_args()
    prepare(options)
    asked = Questions(options.data, options.quick)
    settings = {
        "encoder": E5, "seed": SEED, "paragraphs": len(asked.paragraphs), "judged": JUDGED,
        "precision": best_precision(), **TUNED,
    }  # fmt: skip
    for fifth in options.fifths:
        if str(fifth) in known(options, settings):
            continue
        say(f"fifth {fifth} held out")
        new = judged(Split(asked, fifth), options.quick)
        found = {**known(options, settings), str(fifth): new}
        write("tuned_search", options, {"fifths": dict(sorted(found.items()))}, settings)


if __name__ == "__main__":
    main()
