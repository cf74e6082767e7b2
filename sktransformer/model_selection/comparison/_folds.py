"""The folds: drawn anew for each seed, the same for every estimator."""

from __future__ import annotations

import copy
import numbers
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.utils.multiclass import type_of_target

from ..._engine.errors import warn_user

Split = tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]

CLASSES_NAMED = 5


@dataclass(frozen=True)
class Folds:
    """The splits of every seed.

    Attributes
    ----------
    seeds : list of int
        One a repetition.
    splits : list of list of (train, test)
        For each seed its folds: positions of documents.
    redrawn : bool
        Whether seeds have different folds.
    """

    seeds: list[int]
    splits: list[list[Split]]
    redrawn: bool

    @property
    def n_folds(self) -> int:
        """Folds of one seed."""
        return len(self.splits[0])

    @property
    def test_over_train(self) -> float:
        """Documents of the test parts over documents of the training parts."""
        flat = [split for splits in self.splits for split in splits]
        return sum(len(test) for _, test in flat) / sum(len(train) for train, _ in flat)


def draw_folds(
    cv: Any, X: Any, y: Any, groups: Any, seeds: Sequence[int], *, n_rows: int, classification: bool
) -> Folds:
    """Split for every seed.

    Parameters
    ----------
    cv : int, splitter or iterable of (train, test)
        As :func:`~sktransformer.model_selection.compare_models` takes it.
    X, y, groups : array-likes of n_rows
        As passed to the splitter.
    seeds : sequence of int
        One a repetition.
    n_rows : int
        Documents.
    classification : bool
        Whether an int means stratified folds, where `y` has classes.

    Returns
    -------
    Folds
        At least one fold a seed, none of them empty.
    """
    labels = _labels(y) if classification else None
    if labels is not None and len(np.unique(labels)) == 1:
        raise ValueError(
            f"y holds one class only, {labels.tolist()[0]!r}, so that every answer would be right."
        )
    if isinstance(cv, (str, bytes, bool)) or not (
        isinstance(cv, numbers.Integral) or hasattr(cv, "split") or hasattr(cv, "__iter__")
    ):
        raise TypeError(f"cv must be an int, a splitter or an iterable of (train, test), got {cv!r}.")
    if isinstance(cv, numbers.Integral):
        splits = _counted(int(cv), n_rows, labels, groups, seeds)
    elif hasattr(cv, "split"):
        splits = [_by_splitter(cv, X, y, groups, seed, quiet=i > 0) for i, seed in enumerate(seeds)]
    else:
        fixed = [tuple(np.asarray(part) for part in split) for split in cv]
        splits = [fixed for _ in seeds]  # type: ignore[misc]  # checked below
    splits = [[_checked(split, n_rows, fold) for fold, split in enumerate(of_seed)] for of_seed in splits]
    if len({len(of_seed) for of_seed in splits}) > 1 or not splits[0]:
        raise ValueError(f"cv={cv!r} must give the same number of folds, at least one, for every seed.")
    if labels is not None:
        _warn_of_unlearned(labels, splits)
    return Folds(list(seeds), splits, not all(_equal(splits[0], other) for other in splits[1:]))


def _labels(y: Any) -> npt.NDArray[Any] | None:
    """The classes as an array, or None where `y` is no vector of classes."""
    try:
        kind = type_of_target(y)
    except (ValueError, TypeError):  # ragged: one sequence of tags a document
        return None
    return np.asarray(y).ravel() if kind in ("binary", "multiclass") else None


def _counted(
    cv: int, n_rows: int, labels: npt.NDArray[Any] | None, groups: Any, seeds: Sequence[int]
) -> list[list[Split]]:
    """`cv` shuffled folds, stratified where there are classes, grouped where there are groups."""
    units = n_rows if groups is None else len(np.unique(groups))
    if cv < 2 or cv > units:
        what = "documents" if groups is None else "groups"
        raise ValueError(f"cv={cv} must be at least 2 and at most the number of {what}, {units}.")
    alone = np.zeros(n_rows, dtype=bool)
    if labels is not None:
        alone = _alone(labels, groups, cv)
    chosen: dict[tuple[bool, bool], Any] = {
        (True, True): StratifiedGroupKFold,
        (True, False): StratifiedKFold,
        (False, True): GroupKFold,
        (False, False): KFold,
    }
    splitter = chosen[labels is not None, groups is not None]
    splits = []
    for seed in seeds:
        with warnings.catch_warnings():
            # of classes with fewer members than folds; `_alone` has said so, with their names
            warnings.filterwarnings("ignore", "The least populated class", UserWarning)
            drawn = splitter(cv, shuffle=True, random_state=seed).split(np.zeros(n_rows), labels, groups)
            splits.append([_kept_in_training(train, test, alone) for train, test in drawn])
    return splits


