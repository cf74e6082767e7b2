"""What users pass as X: every container gives the same documents, and every fault an error that names its place."""

# long: every container that users pass is a case

from __future__ import annotations

import enum
import re
import time
from collections import UserList, deque
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from sktransformer._engine.text.documents import Documents, as_documents, first_texts

TEXTS = ["Bonjour à tous", "", "l'été \U0001f600 à Montréal", "ligne 1\nligne 2"]
OTHERS = ["un", "deux", "trois", ""]
ODD_INDEX = [30, 30, -1, 7]  # labels that are neither positions nor unique


class Tone(str, enum.Enum):  # noqa: UP042 - a StrEnum prints its value, this one does not
    WARM = "chaud"
    COLD = "froid"


def same(documents: Documents, first: list[str], second: list[str] | None = None) -> None:
    """Assert the texts, and that each is a plain str."""
    assert documents.first == first
    assert documents.second == second
    assert {type(text) for text in documents.first + (documents.second or [])} <= {str}


SINGLE: dict[str, Any] = {
    "list": TEXTS,
    "tuple": tuple(TEXTS),
    "deque": deque(TEXTS),
    "UserList": UserList(TEXTS),
    "dict values": dict(enumerate(TEXTS)).values(),
    "dict keys": dict.fromkeys(TEXTS).keys(),
    "np.str_": [np.str_(text) for text in TEXTS],
    "object array": np.array(TEXTS, dtype=object),
    "<U array": np.array(TEXTS),
    "big-endian array": np.array(TEXTS).astype(">U30"),
    "StringDType": np.array(TEXTS, dtype=np.dtypes.StringDType()),
    "strided array": np.array([[text, "x"] for text in TEXTS], dtype=object)[:, 0],
    "pandas str": pd.Series(TEXTS, index=ODD_INDEX, dtype="str"),
    "pandas object": pd.Series(TEXTS, index=list("dcba"), dtype=object),
    "pandas string": pd.Series(TEXTS, index=ODD_INDEX, dtype="string"),
    "pandas pyarrow": pd.Series(TEXTS, index=ODD_INDEX, dtype=pd.ArrowDtype(pa.string())),
    "pandas categorical": pd.Series(TEXTS, index=ODD_INDEX, dtype="category"),
    "pandas Index": pd.Index(TEXTS),
    "pandas Categorical": pd.Categorical(TEXTS),
    "pyarrow Array": pa.array(TEXTS),
    "pyarrow ChunkedArray": pa.chunked_array([TEXTS[:2], TEXTS[2:]]),
    "polars Series": pl.Series("text", TEXTS),
    "polars categorical": pl.Series("text", TEXTS, dtype=pl.Categorical),
}
ONE_COLUMN: dict[str, Any] = {
    "pandas frame": pd.DataFrame({"text": TEXTS}, index=ODD_INDEX),
    "pandas object frame": pd.DataFrame({"text": TEXTS}, dtype=object),
    "pandas pyarrow frame": pd.DataFrame({"text": pd.Series(TEXTS, dtype=pd.ArrowDtype(pa.large_string()))}),
    "frame, name is a number": pd.DataFrame({0: TEXTS}),
    "frame, MultiIndex columns": pd.DataFrame({("mail", "text"): TEXTS}),
    "polars frame": pl.DataFrame({"text": TEXTS}),
    "(n, 1) object": np.array(TEXTS, dtype=object)[:, None],
    "(n, 1) <U": np.array(TEXTS)[:, None],
    "(n, 1) StringDType": np.array(TEXTS, dtype=np.dtypes.StringDType())[:, None],
    "lists of one": [[text] for text in TEXTS],
    "tuples of one": [(text,) for text in TEXTS],
    "arrays of one": [np.array([text]) for text in TEXTS],
}
PAIRS: dict[str, Any] = {
    "list of tuples": list(zip(TEXTS, OTHERS, strict=True)),
    "tuple of lists": tuple([a, b] for a, b in zip(TEXTS, OTHERS, strict=True)),
    "list of arrays": [np.array([a, b]) for a, b in zip(TEXTS, OTHERS, strict=True)],
    "(n, 2) object": np.array([TEXTS, OTHERS], dtype=object).T,
    "(n, 2) <U": np.array([TEXTS, OTHERS]).T,
    "(n, 2) StringDType": np.array([TEXTS, OTHERS], dtype=np.dtypes.StringDType()).T,
    "frame": pd.DataFrame({"a": TEXTS, "b": OTHERS}, index=ODD_INDEX),
    "frame, mixed dtypes": pd.DataFrame({"a": pd.Series(TEXTS, dtype="category"), "b": OTHERS}),
    "frame, one name twice": pd.DataFrame([TEXTS, OTHERS], index=["a", "a"]).T,
    "frame, MultiIndex columns": pd.DataFrame({("mail", "a"): TEXTS, ("mail", "b"): OTHERS}),
    "polars frame": pl.DataFrame({"a": TEXTS, "b": OTHERS}),
    "MultiIndex": pd.MultiIndex.from_arrays([TEXTS, OTHERS]),
    "zip": zip(TEXTS, OTHERS, strict=True),
}


