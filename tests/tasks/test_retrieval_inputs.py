"""What a search is refused, with which words: columns, ids and parameters of the wrong kind."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sktransformer import SemanticSearch, TransformerEmbedder
from sktransformer.tasks._retrieval.words import WordIndex
from sktransformer.testing import tiny_checkpoint


class Worder(BaseEstimator):
    """A reranker that answers in words."""

    def fit(self, X: Any, y: Any = None) -> Worder:
        self.fitted_ = True
        return self

    def predict(self, X: Any) -> Any:
        return np.array(["oui"] * len(X))


TEXTS = ["la facture", "le colis est en retard", "le contrat"]
FRAME = pd.DataFrame({"text": TEXTS, "key": ["f", "c", "r"]})


def search(**parameters: Any) -> SemanticSearch:
    return SemanticSearch(mode="sparse", **parameters)


@pytest.mark.parametrize("names", [["text", "n", "n"], ["text", 1, "1"]])
def test_no_column_is_lost_to_one_of_its_name(names: list[Any]) -> None:
    frame = pd.DataFrame([["la facture", 1, 2]], columns=names)
    message = f"X has several columns of the name {str(names[1])!r}; rename them"
    with pytest.raises(ValueError, match=re.escape(message)):
        search(text_column="text").fit(frame)
    fitted = search(text_column="text").fit(frame.iloc[:, :2])
    with pytest.raises(ValueError, match=re.escape(message)):
        fitted.add(frame)
    assert fitted.n_samples_fit_ == 1


def test_names_and_numbers_are_not_mixed_as_ids() -> None:
    named = search(text_column="text", id_column="key").fit(FRAME).set_params(id_column=None)
    with pytest.raises(ValueError, match="have names for ids, and those to be added would have numbers"):
        named.add(FRAME[:1])
    assert named.ids_.tolist() == ["f", "c", "r"]
    numbered = search(text_column="text").fit(FRAME[["text"]]).set_params(id_column="key")
    with pytest.raises(ValueError, match="have numbers for ids, and those to be added would have names"):
        numbered.add(FRAME[:1])
    assert numbered.ids_.tolist() == [0, 1, 2]
    assert numbered.set_params(id_column=None).add(["un autre"]).ids_.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("parameters", "kind", "message"),
    [
        ({"vectorizer": "bm25"}, TypeError, "vectorizer must be None or a transformer of texts"),
        ({"vectorizer": 3}, TypeError, "vectorizer must be None or a transformer of texts"),
        ({"vectorizer": CountVectorizer}, TypeError, "such as CountVectorizer(), got <class"),
        ({"n_jobs": "auto"}, TypeError, "n_jobs must be an integer, got str ('auto')"),
        ({"n_jobs": 1.5}, TypeError, "n_jobs must be an integer, got float (1.5)"),
        ({"n_jobs": 0}, ValueError, "n_jobs must not be 0; pass None for one thread"),
        ({"n_jobs": 10**30}, ValueError, "n_jobs must be at least -1024 and at most 1024"),
        ({"k1": np.inf}, ValueError, "k1 must be at least 0 and at most 1000000.0, got inf"),
        ({"rrf_constant": np.inf}, ValueError, "rrf_constant must be at least 0 and at most"),
        ({"fusion_weights": (1, np.inf)}, ValueError, "fusion_weights[1] must be at least 0 and at most"),
        ({"fusion_weights": (1e300, 1)}, ValueError, "fusion_weights[0] must be at least 0 and at most"),
        ({"connectivity": 10**30}, ValueError, "connectivity must be at least 2 and at most 65536"),
        ({"expansion_add": 10**400}, ValueError, "expansion_add must be at least 1 and at most 65536"),
        ({"expansion_search": 10**6}, ValueError, "expansion_search must be at least 1 and at most 65536"),
    ],
)
def test_parameters_are_refused_by_name(
    parameters: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=re.escape(message)):
        search(**parameters).fit(TEXTS)


def test_an_array_without_dimensions_is_no_list_of_ids() -> None:
    with pytest.raises(TypeError, match="ids must be a list of ids, got one ndarray"):
        search().fit(TEXTS).remove(np.array(1))


def test_a_reranker_that_answers_in_words_is_refused() -> None:
    with pytest.raises(ValueError, match=r"reranker must give numbers, but its predict gives <U3 \(.*oui"):
        search(reranker=Worder().fit(TEXTS)).fit(TEXTS).search(["facture"])


def test_a_search_sees_all_of_an_addition_or_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What another thread adds or removes between two steps of a search is not seen by half."""
    model = search().fit(TEXTS)
    read = WordIndex.read

    def meanwhile(index: WordIndex, queries: list[str]) -> Any:
        monkeypatch.undo()
        model.add(["une autre facture", "un mot nouveau"]).remove([1])
        return read(index, queries)

    expected = model.search(["facture"])
    monkeypatch.setattr(WordIndex, "read", meanwhile)
    pd.testing.assert_frame_equal(model.search(["facture"]), expected)
    assert model.n_samples_fit_ == 4


def test_an_embedder_that_would_be_tuned_on_the_corpus_is_refused() -> None:
    pairs = [("a", "b"), ("c", "d"), ("e", "f")]
    settings: dict[str, Any] = {"fine_tune": "pairs", "max_epochs": 1, "random_state": 0}
    tuned = TransformerEmbedder(tiny_checkpoint("bert"), **settings).fit(pairs)
    for embedder in (tuned, make_pipeline(FunctionTransformer(), tuned)):
        with pytest.raises(ValueError, match=r"FrozenEstimator\(embedder\)"):
            SemanticSearch(embedder).fit(["b", "d", "f"])
    search = SemanticSearch(FrozenEstimator(tuned)).fit(["b", "d", "f"])
    np.testing.assert_array_equal(search.kneighbors(["d"], 1)[1], [[1]])
