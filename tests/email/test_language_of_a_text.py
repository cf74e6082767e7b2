"""LanguageRouter: the language of a text, the same in any company."""

import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

from sktransformer.email import LanguageRouter
from sktransformer.exceptions import MissingExtraError

FRENCH = [
    *("ma facture de mars est fausse", "je veux payer la facture", "la facture est en double"),
    *("mon colis est perdu depuis lundi", "où est donc le colis", "le colis que vous envoyez est abîmé"),
]
ENGLISH = [
    *("the invoice for March is wrong", "I want to pay the invoice", "there are two invoices for this"),
    *(
        "my parcel has been lost since Monday",
        "where is the parcel now",
        "the parcel which you sent is damaged",
    ),
]
GERMAN = ["die Rechnung für März ist falsch", "wo ist denn das Paket geblieben"]
TEXTS = [text for pair in zip(FRENCH, ENGLISH, strict=True) for text in pair]
HARD = [
    "",
    " ",
    "404",
    "404 error",
    "12/03/2026 45,90 €",
    ":-)",
    "814490",
    "MANGE",
    "ok",
    "donnez 45 50 euros",
]


def bayes(**parameters):
    return make_pipeline(CountVectorizer(), MultinomialNB(**parameters))


def router(**parameters):
    return LanguageRouter({"fr": bayes(), "en": bayes()}, **parameters)


def test_texts_that_cannot_be_told_get_the_default_always_and_everywhere():
    one = LanguageRouter(default="fr")
    for _ in range(20):
        assert one.identify(HARD).tolist() == ["fr"] * 10
    order = random.Random(0).sample(range(20), 20)
    texts = [*HARD, *FRENCH[:3], *ENGLISH[:4], *GERMAN, "ok"]
    right = one.identify(texts)
    assert right.tolist() == ["fr"] * 13 + ["en"] * 4 + ["de"] * 2 + ["fr"]
    assert one.identify([texts[i] for i in order]).tolist() == right[order].tolist()
    assert [one.identify([text])[0] for text in texts] == right.tolist()
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(LanguageRouter(default="fr").identify, texts * 20) for _ in range(2)]
        assert all(run.result().tolist() == right.tolist() * 20 for run in runs)


def test_another_process_with_another_hash_seed_says_the_same():
    texts = [*HARD, *TEXTS, *GERMAN]
    line = (
        f"from sktransformer import LanguageRouter; print(*LanguageRouter(default='fr').identify({texts!r}));"
        "import sys; assert 'torch' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", line],
        env={"PYTHONHASHSEED": "4242", "PYTHONPATH": ":".join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == LanguageRouter(default="fr").identify(texts).tolist()


@pytest.mark.parametrize(
    ("parameters", "right"),
    [
        ({}, "fr"),
        ({"default": "nl"}, "nl"),
        ({"languages": ["it", "fr"]}, "it"),
        ({"estimators": {"en": bayes(), "fr": bayes()}}, "en"),
        ({"estimators": bayes()}, "fr"),
        ({"estimators": {"en": bayes()}, "default": "de", "fallback": bayes()}, "de"),
    ],
)
def test_the_default_language(parameters, right):
    assert LanguageRouter(**parameters).identify(HARD[:9]).tolist() == [right] * 9


def test_guards_can_be_moved():
    assert LanguageRouter(default="en").identify(["merci beaucoup"]).tolist() == ["en"]
    assert LanguageRouter(default="en", min_words=2).identify(["merci beaucoup"]).tolist() == ["fr"]
    assert LanguageRouter(default="en", min_confidence=0.99).identify(["ma facture svp"]).tolist() == ["en"]
    free = LanguageRouter(default="nl", min_words=0, min_confidence=0)
    assert free.identify(["404 error"]).tolist() == ["de"]  # what py3langid says by itself


def test_addresses_and_numbers_are_no_words():
    one = LanguageRouter(default="fr")
    assert (
        one.identify(["ok https://the.example.org/with/these/are/words and@the.example.org 1 2 3"])[0] == "fr"
    )
    assert one.identify(["where is the parcel https://exemple.fr/le/colis/de/la/poste"])[0] == "en"


def test_languages_are_restricted():
    assert LanguageRouter(languages=["fr", "en"]).identify(GERMAN[:1])[0] in {"fr", "en"}
    assert LanguageRouter(languages=["fr", "ja"]).identify(["荷物はどこですか"]).tolist() == ["ja"]


@pytest.mark.parametrize(
    "X",
    [
        *(tuple(TEXTS), np.array(TEXTS), pd.Series(TEXTS, index=range(12, 0, -1)), pl.Series(TEXTS)),
        *(
            np.array(TEXTS, dtype=object)[:, None],
            (text for text in TEXTS),
            pd.DataFrame({"a": TEXTS, "n": 1}),
        ),
        *(pl.DataFrame({"a": TEXTS}), [(text, "") for text in TEXTS]),
        pd.DataFrame({"a": [text[:9] for text in TEXTS], "b": [text[9:] for text in TEXTS]}),
    ],
    ids=lambda X: type(X).__module__.split(".")[0] + type(X).__name__,
)
def test_texts_of_every_kind(X):
    assert LanguageRouter().identify(X).tolist() == ["fr", "en"] * 6


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ("Bonjour", TypeError, r"bare str; pass \[text\]"),
        (3, TypeError, "got int"),
        (["a", 3], TypeError, r"X\[1\] must be str, got int"),
        (["a", None, float("nan")], ValueError, r"2 missing text\(s\), in row\(s\) 1, 2"),
        (pd.DataFrame({"a": ["x", None]}), ValueError, r"X\['a'\] has 1 missing"),
        (pd.DataFrame({"a": [1, 2]}), TypeError, "1 column.*none holds texts"),
        ([("a", "b"), ("a",)], ValueError, r"X\[1\] must hold 2"),
        (np.array([[["a"]]]), ValueError, "one or two dimensions, got 3"),
    ],
)
def test_what_is_refused(X, error, message):
    with pytest.raises(error, match=message):
        LanguageRouter().identify(X)
    with pytest.raises(error, match=message):
        router().fit(X, [0, 1])


def test_without_py3langid(monkeypatch):
    monkeypatch.setitem(sys.modules, "py3langid.langid", None)
    monkeypatch.setattr("sktransformer.email._identify._models", [])
    monkeypatch.setattr("sktransformer.email._identify._identifiers", {})
    with pytest.raises(MissingExtraError, match=r"sktransformer-text\[email\]"):
        LanguageRouter().identify(TEXTS)


def test_a_megabyte_is_identified_by_its_beginning():
    assert (
        LanguageRouter().identify(["where is the parcel " * 50_000, "x" * 10**6, "@" * 10**6, "\ud800 \x00"])[
            0
        ]
        == "en"
    )
