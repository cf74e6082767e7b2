"""What cleaning wins back: macro-F1 on plain messages, on mails made of them, and on those mails cleaned.

``../shared/data/fr_customer_messages`` holds short French customer messages in four classes, from a public repository
(github.com/medsaa0/email-classifier-api, MIT licence). They read as if written by hand or by a language model for the
purpose; many are copies, or one sentence with another ending, and their labels are disputable in part. So copies are
dropped, messages with two labels too, near copies stay on one side of the split, and the figures say what cleaning
wins back on this inbox, not how well any inbox can be sorted.

Round each message go a greeting, a closing, a signature, a legal notice and a quoted message of another class out of
the same part, see ``wrapping.py``. A quote from another class is the worst case: real threads mostly stay on their
topic. A model is trained and judged on the same kind of text: plain, raw mails, or cleaned mails, without the greeting
and with it. The share won back is (cleaned - raw) / (plain - raw); its interval comes from drawing the test messages
anew, the same ones for all, with the training part and the seeds as they are. A round is a seed of fine-tuning, which
sees 500 messages of the training part only and leaves eight of twelve layers as they are, so that all takes under
twenty minutes of one core.
Fine-tuning can learn where in a mail to look, so that wrapping costs it little, and a few test messages decide about
the share that is won back: look at the interval, which ``--folds 3`` narrows.

    python -m benchmarks.cleaning_gain [--quick]
"""

from __future__ import annotations

import csv
import re
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.pipeline import make_pipeline

from .common import E5, ROOT, Stopwatch, arguments, prepare, say, write
from .wrapping import Wrapped, flat, wrap

DATA = ROOT.parent / "shared" / "data" / "fr_customer_messages"  # beside the repository
CLEANED = {"cleaned": {"keep_greetings": False}, "cleaned, greetings kept": {}}  # settings of EmailCleaner
CONDITIONS = ("plain", "raw", *CLEANED)
N_FOLDS = 3  # a third is judged, two thirds train
ALIKE = 0.6  # cosine of letter runs above which two messages count as near copies
RESAMPLES = 2000
PROMPT = "query: "
MOST_TUNED = 500  # messages of the training part that fine-tuning sees, since raw mails are long
MAX_LENGTH = 256  # tokens; a few mails in a thousand have more
FINE_TUNED: dict[str, Any] = {
    "max_length": MAX_LENGTH,
    "batch_size": 8,
    "learning_rate": 1.5e-4,
    "max_epochs": 3,
    "freeze": 8,
    "precision": "float32",
}

# -- the inbox -------------------------------------------------------------------------------------


def read(folder: Path) -> tuple[list[str], np.ndarray]:
    """Return the distinct messages that have one label, and the labels; or end with what is missing."""
    path = folder / "data.csv"
    if not path.exists():
        raise SystemExit(
            f"{path} is missing: put Data/data.csv of github.com/medsaa0/email-classifier-api (MIT licence) there."
        )
    found: dict[str, set[str]] = {}
    with path.open(encoding="utf-8-sig", newline="") as file:
        for row in csv.DictReader(file, delimiter=";"):
            found.setdefault(" ".join(row["message"].split()), set()).add(row["category"])
    certain = {text: labels for text, labels in found.items() if len(labels) == 1}
    return list(certain), np.asarray([next(iter(labels)) for labels in certain.values()])


def near_copies(texts: Sequence[str]) -> np.ndarray:
    """Number the messages so that those whose first sentences are alike, or linked by such, have one number."""
    openings = [re.split(r"(?<=[.?!])\s", text)[0] for text in texts]
    vectors = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5)).fit_transform(openings)
    numbers: np.ndarray = connected_components(vectors @ vectors.T > ALIKE, directed=False)[1]
    return numbers


@dataclass
class Part:
    """The messages of one side of a split, as they are and as mails."""

    labels: np.ndarray
    mails: list[Wrapped]
    texts: dict[str, list[str]]

    def draw(self, count: int) -> Part:
        """At most `count` of the messages, the same ones each time."""
        rows = np.random.default_rng(0).permutation(len(self.labels))[:count]
        texts = {condition: [texts[row] for row in rows] for condition, texts in self.texts.items()}
        return Part(self.labels[rows], [self.mails[row] for row in rows], texts)

    @classmethod
    def of(cls, texts: list[str], labels: np.ndarray, seed: tuple[int, int]) -> Part:
        from sktransformer import EmailCleaner

        mails = wrap(texts, labels.tolist(), np.random.default_rng(seed))
        raw = [mail.text for mail in mails]
        cleaned = {name: list(EmailCleaner(**how).transform(raw)) for name, how in CLEANED.items()}
        return cls(labels, mails, {"plain": texts, "raw": raw, **cleaned})


