"""The part of the documents that decides when to stop: how it is drawn, and how it is scored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt
import torch

from .._engine.errors import warn_user

# rows to train on, and rows held out
Parts = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


class Targets(Protocol):
    """What `y` becomes: a row of `targets` a document, and the documents' own labels or values, for scorers."""

    @property
    def targets(self) -> torch.Tensor: ...

    @property
    def original(self) -> npt.NDArray[Any]: ...

    def take(self, rows: npt.NDArray[np.int64]) -> Self: ...


def held_out(
    labels: npt.NDArray[np.int64], names: npt.NDArray[Any], fraction: float, seed: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Split rows into training and validation, each class in proportion, and no class lost to the training part.

    scikit-learn's stratified splitters raise when a class has one member, or when the validation part is smaller than
    the number of classes; here a class with one member stays in the training part, with one warning.

    Returns
    -------
    training, validation : int64 arrays of rows, each in order
    """
    random = np.random.default_rng(seed)
    shuffled = random.permutation(len(labels))
    counts = np.bincount(labels, minlength=len(names))
    seen = np.zeros(len(names))
    ranks = np.empty(len(labels))
    # a row's rank within its class, as a fraction: sorting by it takes classes in proportion
    for row in shuffled:
        ranks[row] = (seen[labels[row]] + 0.5) / counts[labels[row]] if counts[labels[row]] > 1 else np.inf
        seen[labels[row]] += 1
    wanted = max(1, round(fraction * len(labels)))
    order = shuffled[np.argsort(ranks[shuffled], kind="stable")]
    last = ranks[order] > 1 - 1 / np.maximum(
        counts[labels[order]], 1
    )  # each class's last row stays in training
    validation = np.sort(order[~last][:wanted])
    alone = [str(name) for name, count in zip(names, counts, strict=True) if count == 1]
    if not len(validation):
        needed = "a class with two members" if len(names) > 1 else "two rows or more"
        raise ValueError(
            f"early_stopping=True needs {needed} to hold one out; pass more rows or early_stopping=False."
        )
    if alone:
        warn_user(
            f"{len(alone)} class(es) with a single member stay out of validation: {', '.join(alone)}.",
            UserWarning,
        )
    return np.setdiff1d(np.arange(len(labels)), validation), validation


def validation_score(
    scorer: Callable[..., float],
    scoring: Any,
    candidate: Any,
    rows: Sequence[Any],
    expected: npt.NDArray[Any],
) -> float:
    """Score the held-out documents; a scorer that is not defined on them says what to do about it."""
    fault = "it is no finite number"
    try:
        score = float(scorer(candidate, rows, expected))
        if np.isfinite(score):
            return score
        cause = None
    except (ValueError, TypeError) as error:
        fault, cause = str(error), error
    raise ValueError(
        f"scoring={scoring!r} can't be computed on the {len(rows)} documents held out for early stopping"
        f"{_labels(expected)}: {fault}; raise validation_fraction or choose another scoring."
    ) from cause


def _labels(expected: npt.NDArray[Any]) -> str:
    """Name the labels, where they are names or whole numbers: not those of answers, tags of words and measures."""
    if expected.dtype.kind == "f" or not all(isinstance(x, (str, int, np.integer)) for x in expected.flat):
        return ""
    return f", with labels {np.unique(expected).tolist()}"
