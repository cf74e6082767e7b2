"""A prompt is put together once, with gaps where a document's texts go."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Any

from ..._engine.errors import did_you_mean

FIELDS = ("text", "text_pair", "labels")
SINGLE = "Text: {text}\nLabel:"
PAIR = "First text: {text}\nSecond text: {text_pair}\nLabel:"
INSTRUCTION = "Classify the text. Answer with one of these labels: {labels}."
# Private-use characters: what no template and no text of a user holds, and every chat template leaves as it is.
GAPS = ("\ue5c0", "\ue5c1")
_GAP = re.compile("([\ue5c0\ue5c1])")


@dataclass(frozen=True)
class Frame:
    """A prompt's fixed parts, and which of a document's texts (0 or 1) stands between two of them.

    `joint` is what stands between the prompt and a label: a blank, unless the prompt ends in one or a chat turn begins.
    """

    parts: tuple[str, ...]
    gaps: tuple[int, ...]
    joint: str

    def filled(self, texts: Sequence[str]) -> str:
        """Return the prompt of a document."""
        filled = [self.parts[0]]
        for gap, part in zip(self.gaps, self.parts[1:], strict=True):
            filled += [texts[gap], part]
        return "".join(filled)


def check_template(name: str, template: Any, fields: Sequence[str], needed: str | None = None) -> None:
    """Raise unless `template` is a text with replacement fields out of `fields`, among them the `needed` one."""
    if not isinstance(template, str):
        raise TypeError(f"{name} must be a text, got {type(template).__name__}.")
    try:
        # a conversion or a format after the name makes it another name, which is not known
        found = [
            field + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "")
            for _, field, spec, conversion in Formatter().parse(template)
            if field is not None
        ]
    except ValueError as error:
        raise ValueError(
            f"{name}={template!r} can't be read as a template ({error}); write {{{{ and }}}} for braces."
        ) from error
    for field in found:
        if field not in fields:
            known = ", ".join(f"{{{one}}}" for one in fields)
            raise ValueError(
                f"{name}={template!r} has a field {{{field}}}, which is not known; there are {known}."
                f"{did_you_mean(field, fields)} Write {{{{ and }}}} for braces."
            )
    if needed is not None and needed not in found:
        raise ValueError(f"{name}={template!r} has no {{{needed}}}; say where it goes.")


def asks_for_pairs(template: str) -> bool:
    """Whether a template has a place for a second text."""
    return any(field == "text_pair" for _, field, _, _ in Formatter().parse(template))


def frame(
    template: str,
    instruction: str,
    words: Sequence[str],
    examples: Sequence[tuple[Sequence[str], str]],
    chat: Any = None,
) -> Frame:
    """Put a prompt together: the instruction, the examples with their labels, and the document's place.

    Parameters
    ----------
    template : str
        How one document is shown.
    instruction : str
        What stands before all; it may be empty.
    words : sequence of str
        What the labels are called, for ``{labels}``.
    examples : sequence of (texts, word)
        The examples' texts, one or two, and the words of their labels.
    chat : tokenizer, optional
        Whose chat template makes turns of them.
    """
    labels = ", ".join(words)
    question, answer = (template, "") if chat is None else _answer_begun(template)

    def shown(part: str, texts: Sequence[str]) -> str:
        return part.format(text=texts[0], text_pair=texts[-1], labels=labels)

    opening, begun = instruction.format(labels=labels), shown(answer, ("", ""))
    asked = [shown(question, texts) for texts, _ in examples] + [shown(question, GAPS)]
    if opening:
        asked[0] = f"{opening}\n\n{asked[0]}"
    if chat is None:
        joint = "" if template[-1:].isspace() else " "
        answered = [text + joint + word for text, (_, word) in zip(asked, examples, strict=False)]
        return _split("\n\n".join([*answered, asked[-1]]), joint)
    joint = " " if begun and not begun[-1].isspace() else ""
    turns = []
    for text, (_, word) in zip(asked, examples, strict=False):
        turns.append({"role": "user", "content": text})
        turns.append({"role": "assistant", "content": begun + joint + word})
    turns.append({"role": "user", "content": asked[-1]})
    return _split(chat.apply_chat_template(turns, tokenize=False, add_generation_prompt=True) + begun, joint)


def _answer_begun(template: str) -> tuple[str, str]:
    """Split a template's last line off where it holds no text of a document: so the answer begins, as "Label:"."""
    question, _, last = template.rpartition("\n")
    return (template, "") if not question or "{text" in last else (question, last)


def _split(prompt: str, joint: str) -> Frame:
    pieces = _GAP.split(prompt)
    return Frame(tuple(pieces[::2]), tuple(GAPS.index(gap) for gap in pieces[1::2]), joint)
