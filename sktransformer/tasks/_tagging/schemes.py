"""Tags that spell entities: their schemes, which tag may follow which, and spans from tags and back.

IO says of a word that it is inside an entity of a type; IOB2 has another tag for an entity's first word, so that two
entities may touch; BIOES also marks the last word, and entities of a single one.

References
----------
Ramshaw and Marcus 1995, "Text Chunking using Transformation-Based Learning", section 4.1 (IOB); Tjong Kim Sang and
Veenstra 1999, "Representing Text Chunks", section 2.1 (IOB2); Ratinov and Roth 2009, "Design Challenges and
Misconceptions in Named Entity Recognition", section 3.3 (BIOES, there called BILOU).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

SCHEMES = ("IO", "IOB2", "BIOES")
PREFIXES = {"IO": "I", "IOB2": "BI", "BIOES": "BIES"}
OUTSIDE = "O"


class Span(NamedTuple):
    """Words `start` to ``end - 1`` of a sentence are an entity of type `label`."""

    start: int
    end: int
    label: str


def split_tag(tag: Any) -> tuple[str, str] | None:
    """Split a tag into prefix and type, ("O", "") for one outside of entities; None when it is spelt in no scheme."""
    if tag == OUTSIDE:
        return OUTSIDE, ""
    if not isinstance(tag, str) or len(tag) < 3 or tag[1] != "-" or tag[0] not in "BIES":
        return None
    return tag[0], tag[2:]


def detect_scheme(tags: Iterable[Any]) -> str | None:
    """Return the scheme in which different tags are spelt; None when one of them is not, or none names an entity."""
    parts = [split_tag(tag) for tag in tags]
    if not all(parts):
        return None
    prefixes = {part[0] for part in parts if part} - {OUTSIDE}
    if not prefixes:
        return None
    if prefixes & set("ES"):
        return "BIOES"
    return "IOB2" if "B" in prefixes else "IO"


def may_follow(left: tuple[str, str] | None, right: tuple[str, str] | None, scheme: str) -> bool:
    """Whether a tag may come after another; None stands for the border of a sentence."""
    if scheme == "IO":
        return True
    going_on = right is not None and right[0] in ("IE" if scheme == "BIOES" else "I")
    is_open = left is not None and left[0] in "BI" and left[0] != OUTSIDE
    if going_on:
        return is_open and left is not None and right is not None and left[1] == right[1]
    return scheme == "IOB2" or not is_open  # BIOES says where an entity ends


def legal_transitions(
    tags: Sequence[str], scheme: str
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return which tags may begin a sentence (C,), follow which, by row (C, C), and end a sentence (C,)."""
    parts = [split_tag(tag) for tag in tags]
    starts = np.array([may_follow(None, part, scheme) for part in parts])
    pairs = np.array([[may_follow(left, right, scheme) for right in parts] for left in parts])
    ends = np.array([may_follow(part, None, scheme) for part in parts])
    return starts, pairs, ends


def first_fault(tags: Sequence[Any], scheme: str) -> tuple[int, str] | None:
    """Return where a sentence's tags leave a scheme, and why; None when they do not."""
    allowed = PREFIXES[scheme]
    before: tuple[str, str] | None = None
    for i, tag in enumerate(tags):
        part = split_tag(tag)
        if part is None or (part[0] != OUTSIDE and part[0] not in allowed):
            spelt = ", ".join(f"'{prefix}-TYPE'" for prefix in allowed)
            return i, f"{scheme} has the tags 'O', {spelt}"
        if not may_follow(before, part, scheme):
            return i, f"in {scheme} it can't {'begin a sentence' if i == 0 else f'follow {tags[i - 1]!r}'}"
        before = part
    if tags and not may_follow(before, None, scheme):
        return len(tags) - 1, f"in {scheme} it can't end a sentence"
    return None


def spans_of(tags: Sequence[Any], scheme: str) -> list[Span]:
    """Return the entities that tags spell, in order.

    Tags that break the scheme are read as the CoNLL shared tasks' scorer reads them: whatever can't go on with the
    entity before it begins a new one.
    """
    spans: list[Span] = []
    start, label = 0, ""  # of the open entity; no label, no entity
    for i, tag in enumerate(tags):
        prefix, kind = split_tag(tag) or (OUTSIDE, "")
        if label and (prefix in "OBS" or kind != label):
            spans.append(Span(start, i, label))
            label = ""
        if kind and not label:
            start, label = i, kind
        if prefix in "ES":
            spans.append(Span(start, i + 1, label))
            label = ""
    if label:
        spans.append(Span(start, len(tags), label))
    return spans


def tags_of(spans: Iterable[Span], n_words: int, scheme: str) -> list[str]:
    """Return the tags that spell entities, which must not overlap."""
    tags = [OUTSIDE] * n_words
    for start, end, label in spans:
        last = end - 1
        for i in range(start, end):
            prefix = "I"
            if scheme != "IO" and i == start:
                prefix = "B"
            if scheme == "BIOES" and i == last:
                prefix = "S" if start == last else "E"
            tags[i] = f"{prefix}-{label}"
    return tags


def convert(tags: Sequence[Any], source: str, target: str) -> list[str]:
    """Return the tags of the same entities in another scheme; IO joins entities of one type that touch."""
    return tags_of(spans_of(tags, source), len(tags), target)
