"""Sequences of words: line 14 of the contract, 22, and what 6 and 8 mean for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_classifier
from sklearn.model_selection import KFold, cross_val_score

from ._require import require, require_equal, require_raises
from .registry import check, reads_words
from .subject import Subject

MANY = 700  # words, more than any tiny model reads at once


def containers_of_words(X: list[list[str]]) -> Iterator[tuple[str, Any]]:
    """Yield the sentences in everything that may hold them, with index labels that mean nothing."""
    ragged = np.empty(len(X), dtype=object)
    ragged[:] = X
    yield "a tuple of tuples", tuple(tuple(words) for words in X)
    yield "an object array", ragged
    yield "an (n, 1) object array", ragged[:, None]
    yield "a list of arrays", [np.array(words, dtype=object) for words in X]
    yield "a pandas Series", pd.Series(X, index=range(len(X), 0, -1))
    yield "a one-column frame", pd.DataFrame({"words": X}, index=[0] * len(X))
    yield "a generator", (words for words in X)


@check(6, reads_words)
def sentences_in_any_container(subject: Subject) -> None:
    """Sentences read alike in any container, by position; so do their tags."""
    for name, X in containers_of_words(subject.sample.X_new):
        subject.same(subject.read(subject.fitted, X), f"output for {name}")
    holders = zip(
        containers_of_words(subject.sample.X), containers_of_words(subject.sample.y or []), strict=True
    )
    for (name, X), (_, y) in list(holders)[:5:2]:
        subject.same(subject.read(subject.fit(X, y)), f"output after a fit on {name}")


@check(8, reads_words)
def words_and_tags_must_match(subject: Subject) -> None:
    """A bare string, a missing or strange word, and more or fewer tags than words raise, with their place."""
    X, y = list(subject.sample.X), list(subject.sample.y or [])
    with require_raises(TypeError, "str", "["):
        subject.fit("une phrase")
    with require_raises(TypeError, "str", "["):
        subject.read(subject.fitted, "une phrase")
    for stranger, kind in ((None, ValueError), (float("nan"), ValueError), (3, TypeError), (b"o", TypeError)):
        with require_raises(kind, "X[2]"):
            subject.fit([*X[:2], [*X[2][:-1], stranger], *X[3:]])
        with require_raises(kind, "X[2]"):
            subject.read(subject.fitted, [*X[:2], [*X[2][:-1], stranger], *X[3:]])
    for row in (y[3][:-1], [*y[3], y[3][-1]]):
        with require_raises(ValueError, "3", str(len(row)), str(len(X[3]))):
            subject.fit(X, [*y[:3], row, *y[4:]])
    with require_raises(ValueError, str(len(X)), str(len(X) - 1)):
        subject.fit(X, y[:-1])


@check(14, reads_words)
def one_tag_a_word(subject: Subject) -> None:
    """Each word has a tag and a row of probabilities, in sentences of any length, empty ones and strange words too."""
    X = [[], *subject.sample.X_new, ["chat", "noir"] * (MANY // 2), ["", "\x00", "\t", "a b", "x" * 3000], []]
    tags, shares = subject.fitted.predict(X), subject.fitted.predict_proba(X)
    require_equal([len(row) for row in tags], [len(words) for words in X], "tags of each sentence")
    require_equal([len(row) for row in shares], [len(words) for words in X], "probabilities of each sentence")
    for row in shares:
        require_equal(row.shape[1], len(subject.fitted.classes_), "columns of predict_proba")
        require(np.isfinite(row).all(), "probabilities that are not finite")
        require(bool((np.abs(row.sum(axis=1) - 1) <= 1e-5).all()), "rows of predict_proba do not sum to 1")
    require(
        set(np.concatenate(tags).tolist()) <= set(subject.fitted.classes_.tolist()), "tags outside classes_"
    )
    alone = subject.fitted.predict(X[1:2])[0]
    require_equal(list(alone), list(tags[1]), "tags of a sentence alone")


@check(22, reads_words)
def scores_are_its_own(subject: Subject) -> None:
    """It is no classifier to scikit-learn, whose scorers can't read ragged targets, and its own score is finite."""
    require(not is_classifier(subject.estimator), "is_classifier is true")
    scores = cross_val_score(
        subject.new(), subject.sample.X, subject.sample.y, cv=KFold(2), error_score="raise"
    )
    require(bool(np.isfinite(scores).all()), f"scores that are not finite: {scores}")
    require(((scores >= 0) & (scores <= 1)).all(), f"scores out of range: {scores}")
    predicted = subject.fitted.predict(subject.sample.X)
    require_equal(
        float(subject.fitted.score(subject.sample.X, predicted)) > 0.99
        or not any(tag != "O" for row in predicted for tag in row),
        True,
        "the score of its own predictions is 1",
    )
