"""How far a predicted answer agrees with the true ones: the arithmetic of SQuAD's evaluation."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from .answers import Answers

Words = list[str]
ARTICLES = {
    "english": re.compile(r"\b(?:a|an|the)\b"),
    "french": re.compile(r"\b(?:le|la|les|un|une|des|du|au|aux)\b"),
}
# "l'hôpital" loses its article before the apostrophe goes with the other punctuation
ELIDED = re.compile(r"\bl['’]")
NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def agreements(
    agreement: Callable[[Words, Words], float],
    true: Sequence[Answers],
    predicted: Sequence[str],
    articles: str = "english",
) -> npt.NDArray[np.float64]:
    """Return the agreement (n,) of each predicted text with the true answer that it agrees with best."""
    scores = []
    for golds, given in zip(true, predicted, strict=True):
        words = normalized_words(given, articles)
        # an answer of nothing but punctuation and articles is none, unless it is the only one
        bags = [bag for gold in golds if (bag := normalized_words(gold.text, articles))] or [[]]
        scores.append(max(agreement(bag, words) for bag in bags))
    return np.asarray(scores, dtype=np.float64)


def normalized_words(text: str, articles: str = "english") -> Words:
    """Return the words of a text in lower case, without ASCII's punctuation and without articles."""
    text = text.lower()
    if articles == "french":
        text = ELIDED.sub(" ", text)
    return ARTICLES[articles].sub(" ", text.translate(NO_PUNCTUATION)).split()


def f1(true: Words, predicted: Words) -> float:
    """Harmonic mean of precision and recall of the words, as bags; of no words, whether both have none."""
    if not true or not predicted:
        return float(true == predicted)
    shared = (Counter(true) & Counter(predicted)).total()
    if not shared:
        return 0.0
    precision, recall = shared / len(predicted), shared / len(true)
    return 2 * precision * recall / (precision + recall)


def exact_match(true: Words, predicted: Words) -> float:
    """Whether the words are the same, in their order."""
    return float(true == predicted)


def best_threshold(
    margins: npt.NDArray[np.float64], answered: npt.NDArray[np.float64], refused: npt.NDArray[np.float64]
) -> float:
    """Return the threshold on `margins` (n,) above which answering gives the highest total.

    `answered` and `refused` (n,) are what a question gains by each. Of equally good thresholds the nearest to 0 is
    taken. A margin of minus infinity, where there is nothing to answer with, is above none.
    """
    finite = np.unique(margins[np.isfinite(margins)])
    if not len(finite):
        return 0.0
    between = (finite[1:] + finite[:-1]) / 2
    candidates = np.array([0.0, *between, finite[0] - 1.0, finite[-1] + 1.0])
    candidates = candidates[np.argsort(np.abs(candidates), kind="stable")]
    order = np.argsort(margins, kind="stable")
    # what is gained when the first k of the sorted questions are refused
    totals = np.concatenate([[0.0], np.cumsum((refused - answered)[order])])
    gained = totals[np.searchsorted(margins[order], candidates, side="right")]
    return float(candidates[np.flatnonzero(gained >= gained.max() - 1e-9)[0]])
