"""Where the tokens of a tokenizer in pure Python stood in their text: it does not say, so they are matched.

Letters and digits decide. Such a tokenizer may change everything else on its way (FlauBERT's writes quotes, dashes and
dots anew), but keeps these in their order, letter case and accents aside.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import numpy as np

from .placing import Offsets

END_OF_WORD = "</w>"


def match_pieces(pieces: Sequence[str], text: str) -> Offsets | None:
    """Return begin and end of each piece in `text`, in characters (n, 2); None when the two do not fit together.

    A piece without letters and digits gets the next character that has none either, if there is one before the next
    letter, else an empty range.
    """
    letters, owners = _letters(text)
    found = np.zeros((len(pieces), 2), dtype=np.int32)
    at = begin = end = 0  # letters that are used up; the range of the piece before
    for i, piece in enumerate(pieces):
        bare, _ = _letters(piece.removesuffix(END_OF_WORD))
        if bare:
            if letters[at : at + len(bare)] != bare:
                return None
            begin, end = owners[at], _after(text, owners[at + len(bare) - 1])
            at += len(bare)
        else:
            until = owners[at] if at < len(owners) else len(text)
            free = next((j for j in range(end, until) if not text[j].isspace()), None)
            begin, end = (end, end) if free is None else (free, free + 1)
        found[i] = begin, end
    return found if at == len(letters) else None


def _letters(text: str) -> tuple[str, list[int]]:
    """Return the letters and digits of `text` without case and accents, and the character that each comes from."""
    letters: list[str] = []
    owners: list[int] = []
    for i, character in enumerate(text):
        for part in unicodedata.normalize("NFKD", character).casefold():
            if part.isalnum():
                letters.append(part)
                owners.append(i)
    return "".join(letters), owners


def _after(text: str, last: int) -> int:
    """Return the position behind a character and the marks that are combined with it."""
    end = last + 1
    while end < len(text) and unicodedata.combining(text[end]):
        end += 1
    return end
