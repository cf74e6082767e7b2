"""Fitting clones on some of the rows, and bringing what they predict onto the same classes."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.parallel import Parallel, delayed

from .._engine.compat import take_rows
from ..baselines import StratifiedFolds

Floats = npt.NDArray[np.floating[Any]]
Fold = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


def fit_clone(
    estimator: Any,
    X: Any,
    y: npt.NDArray[Any],
    weights: npt.NDArray[np.float64] | None,
    rows: npt.NDArray[np.int64] | None = None,
) -> Any:
    """Fit a clone of `estimator` on `rows` (all of them for None), with the weights of these rows."""
    if rows is not None:
        X, y = take_rows(X, rows), y[rows]
        weights = None if weights is None else weights[rows]
    fitted = clone(estimator)
    if weights is None:
        return fitted.fit(X, y)
    # With routing a pipeline would ask each of its steps for a request, which is the business of whoever built it.
    with config_context(enable_metadata_routing=False):
        return fitted.fit(X, y, **{_weight_name(fitted): weights})


def _weight_name(estimator: Any) -> str:
    """Name the argument of `fit` by which weights reach an estimator: a pipeline hands them to its last step."""
    if isinstance(estimator, Pipeline):
        name, step = estimator.steps[-1]
        return f"{name}__{_weight_name(step)}"
    if any(
        p.name == "sample_weight" or p.kind is p.VAR_KEYWORD
        for p in signature(estimator.fit).parameters.values()
    ):
        return "sample_weight"
    raise TypeError(
        f"sample_weight was given, but fit of {type(estimator).__name__} takes none; leave it out, or use class_weight."
    )


def aligned(probability: Any, found: npt.NDArray[Any], classes: npt.NDArray[Any]) -> Floats:
    """Bring columns in the order of `found` into that of `classes`; a class that a member never saw gets 0."""
    given: Floats = np.asarray(probability)
    if len(found) == len(classes) and np.array_equal(found, classes):
        return given
    out = np.zeros((len(given), len(classes)), dtype=given.dtype)
    out[:, np.searchsorted(classes, found)] = given
    return out


def folds(cv: Any, X: Any, y: npt.NDArray[Any]) -> list[Fold]:
    """Split rows by `cv`. An int gives stratified folds of which every training part holds every class.

    A class with one member is then in no test part. scikit-learn's own stratified folds leave such a class out of a
    training part, and what a classifier says of a class that it never saw is no ground for a decision.

    Raises
    ------
    ValueError
        When no class has two members.
    """
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        if np.unique(y, return_counts=True)[1].max() < 2:
            raise ValueError(
                "cv needs a class with two members, but every class has one; pass more documents."
            )
        cv = StratifiedFolds(int(cv))
    return [(np.asarray(a), np.asarray(b)) for a, b in check_cv(cv, y, classifier=True).split(X, y)]


def out_of_fold(
    estimators: Sequence[Any],
    X: Any,
    y: npt.NDArray[Any],
    weights: npt.NDArray[np.float64] | None,
    parts: list[Fold],
    n_jobs: Any,
) -> tuple[list[Floats], npt.NDArray[np.int64]]:
    """Predict each row by clones that were not fitted on it.

    Returns
    -------
    probabilities : list of arrays (m, C)
        One an estimator, columns in the order of ``np.unique(y)``.
    rows : int64 (m,)
        Which rows they are about: those of the test parts, one after the other.
    """
    classes = np.unique(y)
    found = Parallel(n_jobs=n_jobs)(
        delayed(_predict_fold)(estimator, X, y, weights, train, test, classes)
        for estimator in estimators
        for train, test in parts
    )
    by_estimator = [found[i * len(parts) : (i + 1) * len(parts)] for i in range(len(estimators))]
    return [np.concatenate(pieces) for pieces in by_estimator], np.concatenate([test for _, test in parts])


def _predict_fold(
    estimator: Any,
    X: Any,
    y: npt.NDArray[Any],
    weights: npt.NDArray[np.float64] | None,
    train: npt.NDArray[np.int64],
    test: npt.NDArray[np.int64],
    classes: npt.NDArray[Any],
) -> Floats:
    fitted = fit_clone(estimator, X, y, weights, train)
    return aligned(fitted.predict_proba(take_rows(X, test)), fitted.classes_, classes)


def copy_columns(meta: Any, fitted: Any) -> None:
    """Give a meta-estimator `n_features_in_` and `feature_names_in_` of the estimator inside, where it has them."""
    meta.__dict__.pop("n_features_in_", None)
    if hasattr(fitted, "n_features_in_"):
        meta.n_features_in_ = fitted.n_features_in_
    copy_names(meta, fitted)


def copy_names(meta: Any, fitted: Any) -> None:
    """Give a meta-estimator `feature_names_in_` of the estimator inside, where it has them."""
    meta.__dict__.pop("feature_names_in_", None)
    if hasattr(fitted, "feature_names_in_"):
        meta.feature_names_in_ = fitted.feature_names_in_


def tags_of(meta: Any, estimator: Any) -> Any:
    """Return the tags of the estimator inside a meta-estimator.

    Raises
    ------
    TypeError
        When it is no estimator, where scikit-learn would miss an attribute of it.
    """
    _needs_instance(meta, estimator, "estimator")
    return get_tags(estimator)


def needs_probabilities(meta: Any, estimator: Any, name: str = "estimator") -> None:
    """Raise unless an estimator can say how sure it is.

    Raises
    ------
    TypeError
        When it is no estimator, or has no `predict_proba`.
    """
    _needs_instance(meta, estimator, name)
    if not hasattr(estimator, "predict_proba"):
        raise TypeError(
            f"{type(meta).__name__} needs probabilities, but {name}={type(estimator).__name__} has no predict_proba; "
            f"wrap it in sklearn.calibration.CalibratedClassifierCV."
        )


def _needs_instance(meta: Any, estimator: Any, name: str) -> None:
    if isinstance(estimator, type) or not hasattr(estimator, "__sklearn_tags__"):
        raise TypeError(
            f"{type(meta).__name__} needs a scikit-learn estimator, but {name} is {estimator!r:.60}; pass an instance."
        )
