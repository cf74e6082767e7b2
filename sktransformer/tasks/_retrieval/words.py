"""Documents found by the words they share with a query: BM25 or TF-IDF over the counts of a vectorizer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

from .topk import Rows, Scores, blocks, top_k

WEIGHTINGS = ("bm25", "tfidf", "none")
# Words of one letter are what elision leaves in French ("l'eau", "d'or"), and tell nothing.
TOKEN = r"(?u)\b\w\w+\b"


def default_vectorizer() -> CountVectorizer:
    """Return a counter of words without case and accents."""
    return CountVectorizer(strip_accents="unicode", token_pattern=TOKEN)


def check_vectorizer(vectorizer: Any) -> None:
    """Raise TypeError unless `vectorizer` is None or counts words."""
    counts = hasattr(vectorizer, "fit_transform") and hasattr(vectorizer, "transform")
    if vectorizer is not None and (isinstance(vectorizer, type) or not counts):
        raise TypeError(
            f"vectorizer must be None or a transformer of texts such as CountVectorizer(), got {vectorizer!r:.60}."
        )


@dataclass(frozen=True)
class Query:
    """The words of queries as a sparse array (n_queries, n_words), and how many others each query has."""

    words: Any
    unknown: npt.NDArray[np.int64]


class WordIndex:
    """Counts of the documents, the weights made of them, and how queries are read.

    Parameters
    ----------
    vectorizer : transformer
        Texts to a sparse matrix of counts (of weights, with "none"); cloned, and fitted on the documents.
    weighting : {"bm25", "tfidf", "none"}
        What is made of the counts.
    k1, b : float
        Of BM25.
    """

    def __init__(self, vectorizer: Any, *, weighting: str, k1: float, b: float) -> None:
        self.vectorizer = clone(vectorizer)
        self.weighting, self.k1, self.b = weighting, k1, b

    def fit(self, texts: list[str]) -> WordIndex:
        """Count the words of the documents, and weigh them."""
        try:
            counts = self.vectorizer.fit_transform(texts)
        except ValueError as error:
            if "empty vocabulary" not in str(error):
                raise
            raise ValueError(
                f'the vectorizer finds no word in the {len(texts)} document(s); use mode="dense" or another vectorizer.'
            ) from error
        self.counts = _checked(counts, len(texts), self.weighting)
        self._weigh()
        return self

    def again(self, texts: list[str]) -> WordIndex:
        """Return a new index of other documents with the same settings."""
        return WordIndex(self.vectorizer, weighting=self.weighting, k1=self.k1, b=self.b).fit(texts)

    def kept(self, rows: npt.NDArray[np.int64]) -> WordIndex:
        """Return the index of some of the documents; words and their counts stay as they were read."""
        smaller = object.__new__(WordIndex)
        smaller.__dict__.update(self.__dict__)
        smaller.counts = self.counts[rows]
        smaller._weigh()
        return smaller

    def read(self, texts: list[str]) -> Query:
        """Count the words of queries."""
        if not texts:  # vectorizers may refuse an empty list
            return Query(csr_array((0, self.counts.shape[1]), dtype=np.float32), np.zeros(0, dtype=np.int64))
        counts = _checked(self.vectorizer.transform(texts), len(texts), self.weighting)
        if self.weighting == "tfidf":
            counts = csr_array(self.transformer.transform(counts))
        elif self.weighting == "none":
            counts = _unit_rows(counts)
        return Query(csr_array(counts.astype(np.float32)), self._unknown(texts))

    def search(self, query: Query, k: int) -> tuple[Scores, Rows]:
        """Return scores and rows of the `k` best documents of each query."""
        n = self.counts.shape[0]

        def score(some: slice, documents: slice) -> Scores:
            columns = self.postings if documents == slice(0, n) else self.postings[:, documents]
            product: Scores = (query.words[some] @ columns).toarray()
            return product

        return top_k(query.words.shape[0], n, k, score, whole=True)

    def scores_at(self, query: Query, rows: Rows) -> Scores:
        """Return the scores of some documents of each query; whatever, where a row is negative."""
        scores = np.empty(rows.shape, dtype=np.float32)
        for some in blocks(len(rows), self.counts.shape[0] * scores.itemsize):
            product = (query.words[some] @ self.postings).toarray()
            scores[some] = np.take_along_axis(product, np.maximum(rows[some], 0), axis=1)
        return scores

    def shares(self, query: Query, scores: Scores) -> Scores:
        """Return scores as shares of the largest that each query could reach; cosines are that already.

        For BM25 it is that of a document in which each word came without end, words that no document has included.
        """
        if self.weighting != "bm25":
            return scores
        rarest = np.log1p((self.counts.shape[0] + 0.5) / 0.5)
        largest = (np.asarray(query.words @ self.idf).ravel() + query.unknown * rarest).astype(np.float32)
        shares = np.zeros_like(scores)
        np.divide(scores, largest[:, None], out=shares, where=largest[:, None] > 0)
        return shares

    def _unknown(self, texts: list[str]) -> npt.NDArray[np.int64]:
        """Count the words of each query that no document has, where the vectorizer lets its words be seen."""
        known = getattr(self.vectorizer, "vocabulary_", None)
        if known is None or not hasattr(self.vectorizer, "build_analyzer"):
            return np.zeros(len(texts), dtype=np.int64)
        analyze = self.vectorizer.build_analyzer()
        return np.array([sum(word not in known for word in analyze(text)) for text in texts], dtype=np.int64)

    def _weigh(self) -> None:
        if self.weighting == "bm25":
            weights, self.idf = bm25_weights(self.counts, k1=self.k1, b=self.b)
        elif self.weighting == "tfidf":
            self.transformer = TfidfTransformer(sublinear_tf=True).fit(self.counts)
            weights = csr_array(self.transformer.transform(self.counts))
        else:
            weights = _unit_rows(self.counts)
        self.postings = csr_array(weights.T.astype(np.float32))


def bm25_weights(counts: Any, *, k1: float, b: float) -> tuple[Any, npt.NDArray[np.float32]]:
    """Return the weight of each word in each document, and the inverse document frequency of each word.

    A word that comes `tf` times in a document of `dl` words weighs ``idf * tf / (k1 * (1 - b + b * dl / avdl) + tf)``
    (Robertson and Zaragoza 2009, section 3.4, without the constant factor that changes no order). The idf is
    ``log(1 + (N - df + 0.5) / (df + 0.5))``: theirs with a one added, so that words in more than half of the documents
    do not count against them.

    Parameters
    ----------
    counts : sparse array of shape (n_documents, n_words)
        How often each word comes in each document.
    k1 : float
        How slowly further occurrences of a word lose their value.
    b : float
        How much of a document's length is made up for, from 0 to 1.

    Returns
    -------
    weights : csr_array of shape (n_documents, n_words), float32
        With as many entries as `counts`.
    idf : ndarray of shape (n_words,), float32
        The largest weight that each word may reach.
    """
    n_documents = counts.shape[0]
    frequency = np.bincount(counts.indices, minlength=counts.shape[1])
    idf = np.log1p((n_documents - frequency + 0.5) / (frequency + 0.5))
    lengths = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()
    mean = lengths.mean()
    relative = lengths / mean if mean > 0 else np.ones_like(lengths)
    saturation = k1 * (1 - b + b * relative)
    tf = counts.data.astype(np.float64)
    values = idf[counts.indices] * tf / (np.repeat(saturation, np.diff(counts.indptr)) + tf)
    weights = csr_array((values.astype(np.float32), counts.indices, counts.indptr), shape=counts.shape)
    return weights, idf.astype(np.float32)


def _checked(counts: Any, n: int, weighting: str) -> Any:
    shape = counts.shape if hasattr(counts, "nnz") else None
    if shape is None or shape[0] != n:
        kind = type(counts).__name__ if shape is None else f"shape {shape}"
        raise ValueError(f"vectorizer must give a sparse matrix of {n} rows, one a text, got {kind}.")
    matrix = csr_array(counts)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    if not np.isfinite(matrix.data).all() or (weighting != "none" and (matrix.data < 0).any()):
        raise ValueError(
            "vectorizer gives negative counts, NaN or infinity; pass a CountVectorizer or its like."
        )
    return matrix


def _unit_rows(matrix: Any) -> Any:
    norms = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
    scale = np.divide(1.0, norms, out=np.zeros(len(norms)), where=norms > 0)
    values = matrix.data * np.repeat(scale, np.diff(matrix.indptr))
    return csr_array((values, matrix.indices, matrix.indptr), shape=matrix.shape)
