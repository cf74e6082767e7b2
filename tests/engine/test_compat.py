"""Columns, weights and rows as scikit-learn checks them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator

from sktransformer._engine.compat import check_columns, n_rows, sample_weights

TABLE = pd.DataFrame({"a": ["x"], "b": ["y"], "c": ["z"]})


def fitted(X: Any, width: int | None) -> BaseEstimator:
    estimator = BaseEstimator()
    check_columns(estimator, X, width, reset=True)
    return estimator


@pytest.mark.parametrize("table", [TABLE, pl.from_pandas(TABLE)], ids=["pandas", "polars"])
def test_names_and_width_are_kept(table: Any) -> None:
    estimator = fitted(table, 3)
    assert estimator.n_features_in_ == 3
    assert estimator.feature_names_in_.tolist() == ["a", "b", "c"]
    check_columns(estimator, table, 3, reset=False)


def test_texts_have_no_columns() -> None:
    estimator = fitted(["a", "b"], None)
    assert not hasattr(estimator, "n_features_in_")
    assert not hasattr(estimator, "feature_names_in_")


def test_a_second_fit_forgets_the_first_ones_columns() -> None:
    estimator = fitted(TABLE, 3)
    check_columns(estimator, ["a"], None, reset=True)
    assert not hasattr(estimator, "n_features_in_")
    assert not hasattr(estimator, "feature_names_in_")
    check_columns(estimator, TABLE, 3, reset=True)
    check_columns(estimator, np.array([["a", "b"]]), 2, reset=True)
    assert estimator.n_features_in_ == 2
    assert not hasattr(estimator, "feature_names_in_")


def test_another_width_raises() -> None:
    with pytest.raises(
        ValueError, match=r"^X has 2 features, but BaseEstimator is expecting 3 features as input"
    ):
        check_columns(fitted(np.full((1, 3), "a"), 3), np.full((1, 2), "a"), 2, reset=False)


@pytest.mark.parametrize(
    ("names", "message"), [(["a", "c", "b"], "same order"), (["a", "b", "d"], "unseen at fit time")]
)
def test_other_names_raise(names: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_columns(fitted(TABLE, 3), TABLE.set_axis(list(names), axis=1), 3, reset=False)


def test_one_column_may_come_as_a_frame_an_array_or_a_list() -> None:
    frame, array, texts = pd.DataFrame({"text": ["a"]}), np.array([["a"]]), ["a"]
    forms: list[tuple[Any, int | None]] = [(frame, 1), (array, 1), (texts, None)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for X, width in forms:
            estimator = fitted(X, width)
            for again, again_width in forms:
                check_columns(estimator, again, again_width, reset=False)


def test_the_name_of_a_single_column_is_never_compared() -> None:
    estimator = fitted(pd.DataFrame({"body": ["a"]}), 1)
    check_columns(estimator, pd.DataFrame({"subject": ["a"]}), 1, reset=False)
    assert estimator.feature_names_in_.tolist() == ["body"]


def test_names_are_compared_where_both_sides_have_some() -> None:
    check_columns(fitted(TABLE, 3), TABLE.to_numpy(), 3, reset=False)
    check_columns(fitted(TABLE.to_numpy(), 3), TABLE, 3, reset=False)
    check_columns(fitted([("a", "b")], 2), TABLE[["a", "b"]], 2, reset=False)


def test_sample_weights() -> None:
    assert sample_weights(None, 3) is None
    weights = sample_weights([1, 2, 0], 3)
    assert weights is not None
    assert weights.dtype == np.float64
    assert weights.tolist() == [1, 2, 0]
    np.testing.assert_array_equal(sample_weights(pd.Series([1, 2], index=[9, 9]), 2), [1, 2])
    np.testing.assert_array_equal(sample_weights(2.0, 3), [2, 2, 2])


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2], r"shape"),
        ([1, -1, 1], "[Nn]egative"),
        ([1, np.nan, 1], "NaN"),
        ([1, np.inf, 1], "infinity"),
        ([[1], [1], [1]], "1D"),
    ],
)
def test_wrong_sample_weights_raise(weights: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sample_weights(weights, 3)


def test_rows_are_counted() -> None:
    assert n_rows([1, 2, 3]) == 3
    assert n_rows(np.zeros((4, 2))) == 4
    assert n_rows(pd.Series([1, 2])) == 2
    assert n_rows(pl.Series([1, 2])) == 2
    with pytest.raises(TypeError, match="Expected sequence or array-like"):
        n_rows(3)
