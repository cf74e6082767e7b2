"""Estimators whose checkpoint works as it is: a language model writes without a `fit`."""

from __future__ import annotations

import threading
from abc import ABC
from typing import Any

from sklearn.utils.validation import check_is_fitted

from .._engine.devices import resolve_device, seeded
from ._training import TrainedTransformer

_ADOPTING = threading.RLock()


class WritesUnfitted(TrainedTransformer, ABC):
    """A trained estimator that loads its checkpoint at the first use where nothing was fitted."""

    def _ready(self) -> None:
        """Load the checkpoint where nothing was fitted: it writes already. Models from scratch must be fitted."""
        if hasattr(self, "history_") or not self._is_pretrained():
            check_is_fitted(self, "model_")
            return
        with _ADOPTING:
            key = self._warm_key()
            # an estimator in training has a model, and no key yet
            if not (hasattr(self, "model_") and getattr(self, "warm_key_", key) == key):
                with seeded(0, resolve_device(self.device)):  # one at a time: see `Prompted._fit`
                    self.__dict__ = self._shadow()._adopt().__dict__

    def _is_pretrained(self) -> bool:
        return isinstance(self.model, str) or not hasattr(self.model, "to_dict")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = not self._is_pretrained()
        return tags
