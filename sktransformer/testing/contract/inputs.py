"""What may be passed as documents: lines 6 to 8 of the contract."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd

from ..._engine.errors import TruncationWarning
from ._require import recorded, require, require_close, require_different, require_equal, require_raises
from .registry import check, has, learns_targets, reads_pairs, reads_texts
from .subject import Subject

STRANGE = {
    "an empty string": "",
    "blanks": " \t\n ",
    "a lone surrogate": "facture \ud83d perdue",
    "NUL bytes": "avant\x00apr\x00ès",
    "zero-width characters": "fac\u200bture\ufeff \u2060",
    "right-to-left text": "أين فاتورتي؟ \u202eerutcaf",
    "emoji": "👩‍👩‍👧‍👦 🇫🇷 👍🏽",
    "combining marks": "e\u0301te\u0301 " + "z" + "\u0335" * 50,
    "line breaks of all kinds": "a\r\nb\rc\u2028d\x85e\x0cf",
    "private and unassigned characters": "\ue000 \U0010ffff \ufffe",
}
MEGABYTE = 1_000_000


def containers(X: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield the documents in everything that may hold them, with index labels that mean nothing."""
    yield "a tuple", tuple(X)
    yield "an object array", np.array(X, dtype=object)
    yield "a <U array", np.array(X)
    yield "a StringDType array", np.array(X, dtype=np.dtypes.StringDType())
    yield "an (n, 1) object array", np.array(X, dtype=object)[:, None]
    yield "an (n, 1) <U array", np.array(X)[:, None]
    index = [0] * (len(X) // 2) + list(range(len(X) - len(X) // 2, 0, -1))
    for dtype in ("object", "str", "string", "category"):
        yield f"a pandas Series of {dtype}", pd.Series(X, index=index, dtype=dtype)
    yield "a one-column pandas frame", pd.DataFrame({"body": X}, index=index)
    yield from _from_other_libraries(X, index)
    yield "a generator", (text for text in X)
    yield "a dict's values", dict(enumerate(X)).values()


def _from_other_libraries(X: list[str], index: list[int]) -> Iterator[tuple[str, Any]]:
    if find_spec("pyarrow") is not None:  # optional: without it nobody passes its strings
        import pyarrow

        yield (
            "a pandas Series of pyarrow strings",
            pd.Series(X, index=index, dtype=pd.ArrowDtype(pyarrow.string())),
        )
    if find_spec("polars") is not None:  # optional too
        import polars

        yield "a polars Series", polars.Series("body", X)
        yield "a one-column polars frame", polars.DataFrame({"body": X})


# -- 6. containers -------------------------------------------------------------------------------------------------


@check(6, reads_texts)
def containers_read_alike(subject: Subject) -> None:
    """A fitted estimator gives the same output for the same texts in any container, by position, with no warning."""
    for name, X in containers(subject.sample.X_new):
        with recorded() as warned:
            output = subject.read(subject.fitted, X)
        subject.same(output, f"output for {name}")
        require(not warned, f"reading {name} warns: {warned}")


@check(6, reads_texts)
def containers_fit_alike(subject: Subject) -> None:
    """`fit` learns the same from the same texts in any container, targets as list, array or Series of any index."""
    y = subject.sample.y
    for i, (name, X) in enumerate(containers(subject.sample.X)):
        targets = None if y is None else (y, np.array(y), pd.Series(y, index=range(len(y), 0, -1)))[i % 3]
        output = subject.read(subject.fit(X, targets))
        subject.same(output, f"output after a fit on {name}")


@check(6, reads_texts)
def rows_are_taken_by_position(subject: Subject) -> None:
    """An index that contradicts the order changes nothing: row i belongs to document i."""
    X = subject.sample.X_new
    shuffled = pd.Series(X, index=np.random.default_rng(0).permutation(len(X)))
    reversed_output = subject.read(subject.fitted, shuffled.iloc[::-1])
    require_close(reversed_output, subject.expected[::-1], "output of a reversed Series", tolerance=1e-5)


# -- 7. pairs and tables -------------------------------------------------------------------------------------------


@check(7, reads_pairs)
def pairs_read_alike(subject: Subject) -> None:
    """A two-column frame, an (n, 2) array and a list of 2-tuples are the same pairs."""
    pairs = subject.sample.pairs
    frame = pd.DataFrame(pairs, columns=["subject", "body"], index=range(len(pairs), 0, -1))
    given = {"a list of pairs": pairs, "a frame": frame, "an array": np.array(pairs, dtype=object)}
    outputs = {}
    for name, X in given.items():
        fitted = subject.fit(X)
        outputs[name] = subject.read(fitted, X)
        require_equal(len(outputs[name]), len(pairs), f"rows for {name}")
    for name in ("a frame", "an array"):
        subject.same(outputs[name], f"output for {name} against a list of pairs", outputs["a list of pairs"])


@check(7, reads_pairs)
def both_texts_of_a_pair_count(subject: Subject) -> None:
    """Changing either text of a pair changes its row, and no other row."""
    pairs = subject.sample.pairs
    fitted = subject.fit(pairs)
    before = subject.read(fitted, pairs)
    for changed in (("autre chose ici", pairs[0][1]), (pairs[0][0], "autre chose ici")):
        after = subject.read(fitted, [changed, *pairs[1:]])
        require_different(after[:1], before[:1], "the row of a pair whose text was changed")
        require_close(after[1:], before[1:], "the other rows", tolerance=1e-5)


@check(7, reads_pairs, has("model"))
def pairs_and_single_texts_do_not_mix(subject: Subject) -> None:
    """An estimator fitted on single texts refuses pairs, and the other way round."""
    with require_raises(ValueError, "pairs", "single"):
        subject.read(subject.fitted, subject.sample.pairs)
    with require_raises(ValueError, "pairs", "single"):
        subject.read(subject.fit(subject.sample.pairs), subject.sample.X_new)


@check(7, reads_texts, has("model"))
def other_tables_become_text(subject: Subject) -> None:
    """A table that is no text is read row by row as ``name: value`` text, by its columns' names."""
    n = len(subject.sample.X)
    frame = pd.DataFrame(
        {"words": np.arange(n), "ratio": np.linspace(0, 1, n), "lang": ["fr", "en"] * (n // 2)}
    )
    texts = [f"words: {row.words}, ratio: {row.ratio:.6g}, lang: {row.lang}" for row in frame.itertuples()]
    fitted = subject.fit(frame, max_length=48)
    expected = subject.read(subject.fit(texts, max_length=48), texts)
    subject.same(subject.read(fitted, frame), "output of a table", expected)
    require_equal(int(fitted.n_features_in_), 3, "n_features_in_")
    require_equal(list(getattr(fitted, "feature_names_in_", [])), list(frame.columns), "feature_names_in_")
    with require_raises(ValueError, "ratio"):
        subject.read(fitted, frame.drop(columns="ratio"))


# -- 8. bad and strange texts --------------------------------------------------------------------------------------


@check(8, reads_texts)
def bare_string_raises(subject: Subject) -> None:
    """One string instead of a list of strings raises TypeError, which says to pass a list."""
    for X in ("une facture", b"une facture"):
        with require_raises(TypeError, type(X).__name__, "["):
            subject.refit(subject.new(), X)
        with require_raises(TypeError, type(X).__name__, "["):
            subject.read(subject.fitted, X)


@check(8, reads_texts)
def missing_texts_are_listed(subject: Subject) -> None:
    """None, NaN and NA among the texts raise ValueError, which lists their rows."""
    X = list(subject.sample.X)
    for absent in (None, float("nan"), np.nan, pd.NA):
        holes = [*X[:2], absent, *X[3:7], absent, *X[8:]]
        for given in (
            holes,
            np.array(holes, dtype=object),
            pd.Series(holes, dtype=object, index=range(50, 50 + len(X))),
        ):
            with require_raises(ValueError, "2, 7"):
                subject.refit(subject.new(), given)
            with require_raises(ValueError, "2, 7"):
                subject.read(subject.fitted, given)


@check(8, reads_texts, has("missing"))
def missing_texts_may_be_empty(subject: Subject) -> None:
    """With ``missing="empty"`` an absent text is read as an empty one; other values of `missing` raise."""
    fitted = subject.fit(missing="empty")
    X = list(subject.sample.X_new)
    expected = subject.read(fitted, [X[0], "", "", *X[1:]])
    subject.same(
        subject.read(fitted, [X[0], None, float("nan"), *X[1:]]), 'output with missing="empty"', expected
    )
    with require_raises(ValueError, "missing", "empty"):
        subject.fit(missing="emtpy")


@check(8, reads_texts)
def other_rows_raise(subject: Subject) -> None:
    """A row that is no text raises TypeError with its position and its type."""
    for stranger, kind in ((3, "int"), (b"octets", "bytes"), (["a"], "list"), ({"a": 1}, "dict")):
        X = [*subject.sample.X[:4], stranger, *subject.sample.X[5:]]
        with require_raises(TypeError, "[4]", kind):
            subject.refit(subject.new(), X)
        with require_raises(TypeError, "[4]", kind):
            subject.read(subject.fitted, X)


@check(8)
def empty_input(subject: Subject) -> None:
    """No documents at all raise ValueError in `fit`, and give an empty output of the right width afterwards."""
    frame = pd.DataFrame({"body": []}, dtype="str")
    given: list[Any] = [[], np.array([], dtype=object), pd.Series([], dtype="str"), frame]
    for X in given:
        with require_raises(ValueError):
            subject.refit(subject.new(), X, None if subject.sample.y is None else [])
        output = subject.read(subject.fitted, X)
        require_equal(
            output.shape,
            (0, *subject.expected.shape[1:]),
            f"shape of the output for an empty {type(X).__name__}",
        )
        require_equal(output.dtype, subject.expected.dtype, "dtype of an empty output")
    if subject.classifies:
        require_equal(subject.fitted.predict([]).shape, (0,), "shape of an empty prediction")


@check(8, learns_targets)
def unequal_lengths_raise(subject: Subject) -> None:
    """Unequal numbers of documents and targets raise ValueError, which names both."""
    X, y = subject.sample.X, list(subject.sample.y or [])
    with require_raises(ValueError, str(len(X)), str(len(X) - 1)):
        subject.refit(subject.new(), X, y[:-1])
    with require_raises(ValueError, str(len(X)), str(len(X) - 1)):
        subject.refit(subject.new(), X[:-1], y)


@check(8, reads_texts)
def strange_texts_are_read(subject: Subject) -> None:
    """Surrogates, NUL bytes, invisible and right-to-left characters, emoji and empty strings give finite rows."""
    texts = list(STRANGE.values())
    with recorded(TruncationWarning):
        together = subject.read(subject.fitted, texts)
        subject.fit(
            [*texts, *subject.sample.X],
            None if subject.sample.y is None else _with_strange(subject, len(texts)),
        )
    require_equal(len(together), len(texts), "rows for strange texts")
    if together.dtype.kind == "f":
        for name, row in zip(STRANGE, together, strict=True):
            require(np.isfinite(row).all(), f"the output for {name} is not finite")


def _with_strange(subject: Subject, n: int) -> list[Any] | None:
    y = subject.sample.y
    return None if y is None else [y[i % len(y)] for i in range(n)] + y


@check(8, reads_texts)
def megabyte_of_text_is_read(subject: Subject) -> None:
    """A text of a megabyte gives one finite row, and leaves its neighbours' rows as they are."""
    huge = ("facture perdue, colis en retard. " * (MEGABYTE // 33 + 1))[:MEGABYTE]
    with recorded(TruncationWarning):
        output = subject.read(subject.fitted, [huge, *subject.sample.X_new])
    require_close(output[1:], subject.expected, "rows beside a text of a megabyte", tolerance=1e-5)
    if output.dtype.kind == "f":
        require(np.isfinite(output[0]).all(), "the output for a text of a megabyte is not finite")
