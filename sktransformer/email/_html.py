"""HTML bodies become lines of text, with the place of each line in the markup and what that says about it.

The standard library's parser does the parsing. Before it sees the text, comments, style sheets and scripts
are overwritten with blanks, because the parser of some Python versions takes quadratic time over unclosed
ones (CVE-2025-6069), and because nobody reads them; and text with an absurd number of tags is not parsed at
all.
"""

import re
from html import unescape
from html.parser import HTMLParser
from typing import NamedTuple

from ._language import phrases
from ._page import BODY, QUOTE, SIGNATURE

HTML = "html"


class Markup(NamedTuple):
    """What an HTML body holds."""

    lines: list[str]
    """The visible lines, blank ones included."""
    starts: list[int]
    """Where each line begins in the markup."""
    ends: list[int]
    """Where it ends."""
    presets: list[str]
    """What the markup says about each line: quoted, signature, or nothing."""
    cuts: list[int]
    """Lines at which the markup says that an older message begins."""
    hidden: list[tuple[int, int]]
    """Start and end of what is not shown: comments, style sheets, scripts."""


_START = re.compile(
    r"\s*<(?:!doctype|html|head|body|meta|style|div|p|pre|table|span|font|br|h[1-6]|blockquote)\b[^<]*>",
    re.IGNORECASE,
)
_TAG = re.compile(
    r"</(?:html|body|div|p|pre|table|tr|td|span|blockquote|font|center|ul|ol|li|h[1-6]|a|b|i|u|strong|em)\s*>|<br\s*/?>",
    re.IGNORECASE,
)
# How far to look for the second tag of a body that does not begin with one.
_LOOK_FOR_TAGS = 100_000
# html.parser takes about 3 µs a tag, and 2 µs an attribute; more than this are only found in attacks: a megabyte of
# prose has about 170,000 words.
_MOST_TAGS = 50_000
_MOST_WORDS = 200_000

_BLOCKS = frozenset(
    phrases(
        """
        address, article, aside, blockquote, body, center, dd, div, dl, dt, fieldset, footer, form, h1, h2,
        h3, h4, h5, h6, header, hr, html, li, main, nav, ol, option, p, pre, section, table, tbody, tfoot,
        thead, tr, ul
        """
    )
)
_PARAGRAPHS = frozenset(phrases("blockquote, h1, h2, h3, h4, h5, h6, p, table, ul, ol"))
_CELLS = frozenset(("td", "th"))

# Class names and ids of the wrappers that mail programs put around what is quoted.
_QUOTE_WRAPPERS = re.compile(
    r"(?:^|\s|x_|ydp\w*)(?:gmail_quote|gmail_attr|moz-cite-prefix|yahoo_quoted|protonmail_quote|zmail_extra|"
    r"moz-forward-container|tutanota_quote|ms-outlook-mobile-reference-message)",
)
_SIGNATURE_WRAPPERS = re.compile(
    r"^(?:x_)?(?:gmail_signature|moz-signature|protonmail_signature|ms-outlook-mobile-signature)|^(?:x_|ydp\w*)?signature$",
)
# Elements after which everything is older.
_CUT_IDS = re.compile(r"^(?:x_)*(?:divrplyfwdmsg|appendonsend|zwchr|olk_src_body_section|replysplit)$")

_INVISIBLE = re.compile(r"<!--|<!\[|<(style|script|title)\b", re.IGNORECASE)
_ENDS = {name: re.compile(rf"</{name}\s*>", re.IGNORECASE) for name in ("style", "script", "title")}
_BLANKS = re.compile(r"[\s\u200b]+")
_OPEN_TAG = re.compile(r"<[a-zA-Z/!?]")
_ANY_TAG = re.compile(r"<[^<>]*>")
_BREAKING_TAG = re.compile(
    r"(<(?:[bh]r|/?(?:p|div|t(?:r|able)|li|blockquote|h(?:[1-6]|tml)|[uo]l|body))\b[^<>]*>|\r)", re.IGNORECASE
)
_TAG_OVER_LINES = re.compile(r"<[^<>\r]*\r[^<>]*>")
# Whatever Python takes for the end of a line, bare or as a reference.
_LINE_ENDS = "\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
_LINE_END_REFERENCE = re.compile(
    r"&(?:NewLine;|#(?:0*(?:1[023]|823[23])(?![0-9])|[xX]0*(?:[aAcCdD]|202[89])(?![0-9a-fA-F]));?)"
)
# No character has as many digits, and Python refuses to read thousands of them.
_ENDLESS_REFERENCE = re.compile(r"&#[0-9]{600,};?")