def _alone(labels: npt.NDArray[Any], groups: Any, cv: int) -> npt.NDArray[np.bool_]:
    """Find the documents that stay in every training part, and warn of the classes with fewer members than folds."""
    classes, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    if counts.max() < cv:
        raise ValueError(
            f"cv={cv} needs a class with {cv} members or more, but the largest, {_name(classes[counts.argmax()])}, has "
            f"{counts.max()}; pass cv={counts.max()} or more documents."
            if counts.max() > 1
            else f"cv={cv} needs a class with {cv} members or more, but each class has one, for instance "
            f"{_name(classes[0])}; pass more documents, or group the classes."
        )
    alone = np.asarray(counts[codes] == 1)
    if groups is not None:  # a group is never torn apart
        _, group, sizes = np.unique(groups, return_inverse=True, return_counts=True)
        alone &= sizes[group] == 1
    kept = np.unique(labels[alone])
    few = [
        f"{_name(label)} ({count})"
        for label, count in zip(classes, counts, strict=True)
        if count < cv and label not in kept
    ]
    said = []
    if len(kept):
        said.append(
            f"{len(kept)} class(es) with a single member stay in the training part of every fold and are never "
            f"scored: {_list([_name(label) for label in kept])}"
        )
    if few:
        said.append(f"{len(few)} class(es) have fewer members than the {cv} folds: {_list(few)}")
    if said:
        warn_user("; ".join(said) + ". Lower cv, or add documents.", UserWarning)
    return alone


def _kept_in_training(train: Any, test: Any, alone: npt.NDArray[np.bool_]) -> Split:
    lone = test[alone[test]]
    return (np.sort(np.concatenate([train, lone])), test[~alone[test]]) if len(lone) else (train, test)


def _by_splitter(cv: Any, X: Any, y: Any, groups: Any, seed: int, *, quiet: bool) -> list[Split]:
    """Split with a copy of `cv` that has the seed, unless it does not shuffle; what it warns of is said once."""
    splitter = copy.deepcopy(cv)
    if hasattr(splitter, "random_state") and getattr(splitter, "shuffle", True):
        splitter.random_state = seed
    with warnings.catch_warnings():
        if quiet:
            warnings.simplefilter("ignore", UserWarning)
        return [(np.asarray(train), np.asarray(test)) for train, test in splitter.split(X, y, groups)]


def _checked(split: Any, n_rows: int, fold: int) -> Split:
    """Turn masks into positions; refuse what is no split."""
    if len(split) != 2:
        raise ValueError(f"cv must give pairs (train, test), got {len(split)} parts in fold {fold}.")
    parts = []
    for name, part in zip(("training", "test"), split, strict=True):
        rows = np.flatnonzero(part) if part.dtype == bool else part
        if not len(rows):
            raise ValueError(f"The {name} part of fold {fold} is empty; lower the number of folds.")
        if rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() >= n_rows:
            raise ValueError(
                f"The {name} part of fold {fold} must hold positions from 0 to {n_rows - 1}, got {rows[:5]!r}."
            )
        parts.append(rows.astype(np.intp))
    both = np.intersect1d(parts[0], parts[1])
    if len(both):
        raise ValueError(
            f"Fold {fold} has {len(both)} document(s) in both parts, the first in row {both[0]}."
        )
    return parts[0], parts[1]


def _warn_of_unlearned(labels: npt.NDArray[Any], splits: list[list[Split]]) -> None:
    """Warn of classes that some fold scores but does not train on."""
    lacking: dict[str, int] = {}
    flat = [split for of_seed in splits for split in of_seed]
    for train, test in flat:
        for label in np.setdiff1d(labels[test], labels[train]):
            lacking[_name(label)] = lacking.get(_name(label), 0) + 1
    if lacking:
        named = _list([f"{name} (in {count} of {len(flat)})" for name, count in lacking.items()])
        warn_user(
            f"{len(lacking)} class(es) are missing from training parts whose test part has them, and count as errors "
            f"there: {named}. An int for cv keeps single documents in training.",
            UserWarning,
        )


def _equal(some: list[Split], others: list[Split]) -> bool:
    return all(np.array_equal(a[1], b[1]) for a, b in zip(some, others, strict=True))


def _name(label: Any) -> str:
    return repr(label.item() if isinstance(label, np.generic) else label)


def _list(names: list[str]) -> str:
    return ", ".join(names[:CLASSES_NAMED]) + (", ..." if len(names) > CLASSES_NAMED else "")
