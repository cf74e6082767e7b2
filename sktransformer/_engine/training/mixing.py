"""Weights between those that a run began with and those that it led to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import nn


class Mixture:
    """The weights of `model` that are trained, as they are now, to be mixed with what they become.

    Parameters
    ----------
    model : Module
        Before its training. Parameters that require no gradient are left alone.
    share : float
        Of what they become, in [0, 1]: weights are ``(1 - share) * before + share * after``.

    References
    ----------
    Wortsman et al. 2022, "Robust Fine-Tuning of Zero-Shot Models", section 3, equation 1.
    """

    def __init__(self, model: nn.Module, share: float) -> None:
        self.share = share
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        # on the host: the second copy must not cost the device its memory
        self._pairs = [(parameter, parameter.detach().cpu().clone()) for parameter in trained]

    @torch.no_grad()
    def apply(self) -> None:
        """Mix, in place."""
        for parameter, before in self._pairs:
            parameter.copy_(torch.lerp(before, parameter.detach().cpu(), self.share))

    def scored(self, score: Callable[[], float]) -> Callable[[], float]:
        """Return `score` of the mixed weights, after which those in training go on as they were."""

        def of_mixture() -> float:
            with self._mixed():
                return score()

        return of_mixture

    @contextmanager
    def _mixed(self) -> Iterator[None]:
        in_training = [parameter.detach().cpu().clone() for parameter, _ in self._pairs]
        self.apply()
        try:
            yield
        finally:
            with torch.no_grad():
                for (parameter, _), weights in zip(self._pairs, in_training, strict=True):
                    parameter.copy_(weights)
