"""What a training run eats: encoded documents with targets and weights, and optimizer batches of their rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import Dataset

from ..text.batches import Rows
from ..text.windows import Encoded


@dataclass(frozen=True)
class TrainingData(Dataset[int]):
    """Encoded documents, their targets (n, ...) and weights (n,); `weights` have mean 1 over the documents."""

    encoded: Encoded
    targets: torch.Tensor
    weights: torch.Tensor
    window_weights: torch.Tensor = field(init=False)

    def __len__(self) -> int:
        return self.encoded.n_documents

    def __post_init__(self) -> None:
        owners = self.encoded.document
        shares = 1.0 / np.bincount(owners, minlength=len(self))[owners]
        rows = torch.from_numpy(owners.astype(np.int64))
        # a document's windows share its weight
        object.__setattr__(self, "window_weights", self.weights[rows] * torch.from_numpy(shares).float())

    def targets_of(self, windows: Rows) -> torch.Tensor:
        """Return the targets of the documents that `windows` belong to."""
        return self.targets[torch.from_numpy(self.encoded.document[windows].astype(np.int64))]

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
    total = float(weights.sum())
    if not np.isfinite(total) or (weights < 0).any() or total <= 0:
        raise ValueError("sample_weight must be finite and not negative, and at least one weight above zero.")
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
