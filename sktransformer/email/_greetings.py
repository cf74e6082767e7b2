"""The salutation above a message: "Bonjour Madame, Monsieur,"."""

import re

from ._language import phrases
from ._page import BODY, GREETING, Page, is_rule
from ._signatures import is_greeting
from ._tables import collect

_LONGEST = 6  # words
_PART = re.compile(r"[,;!.:]+")
_WORDS = frozenset(word for phrase in collect("greetings") for word in phrase.split())
# What joins greetings or says to whom; nothing a writer could ask for.
_TO_WHOM = frozenset(
    phrases(
        "à, a, tous, toutes, et, l'équipe, le, la, service, client, all, team, everyone, there, sir, madam, or, and, "
        "zusammen, damen, und, herren, todos"
    )
)


def label_greeting(page: Page) -> None:
    """Label the first line of the message if it is a salutation and nothing else, and more text follows.

    With a comma at its end the line may hold a name ("Chère Madame Petit,"); without one each word must be known, since
    "Bonjour facture impayée" says what the mail is about.

    Parameters
    ----------
    page : Page
        The mail, with all other labels.
    """
    body = [line for line, kind in enumerate(page.kinds) if kind == BODY and not is_rule(page.lows[line])]
    if len(body) < 2:
        return
    first = body[0]
    if _is_salutation(page.lows[first]):
        page.kinds[first] = GREETING


def _is_salutation(low: str) -> bool:
    parts = [part.split() for part in _PART.split(low) if part.strip()]
    if not parts or not is_greeting(low, _LONGEST):
        return False
    if all(word in _WORDS or word in _TO_WHOM for words in parts for word in words):
        return True
    # a comma, and a greeting behind each other one: "Bonjour, facture impayée," is no salutation
    return low.endswith(",") and all(is_greeting(" ".join(words)) for words in parts)
