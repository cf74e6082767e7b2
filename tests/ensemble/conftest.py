"""Numbers that are cheap to learn, and classifiers that collapse on demand."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from sktransformer.ensemble import SeedEnsemble
from sktransformer.exceptions import NonFiniteLossError


class Moody(ClassifierMixin, BaseEstimator):
    """Logistic regression whose mood depends on the seed: ``seed % every == 0`` makes it fail in the given way.

    It keeps the weights and the number of rows of its fit, and moves its coefficients a little with the seed.
    """

    def __init__(self, random_state: Any = None, every: int = 2, mood: str = "constant") -> None:
        self.random_state = random_state
        self.every = every
        self.mood = mood

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "Moody":
        self.bad_ = self.random_state % self.every == 0
        if self.bad_ and self.mood == "loss":
            raise NonFiniteLossError("the loss became NaN in step 3")
        self.weights_, self.rows_, self.seed_ = sample_weight, np.asarray(X), self.random_state
        self.inner_ = LogisticRegression().fit(X, y, sample_weight)
        self.inner_.coef_ += np.random.RandomState(self.random_state).normal(0, 0.3, self.inner_.coef_.shape)
        self.classes_ = self.inner_.classes_
        return self

    def predict_proba(self, X: Any) -> Any:
        probability = self.inner_.predict_proba(X)
        if self.bad_:
            first = np.eye(len(self.classes_))[0]
            turned = {"constant": first, "nan": np.nan, "wrong": np.roll(probability, 1, axis=1)}
            probability = np.broadcast_to(turned[self.mood], probability.shape).copy()
        return probability

    def predict(self, X: Any) -> Any:
        return self.classes_[np.nan_to_num(self.predict_proba(X)).argmax(axis=1)]


def healthy(**parameters):
    """An ensemble whose members never collapse."""
    return SeedEnsemble(Moody(every=10**12), **{"n_seeds": 3, "random_state": 0, **parameters})


def held_out_rows(ensemble, X):
    """Which rows the first member was not fitted on."""
    seen = {row.tobytes() for row in ensemble.estimators_[0].rows_}
    return np.array([row.tobytes() not in seen for row in X])


@pytest.fixture
def numbers() -> tuple[Any, Any]:
    """200 rows of three classes, of which one is rare."""
    X, y = make_classification(
        200, 6, n_informative=4, n_classes=3, weights=[0.5, 0.35, 0.15], class_sep=1.2, random_state=0
    )
    return X, np.array(["facture", "livraison", "panne"])[y]
