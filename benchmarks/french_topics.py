"""French topics (SIB-200): TF-IDF, a frozen encoder, fine-tuning and a vote, trained on one split, judged on another.

``../shared/data/sib200_fr`` holds 701 training and 99 development sentences in seven topics. Whatever is chosen
(C, learning rate, epochs) is chosen on the training part alone; the development part is scored once per model.

    python -m benchmarks.french_topics [--quick]
"""

from __future__ import annotations

import csv
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from .common import E5, MINILM, ROOT, Stopwatch, arguments, prepare, say, write

DATA = ROOT.parent / "shared" / "data" / "sib200_fr"  # beside the repository
PROMPT = "query: "
CANDIDATES = ({"learning_rate": 1e-4, "max_epochs": 5}, {"learning_rate": 2e-4, "max_epochs": 5})
SEEDS = (0, 1, 2)


def read(folder: Path, part: str) -> tuple[list[str], np.ndarray]:
    """Return the sentences and topics of a split, or end with what is missing."""
    path = folder / f"fra_{part}.tsv"
    if not path.exists():
        raise SystemExit(
            f"{path} is missing: put SIB-200's French files (github.com/dadelani/sib-200, data/annotated/fra_Latn: "
            f"train.tsv, dev.tsv) there as fra_train.tsv and fra_dev.tsv."
        )
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [row["text"] for row in rows], np.asarray([row["category"] for row in rows])


class Judge:
    """Fits on the training part, scores the development part, keeps the figures."""

    def __init__(self, folder: Path, quick: bool) -> None:
        self.X, self.y = read(folder, "train")
        self.X_dev, self.y_dev = read(folder, "dev")
        if quick:
            self.X, self.y = self.X[:80], self.y[:80]

    def score(self, name: str, estimator: Any) -> dict[str, Any]:
        watch = Stopwatch()
        watch.start()
        estimator.fit(self.X, self.y)
        fitted = watch.stop()
        watch.start()
        predicted = estimator.predict(self.X_dev)
        asked = watch.stop()
        found = {
            "macro_f1": float(f1_score(self.y_dev, predicted, average="macro")),
            "accuracy": float(accuracy_score(self.y_dev, predicted)),
            "fit_cpu_seconds": fitted.cpu,
            "milliseconds_per_document": asked.cpu / len(self.X_dev) * 1000,
        }
        say(
            f"  {name:<58} macro-F1 {found['macro_f1']:.3f}  accuracy {found['accuracy']:.3f}  fit {fitted.cpu:.1f} s"
        )
        return found


def baselines(judge: Judge) -> dict[str, Any]:
    """TF-IDF as it comes, and the project's own, both with a linear SVM."""
    found = {"TF-IDF (defaults) + LinearSVC": make_pipeline(TfidfVectorizer(), LinearSVC())}
    from sktransformer import tfidf_svm

    found["sktransformer.tfidf_svm()"] = tfidf_svm()
    return {name: judge.score(name, estimator) for name, estimator in found.items()}


def frozen(judge: Judge) -> dict[str, Any]:
    """Embeddings of the frozen encoder, and a logistic regression whose C five folds of the training part choose."""
    from sktransformer import TransformerEmbedder

    search = GridSearchCV(
        LogisticRegression(max_iter=3000),
        {"C": [3, 10, 30, 100]},
        cv=StratifiedKFold(5, shuffle=True, random_state=0),
        scoring="f1_macro",
    )
    name = "frozen multilingual-e5-small + logistic regression"
    found = judge.score(
        name, make_pipeline(TransformerEmbedder(E5, prompt=PROMPT, precision="float32"), search)
    )
    return {name: {**found, "C": search.best_params_["C"]} if hasattr(search, "best_params_") else found}


