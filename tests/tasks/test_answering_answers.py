"""What may be passed as answers, and where they stand in their contexts."""

import numpy as np
import pandas as pd
import pytest

from sktransformer.tasks._answering.answers import Answer, answer_rows, locate, original_rows, read_answers

FORMS = [
    ("Lyon", (Answer("Lyon"),)),
    (("Lyon", 18), (Answer("Lyon", 18),)),
    (["Lyon", np.int64(18)], (Answer("Lyon", 18),)),
    (("Lyon", 18.0), (Answer("Lyon", 18),)),
    (("Lyon", None), (Answer("Lyon"),)),
    ((" Lyon\n", 17), (Answer("Lyon", 18),)),
    ({"text": ["Lyon"], "answer_start": [18]}, (Answer("Lyon", 18),)),
    ({"text": ["a", "b"], "answer_start": np.array([1, 2])}, (Answer("a", 1), Answer("b", 2))),
    ({"text": np.array(["a"], dtype=object)}, (Answer("a"),)),
    ({"text": "Lyon", "answer_start": 18}, (Answer("Lyon", 18),)),
    ([{"text": "a", "answer_start": 1}, {"text": "b", "answer_start": 2}], (Answer("a", 1), Answer("b", 2))),
    ({"text": [], "answer_start": []}, ()),
    ([], ()),
    (None, ()),
    (float("nan"), ()),
    (pd.NA, ()),
    ("", ()),
    (" \n", ()),
    ((None, None), ()),
    (("", 0), ()),
]


@pytest.mark.parametrize(("row", "answers"), FORMS, ids=lambda value: repr(value)[:40])
def test_forms_of_an_answer(row, answers):
    assert read_answers([row, "x"]) == [answers, (Answer("x"),)]


def test_containers():
    rows = ["Lyon", "Nice", ""]
    expected = [(Answer("Lyon"),), (Answer("Nice"),), ()]
    given = [
        rows,
        tuple(rows),
        np.array(rows),
        np.array(rows, dtype=object),
        pd.Series(rows, index=[2, 1, 0]),
    ]
    given += [(row for row in rows), np.array(rows)[:, None], pd.DataFrame({"answer": rows})]
    for y in given:
        assert read_answers(y) == expected
    pairs = [("Lyon", 3), (None, None)]
    expected = [(Answer("Lyon", 3),), ()]
    table = np.array(pairs, dtype=object)
    for y in (pairs, table, pd.DataFrame(pairs), pd.Series(pairs)):
        assert read_answers(y) == expected


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ("Lyon", r"y must be a list of answers, one a row of X, got one str"),
        (b"Lyon", "got one bytes"),
        ({"text": ["Lyon"]}, "got one dict"),
        (3, "got one int"),
        (["Lyon", 3], r"y\[1\] must be a text, \(text, start\), .* got int \(3\)"),
        ([True], r"y\[0\] must be"),
        ([("Lyon", 3, 4)], r"y\[0\] must be .* got tuple"),
        ([{"answer": "Lyon"}], r"y\[0\] must be .* got a dict with the keys \['answer'\]"),
        ([{"text": ["Lyon", 3], "answer_start": [1, 2]}], r'y\[0\]\["text"\] must hold texts, got int'),
        ([("Lyon", "3")], r"y\[0\]: the start of an answer must be a whole number of characters, got str"),
        ([("Lyon", 1.5)], "whole number"),
        ([("Lyon", True)], "whole number"),
    ],
)
def test_another_kind_raises(y, message):
    with pytest.raises(TypeError, match=message):
        read_answers(y)


def test_another_value_raises():
    with pytest.raises(ValueError, match=r"y\[0\] has 2 texts and 1 starts; pass one start a text"):
        read_answers([{"text": ["a", "b"], "answer_start": [1]}])
    with pytest.raises(ValueError, match=r"y\[1\]: the start of an answer must be at least 0, got -2"):
        read_answers(["a", ("a", -2)])


def test_rows_keep_what_was_given():
    y = [("Lyon", 3), None, {"text": []}]
    kept = original_rows(y)
    assert kept.shape == (3,)
    assert all(one is other for one, other in zip(kept, y, strict=True))
    assert answer_rows(pd.DataFrame([("Lyon", 3)])) == [("Lyon", 3)]


CONTEXT = "En 1950, il avait 50 ans. Paris, Paris."


def places(*rows):
    return locate(read_answers(rows), [CONTEXT] * len(rows)).tolist()


def test_places():
    assert places(("Paris", 33), None, "Paris", ("50", 18)) == [[33, 38], [-1, -1], [26, 31], [18, 20]]


def test_a_text_alone_is_a_whole_word_if_it_can_be():
    assert places("50", "1950", "95") == [[18, 20], [3, 7], [4, 6]]


def test_the_first_answer_that_is_there_counts():
    row = {"text": ["Rome", "Paris", "ans"], "answer_start": [0, 26, 21]}
    assert places(row) == [[26, 31]]


def test_a_wrong_start_is_mended_with_a_warning():
    with pytest.warns(UserWarning, match=r"2 of 3 answers do not stand at their start .* \(y: rows 0, 2\)"):
        assert places(("Paris", 36), ("Paris", 26), ("ans", 0)) == [[33, 38], [26, 31], [21, 24]]


def test_absent_answers_raise_with_the_row_and_the_remedy():
    with pytest.raises(
        ValueError, match=r"y\[1\]: 'Rome' is not in its context \(nor are those of 2\); .* X\[1\]"
    ):
        places("Paris", ("Rome", 3), "paris")
    with pytest.raises(ValueError, match="pass None for no answer"):
        locate(read_answers(["a"]), [""])
