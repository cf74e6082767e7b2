"""From the scores of tokens to answers: the best spans of a context, and those of a document's windows together."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]
BLOCK = 2**22  # scores computed at once: 16 MB


def span_scores(
    starts: FloatArray, ends: FloatArray, allowed: npt.NDArray[np.bool_], max_answer_length: int
) -> FloatArray:
    """Return the score of every span of B windows, (B, T, L): minus infinity where it may be no answer.

    ``scores[b, i, k]`` is ``starts[b, i] + ends[b, i + k]``, for a span that begins and ends with allowed tokens and
    has k + 1 <= L = `max_answer_length` tokens. (Devlin et al. 2019, "BERT", section 4.2.)
    """
    n_windows, n_tokens = starts.shape
    longest = min(max_answer_length, n_tokens)
    begin = np.where(allowed, starts, -np.inf).astype(np.float32)
    end = np.full((n_windows, n_tokens + longest - 1), -np.inf, dtype=np.float32)
    end[:, :n_tokens] = np.where(allowed, ends, -np.inf)
    following = np.lib.stride_tricks.sliding_window_view(end, longest, axis=1)  # (B, T, L)
    scores: FloatArray = begin[:, :, None] + following
    return scores


def best_spans(
    starts: FloatArray, ends: FloatArray, allowed: npt.NDArray[np.bool_], max_answer_length: int
) -> tuple[FloatArray, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the best span of each window: its score, its first token and its last, each (B,).

    Of equal ones the span that begins first is taken, then the shortest. The score is minus infinity where no token is
    allowed.
    """
    n_windows, n_tokens = starts.shape
    longest = min(max_answer_length, n_tokens)
    score = np.empty(n_windows, dtype=np.float32)
    first, last = np.zeros(n_windows, dtype=np.int64), np.zeros(n_windows, dtype=np.int64)
    step = max(1, BLOCK // max(1, n_tokens * longest))
    for a in range(0, n_windows, step):
        rows = slice(a, a + step)
        flat = span_scores(starts[rows], ends[rows], allowed[rows], max_answer_length).reshape(
            -1, n_tokens * longest
        )
        best = flat.argmax(axis=1)
        score[rows] = np.take_along_axis(flat, best[:, None], axis=1)[:, 0]
        first[rows] = best // longest
        last[rows] = np.minimum(best // longest + best % longest, n_tokens - 1)
    return score, first, last


def ranked_spans(
    starts: FloatArray,
    ends: FloatArray,
    allowed: npt.NDArray[np.bool_],
    max_answer_length: int,
    windows: Sequence[int],
    best: tuple[FloatArray, npt.NDArray[np.int64], npt.NDArray[np.int64]],
) -> Iterator[tuple[float, int, int, int]]:
    """Yield score, window, first and last token of the spans of `windows`, best first.

    `best` is what `best_spans` gave: a window's other spans are only sorted when its best one has been asked for.
    """

    def of_window(w: int) -> Iterator[tuple[float, int, int, int]]:
        yield -float(best[0][w]), w, int(best[1][w]), int(best[2][w])
        scores = span_scores(starts[w : w + 1], ends[w : w + 1], allowed[w : w + 1], max_answer_length)[0]
        for place in np.argsort(-scores, axis=None, kind="stable")[1:]:
            i, k = divmod(int(place), scores.shape[1])
            yield -float(scores[i, k]), w, i, i + k

    for score, window, first, last in heapq.merge(*map(of_window, windows)):
        if np.isinf(score):
            return
        yield -score, window, first, last
