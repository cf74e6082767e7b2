"""Rows of whatever was passed: the text of each, for a look at its language, and parts of it for estimators."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._inputs import check_sequence, check_texts, check_width


class Rows:
    """The rows of `X`, by position.

    Parameters
    ----------
    X : list, tuple, generator, array, Series or frame
        One text a row, or several columns of which some hold text.
    missing : {"error", "empty"}
        What to do with None and NaN among texts.

    Attributes
    ----------
    texts : list of str
        The text of each row; of several columns, those that hold text, one below the other.
    width : int or None
        Number of columns; None for a sequence of texts.
    X : object
        What was passed; a generator as a list.

    Raises
    ------
    TypeError
        If `X` is a bare string or no sequence, or a row is no string.
    ValueError
        If a text is missing.
    """

    def __init__(self, X: Any, *, missing: str) -> None:
        check_sequence(X)
        # Generators, and views that can't be indexed, are read once.
        self.X = X if hasattr(X, "shape") or isinstance(X, Sequence) else list(X)
        columns = _columns(self.X)
        if columns is None:
            self.width = None
            self.texts = check_texts(list(self.X), name="X", missing=missing)
            # Estimators get str in an array: vectorizers don't take every kind of missing value and of dtype.
            self.X = np.empty(len(self.texts), dtype=object)
            self.X[:] = self.texts
            return
        self.width = len(columns)
        texts = [check_texts(cells, name=name, missing=missing) for name, cells in columns if _is_text(cells)]
        if columns and columns[0][1] and not texts:
            raise TypeError(
                f"X has {self.width} column(s), and none holds texts (str); pass the column of the texts."
            )
        self.texts = ["\n".join(filter(None, cells)) for cells in zip(*texts, strict=True)]

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, places: NDArray[np.intp]) -> Any:
        """Return the rows at some places, as the kind of `X`."""
        return take(self.X, places)


def take(values: Any, places: NDArray[np.intp]) -> Any:
    """Return the rows of a frame, Series, array or sequence at some places, never by labels of an index."""
    if hasattr(values, "iloc"):
        return values.iloc[places]
    if hasattr(values, "shape"):
        return values[places]
    rows = [values[place] for place in places.tolist()]
    return tuple(rows) if isinstance(values, tuple) else rows


def _columns(X: Any) -> list[tuple[str, list[Any]]] | None:
    """The columns of a table with their names for messages; None for a sequence of texts."""
    if hasattr(X, "columns") and hasattr(X, "shape"):
        places = range(X.shape[1])
        cells = [list(X.iloc[:, place] if hasattr(X, "iloc") else X[:, place]) for place in places]
        return [(f"X[{name!r}]", column) for name, column in zip(X.columns, cells, strict=True)]
    if hasattr(X, "ndim") and X.ndim != 1:
        if X.ndim != 2:
            raise ValueError(f"X must have one or two dimensions, got {X.ndim}.")
        return [(f"X[:, {place}]", list(X[:, place])) for place in range(X.shape[1])]
    if not hasattr(X, "shape") and len(X) and isinstance(X[0], (list, tuple)):
        return [(f"X[:, {place}]", [row[place] for row in X]) for place in range(check_width(X))]
    return None


def _is_text(cells: Sequence[Any]) -> bool:
    """Whether a column holds texts rather than numbers, dates or lists."""
    return any(isinstance(cell, str) for cell in cells)
