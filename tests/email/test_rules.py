"""One rule a case: what is body and what is not."""

import pytest

from sktransformer.email import EmailCleaner

QUOTED = "\n\n> Bonjour\n> ancien\n"


def clean(text, **parameters):
    return EmailCleaner(**parameters).transform([text])[0]


def kinds(text):
    return [piece.kind for piece in EmailCleaner().explain(text)]


BODIES = {
    "a train ticket": "Je veux un billet :\nDe : Paris\nÀ : Lyon\nDate : 12 mars 2026\nMerci de me répondre.",
    "office hours": "Je suis joignable\nDe : 10h\nÀ : 12h\nMerci",
    "prose with a day": "Le 3 mars, votre conseiller a écrit :\n« dossier accepté »\nMais rien.",
    "prose with a year": "Le 3 mars 2025, votre conseiller m'a écrit :\n« accepté »\nMais rien.",
    "prose with a year and no name": "Le 3 mars 2025, le plombier a écrit :\n« accepté »\nMais rien.",
    "prose with a pronoun": "Le 3 mars 2025 à 10:12 il a écrit :\n« accepté »\nMais rien.",
    "prose with a number": "On 3 separate occasions in 2024 he wrote:\nthat it was fine.\nIt is not.",
    "a closing word in a sentence": "Cordialement reçu votre courrier.\nLe dossier est complet.",
    "a closing word in capitals": "CORDIALEMENT RECU VOTRE COURRIER\nLe dossier est complet.",
    "a request to accept": "Veuillez agréer ma demande du 12.\nMerci de faire vite.",
    "a request to consider": "Je vous prie de prendre en considération ma demande du 12.\nMerci de faire vite.",
    "a mail sent by mistake": "Bonjour,\n\nCe mail destiné à Léa est venu par erreur, supprimez-le.",
    "a letter for somebody else": "Bonjour,\n\nCourrier reçu par erreur, le destinataire n'habite plus ici.",
    "a secret": "Bonjour,\n\nCe message est confidentiel : merci de ne pas transmettre ma réclamation.",
    "a message for somebody": "Bonjour à toute l'équipe,\n\nCe message destiné à la sécurité : j'ai réservé un quai.",
    "a form": "Nom : Dupont\nDate : 12/03/2025 10:30\nSujet : facture\nMessage : je conteste",
    "a list": "Mes pièces :\n- facture\n- photo\n-- encore une\nObjet : sinistre 12",
    "a parcel": "Envoyé de Lyon mardi, toujours pas reçu.",
    "a parcel by mail": "Envoyé par mail, sans réponse.",
    "a contact that is announced": "Rappelez mon fils :\n\nJean Dupont\n06 12 34 56 78",
    "headings": "## Points\n----\n\nUn point\n\n----\n\nUn autre.",
    "a tag that is mentioned": "Utilisez la balise <br> pour couper la ligne.",
    "thanks": "Please send it.\n\nThanks,\nJohn",
    "an order": "Merci,\nContrat 4512",
}


@pytest.mark.parametrize("name", sorted(BODIES))
def test_this_is_body(name):
    assert clean(BODIES[name]) == BODIES[name]
    assert kinds(BODIES[name]) == []


