"""What pruning saves: epochs and best score of the same search with and without it.

The sample inbox's three largest classes, cleaned; a small BERT trained from scratch, whose learning rate decides
whether it learns at all. A round is a seed of the sampler, and within it the searches take turns. A search's best score
is noise to some degree (another seed gives another one), so differences stand beside the spread over seeds.

    python -m benchmarks.tuning [--rounds N] [--quick]
"""

from __future__ import annotations

import statistics
import warnings
from functools import partial
from typing import Any

import numpy as np
from skorch.callbacks import Callback
from transformers import BertConfig

from sktransformer import EmailCleaner, OptunaSearch, TransformerClassifier, load_french_emails, tfidf_svm

from .common import Sample, Stopwatch, arguments, interleave, prepare, say, seconds, summary, write

N_CLASSES = 3
MODEL = {
    "vocab_size": 2000,
    "hidden_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "max_position_embeddings": 64,
}
FIXED = {
    "max_length": 48,
    "truncation": "head",
    "batch_size": 8,
    "max_epochs": 8,
    "attention_dropout": 0.0,
    "precision": "float32",
    "random_state": 0,
}
SPACE = {
    "learning_rate": (3e-4, 2e-2, "log"),
    "weight_decay": (1e-3, 1e-1, "log"),
    "dropout": (0.0, 0.3),
    "warmup_ratio": (0.0, 0.3),
}
PRUNERS = {"without pruning": None, "median": "median", "hyperband": "hyperband"}


class Epochs(Callback):  # type: ignore[misc]  # skorch ships no types
    """Counts the epochs of all fits."""

    count = 0

    def on_epoch_end(
        self, net: Any, dataset_train: Any = None, dataset_valid: Any = None, **kwargs: Any
    ) -> None:
        type(self).count += 1


def inbox() -> tuple[list[str], list[str]]:
    """Cleaned texts and labels of the largest classes."""
    frame = load_french_emails(as_frame=True).frame
    frame = frame[frame["label"].isin(frame["label"].value_counts().index[:N_CLASSES])]
    texts = np.asarray(EmailCleaner().fit_transform(frame[["subject", "body"]])).ravel()
    return [str(text) for text in texts], list(frame["label"])


def search(pruner: str | None, seed: int, n_trials: int) -> OptunaSearch:
    """Return one of the competitors."""
    classifier = TransformerClassifier(BertConfig(**MODEL), callbacks=[Epochs], **FIXED)
    return OptunaSearch(
        classifier,
        SPACE,
        n_trials=n_trials,
        cv=3,
        scoring="f1_macro",
        refit=False,
        pruner=pruner,
        random_state=seed,
        study_name="tuning",  # hyperband draws its brackets from the name
    )


def summarize(
    found: dict[str, list[dict[str, float]]], samples: dict[str, list[Sample]]
) -> dict[str, dict[str, Any]]:
    """Epochs, scores and seconds of each search, and beside those of the search without pruning of the same round."""
    plain = found["without pruning"]
    summaries = {}
    for name, runs in found.items():
        pairs = list(zip(runs, plain, strict=True))
        gained = [run["best_score"] - whole["best_score"] for run, whole in pairs]
        summaries[name] = {
            **{key: summary([run[key] for run in runs]) for key in runs[0]},
            "share_of_epochs": summary([run["epochs"] / whole["epochs"] for run, whole in pairs]),
            "score_gained": summary(gained),
            "mean_score_gained": statistics.mean(gained),
            "seconds": seconds(samples[name]),
        }
        share = summaries[name]["share_of_epochs"]["median"]
        say(f"{name}: {share:.0%} of the epochs, best macro-F1 {statistics.mean(gained):+.3f} on average")
    return summaries


def main() -> None:
    parser = arguments(__doc__ or "", rounds=3)
    parser.add_argument("--trials", type=int, default=16, help="trials of a search (%(default)s)")
    parser.add_argument("--hyperband", action="store_true", help="measure hyperband too")
    options = parser.parse_args()
    prepare(options)
    warnings.simplefilter(
        "ignore"
    )  # mails are cut and runs collapse, which is what the searches are to find out
    names = list(PRUNERS) if options.hyperband else ["without pruning", "median"]
    n_trials = 4 if options.quick else options.trials
    texts, labels = inbox()
    found: dict[str, list[dict[str, float]]] = {name: [] for name in names}

    def run(name: str) -> Sample:
        Epochs.count = 0
        watch = Stopwatch()
        watch.start()
        done = search(PRUNERS[name], len(found[name]), n_trials).fit(texts, labels)
        sample = watch.stop()
        pruned = int((done.cv_results_["trial_state"] == "pruned").sum())
        found[name].append({"epochs": Epochs.count, "best_score": float(done.best_score_), "pruned": pruned})
        say(f"  {name}: {found[name][-1]}")
        return sample

    samples = interleave({name: partial(run, name) for name in names}, options.rounds, warm_up=False)
    space = {"svm__C": (0.03, 30.0, "log")}
    baseline = OptunaSearch(tfidf_svm(), space, n_trials=5, cv=3, scoring="f1_macro", random_state=0)
    results = {
        "documents": len(texts),
        "tfidf_svm_best_score": float(baseline.fit(texts, labels).best_score_),
        "searches": summarize(found, samples),
    }
    write("tuning", options, results, {"model": MODEL, "fixed": FIXED, "space": SPACE, "trials": n_trials})


if __name__ == "__main__":
    main()
