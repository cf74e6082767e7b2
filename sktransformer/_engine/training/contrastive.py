"""Objectives that compare the documents of a whole optimizer batch with each other.

All are on cosines: vectors are divided by their norm here. None is a sum over documents, so none can be cut into
micro-batches as a classifier's loss can; `CachedGradients` cuts the model's passes instead.
"""

from __future__ import annotations

from typing import Protocol

import torch
import torch.nn.functional as F


class BatchObjective(Protocol):
    """Maps the vectors (k B, H) of a batch of B rows of k documents, and their targets, to one loss.

    The first documents of all rows come first, then the second ones.
    """

    def __call__(self, vectors: torch.Tensor, targets: torch.Tensor) -> torch.Tensor: ...


class SupervisedContrastive:
    """Pulls the documents of a class together and the others away: labels (B,) of one document a row.

    The loss of an anchor i is the mean over the others p of its class of
    ``-log(exp(z_i z_p / t) / sum_a exp(z_i z_a / t))``, where a runs over all documents but i, and the result is the
    mean over the anchors that have another of their class in the batch. One without is a contrast to the others only.

    References
    ----------
    Khosla et al. 2020, "Supervised Contrastive Learning", equation 2.
    """

    def __init__(self, temperature: float, width: int | None = None) -> None:
        self.temperature = temperature
        self.width = width

    def __call__(self, vectors: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the loss."""
        z = F.normalize(vectors[:, : self.width], dim=1)
        itself = torch.eye(len(z), dtype=torch.bool, device=z.device)
        scores = (z @ z.T / self.temperature).masked_fill(itself, float("-inf"))  # (B, B)
        positive = (targets[:, None] == targets[None, :]) & ~itself
        counts = positive.sum(dim=1)
        # where, not a product: the diagonal is minus infinity
        logs = torch.where(positive, scores - scores.logsumexp(dim=1, keepdim=True), 0.0)
        if len(z) == 1 or not bool(counts.any()):
            return z.sum() * 0.0  # nothing to pull; a loss that has a gradient, of zeros
        losses = -logs.sum(dim=1) / counts.clamp(min=1)
        return losses[counts > 0].mean()


class InBatchNegatives:
    """The second document of each row against those of the other rows: cross-entropy of cosines over a temperature.

    Targets (B, 2) are ids of the two texts. A second text that equals the row's own, or whose first text does, is no
    negative of that row, and is left out of its sum.

    References
    ----------
    Henderson et al. 2017, "Efficient Natural Language Response Suggestion for Smart Reply", section 4.4;
    van den Oord et al. 2018, "Representation Learning with Contrastive Predictive Coding", equation 4.
    """

    def __init__(self, temperature: float, width: int | None = None) -> None:
        self.temperature = temperature
        self.width = width

    def __call__(self, vectors: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the loss."""
        z = F.normalize(vectors[:, : self.width], dim=1)
        first, second = z.chunk(2)
        rows = torch.arange(len(first), device=z.device)
        alike = (targets[:, None] == targets[None, :]).any(dim=-1) & (rows[:, None] != rows[None, :])
        scores = (first @ second.T / self.temperature).masked_fill(alike, float("-inf"))  # (B, B)
        return F.cross_entropy(scores, rows)


class CosineRanking:
    """CoSENT: the cosine of a pair with a higher grade (B,) shall be the higher; only the order of grades counts.

    ``log(1 + sum exp((cos_j - cos_i) / t))`` over all i, j of the batch with grade i above grade j.

    References
    ----------
    Huang et al. 2024, "CoSENT: Consistent Sentence Embedding via Similarity Ranking", IEEE/ACM Transactions on Audio,
    Speech, and Language Processing 32, section III.
    """

    def __init__(self, temperature: float, width: int | None = None) -> None:
        self.temperature = temperature
        self.width = width

    def __call__(self, vectors: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the loss."""
        first, second = F.normalize(vectors[:, : self.width], dim=1).chunk(2)
        cosines = (first * second).sum(dim=1) / self.temperature
        above = targets[:, None] > targets[None, :]
        gaps = cosines[None, :] - cosines[:, None]  # [i, j]: cos_j - cos_i
        terms = torch.cat([gaps.new_zeros(1), gaps[above]])
        return terms.logsumexp(dim=0)
