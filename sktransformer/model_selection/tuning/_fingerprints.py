"""What a study was made for, as texts: two searches may share one only if their scores can be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

import joblib
import numpy as np

from ._spaces import Space, shown

# They change what a fit costs or says, not what it learns.
_OF_NO_EFFECT = frozenset(
    {
        "verbose",
        "n_jobs",
        "device",
        "memory",
        "callbacks",
        "token_budget",
        "gradient_checkpointing",
        "cache_size",
    }
)
_CONTAINERS = frozenset(
    {"steps", "transformer_list", "transformers", "estimators"}
)  # their parts are named one by one
_NAMED = 3  # differences that a message names


def record_of(
    estimator: Any, space: Space, scoring: Any, metric: str, X: Any, y: Any, splits: Sequence[Any]
) -> dict[str, Any]:
    """Return what the trials of a study have in common.

    Parameters
    ----------
    estimator : estimator
        The one searched over.
    space : Space
        Where.
    scoring : object
        The search's `scoring`.
    metric : str
        Name of the score that decides.
    X, y : object
        All data.
    splits : sequence of (array, array)
        The folds.

    Returns
    -------
    dict of str to dict or str
        Texts that another process makes alike.
    """
    return {
        "estimator": describe(estimator, space.distributions),
        "space": space.describe(),
        "scoring": f"{text_of(scoring)} ({metric})",
        "data": _hash([_plain(X), _plain(y)]),
        "folds": _hash([[np.asarray(part).tolist() for part in split] for split in splits]),
    }


def describe(estimator: Any, searched: Mapping[str, Any]) -> dict[str, str]:
    """Return class and parameters of an estimator as texts, but for those that are searched over."""
    described = {"": type(estimator).__qualname__}
    for name, value in estimator.get_params(deep=True).items():
        last = name.rpartition("__")[2]
        if not {name, *parents_of(name)}.isdisjoint(searched) or last in _OF_NO_EFFECT or last in _CONTAINERS:
            continue
        described[name] = text_of(value)
    return described


def text_of(value: Any) -> str:
    """Return a text that is the same for equal values in another process; of unknown objects their class alone."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return repr(value)
    if isinstance(value, PurePath):
        return repr(str(value))
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{text_of(key)}: {text_of(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(text_of(item) for item in value) + "]"
    if isinstance(value, np.ndarray):
        return f"array {joblib.hash(value)}"
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}.{named.__qualname__}"


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Phrase how two records differ, the most telling first; empty when they do not."""
    found = []
    for name in _changed(before["estimator"], now["estimator"]):
        old, new = (record["estimator"].get(name, "absent") for record in (before, now))
        found.append(f"{name or 'the estimator'} was {old}, is {new}")
    for name in _changed(before["space"], now["space"]):
        old, new = (record["space"].get(name) for record in (before, now))
        old, new = ("not searched over" if text is None else shown(text) for text in (old, new))
        found.append(
            f"{f'space[{name!r}]' if name else 'the function that is the space'} was {old}, is {new}"
        )
    if before["scoring"] != now["scoring"]:
        found.append(f"scoring was {before['scoring']}, is {now['scoring']}")
    if before["data"] != now["data"]:
        found.append("X and y are other data, so that scores can't be compared")
    elif before["folds"] != now["folds"]:
        found.append("cv makes other folds (give a splitter that shuffles a random_state)")
    more = len(found) - _NAMED
    return found[:_NAMED] + ([f"and {more} more"] if more > 0 else [])


def _changed(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Names whose texts differ, without the parameters of a part that is another one altogether."""
    changed = [name for name in dict.fromkeys([*before, *now]) if before.get(name) != now.get(name)]
    return [name for name in changed if parents_of(name).isdisjoint(changed)]


def parents_of(name: str) -> set[str]:
    """Return the names of the parts that a nested parameter is inside of."""
    return {name[:place] for place in range(1, len(name)) if name.startswith("__", place)}


def _hash(value: Any) -> str:
    return str(joblib.hash(value))


def _plain(table: Any) -> Any:
    """Return data as lists where it is texts or objects, so that a list, a Series and an array of them are alike."""
    if hasattr(table, "to_numpy"):
        table = table.to_numpy()
    if isinstance(table, np.ndarray):
        return np.ascontiguousarray(table) if table.dtype.kind in "biufc" else table.tolist()
    return list(table) if isinstance(table, (list, tuple)) else table
