"""Schemes of tags, the words of raw texts, and sequences that no decoding may give."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sktransformer.tasks._tagging.chains import WORDS, best_tags, chain_of, tag_probabilities
from sktransformer.tasks._tagging.schemes import (
    PREFIXES,
    SCHEMES,
    Span,
    convert,
    detect_scheme,
    first_fault,
    legal_transitions,
    spans_of,
    split_tag,
    tags_of,
)
from sktransformer.tasks.tagging import word_places


def tags_in(scheme: str, types: tuple[str, ...] = ("PER", "LOC")) -> list[str]:
    return ["O", *(f"{prefix}-{kind}" for prefix in PREFIXES[scheme] for kind in types)]


@st.composite
def sentences_of_spans(draw: st.DrawFn) -> tuple[list[Span], int]:
    """Draw entities that do not overlap, some of them touching, and a number of words."""
    spans, at = [], 0
    for gap, length, label in draw(
        st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4), st.sampled_from(["PER", "a-b", "LOC"])))
    ):
        spans.append(Span(at + gap, at + gap + length, label))
        at += gap + length
    return spans, at + draw(st.integers(0, 2))


@pytest.mark.parametrize(
    ("tag", "parts"),
    [
        ("O", ("O", "")),
        ("B-PER", ("B", "PER")),
        ("I-creative-work", ("I", "creative-work")),
        ("S-x", ("S", "x")),
        ("B-", None),
        ("PER", None),
        ("o", None),
        ("L-PER", None),
        ("X-PER", None),
        (3, None),
        ("", None),
    ],
)
def test_parts_of_a_tag(tag: object, parts: tuple[str, str] | None) -> None:
    assert split_tag(tag) == parts


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        (["O", "I-PER"], "IO"),
        (["O", "B-PER", "I-PER"], "IOB2"),
        (["B-PER"], "IOB2"),
        (["O", "B-PER", "S-PER"], "BIOES"),
        (["O", "I-PER", "E-PER"], "BIOES"),
        (["NOUN", "VERB"], None),
        (["O", "PER"], None),
        (["O"], None),
        ([0, 1], None),
    ],
)
def test_the_scheme_is_read_off_the_tags(tags: list[object], scheme: str | None) -> None:
    assert detect_scheme(tags) == scheme


@given(sentences_of_spans())
def test_spans_to_tags_and_back(drawn: tuple[list[Span], int]) -> None:
    spans, n_words = drawn
    for scheme in ("IOB2", "BIOES"):
        tags = tags_of(spans, n_words, scheme)
        assert first_fault(tags, scheme) is None
        assert spans_of(tags, scheme) == spans
        for other in ("IOB2", "BIOES"):
            assert convert(tags, scheme, other) == tags_of(spans, n_words, other)
    joined = spans_of(tags_of(spans, n_words, "IO"), "IO")
    assert {i for start, end, _ in joined for i in range(start, end)} == {
        i for start, end, _ in spans for i in range(start, end)
    }


def test_io_joins_what_touches() -> None:
    assert convert(["B-A", "B-A", "B-B"], "IOB2", "IO") == ["I-A", "I-A", "I-B"]
    assert spans_of(["I-A", "I-A", "I-B"], "IO") == [(0, 2, "A"), (2, 3, "B")]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_legal_transitions_are_those_of_legal_sentences(scheme: str) -> None:
    """A sentence of three is free of faults just when its start, both its steps and its end are legal."""
    tags = tags_in(scheme)
    starts, pairs, ends = legal_transitions(tags, scheme)
    legal = 0
    for a, b, c in product(range(len(tags)), repeat=3):
        allowed = starts[a] and pairs[a, b] and pairs[b, c] and ends[c]
        assert allowed == (first_fault([tags[a], tags[b], tags[c]], scheme) is None)
        legal += allowed
    assert legal == {"IO": 27, "IOB2": 41, "BIOES": 41}[scheme]  # the last two spell the same entities


@pytest.mark.parametrize(
    ("tags", "scheme", "place", "why"),
    [
        (["O", "I-PER"], "IOB2", 1, "follow 'O'"),
        (["I-PER"], "IOB2", 0, "begin a sentence"),
        (["B-PER", "I-LOC"], "IOB2", 1, "follow 'B-PER'"),
        (["B-PER", "O"], "BIOES", 1, "follow 'B-PER'"),
        (["O", "B-PER"], "BIOES", 1, "end a sentence"),
        (["S-PER", "E-PER"], "BIOES", 1, "follow 'S-PER'"),
        (["O", "S-PER"], "IOB2", 1, "has the tags"),
        (["B-PER"], "IO", 0, "has the tags"),
        (["O", "NOUN"], "IOB2", 1, "has the tags"),
    ],
)
def test_a_fault_is_found_where_it_is(tags: list[str], scheme: str, place: int, why: str) -> None:
    found = first_fault(tags, scheme)
    assert found is not None
    assert found[0] == place
    assert why in found[1]


@pytest.mark.parametrize(
    ("tags", "scheme", "spans"),
    [
        (["I-A", "I-A", "I-B"], "IOB2", [(0, 2, "A"), (2, 3, "B")]),
        (["O", "I-A", "B-A"], "IOB2", [(1, 2, "A"), (2, 3, "A")]),
        (["E-A", "E-A", "I-A", "S-A"], "BIOES", [(0, 1, "A"), (1, 2, "A"), (2, 3, "A"), (3, 4, "A")]),
        (["B-A", "E-B"], "BIOES", [(0, 1, "A"), (1, 2, "B")]),
        ([], "IOB2", []),
    ],
)
def test_tags_that_break_the_scheme_are_read_as_conll_does(
    tags: list[str], scheme: str, spans: list[tuple[int, int, str]]
) -> None:
    assert spans_of(tags, scheme) == spans


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("decoding", ["bio", "crf"])
def test_no_illegal_sequence_in_ten_thousand(scheme: str, decoding: str) -> None:
    tags, random = tags_in(scheme), np.random.default_rng(0)
    chain = chain_of(tags, scheme)
    if decoding == "crf":
        for parameter in chain.parameters():
            parameter.data += 3
            parameter.data *= -2  # scores that draw towards what is barred
    lengths = random.integers(1, 9, 10_000)
    scores = [10 * random.standard_normal((n, len(tags)), dtype=np.float32) for n in lengths]
    found = best_tags(scores, chain.double())
    faults = [i for i, row in enumerate(found) if first_fault([tags[c] for c in row], scheme)]
    assert faults == []
    illegal = [first_fault([tags[c] for c in row.argmax(1)], scheme) is not None for row in scores]
    assert sum(illegal) > 1000 or scheme == "IO"  # the best of each word by itself would not do


def test_bio_is_the_best_legal_sequence() -> None:
    tags, random = tags_in("BIOES", ("A",)), np.random.default_rng(1)
    scores = [random.standard_normal((4, len(tags)), dtype=np.float32) for _ in range(20)]
    for row, found in zip(scores, best_tags(scores, chain_of(tags, "BIOES").double()), strict=True):
        legal = [
            path
            for path in product(range(len(tags)), repeat=4)
            if first_fault([tags[c] for c in path], "BIOES") is None
        ]
        assert tuple(found) == max(legal, key=lambda path: row[range(4), path].sum())


def test_sentences_of_all_lengths_go_through_the_chain_in_batches() -> None:
    random = np.random.default_rng(2)
    lengths = [3, 0, WORDS + 7, 1, 900, 900, 0]
    scores = [random.standard_normal((n, 3), dtype=np.float32) for n in lengths]
    chain = chain_of(["B-A", "I-A", "O"], "IOB2").double()
    together, shares = best_tags(scores, chain), tag_probabilities(scores, chain)
    for row, path, share in zip(scores, together, shares, strict=True):
        assert path.tolist() == best_tags([row], chain)[0].tolist()
        assert share.shape == row.shape
        assert share.dtype == np.float32
        np.testing.assert_allclose(share.sum(axis=1), 1, atol=1e-6)
        np.testing.assert_allclose(share, tag_probabilities([row], chain)[0], atol=1e-7)


# -- words of raw texts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (" Facture de 5.975,74 euros,  pour\n", ["Facture", "de", "5.975,74", "euros", ",", "pour"]),
        ("à l'hôpital, qu'il d’Artagnan", ["à", "l'", "hôpital", ",", "qu'", "il", "d’", "Artagnan"]),
        ("O'Neil-Martin aujourd'hui c'est-à-dire", ["O'Neil-Martin", "aujourd'hui", "c'", "est-à-dire"]),
        ("(Lyon/Paris)...", ["(", "Lyon", "/", "Paris", ")", "..."]),
        ("eva@example.org 12:30 12€ 3,4.", ["eva@example.org", "12:30", "12", "€", "3,4", "."]),
        ("a,b e\u0301te\u0301", ["a", ",", "b", "e\u0301te\u0301"]),
        ("", []),
        (" \t\r\n\x00\u3000", []),
        ("l'", ["l", "'"]),
    ],
)
def test_words_of_a_text(text: str, words: list[str]) -> None:
    assert [text[start:end] for start, end in word_places(text)] == words


@given(st.text())
def test_words_lie_in_order_hold_no_blank_and_leave_nothing_visible_out(text: str) -> None:
    places = word_places(text)
    covered = set()
    before = 0
    for start, end in places:
        assert before <= start < end <= len(text)
        before = end
        assert not any(character.isspace() for character in text[start:end])
        covered |= set(range(start, end))
        for edge in (start, end):
            assert not (0 < edge < len(text) and text[edge - 1 : edge + 1].isalnum())
    assert not any(text[i].isalnum() for i in set(range(len(text))) - covered)
