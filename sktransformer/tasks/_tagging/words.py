"""Where the words of a raw text are: a simple rule, the same when spans are learned and when they are predicted."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

Place = tuple[int, int]  # the first character and the one after the last

# Written over a map of the text in which a letter is "a", a digit "0", a blank " " and all else itself.
_WORD = re.compile(
    r"""
    [a0]+ (?: (?: (?<=0)[.,:](?=0) | ['’.&@+\u2010\u2011-](?=[a0]) ) [a0]+ )*   # 5.975,74  O'Neil-Martin  a@b.org
    | ([^a0\ ])\1*                                                              # one mark, or a row of the same
    """,
    re.VERBOSE,
)
# What French writes together with the next word, and dictionaries, and most tagged corpora, keep apart.
_ELISION = re.compile(r"(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quoiqu)['’](?=\w)", re.IGNORECASE)


def word_places(text: str) -> list[Place]:
    """Return where the words of a text begin and end, in code points.

    A word is a run of letters, digits and combining marks, with what joins two of them (apostrophes, hyphens, full
    stops, ``&``, ``@``, ``+``; between digits a comma or a colon too). A French article or pronoun that has lost its
    vowel is a word of its own ("l'" and "hôpital"). Every other visible character is a word, a row of the same one
    together ("..."). No word begins or ends between two letters or digits, and none holds a blank.

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    list of (int, int)
        The first character of each word, and the one after its last.

    Examples
    --------
    >>> from sktransformer.tasks.tagging import word_places
    >>> text = "Facture de 5.975,74 € à l'hôpital."
    >>> [text[start:end] for start, end in word_places(text)]
    ['Facture', 'de', '5.975,74', '€', 'à', "l'", 'hôpital', '.']
    """
    mapped = "".join(map(_kind, text))
    places: list[Place] = []
    for match in _WORD.finditer(mapped):
        start, end = match.span()
        elided = _ELISION.match(text, start, end)
        while elided:
            places.append((start, elided.end()))
            start = elided.end()
            elided = _ELISION.match(text, start, end)
        places.append((start, end))
    return places


@lru_cache(maxsize=4096)
def _kind(character: str) -> str:
    if character.isspace():
        return " "
    category = unicodedata.category(character)
    if category == "Cc":  # control characters, which are no blanks to Python
        return " "
    if category == "Nd":
        return "0"
    return "a" if character.isalnum() or character == "_" or category[0] == "M" else character
