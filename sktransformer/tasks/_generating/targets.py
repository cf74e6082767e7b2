"""Target texts as a model is trained to write them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._engine.errors import TruncationWarning, warn_user
from ..._engine.text.documents import as_documents
from ..._engine.text.encoding import TextEncoder
from ..._engine.training.sequences import SequenceTargets


@dataclass
class TargetTexts:
    """The texts to be written, (n,), as an array of objects, and what each of them begins with, in tokens."""

    original: npt.NDArray[Any]
    begin: tuple[int, ...] = ()

    def take(self, rows: Any) -> TargetTexts:
        """Return the texts of `rows`."""
        return TargetTexts(self.original[rows], self.begin)

    @property
    def texts(self) -> list[str]:
        """The texts as a list."""
        return list(self.original)


def read_targets(y: Any) -> TargetTexts:
    """Read `y` as texts, one a row of X.

    Raises
    ------
    TypeError
        For a bare string, or a row that is no text.
    ValueError
        For no `y`, missing texts, or pairs of texts.
    """
    if y is None:
        raise ValueError("y is None; pass the texts to be written, one a row of X.")
    documents = as_documents(y, name="y")
    if documents.second is not None:
        raise ValueError("y must hold one text a row, got pairs; pass one column.")
    original = np.empty(len(documents), dtype=object)
    original[:] = documents.first
    return TargetTexts(original)


def encode_targets(encoder: TextEncoder, targets: TargetTexts, end: int, longest: int) -> SequenceTargets:
    """Return the tokens of each text with the one that ends it; at most `longest`, with one warning for all cuts.

    A text that is cut does not end: the model shall not learn to stop there.
    """
    rows, n_cut = [], 0
    for ids in encoder.targets(targets.texts):
        whole = np.append(ids, np.int32(end))
        n_cut += len(whole) > longest
        rows.append(whole[:longest])
    if n_cut:
        warn_user(
            f"{n_cut} of {len(rows)} targets are longer than {longest} tokens and were cut; raise max_target_length, "
            f"or pass a model with more positions.",
            TruncationWarning,
            n_cut=int(n_cut),
            n_documents=len(rows),
        )
    return SequenceTargets.of_rows(rows)


def warn_cut_sources(n_cut: int, n_documents: int, longest: int, truncation: str) -> None:
    """Say once how many sources were cut, if any."""
    if n_cut:
        warn_user(
            f"{n_cut} of {n_documents} documents are longer than {longest} tokens and were cut "
            f"(truncation={truncation!r}); raise max_length where the model allows it, or split them.",
            TruncationWarning,
            n_cut=int(n_cut),
            n_documents=int(n_documents),
        )


def longest_target(positions: int | None, begin: Sequence[int], wanted: int) -> int:
    """Return the most tokens of a target: the decoder reads `begin` and all of them but the last.

    Raises
    ------
    ValueError
        When the decoder has no position for any.
    """
    if positions is None:
        return wanted
    room = positions - len(begin) + 1
    if room < 1:
        raise ValueError(
            f"the model's decoder has {positions} positions, and texts begin with {len(begin)} tokens; shorten "
            f"target_prefix."
        )
    return min(wanted, room)
