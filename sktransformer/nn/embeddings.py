"""Tokens become vectors: a row of a table each, and where they stand added to it.

Formula: sqrt(H) E[token] + PE(position) (+ segment), Vaswani et al. 2017, sections 3.4 and 3.5, and 5.4 (dropout);
segments and the norm: Devlin et al. 2019, "BERT", section 3 and figure 2.
"""

from __future__ import annotations

import math

import torch
from torch import nn

from .config import TransformerConfig
from .dropout import Dropout
from .norms import make_norm
from .positions import sinusoidal
from .residual import TokenTable


class Embeddings(nn.Module):
    """The sum of a token's, a position's and a segment's vectors.

    Parameters
    ----------
    config : TransformerConfig
        Vocabulary, width, kind of positions, segments.

    References
    ----------
    Vaswani et al. 2017, sections 3.4, 3.5 and 5.4; Devlin et al. 2019, section 3.

    Examples
    --------
    >>> from sktransformer.nn import TransformerConfig
    >>> embeddings = Embeddings(TransformerConfig(vocab_size=9, hidden_size=8))
    >>> embeddings(torch.tensor([[3, 1]]), torch.tensor([[0, 1]])).shape
    torch.Size([1, 2, 8])
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.kind = config.positions
        self.longest = config.max_position_embeddings
        self.scale = math.sqrt(width) if config.scale_embeddings else 1.0
        self.tokens = TokenTable(config.vocab_size, width)
        self.positions = nn.Embedding(self.longest, width) if self.kind == "learned" else None
        self.segments = nn.Embedding(config.type_vocab_size, width) if config.type_vocab_size else None
        self.norm = make_norm(config) if config.embedding_norm else None
        self.dropout = Dropout(config.dropout)

    def forward(
        self,
        input_ids: torch.Tensor | None,
        position_ids: torch.Tensor,
        token_type_ids: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Embed tokens.

        Parameters
        ----------
        input_ids : int tensor of shape (B, T) or None
            Tokens.
        position_ids : int tensor of shape (B or 1, T)
            Their positions, from 0.
        token_type_ids : int tensor of shape (B, T), optional
            Their segments; 0 when None.
        inputs_embeds : tensor of shape (B, T, H), optional
            Vectors in the place of the table's rows.

        Returns
        -------
        tensor of shape (B, T, H)

        Raises
        ------
        ValueError
            When a learned position does not exist.
        """
        rows: torch.Tensor = self.tokens(input_ids) if inputs_embeds is None else inputs_embeds
        hidden = rows * self.scale if self.scale != 1.0 else rows
        if self.segments is not None:
            hidden = hidden + (
                self.segments.weight[0] if token_type_ids is None else self.segments(token_type_ids)
            )
        if self.positions is not None:
            hidden = hidden + self.positions(self._existing(position_ids))
        elif self.kind.startswith("sinusoidal"):
            interleaved = self.kind == "sinusoidal"
            hidden = hidden + sinusoidal(
                position_ids, hidden.shape[-1], interleaved=interleaved, dtype=hidden.dtype
            )
        if self.norm is not None:
            hidden = self.norm(hidden)
        dropped: torch.Tensor = self.dropout(hidden)
        return dropped

    def _existing(self, position_ids: torch.Tensor) -> torch.Tensor:
        # looking at the values would make a GPU wait; the number of tokens bounds them from below
        last = position_ids.shape[-1] - 1 if position_ids.is_cuda else int(position_ids.max())
        if last >= self.longest and (not position_ids.is_cuda or position_ids.shape[0] > 1):
            raise ValueError(
                f"the sequence has {last + 1} tokens, and there are {self.longest} learned positions "
                f"(max_position_embeddings); cut the text, or use sinusoidal, rotary or ALiBi positions."
            )
        return position_ids
