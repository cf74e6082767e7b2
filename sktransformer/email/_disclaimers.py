"""Legal notices below a message, and the warnings that gateways put above it."""

import re

from ._page import BODY, DISCLAIMER, SIGNATURE, Page, is_rule
from ._patterns import alternatives, compile_any
from ._tables import collect

_LEAD = r"[\W_]{0,6}"
_NOTICE = compile_any(collect("notice_patterns"), prefix=_LEAD)
_LEGAL_OPENING = compile_any(collect("legal_openings"), prefix=_LEAD)
_CORE = re.compile(alternatives(collect("legal_core")))
_STEMS = re.compile(alternatives(collect("legal_stems")))
_BANNER = compile_any(collect("banner_patterns"))
_BANNER_OPENING = re.compile(
    r"[\W_]{0,6}(?:attention|caution|warning|avertissement|prudence|\[?externe?l?\b)"
)

# A notice is read up to this many lines when the words that give it away are counted.
_LONGEST_NOTICE = 12
_LONGEST_PHRASE = 40  # characters of a phrase that may run over the end of a line
_BANNER_PARAGRAPHS = 2
_SHORTEST_CONTENT = 4


def label_banners(page: Page, start: int, stop: int) -> None:
    """Label warnings about outside mail in the first paragraphs."""
    paragraphs = 0
    banner = False
    warns: bool | None = None  # whether the line holds the words of a warning, where the line above has asked
    for line in range(start, stop):
        if page.gaps[line]:
            paragraphs += 1
            banner = False
        if paragraphs > _BANNER_PARAGRAPHS:
            return
        low, known, warns = page.lows[line], warns, None
        if page.kinds[line] != BODY:
            continue
        opens = bool(_BANNER_OPENING.match(low))
        found = False
        if opens or banner or low[0] == "[" or _is_tip(low):
            found = bool(_BANNER.search(low)) if known is None else known
        if not found and opens and line + 1 < stop and not page.gaps[line + 1]:
            found = warns = bool(_BANNER.search(page.lows[line + 1]))
        if found:
            page.kinds[line] = DISCLAIMER
            banner = True


def label_disclaimers(page: Page, start: int, stop: int, *, content_above: bool) -> None:
    """Label legal notices that stand below some body text.

    Parameters
    ----------
    page : Page
        The mail.
    start, stop : int
        The lines to look at.
    content_above : bool
        Whether body text stands above `start`; without any, the notice may be all there is to the mail.
    """
    follows_notice = False
    line = start
    while line < stop:
        if page.kinds[line] != BODY:
            line += 1
            continue
        if content_above and _is_notice(page, line, stop, follows_notice):
            end = _paragraph_end(page, line, stop)
            page.mark(line, end, DISCLAIMER)
            follows_notice = True
            line = end
            continue
        if not is_rule(page.lows[line]):
            # "Bonjour," alone is no message that a notice could stand below.
            content_above = content_above or len(page.lows[line].split(None, 4)) >= _SHORTEST_CONTENT
            follows_notice = False
        line += 1


def label_trailing_notices(page: Page, start: int, stop: int) -> None:
    """Label legal notices right below a signature: little else stands there, so fewer words prove it."""
    line = start + 1
    while line < stop:
        if (
            page.kinds[line] != BODY
            or not page.gaps[line]
            or page.kinds[line - 1] not in (SIGNATURE, DISCLAIMER)
        ):
            line += 1
            continue
        end = _paragraph_end(page, line, stop)
        if _reads_like_notice(page, line, end):
            page.mark(line, end, DISCLAIMER)
        line = end


def start_of_last_notice(page: Page, start: int, stop: int) -> int:
    """Where the last paragraph begins if it reads like a legal notice; otherwise `stop`."""
    end = stop
    while end > start and page.kinds[end - 1] != BODY:
        end -= 1
    line = end - 1
    while line > max(start, end - _LONGEST_NOTICE) and not page.gaps[line] and page.kinds[line - 1] == BODY:
        line -= 1
    return line if line > start and page.gaps[line] and _reads_like_notice(page, line, end) else stop


def _reads_like_notice(page: Page, line: int, end: int) -> bool:
    """Whether lines are a notice if they stand where one is to be expected."""
    core, stems = _count(page, line, end)
    return bool(core and core + stems >= 2) or stems >= 3


def _is_notice(page: Page, line: int, stop: int, follows_notice: bool) -> bool:
    low = page.lows[line]
    if _NOTICE.match(low):
        return True
    continues = follows_notice and page.gaps[line]
    if not continues and not _LEGAL_OPENING.match(low):
        return False
    core, stems = _count(page, line, _paragraph_end(page, line, stop))
    return core >= 2 or (core == 1 and stems >= (1 if continues else 2))


def _count(page: Page, line: int, end: int) -> tuple[int, int]:
    """How many different core words and other stems of legal notices the lines hold."""
    core: set[str] = set()
    stems: set[str] = set()
    for i in range(line, end):
        found = page.legal.get(i)
        if found is None:  # once a line: up to twelve paragraphs' beginnings ask for the same one
            found = page.legal[i] = _legal_words(page, i)
        core |= found[0]
        stems |= found[1]
    return len(core), len(stems)


def _legal_words(page: Page, line: int) -> tuple[frozenset[str], frozenset[str]]:
    """Core words and other stems that begin on a line; they may end on the next."""
    low = page.lows[line]
    wraps = line + 1 < len(page) and not page.gaps[line + 1] and page.kinds[line + 1] == BODY
    text = f"{low} {page.lows[line + 1][:_LONGEST_PHRASE]}" if wraps else low
    core, stems = (
        frozenset(match.group() for match in pattern.finditer(text) if match.start() <= len(low))
        for pattern in (_CORE, _STEMS)
    )
    return core, stems


def _paragraph_end(page: Page, line: int, stop: int) -> int:
    end, most = line + 1, min(stop, line + _LONGEST_NOTICE)
    while end < most and not page.gaps[end] and page.kinds[end] == BODY:
        end += 1
    return end


def _is_tip(low: str) -> bool:
    """Outlook's hint about senders that write for the first time needs no word of warning in front."""
    return "don't often get" in low or "pas souvent" in low
