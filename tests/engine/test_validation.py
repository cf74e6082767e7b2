"""Checks of parameter values: kinds, ranges, choices, and what their errors say."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sktransformer._engine.validation import check_choice, check_flag, check_number


@pytest.mark.parametrize("value", [0, 1, 0.5, np.float32(0.25), np.int64(1), Fraction(1, 3)])
def test_numbers_in_range_pass(value: Any) -> None:
    check_number("share", value, low=0, high=1)


@pytest.mark.parametrize("value", [1, np.int8(3), 10**12])
def test_integers_pass(value: Any) -> None:
    check_number("batch_size", value, low=1, integer=True)


@pytest.mark.parametrize(
    ("value", "options", "message"),
    [
        ("1", {}, r"^share must be a number, got str \('1'\)\.$"),
        (None, {}, "share must be a number, got NoneType"),
        (True, {}, "share must be a number, got bool"),
        (np.True_, {}, "share must be a number, got bool"),
        (1j, {}, "share must be a number, got complex"),
        (1.0, {"integer": True}, r"share must be an integer, got float \(1\.0\)"),
        (np.float64(2), {"integer": True}, "share must be an integer, got float64"),
        (False, {"integer": True}, "share must be an integer, got bool"),
        ([1], {}, "share must be a number, got list"),
    ],
)
def test_wrong_kinds(value: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        check_number("share", value, **options)


@pytest.mark.parametrize(
    ("value", "options", "message"),
    [
        (-0.1, {"low": 0}, r"^share must be at least 0, got -0\.1\.$"),
        (2, {"low": 0, "high": 1}, r"^share must be at least 0 and at most 1, got 2\.$"),
        (0, {"low": 0, "high": 1, "open_low": True}, "share must be above 0 and at most 1, got 0"),
        (1, {"low": 0, "high": 1, "open_high": True}, "share must be at least 0 and below 1, got 1"),
        (1.5, {"high": 1}, "share must be at most 1, got 1.5"),
        (float("nan"), {"low": 0}, "share must be at least 0, got nan"),
        (float("nan"), {}, "share must be a number, got nan"),
        (float("inf"), {"high": 1}, "share must be at most 1, got inf"),
    ],
)
def test_values_out_of_range(value: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_number("share", value, **options)


def test_choices() -> None:
    check_choice("pooling", "mean", ("mean", "cls"))
    with pytest.raises(
        ValueError,
        match=r"^pooling='men' is not known; choose one of \('mean', 'cls'\)\. Did you mean 'mean'\?$",
    ):
        check_choice("pooling", "men", ["mean", "cls"])
    with pytest.raises(ValueError, match=r"^pooling=None is not known; choose one of \('mean', 'cls'\)\.$"):
        check_choice("pooling", None, ("mean", "cls"))


def test_flags() -> None:
    for value in (True, False, np.True_):
        check_flag("warm_start", value)
    for value in (1, "yes", None):
        with pytest.raises(TypeError, match="warm_start must be True or False, got"):
            check_flag("warm_start", value)


def test_integers_beyond_floats_are_out_of_range() -> None:
    with pytest.raises(ValueError, match=r"n must be at most 3, got 1000"):
        check_number("n", 10**400, high=3, integer=True)
    with pytest.raises(ValueError, match=r"n must be at least 1, got -1000"):
        check_number("n", -(10**400), low=1, integer=True)
    check_number("n", 10**400, low=1, integer=True)


def test_a_choice_is_a_text() -> None:
    for value in (np.array(["a", "b"]), ["a"], None):
        with pytest.raises(ValueError, match=r"kind=.* is not known; choose one of \('a', 'b'\)"):
            check_choice("kind", value, ("a", "b"))
