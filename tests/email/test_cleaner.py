"""EmailCleaner as a scikit-learn transformer: inputs, outputs, parameters."""

import pickle
from array import array
from enum import Enum

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_is_fitted

from sktransformer.baselines import tfidf_svm
from sktransformer.email import EmailCleaner

SUBJECTS = ["Re: Facture", "TR : RE: Colis", "", "Re:", "Résiliation"]
BODIES = [
    "La facture est fausse.\n\nCordialement,\nJean",
    "Mon colis est perdu.\n\n> où ?",
    "Une facture en double.",
    "Le colis est abîmé.",
    "Je résilie.\n\nEnvoyé de mon iPhone",
]
LABELS = ["facture", "colis", "facture", "colis", "facture"]
CLEANED = [
    "La facture est fausse.",
    "Mon colis est perdu.",
    "Une facture en double.",
    "Le colis est abîmé.",
    "Je résilie.",
]
JOINED = [
    "Facture\n\nLa facture est fausse.",
    "Colis\n\nMon colis est perdu.",
    "Une facture en double.",
    "Le colis est abîmé.",
    "Résiliation\n\nJe résilie.",
]
INDEX = [10, 5, 7, 5, 3]
FRAME = pd.DataFrame({"subject": SUBJECTS, "body": BODIES}, index=INDEX)
SINGLE = {
    "list": BODIES,
    "tuple": tuple(BODIES),
    "object array": np.array(BODIES, dtype=object),
    "unicode array": np.array(BODIES),
    "StringDType": np.array(BODIES, dtype=np.dtypes.StringDType()),
    "column": np.array(BODIES, dtype=object).reshape(-1, 1),
    "lists of one": [[body] for body in BODIES],
    "Series": pd.Series(BODIES, index=INDEX),
    "object Series": pd.Series(BODIES, dtype=object),
    "pyarrow Series": pd.Series(BODIES, dtype="string[pyarrow]"),
    "polars Series": pl.Series(BODIES),
    "frame": FRAME[["body"]],
    "frame of another name": pd.DataFrame({"message": BODIES}),
    "frame of a number": pd.DataFrame({0: BODIES}),
    "polars frame": pl.DataFrame({"body": BODIES}),
}
PAIRS = {
    "frame": FRAME,
    "reordered frame": FRAME[["body", "subject"]],
    "frame with more": FRAME.assign(n_links=1),
    "polars frame": pl.DataFrame({"subject": SUBJECTS, "body": BODIES}),
    "array": FRAME.to_numpy(dtype=object),
    "list of tuples": list(zip(SUBJECTS, BODIES, strict=True)),
}


@pytest.mark.parametrize("kind", sorted(SINGLE))
def test_bodies_of_every_kind(kind):
    for cleaned in (EmailCleaner().fit_transform(SINGLE[kind]), EmailCleaner().transform(SINGLE[kind])):
        assert cleaned.tolist() == CLEANED
        assert cleaned.dtype == object
        assert {type(text) for text in cleaned} == {str}


@pytest.mark.parametrize("kind", sorted(PAIRS))
def test_subjects_and_bodies_of_every_kind(kind):
    assert EmailCleaner().fit_transform(PAIRS[kind]).tolist() == JOINED


def test_generators_are_read_once():
    assert EmailCleaner().fit_transform(body for body in BODIES).tolist() == CLEANED
    assert EmailCleaner().transform(body for body in BODIES).tolist() == CLEANED


def test_other_column_names():
    frame = pd.DataFrame({"objet": SUBJECTS, "texte": BODIES, "auteur": "x"})
    assert EmailCleaner(subject_column="objet", body_column="texte").transform(frame).tolist() == JOINED
    assert EmailCleaner(body_column="texte").transform(frame).tolist() == CLEANED


