"""Where a signature begins and ends, and the lines that phones and mail programs add."""

import re

from ._page import BODY, FOOTER, QUOTE, SIGNATURE, Page, is_rule
from ._patterns import alternatives, compile_any
from ._tables import collect

_CLOSINGS = frozenset(collect("closings"))
THANKS = frozenset(collect("thanks"))
_COURTESY_LINE = re.compile("|".join(collect("courtesy_lines")))  # "dans l'attente de vous lire"
_CLOSING_START = re.compile(rf"(?:{alternatives(_CLOSINGS)})(?P<comma>\s*[,.!:\-–—]+)?(?:\s+|$)")
_LONGEST_CLOSING = 80

_LETTERS = re.compile(r"[^\W_]+")
OUTER_MARKS = re.compile(r"^[\W_]+|[\W_]+$")
PARTS = re.compile(r"[,;.!:+&]|\s-\s|\b(?:et|and|und|y|en?)\b")
# Words with a capital, and what stands between them in names: "Jean-Marie de La Tour". Each word ends in a
# blank, so that there is one way only to read a line, and no time is lost on others.
_CAPITAL = "[A-ZÀ-ÖØ-Þ]"
_PARTICLE = "(?:de|du|des|d'|van|von|der|le|la)"
_NAME = re.compile(rf"(?:(?:{_CAPITAL}[\w'.\-]*|{_PARTICLE})(?:\s+|$)){{1,5}}$")
_SIGNER = re.compile(rf"(?:(?:{_CAPITAL}(?:[^\W\d_]|['.\-])*|{_PARTICLE})(?:\s+|$)){{2,6}}$")
_MIXED_CASE = re.compile(rf"{_CAPITAL}[a-zß-öø-ÿ]")

# What makes a last paragraph the address of the sender.
_TELEPHONE = re.compile(r"(?:\d[ .\-/]?){8,}")
_MOST_CONTACT_LINES = 7
_LONGEST_CONTACT_LINE = 80

_COURTESY_OPENING = re.compile(rf"[^\w]{{0,3}}(?:{alternatives(collect('courtesy_openings'))})\b")
_COURTESY_INSIDE = re.compile(rf"\b(?:{alternatives(collect('courtesy_openings'))}|agréer|agreer)\b")
_COURTESY = compile_any(collect("courtesy_patterns"))
# Cheap words of which one stands in every long formula.
_COURTESY_STEMS = ("salutation", "sentiment", "expression", "consid", "hommage", "regards", "yours")

_DASH_NAME = re.compile(rf"(?:[-–—]|-- ?|[–—] ){_CAPITAL}[\w'.]+(?: {_CAPITAL}[\w'.\-]+){{0,2}}$")
_POSTSCRIPT = re.compile(rf"[\W_]{{0,3}}(?:{alternatives(collect('postscripts'))})\.?\s?[:\-–)]\s?\S")
_SENTENCE_OPENINGS = frozenset(collect("sentence_openings"))
_COMPANY = re.compile(rf"\b(?:{alternatives(collect('company_words'))})\b")
_CONTACT = ("@", "http", "www.")
_SENTENCE_ENDS = (".", "!", "?", "…", ":")

_LINK = r"(?:\s*[<(\[]?\s*(?:https?://|mailto:|www\.)\S*)?"
_FOOTER = compile_any(collect("footer_patterns"), prefix=r"[^\w]{0,4}", suffix=rf"{_LINK}[\W_]{{0,4}}$")
_LOOSE_FOOTER = compile_any(
    collect("loose_footer_patterns"), prefix=r"[^\w]{0,4}", suffix=rf"{_LINK}[\W_]{{0,4}}$"
)
_LONGEST_FOOTER = 160
_GREETING = re.compile(rf"[^\w]{{0,3}}(?:{alternatives(collect('greetings'))})\b")
_LONGEST_GREETING = 4  # words

# More lines than this after a closing are not a signature.
_LONGEST_SIGNATURE = 25
_LONGEST_RULED_SIGNATURE = 8
_LONGEST_SIGNATURE_LINE = 100


def lead(text: str) -> str:
    """The letters that a text begins with, marks in front of them aside."""
    found = _LETTERS.search(text)
    return found[0] if found else ""


