"""Texts that are missing, and what is no document: each error names its place and the remedy."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from sktransformer._engine.text.documents import Documents, as_documents

ODD_INDEX = [30, 30, -1, 7]  # labels that are neither positions nor unique


def same(documents: Documents, first: list[str], second: list[str] | None = None) -> None:
    """Assert the texts, and that each is a plain str."""
    assert documents.first == first
    assert documents.second == second
    assert {type(text) for text in documents.first + (documents.second or [])} <= {str}


# -- missing texts -----------------------------------------------------------------------------------------------------

GAPS: dict[str, Any] = {
    "list, None": ["a", None, "b", None],
    "list, NaN": ["a", float("nan"), "b", np.float32("nan")],
    "list, pd.NA and NaT": ["a", pd.NA, "b", pd.NaT],
    "object array": np.array(["a", None, "b", np.nan], dtype=object),
    "StringDType": np.array(["a", None, "b", None], dtype=np.dtypes.StringDType(na_object=None)),
    "StringDType, NaN": np.array(["a", np.nan, "b", np.nan], dtype=np.dtypes.StringDType(na_object=np.nan)),
    "pandas str": pd.Series(["a", None, "b", None], index=ODD_INDEX, dtype="str"),
    "pandas string": pd.Series(["a", None, "b", None], dtype="string"),
    "pandas categorical": pd.Series(["a", None, "b", None], dtype="category"),
    "pandas pyarrow": pd.Series(["a", None, "b", None], dtype=pd.ArrowDtype(pa.string())),
    "polars Series": pl.Series(["a", None, "b", None]),
    "pyarrow": pa.array(["a", None, "b", None]),
    "pandas frame": pd.DataFrame({"text": ["a", None, "b", None]}, index=ODD_INDEX),
    "polars frame": pl.DataFrame({"text": ["a", None, "b", None]}),
    "(n, 1)": np.array([["a"], [None], ["b"], [np.nan]], dtype=object),
    "lists of one": [["a"], [None], ["b"], None],
}


@pytest.mark.parametrize("X", GAPS.values(), ids=GAPS)
def test_missing_texts_raise_and_list_their_rows(X: Any) -> None:
    with pytest.raises(
        ValueError, match=re.escape("has 2 missing text(s)") + r".* in row\(s\) 1, 3; .*missing=\"empty\""
    ):
        as_documents(X)


@pytest.mark.parametrize("X", GAPS.values(), ids=GAPS)
def test_missing_texts_may_be_read_as_empty(X: Any) -> None:
    same(as_documents(X, missing="empty"), ["a", "", "b", ""])


def test_at_most_ten_rows_are_listed() -> None:
    with pytest.raises(ValueError, match=r"12 missing .* 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, \.\.\.;"):
        as_documents([None] * 12)


PAIRS_WITH_GAPS: dict[str, Any] = {
    "tuples, first missing": [(None, "b"), ("c", "d")],
    "frame, first missing": pd.DataFrame({"x": [None, "c"], "y": ["b", "d"]}),
    "frame, NaN": pd.DataFrame({"x": [np.nan, "c"], "y": ["b", "d"]}, dtype=object),
    "polars": pl.DataFrame({"x": [None, "c"], "y": ["b", "d"]}),
    "array": np.array([[None, "b"], ["c", "d"]], dtype=object),
}


@pytest.mark.parametrize("X", PAIRS_WITH_GAPS.values(), ids=PAIRS_WITH_GAPS)
def test_pairs_may_miss_a_text(X: Any) -> None:
    same(as_documents(X, missing="empty"), ["", "c"], ["b", "d"])
    with pytest.raises(ValueError, match=r"X\[.*(0|'x')\] has 1 missing text\(s\).* in row\(s\) 0;"):
        as_documents(X)


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame({"x": [None, None], "y": ["b", "d"]}, dtype="str"),
        pd.DataFrame({"x": [np.nan, np.nan], "y": ["b", "d"]}),  # what read_csv makes of an empty column
        pl.DataFrame({"x": [None, None], "y": ["b", "d"]}),
        [(None, "b"), (None, "d")],
        np.array([[np.nan, "b"], [np.nan, "d"]], dtype=object),
    ],
    ids=["pandas str", "pandas float", "polars", "tuples", "array"],
)
def test_pairs_stay_pairs_when_a_whole_column_is_missing(X: Any) -> None:
    same(as_documents(X, missing="empty"), ["", ""], ["b", "d"])


def test_a_missing_row_among_pairs_misses_both_texts() -> None:
    same(as_documents([("a", "b"), None], missing="empty"), ["a", ""], ["b", ""])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_missing_cells_of_a_rendered_table(frame: Any) -> None:
    X = frame({"subject": ["a", "b"], "amount": [1.5, None], "body": ["x", "y"]})
    with pytest.raises(ValueError, match=r"missing value .* in row 1, column 'amount'; drop or fill"):
        as_documents(X)
    assert as_documents(X, missing="empty").first == [
        "subject: a, amount: 1.5, body: x",
        "subject: b, amount: , body: y",
    ]


def test_missing_numbers_raise_as_scikit_learn_does() -> None:
    X = np.array([[1.0, np.nan], [2.0, 3.0]])
    for table in (X, X.tolist(), pd.DataFrame(X), pl.DataFrame({"a": [1.0, 2.0], "b": [None, 3.0]})):
        with pytest.raises(ValueError, match="contains NaN"):
            as_documents(table)
    with pytest.raises(ValueError, match="infinity"):
        as_documents(pl.DataFrame({"a": [np.inf], "b": [3.0]}))


def test_unknown_word_for_missing() -> None:
    with pytest.raises(ValueError, match=r"missing='drop' is not known; choose \"error\" or \"empty\""):
        as_documents(["a"], missing="drop")  # type: ignore[arg-type]


# -- what is no document -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ("abc", r"X must be an iterable of texts, got one str; pass \[X\]"),
        (b"abc", r"got one bytes; pass \[X\]"),
        (np.str_("abc"), "got one str_"),
        (None, "X must be an iterable of texts, got NoneType"),
        (3, "X must be an iterable of texts, got int"),
        ({"a": "b"}, "X must be an ordered iterable of texts, got dict; pass a list"),
        ({"a", "b"}, "got set"),
        (frozenset("ab"), "got frozenset"),
        (["a", 3], r"X\[1\] must be str, got int; pass texts"),
        ([3, "a"], r"X\[0\] must be str, got int"),
        (["a", b"b"], r"X\[1\] must be str, got bytes; decode it first"),
        ([b"b"], r"X\[0\] must be str, got bytes; decode it first"),
        (np.array([b"a", b"b"]), "X must hold str, got bytes .*decode it first"),
        (np.array([[b"a", b"b"]]), "X must hold str, got bytes .*decode it first"),
        (["a", ["b"]], r"X\[1\] must be str, got list"),
        (
            [{"text": "a"}],
            r"X\[0\] must be str, got dict; pass texts, or .* pandas.DataFrame\(X\)\.",
        ),
        (pd.DataFrame({"text": ["a", 3]}), r"X\['text'\]\[1\] must be str, got int"),
        (np.array([["a"], [3]], dtype=object), r"X\[:, 0\]\[1\] must be str, got int"),
        ([("a", "b"), ("c", 3)], r"X\[:, 1\]\[1\] must be str, got int"),
        (scipy.sparse.csr_matrix(np.eye(2)), "Sparse data was passed"),
        (scipy.sparse.csr_array(np.eye(2)), "Sparse data was passed"),
    ],
)
def test_wrong_kinds_raise_type_errors(X: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        as_documents(X)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([("a", "b"), ("c",)], r"X\[1\] must be a pair of texts like X\[0\], got tuple of length 1"),
        ([None, ("a", "b"), ["c", "d", "e"]], r"X\[2\] must be a pair .* like X\[1\], got list of length 3"),
        ([("a", "b"), "cd"], r"X\[1\] must be a pair of texts .*got str"),
        ([("a", "b", "c"), ("d", "e")], r"X\[1\] must be a row of 3 like X\[0\], got tuple of length 2"),
        ([1, 2, 3], r"1-D sequence of numbers. Reshape"),
        ([1.5, np.float32(2)], "1-D sequence of numbers"),
        (np.arange(3), "Expected 2D array, got 1D array instead"),
        (np.array("abc"), "Expected 2D array, got scalar array instead"),
        (pd.Series([1, 2]), "1-D sequence of numbers"),
        (np.zeros((2, 2, 2)), "dim 3"),
        (np.full((2, 2, 2), "a"), "dim 3"),
        ([[["a"], ["b"]], [["c"], ["d"]]], "dim 3"),
        (np.array([[1 + 2j, 3]]), "Complex data not supported"),
        ([[1, 2], [3]], "inhomogeneous|sequence"),
    ],
)
def test_wrong_values_raise_value_errors(X: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        as_documents(X)


def test_errors_call_the_argument_by_its_name() -> None:
    with pytest.raises(TypeError, match=r"^queries\[0\] must be str"):
        as_documents([1, "a"], name="queries")
    with pytest.raises(ValueError, match=r"^queries has 1 missing"):
        as_documents([None], name="queries")
