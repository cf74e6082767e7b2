"""How the next token is chosen, and when a text ends: one frozen set of options, checked when it is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...validation import check_flag, check_number

EARLY_STOPPING = (True, False, "never")
MOST_PENALTY = 20  # a text's length to a higher power is beyond what numbers hold
LEAST = 1e-6  # of a factor on logits, and 1 / LEAST the most
DRAWS = {
    "temperature": 1.0,
    "top_k": None,
    "top_p": None,
    "min_p": None,
}  # options of sampling, when not given


@dataclass(frozen=True)
class Decoding:
    """Options of decoding; the names are Transformers' own.

    Parameters
    ----------
    max_new_tokens, min_new_tokens : int
        Most and least tokens of a text, in tokens.
    num_beams : int
        Beams of a beam search; 1 is greedy or sampled.
    length_penalty : float
        A hypothesis of n tokens with log probability s has the score ``s / n ** length_penalty``.
    early_stopping : bool or "never"
        When a beam search ends: at `num_beams` finished hypotheses (True), when none in progress scores better at its
        present length (False), or when none can become better ("never").
    num_outputs : int
        Texts a prompt: the best of the beams, or so many samples.
    do_sample : bool
        Draw the next token instead of taking the most probable one.
    temperature : float
        Logits are divided by it before a draw.
    top_k : int or None
        Draw among the k most probable tokens.
    top_p : float or None
        Draw among the most probable tokens that have this probability together.
    min_p : float or None
        Draw among the tokens with at least this share of the highest probability.
    repetition_penalty : float
        Logits of tokens that stand in the context or text are divided (positive) or multiplied (negative) by it.
    frequency_penalty : float
        Taken off a token's logit once for each time that it stands in the text.
    no_repeat_ngram_size : int
        No n-gram of this size comes twice; 0 allows all.
    stop_ids : tuple of int
        Tokens that end a text; they are not part of it.
    stop_strings : tuple of str
        Strings that end a text.
    forced_first, forced_last : int or None
        The first token, and the one at the limit of length.
    seed : int
        Of the draws; each depends on the seed, the prompt's tokens and the number of the sample, and on nothing else.

    References
    ----------
    Wu et al. 2016, "Google's Neural Machine Translation System", section 7 (length normalisation in beam search);
    Fan et al. 2018, "Hierarchical Neural Story Generation", section 5.4 (top-k); Holtzman et al. 2020, "The Curious
    Case of Neural Text Degeneration", section 3.1 (top-p); Nguyen et al. 2025, "Turning Up the Heat: Min-p Sampling",
    section 3; Keskar et al. 2019, "CTRL", section 4.1 (repetition penalty); Paulus et al. 2018, "A Deep Reinforced
    Model for Abstractive Summarization", section 2.5 (no trigram twice).
    """

    max_new_tokens: int
    min_new_tokens: int = 0
    num_beams: int = 1
    length_penalty: float = 1.0
    early_stopping: bool | str = False
    num_outputs: int = 1
    do_sample: bool = False
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float = 1.0
    frequency_penalty: float = 0.0
    no_repeat_ngram_size: int = 0
    stop_ids: tuple[int, ...] = ()
    stop_strings: tuple[str, ...] = ()
    forced_first: int | None = None
    forced_last: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        _check_ranges(self)
        if self.min_new_tokens > self.max_new_tokens:
            raise ValueError(
                f"min_new_tokens={self.min_new_tokens} is more than max_new_tokens={self.max_new_tokens}; lower it."
            )
        if self.do_sample and self.num_beams > 1:
            raise ValueError(
                f"do_sample=True and num_beams={self.num_beams} contradict each other: samples are drawn one by one; "
                f"pass num_beams=1, or do_sample=False."
            )
        if not self.do_sample:
            self._require_no_draws()
        if not all(isinstance(text, str) and text for text in self.stop_strings):
            raise ValueError(f"stop_strings must hold texts that are not empty, got {self.stop_strings!r}.")

    def _require_no_draws(self) -> None:
        given = [
            f"{name}={getattr(self, name)}" for name, plain in DRAWS.items() if getattr(self, name) != plain
        ]
        if given:
            raise ValueError(
                f"{', '.join(given)}: an option of sampling, but do_sample=False takes the most probable tokens; "
                f"pass do_sample=True, or leave it out."
            )
        if self.num_outputs > self.num_beams:
            raise ValueError(
                f"{self.num_outputs} texts for each row were asked for, but num_beams={self.num_beams} gives "
                f"{self.num_beams} without sampling; raise num_beams, or pass do_sample=True."
            )

    @property
    def rows(self) -> int:
        """Rows of a batch that a prompt takes."""
        return self.num_beams if self.num_beams > 1 else self.num_outputs


def _check_ranges(options: Decoding) -> None:
    whole = {
        "max_new_tokens": 1,
        "min_new_tokens": 0,
        "num_beams": 1,
        "num_outputs": 1,
        "no_repeat_ngram_size": 0,
    }
    for name, low in whole.items():
        check_number(name, getattr(options, name), low=low, integer=True)
    check_number("length_penalty", options.length_penalty, low=-MOST_PENALTY, high=MOST_PENALTY)
    check_flag("do_sample", options.do_sample)
    if options.early_stopping not in EARLY_STOPPING:
        raise ValueError(f'early_stopping must be True, False or "never", got {options.early_stopping!r}.')
    check_number("temperature", options.temperature, low=0, open_low=True)
    check_number("repetition_penalty", options.repetition_penalty, low=LEAST, high=1 / LEAST)
    check_number("frequency_penalty", options.frequency_penalty, low=-1 / LEAST, high=1 / LEAST)
    bounds: dict[str, dict[str, Any]] = {
        "top_k": {"low": 1, "integer": True},
        "top_p": {"low": 0, "high": 1, "open_low": True},
        "min_p": {"low": 0, "high": 1},
    }
    for name, bound in bounds.items():
        if getattr(options, name) is not None:
            check_number(name, getattr(options, name), **bound)
