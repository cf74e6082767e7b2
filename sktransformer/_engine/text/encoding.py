"""Documents become token windows: one tokenizer call a text, no padding, no truncation inside the tokenizer.

A fast tokenizer keeps its truncation and padding settings as state, and every ordinary call rewrites them: two threads
that share one raise "Already borrowed", or cut with each other's settings. So this module asks the backend for plain
ids only, and adds special tokens and cuts by itself, in NumPy. Encoding reads, and never writes, the tokenizer.
"""

from __future__ import annotations

import copy
import threading
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..errors import TruncationWarning, did_you_mean, warn_user
from ..validation import check_number
from .documents import Documents

Truncation = Literal["head", "tail", "head_tail"]
TRUNCATIONS = ("head", "tail", "head_tail")
IntArray = npt.NDArray[np.int32]
PROBES = ("a", "0", ".", "的")  # known texts; a vocabulary learned on few texts may lack some


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
class Segments:
    """Segment ids of a template's parts, as the tokenizer gives them: one a special token, one a text."""

    prefix: tuple[int, ...]
    first: int
    middle: tuple[int, ...]
    second: int
    suffix: tuple[int, ...]


@dataclass(frozen=True)
class Template:
    """The special tokens round one text, or round and between two; `segments` where not all are 0."""

    prefix: tuple[int, ...]
    middle: tuple[int, ...]
    suffix: tuple[int, ...]
    segments: Segments | None = None

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
            check_number(name, getattr(self, name), low=1, integer=True)


