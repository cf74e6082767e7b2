"""Estimators as another project would write them, without torch: honest ones first, then some with faults."""

import logging
import os
import socket
import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    RegressorMixin,
    TransformerMixin,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted

from sktransformer.baselines import TextJoiner


class Letters(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Frequencies of bytes by their remainder, less the means of `fit`."""

    def __init__(self, size=8):
        self.size = size

    def fit(self, X, y=None):
        counts = self._count(X)
        if not len(counts):
            raise ValueError("X holds no text; at least one is needed.")
        self.mean_ = counts.mean(axis=0)
        return self

    def transform(self, X):
        check_is_fitted(self)
        return self._count(X) - self.mean_

    def _count(self, X):
        rows = [self._row(text) for text in TextJoiner().transform(X)]
        return np.array(rows, dtype=np.float32).reshape(len(rows), self.size)

    def _row(self, text):
        found = np.frombuffer(text.encode("utf-8", "surrogatepass"), dtype=np.uint8) % self.size
        return np.bincount(found, minlength=self.size) / max(1, len(found))

    @property
    def _n_features_out(self):
        return self.size

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        return tags


class LetterClassifier(ClassifierMixin, BaseEstimator):
    """A linear model on `Letters`."""

    def __init__(self, C=100.0):
        self.C = C

    def fit(self, X, y, sample_weight=None):
        X = list(X) if isinstance(X, Iterator) else X
        letters = Letters().fit(X)
        features = letters.transform(X)
        labels = self._labels(y)
        check_consistent_length(features, labels)
        linear = LogisticRegression(C=self.C, max_iter=1000)
        weights = None if sample_weight is None else self._weights(sample_weight, len(labels))
        self.letters_, self.linear_ = letters, linear.fit(features, labels, sample_weight=weights)
        self.classes_ = self.linear_.classes_
        return self

    def predict_proba(self, X):
        check_is_fitted(self)
        texts = self.letters_.transform(X)
        if not len(texts):
            return np.empty((0, len(self.classes_)), dtype=np.float32)
        return self.linear_.predict_proba(texts).astype(np.float32)

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def _labels(self, y):
        if y is None:
            raise ValueError("LetterClassifier requires y, got None.")
        array = y.to_numpy() if hasattr(y, "to_numpy") else np.array(y, dtype=object if _mixed(y) else None)
        array = array.astype(object).ravel()
        absent = np.flatnonzero(pd.isna(array))
        if len(absent):
            raise ValueError(f"y has missing labels (nan) in rows {absent.tolist()}.")
        if len({isinstance(label, str) for label in array}) > 1:
            raise TypeError("y mixes texts with other labels.")
        return np.array(array.tolist())

    def _weights(self, sample_weight, n):
        weights = np.asarray(sample_weight, dtype=float)
        if weights.shape != (n,) or not (weights >= 0).all() or not 0 < weights.sum() < np.inf:
            raise ValueError(f"sample_weight must be {n} numbers that are not negative, one of them above 0.")
        return weights / weights.mean()

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        return tags


class LetterRegressor(RegressorMixin, BaseEstimator):
    """A linear model on `Letters`, of one output or several."""

    def __init__(self, alpha=1e-3):
        self.alpha = alpha

    def fit(self, X, y, sample_weight=None):
        X = list(X) if isinstance(X, Iterator) else X
        letters = Letters().fit(X)
        features = letters.transform(X).astype(float)
        values = self._values(y)
        check_consistent_length(features, values)
        weights = None
        if sample_weight is not None:
            weights = LetterClassifier._weights(self, sample_weight, len(values))
        self.letters_ = letters
        self.linear_ = Ridge(alpha=self.alpha).fit(features, values, sample_weight=weights)
        return self

    def predict(self, X):
        check_is_fitted(self)
        texts = self.letters_.transform(X).astype(float)
        if not len(texts):
            return np.empty((0, *np.shape(self.linear_.intercept_)))
        return self.linear_.predict(texts)

    def _values(self, y):
        if y is None:
            raise ValueError("LetterRegressor requires y, got None.")
        return check_array(y, ensure_2d=False, dtype=float, input_name="y")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.target_tags.multi_output = True
        return tags


def _mixed(y: Any) -> bool:
    return isinstance(y, list) and not all(isinstance(label, type(y[0])) for label in y)


# -- faults that only another process shows ------------------------------------------------------------------------


class Forgetful(Letters):
    def __getstate__(self):
        return {name: value for name, value in super().__getstate__().items() if name != "mean_"}


class ByProcess(Letters):
    def transform(self, X):
        return super().transform(X) + np.float32(os.getpid() % 97)


class Printing(Letters):
    def fit(self, X, y=None):
        sys.stdout.write("fitting\n")
        return super().fit(X)


class PrintingFromOutside(Letters):
    def fit(self, X, y=None):
        os.write(2, b"written past Python\n")
        return super().fit(X)


class Logging(Letters):
    def fit(self, X, y=None):
        logging.getLogger("letters").warning("fitting")
        return super().fit(X)


class Warning_(Letters):
    def transform(self, X):
        warnings.warn("reading", DeprecationWarning, stacklevel=2)
        return super().transform(X)


class ComplainingAtForks(Letters):
    armed = False

    def fit(self, X, y=None):
        if not ComplainingAtForks.armed:
            ComplainingAtForks.armed = True
            os.register_at_fork(before=self._complain)
        return super().fit(X)

    @staticmethod
    def _complain():
        if ComplainingAtForks.armed:  # once: the process goes on to test others
            ComplainingAtForks.armed = False
            os.write(2, b"the process gets forked\n")


class Writing(Letters):
    def fit(self, X, y=None):
        with open("letters.log", "w", encoding="utf-8") as log:
            log.write("fitting")
        return super().fit(X)


class Calling(Letters):
    def fit(self, X, y=None):
        try:
            socket.create_connection(("127.0.0.1", 9), timeout=0.1).close()
        except OSError:
            self.alone_ = True
        return super().fit(X)


class Starting(Letters):
    def fit(self, X, y=None):
        subprocess.run([sys.executable, "-c", ""], check=True)
        return super().fit(X)


class Changing(Letters):
    def fit(self, X, y=None):
        os.environ["LETTERS"] = "on"
        return super().fit(X)
