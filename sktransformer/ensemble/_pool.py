"""Weights of a linear pool: the convex combination of several predictions that explains held-out labels best."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]

# The pool's mean log-likelihood is then within this of the best there is, see `pool_weights`.
GAP = 1e-7
MOST_STEPS = 100_000


def likelihoods(probabilities: Sequence[npt.NDArray[np.floating]], index: npt.NDArray[np.int64]) -> Vector:
    """Return what each member gave the right class of each row, (m, members), away from 0 as in `log_loss`."""
    rows = np.arange(len(index))
    columns = [np.maximum(p[rows, index], np.finfo(p.dtype).eps).astype(np.float64) for p in probabilities]
    return np.column_stack(columns)


def losses(likelihood: Vector, row_weights: Vector | None = None) -> Vector:
    """Return the mean negative log-likelihood of each column."""
    result: Vector = -np.average(np.log(likelihood), axis=0, weights=row_weights)
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
