"""Objectives: one loss a window, unreduced, so that weights and micro-batches stay exact."""

from __future__ import annotations

from typing import Protocol

import torch
import torch.nn.functional as F
from torch import nn

from ..text.batches import Batch


class Objective(Protocol):
    """Runs a model on a batch of B windows; returns their losses (B,), given the targets of the same rows.

    It is the task's: which outputs of the model count, and what a target is, the net does not know.
    """

    def __call__(self, model: nn.Module, batch: Batch, targets: torch.Tensor) -> torch.Tensor: ...


class LogitLoss(Protocol):
    """Maps logits (B, C) and the targets of the same rows to losses (B,)."""

    def __call__(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor: ...


class OnLogits:
    """The objective of heads that give a row of logits a window: classification, regression."""

    def __init__(self, loss: LogitLoss) -> None:
        self.loss = loss

    def __call__(self, model: nn.Module, batch: Batch, targets: torch.Tensor) -> torch.Tensor:
        """Return the losses (B,)."""
        return self.loss(model(**batch.inputs()).logits, targets)


class CrossEntropy:
    """-log softmax(z)_y, with the target softened to (1 - s) y + s / C for a `label_smoothing` of s.

    Works for class indices (B,) and for distributions over classes (B, C).

    References
    ----------
    Szegedy et al. 2016, "Rethinking the Inception Architecture for Computer Vision", section 7.
    """

    def __init__(self, label_smoothing: float = 0.0) -> None:
        self.label_smoothing = label_smoothing

    def __call__(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the losses (B,)."""
        return F.cross_entropy(
            logits.float(), targets, reduction="none", label_smoothing=self.label_smoothing
        )


class BinaryCrossEntropy:
    """Mean over labels of -y log sigmoid(z) - (1 - y) log(1 - sigmoid(z)); targets (B, C) of 0 and 1.

    Smoothing moves both targets towards a half: y (1 - s) + s / 2.
    """

    def __init__(self, label_smoothing: float = 0.0) -> None:
        self.label_smoothing = label_smoothing

    def __call__(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the losses (B,)."""
        soft = targets * (1.0 - self.label_smoothing) + 0.5 * self.label_smoothing
        return F.binary_cross_entropy_with_logits(logits.float(), soft, reduction="none").mean(dim=1)


class ValueLoss:
    """Mean over outputs of a function of the error r = z - y; outputs and targets are (B, K) numbers.

    "squared_error" is r^2, "absolute_error" is |r|, and "huber" is r^2 / 2 up to |r| = epsilon and
    epsilon (|r| - epsilon / 2) beyond.

    References
    ----------
    Huber 1964, "Robust Estimation of a Location Parameter", Annals of Mathematical Statistics 35, section 4.
    """

    def __init__(self, kind: str, epsilon: float) -> None:
        self.kind = kind
        self.epsilon = epsilon

    def __call__(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the losses (B,)."""
        outputs = logits.float()
        if self.kind == "huber":
            losses = F.huber_loss(outputs, targets, reduction="none", delta=self.epsilon)
        elif self.kind == "absolute_error":
            losses = F.l1_loss(outputs, targets, reduction="none")
        else:
            losses = F.mse_loss(outputs, targets, reduction="none")
        return losses.mean(dim=1)
