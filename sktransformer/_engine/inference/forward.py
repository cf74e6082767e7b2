"""Run a model over encoded documents: longest first, under a token budget, one output row a window."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from tqdm.auto import tqdm
from transformers import PreTrainedModel

from ..devices import SMALLEST_BUDGET, autocast, is_out_of_memory
from ..errors import OutOfMemoryBackoffWarning, warn_user
from ..text.batches import Batch, Collator, plan
from ..text.windows import Encoded

Reader = Callable[[PreTrainedModel, Batch], torch.Tensor]


def forward(
    model: PreTrainedModel,
    encoded: Encoded,
    collator: Collator,
    read: Reader,
    *,
    token_budget: int,
    precision: torch.dtype,
    progress: bool = False,
) -> npt.NDArray[np.float32]:
    """Return `read` of each window, in the order of `encoded`, as float32.

    Parameters
    ----------
    model : PreTrainedModel
        In evaluation mode, on the collator's device.
    encoded : Encoded
        The windows.
    collator : Collator
        Packed or padded batches.
    read : callable
        Runs the model on a batch of B windows and returns B rows.
    token_budget : int
        Tokens of a batch; halved, with one warning, when memory runs out.
    precision : torch.dtype
        Of the matrix products.
    progress : bool
        Show a bar that counts windows.

    Returns
    -------
    ndarray of shape (n_windows, ...)
    """
    lengths = encoded.lengths
    pending = plan(np.arange(len(lengths)), lengths, token_budget, collator.layout)
    order, rows, asked = [], [], token_budget
    with tqdm(total=len(lengths), unit="window", dynamic_ncols=True, disable=not progress) as bar:
        while pending:
            windows = pending.pop(0)
            try:
                with torch.inference_mode(), autocast(collator.device, precision):
                    batch = collator.batch(encoded, windows)
                    rows.append(read(model, batch).float())
                order.append(windows)
                bar.update(len(windows))
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error) or len(windows) == 1 or token_budget // 2 < SMALLEST_BUDGET:
                    raise
                token_budget //= 2
                pending = plan(np.concatenate([windows, *pending]), lengths, token_budget, collator.layout)
    if token_budget < asked:
        _warn(token_budget)  # now, when the budget that fits is known
    stacked = torch.cat(rows).cpu().numpy()
    restored = np.empty_like(stacked)
    restored[np.concatenate(order)] = stacked
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
