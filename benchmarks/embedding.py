"""Embeddings: similarity, few shots, what fewer bytes cost, what the cache saves.

``../shared/data`` holds STS-B in French (machine-translated pairs with grades from 0 to 5), BANKING77 (customer
questions in 77 classes) and short French customer messages.

- similarity: Spearman's correlation of cosines and grades on the development part, of a frozen encoder and of one
  tuned on graded pairs of the training part. The development part is looked at once a model.
- few_shots: accuracy from 8 and 16 examples a class, of a tuned embedder under a logistic regression, and of SetFit
  with the same weights: the library where it is installed and runs, else its published recipe (pairs of the same and of
  different classes, cosines against 1 and 0, squared error, then a logistic regression; Tunstall et al. 2022,
  "Efficient Few-Shot Learning Without Prompts", section 3) written out in torch. The results say which.
- bytes: how many of the ten nearest documents by float32 are among the ten nearest by int8 and by binary vectors.
- cache: a grid search of 5 folds x 20 points over 1000 messages, with a cache and without. Without, `--points-off` of
  the 20 points are measured and the time is multiplied: all points cost about the same.

    python -m benchmarks.embedding [--quick] [--sections similarity few_shots bytes cache] [--points-off N]
"""

from __future__ import annotations

import argparse
import csv
import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from sktransformer import TransformerEmbedder

from .cleaning_gain import read
from .common import E5, MINILM, ROOT, Sample, Stopwatch, arguments, bundled, prepare, say, summary, write

DATA = ROOT.parent / "shared" / "data"  # beside the repository
SECTIONS = ("similarity", "few_shots", "bytes", "cache")
TUNED = {"fine_tune": "labels", "learning_rate": 1e-4, "max_epochs": 8, "batch_size": 154}
GRADED = {
    "fine_tune": "graded",
    "learning_rate": 1e-4,
    "max_epochs": 2,
    "batch_size": 32,
    "freeze": "embeddings",
}


def rows_of(*parts: str) -> list[list[str]]:
    """Return the rows of a CSV file of the data folder, or end with what is missing."""
    path = DATA.joinpath(*parts)
    if not path.exists():
        raise SystemExit(
            f"{path} is missing; see the SOURCE.txt files of the data folder for where it comes from."
        )
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def measured(run: Callable[[], Any]) -> tuple[Any, Sample]:
    """Return what a function returns, and how long it took."""
    watch = Stopwatch()
    watch.start()
    found = run()
    return found, watch.stop()


# -- similarity ----------------------------------------------------------------------------------------------------


def graded(part: str) -> tuple[list[tuple[str, str]], np.ndarray]:
    rows = rows_of("stsb_fr", f"stsb-fr-{part}.csv")
    return [(a, b) for a, b, _ in rows], np.array([float(grade) for _, _, grade in rows])


def correlation(embedder: TransformerEmbedder, pairs: list[tuple[str, str]], grades: np.ndarray) -> float:
    first, second = (embedder.transform([pair[i] for pair in pairs]) for i in (0, 1))
    return float(spearmanr((first * second).sum(axis=1), grades).statistic)


def similarity(options: argparse.Namespace) -> dict[str, Any]:
    (pairs, grades), (held, expected) = graded("train"), graded("dev")
    if options.quick:
        pairs, grades, held, expected = pairs[:64], grades[:64], held[:100], expected[:100]
    found: dict[str, Any] = {"training_pairs": len(pairs), "development_pairs": len(held), "spearman": {}}
    # no memory here: the development part is read once a model
    frozen, sample = measured(lambda: TransformerEmbedder(E5).fit(held[:1]))
    found["spearman"]["frozen multilingual-e5-small"] = correlation(frozen, held, expected)
    say(f"  frozen: {found['spearman']}")
    tuned = TransformerEmbedder(E5, random_state=0, **GRADED)
    _, sample = measured(lambda: tuned.fit(pairs, grades))
    found["spearman"]["tuned on graded pairs"] = correlation(tuned, held, expected)
    found["tuning_cpu_seconds"] = sample.cpu
    say(f"  {found}")
    return found


# -- few shots -----------------------------------------------------------------------------------------------------


def questions(part: str) -> tuple[list[str], np.ndarray]:
    rows = rows_of("banking77", f"{part}.csv")[1:]
    return [text for text, _ in rows], np.array([label for _, label in rows])


def drawn(labels: np.ndarray, shots: int, seed: int) -> np.ndarray:
    """Rows of `shots` examples a class."""
    order = np.random.default_rng(seed).permutation(len(labels))
    return np.concatenate([order[labels[order] == label][:shots] for label in np.unique(labels)])


def ours(texts: list[str], labels: np.ndarray, test: list[str], seed: int) -> tuple[np.ndarray, Sample]:
    tuned = TransformerEmbedder(MINILM, random_state=seed, **TUNED)
    pipeline = make_pipeline(tuned, LogisticRegression(C=10, max_iter=1000))
    _, sample = measured(lambda: pipeline.fit(texts, labels))
    return pipeline.predict(test), sample


