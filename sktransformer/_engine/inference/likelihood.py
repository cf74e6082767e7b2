"""How likely a decoder finds the tokens of a text, each after those before it."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from transformers import PreTrainedModel

from ..checkpoints.quiet import quiet_transformers
from ..checkpoints.structure import max_tokens, takes
from ..text.batches import Batch, Collator, token_positions
from ..text.windows import Encoded

NOT_COUNTED = -100  # in the place of a token that is not to be told
_packed: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()  # what was tried out already, by model


def next_token_losses(
    model: nn.Module, batch: Batch, targets: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return -log p of each token that counts, and the window of the batch, 0 to B - 1, that it belongs to.

    Targets (N,), laid as `Batch.flat` does, are the token that follows each; `NOT_COUNTED` where none does that counts.
    A packed batch needs a model that `reads_packed`.
    """
    counted = targets != NOT_COUNTED
    options: dict[str, Any] = {"use_cache": False}
    if batch.packed is not None:
        rows = counted.nonzero()[:, 0]
        keeps = "logits_to_keep" in takes(model)
        if keeps:  # the vocabulary's product is the dearest of a small model: only where it counts
            options["logits_to_keep"] = rows
        # a mask would hide that the row is packed; without one Transformers takes an end token for padding, and says so
        with quiet_transformers():
            logits = model(input_ids=batch.input_ids, position_ids=batch.position_ids, **options).logits[0]
        logits = logits if keeps else logits[rows]
    else:
        mask = torch.ones_like(batch.input_ids) if batch.attention_mask is None else batch.attention_mask
        logits = batch.flat(model(input_ids=batch.input_ids, attention_mask=mask, **options).logits)[counted]
    losses = F.cross_entropy(logits.float(), targets[counted], reduction="none")
    return losses, batch.owners()[counted]


def sums_by_window(values: torch.Tensor, owners: torch.Tensor, n: int) -> torch.Tensor:
    """Return the sum (n,) of the values of each window."""
    return torch.zeros(n, device=values.device, dtype=values.dtype).index_add(0, owners, values)


class TokenLosses:
    """Reads windows: sums (B, 1) of -log p over the tokens of each that count. Targets are laid as `Encoded.ids`."""

    def __init__(self, encoded: Encoded, targets: torch.Tensor) -> None:
        self.encoded = encoded
        self.targets = targets

    def __call__(self, model: PreTrainedModel, batch: Batch) -> torch.Tensor:
        """Return the sums."""
        starts, lengths = self.encoded.starts[batch.windows], self.encoded.lengths[batch.windows]
        targets = self.targets[torch.from_numpy(token_positions(starts, lengths))].to(batch.input_ids.device)
        losses, owners = next_token_losses(model, batch, targets)
        return sums_by_window(losses, owners, len(batch))[:, None]


def reads_packed(model: PreTrainedModel) -> bool:
    """Whether positions that begin anew keep a packed row's texts apart, as Transformers' masks do for many models.

    Tried out on eight tokens, since no field of a config says so.
    """
    if model not in _packed:
        _packed[model] = _tried_packed(model)
    return _packed[model]


def _tried_packed(model: PreTrainedModel) -> bool:
    positions = max_tokens(model.config, None)
    if positions is not None and positions < 4:  # none to try it on
        return False
    if "position_ids" not in takes(model):
        return False
    device = next(model.parameters()).device
    few = min(int(model.config.vocab_size), 7)
    rows = [np.array([1, 2, 3, 4]) % few, np.array([5, 1, 6, 2]) % few]
    encoded = Encoded(
        np.concatenate(rows).astype(np.int32), np.array([0, 4, 8]), np.arange(2, dtype=np.int32), 2
    )
    collator = Collator("packed", 0, 0, device)
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            batch = collator.batch(encoded, np.arange(2))
            together = model(
                input_ids=batch.input_ids, position_ids=batch.position_ids, use_cache=False
            ).logits[0]
            apart = [
                model(input_ids=torch.from_numpy(row)[None].to(device), use_cache=False).logits[0]
                for row in rows
            ]
    finally:
        model.train(was_training)
    return bool(torch.allclose(together.float(), torch.cat(apart).float(), atol=1e-3, rtol=1e-3))
