"""How well generated texts agree with references: chrF, BLEU and ROUGE, by the libraries that define them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

from .._engine.errors import optional_import
from .._engine.text.documents import as_documents
from .._engine.validation import check_choice, check_flag, check_number

__all__ = ["bleu_score", "chrf_score", "rouge_score"]

ROUGE = ("rouge1", "rouge2", "rougeL", "rougeLsum")
EXTRA = "generation"
MOST_PAIRS = 20_000_000  # of words that rouge-score's table may hold: a gigabyte


def chrf_score(y_true: Any, y_pred: Any, *, word_order: int = 0) -> float:
    """Return chrF: the F score of the character n-grams that texts share with their references, over a corpus.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The references: texts, or lists of several of them.
    y_pred : array-like of shape (n,)
        The generated texts.
    word_order : int, default=0
        Longest word n-gram that counts beside the character n-grams up to 6; 2 is chrF++.

    Returns
    -------
    float
        Between 0 and 1; papers report a hundred times that.

    Raises
    ------
    MissingExtraError
        When sacrebleu is not installed.
    TypeError
        For a row that is no text.
    ValueError
        For no rows, unequal lengths, or missing texts.

    See Also
    --------
    bleu_score : Counts n-grams of words.
    rouge_score : What summaries are measured by.

    References
    ----------
    Popović 2015, "chrF: character n-gram F-score for automatic MT evaluation", section 2; Popović 2017, "chrF++: words
    helping character n-grams", section 2; Post 2018, "A Call for Clarity in Reporting BLEU Scores" (sacrebleu).

    Examples
    --------
    >>> from sktransformer import chrf_score
    >>> round(chrf_score(["the cat sleeps"], ["the cat slept"]), 3)
    0.718

    As a scorer of a grid search:

    >>> from sklearn.metrics import make_scorer
    >>> scorer = make_scorer(chrf_score, word_order=2)
    """
    check_number("word_order", word_order, low=0, integer=True)
    metrics = optional_import("sacrebleu.metrics", EXTRA)
    true, predicted = _read(y_true, y_pred)
    found = metrics.CHRF(word_order=int(word_order)).corpus_score(predicted, _in_streams(true))
    return float(found.score) / 100


def bleu_score(y_true: Any, y_pred: Any, *, tokenize: str = "13a", lowercase: bool = False) -> float:
    """Return BLEU: the geometric mean of the precisions of word n-grams up to 4, times a penalty for short texts.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The references: texts, or lists of several of them.
    y_pred : array-like of shape (n,)
        The generated texts.
    tokenize : {"13a", "intl", "char", "zh", "none"}, default="13a"
        How words are found, sacrebleu's.
    lowercase : bool, default=False
        Whether case is ignored.

    Returns
    -------
    float
        Between 0 and 1, of the corpus as a whole; papers report a hundred times that.

    Raises
    ------
    MissingExtraError
        When sacrebleu is not installed.
    TypeError
        For a row that is no text.
    ValueError
        For no rows, unequal lengths, missing texts, or an unknown `tokenize`.

    See Also
    --------
    chrf_score : Counts n-grams of characters, and is kinder to inflected languages.

    References
    ----------
    Papineni et al. 2002, "BLEU: a Method for Automatic Evaluation of Machine Translation", section 2.3; Post 2018, "A
    Call for Clarity in Reporting BLEU Scores" (sacrebleu).

    Examples
    --------
    >>> from sktransformer import bleu_score
    >>> bleu_score(["the black cat sleeps today"], ["the black cat sleeps today"])
    1.0
    """
    check_choice("tokenize", tokenize, ("13a", "intl", "char", "zh", "none"))
    check_flag("lowercase", lowercase)
    metrics = optional_import("sacrebleu.metrics", EXTRA)
    true, predicted = _read(y_true, y_pred)
    metric = metrics.BLEU(tokenize=tokenize, lowercase=bool(lowercase))
    # its own rounding may lead a hair beyond
    return min(1.0, float(metric.corpus_score(predicted, _in_streams(true)).score) / 100)


def rouge_score(y_true: Any, y_pred: Any, *, kind: str = "rougeL", use_stemmer: bool = False) -> float:
    """Return ROUGE: the F1 of what texts share with their references, as a mean over rows.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The references: texts, or lists of several of them, of which the one that agrees best counts.
    y_pred : array-like of shape (n,)
        The generated texts.
    kind : {"rouge1", "rouge2", "rougeL", "rougeLsum"}, default="rougeL"
        Words, pairs of words, the longest common subsequence of words, or that of each line.
    use_stemmer : bool, default=False
        Whether English words are compared by their stems.

    Returns
    -------
    float
        Between 0 and 1; papers report a hundred times that.

    Raises
    ------
    MissingExtraError
        When rouge-score is not installed.
    TypeError
        For a row that is no text.
    ValueError
        For no rows, unequal lengths, missing texts, or an unknown `kind`.

    See Also
    --------
    chrf_score : What translations are measured by.

    Notes
    -----
    Words are runs of ASCII letters and digits, in lower case: rouge-score's own rule, made for English. Letters with
    accents separate words.

    References
    ----------
    Lin 2004, "ROUGE: A Package for Automatic Evaluation of Summaries", sections 2 and 3.

    Examples
    --------
    >>> from sktransformer import rouge_score
    >>> rouge_score(["the cat sleeps here"], ["the cat sleeps"], kind="rouge1")
    0.8571428571428571
    """
    check_choice("kind", kind, ROUGE)
    check_flag("use_stemmer", use_stemmer)
    true, predicted = _read(y_true, y_pred)
    score = _rouge(kind, bool(use_stemmer))
    scores = [
        max(score(reference, text) for reference in references)
        for references, text in zip(true, predicted, strict=True)
    ]
    return float(np.mean(scores))


def _rouge(kind: str, use_stemmer: bool) -> Callable[[str, str], float]:
    """Return the F1 of a reference and a text."""
    scorer = optional_import("rouge_score.rouge_scorer", EXTRA).RougeScorer([kind], use_stemmer=use_stemmer)
    words = optional_import("rouge_score.tokenizers", EXTRA).DefaultTokenizer(use_stemmer).tokenize

    def by_library(reference: str, text: str) -> float:
        if kind == "rougeLsum":
            _require_short_lines(words, reference, text)
        return float(scorer.score(reference, text)[kind].fmeasure)

    def by_subsequence(reference: str, text: str) -> float:
        expected, given = words(reference), words(text)
        common = _common_subsequence(expected, given)
        return 2 * common / (len(expected) + len(given)) if common else 0.0

    # the library keeps a table of all pairs of words, which for long texts no memory holds
    return by_subsequence if kind == "rougeL" else by_library


def _common_subsequence(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the length of the longest common subsequence, a row of the table at a time, in the bits of an integer.

    Hyyrö 2004, "Bit-Parallel LCS-length Computation Revisited", section 4.
    """
    if len(first) > len(second):
        first, second = second, first
    places: dict[str, int] = {}
    for i, word in enumerate(first):
        places[word] = places.get(word, 0) | 1 << i
    all_ones = (1 << len(first)) - 1
    row = all_ones
    for word in second:
        matched = row & places.get(word, 0)
        row = ((row + matched) | (row - matched)) & all_ones
    return len(first) - row.bit_count()