@pytest.mark.parametrize("X", SINGLE.values(), ids=SINGLE)
def test_texts_in_any_sequence_are_the_same_documents(X: Any) -> None:
    documents = as_documents(X)
    same(documents, TEXTS)
    assert documents.width is None
    assert len(documents) == 4


@pytest.mark.parametrize("X", ONE_COLUMN.values(), ids=ONE_COLUMN)
def test_one_column_is_a_list_of_texts(X: Any) -> None:
    documents = as_documents(X)
    same(documents, TEXTS)
    assert documents.width == 1


@pytest.mark.parametrize("X", PAIRS.values(), ids=PAIRS)
def test_two_columns_of_texts_are_pairs(X: Any) -> None:
    documents = as_documents(X)
    same(documents, TEXTS, OTHERS)
    assert documents.width == 2


def test_a_generator_is_listed_once() -> None:
    drawn = []
    same(as_documents(drawn.append(text) or text for text in TEXTS), TEXTS)
    assert drawn == TEXTS


def test_iterators_are_documents() -> None:
    same(as_documents(iter(TEXTS)), TEXTS)
    same(as_documents(map(str.upper, ["a", "b"])), ["A", "B"])


def test_input_is_not_changed() -> None:
    X = pd.DataFrame({"a": [None, "x"], "b": ["y", "z"]}, index=[5, 5])
    before = X.copy()
    as_documents(X, missing="empty")
    pd.testing.assert_frame_equal(X, before)
    texts = ["a", "b"]
    as_documents(texts).first.append("c")
    assert texts == ["a", "b"]


def test_names_of_a_frame_are_kept() -> None:
    assert as_documents(PAIRS["frame"]).names == ("a", "b")
    assert as_documents(PAIRS["polars frame"]).names == ("a", "b")
    assert as_documents(ONE_COLUMN["frame, MultiIndex columns"]).names == ("('mail', 'text')",)
    assert as_documents(PAIRS["(n, 2) object"]).names is None


def test_take_picks_by_position() -> None:
    taken = as_documents(PAIRS["frame"]).take(np.array([2, 0, 2]))
    same(taken, [TEXTS[2], TEXTS[0], TEXTS[2]], [OTHERS[2], OTHERS[0], OTHERS[2]])
    assert (taken.width, taken.names) == (2, ("a", "b"))


def test_first_texts_reads_both_columns_up_to_a_limit() -> None:
    assert first_texts(Documents(["a", "b"], ["c", "d"])) == ["a", "b", "c", "d"]
    assert first_texts(Documents(["a", "b"], ["c", "d"]), limit=3) == ["a", "b", "c"]
    assert first_texts(Documents(["a", "b"])) == ["a", "b"]


# -- tables ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "X",
    [
        np.array([[1, 2, 3], [4, 5, 6]]),
        np.array([[1, 2, 3], [4, 5, 6]], dtype=np.float32),
        np.array([[1, 2, 3], [4, 5, 6]], dtype=object),
        [[1, 2, 3], [4, 5, 6]],
        [(1, 2, 3), (4.0, 5, 6)],
        [np.array([1, 2, 3]), np.array([4, 5, 6])],
    ],
    ids=["int", "float32", "object", "lists", "tuples", "arrays"],
)
def test_numbers_are_rendered_row_by_row(X: Any) -> None:
    documents = as_documents(X)
    same(documents, ["x0: 1, x1: 2, x2: 3", "x0: 4, x1: 5, x2: 6"])
    assert documents.width == 3


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_numeric_frames_are_rendered_alike_under_their_names(frame: Any) -> None:
    same(as_documents(frame({"a": [1, 2], "b": [0.5, 1e-9]})), ["a: 1, b: 0.5", "a: 2, b: 1e-09"])
    same(as_documents(frame({"a": [1, 2]})), ["a: 1", "a: 2"])
    same(
        as_documents(frame({"a": [True, False], "b": [False, True]})),
        ["a: True, b: False", "a: False, b: True"],
    )
    # one float column makes a table of floats of it, whatever the library
    assert as_documents(frame({"a": [1234567], "b": [0.5]})).first == ["a: 1.23457e+06, b: 0.5"]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_mixed_frames_are_rendered_under_their_names(frame: Any) -> None:
    X = frame({"subject": ["Devis", "Facture"], "amount": [12.5, 3.0], "read": [True, False]})
    documents = as_documents(X)
    same(documents, ["subject: Devis, amount: 12.5, read: True", "subject: Facture, amount: 3, read: False"])
    assert (documents.width, documents.names) == (3, ("subject", "amount", "read"))


