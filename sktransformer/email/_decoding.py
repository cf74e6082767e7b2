"""Bytes of mails become text, whatever the mail says about them."""

import binascii
import codecs
import quopri
import re
from email.utils import unquote

# What the name of a charset is stripped to before it is looked up: 'utf-8 a1b2' and '"cp850"' are seen.
_NAME = re.compile(r"[a-z0-9][a-z0-9_.:+-]*")
# Windows writes its own charset and calls it by these names (WHATWG Encoding Standard, section 4.2); bytes that
# make valid UTF-8 with accents are no sensible text in any of them.
_WESTERN = frozenset({"ascii", "iso8859-1", "cp1252"})
_UTF8 = re.compile(r"(?:unicode-?1-?1-?)?(?:utf|uft|tuf|ut|utff)-?8(?:mb[34])?|utf|unicode")
# "-i" and "-e" say in which direction right-to-left text is stored (RFC 1556); the bytes are the same.
_DIRECTION = re.compile(r"(?<=\d)-[ie]$")
# Codecs of Python that no mail means: escapes, and names of hosts, which take quadratic time.
_NO_CHARSETS = frozenset(
    {"idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape", "mbcs", "oem"}
)

# The control characters of Latin-1 are never meant: they are bytes of cp1252 under another name.
_CONTROLS = {
    0x80 + place: character
    for place, character in enumerate(bytes(range(0x80, 0xA0)).decode("cp1252", errors="replace"))
}
_HAS_CONTROLS = re.compile("[\x80-\x9f]")
# Halves of characters, which no text may hold: UTF-7 can spell them.
_SURROGATE = re.compile("[\ud800-\udfff]")

# An encoded word (RFC 2047, section 2). Blanks inside are against the rule and are sent all the same.
_WORD = re.compile(r"=\?([^?\s]{1,80})\?([bqBQ])\?([^?]*)\?=")
_FOLD = re.compile(r"[\r\n]+[ \t]*|\t")


def find_codec(charset: str) -> str | None:
    """Find Python's name of a charset, also of a misspelt one.

    Parameters
    ----------
    charset : str
        The name as a mail gives it.

    Returns
    -------
    str or None
        The name, or None where nothing is known by it.

    Examples
    --------
    >>> find_codec("uft-8"), find_codec("cp-850"), find_codec("iso-8859-8-i"), find_codec('"utf-8 a1b2"')
    ('utf-8', 'cp850', 'iso8859-8', 'utf-8')
    >>> find_codec("x-unknown")
    """
    found = _NAME.search(charset.lower())
    if not found:
        return None
    name = _DIRECTION.sub("", found[0])
    if _UTF8.fullmatch(name.replace("_", "-")):
        return "utf-8"
    for spelling in (
        name,
        name.replace("-", "").replace("_", ""),
        name.removeprefix("x-"),
        name.removeprefix("cs"),
    ):
        # A bare number would be taken for a code page: "1" is none, "850" is.
        if spelling.isdigit() and len(spelling) < 3:
            continue
        try:
            codec = codecs.lookup(spelling).name
            # "hex" and the like are codecs, and none of text; Python does not look at the codec for no bytes
            b"0".decode(codec, errors="replace")
        except (LookupError, ValueError):
            continue
        if codec.replace("_", "-") not in _NO_CHARSETS:
            return codec
    return None


def decode_bytes(data: bytes, charset: str | None) -> tuple[str, str | None]:
    r"""Decode text, by its charset if that is known and right, by what the bytes look like otherwise.

    Parameters
    ----------
    data : bytes
        The text.
    charset : str or None
        The charset that the mail names.

    Returns
    -------
    text : str
        The text, without control characters of Latin-1.
    problem : str or None
        What was wrong with the charset, if the text is a guess.

    Examples
    --------
    >>> decode_bytes(b"L\x92abonnement, 30 \x80", "iso-8859-1")
    ('L’abonnement, 30 €', None)
    >>> decode_bytes(b"R\xe9clamation", "x-unknown")
    ('Réclamation', "the charset 'x-unknown' is not known; read as cp1252")
    """
    if data.isascii() and (
        charset is None or not charset.lower().startswith(("iso-2022", "utf-7", "utf-16", "hz"))
    ):
        return data.decode("ascii"), None
    codec = "ascii" if charset is None else find_codec(charset)
    if codec in _WESTERN or codec is None:
        text, used = _guess(data)
        problem = None if codec else f"the charset {charset!r} is not known; read as {used}"
        return _clean(text), problem
    try:
        text, problem = data.decode(codec), None
    except (UnicodeError, ValueError):
        text, used = _repair(data, codec)
        problem = f"the bytes are not all of the charset {charset!r}; read as {used}"
    return _clean(text.removeprefix("\ufeff")), problem


