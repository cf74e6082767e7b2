"""What users pass: estimators, scorers, documents and targets, each checked and named before anything is fitted."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.pipeline import Pipeline

from .._engine.compat import n_rows
from .._engine.errors import did_you_mean
from .._engine.validation import check_one_kind

Scorer = Callable[..., float]

ROWS_NAMED = 10

# columns of `runs` and of `frame` beside the scores
RESERVED = frozenset(
    {
        "estimator",
        "seed",
        "fold",
        "error",
        "traceback",
        "failed",
        "difference",
        "p_value",
        "fit_seconds",
        "ms_per_document",
        "megabytes",
        "share_cut",
    }
)


def named_estimators(estimators: Any) -> dict[str, Any]:
    """Give every estimator a name: its key, or the names of a pipeline's steps, or its class."""
    if isinstance(estimators, Mapping):
        named = dict(estimators)
    elif isinstance(estimators, (list, tuple)):
        if estimators and all(isinstance(item, tuple) and len(item) == 2 for item in estimators):
            named = dict(estimators)
            if len(named) < len(estimators):
                raise ValueError(f"estimators has a name twice: {[name for name, _ in estimators]}.")
        else:
            named = dict(zip(_own_names(estimators), estimators, strict=True))
    else:
        raise TypeError(
            f"estimators must be a dict of names and estimators or a list of estimators, got "
            f"{type(estimators).__name__}; pass [estimator] for a single one."
        )
    if not named:
        raise ValueError("estimators is empty; pass at least one.")
    for name, estimator in named.items():
        _check_estimator(name, estimator)
    return {name: clone(estimator) for name, estimator in named.items()}


def _check_estimator(name: Any, estimator: Any) -> None:
    if not isinstance(name, str) or not name:
        raise TypeError(f"Names of estimators must be non-empty str, got {name!r}.")
    if isinstance(estimator, type):
        raise TypeError(f"estimators[{name!r}] must be an instance, got the class {estimator.__name__}.")
    if not hasattr(estimator, "fit") or not hasattr(estimator, "get_params"):
        raise TypeError(
            f"estimators[{name!r}] must be a scikit-learn estimator, got {type(estimator).__name__}."
        )


def _own_names(estimators: Sequence[Any]) -> list[str]:
    names: list[str] = []
    for estimator in estimators:
        steps = [name for name, _ in estimator.steps] if isinstance(estimator, Pipeline) else []
        name = " + ".join(steps) or type(estimator).__name__
        copies = 2
        unique = name
        while unique in names:
            unique, copies = f"{name} ({copies})", copies + 1
        names.append(unique)
    return names


def checked_baseline(baseline: str | None, names: Sequence[str]) -> str:
    """Return the name that the others are tested against."""
    if baseline is None:
        return names[0]
    if baseline not in names:
        hint = did_you_mean(str(baseline), names)
        raise ValueError(f"baseline={baseline!r} is none of the estimators {list(names)}.{hint}")
    return baseline


def named_scorers(scoring: Any) -> dict[str, Scorer]:
    """Give every scorer a name: its key, scikit-learn's, or the function's."""
    if isinstance(scoring, Mapping):
        pairs = list(scoring.items())
    else:
        several = isinstance(scoring, (list, tuple, set, frozenset))
        pairs = [(_scorer_name(item), item) for item in (scoring if several else [scoring])]
    if not pairs:
        raise ValueError("scoring is empty; pass at least one scorer.")
    named = {name: _scorer(scorer) for name, scorer in pairs}
    if len(named) < len(pairs):
        raise ValueError(f"scoring has a name twice: {[name for name, _ in pairs]}; pass a dict of names.")
    for name in named:
        if not isinstance(name, str) or name in RESERVED:
            raise ValueError(f"scoring can't name a scorer {name!r}; that is a column of the result.")
    return named


def _scorer(scorer: Any) -> Scorer:
    if isinstance(scorer, str):
        names = get_scorer_names()
        if scorer not in names:
            raise ValueError(
                f"scoring={scorer!r} is not known; sklearn.metrics.get_scorer_names() lists the names."
                f"{did_you_mean(scorer, names)}"
            )
        found: Scorer = get_scorer(scorer)
        return found
    if not callable(scorer):
        raise TypeError(
            f"scoring must be a name, a callable, or several of them in a list or dict, got {scorer!r}."
        )
    result: Scorer = scorer
    return result


def _scorer_name(scorer: Any) -> str:
    if isinstance(scorer, str):
        return scorer
    made = re.match(r"make_scorer\((\w+)", repr(scorer))  # what make_scorer returns has no name
    return made.group(1) if made else str(getattr(scorer, "__name__", "score"))


def as_documents(X: Any) -> Any:
    """Return `X`, a generator or another thing without places as a list; a bare string is none."""
    if isinstance(X, (str, bytes)):
        raise TypeError(f"X must hold one document a row, got a bare {type(X).__name__}; pass [text].")
    if not hasattr(X, "__getitem__") and not hasattr(X, "shape"):
        return list(X)  # it can't be read once a fold, and no rows of it be taken
    return list(X) if isinstance(X, tuple) else X


def as_targets(y: Any) -> Any:
    """Return `y` as an array; a list of lists of different lengths, one tag a word, stays a list."""
    if y is None:
        raise ValueError("y is None; compare_models scores predictions, and needs the right answers.")
    if isinstance(y, (str, bytes)):
        raise TypeError(f"y must hold one target a document, got a bare {type(y).__name__}.")
    if hasattr(y, "to_numpy"):
        y = y.to_numpy()
    if not isinstance(y, np.ndarray):
        y = list(y)
        mixed = len({isinstance(value, str) for value in y}) > 1
        try:
            y = (
                np.array(y, dtype=object) if mixed else np.asarray(y)
            )  # NumPy would make texts of NaN and numbers
        except ValueError:
            return y
    if y.dtype.kind == "T":  # NumPy's new strings, which scikit-learn's checks do not know
        y = y.astype(object)
    _refuse_missing("y", y)
    if y.dtype.kind == "O" and y.ndim == 1:
        check_one_kind(y)
    return y


def as_column(name: str, values: Any, n: int) -> Any:
    """Return `groups` or `sample_weight` as an array of `n` values; None stays None."""
    if values is None:
        return None
    column = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
    if column.shape != (n,):
        raise ValueError(f"{name} must have one value a document, shape ({n},), got shape {column.shape}.")
    _refuse_missing(name, column)
    return column


def _refuse_missing(name: str, values: Any) -> None:
    """Name the first rows in which something is missing."""
    missing = np.asarray(pd.isna(values))
    rows = np.flatnonzero(missing.reshape(len(missing), -1).any(axis=1)) if missing.size else missing
    if len(rows):
        named = ", ".join(map(str, rows[:ROWS_NAMED])) + (", ..." if len(rows) > ROWS_NAMED else "")
        raise ValueError(
            f"{name} has {len(rows)} missing value(s), None or nan, in row(s) {named}; fill them or drop the rows."
        )


def check_lengths(X: Any, y: Any) -> int:
    """Return the number of documents, which is that of the targets."""
    n = n_rows(X)
    if n_rows(y) != n:
        raise ValueError(f"X has {n} documents and y {n_rows(y)} targets; they must be as many.")
    if n < 2:
        raise ValueError(f"X must hold at least 2 documents, got {n}.")
    return n


def is_estimator(value: Any) -> bool:
    """Whether `value` has parameters of its own."""
    return isinstance(value, BaseEstimator) or (hasattr(value, "get_params") and not isinstance(value, type))
