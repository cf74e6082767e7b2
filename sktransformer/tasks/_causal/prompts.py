"""What a text goes on from: texts, or conversations as lists of messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..._engine.text.documents import Documents, as_documents
from ..._engine.text.encoding import TextEncoder
from ..._engine.text.windows import IntArray
from ..._engine.validation import mended
from .._prompting.tokens import harmless, special_texts

Turn = dict[str, str]


@dataclass(frozen=True)
class Prompts(Documents):
    """Documents of which some, or all, are conversations: `turns` of a row, or None where it is a text.

    `first` holds the texts of a conversation one below the other, for a tokenizer to learn from.
    """

    turns: tuple[list[Turn] | None, ...] = ()

    def rows(self) -> list[Any]:
        """Return the texts and conversations as a user would pass them."""
        return [text if turns is None else turns for text, turns in zip(self.first, self.turns, strict=True)]

    def take(self, rows: Sequence[int] | npt.NDArray[Any]) -> Prompts:
        """Return those at the positions `rows`."""
        return Prompts(
            [self.first[i] for i in rows],
            None,
            self.width,
            self.names,
            None,
            tuple(self.turns[i] for i in rows),
        )


def read_prompts(X: Any, missing: Any, name: str = "X") -> Prompts:
    """Read `X`: texts in anything that holds them, or lists of messages.

    Raises
    ------
    TypeError
        For a bare string, or a row that is neither a text nor a list of messages.
    ValueError
        For missing texts, pairs of texts, a conversation without messages.
    """
    listed = _conversations(X)
    if listed is None:
        documents = as_documents(X, missing=missing, name=name)
        if documents.second is not None:
            raise ValueError(f"{name} must hold one text a row, got pairs; join the two, or pass messages.")
        n = len(documents)
        return Prompts(documents.first, None, documents.width, documents.names, None, (None,) * n)
    turns = tuple(
        _messages(row, f"{name}[{i}]") if isinstance(row, (list, tuple)) else None
        for i, row in enumerate(listed)
    )
    # a conversation stands there as its texts, so that faults of the other rows are told by their places
    written = [
        row if messages is None else "\n".join(message["content"] for message in messages)
        for row, messages in zip(listed, turns, strict=True)
    ]
    texts = as_documents(written, missing=missing, name=name).first
    return Prompts(texts, None, None, None, None, turns)


def _conversations(X: Any) -> list[Any] | None:
    """Return the rows of `X` as a list where one of them is a list of messages; else None."""
    if isinstance(X, pd.DataFrame) and X.shape[1] == 1:
        X = X.iloc[:, 0]
    if isinstance(X, pd.Series):
        X = X.tolist()
    if isinstance(X, np.ndarray) and X.dtype == object:
        if (
            X.ndim == 2 and X.size and isinstance(X[0, 0], Mapping)
        ):  # NumPy's view of a list of lists of messages
            return list(map(list, X))
        X = X.ravel().tolist() if X.ndim == 1 or X.shape[1:] == (1,) else X
    if not isinstance(X, (list, tuple)):
        return None
    holds = any(isinstance(row, (list, tuple)) and row and isinstance(row[0], Mapping) for row in X)
    for i, row in enumerate(X):
        if isinstance(row, Mapping) and "role" in row:
            raise TypeError(
                f"X[{i}] is a message, not a list of messages; pass [messages] for one conversation."
            )
    return list(X) if holds else None


def _messages(row: Sequence[Any], name: str) -> list[Turn]:
    if not row:
        raise ValueError(f"{name} has no messages; pass at least one.")
    turns = []
    for j, message in enumerate(row):
        if not isinstance(message, Mapping) or not {"role", "content"} <= set(message):
            raise TypeError(
                f'{name}[{j}] must be a message like {{"role": "user", "content": "..."}}, got '
                f"{message!r:.60}."
            )
        for key in ("role", "content"):
            if not isinstance(message[key], str):
                raise TypeError(f"{name}[{j}][{key!r}] must be str, got {type(message[key]).__name__}.")
        turns.append({"role": message["role"], "content": mended(message["content"])})
    return turns


@dataclass(frozen=True)
class PromptEncoder:
    """Makes tokens of prompts for one model.

    Parameters
    ----------
    encoder : TextEncoder
        The model's tokens.
    tokenizer : PreTrainedTokenizerBase
        Its chat template, and its special tokens.
    chat : {"auto", "always", "never"}
        Whether texts are turns of a user, and whether conversations are allowed.
    start : int or None
        The token that an empty prompt is replaced by.
    """

    encoder: TextEncoder
    tokenizer: Any
    chat: str
    start: int | None

    def ids(self, prompts: Prompts, *, answered: bool = False) -> list[IntArray]:
        """Return the tokens of each prompt, up to where the answer begins; `answered` ones are whole conversations."""
        special = special_texts(self.tokenizer)
        rows = []
        for i, (text, turns) in enumerate(zip(prompts.first, prompts.turns, strict=True)):
            if turns is None and self.chat == "always":
                turns = [{"role": "user", "content": text}]
            if turns is None:
                row = np.concatenate([_ints(self.encoder.single.prefix), self.plain(text)])
            else:
                row = self.plain(self._conversation(turns, special, i, answered=answered))
            if not len(row):
                if self.start is None:
                    raise ValueError(
                        f"X[{i}] is an empty prompt, and the model has no token that begins a text; pass a prompt."
                    )
                row = _ints([self.start])
            rows.append(row)
        return rows

    def plain(self, text: str) -> IntArray:
        """Return the tokens of a text alone."""
        return self.encoder.tokenize(Documents([text]))[0][0]

    def _conversation(self, turns: list[Turn], special: Sequence[str], i: int, *, answered: bool) -> str:
        if getattr(self.tokenizer, "chat_template", None) is None or self.chat == "never":
            fault = (
                'chat="never" does not allow it'
                if self.chat == "never"
                else "the tokenizer has no chat template"
            )
            raise ValueError(f"X[{i}] is a conversation, but {fault}; pass texts.")
        safe = [{**turn, "content": harmless(turn["content"], special)} for turn in turns]
        written: str = self.tokenizer.apply_chat_template(
            safe, tokenize=False, add_generation_prompt=not answered
        )
        return written


def start_token(model: Any, tokenizer: Any) -> int | None:
    """Return the token that texts begin with, or else the one that ends them: what an empty prompt stands for."""
    for name in ("bos_token_id", "eos_token_id"):
        for holder in (model.config, tokenizer):
            value = getattr(holder, name, None)
            if isinstance(value, (list, tuple)):
                value = value[0] if value else None
            if isinstance(value, int):
                return value
    return None


def end_tokens(model: Any, tokenizer: Any) -> tuple[int, ...]:
    """Return the tokens that end a text: those of the generation config, the config and the tokenizer."""
    found: dict[int, None] = {}
    for holder in (tokenizer, model.generation_config, model.config):
        value = getattr(holder, "eos_token_id", None)
        several = value if isinstance(value, (list, tuple)) else [value]
        found.update(dict.fromkeys(int(one) for one in several if one is not None))
    return tuple(found)


def _ints(ids: Sequence[int]) -> IntArray:
    return np.asarray(ids, dtype=np.int32)
