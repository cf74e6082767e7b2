"""LanguageRouter: one classifier a language, and the whole of it as a classifier of scikit-learn."""

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from sktransformer.baselines import tfidf_svm
from sktransformer.email import EmailCleaner, LanguageRouter

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
LABELS = [label for label in ["facture"] * 3 + ["colis"] * 3 for _ in range(2)]


def bayes(**parameters):
    return make_pipeline(CountVectorizer(), MultinomialNB(**parameters))


def router(**parameters):
    return LanguageRouter({"fr": bayes(), "en": bayes()}, **parameters)


class Recorder(ClassifierMixin, BaseEstimator):
    """Keeps what it is fitted on, and answers with the first label and what it was told to be."""

    def __init__(self, name="x"):
        self.name = name

    def fit(self, X, y, sample_weight=None, extra=None):
        self.X_, self.y_, self.weight_, self.extra_ = X, y, sample_weight, extra
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


# -- fit and predict -------------------------------------------------------------------------------------------------


def test_each_language_has_its_own_classifier():
    one = router().fit(TEXTS, LABELS)
    alone = {
        language: bayes().fit(texts, LABELS[::2]) for language, texts in (("fr", FRENCH), ("en", ENGLISH))
    }
    new = ["the parcel is lost now", "je paie ma facture de mars", "I pay the invoice", "ok"]
    probability = one.predict_proba(new)
    for row, language in enumerate(["en", "fr", "en", "fr"]):
        assert np.array_equal(probability[row], alone[language].predict_proba([new[row]])[0])
    assert one.predict(new).tolist() == one.classes_[probability.argmax(axis=1)].tolist()
    assert one.predict(new[:3]).tolist() == ["colis", "facture", "facture"]
    assert one.languages_ == ["en", "fr"]
    assert one.score(TEXTS, LABELS) == 1.0
    assert is_classifier(one)


def test_what_went_where():
    one = router(fallback=bayes()).fit(
        [*TEXTS, *GERMAN, "ok", "404"], [*LABELS, *LABELS[5:7], "colis", "colis"]
    )
    right = pd.DataFrame(
        {"n_texts": [2, 6, 8], "n_undecided": [0, 0, 2], "estimator": ["fallback", "en", "fr"]},
        index=pd.Index(["de", "en", "fr"], name="language"),
    )
    pd.testing.assert_frame_equal(one.routing_, right, check_dtype=False)
    new = pd.Series(
        ["where is the parcel", "wo ist das Paket", "dove è il mio pacco", "ok"], index=[7, 7, 3, 1]
    )
    frame = one.route(new)
    assert frame["language"].tolist() == ["en", "de", "it", "fr"]
    assert frame["estimator"].tolist() == ["en", "fallback", "fallback", "fr"]
    assert frame["decided"].tolist() == [True, True, True, False]
    assert frame["confidence"].between(0, 1).all()
    assert frame.index.tolist() == [7, 7, 3, 1]


def test_a_language_without_estimator_and_fallback_is_an_error_at_fit():
    message = (
        r"2 language\(s\) without an estimator: de \(2 text\(s\)\), en \(6 text\(s\)\).*fallback=.*languages="
    )
    with pytest.raises(ValueError, match=message):
        LanguageRouter({"fr": bayes()}).fit([*TEXTS, *GERMAN], [*LABELS, *LABELS[5:7]])
    one = LanguageRouter({"fr": bayes()}, languages=["fr"]).fit(TEXTS, LABELS)
    assert one.routing_["n_texts"].to_dict() == {"fr": 12}


def test_a_new_language_goes_to_the_default():
    one = router().fit(TEXTS, LABELS)
    assert one.route(GERMAN)[["language", "estimator"]].to_numpy().tolist() == [["de", "fr"]] * 2
    assert one.predict(GERMAN).tolist() == one.estimators_["fr"].predict(GERMAN).tolist()


def test_a_default_language_that_does_not_occur():
    one = router().fit(ENGLISH, LABELS[::2])
    assert one.languages_ == ["en"]
    assert one.route(["ok", *GERMAN])["estimator"].tolist() == ["en"] * 3
    with pytest.raises(ValueError, match=r"default='fi' has no estimator.*\['en', 'fr'\]"):
        router(default="fi").fit(TEXTS, LABELS)


def test_the_fallback_learns_from_all_texts():
    one = LanguageRouter({"fr": Recorder()}, fallback=Recorder("rest")).fit(TEXTS, LABELS)
    assert list(one.fallback_.X_) == TEXTS
    assert list(one.estimators_["fr"].X_) == FRENCH
    assert one.estimators_["fr"].y_.tolist() == LABELS[::2]


