"""The best spans against those that trying all of them finds."""

import numpy as np
import pytest

from sktransformer.tasks._answering import spans as _spans
from sktransformer.tasks._answering.spans import best_spans, ranked_spans, span_scores


def by_trying(starts, ends, allowed, longest):
    """All spans of one window as (score, first, last), best first; of equal ones the first, then the shortest."""
    spans = [
        (np.float32(starts[i] + ends[j]), i, j)
        for i in range(len(starts))
        for j in range(i, min(len(starts), i + longest))
        if allowed[i] and allowed[j]
    ]
    return sorted(spans, key=lambda span: (-span[0], span[1], span[2]))


def cases(n_windows=12, n_tokens=17, seed=0):
    random = np.random.default_rng(seed)
    # few values, so that ties come
    starts, ends = random.integers(-3, 4, (2, n_windows, n_tokens)).astype(np.float32)
    allowed = random.random((n_windows, n_tokens)) < 0.7
    allowed[0] = False
    allowed[1] = np.arange(n_tokens) == 5
    return starts, ends, allowed


@pytest.mark.parametrize("longest", [1, 3, 17, 30])
@pytest.mark.parametrize("block", [1, 200, 2**22])
def test_best_of_each_window(monkeypatch, longest, block):
    monkeypatch.setattr(_spans, "BLOCK", block)
    starts, ends, allowed = cases()
    score, first, last = best_spans(starts, ends, allowed, longest)
    for b in range(len(starts)):
        spans = by_trying(starts[b], ends[b], allowed[b], longest)
        if not spans:
            assert score[b] == -np.inf
            continue
        assert (score[b], first[b], last[b]) == spans[0]
    assert (score == -np.inf).sum() == 1


@pytest.mark.parametrize("longest", [1, 4, 40])
def test_all_in_their_order(longest):
    starts, ends, allowed = cases()
    best = best_spans(starts, ends, allowed, longest)
    windows = [0, 1, 2, 5]
    expected = [
        (span[0], w, span[1], span[2])
        for w in windows
        for span in by_trying(starts[w], ends[w], allowed[w], longest)
    ]
    found = list(ranked_spans(starts, ends, allowed, longest, windows, best))
    assert found == sorted(expected, key=lambda span: (-span[0], *span[1:]))


def test_scores_of_all_spans():
    starts, ends, allowed = cases(n_windows=2, n_tokens=4)
    allowed[:] = True
    scores = span_scores(starts, ends, allowed, 2)
    assert scores.shape == (2, 4, 2)
    assert scores[1, 2, 1] == starts[1, 2] + ends[1, 3]
    assert np.isneginf(scores[:, 3, 1]).all()


def test_other_windows_are_not_sorted_before_they_are_asked(monkeypatch):
    starts, ends, allowed = cases()
    best = best_spans(starts, ends, allowed, 4)
    calls = []
    monkeypatch.setattr(_spans, "span_scores", lambda *args: calls.append(1) or span_scores(*args))
    ranked = ranked_spans(starts, ends, allowed, 4, range(2, 12), best)
    next(ranked)
    assert not calls
    next(ranked)
    assert len(calls) == 1
