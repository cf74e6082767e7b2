"""Small helpers that turn tables of words into patterns."""

import re
from collections.abc import Iterable


def alternatives(words: Iterable[str]) -> str:
    """A pattern for any of the words, longest first, any run of blanks for a blank."""
    ordered = sorted(words, key=lambda word: (-len(word), word))
    return "|".join(re.escape(word).replace(r"\ ", " +") for word in ordered)


def compile_any(patterns: Iterable[str], *, prefix: str = "", suffix: str = "") -> re.Pattern[str]:
    """One compiled pattern that matches any of several."""
    return re.compile(f"{prefix}(?:{'|'.join(patterns)}){suffix}")
