"""What users pass as `X` becomes documents: texts, or pairs of texts, in the order given.

Rows are taken by position, never by index label. Other tables are rendered row by row as ``name: value`` text, so
that an estimator of texts can be handed numbers too (and scikit-learn's own checks can run).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.utils.validation import check_array

from ..validation import mended

Missing = Literal["error", "empty"]
MAX_LISTED = 10  # rows named in one error message
NESTED = (tuple, list, np.ndarray)
HALVES = re.compile("[\ud800-\udbff][\udc00-\udfff]")  # a character in two, as UTF-16 writes it


@dataclass(frozen=True)
class Documents:
    """`n` texts, or `n` pairs of texts; `width` is the number of columns when `X` was a table.

    `given` are the second texts as they were passed, where `mended` changed any.
    """

    first: list[str]
    second: list[str] | None = None
    width: int | None = None
    names: tuple[str, ...] | None = None
    given: list[str] | None = None

    def __len__(self) -> int:
        return len(self.first)

    def rows(self) -> list[str] | list[tuple[str, str]]:
        """Return the texts, or the pairs of texts, as a user would pass them."""
        return self.first if self.second is None else list(zip(self.first, self.given_second, strict=True))

    @property
    def given_second(self) -> list[str]:
        """The second texts as they were passed: what places are counted in."""
        return (self.second or []) if self.given is None else self.given

    def take(self, rows: Sequence[int] | np.ndarray) -> Documents:
        """Return the documents at the positions `rows`."""
        second = None if self.second is None else [self.second[i] for i in rows]
        given = None if self.given is None else [self.given[i] for i in rows]
        return Documents([self.first[i] for i in rows], second, self.width, self.names, given)


def as_documents(X: Any, *, missing: Missing = "error", name: str = "X") -> Documents:
    """Read `X` as documents.

    Parameters
    ----------
    X : iterable of str, pairs, or table
        Lists, tuples, generators, NumPy arrays, pandas or polars Series and frames; see the module's docstring.
    missing : {"error", "empty"}
        What to do with None and NaN texts: list their rows in an error, or read them as empty texts.
    name : str
        How messages call the argument.

    Raises
    ------
    TypeError
        For a bare string, or a row that is no text.
    ValueError
        For missing texts, sparse or 3-D input, pairs of unequal shape.
    """
    if missing not in ("error", "empty"):
        raise ValueError(f'missing={missing!r} is not known; choose "error" or "empty".')
    if isinstance(X, (str, bytes)):
        raise TypeError(f"{name} must be an iterable of texts, got one {type(X).__name__}; pass [{name}].")
    if hasattr(X, "toarray"):  # sparse, one kind of which is a dict too
        return _from_numbers(X, name)  # check_array words the error
    if isinstance(X, (dict, set, frozenset)):
        raise TypeError(f"{name} must be an ordered iterable of texts, got {type(X).__name__}; pass a list.")
    frame = _frame(X)
    if frame is not None:
        return _from_frame(frame, X, missing, name)
    if isinstance(X, np.ndarray):
        return _from_array(X, missing, name)
    if hasattr(X, "__array__") and not isinstance(X, Iterable):
        return _from_array(np.asarray(X), missing, name)
    if hasattr(X, "__array__") and not _is_one_dimensional(X):
        return _from_numbers(X, name)
    return _from_rows(_listed(X, name), missing, name)


@dataclass(frozen=True)
class _Frame:
    """Names and columns of a pandas or polars frame, by position, and whether every dtype is one of numbers."""

    names: tuple[str, ...]
    columns: list[list[Any]]
    numeric: bool


def _frame(X: Any) -> _Frame | None:
    """Read a pandas or polars frame; None for anything else."""
    if isinstance(X, pd.DataFrame):
        columns = [X.iloc[:, i].tolist() for i in range(X.shape[1])]  # by position: names may come twice
        numeric = all(pd.api.types.is_numeric_dtype(kind) for kind in X.dtypes)
        return _Frame(tuple(str(label) for label in X.columns), columns, numeric)
    if type(X).__module__.split(".")[0] == "polars" and hasattr(X, "get_columns"):
        series = X.get_columns()
        numeric = all(column.dtype.is_numeric() or str(column.dtype) == "Boolean" for column in series)
        return _Frame(tuple(X.columns), [column.to_list() for column in series], numeric)
    return None


def _is_one_dimensional(X: Any) -> bool:
    return getattr(X, "ndim", 1) == 1


def _listed(X: Any, name: str) -> list[Any]:
    for method in ("to_pylist", "to_list", "tolist"):  # pyarrow, polars and pandas, NumPy-likes
        if hasattr(X, method):
            listed = getattr(X, method)()
            if isinstance(listed, list):
                return listed
    if not isinstance(X, Iterable):
        raise TypeError(f"{name} must be an iterable of texts, got {type(X).__name__}.")
    return list(X)


def _from_frame(frame: _Frame, X: Any, missing: Missing, name: str) -> Documents:
    if not frame.names:
        raise ValueError(
            f"{name} has 0 feature(s) (shape={X.shape}) while a minimum of 1 is required; pass texts."
        )
    if _are_texts(frame.columns):
        labels = [f"{name}[{label!r}]" for label in frame.names]
        return _from_text_columns(frame.columns, missing, labels, frame.names)
    if frame.numeric:
        return _from_numbers(X, name, frame.names)
    rows = zip(*frame.columns, strict=True)
    return Documents(_rendered(frame.names, rows, missing, name), None, len(frame.names), frame.names)


def _from_array(X: np.ndarray, missing: Missing, name: str) -> Documents:
    if X.dtype.kind == "S":
        raise TypeError(f"{name} must hold str, got bytes (dtype {X.dtype}); decode it first.")
    if X.ndim == 1 and (X.dtype.kind in "OUT" or not X.size):
        return _from_rows(X.tolist(), missing, name)
    if X.ndim == 2 and X.dtype.kind in "OUT":
        return _from_cells([X[:, i].tolist() for i in range(X.shape[1])], X, missing, name)
    return _from_numbers(X, name)


def _from_cells(columns: list[list[Any]], X: Any, missing: Missing, name: str) -> Documents:
    """Read the columns of a table without names; a table without a single text is one of numbers."""
    if _are_texts(columns):
        return _from_text_columns(columns, missing, [f"{name}[:, {i}]" for i in range(len(columns))])
    if not any(isinstance(value, str) for column in columns for value in column):
        return _from_numbers(X, name)
    names = tuple(f"x{i}" for i in range(len(columns)))
    return Documents(_rendered(names, zip(*columns, strict=True), missing, name), None, len(columns))


def _from_text_columns(
    columns: list[list[Any]], missing: Missing, labels: list[str], names: tuple[str, ...] | None = None
) -> Documents:
    texts = [_texts(column, missing, label) for column, label in zip(columns, labels, strict=True)]
    if len(texts) == 1:
        return Documents(texts[0], None, 1, names)
    second = ["" if _is_missing(value) else str.__str__(value) for value in columns[1]]
    return Documents(texts[0], texts[1], 2, names, None if second == texts[1] else second)


def _from_numbers(X: Any, name: str, names: tuple[str, ...] | None = None) -> Documents:
    """Render a table of numbers; scikit-learn's own validation words the errors."""
    table = check_array(X, dtype=None, input_name=name, ensure_min_samples=0)
    if table.dtype.kind == "O":
        table = check_array(table, dtype=np.float64, input_name=name, ensure_min_samples=0)
    labels = names or tuple(f"x{i}" for i in range(table.shape[1]))
    return Documents(_rendered(labels, table.tolist(), "error", name), None, table.shape[1], names)


