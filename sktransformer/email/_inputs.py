"""What users pass becomes one list of subjects, perhaps, and one of bodies."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import Tags

from .._engine.validation import check_choice

_ROWS_NAMED = 10
_SUBJECT = "subject"  # where nobody names a column, a frame may do without subjects


class Mails(NamedTuple):
    """The rows of `X` as lists of str; `subjects` is None where `X` holds none."""

    subjects: list[str] | None
    bodies: list[str]


def read_mails(X: Any, *, subject_column: str, body_column: str, missing: str) -> Mails:
    """Take subjects and bodies out of whatever was passed.

    Parameters
    ----------
    X : list, tuple, generator, array, Series or frame
        One text a row, or a subject and a body.
    subject_column, body_column : str
        Names of the columns, for a frame with more than one.
    missing : {"error", "empty"}
        What to do with None and NaN.

    Returns
    -------
    Mails
        Lists of equal length.

    Raises
    ------
    TypeError
        If `X` is a bare string or no sequence, or if a row is no string.
    ValueError
        If a text is missing, or the columns can't be told apart.
    """
    check_choice("missing", missing, ("error", "empty"))
    if hasattr(X, "columns") and hasattr(X, "shape"):
        subjects, bodies = _from_frame(X, subject_column, body_column)
    else:
        subjects, bodies = _from_sequence(X)
    name = "X" if subjects is None else f"X[{body_column!r}]"
    checked = check_texts(bodies, name=name, missing=missing)
    if subjects is None:
        return Mails(None, checked)
    return Mails(check_texts(subjects, name=f"X[{subject_column!r}]", missing=missing), checked)


def check_texts(texts: Sequence[Any], *, name: str, missing: str) -> list[str]:
    """Check that every row is a string; fill what is missing or name the rows.

    Parameters
    ----------
    texts : sequence
        The rows.
    name : str
        What to call them in a message.
    missing : {"error", "empty"}
        What to do with None and NaN.

    Returns
    -------
    list of str
        The rows, plain ``str`` each.
    """
    checked, absent = [], []
    for row, text in enumerate(texts):
        if type(text) is str:
            checked.append(text)
        elif isinstance(text, str):
            checked.append(
                str.__str__(text)
            )  # a plain str, also of an enumeration, whose own says another thing
        elif _is_missing(text):
            absent.append(row)
            checked.append("")
        else:
            hint = "; decode the bytes first" if isinstance(text, bytes) else ""
            raise TypeError(f"{name}[{row}] must be str, got {type(text).__name__}{hint}.")
    if absent and missing == "error":
        rows = ", ".join(str(row) for row in absent[:_ROWS_NAMED]) + (
            ", ..." if len(absent) > _ROWS_NAMED else ""
        )
        raise ValueError(
            f"{name} has {len(absent)} missing text(s), in row(s) {rows}: each must be str, got "
            f"{type(texts[absent[0]]).__name__}; drop or fill missing texts, or pass missing='empty'."
        )
    return checked


def check_sequence(X: Any) -> None:
    """Raise TypeError for a bare string, and for what has no rows in an order."""
    if isinstance(X, (str, bytes)):
        raise TypeError(
            f"X must hold one text a row, got a bare {type(X).__name__}; pass [text] for a single mail."
        )
    if isinstance(X, (dict, set, frozenset)) or not isinstance(X, Iterable):
        raise TypeError(f"X must be a list, array, Series or frame of str, got {type(X).__name__}.")


def check_width(rows: Sequence[Any]) -> int:
    """Return the length of the rows, or raise ValueError with the first one that is no row or of another length."""
    width = len(rows[0])
    for number, row in enumerate(rows):
        if not isinstance(row, (list, tuple)) or len(row) != width:
            raise ValueError(f"X[{number}] must hold {width} text(s) like X[0], got {row!r:.60}.")
    return width


def describe_input(tags: Tags, missing: str) -> None:
    """Tell scikit-learn that texts go in, and that they are checked here: its checks are for numbers."""
    tags.input_tags.string = True
    tags.input_tags.one_d_array = True
    tags.input_tags.two_d_array = True
    tags.input_tags.allow_nan = missing == "empty"
    tags.no_validation = True


def _is_missing(value: Any) -> bool:
    # NaN differs from itself; pandas' NA and NaT say so through a name instead, since comparing NA gives NA.
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and bool(np.isnan(value))


def _from_frame(X: Any, subject_column: str, body_column: str) -> tuple[list[Any] | None, list[Any]]:
    names = list(X.columns)
    if len(names) == 1:
        return None, _column(X, names[0])
    if body_column == subject_column:
        raise ValueError(
            f"body_column and subject_column are both {body_column!r}; name two columns, or pass X[[{body_column!r}]]."
        )
    if names.count(body_column) != 1 or names.count(subject_column) > 1:
        raise ValueError(
            f"X has the columns {names}; with several columns the bodies are taken from {body_column!r} and "
            f"the subjects from {subject_column!r}. Pass body_column and subject_column, or a frame with one "
            "column."
        )
    if subject_column not in names:
        _refuse_lost_subjects(names, subject_column, body_column)
    subjects = _column(X, subject_column) if subject_column in names else None
    return subjects, _column(X, body_column)


def _refuse_lost_subjects(names: list[Any], subject_column: Any, body_column: Any) -> None:
    """Raise where a frame has subjects by all appearances, and not under the name that they are looked for."""
    alike = [name for name in names if str(name).lower() == str(subject_column).lower()]
    if alike or subject_column != _SUBJECT:
        raise ValueError(
            f"X has no column {subject_column!r} for the subjects, but {names}; pass the name of one as "
            f"subject_column, or leave the subjects out: X[[{body_column!r}]] is read as bodies."
        )


def _column(X: Any, name: Any) -> list[Any]:
    # By position, so that neither an index label nor a column that is called like an attribute matters.
    position = list(X.columns).index(name)
    column = X.iloc[:, position] if hasattr(X, "iloc") else X[:, position]
    return list(column)


def _from_sequence(X: Any) -> tuple[list[Any] | None, list[Any]]:
    check_sequence(X)
    rows: Any = X if isinstance(X, np.ndarray) else list(X)
    if isinstance(X, np.ndarray):
        if X.ndim not in (1, 2):
            raise ValueError(f"X must have one or two dimensions, got {X.ndim}.")
        rows = X.tolist()
    if rows and isinstance(rows[0], (list, tuple)):
        return _from_rows(rows)
    if isinstance(X, np.ndarray) and X.ndim == 2 and not rows:
        return ([], []) if X.shape[1] == 2 else (None, [])
    return None, rows


def _from_rows(rows: list[Any]) -> tuple[list[Any] | None, list[Any]]:
    width = check_width(rows)
    if width == 1:
        return None, [row[0] for row in rows]
    if width == 2:
        return [row[0] for row in rows], [row[1] for row in rows]
    raise ValueError(
        f"X must have one column (bodies) or two (subjects, bodies), got {width}; pass a frame with names."
    )
