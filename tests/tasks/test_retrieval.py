"""SemanticSearch: neighbours against scikit-learn's, corpora of all kinds, what is added and removed, and errors."""

import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import TruncatedSVD
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline

from sktransformer._engine.errors import MissingExtraError
from sktransformer.datasets import load_french_emails
from sktransformer.tasks.retrieval import SemanticSearch

DOCUMENTS = [
    "Votre facture est dans l'espace client.",
    "Le colis part sous deux jours.",
    "Le contrat se résilie par lettre.",
    "Le remboursement arrive sous dix jours.",
    "La facture de mai sera corrigée.",
]
QUERIES = ["où est ma facture ?", "le colis", "résilier le contrat"]


class Letters(TransformerMixin, BaseEstimator):
    """How often each letter comes; the same whatever it is fitted on."""

    def fit(self, X: Any, y: Any = None) -> "Letters":
        self.fitted_ = True
        return self

    def transform(self, X: Any) -> np.ndarray:
        letters = "abcdefghijklmnopqrstuvwxyzé"
        return np.array([[text.lower().count(one) for one in letters] for text in X], dtype=float)


@pytest.fixture(scope="module")
def bodies() -> list[str]:
    return load_french_emails(as_frame=True).frame["body"].tolist()[:250]


def latent() -> Any:
    return make_pipeline(TfidfVectorizer(), TruncatedSVD(20, random_state=0))


# -- neighbours ----------------------------------------------------------------------------------------------------


def test_dense_neighbours_are_those_of_scikit_learn(bodies: list[str]) -> None:
    search = SemanticSearch(latent()).fit(bodies[:200])
    distances, indices = search.kneighbors(bodies[200:], 7)
    vectors = search.embedder_.transform(bodies)
    expected = NearestNeighbors(n_neighbors=7, metric="cosine", algorithm="brute").fit(vectors[:200])
    theirs, places = expected.kneighbors(vectors[200:])
    np.testing.assert_allclose(distances, theirs, atol=1e-6)
    assert (indices == places).mean() > 0.95  # documents at the same distance apart
    np.testing.assert_array_equal(search.kneighbors(bodies[200:], 7, return_distance=False), indices)


def test_the_approximate_index_finds_the_same_after_changes(bodies: list[str]) -> None:
    exact, near = (
        SemanticSearch(Letters(), index=index).fit(bodies[:120]) for index in ("exact", "approximate")
    )
    for search in (exact, near):
        search.remove(list(range(0, 120, 5))).add(bodies[120:200]).remove([121, 199])
    expected, found = (search.kneighbors(bodies[200:], 5) for search in (exact, near))
    np.testing.assert_allclose(found[0], expected[0], atol=1e-6)
    np.testing.assert_array_equal(found[1], expected[1])
    assert not {0, 5, 121, 199} & set(found[1].ravel().tolist())


def test_a_graph_that_finds_too_few_is_not_relied_on(bodies: list[str], monkeypatch: Any) -> None:
    search = SemanticSearch(Letters(), index="approximate").fit(bodies[:50])
    expected = search.kneighbors(bodies[50:60], 4)
    monkeypatch.setattr(
        type(search.graph_), "search", lambda self, queries, k, **options: np.full((len(queries), k), -1)
    )
    for got, wanted in zip(search.kneighbors(bodies[50:60], 4), expected, strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-6)


def test_tfidf_is_that_of_scikit_learn(bodies: list[str]) -> None:
    vectorizer = TfidfVectorizer(sublinear_tf=True).fit(bodies[:200])
    cosines = (vectorizer.transform(bodies[200:]) @ vectorizer.transform(bodies[:200]).T).toarray()
    for weighting, counter in (("tfidf", CountVectorizer()), ("none", vectorizer)):
        search = SemanticSearch(mode="sparse", weighting=weighting, vectorizer=counter).fit(bodies[:200])
        distances, indices = search.kneighbors(bodies[200:], 3)
        np.testing.assert_allclose(1 - distances, -np.sort(-cosines, axis=1)[:, :3], atol=1e-5)
        np.testing.assert_allclose(
            np.take_along_axis(cosines, indices, axis=1), 1 - distances, rtol=0, atol=1e-5
        )