def decode_raw(value: str) -> str:
    """Decode what the parser of the standard library left as it was: 8-bit bytes in a header.

    Parameters
    ----------
    value : str
        Text with surrogates for bytes beyond ASCII.

    Returns
    -------
    str
        The same as text.
    """
    if value.isascii():
        return value
    return decode_bytes(_as_bytes(value), None)[0]


def decode_header(value: str) -> str:
    """Decode a header with its encoded words (RFC 2047), unfolded.

    Parameters
    ----------
    value : str
        The raw value.

    Returns
    -------
    str
        The text. A word that can't be decoded stays as it is.

    Examples
    --------
    >>> decode_header("=?utf-8?q?Facture_n=C2=B0?= =?utf-8?b?IDEy?=")
    'Facture n° 12'
    >>> decode_header("=?x-unknown?Q?R=E9clamation?=")
    'Réclamation'
    """
    value = _FOLD.sub(" ", value)
    if "=?" not in value:
        return decode_raw(value).strip()
    pieces: list[tuple[bytes, str | None]] = []  # bytes of one charset may be cut inside a character
    end = 0
    for found in _WORD.finditer(value):
        between = value[end : found.start()]
        # Blanks between two encoded words only separate them (RFC 2047, section 6.2).
        if between.strip() or not pieces or pieces[-1][1] is None:
            pieces.append((_as_bytes(between), None))
        data, charset = _word_bytes(found[3], found[2].lower()), found[1].partition("*")[0].lower()
        if data is None:
            pieces.append((_as_bytes(found[0]), None))
        elif pieces and pieces[-1][1] == charset:
            pieces[-1] = (pieces[-1][0] + data, charset)
        else:
            pieces.append((data, charset))
        end = found.end()
    pieces.append((_as_bytes(value[end:]), None))
    return _FOLD.sub(" ", "".join(decode_bytes(data, charset)[0] for data, charset in pieces)).strip()


def decode_name(value: str) -> str:
    """Decode the name of a file, which mail programs write like a header, like a parameter, or as bytes."""
    return decode_header(unquote(value)).replace("\x00", "")


def _as_bytes(value: str) -> bytes:
    """Return the bytes of a header; the parser stands a surrogate for each that is not ASCII."""
    try:
        return value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a surrogate that stands for no byte, out of a parameter in UTF-7
        return _SURROGATE.sub("\ufffd", value).encode("utf-8")


def _word_bytes(encoded: str, encoding: str) -> bytes | None:
    data = _as_bytes(encoded)
    if encoding == "q":
        return quopri.decodestring(data, header=True)
    try:
        return binascii.a2b_base64(data + b"=" * (-len(data) % 4)) or None
    except binascii.Error:
        return None


def _guess(data: bytes) -> tuple[str, str]:
    try:
        return data.decode("utf-8-sig"), "utf-8"
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace"), "cp1252"


def _repair(data: bytes, codec: str) -> tuple[str, str]:
    """Decode bytes that are not all of a charset: a few broken characters of it, or another one."""
    if codec != "utf-8":
        try:
            return data.decode("utf-8"), "utf-8"
        except UnicodeDecodeError:
            return data.decode(codec, errors="replace"), f"{codec}, broken bytes as U+FFFD"
    text = data.decode("utf-8", errors="replace")
    broken = text.count("\ufffd")
    if sum(character > "\x7f" for character in text) >= 2 * broken:
        return text, "utf-8, broken bytes as U+FFFD"
    return data.decode("cp1252", errors="replace"), "cp1252"


def _clean(text: str) -> str:
    text = text.translate(_CONTROLS) if _HAS_CONTROLS.search(text) else text
    return _SURROGATE.sub("\ufffd", text)
