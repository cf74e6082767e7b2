"""Constraints: which tokens are left, and endings that complete what has begun."""

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from sktransformer._engine.inference.generation.constraints import Constraint, grammar_of
from sktransformer._engine.inference.generation.rows import Row

pytest.importorskip("llguidance")
DATED = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 3},
        "tags": {"type": "array", "items": {"enum": ["red", "blue"]}, "minItems": 2},
        "day": {"type": "string", "format": "date"},
    },
    "required": ["name", "tags", "day"],
    "additionalProperties": False,
}


def constraint(tokenizer: Any, **given: Any) -> Constraint:
    grammar = grammar_of(**given)
    assert grammar is not None
    return Constraint(grammar, tokenizer, len(tokenizer) + 3, (tokenizer.eos_token_id,))


def drawn(keeps: Constraint, n: int, seed: int) -> list[int]:
    """Draw up to n tokens out of those that are left."""
    random, row = np.random.default_rng(seed), Row(0, seed, (), n)
    for _ in range(n):
        scores = keeps([row], torch.zeros(1, keeps.vocabulary))
        token = int(random.choice(torch.isfinite(scores[0]).nonzero()[:, 0].numpy()))
        if token in keeps.stop_ids:
            break
        row.generated.append(token)
    return row.generated


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_whatever_was_begun_is_brought_to_an_end(name: str, tokenizer: Callable[[str], Any]) -> None:
    keeps = constraint(tokenizer(name), json_schema=DATED)
    for seed, n in enumerate((0, 1, 5, 12, 25, 40)):
        ids = drawn(keeps, n, seed)
        ending = keeps.ending(ids)
        assert ending is not None
        found = json.loads(keeps.text([*ids, *ending]))
        assert len(found["name"]) >= 3
        assert len(found["tags"]) >= 2
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", found["day"])
        assert keeps.ending([*ids, *ending]) == []


def test_one_token_is_left_where_one_may_come(tokenizer: Callable[[str], Any]) -> None:
    keeps = constraint(tokenizer("gpt2"), regex="ab+")
    row = Row(0, 0, (), 5)
    scores = keeps([row], torch.randn(1, keeps.vocabulary))
    left = torch.isfinite(scores[0]).nonzero()[:, 0].tolist()
    assert {keeps.text([token])[:1] for token in left} == {"a"}
    assert keeps.stop_ids[0] not in left
    row.generated.extend(keeps.tokenizer.encode("abb"))
    scores = keeps([row], torch.zeros(1, keeps.vocabulary))
    assert torch.isfinite(scores[0, keeps.stop_ids[0]])
    # a row that begins again is read anew
    again = keeps([Row(0, 0, (), 5)], torch.zeros(1, keeps.vocabulary))
    assert torch.isfinite(again[0]).nonzero()[:, 0].tolist() == left


def test_without_an_end_token_nothing_can_be_complete(tokenizer: Callable[[str], Any]) -> None:
    with pytest.raises(ValueError, match="no token that ends a text"):
        Constraint(str(grammar_of(regex="a")), tokenizer("gpt2"), 400, ())


def test_grammars_are_read() -> None:
    assert grammar_of() is None
    schema = grammar_of(json_schema='{"type": "integer"}')
    assert schema == grammar_of(json_schema={"type": "integer"})
    assert grammar_of(choices=['a "b"', "c"]) == 'start: CHOICE\nCHOICE: "a \\"b\\"" | "c"'
    with pytest.raises(TypeError, match="regex must be a text, got int"):
        grammar_of(regex=3)
    with pytest.raises(TypeError, match="json_schema must be a dict"):
        grammar_of(json_schema=3)
    with pytest.raises(ValueError, match=r"choices\[1\] must be a text that is not empty"):
        grammar_of(choices=["a", ""])


@pytest.mark.parametrize("odd", ["\x00", "\x7f", "\x85", "\u2028", "\U0001f600", '\n\t"\\', "/a/ | b", "%"])
def test_a_choice_may_hold_any_character(odd: str, tokenizer: Callable[[str], Any]) -> None:
    keeps = constraint(tokenizer("gpt2"), choices=[odd, odd * 2])
    for seed in range(3):
        ids = drawn(keeps, 40, seed)
        assert keeps.text([*ids, *keeps.ending(ids)]) in (odd, odd * 2)


def test_there_may_be_thousands_of_choices(tokenizer: Callable[[str], Any]) -> None:
    choices = [str(i) for i in range(20_000)]
    keeps = constraint(tokenizer("gpt2"), choices=choices)
    for seed in range(5):
        ids = drawn(keeps, 10, seed)
        assert keeps.text([*ids, *keeps.ending(ids)]) in set(choices)


def test_a_grammar_beyond_the_limits_says_so(tokenizer: Callable[[str], Any]) -> None:
    wide = " | ".join(f'"{i}"' for i in range(3000))
    keeps = constraint(tokenizer("gpt2"), grammar=f"start: {wide}")
    row = Row(0, 0, (), 5, keeps.tokenizer.encode("2"))
    with pytest.raises(ValueError, match=r"too large to be kept to \(.*max is 2000.*fewer alternatives"):
        keeps([row], torch.zeros(1, keeps.vocabulary))


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ({"choices": ["a", "\ud800"]}, ValueError, r"choices\[1\] holds half a character"),
        ({"regex": "\ud800"}, ValueError, "regex holds half a character"),
        ({"json_schema": {"const": {1, 2}}}, TypeError, "json_schema holds what JSON can't say: .*set"),
        ({"json_schema": {"const": float("nan")}}, ValueError, "json_schema holds what JSON can't say"),
        (
            {"json_schema": {"enum": ["\ud800"]}},
            ValueError,
            "json_schema can't be read: unexpected end of hex",
        ),
    ],
)
def test_what_no_text_or_json_can_say(given: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        grammar_of(**given)