def _from_rows(rows: list[Any], missing: Missing, name: str) -> Documents:
    probe = next((row for row in rows if not _is_missing(row)), None)
    if isinstance(probe, NESTED):
        return _from_nested(rows, len(probe), missing, name)
    if isinstance(probe, (int, float, complex, np.number)) and all(
        isinstance(row, (int, float, complex, np.number)) for row in rows
    ):
        if not _is_input(name):
            raise ValueError(f"{name} must hold texts, got a sequence of numbers.")
        raise ValueError(
            f"{name} must hold texts, or be a 2-D table; got a 1-D sequence of numbers. "
            f"Reshape your data to (n, 1), or pass texts."
        )
    return Documents(_texts(rows, missing, name))


def _from_nested(rows: list[Any], width: int, missing: Missing, name: str) -> Documents:
    """Read a list of rows: pairs, or a table; a missing row misses all its cells."""
    cells = [cell for row in rows if isinstance(row, NESTED) for cell in row]
    if not any(isinstance(cell, str) for cell in cells) and not all(map(_is_missing, cells)):
        return _from_numbers(rows, name)
    first = next(i for i, row in enumerate(rows) if not _is_missing(row))
    full = [(None,) * width if _is_missing(row) else row for row in rows]
    for i, row in enumerate(full):
        if not isinstance(row, NESTED) or len(row) != width:
            kind = "a pair of texts" if width == 2 else f"a row of {width}"
            raise ValueError(f"{name}[{i}] must be {kind} like {name}[{first}], got {_shown(row)}.")
    return _from_cells([list(column) for column in zip(*full, strict=True)], rows, missing, name)