def test_one_classifier_for_every_language_that_occurs_often():
    X, y = [*TEXTS, *GERMAN], [*LABELS, "facture", "colis"]
    one = LanguageRouter(bayes()).fit(X, y)
    assert one.languages_ == ["en", "fr"]
    assert one.routing_.loc["de"].tolist() == [2, 0, "fr"]
    assert one.estimators_["fr"] is not one.estimators_["en"]
    assert LanguageRouter(bayes(), min_samples=2).fit(X, y).languages_ == ["de", "en", "fr"]
    assert LanguageRouter(bayes(), min_samples=99).fit(X, y).languages_ == ["fr"]
    assert LanguageRouter(bayes(), min_samples=99, fallback=bayes()).fit(X, y).languages_ == []
    assert LanguageRouter(fallback=bayes()).fit(X, y).predict(X[:2]).shape == (2,)


def test_label_sets_that_differ():
    labels = [*LABELS[:-2], "retour", "damage"]  # French never says damage, English never retour
    one = router().fit(TEXTS, labels)
    assert one.classes_.tolist() == ["colis", "damage", "facture", "retour"]
    probability = one.predict_proba(TEXTS)
    assert probability.shape == (12, 4)
    assert np.allclose(probability.sum(axis=1), 1)
    assert (probability[::2, 1] == 0).all()
    assert (probability[1::2, 3] == 0).all()
    assert (probability[::2, 3] > 0).all()
    assert one.classes_[probability.argmax(axis=1)].tolist() == one.predict(TEXTS).tolist() == labels


def test_decision_function_has_a_column_a_class_or_one_for_two():
    svm = make_pipeline(CountVectorizer(), LinearSVC(random_state=0))
    two = LanguageRouter({"fr": svm, "en": svm}).fit(TEXTS, LABELS)
    french = clone(svm).fit(FRENCH, LABELS[::2])
    assert not hasattr(two, "predict_proba")
    assert two.decision_function(TEXTS).shape == (12,)
    assert np.allclose(two.decision_function(FRENCH), french.decision_function(FRENCH))
    four = LanguageRouter({"fr": svm, "en": svm}).fit(TEXTS, [*LABELS[:-2], "retour", "damage"])
    scores = four.decision_function(TEXTS)
    assert scores.shape == (12, 4)
    assert np.isfinite(scores).all()
    assert four.classes_[scores.argmax(axis=1)].tolist() == four.predict(TEXTS).tolist()
    assert not hasattr(LanguageRouter({"fr": bayes(), "en": svm}), "predict_proba")
    assert not hasattr(LanguageRouter(), "predict_proba")
    assert not hasattr(router(), "decision_function")


def test_a_language_with_one_label():
    labels = ["colis" if text in ENGLISH else label for text, label in zip(TEXTS, LABELS, strict=True)]
    with pytest.warns(
        UserWarning, match=r"All 6 text\(s\) of 'en' have the label 'colis'.*fallback"
    ) as warned:
        one = router().fit(TEXTS, labels)
    assert len(warned) == 1
    assert one.predict_proba(ENGLISH).tolist() == [[1.0, 0.0]] * 6
    svm = make_pipeline(CountVectorizer(), LinearSVC())
    with pytest.warns(UserWarning, match="'en'"):
        scores = LanguageRouter({"fr": svm, "en": svm}).fit(TEXTS, labels).decision_function(ENGLISH)
    assert (scores < 0).all()
    kept = router(fallback=bayes()).fit(TEXTS, labels)
    assert kept.languages_ == ["fr"]
    assert kept.route(ENGLISH)["estimator"].tolist() == ["fallback"] * 6


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["a"] * 12, "at least 2 classes in the data, but the data contains only one class: .*'a'"),
        (LABELS[:-1], r"inconsistent numbers of samples: \[12, 11\]"),
        ([*LABELS[:3], None, *LABELS[4:]], r"1 missing label\(s\) .* row 3"),
        (pd.Series([*LABELS[:3], pd.NA, *LABELS[4:]]), "row 3"),
        (np.linspace(0, 1, 12), "continuous"),
        (np.eye(12), "1d array"),
        (None, "requires y"),
    ],
)
def test_bad_labels(y, message):
    with pytest.raises(ValueError, match=message):
        router().fit(TEXTS, y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([*LABELS[:-1], 1], "y mixes labels of type int and str"),
        ([("a",), ("b", 2)] * 6, r"y\[0\] must be one label .* got tuple"),
    ],
)
def test_labels_of_no_kind(y, message):
    with pytest.raises(TypeError, match=message):
        router().fit(TEXTS, y)