def test_three_columns_of_texts_are_rendered() -> None:
    rows = [["a", "b", "c"], ["d", "e", "f"]]
    for X in (
        rows,
        np.array(rows),
        np.array(rows, dtype=object),
        np.array(rows, dtype=np.dtypes.StringDType()),
    ):
        same(as_documents(X), ["x0: a, x1: b, x2: c", "x0: d, x1: e, x2: f"])


def test_a_text_beside_a_number_is_a_table_in_every_container() -> None:
    for X in ([("a", 1), ("b", 2)], [["a", 1], ["b", 2]], np.array([["a", 1], ["b", 2]], dtype=object)):
        same(as_documents(X), ["x0: a, x1: 1", "x0: b, x1: 2"])


def test_columns_of_one_name_are_all_read() -> None:
    X = pd.DataFrame([[1.5, "x", 2], [2.5, "y", 3]], columns=["a", "a", "a"])
    same(as_documents(X), ["a: 1.5, a: x, a: 2", "a: 2.5, a: y, a: 3"])


def test_dates_are_rendered() -> None:
    X = pd.DataFrame({"sent": pd.to_datetime(["2026-01-02"]), "text": ["a"]})
    assert as_documents(X).first == ["sent: 2026-01-02 00:00:00, text: a"]


# -- empty input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "X",
    [
        [],
        (),
        iter([]),
        np.array([]),
        np.array([], dtype=object),
        np.array([], dtype="U5"),
        pd.Series([], dtype="str"),
        pd.Series([], dtype=float),
        pl.Series("a", [], dtype=pl.String),
        pd.DataFrame({"a": pd.Series([], dtype="str")}),
        pd.DataFrame(
            {"a": pd.Series([], dtype="str"), "b": pd.Series([], dtype="str"), "c": pd.Series([], dtype=int)}
        ),
        pl.DataFrame({"a": []}, schema={"a": pl.String}),
        np.empty((0, 1), dtype=object),
        np.empty((0, 3)),
    ],
    ids=lambda X: f"{type(X).__name__} {getattr(X, 'shape', '')}",
)
def test_no_rows_are_no_documents(X: Any) -> None:
    documents = as_documents(X)
    assert len(documents) == 0
    assert documents.first == []


def test_pairs_without_rows_stay_pairs() -> None:
    assert as_documents(PAIRS["frame"].iloc[:0]).second == []
    assert as_documents(np.empty((0, 2), dtype=object)).second == []


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame(index=range(3)),
        pl.DataFrame(),
        np.empty((3, 0)),
        np.empty((3, 0), dtype=object),
        [[], []],
    ],
    ids=["pandas", "polars", "float", "object", "lists"],
)
def test_a_table_without_columns_raises(X: Any) -> None:
    with pytest.raises(ValueError, match=r"0 feature\(s\).*while a minimum of 1 is required"):
        as_documents(X)


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


# -- texts of every kind -----------------------------------------------------------------------------------------------


def test_surrogates_are_joined_or_replaced() -> None:
    texts = ["a\ud800b", "\ud83d\ude00", "caf\udce9", "\udfff"]
    same(as_documents(texts), ["a\ufffdb", "\U0001f600", "caf\ufffd", "\ufffd"])
    same(as_documents([("\ud800", "b")]), ["\ufffd"], ["b"])


def test_strange_texts_are_kept_as_they_are() -> None:
    texts = [
        "a\x00b",
        "\u200bzero\u200d",
        "\u202eright to left",
        "مرحبا",
        "e\u0301",
        "👩‍👩‍👧",
        "\r\n\t",
        "\ufeff",
    ]
    same(as_documents(texts), texts)
    same(as_documents(pd.Series(texts)), texts)


def test_a_megabyte_of_text_is_kept() -> None:
    text = "é mot " * 200_000
    assert as_documents([text]).first == [text]


def test_enumerated_strings_give_their_values() -> None:
    same(as_documents([Tone.WARM, Tone.COLD]), ["chaud", "froid"])


def test_100_000_rows_are_read_in_a_moment() -> None:
    X = pd.Series(["un message de longueur ordinaire " * 4] * 100_000)
    start = time.process_time()
    assert len(as_documents(X)) == 100_000
    assert time.process_time() - start < 2.0  # a fifth of a second; quadratic work would take hours


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
        ([{"text": "a"}], r"X\[0\] must be str, got dict"),
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
