"""French legal notices below a message, and sentences that only open like one."""

import pytest

from sktransformer.email import EmailCleaner

NOTICES = [
    "Ce message et ses pièces jointes sont confidentiels.\nIls sont destinés à leur seul destinataire.",
    "Si vous avez reçu ce message par erreur, merci de le détruire : il est confidentiel.\n\n"
    "This e-mail is confidential and intended for the addressee only.",
    "Pensez à l'environnement avant d'imprimer ce message.",
    "L'absence de virus dans ce courrier électronique a été vérifiée par le logiciel antivirus Avast.",
    "This e-mail and any attachments are confidential. If you are not the intended recipient, delete it.",
    "**********\nCe courriel est confidentiel, destiné au seul destinataire.\n**********",
    "Diese E-Mail ist vertraulich und nur für den Empfänger bestimmt.",
]


@pytest.mark.parametrize("notice", NOTICES)
@pytest.mark.parametrize("signature", ["", "Cordialement,\nJean\n\n"])
def test_disclaimer(notice, signature):
    text = f"Je vous renvoie le contrat signé.\n\n{signature}{notice}"
    assert clean(text) == "Je vous renvoie le contrat signé."
    piece = EmailCleaner().explain(text)[-1]
    assert (piece.kind, piece.text) == ("disclaimer", notice)
    assert notice in clean(text, keep_disclaimers=True).replace("\n\n\n", "\n\n")


def test_a_notice_below_a_signature_needs_fewer_words():
    notice = "L'hôtel rappelle le caractère confidentiel de cet envoi : effacez-le s'il n'est pas pour vous."
    assert notice in clean(f"Je vous renvoie le contrat.\n\n{notice}")
    assert notice not in clean(f"Je vous renvoie le contrat.\n\nCordialement,\nJean\n\n{notice}")


def test_a_notice_below_a_name_and_a_number():
    contact = "Valère Omontel\nChargé de contrats\nT 01 99 00 31 65"
    notice = "Courriel destiné exclusivement à la personne nommée ; tout autre usage est interdit."
    text = f"Le contrat cesse le 16 janvier.\n\n{contact}\n\n{notice}"
    assert clean(text) == "Le contrat cesse le 16 janvier."
    assert kinds(text) == ["signature", "disclaimer"]


@pytest.mark.parametrize(
    "banner",
    [
        "ATTENTION : Cet e-mail provient de l'extérieur de l'organisation. Ne cliquez pas sur les liens.",
        "ATTENTION\nExpéditeur externe : ne cliquez pas sur les liens.",
        "CAUTION: This email originated from outside of your organization.",
        "[EXTERNAL]",
        "Vous n'obtenez pas souvent d'e-mail à partir de x@y.fr. Pourquoi c'est important",
    ],
)
def test_banner(banner):
    text = f"{banner}\n\nBonjour,\nAttention au chien."
    assert clean(text) == "Bonjour,\nAttention au chien."
    assert kinds(text) == ["disclaimer"]


def test_keep_quotes():
    text = "Oui.\n\nLe 3 mars 2025 à 10:12, X a écrit :\n> ancien"
    assert clean(text, keep_quotes=True) == text
    assert EmailCleaner(keep_quotes=True).explain(text) == []


OLDER = "Bonjour,\n\nMon colis est perdu."


@pytest.mark.parametrize(
    "greeting", ["Bonjour,", "Hi there!", "Hallo,", "Sehr geehrte Damen,", "Buenos días,", "Olá,"]
)
def test_a_second_greeting_below_a_footer_begins_an_older_message(greeting):
    text = f"Bonjour,\nJe relance.\n\nEnvoyé de mon iPhone\n\n{greeting}\nMon colis est perdu."
    assert clean(text) == "Bonjour,\nJe relance."
    assert [piece.kind for piece in EmailCleaner().explain(text)] == ["footer", "quote"]


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("Je relance.\n\nEnvoyé de mon iPhone\n\nMerci.", "Je relance.\n\nMerci."),
        (f"Envoyé de mon iPhone\n\n{OLDER}", OLDER),
        (f"Bonjour,\n\nEnvoyé de mon iPhone\n\n{OLDER}", f"Bonjour,\n\n{OLDER}"),
        (f"Je relance.\n\n{OLDER}", f"Je relance.\n\n{OLDER}"),
        (
            "Vu.\n\nEnvoyé de mon iPhone\n\nBonjour est bien le mot que je cherche ici",
            "Vu.\n\nBonjour est bien le mot que je cherche ici",
        ),
    ],
    ids=["no greeting", "nothing above", "only a greeting above", "no footer", "a sentence"],
)
def test_text_below_a_footer_is_kept_otherwise(text, right):
    assert clean(text) == right


@pytest.mark.parametrize(
    "older",
    [
        '2013.02.08. 7:31 keltezéssel, "Kovács Éva" írta:\n> régi',
        "8/2/2013 07:31, Kovács Éva:\n> régi",
        "-------- Oprindelig besked --------\nFra: A B <abc@example.org>\nDato: 04.07.2024\nEmne: x\n\ngammel",
    ],
)
def test_marks_of_languages_that_are_not_known(older):
    assert clean(f"Merci.\n\n{older}") == "Merci."


@pytest.mark.parametrize(
    "text",
    [
        "Le technicien vient à deux dates :\n8/2/2013 à 7:31 puis 9/2/2013 :\npremier passage",
        "Voici les deux :\n---- Première partie ----\nNom : A\nVille : B",
        "---- Contact ----\nMail : a@example.org",
    ],
)
def test_prose_that_looks_a_little_like_them_is_kept(text):
    assert clean(text) == text


NOTICES = [
    "AVERTISSEMENT : ce message est confidentiel. Si vous n'êtes pas le destinataire désigné, merci de le détruire "
    "et d'en avertir l'expéditeur.",
    "Conformément à la loi « Informatique et Libertés », vous disposez d'un droit d'accès et de rectification.",
    "L'intégrité de ce message n'étant pas assurée sur internet, la société ne peut être tenue responsable.",
    "Message à caractère privé et confidentiel, destiné à son seul destinataire. Toute diffusion est interdite.",
]


@pytest.mark.parametrize("notice", NOTICES)
def test_more_french_notices(notice):
    body = "Bonjour,\nMon colis n'est pas arrivé, pouvez-vous vérifier ?"
    text = f"{body}\n\nBelle journée à vous,\nAnne Petit\n\n{notice}\n"
    assert EmailCleaner().transform([text])[0] == body
    assert [piece.kind for piece in EmailCleaner().explain(text)] == ["signature", "disclaimer"]


@pytest.mark.parametrize(
    "text",
    [
        "Bonjour,\n\nConformément au RGPD, je demande la suppression de mes données.",
        "Bonjour,\n\nConformément à la loi informatique et libertés, je souhaite accéder à mes données.",
        "Bonjour,\n\nJe vous écris pour mon colis.\n\nAttention : ce colis est fragile, si vous le livrez.",
        "Bonjour,\n\nJe vous écris.\n\nImportant : si vous ne répondez pas, je résilie mon contrat.",
    ],
)
def test_what_opens_like_a_notice_and_is_none_stays(text):
    assert EmailCleaner().transform([text])[0] == text
