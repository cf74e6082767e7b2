"""The mails that messages are wrapped into, the split, and the arithmetic of what is won back; nothing is timed."""

import csv
import re

import numpy as np
import pytest
from sklearn.metrics import f1_score

from benchmarks import cleaning_gain, report_sections, wrapping
from benchmarks.cleaning_gain import Found
from benchmarks.wrapping import flat, wrap
from sktransformer.email import EmailCleaner

THINGS = (
    "le casque",
    "l’imprimante",
    "la tablette",
    "mon colis",
    "ce clavier",
    "la montre",
    "votre site",
    "la lampe",
)
SAID = {
    "panne": ("{} ne s’allume plus depuis hier soir.", "Impossible d'utiliser {}, un message d'erreur revient."),
    "question": ("Est-ce que {} est garanti deux ans ?", "Quand pourrai-je de nouveau acheter {} en noir ?"),
    "plainte": ("J’attends un remboursement pour {} depuis trois semaines.", "Je trouve honteux que {} soit cassé."),
    "autre": ("Tout est parfait avec {}, bravo à toute l’équipe !", "Je voulais vous féliciter pour {}, très réussi."),
}  # fmt: skip
PAIRS = [(form.format(thing), label) for label, forms in SAID.items() for form in forms for thing in THINGS]
TEXTS, LABELS = [text for text, _ in PAIRS], [label for _, label in PAIRS]


@pytest.fixture(scope="module")
def mails():
    """Ten mails of each message, so that every template is drawn."""
    return wrap(TEXTS * 10, LABELS * 10, np.random.default_rng(0))


def test_a_seed_repeats_and_another_does_not(mails):
    assert wrap(TEXTS * 10, LABELS * 10, np.random.default_rng(0)) == mails
    other = wrap(TEXTS * 10, LABELS * 10, np.random.default_rng(1))
    assert sum(mail.text == again.text for mail, again in zip(mails, other, strict=True)) == 0


def test_no_text_is_lost(mails):
    for text, mail in zip(TEXTS * 10, mails, strict=True):
        assert mail.body == text
        whole = flat(mail.text)
        assert flat(f"{mail.greeting} {mail.body}") in whole
        assert flat((TEXTS * 10)[mail.quoted]) in whole.partition(flat(mail.body))[2]


def test_the_quoted_message_is_of_another_class(mails):
    labels = LABELS * 10
    assert all(labels[mail.quoted] != label for mail, label in zip(mails, labels, strict=True))
    assert len({mail.quoted for mail in mails}) > 300


def test_every_template_is_drawn_and_filled_in(mails):
    text = "\n".join(mail.text for mail in mails)
    assert not re.search(r"[{}]", text)
    for templates in (wrapping.GREETINGS, wrapping.CLOSINGS, wrapping.NOTICES, wrapping.SIGNATURES):
        for template in templates:
            longest = max(re.split(r"\{\w+\}", flat(template)), key=len)
            assert longest in flat(text)
    assert {"Le", "De", "-----Message", "*De", "________________________________"} <= {
        mail.quote for mail in mails
    }
    numbers = re.findall(r"\b0\d(?: \d\d){4}\b", text)
    assert len(numbers) > 300
    assert {number[:8] for number in numbers} == {"06 39 98", "01 99 00", "04 65 71", "05 36 49"}


def test_the_cleaner_gets_the_messages_back(mails):
    cleaned = [flat(text) for text in EmailCleaner().transform([mail.text for mail in mails])]
    pairs = list(zip(mails, cleaned, strict=True))
    assert np.mean([flat(mail.body) in text for mail, text in pairs]) > 0.99
    quoted = [flat((TEXTS * 10)[mail.quoted]) in text for mail, text in pairs]
    assert np.mean(quoted) < 0.01
    assert np.mean([text == flat(f"{mail.greeting} {mail.body}") for mail, text in pairs]) > 0.5


def test_one_class_alone_has_nothing_to_quote():
    with pytest.raises(ValueError, match="all labels are 'panne'"):
        wrap(["a", "b"], ["panne", "panne"], np.random.default_rng(0))


def test_messages_are_read_once_and_those_with_two_labels_not_at_all(tmp_path):
    rows = [
        ("Où est mon colis ?", "a"),
        ("Où est  mon colis ?", "a"),
        ("Merci", "a"),
        ("Merci", "b"),
        ("Non", "b"),
    ]
    with (tmp_path / "data.csv").open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerows([("id", "message", "category"), *((i, *row) for i, row in enumerate(rows))])
    texts, labels = cleaning_gain.read(tmp_path)
    assert texts == ["Où est mon colis ?", "Non"]
    assert labels.tolist() == ["a", "b"]


def test_missing_data_ends_with_where_to_get_it(tmp_path):
    with pytest.raises(SystemExit, match="email-classifier-api"):
        cleaning_gain.read(tmp_path)