ATTRIBUTIONS = {
    "gmail": "Le lun. 3 mars 2025 à 10:12, Service <c@e.fr> a écrit :",
    "gmail, wrapped": "Le lun. 3 mars 2025 à 10:12, Service Client\n<contact@exemple.fr> a écrit :",
    "gmail, wrapped twice": "Le lun. 3 mars 2025 à 10:12, Service\n<contact@exemple.fr>\na écrit :",
    "gmail, wrapped inside the address": "Le lun. 3 mars 2025 à 10:12, X <contact@exemple.fr\n> a écrit :",
    "yahoo": "Le Lundi 3 mars 2025 10h12, X <x@y.fr> a écrit :",
    "yahoo, older": "--- En date de : Lun 3.3.14, X <x@y.fr> a écrit :",
    "apple": "Le 29 avr. 2025 à 11:11, Chris <c@x.example> a écrit :",
    "thunderbird": "Le 03/03/2025 à 10:12, Paul Durand a écrit\u00a0:",
    "roundcube": "Le 2025-03-03 10:12, x@y.fr a écrit\u202f:",
    "no accents": "Le lun. 3 mars 2025 a 10:12, X <x@y.fr> a ecrit :",
    "a name and a year": "Le 3 mars 2025, Paul Durand a écrit :",
    "english": "On Mon, Mar 3, 2025 at 10:12 AM Support <s@example.com> wrote:",
    "english, you": "On Nov 26, 2013 you wrote:",
    "no colon": "On Wed, 14 Nov 2018 08:14:43 -0200 John Doe <john@doe.example> wrote",
    "zoho": "---- On Wed, 24 Feb 2021 14:02:50 +0530 john@example.com wrote ----",
    "german": "Am Mo., 3. März 2025 um 10:12 Uhr schrieb Service <c@e.de>:",
    "german, apple": "Am 03.03.2025 um 10:12 schrieb Service <c@e.de>:",
    "spanish": "El lun, 3 mar 2025 a las 10:12, Servicio (<c@e.es>) escribió:",
    "italian": "Il giorno lun 3 mar 2025 alle ore 10:12 Servizio <c@e.it> ha scritto:",
    "dutch": "Op ma 3 mrt 2025 om 10:12 schreef Dienst <c@e.nl>:",
    "dutch, apple": "Op 3 mrt. 2025, om 10:12 heeft Dienst <c@e.nl> het volgende geschreven:",
    "portuguese": "Em seg., 3 de mar. de 2025 às 10:12, Serviço <c@e.pt> escreveu:",
    "no language": "2025-03-03 10:12 GMT+01:00 Service <c@e.fr>:",
    "an unknown language": "W dniu 2025-03-03 10:12:39 użytkownik X <x@y.pl> napisał:",
}


@pytest.mark.parametrize("name", sorted(ATTRIBUTIONS))
@pytest.mark.parametrize("old", ["\n> ancien", "\n\n> ancien", "\n\nancien\n\nencore"])
def test_attribution(name, old):
    text = f"Ma réponse.\n\n{ATTRIBUTIONS[name]}{old}"
    assert clean(text) == "Ma réponse."
    (piece,) = EmailCleaner().explain(text)
    assert (piece.kind, piece.text) == ("quote", text[len("Ma réponse.\n\n") :])


def test_a_sender_without_a_date_is_believed_above_a_quote_only():
    assert clean("Oui.\n\njean@exemple.fr a écrit :\n> ancien") == "Oui."
    assert (
        clean("Oui.\n\njean@exemple.fr a écrit :\nun bon mot")
        == "Oui.\n\njean@exemple.fr a écrit :\nun bon mot"
    )


BLOCKS = {
    "outlook": "De : X <x@y.fr>\nEnvoyé : lundi 3 mars 2025 10:12\nÀ : Y\nObjet : truc",
    "no address": "De : Service\nEnvoyé : lundi 3 mars 2025 10:12\nÀ : Y",
    "no blanks": "De :X<mailto:x@y.fr>\nEnvoyé le :jeudi 15 décembre 2016 09:35\nObjet :truc",
    "stars": "*De :* X <x@y.fr>\n*Envoyé :* lundi 3 mars 2025 10:12\n*Objet :* truc",
    "subject first": "Objet : truc\nDe : x@y.fr\nDate : 03/03/2025 10:12\nPour : z@y.fr",
    "blank lines between": "De : X <x@y.fr>\n\nEnvoyé : lundi 3 mars 2025 10:12\n\nÀ : Y\n\nObjet : truc",
    "one line": "De : X <x@y.fr> Envoyé : lundi 3 mars 2025 10:12 À : Y <y@z.fr> Objet : RE: truc",
    "rule above": "________________________________\nDe : X <x@y.fr>\nObjet : truc",
    "separator above": "-----Message d’origine-----\nDe : X\nObjet : truc",
    "forward above": "---------- Message transféré ---------\nDe : X <x@y.fr>\nDate: 3 mars 2025\nÀ : z@y.fr",
    "apple forward": "Début du message transféré :\n\nDe: X <x@y.fr>\nObjet: truc",
    "lotus": " ----- Transféré par Y le 25/05/2018 08:20 -----\n\n De :\tX <x@y.fr>\n Objet :\ttruc",
    "orange": "> Message du 03/03/25 10:12\n> De : X\n> Objet : truc\n>",
    "wrapped sender": "From: Human Resources\n<a-long-address@example.com>\nSent: Monday, August 26, 2019",
    "english": "From: X <x@y.com>\nSent: Monday, March 3, 2025 10:12 AM\nTo: Y\nSubject: thing",
    "german": "Von: X <x@y.de>\nGesendet: Donnerstag, 23. März 2023 17:11\nAn: Y\nBetreff: AW: Ding",
    "spanish": "De: X <x@y.es>\nEnviado el: lunes, 3 de marzo de 2025 10:12\nPara: Y\nAsunto: cosa",
    "italian": "Da: X <x@y.it>\nInviato: lunedì 3 marzo 2025 10:12\nA: Y\nOggetto: cosa",
    "dutch": "Van: X <x@y.nl>\nVerzonden: maandag 3 maart 2025 10:12\nAan: Y\nOnderwerp: ding",
    "portuguese": "De: X <x@y.pt>\nEnviada em: segunda, 3 de março de 2025 10:12\nPara: Y\nAssunto: coisa",
}


