"""What `fit` learns without training: the classes, what they are called, and a few examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._engine.validation import check_scalars
from .._labels import as_labels


def check_labels(labels: Any) -> None:
    """Raise unless `labels` is None, a list of two or more different labels, or a dict of the words for each."""
    if labels is None:
        return
    if isinstance(labels, (str, bytes)) or not isinstance(labels, (Mapping, Sequence, np.ndarray)):
        raise TypeError(f"labels must be None, a list of labels or a dict, got {type(labels).__name__}.")
    listed = list(labels)
    check_scalars(listed, "labels")
    if len(listed) < 2:
        raise ValueError(f"labels must hold at least two labels, got {listed!r}.")
    if len(set(listed)) < len(listed):
        raise ValueError(f"labels holds a label twice: {listed!r}.")
    for label in listed:
        word = labels[label] if isinstance(labels, Mapping) else str(label)
        if not isinstance(word, str) or not word.strip():
            raise ValueError(
                f"labels: the words for {label!r} must be a text that is not empty, got {word!r}."
            )


def classes_of(labels: Any, y: Any) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64] | None]:
    """Return the classes in order, and the class of each row of `y`; None where there is no `y`.

    Raises
    ------
    ValueError
        When there are neither labels nor a `y`, or `y` holds a label that `labels` has not.
    """
    if labels is None and y is None:
        raise ValueError(
            "requires y to be passed, but the target y is None; pass y, or labels=[...] to classify without examples."
        )
    if labels is None:
        found = as_labels(y)
        _require_single(found.kind)
        return found.classes, found.index
    # texts beside numbers have no order, and as_labels says so
    classes = as_labels(list(labels), name="labels").classes
    if y is None:
        return classes, None
    rows = _rows(y)
    index = {label: i for i, label in enumerate(classes.tolist())}
    if _are_codes(rows, classes.tolist()):
        return np.arange(len(classes)), np.array(rows, dtype=np.int64)
    for i, label in enumerate(rows):
        if label not in index:
            raise ValueError(f"y[{i}] is {label!r}, which is not among labels={list(labels)!r}.")
    return classes, np.array([index[label] for label in rows], dtype=np.int64)


def _are_codes(rows: list[Any], classes: list[Any]) -> bool:
    """Whether `rows` are places in `classes`: so scikit-learn's votes, stacks and cross_val_predict hand them on."""
    whole = all(isinstance(row, int) and not isinstance(row, bool) for row in rows)
    return whole and not set(rows) & set(classes) and set(rows) <= set(range(len(classes)))


def _rows(y: Any) -> list[Any]:
    """Return the labels of `y`, also of one class: `labels` says what the others are."""
    array = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else list(y))
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        _require_single(f"{array.ndim}-D")
    rows: list[Any] = array.tolist()
    return rows


def _require_single(kind: str) -> None:
    if kind != "single":
        raise ValueError(
            f"PromptClassifier gives one label a document, but y is {kind}; pass one label a row."
        )


def words_of(labels: Any, classes: npt.NDArray[Any]) -> tuple[str, ...]:
    """Return what each class is called in the prompt."""
    words = labels if isinstance(labels, Mapping) else {}
    called = classes.tolist()
    if labels is not None and not set(called) & set(labels):  # places in the sorted labels
        called = as_labels(list(labels), name="labels").classes.tolist()
    return tuple(str(words.get(label, label)).strip() for label in called)


def chosen_shots(index: npt.NDArray[np.int64], n: int, seed: int) -> npt.NDArray[np.int64]:
    """Return up to `n` rows in the order of the prompt: as many of each class as can be, the classes taking turns."""
    random = np.random.default_rng(seed)
    order = random.permutation(len(index))
    seen: dict[int, int] = {}
    rank = np.empty(len(index), dtype=np.int64)
    for row in order:
        label = int(index[row])
        rank[row] = seen[label] = seen.get(label, -1) + 1
    taken: npt.NDArray[np.int64] = order[np.argsort(rank[order], kind="stable")][:n]
    return taken
