"""Where mails lie: mbox files, Maildir folders, folders of .eml files, single files. One mail at a time in memory."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

_HEADER = re.compile(rb"[!-9;-~]+[ \t]*:")
# Headers of which every mail has one; a file of "key: value" lines with none of them is something else.
_KNOWN = re.compile(
    rb"^(?:from|to|cc|subject|date|received|return-path|message-id|mime-version|content-type|delivered-to|reply-to"
    rb"|sender|x-mailer)[ \t]*:",
    re.IGNORECASE | re.MULTILINE,
)
_POSTMARK = re.compile(
    rb"From \S.{0,400}(?:\d{1,2}:\d\d.{0,80}(?:19|20)\d\d|(?:19|20)\d\d.{0,80}\d{1,2}:\d\d)"
)
# The date as the mail programs write it there (RFC 4155): what stands above a mail without headers.
_EXACT_POSTMARK = re.compile(
    rb"From \S{1,400} +(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d "
)
_QUOTED_FROM = re.compile(rb"^>(?=>*From )", re.MULTILINE)
_BOM = b"\xef\xbb\xbf"
_HEAD = 16_384
_FORMATS = {
    b"\xd0\xcf\x11\xe0": "an Outlook .msg file; save the mail as .eml",
    b"!BDN": "an Outlook .pst or .ost file; export the folder as mbox or as .eml files",
    b"PK\x03\x04": "a zip archive; unpack it first",
    b"\x1f\x8b": "a gzip archive; unpack it first",
    b"%PDF": "a PDF",
}


class Piece(NamedTuple):
    """One mail, or why it could not be had."""

    source: str
    """The file that it comes from, relative to what was read."""
    raw: bytes
    problem: str | None = None


def open_mails(path: Path) -> Iterator[Piece]:
    """Find out what lies at `path`, and give its mails one by one.

    Parameters
    ----------
    path : Path
        An mbox file, a Maildir folder, a folder with .eml files at any depth, or one mail.

    Returns
    -------
    iterator of Piece
        The mails; files in the order of their names.

    Raises
    ------
    FileNotFoundError
        If nothing lies there.
    ValueError
        If it is no mailbox.
    """
    if path.is_dir():
        return _from_folder(path)
    if not path.exists():
        near = "" if path.parent.is_dir() else f"; the folder {str(path.parent)!r} does not exist either"
        raise FileNotFoundError(
            f"path={str(path)!r} does not exist{near}. Pass an mbox file, a Maildir folder, a folder of .eml files or "
            "one .eml file."
        )
    with path.open("rb") as file:
        head = _trimmed(file.read(_HEAD))
    if head.startswith(b"From ") and _opens_mbox(head):
        return _from_mbox(path)
    _require_mail(path, head)
    return iter([Piece(path.name, _trimmed(path.read_bytes()))])


def _trimmed(raw: bytes) -> bytes:
    """Without the byte order mark of an editor, and blank lines, which would end the headers."""
    return raw.removeprefix(_BOM).lstrip()


def _require_mail(path: Path, head: bytes) -> None:
    problem = _no_mail(head)
    if problem:
        raise ValueError(
            f"path={str(path)!r} is no mailbox: {problem}. Pass an mbox file (its first line begins with 'From '), a "
            "Maildir folder, a folder of .eml files or one .eml file."
        )


def _no_mail(head: bytes) -> str | None:
    """Why a file that begins with `head` is no mail, or None."""
    if not head:
        return "it is empty"
    for magic, name in _FORMATS.items():
        if head.startswith(magic):
            return f"it is {name}"
    block = re.split(rb"\r?\n\r?\n", head, maxsplit=1)[0]
    if _HEADER.match(head) and _KNOWN.search(block):
        return None
    return f"it begins with {head[:40]!r}, which is no header of a mail"


def _from_folder(path: Path) -> Iterator[Piece]:
    if (path / "cur").is_dir() and (path / "new").is_dir():
        files = [file for name in ("cur", "new") for file in (path / name).iterdir()]
        # Names begin with the second of delivery, whichever of the two folders a mail lies in.
        files = sorted((f for f in files if f.is_file() and f.name[0] != "."), key=lambda f: _natural(f.name))
        return _from_files(path, files)
    every = [Path(folder) / name for folder, _, names in os.walk(path) for name in names]
    files = [file for file in every if file.suffix.lower() == ".eml"]
    if not files:
        holds = f"{len(every)} other file(s), {every[0].name!r} among them" if every else "no file at all"
        raise ValueError(
            f"path={str(path)!r} is no mailbox: it has no cur/ and new/ as a Maildir has, no .eml file lies in it or "
            f"below, and it holds {holds}. Pass an mbox file by its own path."
        )
    return _from_files(path, sorted(files, key=lambda file: _natural(file.relative_to(path).as_posix())))


def _natural(name: str) -> list[tuple[int, str]]:
    """A key that sorts "9.eml" before "10.eml"."""
    parts = re.split(r"(\d+)", name)
    return [(int(part), "") if number % 2 else (0, part) for number, part in enumerate(parts)]


def _from_files(path: Path, files: list[Path]) -> Iterator[Piece]:
    for file in files:
        source = file.relative_to(path).as_posix()
        try:
            raw = file.read_bytes()
        except OSError as error:
            yield Piece(source, b"", f"the file can't be read ({error.strerror or error})")
            continue
        raw = _trimmed(raw)
        yield Piece(source, raw, _no_mail(raw[:_HEAD]))


def _opens_mbox(head: bytes) -> bool:
    first, _, rest = head.partition(b"\n")
    return bool(_POSTMARK.match(first)) or bool(_HEADER.match(rest))


def _from_mbox(path: Path) -> Iterator[Piece]:
    """The mails of an mbox, each read when its turn comes."""
    with path.open("rb") as file:
        for count, (mail, complete) in enumerate(_split(file), start=1):
            problem = None if complete else "the file ends within a line; the end of this mail may be missing"
            yield Piece(f"{path.name}, mail {count}", _QUOTED_FROM.sub(b"", mail), problem)


def _split(file: BinaryIO) -> Iterator[tuple[bytes, bool]]:
    """Cut at the lines that begin a mail, and tell whether the last line is whole.

    A body may hold lines that begin with "From " where the program that wrote the file did not quote them. A
    line that separates has the date of delivery, unless that of the first mail has none, and a header below.
    """
    lines: list[bytes] = []
    line = _first_line(file)
    dated = bool(_POSTMARK.match(line))
    line = file.readline()
    blank_above = False
    while line:
        after = file.readline()
        if line.startswith(b"From ") and _separates(line, after, dated, blank_above):
            yield b"".join(lines), True
            lines = []
        else:
            lines.append(line)
        blank_above = not line.strip()
        line = after
    yield b"".join(lines), not lines or lines[-1].endswith(b"\n")


def _first_line(file: BinaryIO) -> bytes:
    line = file.readline().removeprefix(_BOM)
    while not line.strip():
        line = file.readline()
    return line


def _separates(line: bytes, after: bytes, dated: bool, blank_above: bool) -> bool:
    if dated and not _POSTMARK.match(line):
        return False
    if _HEADER.match(after) or after.startswith(b">From "):
        return dated or blank_above
    return dated and blank_above and not after.strip() and bool(_EXACT_POSTMARK.match(line))
