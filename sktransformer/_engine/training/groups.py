"""What a contrastive run eats: rows of one or two documents each, and batches in which something can be compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import Dataset

from ..text.batches import Rows, token_positions
from ..text.windows import Encoded


@dataclass(frozen=True)
class GroupedData(Dataset[int]):
    """Rows of documents that are compared: `members` (n, k) are rows of `encoded`, `targets` (n, ...) what they mean.

    With `classes` (n,) batches are drawn so that a row meets others of its class, which come `together`.
    """

    encoded: Encoded
    members: Rows
    targets: torch.Tensor
    classes: npt.NDArray[np.int64] | None = None
    together: int = 2
    firsts: Rows = field(init=False)  # the first window of each document, and the end

    def __len__(self) -> int:
        return len(self.members)

    def __post_init__(self) -> None:
        documents = np.arange(self.encoded.n_documents + 1)
        object.__setattr__(self, "firsts", np.searchsorted(self.encoded.document, documents).astype(np.int64))

    def windows_of(self, rows: Rows) -> tuple[Rows, Rows, Rows]:
        """Return the windows of the documents of `rows`, each document's once, and where its vector belongs.

        Returns
        -------
        windows : ndarray of int
            Windows of the different documents.
        owners : ndarray of int
            Which of these documents each window is of.
        places : ndarray of shape (k B,), int
            The document at each place that a `BatchObjective` reads: all first ones of `rows`, then all second ones.
        """
        documents, places = np.unique(self.members[rows].T.ravel(), return_inverse=True)
        sizes = self.firsts[documents + 1] - self.firsts[documents]
        windows = token_positions(self.firsts[documents], sizes)
        return windows, np.repeat(np.arange(len(documents)), sizes), places.astype(np.int64)

    def batches(self, batch_size: int, seed: int) -> GroupBatches:
        """Return the optimizer batches of an epoch, in a new order each time they are gone through."""
        return GroupBatches(len(self), batch_size, seed, self.classes, self.together)


class GroupBatches:
    """Shuffled rows in batches of equal size, of `batch_size` rows or little less: a batch of one compares nothing.

    Given `classes`, rows are first put together in groups of `together` of a class (some more where their number does
    not come out even), and the groups are shuffled. At random, a row of one of many classes would meet none of its own.
    """

    def __init__(
        self,
        n_rows: int,
        batch_size: int,
        seed: int,
        classes: npt.NDArray[np.int64] | None = None,
        together: int = 2,
    ) -> None:
        self.n_rows = n_rows
        self.batch_size = batch_size
        self.classes = classes
        self.together = together
        self._random = np.random.default_rng(seed)

    def __len__(self) -> int:
        return -(-self.n_rows // self.batch_size)

    def __iter__(self) -> Iterator[tuple[Rows]]:
        order = self._random.permutation(self.n_rows).astype(np.int64)
        if self.classes is None:
            yield from ((part,) for part in np.array_split(order, len(self)))
            return
        groups = _groups(order, self.classes, self.together)
        ends = np.cumsum([len(group) for group in groups])
        # a group goes to the batch in which its middle row would fall
        middles = (ends - np.array([len(group) for group in groups]) / 2) / self.n_rows
        batch = np.minimum((middles * len(self)).astype(np.int64), len(self) - 1)
        for i in range(len(self)):
            chosen = [group for group, b in zip(groups, batch, strict=True) if b == i]
            yield (np.concatenate(chosen) if chosen else order[:1],)


def _groups(order: Rows, classes: npt.NDArray[np.int64], together: int) -> list[Rows]:
    """Cut shuffled rows into groups of `together`, or more, of a class, in an order that is as random as theirs."""
    by_class = order[np.argsort(classes[order], kind="stable")]
    cuts = np.flatnonzero(np.diff(classes[by_class])) + 1
    groups: list[Rows] = []
    for rows in np.split(by_class, cuts):
        groups += np.array_split(rows, max(1, len(rows) // together))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return sorted(groups, key=lambda group: int(place[group[0]]))
