"""What users pass as `y` of a question answerer: texts, texts with their places, or SQuAD's dictionaries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..._engine.errors import warn_user
from ...datasets.squad import nearest_occurrence

MAX_LISTED = 10  # rows named in one message
FORMS = 'a text, (text, start), {"text": [...], "answer_start": [...]}, or None for no answer'
Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Answer:
    """A piece of a context; `start`, in characters, is None where nobody said where it stands."""

    text: str
    start: int | None = None


Answers = tuple[Answer, ...]  # of one question; none for a question that its context does not answer


def read_answers(y: Any, name: str = "y") -> list[Answers]:
    """Read the answers of each question; see `FORMS`. Rows are taken by position.

    Raises
    ------
    TypeError
        When `y`, or one of its rows, is of another kind.
    ValueError
        When texts and starts of a row are not as many, or a start is negative.
    """
    return [_of_row(row, f"{name}[{i}]") for i, row in enumerate(answer_rows(y, name))]


def answer_rows(y: Any, name: str = "y") -> list[Any]:
    """Return the rows of `y` as they were given."""
    if isinstance(y, (str, bytes, Mapping, Set)) or not (isinstance(y, Iterable) or hasattr(y, "__array__")):
        raise TypeError(
            f"{name} must be a list of answers, one a row of X, got one {type(y).__name__}; each is {FORMS}."
        )
    if hasattr(y, "columns"):  # a frame of texts, or of texts and starts
        table = y.to_numpy()
        return [row[0] if len(row) == 1 else tuple(row) for row in table]
    if isinstance(y, np.ndarray) and y.ndim == 2:
        return [row[0] if len(row) == 1 else tuple(row) for row in y]
    return list(y)


def original_rows(y: Any, name: str = "y") -> npt.NDArray[Any]:
    """Return the rows of `y` in an object array (n,): NumPy would make tables of tuples and lists."""
    rows = answer_rows(y, name)
    array = np.empty(len(rows), dtype=object)
    for i, row in enumerate(rows):
        array[i] = row
    return array


def _of_row(row: Any, place: str) -> Answers:
    if _is_missing(row):
        return ()
    if isinstance(row, str):
        return _kept([row], [None])
    if isinstance(row, Mapping):
        return _of_dictionary(row, place)
    if isinstance(row, (tuple, list)) and len(row) == 2 and (isinstance(row[0], str) or _is_missing(row[0])):
        if _is_missing(row[0]):  # a row of a table without an answer
            return ()
        return _kept([row[0]], [_start(row[1], place)])
    if isinstance(row, (list, np.ndarray)) and all(isinstance(item, Mapping) for item in row):
        parts = [_of_dictionary(item, f"{place}[{i}]") for i, item in enumerate(row)]
        return tuple(answer for part in parts for answer in part)
    raise TypeError(f"{place} must be {FORMS}; got {type(row).__name__} ({_shown(row)}).")


def _of_dictionary(row: Mapping[str, Any], place: str) -> Answers:
    if "text" not in row:
        raise TypeError(f"{place} must be {FORMS}; got a dict with the keys {sorted(map(str, row))}.")
    texts, starts = row["text"], row.get("answer_start")
    if _is_missing(texts):  # a row of a table without an answer
        return ()
    if isinstance(texts, str):
        texts, starts = [texts], None if starts is None else [starts]
    if not isinstance(texts, Iterable) or isinstance(texts, (bytes, Mapping, Set)):
        raise TypeError(
            f'{place}["text"] must be a list of texts, got {type(texts).__name__} ({_shown(texts)}).'
        )
    texts = list(texts)
    starts = [None] * len(texts) if starts is None else list(np.atleast_1d(np.asarray(starts, dtype=object)))
    if len(texts) != len(starts):
        raise ValueError(f"{place} has {len(texts)} texts and {len(starts)} starts; pass one start a text.")
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f'{place}["text"] must hold texts, got {type(text).__name__} ({_shown(text)}).')
    return _kept(texts, [_start(start, place) for start in starts])


def _kept(texts: list[str], starts: list[int | None]) -> Answers:
    """Leave out empty texts, which are no answer, and the blanks round the others."""
    kept = []
    for text, start in zip(texts, starts, strict=True):
        bare = text.strip()
        if bare:
            blanks = len(text) - len(text.lstrip())
            kept.append(Answer(bare, None if start is None else start + blanks))
    return tuple(kept)


def _start(start: Any, place: str) -> int | None:
    if _is_missing(start):
        return None
    whole = isinstance(start, (int, np.integer)) or (isinstance(start, float) and start.is_integer())
    if isinstance(start, (bool, np.bool_)) or not whole:
        raise TypeError(
            f"{place}: the start of an answer must be a whole number of characters, got {type(start).__name__} "
            f"({_shown(start)})."
        )
    if start < 0:
        raise ValueError(f"{place}: the start of an answer must be at least 0, got {start}.")
    return int(start)


def _is_missing(value: Any) -> bool:
    if value is None or value is pd.NA or value is pd.NaT:
        return True
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def locate(answers: list[Answers], contexts: list[str], name: str = "y") -> Places:
    """Return begin and end of each question's answer in its context, in characters (n, 2); -1 where there is none.

    Of several answers the first that stands in the context counts. An answer that does not stand at its start is moved
    to where it stands nearest, with one warning; one without a start is where it stands first, as a whole word if it
    does so anywhere.

    Raises
    ------
    ValueError
        For an answer that is not in its context.
    """
    places = np.full((len(answers), 2), -1, dtype=np.int64)
    moved, absent = [], []
    for i, (of_row, context) in enumerate(zip(answers, contexts, strict=True)):
        if not of_row:
            continue
        found = next((place for answer in of_row if (place := _find(answer, context)) is not None), None)
        if found is None:
            absent.append(i)
            continue
        begin, end, asked = found
        places[i] = begin, end
        if asked is not None and asked != begin:
            moved.append(i)
    if absent:
        first = absent[0]
        others = f" (nor are those of {_listed(absent[1:])})" if absent[1:] else ""
        raise ValueError(
            f"{name}[{first}]: {answers[first][0].text!r} is not in its context{others}; an answer must be a piece of "
            f"the second text of X[{first}], letter by letter; correct it, drop the row, or pass None for no answer."
        )
    if moved:
        warn_user(
            f"{len(moved)} of {len(answers)} answers do not stand at their start and were moved to the nearest place "
            f"where they do ({name}: rows {_listed(moved)}).",
            UserWarning,
        )
    return places


def _find(answer: Answer, context: str) -> tuple[int, int, int | None] | None:
    """Return begin, end and the start that was given, or None when the answer is not there."""
    if answer.start is None:
        begin = _first_occurrence(context, answer.text)
    else:
        begin = nearest_occurrence(context, answer.text, answer.start)
    return None if begin < 0 else (begin, begin + len(answer.text), answer.start)


def _first_occurrence(context: str, text: str) -> int:
    first = begin = context.find(text)
    while begin >= 0:
        end = begin + len(text)
        if not (_joined(context, begin) or _joined(context, end)):
            return begin
        begin = context.find(text, begin + 1)
    return first


def _joined(context: str, i: int) -> bool:
    """Whether the characters on both sides of position `i` belong to one word."""
    return 0 < i < len(context) and context[i - 1].isalnum() and context[i].isalnum()


def _listed(rows: list[int]) -> str:
    return ", ".join(map(str, rows[:MAX_LISTED])) + (", ..." if len(rows) > MAX_LISTED else "")
