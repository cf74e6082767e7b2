"""The tokens that have a meaning when a model writes: what begins a text, what ends it, what never comes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class WritingIds:
    """What a checkpoint says in its generation config, or else in its config."""

    start: int
    first: int | None
    stops: tuple[int, ...]
    last: int | None
    never: tuple[int, ...]

    @property
    def end(self) -> int:
        """The token that ends a target in training."""
        return self.stops[0]


def writing_ids(model: Any, tokenizer: Any) -> WritingIds:
    """Read them.

    Raises
    ------
    ValueError
        When neither a start token nor an end token is named anywhere.
    """
    stops = _several(_look_up("eos_token_id", model, tokenizer))
    start = _look_up("decoder_start_token_id", model, None)
    if start is None:
        start = _look_up("bos_token_id", model, tokenizer)
    for name, found in (("decoder_start_token_id", start), ("eos_token_id", stops or None)):
        if found is None:
            raise ValueError(
                f"the checkpoint names no {name}, without which no text can be written; set it in its "
                f"generation_config.json."
            )
    generation = model.generation_config
    never = [words[0] for words in generation.bad_words_ids or () if len(words) == 1]
    return WritingIds(
        int(start),
        _one(generation.forced_bos_token_id),
        stops,
        _one(generation.forced_eos_token_id),
        tuple({*never, *(generation.suppress_tokens or ())} - set(stops)),
    )


def _look_up(name: str, model: Any, tokenizer: Any) -> Any:
    for holder in (model.generation_config, model.config, tokenizer):
        value = getattr(holder, name, None)
        if value is not None:
            return value
    return None


def _several(value: Any) -> tuple[int, ...]:
    if value is None:
        return ()
    return tuple(int(one) for one in value) if isinstance(value, (list, tuple)) else (int(value),)


def _one(value: Any) -> int | None:
    found = _several(value)
    return found[0] if found else None
