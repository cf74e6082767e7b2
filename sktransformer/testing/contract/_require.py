"""What checks demand, with messages that say what came. Plain functions, so that ``python -O`` does not drop them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


def require(condition: Any, message: str) -> None:
    """Raise AssertionError with `message` unless `condition` is true."""
    if not condition:
        raise AssertionError(message)


def require_equal(actual: Any, expected: Any, what: str) -> None:
    """Raise unless the two are equal; arrays by value, shape and kind of dtype."""
    if isinstance(expected, np.ndarray) or isinstance(actual, np.ndarray):
        require_close(actual, expected, what, tolerance=0.0)
    else:
        require(actual == expected, f"{what}: expected {expected!r}, got {actual!r}")


def require_close(actual: Any, expected: Any, what: str, *, tolerance: float) -> None:
    """Raise unless two arrays have one shape and differ by at most `tolerance`; what is no number must be equal."""
    left, right = np.asarray(actual), np.asarray(expected)
    require(left.shape == right.shape, f"{what}: expected shape {right.shape}, got {left.shape}")
    if left.dtype.kind in "fc" and right.dtype.kind in "fc":
        gap = np.abs(left.astype(np.float64) - right.astype(np.float64)).max(initial=0.0)
        require(gap <= tolerance, f"{what}: they differ by up to {gap:.3g}, allowed are {tolerance:g}")
        return
    different = np.flatnonzero((left != right).ravel())
    require(
        not len(different),
        f"{what}: {len(different)} of {left.size} values differ, the first is {left.ravel()[different[:1]]} "
        f"where {right.ravel()[different[:1]]} was expected",
    )


def require_different(left: Any, right: Any, what: str, *, least: float = 1e-6) -> None:
    """Raise unless two arrays of numbers, or of texts, differ."""
    a, b = np.asarray(left), np.asarray(right)
    if a.shape != b.shape:
        return
    same = np.abs(a - b).max(initial=0.0) < least if a.dtype.kind in "fc" else bool((a == b).all())
    require(not same, f"{what}: they are the same")


@contextmanager
def require_raises(
    kind: type[BaseException] | tuple[type[BaseException], ...], *needles: str
) -> Iterator[None]:
    """Raise unless the block raises `kind` with all `needles` in its message, letter case aside."""
    names = " or ".join(one.__name__ for one in (kind if isinstance(kind, tuple) else (kind,)))
    try:
        yield
    except kind as error:
        for needle in needles:
            require(needle.lower() in str(error).lower(), f"the message lacks {needle!r}: {error}")
        return
    raise AssertionError(f"expected {names}, nothing was raised")


@contextmanager
def recorded(
    category: type[Warning] = Warning, *, but: type[Warning] | tuple[type[Warning], ...] = ()
) -> Iterator[list[str]]:
    """Collect the messages of all warnings of `category` save those of `but`; none goes any further."""
    messages: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield messages
    messages += [
        str(one.message)
        for one in caught
        if issubclass(one.category, category) and not issubclass(one.category, but)
    ]