@pytest.mark.parametrize("name", sorted(BLOCKS))
def test_header_block_below_an_answer(name):
    old = "\n> Ancien texte." if name == "orange" else "\n\nAncien texte."
    text = f"Je relance.\n\n{BLOCKS[name]}{old}"
    assert clean(text) == "Je relance."
    assert kinds(text) == ["quote"]


@pytest.mark.parametrize("name", sorted(set(BLOCKS) - {"orange", "one line"}))
@pytest.mark.parametrize("above", ["", "Cordialement,\nMarie\n\n", "Envoyé de mon iPhone\n\n", "\n\n"])
def test_a_forward_without_a_word_keeps_the_payload(name, above):
    text = f"{above}{BLOCKS[name]}\n\nMon toit fuit.\n\nBien à vous,\nJeanne"
    assert clean(text) == "Mon toit fuit."
    assert "header" in kinds(text)


def test_a_forward_below_a_warning_of_the_gateway_keeps_the_payload():
    text = f"ATTENTION : Cet e-mail provient de l'extérieur.\n\n{BLOCKS['outlook']}\n\nMon toit fuit."
    assert clean(text) == "Mon toit fuit."
    assert kinds(text) == ["disclaimer", "header"]


def test_the_thread_below_a_forwarded_message_goes():
    text = f"{BLOCKS['outlook']}\n\nMon toit fuit.\n\n{BLOCKS['english']}\n\nOlder."
    assert clean(text) == "Mon toit fuit."
    assert kinds(text) == ["header", "quote"]


@pytest.mark.parametrize(
    ("text", "right"),
    [
        (f"Le lun. 3 mars 2025 à 10:12, X a écrit :{QUOTED}\nMa réponse.", "Ma réponse."),
        (
            f"Bonjour,\n\nLe 3 mars 2025 à 10:12, X a écrit :{QUOTED}\nMa réponse.\nÀ vous",
            "Bonjour,\n\nMa réponse.\nÀ vous",
        ),
        ("> Votre contrat ?\n4512.\n> Votre adresse ?\nLyon.", "4512.\nLyon."),
        (
            "> Début du message transféré :\n> \n> De: X <x@y.fr>\n> Objet: truc\n> \n> Mon toit fuit.",
            "Mon toit fuit.",
        ),
        ("> tout est cité\n> deux fois", "tout est cité\ndeux fois"),
        ("De : X <x@y.fr>\nObjet : truc", "De : X <x@y.fr>\nObjet : truc"),
        ("Cordialement,\nJean", "Cordialement,\nJean"),
        ("Envoyé de mon iPhone", "Envoyé de mon iPhone"),
        ("-- \nJean", "-- \nJean".replace(" ", "")),
        ("----", "----"),
        (">", ">"),
        (" \n\t\n", ""),
        ("", ""),
    ],
)
def test_something_is_always_left(text, right):
    assert clean(text) == right


def test_a_line_wrapped_out_of_a_quote_is_quoted():
    long = "> Nous avons bien reçu votre courrier du mois dernier concernant le"
    assert clean(f"Merci.\n\n{long}\ncontrat.\n> Fin.") == "Merci."
    assert clean(f"Merci.\n\n{long} ?\nnon\n> Fin.") == "Merci.\n\nnon"
    assert clean("Merci.\n\n> Votre contrat\nnon\n> Fin.") == "Merci.\n\nnon"


