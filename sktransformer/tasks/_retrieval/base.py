"""What a search knows and how it ranks; `SemanticSearch` puts the public methods on top."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..._engine.errors import PersistenceError
from ..._engine.validation import check_choice, check_number
from .approximate import ApproximateIndex, check_n_jobs, require_usearch
from .corpus import Corpus, check_same_kind, named, read_queries, rows_of
from .fusion import largest_fused, pooled, reciprocal_rank_fusion, score_fusion
from .neighbours import cosines_at, dense_neighbours
from .rerank import check_reranker, reranked
from .roles import Role, check_prompts, embed, resolve_prompts
from .topk import Rows, Scores
from .words import WEIGHTINGS, WordIndex, check_vectorizer, default_vectorizer

MODES = ("dense", "sparse", "hybrid")
INDEXES = ("exact", "approximate")
FUSIONS = {  # with their weights, dense and sparse; those of scores are chosen in benchmarks/retrieval.py
    "scores": (1.0, 2.0),
    "ranks": (1.0, 1.0),
}
FORMAT = 1
HIGHEST = 1e6  # of numbers that scores, which are in float32, are multiplied with or divided by
LARGEST = 2**16  # of the graph's parameters: a graph reserves memory for them
FIRST = ("query", "rank", "score", "document", "text")  # columns of what `search` returns


@dataclass(frozen=True)
class Ranking:
    """Scores, distances and rows of the best documents of each query, best first."""

    scores: Scores
    distances: Scores
    rows: Rows


class BaseSearch(BaseEstimator, ABC):
    """The inner half of `SemanticSearch`."""

    embedder: Any
    mode: str
    index: str
    prompts: Any
    vectorizer: Any
    weighting: str
    k1: float
    b: float
    fusion: str
    n_candidates: int
    rrf_constant: float
    fusion_weights: Any
    reranker: Any
    n_rerank: int
    n_neighbors: int
    text_column: Any
    connectivity: int
    expansion_add: int
    expansion_search: int
    missing: Any
    n_jobs: int | None

    # -- what is passed ------------------------------------------------------------------------------------------------

    def _validate(self) -> None:
        check_choice("mode", self.mode, MODES)
        check_choice("index", self.index, INDEXES)
        check_choice("fusion", self.fusion, tuple(FUSIONS))
        check_choice("weighting", self.weighting, WEIGHTINGS)
        check_choice("missing", self.missing, ("error", "empty"))
        check_prompts(self.prompts)
        for name in ("n_candidates", "n_rerank", "n_neighbors"):
            check_number(name, getattr(self, name), low=1, integer=True)
        for name, low in (("connectivity", 2), ("expansion_add", 1), ("expansion_search", 1)):
            check_number(name, getattr(self, name), low=low, high=LARGEST, integer=True)
        check_number("k1", self.k1, low=0, high=HIGHEST)
        check_number("b", self.b, low=0, high=1)
        check_number("rrf_constant", self.rrf_constant, low=0, high=HIGHEST)
        self._validate_weights()
        check_reranker(self.reranker)
        check_vectorizer(self.vectorizer)
        check_n_jobs(self.n_jobs)

    def _validate_weights(self) -> None:
        weights = self.fusion_weights
        if weights is None:
            return
        if not isinstance(weights, Sequence) or isinstance(weights, str) or len(weights) != 2:
            raise TypeError(
                f"fusion_weights must be None or two numbers, dense and sparse, got {weights!r:.60}."
            )
        for i, weight in enumerate(weights):
            check_number(f"fusion_weights[{i}]", weight, low=0, high=HIGHEST)
        if not any(weights):
            raise ValueError("fusion_weights are both zero; give at least one ranking a positive weight.")

    def _shadow(self, *, fitted: bool) -> Self:
        """Return a second search, to be written on and taken over in one assignment."""
        shadow = object.__new__(type(self))
        kept = {name: value for name, value in vars(self).items() if fitted or not name.endswith("_")}
        shadow.__dict__.update(kept)
        return shadow

    def _asked(self, X: Any, n_neighbors: int | None) -> tuple[list[str], int]:
        check_is_fitted(self)
        self._check_ready()
        k = self.n_neighbors if n_neighbors is None else n_neighbors
        check_number("n_neighbors", k, low=1, integer=True)
        return read_queries(X, text_column=self.text_column, missing=self.missing), int(k)

    def _rows(self, ids: Any) -> npt.NDArray[np.int64]:
        check_is_fitted(self)
        return rows_of(ids, self.ids_, self.n_seen_ if self.ids_.dtype.kind == "i" else None)

    # -- what is learned -----------------------------------------------------------------------------------------------

    def _record_corpus(self, corpus: Corpus) -> None:
        n = len(corpus)
        self.documents_, self.columns_ = corpus.texts, corpus.columns
        self.positions_ = np.arange(n)
        self.ids_ = self.positions_ if corpus.ids is None else _objects(corpus.ids)
        self.n_seen_ = self.n_samples_fit_ = n

    def _fit_vectors(self) -> None:
        if self.index == "approximate":
            require_usearch()
        self.embedder_ = self._new_embedder().fit(self.documents_, None)  # FrozenEstimator asks for a y
        self.prompts_ = resolve_prompts(self.prompts, self.embedder_)
        self.vectors_ = self._embed(self.documents_, "document")
        if self.index == "approximate":
            width = self.vectors_.shape[1]
            self.graph_ = ApproximateIndex(
                width, connectivity=self.connectivity, expansion_add=self.expansion_add
            )
            self.graph_.add(self.positions_, self.vectors_, self.n_jobs)

    def _fit_words(self) -> None:
        vectorizer = default_vectorizer() if self.vectorizer is None else self.vectorizer
        words = WordIndex(vectorizer, weighting=self.weighting, k1=self.k1, b=self.b)
        self.word_index_ = words.fit(self.documents_)

    def _append(self, corpus: Corpus) -> None:
        """Put documents behind those that are there."""
        check_same_kind(corpus.ids, self.ids_)
        new = self.n_seen_ + np.arange(len(corpus))
        self.columns_ = _joined(self.columns_, corpus.columns)
        self.documents_ = self.documents_ + corpus.texts
        self.ids_ = np.concatenate([self.ids_, new if corpus.ids is None else _objects(corpus.ids)])
        vectors = self._embed(corpus.texts, "document") if hasattr(self, "vectors_") else None
        if hasattr(self, "word_index_"):
            self.word_index_ = self.word_index_.again(self.documents_)
        if vectors is not None:
            self.vectors_ = np.concatenate([self.vectors_, vectors])
            if hasattr(self, "graph_"):  # the one thing that is changed in place, so it comes last
                self.graph_.add(new, vectors, self.n_jobs)
        self.positions_ = np.concatenate([self.positions_, new])
        self.n_seen_ += len(corpus)
        self.n_samples_fit_ += len(corpus)

    def _keep(self, rows: npt.NDArray[np.int64]) -> None:
        """Leave out all documents but those of `rows`."""
        gone = np.setdiff1d(self.positions_, self.positions_[rows])
        self.documents_ = [self.documents_[row] for row in rows]
        self.ids_, self.positions_ = self.ids_[rows], self.positions_[rows]
        if self.columns_ is not None:
            self.columns_ = self.columns_.iloc[rows].reset_index(drop=True)
        self.n_samples_fit_ = len(rows)
        if hasattr(self, "word_index_"):
            self.word_index_ = self.word_index_.kept(rows)
        if hasattr(self, "vectors_"):
            self.vectors_ = self.vectors_[rows]
            if hasattr(self, "graph_"):
                self.graph_.remove(gone, self.n_jobs)

    def _new_embedder(self) -> Any:
        if self.embedder is None:
            return self._default_embedder()
        if isinstance(self.embedder, type) or not hasattr(self.embedder, "transform"):
            raise TypeError(
                f"embedder must be a transformer of texts (fit, transform), got {self.embedder!r:.60}; "
                f"a model's name goes into TransformerEmbedder(name)."
            )
        last = self.embedder.steps[-1][1] if isinstance(self.embedder, Pipeline) else self.embedder
        if not isinstance(last, FrozenEstimator) and getattr(last, "fine_tune", None) is not None:
            raise ValueError(
                f"embedder is fitted anew on the corpus, which holds nothing for fine_tune={last.fine_tune!r}; fit it "
                f"first, and pass sklearn.frozen.FrozenEstimator(embedder)."
            )
        return clone(self.embedder)

    @abstractmethod
    def _default_embedder(self) -> Any:
        """Return the embedder of None: an estimator of another file, which this one may not import."""

    def _embed(self, texts: list[str], role: Role) -> npt.NDArray[np.float32]:
        return embed(self.embedder_, texts, role, self.prompts_)

    # -- ranking -------------------------------------------------------------------------------------------------------

    def _ranked(self, queries: list[str], k: int) -> Ranking:
        """Rank the best `k` documents of each query; `k` is at most the number of documents."""
        if self.reranker is None:
            return self._first_look(queries, k)
        first = self._first_look(queries, min(self.n_samples_fit_, max(k, self.n_rerank)))
        scores, rows, probable = reranked(self.reranker, queries, self.documents_, first.rows, k)
        return Ranking(scores, 1 - scores if probable else -scores, rows)

    def _first_look(self, queries: list[str], k: int) -> Ranking:
        if self.mode == "dense":
            scores, rows = self._dense(self._query_vectors(queries), k)
            return Ranking(scores, np.maximum(1 - scores, 0), rows)
        words = self.word_index_.read(queries)
        if self.mode == "sparse":
            scores, rows = self.word_index_.search(words, k)
            return Ranking(scores, np.maximum(1 - self.word_index_.shares(words, scores), 0), rows)
        return self._fused(self._query_vectors(queries), words, k)

    def _fused(self, vectors: Scores, words: Any, k: int) -> Ranking:
        n = self.n_samples_fit_
        wide = min(n, max(k, self.n_candidates))
        _, near = self._dense(vectors, wide)
        shared, alike = self.word_index_.search(words, wide)
        alike = np.where(shared > 0, alike, -1)  # without a word in common there is no rank
        weights = self._weights()
        if self.fusion == "ranks":
            scores, rows = reciprocal_rank_fusion((near, alike), weights, self.rrf_constant, n, k)
            share = scores / np.float32(largest_fused(weights, self.rrf_constant))
            return Ranking(scores, np.maximum(1 - share, 0), rows)
        pool = pooled((near, alike))
        shares = self.word_index_.shares(words, self.word_index_.scores_at(words, pool))
        scores, rows = score_fusion(cosines_at(vectors, self.vectors_, pool), shares, pool, weights, k)
        return Ranking(scores, np.maximum(1 - scores, 0), rows)

    def _weights(self) -> tuple[float, float]:
        return FUSIONS[self.fusion] if self.fusion_weights is None else self.fusion_weights

    def _query_vectors(self, queries: list[str]) -> npt.NDArray[np.float32]:
        if queries:
            return self._embed(queries, "query")
        return self.vectors_[:0]  # transformers of scikit-learn may refuse an empty list

    def _dense(self, queries: Scores, k: int) -> tuple[Scores, Rows]:
        return dense_neighbours(
            queries,
            self.vectors_,
            k,
            graph=self.graph_ if self.index == "approximate" else None,
            positions=self.positions_,
            expansion_search=self.expansion_search,
            n_jobs=self.n_jobs,
        )

    def _check_ready(self) -> None:
        """Raise ValueError where parameters were changed to something that the fit did not prepare."""
        self._validate()
        needed = {"vectors_": self.mode != "sparse", "word_index_": self.mode != "dense"}
        needed["graph_"] = self.mode != "sparse" and self.index == "approximate"
        if any(need and not hasattr(self, name) for name, need in needed.items()):
            raise ValueError(
                f"mode={self.mode!r} with index={self.index!r} was set after a fit that did not prepare it; fit again "
                f'(a fit with mode="hybrid" and index="approximate" prepares all of them).'
            )

    # -- what is shown -------------------------------------------------------------------------------------------------

    def _shown(self, rows: npt.NDArray[np.int64], before: dict[str, Any]) -> pd.DataFrame:
        """Return a frame with some columns, then id and text of the documents, then their own columns."""
        texts = [self.documents_[row] for row in rows]
        shown = {**before, "document": self.ids_[rows].tolist(), "text": pd.Series(texts, dtype=object)}
        if self.columns_ is not None:
            taken = set(FIRST)
            for name in self.columns_:
                shown_as = named(str(name), taken)
                taken.add(shown_as)
                shown[shown_as] = self.columns_[name].iloc[rows].reset_index(drop=True)
        return pd.DataFrame(shown)

    # -- a state that travels ------------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        if "documents_" in state:
            state["format_"] = FORMAT
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        written = state.pop("format_", FORMAT)
        if written > FORMAT:
            raise PersistenceError(
                f"this search was stored in format {written}, this version reads up to {FORMAT}; install a newer "
                f"sktransformer-text."
            )
        super().__setstate__(state)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.input_tags.allow_nan = self.missing == "empty"
        tags.no_validation = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "documents_")


def _joined(there: pd.DataFrame | None, new: pd.DataFrame | None) -> pd.DataFrame | None:
    """Put the columns of new documents below those of the corpus; what the corpus has not is left out."""
    if there is None:
        return None
    absent = list(there.columns) if new is None else [name for name in there if name not in new]
    if new is None or absent:
        raise ValueError(f"X lacks the column(s) {absent} of the corpus; pass a frame that has them.")
    return pd.concat([there, new[list(there.columns)]], ignore_index=True)


def _objects(values: list[Any]) -> npt.NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
