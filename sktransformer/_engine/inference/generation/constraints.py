"""Texts that keep to a grammar: tokens that would leave it are excluded at each step.

llguidance does the parsing. It was chosen over xgrammar for one compiled wheel without further dependencies, for JSON
schemas that it refuses rather than half understands, and for Lark grammars beside regular expressions.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import torch

from ...errors import optional_import
from .rows import Row

_tokenizers: WeakKeyDictionary[Any, dict[tuple[Any, ...], Any]] = WeakKeyDictionary()
_lock = threading.Lock()

_GAVE_UP = re.compile(r"max is \d+|too complex|fuel|states? limit", re.IGNORECASE)  # llguidance's own words

# Of the tokens that may come next, those whose text begins with one of these lead to an end soonest.
CLOSING = "\"}])>'.,;: 0123456789"
WIDE, TRIED, LONGEST = 6, 24, 2000  # states kept a step, tokens tried from each, most tokens of an ending


def grammar_of(
    *, json_schema: Any = None, regex: Any = None, grammar: Any = None, choices: Any = None
) -> str | None:
    """Return a constraint in llguidance's language; None where there is none.

    Raises
    ------
    TypeError, ValueError
        For two at once, an empty list of choices, a schema that is no JSON.
    """
    given = {"json_schema": json_schema, "regex": regex, "grammar": grammar, "choices": choices}
    named = [name for name, value in given.items() if value is not None]
    if len(named) > 1:
        raise ValueError(f"{' and '.join(named)} contradict each other; pass one of them.")
    if not named:
        return None
    if json_schema is not None:
        return _of_schema(json_schema)
    if choices is not None:
        return _of_choices(choices)
    text = regex if regex is not None else grammar
    if not isinstance(text, str):
        raise TypeError(f"{named[0]} must be a text, got {type(text).__name__}.")
    return _made(named[0], "regex" if regex is not None else "lark", text)


def _of_schema(schema: Any) -> str:
    if isinstance(schema, type) and hasattr(schema, "model_json_schema"):  # a pydantic model
        schema = schema.model_json_schema()
    if isinstance(schema, str):
        try:
            schema = json.loads(schema)
        except ValueError as error:
            raise ValueError(f"json_schema can't be read as JSON ({error}).") from error
    if not isinstance(schema, (dict, bool)):
        raise TypeError(
            f"json_schema must be a dict, its JSON or a pydantic model, got {type(schema).__name__}."
        )
    if schema is False:
        raise ValueError("json_schema=False can't be met: no value satisfies it.")
    try:
        written = json.dumps({} if schema is True else schema, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise type(error)(f"json_schema holds what JSON can't say: {error}.") from error
    # no blanks between parts: an untrained model would write nothing else
    return _made("json_schema", "json_schema", written, overrides={"whitespace_flexible": False})


def _of_choices(choices: Any) -> str:
    if isinstance(choices, str) or not isinstance(choices, (Sequence, np.ndarray)):
        raise TypeError(f"choices must be a list of texts, got {type(choices).__name__}.")
    for i, choice in enumerate(choices):
        if not isinstance(choice, str) or not choice:
            raise ValueError(f"choices[{i}] must be a text that is not empty, got {choice!r}.")
    if not len(choices):
        raise ValueError("choices is empty; pass one text or more.")
    # one terminal, so that there may be many: of rules llguidance takes 2,000 side by side
    written = " | ".join(json.dumps(_utf8(f"choices[{i}]", str(choice))) for i, choice in enumerate(choices))
    return _made("choices", "lark", f"start: CHOICE\nCHOICE: {written}")


def _utf8(name: str, text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{name} holds half a character (a lone surrogate) at {error.start}, which no text has; take it out."
        ) from error
    return text


def _made(name: str, kind: str, text: str, **options: Any) -> str:
    """Let llguidance write down a grammar of some kind: "lark", "regex" or "json_schema"."""
    matcher: Any = optional_import("llguidance", "constrained").LLMatcher
    try:
        made: str = getattr(matcher, f"grammar_from_{kind}")(_utf8(name, text), **options)
    except ValueError as error:
        if str(error).startswith(name):
            raise
        raise ValueError(f"{name} can't be read: {_first_line(str(error))}.") from error
    return made


@dataclass
class Constraint:
    """A processor of scores that leaves the tokens which the grammar allows.

    Parameters
    ----------
    grammar : str
        What `grammar_of` returned.
    tokenizer : PreTrainedTokenizerFast
        The model's.
    vocabulary : int
        Columns of its scores.
    stop_ids : tuple of int
        Tokens that end a text: allowed where the grammar does.

    Raises
    ------
    ValueError
        When nothing satisfies the grammar, it can't be read, or the tokenizer or the model has no way to keep to it.
    """

    grammar: str
    tokenizer: Any
    vocabulary: int
    stop_ids: tuple[int, ...]
    _at: dict[tuple[int, int], tuple[Any, list[int]]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if not self.stop_ids:
            raise ValueError(
                "the model has no token that ends a text, so no text can be told to be complete."
            )
        self._tokens = _tokens_of(self.tokenizer, self.vocabulary, self.stop_ids)
        self._start = self._checked()

    def __call__(self, rows: Sequence[Row], scores: torch.Tensor) -> torch.Tensor:
        """Return the scores (B, V), those of excluded tokens minus infinity."""
        for i, row in enumerate(rows):
            allowed = torch.from_numpy(self._allowed(self._matcher(row))).to(scores.device)
            scores[i] = scores[i].masked_fill(~allowed, -torch.inf)
        return scores

    def text(self, ids: Sequence[int]) -> str:
        """Return the text of tokens as the grammar read them."""
        written: bytes = self._tokens.decode_bytes(list(ids))
        return written.decode("utf-8", "replace")

    def ending(self, ids: Sequence[int]) -> list[int] | None:
        """Return few tokens that make a text complete: none where it is; None where no end was found.

        A search by steps: from each state some tokens are tried, those that close something first, and of the states
        that they lead to, a few with different tokens to come are kept.
        """
        matcher = self._begun()
        if not matcher.consume_tokens(list(ids)):
            _require_within_limits(matcher)
            return None
        states: list[tuple[Any, list[int]]] = [(matcher, [])]
        for _ in range(LONGEST):
            following: dict[bytes, tuple[Any, list[int]]] = {}
            for state, taken in states:
                if state.is_accepting():
                    return taken
            for state, taken in states:
                for token in self._tried(state):
                    after = state.deep_copy()
                    if after.consume_token(token):
                        if after.is_accepting():
                            return [*taken, token]
                        following.setdefault(after.compute_bitmask(), (after, [*taken, token]))
            if not following:
                return None
            states = list(following.values())[:WIDE]
        return None

    # -- states -----------------------------------------------------------------------------------------------------

    def _begun(self) -> Any:
        return self._start.deep_copy()

    def _checked(self) -> Any:
        matcher = optional_import("llguidance", "constrained").LLMatcher(
            self._tokens, self.grammar, log_level=0
        )
        if matcher.is_error():
            raise ValueError(f"the constraint can't be met or read: {_first_line(matcher.get_error())}.")
        begins = self._bits(matcher)
        begins[list(self.stop_ids)] = False
        if not matcher.is_accepting() and not begins.any():
            raise ValueError(
                "the constraint can't be met: no text does, or no token of the model begins one."
            )
        return matcher

    def _matcher(self, row: Row) -> Any:
        """Return the state behind a row's text; one that began again, or that a beam went on from, is read anew."""
        place, ids = (row.prompt, row.sample), row.generated
        matcher, read = self._at.get(place, (None, []))
        if matcher is None or read != ids[: len(read)]:
            matcher, read = self._begun(), []
        # a beam that has no allowed token left is filled up with others, at a probability of 0: its state is an error,
        # after which no token is allowed
        matcher.consume_tokens(ids[len(read) :])
        self._at[place] = (matcher, list(ids))
        return matcher

    def _allowed(self, matcher: Any) -> npt.NDArray[np.bool_]:
        allowed = self._bits(matcher)
        if not allowed.any():  # nothing spells what must come: end, and let `ending` say so
            allowed[list(self.stop_ids)] = True
        return allowed

    def _bits(self, matcher: Any) -> npt.NDArray[np.bool_]:
        allowed = np.zeros(self.vocabulary, dtype=bool)
        if matcher.is_error():
            _require_within_limits(matcher)
        else:
            bits = np.unpackbits(np.frombuffer(matcher.compute_bitmask(), dtype=np.uint8), bitorder="little")
            width = min(len(bits), self.vocabulary)
            allowed[:width] = bits[:width].astype(bool)
        return allowed

    def _tried(self, matcher: Any) -> list[int]:
        """Return tokens to try: what must come, else short ones that begin differently, closing ones first."""
        forced = matcher.compute_ff_tokens()
        if forced:
            return [int(forced[0])]
        allowed = np.flatnonzero(self._allowed(matcher))
        found: dict[bytes, tuple[int, int]] = {}
        for token in allowed.tolist():
            if token not in self.stop_ids:
                written = self._tokens.decode_bytes([token])
                key = written[:1]
                if key not in found or len(written) < found[key][0]:
                    found[key] = (len(written), token)
        order = sorted(found, key=lambda key: (_rank(key), key))
        return [found[key][1] for key in order[:TRIED]]