# What closings begin with, looked up before all else.
_LEADS = frozenset((*map(lead, _CLOSINGS | THANKS), *collect("courtesy_leads")))


def label_footers(page: Page, start: int, stop: int) -> None:
    """Label lines such as "Envoyé de mon iPhone", and the older message that some phones put right below.

    That one shows by its greeting, in a paragraph of its own below a message that says more than a greeting.
    """
    said = False
    for line in range(start, stop):
        low = page.lows[line]
        if page.kinds[line] != BODY:
            continue
        if not _is_footer(page, line, stop):
            said = said or not (is_rule(low) or is_greeting(low))
            continue
        page.kinds[line] = FOOTER
        below = line + 1
        if (
            said
            and below < stop
            and page.kinds[below] == BODY
            and page.gaps[below]
            and is_greeting(page.lows[below])
        ):
            page.mark(below, stop, QUOTE)
            return


def _is_footer(page: Page, line: int, stop: int) -> bool:
    low = page.lows[line]
    if len(low) > _LONGEST_FOOTER:
        return False
    return bool(_FOOTER.match(low) or (_stands_alone(page, line, stop) and _LOOSE_FOOTER.match(low)))


def is_greeting(low: str, longest: int = _LONGEST_GREETING) -> bool:
    """Whether a line begins with a greeting and has at most `longest` words."""
    return bool(_GREETING.match(low)) and len(low.split(None, longest)) <= longest


def label_signatures(page: Page, start: int, stop: int) -> None:
    """Label closings and what follows them, "-- " and what follows it.

    A postscript, or a sentence that somebody clearly wrote, ends a signature: what comes after it is body
    again.
    """
    courtesy = page.has_any(_COURTESY_STEMS)
    again: dict[int, bool] = {}  # where closing stands on closing, each looks at the same lines below
    line = start
    while line < stop:
        if page.kinds[line] != BODY:
            line += 1
            continue
        begin, inside = _signature_begin(page, line, stop, courtesy)
        if begin is None:
            line += 1
            continue
        end = _signature_end(page, inside, stop, again, ruled=is_rule(page.lows[line]))
        page.mark(begin, end, SIGNATURE)
        line = max(end, line + 1)


def label_contact_block(page: Page, start: int, stop: int) -> None:
    """Label a last paragraph that is a name over a telephone number or an address, with no closing above it.

    A line that ends in a colon above it announces it, so that it is part of the message.
    """
    end = stop
    while end > start and page.kinds[end - 1] != BODY:
        end -= 1
    for begin in range(end - 2, max(start, end - _MOST_CONTACT_LINES - 1), -1):
        if page.kinds[begin] != BODY or page.gaps[begin + 1]:
            return
        if page.gaps[begin]:
            if not page.texts[begin - 1].endswith(":") and _is_contact_block(page.texts[begin:end]):
                page.mark(begin, end, SIGNATURE)
            return


def _is_contact_block(texts: list[str]) -> bool:
    texts = [text.strip() for text in texts]
    if not _SIGNER.match(texts[0]):
        return False
    if any(len(text) > _LONGEST_CONTACT_LINE or text.endswith(_SENTENCE_ENDS) for text in texts):
        return False
    return any(_TELEPHONE.search(text) or any(mark in text for mark in _CONTACT) for text in texts[1:])


def _signature_begin(page: Page, line: int, stop: int, courtesy: bool) -> tuple[int | None, int]:
    """First line of a signature that shows on `line`, and the first line after its opening formula."""
    low = page.lows[line]
    if low in ("--", "–", "—"):
        return line, line + 1
    if low[0] in "_—–" and is_rule(low) and len(low) > 1:
        return (line, line + 1) if looks_like_signature(page, line + 1, stop) else (None, 0)
    if _is_closing_line(page, line):
        return line, line + 1
    if low[0] in "-–—" and _is_dash_name(page, line, stop):
        return line, line + 1
    if courtesy:
        return _courtesy_formula(page, line, stop)
    return None, 0


def _is_closing_line(page: Page, line: int) -> bool:
    """Whether a line is a closing; found out once, since the lines above it ask too."""
    found = page.closings.get(line)
    if found is None:
        found = page.closings[line] = _is_closing(page.texts[line].strip(), page.lows[line])
    return found


