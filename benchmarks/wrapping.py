"""What stands round a message in a mailbox: greeting, closing, signature, legal notice, an older message.

All names, firms, addresses and notices are invented; telephone numbers come from the ranges that France keeps for
films. The templates are written as people and mail programs write them in French, not after the cleaner's rules, and
nothing was taken out because the cleaner fails on it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

GREETINGS = (
    "Bonjour,", "Bonjour", "Bonjour Madame, Monsieur,", "Madame, Monsieur,", "Bonsoir,", "Bonjour à tous,",
    "Messieurs,", "Bonjour {first},", "Chère Madame {last},", "Cher Monsieur {last},", "Salut {first},",
    "Bonjour l'équipe,", "Bonjour le service client,",
)  # fmt: skip
CLOSINGS = (
    "Cordialement,", "Cordialement", "Bien cordialement,", "Très cordialement.", "Cdt,", "Cdlt", "Bien à vous,",
    "Salutations distinguées", "Sincères salutations,", "Bonne journée,", "Bonne fin de journée !", "Merci d'avance,",
    "Merci,", "Merci par avance pour votre aide.", "Bonne réception,", "Avec mes remerciements,", "À bientôt,",
    "Merci d'avance et bonne journée,", "Respectueusement,", "Je vous remercie par avance.\n\nCordialement,",
    "Dans l'attente de votre retour,\n\nBien cordialement,", "Dans l'attente de vous lire, cordialement,",
    "Veuillez agréer, Madame, Monsieur, l'expression de mes salutations distinguées.",
    "Je vous prie d'agréer, Madame, Monsieur,\nl'expression de mes sentiments les meilleurs.",
    "Restant à votre disposition pour tout renseignement,\n\nBien à vous,", "Belle journée à vous,",
)  # fmt: skip
SIGNATURES = (
    "{first} {last}",
    "{first}",
    "{first} {LAST}",
    "{first} {last}\n{mobile}",
    "{first} {last}\nTél. : {phone}",
    "{first} {last}\n{street}\n{town}\nTél. {phone}",
    "{first} {last}\n{job}\n{firm}\nT {phone} | M {mobile}",
    "{first} {LAST}\n{job} - {firm}\nPort. : {mobile}\n{mail}",
    "-- \n{first} {last}\n{firm}\n{phone}",
    "--\n{first} {last}, {job}\n{firm} - {street}, {town}\n{site}",
    "{first} {last} | {job} | {firm}\n{street} - {town}\nFixe : {phone} - Mobile : {mobile}\n{mail} | {site}",
    "M. {first} {LAST}\n{town}\nMobile : {mobile}\nCourriel : {mail}",
    "{first} {last}\n{firm}, SAS au capital de 40 000 €\n{street}, {town}\n{site}",
    "_______________\n{first} {last}\n{job}\n{phone}",
    "{first}\n\nEnvoyé de mon iPhone",
    "{first} {last}\n\nEnvoyé depuis mon smartphone Samsung Galaxy",
    "{first} {last}\n\nObtenir Outlook pour Android",
    "{first} {last}\n\nEnvoyé à partir de Courrier pour Windows",
)
NOTICES = (
    "Ce message et ses pièces jointes sont confidentiels et destinés exclusivement à leur destinataire. Si vous l'avez "
    "reçu par erreur, merci de le détruire et d'en avertir l'expéditeur.",
    "Ce courriel peut contenir des informations confidentielles. Toute diffusion ou copie non autorisée est interdite.",
    "Les informations contenues dans ce message sont confidentielles et réservées à l'usage de la personne à qui il "
    "est adressé. Toute publication, utilisation ou diffusion, même partielle, doit être autorisée préalablement.",
    "AVERTISSEMENT : ce message est confidentiel. Si vous n'êtes pas le destinataire désigné, vous êtes prié de le "
    "supprimer sans en prendre copie.",
    "L'intégrité de ce message n'étant pas assurée sur Internet, {firm} ne peut être tenue responsable de son contenu. "
    "S'il ne vous est pas destiné, veuillez le détruire et en informer immédiatement l'expéditeur.",
    "Le présent message, ainsi que tout document joint, est protégé par le secret professionnel et destiné à l'usage "
    "exclusif de ses destinataires.",
    "Pensez à l'environnement : n'imprimez ce message que si c'est nécessaire.",
    "Avant d'imprimer ce courriel, réfléchissez à l'impact sur l'environnement.",
    "Ce message a été vérifié par un antivirus et ne contient aucune menace connue.",
    "Message à caractère privé. Son contenu n'engage que son auteur, et {firm} décline toute responsabilité en cas "
    "d'altération ou de falsification.",
    "Conformément à la loi Informatique et Libertés, vous disposez d'un droit d'accès et de rectification aux données "
    "vous concernant. Ce courriel est strictement confidentiel.",
    "This e-mail and any attachment are confidential and intended solely for the addressee. If you have received it "
    "in error, please delete it and notify the sender.\nCe courriel et ses pièces jointes sont confidentiels et "
    "destinés au seul destinataire. En cas de réception par erreur, merci de le supprimer et de prévenir l'expéditeur.",
)  # fmt: skip
SUBJECTS = (
    "Re: Votre demande", "RE: Votre message", "Re: Suivi", "TR: Votre dossier", "Demande n° {number}",
    "Re: [#{number}]", "Contact depuis le site", "Votre message du {day} {month}", "Re: Re: Bonjour",
)  # fmt: skip
# Above lines that begin with ">".
ATTRIBUTIONS = (
    "Le {weekday}. {day} {month} {year} à {clock}, {first} {last} <{mail}> a écrit :",
    "Le {weekday}. {day} {month} {year} à {clock}, {first} {last} <{mail}>\na écrit :",
    "Le {day}/{month_number:02d}/{year} à {clock}, {first} {last} a écrit :",
    "Le {day} {month} {year} à {clock}, {first} {last} <{mail}> a écrit :",
    "Le {day} {month} {year}, {mail} a écrit :",
    "{first} {last} <{mail}> a écrit le {day} {month} {year} à {clock} :",
)
# Above a message that nothing marks.
HEADERS = (
    "De : {first} {last} <{mail}>\nEnvoyé : {longday} {day} {month} {year} {clock}\nÀ : Service client <{box}>\n"
    "Objet : {subject}",
    "De : {first} {last} [mailto:{mail}]\nEnvoyé : {longday} {day} {month} {year} {clock}\nÀ : {box}\n"
    "Cc : {firm}\nObjet : {subject}",
    "________________________________\nDe : {mail}\nEnvoyé : {longday} {day} {month} {year} {clock}\nÀ : {box}\n"
    "Objet : {subject}",
    "-----Message d'origine-----\nDe : {first} {last} <{mail}>\nEnvoyé : {longday} {day} {month} {year} {clock}\n"
    "À : {box}\nObjet : {subject}",
    '----- Message d\'origine -----\nDe: "{first} {last}" <{mail}>\nÀ: {box}\n'
    "Envoyé: {longday} {day} {month} {year} {clock}\nObjet: {subject}",
    "*De :* {first} {last} <{mail}>\n*Envoyé :* {longday} {day} {month} {year} {clock}\n*À :* {box}"
    "\n*Objet :* {subject}",
    "De : {first} {last}\nDate : {longday} {day} {month} {year} à {clock}\nÀ : {box}\nObjet : {subject}",
    "-------- Message original --------\nDe : {first} {last} <{mail}>\nDate : {day}/{month_number:02d}/{year} {clock} "
    "(GMT+01:00)\nÀ : {box}\nObjet : {subject}",
)
FIRST = (
    "Camille", "Jean", "Marie", "Paul", "Nadia", "Karim", "Sophie", "Luc", "Émilie", "François", "Aïcha", "Thomas",
    "Chloé", "Mehdi", "Hélène", "Jérôme", "Inès", "Olivier", "Jean-Pierre", "Anne-Laure",
)  # fmt: skip
LAST = (
    "Petit", "Durand", "Moreau", "Lefèvre", "Benali", "Garnier", "Rousseau", "Fontaine", "Chevalier", "Perrin",
    "Diallo", "Nguyen", "Leroux", "Marchand", "Girard", "Haddad", "Colin", "Barbier", "Renaud", "Picard",
)  # fmt: skip
FIRMS = (
    "Atelier Verdoyant", "Société Lumière & Fils", "Cabinet Morvan", "Groupe Alizé", "Les Comptoirs du Nord",
    "Mécanord", "Studio Brindille", "Conseil Arpège",
)  # fmt: skip
JOBS = (
    "Responsable des achats", "Assistante de direction", "Comptable", "Gérant", "Chargée de projet",
    "Directeur technique", "Office manager", "Consultante",
)  # fmt: skip
STREETS = (
    "12 rue des Lilas",
    "4 bis avenue du Parc",
    "58, boulevard Voltaire",
    "7 impasse du Moulin",
    "ZA des Prés",
)
TOWNS = ("75011 Paris", "69003 Lyon", "44000 Nantes", "31400 Toulouse", "59800 LILLE", "67000 Strasbourg")
WEEKDAYS = ("lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche")
MONTHS = (
    "janvier", "février", "mars", "avril", "mai", "juin", "juillet", "août", "septembre", "octobre", "novembre",
    "décembre",
)  # fmt: skip
FILM_NUMBERS = {"phone": ("01 99 00", "04 65 71", "05 36 49"), "mobile": ("06 39 98",)}  # ARCEP's for fiction
COLUMNS = 72
GAPS = ("\n", "\n\n")


@dataclass(frozen=True)
class Wrapped:
    """A mail, and what it was made of.

    Attributes
    ----------
    text : str
        The mail.
    greeting, body : str
        What its writer says, and the greeting above it.
    quoted : int
        Which message is quoted below, counted in the texts that were handed in.
    quote : str
        The style of the quote: how its first line begins.
    """

    text: str
    greeting: str
    body: str
    quoted: int
    quote: str


def wrap(texts: Sequence[str], labels: Sequence[str], random: np.random.Generator) -> list[Wrapped]:
    """Make a mail of each text, above a quoted one of another class out of the same texts."""
    classes = np.asarray(labels)
    strangers = {label: np.flatnonzero(classes != label) for label in set(labels)}
    if any(not len(rows) for rows in strangers.values()):
        raise ValueError(
            f"a message of another class is quoted below each, but all labels are {labels[0]!r}."
        )
    return [
        _mail(text, texts, int(random.choice(strangers[label])), random)
        for text, label in zip(texts, labels, strict=True)
    ]


def flat(text: str) -> str:
    """A text with its quote marks, line ends and curly apostrophes evened out, to look for one in another."""
    lines = [line.removeprefix(">") for line in text.replace("’", "'").splitlines()]
    return " ".join(" ".join(lines).split())


def _mail(text: str, texts: Sequence[str], quoted: int, random: np.random.Generator) -> Wrapped:
    """One mail; the notice stands below the signature or, as a server adds it, below everything."""
    writer, other = _person(random), _person(random)
    greeting = _pick(GREETINGS, random).format(**other)
    body = _fill(text, random)
    signature = _pick(SIGNATURES, random).format(**writer)
    notice = _fill(_pick(NOTICES, random).format(**writer), random)
    quote = _quote(texts[quoted], other, writer, random)
    above = [greeting, body, f"{_pick(CLOSINGS, random)}{_pick(GAPS, random)}{signature}"]
    parts = [*above, notice, quote] if random.random() < 0.7 else [*above, quote, notice]
    return Wrapped("\n\n".join(parts), greeting, text, quoted, quote.split(maxsplit=1)[0])


def _quote(text: str, sender: dict[str, Any], reader: dict[str, Any], random: np.random.Generator) -> str:
    """An older message: greeting, text, closing and name, below a line or a block that introduces it."""
    inside = [_pick(GREETINGS, random).format(**reader), _fill(text, random)]
    inside += [f"{_pick(CLOSINGS, random)}\n{sender['first']} {sender['last']}"] * (random.random() < 0.7)
    older = "\n\n".join(inside)
    subject = _pick(SUBJECTS, random).format(**sender)
    if random.random() < 0.5:
        marked = "\n".join(f"> {line}".rstrip() for line in older.splitlines())
        return f"{_pick(ATTRIBUTIONS, random).format(**sender)}{_pick(GAPS, random)}{marked}"
    return f"{_pick(HEADERS, random).format(**sender, subject=subject)}\n\n{older}"


def _person(random: np.random.Generator) -> dict[str, Any]:
    """Somebody who writes, with all that a signature or the line above a quote may say."""
    first, last, firm = _pick(FIRST, random), _pick(LAST, random), _pick(FIRMS, random)
    month, day = int(random.integers(12)), int(random.integers(1, 29))
    weekday = _pick(WEEKDAYS, random)
    host = "".join(letter for letter in firm.split()[-1].lower() if letter.isascii()) + ".example"
    numbers = {
        kind: f"{_pick(starts, random)} {random.integers(100):02d} {random.integers(100):02d}"
        for kind, starts in FILM_NUMBERS.items()
    }
    return {
        "first": first, "last": last, "LAST": last.upper(), "firm": firm, "job": _pick(JOBS, random),
        "street": _pick(STREETS, random), "town": _pick(TOWNS, random), "site": f"www.{host}",
        "mail": f"contact{random.integers(1000)}@{host}", "box": "service.client@boutique.example",
        "weekday": weekday[:3], "longday": weekday, "day": day, "month": MONTHS[month], "month_number": month + 1,
        "year": int(random.integers(2019, 2026)), "number": int(random.integers(10_000, 99_999)),
        "clock": f"{random.integers(7, 20):02d}:{random.integers(60):02d}", **numbers,
    }  # fmt: skip


def _fill(text: str, random: np.random.Generator) -> str:
    """Break the lines of half of the texts where old mail programs break them."""
    if random.random() < 0.5:
        return text
    lines = [textwrap.fill(line, COLUMNS, break_on_hyphens=False) for line in text.splitlines()]
    return "\n".join(lines)


def _pick(choices: Sequence[str], random: np.random.Generator) -> str:
    return choices[int(random.integers(len(choices)))]