def test_columns_that_cannot_be_told_apart():
    with pytest.raises(ValueError, match=r"columns \['a', 'b'\].*'body'.*'subject'.*body_column"):
        EmailCleaner().fit(pd.DataFrame({"a": BODIES, "b": BODIES}))
    twice = pd.concat([FRAME["body"], FRAME["body"]], axis=1)
    with pytest.raises(ValueError, match="columns"):
        EmailCleaner().fit(twice)
    with pytest.raises(ValueError, match=r"one column .* or two .* got 3"):
        EmailCleaner().fit(np.array([["a", "b", "c"]]))
    with pytest.raises(ValueError, match=r"X\[1\] must hold 2 text"):
        EmailCleaner().fit([("a", "b"), ("a",)])
    with pytest.raises(ValueError, match="one or two dimensions, got 3"):
        EmailCleaner().fit(np.array([[["a"]]]))


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ("Bonjour", TypeError, r"bare str; pass \[text\]"),
        (b"Bonjour", TypeError, "bare bytes"),
        (7, TypeError, "got int"),
        ({"a": 1}, TypeError, "got dict"),
        ({"a"}, TypeError, "got set"),
        (None, TypeError, "got NoneType"),
        (["a", 3], TypeError, r"X\[1\] must be str, got int"),
        (["a", b"b"], TypeError, r"X\[1\] must be str, got bytes; decode"),
        (np.array([[1.0]]), TypeError, r"X\[0\] must be str, got float"),
        (array("d", [1.0]), TypeError, r"X\[0\] must be str, got float"),
        (
            ["a", None, "b", float("nan")],
            ValueError,
            r"X has 2 missing .* row\(s\) 1, 3.*NoneType.*missing='empty'",
        ),
        ([None] * 20, ValueError, r"row\(s\) 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, \.\.\."),
        (pd.Series(["a", pd.NA], dtype="string"), ValueError, r"row\(s\) 1:"),
        (
            pd.DataFrame({"subject": ["a", None], "body": ["b", "c"]}),
            ValueError,
            r"X\['subject'\] has 1 missing",
        ),
        (
            pd.DataFrame({"subject": ["a", "b"], "body": ["b", pd.NaT]}),
            ValueError,
            r"X\['body'\] has 1 missing",
        ),
        (pl.DataFrame({"body": ["a", None]}), ValueError, r"row\(s\) 1:"),
    ],
)
@pytest.mark.parametrize("method", ["fit", "transform", "fit_transform"])
def test_what_is_refused(X, error, message, method):
    with pytest.raises(error, match=message):
        getattr(EmailCleaner(), method)(X)


def test_missing_texts_may_be_empty():
    frame = pd.DataFrame({"subject": ["Re: a", None, float("nan")], "body": [None, "b", pd.NA]})
    assert EmailCleaner(missing="empty").fit_transform(frame).tolist() == ["a", "b", ""]


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"missing": "drop"}, ValueError, "missing='drop' is not known"),
        ({"max_chars": 0}, ValueError, "max_chars must be at least 1, got 0"),
        ({"max_chars": 1.5}, TypeError, "max_chars must be an integer, got float"),
        ({"keep_quotes": "yes"}, TypeError, "keep_quotes must be True or False, got str"),
    ],
)
def test_parameters_are_checked_in_fit(parameters, error, message):
    cleaner = EmailCleaner(**parameters)
    for call in (cleaner.fit, cleaner.transform):
        with pytest.raises(error, match=message):
            call(["a"])
    if "missing" not in parameters:
        with pytest.raises(error, match=message):
            cleaner.explain("a")


def test_no_mails():
    for nothing in (
        [],
        np.array([], dtype=object),
        pd.Series([], dtype=object),
        FRAME.iloc[:0],
        np.empty((0, 1)),
    ):
        assert EmailCleaner().transform(nothing).shape == (0,)
        with pytest.raises(ValueError, match="0 rows"):
            EmailCleaner().fit(nothing)


def test_input_is_not_changed():
    frame, array_ = FRAME.copy(), np.array(BODIES, dtype=object)
    EmailCleaner().fit_transform(FRAME)
    EmailCleaner().fit_transform(array_)
    pd.testing.assert_frame_equal(FRAME, frame)
    assert array_.tolist() == BODIES


