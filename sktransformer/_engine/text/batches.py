"""Windows become batches: sorted by length, bounded by a number of tokens, packed or padded.

Packed, a batch is one row that holds all its windows' tokens end to end, so that no product is spent on padding;
padded, it is the usual rectangle. Both carry the same windows and give the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch

from .windows import Encoded

Layout = Literal["packed", "padded"]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PackedLayout:
    """Where the windows of a packed row begin: `starts` (B,) and, on the host, their `lengths`.

    Behind the last window there may be tokens that belong to none (`Collator.grain`).
    """

    starts: torch.Tensor
    bounds: torch.Tensor  # cumulative lengths, (B + 1,), int32
    lengths: tuple[int, ...]

    @property
    def n_tokens(self) -> int:
        """Tokens of the windows."""
        return sum(self.lengths)


@dataclass(frozen=True)
class Batch:
    """One forward pass: `windows` are the positions in `Encoded`, in the order of the output's rows.

    Padded: input_ids (B, T), attention_mask (B, T) or None when no id is that of padding. Packed: input_ids (1, N),
    position_ids (1, N) that restart at each window, and `packed`.
    """

    windows: Rows
    input_ids: torch.Tensor
    attention_mask: torch.Tensor | None = None
    position_ids: torch.Tensor | None = None
    token_type_ids: torch.Tensor | None = None
    packed: PackedLayout | None = None

    def __len__(self) -> int:
        return len(self.windows)

    def inputs(self) -> dict[str, object]:
        """Return the keyword arguments of the model's forward pass."""
        names = ("input_ids", "attention_mask", "position_ids", "token_type_ids")
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return given if self.packed is None else {**given, "packed_layout": self.packed}

    def flat(self, rows: torch.Tensor) -> torch.Tensor:
        """Lay the real tokens' rows of the windows end to end: (B, T, ...) or a packed (1, N, ...) becomes (N, ...)."""
        if self.packed is not None:
            return rows[0, : self.packed.n_tokens]
        return rows.flatten(0, 1) if self.attention_mask is None else rows[self.attention_mask.bool()]

    def owners(self) -> torch.Tensor:
        """Return for each row of `flat` the output row, 0 to B - 1, of the window that it belongs to."""
        rows = torch.arange(len(self), device=self.input_ids.device)
        if self.packed is not None:
            return torch.repeat_interleave(
                rows, self.packed.bounds.diff().long(), output_size=self.packed.n_tokens
            )
        return self.flat(rows[:, None].expand(self.input_ids.shape))


@dataclass(frozen=True)
class Collator:
    """Builds batches for one model: its layout, padding id, first position and device.

    A packed row of more than `grain` tokens is filled up to a multiple of it, since matrix libraries make, and some
    keep, a kernel for each number of rows that they meet.
    """

    layout: Layout
    pad_token_id: int
    first_position: int
    device: torch.device
    segments: bool = False  # whether the model has segment embeddings
    grain: int = 1

    def batch(self, encoded: Encoded, windows: Rows) -> Batch:
        """Gather `windows` of `encoded` into one batch on the device."""
        return self._packed(encoded, windows) if self.layout == "packed" else self._padded(encoded, windows)

    def _packed(self, encoded: Encoded, windows: Rows) -> Batch:
        lengths = encoded.lengths[windows]
        tokens = token_positions(encoded.starts[windows], lengths)
        bounds = np.concatenate([[0], np.cumsum(lengths)])
        types = encoded.types[tokens] if encoded.types is not None and self.segments else None
        positions = self._positions(encoded.ids[tokens], bounds[:-1], lengths)
        return Batch(
            windows,
            self._tensor(self._filled(encoded.ids[tokens], self.pad_token_id))[None],
            position_ids=self._tensor(self._filled(positions, self.first_position))[None],
            token_type_ids=None if types is None else self._tensor(self._filled(types, 0))[None],
            packed=PackedLayout(
                self._tensor(bounds[:-1]),
                self._tensor(bounds, torch.int32),
                tuple(int(length) for length in lengths),
            ),
        )

    def _filled(self, row: npt.NDArray[np.generic], value: int) -> npt.NDArray[np.generic]:
        over = -len(row) % self.grain if len(row) > self.grain else 0
        return np.pad(row, (0, over), constant_values=value) if over else row

    def _positions(self, ids: npt.NDArray[np.int32], starts: Rows, lengths: Rows) -> Rows:
        """Count each window's tokens from `first_position`.

        The RoBERTa family counts from ``pad_token_id + 1`` and leaves tokens with that id out, which a text may hold
        too: "<pad>" is one. A padded batch is counted so inside the model; a packed one here.
        """
        if not self.first_position:
            return np.arange(len(ids)) - np.repeat(starts, lengths)
        padding = self.first_position - 1
        real = ids != padding
        counted = np.cumsum(real)
        before = counted[starts] - real[starts]  # real tokens ahead of each window
        return np.where(real, counted - np.repeat(before, lengths), 0) + padding

    def _padded(self, encoded: Encoded, windows: Rows) -> Batch:
        lengths = encoded.lengths[windows]
        mask = np.arange(int(lengths.max()))[None, :] < lengths[:, None]  # (B, T)
        tokens = token_positions(encoded.starts[windows], lengths)
        ids = np.full(mask.shape, self.pad_token_id, dtype=np.int64)
        ids[mask] = encoded.ids[tokens]
        types = None
        if encoded.types is not None and self.segments:
            types = np.zeros(mask.shape, dtype=np.int64)
            types[mask] = encoded.types[tokens]
        return Batch(
            windows,
            self._tensor(ids),
            # without a mask some models take a padding token inside a text for padding, and warn of it
            attention_mask=None if (ids != self.pad_token_id).all() else self._tensor(mask),
            token_type_ids=None if types is None else self._tensor(types),
        )

    def _tensor(self, array: npt.NDArray[np.generic], dtype: torch.dtype = torch.int64) -> torch.Tensor:
        tensor = torch.from_numpy(np.ascontiguousarray(array)).to(dtype)
        if self.device.type == "cuda":
            return tensor.pin_memory().to(self.device, non_blocking=True)
        return tensor.to(self.device)


def token_positions(starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the positions in `Encoded.ids` of the tokens of windows that begin at `starts`, end to end."""
    offsets = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    return np.arange(int(lengths.sum())) - np.repeat(offsets - starts, lengths)


def plan(windows: Rows, lengths: npt.NDArray[np.int64], token_budget: int, layout: Layout) -> list[Rows]:
    """Cut `windows` into batches of at most `token_budget` tokens, longest first.

    Padding counts: a padded batch of B windows costs B times its longest. A window longer than the budget is a batch
    of its own. Longest first shows a lack of memory at once, not at the end of an epoch.
    """
    order = windows[np.argsort(-lengths[windows], kind="stable")]
    batches: list[Rows] = []
    start, tokens, longest = 0, 0, 0
    for i, window in enumerate(order):
        length = int(lengths[window])
        longest = max(longest, length)
        cost = tokens + length if layout == "packed" else (i - start + 1) * longest
        if i > start and cost > token_budget:
            batches.append(order[start:i])
            start, tokens, longest = i, 0, length
        tokens += length
    if start < len(order):
        batches.append(order[start:])
    return batches
