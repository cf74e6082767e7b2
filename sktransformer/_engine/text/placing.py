"""Where each token of a window stood in its text: what tags and answers are read from and written to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .windows import Encoded, IntArray, Plan, Range, Template

SPECIAL = -1
Offsets = npt.NDArray[np.int32]  # (n_tokens, 2): a token's first character, and the one after its last


@dataclass(frozen=True)
class Placed:
    """Windows whose tokens know where they come from.

    ``text[t]`` is 0 where token ``t`` of ``encoded.ids`` belongs to its document's first text, 1 where to its second,
    -1 where it is special; ``index[t]`` is its number within that text's tokens, or -1. ``offsets[c][d]`` are the
    characters of the tokens of text ``c`` of document ``d``; None for tokenizers that don't tell. A document without
    any token, read by a model without special ones, has a filler of index 0 and no offsets.
    """

    encoded: Encoded
    text: npt.NDArray[np.int8]
    index: IntArray
    offsets: tuple[list[Offsets], ...] | None


def places(template: Template, plan: Plan, *, pairs: bool) -> tuple[npt.NDArray[np.int8], IntArray]:
    """Return text and index of each token that `assemble` lays end to end for the same plan."""
    prefix, middle, suffix = (
        np.full(len(part), SPECIAL, dtype=np.int32)
        for part in (template.prefix, template.middle, template.suffix)
    )
    index: list[IntArray] = []
    text: list[npt.NDArray[np.int8]] = []
    for window in plan.windows:
        first, second = _counted(window.first), _counted(window.second)
        rows = [(prefix, SPECIAL), (first, 0)]
        if pairs:
            rows += [(middle, SPECIAL), (second, 1)]
        for part, owner in [*rows, (suffix, SPECIAL)]:
            index.append(part)
            text.append(np.full(len(part), owner, dtype=np.int8))
    if not index:
        return np.zeros(0, dtype=np.int8), np.zeros(0, dtype=np.int32)
    return np.concatenate(text), np.concatenate(index)


def _counted(ranges: tuple[Range, ...]) -> IntArray:
    return np.concatenate(
        [np.zeros(0, dtype=np.int32), *(np.arange(a, b, dtype=np.int32) for a, b in ranges)]
    )
