"""Greedy and sampled texts: a row a text, a token a step."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch

from ...errors import require_numbers
from .options import Decoding
from .processors import Processors
from .rows import Generated, OnToken, Prompt, Row, StopStrings, draws_of


class Text:
    """One text in the making: a group of one row."""

    def __init__(self, row: Row, prompt: Prompt, options: Decoding) -> None:
        self.rows = [row]
        self.done = False
        self.log_probability = 0.0
        self.finish = "length"
        self.stopped = False
        self._draws = draws_of(options.seed, prompt, row.sample) if options.do_sample else None

    @property
    def prompt(self) -> int:
        """The position of the prompt in the call."""
        return self.rows[0].prompt

    def draw(self) -> float:
        """Return the next number in [0, 1)."""
        return self._draws.random() if self._draws is not None else 0.0

    def results(self, options: Decoding) -> list[tuple[int, Generated]]:
        """Return the number of the sample, and its text."""
        row = self.rows[0]
        n = len(row.generated) + self.stopped
        score = self.log_probability / max(n, 1) ** options.length_penalty
        return [(row.sample, Generated(row.generated, score, self.finish))]


class Choices:
    """Chooses the next token of each text, the most probable one or a drawn one."""

    def __init__(
        self, options: Decoding, processors: Processors, stops: StopStrings, on_token: OnToken | None
    ) -> None:
        self.options = options
        self.processors = processors
        self.stops = stops
        self.on_token = on_token
        self.said: dict[
            tuple[int, int], int
        ] = {}  # tokens handed on: a text begun again does not say them twice

    def groups(self, number: int, prompt: Prompt, context: Sequence[int], limit: int) -> list[Text]:
        """Return the texts of a prompt, about to begin."""
        rows = [Row(number, sample, context, limit) for sample in range(self.options.num_outputs)]
        return [Text(row, prompt, self.options) for row in rows]

    def advance(self, texts: list[Text], logits: torch.Tensor) -> None:
        """Give each text its next token; the logits are (B, V)."""
        scores = self.processors([text.rows[0] for text in texts], logits)
        tokens = self._drawn(texts, scores) if self.options.do_sample else scores.argmax(dim=-1)
        # the model's own probability, whatever was done to the scores; the only token allowed costs nothing
        costs = logits.gather(1, tokens[:, None])[:, 0] - logits.logsumexp(dim=-1)
        if self.processors.chain:
            alone = torch.isinf(scores).sum(dim=-1) == scores.shape[1] - 1
            costs = torch.where(alone & ~costs.isnan(), 0.0, costs)
        for text, token, cost in zip(texts, tokens.tolist(), costs.tolist(), strict=True):
            self._take(text, token, cost)

    def _drawn(self, texts: list[Text], scores: torch.Tensor) -> torch.Tensor:
        """Invert the cumulative distribution at a number of each text's own."""
        scores = self.processors.cut(scores)
        heaps = scores.double().softmax(dim=-1).cumsum(dim=-1)
        numbers = torch.from_numpy(np.array([text.draw() for text in texts])).to(heaps.device)
        found = torch.searchsorted(heaps, (numbers * heaps[:, -1])[:, None], right=True)[:, 0]
        # rounding may lead beyond the last token that has a probability
        last = scores.shape[1] - 1 - torch.isfinite(scores).flip(1).int().argmax(dim=-1)
        return torch.minimum(found, last)

    def _take(self, text: Text, token: int, cost: float) -> None:
        row = text.rows[0]
        require_numbers(not math.isnan(cost))
        text.log_probability += cost
        if token in self.options.stop_ids:
            text.done, text.finish, text.stopped = True, "stop", True
            return
        row.generated.append(token)
        self._say(row, token)
        if self.stops(row.generated):
            text.done, text.finish = True, "stop_string"
        elif len(row.generated) >= row.limit:
            text.done = True

    def _say(self, row: Row, token: int) -> None:
        place = (row.prompt, row.sample)
        if self.on_token is not None and len(row.generated) > self.said.get(place, 0):
            self.said[place] = len(row.generated)
            self.on_token(row.prompt, row.sample, token)