@pytest.mark.parametrize(
    "kind", [list, np.array, pd.Series, pd.Categorical, lambda y: np.array(y, dtype=object)]
)
@pytest.mark.parametrize("values", [("a", "b"), (7, -2), (True, False)])
def test_labels_of_every_kind(kind, values):
    y = [values[label == "colis"] for label in LABELS]
    one = router().fit(TEXTS, kind(y))
    assert one.predict(TEXTS).tolist() == y
    assert one.classes_.tolist() == sorted(values)


def test_no_texts():
    one = router().fit(TEXTS, LABELS)
    assert one.predict([]).shape == (0,)
    assert one.predict_proba([]).shape == (0, 2)
    assert one.identify([]).shape == (0,)
    assert one.route([]).shape == (0, 4)
    with pytest.raises(ValueError, match="0 sample"):
        router().fit([], [])


def test_missing_texts_may_count_as_empty():
    one = router(missing="empty").fit([*TEXTS, None], [*LABELS, "colis"])
    assert one.identify(["where is my parcel", None, pd.NA]).tolist() == ["en", "fr", "fr"]
    assert one.predict(["where is my parcel", None]).shape == (2,)


def test_not_fitted():
    for call in (router().predict, router().predict_proba, router().route):
        with pytest.raises(NotFittedError):
            call(TEXTS)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"estimators": None}, ValueError, "estimators=None is only enough for identify"),
        ({"estimators": {}}, ValueError, "empty dict"),
        ({"estimators": {"fr": MultinomialNB}}, TypeError, "'fr' must be a classifier"),
        ({"estimators": {"fr": None}}, TypeError, "'fr' must be a classifier .* got None"),
        ({"estimators": {1: MultinomialNB()}}, TypeError, "estimators has the key 1; its keys must be codes"),
        ({"estimators": "svm"}, TypeError, "'estimators' must be a classifier .* got 'svm'"),
        ({"languages": "fr"}, TypeError, "languages must be a sequence"),
        ({"languages": ["french"]}, ValueError, "'french' is no language that py3langid knows"),
        ({"min_words": -1}, ValueError, "min_words must be at least 0"),
        ({"min_confidence": 2}, ValueError, "min_confidence must be at least 0 and at most 1"),
        ({"min_samples": 0}, ValueError, "min_samples must be at least 1"),
        ({"missing": "drop"}, ValueError, "missing='drop' is not known"),
    ],
)
def test_bad_parameters(parameters, error, message):
    with pytest.raises(error, match=message):
        LanguageRouter(**{"estimators": bayes(), **parameters}).fit(TEXTS, LABELS)


def test_a_failed_fit_leaves_what_was_there():
    one = router().fit(TEXTS, LABELS)
    before = one.predict_proba(TEXTS)
    with pytest.raises(ValueError, match="missing"):
        one.fit([*TEXTS[:-1], None], LABELS)
    assert np.array_equal(one.predict_proba(TEXTS), before)


# -- inside scikit-learn -----------------------------------------------------------------------------------------------


def test_parameters_of_the_classifiers():
    one = router(fallback=bayes())
    names = one.get_params()
    assert {"fr", "en__multinomialnb__alpha", "fallback__multinomialnb__alpha", "min_words"} <= set(names)
    estimators = one.estimators
    one.set_params(fr__multinomialnb__alpha=3, en=bayes(alpha=9), min_words=1)
    assert one.get_params()["fr__multinomialnb__alpha"] == 3
    assert one.get_params()["en__multinomialnb__alpha"] == 9
    assert estimators["en"].get_params()["multinomialnb__alpha"] == 1.0  # the user's dict is as it was
    assert "estimators__multinomialnb__alpha" in LanguageRouter(bayes()).get_params()
    with pytest.raises(ValueError, match="Invalid parameter 'de'"):
        one.set_params(de__alpha=1)
    copied = clone(one.fit(TEXTS, LABELS))
    assert not hasattr(copied, "classes_")
    assert copied.estimators["fr"] is not one.estimators["fr"]
    assert copied.get_params()["fr__multinomialnb__alpha"] == 3
    assert not hasattr(one.estimators["fr"][-1], "classes_")  # what was passed stays unfitted


