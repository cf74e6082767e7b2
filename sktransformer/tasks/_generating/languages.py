"""Which languages a model reads and writes, said in the way of its family.

NLLB, M2M100 and mBART have a token for each language: one stands beside the source, one begins the target. Marian's
models of several targets read ``>>fra<<`` at the beginning of the source, T5 a sentence that says what to do.
"""

from __future__ import annotations

from typing import Any, Literal

from ..._engine.errors import did_you_mean
from ..._engine.inference.generation.positions import RELATIVE

Way = Literal["tokens", "mark", "sentence"]
MAX_LISTED = 10


def way_of(config: Any, tokenizer: Any) -> Way | None:
    """Return how a model is told its languages; None for one that has a single pair of them."""
    if hasattr(tokenizer, "src_lang"):
        return "tokens"
    if getattr(tokenizer, "supported_language_codes", None):
        return "mark"
    return "sentence" if config.model_type in RELATIVE else None


def check_languages(config: Any, tokenizer: Any, source: str | None, target: str | None) -> None:
    """Raise ValueError for languages that the model does not know, or can't be told."""
    way = way_of(config, tokenizer)
    given = {"source_language": source, "target_language": target}
    if way is None:
        for name, language in given.items():
            if language is not None:
                raise ValueError(
                    f"{name}={language!r}: {config.model_type!r} models of one pair of languages are told none; pass "
                    f"None."
                )
    elif way == "tokens":
        for name, language in given.items():
            if language is not None and _token(tokenizer, language) is None:
                raise ValueError(_unknown(name, language, _codes(tokenizer)))
    elif way == "mark":
        codes = [code.strip("<>") for code in tokenizer.supported_language_codes]
        if target is not None and target not in codes:
            raise ValueError(_unknown("target_language", target, codes))
        if source is not None:
            raise ValueError(f"source_language={source!r}: Marian models find out themselves; pass None.")
    elif (source is None) != (target is None):
        raise ValueError(
            f"source_language={source!r}, target_language={target!r}: {config.model_type!r} models are told both, as "
            f'in "translate English to French: "; pass both or none.'
        )


def words_before(config: Any, tokenizer: Any, source: str | None, target: str | None) -> str:
    """Return what a source text has to begin with."""
    way = way_of(config, tokenizer)
    if way == "mark" and target is not None:
        return f">>{target}<< "
    if way == "sentence" and target is not None:
        return f"translate {source} to {target}: "
    return ""


def set_source(config: Any, tokenizer: Any, source: str | None) -> None:
    """Let a tokenizer put the token of the source's language beside each text, if it has such tokens."""
    if source is not None and way_of(config, tokenizer) == "tokens":
        tokenizer.src_lang = source


def first_token(config: Any, tokenizer: Any, target: str | None) -> int | None:
    """Return the token that a text in the target language begins with, if there is one."""
    if target is None or way_of(config, tokenizer) != "tokens":
        return None
    return _token(tokenizer, target)


def starts_with_language(tokenizer: Any) -> bool:
    """Whether the decoder starts with the token of the language itself: the first mBART, not that of 50 languages."""
    return type(tokenizer).__name__.removesuffix("Fast") == "MBartTokenizer"


def _token(tokenizer: Any, language: str) -> int | None:
    if language not in _codes(tokenizer):
        return None
    named = getattr(tokenizer, "lang_code_to_token", {}).get(language, language)  # M2M100's "__fr__" for "fr"
    return int(tokenizer.convert_tokens_to_ids(named))


def _codes(tokenizer: Any) -> list[str]:
    """Return the codes of languages that a tokenizer knows."""
    for name in ("lang_code_to_token", "lang_code_to_id"):
        if getattr(tokenizer, name, None):
            return sorted(getattr(tokenizer, name))
    # NLLB's are special tokens that are not marked as such
    return sorted(token for token in tokenizer.all_special_tokens if not token.startswith(("<", "[")))


def _unknown(name: str, language: str, codes: list[str]) -> str:
    listed = ", ".join(codes[:MAX_LISTED]) + (", ..." if len(codes) > MAX_LISTED else "")
    return f"{name}={language!r} is none of the model's languages: {listed}.{did_you_mean(language, codes)}"
