"""From how likely a model finds the labels of a text to probabilities of classes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax, softmax

Floats = npt.NDArray[np.float32]


def label_scores(
    likelihoods: Floats, lengths: Sequence[int], length_penalty: float
) -> npt.NDArray[np.float64]:
    """Divide the log-likelihood (n, C) of each label by its number of tokens to the power `length_penalty`."""
    return likelihoods.astype(np.float64) / np.asarray(lengths, dtype=np.float64) ** length_penalty


def prior(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the mean (C,) of the probabilities that texts without content get."""
    mean: npt.NDArray[np.float64] = softmax(scores, axis=1).mean(axis=0)
    return mean


def probabilities(scores: npt.NDArray[np.float64], content_free: npt.NDArray[np.float64] | None) -> Floats:
    """Return softmax of the scores (n, C), divided by what a text without content gets and by their sum.

    References
    ----------
    Zhao et al. 2021, "Calibrate Before Use: Improving Few-Shot Performance of Language Models", section 5: the matrix
    ``W = diag(p_cf)^-1`` without a bias.
    """
    logs = log_softmax(scores, axis=1)
    if content_free is not None:
        # a label that is all but impossible anywhere would be divided by nothing
        logs = logs - np.log(np.maximum(content_free, np.finfo(np.float64).tiny))
    shares: Floats = softmax(logs, axis=1).astype(np.float32)
    return shares
