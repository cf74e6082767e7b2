"""A classifier that leaves to a person what it is not sure of."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils.validation import check_is_fitted

from .._engine.validation import check_number
from ._inputs import as_labels, as_rows, as_targets, as_weights
from ._members import Floats, copy_columns, fit_clone, folds, needs_probabilities, out_of_fold, tags_of
from ._tables import TablesTravel
from .risk_coverage import curve

__all__ = ["RejectOption"]

WAYS = ("threshold", "target_coverage", "target_risk")


class RejectOption(TablesTravel, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Answer a document only when the highest class probability reaches a threshold; leave the others to a person.

    Exactly one of `threshold`, `target_coverage` and `target_risk` is given. For a target the threshold is chosen on
    documents that the classifier was not fitted on, by folds [1]_.

    Parameters
    ----------
    estimator : classifier
        With `predict_proba`. In scikit-learn's `FrozenEstimator` it is taken as it is, and `fit` only chooses the
        threshold, on documents that it was not fitted on.
    threshold : float, default=None
        Least probability at which a document is answered, from 0 to 1.
    target_coverage : float, default=None
        Share of the documents to be answered, above 0; the threshold is the highest at which at least that many are.
    target_risk : float, default=None
        Highest share of errors among the answered documents; of the thresholds that keep to it, the one that answers
        most is taken.
    reject_label : object, default=None
        What `predict` returns for a document that is left to a person; not one of the classes.
    cv : int, splitter or iterable, default=5
        Folds for a target. An int gives stratified ones of which every training part holds every class.
    n_jobs : int or None, default=None
        Folds at the same time, as in joblib.

    Attributes
    ----------
    estimator_ : classifier
        Fitted on everything.
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted; the reject label is not among them.
    threshold_ : float
        Least probability at which a document is answered.
    coverage_ : float
        Share of the held-out documents that is answered at the threshold; with a target only.
    risk_ : float
        Share of errors among these; with a target only.
    risk_coverage_ : DataFrame
        `coverage`, `risk` and `threshold` of every point there was to choose from; with a target only.
    n_features_in_ : int
        Number of columns seen in `fit`, where the classifier knows it.
    feature_names_in_ : ndarray of str
        Names of these columns, where the classifier knows them.

    See Also
    --------
    RiskCoverageDisplay : Draws what there is to choose from.

    Notes
    -----
    `predict` returns objects when the reject label is of another kind than the labels, as None is, and scikit-learn's
    metrics refuse them. With a text for texts, or a number for numbers, they count a rejected document as an error.
    `score` looks at the answered ones alone, so that it rises with the threshold and is no measure to choose a
    threshold by.

    A target is met on the held-out documents. It is an estimate for new ones, not a promise: with few documents leave a
    margin. A calibrated classifier (``CalibratedClassifierCV(method="temperature")``) makes the threshold readable as a
    probability; the order of the documents, and so the curve, changes little.

    References
    ----------
    .. [1] Y. Geifman and R. El-Yaniv, "Selective Classification for Deep Neural Networks", NIPS 2017,
       https://arxiv.org/abs/1705.08500

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sktransformer.ensemble import RejectOption
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> names = y.map({0: "setosa", 1: "versicolor", 2: "virginica"})
    >>> router = RejectOption(LogisticRegression(max_iter=500), target_risk=0.01, reject_label="a person")
    >>> router = router.fit(X, names)
    >>> bool(router.coverage_ > 0.9), bool(router.risk_ <= 0.01)
    (True, True)
    >>> router.predict(X.iloc[[0, 77]]).tolist()
    ['setosa', 'a person']
    """

    _frames = ("risk_coverage_",)

    def __init__(
        self,
        estimator: Any,
        *,
        threshold: float | None = None,
        target_coverage: float | None = None,
        target_risk: float | None = None,
        reject_label: Any = None,
        cv: Any = 5,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.threshold = threshold
        self.target_coverage = target_coverage
        self.target_risk = target_risk
        self.reject_label = reject_label
        self.cv = cv
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the classifier on everything, and choose the threshold on held-out folds.

        Parameters
        ----------
        X : list, array, sparse matrix, Series or frame of n rows
            What the classifier takes.
        y : array-like of shape (n,)
            Labels.
        sample_weight : array-like of shape (n,), optional
            Weights that the classifier's `fit` is given; coverage and risk count documents.

        Returns
        -------
        RejectOption
            The classifier itself.

        Raises
        ------
        TypeError
            When the classifier has no `predict_proba`, or `sample_weight` is given and it takes none.
        ValueError
            When not exactly one of `threshold`, `target_coverage` and `target_risk` is given, it is out of range,
            `reject_label` is a class, or no threshold keeps to `target_risk`.
        """
        self._validate()
        X = as_rows(X)
        classes, index, values = as_labels(X, y)
        if self.reject_label is not None and self.reject_label in classes.tolist():
            raise ValueError(f"reject_label={self.reject_label!r} is one of the classes; choose another.")
        weights = as_weights(sample_weight, len(values))
        # First on everything: what is wrong with a document is then told by its place in X, not in a fold.
        fitted = fit_clone(self.estimator, X, values, weights)
        points, place = None, 0
        if self.threshold is None:
            (probability,), rows = out_of_fold(
                [self.estimator], X, values, weights, folds(self.cv, X, values), self.n_jobs
            )
            wrong = probability.argmax(axis=1) != index[rows]
            points = pd.DataFrame(
                dict(
                    zip(("coverage", "risk", "threshold"), curve(probability.max(axis=1), wrong), strict=True)
                )
            )
            place = self._choose(points)
        for name in ("coverage_", "risk_", "risk_coverage_"):
            self.__dict__.pop(name, None)
        if points is None:
            self.threshold_ = float(self.threshold)  # type: ignore[arg-type]  # one of the three is given
        else:
            self.coverage_, self.risk_, self.threshold_ = (float(value) for value in points.iloc[place])
            self.risk_coverage_ = points
        self.estimator_, self.classes_ = fitted, np.asarray(fitted.classes_)
        copy_columns(self, fitted)
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the most probable label of each document, or the reject label.

        Parameters
        ----------
        X : list, array, sparse matrix, Series or frame of n rows
            As in `fit`.

        Returns
        -------
        ndarray of shape (n,)
            Labels out of `classes_` and the reject label.
        """
        probability = self.predict_proba(X)
        predicted = self.classes_[probability.argmax(axis=1)].astype(self._dtype())
        predicted[probability.max(axis=1) < self.threshold_] = self.reject_label
        labels: npt.NDArray[Any] = predicted
        return labels

    def predict_proba(self, X: Any) -> Floats:
        """Return the classifier's probabilities, those of rejected documents too.

        Parameters
        ----------
        X : list, array, sparse matrix, Series or frame of n rows
            As in `fit`.

        Returns
        -------
        ndarray of shape (n, n_classes)
            Columns in the order of `classes_`.
        """
        check_is_fitted(self)
        probability: Floats = np.asarray(self.estimator_.predict_proba(as_rows(X)))
        return probability

    def accepts(self, X: Any) -> npt.NDArray[np.bool_]:
        """Say which documents are answered.

        Parameters
        ----------
        X : list, array, sparse matrix, Series or frame of n rows
            As in `fit`.

        Returns
        -------
        ndarray of shape (n,), bool
            False where a document is left to a person.
        """
        accepted: npt.NDArray[np.bool_] = self.predict_proba(X).max(axis=1) >= self.threshold_
        return accepted

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on the answered documents: one minus the risk.

        Parameters
        ----------
        X : list, array, sparse matrix, Series or frame of n rows
            As in `fit`.
        y : array-like of shape (n,)
            Their labels.
        sample_weight : array-like of shape (n,), optional
            Weights of the documents.

        Returns
        -------
        float
            From 0 to 1; NaN when no document is answered.
        """
        X = as_rows(X)
        labels = as_targets(X, y)
        probability = self.predict_proba(X)
        weights = as_weights(sample_weight, len(labels))
        weights = np.ones(len(labels)) if weights is None else weights
        answered = np.where(probability.max(axis=1) >= self.threshold_, weights, 0.0)
        if not answered.any():
            return float("nan")
        return float(np.average(self.classes_[probability.argmax(axis=1)] == labels, weights=answered))

    # -- helpers ----------------------------------------------------------------------------------------------------

    def _validate(self) -> None:
        needs_probabilities(self, self.estimator)
        given = [name for name in WAYS if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(
                f"RejectOption needs exactly one of {', '.join(WAYS)}, got {' and '.join(given) if given else 'none'}."
            )
        check_number(given[0], getattr(self, given[0]), low=0, high=1, open_low=given[0] == "target_coverage")

    def _choose(self, points: pd.DataFrame) -> int:
        """Return the number of the point that keeps to the target."""
        if self.target_coverage is not None:
            # rounding in a share of documents must not ask for one more
            return int(np.argmax(points["coverage"].to_numpy() >= self.target_coverage - 1e-12))
        kept = np.flatnonzero(points["risk"].to_numpy() <= self.target_risk)
        if not len(kept):
            least = points.iloc[int(points["risk"].to_numpy().argmin())]
            raise ValueError(
                f"target_risk={self.target_risk} is out of reach: on the held-out documents the lowest risk is "
                f"{least['risk']:.3g}, at a coverage of {least['coverage']:.3g}; raise target_risk, or improve the "
                f"classifier."
            )
        return int(kept[-1])

    def _dtype(self) -> Any:
        """The dtype of predictions: that of the labels where the reject label is of their kind, else object."""
        kinds: dict[str, Any] = {
            "U": str,
            "i": (int, np.integer),
            "u": (int, np.integer),
            "f": (float, int, np.floating, np.integer),
        }
        kind = kinds.get(self.classes_.dtype.kind)
        if kind is None or isinstance(self.reject_label, bool) or not isinstance(self.reject_label, kind):
            return object
        return np.concatenate([self.classes_[:0], np.asarray([self.reject_label])]).dtype

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = tags_of(self, self.estimator)
        tags.input_tags = inner.input_tags
        tags.classifier_tags.poor_score = getattr(inner.classifier_tags, "poor_score", False)
        return tags
