"""skorch callbacks of our own: validation with the best weights kept, and the progress bar."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import skorch
import torch
from skorch.callbacks import Callback
from tqdm.auto import tqdm


class StopTraining(Exception):
    """Raised when the validation score has stopped rising."""


class ValidationScoring(Callback):
    """Score each epoch on held-out documents, keep the best weights in memory, say when to stop.

    Parameters
    ----------
    score : callable
        Returns the validation score of the current weights; greater is better.
    n_iter_no_change : int
        Epochs without a better score before training stops.
    """

    def __init__(self, score: Callable[[], float], n_iter_no_change: int) -> None:
        self.score = score
        self.n_iter_no_change = n_iter_no_change

    def on_train_begin(self, net: skorch.NeuralNet, X: Any = None, y: Any = None, **kwargs: Any) -> None:
        """Forget earlier runs."""
        self.best_score_ = -np.inf
        self.best_epoch_ = 0
        self.risen_at_ = 0
        self.due_ = False
        self.best_weights_: dict[str, torch.Tensor] = {}

    def on_epoch_end(
        self, net: skorch.NeuralNet, dataset_train: Any = None, dataset_valid: Any = None, **kwargs: Any
    ) -> None:
        """Score, remember, and note whether it is time to stop."""
        net.module_.eval()
        score = float(self.score())
        epoch = len(net.history)
        rank = -np.inf if np.isnan(score) else score  # an undefined score is worse than any
        better = rank > self.best_score_ or not self.best_weights_
        net.history.record("valid_score", score)
        net.history.record("valid_score_best", better)
        if better:
            self.best_score_, self.risen_at_ = rank, epoch
        # small held-out parts tie often, and a longer trained tie is surer of itself
        if rank >= self.best_score_:
            self.best_epoch_ = epoch
            state = net.module_.state_dict()
            # a copy on the host: the best epoch must not cost the device a second model
            self.best_weights_ = {name: tensor.detach().cpu().clone() for name, tensor in state.items()}
        self.due_ = epoch - self.risen_at_ >= self.n_iter_no_change

    def restore(self, module: torch.nn.Module) -> None:
        """Put the best weights back."""
        if self.best_weights_:
            module.load_state_dict(self.best_weights_)
            self.best_weights_ = {}


class StopWhenDue(Callback):
    """Stop when `ValidationScoring` found nothing better; notified last, so that all callbacks have seen the epoch."""

    def __init__(self, validation: ValidationScoring) -> None:
        self.validation = validation

    def on_epoch_end(
        self, net: skorch.NeuralNet, dataset_train: Any = None, dataset_valid: Any = None, **kwargs: Any
    ) -> None:
        """Stop if it is time."""
        if self.validation.due_:
            raise StopTraining


class Introduction(Callback):
    """Gives the net an `estimator_`: a net knows tensors, and a callback that reads texts needs somebody to ask.

    Parameters
    ----------
    estimator : object
        Predicts with the weights in training.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def on_train_begin(self, net: skorch.NeuralNet, X: Any = None, y: Any = None, **kwargs: Any) -> None:
        """Introduce the estimator."""
        net.estimator_ = self.estimator


class ProgressBar(Callback):
    """One tqdm bar a fit: epoch, step, loss, validation score, time left."""

    def __init__(self, n_steps: int, n_epochs: int) -> None:
        self.n_steps = n_steps
        self.n_epochs = n_epochs

    def on_train_begin(self, net: skorch.NeuralNet, X: Any = None, y: Any = None, **kwargs: Any) -> None:
        """Open the bar."""
        self.bar_ = tqdm(total=self.n_steps, unit="step", dynamic_ncols=True)

    def on_batch_end(
        self, net: skorch.NeuralNet, batch: Any = None, training: bool = False, **kwargs: Any
    ) -> None:
        """Advance by a step, with the newest loss that was read back."""
        shown = {}
        batches = reversed(net.history[-1]["batches"])
        newest = next((b["train_loss"] for b in batches if "train_loss" in b), None)
        if newest is not None:
            shown["loss"] = f"{newest:.3f}"
        if len(net.history) > 1 and "valid_score" in net.history[-2]:
            shown["valid"] = f"{net.history[-2]['valid_score']:.3f}"
        self.bar_.set_description(f"epoch {len(net.history)}/{self.n_epochs}")
        self.bar_.set_postfix(shown, refresh=False)
        self.bar_.update()

    def on_train_end(self, net: skorch.NeuralNet, X: Any = None, y: Any = None, **kwargs: Any) -> None:
        """Close the bar."""
        self.close()

    def close(self) -> None:
        """Close the bar, also after an error."""
        if hasattr(self, "bar_"):
            self.bar_.close()


def named_callbacks(callbacks: Any) -> list[tuple[str, Any]]:
    """Give names to skorch callbacks, which come as instances, classes, or pairs of a name and one of these."""
    if callbacks is None:
        return []
    if not isinstance(callbacks, (list, tuple)):
        raise TypeError(
            f"callbacks must be a list of skorch callbacks, got {type(callbacks).__name__}; put it into a list."
        )
    named = []
    for i, given in enumerate(callbacks):
        name, callback = given if isinstance(given, tuple) and len(given) == 2 else (f"user_{i}", given)
        kind = callback if isinstance(callback, type) else type(callback)
        if not issubclass(kind, Callback):
            raise TypeError(f"callbacks[{i}] must be a skorch callback, got {type(callback).__name__}.")
        named.append((str(name), callback))
    return named
