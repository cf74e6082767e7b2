"""A second look: an estimator that reads a query and a document together puts the best ones in a new order."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from .topk import Rows, Scores

METHODS = ("predict_proba", "decision_function", "predict")


def check_reranker(reranker: Any) -> None:
    """Raise unless `reranker` is None or a fitted estimator with one of `METHODS`.

    Raises
    ------
    TypeError
        When it has none of them.
    NotFittedError
        When it is not fitted, for instance since `clone` took its fit away.
    """
    if reranker is None:
        return
    if isinstance(reranker, type) or not any(hasattr(reranker, method) for method in METHODS):
        raise TypeError(
            f"reranker must be a fitted estimator with one of {METHODS}, got {type(reranker).__name__} "
            f"({reranker!r:.40})."
        )
    try:
        check_is_fitted(reranker)
    except NotFittedError as error:
        raise NotFittedError(
            f"reranker, a {type(reranker).__name__}, is not fitted; fit it on pairs (query, document) first, and wrap "
            f"it in sklearn.frozen.FrozenEstimator where the search itself is cloned (cross-validation, searches)."
        ) from error


def reranked(
    reranker: Any, queries: list[str], texts: list[str], rows: Rows, k: int
) -> tuple[Scores, Rows, bool]:
    """Return scores and rows of the `k` best in the reranker's order, and whether scores are probabilities.

    Equals keep the order that they came in.

    Raises
    ------
    ValueError
        When the reranker gives several numbers a pair, or numbers that are not finite.
    """
    pairs = [(query, texts[row]) for query, found in zip(queries, rows, strict=True) for row in found]
    values, probable = _values(reranker, pairs)
    values = values.reshape(rows.shape)
    order = np.argsort(-values, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(values, order, axis=1), np.take_along_axis(rows, order, axis=1), probable


def _values(reranker: Any, pairs: list[tuple[str, str]]) -> tuple[npt.NDArray[np.float32], bool]:
    if not pairs:
        return np.empty(0, dtype=np.float32), hasattr(reranker, METHODS[0])
    method = next(name for name in METHODS if hasattr(reranker, name))
    given = np.asarray(getattr(reranker, method)(pairs))
    if given.dtype.kind not in "fiub":
        raise ValueError(
            f"reranker must give numbers, but its {method} gives {given.dtype} ({given[0]!r:.40})."
        )
    values = given.astype(np.float32)
    if method == "predict_proba":
        if values.ndim != 2 or values.shape[1] != 2:
            raise ValueError(
                f"reranker must tell two classes apart, the second relevant; predict_proba has shape {values.shape}."
            )
        values = values[:, 1]
    values = values.reshape(len(values), -1)
    if values.shape != (len(pairs), 1):
        raise ValueError(
            f"reranker must give one number a pair, got shape {values.shape} for {len(pairs)} pairs."
        )
    if not np.isfinite(values).all():
        query, text = pairs[int(np.flatnonzero(~np.isfinite(values))[0])]
        raise ValueError(
            f"reranker gives NaN or infinity for the query {query!r:.60} and the document {text!r:.60}."
        )
    return values[:, 0], method == "predict_proba"
