"""Documents become token windows: one tokenizer call a text, no padding, no truncation inside the tokenizer.

A fast tokenizer keeps its truncation and padding settings as state, and every ordinary call rewrites them: two threads
that share one raise "Already borrowed", or cut with each other's settings. So this module asks the backend for plain
ids only, and adds special tokens and cuts by itself, in NumPy. Encoding reads, and never writes, the tokenizer.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..errors import TruncationWarning, did_you_mean, warn_user
from .documents import Documents

Truncation = Literal["head", "tail", "head_tail"]
TRUNCATIONS = ("head", "tail", "head_tail")
IntArray = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Encoded:
    """Token windows, laid end to end.

    ``ids[starts[w]:starts[w + 1]]`` are the int32 token ids of window ``w``, special tokens included; ``types`` are its
    segment ids when documents are pairs; ``document[w]`` is the row it belongs to. `n_cut` documents lost tokens.
    """

    ids: IntArray
    starts: npt.NDArray[np.int64]
    document: IntArray
    n_documents: int
    types: npt.NDArray[np.int8] | None = None
    n_cut: int = 0

    def __len__(self) -> int:
        return self.n_documents

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Tokens of each window, shape (n_windows,)."""
        return np.diff(self.starts)


@dataclass(frozen=True)
class Template:
    """The special tokens round one text, or round and between two."""

    prefix: tuple[int, ...]
    middle: tuple[int, ...]
    suffix: tuple[int, ...]
    segment_of_middle: int = 0

    @property
    def n_special(self) -> int:
        return len(self.prefix) + len(self.middle) + len(self.suffix)


@dataclass(frozen=True)
class Cut:
    """How documents longer than the model are cut: `max_length` counts special tokens too."""

    max_length: int = 512
    truncation: Truncation = "head_tail"
    head_length: int = 128

    def __post_init__(self) -> None:
        if self.truncation not in TRUNCATIONS:
            hint = did_you_mean(str(self.truncation), TRUNCATIONS)
            raise ValueError(
                f"truncation={self.truncation!r} is not known; choose one of {TRUNCATIONS}.{hint}"
            )
        for name in ("max_length", "head_length"):
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name} must be a positive number of tokens, got {value!r}.")


