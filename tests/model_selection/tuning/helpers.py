"""What the tests of OptunaSearch share: a counting classifier and small data."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification

X, Y = make_classification(n_samples=60, n_features=5, random_state=0)


class Counting(ClassifierMixin, BaseEstimator):
    """Predicts the class by the sign of the first column plus `shift`; counts its fits, fails where it is told to."""

    fits = 0
    weights = None

    def __init__(self, shift=0.0, fail=False):
        self.shift = shift
        self.fail = fail

    def fit(self, X, y, sample_weight=None):
        type(self).fits += 1
        type(self).weights = sample_weight
        if self.fail:
            raise RuntimeError(f"told to fail at {self.shift}")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return self.classes_[(np.asarray(X)[:, 0] + self.shift > 0).astype(int)]


def shifted(scores):
    """A scorer that reads its score off the parameter `shift`: no data, no noise."""

    def score(estimator, X, y):
        return scores[estimator.shift]

    return score
