"""Scores of tags: entity F1, which counts whole entities, and accuracy, which counts words."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np

from ..._engine.errors import optional_import
from .schemes import OUTSIDE, detect_scheme, spans_of
from .sentences import as_sentences
from .tags import tag_rows

EXTRA = "tagging"


def require_entity_scores() -> Any:
    """Return the module that counts entities.

    Raises
    ------
    MissingExtraError
        When it is not installed.
    """
    return optional_import("seqscore.scoring", EXTRA)


def entity_f1(
    expected: Iterable[list[Any]], predicted: Iterable[list[Any]], scheme: str | None = None
) -> float:
    """Return the F1 of entities over all sentences; one counts when both its ends and its type are right.

    With `scheme` None the tags say which they are.
    """
    truth, found = [list(row) for row in expected], [list(row) for row in predicted]
    tags = set(chain.from_iterable([*truth, *found]))
    if scheme is None and tags <= {OUTSIDE}:
        return 0.0
    scheme = detect_scheme(tags) if scheme is None else scheme
    if scheme is None:
        raise ValueError(
            "entity F1 needs tags that spell entities (IO, IOB2 or BIOES); use token_accuracy_scorer for other tags."
        )
    scoring, model = require_entity_scores(), optional_import("seqscore.model", EXTRA)
    total = scoring.ClassificationScore()
    for one, other in zip(truth, found, strict=True):
        mentions = [
            [model.Mention(model.Span(start, end), label) for start, end, label in spans_of(row, scheme)]
            for row in (other, one)
        ]
        scoring.score_sequence_mentions(*mentions, total)
    return float(total.f1)


def token_accuracy(expected: Iterable[list[Any]], predicted: Iterable[list[Any]]) -> float:
    """Return the share of words that have the right tag; 0 where there are no words."""
    right = [
        bool(one == other)
        for row, found in zip(expected, predicted, strict=True)
        for one, other in zip(row, found, strict=True)
    ]
    return sum(right) / max(1, len(right))


def entity_f1_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Score a tagger, or a pipeline or search round one, by the F1 of entities.

    Parameters
    ----------
    estimator : estimator
        Fitted; its `predict` gives the tags of each sentence.
    X : iterable of n sentences
        As in `TransformerTokenClassifier.predict`.
    y : iterable of n sequences
        Tags, or the spans of raw texts.

    Returns
    -------
    float
        Between 0 and 1.

    Raises
    ------
    ValueError
        When the tags spell no entities.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sktransformer import TransformerTokenClassifier
    >>> from sktransformer.tasks.tagging import entity_f1_scorer
    >>> search = GridSearchCV(TransformerTokenClassifier(), {"decoding": ["bio", "crf"]}, scoring=entity_f1_scorer)
    """
    scheme = getattr(getattr(estimator, "steps", [("", estimator)])[-1][-1], "scheme_", None)
    return entity_f1(*_tags_and_predictions(estimator, X, y, scheme or "auto"), scheme)


def token_accuracy_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Score a tagger, or a pipeline or search round one, by the share of words with the right tag.

    Parameters
    ----------
    estimator : estimator
        Fitted; its `predict` gives the tags of each sentence.
    X : iterable of n sentences
        As in `TransformerTokenClassifier.predict`.
    y : iterable of n sequences
        Tags, or the spans of raw texts.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sktransformer import TransformerTokenClassifier
    >>> from sktransformer.tasks.tagging import token_accuracy_scorer
    >>> search = GridSearchCV(
    ...     TransformerTokenClassifier(), {"learning_rate": [1e-5, 5e-5]}, scoring=token_accuracy_scorer
    ... )
    """
    return token_accuracy(*_tags_and_predictions(estimator, X, y, "auto"))


def _tags_and_predictions(
    estimator: Any, X: Any, y: Any, scheme: str
) -> tuple[list[list[Any]], list[list[Any]]]:
    sentences = as_sentences(X, missing="empty")
    found = [np.asarray(row).tolist() for row in estimator.predict(sentences.rows())]
    return tag_rows(y, sentences, scheme), found
