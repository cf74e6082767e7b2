"""What estimators that train share: the parameters of a run, the validation split, and the run itself."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from .._engine.checkpoints.loading import Checkpoint
from .._engine.checkpoints.structure import freeze, max_tokens
from .._engine.devices import resolve_device, resolve_precision
from .._engine.text.encoding import Encoded
from .._engine.training.data import TrainingData
from .._engine.training.fit import TrainingResult, TrainingSettings, train
from .._engine.training.losses import Objective
from .._engine.training.schedules import schedule
from .._engine.validation import check_choice, check_flag, check_number
from ._base import TransformerEstimator


class TrainedTransformer(TransformerEstimator):
    """An estimator whose `fit` trains; not to be used by itself."""

    max_epochs: int
    batch_size: int
    learning_rate: float
    lr_schedule: str
    warmup_ratio: float
    weight_decay: float
    layer_decay: float
    freeze: Any
    dropout: float | None
    attention_dropout: float | None
    max_grad_norm: float | None
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int
    gradient_checkpointing: bool
    warm_start: bool
    callbacks: Any
    random_state: Any
    verbose: int

    def _validate_training(self) -> None:
        """Check the parameters of a training run, before anything is loaded."""
        self._validate_common()
        for name in ("max_epochs", "batch_size", "n_iter_no_change"):
            check_number(name, getattr(self, name), low=1, integer=True)
        for name in ("learning_rate", "weight_decay"):
            check_number(name, getattr(self, name), low=0)
        schedule(self.lr_schedule, 1, self.warmup_ratio)
        check_number("layer_decay", self.layer_decay, low=0, high=1, open_low=True)
        check_number(
            "validation_fraction", self.validation_fraction, low=0, high=1, open_low=True, open_high=True
        )
        if self.max_grad_norm is not None:
            check_number("max_grad_norm", self.max_grad_norm, low=0, open_low=True)
        for name in ("dropout", "attention_dropout"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), low=0, high=1, open_high=True)
        for name in ("early_stopping", "warm_start", "gradient_checkpointing"):
            check_flag(name, getattr(self, name))
        if self.freeze is not None and (
            isinstance(self.freeze, bool) or not isinstance(self.freeze, (int, np.integer))
        ):
            check_choice("freeze", self.freeze, ("embeddings", "all"))

    def _settings(self, device: torch.device, seed: int) -> TrainingSettings:
        return TrainingSettings(
            max_epochs=int(self.max_epochs),
            batch_size=int(self.batch_size),
            learning_rate=float(self.learning_rate),
            lr_schedule=self.lr_schedule,
            warmup_ratio=float(self.warmup_ratio),
            weight_decay=float(self.weight_decay),
            layer_decay=float(self.layer_decay),
            max_grad_norm=self.max_grad_norm,
            token_budget=self._budget(device, training=True),
            precision=resolve_precision(self.precision, device),
            gradient_checkpointing=bool(self.gradient_checkpointing),
            n_iter_no_change=int(self.n_iter_no_change),
            seed=seed,
            verbose=int(self.verbose),
        )

    def _warm_checkpoint(self) -> Checkpoint | None:
        """Return a copy of the fitted model to go on from; None without `warm_start` or an earlier fit."""
        if not (self.warm_start and hasattr(self, "model_")):
            return None
        # a copy, so that a failed fit leaves the fitted model as it was
        return Checkpoint(copy.deepcopy(self.model_), self.tokenizer_, self.packable_)

    def _run(
        self,
        checkpoint: Checkpoint,
        objective: Objective,
        data: TrainingData,
        seed: int,
        score: Callable[[], float] | None,
    ) -> TrainingResult:
        device = resolve_device(self.device)
        checkpoint.model.to(device)  # type: ignore[arg-type]  # the stubs lose `self` there
        trainable = [parameter for parameter in checkpoint.model.parameters() if parameter.requires_grad]
        freeze(checkpoint.model, self.freeze)
        try:
            return train(
                checkpoint.model,
                objective,
                data,
                self._collator(checkpoint, device),
                self._settings(device, seed),
                score=score,
                callbacks=[(f"user_{i}", callback) for i, callback in enumerate(_listed(self.callbacks))],
            )
        finally:  # a later warm start may freeze something else
            for parameter in trainable:
                parameter.requires_grad_(True)

    def _limit(self, checkpoint: Checkpoint) -> int | None:
        return max_tokens(checkpoint.model.config, checkpoint.tokenizer)

    def _record_training(self, result: TrainingResult) -> None:
        """Write what every trained estimator has."""
        history = pd.DataFrame(result.history)
        earlier = getattr(self, "history_", None) if self.warm_start else None
        offset = 0 if earlier is None else len(earlier)  # epochs count on after a warm start
        history["epoch"] += offset
        self.history_ = history if earlier is None else pd.concat([earlier, history], ignore_index=True)
        self.best_epoch_ = result.best_epoch + offset
        self.n_epochs_ = len(result.history)


def validation_score(
    scorer: Callable[..., float], scoring: Any, candidate: Any, encoded: Encoded, expected: npt.NDArray[Any]
) -> float:
    """Score the held-out documents; a scorer that is not defined on them says what to do about it."""
    fault = "it is NaN"
    try:
        score = float(scorer(candidate, encoded, expected))
        if not np.isnan(score):
            return score
        cause = None
    except ValueError as error:
        fault, cause = str(error), error
    raise ValueError(
        f"scoring={scoring!r} can't be computed on the {len(encoded)} documents held out for early stopping, with "
        f"labels {np.unique(expected).tolist()}: {fault}; raise validation_fraction or choose another scoring."
    ) from cause


def _listed(callbacks: Any) -> Sequence[Any]:
    return () if callbacks is None else list(callbacks)


def held_out(
    labels: npt.NDArray[np.int64], names: npt.NDArray[Any], fraction: float, seed: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Split rows into training and validation, each class in proportion, and no class lost to the training part.

    scikit-learn's stratified splitters raise when a class has one member, or when the validation part is smaller than
    the number of classes; here a class with one member stays in the training part, with one warning.

    Returns
    -------
    training, validation : int64 arrays of rows, each in order
    """
    random = np.random.default_rng(seed)
    shuffled = random.permutation(len(labels))
    counts = np.bincount(labels, minlength=len(names))
    seen = np.zeros(len(names))
    ranks = np.empty(len(labels))
    for (
        row
    ) in shuffled:  # a row's rank within its class, as a fraction: sorting by it takes classes in proportion
        ranks[row] = (seen[labels[row]] + 0.5) / counts[labels[row]] if counts[labels[row]] > 1 else np.inf
        seen[labels[row]] += 1
    wanted = max(1, round(fraction * len(labels)))
    order = shuffled[np.argsort(ranks[shuffled], kind="stable")]
    last = ranks[order] > 1 - 1 / np.maximum(
        counts[labels[order]], 1
    )  # each class's last row stays in training
    validation = np.sort(order[~last][:wanted])
    alone = [str(name) for name, count in zip(names, counts, strict=True) if count == 1]
    if not len(validation):
        raise ValueError(
            "early_stopping=True needs a class with two members to hold one out; pass more rows or early_stopping=False."
        )
    if alone:
        warnings.warn(
            f"{len(alone)} class(es) with a single member stay out of validation: {', '.join(alone)}.",
            stacklevel=4,
        )
    return np.setdiff1d(np.arange(len(labels)), validation), validation
