"""What users pass to the estimators of this room: rows by position, labels, seeds, weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length

from .._engine.compat import n_rows, sample_weights
from .._engine.validation import check_one_kind, check_scalars, label_array

ROWS_NAMED = 10


def as_rows(X: Any) -> Any:
    """Return `X` as something whose rows can be taken by position; an iterator is listed once.

    Raises
    ------
    TypeError
        For a bare text, whose rows would be its letters.
    """
    if isinstance(X, (str, bytes)):
        raise TypeError(f"X must hold one document a row, got a bare {type(X).__name__}; pass [X].")
    return X if hasattr(X, "shape") or isinstance(X, (list, tuple)) else list(X)


def as_targets(X: Any, y: Any) -> npt.NDArray[Any]:
    """Return `y` as an array with one value for each row of `X`.

    Raises
    ------
    TypeError
        For labels that are collections, or of several kinds.
    ValueError
        Without `y`, for unequal lengths, no rows, several columns, or missing values.
    """
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None; pass one label a document.")
    values: npt.NDArray[Any] = column_or_1d(label_array(y), warn=True)
    check_consistent_length(range(n_rows(X)), values)
    if not len(values):
        raise ValueError("X and y hold 0 sample(s); at least two documents are needed.")
    missing = np.flatnonzero(pd.isna(values)) if values.dtype.kind == "O" else np.zeros(0, dtype=np.int64)
    if len(missing):
        rows = ", ".join(map(str, missing[:ROWS_NAMED])) + (", ..." if len(missing) > ROWS_NAMED else "")
        raise ValueError(
            f"y has {len(missing)} missing value(s), in row(s) {rows}; drop these rows or fill them."
        )
    if values.dtype.kind == "O":
        check_scalars(values)
        check_one_kind(values)
    if values.dtype.kind in "fc":
        assert_all_finite(values, input_name="y")
    return values


def as_labels(X: Any, y: Any) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64], npt.NDArray[Any]]:
    """Return the classes, the class index of each row, and `y` as an array.

    Raises
    ------
    ValueError
        As `as_targets`, and for continuous targets or a single class.
    """
    values = as_targets(X, y)
    if values.dtype.kind == "O" and not any(isinstance(value, str) for value in values):
        values = np.asarray(
            values.tolist()
        )  # numbers in an object array, which scikit-learn takes for no labels
    if values.dtype.kind == "T":
        values = values.astype(object)
    check_classification_targets(values)
    classes, index = np.unique(values, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            "A classifier needs samples of at least 2 classes in the data, but the data contains only one class: "
            f"{classes.tolist()[0]!r}"
        )
    return classes, index.astype(np.int64), values


def as_weights(sample_weight: Any, n: int) -> npt.NDArray[np.float64] | None:
    """Read `sample_weight` as floats (n,); None stays None.

    Raises
    ------
    ValueError
        For a wrong length, negative or infinite weights, or weights that are all zero.
    """
    weights = sample_weights(sample_weight, n)
    if weights is not None and not weights.any():
        raise ValueError("sample_weight is zero for every document; give at least one a positive weight.")
    return weights


def draw_seeds(random_state: Any, n: int) -> npt.NDArray[np.int64]:
    """Draw different seeds from a scikit-learn `random_state`; for None, without moving NumPy's global stream."""
    if random_state is None:
        random_state = np.random.RandomState(np.random.SeedSequence().generate_state(4))
    elif isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        if not 0 <= int(random_state) < 2**32:
            raise ValueError(f"random_state must lie in [0, 2**32), got {random_state}.")
        random_state = np.random.RandomState(int(random_state))
    elif not isinstance(random_state, np.random.RandomState):
        raise ValueError(
            f"random_state must be None, an int or a numpy.random.RandomState, got {type(random_state).__name__}."
        )
    seeds: dict[int, None] = {}
    while len(seeds) < n:
        seeds.setdefault(int(random_state.randint(2**31 - 1)))
    return np.array(list(seeds), dtype=np.int64)