class TextEncoder:
    """Read-only view of a tokenizer, safe to share between threads."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._backend = getattr(tokenizer, "backend_tokenizer", None)
        self._lock = threading.Lock()  # for tokenizers in pure Python, whose caches are not guarded
        self.single = self._find_template(pair=False)
        self.pair = self._find_template(pair=True)
        known = (tokenizer.eos_token_id, tokenizer.unk_token_id, tokenizer.pad_token_id, 0)
        self._filler = np.asarray([next(i for i in known if i is not None)], dtype=np.int32)
        if self._backend is not None:
            self._backend.no_truncation()
            self._backend.no_padding()

    def encode(self, documents: Documents, cut: Cut, *, warn: bool = True) -> Encoded:
        """Return one window a document, cut to ``cut.max_length`` tokens.

        Raises
        ------
        ValueError
            When `max_length` leaves no room beside the special tokens.
        """
        template = self.single if documents.second is None else self.pair
        room = cut.max_length - template.n_special
        if room < 1:
            raise ValueError(
                f"max_length={cut.max_length} leaves no room beside {template.n_special} special tokens; raise max_length."
            )
        first = self._ids(documents.first)
        if (
            not template.n_special and documents.second is None
        ):  # an empty text still needs one token to be read
            first = [ids if len(ids) else self._filler for ids in first]
        if documents.second is None:
            kept = [_shorten(ids, room, cut) for ids in first]
            n_cut = sum(len(ids) > room for ids in first)
            encoded = _assemble(template, kept, None, n_cut)
        else:
            second = self._ids(documents.second)
            shares = [_share(len(a), len(b), room) for a, b in zip(first, second, strict=True)]
            kept = [_shorten(ids, share[0], cut) for ids, share in zip(first, shares, strict=True)]
            others = [_shorten(ids, share[1], cut) for ids, share in zip(second, shares, strict=True)]
            n_cut = sum(len(a) + len(b) > room for a, b in zip(first, second, strict=True))
            encoded = _assemble(template, kept, others, n_cut)
        if warn:
            warn_cut(encoded.n_cut, encoded.n_documents, cut)
        return encoded

    def _ids(self, texts: list[str]) -> list[IntArray]:
        if self._backend is not None:
            # one by one: as fast as a batch on few cores, and it starts no threads that a later fork would trip over
            encode = self._backend.encode
            return [np.asarray(encode(text, add_special_tokens=False).ids, dtype=np.int32) for text in texts]
        with self._lock:
            return [np.asarray(self._plain(text), dtype=np.int32) for text in texts]

    def _plain(self, text: str) -> list[int]:
        tokens = self._tokenizer.tokenize(text)
        return list(self._tokenizer.convert_tokens_to_ids(tokens))

    def _find_template(self, *, pair: bool) -> Template:
        """Find the special tokens by encoding two known texts with and without them."""
        first, second = self._bare("a"), self._bare("b")
        full = self._tokenizer("a", "b") if pair else self._tokenizer("a")
        ids = list(full["input_ids"])
        start = _find(ids, first, 0)
        end = start + len(first)
        if not pair:
            return Template(tuple(ids[:start]), (), tuple(ids[end:]))
        again = _find(ids, second, end)
        segments = full.get("token_type_ids") or [0] * len(ids)
        middle_segment = int(segments[again - 1]) if again > end else 0
        return Template(
            tuple(ids[:start]), tuple(ids[end:again]), tuple(ids[again + len(second) :]), middle_segment
        )

    def _bare(self, text: str) -> list[int]:
        return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])


def _find(ids: list[int], part: list[int], start: int) -> int:
    for i in range(start, len(ids) - len(part) + 1):
        if ids[i : i + len(part)] == part:
            return i
    raise ValueError(
        "the tokenizer changes a text's tokens when it adds special tokens; such a tokenizer can't be used."
    )


def _share(a: int, b: int, room: int) -> tuple[int, int]:
    """Split `room` between two texts: the shorter keeps what it needs, up to a half."""
    if a + b <= room:
        return a, b
    half = room // 2
    if a <= half:
        return a, room - a
    if b <= half:
        return room - b, b
    return room - half, half


def _shorten(ids: IntArray, room: int, cut: Cut) -> IntArray:
    """Keep `room` tokens: the first, the last, or the first `head_length` (at most a half) and the last."""
    if len(ids) <= room:
        return ids
    if cut.truncation == "head":
        return ids[:room]
    if cut.truncation == "tail":
        return ids[len(ids) - room :]
    head = min(cut.head_length, room // 2)
    return np.concatenate([ids[:head], ids[len(ids) - (room - head) :]])


def _assemble(
    template: Template, first: list[IntArray], second: list[IntArray] | None, n_cut: int
) -> Encoded:
    prefix, middle, suffix = (
        np.asarray(part, dtype=np.int32) for part in (template.prefix, template.middle, template.suffix)
    )
    rows: Iterable[tuple[IntArray, ...]]
    types = None
    if second is None:
        rows = ((prefix, ids, suffix) for ids in first)
        lengths = [len(ids) + template.n_special for ids in first]
    else:
        rows = ((prefix, a, middle, b, suffix) for a, b in zip(first, second, strict=True))
        lengths = [len(a) + len(b) + template.n_special for a, b in zip(first, second, strict=True)]
        types = _segments(template, first, second)
    parts = list(chain.from_iterable(rows))
    ids = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int32)
    starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    document = np.arange(len(first), dtype=np.int32)
    return Encoded(ids, starts, document, len(first), types, n_cut)


def _segments(template: Template, first: list[IntArray], second: list[IntArray]) -> npt.NDArray[np.int8]:
    """Segment ids as BERT counts them: 0 up to the separator after the first text, 1 after it."""
    before, after = len(template.prefix), len(template.suffix)
    parts = []
    for a, b in zip(first, second, strict=True):
        parts.append(np.zeros(before + len(a), dtype=np.int8))
        middle = np.zeros(len(template.middle), dtype=np.int8)
        if len(middle):
            middle[-1] = template.segment_of_middle
        parts += [middle, np.ones(len(b) + after, dtype=np.int8)]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int8)


def warn_cut(n_cut: int, n_documents: int, cut: Cut) -> None:
    """Say once how many documents were cut, if any."""
    if n_cut:
        warn_user(
            f"{n_cut} of {n_documents} documents are longer than {cut.max_length} tokens and were cut "
            f"(truncation={cut.truncation!r}).",
            TruncationWarning,
        )