def split(texts: list[str], labels: np.ndarray, quick: bool) -> list[tuple[Part, Part]]:
    """Return the (training, test) parts of each fold; near copies stay together, quotes stay in their part."""
    folds = StratifiedGroupKFold(N_FOLDS, shuffle=True, random_state=0)
    parts = []
    for fold, sides in enumerate(folds.split(texts, labels, near_copies(texts))):
        sides = [rows[:60] for rows in sides] if quick else sides
        train, test = (
            Part.of([texts[row] for row in rows], labels[rows], (fold, side))
            for side, rows in enumerate(sides)
        )
        parts.append((train, test))
    return parts


def inspect(parts: Sequence[Part]) -> dict[str, Any]:
    """How many bodies come back from the mails, whole, and with nothing else."""
    from sktransformer import EmailCleaner

    pairs = [pair for part in parts for pair in zip(part.mails, part.texts["cleaned"], strict=True)]
    whole = [flat(mail.body) in flat(cleaned) for mail, cleaned in pairs]
    exact = [flat(cleaned) == flat(mail.body) for mail, cleaned in pairs]
    raw = [mail.text for mail, _ in pairs]
    watch = Stopwatch()
    watch.start()
    EmailCleaner().transform(raw)
    return {
        "mails": len(pairs),
        "mean_characters": float(np.mean([len(text) for text in raw])),
        "mean_characters_of_body": float(np.mean([len(mail.body) for mail, _ in pairs])),
        "body_whole": float(np.mean(whole)),
        "nothing_but_body": float(np.mean(exact)),
        "milliseconds_per_mail": watch.stop().cpu / len(pairs) * 1000,
    }


# -- the models ------------------------------------------------------------------------------------


@dataclass
class Found:
    """What one model said on the test messages: an array of predictions a seed, by condition; and its cost."""

    true: np.ndarray
    predicted: dict[str, list[np.ndarray]] = field(default_factory=dict)
    cost: dict[str, dict[str, float]] = field(default_factory=dict)


def ask(make: Callable[[int], Any], folds: Sequence[tuple[Part, Part]], seeds: Sequence[int] = (0,)) -> Found:
    """Fit and ask a model for each condition, fold and seed; the answers of all folds stand one after another."""
    found = Found(np.concatenate([test.labels for _, test in folds]))
    for condition in CONDITIONS:
        fits, asks, runs = [], [], []
        for seed in seeds:
            answers = []
            for train, test in folds:
                model, watch = make(seed), Stopwatch()
                watch.start()
                model.fit(train.texts[condition], train.labels)
                fits.append(watch.stop().cpu)
                watch.start()
                answers.append(np.asarray(model.predict(test.texts[condition])))
                asks.append(watch.stop().cpu / len(test.labels) * 1000)
            runs.append(np.concatenate(answers))
            score = f1_score(found.true, runs[-1], average="macro")
            say(
                f"  {condition:<8} seed {seed}: macro-F1 {score:.3f}, fitted in {fits[-1]:.1f} s of processor time"
            )
        found.predicted[condition] = runs
        found.cost[condition] = {
            "fit_cpu_seconds": float(np.mean(fits)),
            "milliseconds_per_document": float(np.mean(asks)),
        }
    return found


def tfidf(seed: int) -> Any:
    from sktransformer import tfidf_svm

    return tfidf_svm(random_state=seed)


def frozen(seed: int) -> Any:
    from sktransformer import TransformerEmbedder

    embedder = TransformerEmbedder(E5, prompt=PROMPT, max_length=MAX_LENGTH, precision="float32")
    return make_pipeline(embedder, LogisticRegression(C=30, max_iter=3000, random_state=seed))


def fine_tuned(seed: int, **settings: Any) -> Any:
    from sktransformer import TransformerClassifier

    return TransformerClassifier(E5, random_state=seed, **{**FINE_TUNED, **settings})


# -- the figures -----------------------------------------------------------------------------------


def macro_f1(true: np.ndarray, predicted: np.ndarray, n_classes: int) -> float:
    """Mean F1 of the classes; numbers of classes go in. As scikit-learn's, but quick enough to be drawn anew."""
    table = np.bincount(true * n_classes + predicted, minlength=n_classes**2).reshape(n_classes, n_classes)
    hits, both = table.diagonal(), table.sum(0) + table.sum(1)
    return float(np.mean(2 * hits[both > 0] / both[both > 0]))


