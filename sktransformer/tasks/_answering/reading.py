"""What a model found in the contexts: the answers of documents out of the scores of their windows' tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._engine.training.spans import NO_ANSWER
from .spans import best_spans, ranked_spans
from .windows import ContextWindows

FloatArray = npt.NDArray[np.float32]
Span = tuple[float, int, int]  # score, begin and end in characters


@dataclass(frozen=True)
class Reading:
    """Scores of the tokens of n documents' windows, and the best span of each document.

    `starts` and `ends` (W, T) are the logits of each window's tokens, `allowed` the tokens that an answer may begin and
    end with, `best` what `best_spans` found. ``no_answer`` (n,) is the score of no answer: of a window it is the sum of
    the two logits of its first token, of a document the smallest of its windows. ``window`` (n,) is that of the best
    span.
    """

    windows: ContextWindows
    contexts: list[str]
    starts: FloatArray
    ends: FloatArray
    allowed: npt.NDArray[np.bool_]
    max_answer_length: int
    best: tuple[FloatArray, npt.NDArray[np.int64], npt.NDArray[np.int64]]
    no_answer: FloatArray
    window: npt.NDArray[np.int64]

    def margins(self) -> npt.NDArray[np.float64]:
        """Return by how much the best span of each document outscores no answer."""
        return self.best[0][self.window].astype(np.float64) - self.no_answer

    def best_text(self, d: int) -> str:
        """Return the text of the best span, whatever no answer scores; empty where there is none."""
        _, begin, end = next(self.spans(d), (0.0, 0, 0))
        return self.contexts[d][begin:end]

    def spans(self, d: int) -> Iterator[Span]:
        """Yield the spans of document `d`, best first, no text twice."""
        owners = self.windows.encoded.document
        rows = range(int(np.searchsorted(owners, d)), int(np.searchsorted(owners, d, side="right")))
        seen = set()
        for score, w, first, last in ranked_spans(
            self.starts, self.ends, self.allowed, self.max_answer_length, rows, self.best
        ):
            shift = int(self.windows.first[w] - self.windows.begin[w])
            characters = self.windows.characters[d]
            begin, end = int(characters[first + shift, 0]), int(characters[last + shift, 1])
            text = self.contexts[d][begin:end]
            if text not in seen:
                seen.add(text)
                yield score, begin, end

    def found(self, d: int, threshold: float | None, n_best: int) -> list[dict[str, Any]]:
        """Return the `n_best` answers of document `d`, one of which may be that there is none.

        It comes before the spans whose score does not exceed its own by more than `threshold`; with a threshold of
        None only where there is no span at all.
        """
        null = float(self.no_answer[d])
        nothing = {"text": "", "start": 0, "end": 0, "score": null, "no_answer_score": null}
        listed: list[dict[str, Any]] = []
        waiting = threshold is not None
        for score, begin, end in self.spans(d):
            if threshold is not None and waiting and score - null <= threshold:
                listed.append(nothing)
                waiting = False
            if len(listed) < n_best:
                text = self.contexts[d][begin:end]
                listed.append(
                    {"text": text, "start": begin, "end": end, "score": score, "no_answer_score": null}
                )
            if len(listed) == n_best:  # before another span is asked for, which costs a sort
                return listed
        if waiting or not listed:
            listed.append(nothing)
        return listed


def reading(
    windows: ContextWindows, contexts: list[str], logits: FloatArray, max_answer_length: int
) -> Reading:
    """Lay the logits (n_tokens, 2) of all tokens out by windows, and find each window's and document's best."""
    encoded = windows.encoded
    lengths = encoded.lengths
    places = np.arange(int(lengths.max()))[None]
    real = places < lengths[:, None]  # (W, T)
    starts, ends = (np.full(real.shape, -np.inf, dtype=np.float32) for _ in range(2))
    starts[real], ends[real] = logits[:, 0], logits[:, 1]
    allowed = _allowed(windows, places)
    best = best_spans(starts, ends, allowed, max_answer_length)
    firsts = np.searchsorted(encoded.document, np.arange(encoded.n_documents))
    nulls = starts[:, NO_ANSWER] + ends[:, NO_ANSWER]
    # within a document the highest score, of equal ones the first window
    order = np.lexsort((-best[0], encoded.document))
    return Reading(
        windows,
        contexts,
        starts,
        ends,
        allowed,
        max_answer_length,
        best,
        np.minimum.reduceat(nulls, firsts),
        order[firsts],
    )


def _allowed(windows: ContextWindows, places: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return which tokens of each window (W, T) stand for a character of the context that is no blank."""
    inside = (places >= windows.begin[:, None]) & (places < windows.end[:, None])
    visible = [of_text[:, 1] > of_text[:, 0] for of_text in windows.characters]
    bounds = np.cumsum([0, *map(len, visible)])
    tokens = bounds[windows.encoded.document] + windows.first - windows.begin
    allowed: npt.NDArray[np.bool_] = inside.copy()
    allowed[inside] = np.concatenate(visible)[(tokens[:, None] + places)[inside]] if inside.any() else False
    return allowed
