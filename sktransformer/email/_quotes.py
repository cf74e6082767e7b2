"""Where an older message begins: attribution lines, header blocks, separators."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from ._page import BODY, HEADER, LINE_CAP, QUOTE, Page
from ._patterns import alternatives
from ._tables import collect, collect_keys


class Cut(NamedTuple):
    """The lines that introduce an older message: the first one, the one after the last, and their kind."""

    start: int
    stop: int
    kind: str


_END_VERBS = collect("end_verbs")
_MIDDLE_VERBS = collect("middle_verbs")
_PRONOUNS = frozenset(collect("pronouns"))
_VERBS = _END_VERBS + _MIDDLE_VERBS
_DATE_STEMS = rf"(?:{alternatives(collect('dates'))})[^\W\d_]{{0,8}}\.?,? +"
_VERB_START = r"(?:(?<=[\s>»\"),;\]])|^)"

_DAY_AND_MONTH = (
    rf"\d{{1,2}}(?:er|st|nd|rd|th)?\.? +(?:de +)?(?:{alternatives(collect('months'))})[^\W\d_]{{0,7}}\.?"
    r"(?: *,| +(?:de +)?(?:\d|[àa]t?\b|um\b|om\b|alle\b|às\b))"
)
_DATE = rf"(?:(?:{_DATE_STEMS}){{1,3}}(?:de +|den +)?\d|\d{{1,4}}[./\-]\d|\d{{1,2}}:\d\d|{_DAY_AND_MONTH})"

# "Le lun. 3 mars 2025 à 10:12, X <x@y.fr> a écrit :": an opener, a date, the verb.
_DATED_OPENING = rf"[^\w<]{{0,8}}(?:{alternatives(collect('openers'))})(?: ?:)? +(?:le +)?{_DATE}"
_ATTRIBUTION = re.compile(
    rf"{_DATED_OPENING}.*?{_VERB_START}(?P<verb>{alternatives(_END_VERBS)})(?: ?:)?[ \-–—]*$"
)
# "Am 3. März 2025 um 10:12 schrieb X:"; only for lines that end in a colon, so that the first verb decides.
_MIDDLE_ATTRIBUTION = re.compile(rf"{_DATED_OPENING}.*?\b(?:{alternatives(_MIDDLE_VERBS)})\b")
# "X <x@y.fr> a écrit le 3 mars 2025 à 10:12 :"; without an address only believed above a quote.
_WROTE_ON = re.compile(
    rf"[^:]{{1,120}}?(?P<address>@[^\s<>@:]{{1,60}}[>)\]]*)? +(?:{alternatives(_END_VERBS)}),? "
    rf"+(?:(?:{alternatives(collect('openers'))}) +)?(?:le +)?{_DATE}.{{0,60}}:$"
)
# What such lines end with: looked at before any pattern.
_LAST_LETTERS = tuple({verb[-1] for verb in _END_VERBS} | set(":-–—"))
_ENDING = re.compile(rf"(?:\b(?:{alternatives(_END_VERBS)}) ?:?[ \-–—]*|:)$")
# The rest of an attribution that a mail program wrapped inside the address, so that it seems to be quoted.
_WRAPPED_ENDING = re.compile(rf">+,? ?(?:{alternatives(_END_VERBS)})? ?:$")
# "jean@exemple.fr a écrit :" without a date; only believed above a quote.
_SENDER_WROTE = re.compile(rf"[^:@]{{0,100}}@[^:]{{0,100}}{_VERB_START}(?:{alternatives(_END_VERBS)}) ?:$")
# "2017-11-24 16:32 GMT+01:00 X <x@y.fr>:", and the same with a few words of any language around.
_DATED_ADDRESS = re.compile(
    r"[^\d<>:]{0,24}\d[^<>]{5,200}<[^<>\s@]+@[^<>\s]+ ?>(?: [^\W\d_]{1,15}(?:\(\w{1,2}\))?)? ?:$"
)

# "2013.02.08. 7:31 ..., X ...:" in a language that is not known: a line of that kind is only believed above a quote.
_DATE_FIRST = re.compile(r"[^\w<]{0,8}\d[^?!]{8,200}:$")

_YEAR = r"(?:\b(?:19|20)\d\d\b|\d{1,2}[/.\-]\d{1,2}[/.\-]\d{2,4})"
_CLOCK = r"(?:\b\d{1,2} ?[:h.] ?\d{2}\b)"
_HAS_YEAR = re.compile(_YEAR)
_HAS_CLOCK = re.compile(_CLOCK)

_ROLES = collect_keys()
_KEY = re.compile(rf"[\s*_|•]{{0,6}}({alternatives(_ROLES)})[\s*_]{{0,3}}:")
_INNER_KEY = re.compile(rf"\s[*_]?({alternatives(word for word in _ROLES if len(word) > 3)}|à|to)[*_]? ?:")
# The keys whose values are addresses, which may wrap over lines: how far the next key may be, and how many
# lines the last list may have.
_WRAPPED = ("from", "to", "cc")
_LONGEST_WRAP = 40
_LONGEST_NAME = 5  # words

_SEPARATOR = re.compile(
    rf"[-_=*—]{{2,}}[\s>]*(?:{alternatives(collect('separators'))})\b.{{0,100}}$"
    rf"|(?:{alternatives(collect('separators'))})\s*[-_=*—]{{2,}}$"
    rf"|(?:{alternatives(collect('bare_separators'))}) ?:?$"
)
# The same in a language that is not known, if keys with an address among their values stand right below.
_ANY_SEPARATOR = re.compile(r"-{4,} ?[^\W\d_][^-]{2,40}-{4,}$")
_ANY_KEY = re.compile(r"[^\W\d_]{1,12} ?: ?\S")
_MOST_KEYS = 6


def find_cuts(page: Page) -> list[Cut]:
    """All places where an older message may begin, from top to bottom.

    Parameters
    ----------
    page : Page
        The mail; only lines that are not quoted yet are looked at.

    Returns
    -------
    list of Cut
        Attribution lines (kind quote), header blocks and separators (kind header), and the places the
        markup names (without lines of their own).
    """
    cuts = [Cut(place, place, HEADER) for place in page.cuts]
    cuts.extend(_attributions(page))
    cuts.extend(_separators(page))
    cuts.extend(_header_blocks(page))
    return sorted(cuts)


def is_followed_by_quote(page: Page, cut: Cut) -> bool:
    """Whether the lines after a cut are marked as quoted, so that nothing else need be guessed."""
    return cut.stop < len(page) and page.kinds[cut.stop] == QUOTE


def _attributions(page: Page) -> Iterator[Cut]:
    if not page.has_any(("<", ">")) and not page.has_any(_VERBS):
        return
    for last in range(page.looked_at):
        low = page.lows[last]
        if (
            not low.endswith(_LAST_LETTERS)
            or len(low) >= LINE_CAP
            or not _ENDING.search(low, max(0, len(low) - 40))
        ):
            continue
        if page.kinds[last] == QUOTE and not _continues_address(page, last):
            continue
        first = _attribution_start(page, last)
        if first is not None:
            for line in range(first, last + 1):
                page.kinds[line] = BODY
            yield Cut(first, last + 1, QUOTE)


def _continues_address(page: Page, line: int) -> bool:
    return line > 0 and page.kinds[line - 1] == BODY and bool(_WRAPPED_ENDING.match(page.lows[line]))


def _attribution_start(page: Page, last: int) -> int | None:
    """The line on which the attribution that ends on `last` begins: the same or one of the two above."""
    quoted_below = last + 1 < len(page) and page.kinds[last + 1] == QUOTE
    named = _names_somebody(" ".join(page.texts[max(0, last - 1) : last + 1]))
    joined = ""
    for first in range(last, max(-1, last - 3), -1):
        if first < last and (page.gaps[first + 1] or page.kinds[first] == QUOTE):
            break
        joined = f"{page.lows[first]} {joined}".rstrip()
        if len(joined) > LINE_CAP:
            break
        if _is_attribution(joined, quoted_below, named):
            return first - _is_wrapped_name(page, first)
    return last if quoted_below and _SENDER_WROTE.match(page.lows[last]) else None


def _is_wrapped_name(page: Page, first: int) -> bool:
    """Whether the name that belongs to the address at the start of a line stands alone on the line above."""
    if first == 0 or page.lows[first][0] != "<" or page.gaps[first] or page.kinds[first - 1] != BODY:
        return False
    words = page.texts[first - 1][:LINE_CAP].split()
    return len(words) <= _LONGEST_NAME and all(word[0].isupper() for word in words)


def _is_attribution(joined: str, quoted_below: bool, named: bool) -> bool:
    colon = joined.endswith(":")
    if not (quoted_below or colon or "@" in joined):
        return False
    found = _ATTRIBUTION.match(joined)
    if not found and not (colon and _MIDDLE_ATTRIBUTION.match(joined)):
        looks_like_one = (
            _DATED_ADDRESS.match(joined)
            or (colon and _wrote_on(joined, quoted_below))
            or (quoted_below and _DATE_FIRST.match(joined))
        )
        return bool(looks_like_one and _HAS_YEAR.search(joined) and _HAS_CLOCK.search(joined))
    # "Le 3 mars le plombier a écrit :" is prose: mail programs give an address, a time, or a year and a name.
    if quoted_below or "@" in joined:
        return True
    before = joined[: found.start("verb")].split()[-1] if found else ""
    if not colon or before in _PRONOUNS:
        return False
    return bool(_HAS_CLOCK.search(joined) or (_HAS_YEAR.search(joined) and (named or before == "you")))


def _wrote_on(joined: str, quoted_below: bool) -> bool:
    """Whether the date follows the verb; an address right before the verb tells it from prose."""
    found = _WROTE_ON.match(joined)
    return bool(found and (quoted_below or found["address"]))


def _names_somebody(text: str) -> bool:
    """Whether the words before the verb that ends a line end in a name."""
    words = text.split()
    return any(word[0].isupper() or word[-1] in ')>"»]' for word in words[-4:])


def _separators(page: Page) -> Iterator[Cut]:
    known = page.has_any(collect("separators")) or page.has_any(collect("bare_separators"))
    if not known and "----" not in page.everything:
        return
    for line in range(page.looked_at):
        if page.kinds[line] != BODY:
            continue
        low = page.lows[line]
        if known and _SEPARATOR.match(low):
            yield Cut(line, line + 1, HEADER)
        elif low.startswith("----") and _ANY_SEPARATOR.match(low):
            stop = _end_of_keys(page, line + 1)
            if stop >= line + 3 and any("@" in page.lows[key] for key in range(line + 1, stop)):
                yield Cut(line, stop, HEADER)


def _end_of_keys(page: Page, line: int) -> int:
    """The line after the keys, of any language, that begin at `line`."""
    last = min(line + _MOST_KEYS, page.looked_at)
    while line < last and not page.gaps[line] and _ANY_KEY.match(page.lows[line]):
        line += 1
    return line


def _header_blocks(page: Page) -> Iterator[Cut]:
    roles = _line_roles(page)
    if "from" not in roles.values():
        return
    done = 0
    for first in roles:
        if first < done:
            continue
        stop = _block_end(page, roles, first)
        if stop is not None:
            done = stop
            yield Cut(first, stop, HEADER)


def _line_roles(page: Page) -> dict[int, str]:
    """The lines that begin with a header key, and its role."""
    if ":" not in page.everything:
        return {}
    roles = {}
    for line in range(page.looked_at):
        low = page.lows[line]
        if ":" in low and page.kinds[line] == BODY:
            found = _KEY.match(low)
            if found:
                roles[line] = _role(found[1])
    return roles


def _role(key: str) -> str:
    return _ROLES[" ".join(key.split())]


def _block_end(page: Page, roles: dict[int, str], first: int) -> int | None:
    """The line after the header block that begins on `first`, or None where it proves to be none."""
    seen: dict[str, str] = {}
    line, last_role, spaced = first, "", False
    while line < page.looked_at and page.kinds[line] == BODY:
        role = roles.get(line)
        if line > first and page.gaps[line]:
            # Blank lines between the keys are fine if they stand between all of them, as in converted HTML.
            spaced = spaced or len(seen) == 1
            if not spaced or role is None:
                break
        if role is not None:
            if role in seen:
                break
            seen[role] = page.lows[line]
            seen.update(_inner_roles(page.lows[line], seen) if role == "from" else {})
            last_role = role
            line += 1
            continue
        stop = _wrapped_until(page, roles, line, last_role)
        if stop is None:
            break
        line = stop
    return line if _is_header(page, seen, first, line) else None


def _inner_roles(low: str, seen: dict[str, str]) -> dict[str, str]:
    """Further keys on the line of the sender, as in mail whose line ends were lost."""
    inner = {_role(found[1]): low[found.start() :] for found in _INNER_KEY.finditer(low)}
    return {role: value for role, value in inner.items() if role not in seen} if len(inner) > 1 else {}


def _wrapped_until(page: Page, roles: dict[int, str], line: int, last_role: str) -> int | None:
    """The line after the wrapped value that goes on at `line`; None where `line` is no such thing."""
    for ahead in range(line, min(line + _LONGEST_WRAP, page.looked_at) if last_role in _WRAPPED else line):
        if page.gaps[ahead] or page.kinds[ahead] != BODY:
            break
        if ahead in roles:
            return ahead
    indented = page.texts[line][:1].isspace()
    listed = last_role in _WRAPPED and ("@" in page.lows[line] or page.lows[line - 1].endswith((";", ",")))
    return line + 1 if indented or listed else None


def _is_header(page: Page, seen: dict[str, str], first: int, stop: int) -> bool:
    """Two keys, one of them the sender, and a subject, an address or a moment; not "De : 10h / À : 12h"."""
    if len(seen) < 2 or "from" not in seen:
        return False
    if "subject" in seen or any("@" in page.lows[line] for line in range(first, stop)):
        return True
    if "sent" in seen and _HAS_YEAR.search(seen["sent"]):
        return True
    # "Date : 12/03/2026" alone is what people write in forms; mail programs add the time.
    date = seen.get("date", "")
    return bool(_HAS_YEAR.search(date) and _HAS_CLOCK.search(date))
