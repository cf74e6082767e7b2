"""Courtesies round a closing go with it; what asks or says something stays, and so does the whole of a message."""

import pytest

from sktransformer.email import EmailCleaner

BODY = "Bonjour,\nMon colis 4512 n'est pas arrivé, où est-il ?"
NAME = "Jean Dupont"
OLD = "\n\n> ancien\n"
ABOVE_A_CLOSING = [
    "Merci,",
    "Merci d'avance,",
    "Merci d'avance pour votre aide.",
    "Je vous remercie par avance.",
    "Nous vous remercions de votre compréhension et restons à votre disposition.",
    "En vous remerciant par avance pour votre retour,",
    "Dans l'attente de votre retour,",
    "Dans l'attente d'une réponse rapide de votre part,",
    "En attendant vos nouvelles,",
    "Restant à votre disposition pour tout renseignement complémentaire,",
    "Thank you in advance for your help.",
    "Many thanks,",
    "Looking forward to hearing from you soon,",
    "I look forward to your reply.",
    "Awaiting your prompt response,",
]


def clean(text):
    return EmailCleaner().transform([text])[0]


@pytest.mark.parametrize("gap", ["\n", "\n\n"])
@pytest.mark.parametrize("line", ABOVE_A_CLOSING)
def test_a_courtesy_above_a_closing_goes_with_it(line, gap):
    text = f"{BODY}\n\n{line}{gap}Cordialement,\n{NAME}"
    assert clean(text) == BODY
    (piece,) = EmailCleaner().explain(text)
    assert (piece.kind, piece.start) == ("signature", text.index(line))
    assert clean(f"{BODY}\n\n{line}{gap}Best regards,\n{NAME}{OLD}") == BODY


@pytest.mark.parametrize("line", ABOVE_A_CLOSING)
def test_a_courtesy_above_a_full_name_is_a_closing(line):
    assert clean(f"{BODY}\n\n{line}\n{NAME}") == BODY
    assert clean(f"{BODY}\n\n{line}\nM. Jean DUPONT | Gérant\n06 39 98 12 34{OLD}") == BODY
    assert clean(f"{BODY}\n\n{line}\n-- \nJean{OLD}") == BODY


def test_several_courtesies_go_together():
    assert clean(f"{BODY}\n\nDans l'attente de votre retour,\nMerci d'avance,\nCordialement,\nJean") == BODY
    assert clean(f"{BODY}\n\nMerci,\n\nDans l'attente de vous lire,\n\nCordialement") == BODY


@pytest.mark.parametrize(
    "line",
    [
        "Dans l'attente de vous lire, cordialement,",
        "En vous remerciant, bonne journée",
        "Looking forward to your reply, best regards",
    ],
)
def test_a_courtesy_and_a_closing_on_one_line(line):
    assert clean(f"{BODY}\n\n{line}\n{NAME}") == BODY


@pytest.mark.parametrize(
    "line",
    [
        "Merci de me rappeler avant lundi.",
        "Merci pour votre aide, mais le colis manque.",
        "Merci d'avance de me rembourser.",
        "Je vous remercie de me rembourser 30 euros.",
        "Dans l'attente de votre retour, je bloque le paiement.",
        "Dans l'attente du remboursement de ma facture,",
        "Restant à votre disposition jusqu'à lundi 10 h,",
        "En attendant votre retour je garde le colis.",
        "Thank you for cancelling my order.",
        "Thanks for your help with order 12.",
        "I look forward to the refund of 30 euros.",
    ],
)
def test_what_says_more_than_thanks_stays(line):
    assert clean(f"{BODY}\n\n{line}\n\nCordialement,\n{NAME}") == f"{BODY}\n\n{line}"
    assert clean(f"{BODY}\n\n{line}\n{NAME}") == f"{BODY}\n\n{line}\n{NAME}"


@pytest.mark.parametrize(
    "text",
    [
        "Merci,\n\nCordialement,\nJean",
        "Bonjour,\n\nMerci pour votre aide.\n\nCordialement,\nJean",
        "Bonjour Madame,\nJe vous remercie.\nBien à vous,\nJean Dupont",
    ],
)
def test_thanks_that_are_the_message_stay(text):
    assert "erci" in clean(text)


@pytest.mark.parametrize(
    "text",
    [
        f"{BODY}\n\nMerci,\nContrat 4512",
        f"{BODY}\n\nMerci,\nJean",
        f"{BODY}\n\nMerci,\nJean Dupont attend votre réponse depuis lundi, il est inquiet.",
        f"{BODY}\n\nMerci\n\nMa fille aussi attend un colis, le 4513.",
        f"{BODY}\n\nMerci d'avance.",
        f"{BODY}\nMerci d'avance,\nJean Dupont",  # the end of a paragraph, with nothing but a name below
    ],
)
def test_thanks_without_a_signature_stay(text):
    assert clean(text) == text


def test_a_first_name_is_enough_above_something_that_goes():
    assert clean(f"{BODY}\n\nMerci,\nJean{OLD}") == BODY
    assert clean(f"{BODY}\n\nThanks,\nJohn\n\nSent from my iPhone") == BODY


def test_the_end_of_a_paragraph_is_body():
    body = f"{BODY}\nMerci d'avance pour votre retour."
    assert clean(f"{body}\n\nMerci d'avance et bonne journée,\n{NAME}") == body


@pytest.mark.parametrize(
    "line",
    [
        "Paul Durand <p@exemple.fr> a écrit le 18 sept. 2025 à 10:12 :",
        "Paul Durand <p@exemple.fr> a écrit le jeu. 18 sept. 2025 à 10:12 :",
        "p@exemple.fr a écrit le 18/09/2025 10:12 :",
        "Paul Durand\n<p@exemple.fr> a écrit le 18 septembre 2025 à 10h12\u00a0:",
        "Paul Durand <p@example.org> wrote on Thu, Sep 18, 2025 at 10:12 AM:",
    ],
)
@pytest.mark.parametrize("old", ["\n> ancien", "\n\nancien"])
def test_the_date_may_stand_behind_the_verb(line, old):
    assert clean(f"Oui.\n\n{line}{old}") == "Oui."


@pytest.mark.parametrize(
    "line",
    [
        "Votre conseiller m'a écrit le 18 septembre 2025 à 10:12 :",
        "Paul Durand a écrit le 18 septembre 2025 à 10:12 :",
        "Le service p@exemple.fr m'a écrit le 18/09/2025 à 10:12 :",
        "p@exemple.fr a écrit le 18 septembre :",
        "He wrote on Thu, Sep 18, 2025 at 10:12:",
    ],
)
def test_prose_with_a_date_behind_the_verb_stays(line):
    text = f"Bonjour,\n\n{line}\nvotre colis est parti\nEt rien depuis."
    assert clean(text) == text


def test_a_notice_that_only_answers_for_its_writer():
    notice = (
        "Message à caractère privé. Son contenu n'engage que son auteur, et Durand & Fils décline toute\n"
        "responsabilité en cas d'altération ou de falsification."
    )
    assert clean(f"{BODY}\n\n{notice}") == BODY
    stays = f"{BODY}\n\nMessage à caractère personnel : mon avis n'engage que moi."
    assert clean(stays) == stays
