"""Scores of tags: entity F1, which counts whole entities, and accuracy, which counts words."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

from .._engine.errors import optional_import
from ._schemes import OUTSIDE, detect_scheme, spans_of

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
        one == other
        for row, found in zip(expected, predicted, strict=True)
        for one, other in zip(row, found, strict=True)
    ]
    return sum(right) / max(1, len(right))