def test_columns_are_remembered_as_in_scikit_learn():
    cleaner = EmailCleaner().fit(FRAME)
    assert cleaner.n_features_in_ == 2
    assert cleaner.feature_names_in_.tolist() == ["subject", "body"]
    with pytest.raises(ValueError, match="feature names"):
        cleaner.transform(FRAME.rename(columns={"subject": "objet"}))
    assert cleaner.transform(BODIES).tolist() == CLEANED
    assert cleaner.transform(FRAME.to_numpy(dtype=object)).tolist() == JOINED
    cleaner.fit(BODIES)
    assert not hasattr(cleaner, "n_features_in_")
    assert not hasattr(cleaner, "feature_names_in_")
    with pytest.raises(ValueError, match=r"X has 2 features.*expecting 1"):
        EmailCleaner().fit(SINGLE["column"]).transform(FRAME.to_numpy(dtype=object))


def test_it_has_no_state():
    cleaner = EmailCleaner(keep_signatures=True)
    try:
        check_is_fitted(cleaner)
    except NotFittedError:
        pytest.fail("transform needs no fit, and scikit-learn should know")
    copy = pickle.loads(pickle.dumps(clone(cleaner)))
    assert copy.get_params() == cleaner.get_params()
    assert copy.transform(BODIES).tolist() == cleaner.transform(BODIES).tolist()
    assert cleaner.set_params(keep_signatures=False).transform(BODIES).tolist() == CLEANED


def test_tags():
    tags = EmailCleaner().__sklearn_tags__()
    assert tags.input_tags.string
    assert tags.input_tags.one_d_array
    assert tags.input_tags.two_d_array
    assert tags.no_validation
    assert not tags.requires_fit
    assert not tags.input_tags.allow_nan
    assert EmailCleaner(missing="empty").__sklearn_tags__().input_tags.allow_nan


@pytest.mark.parametrize(
    "X", [FRAME, FRAME[["body"]], FRAME["body"], BODIES], ids=["two", "one", "Series", "list"]
)
def test_set_output(X):
    right = JOINED if X is FRAME else CLEANED
    cleaner = EmailCleaner().set_output(transform="pandas")
    for frame in (cleaner.fit_transform(X), cleaner.transform(X)):
        assert list(frame.columns) == ["text"] == cleaner.get_feature_names_out().tolist()
        assert frame["text"].tolist() == right
        assert frame.index.tolist() == (INDEX if hasattr(X, "index") and X is not BODIES else [0, 1, 2, 3, 4])
    frame = EmailCleaner().set_output(transform="polars").fit_transform(X)
    assert frame.columns == ["text"]
    assert frame["text"].to_list() == right


@pytest.mark.parametrize("columns", ["body", ["body"], ["subject", "body"]], ids=str)
def test_column_transformer(columns):
    data = FRAME.assign(n_links=[1, 2, 3, 4, 5])
    right = JOINED if len(columns) == 2 else CLEANED
    table = ColumnTransformer([("t", EmailCleaner(), columns), ("n", "passthrough", ["n_links"])])
    frame = table.set_output(transform="pandas").fit_transform(data)
    assert frame.columns.tolist() == ["t__text", "n__n_links"] == table.get_feature_names_out().tolist()
    assert frame.index.tolist() == INDEX
    assert frame["t__text"].tolist() == right
    pipe = make_pipeline(EmailCleaner(), TfidfVectorizer())
    assert ColumnTransformer([("t", pipe, columns)]).fit_transform(data).shape[0] == 5


@pytest.mark.parametrize(
    "X", [FRAME, FRAME[["body"]], FRAME["body"], BODIES], ids=["two", "one", "Series", "list"]
)
@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
def test_in_front_of_the_baseline(X, output):
    pipe = make_pipeline(EmailCleaner().set_output(transform=output), tfidf_svm())
    assert pipe.fit(X, LABELS).predict(X).tolist() == LABELS


def test_in_front_of_a_vectorizer():
    pipe = make_pipeline(EmailCleaner(), TfidfVectorizer(), LinearSVC(random_state=0))
    assert pipe.fit(FRAME, LABELS).predict(FRAME).tolist() == LABELS