def judge(found: Found, resamples: int = RESAMPLES) -> dict[str, Any]:
    """Macro-F1 by condition, what wrapping cost, the share that cleaning won back, and their intervals (95 %)."""
    names = sorted(set(found.true.tolist()))
    codes = {
        condition: [np.searchsorted(names, run) for run in runs]
        for condition, runs in found.predicted.items()
    }
    true = np.searchsorted(names, found.true)

    def scores(rows: np.ndarray) -> list[float]:
        return [
            float(np.mean([macro_f1(true[rows], run[rows], len(names)) for run in codes[condition]]))
            for condition in CONDITIONS
        ]

    everything = np.arange(len(true))
    random = np.random.default_rng(0)
    drawn = np.array([scores(random.choice(everything, len(everything))) for _ in range(resamples)])
    now = dict(zip(CONDITIONS, scores(everything), strict=True))
    columns = dict(zip(CONDITIONS, drawn.T, strict=True))
    return {
        "documents": len(true),
        "macro_f1": now,
        "macro_f1_by_seed": {
            condition: [macro_f1(true, run, len(names)) for run in runs] for condition, runs in codes.items()
        },
        "lost": now["plain"] - now["raw"],
        "lost_interval": interval(columns["plain"] - columns["raw"]),
        **won_back("cleaned", now, columns),
        "greetings_kept": won_back("cleaned, greetings kept", now, columns),
        "cost": found.cost,
    }


def won_back(name: str, now: dict[str, float], drawn: dict[str, np.ndarray]) -> dict[str, Any]:
    """What one way of cleaning leaves of the loss, and what it wins back."""
    return {
        "left": now["plain"] - now[name],
        "left_interval": interval(drawn["plain"] - drawn[name]),
        "share_won_back": share(now["plain"], now["raw"], now[name]),
        "share_interval": interval(share(drawn["plain"], drawn["raw"], drawn[name])),
    }


def share(plain: Any, raw: Any, cleaned: Any) -> Any:
    """What part of the loss cleaning undoes; without meaning, and nan, where wrapping cost nothing."""
    lost = np.subtract(plain, raw)
    with np.errstate(divide="ignore", invalid="ignore"):
        won = np.where(lost > 0, np.subtract(cleaned, raw) / lost, np.nan)
    return won if won.ndim else float(won)


def interval(values: np.ndarray) -> list[float]:
    """Where 95 % of the values that have a meaning lie."""
    values = values[~np.isnan(values)]
    return [float(bound) for bound in np.percentile(values, (2.5, 97.5))] if len(values) else []


def measure(folds: Sequence[tuple[Part, Part]], options: Any) -> dict[str, Any]:
    """All figures of each model; TF-IDF is judged on all folds, the encoders on as many as asked for."""
    few = folds[: options.folds]
    tuning = [(train.draw(MOST_TUNED), test) for train, test in few]
    less = {"max_epochs": 1} if options.quick else {}
    runs: dict[str, Callable[[], Found]] = {
        "tfidf_svm": lambda: ask(tfidf, folds),
        "fine-tuned multilingual-e5-small": lambda: ask(
            lambda seed: fine_tuned(seed, **less), tuning, range(options.rounds)
        ),
        "frozen multilingual-e5-small + logistic regression": lambda: ask(frozen, few),
    }
    models = {}
    for name, run in runs.items():
        say(name)
        models[name] = found = judge(run())
        say(f"  won back {found['share_won_back']:.3f}, 95 % interval {found['share_interval']}")
    return models


def main() -> None:
    parser = arguments(__doc__ or "", rounds=1)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of data.csv (%(default)s)")
    parser.add_argument(
        "--folds",
        type=int,
        default=1,
        choices=range(1, N_FOLDS + 1),
        help="folds for the encoders (%(default)s)",
    )
    options = parser.parse_args()
    prepare(options)
    warnings.simplefilter("ignore", ConvergenceWarning)
    texts, labels = read(options.data)
    folds = split(texts, labels, options.quick)
    mails = inspect([test for _, test in folds])
    say(f"{mails}")
    watch = Stopwatch()
    watch.start()
    models = measure(folds, options)
    settings = {
        "messages": len(texts),
        "classes": dict(sorted(Counter(labels.tolist()).items())),
        "groups": int(near_copies(texts).max()) + 1,
        "folds": N_FOLDS,
        "train": len(folds[0][0].labels),
        "most_tuned": MOST_TUNED,
        "fine_tuned": FINE_TUNED,
        "resamples": RESAMPLES,
        "cpu_seconds": watch.stop().cpu,
    }
    write("cleaning_gain", options, {"mails": mails, "models": models}, settings)


if __name__ == "__main__":
    main()