class TextEncoder:
    """Read-only view of a tokenizer, safe to share between threads.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerBase
        The tokenizer.
    left_out : int, optional
        An id that documents may not have: the end token of models whose head counts those. A text that spells it, as
        HTML that crosses out with ``</s>`` does, loses it.
    """

    def __init__(self, tokenizer: Any, left_out: int | None = None) -> None:
        self._tokenizer = tokenizer
        self._left_out = left_out
        self._backend: Any = getattr(tokenizer, "backend_tokenizer", None)
        self._lock = threading.Lock()  # for tokenizers in pure Python, whose caches are not guarded
        self.single = self._find_template(pair=False)
        self.pair = self._find_template(pair=True)
        known = (tokenizer.eos_token_id, tokenizer.unk_token_id, tokenizer.pad_token_id, 0)
        self._filler = np.asarray([next(i for i in known if i is not None)], dtype=np.int32)

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
                f"max_length={cut.max_length} leaves no room beside {template.n_special} special tokens; "
                f"raise max_length."
            )
        columns = [self._ids(texts) for texts in (documents.first, documents.second) if texts is not None]
        totals = [sum(map(len, row)) for row in zip(*columns, strict=True)]
        if not template.n_special:  # an empty document still needs one token to be read
            pairs = zip(columns[0], totals, strict=True)
            columns[0] = [ids if total else self._filler for ids, total in pairs]
        n_cut = sum(total > room for total in totals)
        encoded = _assemble(template, _cut_columns(columns, room, cut), n_cut)
        if warn:
            warn_cut(n_cut, len(documents), cut)
        return encoded

    def _ids(self, texts: list[str]) -> list[IntArray]:
        rows = self._all_ids(texts)
        return rows if self._left_out is None else [ids[ids != self._left_out] for ids in rows]

    def _all_ids(self, texts: list[str]) -> list[IntArray]:
        if self._backend is not None:
            # one by one: as fast as a batch on few cores, and it starts no threads that a later fork would trip over
            encode = self._plain_backend().encode
            return [np.asarray(encode(text, add_special_tokens=False).ids, dtype=np.int32) for text in texts]
        with self._lock:
            return [np.asarray(self._plain(text), dtype=np.int32) for text in texts]

    def _plain_backend(self) -> Any:
        """Return a backend that neither cuts nor pads.

        That is the tokenizer's own, until somebody calls the tokenizer with ``truncation=`` or ``padding=``: the
        setting stays on the backend, and would cut here too. From then on it is a copy.
        """
        with self._lock:
            if self._backend.truncation is not None or self._backend.padding is not None:
                self._backend = copy.deepcopy(self._backend)
                self._backend.no_truncation()
                self._backend.no_padding()
            return self._backend

    def _plain(self, text: str) -> list[int]:
        tokens = self._tokenizer.tokenize(text)
        return list(self._tokenizer.convert_tokens_to_ids(tokens))

    def _find_template(self, *, pair: bool) -> Template:
        """Find the special tokens by encoding known texts with and without them."""
        text, bare = next(((probe, ids) for probe in PROBES if (ids := self._bare(probe))), ("", []))
        if not bare:
            raise ValueError(
                f"the tokenizer finds no token in any of {PROBES}; such a tokenizer can't be used."
            )
        full = self._tokenizer(text, text) if pair else self._tokenizer(text)
        ids = list(full["input_ids"])
        types = tuple(full.get("token_type_ids") or [0] * len(ids))
        start = _find(ids, bare, 0)
        end = start + len(bare)
        again = _find(ids, bare, end) if pair else end
        close = again + len(bare) if pair else end
        second = types[again] if pair else 0
        segments = Segments(types[:start], types[start], types[end:again], second, types[close:])
        return Template(
            tuple(ids[:start]), tuple(ids[end:again]), tuple(ids[close:]), segments if any(types) else None
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


def _cut_columns(columns: list[list[IntArray]], room: int, cut: Cut) -> list[list[IntArray]]:
    """Cut each document's texts so that together they have at most `room` tokens."""
    if len(columns) == 1:
        return [[_shorten(ids, room, cut) for ids in columns[0]]]
    shares = [_share(len(a), len(b), room) for a, b in zip(*columns, strict=True)]
    return [
        [_shorten(ids, share[i], cut) for ids, share in zip(column, shares, strict=True)]
        for i, column in enumerate(columns)
    ]


def _assemble(template: Template, columns: list[list[IntArray]], n_cut: int) -> Encoded:
    """Lay prefix, first text, middle, second text and suffix of each document end to end."""
    prefix, middle, suffix = (
        np.asarray(part, dtype=np.int32) for part in (template.prefix, template.middle, template.suffix)
    )
    if len(columns) == 1:
        parts = [part for ids in columns[0] for part in (prefix, ids, suffix)]
    else:
        parts = [part for a, b in zip(*columns, strict=True) for part in (prefix, a, middle, b, suffix)]
    lengths = [sum(map(len, row)) + template.n_special for row in zip(*columns, strict=True)]
    starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    n_documents = len(columns[0])
    return Encoded(
        np.concatenate(parts) if parts else np.zeros(0, dtype=np.int32),
        starts,
        np.arange(n_documents, dtype=np.int32),
        n_documents,
        None if template.segments is None else _types(template.segments, columns),
        n_cut,
    )


def _types(segments: Segments, columns: list[list[IntArray]]) -> npt.NDArray[np.int8]:
    """Repeat the template's segment ids over the documents' tokens."""
    prefix, middle, suffix = (
        np.asarray(part, dtype=np.int8) for part in (segments.prefix, segments.middle, segments.suffix)
    )
    parts: list[npt.NDArray[np.int8]] = []
    for row in zip(*columns, strict=True):
        parts += [prefix, np.full(len(row[0]), segments.first, dtype=np.int8)]
        if len(row) == 2:
            parts += [middle, np.full(len(row[1]), segments.second, dtype=np.int8)]
        parts.append(suffix)
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int8)


def warn_cut(n_cut: int, n_documents: int, cut: Cut) -> None:
    """Say once how many documents were cut, if any."""
    if n_cut:
        warn_user(
            f"{n_cut} of {n_documents} documents are longer than {cut.max_length} tokens and were cut "
            f"(truncation={cut.truncation!r}).",
            TruncationWarning,
        )