def test_one_fit_as_hybrid_is_asked_in_all_modes() -> None:
    search = SemanticSearch(Letters(), mode="hybrid", index="approximate").fit(DOCUMENTS)
    for mode in ("dense", "sparse", "hybrid"):
        alone = SemanticSearch(Letters(), mode=mode, index="exact").fit(DOCUMENTS)
        pd.testing.assert_frame_equal(
            search.set_params(mode=mode, index="exact").search(QUERIES), alone.search(QUERIES)
        )
    dense = SemanticSearch(Letters()).fit(DOCUMENTS)
    for parameters in ({"mode": "sparse"}, {"mode": "hybrid"}, {"mode": "dense", "index": "approximate"}):
        with pytest.raises(ValueError, match=r"was set after a fit that did not prepare it; fit again"):
            dense.set_params(**parameters).search(QUERIES)


def test_both_fusions_put_first_what_both_rankings_put_first() -> None:
    for fusion in ("scores", "ranks"):
        search = SemanticSearch(Letters(), mode="hybrid", fusion=fusion).fit(DOCUMENTS)
        distances, indices = search.kneighbors([DOCUMENTS[3]], 5)
        assert indices[0, 0] == 3
        assert (np.diff(distances[0]) >= 0).all()
        assert distances[0, 0] < 0.6 * distances[0, 1]
        only_dense = search.set_params(fusion_weights=(1, 0)).kneighbors(QUERIES, 5)[1]
        by_vectors = SemanticSearch(Letters()).fit(DOCUMENTS).kneighbors(QUERIES, 5)[1]
        np.testing.assert_array_equal(only_dense, by_vectors)


def test_candidates_are_as_many_as_asked_for_at_least() -> None:
    search = SemanticSearch(Letters(), mode="hybrid", n_candidates=1).fit(DOCUMENTS)
    for fusion in ("scores", "ranks"):
        hits = search.set_params(fusion=fusion).search(["zzz", "facture"], n_neighbors=5)
        assert sorted(hits["document"].tolist()) == sorted([*range(5), *range(5)])


def test_duplicates_are_all_found_in_their_order() -> None:
    for mode in ("dense", "sparse", "hybrid"):
        search = SemanticSearch(Letters(), mode=mode).fit([DOCUMENTS[0], DOCUMENTS[1]] * 3)
        assert search.kneighbors([DOCUMENTS[1]], 3)[1].tolist() == [[1, 3, 5]]


def test_no_queries_give_an_empty_result() -> None:
    for mode in ("dense", "sparse", "hybrid"):
        search = SemanticSearch(latent().set_params(truncatedsvd__n_components=2), mode=mode).fit(DOCUMENTS)
        hits = search.search([])
        assert hits.columns.tolist() == ["query", "rank", "score", "document", "text"]
        assert len(hits) == 0
        distances, indices = search.kneighbors([], 2)
        assert distances.shape == indices.shape == (0, 2)


# -- corpora and their ids -----------------------------------------------------------------------------------------


def test_other_columns_are_shown() -> None:
    frame = pd.DataFrame({"n": range(5), "body": DOCUMENTS, "score": list("abcde")}, index=[3, 3, 1, 0, 9])
    frame = frame.assign(key=[f"k{i}" for i in range(5)], document_score=1.5)
    for given in (frame, pl.from_pandas(frame)):
        search = SemanticSearch(mode="sparse", text_column="body", id_column="key").fit(given)
        hits = search.search(["colis", "lettre"], n_neighbors=1)
        columns = [
            "query",
            "rank",
            "score",
            "document",
            "text",
            "n",
            "document_score",
            "document_document_score",
        ]
        assert hits.columns.tolist() == columns
        assert hits["document"].tolist() == ["k1", "k2"]
        assert hits["document_score"].tolist() == ["b", "c"]
        assert hits["text"].tolist() == DOCUMENTS[1:3]
    assert search.search(given.head(1), n_neighbors=1)["document"].tolist() == ["k0"]  # queries by that name
    assert search.search(pd.DataFrame({"q": ["colis"]}))["document"].iloc[0] == "k1"  # or the only column


def test_ids_stay_when_documents_come_and_go() -> None:
    search = SemanticSearch(Letters(), mode="hybrid").fit(DOCUMENTS)
    search.remove([0, 2]).add(["Le chèque est encaissé."]).remove(np.array([5])).add(
        ["Le virement est parti."]
    )
    assert search.ids_.tolist() == [1, 3, 4, 6]
    assert search.n_samples_fit_ == 4
    assert search.search(["le virement"], n_neighbors=1)["document"].tolist() == [6]
    assert search.get_documents([6, 1])["text"].tolist() == ["Le virement est parti.", DOCUMENTS[1]]
    fresh = SemanticSearch(Letters(), mode="hybrid").fit(search.documents_)
    np.testing.assert_allclose(search.kneighbors(QUERIES, 4)[0], fresh.kneighbors(QUERIES, 4)[0], atol=1e-6)


