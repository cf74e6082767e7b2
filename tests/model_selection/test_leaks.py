"""Copies of a document on both sides of a fold: found, counted, refused."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from sktransformer import compare_models
from sktransformer.model_selection._leaks import duplicate_groups, find_leak, merge_groups, rows_of

TEXTS = ["Ma facture", "ma  FACTURE\n", "mon colis", "STRASSE", "straße", ""]


@pytest.mark.parametrize(
    "wrap",
    [
        list,
        tuple,
        np.array,
        lambda texts: np.array(texts, dtype=object),
        lambda texts: np.array(texts, dtype=object).reshape(-1, 1),
        lambda texts: pd.Series(texts, index=[7] * 6),
        lambda texts: pd.DataFrame({"text": texts}),
        pl.Series,
        lambda texts: pl.DataFrame({"text": texts}),
    ],
)
def test_case_and_blanks_make_no_difference(wrap):
    assert duplicate_groups(wrap(TEXTS)).tolist() == [0, 0, 2, 3, 3, 5]


def test_columns_are_compared_each_for_itself():
    frame = pd.DataFrame({"subject": ["a b", "a", "A"], "body": ["c", "b c", "b  C"]})
    assert duplicate_groups(frame).tolist() == [0, 1, 1]
    assert next(iter(rows_of(frame))) == ("a b", "c")


@pytest.mark.parametrize(
    "X",
    [
        ["a", "b"],
        ["", " ", None],  # nothing to learn from
        np.zeros((4, 2)),  # numbers: equal rows are no sign of a leak
        [],
    ],
)
def test_no_copies(X):
    assert duplicate_groups(X) is None


def test_strange_texts_are_compared_too():
    assert duplicate_groups(["\ud800 a", "\x00", "\ud800  A", "\u200b"]).tolist() == [0, 1, 0, 3]


def test_groups_join_through_copies():
    # 0 and 1 are copies; 1 and 2 are in one thread; 2 and 3 are copies; 4 stands alone
    merged = merge_groups(np.array([0, 0, 2, 2, 4]), np.array([10, 5, 5, 7, 9]))
    assert merged.tolist() == [0, 0, 0, 0, 1]
    assert merge_groups(np.array([0, 0, 2, 2, 4]), None).tolist() == [0, 0, 1, 1, 2]


def test_leak_is_counted():
    copies = np.array([0, 0, 2, 2, 4, 0])
    split = (np.array([0, 2, 3]), np.array([1, 4, 5]))
    leak = find_leak(copies, [split])
    assert (leak.n_documents, leak.n_groups, leak.rows) == (3, 1, [0, 1, 5])
    assert find_leak(copies, [(np.array([0, 1, 5]), np.array([2, 3, 4]))]) is None


X = [f"mail {i}" for i in range(20)] + ["MAIL  3", "mail 3", "mail 7 "]
Y = ["a", "b"] * 10 + ["b", "b", "b"]
SPLIT = [(range(20), range(20, 23))]


def test_compare_refuses_and_says_how_many():
    with pytest.raises(
        ValueError, match=r"5 documents in 2 group.s. of duplicates.*rows 3, 20, 21 of X.*'group'"
    ):
        compare_models([DummyClassifier()], X, Y, cv=SPLIT)


def test_group_keeps_copies_together():
    result = compare_models([DummyClassifier()], X, Y, cv=5, duplicates="group", scoring=Recorder())
    for train, test in Recorder.seen(result):
        assert not {text.lower().split()[1] for text in train} & {text.lower().split()[1] for text in test}


class Recorder:
    """A scorer whose score tells the test documents apart: a bit for each number of a mail."""

    __name__ = "bits"

    def __call__(self, estimator, X, y):
        return float(sum({2 ** int(text.split()[1]) for text in X}))

    @staticmethod
    def seen(result):
        parts = [{i for i in range(20) if int(bits) >> i & 1} for bits in result.runs["bits"]]
        for part in parts:
            yield [f"mail {i}" for i in set(range(20)) - part], [f"mail {i}" for i in part]


def test_group_covers_every_document_once():
    result = compare_models([DummyClassifier()], X, Y, cv=5, duplicates="group", scoring=Recorder())
    # every number is in one test part alone, its copies too, so that the bits add up to all of them once
    assert result.runs["bits"].sum() == 2**20 - 1


def test_group_needs_a_splitter_that_takes_groups():
    with pytest.raises(ValueError, match="takes no account of groups"):
        compare_models([DummyClassifier()], X, Y, cv=StratifiedKFold(5), duplicates="group")
    compare_models([DummyClassifier()], X, Y, cv=StratifiedGroupKFold(5), duplicates="group")


def test_groups_of_the_user_suffice():
    groups = [text.lower().strip().replace("  ", " ") for text in X]
    result = compare_models([DummyClassifier()], X, Y, cv=5, groups=groups)
    assert len(result.runs) == 5


def test_allow_warns_with_the_count():
    with pytest.warns(UserWarning, match=r"5 documents in 2 group.s. of duplicates.*too good"):
        compare_models([DummyClassifier()], X, Y, cv=SPLIT, duplicates="allow")


def test_unknown_choice():
    with pytest.raises(ValueError, match=r"duplicates='grup' is not known.*'group'"):
        compare_models([DummyClassifier()], X, Y, duplicates="grup")
