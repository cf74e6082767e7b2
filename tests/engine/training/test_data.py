"""Weights of mean one, windows of documents, and optimizer batches that see every document once an epoch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sktransformer._engine.text.windows import Encoded
from sktransformer._engine.training.data import (
    DocumentTargets,
    OptimizerBatches,
    TokenTargets,
    TrainingData,
    WindowTargets,
    normalized_weights,
)


def data(owners: list[int], n_documents: int) -> TrainingData:
    """Return documents whose windows are one token each."""
    n = len(owners)
    encoded = Encoded(
        np.arange(n, dtype=np.int32), np.arange(n + 1), np.array(owners, dtype=np.int32), n_documents
    )
    return TrainingData(encoded, DocumentTargets(torch.zeros(n_documents)), torch.ones(n_documents))


# -- weights -----------------------------------------------------------------------------------------------------------


def test_no_weights_are_ones() -> None:
    weights = normalized_weights(None, 3)
    assert weights.dtype is torch.float32
    assert weights.tolist() == [1, 1, 1]


def test_weights_have_mean_one_whatever_their_size() -> None:
    assert normalized_weights(np.array([1.0, 2.0, 3.0]), 3).tolist() == pytest.approx([0.5, 1, 1.5])
    assert normalized_weights(np.array([100.0, 200.0, 300.0]), 3).tolist() == pytest.approx([0.5, 1, 1.5])
    assert normalized_weights(np.full(4, 7.0), 4).tolist() == [1, 1, 1, 1]
    assert normalized_weights(np.array([0.0, 2.0]), 2).tolist() == [0, 2]


@pytest.mark.parametrize("weights", [[0.0, 0.0], [-1.0, 2.0], [np.nan, 1.0], [np.inf, 1.0]])
def test_weights_that_mean_nothing_raise(weights: list[float]) -> None:
    with pytest.raises(ValueError, match="sample_weight must be finite and not negative, and at least one"):
        normalized_weights(np.array(weights), 2)


# -- windows -----------------------------------------------------------------------------------------------------------


def test_one_window_a_document() -> None:
    training = data([0, 1, 2, 3], 4)
    assert len(training) == 4
    assert training.windows_of(np.array([3, 1])).tolist() == [3, 1]


def test_several_windows_a_document() -> None:
    training = data([0, 0, 1, 2, 2, 2], 3)
    assert len(training) == 3
    assert training.windows_of(np.array([2, 0])).tolist() == [0, 1, 3, 4, 5]
    assert training.windows_of(np.array([1])).tolist() == [2]


def test_the_windows_of_a_document_share_its_weight_and_have_its_target() -> None:
    owners = np.array([0, 0, 1, 2, 2, 2], dtype=np.int32)
    encoded = Encoded(np.arange(6, dtype=np.int32), np.arange(7), owners, 3)
    training = TrainingData(
        encoded, DocumentTargets(torch.tensor([10, 11, 12])), torch.tensor([1.0, 0.5, 1.5])
    )
    assert training.window_weights.tolist() == [0.5, 0.5, 0.5, 0.5, 0.5, 0.5]
    assert training.window_weights.dtype is torch.float32
    assert training.targets_of(np.array([5, 0, 2])).tolist() == [12, 10, 11]


def test_targets_may_be_rows() -> None:
    encoded = data([0, 1], 2).encoded
    training = TrainingData(encoded, DocumentTargets(torch.tensor([[0.1, 0.9], [1.0, 0.0]])), torch.ones(2))
    assert training.targets_of(np.array([1])).tolist() == [[1.0, 0.0]]


def test_windows_may_have_targets_and_shares_of_their_own() -> None:
    encoded = Encoded(np.arange(6, dtype=np.int32), np.arange(4) * 2, np.array([0, 0, 1], dtype=np.int32), 2)
    shares = np.array([0.25, 0.75, 1.0])
    training = TrainingData(encoded, WindowTargets(torch.tensor([7, 8, 9])), torch.tensor([0.5, 1.5]), shares)
    assert training.targets_of(np.array([2, 0])).tolist() == [9, 7]
    assert training.window_weights.tolist() == [0.125, 0.375, 1.5]


def test_tokens_may_have_targets_in_the_order_of_a_batch() -> None:
    starts = np.array([0, 1, 4, 6])
    encoded = Encoded(np.arange(6, dtype=np.int32), starts, np.arange(3, dtype=np.int32), 3)
    training = TrainingData(encoded, TokenTargets(torch.arange(10, 16)), torch.ones(3))
    assert training.targets_of(np.array([2, 0, 1])).tolist() == [14, 15, 10, 11, 12, 13]


# -- optimizer batches -------------------------------------------------------------------------------------------------


@given(st.integers(1, 200), st.integers(1, 64), st.integers(0, 2**32 - 1))
def test_every_document_once_a_pass(n: int, size: int, seed: int) -> None:
    batches = OptimizerBatches(n, size, seed)
    for _ in range(2):
        rows = [batch for (batch,) in batches]
        assert len(rows) == len(batches)
        assert sorted(np.concatenate(rows).tolist()) == list(range(n))
        assert [len(batch) for batch in rows[:-1]] == [size] * (len(rows) - 1)
        assert 1 <= len(rows[-1]) <= size
        assert rows[0].dtype == np.int64


def orders(seed: int, passes: int = 2) -> list[list[int]]:
    batches = OptimizerBatches(50, 8, seed)
    return [np.concatenate([rows for (rows,) in batches]).tolist() for _ in range(passes)]


def test_each_pass_has_an_order_of_its_own_and_a_seed_gives_them_again() -> None:
    first = orders(0)
    assert first[0] != first[1]
    assert first[0] != list(range(50))
    assert orders(0) == first
    assert orders(1)[0] != first[0]


def test_the_order_does_not_touch_global_generators() -> None:
    torch_before, numpy_before = torch.get_rng_state(), np.random.get_state()[1].copy()  # type: ignore[union-attr,index]  # noqa: NPY002
    orders(0)
    assert torch.equal(torch.get_rng_state(), torch_before)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_before)  # type: ignore[index]  # noqa: NPY002


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1.0, 1e200, 1e308])
def test_weights_of_any_size_are_relative(scale: float) -> None:
    assert normalized_weights(np.full(4, scale), 4).tolist() == [1.0] * 4
    assert normalized_weights(np.array([0.0, 1.0, 1.0, 0.5]) * scale, 4).tolist() == pytest.approx(
        [0.0, 1.6, 1.6, 0.8]
    )
