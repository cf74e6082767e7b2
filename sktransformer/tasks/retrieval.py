"""Documents found by queries: by meaning, by words, or by both."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from ._retrieval.base import BaseSearch
from ._retrieval.corpus import check_new, read_corpus

__all__ = ["SemanticSearch"]


class SemanticSearch(BaseSearch):
    """Find the documents of a corpus that answer a query, by their vectors, by their words, or by both.

    Parameters
    ----------
    embedder : transformer or None, default=None
        Texts to vectors: a :class:`TransformerEmbedder`, a Pipeline, or TF-IDF with ``TruncatedSVD`` behind it; None
        is ``TransformerEmbedder()``. It is cloned and fitted on the corpus; one that has learned already goes into
        ``sklearn.frozen.FrozenEstimator``.
    mode : {"dense", "sparse", "hybrid"}, default="dense"
        Compare vectors, compare words, or fuse the two rankings. What was fitted as "hybrid" can be asked in all three.
    index : {"exact", "approximate"}, default="exact"
        Compare a query with every vector, or walk through a graph of them [5]_, which needs ``usearch``
        (``pip install "sktransformer-text[search]"``).
    prompts : "auto", dict or None, default="auto"
        What is put before a text for the embedder, by role: ``{"query": ..., "document": ...}``, each a str or None.
        "auto" leaves them to an embedder that knows roles, as `TransformerEmbedder` does (it gives E5 models the two
        prompts they were trained with [6]_), and any other as it is; None asks for no role.
    vectorizer : transformer or None, default=None
        Texts to a sparse matrix of counts, for the words; None is a ``CountVectorizer`` of words without case and
        accents.
    weighting : {"bm25", "tfidf", "none"}, default="bm25"
        What is made of the counts: BM25 [1]_ [2]_, the cosine of TF-IDF with damped counts, or the cosine of what the
        vectorizer gives, a ``TfidfVectorizer`` for instance.
    k1 : float, default=1.2
        Of BM25: how slowly further occurrences of a word lose their value; at least 0.
    b : float, default=0.75
        Of BM25: how much of a document's length is made up for, from 0 to 1.
    fusion : {"scores", "ranks"}, default="scores"
        How "hybrid" puts two rankings together: a weighted mean of scores [4]_, cosines brought to the range from 0
        to 1 among a query's candidates and scores of words as a share of what the query could reach; or reciprocal
        rank fusion [3]_, which looks at ranks alone.
    fusion_weights : tuple of (float, float) or None, default=None
        Weights of the dense and the sparse ranking; None is (1, 2) for scores and (1, 1) for ranks.
    rrf_constant : float, default=60
        Constant of reciprocal rank fusion: how little the first ranks stand out; at least 0.
    n_candidates : int, default=100
        Documents of each ranking that are put together.
    reranker : fitted estimator or None, default=None
        Reads pairs (query, document) and puts the best documents in a new order, by the probability of its second
        class, its ``decision_function`` or its ``predict``, whichever it has first.
    n_rerank : int, default=50
        Documents that the reranker reads for each query; `n_neighbors` when that is larger.
    n_neighbors : int, default=5
        Documents for each query.
    text_column : str or None, default=None
        The column of a frame that holds the texts; the other columns are kept and shown by `search`.
    id_column : str or None, default=None
        The column of a frame that names the documents; None numbers them in the order they came.
    connectivity : int, default=16
        Of the graph: neighbours of a vector.
    expansion_add : int, default=128
        Of the graph: candidates that are looked at for the neighbours of a new vector.
    expansion_search : int, default=64
        Of the graph: candidates that are looked at for a query. More find more, and take longer.
    missing : {"error", "empty"}, default="error"
        What to do with None and NaN texts.
    n_jobs : int or None, default=None
        Threads of the approximate index; None is one, -1 all processors. With several, which neighbours are found may
        differ from fit to fit.

    Attributes
    ----------
    embedder_ : transformer
        The fitted embedder.
    prompts_ : dict, "auto" or None
        The prompts in use; "auto" where the embedder knows those of both roles itself.
    documents_ : list of str
        The texts, without prompts.
    ids_ : ndarray of shape (n_documents,)
        Their ids, in the order of `documents_`.
    columns_ : DataFrame or None
        The other columns of the frame that they came in.
    vectors_ : ndarray of shape (n_documents, D), float32
        Their unit vectors.
    word_index_ : object
        Their weighted words.
    graph_ : object
        The approximate index.
    positions_ : ndarray of shape (n_documents,), int64
        Their numbers in the order they came.
    n_seen_ : int
        Documents that ever came; removed ones keep their numbers.
    n_samples_fit_ : int
        Documents that are there.

    See Also
    --------
    TransformerEmbedder : The usual embedder.

    Notes
    -----
    Scores: the cosine of the vectors, of TF-IDF too; the sum of the weights of the query's words for BM25; the mean
    score or the sum of reciprocal ranks for "hybrid"; what the reranker says, where there is one. Distances are one
    minus a cosine or mean score, one minus the share of the largest score that the query could reach (BM25, ranks), one
    minus the probability of a reranker, or its score with the sign changed.

    An exact search holds tiles of scores, never those of all documents, within scikit-learn's ``working_memory``. An
    approximate one ranks what the graph finds by exact cosines.

    References
    ----------
    .. [1] S. Robertson and H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", Foundations and
       Trends in Information Retrieval 3(4), 2009, doi:10.1561/1500000019, section 3.4.
    .. [2] The inverse document frequency with a one added, never negative, is that of Apache Lucene's BM25Similarity.
    .. [3] G. Cormack, C. Clarke and S. Buettcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank
       Learning Methods", SIGIR 2009, doi:10.1145/1571941.1572114.
    .. [4] S. Bruch, S. Gai and A. Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", ACM Transactions on
       Information Systems 42(1), 2023, doi:10.1145/3596512.
    .. [5] Y. Malkov and D. Yashunin, "Efficient and robust approximate nearest neighbor search using Hierarchical
       Navigable Small World graphs", IEEE TPAMI 42(4), 2020, doi:10.1109/TPAMI.2018.2889473.
    .. [6] L. Wang et al., "Multilingual E5 Text Embeddings: A Technical Report", 2024, section 2.

    Examples
    --------
    >>> from sktransformer import SemanticSearch, TransformerEmbedder
    >>> from sktransformer.testing import tiny_checkpoint
    >>> answers = ["La facture est dans votre espace.", "Le colis part demain.", "Le contrat se résilie en ligne."]
    >>> search = SemanticSearch(TransformerEmbedder(tiny_checkpoint("camembert")), mode="hybrid").fit(answers)
    >>> search.search(["où est le colis ?"], n_neighbors=1)[["query", "rank", "document", "text"]]
       query  rank  document                   text
    0      0     1         1  Le colis part demain.
    """

    def __init__(
        self,
        embedder: Any = None,
        *,
        mode: str = "dense",
        index: str = "exact",
        prompts: Any = "auto",
        vectorizer: Any = None,
        weighting: str = "bm25",
        k1: float = 1.2,
        b: float = 0.75,
        fusion: str = "scores",
        fusion_weights: tuple[float, float] | None = None,
        rrf_constant: float = 60,
        n_candidates: int = 100,
        reranker: Any = None,
        n_rerank: int = 50,
        n_neighbors: int = 5,
        text_column: Any = None,
        id_column: Any = None,
        connectivity: int = 16,
        expansion_add: int = 128,
        expansion_search: int = 64,
        missing: str = "error",
        n_jobs: int | None = None,
    ) -> None:
        self.embedder = embedder
        self.mode = mode
        self.index = index
        self.prompts = prompts
        self.vectorizer = vectorizer
        self.weighting = weighting
        self.k1 = k1
        self.b = b
        self.fusion = fusion
        self.fusion_weights = fusion_weights
        self.rrf_constant = rrf_constant
        self.n_candidates = n_candidates
        self.reranker = reranker
        self.n_rerank = n_rerank
        self.n_neighbors = n_neighbors
        self.text_column = text_column
        self.id_column = id_column
        self.connectivity = connectivity
        self.expansion_add = expansion_add
        self.expansion_search = expansion_search
        self.missing = missing
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> Self:
        """Read the corpus.

        Parameters
        ----------
        X : iterable of n documents, or frame
            Texts in anything that holds them; of a frame with several columns, `text_column` names the texts.
        y : ignored
            Present for scikit-learn.

        Returns
        -------
        SemanticSearch
            The search itself.

        Raises
        ------
        TypeError
            For a row that is no text, or a parameter of the wrong kind.
        ValueError
            For an empty corpus, missing texts, columns that are not there, ids that come twice, vectors that are not
            finite, a parameter out of range.
        """
        self._validate()
        corpus = read_corpus(X, text_column=self.text_column, id_column=self.id_column, missing=self.missing)
        if not len(corpus):
            raise ValueError(
                "Found array with 0 sample(s) while a minimum of 1 is required by SemanticSearch."
            )
        after = self._shadow(fitted=False)
        after._record_corpus(corpus)
        if self.mode != "sparse":
            after._fit_vectors()
        if self.mode != "dense":
            after._fit_words()
        self.__dict__ = after.__dict__
        return self

    def kneighbors(self, X: Any, n_neighbors: int | None = None, return_distance: bool = True) -> Any:
        """Return the nearest documents of each query, as scikit-learn's ``NearestNeighbors`` does.

        Parameters
        ----------
        X : iterable of n queries
            Texts; it may be empty.
        n_neighbors : int or None, default=None
            Documents for each query; None takes the parameter of the search.
        return_distance : bool, default=True
            Whether distances are returned too.

        Returns
        -------
        distances : ndarray of shape (n, n_neighbors), float32
            Ascending; left out with ``return_distance=False``.
        indices : ndarray of shape (n, n_neighbors), int64
            The documents, numbered in the order they came to `fit` and `add`; removed ones keep their numbers.

        Raises
        ------
        ValueError
            For more neighbours than there are documents, or a mode that the fit did not prepare.
        """
        now = self._shadow(fitted=True)  # another thread may add or remove meanwhile
        queries, k = now._asked(X, n_neighbors)
        if k > now.n_samples_fit_:
            raise ValueError(
                f"Expected n_neighbors <= n_samples_fit, but n_neighbors = {k}, n_samples_fit = {now.n_samples_fit_}, "
                f"n_samples = {len(queries)}; ask for fewer, or use `search`, which returns what there is."
            )
        ranking = now._ranked(queries, k)
        indices = now.positions_[ranking.rows]
        return (ranking.distances, indices) if return_distance else indices

    def search(self, X: Any, n_neighbors: int | None = None) -> pd.DataFrame:
        """Return the best documents of each query as a table.

        Parameters
        ----------
        X : iterable of n queries
            Texts; it may be empty.
        n_neighbors : int or None, default=None
            Documents for each query, fewer where the corpus is smaller; None takes the parameter of the search.

        Returns
        -------
        DataFrame
            One row a hit, the hits of a query one below the other, with

            - ``query``: the number of the query in `X`;
            - ``rank``: from 1;
            - ``score``: larger is better (see Notes);
            - ``document``: the id;
            - ``text``: the document;
            - the other columns of the corpus; ``document_`` stands before a name that is one of these five.

        Raises
        ------
        ValueError
            For missing texts, or a mode that the fit did not prepare.
        """
        now = self._shadow(fitted=True)  # another thread may add or remove meanwhile
        queries, k = now._asked(X, n_neighbors)
        k = min(k, now.n_samples_fit_)
        ranking = now._ranked(queries, k)
        hits = {
            "query": np.repeat(np.arange(len(queries)), k),
            "rank": np.tile(np.arange(1, k + 1), len(queries)),
            "score": ranking.scores.ravel(),
        }
        return now._shown(ranking.rows.ravel(), hits)

    def add(self, X: Any) -> Self:
        """Add documents; they are numbered on from those that came before.

        Vectors come from the embedder as it was fitted. Words are counted anew over all documents, as in `fit`, so
        that many documents are better added in one call.

        Parameters
        ----------
        X : iterable of n documents, or frame
            As in `fit`; a frame with the columns of the corpus where that came with others. It may be empty.

        Returns
        -------
        SemanticSearch
            The search itself; unchanged when something is wrong.

        Raises
        ------
        TypeError
            For a row that is no text.
        ValueError
            For missing texts, ids that are there already, columns that are not there.
        """
        check_is_fitted(self)
        self._validate()
        corpus = read_corpus(X, text_column=self.text_column, id_column=self.id_column, missing=self.missing)
        if not len(corpus):
            return self
        after = self._shadow(fitted=True)
        if corpus.ids is not None:
            check_new(corpus.ids, self.ids_)
        after._append(corpus)
        self.__dict__ = after.__dict__
        return self

    def remove(self, ids: Any) -> Self:
        """Take documents out; the others keep their ids.

        Parameters
        ----------
        ids : list of ids
            As `search` shows them under ``document``: numbers, or names from `id_column`.

        Returns
        -------
        SemanticSearch
            The search itself; unchanged when something is wrong.

        Raises
        ------
        TypeError
            For a single id instead of a list.
        ValueError
            For a document that was removed already or never there, or when none would be left.
        """
        rows = self._rows(ids)
        left = np.setdiff1d(np.arange(self.n_samples_fit_), rows)
        if not len(left):
            raise ValueError("no document would be left; fit on another corpus instead.")
        if len(left) < self.n_samples_fit_:
            after = self._shadow(fitted=True)
            after._keep(left)
            self.__dict__ = after.__dict__
        return self

    def get_documents(self, ids: Any) -> pd.DataFrame:
        """Return documents by their ids.

        Parameters
        ----------
        ids : list of ids
            As `search` shows them under ``document``.

        Returns
        -------
        DataFrame
            One row an id, in their order: ``document``, ``text``, and the other columns of the corpus.

        Raises
        ------
        TypeError
            For a single id instead of a list.
        ValueError
            For a document that was removed or never there.
        """
        now = self._shadow(fitted=True)
        return now._shown(now._rows(ids), {})

    def _default_embedder(self) -> Any:
        from .embedding import TransformerEmbedder  # torch, for those who want a Transformer's vectors

        return TransformerEmbedder()
