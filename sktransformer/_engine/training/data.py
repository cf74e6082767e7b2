"""What a training run eats: encoded documents with targets and weights, and optimizer batches of their rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import Dataset

from ..text.batches import Rows, token_positions
from ..text.windows import Encoded

SMALLEST_WEIGHT = 1e-290


class BatchTargets(Protocol):
    """What an objective compares with, for any of the windows."""

    def of(self, encoded: Encoded, windows: Rows) -> torch.Tensor: ...


@dataclass(frozen=True)
class DocumentTargets:
    """One target a document, (n_documents, ...): its windows share it."""

    values: torch.Tensor

    def of(self, encoded: Encoded, windows: Rows) -> torch.Tensor:
        """Return the targets (B, ...) of the documents that `windows` belong to."""
        return self.values[torch.from_numpy(encoded.document[windows].astype(np.int64))]


@dataclass(frozen=True)
class WindowTargets:
    """One target a window, (n_windows, ...)."""

    values: torch.Tensor

    def of(self, encoded: Encoded, windows: Rows) -> torch.Tensor:
        """Return the targets (B, ...) of `windows`."""
        return self.values[torch.from_numpy(windows)]


@dataclass(frozen=True)
class TokenTargets:
    """One target a token, (n_tokens,), laid end to end as `Encoded.ids`."""

    values: torch.Tensor

    def of(self, encoded: Encoded, windows: Rows) -> torch.Tensor:
        """Return the targets (N,) of the tokens of `windows`, end to end: the order of `Batch.flat`."""
        tokens = token_positions(encoded.starts[windows], encoded.lengths[windows])
        return self.values[torch.from_numpy(tokens)]


class Examples(NamedTuple):
    """Encoded documents and their targets.

    `shares` (n_windows,) are those of their document's weight that its windows have, `more` (n_windows,) the tokens
    that a pass over each reads besides its own.
    """

    encoded: Encoded
    targets: BatchTargets
    shares: npt.NDArray[np.float64] | None = None
    more: npt.NDArray[np.int64] | None = None


@dataclass(frozen=True)
class TrainingData(Dataset[int]):
    """Encoded documents, their targets and weights (n,), which have mean 1 over the documents.

    The windows of a document share its weight alike, unless `shares` (n_windows,) says how. A pass over a window costs
    its own tokens and `more` (n_windows,) of them: those of a target that is a text.
    """

    encoded: Encoded
    targets: BatchTargets
    weights: torch.Tensor
    shares: npt.NDArray[np.float64] | None = None
    more: npt.NDArray[np.int64] | None = None
    window_weights: torch.Tensor = field(init=False)

    def __len__(self) -> int:
        return self.encoded.n_documents

    def __post_init__(self) -> None:
        owners = self.encoded.document
        shares = self.shares
        if shares is None:
            shares = 1.0 / np.bincount(owners, minlength=len(self))[owners]
        rows = torch.from_numpy(owners.astype(np.int64))
        object.__setattr__(self, "window_weights", self.weights[rows] * torch.from_numpy(shares).float())

    def batches(self, batch_size: int, seed: int) -> OptimizerBatches:
        """Return the optimizer batches of an epoch, in a new order each time they are gone through."""
        return OptimizerBatches(len(self), batch_size, seed)

    @property
    def costs(self) -> npt.NDArray[np.int64]:
        """Tokens of a pass over each window, (n_windows,)."""
        return self.encoded.lengths if self.more is None else self.encoded.lengths + self.more

    def targets_of(self, windows: Rows) -> torch.Tensor:
        """Return what the objective compares the outputs of `windows` with."""
        return self.targets.of(self.encoded, windows)

    def windows_of(self, documents: Rows) -> Rows:
        """Return the windows that belong to `documents`."""
        if self.encoded.n_documents == len(self.encoded.document):
            return documents  # one window a document, in order
        wanted = np.zeros(self.encoded.n_documents, dtype=bool)
        wanted[documents] = True
        return np.flatnonzero(wanted[self.encoded.document])


def normalized_weights(weights: npt.NDArray[np.float64] | None, n_documents: int) -> torch.Tensor:
    """Scale weights to mean 1, so that equal weights change nothing, whatever their size."""
    if weights is None:
        return torch.ones(n_documents)
    if not np.isfinite(weights).all() or (weights < 0).any() or not (weights > 0).any():
        raise ValueError("sample_weight must be finite and not negative, and at least one weight above zero.")
    largest = float(weights.max())
    if not SMALLEST_WEIGHT < largest < 1 / SMALLEST_WEIGHT:  # whose sum, or its inverse, is beyond float64
        weights = weights / largest
    total = float(weights.sum())
    return torch.from_numpy(weights * (n_documents / total)).float()


class OptimizerBatches:
    """Shuffled document rows, `batch_size` at a time; each pass draws a new order from its own generator."""

    def __init__(self, n_documents: int, batch_size: int, seed: int) -> None:
        self.n_documents = n_documents
        self.batch_size = batch_size
        self._random = np.random.default_rng(seed)

    def __len__(self) -> int:
        return -(-self.n_documents // self.batch_size)

    def __iter__(self) -> Iterator[tuple[Rows]]:
        order = self._random.permutation(self.n_documents).astype(np.int64)
        for start in range(0, self.n_documents, self.batch_size):
            yield (order[start : start + self.batch_size],)
