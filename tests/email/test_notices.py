"""French legal notices below a message, and sentences that only open like one."""

import pytest

from sktransformer.email import EmailCleaner

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
