"""Losses against torch and by hand."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from sktransformer._engine.training.losses import BinaryCrossEntropy, CrossEntropy

LOGITS = torch.tensor([[2.0, 1.0, 0.0], [0.0, 0.0, 0.0], [-1.0, 3.0, 30.0]])


def test_cross_entropy_by_hand() -> None:
    total = math.exp(2) + math.exp(1) + 1
    losses = CrossEntropy()(LOGITS[:2], torch.tensor([1, 0]))
    assert losses.tolist() == pytest.approx([-math.log(math.e / total), math.log(3)])


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9])
def test_label_smoothing_mixes_in_the_uniform_distribution(smoothing: float) -> None:
    targets = torch.tensor([0, 2, 1])
    soft = (1 - smoothing) * F.one_hot(targets, 3) + smoothing / 3
    expected = -(soft * LOGITS.log_softmax(dim=1)).sum(dim=1)
    torch.testing.assert_close(CrossEntropy(smoothing)(LOGITS, targets), expected)
    # the same target given as a distribution
    torch.testing.assert_close(CrossEntropy()(LOGITS, soft), expected)
    torch.testing.assert_close(CrossEntropy(smoothing)(LOGITS, F.one_hot(targets, 3).float()), expected)


def test_soft_labels_and_smoothing_together() -> None:
    targets = torch.tensor([[0.2, 0.8, 0.0], [0.0, 0.5, 0.5], [1.0, 0.0, 0.0]])
    soft = 0.8 * targets + 0.2 / 3
    expected = -(soft * LOGITS.log_softmax(dim=1)).sum(dim=1)
    torch.testing.assert_close(CrossEntropy(0.2)(LOGITS, targets), expected)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_binary_cross_entropy_is_the_mean_over_labels(smoothing: float) -> None:
    targets = torch.tensor([[1.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 1.0, 0.0]])
    y = targets * (1 - smoothing) + smoothing / 2
    z = LOGITS.double()
    expected = -(y * z.sigmoid().log() + (1 - y) * (-z).sigmoid().log()).mean(dim=1)
    torch.testing.assert_close(BinaryCrossEntropy(smoothing)(LOGITS, targets), expected.float())


def test_binary_cross_entropy_by_hand() -> None:
    assert BinaryCrossEntropy()(torch.zeros(1, 4), torch.tensor([[1.0, 0, 0, 1]])).tolist() == pytest.approx(
        [math.log(2)]
    )


@pytest.mark.parametrize(
    ("objective", "targets"),
    [(CrossEntropy(), torch.tensor([0, 1, 2])), (BinaryCrossEntropy(), torch.eye(3))],
    ids=["cross-entropy", "binary"],
)
def test_losses_are_unreduced_and_float32(objective: CrossEntropy, targets: torch.Tensor) -> None:
    losses = objective(LOGITS.bfloat16(), targets)
    assert losses.shape == (3,)
    assert losses.dtype is torch.float32
    torch.testing.assert_close(losses, objective(LOGITS.bfloat16().float(), targets))
    alone = torch.cat([objective(LOGITS[i : i + 1].bfloat16(), targets[i : i + 1]) for i in range(3)])
    assert torch.equal(losses, alone)
