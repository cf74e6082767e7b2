"""The only room that touches scikit-learn's private functions; each says which public way is missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import (
    _check_feature_names,
    _check_method_params,
    _check_sample_weight,
    _num_samples,
)

# Public in all but its name: scikit-learn documents `_run_search` as the way to write a search of one's own, but that
# way hands all folds of a trial over at once, and a trial could not be stopped between them.
SearchCV = BaseSearchCV


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


def take_rows(X: Any, rows: npt.NDArray[Any]) -> Any:
    """Return rows of a list, array, sparse matrix, Series or frame by position; public functions only split in two."""
    return _safe_indexing(X, rows)


def search_scorers(search: Any) -> tuple[Any, str]:
    """Return the scorer of a `BaseSearchCV`, which may give several scores, and the name of the one that decides."""
    scorer, metric = search._get_scorers()
    return scorer, metric if isinstance(metric, str) else "score"


def scorer_attribute(scorer: Any) -> Any:
    """Return a scorer as `BaseSearchCV` keeps it in `scorer_`: a dict where it gives several scores."""
    return getattr(scorer, "_scorers", scorer)


def routed_fit_params(search: Any, X: Any, params: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Sort what was passed to the `fit` of a `BaseSearchCV`: for the estimator, the splitter and the scorer."""
    routed = search._get_routed_params_for_fit(_check_method_params(X, params=params))
    return dict(routed.estimator.fit), dict(routed.splitter.split), dict(routed.scorer.score)


def rows_of_params(X: Any, params: dict[str, Any], rows: npt.NDArray[Any]) -> dict[str, Any]:
    """Take `rows` of the params that have one entry a row of `X`; public indexing takes no dict."""
    taken: dict[str, Any] = _check_method_params(X, params=params, indices=rows)
    return taken


def safe_split(
    estimator: Any, X: Any, y: Any, rows: npt.NDArray[Any], train: npt.NDArray[Any] | None = None
) -> tuple[Any, Any]:
    """Take `rows` of X and y as scikit-learn's searches do: of precomputed kernels the columns too."""
    part: tuple[Any, Any] = _safe_split(estimator, X, y, rows, train)
    return part


def best_index(search: Any, metric: str, results: dict[str, Any]) -> int:
    """Return the row of `cv_results_` that `refit` of a `BaseSearchCV` chooses."""
    return int(search._select_best_index(search.refit, metric, results))


def check_refit_name(search: Any, scores: dict[str, float]) -> None:
    """Raise ValueError when a scorer gives several scores and `refit` names none of them."""
    search._check_refit_for_multimetric(scores)
