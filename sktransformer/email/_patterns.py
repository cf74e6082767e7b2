"""Small helpers that turn tables of words into patterns."""

import re
from collections.abc import Iterable
from itertools import groupby


def alternatives(words: Iterable[str]) -> str:
    """A pattern for any of the words, longest first, any run of blanks for a blank.

    Words that begin alike share their beginning: a text is held against few letters instead of every word.
    """
    return "|".join(_branches(sorted({_letters(word) for word in words})))


def compile_any(patterns: Iterable[str], *, prefix: str = "", suffix: str = "") -> re.Pattern[str]:
    """One compiled pattern that matches any of several."""
    return re.compile(f"{prefix}(?:{'|'.join(patterns)}){suffix}")


def _letters(word: str) -> tuple[str, ...]:
    """The pattern of each letter of a word."""
    return tuple(" +" if letter == " " else re.escape(letter) for letter in word)


def _branches(words: list[tuple[str, ...]]) -> list[str]:
    """One pattern for each first letter of some sorted words."""
    branches = []
    for letter, group in groupby(filter(None, words), key=lambda word: word[0]):
        rests = [word[1:] for word in group]
        below = _branches(rests)
        if () in rests:
            branches.append(f"{letter}(?:{'|'.join(below)})?" if below else letter)
        else:
            branches.append(f"{letter}(?:{'|'.join(below)})" if len(below) > 1 else f"{letter}{below[0]}")
    return branches
