"""What is passed as corpus or queries becomes texts; the other columns of a frame stay beside them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..._engine.errors import did_you_mean
from ..._engine.text.documents import MAX_LISTED, as_documents


@dataclass(frozen=True)
class Corpus:
    """`n` texts, their names where a column holds them, and the other columns of the frame that they came in."""

    texts: list[str]
    ids: list[Any] | None = None
    columns: pd.DataFrame | None = None

    def __len__(self) -> int:
        return len(self.texts)


def read_corpus(X: Any, *, text_column: Any, id_column: Any, missing: Any) -> Corpus:
    """Read documents.

    Raises
    ------
    TypeError
        For a bare string, or a row that is no text.
    ValueError
        For missing texts, pairs and tables without `text_column`, columns that are not there, ids that come twice.
    """
    if not _is_frame(X):
        if id_column is not None:
            raise ValueError(
                f"id_column={id_column!r} is looked for in a frame, and X is a {type(X).__name__}; pass a frame, or "
                f"id_column=None."
            )
        return Corpus(_texts(X, missing))
    names = list(X.columns)
    ids = None if id_column is None else _ids(_cells(X, _place(names, id_column, "id_column")), id_column)
    rest = [name for name in names if id_column is None or name != id_column]
    text = _place(names, _text_name(rest, text_column, needed=True), "text_column")
    _require_different(names)
    others = {
        str(name): _cells(X, i)
        for i, name in enumerate(names)
        if i != text and (ids is None or name != id_column)
    }
    texts = as_documents(_cells(X, text), missing=missing, name=f"X[{names[text]!r}]").first
    return Corpus(texts, ids, pd.DataFrame(others) if others else None)


def read_queries(X: Any, *, text_column: Any, missing: Any) -> list[str]:
    """Read queries: texts, or the column of a frame that is named like the corpus' own, or its only one."""
    if not _is_frame(X):
        return _texts(X, missing)
    names = list(X.columns)
    place = _place(names, _text_name(names, text_column, needed=False), "text_column")
    return as_documents(_cells(X, place), missing=missing, name=f"X[{names[place]!r}]").first


def rows_of(ids: Any, known: npt.NDArray[Any], n_seen: int | None) -> npt.NDArray[np.int64]:
    """Return the rows of documents by their ids; `n_seen` is how many there ever were, where ids are their numbers.

    Raises
    ------
    TypeError
        For a single id instead of a list, or one that is no id at all.
    ValueError
        For an id that was removed or never there.
    """
    if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable) or getattr(ids, "ndim", 1) == 0:
        raise TypeError(f"ids must be a list of ids, got one {type(ids).__name__}; pass [{ids!r}].")
    place = {one: row for row, one in enumerate(known.tolist())}
    rows = []
    for i, one in enumerate(ids.tolist() if hasattr(ids, "tolist") else ids):
        if not isinstance(one, Hashable) or (n_seen is not None and _is_no_number(one)):
            raise TypeError(f"ids[{i}] must be {_kind(n_seen)}, got {type(one).__name__}.")
        if one not in place:
            raise ValueError(f"ids[{i}]: {_absent(one, len(known), n_seen)}")
        rows.append(place[one])
    return np.array(rows, dtype=np.int64)


def named(name: str, taken: Iterable[str]) -> str:
    """Return a name for a column of the corpus that is none of those already taken."""
    used = set(taken)
    while name in used:
        name = f"document_{name}"
    return name


def _is_frame(X: Any) -> bool:
    return hasattr(X, "columns") and hasattr(X, "shape")


def _texts(X: Any, missing: Any) -> list[str]:
    documents = as_documents(X, missing=missing)
    if documents.second is not None or (documents.width or 1) > 1:
        raise ValueError(
            "X must hold one text a row, got pairs or a table; pass one column, or a frame and text_column."
        )
    return documents.first


def _text_name(names: list[Any], text_column: Any, *, needed: bool) -> Any:
    """Return the name of the column of texts; a frame of one column needs none, unless one was asked for by name."""
    if text_column is None or (not needed and text_column not in names):
        if len(names) == 1:
            return names[0]
        if text_column is None:
            raise ValueError(f"X has the columns {names}; name the one that holds the texts as text_column.")
    return text_column


def _place(names: list[Any], name: Any, parameter: str) -> int:
    if names.count(name) != 1:
        several = f"{names.count(name)} columns {name!r}" if name in names else f"no column {name!r}"
        close = did_you_mean(str(name), [str(one) for one in names])
        raise ValueError(f"X has {several}, which {parameter} names; its columns are {names}.{close}")
    return names.index(name)


def _require_different(names: list[Any]) -> None:
    """Raise ValueError for columns of one name, of which one alone could be shown; 1 and "1" are one name too."""
    shown = [str(name) for name in names]
    again = next((name for name in shown if shown.count(name) > 1), None)
    if again is not None:
        raise ValueError(
            f"X has several columns of the name {again!r}; rename them: its columns are {names}."
        )


def _cells(X: Any, place: int) -> list[Any]:
    # by position, so that no index label matters
    column = X.iloc[:, place] if hasattr(X, "iloc") else X[:, place]
    return list(column)


def _ids(cells: Any, name: Any) -> list[Any]:
    first: dict[Any, int] = {}
    for row, one in enumerate(cells):
        missing: Any = pd.api.types.is_scalar(one) and pd.isna(one)
        if not isinstance(one, Hashable) or missing:
            raise ValueError(f"X[{name!r}] must hold an id a document; row {row} holds {one!r:.40}.")
        if one in first:
            raise ValueError(
                f"X[{name!r}] names two documents {one!r}, in rows {first[one]} and {row}; ids must be unique."
            )
        first[one] = row
    return [one.item() if isinstance(one, np.generic) else one for one in cells]


def check_new(ids: list[Any], known: npt.NDArray[Any]) -> None:
    """Raise ValueError when documents to be added have ids that are there already."""
    there = set(known.tolist())
    again = [one for one in ids if one in there]
    if again:
        shown = ", ".join(map(repr, again[:MAX_LISTED])) + (", ..." if len(again) > MAX_LISTED else "")
        raise ValueError(
            f"X holds {len(again)} id(s) that are there already: {shown}; remove these documents first."
        )


def check_same_kind(ids: list[Any] | None, known: npt.NDArray[Any]) -> None:
    """Raise ValueError when documents that bring their ids come to documents that were numbered, or the reverse."""
    numbered = known.dtype.kind == "i"
    if numbered != (ids is None):
        there, coming = ("numbers", "names") if numbered else ("names", "numbers")
        raise ValueError(
            f"the documents that are there have {there} for ids, and those to be added would have {coming}; set "
            f"id_column as it was in fit, or fit again."
        )


def _is_no_number(one: Any) -> bool:
    return isinstance(one, (bool, np.bool_)) or not isinstance(one, (int, np.integer))


def _kind(n_seen: int | None) -> str:
    return "an id" if n_seen is None else "the number of a document (an integer)"


def _absent(one: Any, n_left: int, n_seen: int | None) -> str:
    if n_seen is None:
        return f"there is no document {one!r} among the {n_left}; it was removed, or never added."
    if 0 <= one < n_seen:
        return f"document {one} was removed; {n_left} of {n_seen} documents are left."
    return (
        f"there is no document {one}; documents are numbered from 0 to {n_seen - 1} in the order they came."
    )
