"""Cases that users of neighbouring projects reported: cut words (N3), blanks and long words before a sentence (N4)."""

from __future__ import annotations

import numpy as np
import pytest

from .tagging_helpers import tagger

TEXTS = [
    " Facture de 5.975,74 euros,  pour Groenlinks à l'hôpital.\n",
    "O'Neil-Martin a vu\tGroenlinks\u00a0: 5.975,74 euros (l’été e\u0301te\u0301) 👩‍👩‍👧‍👦",
    "l'hôpital",
]
WORDS = [
    ["Facture", "de", "5.975,74", "euros"],
    ["O'Neil-Martin", "et", "Groenlinks", "à", "l'hôpital"],
    ["Groenlinks", "5.975,74", "O'Neil-Martin"],
]
TAGS = [
    ["O", "O", "B-SUM", "I-SUM"],
    ["B-PER", "O", "B-ORG", "O", "B-LOC"],
    ["B-ORG", "B-SUM", "B-PER"],
]
ROBERT = ["Je", "m'appelle", "Robert"]


@pytest.mark.filterwarnings("ignore:training collapsed")
@pytest.mark.parametrize("decoding", ["argmax", "bio", "crf"])
@pytest.mark.parametrize("name", ["bert", "camembert", "roberta", "flaubert"])
@pytest.mark.parametrize("max_epochs", [1, 8])
def test_no_span_begins_or_ends_inside_a_word(name: str, max_epochs: int, decoding: str) -> None:
    model = tagger(name, max_epochs=max_epochs, decoding=decoding).fit(WORDS * 2, TAGS * 2)
    for text, spans in zip(TEXTS, model.predict_spans(TEXTS), strict=True):
        before = 0
        for span in spans:
            start, end = span["start"], span["end"]
            assert before <= start < end
            assert text[start:end] == span["text"] == span["text"].strip()
            assert not (start and text[start - 1 : start + 1].isalnum())
            assert not (end < len(text) and text[end - 1 : end + 1].isalnum())
            before = end
        # the pieces of a number or of a name with an apostrophe and a hyphen are one word, so at most one span
        for word in ("5.975,74", "O'Neil-Martin", "Groenlinks"):
            place = text.find(word)
            inside = [s for s in spans if s["start"] < place + len(word) and place < s["end"]]
            assert place < 0 or len(inside) <= 1


@pytest.mark.parametrize("name", ["bert", "camembert"])
def test_what_stands_between_does_not_reach_the_tail(name: str, recwarn: pytest.WarningsRecorder) -> None:
    between = [["\r\n"] * 1000, ["contact"] * 800, ["x" * 5000]]
    X = [[*ROBERT, *words, *ROBERT] for words in between]
    others = [["Je", "contact", "Marie"], ["contact", "Marie", "x"], ["\r\n", "contact", "xx"]]
    model = tagger(name, max_epochs=20, batch_size=2, max_length=64)
    model.fit([ROBERT, *others] * 3, [["O", "O", "B-PER"], ["O"] * 3, ["O"] * 3, ["O"] * 3] * 3)
    found = [model.set_params(batch_size=size).predict(X) for size in (1, 8)]
    for words, tags, again in zip(X, *found, strict=True):
        assert len(tags) == len(words)
        assert tags[2] == tags[-1] == "B-PER"
        assert tags.tolist() == again.tolist()
    for shares in model.predict_proba(X):
        assert np.abs(shares[-3:] - shares[-1:]).max() > 0.1  # the tail is read, not filled
    assert not [one for one in recwarn if "longer" in str(one.message)]
