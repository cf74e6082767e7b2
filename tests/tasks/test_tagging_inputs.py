"""What may be passed to a tagger as sentences, tags and spans, and what is refused with which words."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sktransformer.tasks._tagging.sentences import as_sentences
from sktransformer.tasks._tagging.tags import as_tags

from .tagging_helpers import PARTS, X, Y, quick

WORDS = [["Marie", "habite"], ["à"], ["Lyon", "et", "Paris"]]
TAGS = [["B-PER", "O"], ["O"], ["B-LOC", "O", "B-LOC"]]


def ragged(rows: list[Any]) -> np.ndarray[Any, Any]:
    array = np.empty(len(rows), dtype=object)
    array[:] = rows
    return array


def polars_column(rows: list[Any]) -> Any:
    polars = pytest.importorskip("polars")
    return polars.Series("words", rows)


CONTAINERS: dict[str, Callable[[list[Any]], Any]] = {
    "tuple": tuple,
    "object array": ragged,
    "column": lambda rows: ragged(rows)[:, None],
    "Series": lambda rows: pd.Series(rows, index=[7, 7, 1]),
    "frame": lambda rows: pd.DataFrame({"words": rows}, index=[7, 7, 1]),
    "polars": polars_column,
    "polars frame": lambda rows: polars_column(rows).to_frame(),
    "generator": lambda rows: (row for row in rows),
    "arrays": lambda rows: [np.array(row) for row in rows],
    "tuples": lambda rows: [tuple(row) for row in rows],
    "Series of Series": lambda rows: [pd.Series(row, index=range(5, 5 + len(row))) for row in rows],
}


@pytest.mark.parametrize("holder", CONTAINERS)
def test_containers_hold_the_same_sentences_and_tags(holder: str) -> None:
    sentences = as_sentences(CONTAINERS[holder](WORDS))
    assert sentences.words == WORDS
    assert sentences.raw is None
    tags = as_tags(CONTAINERS[holder](TAGS), sentences, "auto")
    assert list(tags.original) == TAGS
    assert tags.classes.tolist() == ["B-LOC", "B-PER", "O"]
    assert tags.index.tolist() == [1, 2, 2, 0, 2, 0]
    assert tags.scheme == "IOB2"


def test_sentences_of_one_length_may_be_a_table() -> None:
    table = np.array([["Marie", "habite"], ["à", "Lyon"]])
    assert as_sentences(table).words == table.tolist()
    assert as_sentences(table.astype(object)).words == table.tolist()
    tags = as_tags(np.array([["B-PER", "O"], ["O", "B-LOC"]]), as_sentences(table), "auto")
    assert tags.index.tolist() == [1, 2, 2, 0]


def test_rows_taken_keep_their_tags() -> None:
    sentences = as_sentences(WORDS)
    tags = as_tags(TAGS, sentences, "auto").take(np.array([2, 0]))
    assert sentences.take([2, 0]).words == [WORDS[2], WORDS[0]]
    assert tags.index.tolist() == [0, 2, 0, 1, 2]
    assert tags.lengths.tolist() == [3, 2]
    assert list(tags.original) == [TAGS[2], TAGS[0]]


@pytest.mark.parametrize(
    ("sentences", "kind", "message"),
    [
        ("Marie habite", TypeError, "got one str; pass [X]"),
        (b"Marie", TypeError, "got one bytes"),
        (3, TypeError, "got int"),
        ({"a": 1}, TypeError, "ordered iterable"),
        ([["a"], None, ["b"], float("nan")], ValueError, "X has 2 missing value(s)"),
        ([["a"], None], ValueError, "at 1; drop or fill them"),
        (
            [["a"], ["b", None]],
            ValueError,
            "X[1] has 1 missing value(s), NaN or None (the first is NoneType), at 1",
        ),
        ([["a"], ["b", 3]], TypeError, "X[1][1] must be a word (str), got int"),
        ([["a"], "b c"], TypeError, "X[1] must be a list of words, got str"),
        ([["a"], b"b"], TypeError, "got bytes; decode it first"),
        (["a b", ["c"]], TypeError, "X[1] must be str like the first row, got list"),
        ([["a"], {"b": 1}], TypeError, "X[1] must be a list of words, got dict"),
        ([3, 4], TypeError, "X[0] must be a list of words, got int"),
        (pd.DataFrame({"a": [["x"]], "b": [["y"]]}), ValueError, "one column of sentences, got 2"),
    ],
)
def test_what_is_no_sentence_is_refused(sentences: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=re.escape(message)):
        as_sentences(sentences)
    with pytest.raises(kind, match=re.escape(message)):
        quick().fit(sentences, [["O"]])


def test_missing_may_be_empty() -> None:
    sentences = as_sentences([["a", None], None, ["b"]], missing="empty")
    assert sentences.words == [["a", ""], [], ["b"]]
    assert as_sentences([None, "a b"], missing="empty").words == [[], ["a", "b"]]
    with pytest.raises(ValueError, match="missing='emtpy'"):
        quick(missing="emtpy").fit(X, Y)


def test_lone_surrogates_are_replaced_and_places_stay() -> None:
    assert as_sentences([["a\ud83d", "b"]]).words == [["a\ufffd", "b"]]
    (places,) = as_sentences(["\ud83d Lyon"]).places or []
    assert places[-1] == (2, 6)


@pytest.mark.parametrize(
    ("tags", "kind", "message"),
    [
        (None, ValueError, "requires y"),
        (TAGS[:2], ValueError, "inconsistent numbers of samples: [3, 2]"),
        ([TAGS[0], ["O", "O"], TAGS[2]], ValueError, "y[1] has 2 tag(s), but X[1] has 1 word(s)"),
        ([TAGS[0], [None], TAGS[2]], ValueError, "y[1][0] is missing (NoneType)"),
        ([TAGS[0], [float("nan")], TAGS[2]], ValueError, "y[1][0] is missing (float)"),
        (
            [TAGS[0], ["I-LOC"], TAGS[2]],
            ValueError,
            "y[1][0] is 'I-LOC', but in IOB2 it can't begin a sentence",
        ),
        (
            [["O", "O"], ["O"], ["O"] * 3],
            ValueError,
            "only one class: 'O'; pass sentences, or spans, with two tags",
        ),
        ([TAGS[0], "O", TAGS[2]], TypeError, "y[1] must be the list of a sentence's tags, got str ('O')"),
        ({("O", "O")}, TypeError, "y must be a list with the tags of each sentence, got set"),
        ("O", TypeError, "y must be a list with the tags of each sentence, got str"),
        ([TAGS[0], [3], TAGS[2]], TypeError, "mixes labels of type int and str"),
        ([TAGS[0], [["O"]], TAGS[2]], TypeError, "y[1][0] must be one tag (str or int), got list"),
        ([[0.5, 1.5], [0.1], [2.2, 0.1, 0.3]], ValueError, "continuous"),
        ([["B-A", "L-A"], ["O"], ["U-A", "O", "O"]], ValueError, "BILOU, whose L- and U- are the E- and S-"),
    ],
)
def test_what_are_no_tags_is_refused(tags: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=re.escape(message)):
        quick().fit(WORDS, tags)


def test_tags_of_another_scheme_are_refused_at_their_place() -> None:
    with pytest.raises(ValueError, match=re.escape("y[0][0] is 'B-PER', but IO has the tags 'O', 'I-TYPE'")):
        quick(scheme="IO").fit(WORDS, TAGS)
    with pytest.raises(ValueError, match=re.escape("y[0][0] is 'PROPN', but IOB2 has the tags")):
        quick(scheme="IOB2").fit(X, PARTS)
    with pytest.raises(ValueError, match=r"scheme='IOB' is not known.*Did you mean 'IOB2'"):
        quick(scheme="IOB").fit(X, Y)


@pytest.mark.parametrize("names", [[0, 1, 2], [-3, 0, 7]])
def test_tags_may_be_integers(names: list[int]) -> None:
    y = [
        [names[["PROPN", "VERB"].index(tag) if tag in ("PROPN", "VERB") else 2] for tag in row]
        for row in PARTS
    ]
    model = quick().fit(X, y)
    assert model.classes_.tolist() == names
    assert model.scheme_ is None
    assert model.predict(X[:1])[0].dtype.kind == "i"
    assert 0 <= model.score(X, y) <= 1


# -- spans of raw texts ------------------------------------------------------------------------------------------------

TEXTS = ["Marie habite à Lyon.", "Rien ici", "vu à  l'hôpital Saint-Louis, hier"]
SPANS = [[(0, 5, "PER"), (15, 19, "LOC")], [], [{"start": 8, "end": 27, "label": "LOC"}]]


def test_spans_become_tags_of_words() -> None:
    tags = as_tags(SPANS, as_sentences(TEXTS), "auto")
    assert list(tags.original) == [
        ["B-PER", "O", "O", "B-LOC", "O"],
        ["O", "O"],
        ["O", "O", "O", "B-LOC", "I-LOC", "O", "O"],
    ]
    assert tags.scheme == "IOB2"
    bioes = as_tags(SPANS, as_sentences(TEXTS), "BIOES")
    assert bioes.original[2] == ["O", "O", "O", "B-LOC", "E-LOC", "O", "O"]
    by_word = as_tags(list(tags.original), as_sentences(TEXTS), "auto")  # tags a word are welcome too
    assert by_word.index.tolist() == tags.index.tolist()


@pytest.mark.parametrize(
    ("spans", "kind", "message"),
    [
        (
            [[(0, 99, "PER")], [], []],
            ValueError,
            "y[0][0] is (0, 99, 'PER'), which reaches out of a text of 20 characters; give the first",
        ),
        ([[(5, 5, "PER")], [], []], ValueError, "y[0][0] is (5, 5, 'PER'), which holds no visible character"),
        ([[(5, 6, "PER")], [], []], ValueError, "y[0][0] is (5, 6, 'PER')"),
        (
            [[(-1, 5, "PER")], [], []],
            ValueError,
            "y[0][0] is (-1, 5, 'PER'), which reaches out of a text of 20",
        ),
        ([[(0, 5, "")], [], []], ValueError, "y[0][0] is (0, 5, ''), which has an empty label"),
        ([[(0, 5)], [], []], TypeError, "y[0][0] must be (start, end, label) or a dict of them"),
        ([[(0, 5.0, "PER")], [], []], TypeError, "y[0][0] must be two integers and a str"),
        ([[{"start": 0, "end": 5}], [], []], ValueError, "y[0][0] lacks 'label'"),
        (
            [[(0, 5, "A"), (3, 12, "B")], [], []],
            ValueError,
            "y[0] has spans that share a word ('A' and 'B' at 'Marie')",
        ),
        ([[(0, 5, "PER")], []], ValueError, "inconsistent numbers of samples: [3, 2]"),
    ],
)
def test_what_are_no_spans_is_refused(spans: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=re.escape(message)):
        quick().fit(TEXTS, spans)


def test_spans_need_a_scheme() -> None:
    with pytest.raises(ValueError, match="spans, which need a scheme"):
        quick(scheme=None).fit(TEXTS, SPANS)


def test_spans_inside_words_are_said_once() -> None:
    with pytest.warns(
        UserWarning, match=re.escape("2 span(s) begin or end inside a word, the first in y[0]")
    ):
        tags = as_tags([[(0, 3, "PER"), (16, 19, "LOC")], [], []], as_sentences(TEXTS), "auto")
    assert tags.original[0] == ["B-PER", "O", "O", "B-LOC", "O"]


def test_blanks_at_the_ends_of_a_span_do_not_matter() -> None:
    tags = as_tags([[(12, 15, "X"), (0, 6, "PER")], [], []], as_sentences(TEXTS), "auto")
    assert tags.original[0] == ["B-PER", "O", "B-X", "O", "O"]


@pytest.mark.filterwarnings("ignore:training collapsed")
def test_inputs_stay_as_they_are() -> None:
    given = copy.deepcopy((X, Y, TEXTS, SPANS))
    quick().fit(X, Y).predict(X)
    quick(max_epochs=4).fit(TEXTS, SPANS).predict_spans(TEXTS)
    assert given == (X, Y, TEXTS, SPANS)
