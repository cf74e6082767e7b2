"""Checks of parameter values that every estimator shares; each error names the parameter, the value and the remedy."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import did_you_mean

COLLECTIONS = (list, tuple, set, frozenset, dict, np.ndarray)


def check_number(
    name: str,
    value: Any,
    *,
    low: float | None = None,
    high: float | None = None,
    integer: bool = False,
    open_low: bool = False,
    open_high: bool = False,
) -> None:
    """Raise unless `value` is a real number (an integer, if asked) between `low` and `high`.

    Raises
    ------
    TypeError
        When it is no number.
    ValueError
        When it is out of range, or no number at all in the sense of NaN.
    """
    kind: Any = numbers.Integral if integer else numbers.Real
    wanted = "an integer" if integer else "a number"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, kind):
        raise TypeError(f"{name} must be {wanted}, got {type(value).__name__} ({value!r}).")
    try:
        number = float(value)
    except OverflowError:  # an integer beyond float64
        number = float("inf") if value > 0 else float("-inf")
    below = low is not None and (number <= low if open_low else number < low)
    above = high is not None and (number >= high if open_high else number > high)
    if below or above or np.isnan(number):
        left = "" if low is None else f"{'above' if open_low else 'at least'} {low}"
        right = "" if high is None else f"{'below' if open_high else 'at most'} {high}"
        bounds = " and ".join(part for part in (left, right) if part) or wanted
        raise ValueError(f"{name} must be {bounds}, got {value!r}.")


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Raise ValueError, with the nearest choice, unless `value` is one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(
            f"{name}={value!r} is not known; choose one of {tuple(choices)}.{did_you_mean(str(value), choices)}"
        )


def check_flag(name: str, value: Any) -> None:
    """Raise TypeError unless `value` is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {type(value).__name__} ({value!r}).")


def label_array(y: Any, name: str = "y") -> npt.NDArray[Any]:
    """Return labels as an array, without letting NumPy turn None or numbers into texts.

    Raises
    ------
    TypeError
        For a list whose rows are collections of several sizes.
    """
    if hasattr(y, "to_numpy"):  # pandas and polars, whose extension types NumPy does not know
        y = y.to_numpy()
    array = _from_list(list(y), name) if isinstance(y, (list, tuple)) else np.asarray(y)
    return array.astype(object) if array.dtype.kind == "T" else array


def _from_list(y: list[Any], name: str) -> npt.NDArray[Any]:
    if len({isinstance(value, str) for value in y}) > 1:
        return np.array(y, dtype=object)
    sizes = {len(value) if isinstance(value, COLLECTIONS) else -1 for value in y}
    if len(sizes) > 1 or any(isinstance(value, (set, frozenset, dict)) for value in y):
        check_scalars(y, name)
    return np.asarray(y)


def check_scalars(values: Any, name: str = "y") -> None:
    """Raise TypeError for a row that is a collection: several labels a document come as an indicator matrix."""
    for i, value in enumerate(values):
        if isinstance(value, COLLECTIONS):
            raise TypeError(
                f"{name}[{i}] must be one label (str, int or bool), got {type(value).__name__}; for several labels a "
                f"document pass the 0/1 matrix that sklearn.preprocessing.MultiLabelBinarizer makes of them."
            )


def check_one_kind(values: npt.NDArray[Any], name: str = "y") -> None:
    """Raise TypeError for texts beside other labels: the two have no order, and NumPy would make texts of all."""
    kinds = {isinstance(value, str): type(value).__name__ for value in values}
    if len(kinds) > 1:
        raise TypeError(
            f"{name} mixes labels of type {' and '.join(sorted(kinds.values()))}; make them one type."
        )


def mended(text: str) -> str:
    """Return a plain str that can be written as UTF-8, which tokenizers read.

    The two halves of a character are joined; a lone one is replaced.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return str.__str__(text)  # also of an enumeration, whose own __str__ says something else
