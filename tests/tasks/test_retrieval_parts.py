"""The parts of a search against what is worked out by hand: tiles, weights of words, fusion, roles."""

import math
from typing import Any

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sktransformer.tasks._retrieval import topk
from sktransformer.tasks._retrieval.fusion import pooled, reciprocal_rank_fusion, score_fusion
from sktransformer.tasks._retrieval.roles import embed, resolve_prompts
from sktransformer.tasks._retrieval.words import WordIndex, bm25_weights, default_vectorizer
from sktransformer.tasks.embedding import TransformerEmbedder
from sktransformer.testing.checkpoints import tiny_checkpoint

# -- the best k ----------------------------------------------------------------------------------------------------


def by_sorting(scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(scores, order, axis=1), order


@pytest.mark.parametrize("megabytes", [1e-5, 1e-3, 1e-2, 64])
@pytest.mark.parametrize("k", [1, 7, 120])
@pytest.mark.parametrize("distinct", [3, 10_000])
def test_the_best_are_those_of_sorting_all(megabytes: float, k: int, distinct: int) -> None:
    rng = np.random.default_rng(0)
    scores = rng.integers(distinct, size=(17, 120)).astype(
        np.float32
    )  # with three values, nearly all are ties
    with config_context(working_memory=megabytes):
        values, rows = topk.top_k(17, 120, k, lambda some, others: scores[some, others])
    expected, places = by_sorting(scores, k)
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_array_equal(rows, places)


@pytest.mark.parametrize("whole", [True, False])
def test_no_tile_is_larger_than_allowed(whole: bool) -> None:
    sizes = []

    def score(some: slice, others: slice) -> np.ndarray:
        shape = some.stop - some.start, others.stop - others.start
        sizes.append(shape[0] * shape[1])
        return np.ones(shape, dtype=np.float32)

    with config_context(working_memory=0.25):
        topk.top_k(500, 4000, 5, score, whole=whole)
    assert max(sizes) * topk.CELL_BYTES <= 0.25 * 2**20
    assert sum(sizes) == 500 * 4000
    assert (
        topk.tile_cells() * topk.CELL_BYTES == topk.TILE_BYTES
    )  # below scikit-learn's default of a gigabyte


def test_no_queries_have_no_neighbours() -> None:
    scores, rows = topk.dense_top_k(np.empty((0, 3), np.float32), np.ones((5, 3), np.float32), 2)
    assert scores.shape == rows.shape == (0, 2)


# -- words ---------------------------------------------------------------------------------------------------------


def test_bm25_by_hand() -> None:
    texts = ["chat chat chien", "chien", "oiseau bleu"]
    counter = CountVectorizer()
    weights, idf = bm25_weights(counter.fit_transform(texts).tocsr(), k1=1.2, b=0.75)
    column = counter.vocabulary_["chat"]
    expected = math.log(1 + (3 - 1 + 0.5) / (1 + 0.5))
    assert idf[column] == pytest.approx(expected, rel=1e-6)
    length = 1.2 * (1 - 0.75 + 0.75 * 3 / 2)  # three words where the mean is two
    assert weights[0, column] == pytest.approx(expected * 2 / (length + 2), rel=1e-6)
    assert weights[1, column] == 0


def test_a_word_in_every_document_still_counts_for_them() -> None:
    _, idf = bm25_weights(CountVectorizer().fit_transform(["le chat", "le chien"]).tocsr(), k1=1.2, b=0.75)
    assert (idf > 0).all()


def test_words_have_no_case_no_accent_and_no_elided_letter() -> None:
    assert default_vectorizer().build_analyzer()("L'Été, d'où l'EAU") == ["ete", "ou", "eau"]


def test_scores_at_are_those_of_the_search() -> None:
    texts = ["chat noir", "chien noir", "oiseau bleu", "chat et chien"]
    words = WordIndex(CountVectorizer(), weighting="bm25", k1=1.2, b=0.75).fit(texts)
    queries = words.read(["chat chien", "bleu"])
    scores, rows = words.search(queries, 4)
    np.testing.assert_array_equal(words.scores_at(queries, rows), scores)
    assert rows[:, 0].tolist() == [3, 2]


def test_shares_are_of_what_the_query_could_reach() -> None:
    words = WordIndex(CountVectorizer(), weighting="bm25", k1=1.2, b=0.75).fit(["chat noir", "chien noir"])
    queries = words.read(["chat", "chat loup", "loup"])
    scores, _ = words.search(queries, 1)
    rare, rarest = math.log(1 + 1.5 / 1.5), math.log(1 + 2.5 / 0.5)
    expected = [
        1 / (1 + 1.2),
        rare / (rare + rarest) / (1 + 1.2),
        0,
    ]  # of "chat" once, in a document of mean length
    np.testing.assert_allclose(words.shares(queries, scores)[:, 0], expected, rtol=1e-6)
    cosines = WordIndex(CountVectorizer(), weighting="tfidf", k1=1.2, b=0.75).fit(["chat noir", "chien noir"])
    assert cosines.shares(queries, scores) is scores


# -- fusion --------------------------------------------------------------------------------------------------------


def test_reciprocal_ranks_by_hand() -> None:
    dense, sparse = np.array([[2, 0, 1]]), np.array([[1, -1, -1]])
    scores, rows = reciprocal_rank_fusion((dense, sparse), (1.0, 0.5), 60, 3, 3)
    assert rows.tolist() == [[1, 2, 0]]
    np.testing.assert_allclose(scores, [[1 / 63 + 0.5 / 61, 1 / 61, 1 / 62]], rtol=1e-6)


def test_scores_are_averaged_over_their_range() -> None:
    pool = pooled((np.array([[2, 0]]), np.array([[0, -1]])))
    assert sorted(pool[0].tolist()) == [-1, -1, 0, 2]
    cosines = np.where(pool == 2, 0.9, 0.7).astype(np.float32)
    shares = np.where(pool == 0, 0.5, 0.1).astype(np.float32)
    scores, rows = score_fusion(cosines, shares, pool, (3, 1), 2)
    assert rows.tolist() == [[2, 0]]
    np.testing.assert_allclose(scores, [[0.75 + 0.25 * 0.1, 0.25 * 0.5]], rtol=1e-6)


def test_scores_that_are_all_alike() -> None:
    pool = np.array([[0, 1]])
    scores, rows = score_fusion(np.ones((1, 2), np.float32), np.zeros((1, 2), np.float32), pool, (1, 2), 2)
    assert rows.tolist() == [[0, 1]]  # in their order
    np.testing.assert_allclose(scores, 1 / 3, rtol=1e-6)


# -- roles ---------------------------------------------------------------------------------------------------------


class Lengths(TransformerMixin, BaseEstimator):
    """The vector of a text is its length and a one; what was read is kept."""

    def __init__(self, prompt: str | None = None) -> None:
        self.prompt = prompt

    def fit(self, X: Any, y: Any = None) -> "Lengths":
        self.seen_: list[tuple[Any, str]] = []
        return self

    def transform(self, X: Any) -> np.ndarray:
        self.seen_ += [(self.prompt, text) for text in X]
        return np.array([[len(text), 1.0] for text in X])


class Plain(Lengths):
    def __init__(self) -> None:
        super().__init__()

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {}


class Roles(Lengths):
    def __init__(self, prompts: Any = None) -> None:
        self.prompts = prompts

    def transform(self, X: Any, role: str = "own") -> np.ndarray:
        self.seen_ += [((role, self.prompts[role]) if self.prompts else role, text) for text in X]
        return np.ones((len(X), 2))


PROMPTS: Any = {"query": "q: ", "document": None}


def test_an_embedder_with_a_prompt_is_borrowed_with_another() -> None:
    embedder = Lengths(prompt="own ").fit([])
    embed(embedder, ["a"], "query", PROMPTS)
    embed(embedder, ["b"], "document", PROMPTS)
    embed(embedder, ["c"], "query", None)
    assert embedder.seen_ == [("q: ", "a"), (None, "b"), ("own ", "c")]
    assert embedder.prompt == "own "


def test_an_embedder_without_one_gets_texts_that_begin_with_it() -> None:
    embedder = Plain().fit([])
    for role in ("query", "document"):
        embed(embedder, ["a"], role, PROMPTS)
    embed(embedder, ["q: b"], "query", PROMPTS)
    assert [text for _, text in embedder.seen_] == ["q: a", "a", "q: b"]


def test_an_embedder_that_knows_roles_is_told_them() -> None:
    embedder = Roles().fit([])
    assert resolve_prompts("auto", embedder) == "auto"
    embed(embedder, ["a"], "query", "auto")
    embed(FrozenEstimator(embedder), ["b"], "document", "auto")
    embed(embedder, ["c"], "document", None)
    assert embedder.seen_ == [("query", "a"), ("document", "b"), ("own", "c")]
    assert embedder.prompts is None


def test_an_embedder_that_knows_roles_gets_other_prompts_for_them() -> None:
    embedder = Roles().fit([])
    embed(embedder, ["a"], "query", PROMPTS)
    assert embedder.seen_ == [(("query", "q: "), "a")]
    assert embedder.prompts is None


def test_the_prompt_goes_to_the_last_step_of_a_pipeline() -> None:
    last = Lengths().fit([])
    lower = FunctionTransformer(lambda texts: [text.lower() for text in texts])
    vectors = embed(make_pipeline(lower, FrozenEstimator(last)), ["AB"], "query", PROMPTS)
    assert last.seen_ == [("q: ", "ab")]
    np.testing.assert_allclose(vectors, [[2 / 5**0.5, 1 / 5**0.5]], rtol=1e-6)


@pytest.mark.parametrize("embedder", [Plain(), Lengths(), make_pipeline("passthrough", Plain())])
def test_an_embedder_without_roles_is_left_as_it_is(embedder: Any) -> None:
    assert resolve_prompts("auto", embedder) is None
    assert resolve_prompts(None, embedder) is None
    assert resolve_prompts(PROMPTS, embedder) == PROMPTS


def test_borrowed_weights_are_the_same_weights() -> None:
    embedder = TransformerEmbedder(tiny_checkpoint("camembert")).fit(["a"])
    plain, prompted = (
        embed(embedder, ["le colis"], role, {"query": "le ", "document": "q "})
        for role in ("query", "document")
    )
    np.testing.assert_allclose(plain, embedder.transform(["le colis"]), atol=1e-6)
    np.testing.assert_allclose(prompted, embedder.transform(["q le colis"]), atol=1e-6)
