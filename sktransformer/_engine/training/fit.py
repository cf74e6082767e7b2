"""One training run: a model, encoded documents and targets in; trained weights and a history out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from skorch.callbacks import EpochTimer, GradientNormClipping, LRScheduler, PassthroughScoring
from torch.optim.lr_scheduler import LambdaLR
from transformers import PreTrainedModel

from ...nn.schedules import schedule
from ..cpu.kernels import kernels_twice
from ..errors import NonFiniteLossError
from ..text.batches import Collator
from .callbacks import ProgressBar, StopWhenDue, ValidationScoring
from .mixing import Mixture
from .net import Data, MicroBatchNet
from .steps import Step

HISTORY = ("epoch", "train_loss", "valid_score", "learning_rate", "dur")


@dataclass(frozen=True)
class TrainingSettings:
    """Numbers of a run; the names are the estimators' parameters."""

    max_epochs: int
    batch_size: int
    learning_rate: float
    lr_schedule: str
    warmup_ratio: float
    weight_decay: float
    layer_decay: float
    max_grad_norm: float | None
    token_budget: int
    precision: torch.dtype
    gradient_checkpointing: bool
    n_iter_no_change: int
    seed: int
    verbose: int
    mixing: float = 1.0


@dataclass(frozen=True)
class TrainingResult:
    """What a run leaves: a record an epoch, and the epoch whose weights stand."""

    history: list[dict[str, Any]]
    best_epoch: int


def train(
    model: PreTrainedModel,
    objective: Any,
    data: Data,
    collator: Collator,
    settings: TrainingSettings,
    *,
    step: Step | None = None,
    score: Callable[[], float] | None = None,
    callbacks: Sequence[Any] = (),
) -> TrainingResult:
    """Train `model` in place.

    Parameters
    ----------
    model : PreTrainedModel
        On the collator's device. Parameters that require no gradient stay as they are.
    objective : Objective or BatchObjective
        One loss a window, or one loss a batch.
    data : TrainingData or GroupedData
        Documents, targets, weights.
    collator : Collator
        Packed or padded batches.
    settings : TrainingSettings
        The numbers.
    step : Step, optional
        How the gradient of a batch is made; None suits an `Objective`.
    score : callable, optional
        Validation score of the current weights. Given, the best epoch's weights are restored at the end and training
        stops after `n_iter_no_change` epochs without a better one. Weights that will be mixed are scored mixed.
    callbacks : sequence
        skorch callbacks, notified after our own.

    Raises
    ------
    NonFiniteLossError
        When the loss is no number, or the last step left weights that are none.
    """
    n_steps = settings.max_epochs * len(data.batches(settings.batch_size, settings.seed))
    mixture = Mixture(model, settings.mixing) if settings.mixing < 1 else None
    if mixture is not None and score is not None:
        score = mixture.scored(score)
    validation = None if score is None else ValidationScoring(score, settings.n_iter_no_change)
    bar = ProgressBar(n_steps, settings.max_epochs) if settings.verbose else None
    last = [] if validation is None else [("stop", StopWhenDue(validation))]
    all_callbacks = [*_own(settings, n_steps, validation, bar), *callbacks, *last]
    net = _net(model, objective, step, collator, settings, all_callbacks)
    try:
        with _checkpointing(model) if settings.gradient_checkpointing else nullcontext():
            net.run(data)
    finally:
        if bar is not None:
            bar.close()
        model.eval()
        model.zero_grad(set_to_none=True)
    if validation is not None:
        validation.restore(model)
    if mixture is not None:
        mixture.apply()
    _require_finite(model)
    best = validation.best_epoch_ if validation is not None else len(net.history)
    return TrainingResult(_records(net.history), best)


@contextmanager
def _checkpointing(model: PreTrainedModel) -> Iterator[None]:
    """Compute layers anew in the backward pass; Transformers 5.24 calls this activation checkpointing."""
    if not model.supports_gradient_checkpointing:
        raise ValueError(
            f"gradient_checkpointing=True, but Transformers can't do it for {model.config.model_type} models; "
            f"pass False."
        )
    new = hasattr(model, "activation_checkpointing_enable")
    name = "activation_checkpointing" if new else "gradient_checkpointing"
    caches = getattr(model.config, "use_cache", False)
    if caches:  # of no use in training, and Transformers would say on stderr that it switches it off
        model.config.use_cache = False
    options: dict[str, Any] = {"use_reentrant": False}
    if model.device.type == "cpu":
        options["context_fn"] = kernels_twice
    getattr(model, f"{name}_enable")(options)
    try:
        yield
    finally:
        getattr(model, f"{name}_disable")()
        model.disable_input_require_grads()  # a hook that enabling sets and disabling leaves
        if caches:
            model.config.use_cache = caches


def _require_finite(model: PreTrainedModel) -> None:
    """Look at the weights once: what the last step breaks shows in no loss."""
    whole = [parameter.isfinite().all() for parameter in model.parameters()]
    if not bool(torch.stack(whole).all()):
        raise NonFiniteLossError(
            "the last step left weights that are NaN or infinite; lower learning_rate, raise warmup_ratio, "
            "or set max_grad_norm."
        )


def _own(
    settings: TrainingSettings, n_steps: int, validation: ValidationScoring | None, bar: ProgressBar | None
) -> list[tuple[str, Any]]:
    factor = schedule(settings.lr_schedule, n_steps, settings.warmup_ratio)
    own: list[tuple[str, Any]] = [
        ("timer", EpochTimer()),
        ("train_loss", PassthroughScoring(name="train_loss", on_train=True)),
        (
            "lr",
            LRScheduler(LambdaLR, lr_lambda=factor, step_every="batch", event_name="learning_rate"),
        ),
    ]
    if settings.max_grad_norm is not None:
        own.append(("clip", GradientNormClipping(gradient_clip_value=settings.max_grad_norm)))
    if bar is not None:
        own.append(("bar", bar))
    if validation is not None:
        own.append(("validation", validation))
    return own


def _net(
    model: PreTrainedModel,
    objective: Any,
    step: Step | None,
    collator: Collator,
    settings: TrainingSettings,
    callbacks: list[Any],
) -> MicroBatchNet:
    return MicroBatchNet(
        model,
        objective,
        step=step,
        collator=collator,
        token_budget=settings.token_budget,
        precision=settings.precision,
        weight_decay=settings.weight_decay,
        layer_decay=settings.layer_decay,
        seed=settings.seed,
        lr=settings.learning_rate,
        max_epochs=settings.max_epochs,
        batch_size=settings.batch_size,
        device=str(collator.device),
        callbacks=callbacks,
    )


def _records(history: Any) -> list[dict[str, Any]]:
    """Return one dict an epoch, batches left out."""
    records = []
    for row in history:
        rates = [batch["learning_rate"] for batch in row["batches"] if "learning_rate" in batch]
        # which epoch is best is `best_epoch`'s to say: ties go to the later one, which skorch's flags do not know
        left_out = ("batches", "train_batch_count", "train_loss_best", "valid_score_best")
        record = {key: value for key, value in row.items() if key not in left_out}
        record["learning_rate"] = rates[-1] if rates else float("nan")
        records.append({key: record[key] for key in [*HISTORY, *record] if key in record})
    return records
