"""Whole mails: what is kept and what is dropped."""

import json
from pathlib import Path

import pytest

from sktransformer.email import EmailCleaner

DATA = Path(__file__).parent / "data"
AUTHORED = [json.loads(line) for line in (DATA / "authored.jsonl").read_text(encoding="utf-8").splitlines()]
HTML = json.loads((DATA / "authored_html.json").read_text(encoding="utf-8"))


def clean(text, **parameters):
    return EmailCleaner(**parameters).transform([text])[0]


def joined(text):
    return " ".join(text.split())


@pytest.mark.parametrize("case", AUTHORED, ids=lambda case: case["id"])
def test_authored_mail(case):
    cleaned = clean(case["text"])
    assert [text for text in case["keep"] if text not in cleaned] == []
    assert [text for text in case["drop"] if text in cleaned] == []


@pytest.mark.parametrize("case", AUTHORED, ids=lambda case: case["id"])
def test_authored_mail_loses_no_line_that_is_not_reported(case):
    cleaned = joined(clean(case["text"]))
    reported = joined(" ".join(piece.text for piece in EmailCleaner().explain(case["text"])))
    for line in case["text"].splitlines():
        line = joined(line.replace("\u2019", "'"))
        assert line in cleaned or line in reported.replace("\u2019", "'")


@pytest.mark.parametrize("name", sorted(HTML))
def test_authored_html(name):
    cleaned = clean(HTML[name])
    assert joined(cleaned).startswith("Bonjour, Je n'ai toujours pas reçu ma facture du mois de mars.")
    assert cleaned.endswith("Pouvez-vous me la renvoyer ?")
    pieces = EmailCleaner().explain(HTML[name])
    assert [piece.kind for piece in pieces if "QUOTEMARK" in piece.text] == ["quote"]
    assert all(HTML[name][piece.start : piece.end] == piece.text for piece in pieces)


SWALLOWED = (
    "Bonjour Claire,\n\nPremier point à voir.\n\n\n"
    "Le paramètre bloque toujours.\n\nSecond point à voir.\n\n\n"
    "- Le 2026-04-09 23:25, Support a écrit :\n> ancien texte"
)
ANSWER = "Bonjour Claire, Premier point à voir. Le paramètre bloque toujours. Second point à voir."
MORE = " Il ne répond pas." * 50


@pytest.mark.parametrize(
    ("text", "right", "start"),
    [
        (SWALLOWED, ANSWER, "- Le 2026"),
        (SWALLOWED.replace("écrit :", "écrit\u00a0:"), ANSWER, "- Le 2026"),
        (SWALLOWED.replace("- Le", "Le"), ANSWER, "Le 2026"),
        (
            SWALLOWED.replace("bloque toujours.", f"bloque toujours.{MORE}"),
            ANSWER.replace("bloque toujours.", f"bloque toujours.{MORE}"),
            "- Le 2026",
        ),
    ],
    ids=["list mark", "no-break space", "bare", "900 characters"],
)
def test_prose_that_begins_with_le_is_no_attribution(text, right, start):
    assert joined(clean(text)) == right
    (piece,) = EmailCleaner().explain(text)
    assert (piece.kind, piece.start, piece.end) == ("quote", text.index(start), len(text))
    assert piece.text == text[piece.start :]


HEADER = (
    "De : Paul Durand <paul@example.org>\nEnvoyé : lundi 12 janvier 2026 09:14\n"
    "À : Sinistres <sinistres@example.org>\n"
    "Cc : Anne PETIT; Luc ROY;\nEva BLANC <eva@example.org>; Jean NOIR\n"
    "Objet : Dégât des eaux\n\nBonjour,\nMerci d'ouvrir un dossier pour l'appartement B12.\n"
)


@pytest.mark.parametrize(
    "block",
    [
        HEADER,
        HEADER.replace("\nEva", "\n Eva"),
        HEADER.replace("\nEva", "\n\tEva"),
        HEADER.replace("Cc :", "Copie à :"),
        HEADER.replace("\n", "\r\n"),
        HEADER.replace("\nEva", "\n" + "".join(f"Nom{i} <nom{i}@example.org>;\n" for i in range(35)) + "Eva"),
    ],
    ids=["plain", "blank", "tab", "copie", "crlf", "35 names"],
)
def test_wrapped_list_of_recipients(block):
    assert clean(f"Je relance.\n\n{block}") == "Je relance."
    alone = clean(block)
    assert "Merci d'ouvrir un dossier pour l'appartement B12." in alone
    assert [word for word in ("@", "Eva", "BLANC", "NOIR", "Objet", "Nom") if word in alone] == []
    assert [piece.kind for piece in EmailCleaner().explain(block)] == ["header"]
