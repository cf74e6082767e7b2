"""What a run hands on and what it costs: weights, times, sizes, documents cut."""

import warnings
from io import BytesIO

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer, recall_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sktransformer import TransformerClassifier, compare_models, tfidf_svm
from sktransformer.exceptions import TruncationWarning
from sktransformer.model_selection.comparison._runs import pickled_megabytes
from sktransformer.testing import tiny_checkpoint

X = np.random.default_rng(0).normal(size=(60, 3))
Y = np.where(X[:, 0] + np.random.default_rng(1).normal(size=60) > 0, "yes", "no")


# -- metadata ---------------------------------------------------------------------------------------------------------


class Weighed(DummyClassifier):
    seen: list = []  # noqa: RUF012

    def fit(self, X, y, sample_weight=None):
        Weighed.seen.append((X[:, 0], sample_weight))
        return super().fit(X, y, sample_weight)


WEIGHTS = np.arange(60) + 1.0


def no_recall(estimator, X, y):
    return recall_score(y, estimator.predict(X), pos_label="no")


@pytest.mark.parametrize(
    "model",
    [
        Weighed(),
        make_pipeline(Weighed()),
        make_pipeline("passthrough", make_pipeline("passthrough", Weighed())),
        GridSearchCV(
            make_pipeline(Weighed()), {"weighed__strategy": ["prior"]}, cv=[(range(9), range(9, 12))]
        ),
    ],
)
def test_weights_reach_the_last_step_row_by_row(model):
    Weighed.seen.clear()
    compare_models([model], X, Y, cv=3, sample_weight=pd.Series(WEIGHTS, index=np.arange(60)[::-1]))
    assert Weighed.seen
    for column, weights in Weighed.seen:
        rows = [np.flatnonzero(X[:, 0] == value)[0] for value in column]
        assert weights.tolist() == WEIGHTS[rows].tolist()


def test_weights_matter():
    weights = np.where(Y == "yes", 100.0, 1.0)
    plain, weighed = (
        compare_models([LogisticRegression()], X, Y, cv=3, sample_weight=w, scoring={"no": no_recall}).frame[
            "no"
        ]
        for w in (None, weights)
    )
    assert plain.iloc[0] > 0.6
    assert weighed.iloc[0] < 0.4  # a missed "yes" costs a hundred times as much


def test_routed_weights_reach_a_scorer_that_asks_for_them():
    weights = np.where(Y == "yes", 1.0, 0.0)
    with config_context(enable_metadata_routing=True):
        model = LogisticRegression(C=1e-9).set_fit_request(sample_weight=True)
        asking = get_scorer("accuracy").set_score_request(sample_weight=True)
        result = compare_models(
            [model], X, Y, cv=3, sample_weight=weights, scoring={"asking": asking, "plain": "accuracy"}
        )
    assert result.frame["asking"].iloc[0] in (
        0.0,
        1.0,
    )  # of one class alone, which is predicted always or never
    assert 0 < result.frame["plain"].iloc[0] < 1


@pytest.mark.parametrize(
    "model", [KNeighborsClassifier(), make_pipeline(StandardScaler(), KNeighborsClassifier())]
)
def test_an_estimator_that_takes_no_weights_is_refused_before_any_fit(model):
    with pytest.raises(TypeError, match=r"estimators.'knn'. takes no sample_weight in fit"):
        compare_models({"knn": model}, X, Y, sample_weight=WEIGHTS)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"sample_weight": [1.0]},
            r"sample_weight must have one value a document, shape \(60,\), got shape \(1,\)",
        ),
        ({"groups": np.ones((60, 2))}, r"groups must have one value a document"),
        ({"sample_weight": -WEIGHTS}, "[Nn]egative"),
    ],
)
def test_bad_metadata(changes, message):
    with pytest.raises(ValueError, match=message):
        compare_models([LogisticRegression()], X, Y, **changes)


# -- costs ------------------------------------------------------------------------------------------------------------


def test_megabytes_are_those_of_joblib():
    model = RandomForestClassifier(20, random_state=0).fit(X, Y)
    file = BytesIO()
    joblib.dump(model, file)
    # the padding before arrays differs by some bytes, which depends on where the file begins
    assert pickled_megabytes(model) == pytest.approx(len(file.getvalue()) / 1e6, rel=0.01)
    assert np.isnan(pickled_megabytes(DummyClassifier(constant=lambda: 0)))


def test_megabytes_of_a_large_array_need_no_second_copy():
    import tracemalloc

    model = DummyClassifier()
    model.weights_ = np.zeros(60_000_000, dtype=np.uint8)
    tracemalloc.start()
    size = pickled_megabytes(model)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert size == pytest.approx(60, rel=0.01)
    assert peak < 40e6


def test_times_are_per_fit_and_per_document():
    import time

    class Slow(DummyClassifier):
        def fit(self, X, y, sample_weight=None):
            time.sleep(0.05)
            return super().fit(X, y)

        def predict(self, X):
            time.sleep(0.02)
            return super().predict(X)

    row = compare_models([Slow()], X, Y, cv=2).frame.iloc[0]
    assert 0.05 <= row["fit_seconds"] < 0.5
    assert 20 / 30 <= row["ms_per_document"] < 20  # 20 ms for 30 documents, on a machine that may be busy


def test_share_cut_is_counted_where_a_model_has_a_limit():
    long, short = " ".join(["facture"] * 12), "facture"
    texts = [f"{long} {i}" if i % 4 == 0 else f"{short} {i}" for i in range(16)]
    labels = ["a", "b"] * 8

    def router(max_length):
        return TransformerClassifier(tiny_checkpoint("bert"), max_epochs=1, max_length=max_length)

    models = {"cuts": router(8), "reads all": make_pipeline(router(64)), "no limit": tfidf_svm()}
    quiet = KFold(2)  # rows 0, 4 and 8, 12 are long: a quarter of each half
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=ConvergenceWarning)  # one epoch of a tiny model
        share = compare_models(models, texts, labels, cv=quiet).frame["share_cut"]
    assert share["cuts"] == 0.25
    assert share["reads all"] == 0.0
    assert np.isnan(share["no limit"])


class Reader(DummyClassifier):
    """Says in words of its own how much it cut."""

    def predict(self, X):
        warnings.warn(TruncationWarning("quelques textes coupés", n_cut=3, n_documents=len(X)), stacklevel=2)
        warnings.warn(TruncationWarning("9 of 10 documents, by somebody who does not count"), stacklevel=2)
        return super().predict(X)


def test_share_cut_is_read_from_the_counts_of_a_warning_not_from_its_words():
    assert compare_models([Reader()], X, Y, cv=2).frame["share_cut"].iloc[0] == 3 / 30
