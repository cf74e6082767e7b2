"""What stands between the model's logits and the choice: penalties, bounds of length, cuts of the distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import MinPLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from .options import Decoding
from .rows import Processor, Row

EXCLUDED = -torch.inf
COLDEST = 1e-30  # a lower temperature is none in float32


class Processors:
    """All that `options` ask for, then the processors of the caller, then the cuts of sampling: Transformers' order."""

    def __init__(self, options: Decoding, own: Sequence[Processor] = ()) -> None:
        self.options = options
        self.own = list(own)
        self.chain = [*_of_rows(options), *own]
        self.warpers = _warpers(options)

    def __call__(self, rows: Sequence[Row], scores: torch.Tensor) -> torch.Tensor:
        """Return new scores (B, V), those of excluded tokens minus infinity."""
        if not self.chain:
            return scores
        found = _through(self.chain, rows, scores)
        # where penalties and the caller leave no token together, what the caller excludes stays so
        stuck = (found == EXCLUDED).all(dim=-1).nonzero()[:, 0]
        if len(stuck):
            found[stuck] = _through(self.own, [rows[i] for i in stuck.tolist()], scores[stuck])
        return found

    def cut(self, scores: torch.Tensor) -> torch.Tensor:
        """Return the scores that a draw is made from."""
        for warper in self.warpers:
            scores = warper(None, scores)
        return scores


def _through(chain: Sequence[Processor], rows: Sequence[Row], scores: torch.Tensor) -> torch.Tensor:
    scores = scores.clone()
    for processor in chain:
        scores = processor(rows, scores)
    return scores


class Never:
    """Excludes tokens from all texts: what a checkpoint says must not come."""

    def __init__(self, ids: Sequence[int]) -> None:
        self.ids = list(ids)

    def __call__(self, rows: Sequence[Row], scores: torch.Tensor) -> torch.Tensor:
        """Return the scores, those of the tokens minus infinity."""
        scores[:, self.ids] = EXCLUDED
        return scores


def _of_rows(options: Decoding) -> list[Processor]:
    chain: list[Processor] = []
    if options.repetition_penalty != 1.0:
        chain.append(_Repetition(options.repetition_penalty))
    if options.frequency_penalty:
        chain.append(_Frequency(options.frequency_penalty))
    if options.no_repeat_ngram_size:
        chain.append(_NoRepeats(options.no_repeat_ngram_size))
    if options.min_new_tokens and options.stop_ids:
        chain.append(_AtLeast(options.min_new_tokens, options.stop_ids))
    if options.forced_first is not None or options.forced_last is not None:
        chain.append(_Forced(options.forced_first, options.forced_last))
    return chain


def _warpers(options: Decoding) -> list[Any]:
    warpers: list[Any] = []
    if options.temperature != 1.0:
        warpers.append(_Temperature(float(options.temperature)))
    if options.top_k is not None:
        warpers.append(TopKLogitsWarper(int(options.top_k)))
    if options.top_p is not None and options.top_p < 1.0:
        warpers.append(TopPLogitsWarper(float(options.top_p)))
    if options.min_p is not None:
        warpers.append(MinPLogitsWarper(float(options.min_p)))
    return warpers


class _Temperature:
    """Divides the distances from the highest score: so the highest stays finite, however low the temperature."""

    def __init__(self, temperature: float) -> None:
        self.temperature = max(temperature, COLDEST)

    def __call__(self, _: Any, scores: torch.Tensor) -> torch.Tensor:
        return (scores - scores.amax(dim=-1, keepdim=True)) / self.temperature


def _counts(texts: Sequence[Sequence[int]], scores: torch.Tensor) -> torch.Tensor:
    """Return how often each token stands in each text, (B, V)."""
    width = max(1, *map(len, texts))
    ids = torch.tensor([[*text, *[0] * (width - len(text))] for text in texts], device=scores.device)
    real = torch.tensor(
        [[1.0] * len(text) + [0.0] * (width - len(text)) for text in texts], device=scores.device
    )
    return torch.zeros_like(scores).scatter_add_(1, ids, real.to(scores.dtype))


class _Repetition:
    """Divides positive logits of the tokens seen, and multiplies negative ones."""

    def __init__(self, penalty: float) -> None:
        self.penalty = penalty

    def __call__(self, rows: Sequence[Row], scores: torch.Tensor) -> torch.Tensor:
        seen = _counts([[*row.context, *row.generated] for row in rows], scores) > 0
        lowered = torch.where(scores < 0, scores * self.penalty, scores / self.penalty)
        return torch.where(seen, lowered, scores)


class _Frequency:
    """Takes the penalty off once for each time that a token was generated."""

    def __init__(self, penalty: float) -> None:
        self.penalty = penalty

    def __call__(self, rows: Sequence[Row], scores: torch.Tensor) -> torch.Tensor:
        counts = _counts([row.generated for row in rows], scores)
        return torch.where(
            counts > 0, scores - self.penalty * counts, scores
        )  # infinity times 0 is no number


class _NoRepeats:
    """Excludes the tokens that would end an n-gram that stands in the context or text already."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __call__(self, rows: Sequence[Row], scores: torch.Tensor) -> torch.Tensor:
        n = self.size
        for i, row in enumerate(rows):
            ids = [*row.context, *row.generated]
            last = ids[len(ids) - n + 1 :] if n > 1 else []
            banned = [ids[j + n - 1] for j in range(len(ids) - n + 1) if ids[j : j + n - 1] == last]
            if banned:
                scores[i, banned] = EXCLUDED
        return scores


class _AtLeast:
    """Excludes the stop tokens of texts that are too short."""

    def __init__(self, least: int, stop_ids: tuple[int, ...]) -> None:
        self.least = least
        self.stop_ids = list(stop_ids)

    def __call__(self, rows: Sequence[Row], scores: torch.Tensor) -> torch.Tensor:
        short = [i for i, row in enumerate(rows) if len(row.generated) < self.least]
        if short:
            scores[torch.tensor(short)[:, None], torch.tensor(self.stop_ids)] = EXCLUDED
        return scores


class _Forced:
    """Leaves one token, with a score of 0, at the beginning and at the limit of length."""

    def __init__(self, first: int | None, last: int | None) -> None:
        self.first = first
        self.last = last

    def __call__(self, rows: Sequence[Row], scores: torch.Tensor) -> torch.Tensor:
        for i, row in enumerate(rows):
            token = self.of(row)
            if token is not None:
                scores[i] = EXCLUDED
                scores[i, token] = 0.0
        return scores

    def of(self, row: Row) -> int | None:
        """Return the token that is forced on a row, or None."""
        if not row.generated and self.first is not None:
            return self.first
        return self.last if len(row.generated) + 1 == row.limit else None
