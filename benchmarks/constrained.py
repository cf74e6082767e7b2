"""Constrained JSON from an untrained tiny model: how many outputs are valid, and what the constraint costs a token.

For each of three schemas an untrained GPT-2 of two layers (the tests' tiny checkpoint) draws 200 texts at temperature
1, with few tokens (so that most must be brought to an end) and with many. Each is parsed, and checked against its
schema by hand.

    python -m benchmarks.constrained [--quick]
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .common import Stopwatch, arguments, prepare, say, write

PROMPTS = ["le chat", "où est la gare ?", "ce film était", "12 euros", "the quick brown fox"]
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}
ORDER = {
    "type": "object",
    "properties": {
        "date": {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"},
        "lines": {
            "type": "array",
            "minItems": 1,
            "maxItems": 3,
            "items": {
                "type": "object",
                "properties": {"article": {"enum": ["filter", "capsule"]}, "price": {"type": "number"}},
                "required": ["article", "price"],
                "additionalProperties": False,
            },
        },
        "express": {"type": "boolean"},
    },
    "required": ["date", "lines", "express"],
    "additionalProperties": False,
}
TREE = {
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "label": {"type": ["string", "null"]},
                "children": {"type": "array", "maxItems": 2, "items": {"$ref": "#/$defs/node"}},
            },
            "required": ["label", "children"],
            "additionalProperties": False,
        }
    },
    "$ref": "#/$defs/node",
}


def is_person(value: Any) -> bool:
    age = value.get("age")
    return (
        set(value) == {"name", "age"} and len(value["name"]) > 0 and isinstance(age, int) and 0 <= age <= 120
    )


def is_order(value: Any) -> bool:
    lines = value.get("lines")
    return (
        set(value) == {"date", "lines", "express"}
        and re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", value["date"]) is not None
        and isinstance(value["express"], bool)
        and 1 <= len(lines) <= 3
        and all(set(line) == {"article", "price"} for line in lines)
        and all(
            line["article"] in ("filter", "capsule") and isinstance(line["price"], (int, float))
            for line in lines
        )
    )


def is_tree(value: Any) -> bool:
    label, children = value.get("label"), value.get("children")
    return (
        set(value) == {"label", "children"}
        and (label is None or isinstance(label, str))
        and len(children) <= 2
        and all(map(is_tree, children))
    )


CASES: dict[str, tuple[Any, Callable[[Any], bool]]] = {
    "a person": (PERSON, is_person),
    "an order": (ORDER, is_order),
    "a tree, which refers to itself": (TREE, is_tree),
}


def valid(text: str, check: Callable[[Any], bool]) -> bool:
    """Whether a text is JSON of its schema."""
    try:
        return check(json.loads(text))
    except (ValueError, TypeError, AttributeError, KeyError):
        return False


def measure(schema: Any, check: Callable[[Any], bool], n: int, max_new_tokens: int) -> dict[str, Any]:
    """Draw n texts and count the valid ones."""
    from sktransformer import CausalLMGenerator
    from sktransformer.exceptions import TruncationWarning
    from sktransformer.testing import tiny_checkpoint

    writer = CausalLMGenerator(
        str(tiny_checkpoint("gpt2")),
        json_schema=schema,
        temperature=1.0,
        num_return_sequences=n // len(PROMPTS),
        max_new_tokens=max_new_tokens,
        precision="float32",
        random_state=0,
    )
    watch = Stopwatch()
    watch.start()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", TruncationWarning)
        texts = writer.predict(PROMPTS).ravel().tolist()
    spent = watch.stop()
    brought = sum(getattr(one.message, "n_cut", 0) for one in said)
    return {
        "valid": sum(valid(text, check) for text in texts),
        "of": len(texts),
        "different": len(set(texts)),
        "brought_to_an_end": brought,
        "characters": float(np.mean([len(text) for text in texts])),
        "cpu_seconds": spent.cpu,
    }


def main() -> None:
    options = arguments(__doc__ or "", rounds=1, threads=1).parse_args()
    prepare(options)
    n = 20 if options.quick else 200
    cases: dict[str, Any] = {}
    for name, (schema, check) in CASES.items():
        cases[name] = {}
        for most in (4, 16, 50):
            found = measure(schema, check, n, most)
            cases[name][f"max_new_tokens={most}"] = found
            say(f"  {name:<32} {most:>3} tokens  {found['valid']} of {found['of']} valid")
    shares = [one["valid"] / one["of"] for several in cases.values() for one in several.values()]
    results = {"cases": cases, "lowest_share_valid": min(shares)}
    write(
        "constrained",
        options,
        results,
        {"model": "tiny gpt2, untrained", "prompts": PROMPTS, "temperature": 1.0},
    )


if __name__ == "__main__":
    main()
