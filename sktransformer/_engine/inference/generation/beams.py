"""Beam search: several hypotheses a prompt, side by side in the batch.

What ends a search, which hypotheses count and how they are scored is as in Transformers' `generate`, to which the tests
compare it. Prompts are searched each for itself: none waits for another, and none sees another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from ...errors import require_numbers
from .options import Decoding
from .processors import Processors
from .rows import Generated, Prompt, Row, StopStrings

NEVER = -1e9  # the score of a beam that is out of the race
LOWEST = NEVER / 2  # of one that is in it


class Search:
    """The beams of one prompt: a group of `num_beams` rows, with the hypotheses that have ended."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows
        # all beams begin alike: only the first may count, or all would be the same
        self.scores = [0.0] + [NEVER] * (len(rows) - 1)
        self.finished: list[Generated] = []
        self.done = False

    @property
    def prompt(self) -> int:
        """The position of the prompt in the call."""
        return self.rows[0].prompt

    def results(self, options: Decoding) -> list[tuple[int, Generated]]:
        """Return the best hypotheses, with their ranks; where a constraint leaves fewer, the last one again."""
        best = self.finished[: options.num_outputs]
        return list(enumerate([*best, *best[-1:] * (options.num_outputs - len(best))]))


class Beams:
    """Continues the searches, a token a step."""

    def __init__(self, options: Decoding, processors: Processors, stops: StopStrings) -> None:
        self.options = options
        self.processors = processors
        self.stops = stops

    def groups(self, number: int, prompt: Prompt, context: Sequence[int], limit: int) -> list[Search]:
        """Return the search of a prompt, about to begin."""
        return [Search([Row(number, beam, context, limit) for beam in range(self.options.num_beams)])]

    def advance(self, searches: list[Search], logits: torch.Tensor) -> torch.Tensor:
        """Continue each search; return for each of the B rows the row that it goes on from."""
        k, n_stops = self.options.num_beams, len(self.options.stop_ids)
        rows = [row for search in searches for row in search.rows]
        scores = self.processors(rows, logits.log_softmax(dim=-1))
        vocabulary = scores.shape[1]
        so_far = torch.tensor([search.scores for search in searches], device=scores.device)  # (G, K)
        scores = scores.view(len(searches), k, vocabulary) + so_far[:, :, None]
        # so many that K remain even if all beams end
        best = scores.flatten(1).topk(min(max(2, 1 + n_stops) * k, k * vocabulary))
        parents = (best.indices // vocabulary).tolist()
        tokens = (best.indices % vocabulary).tolist()
        origins = []
        for i, (search, values) in enumerate(zip(searches, best.values.tolist(), strict=True)):
            require_numbers(not any(map(math.isnan, values)))
            candidates = list(zip(values, parents[i], tokens[i], strict=True))
            origins += [i * k + parent for parent in self._continue(search, candidates)]
        return torch.tensor(origins, device=scores.device)

    def _continue(self, search: Search, candidates: list[tuple[float, int, int]]) -> list[int]:
        """Take the candidates, best first, as finished hypotheses and as next beams; return the beams' parents."""
        k, before = self.options.num_beams, search.rows
        n = len(before[0].generated) + 1
        going, ended = [], []
        for rank, (score, parent, token) in enumerate(candidates):
            finish = self._finish(before[parent], token, n)
            if finish is None:
                going.append((score, parent, token))
                continue
            ended.append((score + NEVER, parent, token))
            if rank < k and score > LOWEST:
                kept = before[parent].generated if finish == "stop" else [*before[parent].generated, token]
                search.finished.append(Generated(list(kept), score / n**self.options.length_penalty, finish))
        chosen = [*going, *ended][:k]
        search.finished = sorted(search.finished, key=lambda one: -one.score)[:k]
        search.scores = [score for score, _, _ in chosen]
        search.rows = [
            Row(row.prompt, beam, row.context, row.limit, [*row.generated, token])
            for beam, (_, parent, token) in enumerate(chosen)
            for row in (before[parent],)
        ]
        search.done = all(score <= LOWEST for score, _, _ in going) or self._is_over(search, n)
        if search.done and not search.finished:  # nothing that was allowed came to an end
            search.finished = [Generated(list(before[0].generated), -math.inf, "length")]
        return [parent for _, parent, _ in chosen]

    def _finish(self, row: Row, token: int, n: int) -> str | None:
        if token in self.options.stop_ids:
            return "stop"
        if self.options.stop_strings and self.stops([*row.generated, token]):
            return "stop_string"
        return "length" if n >= row.limit else None

    def _is_over(self, search: Search, n: int) -> bool:
        """Whether no beam can better the finished ones, by the measure that `early_stopping` names."""
        options = self.options
        if len(search.finished) < options.num_beams:
            return False
        if options.early_stopping is True:
            return True
        longest = options.early_stopping == "never" and options.length_penalty > 0.0
        length = search.rows[0].limit if longest else n
        reachable: float = search.scores[0] / length**options.length_penalty
        return bool(reachable <= min(one.score for one in search.finished))
