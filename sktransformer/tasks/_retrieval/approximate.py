"""Approximate neighbours: a navigable graph of the vectors, kept by usearch."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs

from ..._engine.errors import PersistenceError, optional_import
from ..._engine.validation import check_number

EXTRA = "search"
MAX_JOBS = 1024


def require_usearch() -> None:
    """Raise MissingExtraError where usearch is missing: before documents are encoded, not afterwards."""
    optional_import("usearch.index", EXTRA)


def check_n_jobs(n_jobs: Any) -> None:
    """Raise unless `n_jobs` is a number of threads as joblib counts them."""
    if n_jobs is None:
        return
    check_number("n_jobs", n_jobs, low=-MAX_JOBS, high=MAX_JOBS, integer=True)
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0; pass None for one thread, or -1 for all processors.")


class ApproximateIndex:
    """A hierarchical navigable small world graph over unit vectors, each under a number of its own.

    Removed vectors keep their place in the graph as way stations until new ones take it.
    """

    def __init__(self, width: int, *, connectivity: int, expansion_add: int) -> None:
        index = optional_import("usearch.index", EXTRA).Index
        # half precision finds the same candidates, which are then ranked by their vectors in single precision
        self.graph = index(
            ndim=width, metric="ip", dtype="f16", connectivity=connectivity, expansion_add=expansion_add
        )

    def __len__(self) -> int:
        return len(self.graph)

    def add(self, keys: npt.NDArray[np.int64], vectors: npt.NDArray[np.float32], n_jobs: Any) -> None:
        """Add vectors; keys that are there already, from an add that was interrupted, are replaced."""
        there = (
            keys[np.asarray(self.graph.contains(keys.astype(np.uint64)), dtype=bool)]
            if len(self)
            else keys[:0]
        )
        if len(there):
            self.remove(there, n_jobs)
        self.graph.add(keys.astype(np.uint64), vectors, threads=effective_n_jobs(n_jobs))

    def remove(self, keys: npt.NDArray[np.int64], n_jobs: Any) -> None:
        """Take vectors out."""
        self.graph.remove(keys.astype(np.uint64), threads=effective_n_jobs(n_jobs))

    def search(
        self, queries: npt.NDArray[np.float32], k: int, *, expansion_search: int, n_jobs: Any
    ) -> npt.NDArray[np.int64]:
        """Return the keys of up to `k` near vectors of each query, in no order, -1 where there are fewer."""
        if self.graph.expansion_search != expansion_search:
            self.graph.expansion_search = expansion_search
        found = self.graph.search(queries, k, threads=effective_n_jobs(n_jobs))
        if len(queries) == 1:  # usearch gives a result of another shape then
            keys = np.full((1, k), -1, dtype=np.int64)
            keys[0, : len(found.keys)] = found.keys
            return keys
        filled = np.arange(k) < np.asarray(found.counts)[:, None]
        return np.where(filled, found.keys.astype(np.int64), -1)

    def __getstate__(self) -> dict[str, Any]:
        """Return the graph as the bytes that usearch writes."""
        return {
            "graph": bytes(self.graph.save()),
            "usearch": str(optional_import("usearch", EXTRA).__version__),
            "expansion_add": int(self.graph.expansion_add),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        index = optional_import("usearch.index", EXTRA).Index
        try:
            graph = index.restore(state["graph"], expansion_add=state["expansion_add"])
        except (RuntimeError, ValueError) as error:
            raise PersistenceError(
                f"the approximate index was written by usearch {state['usearch']}, and the one here can't read it "
                f"({error}); install that version, or fit again."
            ) from error
        self.graph = graph
