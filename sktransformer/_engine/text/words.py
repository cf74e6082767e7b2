"""Sentences as words become token windows, and each word knows the token that speaks for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from .documents import Documents
from .encoding import TextEncoder
from .placing import Offsets, Placed
from .windows import Cut, Encoded, IntArray

IndexArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PlacedWords:
    """Windows, and for the words of all sentences, end to end, where in ``encoded.ids`` their first token is.

    A word that stands in several windows is read in the one where that token is farthest from a cut, so that it sees as
    much of both sides as any window shows. `window` (n_words,) says which.
    """

    encoded: Encoded
    tokens: IndexArray
    window: IndexArray


def encode_words(encoder: TextEncoder, sentences: Sequence[Sequence[str]], cut: Cut) -> PlacedWords:
    """Encode sentences, whose words a blank separates, in windows that leave out none of them.

    A word that the tokenizer turns into nothing (blanks, control characters) is read as an unknown one, so that it has
    a token too.

    Parameters
    ----------
    encoder : TextEncoder
        Of the model.
    sentences : sequence of n sequences of str
        The words; a sentence may have none.
    cut : Cut
        With truncation "chunk".
    """
    if encoder.tells_offsets:
        columns, firsts = _by_offsets(encoder, sentences)
    else:
        columns, firsts = _word_by_word(encoder, sentences)
    placed = encoder.place([columns], None, cut)
    tokens, window = _farthest_from_a_cut(placed, firsts, list(map(len, columns)))
    return PlacedWords(placed.encoded, tokens, window)


def _by_offsets(
    encoder: TextEncoder, sentences: Sequence[Sequence[str]]
) -> tuple[list[IntArray], list[IndexArray]]:
    """Return the tokens of each sentence as one text, and the number of each word's first one."""
    (columns,), found = encoder.tokenize_placed(Documents([" ".join(words) for words in sentences]))
    (offsets,) = found or ([],)
    blanks, firsts = encoder.blanks, []
    for i, (words, characters) in enumerate(zip(sentences, offsets, strict=True)):
        first = first_tokens(words, characters, ~np.isin(columns[i], blanks))
        if (first < 0).any():
            columns[i], first = _with_unknown(columns[i], first, encoder.unknown)
        firsts.append(first)
    return columns, firsts


def first_tokens(
    words: Sequence[str], offsets: Offsets, speaks: npt.NDArray[np.bool_] | None = None
) -> IndexArray:
    """Return the number of each word's first token; -1 for a word without one.

    A token belongs to the word that its last character is in: the first one may be the blank before the word. Tokens
    for which `speaks` is False stand for no word.
    """
    ends = np.fromiter(accumulate((len(word) + 1 for word in words), initial=-1), dtype=np.int64)
    starts, ends = ends[:-1] + 1, ends[1:]
    first = np.full(len(words), -1, dtype=np.int64)
    if not len(words) or not len(offsets):
        return first
    last = offsets[:, 1].astype(np.int64) - 1
    owner = (
        np.searchsorted(starts, last, side="right") - 1
    )  # an empty word shares its start with the blank behind it
    real = (offsets[:, 1] > offsets[:, 0]) & (last < ends[owner])
    tokens = np.flatnonzero(real if speaks is None else real & speaks)
    # backwards, so that of a word's tokens the first is the last to be written
    first[owner[tokens[::-1]]] = tokens[::-1]
    return first


def _with_unknown(ids: IntArray, first: IndexArray, unknown: int) -> tuple[IntArray, IndexArray]:
    """Put an unknown token where a word has none: before the next word's first one."""
    behind = np.append(first, len(ids))
    for i in range(len(first) - 1, -1, -1):
        behind[i] = behind[i + 1] if first[i] < 0 else first[i]
    gaps = np.flatnonzero(first < 0)
    longer = np.insert(ids, behind[gaps], unknown).astype(np.int32)
    shift = np.cumsum(first < 0)  # unknown tokens put in before or for each word
    return longer, np.where(first < 0, behind[:-1] + shift - 1, first + shift)


def _word_by_word(
    encoder: TextEncoder, sentences: Sequence[Sequence[str]]
) -> tuple[list[IntArray], list[IndexArray]]:
    """Return the tokens of each sentence's words, each encoded apart, and the number of each word's first one.

    Tokenizers in pure Python don't tell which characters a token stands for.
    """
    different = sorted({word for words in sentences for word in words})
    (found,) = encoder.tokenize(Documents(different))
    unknown = np.asarray([encoder.unknown], dtype=np.int32)
    of_word = {word: ids if len(ids) else unknown for word, ids in zip(different, found, strict=True)}
    columns, firsts = [], []
    for words in sentences:
        parts = [of_word[word] for word in words]
        columns.append(np.concatenate([np.zeros(0, dtype=np.int32), *parts]).astype(np.int32))
        firsts.append(np.cumsum([0, *map(len, parts[:-1])], dtype=np.int64)[: len(parts)])
    return columns, firsts


def _farthest_from_a_cut(
    placed: Placed, firsts: list[IndexArray], lengths: Sequence[int]
) -> tuple[IndexArray, IndexArray]:
    """Return for each word the place of its token in ``encoded.ids`` and the window, out of those that hold it."""
    encoded = placed.encoded
    n_words = list(map(len, firsts))
    bounds = np.cumsum([0, *lengths])  # the tokens of all texts, end to end
    wanted = np.concatenate([np.zeros(0, dtype=np.int64), *firsts])
    wanted = wanted + np.repeat(bounds[:-1], n_words)
    sizes = np.asarray(lengths, dtype=np.int64)
    of_window = np.repeat(np.arange(encoded.n_windows), encoded.lengths)
    # a sentence without any token may have been given a filler, which stands for none
    places = np.flatnonzero((placed.index >= 0) & (sizes[encoded.document[of_window]] > 0))
    window, index = of_window[places], placed.index[places].astype(np.int64)
    document = encoded.document[window]
    first = np.full(encoded.n_windows, np.iinfo(np.int64).max)
    last = np.full(encoded.n_windows, -1)
    np.minimum.at(first, window, index)
    np.maximum.at(last, window, index)
    far = np.iinfo(np.int64).max  # where a text begins or ends, nothing is cut
    before = np.where(first[window] == 0, far, index - first[window])
    behind = np.where(last[window] == sizes[document] - 1, far, last[window] - index)
    depth = np.minimum(before, behind)
    token = bounds[document] + index
    order = np.lexsort(
        (window, -depth, token)
    )  # of the windows of a token, the one farthest from a cut first
    _, kept = np.unique(token[order], return_index=True)
    best = order[kept]  # one place a token, in the tokens' order
    return places[best][wanted], window[best][wanted]