def setfit_library(
    texts: list[str], labels: np.ndarray, test: list[str], seed: int
) -> tuple[np.ndarray, Sample]:
    """SetFit's own trainer, one epoch of its pairs."""
    from datasets import Dataset
    from setfit import SetFitModel, Trainer, TrainingArguments

    model = SetFitModel.from_pretrained(str(bundled(MINILM)))
    settings = TrainingArguments(
        batch_size=16, num_epochs=1, num_iterations=20, seed=seed, report_to="none", save_strategy="no"
    )
    data = Dataset.from_dict({"text": texts, "label": labels.tolist()})
    trainer = Trainer(model=model, args=settings, train_dataset=data)
    _, sample = measured(trainer.train)
    return np.asarray(model.predict(test)), sample


def setfit_recipe(
    texts: list[str], labels: np.ndarray, test: list[str], seed: int
) -> tuple[np.ndarray, Sample]:
    """SetFit's recipe in torch, with sentence-transformers' model: 20 iterations of pairs, one epoch, batches of 16."""
    import torch
    from sentence_transformers import SentenceTransformer

    torch.manual_seed(seed)
    model = SentenceTransformer(str(bundled(MINILM)), device="cpu")

    def train() -> LogisticRegression:
        pairs = setfit_pairs(labels, 20, seed)
        optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5, weight_decay=0.01, fused=True)
        n_steps, n_warm = -(-len(pairs) // 16), -(-len(pairs) // 160)
        factor = lambda step: min((step + 1) / n_warm, (n_steps - step) / max(1, n_steps - n_warm))  # noqa: E731
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
        model.train()
        for start in range(0, len(pairs), 16):
            batch = pairs[start : start + 16]
            first, second = (
                model(model.tokenize([texts[pair[i]] for pair in batch]))["sentence_embedding"]
                for i in (0, 1)
            )
            wanted = torch.tensor([pair[2] for pair in batch])
            loss = torch.nn.functional.mse_loss(torch.cosine_similarity(first, second), wanted)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
        model.eval()
        return LogisticRegression(max_iter=1000).fit(model.encode(texts, show_progress_bar=False), labels)

    head, sample = measured(train)
    return head.predict(model.encode(test, show_progress_bar=False)), sample


def setfit_pairs(labels: np.ndarray, iterations: int, seed: int) -> list[tuple[int, int, float]]:
    """For each document and iteration one pair of its class and one of another."""
    source, pairs = random.Random(seed), []
    members = {label: np.flatnonzero(labels == label).tolist() for label in np.unique(labels)}
    everyone = list(range(len(labels)))
    for _ in range(iterations):
        for i, label in enumerate(labels):
            pairs.append((i, source.choice(members[label]), 1.0))
            other = source.choice(everyone)
            while labels[other] == label:
                other = source.choice(everyone)
            pairs.append((i, other, 0.0))
    source.shuffle(pairs)
    return pairs


def peer() -> tuple[str, Callable[..., tuple[np.ndarray, Sample]]]:
    """SetFit where it runs, else its recipe."""
    try:
        from setfit import Trainer  # noqa: F401
    except ImportError as error:
        say(f"  setfit does not run here ({error}): its recipe, written out")
        return "SetFit's recipe, written out in torch", setfit_recipe
    return "setfit", setfit_library


def few_shots(options: argparse.Namespace, save: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    (texts, labels), (test, expected) = questions("train"), questions("test")
    name, run = peer()
    seeds = range(1 if options.quick else 5)
    classes = np.unique(labels)[:: 19 if options.quick else 1]
    chosen = np.flatnonzero(np.isin(expected, classes))[:: 1 if options.quick else 3]
    test, expected = [test[i] for i in chosen], expected[chosen]
    found: dict[str, Any] = {"peer": name, "test_documents": len(test), "classes": len(classes), "shots": {}}
    for shots in (8, 16):
        runs = {"sktransformer": ours, name: run}
        accuracy: dict[str, list[float]] = {key: [] for key in runs}
        cpu: dict[str, list[float]] = {key: [] for key in runs}
        for seed in seeds:
            rows = drawn(labels, shots, seed)
            rows = rows[np.isin(labels[rows], classes)]
            for key, one in runs.items():
                predicted, sample = one([texts[i] for i in rows], labels[rows], test, seed)
                accuracy[key].append(float((predicted == expected).mean()))
                cpu[key].append(sample.cpu)
                say(f"  {shots} shots, seed {seed}  {key:<40} {accuracy[key][-1]:.3f}  {sample.cpu:8.1f} s")
            found["shots"][str(shots)] = {
                key: {
                    "accuracy": summary(accuracy[key]),
                    "by_seed": accuracy[key],
                    "cpu_seconds": summary(cpu[key]),
                }
                for key in runs
            }
            save(found)
    return found


# -- bytes ---------------------------------------------------------------------------------------------------------


def nearest(queries: np.ndarray, documents: np.ndarray, dtype: str) -> np.ndarray:
    """Rows of the ten nearest documents: by cosine, by Hamming distance for binary."""
    if dtype == "binary":
        a, b = (np.unpackbits(one, axis=1).astype(np.float32) * 2 - 1 for one in (queries, documents))
    else:
        a, b = queries.astype(np.float32), documents.astype(np.float32)
        b = b / np.linalg.norm(b, axis=1, keepdims=True)
    return np.argsort(-(a @ b.T), axis=1, kind="stable")[:, :10]


def fewer_bytes(options: argparse.Namespace) -> dict[str, Any]:
    (corpus, _), (queries, _) = questions("train"), questions("test")
    corpus, queries = (corpus[::100], queries[::300]) if options.quick else (corpus[::2], queries[::6])
    found: dict[str, Any] = {"documents": len(corpus), "queries": len(queries), "recall_at_10": {}}
    for model in (MINILM, E5):
        embedder = TransformerEmbedder(model, memory="memory")
        kept: dict[str, np.ndarray] = {}
        recall: dict[str, float] = {}
        for dtype in ("float32", "float16", "int8", "binary"):
            embedder.set_params(output_dtype=dtype).fit(corpus)
            kept[dtype] = nearest(
                embedder.transform(queries, role="query"), embedder.transform(corpus, role="document"), dtype
            )
            shared = [len(np.intersect1d(a, b)) for a, b in zip(kept[dtype], kept["float32"], strict=True)]
            recall[dtype] = float(np.mean(shared)) / 10
        found["recall_at_10"][model] = recall
        say(f"  {model}: {recall}")
    return found


# -- cache ---------------------------------------------------------------------------------------------------------


def messages() -> tuple[list[str], np.ndarray]:
    """Different messages in an order of their own, so that folds and parts hold every class."""
    texts, labels = read(DATA / "fr_customer_messages")
    order = np.random.default_rng(0).permutation(len(texts))
    return [texts[i] for i in order], labels[order]


def cache(options: argparse.Namespace) -> dict[str, Any]:
    texts, labels = messages()
    n, folds, points = (60, 2, 3) if options.quick else (1000, 5, 20)
    texts, labels = texts[:n], labels[:n]
    strengths = np.logspace(-2, 2, points)

    def search(memory: str | None, values: np.ndarray) -> GridSearchCV:
        pipeline = make_pipeline(
            TransformerEmbedder(MINILM, memory=memory), LogisticRegression(max_iter=1000)
        )
        grid = {"logisticregression__C": values}
        return GridSearchCV(pipeline, grid, cv=folds, refit=False, error_score="raise").fit(texts, labels)

    search(None, strengths[:1]) if options.quick else TransformerEmbedder(MINILM).fit_transform(texts[:8])
    on, with_cache = measured(lambda: search("memory", strengths))
    few = strengths[:: max(1, points // options.points_off)][: options.points_off]
    off, without = measured(lambda: search(None, few))
    shared = np.isin(strengths, few)
    scale = points / len(few)
    found = {
        "documents": len(texts),
        "folds": folds,
        "points": points,
        "points_measured_without": len(few),
        "cpu_seconds": {"on": with_cache.cpu, "off": without.cpu * scale},
        "times_faster": {
            "cpu": summary([without.cpu * scale / with_cache.cpu]),
            "wall": summary([without.wall * scale / with_cache.wall]),
        },
        "largest_difference_of_scores": float(
            np.abs(on.cv_results_["mean_test_score"][shared] - off.cv_results_["mean_test_score"]).max()
        ),
    }
    say(f"  {found}")
    return found


def main() -> None:
    parser = arguments(__doc__ or "", rounds=1)
    parser.add_argument("--sections", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument(
        "--points-off", type=int, default=2, help="points measured without a cache (%(default)s)"
    )
    options = parser.parse_args()
    prepare(options)
    warnings.filterwarnings("ignore", message="lbfgs failed to converge")
    results: dict[str, Any] = {}

    def save(name: str, found: dict[str, Any]) -> Path:
        """Write what was measured so far: a run takes hours, and may be cut."""
        results[name] = found
        return write("embedding", options, results, {"similarity": GRADED, "few_shots": TUNED})

    if "bytes" in options.sections:
        save("bytes", fewer_bytes(options))
    if "cache" in options.sections:
        save("cache", cache(options))
    if "similarity" in options.sections:
        save("similarity", similarity(options))
    if "few_shots" in options.sections:
        save("few_shots", few_shots(options, lambda found: save("few_shots", found)))


if __name__ == "__main__":
    main()
