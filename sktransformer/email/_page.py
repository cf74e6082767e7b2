"""The lines of one mail and what was found out about each of them."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

QUOTE, HEADER, SIGNATURE, DISCLAIMER, FOOTER = "quote", "header", "signature", "disclaimer", "footer"
BODY = ""

# Patterns see at most this many characters of a line: whatever says what a line is stands at its start, and a line
# that is longer is prose or machine-made.
LINE_CAP = 400
# Lines beyond this many are not looked at one by one: they count as a single line.
MOST_LINES = 20_000

_SHORTEST_WRAPPED = 60
_QUOTE_MARKS = re.compile(r"^\s*(?:>\s?)+")
_RULE_CHARACTERS = "-_=*~#.—–·•|> \t"


@dataclass
class Page:
    """The lines of one mail that are not blank, and a label for each.

    Attributes
    ----------
    texts : list of str
        Normalised lines without trailing blanks.
    lows : list of str
        The same, stripped, lower case, cut at `LINE_CAP` characters.
    numbers : list of int
        Where each line stands among all lines of the mail, blank ones included.
    ends : list of int
        The same for the last of the lines that count as one.
    gaps : list of bool
        Whether a blank line stands directly above.
    kinds : list of str
        `BODY`, or the kind of piece that the line belongs to.
    cuts : frozenset of int
        Lines at which the markup says that an older message begins.
    everything : str
        All of `lows`, one a line: where to look for a word before looking for its line.
    """

    texts: list[str]
    lows: list[str]
    numbers: list[int]
    ends: list[int]
    gaps: list[bool]
    kinds: list[str]
    cuts: frozenset[int] = frozenset()
    everything: str = field(init=False)

    def __post_init__(self) -> None:
        self.everything = "\n".join(self.lows)

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def looked_at(self) -> int:
        """How many lines are looked at one by one."""
        return min(len(self.texts), MOST_LINES)

    def keep_everything(self) -> None:
        """Take all labels away."""
        self.kinds = [BODY] * len(self.kinds)

    def has_any(self, words: Iterable[str]) -> bool:
        """Whether one of the words occurs anywhere in the mail."""
        everything = self.everything
        return any(word in everything for word in words)

    def mark(self, start: int, stop: int, kind: str) -> None:
        """Label the lines from `start` to `stop` that have no label yet."""
        kinds = self.kinds
        for line in range(start, stop):
            if kinds[line] == BODY:
                kinds[line] = kind

    def has_content(self, start: int, stop: int) -> bool:
        """Whether a line of the body between `start` and `stop` says anything."""
        return any(self.kinds[line] == BODY and not is_rule(self.lows[line]) for line in range(start, stop))


def make_page(
    lines: Sequence[str], presets: Sequence[str] | None = None, cuts: Iterable[int] = (), *, unquote: bool = False
) -> Page:
    """Lay out the lines of a mail.

    Parameters
    ----------
    lines : sequence of str
        Normalised lines, blank ones included.
    presets : sequence of str, optional
        Labels known beforehand, one a line.
    cuts : iterable of int
        Numbers of lines at which an older message begins.
    unquote : bool, default=False
        Take the quote marks off and ignore presets and cuts, for a mail of which nothing else would be left.

    Returns
    -------
    Page
        The lines that are not blank.
    """
    texts, lows, numbers, gaps, kinds = [], [], [], [], []
    gap = False
    rest = len(lines)
    for number, line in enumerate(lines):
        stripped = line.strip()
        if unquote and stripped[:1] == ">":
            line = _QUOTE_MARKS.sub("", line, count=1)
            stripped = line.strip()
        if not stripped:
            gap = True
            continue
        if len(texts) == MOST_LINES:
            rest = number
            break
        texts.append(line.rstrip())
        lows.append(stripped[:LINE_CAP].lower())
        numbers.append(number)
        gaps.append(gap)
        quoted = stripped[0] == ">"
        kinds.append(QUOTE if quoted else presets[number] if presets and not unquote else BODY)
        gap = False
    _join_wrapped_quotes(texts, gaps, kinds)
    places = frozenset(() if unquote else _first_at_or_after(numbers, cuts))
    ends = numbers.copy()
    if rest < len(lines):
        text = "\n".join(lines[rest:]).rstrip()
        kinds.append(QUOTE if kinds[-1] == QUOTE and text.lstrip()[0] == ">" else BODY)
        texts.append(text)
        lows.append(text[:LINE_CAP].strip().lower())
        numbers.append(rest)
        ends.append(len(lines) - 1)
        gaps.append(gap)
    return Page(texts, lows, numbers, ends, gaps, kinds, places)


def _join_wrapped_quotes(texts: list[str], gaps: list[bool], kinds: list[str]) -> None:
    """The end of a quoted line that a mail program wrapped without a quote mark is quoted too.

    Only where nobody can have answered: in the middle of a sentence, right between two quoted lines, the upper one
    being as long as wrapped lines are.
    """
    if QUOTE not in kinds:
        return
    for line in range(1, len(texts) - 1):
        if kinds[line] == BODY and kinds[line - 1] == kinds[line + 1] == QUOTE and not gaps[line] | gaps[line + 1]:
            above = texts[line - 1]
            if len(above) >= _SHORTEST_WRAPPED and above[-1] not in ".?!:;…" and texts[line][0].islower():
                kinds[line] = QUOTE


def is_rule(low: str) -> bool:
    """Whether a line only draws a line: dashes, underscores, stars."""
    return not low.strip(_RULE_CHARACTERS)


def _first_at_or_after(numbers: Sequence[int], wanted: Iterable[int]) -> Iterable[int]:
    remaining = sorted(wanted, reverse=True)
    for place, number in enumerate(numbers):
        while remaining and number >= remaining[-1]:
            remaining.pop()
            yield place
