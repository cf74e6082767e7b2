"""Keys and values of the rows in flight: rows leave and join, and columns are written in place.

Transformers' own cache copies all that it holds at each step, to put one column more behind it; this one has room
behind its last column. Rows end at one column, whatever their lengths; a mask says where each begins.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from transformers import Cache, DynamicCache
from transformers.cache_utils import DynamicLayer

ROOM = 64  # columns beyond those in use, when a buffer is made


class RowCache(Cache):
    """Keys and values (B, heads, W, width) of each layer's self-attention, for B rows that end at the same column.

    A forward pass writes behind the W columns in use; they count from `advance` on, so that a pass that failed half-way
    leaves what was there.
    """

    def __init__(self) -> None:
        super().__init__(layers=[])
        self.layers: list[Any]
        self.end = 0

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write the new columns of a layer; return all of them."""
        while len(self.layers) <= layer_idx:
            self.layers.append(_Layer(self))
        whole: tuple[torch.Tensor, torch.Tensor] = self.layers[layer_idx].update(key_states, value_states)
        return whole

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Return the columns in use."""
        return self.end

    def get_mask_sizes(self, query_length: int, layer_idx: int = 0) -> tuple[int, int]:
        """Return the columns that a pass over `query_length` tokens sees, and the first one's number."""
        return self.end + int(query_length), 0

    def advance(self, columns: int) -> None:
        """Count the columns that a pass has written in all layers."""
        self.end += columns

    def keep(self, rows: torch.Tensor, width: int) -> None:
        """Keep `rows`, in that order, and the last `width` columns."""
        for layer in self.layers:
            layer.rebuild([(layer, rows)], width)
        self.end = width

    def repeat(self, times: int) -> None:
        """Have each row `times` times, one copy after the other."""
        for layer in self.layers:
            rows = torch.arange(len(layer.keys), device=layer.keys.device).repeat_interleave(times)
            layer.rebuild([(layer, rows)], self.end)

    def join(self, other: RowCache) -> None:
        """Put the rows of `other` behind these."""
        width = max(self.end, other.end)
        for mine, theirs in zip(self.layers, other.layers, strict=True):
            mine.rebuild([(mine, None), (theirs, None)], width)
        self.end = width

    def reorder_cache(self, beam_idx: torch.Tensor) -> None:
        """Give row i the columns of row ``beam_idx[i]``; rows that stay where they are cost nothing."""
        moved = (beam_idx != torch.arange(len(beam_idx), device=beam_idx.device)).nonzero()[:, 0]
        if not len(moved):
            return
        sources = beam_idx[moved]
        for layer in self.layers:
            for buffer in (layer.keys, layer.values):
                live = buffer[:, :, : self.end]
                live[moved] = live[sources]


class _Layer(DynamicLayer):
    """One layer's buffers, of which the first `cache.end` columns are in use."""

    def __init__(self, cache: RowCache) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.cache = cache
        self.keys: torch.Tensor | None = None
        self.values: torch.Tensor | None = None

    def get_seq_length(self) -> int:
        return self.cache.end

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        begin = self.cache.end
        end = begin + key_states.shape[-2]
        self.keys = _roomy(self.keys, key_states, begin, end)
        self.values = _roomy(self.values, value_states, begin, end)
        self.is_initialized = True
        self.keys[:, :, begin:end] = key_states
        self.values[:, :, begin:end] = value_states
        return self.keys[:, :, :end], self.values[:, :, :end]

    def rebuild(self, parts: list[tuple[_Layer, torch.Tensor | None]], width: int) -> None:
        """Fill new buffers with rows of several layers, so that all end at column `width`."""
        for name in ("keys", "values"):
            taken = []
            for layer, rows in parts:
                buffer, end = getattr(layer, name), layer.cache.end
                live = buffer[:, :, max(0, end - width) : end]
                taken.append(live if rows is None else live.index_select(0, rows))
            n = sum(len(rows) for rows in taken)
            first = taken[0]
            whole = first.new_empty((n, first.shape[1], width + ROOM, first.shape[3]))
            begin = 0
            for rows in taken:
                place = whole[begin : begin + len(rows)]
                place[:, :, : width - rows.shape[2]] = 0  # masked, but a weight of 0 times NaN is NaN
                place[:, :, width - rows.shape[2] : width] = rows
                begin += len(rows)
            setattr(self, name, whole)


def _roomy(buffer: torch.Tensor | None, states: torch.Tensor, begin: int, end: int) -> torch.Tensor:
    """Return a buffer that has columns up to `end`, with what the old one has up to `begin`."""
    if buffer is not None and buffer.shape[2] >= end:
        return buffer
    larger = states.new_empty((*states.shape[:2], end + ROOM, states.shape[3]))
    if buffer is not None:
        larger[:, :, :begin] = buffer[:, :, :begin]
    return larger


def keep_sources(cache: DynamicCache, rows: torch.Tensor, width: int) -> None:
    """Keep `rows` and the first `width` columns of what cross-attention reads."""
    layers: list[Any] = cache.layers
    for layer in layers:
        layer.keys = layer.keys[:, :, :width].index_select(0, rows)
        layer.values = layer.values[:, :, :width].index_select(0, rows)


def join_sources(cache: DynamicCache, other: DynamicCache) -> None:
    """Put the rows of `other` behind those of `cache`, padded on the right."""
    for mine, theirs in zip(cache.layers, other.layers, strict=True):
        for name in ("keys", "values"):
            first, second = getattr(mine, name), getattr(theirs, name)
            width = max(first.shape[2], second.shape[2])
            padded = [F.pad(part, (0, 0, 0, width - part.shape[2])) for part in (first, second)]
            setattr(mine, name, torch.cat(padded))
