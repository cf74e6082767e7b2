"""Run a model over encoded documents: longest first, under a token budget, one output row a window, or a token."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from tqdm.auto import tqdm
from transformers import PreTrainedModel

from ..cpu.kernels import computing
from ..devices import SMALLEST_BUDGET, is_out_of_memory
from ..errors import OutOfMemoryBackoffWarning, require_numbers, warn_user
from ..text.batches import Batch, Collator, Rows, plan, token_positions
from ..text.windows import Encoded

Reader = Callable[[PreTrainedModel, Batch], torch.Tensor]
FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Passes:
    """How a model is run over windows.

    Parameters
    ----------
    model : PreTrainedModel
        In evaluation mode, on the collator's device.
    collator : Collator
        Packed or padded batches.
    token_budget : int
        Tokens of a batch; halved, with one warning, when memory runs out.
    precision : torch.dtype
        Of the matrix products.
    progress : bool
        Show a bar that counts windows.
    """

    model: PreTrainedModel
    collator: Collator
    token_budget: int
    precision: torch.dtype
    progress: bool = False

    def run(self, encoded: Encoded, read: Reader) -> Iterator[tuple[Rows, torch.Tensor]]:
        """Yield the windows of each batch with what `read` made of them, longest windows first."""
        lengths, budget = encoded.lengths, self.token_budget
        pending = plan(np.arange(len(lengths)), lengths, budget, self.collator.layout)
        with tqdm(total=len(lengths), unit="window", dynamic_ncols=True, disable=not self.progress) as bar:
            while pending:
                windows = pending.pop(0)
                try:
                    with computing(self.collator.device, self.precision):
                        rows = read(self.model, self.collator.batch(encoded, windows)).float()
                except (RuntimeError, MemoryError) as error:
                    if not is_out_of_memory(error) or len(windows) == 1 or budget // 2 < SMALLEST_BUDGET:
                        raise
                    budget //= 2
                    pending = plan(np.concatenate([windows, *pending]), lengths, budget, self.collator.layout)
                else:
                    yield windows, rows
                    bar.update(len(windows))
        if budget < self.token_budget:
            _warn(budget)  # now, when the budget that fits is known


def forward(passes: Passes, encoded: Encoded, read: Reader) -> FloatArray:
    """Return the row (n_windows, ...) that `read` gives for each window, in the order of `encoded`, as float32."""
    order, rows = zip(*passes.run(encoded, read), strict=True)
    return _in_order(np.concatenate(order), torch.cat(rows))


def forward_tokens(passes: Passes, encoded: Encoded, read: Reader) -> FloatArray:
    """Return the row (n_tokens, ...) that `read` gives for each token, aligned with ``encoded.ids``, as float32.

    `read` returns a batch's rows as `Batch.flat` lays them.
    """
    order, rows = zip(*passes.run(encoded, read), strict=True)
    windows = np.concatenate(order)
    return _in_order(token_positions(encoded.starts[windows], encoded.lengths[windows]), torch.cat(rows))


def _in_order(places: Rows, rows: torch.Tensor) -> FloatArray:
    stacked = rows.cpu().numpy()
    require_numbers(not np.isnan(stacked).any())
    restored = np.empty_like(stacked)
    restored[places] = stacked
    return restored


def _warn(token_budget: int) -> None:
    warn_user(
        f"out of memory: continued with batches of at most {token_budget} tokens (same result, slower); "
        f"pass token_budget={token_budget} to start there.",
        OutOfMemoryBackoffWarning,
    )


def read_logits(model: PreTrainedModel, batch: Batch) -> torch.Tensor:
    """Return the logits (B, C) of a classification head."""
    logits: torch.Tensor = model(**batch.inputs()).logits
    return logits


def read_token_logits(model: PreTrainedModel, batch: Batch) -> torch.Tensor:
    """Return the logits (N, C) of a head that gives a row a token."""
    return batch.flat(model(**batch.inputs()).logits)
