"""A tagger of words as another project would write it, without torch, and taggers with faults."""

from typing import Any

import numpy as np
import pandas as pd
from letter_faults import broken
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted


def listed(X, name="X"):
    """Sentences or tags as lists, with errors that say where something is wrong."""
    if isinstance(X, (str, bytes)):
        raise TypeError(f"{name} must be sentences, got {type(X).__name__}; pass [{name}].")
    if isinstance(X, pd.DataFrame):
        X = X.iloc[:, 0]
    rows = list(X.ravel() if isinstance(X, np.ndarray) else X)
    for i, row in enumerate(rows):
        if row is None:
            raise ValueError(f"{name}[{i}] is missing.")
        for j, word in enumerate(row):
            if word is None or word != word:
                raise ValueError(f"{name}[{i}][{j}] is missing.")
            if not isinstance(word, str):
                raise TypeError(f"{name}[{i}][{j}] must be str, got {type(word).__name__}.")
    return [list(row) for row in rows]


class WordTagger(BaseEstimator):
    """How often a word had each tag in training."""

    def __init__(self, scheme="IOB2"):
        self.scheme = scheme

    def fit(self, X, y):
        X, y = listed(X), listed(y, "y")
        if not X:
            raise ValueError("X holds no sentence.")
        if len(X) != len(y):
            raise ValueError(f"{len(X)} sentences, {len(y)} rows of tags.")
        for i, (words, tags) in enumerate(zip(X, y, strict=True)):
            if len(words) != len(tags):
                raise ValueError(f"y[{i}] has {len(tags)} tags, X[{i}] has {len(words)} words.")
        classes = sorted({tag for tags in y for tag in tags})
        counts: dict[str, Any] = {}
        for words, tags in zip(X, y, strict=True):
            for word, tag in zip(words, tags, strict=True):
                counts.setdefault(word, np.ones(len(classes), dtype=np.float32))[classes.index(tag)] += 5
        self.classes_, self.counts_ = np.array(classes), counts
        return self

    def predict_proba(self, X):
        check_is_fitted(self)
        other = np.ones(len(self.classes_), dtype=np.float32)
        rows = [[self.counts_.get(word, other) for word in words] for words in listed(X)]
        shares = [np.array(row, dtype=np.float32).reshape(len(row), len(other)) for row in rows]
        return [share / share.sum(axis=1, keepdims=True) for share in shares]

    def predict(self, X):
        return [self.classes_[share.argmax(axis=1)] for share in self.predict_proba(X)]

    def predict_spans(self, X):
        raise NotImplementedError

    def score(self, X, y):
        pairs = zip(self.predict(X), y, strict=True)
        return float(np.mean([a == b for found, tags in pairs for a, b in zip(found, tags, strict=True)]))


def cut(method):
    """Leave out what stands beyond the fiftieth word."""

    def shorter(self, X):
        return [row[:50] for row in method(self, X)]

    return shorter


def by_label(self, X):
    """Take the rows of a Series by their labels."""
    if isinstance(X, pd.Series):
        X = [X.loc[i] for i in sorted(X.index)]
    return WordTagger.predict_proba(self, X)


def padding(self, X, y):
    """Fill missing tags up, and leave out those too many."""
    X, y = listed(X), [*listed(y, "y"), ["O"]]
    tags = [(row + ["O"] * len(words))[: len(words)] for words, row in zip(X, y, strict=False)]
    return WordTagger.fit(self, X, tags)


class TaggingClassifier(ClassifierMixin, WordTagger):
    """A classifier, which ragged targets can't be given to."""


FAULTS = {
    "sentences_in_any_container": broken(WordTagger, predict_proba=by_label),
    "words_and_tags_must_match": broken(WordTagger, fit=padding),
    "one_tag_a_word": broken(
        WordTagger, predict=cut(WordTagger.predict), predict_proba=cut(WordTagger.predict_proba)
    ),
    "scores_are_its_own": TaggingClassifier(),
}
