"""The estimator under test, its sample, and what checks do to it again and again."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone

from ._require import require_close
from .samples import Sample, is_classifier_by_looks, is_regressor_by_looks, sample_for

_DEFAULT: Any = object()


class Subject:
    """An unfitted estimator with its sample.

    Parameters
    ----------
    estimator : estimator
        Cloned at once and never fitted itself.
    sample : Sample, optional
        What to fit on; by the estimator's kind when not given.
    """

    def __init__(self, estimator: Any, sample: Sample | None = None) -> None:
        self.estimator = clone(estimator)
        self.sample = sample_for(estimator) if sample is None else sample
        # the guarantees on numbers are given in float32; "auto" is bfloat16 where the chip has it
        if "precision" in self.estimator.get_params(deep=False):
            self.estimator.set_params(precision="float32")

    @property
    def classifies(self) -> bool:
        """Whether it is a classifier."""
        return is_classifier_by_looks(self.estimator)

    @property
    def regresses(self) -> bool:
        """Whether it is a regressor."""
        return is_regressor_by_looks(self.estimator)

    @property
    def transforms(self) -> bool:
        """Whether it is a transformer."""
        return hasattr(self.estimator, "transform")

    def new(self, **parameters: Any) -> Any:
        """Return an unfitted clone with other parameters."""
        return clone(self.estimator).set_params(**parameters)

    def fit(self, X: Any = _DEFAULT, y: Any = _DEFAULT, **parameters: Any) -> Any:
        """Return a new estimator with `parameters`, fitted on `X` and `y` (the sample's, when not given)."""
        return self.refit(self.new(**parameters), X, y)

    def refit(self, estimator: Any, X: Any = _DEFAULT, y: Any = _DEFAULT) -> Any:
        """Fit `estimator` and return what its `fit` returns."""
        X = self.sample.X if X is _DEFAULT else X
        y = self.sample.y if y is _DEFAULT else y
        return estimator.fit(X) if y is None else estimator.fit(X, y)

    def read(self, fitted: Any, X: Any = _DEFAULT) -> np.ndarray[Any, Any]:
        """Return the finest output of a fitted estimator, one row a document."""
        return np.asarray(self.sample.read(fitted, self.sample.X_new if X is _DEFAULT else X))

    def same(self, output: Any, what: str, expected: Any = _DEFAULT) -> None:
        """Raise unless an output is the expected one: to the last bit, or within 1e-4 where a GPU sums in any order."""
        expected = self.expected if expected is _DEFAULT else expected
        require_close(output, expected, what, tolerance=1e-4 if self._on_gpu else 0.0)

    @cached_property
    def _on_gpu(self) -> bool:
        device = self.estimator.get_params(deep=False).get("device", "cpu")
        if device == "cpu":
            return False
        import torch

        return bool(torch.cuda.is_available())

    @cached_property
    def fitted(self) -> Any:
        """One fitted estimator for all checks that leave it as it is."""
        return self.fit()

    @cached_property
    def expected(self) -> np.ndarray[Any, Any]:
        """What `fitted` gives for the sample's new documents."""
        return self.read(self.fitted)


class Fingerprint:
    """A scorer that sums up what an estimator gives for the sample's new documents."""

    def __init__(self, subject: Subject) -> None:
        self.read, self.X = subject.sample.read, subject.sample.X_new

    def __call__(self, estimator: Any, X: Any, y: Any = None) -> float:
        """Return the sum, or a number that depends on the texts."""
        output = np.asarray(self.read(estimator, self.X))
        return (
            float(np.abs(output.reshape(len(output), -1)[:, 0]).sum())
            if output.dtype.kind == "f"
            else float(sum(map(len, output.ravel())))
        )