def _is_closing(text: str, low: str) -> bool:
    """Whether a line is nothing but a closing, perhaps with thanks or a name: "Cordialement, Jean Dupont"."""
    if len(low) > _LONGEST_CLOSING or lead(low) not in _LEADS:
        return False
    core = OUTER_MARKS.sub("", low)
    if core in _CLOSINGS:
        return True
    parts = [part for part in (piece.strip() for piece in PARTS.split(core)) if part]
    if any(part in _CLOSINGS for part in parts) and all(
        part in _CLOSINGS or part in THANKS or _COURTESY_LINE.fullmatch(part) for part in parts
    ):
        return True
    found = _CLOSING_START.match(low)
    if not found or len(low) != len(text):
        return False
    name = text[found.end() :].strip(" ,.!-–—")
    if not _NAME.match(name):
        return False
    return bool(found["comma"] or _MIXED_CASE.match(name))


def _is_dash_name(page: Page, line: int, stop: int) -> bool:
    """Whether "-Jean Dupont" stands alone under the message; "- item" is a list."""
    if not _DASH_NAME.match(page.texts[line].strip()) or not page.gaps[line]:
        return False
    return line + 1 >= stop or page.kinds[line + 1] != BODY or is_rule(page.lows[line + 1])


def _courtesy_formula(page: Page, line: int, stop: int) -> tuple[int | None, int]:
    """The long formula, "Veuillez agréer, ... salutations distinguées", on up to three lines."""
    if _COURTESY_OPENING.match(page.lows[line]):
        end, most = line + 1, min(line + 3, stop)
        while end < most and page.kinds[end] == BODY and not page.gaps[end]:
            if _is_closing_line(page, end):
                break
            end += 1
        for last in range(line, end):
            if _COURTESY.search(page.lows[last]):
                return line, last + 1
        return None, 0
    # The formula begins after something else on its line, which is kept; the signature is what follows.
    low = page.lows[line]
    found = _COURTESY.search(low)
    if found and _COURTESY_INSIDE.search(low, 0, found.start()) and line + 1 < stop:
        return line + 1, line + 1
    return None, 0


def _signature_end(page: Page, begin: int, stop: int, again: dict[int, bool], *, ruled: bool) -> int:
    """The line after the signature that begins at `begin`; `ruled` if a line such as "-- " is above it.

    `again` remembers which lines are body again.
    """
    kinds, lines = page.kinds, 0
    for line in range(begin, stop):
        kind = kinds[line]
        if kind == QUOTE:
            return line
        if kind != BODY:
            continue
        body_again = again.get(line)
        if body_again is None:
            body_again = again[line] = _is_body_again(page, line)
        if body_again and (page.gaps[line] or not ruled):
            return line
        lines += 1
        if lines > _LONGEST_SIGNATURE:
            return begin
    return stop


def _is_body_again(page: Page, line: int) -> bool:
    low = page.lows[line]
    if _POSTSCRIPT.match(low):
        return True
    words = low.split(None, 8)
    if len(words) >= 4 and words[0].strip(",.'\"*") in _SENTENCE_OPENINGS:
        return True
    if len(words) < 8 or not page.gaps[line] or not page.texts[line].endswith(_SENTENCE_ENDS):
        return False
    return not any(mark in low for mark in _CONTACT) and not _COMPANY.search(low)


def looks_like_signature(page: Page, begin: int, stop: int) -> bool:
    """Whether a few short lines follow, and nothing else up to the end or the next quote."""
    lines = 0
    for line in range(begin, stop):
        if page.kinds[line] == QUOTE:
            break
        if page.kinds[line] != BODY:
            continue
        lines += 1
        if lines > _LONGEST_RULED_SIGNATURE or len(page.lows[line]) > _LONGEST_SIGNATURE_LINE:
            return False
        if _is_body_again(page, line):
            return False
    return lines > 0


def _stands_alone(page: Page, line: int, stop: int) -> bool:
    above = line == 0 or page.gaps[line] or page.kinds[line - 1] != BODY
    below = line + 1 >= stop or page.gaps[line + 1] or page.kinds[line + 1] != BODY
    return above and below
