"""A second look by an estimator on pairs, and searches that are stored."""

import io
import pickle
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.decomposition import TruncatedSVD
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline

from sktransformer._engine.errors import PersistenceError
from sktransformer.tasks.classification import TransformerClassifier
from sktransformer.tasks.retrieval import SemanticSearch
from sktransformer.testing.checkpoints import tiny_checkpoint

DOCUMENTS = [
    "facture de mai",
    "facture de juin et de juillet",
    "colis en retard",
    "facture",
    "lettre de résiliation",
]


class Longest(BaseEstimator):
    """Prefers long documents; says so through the method that it is asked to have."""

    def __init__(self, method: str = "predict", scale: float = 1.0) -> None:
        self.method, self.scale = method, scale

    def fit(self, X: Any = None, y: Any = None) -> "Longest":
        self.pairs_: list[tuple[str, str]] = []
        return self

    def __getattr__(self, name: str) -> Any:
        if name == self.__dict__.get("method"):
            return self._values
        raise AttributeError(name)

    def _values(self, pairs: list[tuple[str, str]]) -> np.ndarray:
        self.pairs_ += pairs
        long = np.array([len(text) / 40 for _, text in pairs]) * self.scale
        return np.stack([1 - long, long], axis=1) if self.method == "predict_proba" else long


@pytest.mark.parametrize("method", ["predict_proba", "decision_function", "predict"])
def test_the_reranker_has_the_last_word(method: str) -> None:
    reranker = Longest(method).fit()
    search = SemanticSearch(mode="sparse", reranker=reranker, n_rerank=3).fit(DOCUMENTS)
    hits = search.search(["facture"], n_neighbors=2)
    assert hits["document"].tolist() == [1, 0]
    np.testing.assert_allclose(hits["score"], [len(DOCUMENTS[1]) / 40, len(DOCUMENTS[0]) / 40], rtol=1e-6)
    assert sorted(reranker.pairs_) == sorted(("facture", DOCUMENTS[i]) for i in (0, 1, 3))
    distances, _ = search.kneighbors(["facture"], 2)
    np.testing.assert_allclose(distances[0], (method == "predict_proba") - hits["score"], rtol=1e-6)


def test_all_that_are_asked_for_are_reranked() -> None:
    search = SemanticSearch(mode="sparse", reranker=Longest().fit(), n_rerank=1).fit(DOCUMENTS)
    assert search.search(["facture"], n_neighbors=5)["document"].tolist() == [1, 4, 2, 0, 3]
    assert search.search([]).empty


@pytest.mark.filterwarnings("ignore:training collapsed")  # what it has learned does not matter here
def test_a_cross_encoder_reranks() -> None:
    pairs = [(query, document) for query in ("facture", "colis") for document in DOCUMENTS]
    relevant = [int(query in document) for query, document in pairs]
    encoder = TransformerClassifier(tiny_checkpoint("bert"), max_epochs=1, random_state=0).fit(
        pairs, relevant
    )
    search = SemanticSearch(mode="sparse", reranker=encoder).fit(DOCUMENTS)
    hits = search.search(["colis"], n_neighbors=5)
    expected = encoder.predict_proba([("colis", document) for document in DOCUMENTS])[:, 1]
    np.testing.assert_allclose(hits["score"], np.sort(expected)[::-1], atol=1e-6)
    np.testing.assert_allclose(expected[hits["document"]], hits["score"], atol=1e-6)


def test_a_reranker_must_be_fitted_and_stays_so_when_frozen() -> None:
    search = SemanticSearch(mode="sparse", reranker=Longest().fit()).fit(DOCUMENTS)
    with pytest.raises(NotFittedError, match=r"reranker, a Longest, is not fitted; .*FrozenEstimator where"):
        clone(search).fit(DOCUMENTS)
    frozen = clone(search.set_params(reranker=FrozenEstimator(Longest().fit())))
    assert frozen.fit(DOCUMENTS).search(["facture"])["document"].iloc[0] == 1


@pytest.mark.parametrize(
    ("reranker", "error", "message"),
    [
        (TfidfVectorizer(), TypeError, r"reranker must be a fitted estimator with one of \('predict_proba',"),
        (Longest, TypeError, "reranker must be a fitted estimator"),
        (Longest(scale=np.nan).fit(), ValueError, "reranker gives NaN or infinity for the query 'colis'"),
    ],
)
def test_bad_rerankers(reranker: Any, error: type, message: str) -> None:
    search = SemanticSearch(mode="sparse", reranker=reranker)
    with pytest.raises(error, match=message):
        search.fit(DOCUMENTS).search(["colis"])


# -- a state that travels ------------------------------------------------------------------------------------------


def stored() -> SemanticSearch:
    latent = make_pipeline(TfidfVectorizer(), TruncatedSVD(3, random_state=0))
    frame = pd.DataFrame({"text": DOCUMENTS, "n": range(5)})
    search = SemanticSearch(latent, mode="hybrid", index="approximate", text_column="text")
    return search.fit(frame).remove([2]).add(frame.iloc[[2]])


def test_a_stored_search_goes_on() -> None:
    search = stored()
    file = io.BytesIO()
    joblib.dump(search, file)
    file.seek(0)
    again = joblib.load(file)
    pd.testing.assert_frame_equal(again.search(DOCUMENTS), search.search(DOCUMENTS))
    frame = pd.DataFrame({"text": ["virement reçu"], "n": [9]})
    for one in (again, search):
        one.add(frame).remove([0])
    pd.testing.assert_frame_equal(again.search(DOCUMENTS), search.search(DOCUMENTS))
    assert len(again.graph_) == 5


def test_a_newer_format_is_refused() -> None:
    state = stored().__getstate__()
    with pytest.raises(PersistenceError, match="stored in format 2, this version reads up to 1"):
        SemanticSearch().__setstate__({**state, "format_": 2})


def test_a_graph_that_cannot_be_read_says_what_wrote_it() -> None:
    graph = stored().graph_
    state = graph.__getstate__()
    with pytest.raises(PersistenceError, match=rf"written by usearch {state['usearch']}, .* or fit again"):
        pickle.loads(pickle.dumps(graph)).__setstate__({**state, "graph": state["graph"][:200]})