SIGNATURES = [
    *("Cordialement,\nJean", "Cordialement\n\nJean Dupont\nDirecteur", "CORDIALEMENT\nJean", "Cordlt\nJ."),
    *(
        "Bien à vous,\nJean",
        "Bien cordialement.\nJean",
        "Cordialement, Jean Dupont",
        "Cordialement Jean Dupont",
    ),
    *("Merci d'avance et bonne journée\nJean", "Merci, cordialement\nJean", "Sincères salutations.\nJean"),
    *("Best regards,\nJohn", "Kind regards\nJohn", "Thanks and regards,\nJohn", "Cheers 🎉\nSarah"),
    *(
        "Mit freundlichen Grüßen\nHans",
        "Un saludo,\nNuria",
        "Cordiali saluti\nAnna",
        "Met vriendelijke groet\nJan",
    ),
    *(
        "Melhores cumprimentos\nRui",
        "-- \nJean\n01 23 45 67 89",
        "--\nJean",
        "____\nJean",
        "—\nJean",
        "-Jean Dupont",
    ),
    "Je vous prie d'agréer, Madame, Monsieur, l'expression de mes salutations distinguées.\n\nJean",
    "Je vous prie d'agréer, Madame, Monsieur,\nl'expression de mes sentiments\nles meilleurs.\n\nJean\nLyon",
    "Dans l'attente de votre réponse, veuillez agréer, Madame, mes salutations.\nJean",
    "Recevez, Monsieur, l’assurance de ma considération distinguée.\nJean",
    "Jean Dupont\nDirecteur\nTél. 01 23 45 67 89",
    "Jeanne de La Tour\njeanne@example.org",
    "Cordialement,\nJean\nSA au capital de 10 000 euros, immatriculée au RCS de Paris sous le numéro 12.",
]


@pytest.mark.parametrize("signature", SIGNATURES)
def test_signature(signature):
    text = f"Je résilie.\n\n{signature}"
    assert clean(text) == "Je résilie."
    (piece,) = EmailCleaner().explain(f"{text}\n\n")
    assert (piece.kind, piece.text) == ("signature", signature)
    assert clean(text, keep_signatures=True) == "\n".join(
        line.rstrip() for line in text.replace("’", "'").splitlines()
    )


@pytest.mark.parametrize(
    "after",
    [
        *("PS : mon nouveau numéro est le 0612345678", "PJ : facture.pdf", "P.S. : rappelez-moi"),
        "Je reste joignable au 06 12 34 56 78",
        "Le numéro de mon contrat d'assurance est le 4512.",
    ],
)
def test_what_is_written_below_a_signature_is_kept(after):
    assert clean(f"Je résilie.\n\nCordialement,\nJean\n\n{after}") == f"Je résilie.\n\n{after}"


def test_a_formula_behind_the_message_leaves_its_line():
    text = "Je résilie. Veuillez agréer, Madame, mes salutations distinguées.\nJean\nLyon"
    assert clean(text) == "Je résilie. Veuillez agréer, Madame, mes salutations distinguées."
    assert [piece.text for piece in EmailCleaner().explain(text)] == ["Jean\nLyon"]


def test_a_sentence_above_a_closing_is_no_formula():
    text = "Dans l'attente de votre retour sur les 120 euros.\nSalutations\nJean"
    assert clean(text) == "Dans l'attente de votre retour sur les 120 euros."


def test_much_text_below_a_closing_is_no_signature():
    lines = "\n".join(f"article {n}" for n in range(40))
    assert clean(f"Ma commande.\n\nCordialement,\n{lines}") == f"Ma commande.\n\n{lines}"


FOOTERS = [
    *("Envoyé de mon iPhone", "Envoyé depuis mon appareil Samsung", "Envoyé à partir d’Outlook pour iOS"),
    *("Envoyé de mon Fairphone", "Envoyé depuis l'application Mail Orange", "Sent from my Wiko RIDGE FAB 4G"),
    *("Obtenir Outlook pour Android<https://aka.ms/AAb9ysg>", "Provenance : Courrier pour Windows"),
    *(
        "Get Outlook for iOS<https://aka.ms/o0ukef>",
        "Sent from Mail for Windows",
        "Gesendet von Outlook für Android",
    ),
    *(
        "Von meinem iPhone gesendet",
        "Enviado desde mi iPhone",
        "Inviato da iPhone",
        "Verzonden vanaf mijn iPhone",
    ),
    *("Enviado do meu iPhone", "Envoyé avec la messagerie sécurisée [Proton Mail](https://proton.me/)."),
]


@pytest.mark.parametrize("footer", FOOTERS)
def test_footer(footer):
    text = f"Oui.\n\n{footer}\n"
    assert clean(text) == "Oui."
    (piece,) = EmailCleaner().explain(text)
    assert (piece.kind, piece.text) == ("footer", footer)
    assert clean(text, keep_signatures=True).startswith("Oui.\n\n")


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
