"""Checks of parameter values that every estimator shares; each error names the parameter, the value and the remedy."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from .errors import did_you_mean


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
    number = float(value)
    below = low is not None and (number <= low if open_low else number < low)
    above = high is not None and (number >= high if open_high else number > high)
    if below or above or np.isnan(number):
        left = "" if low is None else f"{'above' if open_low else 'at least'} {low}"
        right = "" if high is None else f"{'below' if open_high else 'at most'} {high}"
        bounds = " and ".join(part for part in (left, right) if part) or wanted
        raise ValueError(f"{name} must be {bounds}, got {value!r}.")


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Raise ValueError, with the nearest choice, unless `value` is one of `choices`."""
    if value not in choices:
        raise ValueError(
            f"{name}={value!r} is not known; choose one of {tuple(choices)}.{did_you_mean(str(value), choices)}"
        )


def check_flag(name: str, value: Any) -> None:
    """Raise TypeError unless `value` is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {type(value).__name__} ({value!r}).")
