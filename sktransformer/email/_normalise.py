"""Text as mail programs send it becomes comparable: blanks, apostrophes, accents, line ends."""

import re
import unicodedata
from itertools import accumulate

from .._engine.validation import mended

_REPLACEMENTS = (
    ("\u00a0", " "),  # no-break space, before ":" in French
    ("\u202f", " "),  # narrow no-break space, the same in newer mail programs
    ("\u2009", " "),  # thin space
    ("\u2019", "'"),  # typographic apostrophe
    ("\u2018", "'"),
    ("\u200b", ""),  # zero-width space
    ("\u2060", ""),  # word joiner
    ("\ufeff", ""),  # byte order mark
)

# Halves of a character that broken programs leave behind; no file, and no frame of pandas or polars, takes them.
_SURROGATE = re.compile("[\ud800-\udfff]")

# Unicode's stream-safe format (UAX #15, section 13) allows thirty combining marks in a row. Composing sorts
# each run of marks in quadratic time, so that 1 MB of them would take minutes: such text is left as it is.
_LONGEST_RUN_OF_MARKS = 30


def normalise(text: str) -> str:
    """Compose accents, make special blanks and apostrophes plain, drop invisible characters, mend surrogates.

    Line ends are not touched; :func:`split_lines` deals with them.

    Parameters
    ----------
    text : str
        Any text, lone surrogates included.

    Returns
    -------
    str
        The text in Unicode's form NFC, with the replacements above; two surrogates that belong together are one
        character, and a lone one is U+FFFD.

    Examples
    --------
    >>> normalise("Objet\u00a0: l\u2019e\u0301te\u0301\u200b")
    "Objet : l'été"
    """
    if text.isascii():
        return text
    if _SURROGATE.search(text):
        text = mended(text)
    for old, new in _REPLACEMENTS:
        if old in text:
            text = text.replace(old, new)
    if unicodedata.is_normalized("NFC", text) or _has_long_run_of_marks(text):
        return text
    return unicodedata.normalize("NFC", text)


def split_lines(text: str) -> list[str]:
    r"""The normalised lines of a text, as many as ``text.splitlines()`` gives.

    Lines are split before invisible characters go, so that none of them can glue two line ends together,
    and the numbers of the lines are the same before and after.

    Parameters
    ----------
    text : str
        The raw text, with any kind of line end.

    Returns
    -------
    list of str
        The lines without their ends.

    Examples
    --------
    >>> split_lines("Bonjour,\r\n\r\nMerci\u00a0!")
    ['Bonjour,', '', 'Merci !']
    """
    lines = text.splitlines()
    if text.isascii():
        return lines
    return normalise("\n".join(lines)).split("\n") if lines else lines


def line_spans(text: str) -> list[tuple[int, int]]:
    """Start and end offset of every raw line, without its line end."""
    starts = accumulate(map(len, text.splitlines(keepends=True)), initial=0)
    return [(start, start + len(line)) for line, start in zip(text.splitlines(), starts, strict=False)]


def _has_long_run_of_marks(text: str) -> bool:
    run = 0
    for character in text:
        run = run + 1 if unicodedata.combining(character) else 0
        if run > _LONGEST_RUN_OF_MARKS:
            return True
    return False