def _are_texts(columns: list[list[Any]]) -> bool:
    """Whether a table is one column of texts, or two (pairs); a column without any value may be one."""
    if len(columns) not in (1, 2):
        return False
    return all(any(isinstance(v, str) for v in column) or all(map(_is_missing, column)) for column in columns)


def _is_missing(value: Any) -> bool:
    if value is None or value is pd.NA or value is pd.NaT:
        return True
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))


def _is_input(name: str) -> bool:
    """Whether texts are an estimator's documents, which may be tables and gaps, and not references of a score."""
    return name.startswith("X")


def _texts(values: list[Any], missing: Missing, name: str) -> list[str]:
    absent = [i for i, value in enumerate(values) if _is_missing(value)]
    if absent and missing == "error":
        listed = ", ".join(map(str, absent[:MAX_LISTED])) + (", ..." if len(absent) > MAX_LISTED else "")
        kind = type(values[absent[0]]).__name__
        remedy = ', or pass missing="empty"' if _is_input(name) else ""
        raise ValueError(
            f"{name} has {len(absent)} missing text(s), NaN or None (the first is {kind}), in row(s) {listed}; "
            f"drop or fill missing texts{remedy}."
        )
    gaps = set(absent)
    return ["" if i in gaps else _text(value, i, name) for i, value in enumerate(values)]


def _text(value: Any, i: int, name: str) -> str:
    if not isinstance(value, str):
        remedy = "pass texts"
        if isinstance(value, bytes):
            remedy = "decode it first"
        elif isinstance(value, dict) and name.isidentifier():
            remedy = f"pass texts, or the records as a table: pandas.DataFrame({name})"
        raise TypeError(f"{name}[{i}] must be str, got {type(value).__name__}; {remedy}.")
    return mended(value)


def places_given(text: str) -> npt.NDArray[np.int32]:
    """Return where each character of ``mended(text)`` begins in `text`, and the end of it (n + 1,)."""
    joined = {match.end() - 1 for match in HALVES.finditer(text)}
    return np.array([i for i in range(len(text) + 1) if i not in joined], dtype=np.int32)


def _rendered(names: Sequence[str], rows: Iterable[Sequence[Any]], missing: Missing, name: str) -> list[str]:
    rendered = []
    for i, row in enumerate(rows):
        if missing == "error" and any(_is_missing(value) for value in row):
            column = next(label for label, value in zip(names, row, strict=True) if _is_missing(value))
            raise ValueError(
                f"{name} has a missing value (NaN or None) in row {i}, column {column!r}; "
                f'drop or fill it, or pass missing="empty".'
            )
        cells = (f"{label}: {_cell(value)}" for label, value in zip(names, row, strict=True))
        rendered.append(_text(", ".join(cells), i, name))
    return rendered


def _cell(value: Any) -> str:
    if _is_missing(value):
        return ""
    return f"{value:.6g}" if isinstance(value, (float, np.floating)) else str(value)


def _shown(row: Any) -> str:
    if isinstance(row, (tuple, list)):
        return f"{type(row).__name__} of length {len(row)}"
    return type(row).__name__


def first_texts(documents: Documents, limit: int = 100_000) -> list[str]:
    """Return up to `limit` texts of both columns, for a tokenizer to be trained on."""
    texts = documents.first if documents.second is None else [*documents.first, *documents.second]
    return list(islice(texts, limit))
