"""How figures are written: numbers, spreads, Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

Record = dict[str, Any]


def number(value: float) -> str:
    """Three digits, no more."""
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def spread(found: Record, scale: float = 1, unit: str = "") -> str:
    """``median (min to max)`` of a summary."""
    low, middle, high = (number(found[key] * scale) for key in ("min", "median", "max"))
    return f"{middle}{unit}" if low == high else f"{middle}{unit} ({low} to {high})"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table; numbers to the right."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return ["| " + " | ".join(row) + " |" for row in (head, rule, *rows)] + [""]


def clocks(found: Any) -> set[str]:
    """Return which of the two clocks a result was taken by; none for sizes and scores."""
    return {"wall", "cpu"} & set(found) if isinstance(found, dict) else set()
