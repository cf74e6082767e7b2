"""How often several classifiers are wrong about the same documents."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.model_selection import cross_val_predict

from ._inputs import as_rows, as_targets

__all__ = ["error_correlation", "error_correlation_from_predictions"]

COLUMNS = [
    "first",
    "second",
    "error_first",
    "error_second",
    "phi",
    "yule_q",
    "disagreement",
    "double_fault",
]


def error_correlation(
    estimators: Any, X: Any, y: Any, *, cv: Any = None, n_jobs: int | None = None
) -> pd.DataFrame:
    """Say for each pair of classifiers how correlated their errors are.

    A vote pays where its members are wrong about different documents. Two models with a `phi` of 0 make their errors
    independently of each other; at 1 the second adds nothing.

    Parameters
    ----------
    estimators : dict, list of (str, estimator), list of estimators, or a fitted ensemble
        Fitted classifiers, or ones to fit with `cv`. Of an ensemble (a vote, a :class:`SeedEnsemble`) its members are
        taken.
    X : list, array, sparse matrix, Series or frame of n rows
        Documents that the classifiers were not fitted on, unless `cv` is given.
    y : array-like of shape (n,)
        Their labels.
    cv : int, splitter or iterable, default=None
        Fit clones by these folds and look at the errors on what they did not see; None takes the classifiers as they
        are.
    n_jobs : int or None, default=None
        Folds at the same time, as in joblib.

    Returns
    -------
    DataFrame
        One row a pair, see :func:`error_correlation_from_predictions`.

    Raises
    ------
    TypeError
        When `estimators` is nothing of the kind.
    ValueError
        For fewer than two classifiers, or unequal lengths.

    See Also
    --------
    error_correlation_from_predictions : The same from predictions, for instance those of a cross-validation.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sktransformer.ensemble import error_correlation
    >>> pair = {"bayes": GaussianNB(), "logistic": LogisticRegression(max_iter=500)}
    >>> table = error_correlation(pair, *load_iris(return_X_y=True), cv=5)
    >>> table[["error_first", "error_second", "phi"]].round(2).values.tolist()
    [[0.05, 0.03, 0.55]]
    """
    X = as_rows(X)
    y = as_targets(X, y)
    predictions = {}
    for name, estimator, classes in _named(estimators):
        if cv is None:
            predicted = np.asarray(estimator.predict(X))
        else:
            predicted = np.asarray(cross_val_predict(estimator, X, y, cv=cv, n_jobs=n_jobs))
            classes = None
        predictions[name] = predicted if classes is None else classes[predicted.astype(np.intp)]
    return error_correlation_from_predictions(y, predictions)


def error_correlation_from_predictions(y_true: Any, predictions: Mapping[str, Any]) -> pd.DataFrame:
    r"""Say for each pair of predictions how correlated their errors are.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    predictions : dict of array-like of shape (n,)
        Predicted labels by the name of who predicted.

    Returns
    -------
    DataFrame
        One row a pair, with the names `first` and `second`, and

        - `error_first`, `error_second`: share of the documents that each has wrong;
        - `phi`: correlation coefficient of the two errors, from -1 to 1, 0 when they are uncorrelated;
        - `yule_q`: Yule's Q, from -1 to 1, 0 when they are independent;
        - `disagreement`: share that exactly one of them has wrong;
        - `double_fault`: share that both have wrong, which no vote of the two can mend.

        `phi` and `yule_q` are NaN where they are not defined, for instance when one of the two makes no error.

    Raises
    ------
    TypeError
        When predictions are texts and labels are not, or the other way round.
    ValueError
        For fewer than two predictions, unequal lengths, or no documents.

    See Also
    --------
    error_correlation : The same from estimators.

    Notes
    -----
    With :math:`N^{ab}` the number of documents that the first has right (:math:`a = 1`) or wrong (0), and the second
    likewise (:math:`b`), in Kuncheva and Whitaker's notation [1]_, section 2:

    .. math::

        Q = \frac{N^{11} N^{00} - N^{01} N^{10}}{N^{11} N^{00} + N^{01} N^{10}}, \quad
        \phi = \frac{N^{11} N^{00} - N^{01} N^{10}}
        {\sqrt{(N^{11} + N^{10}) (N^{01} + N^{00}) (N^{11} + N^{01}) (N^{10} + N^{00})}}

    They warn that no such number predicts by itself what a vote will gain: two bad models disagree a lot.

    References
    ----------
    .. [1] L. Kuncheva and C. Whitaker, "Measures of Diversity in Classifier Ensembles and Their Relationship with the
       Ensemble Accuracy", Machine Learning 51, 2003, doi:10.1023/A:1022859003006

    Examples
    --------
    >>> from sktransformer.ensemble import error_correlation_from_predictions
    >>> said = {"a": [1, 1, 0, 0, 0, 0, 0, 0], "b": [1, 0, 1, 0, 0, 0, 0, 0]}
    >>> error_correlation_from_predictions([0] * 8, said)[["phi", "disagreement", "double_fault"]].round(3)
         phi  disagreement  double_fault
    0  0.333          0.25         0.125
    """
    if not isinstance(predictions, Mapping) or len(predictions) < 2:
        raise ValueError("predictions must be a dict of two predictions or more, by name.")
    labels = np.asarray(y_true)
    if not labels.size:
        raise ValueError("y_true is empty; at least one document is needed.")
    wrong = {}
    for name, predicted in predictions.items():
        predicted = np.asarray(predicted)
        if predicted.shape != labels.shape:
            raise ValueError(f"predictions[{name!r}] has shape {predicted.shape}, y_true has {labels.shape}.")
        _check_same_kind(name, predicted, labels)
        wrong[name] = predicted != labels
    rows = [(a, b, *_pair(wrong[a], wrong[b])) for a, b in combinations(wrong, 2)]
    return pd.DataFrame(rows, columns=COLUMNS)


def _check_same_kind(name: Any, predicted: npt.NDArray[Any], labels: npt.NDArray[Any]) -> None:
    """Raise TypeError where no prediction can be right: NumPy says that a text and a number differ, and goes on."""
    kinds = [{isinstance(value, str) for value in values.ravel().tolist()} for values in (predicted, labels)]
    if not kinds[0] & kinds[1]:
        said, right = ("texts" if True in kind else "no texts" for kind in kinds)
        raise TypeError(
            f"predictions[{name!r}] are {said}, and the labels are {right}; make them of one kind."
        )


def _pair(first: npt.NDArray[np.bool_], second: npt.NDArray[np.bool_]) -> tuple[float, ...]:
    """Return both error rates, phi, Q, disagreement and double fault."""
    n = len(first)
    both, neither = float((first & second).sum()), float((~first & ~second).sum())
    one, other = float((first & ~second).sum()), float((~first & second).sum())
    difference = neither * both - one * other
    margins = (neither + other) * (one + both) * (neither + one) * (other + both)
    total = neither * both + one * other
    phi = difference / np.sqrt(margins) if margins else np.nan
    return (
        first.mean(),
        second.mean(),
        phi,
        difference / total if total else np.nan,
        (one + other) / n,
        both / n,
    )


def _named(estimators: Any) -> list[tuple[str, Any, Any]]:
    """Return name, estimator, and the classes its predictions are positions in (None when they are labels)."""
    if hasattr(estimators, "estimators_"):
        ensemble = estimators
        if hasattr(ensemble, "named_estimators_"):
            pairs = [(name, one) for name, one in ensemble.named_estimators_.items() if one != "drop"]
        else:
            pairs = [(str(i), member) for i, member in enumerate(ensemble.estimators_)]
        # scikit-learn's votes, stacks, forests and bags fit their members on positions
        labels = all(_knows_labels(member, ensemble) for _, member in pairs)
        classes = None if labels else ensemble.classes_
        return _two([(name, member, classes) for name, member in pairs])
    if isinstance(estimators, Mapping):
        return _two([(str(name), one, None) for name, one in estimators.items()])
    if isinstance(estimators, (list, tuple)):
        pairs = [
            e if isinstance(e, tuple) else (f"{i}: {type(e).__name__}", e) for i, e in enumerate(estimators)
        ]
        return _two([(str(name), one, None) for name, one in pairs])
    raise TypeError(
        f"estimators must be a dict, a list of (name, estimator) or a fitted ensemble, got {type(estimators).__name__}."
    )


def _knows_labels(member: Any, ensemble: Any) -> bool:
    """Whether a member speaks of the ensemble's labels, and not of their positions."""
    if not hasattr(ensemble, "classes_"):
        return True
    if not hasattr(member, "classes_"):  # a vote's; a bag of such members could not vote
        return not hasattr(ensemble, "named_estimators_")
    return set(np.asarray(member.classes_).tolist()) <= set(np.asarray(ensemble.classes_).tolist())


def _two(members: list[tuple[str, Any, Any]]) -> list[tuple[str, Any, Any]]:
    if len(members) < 2:
        raise ValueError(f"estimators must hold two classifiers or more, got {len(members)}.")
    return members
