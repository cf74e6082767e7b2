"""From the tokens that were written to texts, whole or piece by piece."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

OnText = Callable[[int, int, str], None]  # row, sample, piece of text
TAIL = 8  # tokens of the prompt that say how a text is joined to it
_BYTE = re.compile(r"^<0x[0-9A-Fa-f]{2}>$")


class Decoder:
    """Turns tokens into text.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerBase
        The model's.
    joined : bool
        Whether a text is joined to its prompt, so that the blank that a vocabulary puts into its words' first tokens
        comes out; an answer stands alone.
    """

    def __init__(self, tokenizer: Any, joined: bool) -> None:
        self.tokenizer = tokenizer
        self.joined = joined
        self._special = frozenset(tokenizer.all_special_ids)

    def plain(self, ids: Sequence[int]) -> str:
        """Return the text of tokens alone."""
        return str(
            self.tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        )

    def settles(self, token: int) -> bool:
        """Whether the text up to a token stays as it is, whatever follows.

        Vocabularies that spell rare characters in bytes ("<0xC3>") read bytes that stand beside each other together;
        special tokens between them are left out.
        """
        piece = str(self.tokenizer.convert_ids_to_tokens(int(token)))
        return _BYTE.match(piece) is None and token not in self._special

    def text(self, ids: Sequence[int], context: Sequence[int] = ()) -> str:
        """Return the text that tokens add to a context."""
        if not self.joined or not len(context):
            return self.plain(ids)
        tail = [int(i) for i in context[-TAIL:]]
        before, whole = self.plain(tail), self.plain([*tail, *ids])
        return whole[len(before) :] if whole.startswith(before) else self.plain(ids)


def until(text: str, stops: Sequence[str]) -> str:
    """Return what stands before the first stop string."""
    places = [text.find(stop) for stop in stops if stop in text]
    return text[: min(places)] if places else text


class Stream:
    """Hands pieces of texts on as they come: whole characters, and nothing that may belong to a stop string."""

    def __init__(
        self, on_text: OnText, decoder: Decoder, contexts: Sequence[Any], stops: Sequence[str]
    ) -> None:
        self.on_text = on_text
        self.decoder = decoder
        self.contexts = contexts
        self.stops = tuple(stops)
        self.ids: dict[tuple[int, int], list[int]] = {}
        self.said: dict[tuple[int, int], int] = {}

    def __call__(self, prompt: int, sample: int, token: int) -> None:
        """Take the next token of a sample."""
        ids = self.ids.setdefault((prompt, sample), [])
        ids.append(token)
        if not self.decoder.settles(token):
            return
        text = self.decoder.text(ids, self.contexts[prompt])
        if not text.endswith("\ufffd"):  # half a character
            self._say(prompt, sample, self._sure(text))

    def end(self, prompt: int, sample: int, text: str) -> None:
        """Hand on what is left of a finished text."""
        self._say(prompt, sample, text)

    def _sure(self, text: str) -> str:
        """Leave out what a stop string may begin with."""
        text = until(text, self.stops)
        held = max(
            (n for stop in self.stops for n in range(1, len(stop)) if text.endswith(stop[:n])), default=0
        )
        return text[: len(text) - held]

    def _say(self, prompt: int, sample: int, text: str) -> None:
        said = self.said.get((prompt, sample), 0)
        if len(text) > said:
            self.said[prompt, sample] = len(text)
            self.on_text(prompt, sample, text[said:])
