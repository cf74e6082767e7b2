"""Duplicates: documents of which one copy would be learned and the other scored."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array, issparse
from scipy.sparse.csgraph import connected_components

from .._engine.errors import warn_user

IntArray = npt.NDArray[np.int64]
Split = tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]

ROWS_NAMED = 3


@dataclass(frozen=True)
class Leak:
    """Copies of documents on both sides of a fold.

    Attributes
    ----------
    n_documents, n_groups : int
        How many documents are concerned, and how many texts they are copies of.
    rows : list of int
        The first such document and the copies of it.
    """

    n_documents: int
    n_groups: int
    rows: list[int]

    def __str__(self) -> str:
        first = ", ".join(map(str, self.rows[:ROWS_NAMED])) + (", ..." if len(self.rows) > ROWS_NAMED else "")
        return (
            f"{self.n_documents} documents in {self.n_groups} group(s) of duplicates (case and blanks aside) lie on "
            f"both sides of a fold, so that a model is scored on what it has learned; the first are rows {first} of X"
        )


def rows_of(X: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the cells of each row of a list, array, Series or frame."""
    if hasattr(X, "columns") and hasattr(X, "shape"):
        places = range(X.shape[1])
        columns = [X.iloc[:, place] if hasattr(X, "iloc") else X[:, place] for place in places]
        yield from zip(*(column.to_list() for column in columns), strict=True)
        return
    values = X.tolist() if isinstance(X, np.ndarray) else X
    for row in values:
        yield tuple(row) if isinstance(row, (list, tuple, np.ndarray)) else (row,)


def duplicate_groups(X: Any) -> IntArray | None:
    """Number the documents so that copies have one number; None where there are none.

    Case, and which and how many blanks there are, make no difference. Documents without any text, and tables without
    a single str, have no copies: equal numbers are no sign of a leak.

    Examples
    --------
    >>> duplicate_groups(["Ma facture", "ma  FACTURE ", "mon colis"])
    array([0, 0, 2])
    """
    if issparse(X) or (isinstance(X, np.ndarray) and X.dtype.kind in "biufc"):
        return None
    seen: dict[bytes, int] = {}
    numbers = [seen.setdefault(key, i) if (key := _key(row)) else i for i, row in enumerate(rows_of(X))]
    groups = np.array(numbers, dtype=np.int64)
    return None if (groups == np.arange(len(groups))).all() else groups


def _key(row: Sequence[Any]) -> bytes:
    """What two copies share, and no others; empty for a row without text. A digest: texts may fill the memory."""
    if not any(isinstance(cell, str) and cell.strip() for cell in row):
        return b""
    cells = [" ".join(cell.casefold().split()) if isinstance(cell, str) else repr(cell) for cell in row]
    return hashlib.blake2b(repr(cells).encode(), digest_size=16).digest()


def merge_groups(copies: IntArray, groups: IntArray | None) -> IntArray:
    """Join groups that share a copy, however long the chain between them.

    Examples
    --------
    >>> merge_groups(np.array([0, 0, 2, 3]), np.array([7, 8, 8, 9]))
    array([0, 0, 0, 1])
    """
    if groups is None:
        return np.unique(copies, return_inverse=True)[1].astype(np.int64)
    n = len(copies)
    nodes = (
        n + groups
    )  # a graph of documents and groups: an edge from each document to its copy and to its group
    size = int(nodes.max()) + 1
    ends = (np.concatenate([np.arange(n), np.arange(n)]), np.concatenate([copies, nodes]))
    graph = coo_array((np.ones(2 * n, dtype=np.int8), ends), shape=(size, size))
    labels = connected_components(graph, directed=False)[1][:n]
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def find_leak(copies: IntArray | None, splits: Sequence[Split]) -> Leak | None:
    """Look for copies of which one is in the training part and another in the test part of one split."""
    if copies is None:
        return None
    leaking: set[int] = set()
    for train, test in splits:
        leaking.update(np.intersect1d(copies[train], copies[test]).tolist())
    if not leaking:
        return None
    concerned = np.isin(copies, list(leaking))
    first = int(copies[concerned][0])
    return Leak(int(concerned.sum()), len(leaking), np.flatnonzero(copies == first).tolist())


def refuse_leak(copies: IntArray | None, splits: Sequence[Split], duplicates: str, cv: Any) -> None:
    """Raise for copies across folds, or warn where they are allowed.

    Raises
    ------
    ValueError
        When there are any, unless ``duplicates="allow"``.
    """
    leak = find_leak(copies, splits)
    if leak is None:
        return
    if duplicates == "allow":
        warn_user(f"{leak}; scores are too good.", UserWarning)
        return
    if duplicates == "group":
        raise ValueError(
            f"{leak}. duplicates='group' can't keep them together, since cv={cv!r} takes no account of groups; "
            f"pass an int or a splitter such as StratifiedGroupKFold, or drop the copies."
        )
    raise ValueError(
        f"{leak}. Drop the copies, pass duplicates='group' to keep them in one fold, groups= to name what belongs "
        f"together, or duplicates='allow' to go on with a warning."
    )
