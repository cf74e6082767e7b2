"""A ranking by vectors and one by words become one, by ranks or by scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .topk import Rows, Scores


def reciprocal_rank_fusion(
    rankings: Sequence[Rows], weights: Sequence[float], constant: float, n_documents: int, k: int
) -> tuple[Scores, Rows]:
    """Sum ``weight / (constant + rank)`` over the rankings that a document is in; ranks begin at 1.

    Cormack, Clarke and Buettcher 2009, doi:10.1145/1571941.1572114.

    Parameters
    ----------
    rankings : sequence of ndarray of shape (n_queries, m), int64
        Rows of documents, best first; -1 where a ranking is shorter. Together they hold `k` documents at least.
    weights : sequence of float
        One a ranking.
    constant : float
        How little the first ranks stand out.
    n_documents : int
        How many documents there are.
    k : int
        How many are asked for.

    Returns
    -------
    scores, rows : ndarray of shape (n_queries, k)
        Best first; of equals, the first ones.
    """
    n_queries = len(rankings[0])
    shares = [
        weight / (constant + 1 + np.arange(r.shape[1])) for weight, r in zip(weights, rankings, strict=True)
    ]
    rows = np.concatenate(rankings, axis=1)
    added = np.broadcast_to(np.concatenate(shares), rows.shape)
    there = rows >= 0
    query = np.broadcast_to(np.arange(n_queries)[:, None], rows.shape)[there]
    cells, place = np.unique(query * n_documents + rows[there], return_inverse=True)
    total = np.bincount(place, weights=added[there], minlength=len(cells))
    owner, document = np.divmod(cells, n_documents)
    order = np.lexsort((document, -total, owner))
    counts = np.bincount(owner, minlength=n_queries)
    kept = order[(np.cumsum(counts) - counts)[:, None] + np.arange(k)]
    best: npt.NDArray[np.float32] = total[kept].astype(np.float32)
    return best, document[kept]


def largest_fused(weights: Sequence[float], constant: float) -> float:
    """Return the score of a document that is first in all rankings."""
    return float(sum(weights)) / (constant + 1)


def pooled(rankings: Sequence[Rows]) -> Rows:
    """Return the documents of several rankings, each once and in ascending order, with -1 for the rest."""
    rows = np.sort(np.concatenate(rankings, axis=1), axis=1)
    rows[:, 1:][rows[:, 1:] == rows[:, :-1]] = -1
    return rows


def score_fusion(
    cosines: Scores, shares: Scores, rows: Rows, weights: Sequence[float], k: int
) -> tuple[Scores, Rows]:
    """Average the scores of the pooled documents, both kinds in the range from 0 to 1.

    A convex combination (Bruch, Gai and Ingber 2023, doi:10.1145/3596512). Cosines are brought to that range among the
    query's pool, since each model uses another part of theirs. Scores of words come as the share of what the query
    could reach: were they divided by the best one in the pool, one common word would count as much as all of them.

    Parameters
    ----------
    cosines, shares : ndarray of shape (n_queries, m)
        Scores by vectors and by words.
    rows : ndarray of shape (n_queries, m), int64
        The documents, as `pooled` gives them; at least `k` in each row.
    weights : sequence of two floats
        Of vectors and of words; their sum does not matter.
    k : int
        How many are asked for.

    Returns
    -------
    scores, rows : ndarray of shape (n_queries, k)
        Best first; of equals, the first ones.
    """
    there = rows >= 0
    lowest = np.where(there, cosines, np.inf).min(axis=1, keepdims=True)
    above = np.where(there, cosines - lowest, 0).astype(np.float64)
    range_ = above.max(axis=1, keepdims=True)
    near = np.ones(above.shape)  # all alike: each is the nearest
    np.divide(above, range_, out=near, where=range_ > 0)
    fused = (weights[0] * near + weights[1] * shares) / sum(weights)
    fused[~there] = -np.inf
    order = np.argsort(-fused, axis=1, kind="stable")[:, :k]
    scores = np.take_along_axis(fused, order, axis=1).astype(np.float32)
    return scores, np.take_along_axis(rows, order, axis=1)
