"""The known languages, and the union of their tables.

Everything in the tables is lower case and normalised (see :mod:`._normalise`): straight apostrophes, plain
blanks, composed accents. Words that may lose their accents ("écrit", "envoyé") are listed twice. Adding a
language means adding one :class:`~._language.Language` to :data:`LANGUAGES`; patterns are built from the
union of all of them, because one thread often mixes languages.
"""

from ._english import ENGLISH
from ._european import DUTCH, GERMAN, ITALIAN, PORTUGUESE, SPANISH
from ._french import FRENCH
from ._language import Language

LANGUAGES: dict[str, Language] = {
    "fr": FRENCH,
    "en": ENGLISH,
    "de": GERMAN,
    "es": SPANISH,
    "it": ITALIAN,
    "nl": DUTCH,
    "pt": PORTUGUESE,
}
"""The known languages by ISO 639-1 code."""


def collect(name: str) -> tuple[str, ...]:
    """All entries of one field over all languages, without repeats, in order."""
    return tuple(dict.fromkeys(word for language in LANGUAGES.values() for word in getattr(language, name)))


def collect_keys() -> dict[str, str]:
    """Header key to role over all languages; the first language that knows a key decides its role."""
    roles: dict[str, str] = {}
    for language in LANGUAGES.values():
        for role, words in language.keys.items():
            for word in words:
                roles.setdefault(word, role)
    return roles
