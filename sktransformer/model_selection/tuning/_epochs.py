"""The skorch callback behind pruning by epoch; apart, since skorch loads torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from skorch.callbacks import Callback


class EpochReporter(Callback):
    """Hands each epoch's net on.

    Parameters
    ----------
    receive : callable
        Takes the epoch (from 1) and the net.
    """

    def __init__(self, receive: Callable[[int, Any], None] | None) -> None:
        self.receive = receive

    def on_epoch_end(
        self, net: Any, dataset_train: Any = None, dataset_valid: Any = None, **kwargs: Any
    ) -> None:
        """Hand the epoch on."""
        if self.receive is not None:
            self.receive(len(net.history), net)

    def release(self) -> None:
        """Hold nothing any more."""
        self.receive = None
