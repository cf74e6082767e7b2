"""What estimators that train share: the parameters of a run, the validation split, and the run itself."""

from __future__ import annotations

import copy
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from .._engine.checkpoints.loading import Checkpoint, load_checkpoint
from .._engine.checkpoints.sources import resolve
from .._engine.checkpoints.structure import freeze
from .._engine.checkpoints.writing import write_checkpoint
from .._engine.compat import check_columns, n_rows, sample_weights
from .._engine.devices import draw_seed, resolve_device, resolve_precision, seeded
from .._engine.errors import say_once
from .._engine.text.batches import Collator
from .._engine.text.documents import Documents
from .._engine.text.encoding import TextEncoder
from .._engine.training.callbacks import Introduction, named_callbacks
from .._engine.training.data import DocumentTargets, Examples, TrainingData, normalized_weights
from .._engine.training.fit import TrainingResult, TrainingSettings, train
from .._engine.training.net import Data
from .._engine.training.steps import Step
from .._engine.validation import check_choice, check_flag, check_number
from ..nn.schedules import schedule
from ._base import TransformerEstimator, text_encoder
from ._holdout import Parts, validation_score


class TrainedTransformer(TransformerEstimator, ABC):
    """An estimator whose `fit` trains; not to be used by itself.

    A task says what its targets are, which head they need, what the loss is and how documents are held out (the
    abstract methods at the end); how a fit goes is written here, once.
    """

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
    scoring: Any
    validation_fraction: float
    n_iter_no_change: int
    gradient_checkpointing: bool
    warm_start: bool
    callbacks: Any
    random_state: Any

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
        check_number("verbose", self.verbose, low=0, integer=True)
        if isinstance(self.scoring, str):
            check_choice("scoring", self.scoring, self._scorer_names())
        elif self.scoring is not None and not callable(self.scoring):
            raise TypeError(
                f"scoring must be a scorer's name or a callable, got {type(self.scoring).__name__}."
            )
        named_callbacks(self.callbacks)
        if self.freeze is not None and (
            isinstance(self.freeze, bool) or not isinstance(self.freeze, (int, np.integer))
        ):
            check_choice("freeze", self.freeze, ("embeddings", "all"))

    # -- the five steps of fit --------------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        documents, targets, weights = self._validate(X, y, sample_weight)
        seed = draw_seed(self.random_state)
        with seeded(seed, resolve_device(self.device)), say_once():
            training, held = self._split(targets, seed)
            targets = self._prepare_targets(targets, training, weights)
            checkpoint = self._load(documents, targets)
            encoder = text_encoder(checkpoint)
            candidate = self._candidate(checkpoint, encoder, documents, targets)
            examples = candidate._examples(
                encoder, documents, targets, candidate.max_length_, (training, held)
            )
            score = self._scoring(candidate, documents.take(held), targets.original[held])
            chosen = targets.take(training)
            of_rows = self._row_weights(chosen, None if weights is None else weights[training])
            weighted = normalized_weights(of_rows, len(training))
            data = self._training_data(examples, chosen, weighted)
            result = self._run(checkpoint, self._objective(targets), data, seed, score, candidate)
            self._check_outcome(candidate, documents, targets)
        self._record(X, documents, checkpoint, encoder, targets, result)
        return self

    def _validate(self, X: Any, y: Any, sample_weight: Any) -> tuple[Documents, Any, Any]:
        self._validate_training()
        documents = self._documents(X)
        if y is not None:
            check_consistent_length(documents.first, range(n_rows(y)))
        targets = self._as_targets(documents, y)
        self._row_weights(targets, None)  # class weights that do not fit the labels show before training
        return documents, targets, sample_weights(sample_weight, len(documents))

    def _load(self, documents: Documents, targets: Any) -> Checkpoint:
        warm = self._warm_checkpoint()
        if warm is not None:
            self._require_same(targets)
            return warm
        return self._load_checkpoint(
            documents,
            dropout=self.dropout,
            attention_dropout=self.attention_dropout,
            config_changes=self._head_config(targets),
        )

    def _split(self, targets: Any, seed: int) -> Parts:
        """Return the rows to train on and those held out."""
        if not self.early_stopping:
            return np.arange(len(targets.original)), np.zeros(0, dtype=np.int64)
        return self._hold_out(targets, seed)

    def _examples(
        self,
        encoder: TextEncoder,
        documents: Documents,
        targets: Any,
        limit: int,
        parts: Parts,
    ) -> Examples:
        """Encode the rows to train on, with their targets; those held out are looked at for one warning of all cuts."""
        encoded, _ = self._encode_parts(encoder, documents, limit, parts)
        return Examples(encoded, DocumentTargets(targets.take(parts[0]).targets))

    def _training_data(self, examples: Examples, targets: Any, weights: torch.Tensor) -> Data:
        """Return what the run eats: the encoded rows to train on, with their targets and weights."""
        return TrainingData(examples.encoded, examples.targets, weights, examples.shares, examples.more)

    def _settings(self, collator: Collator, seed: int) -> TrainingSettings:
        return TrainingSettings(
            max_epochs=int(self.max_epochs),
            batch_size=int(self.batch_size),
            learning_rate=float(self.learning_rate),
            lr_schedule=self.lr_schedule,
            warmup_ratio=float(self.warmup_ratio),
            weight_decay=float(self.weight_decay),
            layer_decay=float(self.layer_decay),
            max_grad_norm=self.max_grad_norm,
            token_budget=self._budget(collator, training=True),
            precision=resolve_precision(self.precision, collator.device),
            gradient_checkpointing=bool(self.gradient_checkpointing),
            n_iter_no_change=int(self.n_iter_no_change),
            seed=seed,
            verbose=int(self.verbose),
        )

    def _warm_checkpoint(self) -> Checkpoint | None:
        """Return a copy of the fitted model to go on from; None without `warm_start` or an earlier fit."""
        if not (self.warm_start and hasattr(self, "model_")):
            return None
        if self.warm_key_ != self._warm_key():
            raise ValueError(
                "warm_start=True goes on from the fitted model, but model, dropout or attention_dropout was changed "
                "since; pass warm_start=False, or set them back."
            )
        # a copy, so that a failed fit leaves the fitted model as it was
        return Checkpoint(copy.deepcopy(self.model_), self.tokenizer_, self.packable_)

    def _warm_key(self) -> str:
        """What a warm start can't change, as text: it is part of the model that was built."""
        return f"{self.model} {self.dropout} {self.attention_dropout}"

    def _run(
        self,
        checkpoint: Checkpoint,
        objective: Any,
        data: Data,
        seed: int,
        score: Callable[[], float] | None,
        candidate: Self,
    ) -> TrainingResult:
        device = resolve_device(self.device)
        checkpoint.model.to(device)  # type: ignore[arg-type]  # the stubs lose `self` there
        trainable = [parameter for parameter in checkpoint.model.parameters() if parameter.requires_grad]
        freeze(checkpoint.model, self.freeze)
        collator = self._collator(checkpoint, device)
        try:
            return train(
                checkpoint.model,
                objective,
                data,
                collator,
                self._settings(collator, seed),
                step=self._step(checkpoint),
                score=score,
                callbacks=[("introduction", Introduction(candidate)), *named_callbacks(self.callbacks)],
            )
        finally:  # a later warm start may freeze something else
            for parameter in trainable:
                parameter.requires_grad_(True)

    def _record_training(self, result: TrainingResult) -> None:
        """Write what every trained estimator has."""
        history = pd.DataFrame(result.history)
        earlier = getattr(self, "history_", None) if self.warm_start else None
        offset = 0 if earlier is None else len(earlier)  # epochs count on after a warm start
        history["epoch"] += offset
        self.history_ = history if earlier is None else pd.concat([earlier, history], ignore_index=True)
        self.best_epoch_ = result.best_epoch + offset
        self.n_epochs_ = len(result.history)

    def _candidate(
        self, checkpoint: Checkpoint, encoder: TextEncoder, documents: Documents, targets: Any
    ) -> Self:
        """Return a fitted estimator that shares the weights in training: scorers, checks and callbacks ask it."""
        candidate = type(self)(**self.get_params(deep=False))
        candidate._record_targets(targets)
        candidate._record_checkpoint(checkpoint, encoder, documents)
        return candidate

    def _scoring(
        self, candidate: Self, held: Documents, expected: npt.NDArray[Any]
    ) -> Callable[[], float] | None:
        """Return the validation score of the weights in training, as a function of nothing; None without a split."""
        if not len(expected):
            return None
        scorer, rows = self._scorer(candidate), held.rows()
        return lambda: validation_score(scorer, self.scoring, candidate, rows, expected)

    def _scorer_names(self) -> Sequence[str]:
        """Return the names that `scoring` may be."""
        names: list[str] = get_scorer_names()
        return names

    def _scorer(self, candidate: Any) -> Any:
        if self.scoring is None:
            return self._default_scorer()
        return check_scoring(candidate, scoring=self.scoring)

    def _record(
        self,
        X: Any,
        documents: Documents,
        checkpoint: Checkpoint,
        encoder: TextEncoder,
        targets: Any,
        result: TrainingResult,
    ) -> None:
        """Write all that was learned, at once: what stands before and after is a whole estimator."""
        after = self._shadow()
        check_columns(after, X, documents.width, reset=True)
        after.warm_key_ = self._warm_key()
        after._record_training(result)
        after._record_targets(targets)
        after._record_checkpoint(checkpoint, encoder, documents)
        self.__dict__ = after.__dict__

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Write the fitted model and tokenizer as a folder that Transformers' Auto classes load.

        Parameters
        ----------
        folder : path
            Made if it does not exist. Labels are written into the config as texts.

        Raises
        ------
        NotFittedError
            Before `fit`.
        TypeError
            When `folder` is no path.
        ValueError
            When `folder` is empty.
        OSError
            When `folder` is a file, or the disk is full or not writable; the estimator and what stood in `folder` are
            as before.
        """
        check_is_fitted(self, "model_")
        write_checkpoint(self._fitted_checkpoint(), folder)

    @classmethod
    def from_pretrained(cls, model: Any, **parameters: Any) -> Self:
        """Return a fitted estimator from a checkpoint that has a trained head of this task; nothing is trained.

        Parameters
        ----------
        model : path or str
            A folder (for instance one that `save_pretrained` wrote), a hub id or a bundled name.
        **parameters
            Parameters of the estimator.

        Returns
        -------
        estimator
            Fitted, of this class.

        Raises
        ------
        WrongTaskError
            When the checkpoint has no trained head of this task.
        """
        return cls(model, **parameters)._adopt()

    def _adopt(self) -> Self:
        """Become fitted with the checkpoint's own head."""
        self._validate_training()
        checkpoint = load_checkpoint(
            resolve(self.model, progress=bool(self.verbose)),
            self._head,
            dropout=self.dropout,
            attention_dropout=self.attention_dropout,
            need_head=True,
        )
        self._adopt_head(checkpoint.model.config)
        self.warm_key_ = self._warm_key()
        self._record_checkpoint(checkpoint, text_encoder(checkpoint), Documents([]))
        self.pairs_ = None  # a checkpoint does not say whether it was trained on pairs
        return self

    # -- what a task says -------------------------------------------------------------------------------------------

    @abstractmethod
    def _as_targets(self, documents: Documents, y: Any) -> Any:
        """Read `y`, beside the documents that it belongs to, into `Targets`, or say what is wrong with it."""

    @abstractmethod
    def _head_config(self, targets: Any) -> dict[str, Any]:
        """Return the fields of the checkpoint's config that shape the head."""

    @abstractmethod
    def _objective(self, targets: Any) -> Any:
        """Return the loss: an `Objective`, or another that `_step` suits."""

    @abstractmethod
    def _hold_out(self, targets: Any, seed: int) -> Parts:
        """Return the rows to train on and those that decide when to stop; `held_out` draws them out of strata."""

    @abstractmethod
    def _require_same(self, targets: Any) -> None:
        """Raise when a warm start is given other targets than the first fit had."""

    @abstractmethod
    def _record_targets(self, targets: Any) -> None:
        """Write what was learned from `y`."""

    @abstractmethod
    def _adopt_head(self, config: Any) -> None:
        """Write what `_record_targets` would, from the config of a checkpoint with a trained head."""

    @abstractmethod
    def _default_scorer(self) -> Any:
        """Return the scorer of the held-out documents when `scoring` is None."""

    def _step(self, checkpoint: Checkpoint) -> Step | None:
        """Return how the gradient of a batch is made; None is a sum over documents."""
        return None

    def _prepare_targets(
        self, targets: Any, training: npt.NDArray[np.int64], weights: npt.NDArray[np.float64] | None
    ) -> Any:
        """Return the targets with what is learned from those of the rows to train on, before anything is loaded."""
        return targets

    def _row_weights(
        self, targets: Any, weights: npt.NDArray[np.float64] | None
    ) -> npt.NDArray[np.float64] | None:
        """Return the weight of each document, from the user's weights and from its target."""
        return weights

    def _check_outcome(self, candidate: Self, documents: Documents, targets: Any) -> None:
        """Warn of a training that ended badly."""
