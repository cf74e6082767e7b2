"""What an embedder is fine-tuned on: labels, pairs, or graded pairs; how some are held out, and scored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from scipy.stats import spearmanr

from ..._engine.errors import warn_user
from ..._engine.text.documents import Documents
from ..._engine.validation import label_array
from .._labels import as_labels

FINE_TUNE = ("labels", "pairs", "graded")
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class EmbeddingTargets:
    """One row a document ("labels") or a pair of them.

    `targets` are class indices (n,), ids of the two texts (n, 2), or grades (n,); `original` is what scorers are given.
    Pairs of one of `groups` (n,) are drawn into the same batches.
    """

    kind: str
    targets: torch.Tensor
    original: npt.NDArray[Any]
    classes: npt.NDArray[Any] | None = None
    groups: Rows | None = None

    def take(self, rows: Rows) -> EmbeddingTargets:
        """Return the targets of `rows`."""
        return EmbeddingTargets(
            self.kind,
            self.targets[torch.from_numpy(rows)],
            self.original[rows],
            self.classes,
            None if self.groups is None else self.groups[rows],
        )


def as_targets(kind: str, documents: Documents, y: Any) -> EmbeddingTargets:
    """Read what `fine_tune` needs out of `X` and `y`.

    Raises
    ------
    ValueError
        For single texts where pairs belong, missing or unusable `y`, too few rows.
    """
    pairs = documents.second is not None
    if kind != "labels" and not pairs:
        raise ValueError(
            f'fine_tune="{kind}" needs X to hold pairs of texts, got single texts; pass two columns, or for labels of '
            f'single texts fine_tune="labels".'
        )
    if kind == "labels":
        labels = as_labels(y)
        if labels.kind != "single":
            raise ValueError(
                f'fine_tune="labels" needs one label a document, but y is {labels.kind}; pass a column of labels.'
            )
        _count_alone(labels.index, labels.classes)
        return EmbeddingTargets(kind, torch.from_numpy(labels.index), labels.original, labels.classes)
    if kind == "graded":
        grades = _grades(y)
        return EmbeddingTargets(kind, torch.from_numpy(grades).float(), grades)
    if len(documents) < 2:
        raise ValueError('fine_tune="pairs" needs at least 2 pairs: each is set against the others.')
    ids: dict[str, int] = {}
    second = documents.second or []
    numbers = [
        [ids.setdefault(text, len(ids)) for text in pair]
        for pair in zip(documents.first, second, strict=True)
    ]
    return EmbeddingTargets(kind, torch.tensor(numbers), np.array(numbers), groups=_groups(y))


def _groups(y: Any) -> Rows | None:
    if y is None:
        return None
    names = np.asarray(label_array(y), dtype=object)
    names = names[:, 0] if names.ndim == 2 and names.shape[1] == 1 else names
    if names.ndim != 1:
        raise ValueError(
            f'fine_tune="pairs" reads y as the group of each pair, one a row, got an array of shape {names.shape}; '
            f"pass a column of group names, or y=None."
        )
    missing = np.flatnonzero(pd.isna(names))
    if len(missing):
        raise ValueError(
            f'fine_tune="pairs" reads y as the group of each pair, and {len(missing)} are missing, the first in row '
            f"{missing[0]}; name them, or pass y=None."
        )
    grade = next(
        (x for x in names if isinstance(x, (float, np.floating)) and not float(x).is_integer()), None
    )
    if grade is not None:
        raise ValueError(
            f'fine_tune="pairs" reads y as the group of each pair, and {grade:g} names none; for graded pairs pass '
            f'fine_tune="graded".'
        )
    codes: Rows = pd.factorize(names)[0].astype(np.int64)
    return codes


def _count_alone(index: Rows, classes: npt.NDArray[Any]) -> None:
    counts = np.bincount(index, minlength=len(classes))
    if counts.max() < 2:
        raise ValueError(
            'fine_tune="labels" needs a class with two documents to pull together; each of the '
            f"{len(classes)} classes has one."
        )
    alone = [str(name) for name, count in zip(classes, counts, strict=True) if count == 1]
    if alone:
        warn_user(
            f"{len(alone)} class(es) with a single document are only set apart from the others, with nothing to be "
            f"pulled to: {', '.join(alone[:10])}{', ...' if len(alone) > 10 else ''}.",
            UserWarning,
        )


def _grades(y: Any) -> npt.NDArray[np.float64]:
    if y is None:
        raise ValueError('fine_tune="graded" needs y, a number for each pair; got None.')
    try:
        grades = np.asarray(label_array(y), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f'fine_tune="graded" needs a number for each pair in y, but y holds others ({error}); for labels of single '
            f'texts pass fine_tune="labels".'
        ) from error
    if grades.ndim == 2 and grades.shape[1] == 1:
        grades = grades[:, 0]
    if grades.ndim != 1:
        raise ValueError(f"y must be one grade a pair, got an array of shape {grades.shape}.")
    bad = np.flatnonzero(~np.isfinite(grades))
    if len(bad):
        listed = ", ".join(map(str, bad[:10])) + (", ..." if len(bad) > 10 else "")
        raise ValueError(
            f"y has {len(bad)} grade(s) that are NaN or infinite, in row(s) {listed}; drop them."
        )
    if len(np.unique(grades)) < 2:
        raise ValueError(
            f'y has one grade only ({grades[0]:g}), and only their order is learned from; pass fine_tune="pairs" for '
            f"pairs that all belong together."
        )
    return grades


# -- held out ------------------------------------------------------------------------------------------------------


def held_out(targets: EmbeddingTargets, fraction: float, seed: int) -> tuple[Rows, Rows]:
    """Return the rows to train on, and those that decide when to stop.

    Labels: twos of a class, so that each row held out has one to find, from classes that keep two; pairs: any rows.

    Raises
    ------
    ValueError
        When there are too few.
    """
    random = np.random.default_rng(seed)
    n = len(targets.original)
    order = random.permutation(n).astype(np.int64)
    if targets.kind != "labels":
        held = np.sort(order[: max(2, round(fraction * n))])
        if n - len(held) < 2:
            raise ValueError(
                f"early_stopping=True holds out {len(held)} of {n} pairs, which leaves too few; pass more rows."
            )
        return np.setdiff1d(np.arange(n), held), held
    index = targets.targets.numpy()
    members = {c: order[index[order] == c] for c in np.unique(index)}
    twos = [
        (turn, rows[2 * turn : 2 * turn + 2])
        for rows in members.values()
        for turn in range((len(rows) - 2) // 2)
    ]
    shuffled = [twos[i] for i in random.permutation(len(twos))]
    # one two of each class before the second of any
    chosen = [two for _, two in sorted(shuffled, key=lambda one: one[0])][: max(2, round(fraction * n / 2))]
    if len({int(index[two[0]]) for two in chosen}) < 2:
        raise ValueError(
            "early_stopping=True needs two classes of four documents to hold two of each out; "
            "pass more rows or early_stopping=False."
        )
    held = np.sort(np.concatenate(chosen))
    return np.setdiff1d(np.arange(n), held), held


# -- scores --------------------------------------------------------------------------------------------------------

Embed = Callable[[Documents, str | None], npt.NDArray[np.float32]]


def default_score(kind: str, embed: Embed, rows: Sequence[Any], expected: npt.NDArray[Any]) -> float:
    """Score unit vectors of the documents held out; greater is better.

    Labels: the share of documents whose nearest other one has their label. Pairs: the share of first texts whose
    nearest second text is their own. Graded: Spearman's correlation of cosines and grades.
    """
    if kind == "labels":
        vectors = embed(Documents(list(rows)), None)
        cosines = vectors @ vectors.T
        np.fill_diagonal(cosines, -np.inf)
        return float((expected[cosines.argmax(axis=1)] == expected).mean())
    first, second = (Documents([pair[i] for pair in rows]) for i in (0, 1))
    if kind == "pairs":
        nearest = (embed(first, "query") @ embed(second, "document").T).argmax(axis=1)
        return float((expected[nearest, 1] == expected[:, 1]).mean())
    cosines = (embed(first, None) * embed(second, None)).sum(axis=1)
    if len(np.unique(cosines)) < 2 or len(np.unique(expected)) < 2:
        return float("nan")
    return float(spearmanr(cosines, expected).statistic)
