"""How well answers agree with those of people: the F1 and the exact match of SQuAD."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

from .._engine.compat import sample_weights
from .._engine.validation import check_choice
from ._answering.agreement import ARTICLES, Words, agreements, exact_match, f1
from ._answering.answers import read_answers

__all__ = ["answer_exact_match_score", "answer_f1_score"]


def answer_f1_score(
    y_true: Any, y_pred: Any, *, sample_weight: Any = None, articles: str = "english"
) -> float:
    """F1 of the words that answers share with the true ones, as SQuAD's evaluation computes it.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The answers, as `TransformerQuestionAnswerer` takes them: texts, ``(text, start)``, dictionaries with lists of
        ``text``, or None and "" for no answer. Of several true answers the one that agrees best counts.
    y_pred : array-like of shape (n,)
        The predicted texts, "" for no answer.
    sample_weight : array-like of shape (n,), optional
        Weights of the mean.
    articles : {"english", "french"}, default="english"
        Whose articles are left out; "english" is the official evaluation.

    Returns
    -------
    float
        Mean over questions, between 0 and 1.

    Raises
    ------
    TypeError
        For a row that is no answer.
    ValueError
        For no rows, unequal lengths or an unknown `articles`.

    See Also
    --------
    answer_exact_match_score : The share of answers that are equal.

    Notes
    -----
    Both texts are put into lower case; punctuation (ASCII's) and articles are dropped, and what remains is split at
    blanks into a bag of words. Of :math:`s` words in common among :math:`p` predicted and :math:`t` true ones,
    precision is :math:`s / p`, recall :math:`s / t`, and F1 their harmonic mean [1]_. Where one of the two is empty F1
    is 1 if both are and else 0, as in SQuAD 2.0 [2]_. The French articles are le, la, les, l', un, une, des, and those
    joined with a preposition: du, au, aux.

    References
    ----------
    .. [1] Rajpurkar et al. 2016, "SQuAD: 100,000+ Questions for Machine Comprehension of Text", section 6.1.
    .. [2] Rajpurkar et al. 2018, "Know What You Don't Know: Unanswerable Questions for SQuAD", section 4.

    Examples
    --------
    >>> from sktransformer import answer_f1_score
    >>> answer_f1_score(["the red fox", None], ["a fox", ""])
    0.8333333333333333

    As a scorer of a grid search, with French articles:

    >>> from sklearn.metrics import make_scorer
    >>> scorer = make_scorer(answer_f1_score, articles="french")
    """
    return _mean(f1, y_true, y_pred, sample_weight, articles)


def answer_exact_match_score(
    y_true: Any, y_pred: Any, *, sample_weight: Any = None, articles: str = "english"
) -> float:
    """Share of answers that equal a true one, letter case, punctuation and articles aside.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The answers, as `TransformerQuestionAnswerer` takes them.
    y_pred : array-like of shape (n,)
        The predicted texts, "" for no answer.
    sample_weight : array-like of shape (n,), optional
        Weights of the mean.
    articles : {"english", "french"}, default="english"
        Whose articles are left out; "english" is the official evaluation.

    Returns
    -------
    float
        Mean over questions, between 0 and 1.

    Raises
    ------
    TypeError
        For a row that is no answer.
    ValueError
        For no rows, unequal lengths or an unknown `articles`.

    See Also
    --------
    answer_f1_score : Counts answers that agree in part, and says how texts are normalised.

    References
    ----------
    Rajpurkar et al. 2016, "SQuAD: 100,000+ Questions for Machine Comprehension of Text", section 6.1.

    Examples
    --------
    >>> from sktransformer import answer_exact_match_score
    >>> answer_exact_match_score(["the fox", None], ["Fox.", "a hen"])
    0.5
    """
    return _mean(exact_match, y_true, y_pred, sample_weight, articles)


def _mean(
    agreement: Callable[[Words, Words], float], y_true: Any, y_pred: Any, sample_weight: Any, articles: str
) -> float:
    check_choice("articles", articles, tuple(ARTICLES))
    true, predicted = read_answers(y_true, "y_true"), read_answers(y_pred, "y_pred")
    check_consistent_length(true, predicted)
    if not true:
        raise ValueError("y_true is empty; pass at least one answer.")
    texts = [given[0].text if given else "" for given in predicted]
    scores = agreements(agreement, true, texts, articles)
    return float(np.average(scores, weights=sample_weights(sample_weight, len(scores))))
