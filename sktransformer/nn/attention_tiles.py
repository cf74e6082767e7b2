"""Which documents and heads of a packed row are attended at once, and their tensors as the products want them.

A tile is some heads of a long document, or all heads of several documents that are about as long. Tokens are filled up
to a multiple of the elements of a 64-byte register: a row of 160 weights takes half of the time of one of 157, and
matrix libraries, some of which keep a kernel for each size that they meet, meet few.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

TILE = (
    1 << 20
)  # attention weights computed at once: 2 or 4 MB, which stay in a core's own cache or in a shared one
REGISTER = 64  # bytes


@dataclass(frozen=True)
class Tile:
    """Rows of queries and of keys of each document in it, and how many they are filled up to."""

    heads: slice
    asked: tuple[slice, ...]
    read: tuple[slice, ...]
    n_queries: int
    n_keys: int

    def queries(self, x: torch.Tensor, by_token: bool) -> torch.Tensor:
        """Gather x (heads, N, d) into (documents x heads, n_queries, d), zeros behind each document."""
        return _gathered(x[self.heads], self.asked, self.n_queries, by_token)

    def keys(self, x: torch.Tensor, by_token: bool) -> torch.Tensor:
        """Gather x (heads, N, d) into (documents x heads, n_keys, d), zeros behind each document."""
        return _gathered(x[self.heads], self.read, self.n_keys, by_token)

    def put_queries(self, rows: torch.Tensor, out: torch.Tensor) -> None:
        """Write (documents x heads, n_queries, d) to where they belong in `out` (N, heads, d)."""
        _put(rows, out[:, self.heads], self.asked)

    def put_keys(self, rows: torch.Tensor, out: torch.Tensor) -> None:
        """Write (documents x heads, n_keys, d) to where they belong in `out` (N, heads, d)."""
        _put(rows, out[:, self.heads], self.read)

    def hide(self, scores: torch.Tensor) -> None:
        """Set the scores (documents x heads, n_queries, n_keys) of what stands behind a document to minus infinity."""
        for of_document, rows in zip(scores.chunk(len(self.read)), self.read, strict=True):
            n = rows.stop - rows.start
            if n < self.n_keys:
                of_document[:, :, n:] = float("-inf")


def tiles(
    element_size: int, n_heads: int, asked: tuple[int, ...], lengths: tuple[int, ...]
) -> Iterator[Tile]:
    """Yield the tiles of a row, in order: `asked` queries and `lengths` keys of each document.

    Parameters
    ----------
    element_size : int
        Bytes of an attention weight.
    n_heads : int
        Heads of the row.
    asked, lengths : tuple of int
        One query a document, or as many as it has tokens.
    """
    grain, begun, a, b = REGISTER // element_size, 0, 0, 0
    sizes = [
        (_filled(t, grain) if t > 1 else 1, _filled(s, grain)) for t, s in zip(asked, lengths, strict=True)
    ]
    while begun < len(sizes):
        t, s = sizes[begun]
        most = max(1, TILE // (n_heads * t * s))
        end = begun + 1
        while end < len(sizes) and end - begun < most and sizes[end] == (t, s):
            end += 1
        rows_asked, a = _slices(asked[begun:end], a)
        rows_read, b = _slices(lengths[begun:end], b)
        at_once = max(1, min(n_heads, TILE // (t * s)))
        for first in range(0, n_heads, at_once):
            yield Tile(slice(first, min(n_heads, first + at_once)), rows_asked, rows_read, t, s)
        begun = end


def _filled(n: int, grain: int) -> int:
    return -(-n // grain) * grain


def _slices(lengths: tuple[int, ...], start: int) -> tuple[tuple[slice, ...], int]:
    found = []
    for length in lengths:
        found.append(slice(start, start + length))
        start += length
    return tuple(found), start


def _gathered(x: torch.Tensor, rows: tuple[slice, ...], n: int, by_token: bool) -> torch.Tensor:
    heads, _, width = x.shape
    if len(rows) == 1 and rows[0].stop - rows[0].start == n:
        document = x[:, rows[0]]
        return document if by_token else document.contiguous()
    if by_token:  # each token's heads side by side, as they are in x
        out = x.new_zeros(n, len(rows), heads, width)
        for i, place in enumerate(rows):
            out[: place.stop - place.start, i] = x[:, place].transpose(0, 1)
        return out.view(n, -1, width).transpose(0, 1)
    out = x.new_zeros(len(rows), heads, n, width)
    for i, place in enumerate(rows):
        out[i, :, : place.stop - place.start] = x[:, place]
    return out.view(-1, n, width)


def _put(rows: torch.Tensor, out: torch.Tensor, places: tuple[slice, ...]) -> None:
    for of_document, place in zip(rows.chunk(len(places)), places, strict=True):
        out[place] = of_document[:, : place.stop - place.start].transpose(0, 1)