def test_added_and_removed_words_count_as_if_fitted_at_once(bodies: list[str]) -> None:
    search = SemanticSearch(mode="sparse").fit(bodies[:50]).add(bodies[50:90]).remove(list(range(10)))
    once = SemanticSearch(mode="sparse").fit(bodies[10:90])
    distances, indices = search.kneighbors(bodies[90:120], 5)
    expected, places = once.kneighbors(bodies[90:120], 5)
    np.testing.assert_allclose(distances, expected, atol=1e-5)
    np.testing.assert_array_equal(indices, places + 10)


def test_named_documents_come_and_go() -> None:
    frame = pd.DataFrame(
        {"text": DOCUMENTS, "key": list("abcde"), "day": pd.date_range("2026-01-01", periods=5)}
    )
    search = SemanticSearch(mode="sparse", text_column="text", id_column="key").fit(frame.iloc[:3])
    search.remove(["a"]).add(frame.iloc[3:])
    assert search.ids_.tolist() == list("bcde")
    assert search.get_documents(["e"])["day"].iloc[0] == pd.Timestamp("2026-01-05")
    with pytest.raises(ValueError, match=r"X holds 1 id\(s\) that are there already: 'b'"):
        search.add(frame.iloc[1:2])
    with pytest.raises(
        ValueError, match=r"there is no document 'a' among the 4; it was removed, or never added"
    ):
        search.get_documents(["a"])
    with pytest.raises(ValueError, match=r"X lacks the column\(s\) \['day'\] of the corpus"):
        search.add(pd.DataFrame({"text": ["x"], "key": ["f"]}))
    assert search.ids_.tolist() == list("bcde")


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        ([2], ValueError, r"ids\[0\]: document 2 was removed; 4 of 5 documents are left\."),
        ([1, 7], ValueError, r"ids\[1\]: there is no document 7; documents are numbered from 0 to 4"),
        ([-1], ValueError, "there is no document -1"),
        (["1"], TypeError, r"ids\[0\] must be the number of a document \(an integer\), got str"),
        ([True], TypeError, "got bool"),
        (1, TypeError, r"ids must be a list of ids, got one int; pass \[1\]"),
        ("abc", TypeError, r"ids must be a list of ids, got one str; pass \['abc'\]"),
    ],
)
def test_documents_that_are_not_there(ids: Any, error: type, message: str) -> None:
    search = SemanticSearch(Letters(), index="approximate").fit(DOCUMENTS).remove([2])
    for ask in (search.remove, search.get_documents):
        with pytest.raises(error, match=message):
            ask(ids)
    assert search.n_samples_fit_ == 4
    with pytest.raises(ValueError, match="no document would be left; fit on another corpus"):
        search.remove([0, 1, 3, 4])
    assert search.add([]).remove([]).n_samples_fit_ == 4


@pytest.mark.parametrize(
    ("frame", "parameters", "message"),
    [
        ({"a": ["x"], "b": ["y"]}, {}, r"X has the columns \['a', 'b'\]; name the one that holds the texts"),
        ({"body": ["x"], "b": ["y"]}, {"text_column": "bodi"}, r"no column 'bodi'.* Did you mean 'body'\?"),
        ({"a": ["x", None], "b": [1, 2]}, {"text_column": "a"}, r"X\['a'\] has 1 missing text\(s\).* row\(s\) 1"),
        ({"a": ["x", "y"], "b": [1, 1]}, {"id_column": "b"}, "names two documents 1, in rows 0 and 1"),
        ({"a": ["x", "y"], "b": [1, None]}, {"id_column": "b"}, "must hold an id a document; row 1 holds nan"),
        ({"a": []}, {}, r"Found array with 0 sample\(s\) while a minimum of 1 is required by SemanticSearch"),
        ([("a", "b")], {}, "X must hold one text a row, got pairs or a table"),
        (["a"], {"id_column": "b"}, "id_column='b' is looked for in a frame, and X is a list"),
    ],
)  # fmt: skip
def test_corpora_that_make_no_sense(frame: Any, parameters: dict[str, Any], message: str) -> None:
    given = pd.DataFrame(frame) if isinstance(frame, dict) else frame
    with pytest.raises(ValueError, match=message):
        SemanticSearch(mode="sparse", **parameters).fit(given)


