"""Positions of rows that are not all equally far: what most decoders of encoder-decoder models can't be told.

A decoder of the BART family counts positions from the length of the cache, alike for all rows. Rows that joined later
have fewer tokens than that. For the time of a generation a hook on the decoder's position table gives each row its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from ...checkpoints.structure import takes

# Relative positions: the distance between two columns is right, wherever a row begins.
RELATIVE = frozenset({"longt5", "mt5", "switch_transformers", "t5", "umt5"})
# Decoders whose `embed_positions` is a table of positions, whose output is added to the embeddings.
TABLES = frozenset(
    {
        "bart",
        "bigbird_pegasus",
        "blenderbot",
        "blenderbot-small",
        "m2m_100",
        "marian",
        "mbart",
        "pegasus",
        "plbart",
    }
)

_positions: ContextVar[torch.Tensor | None] = ContextVar("positions", default=None)


def takes_positions(model: PreTrainedModel) -> bool:
    """Whether the decoder of an encoder-decoder model has an argument for positions, as those of `nn` do."""
    return "decoder_position_ids" in takes(model, body=True)


def rows_may_differ(model: PreTrainedModel) -> bool:
    """Whether rows of a batch may have different numbers of tokens in the decoder."""
    kind = model.config.model_type
    return not model.config.is_encoder_decoder or kind in RELATIVE or kind in TABLES or takes_positions(model)


@contextmanager
def row_positions(model: PreTrainedModel) -> Iterator[Callable[[torch.Tensor], None]]:
    """Give a function that says the positions (B, T) of the tokens of the next pass, in this thread alone."""
    table = (
        getattr(model.get_decoder(), "embed_positions", None) if model.config.model_type in TABLES else None
    )
    if table is None or not model.config.is_encoder_decoder:
        yield lambda positions: None
        return
    before = _positions.set(None)
    hook = table.register_forward_hook(_own_positions)
    try:
        yield lambda positions: _say(positions)
    finally:
        hook.remove()
        _positions.reset(before)


def _say(positions: torch.Tensor) -> None:
    _positions.set(positions)


def _own_positions(table: nn.Module, args: Any, output: torch.Tensor) -> torch.Tensor:
    positions = _positions.get()
    if positions is None:
        return output
    if hasattr(table, "weights"):  # M2M100's sinusoids, counted from the padding id on
        weights, first = table.weights, int(table.padding_idx) + 1  # type: ignore[arg-type]
    else:
        weights, first = table.weight, int(getattr(table, "offset", 0))
    found: torch.Tensor = weights[positions + first]  # type: ignore[index]
    return found.to(output.dtype)
