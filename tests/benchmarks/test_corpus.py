"""The documents of the benchmarks: as long as they say, learnable, and the same ones for a seed."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from benchmarks.corpus import TOPICS, mails


def tokenizer(text: str, add_special_tokens: bool = True) -> dict[str, list[int]]:
    """One token for every five letters of a word, and two special ones."""
    pieces = [0 for word in text.split() for _ in range(0, len(word), 5)]
    return {"input_ids": [1, *pieces, 2] if add_special_tokens else pieces}


def test_lengths_are_token_counts_of_an_inbox():
    corpus = mails(tokenizer, 3000, 0)
    assert corpus.lengths.tolist() == [len(tokenizer(text)["input_ids"]) for text in corpus.texts]
    assert corpus.lengths.max() == 512
    assert corpus.lengths.min() >= 8
    assert np.median(corpus.lengths) == pytest.approx(108, rel=0.05)
    assert corpus.lengths.mean() == pytest.approx(150, rel=0.05)
    assert corpus.n_tokens == corpus.lengths.sum()


def test_a_seed_repeats_and_another_does_not():
    first, again, other = mails(tokenizer, 20, 1), mails(tokenizer, 20, 1), mails(tokenizer, 20, 2)
    assert first.texts == again.texts
    assert first.labels.tolist() == again.labels.tolist()
    assert first.texts != other.texts


def test_labels_can_be_learned_but_not_wholly():
    train, test = mails(tokenizer, 800, 3), mails(tokenizer, 800, 4)
    accuracy = (
        make_pipeline(TfidfVectorizer(), LinearSVC())
        .fit(train.texts, train.labels)
        .score(test.texts, test.labels)
    )
    assert 0.7 < accuracy < 0.97
    assert set(train.labels.tolist()) == set(range(len(TOPICS)))


def test_take_keeps_rows_together():
    corpus = mails(tokenizer, 10, 5)
    part = corpus.take([7, 2])
    assert part.texts == [corpus.texts[7], corpus.texts[2]]
    assert part.lengths.tolist() == [corpus.lengths[7], corpus.lengths[2]]
    assert part.labels.tolist() == [corpus.labels[7], corpus.labels[2]]
