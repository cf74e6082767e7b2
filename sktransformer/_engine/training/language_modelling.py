"""The loss of models that go on from a text: each token told from those before it."""

from __future__ import annotations

import torch
from torch import nn

from ..inference.likelihood import next_token_losses, sums_by_window
from ..text.batches import Batch


class OnNextTokens:
    """Mean over a window's tokens that count of -log softmax(z)_y, y the token that follows; 0 for one without any.

    Targets (N,) are laid as `Batch.flat` does: the token that follows each, or `NOT_COUNTED`.

    References
    ----------
    Radford et al. 2018, "Improving Language Understanding by Generative Pre-Training", section 3.1, equation 1; Ouyang
    et al. 2022, "Training Language Models to Follow Instructions with Human Feedback", section 3.5 (the loss on
    responses).
    """

    def __call__(self, model: nn.Module, batch: Batch, targets: torch.Tensor) -> torch.Tensor:
        """Return the losses (B,)."""
        losses, owners = next_token_losses(model, batch, targets)
        counts = sums_by_window(torch.ones_like(losses), owners, len(batch))
        return sums_by_window(losses, owners, len(batch)) / counts.clamp(min=1)
