"""Prompts and labels become tokens; a document that is too long for its prompt is cut, the prompt never."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._engine.inference.continuations import Continuations
from ..._engine.text.documents import Documents
from ..._engine.text.encoding import TextEncoder
from ..._engine.text.windows import Cut, IntArray, plan_windows, warn_cut
from .frames import Frame

ROOM = 4  # tokens that a prompt must leave for a document at least


@dataclass(frozen=True)
class Prompter:
    """Makes tokens of prompts for one model.

    Parameters
    ----------
    encoder : TextEncoder
        The model's tokens.
    frame : Frame
        The prompt.
    limit : int
        Tokens of a prompt at most.
    chat : bool
        Whether the prompt has all its special tokens already.
    ends : bool
        Whether special tokens after a text are part of a prompt: for an encoder, not for what a decoder goes on from.
    special : tuple of str
        Texts that the tokenizer takes for special tokens: in a document they are broken up, or a document could end
        its own turn of a chat and begin another.
    """

    encoder: TextEncoder
    frame: Frame
    limit: int
    chat: bool
    ends: bool
    special: tuple[str, ...]

    def prompts(self, documents: Documents, cut: Cut, *, warn: bool = True) -> list[IntArray]:
        """Return the tokens of each document's prompt, with one warning of documents that are cut."""
        columns = [documents.first] if documents.second is None else [documents.first, documents.second]
        rows, n_cut = [], 0
        for texts in zip(*columns, strict=True):
            harmless = [self._harmless(text) for text in texts]
            ids = self.tokens(self.frame.filled(harmless))
            if len(ids) > self.limit:
                ids, n_cut = self._shortened(harmless, len(ids) - self.limit, cut), n_cut + 1
            # without any token there is nothing to go on from
            rows.append(ids if len(ids) else _ints([self.encoder.unknown]))
        if warn:
            warn_cut(n_cut, len(documents), cut)
        return rows

    def tokens(self, prompt: str) -> IntArray:
        """Return the tokens of a whole prompt."""
        ids = self._plain(prompt)
        around = self.encoder.single
        before = () if self.chat else around.prefix
        after = around.suffix if self.ends and not self.chat else ()
        return np.concatenate([_ints(before), ids, _ints(after)])

    def require_room(self) -> None:
        """Raise when the prompt alone is too long for the model."""
        n = len(self.tokens(self.frame.filled(["", ""])))
        if n + ROOM > self.limit:
            raise ValueError(
                f"the prompt takes {n} tokens without a document, of {self.limit} that max_length and the model leave "
                f"beside the longest label; lower n_shots, pass shorter examples, template or instruction, or raise "
                f"max_length."
            )

    def _plain(self, text: str) -> IntArray:
        return self.encoder.tokenize(Documents([text]))[0][0]

    def _harmless(self, text: str) -> str:
        return harmless(text, self.special)

    def _shortened(self, texts: Sequence[str], excess: int, cut: Cut) -> IntArray:
        """Drop the tokens that `cut` would, and more where the cut text has more tokens than it had in the whole."""
        documents = Documents([texts[0]], [texts[1]] if len(texts) == 2 else None)
        columns, offsets = self.encoder.tokenize_placed(documents)
        lengths = [[len(column[0])] for column in columns]
        room = sum(n for (n,) in lengths) - excess
        while room > 0:
            plan = plan_windows(lengths[0], lengths[1] if len(lengths) == 2 else None, room, cut)
            ranges = (plan.windows[0].first, plan.windows[0].second)
            shorter = []
            for i, text in enumerate(texts):
                n, places = lengths[i][0], None if offsets is None else offsets[i][0]
                shorter.append(" ".join(_piece(text, a, b, n, places) for a, b in ranges[i]))
            ids = self.tokens(self.frame.filled(shorter))
            if len(ids) <= self.limit:
                return ids
            room -= len(ids) - self.limit
        return self.tokens(self.frame.filled(["", ""]))


def _piece(text: str, a: int, b: int, n: int, places: Any) -> str:
    """Return the characters of tokens `a` to `b` of n; a share of the text where nobody tells their places."""
    if places is None:
        return text[a * len(text) // n : b * len(text) // n]
    return text[int(places[a][0]) : int(places[b - 1][1])] if b > a else ""


def harmless(text: str, special: Sequence[str]) -> str:
    """Put a blank into each special token that a text spells out."""
    for token in special:
        if token in text:
            text = text.replace(token, f"{token[:1]} {token[1:]}")
    return text


def special_texts(tokenizer: Any) -> tuple[str, ...]:
    """Return the texts that a tokenizer takes for special tokens, the longest first."""
    added = (str(token) for token in getattr(tokenizer, "added_tokens_decoder", {}).values() if token.special)
    found = {*tokenizer.all_special_tokens, *added}
    return tuple(sorted((token for token in found if len(token) > 1), key=lambda token: (-len(token), token)))


def label_tokens(encoder: TextEncoder, frame: Frame, words: Sequence[str], *, alone: bool) -> Continuations:
    """Return the tokens of the labels as they come after the prompt; `alone` where a decoder begins with them.

    A label is tokenized behind the prompt's end: many vocabularies spell a word otherwise at the beginning of a text.

    Raises
    ------
    ValueError
        When two labels are the same tokens.
    """
    end = frame.parts[-1]
    before = "" if alone else end or "."
    head = encoder.tokenize(Documents([before]))[0][0]
    ids = []
    for word in words:
        joint = "" if alone else frame.joint
        whole = encoder.tokenize(Documents([before + joint + word]))[0][0]
        tail = whole[len(head) :]
        if alone or not len(tail) or not np.array_equal(whole[: len(head)], head):
            tail = encoder.tokenize(Documents([joint + word]))[0][0]
        if not len(tail):
            raise ValueError(
                f"the model has no tokens for the label {word!r}; give it other words in labels."
            )
        ids.append(tail)
    seen: dict[tuple[int, ...], str] = {}
    for word, row in zip(words, ids, strict=True):
        other = seen.setdefault(tuple(row.tolist()), word)
        if other != word:
            raise ValueError(
                f"the labels {other!r} and {word!r} are the same tokens to this model; give them other words in labels."
            )
    return Continuations(tuple(ids))


def _ints(ids: Sequence[int]) -> IntArray:
    return np.asarray(ids, dtype=np.int32)
