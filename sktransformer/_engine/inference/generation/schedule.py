"""Who is in flight, who waits, and who has landed."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from tqdm.auto import tqdm
from transformers import PreTrainedModel

from ...devices import is_out_of_memory
from .flight import Flight
from .options import Decoding
from .positions import rows_may_differ
from .rows import Generated, Prompt

MOST_ROWS = {"cuda": 256}  # of a batch, where there are tokens enough for them
CPU_ROWS = 32
REFILL = 4  # waiting prompts join when this share of the batch, one part in four, is free: a pass costs its overhead


WRITING_BUDGET = {"cuda": 131_072, "mps": 16_384}  # tokens of all texts in flight when token_budget="auto"
CPU_WRITING_BUDGET = 16_384


def writing_budget(token_budget: int | str, device: torch.device) -> int:
    """Return the tokens of all texts in flight that an estimator's `token_budget` stands for."""
    if isinstance(token_budget, str):  # "auto"
        return WRITING_BUDGET.get(device.type, CPU_WRITING_BUDGET)
    return int(token_budget)


@dataclass(frozen=True)
class Run:
    """How a model is run.

    Parameters
    ----------
    model : PreTrainedModel
        In evaluation mode, on `device`, with a language modelling head.
    device : torch.device
        Where it is.
    precision : torch.dtype
        Of the matrix products.
    token_budget : int
        Tokens that the rows in flight may come to have together, sources included; one prompt is always taken.
    progress : bool
        Show a bar that counts prompts.
    """

    model: PreTrainedModel
    device: torch.device
    precision: torch.dtype
    token_budget: int
    progress: bool = False


class Schedule:
    """Who is in flight, who waits, and who has landed."""

    def __init__(
        self, run: Run, prompts: Sequence[Prompt], options: Decoding, chooser: Any, flight: Flight
    ) -> None:
        self.run = run
        self.prompts = prompts
        self.options = options
        self.chooser = chooser
        self.flight = flight
        self.budget = run.token_budget
        self.most_rows = MOST_ROWS.get(run.device.type, CPU_ROWS)
        self.refills = rows_may_differ(run.model)
        # longest first: a lack of memory shows at once, and the last ones in flight are short
        self.waiting = deque(sorted(range(len(prompts)), key=lambda i: -self._cost(i)))
        self.groups: list[Any] = []
        self.found: list[dict[int, Generated]] = [{} for _ in prompts]

    def run_all(self) -> list[dict[int, Generated]]:
        """Generate until nobody waits or flies."""
        n = len(self.prompts)
        with tqdm(total=n, unit="text", dynamic_ncols=True, disable=not self.run.progress) as bar:
            while self.waiting or self.groups:
                newcomers = self._next()
                try:
                    if newcomers:
                        self._admit(newcomers)
                    else:
                        self._step()
                except (RuntimeError, MemoryError) as error:
                    if not is_out_of_memory(error) or not self._back_off(newcomers):
                        raise
                bar.update(self._land())
        return self.found

    # -- one turn ---------------------------------------------------------------------------------------------------

    def _next(self) -> list[int]:
        """Return the waiting prompts that join now."""
        rows, each = len(self.flight), self.options.rows
        free = self.most_rows - rows
        held = sum(self._cost(number) for number in self._flying())
        narrow = free * REFILL < self.most_rows or (self.budget - held) * REFILL < self.budget
        if not self.waiting or (rows and (not self.refills or narrow)):
            return []
        chosen: list[int] = []
        for number in self.waiting:
            held += self._cost(number)
            crowded = held > self.budget or (len(chosen) + 1) * each > free
            if crowded and (chosen or rows):
                break
            chosen.append(number)
        return chosen

    def _admit(self, newcomers: list[int]) -> None:
        chosen = [self.prompts[number] for number in newcomers]
        before = len(self.flight)
        logits = self.flight.admit(chosen, self.options.rows)
        groups = []
        for number, prompt in zip(newcomers, chosen, strict=True):
            context = prompt.begin if self.flight.has_encoder else prompt.ids.tolist()
            groups += self.chooser.groups(number, prompt, context, self._limit(prompt))
            self.waiting.popleft()
        self.groups += groups
        self._advance(groups, logits, before)

    def _step(self) -> None:
        tokens = [row.generated[-1] for group in self.groups for row in group.rows]
        self._advance(self.groups, self.flight.step(torch.tensor(tokens, device=self.run.device)), 0)

    def _advance(self, groups: list[Any], logits: torch.Tensor, before: int) -> None:
        """Choose the next tokens of the last groups in flight, whose rows follow `before` others."""
        origins = self.chooser.advance(groups, logits)
        if origins is not None:
            others = torch.arange(before, device=origins.device)
            self.flight.reorder(torch.cat([others, origins + before]))

    def _land(self) -> int:
        """Take the groups that are done out of the batch; return how many prompts have all their texts now."""
        landed, place = 0, 0
        kept: list[int] = []
        for group in self.groups:
            if group.done:
                found = self.found[group.prompt]
                before = len(found)
                found.update(group.results(self.options))
                landed += before < len(found) >= self.options.num_outputs
            else:
                kept += range(place, place + len(group.rows))
            place += len(group.rows)
        if len(kept) < place:
            self.groups = [group for group in self.groups if not group.done]
            self.flight.keep(torch.tensor(kept, dtype=torch.int64, device=self.run.device))
        return landed

    # -- memory -----------------------------------------------------------------------------------------------------

    def _cost(self, number: int) -> int:
        prompt = self.prompts[number]
        return (len(prompt.ids) + len(prompt.begin) + self._limit(prompt)) * self.options.rows

    def _limit(self, prompt: Prompt) -> int:
        limit = self.options.max_new_tokens
        return limit if prompt.limit is None else min(limit, prompt.limit)

    def _flying(self) -> list[int]:
        return list(dict.fromkeys(group.prompt for group in self.groups))

    def _back_off(self, newcomers: list[int]) -> bool:
        """Halve the budget, and let all begin again, which gives the same texts; False if there is one alone."""
        flying = self._flying()
        together = [*flying, *(number for number in newcomers if number not in flying)]
        if len(together) < 2:
            return False
        self.budget = sum(self._cost(number) for number in together) // 2
        self.most_rows = max(self.options.rows, len(together) // 2 * self.options.rows)
        self.groups = []
        self.flight.keep(torch.zeros(0, dtype=torch.int64))
        self.waiting = deque(sorted({*together, *self.waiting}, key=lambda i: -self._cost(i)))
        if self.run.device.type == "cuda":
            torch.cuda.empty_cache()
        return True
