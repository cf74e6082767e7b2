"""The best `k` documents of each query, without ever holding the scores of all documents at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
from sklearn import get_config

Scores = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]
Tile = Callable[[slice, slice], Scores]

CELL_BYTES = 16  # of a tile: the scores, what partitioning copies, masks
TILE_BYTES = 32 * 2**20  # more would not stay in the caches that the processor shares
QUERIES = 256  # rows of a tile: enough for a matrix product to run at full speed


def top_k(
    n_queries: int, n_documents: int, k: int, score: Tile, *, whole: bool = False
) -> tuple[Scores, Rows]:
    """Return scores and rows of the `k` best documents of each query, best first; of equals, the first ones.

    Parameters
    ----------
    n_queries, n_documents : int
        How many there are.
    k : int
        At most `n_documents`.
    score : callable
        ``score(queries, documents)``: the scores of two slices, of shape (queries, documents), all finite.
    whole : bool, default=False
        Whether `score` is at its best on all documents at once; a tile then has fewer queries.

    Returns
    -------
    scores : ndarray of shape (n_queries, k), float32
        Descending.
    rows : ndarray of shape (n_queries, k), int64
        The documents.
    """
    scores, rows = np.empty((n_queries, k), dtype=np.float32), np.empty((n_queries, k), dtype=np.int64)
    height, width = _tile_shape(n_documents, whole)
    for queries in batches(n_queries, height):
        n = queries.stop - queries.start
        best = np.empty((n, 0), dtype=np.float32), np.empty((n, 0), dtype=np.int64)
        for documents in batches(n_documents, width):
            best = _merged(*best, score(queries, documents), documents.start, k)
        scores[queries], rows[queries] = best
    return scores, rows


def tile_cells() -> int:
    """Return how many scores may be held at once: scikit-learn's ``working_memory`` is never exceeded."""
    allowed = float(get_config()["working_memory"]) * 2**20
    return max(1, int(min(allowed, TILE_BYTES) / CELL_BYTES))


def _tile_shape(n_documents: int, whole: bool) -> tuple[int, int]:
    cells = tile_cells()
    width = min(n_documents, cells) if whole else min(n_documents, max(1, cells // QUERIES))
    return max(1, min(QUERIES, cells // width)), width


def _merged(scores: Scores, rows: Rows, tile: Scores, start: int, k: int) -> tuple[Scores, Rows]:
    """Merge a tile of later documents into the best so far."""
    n, found = scores.shape
    chosen = tile > scores[:, -1:] if found == k else _best_of(tile, min(k, tile.shape[1]))
    query, column = np.nonzero(chosen)
    if not len(query):
        return scores, rows
    owner = np.concatenate([np.repeat(np.arange(n), found), query])
    values = np.concatenate([scores.ravel(), tile[query, column]])
    places = np.concatenate([rows.ravel(), start + column])
    order = np.lexsort((places, -values, owner))
    counts = np.bincount(owner, minlength=n)
    kept = order[(np.cumsum(counts) - counts)[:, None] + np.arange(min(k, found + tile.shape[1]))]
    return values[kept], places[kept]


def _best_of(tile: Scores, k: int) -> npt.NDArray[np.bool_]:
    """Mark the `k` best of each row; of equals at the border, the first ones, however many there are."""
    border = np.partition(tile, -k, axis=1)[:, -k, None]
    above, equal = tile > border, tile == border
    room = k - above.sum(axis=1, keepdims=True)
    marked: npt.NDArray[np.bool_] = above | (equal & (np.cumsum(equal, axis=1) <= room))
    return marked


def dense_top_k(queries: Scores, documents: Scores, k: int) -> tuple[Scores, Rows]:
    """Return the `k` largest dot products of each query."""

    def score(some: slice, others: slice) -> Scores:
        product: Scores = queries[some] @ documents[others].T
        return product

    return top_k(len(queries), len(documents), k, score)


def blocks(n_rows: int, bytes_a_row: int) -> Iterator[slice]:
    """Yield slices of rows that fit into a tile's memory."""
    yield from batches(n_rows, max(1, tile_cells() * CELL_BYTES // max(1, bytes_a_row)))


def batches(n_rows: int, size: int) -> Iterator[slice]:
    """Yield slices of at most `size` rows; none for no rows, which scikit-learn's `gen_batches` refuses."""
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))
