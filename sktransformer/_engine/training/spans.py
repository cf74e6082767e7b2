"""The loss of heads that point at the first and the last token of a span."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from ..text.batches import Batch

NO_ANSWER = 0  # position, in a window, of the token that stands for "not in this window": its first


class SpanLoss:
    """Mean of the two cross-entropies of an answer's first and last token.

    Each is -log softmax(z)_i over the tokens that it may be: those of the context, and the window's first, which says
    that the answer is not there. Targets (B, 4) are the positions, in a window, of the answer's first and last token,
    and of the context's first token and the one after its last.

    References
    ----------
    Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding", sections 4.2
    (the softmax over the words of the paragraph) and 4.3 (the first token for no answer).
    """

    def __call__(self, model: nn.Module, batch: Batch, targets: torch.Tensor) -> torch.Tensor:
        """Return the losses (B,)."""
        output = model(**batch.inputs())
        logits = torch.stack(
            [output.start_logits, output.end_logits], dim=-1
        ).float()  # (B, T, 2) or (1, N, 2)
        if batch.packed is not None:
            logits = pad_sequence(list(batch.flat(logits).split(batch.packed.lengths)), batch_first=True)
        places = torch.arange(logits.shape[1], device=logits.device)[None]
        inside = (places >= targets[:, 2:3]) & (places < targets[:, 3:4]) | (places == NO_ANSWER)
        logits = logits.masked_fill(~inside[..., None], -torch.inf)
        losses = F.cross_entropy(logits, targets[:, :2], reduction="none")  # (B, 2)
        return losses.mean(dim=1)