def _require_short_lines(words: Callable[[str], list[str]], reference: str, text: str) -> None:
    longest = [max((len(words(line)) for line in one.split("\n")), default=0) for one in (reference, text)]
    if longest[0] * longest[1] > MOST_PAIRS:
        raise ValueError(
            f'kind="rougeLsum" compares lines, and some have {longest[0]} and {longest[1]} words, too many for memory; '
            f'break the texts into lines, or pass kind="rougeL".'
        )


SCORES: dict[str, tuple[Callable[..., float], dict[str, Any]]] = {
    "bleu": (bleu_score, {}),
    "chrf": (chrf_score, {}),
    "chrf++": (chrf_score, {"word_order": 2}),
    **{kind: (rouge_score, {"kind": kind}) for kind in ROUGE},
}


def require_scores(name: str) -> None:
    """Raise MissingExtraError unless the library of a score is installed."""
    optional_import("rouge_score" if name in ROUGE else "sacrebleu", EXTRA)


def _read(y_true: Any, y_pred: Any) -> tuple[list[list[str]], list[str]]:
    predicted = _one_each(y_pred, "y_pred")
    if isinstance(y_true, Iterator):
        y_true = list(y_true)  # listed once
    rows = list(y_true) if isinstance(y_true, Iterable) and not isinstance(y_true, str) else []
    if any(isinstance(row, (list, tuple, np.ndarray)) for row in rows):
        true = [as_documents(_listed(row), name=f"y_true[{i}]").first for i, row in enumerate(rows)]
        empty = [i for i, references in enumerate(true) if not references]
        if empty:
            raise ValueError(f"y_true has no reference in rows {empty[:10]}; drop them.")
    else:
        true = [[text] for text in _one_each(y_true, "y_true")]
    check_consistent_length(true, predicted)
    if not true:
        raise ValueError("y_true is empty; pass at least one text.")
    return true, predicted


def _one_each(texts: Any, name: str) -> list[str]:
    documents = as_documents(texts, name=name)
    if documents.second is not None:
        raise ValueError(f"{name} must hold one text a row, got pairs; pass one column.")
    return documents.first


def _listed(row: Any) -> Any:
    return [row] if isinstance(row, str) else row


def _in_streams(true: list[list[str]]) -> list[list[str]]:
    """Turn references by row into sacrebleu's lists: the first of all rows, the second of all, and so on.

    A row with fewer than others has its first one again, which changes neither metric: both take the best n-gram match.
    """
    most = max(map(len, true))
    return [[row[i] if i < len(row) else row[0] for row in true] for i in range(most)]
