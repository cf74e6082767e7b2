"""The language of a text, by py3langid, with a guard against guesses."""

import copy
import hashlib
import re
import threading
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._engine.errors import did_you_mean, optional_import
from ._tables import LANGUAGES

KNOWN = tuple(LANGUAGES)

# Longer texts are identified by their beginning: beyond this, nothing changes but the time.
_LONGEST = 4_000
# Scripts without blanks between words: a character says as much as a short word.
_WORD = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]|[^\W\d_]{2,}")
_ADDRESS = re.compile(r"(?:https?://|www\.)\S+|[\w.+-]{1,64}@[\w.-]{1,255}")
_MOST_REMEMBERED = 50_000


class Guess(NamedTuple):
    """What the identifier says about one text."""

    language: str
    confidence: float
    words: int


class Languages(NamedTuple):
    """What is made of the guesses about some texts."""

    codes: NDArray[np.object_]
    """The language of each; the default one where it can't be told."""
    undecided: NDArray[np.bool_]
    """Where it can't be told."""
    confidence: NDArray[np.float64]
    """The probability of the best guess."""


class Identifier:
    """py3langid with a fixed set of languages; it remembers what it has seen.

    Its answers depend on the text alone: nothing in py3langid changes while it classifies, and its setter of
    languages is called before the instance is shared.

    Parameters
    ----------
    languages : sequence of str
        Codes of the languages that a text may be in.

    Raises
    ------
    MissingExtraError
        If py3langid is not installed.
    ValueError
        If a language is not known to it.
    """

    def __init__(self, languages: Sequence[str]) -> None:
        model = _load_model()
        for language in languages:
            if language not in model.labels:
                raise ValueError(
                    f"{language!r} is no language that py3langid knows by this code (ISO 639-1: 'fr', 'en', ...)."
                    f"{did_you_mean(str(language), model.labels)}"
                )
        self._model = copy.copy(model)
        self._model.set_languages(sorted(set(languages)))
        self._seen: dict[bytes, Guess] = {}

    def guess(self, texts: Iterable[str]) -> list[Guess]:
        """Identify each text by itself."""
        return [self._remembered(text[:_LONGEST]) for text in texts]

    def decide(self, texts: Iterable[str], default: str, min_words: int, min_confidence: float) -> Languages:
        """Identify each text, with a default for those that are too short or fit several languages."""
        guesses = self.guess(texts)
        undecided = [g.words < min_words or g.confidence < min_confidence for g in guesses]
        codes = np.empty(len(guesses), dtype=object)
        codes[:] = [default if no else g.language for g, no in zip(guesses, undecided, strict=True)]
        confidence = np.array([g.confidence for g in guesses], dtype=np.float64)
        return Languages(codes, np.array(undecided, dtype=bool), confidence)

    def _remembered(self, text: str) -> Guess:
        key = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        guess = self._seen.get(key)
        if guess is None:
            text = _ADDRESS.sub(" ", text)
            language, confidence = self._model.classify(text)
            guess = Guess(str(language), float(confidence), len(_WORD.findall(text)))
            if len(self._seen) >= _MOST_REMEMBERED:
                self._seen.clear()
            self._seen[key] = guess
        return guess


_lock = threading.Lock()
_models: list[Any] = []
_identifiers: dict[tuple[str, ...], Identifier] = {}


def _load_model() -> Any:
    """The model with all its languages, unpacked once a process."""
    if not _models:
        langid = optional_import("py3langid.langid", "email")
        _models.append(langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True))
    return _models[0]


def identifier(languages: Iterable[str]) -> Identifier:
    """Return the one identifier of a set of languages in this process."""
    key = tuple(sorted(set(languages)))
    with _lock:
        if key not in _identifiers:
            _identifiers[key] = Identifier(key)
        return _identifiers[key]