def looks_like_html(text: str) -> bool:
    """Whether a text is an HTML body rather than a text that mentions a tag or an address in angle brackets.

    Parameters
    ----------
    text : str
        The raw text.

    Returns
    -------
    bool
        True if it begins with a tag, or holds two line breaks or closing tags.

    Examples
    --------
    >>> looks_like_html("<div>Bonjour</div>")
    True
    >>> looks_like_html("Le 3 mars, Paul <paul@example.org> a écrit :")
    False
    """
    if "<" not in text or ">" not in text:
        return False
    if _START.match(text):
        return True
    found = _TAG.search(text, 0, _LOOK_FOR_TAGS)
    return bool(found and _TAG.search(text, found.end(), _LOOK_FOR_TAGS))


def parse_html(text: str) -> Markup:
    """Turn an HTML body into lines.

    Parameters
    ----------
    text : str
        The raw markup.

    Returns
    -------
    Markup
        Visible lines, where they stand in `text`, and what the markup says about them.
    """
    visible, hidden = _blank_invisible(text)
    visible = _even_out(visible)
    if _is_costly(visible):
        return _strip_tags(visible, hidden)
    end = visible.rfind(">") + 1
    rest = _end_of_text(visible, end)
    if rest < len(visible):
        hidden.append((rest, len(visible)))
    parser = _LineParser(visible)
    parser.feed(visible[:end])
    parser.close()
    parser.handle_data(unescape(visible[end:rest]), place=end)
    parser.finish(rest)
    return Markup(parser.lines, parser.starts, parser.ends, parser.presets, sorted(parser.cuts), hidden)


def _even_out(text: str) -> str:
    """Make all ends of lines carriage returns and take endless numbers out; all offsets stay.

    Without line feeds the parser counts characters from the start, not from the last line.
    """
    text = text.replace("\r\n", " \r")
    for end in _LINE_ENDS:
        text = text.replace(end, "\r")
    if "&" in text:
        text = _ENDLESS_REFERENCE.sub(_blank, text)
        text = _LINE_END_REFERENCE.sub(lambda found: "\r".rjust(len(found[0])), text)
    return text


def _blank(found: re.Match[str]) -> str:
    return " " * len(found[0])


def _is_costly(text: str) -> bool:
    """Whether there are more tags, or more of what may be attributes, than the parser gets through in time."""
    if text.count("<") > _MOST_TAGS:
        return True
    return len(text) > _MOST_WORDS and len(text.split()) + text.count("=") + text.count("/") > _MOST_WORDS


