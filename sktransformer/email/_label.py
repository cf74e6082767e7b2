"""What each line of a mail is: the walk from the newest message down to the quotes."""

from collections.abc import Iterable, Sequence

from ._courtesies import label_courtesies
from ._disclaimers import label_banners, label_disclaimers, label_trailing_notices, start_of_last_notice
from ._greetings import label_greeting
from ._page import BODY, DISCLAIMER, FOOTER, QUOTE, SIGNATURE, Page, is_rule, make_page
from ._quotes import find_cuts, is_followed_by_quote
from ._signatures import label_contact_block, label_footers, label_signatures


def label_mail(lines: Sequence[str], presets: Sequence[str] | None = None, cuts: Iterable[int] = ()) -> Page:
    """Label the lines of a mail; at least one line with content stays body if there is any.

    If the rules would leave nothing, they are relaxed step by step: first the quoted text counts as the
    message (a forward made of quote marks), then signatures and notices stay, then everything does.

    Parameters
    ----------
    lines : sequence of str
        Normalised lines, blank ones included.
    presets : sequence of str, optional
        Labels that the markup gives, one a line.
    cuts : iterable of int
        Lines at which the markup says that an older message begins.

    Returns
    -------
    Page
        The lines that are not blank, with their labels.
    """
    page = _labelled(lines, presets, tuple(cuts))
    label_greeting(page)
    return page


def _labelled(lines: Sequence[str], presets: Sequence[str] | None, cuts: tuple[int, ...]) -> Page:
    page = make_page(lines, presets, cuts)
    _label(page)
    if page.has_content(0, len(page)):
        return page
    if QUOTE in page.kinds or presets or cuts:
        page = make_page(lines, unquote=True)
        _label(page)
        if page.has_content(0, len(page)):
            return page
    page.kinds = [BODY if kind in (SIGNATURE, DISCLAIMER, FOOTER) else kind for kind in page.kinds]
    if page.has_content(0, len(page)):
        return page
    page = make_page(lines)
    page.keep_everything()
    return page


def _label(page: Page) -> None:
    """Walk over the places where older messages may begin; stop at the first one with something above it."""
    start = 0
    content = False
    for cut in find_cuts(page):
        if cut.start < start:
            continue
        _label_around(page, start, cut.start, content)
        content = content or page.has_content(start, cut.start)
        if content and not is_followed_by_quote(page, cut):
            page.mark(cut.start, len(page), QUOTE)
            start = len(page)
            break
        page.mark(cut.start, cut.stop, QUOTE if content else cut.kind)
        start = cut.stop
    _label_around(page, start, page.looked_at, content)
    _absorb_rules(page)


def _label_around(page: Page, start: int, stop: int, content: bool) -> None:
    """Label what surrounds the text somebody wrote on the lines from `start` to `stop`."""
    stop = min(stop, page.looked_at)
    if start >= stop:
        return
    label_banners(page, start, stop)
    label_footers(page, start, stop)
    label_disclaimers(page, start, stop, content_above=content)
    label_signatures(page, start, stop)
    label_contact_block(page, start, start_of_last_notice(page, start, stop))
    label_trailing_notices(page, start, stop)
    label_courtesies(page, start, stop)


def _absorb_rules(page: Page) -> None:
    """A line of dashes or underscores belongs to the removed piece below it, or to the one it closes."""
    kinds = page.kinds
    for line in range(len(page) - 2, -1, -1):
        if kinds[line] in (BODY, SIGNATURE) and kinds[line + 1] != BODY and is_rule(page.lows[line]):
            kinds[line] = kinds[line + 1]
    last = len(page) - 1
    while last > 0 and kinds[last] == BODY and is_rule(page.lows[last]):
        last -= 1
    if last >= 0 and kinds[last] != BODY:
        page.mark(last, len(page), kinds[last])
