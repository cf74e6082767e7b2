"""chrF, BLEU and ROUGE: the numbers of the libraries that define them, as fractions."""

from __future__ import annotations

import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics import BLEU, CHRF

from sktransformer import bleu_score, chrf_score, rouge_score
from sktransformer.exceptions import MissingExtraError

TRUE = ["the cat sleeps on the mat today", "it rains in the old town", "where is the station?"]
WRITTEN = ["the cat slept on the mat today", "it rains in the town", "where is the station?"]


def test_the_libraries_numbers():
    assert chrf_score(TRUE, WRITTEN) == pytest.approx(CHRF().corpus_score(WRITTEN, [TRUE]).score / 100)
    plus = CHRF(word_order=2).corpus_score(WRITTEN, [TRUE]).score / 100
    assert chrf_score(TRUE, WRITTEN, word_order=2) == pytest.approx(plus)
    assert chrf_score(TRUE, WRITTEN) != pytest.approx(plus)
    assert bleu_score(TRUE, WRITTEN) == pytest.approx(BLEU().corpus_score(WRITTEN, [TRUE]).score / 100)
    upper = [text.upper() for text in WRITTEN]
    assert bleu_score(TRUE, upper) < 0.1 < bleu_score(TRUE, upper, lowercase=True)


def test_rouge_by_hand():
    # five of six words; four of five pairs of six words; the longest common subsequence is "it rains in the town"
    assert rouge_score(TRUE[1:2], WRITTEN[1:2], kind="rouge1") == pytest.approx(10 / 11)
    assert rouge_score(TRUE[1:2], WRITTEN[1:2], kind="rouge2") == pytest.approx(2 * 3 / (5 + 4))
    assert rouge_score(TRUE[1:2], WRITTEN[1:2]) == pytest.approx(10 / 11)
    assert rouge_score(["cats"], ["cat"]) == 0.0
    assert rouge_score(["cats"], ["cat"], use_stemmer=True) == 1.0


@pytest.mark.parametrize("score", [chrf_score, bleu_score, rouge_score])
def test_the_best_of_several_references_counts(score):
    assert score(TRUE, TRUE) == pytest.approx(1.0)
    several = [["something else entirely", TRUE[0]], [TRUE[1]], [TRUE[2], "x"]]
    assert score(several, TRUE) == pytest.approx(1.0)
    assert score(pd.Series(TRUE, index=[5, 5, 5]), pd.Series(WRITTEN)) == pytest.approx(score(TRUE, WRITTEN))


def test_what_can_not_be_scored():
    with pytest.raises(ValueError, match=r"^y_true must hold texts, got a sequence of numbers\.$"):
        chrf_score([1, 2], ["a", "b"])
    with pytest.raises(ValueError, match=r"in row\(s\) 1; drop or fill missing texts\.$"):
        chrf_score(["a", None], ["a", "b"])
    with pytest.raises(ValueError, match="inconsistent numbers"):
        chrf_score(TRUE, WRITTEN[:2])
    with pytest.raises(ValueError, match="y_true is empty"):
        bleu_score([], [])
    with pytest.raises(TypeError, match="y_pred"):
        chrf_score(TRUE, "one text")
    with pytest.raises(ValueError, match=r"no reference in rows \[1\]"):
        rouge_score([["a"], []], ["a", "b"])
    with pytest.raises(ValueError, match="Did you mean 'rougeL'"):
        rouge_score(TRUE, WRITTEN, kind="rougel")
    with pytest.raises(ValueError, match="tokenize='13'"):
        bleu_score(TRUE, WRITTEN, tokenize="13")


def test_the_extra_is_named_where_it_is_missing(monkeypatch):
    for module in ("sacrebleu.metrics", "rouge_score.rouge_scorer"):
        monkeypatch.setitem(sys.modules, module, None)
    for score in (chrf_score, bleu_score, rouge_score):
        with pytest.raises(MissingExtraError, match=r"sktransformer-text\[generation\]"):
            score(TRUE, WRITTEN)


@pytest.mark.parametrize("score", [chrf_score, bleu_score, rouge_score])
def test_an_array_of_several_references(score):
    several = np.array([["something else entirely", text] for text in TRUE], dtype=object)
    assert score(several, TRUE) == pytest.approx(1.0)
    assert score(iter(TRUE), TRUE) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="y_pred must hold one text a row, got pairs"):
        score(TRUE, [(text, text) for text in TRUE])
    with pytest.raises(ValueError, match="y_true must hold one text a row, got pairs"):
        score(pd.DataFrame({"a": TRUE, "b": TRUE}), TRUE)
    with pytest.raises(TypeError, match="y_true must be an iterable of texts, got NoneType"):
        score(None, TRUE)


@pytest.mark.parametrize("use_stemmer", [True, False])
def test_rouge_l_is_that_of_the_library(use_stemmer):
    library = RougeScorer(["rougeL"], use_stemmer=use_stemmer)
    random = np.random.default_rng(0)
    words = ["cat", "cats", "the", "sleeps", "sleeping", "été", "42"]
    for _ in range(60):
        one, other = (" ".join(random.choice(words, size=random.integers(0, 30))) for _ in range(2))
        expected = library.score(one, other)["rougeL"].fmeasure
        assert rouge_score([one], [other], use_stemmer=use_stemmer) == pytest.approx(expected, abs=1e-12)


def test_long_texts_are_scored_in_little_memory():
    long = "the black cat sleeps " * 10_000
    tracemalloc.start()
    found = rouge_score([long], [long + "today"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == pytest.approx(80_000 / 80_001)
    assert peak < 50_000_000  # the library's table would have 1.6 billion numbers
    with pytest.raises(ValueError, match="some have 40000 and 40001 words"):
        rouge_score([long], [long + "today"], kind="rougeLsum")
    assert rouge_score(["a cat\nsleeps"], ["a cat\nsleeps"], kind="rougeLsum") == pytest.approx(1.0)