def test_near_copies_have_one_number():
    numbers = cleaning_gain.near_copies(
        [
            "Le site web ne charge pas correctement sur mon ordinateur. Merci d'avance.",
            "Le site web ne charge pas correctement sur mon ordinateur ! Je compte sur vous.",
            "Le site web ne charge plus correctement sur mon ordinateur",
            "Bravo à toute l'équipe",
        ]
    )
    assert numbers[0] == numbers[1] == numbers[2] != numbers[3]


def test_sides_of_a_split_share_no_near_copies_and_quote_their_own_messages():
    labels = np.asarray(LABELS)
    numbers = dict(zip(TEXTS, cleaning_gain.near_copies(TEXTS), strict=True))
    folds = cleaning_gain.split(TEXTS, labels, quick=False)
    judged = [text for _, test in folds for text in test.texts["plain"]]
    assert sorted(judged) == sorted(TEXTS)
    for train, test in folds:
        sides = [{numbers[text] for text in part.texts["plain"]} for part in (train, test)]
        assert not sides[0] & sides[1]
        for part in (train, test):
            for place, mail in enumerate(part.mails):
                assert part.texts["raw"][place] == mail.text
                assert part.labels[mail.quoted] != part.labels[place]
                assert flat(part.texts["plain"][mail.quoted]) in flat(mail.text)


def test_a_drawn_part_keeps_its_rows_together():
    _, part = cleaning_gain.split(TEXTS, np.asarray(LABELS), quick=False)[0]
    few = part.draw(5)
    assert len(few.labels) == 5
    for place, text in enumerate(few.texts["plain"]):
        row = part.texts["plain"].index(text)
        assert few.labels[place] == part.labels[row]
        assert few.texts["raw"][place] == part.texts["raw"][row] == few.mails[place].text
    assert part.draw(5).texts == few.texts


def test_macro_f1_is_that_of_scikit_learn():
    random = np.random.default_rng(0)
    for n_classes in (2, 3, 5):
        true, predicted = random.integers(n_classes, size=(2, 9))  # now and then a class is missing
        expected = f1_score(true, predicted, average="macro")
        assert cleaning_gain.macro_f1(true, predicted, n_classes) == pytest.approx(expected)


def test_share_won_back():
    assert cleaning_gain.share(0.9, 0.5, 0.86) == pytest.approx(0.9)
    assert np.isnan(cleaning_gain.share(0.5, 0.5, 0.6))
    assert cleaning_gain.interval(np.array([np.nan, 0.5, 0.5])) == [0.5, 0.5]


def judged():
    """100 messages: plain all right, raw every second one wrong, cleaned every tenth one."""
    true = np.array(["a", "b", "c", "d"] * 25)
    wrong = np.roll(true, 1)
    place = np.arange(100)
    answers = {
        "plain": [true, true],
        "raw": [np.where(place // 4 % 2, wrong, true)] * 2,
        "cleaned": [np.where(place // 4 % 10 == 0, wrong, true)] * 2,
        "cleaned, greetings kept": [np.where(place // 4 % 5 == 0, wrong, true)] * 2,
    }
    cost = {"fit_cpu_seconds": 3.0, "milliseconds_per_document": 0.5}
    return cleaning_gain.judge(Found(true, answers, dict.fromkeys(answers, cost)), resamples=200)


def test_the_interval_holds_the_share():
    found = judged()
    assert found["macro_f1"] == pytest.approx(
        {"plain": 1.0, "raw": 0.52, "cleaned": 0.88, "cleaned, greetings kept": 0.8}
    )
    assert found["share_won_back"] == pytest.approx(0.36 / 0.48)
    assert found["greetings_kept"]["share_won_back"] == pytest.approx(0.28 / 0.48)
    low, high = found["share_interval"]
    assert 0.5 < low < 0.75 < high < 0.95
    assert found["lost_interval"][0] < found["lost"] < found["lost_interval"][1]
    assert judged()["share_interval"] == found["share_interval"]


def test_the_report_shows_scores_and_interval():
    found = judged() | {"share_interval": [0.6, 0.9]}
    found["greetings_kept"]["share_interval"] = [0.5, 0.75]
    mails = {
        "mails": 4, "mean_characters": 600.0, "mean_characters_of_body": 80.0, "body_whole": 1.0,
        "nothing_but_body": 0.64, "milliseconds_per_mail": 0.25,
    }  # fmt: skip
    settings = {"messages": 100, "classes": {"a": 25, "b": 75}, "most_tuned": 500, "train": 858}
    lines = report_sections.cleaning_gain(
        {"results": {"mails": mails, "models": {"x": found}}, "settings": settings}
    )
    won = "0.750 (0.600 to 0.900) | 0.583 (0.500 to 0.750)"
    assert f"| x | 100 | 1.000 | 0.520 | 0.880 | 0.800 | {won} | 3 / 3 | 0.5 / 0.5 |" in lines
    assert "25 a, 75 b" in lines[0]
    assert "64.0% nothing but" in lines[0]
