"""A skorch net whose optimizer step runs in micro-batches under a token budget.

skorch keeps the loop, the callbacks and the history. Replaced are its batching (documents sorted by length inside the
optimizer batch that the user asked for), its loss (weighted, divided by the documents of the whole batch, so that the
step does not depend on how it was cut), and its habit of reading the loss back from the device at each step.
"""

from __future__ import annotations

import dis
from typing import Any

import numpy as np
import skorch
import torch
from torch import nn

from ..cpu.kernels import kernels
from ..devices import SMALLEST_BUDGET, is_out_of_memory
from ..errors import NonFiniteLossError, OutOfMemoryBackoffWarning, warn_user
from ..text.batches import Collator, Rows
from .callbacks import StopTraining
from .data import OptimizerBatches, TrainingData
from .groups import GroupBatches, GroupedData
from .schedules import fused_adamw, parameter_groups
from .steps import Step, SummedLosses, Work

Data = TrainingData | GroupedData

GPU_CHECK_EVERY = 50  # steps between two looks at the losses: each look waits for the device


class MicroBatchNet(skorch.NeuralNet):
    """One model, one objective, one collator; see the module's docstring.

    Parameters
    ----------
    module : nn.Module
        The model, on its device.
    criterion : callable
        The objective, which the step knows how to ask.
    step : Step
        How the gradient of an optimizer batch is made; by default that of one loss a window.
    collator : Collator
        How windows become a forward pass.
    token_budget : int
        Tokens of a micro-batch, halved when memory runs out.
    precision : torch.dtype
        Of the matrix products.
    weight_decay, layer_decay : float
        See `parameter_groups`.
    seed : int
        Of the order of documents.
    """

    warned_: bool

    def __init__(
        self,
        module: nn.Module,
        criterion: Any,
        *,
        step: Step | None = None,
        collator: Collator,
        token_budget: int,
        precision: torch.dtype,
        weight_decay: float,
        layer_decay: float,
        seed: int,
        **kwargs: Any,
    ) -> None:
        self.step = step
        self.collator = collator
        self.token_budget = token_budget
        self.precision = precision
        self.weight_decay = weight_decay
        self.layer_decay = layer_decay
        self.seed = seed
        super().__init__(
            module, criterion, optimizer=torch.optim.AdamW, train_split=None, verbose=0, **kwargs
        )

    @property
    def _default_callbacks(self) -> list[tuple[str, Any]]:
        """None: the run names those it wants, and none of them prints."""
        return []

    def initialize_criterion(self) -> MicroBatchNet:
        """Take the objective as it is: it is a plain function of logits and targets."""
        self.criterion_ = self.criterion
        return self

    def initialize_module(self) -> MicroBatchNet:
        """Take the model as it is."""
        self.module_ = self.module
        return self

    def initialize_optimizer(self, triggered_directly: bool | None = None) -> MicroBatchNet:
        """Build fused AdamW over the parameter groups."""
        groups = parameter_groups(self.module_, self.lr, self.weight_decay, self.layer_decay)
        self.optimizer_ = fused_adamw(groups, self.lr)
        return self

    def get_iterator(self, dataset: Data, training: bool = False) -> OptimizerBatches | GroupBatches:
        """Return the optimizer batches; skorch asks once a run, and each pass over them draws a new order."""
        return dataset.batches(self.batch_size, self.seed)

    def get_split_datasets(self, X: Data, y: Any = None, **fit_params: Any) -> tuple[Any, None]:
        """Keep what is given: the estimator has split off validation documents already."""
        self.data_ = X
        return X, None

    def run_single_epoch(
        self, iterator: Any, training: bool, prefix: str, step_fn: Any, **fit_params: Any
    ) -> None:
        """Run the optimizer steps of an epoch; on a GPU losses are read back once in a while, not at each step."""
        if iterator is None:
            return
        n_steps = 0
        losses: list[torch.Tensor] = []  # those that were not read back yet
        every = GPU_CHECK_EVERY if self.collator.device.type == "cuda" else 1
        for batch in iterator:
            self.notify("on_batch_begin", batch=batch, training=training)
            step = step_fn(batch, **fit_params)
            n_steps += 1
            losses.append(step["loss"].detach())
            self.history.record_batch(prefix + "_batch_size", len(batch[0]))
            if len(losses) == every or n_steps == len(iterator):
                self._record_losses(prefix, losses)
            self.notify("on_batch_end", batch=batch, training=training, **step)
        self.history.record(prefix + "_batch_count", n_steps)

    def _record_losses(self, prefix: str, losses: list[torch.Tensor]) -> None:
        """Write the newest losses into the history and drop them here; stop at one that is no number."""
        batches = self.history[-1]["batches"]
        values = torch.stack(losses).tolist()
        losses.clear()
        for i, value in enumerate(values, len(batches) - len(values)):
            batches[i][prefix + "_loss"] = value
            if not np.isfinite(value):
                raise NonFiniteLossError(
                    f"the loss became {value} at epoch {len(self.history)}, step {i + 1}; lower learning_rate, "
                    f'raise warmup_ratio, set max_grad_norm, or use precision="float32".'
                )

    def train_step_single(self, batch: tuple[Rows], **fit_params: Any) -> dict[str, torch.Tensor | None]:
        """Accumulate the gradients of one optimizer batch; on lack of memory halve the token budget and begin again."""
        self._set_training(True)
        before = self.token_budget
        while True:
            try:
                with kernels(self.collator.device):
                    step = self._accumulate(batch[0])
                break
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error) or self.token_budget // 2 < SMALLEST_BUDGET:
                    raise
            self._back_off()
        if self.token_budget < before:
            self._warn_once()
        return step

    def _accumulate(self, documents: Rows) -> dict[str, torch.Tensor | None]:
        step = SummedLosses() if self.step is None else self.step
        work = Work(
            self.module_, self.criterion_, self.data_, self.collator, self.token_budget, self.precision
        )
        return {"loss": step(work, documents), "y_pred": None}  # skorch hands both on; outputs are not kept

    def _back_off(self) -> None:
        self._zero_grad_optimizer()
        self.token_budget //= 2
        if self.collator.device.type == "cuda":
            torch.cuda.empty_cache()

    def _warn_once(self) -> None:
        """Say that memory was short: one warning a run, whatever the number of halvings."""
        if self.warned_:
            return
        self.warned_ = True
        warn_user(
            f"out of memory: continuing with micro-batches of {self.token_budget} tokens (same result, slower); "
            f"pass token_budget={self.token_budget} to start there.",
            OutOfMemoryBackoffWarning,
        )

    def run(self, data: Data) -> None:
        """Train for `max_epochs`.

        skorch's own `fit` swallows KeyboardInterrupt. Here only one that a callback raised to stop training (as
        skorch's EarlyStopping does) ends the run; the user's Ctrl-C goes on up.
        """
        self.initialize()
        self.warned_ = False
        self.notify("on_train_begin", X=data)
        try:
            self.fit_loop(data)
        except StopTraining:
            pass  # an ordinary end: the validation score has stopped rising
        except KeyboardInterrupt as error:
            if not _raised_by_callback(error):
                raise
        except KeyError as error:
            if "not found in history" not in str(error):
                raise
            known = [key for key in ("train_loss", "valid_score") if key in self.history[-1]]
            raise ValueError(
                f"a callback looks for a key that the history does not have ({error.args[0]}) "
                f"It has {known}; let the callback monitor one of them (valid_score needs early_stopping=True)."
            ) from error
        self.notify("on_train_end", X=data)


def _raised_by_callback(error: BaseException) -> bool:
    """Whether a `raise` statement of a skorch callback is where `error` comes from.

    A Ctrl-C that arrives while such a callback runs has its frame too, but interrupts another instruction.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or not str(trace.tb_frame.f_globals.get("__name__", "")).startswith("skorch.callbacks"):
        return False
    return dis.opname[trace.tb_frame.f_code.co_code[trace.tb_lasti]] == "RAISE_VARARGS"
