"""Few examples of many classes: a tuned embedder under a logistic regression, against SetFit.

``../shared/data/banking77`` holds customer questions in 77 classes. Accuracy from 8 and 16 examples a class, five draws
of them, the same weights for both; SetFit's encoder is judged under its own head and under ours. SetFit is the library
where it is installed and runs, else its published recipe (pairs of the same and of different classes, cosines against 1
and 0, squared error, then a logistic regression; Tunstall et al. 2022, "Efficient Few-Shot Learning Without Prompts",
section 3) written out in torch. The results say which. On a chip with bfloat16 both train in it (ours by default,
SetFit through Accelerate's own switch).

It takes hours. A seed that results/few_shots.json holds from the same commit and settings is not run again, so that a
run that was cut goes on, and two processes can share the seeds.

    python -m benchmarks.few_shots [--quick] [--shots 8 16] [--seeds 0 1 2 3 4] [--pairs N]
"""

from __future__ import annotations

import argparse
import os
import random
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from sktransformer import TransformerEmbedder

from .common import MINILM, Sample, arguments, best_precision, bundled, found_before, prepare, say, write
from .embedding import measured, questions

TUNED = {"fine_tune": "labels", "learning_rate": 1e-4, "max_epochs": 8, "batch_size": 154}
SEEDS = 5
OURS, PEER, SAME_HEAD = "sktransformer", "setfit", "setfit, its encoder under our logistic regression"
Answers = dict[str, np.ndarray]  # of a competitor, and of variants that cost no other training


def drawn(labels: np.ndarray, shots: int, seed: int) -> np.ndarray:
    """Rows of `shots` examples a class."""
    order = np.random.default_rng(seed).permutation(len(labels))
    return np.concatenate([order[labels[order] == label][:shots] for label in np.unique(labels)])


def head() -> LogisticRegression:
    """Return what stands over our vectors; SetFit's own has C=1, which is weak for vectors of length one."""
    return LogisticRegression(C=10, max_iter=1000)


def ours(texts: list[str], labels: np.ndarray, test: list[str], seed: int) -> tuple[Answers, Sample]:
    pipeline = make_pipeline(TransformerEmbedder(MINILM, random_state=seed, **TUNED), head())
    _, sample = measured(lambda: pipeline.fit(texts, labels))
    return {OURS: pipeline.predict(test)}, sample


def setfit_library(
    texts: list[str], labels: np.ndarray, test: list[str], seed: int, iterations: int
) -> tuple[Answers, Sample]:
    """SetFit's own trainer, one epoch of its pairs."""
    if best_precision() == "bfloat16":
        os.environ["ACCELERATE_MIXED_PRECISION"] = (
            "bf16"  # its arguments know float16 only, which a CPU lacks
        )
    from datasets import Dataset
    from setfit import SetFitModel, Trainer, TrainingArguments

    model = SetFitModel.from_pretrained(str(bundled(MINILM)))
    settings = TrainingArguments(
        batch_size=16,
        num_epochs=1,
        num_iterations=iterations,
        seed=seed,
        report_to="none",
        save_strategy="no",
    )
    data = Dataset.from_dict({"text": texts, "label": labels.tolist()})
    trainer = Trainer(model=model, args=settings, train_dataset=data)
    _, sample = measured(trainer.train)
    same = head().fit(np.asarray(model.encode(texts)), labels).predict(np.asarray(model.encode(test)))
    return {PEER: np.asarray(model.predict(test)), SAME_HEAD: same}, sample


def setfit_recipe(
    texts: list[str], labels: np.ndarray, test: list[str], seed: int, iterations: int
) -> tuple[Answers, Sample]:
    """SetFit's recipe in torch, with sentence-transformers' model: one epoch of pairs in batches of 16."""
    from sentence_transformers import SentenceTransformer

    torch.manual_seed(seed)
    model = SentenceTransformer(str(bundled(MINILM)), device="cpu")

    def train() -> LogisticRegression:
        pairs = setfit_pairs(labels, iterations, seed)
        optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5, weight_decay=0.01, fused=True)
        n_steps, n_warm = -(-len(pairs) // 16), -(-len(pairs) // 160)
        factor = lambda step: min((step + 1) / n_warm, (n_steps - step) / max(1, n_steps - n_warm))  # noqa: E731
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
        model.train()
        for start in range(0, len(pairs), 16):
            batch = pairs[start : start + 16]
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=best_precision() == "bfloat16"):
                first, second = (
                    model(model.tokenize([texts[pair[i]] for pair in batch]))["sentence_embedding"].float()
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

    own, sample = measured(train)
    learned, asked = (model.encode(part, show_progress_bar=False) for part in (texts, test))
    return {PEER: own.predict(asked), SAME_HEAD: head().fit(learned, labels).predict(asked)}, sample


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


def peer() -> tuple[str, Callable[..., tuple[Answers, Sample]]]:
    """SetFit where it runs, else its recipe."""
    try:
        from setfit import Trainer  # noqa: F401
    except ImportError as error:
        say(f"  setfit does not run here ({error}): its recipe, written out")
        return "SetFit's recipe, written out in torch", setfit_recipe
    return "setfit", setfit_library


def keep(
    options: argparse.Namespace, settings: dict[str, Any], shots: int, seed: int, new: dict[str, Any]
) -> None:
    """Write the figures of a seed beside those that the file holds by now."""
    found = found_before("few_shots", options, settings).get("shots", {})
    of_shots = found.setdefault(str(shots), {})
    for name, figures in new.items():
        of_shots.setdefault(name, {})[str(seed)] = figures
    write("few_shots", options, {"shots": found}, settings)


def main() -> None:
    parser = arguments(__doc__ or "", rounds=1)
    parser.add_argument("--shots", nargs="+", type=int, default=[8, 16])
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(SEEDS)))
    parser.add_argument(
        "--pairs", type=int, default=24_640, help="SetFit's: 20 iterations of 8 shots (%(default)s)"
    )
    options = parser.parse_args()
    prepare(options)
    warnings.filterwarnings("ignore", message="lbfgs failed to converge")
    (texts, labels), (test, expected) = questions("train"), questions("test")
    name, run = peer()
    classes = np.unique(labels)[:: 19 if options.quick else 1]
    chosen = np.flatnonzero(np.isin(expected, classes))[:: 1 if options.quick else 3]
    test, expected = [test[i] for i in chosen], expected[chosen]
    settings = {
        **TUNED, "encoder": MINILM, "peer": name, "pairs": options.pairs,
        "precision": best_precision(),
        "test_documents": len(test), "classes": len(classes),
    }  # fmt: skip
    for shots in options.shots:
        for seed in options.seeds[:1] if options.quick else options.seeds:
            known = found_before("few_shots", options, settings).get("shots", {})
            if str(seed) in known.get(str(shots), {}).get(OURS, {}):
                continue
            rows = drawn(labels, shots, seed)
            rows = rows[np.isin(labels[rows], classes)]
            iterations = max(1, options.pairs // (2 * len(rows)))
            runs = (ours, partial(run, iterations=iterations))
            new: dict[str, Any] = {}
            for one in runs:
                answers, sample = one([texts[i] for i in rows], labels[rows], test, seed)
                for key, predicted in answers.items():
                    new[key] = {"accuracy": float((predicted == expected).mean()), "cpu_seconds": sample.cpu}
                    say(
                        f"  {shots} shots, seed {seed}  {key:<50} {new[key]['accuracy']:.3f}  {sample.cpu:8.1f} s"
                    )
            keep(options, settings, shots, seed, new)


if __name__ == "__main__":
    main()
