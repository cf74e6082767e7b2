"""One mail in bytes becomes one row: decoded headers, the body to read, the names of what is attached."""

import datetime
import re
from collections.abc import Iterator, Sequence
from email import message_from_bytes
from email.errors import MessageError
from email.message import Message
from email.parser import BytesHeaderParser
from email.policy import Compat32
from email.utils import getaddresses, parsedate_to_datetime
from html import escape
from typing import Any, NamedTuple

from ._decoding import decode_bytes, decode_header, decode_name, decode_raw
from ._html import looks_like_html

# Mails inside mails inside mails: nobody reads further, and Python's stack ends.
_MOST_NESTED = 40
_TEXTS = ("text/plain", "text/html", "text/enriched")
_ADDRESS = re.compile(r"[^\s<>,;:\"()\[\]]{1,200}@[^\s<>,;:\"()\[\]]{1,200}")
_IDS = re.compile(r"<[^<>\s]+>")
_BLANKS = re.compile(r"\s+")
_UNREADABLE = (
    MessageError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    RecursionError,
    AssertionError,
)


class Parsed(NamedTuple):
    """One row of the frame, and what was wrong with the mail."""

    row: dict[str, Any]
    problems: list[str]


class _Text(NamedTuple):
    """A part of a body."""

    text: str
    html: bool


class _Found(NamedTuple):
    """What the walk over the parts of one mail collects."""

    attachments: list[str]
    nested: list[Message]
    problems: list[str]


class _Raw(Compat32):
    """Headers as they stand: the parser's own decoding stops at unknown charsets, and drops 8-bit bytes."""

    def header_fetch_parse(self, name: str, value: str) -> str:
        return value


_POLICY = _Raw()


def parse_mail(raw: bytes, headers: Sequence[str] = ()) -> Parsed | None:
    """Read one mail.

    Parameters
    ----------
    raw : bytes
        The mail as it was sent, without the "From " line of an mbox.
    headers : sequence of str
        Names of further headers to give a column each.

    Returns
    -------
    Parsed or None
        The row; None where nothing can be read, neither a header nor a text.
    """
    problems: list[str] = []
    try:
        message = message_from_bytes(raw, policy=_POLICY)
        body, attachments = _read_parts(message, problems)
    except (
        _UNREADABLE
    ) as error:  # the standard library's parser has its own bugs; a mail is not lost over one
        problems.append(f"the parts can't be told apart ({type(error).__name__}: {error}); the body is raw")
        message = BytesHeaderParser(policy=_POLICY).parsebytes(raw)
        rest = re.split(rb"\r?\n\r?\n", raw, maxsplit=1)
        body, attachments = _Text(decode_bytes(rest[1] if len(rest) > 1 else b"", None)[0], False), []
    if not message.keys() and not body.text.strip():
        return None
    return Parsed(_row(message, body, attachments, headers, problems), list(dict.fromkeys(problems)))


def _row(
    message: Message, body: _Text, attachments: list[str], headers: Sequence[str], problems: list[str]
) -> dict[str, Any]:
    senders = _addresses(message, ("From",)) or _addresses(message, ("Sender", "Return-Path"))
    date = _date(message)
    if date is None and message.get("Date") is not None:
        problems.append(f"the date {decode_header(message['Date'])[:80]!r} can't be read")
    thread = _IDS.findall(f"{message.get('In-Reply-To', '')} {message.get('References', '')}")
    return {
        "subject": decode_header(message.get("Subject", "")),
        "body": "\n".join(body.text.splitlines()).strip(),
        "sender": senders[0][1] if senders else "",
        "date": date,
        "sender_name": senders[0][0] if senders else "",
        "recipients": [address for _, address in _addresses(message, ("To", "Cc", "Bcc"))],
        "message_id": decode_raw(_BLANKS.sub("", message.get("Message-ID", ""))),
        "in_reply_to": decode_raw(thread[0]) if thread else "",
        "attachments": attachments,
        "html": body.html,
        **{name: decode_header(", ".join(message.get_all(name, []))) for name in headers},
    }


def _addresses(message: Message, names: Sequence[str]) -> list[tuple[str, str]]:
    """Decoded name and address of everybody in some headers."""
    values = [_BLANKS.sub(" ", value) for name in names for value in message.get_all(name, [])]
    try:
        pairs = getaddresses(values)
    except RecursionError:  # "((((": it follows comments inside comments
        pairs = [("", address) for value in values for address in _ADDRESS.findall(value)]
    if any(values) and not any("@" in address for _, address in pairs):
        # Stray commas and colons make the parser give up where an address stands for all to see.
        found = [address for value in values for address in _ADDRESS.findall(decode_header(value))]
        pairs = [("", address) for address in found] or pairs
    return [(decode_header(name), decode_raw(address)) for name, address in pairs if name or address]