def fine_tuned(judge: Judge, quick: bool) -> dict[str, Any]:  # long: one run, read from top to bottom
    """Fine-tune the encoder: settings chosen on a fifth of the training part, then three seeds on all of it."""
    from sktransformer import TransformerClassifier

    X, X_valid, y, y_valid = train_test_split(
        judge.X, judge.y, test_size=0.2, stratify=judge.y, random_state=0
    )

    def make(seed: int, settings: dict[str, Any]) -> Any:
        return TransformerClassifier(
            E5,
            max_length=128,
            batch_size=16,
            precision="float32",
            freeze="embeddings",
            random_state=seed,
            **settings,
        )

    tried = []
    for settings in CANDIDATES[:1] if quick else CANDIDATES:
        settings = {**settings, "max_epochs": 1} if quick else settings
        predicted = make(0, settings).fit(X, y).predict(X_valid)
        tried.append((float(f1_score(y_valid, predicted, average="macro")), settings))
        say(f"  {settings}: macro-F1 {tried[-1][0]:.3f} on a fifth of the training part")
    _, chosen = max(tried, key=lambda pair: pair[0])
    seeds = SEEDS[:1] if quick else SEEDS
    runs = [
        judge.score(f"fine-tuned multilingual-e5-small, seed {seed}", make(seed, chosen)) for seed in seeds
    ]
    scores = [run["macro_f1"] for run in runs]
    name = "fine-tuned multilingual-e5-small"
    spread = float(np.std(scores, ddof=1)) if len(scores) > 1 else 0.0
    say(f"  {name}: macro-F1 {np.mean(scores):.3f} +- {spread:.3f} over {len(scores)} seed(s)")
    averages = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
    return {
        name: {
            **averages,
            "macro_f1_std": spread,
            "macro_f1_by_seed": scores,
            "chosen": chosen,
            "tried": [{"macro_f1_on_validation": score, **settings} for score, settings in tried],
        }
    }


def votes(judge: Judge, quick: bool) -> dict[str, Any]:
    """Let two encoders vote: with weights learned on held-out folds, and alike; each of the two beside them."""
    from sktransformer import (
        TransformerClassifier,
        TransformerEmbedder,
        error_correlation_from_predictions,
        soft_vote,
    )

    regression = LogisticRegression(C=10, max_iter=3000)
    tuned = TransformerClassifier(
        MINILM, max_length=128, batch_size=16, learning_rate=3e-4, max_epochs=1 if quick else 6,
        precision="float32", random_state=0,
    )  # fmt: skip
    frozen_e5 = make_pipeline(TransformerEmbedder(E5, prompt=PROMPT, precision="float32"), regression)
    vote = soft_vote([("frozen e5", frozen_e5), ("fine-tuned MiniLM", tuned)], weights="fit", cv=3)
    found = judge.score("vote, weights fitted on three folds", vote)
    found["weights"] = dict(zip(vote.named_estimators, vote.weights_.tolist(), strict=True))
    shares = {name: member.predict_proba(judge.X_dev) for name, member in vote.named_estimators_.items()}
    shares["vote, weighted alike"] = np.mean(list(shares.values()), axis=0)
    predicted = {name: vote.classes_[share.argmax(1)] for name, share in shares.items()}
    found["beside"] = {
        name: float(f1_score(judge.y_dev, labels, average="macro")) for name, labels in predicted.items()
    }
    members = {name: predicted[name] for name in vote.named_estimators}
    errors = error_correlation_from_predictions(judge.y_dev, members)
    found["errors"] = {key: float(value) for key, value in errors.iloc[0].items() if np.isreal(value)}
    say(f"  beside it: {found['beside']}; errors: {found['errors']}")
    return {"vote of two encoders": found}


def main() -> None:
    parser = arguments(__doc__ or "", rounds=1, threads=2)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the two files (%(default)s)")
    options = parser.parse_args()
    prepare(options)
    judge = Judge(options.data, options.quick)
    warnings.simplefilter("ignore", ConvergenceWarning)
    counts = dict(sorted(Counter(judge.y.tolist()).items()))
    settings = {
        "train": len(judge.X),
        "dev": len(judge.X_dev),
        "classes": counts,
        "prompt": PROMPT,
        "encoder": E5,
    }
    results: dict[str, Any] = {}
    quick = options.quick
    for part in (
        lambda: {**baselines(judge), **frozen(judge)},
        lambda: fine_tuned(judge, quick),
        lambda: votes(judge, quick),
    ):
        results |= part()
        write("french_topics", options, results, settings)  # after each: all of it takes an hour of one core


if __name__ == "__main__":
    main()
