"""What is generated from, and what comes out of it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch

OnToken = Callable[[int, int, int], None]  # prompt, sample, token
Decode = Callable[[Sequence[int]], str]


@dataclass(frozen=True)
class Prompt:
    """Token ids that a text continues, or, for an encoder-decoder model, `ids` of the source and those it begins with.

    `limit` is the most tokens that its text may have, where that is fewer than the options say.
    """

    ids: npt.NDArray[np.int32]
    begin: tuple[int, ...] = ()
    limit: int | None = None


@dataclass(frozen=True)
class Generated:
    """A text: its ids without the stop token; ``log p / n ** length_penalty`` with it; what ended it.

    `finish` is "stop" (a stop token), "stop_string" or "length".
    """

    ids: list[int]
    score: float
    finish: str


@dataclass
class Row:
    """A row of the batch, as processors of logits see it.

    Parameters
    ----------
    prompt : int
        The prompt's position in the call.
    sample : int
        Which of its samples, or of its beams.
    context : sequence of int
        What the decoder has read before the text.
    limit : int
        Most tokens of the text.
    generated : list of int
        The text so far; not to be changed.
    """

    prompt: int
    sample: int
    context: Sequence[int]
    limit: int
    generated: list[int] = field(default_factory=list)


class Processor(Protocol):
    """Changes the scores (B, V) of the next token of each row: a constraint, a bias."""

    def __call__(self, rows: Sequence[Row], scores: torch.Tensor) -> torch.Tensor: ...


class StopStrings:
    """Whether a text has come to hold a stop string."""

    def __init__(self, strings: Sequence[str], decode: Decode | None) -> None:
        self.strings = tuple(strings)
        self.decode = decode
        # a token is a character at least, but for the bytes of one: a few more
        self.tail = 2 * max(map(len, self.strings), default=0) + 8

    def __call__(self, generated: Sequence[int]) -> bool:
        """Look at the last tokens."""
        if not self.strings or self.decode is None:
            return False
        text = self.decode(generated[-self.tail :])
        return any(string in text for string in self.strings)


def draws_of(seed: int, prompt: Prompt, sample: int) -> np.random.Generator:
    """Return the source of a sample's draws: the same for one seed, prompt and sample, whatever stands beside it."""
    words = np.asarray(prompt.ids, dtype=np.int64).tobytes() + repr(prompt.begin).encode()
    digest = hashlib.blake2b(words, digest_size=16).digest()
    entropy = [seed, sample, *np.frombuffer(digest, dtype=np.uint32).tolist()]
    return np.random.default_rng(np.random.SeedSequence(entropy))
