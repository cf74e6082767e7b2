"""The TF-IDF baseline."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline

from sktransformer.baselines import StratifiedFolds, TextJoiner, tfidf_svm
from sktransformer.datasets import load_french_emails
from sktransformer.email import EmailCleaner

TEXTS = [*(f"facture {n} fausse" for n in range(8)), *(f"colis {n} perdu" for n in range(8))]
LABELS = ["facture"] * 8 + ["colis"] * 8
INDEX = [*range(15), 3]
INPUTS = {
    "list": TEXTS,
    "tuple": tuple(TEXTS),
    "array": np.array(TEXTS),
    "StringDType": np.array(TEXTS, dtype=np.dtypes.StringDType()),
    "column": np.array(TEXTS, dtype=object).reshape(-1, 1),
    "Series": pd.Series(TEXTS, index=INDEX),
    "pyarrow Series": pd.Series(TEXTS, dtype="string[pyarrow]"),
    "polars Series": pl.Series(TEXTS),
    "frame": pd.DataFrame({"texte": TEXTS}, index=INDEX),
    "polars frame": pl.DataFrame({"texte": TEXTS}),
}


@pytest.mark.parametrize("calibrated", [False, True])
@pytest.mark.parametrize("kind", sorted(INPUTS))
def test_inputs_of_every_kind(kind, calibrated):
    classifier = tfidf_svm(calibrated=calibrated).fit(INPUTS[kind], LABELS)
    assert classifier.predict(INPUTS[kind]).tolist() == LABELS
    reference = tfidf_svm(calibrated=calibrated).fit(TEXTS, LABELS)
    method = "predict_proba" if calibrated else "decision_function"
    np.testing.assert_array_equal(
        getattr(classifier, method)(INPUTS[kind]), getattr(reference, method)(TEXTS)
    )


def test_generators():
    assert (
        tfidf_svm().fit((text for text in TEXTS), LABELS).predict(text for text in TEXTS).tolist() == LABELS
    )


@pytest.mark.parametrize(
    "pairs",
    [
        pd.DataFrame({"subject": ["a", "b"], "body": ["c", "d"]}, index=[4, 4]),
        pl.DataFrame({"subject": ["a", "b"], "body": ["c", "d"]}),
        np.array([["a", "c"], ["b", "d"]]),
        [("a", "c"), ("b", "d")],
    ],
    ids=["pandas", "polars", "array", "tuples"],
)
def test_columns_are_joined_by_line_ends(pairs):
    assert TextJoiner().fit_transform(pairs).tolist() == ["a\nc", "b\nd"]
    assert tfidf_svm().fit(pairs, [0, 1]).predict(pairs).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ("facture", TypeError, r"bare str; pass \[text\]"),
        (3, TypeError, "got int"),
        ({"a": 1}, TypeError, "got dict"),
        (["a", 1], TypeError, r"X\[1\] must be str, got int"),
        (["a", None, np.nan, pd.NA], ValueError, r"X has 3 missing .* row\(s\) 1, 2, 3; .*missing='empty'"),
        ([None] * 11, ValueError, r"8, 9, \.\.\.;"),
        (pd.DataFrame({"a": ["x"], "n": [2]}), TypeError, r"X\['n'\]\[0\] must be str, got int"),
        (pd.DataFrame({"a": ["x"], "b": [None]}), ValueError, r"X\['b'\] has 1 missing"),
        (pd.DataFrame(index=[0, 1]), ValueError, "frame without columns"),
        ([("a", "b"), ("c",)], ValueError, r"X\[1\] must hold 2 text"),
        ([("a", "b"), "cd"], ValueError, r"X\[1\] must hold 2 text"),
    ],
)
def test_what_is_refused(X, error, message):
    with pytest.raises(error, match=message):
        TextJoiner().transform(X)
    with pytest.raises(error, match=message):
        tfidf_svm().fit(X, ["a", "b"])


def test_missing_texts_may_be_empty():
    assert TextJoiner(missing="empty").transform(["a", None, np.nan]).tolist() == ["a", "", ""]
    texts = [*TEXTS, None]
    assert tfidf_svm(missing="empty").fit(texts, [*LABELS, "colis"]).predict(texts).shape == (17,)


def test_no_texts():
    classifier = tfidf_svm().fit(TEXTS, LABELS)
    assert TextJoiner().transform([]).shape == (0,)
    with pytest.raises(ValueError, match="empty vocabulary"):
        tfidf_svm().fit([], [])
    with pytest.raises(ValueError, match="0 sample"):
        classifier.predict([])


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"C": 0}, ValueError, "C must be above 0, got 0"),
        ({"C": "1"}, TypeError, "C must be a number, got str"),
        ({"calibrated": 1}, TypeError, "calibrated must be True or False, got int"),
        ({"missing": "none"}, ValueError, "missing='none' is not known"),
    ],
)
def test_parameters(parameters, error, message):
    with pytest.raises(error, match=message):
        tfidf_svm(**parameters)


def test_parameters_arrive():
    pipe = tfidf_svm(
        C=3.0, class_weight=None, word_ngrams=(1, 1), char_ngrams=(3, 4), min_df=2, max_iter=7, random_state=5
    )
    assert isinstance(pipe, Pipeline)
    assert list(pipe.named_steps) == ["text", "tfidf", "svm"]
    wanted = {
        "svm__C": 3.0,
        "svm__class_weight": None,
        "svm__max_iter": 7,
        "svm__random_state": 5,
        "tfidf__word__ngram_range": (1, 1),
        "tfidf__char__ngram_range": (3, 4),
        "tfidf__word__min_df": 2,
        "tfidf__char__min_df": 2,
    }
    assert {name: pipe.get_params()[name] for name in wanted} == wanted
    assert tfidf_svm(calibrated=True, C=3.0).get_params()["svm__estimator__C"] == 3.0


def test_features():
    features = tfidf_svm().fit(["L'eau ?", "le lac !"], [0, 1])[:2].get_feature_names_out()
    assert {"word__l", "word__eau ?", "word__!", "char__ea", "char__'eau "} <= set(features)
    assert "char__u ?" not in features  # runs of characters stay inside a word


def test_texts_of_marks_alone():
    assert tfidf_svm().fit(["!!", "??"], ["x", "y"]).predict(["!", "?"]).tolist() == ["x", "y"]


def test_same_texts_give_the_same_classifier_and_the_global_generator_is_left_alone():
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    first, second = (tfidf_svm(calibrated=True).fit(TEXTS, LABELS).predict_proba(TEXTS) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


@pytest.mark.parametrize("calibrated", [False, True])
def test_clone_pickle_and_representation(calibrated):
    pipe = clone(tfidf_svm(calibrated=calibrated))
    classifier = pickle.loads(pickle.dumps(pipe.fit(TEXTS, LABELS)))
    assert classifier.predict(TEXTS).tolist() == LABELS
    assert "TfidfVectorizer" in pipe._repr_html_()


def test_grid_search():
    space = {"pipeline__svm__C": [0.1, 1.0], "pipeline__tfidf__word__ngram_range": [(1, 1), (1, 2)]}
    search = GridSearchCV(
        make_pipeline(EmailCleaner(), tfidf_svm()), space, cv=KFold(4, shuffle=True, random_state=0)
    )
    assert search.fit(TEXTS, LABELS).best_score_ == 1.0


@pytest.mark.parametrize("labels", [[0, 5], [True, False], ["a", "b"], [-1, 1]])
@pytest.mark.parametrize("calibrated", [False, True])
def test_labels_of_every_kind(labels, calibrated):
    y = np.array(labels)[[0] * 8 + [1] * 8]
    classifier = tfidf_svm(calibrated=calibrated).fit(TEXTS, y)
    assert classifier.classes_.tolist() == sorted(labels)
    assert classifier.predict(TEXTS).tolist() == y.tolist()


@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_whatever_output_is_asked_for_around_it(output):
    with sklearn.config_context(transform_output=output):
        pipe = make_pipeline(EmailCleaner(), tfidf_svm())
        assert pipe.fit(TEXTS, LABELS).predict(TEXTS).tolist() == LABELS
    pipe = make_pipeline(EmailCleaner(), tfidf_svm(calibrated=True)).set_output(transform=output)
    assert pipe.fit(TEXTS, LABELS).predict(TEXTS).tolist() == LABELS


def test_sample_weight():
    y = np.array(LABELS)
    weight = np.r_[np.zeros(2), np.ones(14)]
    y_wrong = np.where(weight == 0, "colis", y)
    classifier = tfidf_svm(class_weight=None).fit(TEXTS, y_wrong, svm__sample_weight=weight)
    assert classifier.predict(TEXTS).tolist() == LABELS


@pytest.mark.parametrize("rare", [1, 2, 3])
def test_calibration_with_a_class_rarer_than_the_folds(rare):
    texts = [*TEXTS, *(f"résilier {n}" for n in range(rare))]
    y = [*LABELS, *["résiliation"] * rare]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier = tfidf_svm(calibrated=True).fit(texts, y)
    probabilities = classifier.predict_proba(texts)
    assert classifier.classes_.tolist() == ["colis", "facture", "résiliation"]
    assert probabilities.shape == (16 + rare, 3)
    assert np.isfinite(probabilities).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-12)
    assert classifier.classes_[probabilities.argmax(axis=1)].tolist() == classifier.predict(texts).tolist()
    column = probabilities[:, 2]
    assert column[16:].min() > column[:16].max()  # its own texts are the likeliest of the rare class
    assert classifier.predict(TEXTS).tolist() == LABELS


def test_calibration_with_single_examples_alone():
    with pytest.raises(ValueError, match="every class has one; add examples, or pass calibrated=False"):
        tfidf_svm(calibrated=True).fit(["a", "b", "c"], ["x", "y", "z"])
    with pytest.raises(ValueError, match="class"):
        tfidf_svm(calibrated=True).fit(["a", "b"], ["x", "x"])


def test_calibration_with_metadata_routing():
    with sklearn.config_context(enable_metadata_routing=True):
        assert tfidf_svm(calibrated=True).fit(TEXTS, LABELS).predict(TEXTS).tolist() == LABELS


@pytest.mark.parametrize("counts", [(9, 5, 2), (20, 1, 1), (2, 2, 1), (3, 2), (40, 7, 3, 1)])
def test_folds(counts):
    y = np.random.RandomState(0).permutation(np.repeat(np.arange(len(counts)), counts))
    folds = StratifiedFolds(5)
    splits = list(folds.split(y, y))
    assert len(splits) == folds.get_n_splits(y, y) == min(5, max(counts))
    seen = np.concatenate([test for _, test in splits])
    single = np.flatnonzero(np.isin(y, np.flatnonzero(np.array(counts) == 1)))
    assert sorted(seen) == sorted(set(range(len(y))) - set(single))
    sizes = [len(test) for _, test in splits]
    assert max(sizes) - min(sizes) <= 1
    for train, test in splits:
        assert set(y[train]) == set(y)
        assert len(test) > 0
        assert sorted([*train, *test]) == list(range(len(y)))


def test_folds_without_labels():
    assert StratifiedFolds(4).get_n_splits() == 4
    with pytest.raises(ValueError, match="max_splits must be at least 2"):
        StratifiedFolds(1).get_n_splits()
    X, y = make_classification(40, random_state=0)
    assert cross_val_score(sklearn.svm.LinearSVC(random_state=0), X, y, cv=StratifiedFolds(4)).shape == (4,)


def test_cleaning_helps_on_the_sample_inbox():
    mails = load_french_emails()
    bodies, y = mails.frame["body"].tolist(), mails.frame["label"].tolist()
    folds = KFold(4, shuffle=True, random_state=0)
    raw = cross_val_score(tfidf_svm(), bodies, y, cv=folds, scoring="accuracy").mean()
    cleaned = cross_val_score(
        make_pipeline(EmailCleaner(), tfidf_svm()), bodies, y, cv=folds, scoring="accuracy"
    ).mean()
    most_frequent = mails.frame["label"].value_counts(normalize=True).max()
    assert cleaned > raw > most_frequent
