"""Thanks and other courtesies that stand right above a signature, or above a name in place of a closing."""

import re

from ._page import BODY, SIGNATURE, Page, is_rule
from ._signatures import OUTER_MARKS, PARTS, THANKS, is_greeting, lead, looks_like_signature
from ._tables import collect

_COURTESY = re.compile("|".join(collect("courtesy_lines")))
_LEADS = frozenset((*map(lead, THANKS), *collect("courtesy_leads")))
_LONGEST_COURTESY = 110
_CAPITAL = "[A-ZÀ-ÖØ-Þ]"
# "Jean Dupont", "M. Jean DUPONT", "Jean Dupont | Comptable"; or one name alone.
_FULL_NAME = re.compile(
    rf"(?:M|Mme|Mlle|Mr|Mrs|Ms|Dr)?\.? ?{_CAPITAL}[\w'.\-]+"
    rf"(?: (?:de |du |van |von )?{_CAPITAL}[\w'\-]+){{1,3}}\s*(?:[|,–—].*)?$"
)
_ONE_NAME = re.compile(rf"{_CAPITAL}[^\W\d_]+(?:-{_CAPITAL}[^\W\d_]+)?$")


def label_courtesies(page: Page, start: int, stop: int) -> None:
    """Label courtesies as part of the signature below, from the bottom up.

    Text that says more than a greeting must stand above, or they may be the message. "Merci de me rappeler" asks for
    something: only lines that are nothing but courtesy count.

    Parameters
    ----------
    page : Page
        The mail, its signatures being labelled.
    start, stop : int
        The lines to look at.
    """
    first = start
    while first < stop and (page.kinds[first] != BODY or _says_little(page.lows[first])):
        first += 1
    for line in reversed(_own_paragraphs(page, first + 1, stop)):
        if line + 1 < stop and page.kinds[line + 1] == SIGNATURE:
            page.kinds[line] = SIGNATURE
        elif page.gaps[line]:
            page.mark(line, _end_of_name(page, line + 1, stop), SIGNATURE)


def _own_paragraphs(page: Page, start: int, stop: int) -> list[int]:
    """The courtesies with nothing but courtesies above them in their paragraph: what ends a paragraph is body."""
    found: list[int] = []
    for line in range(start, stop):
        if page.kinds[line] != BODY or not is_courtesy(page.lows[line]):
            continue
        if page.gaps[line] or page.kinds[line - 1] != BODY or (found and found[-1] == line - 1):
            found.append(line)
    return found


def is_courtesy(low: str) -> bool:
    """Whether a line holds thanks and the like and nothing else: "Merci d'avance pour votre aide.".

    Parameters
    ----------
    low : str
        The line in lower case.

    Returns
    -------
    bool
        True if each part of it is a known courtesy.
    """
    if len(low) > _LONGEST_COURTESY or lead(low) not in _LEADS:
        return False
    parts = [piece.strip() for piece in PARTS.split(OUTER_MARKS.sub("", low))]
    return all(part in THANKS or _COURTESY.fullmatch(part) for part in parts if part)


def _says_little(low: str) -> bool:
    return is_rule(low) or is_greeting(low)


def _end_of_name(page: Page, begin: int, stop: int) -> int:
    """The line after the name, and what goes with it, that begins at `begin`; `begin` - 1 if there is none.

    A first name alone could be the one that is written to: something that cleaning takes away must stand below.
    """
    none = begin - 1
    if begin >= stop or page.kinds[begin] != BODY or not looks_like_signature(page, begin, stop):
        return none
    name = page.texts[begin].strip()
    end = begin
    while end < stop and page.kinds[end] == BODY:
        end += 1
    if _FULL_NAME.match(name) or (_ONE_NAME.match(name) and end == begin + 1 and end < len(page)):
        return end
    return none