def test_in_a_pipeline_under_cross_validation_and_search():
    mails = pd.DataFrame({"subject": "", "body": [f"{text}\n\n> ancien texte en français" for text in TEXTS]})
    pipe = make_pipeline(EmailCleaner(), router())
    folds = StratifiedKFold(2, shuffle=True, random_state=0)
    scores = cross_val_score(pipe, mails, LABELS, cv=folds, scoring="neg_log_loss", error_score="raise")
    assert np.isfinite(scores).all()
    grid = {
        "languagerouter__fr__multinomialnb__alpha": [0.1, 1.0],
        "languagerouter__en": [bayes(), tfidf_svm()],
    }
    search = GridSearchCV(pipe, grid, cv=folds, error_score="raise").fit(mails, LABELS)
    assert search.predict(mails).tolist() == LABELS


def test_a_frame_is_handed_on_as_a_frame():
    frame = pd.DataFrame({"text": TEXTS, "n": range(12)}, index=[5] * 12)
    one = LanguageRouter({"fr": Recorder(), "en": Recorder()}).fit(
        frame, pd.Series(LABELS, index=range(50, 62))
    )
    assert one.estimators_["en"].X_["n"].tolist() == list(range(1, 12, 2))
    assert one.n_features_in_ == 2
    assert one.feature_names_in_.tolist() == ["text", "n"]
    with pytest.raises(ValueError, match="feature names"):
        one.predict(frame.rename(columns={"n": "m"}))


def test_weights_are_cut_into_the_rows_of_each_language():
    weights = np.arange(12.0)
    one = LanguageRouter({"fr": Recorder(), "en": Recorder()}, fallback=Recorder())
    one.fit(TEXTS, LABELS, sample_weight=weights, extra="same")
    assert one.estimators_["fr"].weight_.tolist() == weights[::2].tolist()
    assert one.estimators_["en"].weight_.tolist() == weights[1::2].tolist()
    assert one.fallback_.weight_.tolist() == weights.tolist()
    assert one.estimators_["en"].extra_ == "same"
    one.fit(TEXTS, LABELS, sample_weight=weights.tolist())
    assert one.estimators_["fr"].weight_ == weights[::2].tolist()
    with pytest.raises(ValueError, match="sample_weight"):
        router().fit(
            TEXTS, LABELS, sample_weight=weights
        )  # scikit-learn's pipeline says how to name the step
    weighted = router().fit(TEXTS, LABELS, multinomialnb__sample_weight=weights)
    alone = bayes().fit(FRENCH, LABELS[::2], multinomialnb__sample_weight=weights[::2])
    assert np.array_equal(weighted.predict_proba(FRENCH), alone.predict_proba(FRENCH))


def test_metadata_routing():
    weights = np.arange(12.0)
    with config_context(enable_metadata_routing=True):
        parts = {"fr": Recorder().set_fit_request(sample_weight=True, extra=True)}
        parts["en"] = Recorder().set_fit_request(sample_weight=False, extra=True)
        pipe = make_pipeline(EmailCleaner(), LanguageRouter(parts))
        pipe.fit(TEXTS, LABELS, sample_weight=weights, extra=3)
        one = LanguageRouter(Recorder().set_fit_request(sample_weight=True, extra=False))
        one.fit(TEXTS, LABELS, sample_weight=weights)
    fitted = pipe[-1].estimators_
    assert fitted["fr"].weight_.tolist() == weights[::2].tolist()
    assert fitted["en"].weight_ is None
    assert fitted["en"].extra_ == fitted["fr"].extra_ == 3
    assert one.estimators_["en"].weight_.tolist() == weights[1::2].tolist()


def test_the_same_every_time_and_after_a_round_trip(tmp_path):
    one = LanguageRouter(make_pipeline(CountVectorizer(), LogisticRegression(random_state=0)))
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    first, second = (clone(one).fit(TEXTS, LABELS) for _ in range(2))
    assert np.array_equal(np.random.get_state()[1], state)  # noqa: NPY002
    right = first.predict_proba([*TEXTS, *GERMAN])
    assert np.array_equal(second.predict_proba([*TEXTS, *GERMAN]), right)
    joblib.dump(first, tmp_path / "router.joblib")
    assert (tmp_path / "router.joblib").stat().st_size < 50_000  # the identifier's tables take megabytes
    loaded = joblib.load(tmp_path / "router.joblib")
    assert np.array_equal(loaded.predict_proba([*TEXTS, *GERMAN]), right)
    pd.testing.assert_frame_equal(loaded.routing_, first.routing_)
