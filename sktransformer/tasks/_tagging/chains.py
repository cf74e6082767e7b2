"""From scores of words to tags: one by one, or as a chain in which a tag depends on the one before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch

from ...nn.crf import LinearChainCRF
from .schemes import legal_transitions

DECODINGS = ("argmax", "bio", "crf")
CRF_RATE = (
    1e-2  # transitions start at 0 and have to grow to a few units; an encoder moves in steps of some 1e-5
)
WORDS = 4096  # of a batch, padding counted

Scores = npt.NDArray[np.float32]  # (n_words, C)


def chain_of(tags: Sequence[str], scheme: str | None, learning_rate: float = 0.0) -> LinearChainCRF:
    """Return a chain over tags whose illegal transitions are barred, and whose scores are 0.

    Beside an encoder that learns at `learning_rate` its scores learn at `CRF_RATE`, or at that rate where it is higher.
    """
    factor = max(1.0, CRF_RATE / learning_rate) if learning_rate else 1.0
    if scheme is None:
        return LinearChainCRF(len(tags), learning_rate_factor=factor)
    starts, pairs, ends = (torch.from_numpy(allowed) for allowed in legal_transitions(tags, scheme))
    return LinearChainCRF(len(tags), starts=starts, transitions=pairs, ends=ends, learning_rate_factor=factor)


def best_tags(scores: Sequence[Scores], chain: LinearChainCRF | None) -> list[npt.NDArray[np.int64]]:
    """Return the classes of each sentence's words: the best by itself without a chain, else of the best sequence."""
    if chain is None:
        return [row.argmax(axis=1) for row in scores]
    return [path.astype(np.int64) for path in _by_batch(scores, chain.decode)]


def tag_probabilities(scores: Sequence[Scores], chain: LinearChainCRF | None) -> list[Scores]:
    """Return the probabilities (n_words, C) of each sentence: softmax without a chain, else the chain's marginals."""
    if chain is None:
        return [torch.softmax(torch.from_numpy(row), dim=1).numpy() for row in scores]
    return [shares.astype(np.float32) for shares in _by_batch(scores, chain.marginals)]


def _by_batch(
    scores: Sequence[Scores], compute: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
) -> list[npt.NDArray[np.generic]]:
    """Run the chain over sentences of like length, in float64: sums over a thousand words lose too much in float32."""
    found: list[npt.NDArray[np.generic]] = [np.empty(0)] * len(scores)
    for rows in _batches([len(row) for row in scores]):
        longest = max(1, len(scores[rows[0]]))
        emissions = torch.zeros(len(rows), longest, scores[rows[0]].shape[1], dtype=torch.float64)
        mask = torch.zeros(len(rows), longest, dtype=torch.bool)
        for i, row in enumerate(rows):
            emissions[i, : len(scores[row])] = torch.from_numpy(scores[row])
            mask[i, : len(scores[row])] = True
        computed = compute(emissions, mask).numpy()
        for i, row in enumerate(rows):
            found[row] = computed[i, : len(scores[row])]
    return found


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Cut sentences into batches, longest first, of at most `WORDS` words with their padding."""
    order = sorted(range(len(lengths)), key=lambda row: -lengths[row])
    while order:
        size = max(1, WORDS // max(1, lengths[order[0]]))
        yield order[:size]
        order = order[size:]
