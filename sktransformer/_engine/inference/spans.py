"""What a head that points at spans gives for each token."""

from __future__ import annotations

import torch
from transformers import PreTrainedModel

from ..text.batches import Batch


def read_span_logits(model: PreTrainedModel, batch: Batch) -> torch.Tensor:
    """Return the logits (N, 2) of each token as the first, and as the last, of an answer."""
    output = model(**batch.inputs())
    return batch.flat(torch.stack([output.start_logits, output.end_logits], dim=-1))
