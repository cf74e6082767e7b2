"""What holds for any text: never empty, nothing lost unreported, neighbours don't matter, no slow input."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sktransformer.email import EmailCleaner
from sktransformer.email._html import looks_like_html
from sktransformer.email._normalise import normalise

LINES = [
    *(
        "Bonjour,",
        "Mon contrat est le 4512.",
        "",
        "   ",
        "> citation",
        ">",
        "> > plus vieux",
        "- point",
        "oui",
    ),
    *("Cordialement,", "Jean Dupont", "-- ", "__", "----", "PS : autre chose", "06 12 34 56 78", "\u200b"),
    *(
        "Le 3 mars 2025 à 10:12, X <x@example.org>",
        "a écrit :",
        "Le lun. 3 mars 2025 à 10:12, X a écrit\u00a0:",
    ),
    *(
        "De : X <x@example.org>",
        "À : Y",
        "Cc : A;",
        "B <b@example.org>",
        "Objet : truc",
        "Date : 3 mars 2025 10:12",
    ),
    *(
        "-----Message d'origine-----",
        "Début du message transféré :",
        "Envoyé de mon iPhone",
        "Sent from my iPad",
    ),
    *("Ce message est confidentiel, destiné au seul destinataire ; toute diffusion est interdite.",),
    *(
        "ATTENTION : cet e-mail provient de l'extérieur.",
        "<div>",
        "</div>",
        "<br>",
        "<blockquote>",
        "<!--",
        "-->",
    ),
    *(
        "</blockquote>",
        "<style>",
        "&amp;",
        '<div class="gmail_quote">',
        '<div id="divRplyFwdMsg">',
        "<p>",
        "</p>",
    ),
    *("Je vous prie d'agréer, Madame, mes salutations distinguées.", "\x00", "\ud800", "\u2028", "é", "\f"),
]
mails = st.one_of(
    st.lists(st.sampled_from(LINES), max_size=14).map("\n".join),
    st.lists(st.sampled_from(LINES), max_size=10).map("\r\n".join),
    st.lists(st.sampled_from(LINES), max_size=10).map("".join),
    st.text(max_size=60),
)


def letters(text):
    """What has to survive somewhere, blanks aside."""
    return sorted(set(normalise(text).split()))


@settings(max_examples=400, deadline=None)
@given(mails)
def test_a_mail_with_text_never_becomes_empty(text):
    cleaned = EmailCleaner().transform([text])[0]
    assert type(cleaned) is str
    assert bool(cleaned) == bool(normalise(text).strip())


@settings(max_examples=400, deadline=None)
@given(mails)
def test_every_line_is_kept_or_reported(text):
    cleaned = EmailCleaner().transform([text])[0]
    pieces = EmailCleaner().explain(text)
    if looks_like_html(text):
        return  # tags are neither kept nor reported
    reported = " ".join(piece.text for piece in pieces)
    left = {word.lstrip(">") for word in f"{cleaned} {normalise(reported)}".split()}
    assert {word.lstrip(">") for word in letters(text)} - left - {""} == set()


@settings(max_examples=400, deadline=None)
@given(mails)
def test_pieces_are_places_in_the_raw_text(text):
    pieces = EmailCleaner().explain(text)
    kinds = {"quote", "header", "signature", "disclaimer", "footer", "html"}
    for piece in pieces:
        assert piece.kind in kinds
        assert 0 <= piece.start < piece.end <= len(text)
        assert text[piece.start : piece.end] == piece.text
    assert all(above.end <= below.start for above, below in pairwise(pieces))


@settings(max_examples=200, deadline=None)
@given(st.lists(mails, min_size=1, max_size=5))
def test_a_mail_does_not_depend_on_its_neighbours(texts):
    cleaner = EmailCleaner()
    assert cleaner.transform(texts).tolist() == [cleaner.transform([text])[0] for text in texts]


@settings(max_examples=200, deadline=None)
@given(mails)
def test_keeping_everything_keeps_every_line(text):
    cleaner = EmailCleaner(keep_signatures=True, keep_disclaimers=True, keep_quotes=True)
    assert {piece.kind for piece in cleaner.explain(text)} <= {"html"}


MEGABYTE = 1_000_000
HOSTILE = {
    "blank lines": "Bonjour\n" + "\n" * MEGABYTE,
    "one line": "a" * MEGABYTE,
    "one line of words": "mot " * (MEGABYTE // 4),
    "quote marks": "> " * (MEGABYTE // 2),
    "quoted lines": "> a\n" * (MEGABYTE // 4),
    "Le on one line": "Le " * (MEGABYTE // 3),
    "Le on lines": "Le 3 mars 2025 à 10:12, X\n" * (MEGABYTE // 26),
    "dates on lines": "Le lun. mar. mer. 3 mars 2025 a écrit\n" * (MEGABYTE // 38),
    "verbs": "a écrit :\n" * (MEGABYTE // 10),
    "verbs on one line": ("le 3 mars 2025 à 10:12 " + "a écrit " * 45 + "x:\n") * (MEGABYTE // 386),
    "senders": "De :\n" * (MEGABYTE // 5),
    "headers": "De : P <p@e.org>\nEnvoyé : lundi 3 mars 2025 10:12\nÀ : X\nObjet : y\n" * (MEGABYTE // 68),
    "headers without a subject": "De : Paul\nÀ : X\n" * (MEGABYTE // 16),
    "recipients": "De : x\n" + ("à : a;\n" + "x;\n" * 38) * (MEGABYTE // 121),
    "closings": "Cordialement,\n" * (MEGABYTE // 14),
    "closings and names": "Cordialement Jean Jean Jean Jean Jean,,,,\n" * (MEGABYTE // 42),
    "names": "-JEANNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNN!\n\n" * (MEGABYTE // 41),
    "formulas": "salutations agréer\n" * (MEGABYTE // 19),
    "notices": "mot\n\nCe message est confidentiel\n\n" * (MEGABYTE // 35),
    "openings of notices": "Ce message est destiné uniquement au service de la part de X\n"
    * (MEGABYTE // 62),
    "footers": "Envoyé de mon " + "a" * MEGABYTE,
    "dashes": ("-" * 390 + "a\n") * (MEGABYTE // 392),
    "short lines": "a\n" * (MEGABYTE // 2),
    "rules": "-\n" * (MEGABYTE // 2),
    "attributions above quotes": "Le lun. 3 mars 2025 à 10:12, X a écrit :\n> a\n" * (MEGABYTE // 45),
    "greetings below footers": "Bonjour\n\nEnvoyé de mon iPhone\n\n" * (MEGABYTE // 32),
    "unknown separators": "---- besked ----\nFra: a\nTil: b\n" * (MEGABYTE // 31),
    "dates above quotes": "2013.02.08. 7:31 X:\n> a\n" * (MEGABYTE // 24),
    "separators": "-----Message d'origine-----\n" * (MEGABYTE // 28),
    "combining marks": "a" + "\u0301\u0316" * (MEGABYTE // 2),
    "decomposed accents": "e\u0301" * (MEGABYTE // 2),
    "no-break spaces": "x" + "\u00a0" * MEGABYTE,
    "less-than signs": "<p>" + "<" * MEGABYTE + ">",
    "bold tags": "<b>" * (MEGABYTE // 3),
    "paragraphs": "<p>x</p>" * (MEGABYTE // 8),
    "wrappers": "<blockquote>" * (MEGABYTE // 12),
    "open comments": "<p>x</p><br>" + "<!--" * (MEGABYTE // 4),
    "open sections": "<p>x</p><p>" + "<![" * (MEGABYTE // 3) + ">",
    "open style sheets": "<p>x</p><p>" + "<style " * (MEGABYTE // 7),
    "open scripts": "<p>x</p><p>" + "<script>" * (MEGABYTE // 8),
    "open tags": "<p>x</p><p>" + "<a " * (MEGABYTE // 3),
    "open attributes": "<p>x</p><p>" + "<a b='" * (MEGABYTE // 6),
    "open references": "<p>x</p><p>" + "&#" * (MEGABYTE // 2),
    "at signs above quotes": ("@" * 380 + " :\n> a\n") * (MEGABYTE // 387),
    "many at signs": ("1 aaaaa <" + "@" * 380 + ":\n") * (MEGABYTE // 391),
    "courtesies": "Merci,\n\n" * (MEGABYTE // 8),
    "surrogates": "\ud800" * MEGABYTE,
    "many attributes": ("<p " + "a=b " * 40 + ">x</p>") * (MEGABYTE // 169),
    "short attributes": "<p " + "a " * (MEGABYTE // 2 - 10) + ">x</p>",
    "references to line ends": "<pre>" + "&#13;" * (MEGABYTE // 6) + "x",
    "many tags": "<p>" + ("x<b>" + "y" * 17) * (MEGABYTE // 21) + "</p>",
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_a_hostile_megabyte_passes(name):
    # A quadratic rule takes minutes to hours on these; none of them takes a second.
    text = HOSTILE[name][:MEGABYTE]
    assert EmailCleaner().transform([text])[0]
    assert all(text[piece.start : piece.end] == piece.text for piece in EmailCleaner().explain(text))
