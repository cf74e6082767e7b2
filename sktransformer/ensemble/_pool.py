"""Weights of a linear pool: the convex combination of several predictions that explains held-out labels best.

And a temperature for each of them before that: a member that is right but timid, or wrong and sure, would get the
weight of its confidence, not of its knowledge.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar
from scipy.special import softmax

Vector = npt.NDArray[np.float64]

# The pool's mean log-likelihood is then within this of the best there is, see `pool_weights`.
GAP = 1e-7
MOST_STEPS = 100_000


COLDEST, HOTTEST = 0.02, 50.0  # temperatures


def tempered(probabilities: npt.NDArray[Any], temperature: float) -> npt.NDArray[Any]:
    """Return softmax(log p / T) of each row, in the dtype of `probabilities`; the largest stays the largest.

    References
    ----------
    Guo et al. 2017, "On Calibration of Modern Neural Networks", section 4.2.
    """
    if temperature == 1.0:
        return probabilities
    logs = np.log(np.maximum(probabilities, np.finfo(probabilities.dtype).eps).astype(np.float64))
    shares: npt.NDArray[Any] = softmax(logs / temperature, axis=1).astype(probabilities.dtype)
    return shares


def best_temperature(
    probabilities: npt.NDArray[Any], index: npt.NDArray[np.int64], row_weights: Vector | None = None
) -> float:
    """Find the temperature with the smallest log loss; 1 where no other is better."""

    def loss(log_temperature: float) -> float:
        shares = tempered(probabilities, float(np.exp(log_temperature)))
        return float(losses(likelihoods([shares], index), row_weights)[0])

    bounds = (np.log(COLDEST), np.log(HOTTEST))
    found = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-4})
    return float(np.exp(found.x)) if found.fun < loss(0.0) else 1.0


def likelihoods(probabilities: Sequence[npt.NDArray[np.floating]], index: npt.NDArray[np.int64]) -> Vector:
    """Return what each member gave the right class of each row, (m, members), away from 0 as in `log_loss`."""
    rows = np.arange(len(index))
    columns = [np.maximum(p[rows, index], np.finfo(p.dtype).eps).astype(np.float64) for p in probabilities]
    return np.column_stack(columns)


def losses(likelihood: Vector, row_weights: Vector | None = None) -> Vector:
    """Return the mean negative log-likelihood of each column."""
    result: Vector = 0.0 - np.average(np.log(likelihood), axis=0, weights=row_weights)  # no -0.0 in a table
    return result


def pool_weights(likelihood: Vector, row_weights: Vector | None = None) -> Vector:
    """Find the weights on the simplex that maximise the mean log-likelihood of the pool.

    The objective is concave, and each step of expectation-maximisation for the proportions of a mixture climbs it [1]_.
    With ``g`` its gradient, ``max(g) - 1`` bounds what is still to be gained: concavity bounds the gain by
    ``g @ (best - weights)``, and ``g @ weights`` is 1. Where a single member is the optimum, the steps only approach
    it, so that the members are looked at by themselves too.

    References
    ----------
    .. [1] P. Smyth and D. Wolpert, "Stacked Density Estimation", NIPS 1997, section 3.
    """
    n, n_members = likelihood.shape
    row_weights = np.ones(n) if row_weights is None else row_weights
    row_weights = row_weights / row_weights.sum()
    weights: Vector = np.full(n_members, 1 / n_members)
    for _ in range(MOST_STEPS):
        gradient = row_weights @ (likelihood / (likelihood @ weights)[:, None])
        if gradient.max() - 1 < GAP:
            break
        weights = weights * gradient
    weights = weights / weights.sum()
    singles = losses(likelihood, row_weights)
    best = int(np.argmin(singles))
    if singles[best] <= losses(likelihood @ weights[:, None], row_weights)[0]:
        weights = np.eye(n_members)[best]
    return weights
