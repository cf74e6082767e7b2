"""Tokens to be trained on, or scored: which follow which, and which of them count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ..._engine.errors import TruncationWarning, warn_user
from ..._engine.inference.likelihood import NOT_COUNTED
from ..._engine.text.documents import as_documents
from ..._engine.text.windows import Encoded, IntArray
from .prompts import PromptEncoder, Prompts


@dataclass
class Responses:
    """What is written to each prompt (n,), as an array of objects; of None where the prompts are whole texts."""

    original: npt.NDArray[Any]

    @property
    def given(self) -> bool:
        """Whether there are any."""
        return len(self.original) == 0 or self.original[0] is not None

    @property
    def texts(self) -> list[str]:
        """The responses as a list."""
        return list(self.original) if self.given else []

    def take(self, rows: Any) -> Responses:
        """Return those of `rows`."""
        return Responses(self.original[rows])


def read_responses(y: Any, n: int) -> Responses:
    """Read `y` as texts, one a row of X; None means that the rows are whole.

    Raises
    ------
    TypeError
        For a bare string, or a row that is no text.
    ValueError
        For missing texts, or pairs of texts.
    """
    original = np.full(n, None, dtype=object)
    if y is None:
        return Responses(original)
    documents = as_documents(y, name="y")
    if documents.second is not None:
        raise ValueError("y must hold one text a row, got pairs; pass one column.")
    original[:] = documents.first
    return Responses(original)


@dataclass(frozen=True)
class Lines:
    """Windows of tokens, the token that follows each (`NOT_COUNTED` where none does that counts), and documents cut."""

    encoded: Encoded
    targets: torch.Tensor
    n_cut: int

    @property
    def counted(self) -> npt.NDArray[np.int64]:
        """Tokens of each window that count, (n_windows,)."""
        counts = (self.targets != NOT_COUNTED).numpy().astype(np.int64)
        heaps = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
        found: npt.NDArray[np.int64] = heaps[self.encoded.starts[1:]] - heaps[self.encoded.starts[:-1]]
        return found

    @property
    def tokens(self) -> npt.NDArray[np.int64]:
        """Tokens of each document that count, (n_documents,)."""
        return np.bincount(
            self.encoded.document, weights=self.counted, minlength=self.encoded.n_documents
        ).astype(np.int64)


def lines(
    encoder: PromptEncoder, prompts: Prompts, responses: Responses, end: int | None, limit: int
) -> Lines:
    """Encode whole texts, which longer ones are cut into windows of, or prompts with their responses.

    Of a prompt that is too long beside its response the end is kept; of a response that is too long alone, the
    beginning.
    """
    ends = np.array([] if end is None else [end], dtype=np.int32)
    if not responses.given:
        rows = encoder.ids(prompts, answered=True)
        # a conversation's template ends it
        whole = [
            np.concatenate([row, ends[: turns is None]])
            for row, turns in zip(rows, prompts.turns, strict=True)
        ]
        return _windows(whole, [0] * len(whole), limit, 0)
    rows, answers, n_cut = [], [], 0
    for asked, text in zip(encoder.ids(prompts), responses.texts, strict=True):
        answer = np.concatenate([encoder.plain(text), ends])
        kept = answer[: max(1, limit - 1)]
        room = max(1, limit - len(kept))
        n_cut += len(kept) < len(answer) or len(asked) > room
        rows.append(np.concatenate([asked[-room:], kept]))
        answers.append(min(room, len(asked)))
    return _windows(rows, answers, limit, n_cut)


def _windows(rows: Sequence[IntArray], before: Sequence[int], limit: int, n_cut: int) -> Lines:
    """Cut rows into windows of `limit` tokens; of a row the first `before` tokens, and the very first, are not told."""
    parts, targets, owners = [], [], []
    for i, (row, first) in enumerate(zip(rows, before, strict=True)):
        following = np.append(row[1:].astype(np.int64), NOT_COUNTED)
        following[: max(0, first - 1)] = NOT_COUNTED
        for start in range(0, len(row), limit):
            parts.append(row[start : start + limit])
            targets.append(following[start : start + limit])
            owners.append(i)
    starts = np.concatenate([[0], np.cumsum([len(part) for part in parts], dtype=np.int64)])
    ids = np.concatenate([np.zeros(0, dtype=np.int32), *parts]).astype(np.int32)
    told = np.concatenate([np.zeros(0, dtype=np.int64), *targets])
    encoded = Encoded(ids, starts, np.array(owners, dtype=np.int32), len(rows), n_cut=n_cut)
    return Lines(encoded, torch.from_numpy(told), n_cut)


def warn_cut_examples(n_cut: int, n: int, limit: int) -> None:
    """Say once how many prompts or responses were cut, if any."""
    if n_cut:
        warn_user(
            f"{n_cut} of {n} prompts with their responses are longer than {limit} tokens and were cut: the prompts at "
            f"their beginning, responses at their end; raise max_length where the model allows it, or split them.",
            TruncationWarning,
            n_cut=int(n_cut),
            n_documents=int(n),
        )