def _date(message: Message) -> datetime.datetime | None:
    """When the mail was sent, or else when it came in; in UTC, since zones differ from row to row."""
    received = [value.rpartition(";")[2] for value in message.get_all("Received", [])[:1]]
    for value in (*message.get_all("Date", [])[:1], *received):
        try:
            date = parsedate_to_datetime(_BLANKS.sub(" ", decode_raw(value)).strip())
            return (date if date.tzinfo else date.replace(tzinfo=datetime.UTC)).astimezone(datetime.UTC)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
    return None


def _read_parts(message: Message, problems: list[str]) -> tuple[_Text, list[str]]:
    """The body of a mail and the names of its attachments."""
    found = _Found([], [], problems)
    texts = [part for part in _texts(message, found, 0) if part.text.strip()]
    depth = 0
    while not texts and found.nested and depth < _MOST_NESTED:
        # A mail that is nothing but another one in an envelope: a forward without a word of its own.
        inner = _Found([], [], problems)
        texts = [part for part in _texts(found.nested[0], inner, 0) if part.text.strip()]
        found = found._replace(nested=inner.nested)
        depth += 1
    for part in message.walk():
        problems.extend(_describe(defect) for defect in part.defects)
    return _joined(texts), found.attachments


def _texts(part: Message, found: _Found, depth: int) -> Iterator[_Text]:
    """The texts of a part that a reader is shown, in order."""
    kind = part.get_content_type()
    if depth > _MOST_NESTED:
        found.problems.append(f"parts nested more than {_MOST_NESTED} deep are left out")
    elif kind == "message/rfc822" or (kind.startswith("message/") and part.is_multipart()):
        _note_message(part, kind, found)
    elif part.is_multipart():
        yield from _many(part, kind, found, depth)
    elif (kind in _TEXTS or _has_no_parts(part, kind)) and not _is_attached(part, depth):
        payload = part.get_payload(decode=True)
        text, problem = decode_bytes(payload if isinstance(payload, bytes) else b"", _charset(part))
        if problem:
            found.problems.append(problem)
        yield _Text(text, kind == "text/html")
    elif depth or not kind.startswith("multipart/"):
        found.attachments.append(_file_name(part) or kind)


def _has_no_parts(part: Message, kind: str) -> bool:
    """Whether a multipart mail names no boundary, or one that never comes: its text is read as it stands."""
    payload = part.get_payload()
    return kind.startswith("multipart/") and isinstance(payload, str) and bool(payload.strip())


def _many(part: Message, kind: str, found: _Found, depth: int) -> Iterator[_Text]:
    payload = part.get_payload()
    parts = [child for child in payload if isinstance(child, Message)] if isinstance(payload, list) else []
    read = (list(_texts(child, found, depth + 1)) for child in parts)
    if kind != "multipart/alternative":
        for texts in read:
            yield from texts
        return
    # The same text several times, in rising order of looks (RFC 2046, section 5.1.4): the plain one if it is any.
    choices = [texts for texts in read if any(text.text.strip() for text in texts)]
    plain = [texts for texts in choices if not any(text.html for text in texts)]
    yield from (plain or choices or [[]])[0]


def _note_message(part: Message, kind: str, found: _Found) -> None:
    """A mail in the mail, or the report of a mail server, counts as attached."""
    payload = part.get_payload()
    inner = payload[0] if isinstance(payload, list) and payload else None
    name = _file_name(part)
    if kind == "message/rfc822" and isinstance(inner, Message):
        found.nested.append(inner)
        name = name or decode_header(inner.get("Subject", ""))
    found.attachments.append(name or kind)


def _is_attached(part: Message, depth: int) -> bool:
    if part.get_content_disposition() == "attachment":
        return True
    return depth > 0 and bool(_file_name(part))


def _file_name(part: Message) -> str:
    name = part.get_filename()
    return decode_name(str(name)).strip() if name else ""


def _charset(part: Message) -> str | None:
    charset = part.get_param("charset")
    if isinstance(charset, tuple):  # as RFC 2231 writes it: charset of the charset, language, value
        charset = charset[2]
    return str(charset) if charset else None


def _joined(texts: list[_Text]) -> _Text:
    """One body of the texts of a mail; as HTML if one of them is."""
    if not any(part.html for part in texts):
        return _Text("\n\n".join(part.text.strip("\r\n") for part in texts), False)
    text = "\n".join(part.text if part.html else f"<pre>{escape(part.text)}</pre>" for part in texts)
    # The cleaner tells by the tags; a text/html part with none or few of them must not pass for plain text.
    return _Text(text if looks_like_html(text) else f"<html>{text}</html>", True)


def _describe(defect: object) -> str:
    lines = (type(defect).__doc__ or "").strip().splitlines()
    return (lines[0].rstrip(".") if lines else "") or type(defect).__name__
