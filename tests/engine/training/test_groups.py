"""Rows of several documents, and batches that have something to compare."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sktransformer._engine.text.windows import Encoded
from sktransformer._engine.training.groups import GroupBatches, GroupedData


@pytest.mark.parametrize(("n", "size"), [(10, 4), (9, 4), (5, 8), (17, 16), (2, 1)])
@pytest.mark.parametrize("kinds", [None, 1, 3])
def test_an_epoch_has_each_row_once(n: int, size: int, kinds: int | None) -> None:
    classes = None if kinds is None else np.arange(n) % kinds
    batches = GroupBatches(n, size, 0, classes)
    drawn = [rows for (rows,) in batches]
    assert len(drawn) == len(batches) == -(-n // size)
    if kinds is None:
        assert np.sort(np.concatenate(drawn)).tolist() == list(range(n))
        assert max(map(len, drawn)) - min(map(len, drawn)) <= 1
    else:
        assert set(np.concatenate(drawn).tolist()) == set(range(n))


def test_rows_of_many_classes_meet_their_own() -> None:
    classes = np.repeat(np.arange(50), 5)  # an odd number of each
    for _ in range(3):
        for (rows,) in GroupBatches(250, 16, 1, classes):
            _, counts = np.unique(classes[rows], return_counts=True)
            assert counts.min() >= 2
            assert len(counts) >= 4
            assert 10 <= len(rows) <= 20


def test_larger_groups_stay_together() -> None:
    classes = np.repeat(np.arange(20), [8] * 10 + [13] * 10)
    for (rows,) in GroupBatches(len(classes), 32, 1, classes, together=8):
        _, counts = np.unique(classes[rows], return_counts=True)
        assert set(counts.tolist()) <= {8, 13}
        assert len(counts) >= 2


def test_passes_differ_and_seeds_repeat() -> None:
    classes = np.arange(40) % 4

    def epochs(seed: int) -> list[list[list[int]]]:
        batches = GroupBatches(40, 8, seed, classes)
        return [[rows.tolist() for (rows,) in batches] for _ in range(2)]

    first, second = epochs(0)
    assert first != second
    assert epochs(0) == [first, second]
    assert epochs(1)[0] != first


def test_windows_of_rows_come_document_by_document() -> None:
    """Documents 0 to 3, of 2, 1, 3 and 1 windows; rows pair 0 with 2 and 1 with 3."""
    owners = np.array([0, 0, 1, 2, 2, 2, 3], dtype=np.int32)
    encoded = Encoded(np.arange(7, dtype=np.int32), np.arange(8), owners, 4)
    data = GroupedData(encoded, np.array([[0, 2], [1, 3]]), torch.zeros(2))
    assert len(data) == 2
    windows, documents, places = data.windows_of(np.array([1, 0]))
    assert windows.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert documents.tolist() == [0, 0, 1, 2, 2, 2, 3]
    assert places.tolist() == [1, 0, 3, 2]  # the firsts of both rows, then the seconds


def test_a_document_that_comes_twice_is_read_once() -> None:
    encoded = Encoded(np.arange(4, dtype=np.int32), np.arange(5), np.arange(4, dtype=np.int32), 4)
    data = GroupedData(encoded, np.array([[0, 3], [1, 3], [2, 3]]), torch.zeros(3))
    windows, documents, places = data.windows_of(np.array([2, 0]))
    assert windows.tolist() == [0, 2, 3]
    assert documents.tolist() == [0, 1, 2]
    assert places.tolist() == [1, 0, 2, 2]
