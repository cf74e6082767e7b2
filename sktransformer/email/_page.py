"""The lines of one mail and what was found out about each of them."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

QUOTE, HEADER, SIGNATURE, DISCLAIMER, FOOTER = "quote", "header", "signature", "disclaimer", "footer"
GREETING = "greeting"
BODY = ""

# Patterns see at most this many characters of a line: whatever says what a line is stands at its start, and
# a line that is longer is prose or machine-made.
LINE_CAP = 400
# Lines beyond this many are not looked at one by one: they count as a single line.
MOST_LINES = 12_000

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
    found : dict
        What :meth:`has_any` has answered.
    legal : dict
        The words of legal notices on the lines that were asked about.
    closings : dict
        Whether the lines that were asked about are closings.
    """

    texts: list[str] = field(default_factory=list)
    lows: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    gaps: list[bool] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    cuts: frozenset[int] = frozenset()
    everything: str = ""
    found: dict[tuple[str, ...], bool] = field(default_factory=dict)
    legal: dict[int, tuple[frozenset[str], frozenset[str]]] = field(default_factory=dict)
    closings: dict[int, bool] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def looked_at(self) -> int:
        """How many lines are looked at one by one."""
        return min(len(self.texts), MOST_LINES)

    def keep_everything(self) -> None:
        """Take all labels away."""
        self.kinds = [BODY] * len(self.kinds)

    def has_any(self, words: tuple[str, ...]) -> bool:
        """Whether one of the words occurs anywhere in the mail; looked up once, since threads ask at every cut."""
        if words not in self.found:
            everything = self.everything
            self.found[words] = any(word in everything for word in words)
        return self.found[words]

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
    lines: Sequence[str],
    presets: Sequence[str] | None = None,
    cuts: Iterable[int] = (),
    *,
    unquote: bool = False,
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
    page = Page()
    gap = False
    for number, line in enumerate(lines):
        stripped = line.strip()
        if not stripped:
            gap = True
            continue
        if unquote and stripped[0] == ">":
            line = _QUOTE_MARKS.sub("", line, count=1)
            stripped = line.strip()
            if not stripped:
                gap = True
                continue
        if len(page.texts) == MOST_LINES:
            _add_rest(page, lines, number, gap)
            break
        page.texts.append(line.rstrip())
        page.lows.append(stripped[:LINE_CAP].lower())
        page.numbers.append(number)
        page.ends.append(number)
        page.gaps.append(gap)
        quoted = stripped[0] == ">"
        page.kinds.append(QUOTE if quoted else presets[number] if presets and not unquote else BODY)
        gap = False
    _join_wrapped_quotes(page)
    page.cuts = frozenset(() if unquote else _first_at_or_after(page.numbers, cuts))
    page.everything = "\n".join(page.lows)
    return page


def _add_rest(page: Page, lines: Sequence[str], number: int, gap: bool) -> None:
    """Add the lines from `number` on as one; quoted if they go on with a quote."""
    text = "\n".join(lines[number:]).rstrip()
    quoted = page.kinds[-1] == QUOTE and text.lstrip()[0] == ">"
    page.texts.append(text)
    page.lows.append(text[:LINE_CAP].strip().lower())
    page.numbers.append(number)
    page.ends.append(len(lines) - 1)
    page.gaps.append(gap)
    page.kinds.append(QUOTE if quoted else BODY)


def _join_wrapped_quotes(page: Page) -> None:
    """The end of a quoted line that a mail program wrapped without a quote mark is quoted too.

    Only where nobody can have answered: in the middle of a sentence, right between two quoted lines, the
    upper one being as long as wrapped lines are.
    """
    kinds, gaps = page.kinds, page.gaps
    if QUOTE not in kinds:
        return
    for line in range(1, len(page) - 1):
        if kinds[line] != BODY or kinds[line - 1] != QUOTE or kinds[line + 1] != QUOTE:
            continue
        above = page.texts[line - 1]
        mid_sentence = above[-1] not in ".?!:;…" and page.texts[line][0].islower()
        if mid_sentence and len(above) >= _SHORTEST_WRAPPED and not gaps[line] and not gaps[line + 1]:
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
