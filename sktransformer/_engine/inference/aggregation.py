"""One row a document out of one row a window."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

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


def pooled(
    rows: torch.Tensor, owners: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], how: str
) -> torch.Tensor:
    """`by_document` for tensors with a gradient: rows (n_windows, H) of the documents `owners`, which ascend from 0."""
    n_documents = int(owners[-1]) + 1
    if n_documents == len(owners):
        return rows  # one window a document, in order
    places = torch.from_numpy(owners).to(rows.device)
    if how == "max":
        empty = rows.new_full((n_documents, rows.shape[1]), float("-inf"))
        return empty.scatter_reduce(0, places[:, None].expand_as(rows), rows, "amax", include_self=False)
    weights = (lengths if how == "length" else np.ones(len(lengths))).astype(np.float64)
    shares = torch.from_numpy(weights / np.bincount(owners, weights)[owners]).to(rows)
    return rows.new_zeros(n_documents, rows.shape[1]).index_add(0, places, rows * shares[:, None])
