"""The nearest vectors: of all of them, or of those that the graph finds."""

from __future__ import annotations

from typing import Any

import numpy as np

from .approximate import ApproximateIndex
from .topk import Rows, Scores, blocks, dense_top_k


def dense_neighbours(
    queries: Scores,
    vectors: Scores,
    k: int,
    *,
    graph: ApproximateIndex | None,
    positions: Rows,
    expansion_search: int,
    n_jobs: Any,
) -> tuple[Scores, Rows]:
    """Return cosines and rows of the `k` nearest unit vectors of each query, nearest first.

    The graph's candidates are ranked by their exact cosines. A query for which it finds fewer than `k` is compared with
    all vectors.

    Parameters
    ----------
    queries, vectors : ndarray of shape (n, D), float32
        Unit vectors.
    k : int
        At most as many as there are vectors.
    graph : ApproximateIndex or None
        None compares with all vectors.
    positions : ndarray of int64
        The key of each vector in the graph, ascending.
    expansion_search : int
        Candidates that the graph looks at.
    n_jobs : int or None
        Its threads.
    """
    if graph is None or not len(queries):
        return dense_top_k(queries, vectors, k)
    wide = min(len(vectors), max(k, expansion_search))
    keys = graph.search(queries, wide, expansion_search=expansion_search, n_jobs=n_jobs)
    found = np.minimum(np.searchsorted(positions, keys), len(positions) - 1)
    found = np.where(positions[found] == keys, found, -1)
    cosines = cosines_at(queries, vectors, found)
    order = np.lexsort((found, -cosines), axis=1)[:, :k]
    scores, rows = np.take_along_axis(cosines, order, axis=1), np.take_along_axis(found, order, axis=1)
    short = np.flatnonzero(rows[:, -1] < 0)
    if len(short):
        scores[short], rows[short] = dense_top_k(queries[short], vectors, k)
    return scores, rows


def cosines_at(queries: Scores, vectors: Scores, rows: Rows) -> Scores:
    """Return the cosines of each query with some vectors of its own; minus infinity where a row is negative."""
    cosines = np.empty(rows.shape, dtype=np.float32)
    for some in blocks(len(queries), rows.shape[1] * vectors.shape[1] * vectors.itemsize):
        cosines[some] = np.matmul(vectors[rows[some]], queries[some, :, None])[..., 0]
    cosines[rows < 0] = -np.inf
    return cosines
