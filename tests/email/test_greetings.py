"""A salutation on a line of its own goes when asked; what may be the message stays."""

import pytest

from sktransformer.email import EmailCleaner


def clean(text, **parameters):
    return EmailCleaner(**parameters).transform([text])[0]


@pytest.mark.parametrize(
    "greeting",
    ["Bonjour,", "Bonjour", "Bonjour Madame, Monsieur,", "Cher Monsieur Petit-Jean,", "Bonjour l'équipe !",
     "Dear Sir or Madam,", "Sehr geehrte Damen und Herren,", "Bonjour à tous,", "Olá,"],
)  # fmt: skip
def test_a_greeting_on_its_own_line_goes_when_asked(greeting):
    text = f"{greeting}\n\nJe n'ai rien reçu."
    assert clean(text) == text
    assert clean(text, keep_greetings=False) == "Je n'ai rien reçu."
    assert EmailCleaner(keep_greetings=False).explain(text) == [("greeting", 0, len(greeting), greeting)]


@pytest.mark.parametrize(
    "text",
    ["Bonjour", "Bonjour,", "Bonjour facture impayée\nmerci de payer", "Bonjour, facture impayée,\nrelance",
     "Bonjour, je n'ai rien reçu.\nMerci de vérifier.", "Le colis est perdu.\nBonjour,\nque faire ?",
     "Madame Petit est absente\nrappelez-la"],
)  # fmt: skip
def test_what_may_be_the_message_is_no_greeting(text):
    assert clean(text, keep_greetings=False) == clean(text)
    assert clean(text) == text
