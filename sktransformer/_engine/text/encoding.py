"""Documents become tokens: one tokenizer call a text, no padding, no truncation inside the tokenizer.

A fast tokenizer keeps its truncation and padding settings as state, and every ordinary call rewrites them: two threads
that share one raise "Already borrowed", or cut with each other's settings. So this module asks the backend for plain
ids only; special tokens and cuts are `windows`' business, in NumPy. Encoding reads, and never writes, the tokenizer.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from ..validation import mended
from .documents import Documents
from .placing import Offsets, Placed, places
from .windows import Cut, Encoded, IntArray, Plan, Segments, Template, assemble, plan_windows, warn_cut

PROBES = ("a", "0", ".", "的")  # known texts; a vocabulary learned on few texts may lack some


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
        """Return the windows of each document: one of at most ``cut.max_length`` tokens, or several to "chunk".

        Raises
        ------
        ValueError
            When `max_length` leaves no room beside the special tokens.
        """
        columns = self.tokenize(documents)
        template, plan = self._plan(columns, cut)
        if warn:
            warn_cut(plan.n_cut, len(documents), cut)
        return assemble(template, columns, plan)

    def encode_placed(self, documents: Documents, cut: Cut, *, warn: bool = True) -> Placed:
        """Return the windows that `encode` returns, with the place of each token in its text."""
        columns, offsets = self.tokenize_placed(documents)
        return self.place(columns, offsets, cut, warn=warn)

    def tokenize_placed(
        self, documents: Documents
    ) -> tuple[list[list[IntArray]], tuple[list[Offsets], ...] | None]:
        """Return what `tokenize` returns, and the characters of each token, or None where nobody tells."""
        if self._backend is None:
            return self.tokenize(documents), None
        found = [[self._tokens(text) for text in texts] for texts in _columns(documents)]
        columns = [[ids for ids, _ in column] for column in found]
        return columns, tuple([characters for _, characters in column] for column in found)

    def place(
        self,
        columns: list[list[IntArray]],
        offsets: tuple[list[Offsets], ...] | None,
        cut: Cut,
        *,
        warn: bool = True,
    ) -> Placed:
        """Return the windows of texts that are tokens already: a list of the first texts, and one of the second."""
        template, plan = self._plan(columns, cut)
        text, index = places(template, plan, pairs=len(columns) == 2)
        if warn:
            warn_cut(plan.n_cut, len(columns[0]), cut)
        return Placed(assemble(template, columns, plan), text, index, offsets)

    @property
    def tells_offsets(self) -> bool:
        """Whether tokens know their characters: those of tokenizers in pure Python don't."""
        return self._backend is not None

    @property
    def unknown(self) -> int:
        """The id that stands for a word of which the tokenizer makes nothing."""
        unknown = self._tokenizer.unk_token_id
        return int(self._filler[0] if unknown is None else unknown)

    @property
    def blanks(self) -> list[int]:
        """The ids of tokens that say no more than that a word begins: SentencePiece's and byte-level BPE's blank."""
        found = [] if self._backend is None else map(self._backend.token_to_id, ("\u2581", "\u0120"))
        return [i for i in found if i is not None]

    def _plan(self, columns: list[list[IntArray]], cut: Cut) -> tuple[Template, Plan]:
        """Plan the windows; a document that would have no token at all gets one, in place."""
        template = self.single if len(columns) == 1 else self.pair
        room = cut.room(template.n_special)
        lengths = [list(map(len, column)) for column in columns]
        if not template.n_special:
            for i, row in enumerate(zip(*lengths, strict=True)):
                if not sum(row):
                    columns[0][i], lengths[0][i] = self._filler, 1
        return template, plan_windows(lengths[0], lengths[1] if len(lengths) == 2 else None, room, cut)

    def tokenize(self, documents: Documents) -> list[list[IntArray]]:
        """Return the ids of each text without special tokens, a list for the first texts and one for the second."""
        return [self._ids(texts) for texts in _columns(documents)]

    def targets(self, texts: list[str]) -> list[IntArray]:
        """Return the ids of texts that a model is to write, without special tokens.

        Marian's tokenizer cuts them otherwise than texts to be read.
        """
        if self._backend is not None or not hasattr(self._tokenizer, "_switch_to_target_mode"):
            return self._ids(texts)
        with self._lock:
            # Transformers has no other way to its target side than this method, behind its `text_target`
            self._tokenizer._switch_to_target_mode()
            try:
                return self._left([np.asarray(self._plain(text), dtype=np.int32) for text in texts])
            finally:
                self._tokenizer._switch_to_input_mode()

    def text(self, ids: Sequence[int]) -> str:
        """Return the text that a model wrote, special tokens left out."""
        with self._lock if self._backend is None else nullcontext():
            return str(self._tokenizer.decode(list(ids), skip_special_tokens=True))

    def _left(self, rows: list[IntArray]) -> list[IntArray]:
        return rows if self._left_out is None else [ids[ids != self._left_out] for ids in rows]

    def _ids(self, texts: list[str]) -> list[IntArray]:
        if self._backend is not None:
            # one by one: as fast as a batch on few cores, and it starts no threads that a later fork would trip over
            encode = self._plain_backend().encode
            # documents are mended where they are read; prefixes, labels and templates come as users wrote them
            found = [encode(mended(text), add_special_tokens=False) for text in texts]
            rows = [np.asarray(one.ids, dtype=np.int32) for one in found]
        else:
            with self._lock:
                rows = [np.asarray(self._plain(text), dtype=np.int32) for text in texts]
        return self._left(rows)

    def _tokens(self, text: str) -> tuple[IntArray, Offsets]:
        """Return the ids of a text, and the characters that each stands for."""
        found = self._plain_backend().encode(text, add_special_tokens=False)
        ids = np.asarray(found.ids, dtype=np.int32)
        offsets = np.asarray(found.offsets, dtype=np.int32).reshape(-1, 2)
        kept = ids != self._left_out if self._left_out is not None else slice(None)
        return ids[kept], offsets[kept]

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

    def pieces(self, text: str) -> list[str]:
        """Return the tokens of a text as the tokenizer spells them: what one in pure Python can be matched by."""
        with self._lock:
            return list(self._tokenizer.tokenize(text))

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
        pieces = (text, text) if pair else (text,)
        full = self._tokenizer(*pieces, verbose=False)  # which says so where the model reads fewer tokens
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
        return list(self._tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])


def _columns(documents: Documents) -> list[list[str]]:
    return [documents.first] if documents.second is None else [documents.first, documents.second]


def _find(ids: list[int], part: list[int], start: int) -> int:
    for i in range(start, len(ids) - len(part) + 1):
        if ids[i : i + len(part)] == part:
            return i
    raise ValueError(
        "the tokenizer changes a text's tokens when it adds special tokens; such a tokenizer can't be used."
    )
