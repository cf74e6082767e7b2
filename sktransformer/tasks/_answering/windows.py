"""Questions and contexts as windows of tokens: where answers stand in them, and which characters tokens stand for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from ..._engine.errors import TruncationWarning, warn_user
from ..._engine.text.documents import Documents, places_given
from ..._engine.text.encoding import TextEncoder
from ..._engine.text.matching import match_pieces
from ..._engine.text.placing import Offsets
from ..._engine.text.windows import Cut, Encoded
from ..._engine.training.data import Examples, WindowTargets
from ..._engine.training.spans import NO_ANSWER

CONTEXT = 1  # the second text of a pair
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ContextWindows:
    """The windows of documents, and in each the part that is context.

    Window `w` holds the tokens `first[w]` up to, not including, `stop[w]` of its document's context, which begin at its
    position `begin[w]`. ``characters[d]`` are begin and end of each context token of document `d`, without blanks at
    its edges; both are equal for a token of nothing but blanks.
    """

    encoded: Encoded
    begin: Positions
    first: Positions
    stop: Positions
    characters: list[Offsets]

    @property
    def end(self) -> Positions:
        """The position behind the context of each window."""
        return self.begin + self.stop - self.first


def context_windows(encoder: TextEncoder, documents: Documents, cut: Cut) -> ContextWindows:
    """Encode pairs of a question and a context, in windows that overlap.

    Raises
    ------
    ValueError
        When windows would not get on, or the tokenizer's tokens can't be found in their texts.
    """
    cut.room(encoder.pair.n_special)  # before anything is tokenized
    placed = encoder.encode_placed(documents, cut, warn=False)
    encoded, contexts = placed.encoded, documents.second or []
    inside = placed.text == CONTEXT
    counts = (
        np.add.reduceat(inside, encoded.starts[:-1], dtype=np.int64) if len(inside) else np.zeros(0, np.int64)
    )
    tokens = np.flatnonzero(inside)
    heads = np.minimum(
        np.cumsum(counts) - counts, max(0, len(tokens) - 1)
    )  # each window's first context token
    first = np.where(counts > 0, placed.index[tokens[heads]], 0) if len(tokens) else np.zeros_like(counts)
    begin = (
        np.where(counts > 0, tokens[heads] - encoded.starts[:-1], 0) if len(tokens) else np.zeros_like(counts)
    )
    offsets = _matched(encoder, contexts) if placed.offsets is None else placed.offsets[CONTEXT]
    characters = [_without_blanks(of_text, text) for of_text, text in zip(offsets, contexts, strict=True)]
    if documents.given is not None:
        characters = [
            places_given(text)[of_text] for of_text, text in zip(characters, documents.given, strict=True)
        ]
    return ContextWindows(encoded, begin, first, first + counts, characters)


def warn_of_cuts(n_cut: int, n_documents: int, cut: Cut) -> None:
    """Say once how many questions were cut, if any: contexts are read whole."""
    if n_cut:
        warn_user(
            f"{n_cut} of {n_documents} questions do not fit into {cut.max_length} tokens beside their contexts and "
            f"were cut; raise max_length, or shorten the questions.",
            TruncationWarning,
            n_cut=int(n_cut),
            n_documents=n_documents,
        )


def _matched(encoder: TextEncoder, contexts: list[str]) -> list[Offsets]:
    """Find the tokens of a tokenizer that does not say where they stood, each context once."""
    found: dict[str, Offsets] = {}
    for i, text in enumerate(contexts):
        if text in found:
            continue
        places = match_pieces(encoder.pieces(text), text)
        if places is None:
            raise ValueError(
                f"X[{i}]: the tokens of this model's tokenizer, which is in pure Python, can't be found in the context "
                f"again; pass a model with a fast tokenizer, such as CamemBERT, BERT or XLM-RoBERTa."
            )
        found[text] = places
    return [found[text] for text in contexts]


def _without_blanks(offsets: Offsets, text: str) -> Offsets:
    """Move both ends of each token inwards over blanks: byte-level tokens begin with one."""
    trimmed = offsets.copy()
    blanks = np.fromiter((character.isspace() for character in text), dtype=bool, count=len(text))
    if not blanks.any() or not len(offsets):
        return trimmed
    # the next character that is no blank, from each one on; and the last such, up to each one
    places = np.arange(len(text))
    onward = np.minimum.accumulate(np.where(blanks, len(text), places)[::-1])[::-1]
    back = np.maximum.accumulate(np.where(blanks, -1, places))
    filled = offsets[:, 1] > offsets[:, 0]
    trimmed[filled, 0] = np.minimum(onward[offsets[filled, 0]], offsets[filled, 1])
    trimmed[filled, 1] = np.maximum(back[offsets[filled, 1] - 1] + 1, trimmed[filled, 0])
    return trimmed


def answer_examples(windows: ContextWindows, places: Positions) -> tuple[Examples, int]:
    """Return the targets of windows, of which `places` (n, 2) are the answers' characters; -1 where there is none.

    A window that holds an answer whole points at it, any other at its own first token. The windows of both kinds have
    half of their document's weight each, so that a long context does not teach to find nothing. A document whose answer
    no window holds whole has no share in training; how many there are comes second.
    """
    owners = windows.encoded.document
    tokens = np.asarray(
        [_tokens(of_text, *place) for of_text, place in zip(windows.characters, places.tolist(), strict=True)]
    ).reshape(-1, 2)
    answered = places[:, 0] >= 0
    start, end = tokens[owners].T
    holds = answered[owners] & (start >= windows.first) & (end < windows.stop) & (start >= 0)
    values = np.stack(
        [
            np.where(holds, windows.begin + start - windows.first, NO_ANSWER),
            np.where(holds, windows.begin + end - windows.first, NO_ANSWER),
            windows.begin,
            windows.end,
        ],
        axis=1,
    )
    n_documents = windows.encoded.n_documents
    n_holding = np.bincount(owners, weights=holds, minlength=n_documents)
    n_others = np.bincount(owners, weights=~holds, minlength=n_documents)
    kinds = (n_holding > 0).astype(float) + (n_others > 0)
    shares = 1.0 / (kinds[owners] * np.where(holds, n_holding[owners], n_others[owners]))
    lost = answered & (n_holding == 0)
    shares[lost[owners]] = 0.0
    targets = WindowTargets(torch.from_numpy(values.astype(np.int64)))
    return Examples(windows.encoded, targets, shares), int(lost.sum())


def _tokens(characters: Offsets, begin: int, end: int) -> tuple[int, int]:
    """Return the first and the last token that share a character with an answer; -1, -1 where none does."""
    if begin < 0:
        return -1, -1
    touched = np.flatnonzero((characters[:, 0] < end) & (characters[:, 1] > begin))
    return (int(touched[0]), int(touched[-1])) if len(touched) else (-1, -1)