# -- parameters and parts that fail --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"mode": "hybird"}, ValueError, "mode='hybird' is not known; .* Did you mean 'hybrid'"),
        ({"index": "hnsw"}, ValueError, "index='hnsw' is not known"),
        ({"weighting": "bm52"}, ValueError, "Did you mean 'bm25'"),
        ({"fusion": "rrf"}, ValueError, "fusion='rrf' is not known"),
        ({"fusion_weights": (1,)}, TypeError, "fusion_weights must be None or two numbers, dense and sparse"),
        ({"fusion_weights": (1, -1)}, ValueError, r"fusion_weights\[1\] must be at least 0 and .*, got -1"),
        ({"fusion_weights": (0, 0)}, ValueError, "fusion_weights are both zero"),
        ({"b": 1.5}, ValueError, "b must be at least 0 and at most 1, got 1.5"),
        ({"k1": "much"}, TypeError, "k1 must be a number"),
        ({"n_neighbors": 0}, ValueError, "n_neighbors must be at least 1, got 0"),
        ({"prompts": "query: "}, TypeError, 'prompts must be "auto", None or a dict, got str'),
        ({"prompts": {"query": "q"}}, ValueError, r"prompts must have the keys \('query', 'document'\)"),
        ({"prompts": {"query": 1, "document": "d"}}, TypeError, r"prompts\['query'\] must be None or str, got int"),
        ({"embedder": "bundled:MiniLM"}, TypeError, r"embedder must be a transformer .* name goes into TransformerEmb"),
        ({"embedder": Letters}, TypeError, "embedder must be a transformer of texts"),
        ({"missing": "drop"}, ValueError, "missing='drop' is not known"),
    ],
)  # fmt: skip
def test_bad_parameters(parameters: dict[str, Any], error: type, message: str) -> None:
    search = SemanticSearch(**{"embedder": Letters(), **parameters})
    with pytest.raises(error, match=message):
        search.fit(DOCUMENTS)
    assert not hasattr(search, "documents_")


class Faulty(Letters):
    """Gives what a test asks for in place of vectors."""

    def __init__(self, what: str = "nan") -> None:
        self.what = what

    def transform(self, X: Any) -> Any:
        vectors = super().transform(X)
        if self.what == "nan":
            vectors[[i for i, text in enumerate(X) if "colis" in text], 0] = np.nan
        return vectors[:-1] if self.what == "short" else vectors


@pytest.mark.parametrize(
    ("embedder", "message"),
    [
        (Faulty(), r"the embedder gives NaN or infinity for 1 document\(s\), row\(s\) 1 of X"),
        (Faulty("short"), r"the embedder must give 5 rows of numbers, one a document, got shape \(4, 27\)"),
        (HashingVectorizer(n_features=8), "the embedder gives a sparse matrix of 8 columns; put TruncatedSVD"),
    ],
)  # fmt: skip
def test_embedders_that_give_no_vectors(embedder: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SemanticSearch(embedder).fit(DOCUMENTS)


def test_a_failed_addition_leaves_everything(bodies: list[str]) -> None:
    search = SemanticSearch(Faulty(), mode="hybrid", index="approximate").fit(DOCUMENTS[:1])
    before = dict(vars(search))
    with pytest.raises(ValueError, match=r"row\(s\) 0 of X"):
        search.add(["un colis"])
    assert vars(search) == before
    with pytest.raises(ValueError, match=r"for 1 query\(s\), row\(s\) 1 of X"):
        search.search(["facture", "colis"])


def test_without_usearch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "usearch.index", None)
    with pytest.raises(MissingExtraError, match=r'pip install "sktransformer-text\[search\]"'):
        SemanticSearch(Faulty(), index="approximate").fit(DOCUMENTS)  # whose vectors would raise, later


def test_without_a_fit_nothing_is_found() -> None:
    search = SemanticSearch(Letters())
    for ask in (search.search, search.kneighbors, search.add, search.remove, search.get_documents):
        with pytest.raises(NotFittedError):
            ask(["a"])


@pytest.mark.parametrize(
    ("vectorizer", "message"),
    [
        (CountVectorizer(token_pattern="zz+"), r"the vectorizer finds no word in the 5 document\(s\)"),
        (HashingVectorizer(n_features=16), "vectorizer gives negative counts, NaN or infinity"),
        (Letters(), "vectorizer must give a sparse matrix of 5 rows, one a text, got ndarray"),
    ],
)
def test_vectorizers_that_count_nothing(vectorizer: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SemanticSearch(mode="sparse", vectorizer=vectorizer).fit(DOCUMENTS)


def test_a_second_fit_forgets_the_first() -> None:
    search = SemanticSearch(Letters(), mode="hybrid").fit(DOCUMENTS)
    search.set_params(mode="dense").fit(DOCUMENTS[:2])
    assert not hasattr(search, "word_index_")
    assert search.ids_.tolist() == [0, 1]
