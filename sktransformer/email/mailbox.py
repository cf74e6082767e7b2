"""Mailboxes become frames."""

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from .._engine.errors import warn_user
from ._message import parse_mail
from ._sources import open_mails

_COLUMNS = (
    "subject",
    "body",
    "sender",
    "date",
    "sender_name",
    "recipients",
    "message_id",
    "in_reply_to",
    "attachments",
    "html",
    "source",
)
_FLAT = ("subject", "body", "sender", "sender_name", "message_id", "in_reply_to", "source")
_HEADER_NAME = re.compile(r"[!-9;-~]+")


def read_mailbox(path: str | os.PathLike[str], *, headers: Sequence[str] = ()) -> pd.DataFrame:
    r"""Read the mails of a mailbox into a frame, one row a mail.

    The standard library's e-mail parser takes the mails apart. What mail programs get wrong is put right where
    the bytes tell how: charsets that are misspelt, unknown or not the real one, encoded words in headers, lines
    of an mbox that begin with "From ". Nothing is sorted, dropped or cleaned.

    Parameters
    ----------
    path : str or path-like
        An mbox file, a Maildir folder (its cur and new), a folder with .eml files at any depth, or one .eml
        file. What it is shows in the content.
    headers : sequence of str, default=()
        Further headers to give a column each, named as written here, "" where a mail has none: labels of a
        mail program, for instance ("X-Gmail-Labels").

    Returns
    -------
    DataFrame of shape (n_mails, 11 + len(headers))
        In the order of the mbox, of the times of delivery in a Maildir, or of the names of the files:

        - subject : str, decoded; replies keep their "Re:".
        - body : str, see Notes; "" if there is none.
        - sender : str, the address.
        - date : datetime in UTC; that of delivery if the mail has none, or NaT.
        - sender_name : str, the name beside the address.
        - recipients : list of str, the addresses of To, Cc and Bcc.
        - message_id : str, with its angle brackets.
        - in_reply_to : str, the message_id of the mail that this one answers, or "".
        - attachments : list of str, the names of what is attached (the content type where there is no name, the
          subject where a mail is attached); the contents are not read.
        - html : bool, whether `body` is HTML.
        - source : str, the file relative to `path`; in an mbox with the number of the mail, from 1.

        ``frame.attrs["broken"]`` lists what is wrong, one dict a mail with "row" (the position in the frame,
        None if nothing could be read), "source" and "problem".

    Raises
    ------
    TypeError
        If `path` is no path, or `headers` is no sequence of str.
    FileNotFoundError
        If nothing lies at `path`.
    ValueError
        If `path` is empty or holds a NUL character, what lies there is no mailbox, or a name in `headers` is none
        or there twice.

    Warns
    -----
    UserWarning
        Once, if a mail is broken, with the number of them.

    See Also
    --------
    sktransformer.email.EmailCleaner : Takes subject and body out of the frame, and leaves the newest message.

    Notes
    -----
    Of a body in several versions the plain text is taken, if there is any in it. Where there is only HTML, `body`
    holds the markup: the marks that mail programs put round a quoted message are in it, and
    :class:`~sktransformer.email.EmailCleaner` recognises it and makes text of it. Several parts that are shown
    one below the other are joined. A mail that is only an envelope round another one has the body of that.

    Bytes that claim to be iso-8859-1 or ASCII are read as UTF-8 where they are valid UTF-8, and as cp1252
    otherwise, as browsers do [1]_. The same is tried for charsets nobody knows, and those mails are listed as
    broken, for the text is a guess.

    An mbox is read mail by mail: memory is needed for the frame and for the longest mail, not for the file.

    References
    ----------
    .. [1] WHATWG, Encoding Standard, section 4.2, https://encoding.spec.whatwg.org/#names-and-labels

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sktransformer.email import read_mailbox
    >>> mail = b"From: Jeanne <jeanne@example.org>\nSubject: =?utf-8?q?Facture_r=C3=A9gl=C3=A9e?=\n\nBonjour,\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "inbox").write_bytes(b"From jeanne Mon Mar  3 10:12:00 2025\n" + mail)
    ...     mails = read_mailbox(Path(folder, "inbox"))
    >>> mails[["subject", "body", "sender"]].iloc[0].tolist()
    ['Facture réglée', 'Bonjour,', 'jeanne@example.org']
    >>> mails.attrs["broken"]
    []
    """
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(
            f"path must be a str or a path, got {type(path).__name__}; pass the path of a mailbox."
        )
    if not os.fspath(path):
        raise ValueError("path is empty; pass '.' for the current folder, or the path of a mailbox.")
    if "\0" in os.fsdecode(path):
        raise ValueError(
            f"path={os.fspath(path)!r} holds a NUL character, which no path may; pass it without."
        )
    path, wanted = Path(path).expanduser(), _check_headers(headers)
    rows: list[dict[str, Any]] = []
    broken: list[dict[str, Any]] = []
    for piece in open_mails(path):
        parsed = parse_mail(piece.raw, wanted) if piece.raw else None
        problems = [piece.problem] if piece.problem else []
        if parsed is None:
            row, problems = None, problems or ["nothing in it can be read as a mail"]
        else:
            row, problems = len(rows), problems + parsed.problems
            rows.append({**parsed.row, "source": piece.source})
        if problems:
            broken.append({"row": row, "source": piece.source, "problem": "; ".join(problems)})
    if broken:
        lost = sum(item["row"] is None for item in broken)
        warn_user(
            f"{len(broken)} mail(s) in {str(path)!r} are broken: {len(broken) - lost} of {len(rows)} rows are read as "
            f"far as they go, {lost} could not be read at all. frame.attrs['broken'] lists them with the reasons.",
            UserWarning,
        )
    return _frame(rows, wanted, broken)


def _check_headers(headers: Sequence[str]) -> tuple[str, ...]:
    names = (
        tuple(headers) if isinstance(headers, Iterable) and not isinstance(headers, (str, bytes)) else None
    )
    if names is None or not all(isinstance(name, str) for name in names):
        raise TypeError(
            f"headers must be a sequence of str, got {headers!r}; pass ['X-Gmail-Labels'] for one."
        )
    for i, name in enumerate(names):
        if not _HEADER_NAME.fullmatch(name):
            raise ValueError(
                f"headers holds {name!r}, which can't be the name of a header; leave the colon out."
            )
        if name in _COLUMNS:
            raise ValueError(f"headers holds {name!r}, and a column is called so; write {name.title()!r}.")
        if name in names[:i]:
            raise ValueError(f"headers holds {name!r} twice; leave one out.")
    return names


def _frame(
    rows: list[dict[str, Any]], headers: tuple[str, ...], broken: list[dict[str, Any]]
) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=[*_COLUMNS, *headers])
    # An empty frame has the types of a full one, and a year of 9999 in a date is no reason to stop.
    frame["date"] = pd.to_datetime(frame["date"], utc=True, errors="coerce")
    frame = frame.astype({"html": bool, **dict.fromkeys((*_FLAT, *headers), str)})
    frame.attrs["broken"] = broken
    return frame
