"""What a model reads of a document: one window of its tokens, or several that overlap.

A window is planned as ranges of its texts' tokens, and only then gathered: whoever wants to know where a token of a
window stood in its text (tags, answers) asks the same plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from ..errors import TruncationWarning, did_you_mean, warn_user
from ..validation import check_number

Truncation = Literal["head", "tail", "head_tail", "chunk"]
TRUNCATIONS = ("head", "tail", "head_tail", "chunk")
IntArray = npt.NDArray[np.int32]
Range = tuple[int, int]  # the first token and the one after the last


@dataclass(frozen=True)
class Encoded:
    """Token windows, laid end to end.

    ``ids[starts[w]:starts[w + 1]]`` are the int32 token ids of window ``w``, special tokens included; ``types`` are its
    segment ids when documents are pairs; ``document[w]`` is the row it belongs to, in ascending order. `n_cut`
    documents lost tokens.
    """

    ids: IntArray
    starts: npt.NDArray[np.int64]
    document: IntArray
    n_documents: int
    types: npt.NDArray[np.int8] | None = None
    n_cut: int = 0

    @property
    def n_windows(self) -> int:
        return len(self.document)

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
    """How documents longer than the model are read: `max_length` counts special tokens too.

    "chunk" reads all of them, in windows of `max_length` tokens of which two neighbours share `stride`; the other ways
    drop tokens.
    """

    max_length: int = 512
    truncation: Truncation = "head_tail"
    head_length: int = 128
    stride: int = 64

    def __post_init__(self) -> None:
        if self.truncation not in TRUNCATIONS:
            hint = did_you_mean(str(self.truncation), TRUNCATIONS)
            raise ValueError(
                f"truncation={self.truncation!r} is not known; choose one of {TRUNCATIONS}.{hint}"
            )
        for name in ("max_length", "head_length"):
            check_number(name, getattr(self, name), low=1, integer=True)
        check_number("stride", self.stride, low=0, integer=True)

    def room(self, n_special: int) -> int:
        """Tokens that a window has for texts.

        Raises
        ------
        ValueError
            When there are none, or when windows that share `stride` of them would not get on.
        """
        room = self.max_length - n_special
        if room < 1:
            raise ValueError(
                f"max_length={self.max_length} leaves no room beside {n_special} special tokens; raise max_length."
            )
        if self.truncation == "chunk" and self.stride >= room:
            raise ValueError(
                f"stride={self.stride} must be below the {room} tokens that max_length={self.max_length} leaves beside "
                f"{n_special} special tokens; lower stride or raise max_length."
            )
        return room


@dataclass(frozen=True)
class Window:
    """Ranges of the tokens of a document's first text, and of its second where documents are pairs."""

    document: int
    first: tuple[Range, ...]
    second: tuple[Range, ...] = ()


@dataclass
class Plan:
    """The windows of all documents, in order, and how many documents lose tokens."""

    windows: list[Window] = field(default_factory=list)
    n_cut: int = 0


def plan_windows(first: Sequence[int], second: Sequence[int] | None, room: int, cut: Cut) -> Plan:
    """Plan the windows of documents whose texts have `first` (and `second`) tokens."""
    plan = Plan()
    for document, n in enumerate(first):
        if second is None:
            plan.windows += [Window(document, ranges) for ranges in _ranges(n, room, cut)]
            plan.n_cut += n > room and cut.truncation != "chunk"
            continue
        m = second[document]
        a, b = _share(n, m, room)
        plan.n_cut += n + m > room and not (cut.truncation == "chunk" and a == n)
        if cut.truncation != "chunk":
            plan.windows.append(Window(document, _shorten(n, a, cut), _shorten(m, b, cut)))
            continue
        # the first text, a question say, stands in every window; the second is read through
        plan.windows += [Window(document, ((0, a),), ranges) for ranges in _ranges(m, b, cut)]
    return plan


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


def _shorten(n: int, room: int, cut: Cut) -> tuple[Range, ...]:
    """Keep `room` of n tokens: the first, the last, or the first `head_length` (at most a half) and the last."""
    if n <= room:
        return ((0, n),)
    if cut.truncation == "head":
        return ((0, room),)
    if cut.truncation == "tail":
        return ((n - room, n),)
    head = min(cut.head_length, room // 2)
    return ((0, head), (n - (room - head), n))


def _ranges(n: int, room: int, cut: Cut) -> list[tuple[Range, ...]]:
    """The windows of a text of n tokens, each a tuple of ranges."""
    if cut.truncation != "chunk" or n <= room:
        return [_shorten(n, room, cut)]
    step = max(1, room - cut.stride)  # a long first text may leave the second less than `stride`
    n_windows = 1 + -(-(n - room) // step)
    return [((i * step, min(n, i * step + room)),) for i in range(n_windows)]


def assemble(template: Template, columns: list[list[IntArray]], plan: Plan) -> Encoded:
    """Lay prefix, first text, middle, second text and suffix of each window end to end."""
    prefix, middle, suffix = (
        np.asarray(part, dtype=np.int32) for part in (template.prefix, template.middle, template.suffix)
    )
    pairs = len(columns) == 2
    parts: list[IntArray] = []
    sizes: list[tuple[int, int]] = []
    for window in plan.windows:
        first = [columns[0][window.document][a:b] for a, b in window.first]
        second = [columns[1][window.document][a:b] for a, b in window.second] if pairs else []
        sizes.append((sum(map(len, first)), sum(map(len, second))))
        parts += [prefix, *first, *([middle, *second] if pairs else []), suffix]
    lengths = [a + b + template.n_special for a, b in sizes]
    return Encoded(
        np.concatenate(parts) if parts else np.zeros(0, dtype=np.int32),
        np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]),
        np.asarray([window.document for window in plan.windows], dtype=np.int32),
        len(columns[0]),
        None if template.segments is None else _types(template.segments, sizes, pairs),
        plan.n_cut,
    )


def _types(segments: Segments, sizes: list[tuple[int, int]], pairs: bool) -> npt.NDArray[np.int8]:
    """Repeat the template's segment ids over the windows' tokens."""
    prefix, middle, suffix = (
        np.asarray(part, dtype=np.int8) for part in (segments.prefix, segments.middle, segments.suffix)
    )
    parts: list[npt.NDArray[np.int8]] = []
    for a, b in sizes:
        parts += [prefix, np.full(a, segments.first, dtype=np.int8)]
        if pairs:
            parts += [middle, np.full(b, segments.second, dtype=np.int8)]
        parts.append(suffix)
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int8)


def warn_cut(n_cut: int, n_documents: int, cut: Cut) -> None:
    """Say once how many documents were cut, if any."""
    if n_cut:
        whole = "" if cut.truncation == "chunk" else '; truncation="chunk" reads them whole'
        warn_user(
            f"{n_cut} of {n_documents} documents are longer than {cut.max_length} tokens and were cut "
            f"(truncation={cut.truncation!r}){whole}.",
            TruncationWarning,
            n_cut=int(n_cut),
            n_documents=int(n_documents),
        )
