"""What holds for regressors alone: parts of lines 3, 9 and 21 of the contract."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, RegressorMixin, clone, is_regressor
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import BaggingRegressor, StackingRegressor, VotingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, cross_val_predict, cross_validate
from sklearn.utils import get_tags

from ._require import require, require_close, require_different, require_equal, require_raises
from .registry import check, regresses
from .subject import Subject

FOLDS = KFold(2)


def _train(subject: Subject) -> tuple[list[Any], np.ndarray[Any, Any]]:
    return list(subject.sample.X), np.array(subject.sample.y, dtype=float)


@check(3, regresses)
def regressor_mixin_stands_left(subject: Subject) -> None:
    """`RegressorMixin` stands left of `BaseEstimator`: tags say regressor, and `score` is R²."""
    order = type(subject.estimator).__mro__
    require(
        RegressorMixin in order, f"{type(subject.estimator).__name__} does not inherit from RegressorMixin"
    )
    require(
        order.index(RegressorMixin) < order.index(BaseEstimator),
        "RegressorMixin must stand left of BaseEstimator",
    )
    require(is_regressor(subject.estimator), "is_regressor is false")
    X, y = _train(subject)
    expected = r2_score(y, subject.fitted.predict(X))
    require_equal(float(subject.fitted.score(X, y)), float(expected), "score against R²")


def _types_of_numbers(y: np.ndarray[Any, Any]) -> Iterator[tuple[str, Any]]:
    index = range(len(y), 0, -1)
    yield "a tuple", tuple(y.tolist())
    yield "an array", y
    yield "an object array", y.astype(object)
    yield "a Series", pd.Series(y, index=index)
    yield "a Series of Float64", pd.Series(y, index=index, dtype="Float64")


@check(9, regresses)
def numbers_of_any_type(subject: Subject) -> None:
    """Targets may come in any container, by position; whole numbers are the same as int and as float."""
    _, y = _train(subject)
    for name, given in _types_of_numbers(y):
        subject.same(subject.read(subject.fit(y=given)), f"predictions for targets in {name}")
    whole = np.round(y)
    as_floats = subject.read(subject.fit(y=whole))
    subject.same(subject.read(subject.fit(y=whole.astype(int))), "predictions for int targets", as_floats)
    require(np.asarray(as_floats).dtype.kind == "f", "predictions are no floats")


@check(9, regresses)
def bad_numbers_raise(subject: Subject) -> None:
    """Missing and infinite targets raise ValueError, texts and more than two dimensions raise too."""
    X, y = _train(subject)
    for bad in (np.nan, np.inf):
        given = y.copy()
        given[3] = bad
        with require_raises(ValueError, "nan" if np.isnan(bad) else "inf"):
            subject.fit(y=given)
    for wrong in ([*y[:-1], None], ["bon"] * len(y), np.ones((len(y), 2, 2))):
        with require_raises((TypeError, ValueError)):
            subject.fit(y=wrong)
    with require_raises(ValueError, "requires y"):
        subject.new().fit(X, None)


def _several(subject: Subject) -> bool:
    return bool(get_tags(subject.estimator).target_tags.multi_output)


@check(9, regresses, _several)
def several_outputs(subject: Subject) -> None:
    """Two columns of targets give two columns of predictions, each near its own column's mean; a frame is the same."""
    _, y = _train(subject)
    both = np.column_stack([y, 100.0 - y])
    fitted = subject.fit(y=both)
    predicted = subject.read(fitted)
    require_equal(predicted.shape, (len(subject.sample.X_new), 2), "shape of two outputs")
    subject.same(
        subject.read(subject.fit(y=pd.DataFrame(both, columns=["a", "b"]))), "output of a frame", predicted
    )
    gap = np.abs(predicted.mean(axis=0) - both.mean(axis=0))
    require((gap < 3 * both.std(axis=0)).all(), f"the outputs are {gap} away from the means of their columns")
    require_equal(np.asarray(fitted.predict([])).shape, (0, 2), "shape of an empty prediction")


@check(21, regresses)
def cross_validation_of_numbers(subject: Subject) -> None:
    """`cross_val_predict` and `cross_validate` give what fits on the folds give by hand."""
    X, y = _train(subject)
    crossed = cross_val_predict(subject.new(), X, y, cv=FOLDS)
    scores = cross_validate(
        subject.new(), X, y, cv=FOLDS, scoring=("r2", "neg_mean_absolute_error"), error_score="raise"
    )
    for i, (training, test) in enumerate(FOLDS.split(X)):
        fold = subject.new().fit([X[i] for i in training], y[training])
        predicted = fold.predict([X[i] for i in test])
        require_close(crossed[test], predicted, f"predictions of fold {i}", tolerance=1e-6)
        r2 = float(r2_score(y[test], predicted))
        require(abs(float(scores["test_r2"][i]) - r2) < 1e-6, f"R² of fold {i} is not {r2:g}")


@check(21, regresses)
def regressors_in_meta_estimators(subject: Subject) -> None:
    """Voting, stacking, bagging and a transformed target train it as it trains alone."""
    X, y = _train(subject)
    new = subject.sample.X_new
    column, asked = (np.array(texts, dtype=object)[:, None] for texts in (X, new))
    vote = VotingRegressor([("a", subject.new()), ("b", subject.new())]).fit(X, y)
    require_close(vote.predict(new), subject.expected, "the vote of two alike", tolerance=1e-6)
    stack = StackingRegressor([("a", subject.new())], LinearRegression(), cv=FOLDS).fit(X, y)
    final = LinearRegression().fit(cross_val_predict(subject.new(), X, y, cv=FOLDS)[:, None], y)
    expected = final.predict(np.asarray(subject.expected)[:, None])
    require_close(stack.predict(new), expected, "predictions of the stack", tolerance=1e-3)
    bag = BaggingRegressor(subject.new(), n_estimators=2, random_state=0).fit(column, y)
    mean = np.mean([member.predict(asked) for member in bag.estimators_], axis=0)
    require_close(bag.predict(asked), mean, "predictions of the bag", tolerance=1e-6)
    logged = TransformedTargetRegressor(subject.new(), func=np.log1p, inverse_func=np.expm1).fit(X, y)
    alone = np.expm1(clone(subject.estimator).fit(X, np.log1p(y)).predict(new))
    require_close(logged.predict(new), alone, "predictions under a transformed target", tolerance=1e-6)
    require_different(
        logged.predict(new), subject.expected, "predictions with and without the transformation"
    )
