"""Losses of a whole batch, against loops over the formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from sktransformer._engine.training.contrastive import CosineRanking, InBatchNegatives, SupervisedContrastive

T = 0.3


def vectors(n: int, width: int = 4) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(0).normal(size=(n, width))).requires_grad_()


def units(x: torch.Tensor) -> np.ndarray:
    found = x.detach().numpy()
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def test_supervised_contrastive_is_equation_2() -> None:
    x, labels = vectors(6), [0, 1, 0, 1, 0, 2]
    z, per_anchor = units(x), []
    for i, label in enumerate(labels):
        positives = [p for p, other in enumerate(labels) if other == label and p != i]
        below = sum(math.exp(z[i] @ z[a] / T) for a in range(6) if a != i)
        if positives:
            per_anchor.append(
                -sum(math.log(math.exp(z[i] @ z[p] / T) / below) for p in positives) / len(positives)
            )
    assert len(per_anchor) == 5  # the one of label 2 has nobody
    loss = SupervisedContrastive(T)(x, torch.tensor(labels))
    assert loss.item() == pytest.approx(np.mean(per_anchor), abs=1e-9)
    loss.backward()
    assert x.grad is not None
    assert bool(x.grad.isfinite().all())
    assert x.grad[5].abs().max() > 1e-4  # but the others are pushed from it, and it from them


@pytest.mark.parametrize("labels", [[0, 1, 2], [0]])
def test_a_batch_without_two_of_a_class_has_a_loss_of_zero(labels: list[int]) -> None:
    x = vectors(len(labels))
    loss = SupervisedContrastive(T)(x, torch.tensor(labels))
    loss.backward()
    assert loss.item() == 0.0
    assert x.grad is not None
    assert not x.grad.any()


def test_pairs_are_told_from_those_of_other_rows() -> None:
    x = vectors(6)
    z = units(x)
    expected = np.mean(
        [
            -math.log(math.exp(z[i] @ z[3 + i] / T) / sum(math.exp(z[i] @ z[3 + j] / T) for j in range(3)))
            for i in range(3)
        ]
    )
    ids = torch.tensor([[0, 1], [2, 3], [4, 5]])
    assert InBatchNegatives(T)(x, ids).item() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("ids", [[[0, 1], [2, 1], [4, 5]], [[0, 1], [0, 3], [4, 5]]])
def test_a_shared_text_is_no_negative(ids: list[list[int]]) -> None:
    x = vectors(6)
    z = units(x)
    against = {0: [0, 2], 1: [1, 2], 2: [0, 1, 2]}  # rows 0 and 1 share a text
    expected = np.mean(
        [
            -math.log(math.exp(z[i] @ z[3 + i] / T) / sum(math.exp(z[i] @ z[3 + j] / T) for j in js))
            for i, js in against.items()
        ]
    )
    assert InBatchNegatives(T)(x, torch.tensor(ids)).item() == pytest.approx(expected, abs=1e-9)


def test_graded_pairs_are_ranked() -> None:
    x, grades = vectors(8), [3.0, 1.0, 1.0, 2.5]
    z = units(x)
    cosines = [z[i] @ z[4 + i] for i in range(4)]
    terms = [
        math.exp((cosines[j] - cosines[i]) / T) for i in range(4) for j in range(4) if grades[i] > grades[j]
    ]
    assert len(terms) == 5
    loss = CosineRanking(T)(x, torch.tensor(grades))
    assert loss.item() == pytest.approx(math.log(1 + sum(terms)), abs=1e-9)
    scaled = CosineRanking(T)(x, torch.tensor(grades) * 20 - 7)
    assert scaled.item() == pytest.approx(loss.item(), abs=1e-12)


def test_equal_grades_teach_nothing() -> None:
    x = vectors(4)
    loss = CosineRanking(T)(x, torch.ones(2))
    loss.backward()
    assert loss.item() == 0.0
    assert x.grad is not None
    assert not x.grad.any()


@pytest.mark.parametrize("make", [SupervisedContrastive, InBatchNegatives, CosineRanking])
def test_only_leading_columns_count_where_vectors_are_cut(make: type) -> None:
    targets = {
        SupervisedContrastive: torch.tensor([0, 0, 1, 1]),
        InBatchNegatives: torch.tensor([[0, 1], [2, 3]]),
        CosineRanking: torch.tensor([0.0, 1.0]),
    }[make]
    x = vectors(4, 6)
    loss = make(T, 3)(x, targets)
    assert loss.item() == pytest.approx(make(T)(x[:, :3], targets).item(), abs=1e-12)
    loss.backward()
    assert x.grad is not None
    assert not x.grad[:, 3:].any()
