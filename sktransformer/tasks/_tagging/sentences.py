"""What users pass as `X` of a tagger: sentences as lists of words, or raw texts, which a rule cuts into words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..._engine.text.documents import Documents, Missing
from ..._engine.validation import mended
from .words import Place, word_places

MAX_LISTED = 10  # rows named in one error message
ROWS = (list, tuple, np.ndarray, pd.Series, pd.Index)


@dataclass(frozen=True)
class Sentences(Documents):
    """Sentences, each a list of words; ``first`` holds them as texts, words joined by blanks.

    `raw` are the texts as they were passed, and `places` where their words stand in them; None when `X` held words.
    """

    words: list[list[str]] = field(default_factory=list)
    raw: list[str] | None = None
    places: list[list[Place]] | None = None

    def rows(self) -> list[Any]:
        """Return what a user would pass: lists of words, or texts."""
        return self.words if self.raw is None else self.raw

    def take(self, rows: Sequence[int] | npt.NDArray[Any]) -> Sentences:
        """Return the sentences at the positions `rows`."""
        return _sentences(
            [self.words[i] for i in rows],
            None if self.raw is None else [self.raw[i] for i in rows],
            None if self.places is None else [self.places[i] for i in rows],
        )

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Words of each sentence."""
        return np.fromiter(map(len, self.words), dtype=np.int64, count=len(self.words))


def _sentences(
    words: list[list[str]], raw: list[str] | None = None, places: list[list[Place]] | None = None
) -> Sentences:
    return Sentences([" ".join(row) for row in words], words=words, raw=raw, places=places)


def as_sentences(X: Any, *, missing: Missing = "error", name: str = "X") -> Sentences:
    """Read `X` as sentences.

    Parameters
    ----------
    X : iterable of n sequences of str, or of n str
        Lists, tuples, generators, arrays, Series and one-column frames; taken by position.
    missing : {"error", "empty"}
        What to do with None and NaN rows and words: list their rows in an error, or read them as empty.
    name : str
        How messages call the argument.

    Raises
    ------
    TypeError
        For a bare string, a row that is neither words nor a text, or a word that is no str.
    ValueError
        For missing rows or words, or a table of several columns.
    """
    if missing not in ("error", "empty"):
        raise ValueError(f'missing={missing!r} is not known; choose "error" or "empty".')
    rows = _listed(X, name)
    _require_present(rows, [i for i, row in enumerate(rows) if _is_missing(row)], missing, name)
    first = next((row for row in rows if not _is_missing(row)), None)
    if isinstance(first, str):
        return _from_texts(rows, name)
    return _sentences([_words(row, missing, f"{name}[{i}]") for i, row in enumerate(rows)])


def _listed(X: Any, name: str) -> list[Any]:
    if isinstance(X, (str, bytes)):
        raise TypeError(
            f"{name} must be an iterable of sentences (lists of words) or of texts, got one {type(X).__name__}; "
            f"pass [{name}]."
        )
    if isinstance(X, (dict, set, frozenset)) or hasattr(X, "toarray"):
        raise TypeError(
            f"{name} must be an ordered iterable of sentences, got {type(X).__name__}; pass a list."
        )
    if isinstance(X, pd.DataFrame) or hasattr(X, "get_columns"):  # polars has the second
        if X.shape[1] != 1:
            raise ValueError(
                f"{name} must have one column of sentences, got {X.shape[1]} columns; pass the column, "
                f"{name}['NAME']."
            )
        X = X.iloc[:, 0] if isinstance(X, pd.DataFrame) else X.get_columns()[0]
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] == 1:
        X = X[:, 0]
    for method in ("to_pylist", "to_list"):  # pyarrow, polars and pandas
        if hasattr(X, method):
            return list(getattr(X, method)())
    if not isinstance(X, Iterable):
        raise TypeError(f"{name} must be an iterable of sentences, got {type(X).__name__}.")
    return list(X)


def _is_missing(value: Any) -> bool:
    if value is None or value is pd.NA or value is pd.NaT:
        return True
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))


def _require_present(rows: list[Any], absent: list[int], missing: Missing, name: str) -> None:
    if absent and missing == "error":
        listed = ", ".join(map(str, absent[:MAX_LISTED])) + (", ..." if len(absent) > MAX_LISTED else "")
        kind = type(rows[absent[0]]).__name__
        raise ValueError(
            f"{name} has {len(absent)} missing value(s), NaN or None (the first is {kind}), at {listed}; "
            f'drop or fill them, or pass missing="empty".'
        )


def _from_texts(rows: list[Any], name: str) -> Sentences:
    for i, row in enumerate(rows):
        if not isinstance(row, str) and not _is_missing(row):
            raise TypeError(
                f"{name}[{i}] must be str like the first row, got {type(row).__name__}; pass texts, or lists of words."
            )
    raw = ["" if _is_missing(row) else str.__str__(row) for row in rows]
    places = [word_places(text) for text in raw]
    words = [[mended(text[start:end]) for start, end in row] for text, row in zip(raw, places, strict=True)]
    return _sentences(words, raw, places)


def _words(row: Any, missing: Missing, name: str) -> list[str]:
    if _is_missing(row):
        return []
    if not isinstance(row, ROWS) and not (hasattr(row, "to_list") and not isinstance(row, dict)):
        remedy = "decode it first" if isinstance(row, bytes) else "pass lists of words"
        raise TypeError(f"{name} must be a list of words, got {type(row).__name__}; {remedy}.")
    words = row.to_list() if hasattr(row, "to_list") else list(row)
    _require_present(words, [i for i, word in enumerate(words) if _is_missing(word)], missing, name)
    for i, word in enumerate(words):
        if not isinstance(word, str) and not _is_missing(word):
            raise TypeError(
                f"{name}[{i}] must be a word (str), got {type(word).__name__}; pass a list of str a sentence."
            )
    return ["" if _is_missing(word) else mended(word) for word in words]