def _blank_invisible(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Overwrite comments, style sheets and scripts with blanks, so that all offsets stay."""
    pieces, hidden = [], []
    done = 0
    unclosed: set[str] = set()
    for found in _INVISIBLE.finditer(text):
        start = found.start()
        if start < done:
            continue
        name = (found[1] or found[0]).lower()
        end = _invisible_end(text, found.end(), name, unclosed)
        if end > found.end() and name != "<![":
            hidden.append((start, end))
        pieces += [text[done:start], " " * (end - start)]
        done = end
    return "".join([*pieces, text[done:]]), hidden


def _invisible_end(text: str, start: int, name: str, unclosed: set[str]) -> int:
    """Where an invisible element ends; where nothing closes it, only its opening is invisible."""
    mark = "-->" if name == "<!--" else ">"  # a downlevel-revealed comment, "<![if !mso]>", hides only itself
    if name not in unclosed:
        if name in _ENDS:
            closing = _ENDS[name].search(text, start)
            end = closing.end() if closing else -1
        else:
            place = text.find(mark, start)
            end = place + len(mark) if place >= 0 else -1
        if end >= 0:
            return end
        unclosed.add(name)
    if name in _ENDS and ">" not in unclosed:
        place = text.find(">", start)
        if place >= 0:
            return place + 1
        unclosed.add(">")
    return start


def _end_of_text(text: str, start: int) -> int:
    """Where a tag that is cut off at the end of the text begins, or the length of the text."""
    found = _OPEN_TAG.search(text, start)
    return found.start() if found else len(text)


def _strip_tags(text: str, hidden: list[tuple[int, int]]) -> Markup:
    """Lines of a text with too many tags to parse: tags end a line or are blanks."""
    text = _TAG_OVER_LINES.sub(lambda found: found[0].replace("\r", " "), text)
    lines: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    start = 0
    # What stands between the tags that break lines, and those tags, by turns.
    parts = _BREAKING_TAG.split(text)
    for piece, tag in zip(parts[::2], [*parts[1::2], ""], strict=True):
        bare = _ANY_TAG.sub(_blank, piece) if "<" in piece else piece
        line = bare.strip()
        if line:
            first = start + len(bare) - len(bare.lstrip())
            lines.append(" ".join(unescape(line).replace("\u200b", " ").split()))
            starts.append(first)
            ends.append(first + len(line))
        elif lines and lines[-1]:  # blank lines in a row are one
            lines.append("")
            starts.append(start)
            ends.append(start)
        start += len(piece) + len(tag)
    return Markup(lines, starts, ends, [BODY] * len(lines), [], hidden)


class _LineParser(HTMLParser):
    """Collects visible lines; knows whether it is inside a wrapper of quoted text or of a signature."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self._text = text
        self.lines: list[str] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.presets: list[str] = []
        self.cuts: set[int] = set()
        self._pieces: list[str] = []
        self._filled = False
        self._line_start = 0
        self._wrapper = ("", 0, BODY)  # tag, how deeply it is nested in itself, kind
        self._preformatted = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        place = self.getpos()[1]
        if tag == "br":
            self._break(place)
            return
        if tag in _CELLS:
            self._pieces.append(" ")
        elif tag in _BLOCKS:
            self._block(tag, attrs, place)
        if attrs and tag in ("div", "hr", "span", "table", "td", "p", "blockquote", "body"):
            self._note_marks(attrs, place)
        self._open_wrapper(tag, attrs, place)
        if tag == "li":
            self._pieces.append("- ")
        elif tag == "pre":
            self._preformatted += 1

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in ("br", "hr"):
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        place = self.getpos()[1]
        if tag in _BLOCKS:
            self._block(tag, (), place)
        if tag == "pre" and self._preformatted:
            self._preformatted -= 1
        wrapper, depth, kind = self._wrapper
        if tag == wrapper:
            if depth == 1:
                self._break(place, only_if_filled=True)
            self._wrapper = (wrapper, depth - 1, kind) if depth > 1 else ("", 0, BODY)

    def handle_data(self, data: str, *, place: int | None = None) -> None:
        place = self.getpos()[1] if place is None else place
        if not self._preformatted:
            self._add(_BLANKS.sub(" ", data), place)
            return
        first, *others = data.split("\r")
        self._add(first.rstrip(), place)
        if not others:
            return
        place = self._text.find("\r", place) + 1 or place
        self._break(place)
        for line in others[:-1]:
            start, place = place, self._text.find("\r", place) + 1 or place
            raw = self._text[start:place]
            bare = raw.strip()
            first_place = start + len(raw) - len(raw.lstrip()) if bare else place
            self.lines.append(line.rstrip())
            self.starts.append(first_place)
            self.ends.append(first_place + len(bare))
            self.presets.append(self._wrapper[2])
        self._add(others[-1].rstrip(), place)

    def finish(self, place: int) -> None:
        """End the last line."""
        self._break(place, only_if_filled=True)

    def _add(self, text: str, place: int) -> None:
        if not text.strip():
            if self._pieces:
                self._pieces.append(text)
            return
        if not self._filled:
            self._filled = True
            self._line_start = place
            while self._text[self._line_start].isspace():
                self._line_start += 1
        self._pieces.append(text)

    def _block(self, tag: str, attrs: object, place: int) -> None:
        self._break(place, only_if_filled=True)
        # Word makes a paragraph of every line; elsewhere a paragraph is one, with a blank line around it.
        if tag in _PARAGRAPHS and self.lines and self.lines[-1] and "MsoNormal" not in str(attrs):
            self._append("", place, place)

    def _break(self, place: int, *, only_if_filled: bool = False) -> None:
        text = "".join(self._pieces) if self._filled else ""
        text = text.rstrip() if self._preformatted else _BLANKS.sub(" ", text).strip()
        self._pieces.clear()
        self._filled = False
        if only_if_filled and not text:
            return
        self._append(text, self._line_start if text else place, place)

    def _append(self, text: str, start: int, end: int) -> None:
        while end > start and self._text[end - 1].isspace():
            end -= 1
        self.lines.append(text)
        self.starts.append(start)
        self.ends.append(end)
        self.presets.append(self._wrapper[2])

    def _note_marks(self, attrs: list[tuple[str, str | None]], place: int) -> None:
        for name, value in attrs:
            if name == "id" and value and _CUT_IDS.match(value.lower()):
                self._break(place, only_if_filled=True)
                self.cuts.add(len(self.lines))

    def _open_wrapper(self, tag: str, attrs: list[tuple[str, str | None]], place: int) -> None:
        wrapper, depth, kind = self._wrapper
        if wrapper:
            if tag == wrapper:
                self._wrapper = (wrapper, depth + 1, kind)
            return
        kind = _wrapper_kind(tag, attrs)
        if kind != BODY:
            self._break(place, only_if_filled=True)
            self._wrapper = (tag, 1, kind)


def _wrapper_kind(tag: str, attrs: list[tuple[str, str | None]]) -> str:
    """What an element holds, by its name, class and id."""
    values = {name: (value or "").lower() for name, value in attrs}
    names = f"{values.get('class', '')} {values.get('id', '')}".strip()
    if tag == "blockquote":
        # "Indent more" in webmail makes a blockquote too, with a margin and without a border.
        style = values.get("style", "").replace(" ", "")
        indented = "border:none" in style or ("margin-left:" in style and "border" not in style)
        return BODY if indented and not names and "type" not in values else QUOTE
    if not names:
        return BODY
    if _QUOTE_WRAPPERS.search(names):
        return QUOTE
    return SIGNATURE if any(_SIGNATURE_WRAPPERS.search(value) for value in names.split()) else BODY
