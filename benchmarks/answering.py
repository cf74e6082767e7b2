"""French questions (PIAF): trained on 80 % of the articles, judged on the others.

``../shared/data/piaf`` holds 3,835 questions about 191 articles of the French Wikipedia, in SQuAD's format. No article
is in both parts. A rule (the sentence that shares most words with the question) stands beside the model.

    python -m benchmarks.answering [--quick] [--seeds N]
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import GroupShuffleSplit

from .common import E5, ROOT, Stopwatch, arguments, peak_rss, prepare, say, write

DATA = ROOT.parent / "shared" / "data" / "piaf"  # beside the repository
FILE = "piaf-v1.0.json"
# The lowest layers and the embeddings, four fifths of the weights, stay as they are: a third less to compute.
SETTINGS = {
    "max_length": 256,
    "batch_size": 16,
    "learning_rate": 2e-4,
    "max_epochs": 4,
    "freeze": 4,
    "dropout": 0.1,
    "attention_dropout": 0.0,
}
_WORD = re.compile(r"\w{3,}")
_SENTENCE = re.compile(r"(?<=[.!?;:])\s+")


def read(folder: Path) -> pd.DataFrame:
    """Return the questions, or end with what is missing."""
    path = folder / FILE
    if not path.exists():
        raise SystemExit(f"{path} is missing: put PIAF 1.0 (github.com/etalab-ia/piaf-code) there.")
    from sktransformer.datasets import load_squad

    squad = load_squad(path)
    say(
        f"{len(squad.frame)} questions; {squad.report['finding'].value_counts().to_dict() or 'nothing'} mended"
    )
    return squad.frame


class Judge:
    """Fits on the questions of 80 % of the articles, scores the others."""

    def __init__(self, frame: pd.DataFrame, quick: bool) -> None:
        splitter = GroupShuffleSplit(1, test_size=0.2, random_state=0)
        training, test = next(splitter.split(frame, groups=frame["title"]))
        if quick:
            training, test = training[:48], test[:24]
        self.train, self.test = frame.iloc[training], frame.iloc[test]

    def facts(self) -> dict[str, Any]:
        parts = {"train": self.train, "test": self.test}
        counts = {name: len(part) for name, part in parts.items()}
        return counts | {f"{name}_articles": part["title"].nunique() for name, part in parts.items()}

    def score(self, name: str, predicted: Any, **measured: float) -> dict[str, Any]:
        from sktransformer import answer_exact_match_score, answer_f1_score

        true = self.test["answers"]
        found: dict[str, Any] = dict(measured)
        for articles in (
            "english",
            "french",
        ):  # the official evaluation, and one that leaves French articles out
            found[f"f1_{articles}"] = answer_f1_score(true, predicted, articles=articles)
            found[f"exact_match_{articles}"] = answer_exact_match_score(true, predicted, articles=articles)
        say(f"  {name}: F1 {found['f1_english']:.3f}, exact match {found['exact_match_english']:.3f}")
        return found


def by_words(judge: Judge) -> dict[str, Any]:
    """Answer with the sentence that shares most words with the question."""

    def sentence(question: str, context: str) -> str:
        asked = set(_WORD.findall(question.lower()))
        return max(_SENTENCE.split(context), key=lambda text: len(asked & set(_WORD.findall(text.lower()))))

    pairs = zip(judge.test["question"], judge.test["context"], strict=True)
    name = "sentence with most of the question's words"
    return {name: judge.score(name, [sentence(*pair) for pair in pairs])}


def fine_tuned(judge: Judge, seed: int, quick: bool) -> dict[str, Any]:
    from sktransformer import TransformerQuestionAnswerer

    settings: dict[str, Any] = {**SETTINGS, **({"max_epochs": 1, "freeze": 10} if quick else {})}
    reader = TransformerQuestionAnswerer(E5, precision="float32", random_state=seed, **settings)
    watch = Stopwatch()
    watch.start()
    reader.fit(judge.train, judge.train["answers"])
    fitted = watch.stop()
    watch.start()
    predicted = reader.predict(judge.test)
    asked = watch.stop()
    return judge.score(
        f"fine-tuned multilingual-e5-small, seed {seed}",
        predicted,
        fit_wall_seconds=fitted.wall,
        fit_cpu_seconds=fitted.cpu,
        milliseconds_per_question=asked.cpu / len(predicted) * 1000,
        train_loss=float(reader.history_["train_loss"].iloc[-1]),
        peak_mb=peak_rss() / 1e6,
    )


def together(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Average the runs of several seeds; the spread of F1 beside it."""
    averages = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
    scores = [run["f1_english"] for run in runs]
    return {
        **averages,
        "f1_std": float(np.std(scores, ddof=1)) if len(runs) > 1 else 0.0,
        "f1_by_seed": scores,
    }


def main() -> None:
    parser = arguments(__doc__ or "", rounds=1, threads=2)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the file (%(default)s)")
    parser.add_argument(
        "--seeds", type=int, default=1, help="fits, each with a seed of its own (%(default)s)"
    )
    options = parser.parse_args()
    prepare(options)
    judge = Judge(read(options.data), options.quick)
    settings = {**judge.facts(), "encoder": E5, **SETTINGS}
    results = by_words(judge)
    write("answering", options, results, settings)
    runs: list[dict[str, Any]] = []
    for seed in range(options.seeds):
        runs.append(fine_tuned(judge, seed, options.quick))
        results["fine-tuned multilingual-e5-small"] = together(runs)
        write("answering", options, results, settings)  # after each: one takes the better part of an hour


if __name__ == "__main__":
    main()