def _require_within_limits(matcher: Any) -> None:
    """Raise where a state is an error not because of the text, but because llguidance gave up."""
    fault = matcher.get_error()
    if matcher.stop_reason() in ("ParserTooComplex", "LexerTooComplex") or _GAVE_UP.search(fault):
        raise ValueError(
            f"the constraint is too large to be kept to ({fault.splitlines()[0]}); write it with fewer alternatives."
        )


def _rank(first: bytes) -> int:
    place = CLOSING.find(first.decode("latin-1")) if first else -1
    return place if place >= 0 else len(CLOSING) + (first >= b"\x80")


def _first_line(message: str) -> str:
    lines = [line.strip() for line in message.strip().splitlines() if line.strip()]
    return " ".join(lines[:4]).rstrip(".")


def _tokens_of(tokenizer: Any, vocabulary: int, stop_ids: tuple[int, ...]) -> Any:
    """Return llguidance's view of a tokenizer, which takes a second for large ones, once each."""
    hf = optional_import("llguidance.hf", "constrained")
    with _lock:
        known = _tokenizers.setdefault(tokenizer, {})
        key = (vocabulary, stop_ids)
        if key not in known:
            try:
                known[key] = hf.from_tokenizer(tokenizer, n_vocab=vocabulary, eos_token=list(stop_ids))
            except ValueError as error:
                raise ValueError(
                    f"constraints need a fast tokenizer that llguidance can read ({error})."
                ) from error
        return known[key]
