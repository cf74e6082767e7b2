"""The only room that touches scikit-learn's private functions; each says which public way is missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_feature_names, _check_sample_weight, _num_samples


def check_columns(estimator: Any, X: Any, width: int | None, *, reset: bool) -> None:
    """Set or compare `n_features_in_` and `feature_names_in_` for a table of `width` columns.

    `validate_data` does this for arrays of numbers only; texts (`width` None) have no columns to compare. Names are
    compared where both sides have some: the same texts may come as a list here and as a frame there, without a warning.
    The name of a single column is never compared.

    Raises
    ------
    ValueError
        When the columns are not those seen in `fit`.
    """
    if width is None:
        if reset:
            for name in ("n_features_in_", "feature_names_in_"):
                if hasattr(estimator, name):
                    delattr(estimator, name)
        return
    names = [str(name) for name in getattr(X, "columns", ())]
    if width > 1 and len(set(names)) < len(names):
        raise ValueError(f"X has several columns of one name, {names}; rename them, or pass X.to_numpy().")
    if reset or (width > 1 and hasattr(X, "columns") and hasattr(estimator, "feature_names_in_")):
        _check_feature_names(estimator, X, reset=reset)
    if reset:
        estimator.n_features_in_ = width
    elif getattr(estimator, "n_features_in_", width) != width:
        raise ValueError(
            f"X has {width} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )


def sample_weights(sample_weight: Any, n_samples: int) -> npt.NDArray[np.float64] | None:
    """Read `sample_weight` as floats (n,); None stays None. Public validators check X beside it, and X is text."""
    if sample_weight is None:
        return None
    weights: npt.NDArray[np.float64] = _check_sample_weight(
        sample_weight, np.empty((n_samples, 1)), dtype=np.float64, ensure_non_negative=True
    )
    return weights


def n_rows(y: Any) -> int:
    """Return the number of rows of a list, array or frame, with scikit-learn's own error for scalars."""
    rows: int = _num_samples(y)
    return rows


def take_rows(X: Any, rows: npt.NDArray[np.intp]) -> Any:
    """Take rows of a list, array, Series, frame or sparse matrix by position, whatever its index says."""
    return _safe_indexing(X, rows)
