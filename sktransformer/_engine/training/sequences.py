"""Targets that are texts, and the loss of a model that writes them token by token, given the true ones before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import nn

from ..text.batches import Batch, Rows, token_positions
from ..text.windows import Encoded
from .token_losses import NOT_COUNTED


@dataclass(frozen=True)
class SequenceTargets:
    """The tokens of each window's text, laid end to end: that of window w is ``ids[starts[w]:starts[w + 1]]``."""

    ids: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]

    @classmethod
    def of_rows(cls, rows: Sequence[npt.NDArray[np.int32]]) -> SequenceTargets:
        """Lay the rows end to end."""
        starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
        ids = np.concatenate([np.zeros(0, dtype=np.int64), *rows]).astype(np.int64)
        return cls(ids, starts)

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Tokens of each text, (n_windows,)."""
        return np.diff(self.starts)

    def of(self, encoded: Encoded, windows: Rows) -> torch.Tensor:
        """Return the labels (B, T) of `windows`, `NOT_COUNTED` behind the end of each."""
        lengths = self.lengths[windows]
        real = np.arange(int(lengths.max(initial=0)))[None, :] < lengths[:, None]
        labels = np.full(real.shape, NOT_COUNTED, dtype=np.int64)
        labels[real] = self.ids[token_positions(self.starts[windows], lengths)]
        return torch.from_numpy(labels)


class OnSequences:
    """Mean over a target's tokens, the one that ends it among them, of -log softmax(z)_y; 0 for a target without any.

    The decoder reads `begin` (the start token, and what else every text begins with) and then the target, and each of
    its tokens is to be told from those before it. With a `label_smoothing` of s the target distribution is
    ``(1 - s) y + s / V``. Targets (B, T) are token ids, `NOT_COUNTED` behind their end.

    References
    ----------
    Sutskever et al. 2014, "Sequence to Sequence Learning with Neural Networks", section 3.2; Williams and Zipser 1989,
    "A Learning Algorithm for Continually Running Fully Recurrent Neural Networks", section 4 (teacher forcing);
    Vaswani et al. 2017, "Attention Is All You Need", section 5.4 (label smoothing).
    """

    def __init__(self, begin: tuple[int, ...], pad_token_id: int, label_smoothing: float = 0.0) -> None:
        self.begin = begin
        self.pad_token_id = pad_token_id
        self.label_smoothing = label_smoothing

    def __call__(self, model: nn.Module, batch: Batch, targets: torch.Tensor) -> torch.Tensor:
        """Return the losses (B,)."""
        arguments = {**batch.inputs(), "decoder_input_ids": self.decoder_input(targets), "use_cache": False}
        if getattr(model.config, "num_experts", 1) > 1:  # whose balance counts all that is no padding
            begin = torch.ones(len(self.begin), device=targets.device).expand(len(targets), -1)
            arguments["decoder_attention_mask"] = torch.cat([begin, targets[:, :-1] != NOT_COUNTED], dim=1)
        logits = model(**arguments).logits[:, len(self.begin) - 1 :]
        losses = F.cross_entropy(
            logits.float().flatten(0, 1),
            targets.flatten(),
            ignore_index=NOT_COUNTED,
            reduction="none",
            label_smoothing=self.label_smoothing,
        ).view(targets.shape)
        return losses.sum(dim=1) / (targets != NOT_COUNTED).sum(dim=1).clamp(min=1)

    def decoder_input(self, targets: torch.Tensor) -> torch.Tensor:
        """Return what the decoder reads, (B, len(begin) + T - 1)."""
        first = torch.tensor(self.begin, device=targets.device).expand(len(targets), -1)
        # what stands behind a target's end is read by no token that counts: attention looks back alone
        return torch.cat(
            [first, targets[:, :-1].masked_fill(targets[:, :-1] == NOT_COUNTED, self.pad_token_id)], 1
        )