def test_too_long_a_mail_is_cut_with_one_warning_and_reported():
    mails = ["a b c d", "a", "x y z t"]
    with pytest.warns(UserWarning, match="2 of 3 mails exceed max_chars=4") as caught:
        assert EmailCleaner(max_chars=4).transform(mails).tolist() == ["a b", "a", "x y"]
    assert len(caught) == 1
    assert EmailCleaner(max_chars=4).explain("a b c d") == [("truncated", 4, 7, "c d")]


def test_explain_takes_one_mail():
    with pytest.raises(TypeError, match="text must be str, got list; explain takes one mail"):
        EmailCleaner().explain(["a"])


def test_pieces_that_are_kept_are_not_reported():
    text = "Oui.\n\nCordialement,\nJean\n\nLe 3 mars 2025 à 10:12, X a écrit :\n> non"
    assert [piece.kind for piece in EmailCleaner().explain(text)] == ["signature", "quote"]
    assert [piece.kind for piece in EmailCleaner(keep_signatures=True).explain(text)] == ["quote"]
    assert [piece.kind for piece in EmailCleaner(keep_quotes=True).explain(text)] == ["signature"]


@pytest.mark.parametrize(
    ("raw", "right"),
    [
        ("Objet\u00a0: l\u2019e\u0301te\u0301\u202f!", "Objet : l'été !"),
        ("\ufeffBonjour\u200b,\r\nmerci\r", "Bonjour,\nmerci"),
        ("un  \n\n\n\n  deux", "un\n\n  deux"),
        ("👩\u200d💻 \u200f\u05d0", "👩\u200d💻 \u200f\u05d0"),
        ("a\x00b \ud800", "a\x00b \ufffd"),
    ],
)
def test_normalisation(raw, right):
    assert EmailCleaner().transform([raw])[0] == right


@pytest.mark.parametrize(
    ("subject", "right"),
    [
        ("RE: TR : FWD: Fw: Facture", "Facture"),
        ("Re[2]: Facture", "Facture"),
        ("RÉ : facture", "facture"),
        ("AW: WG: Rechnung", "Rechnung"),
        ("[EXTERNE] Re : Facture", "Facture"),
        ("Rv: ENC: Antw: x", "x"),
        ("Re\u00a0: Facture", "Facture"),
        ("Réclamation : retard", "Réclamation : retard"),
        ("Retard: RE: x", "Retard: RE: x"),
        ("[Dossier 12] Re: x", "[Dossier 12] Re: x"),
        (" \n Deux\n  lignes ", "Deux lignes"),
        ("Re: Fwd:", ""),
    ],
)
def test_subject_prefixes(subject, right):
    body = "Bonjour."
    assert EmailCleaner().transform([(subject, body)])[0] == (f"{right}\n\n{body}" if right else body)


def test_subject_alone():
    assert EmailCleaner().transform([("Re: Facture", "")])[0] == "Facture"


@pytest.mark.parametrize(
    ("parameters", "columns"),
    [
        ({"subject_column": "objet"}, ["subject", "body"]),
        ({}, ["Subject", "body"]),
        ({}, ["SUBJECT", "body", "date"]),
    ],
)
def test_subjects_under_another_name_are_not_dropped_in_silence(parameters, columns):
    frame = pd.DataFrame([["x"] * len(columns)], columns=columns)
    with pytest.raises(ValueError, match=r"X has no column '(objet|subject)' for the subjects, but \['S?"):
        EmailCleaner(**parameters).transform(frame)


def test_a_frame_without_subjects_may_have_other_columns():
    frame = pd.DataFrame({"sender": ["a@example.org"], "body": ["Bonjour"]})
    assert EmailCleaner().transform(frame).tolist() == ["Bonjour"]


def test_members_of_an_enumeration_count_as_their_text():
    class Mail(str, Enum):  # noqa: UP042 - StrEnum has another __str__, which hides the fault
        FIRST = "Bonjour"

    assert EmailCleaner().transform([Mail.FIRST]).tolist() == ["Bonjour"]
