"""Subjects without what mail programs put in front of them."""

import re

from ._patterns import alternatives
from ._tables import collect

# "Re: TR : [EXT] Fwd[2]:", any number of times; single letters ("R:", "I:") are left, for they start real
# subjects.
_PREFIX = re.compile(
    rf"\s*(?:(?:{alternatives(collect('reply_prefixes'))})\s?(?:[\[(]\d{{1,3}}[\])])?\s?:|\[(?:ext|externe?|external)\]:?)",
    re.IGNORECASE,
)
_BLANKS = re.compile(r"\s+")


def clean_subject(subject: str) -> str:
    """Strip reply and forward prefixes and superfluous blanks from a normalised subject.

    Parameters
    ----------
    subject : str
        The subject.

    Returns
    -------
    str
        The subject itself; empty if nothing but prefixes was there.

    Examples
    --------
    >>> clean_subject("RE: TR : Facture 12")
    'Facture 12'
    """
    subject = _BLANKS.sub(" ", subject).strip()
    start = 0
    while found := _PREFIX.match(subject, start):
        start = found.end()
    return subject[start:].strip()
