"""One row a document out of one row a window."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..text.windows import Encoded

AGGREGATIONS = ("mean", "max", "length")
FloatArray = npt.NDArray[np.float32]


def by_document(rows: FloatArray, encoded: Encoded, how: str) -> FloatArray:
    """Aggregate the rows (n_windows, ...) of each document's windows into one row a document.

    "mean" weights windows alike, "length" by their number of tokens, "max" takes the largest of each column.
    """
    if encoded.n_windows == encoded.n_documents:
        return rows  # one window a document, in order
    firsts = np.searchsorted(encoded.document, np.arange(encoded.n_documents))
    if how == "max":
        largest: FloatArray = np.maximum.reduceat(rows, firsts, axis=0)
        return largest
    weights = (encoded.lengths if how == "length" else np.ones(encoded.n_windows)).astype(np.float64)
    totals = np.add.reduceat(weights, firsts)
    shares = weights / totals[encoded.document]
    weighted = rows * shares.reshape(-1, *(1,) * (rows.ndim - 1))
    return np.add.reduceat(weighted, firsts, axis=0).astype(np.float32)
