"""Means, spreads and the paired test over folds and seeds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

FloatArray = npt.NDArray[np.float64]

CONFIDENCE = 0.95


@dataclass(frozen=True)
class PairedTest:
    """What the corrected resampled t-test found; NaN where it is not defined.

    Attributes
    ----------
    n : int
        Differences it rests on.
    difference : float
        Their mean.
    low, high : float
        The 95 % confidence interval of the mean.
    t : float
        The statistic, with `n` - 1 degrees of freedom.
    p_value : float
        Two-sided.
    """

    n: int
    difference: float
    low: float = np.nan
    high: float = np.nan
    t: float = np.nan
    p_value: float = np.nan


def corrected_t_test(differences: npt.ArrayLike, test_over_train: float) -> PairedTest:
    """Test whether paired differences over overlapping training sets have mean zero.

    Parameters
    ----------
    differences : array-like of shape (n,)
        One difference of scores a fold and seed; NaN, a run that failed, is left out.
    test_over_train : float
        Documents of a test part over documents of its training part.

    Returns
    -------
    PairedTest
        Without interval and p-value where there are fewer than two differences, or they are all the same; all zero
        is p = 1.

    Notes
    -----
    Training sets of different folds share documents, so their scores are correlated, and the variance of the mean is
    larger than s²/n. Nadeau and Bengio put s² (1/n + n_test/n_train) in its place [1]_; for k folds repeated with r
    seeds n is r·k [2]_.

    References
    ----------
    .. [1] C. Nadeau and Y. Bengio, "Inference for the Generalization Error", Machine Learning 52, 2003, section 4,
       https://doi.org/10.1023/A:1024068626366
    .. [2] R. Bouckaert and E. Frank, "Evaluating the Replicability of Significance Tests for Comparing Learning
       Algorithms", PAKDD 2004, section 3.2, https://doi.org/10.1007/978-3-540-24775-3_3

    Examples
    --------
    >>> found = corrected_t_test([0.02, 0.05, 0.03, 0.06, 0.04], test_over_train=1 / 4)
    >>> round(found.t, 3), round(found.p_value, 4)
    (3.771, 0.0196)
    """
    values = np.asarray(differences, dtype=np.float64).ravel()
    values = values[np.isfinite(values)]
    n = len(values)
    if not n:
        return PairedTest(0, np.nan)
    mean = float(values.mean())
    if n < 2:
        return PairedTest(n, mean)
    spread = float(values.std(ddof=1))
    if not values.any():  # two models that agree everywhere
        return PairedTest(n, 0.0, 0.0, 0.0, 0.0, 1.0)
    if spread <= 1e-12 * abs(mean):  # rounding alone: t would be an accident of the last digit
        return PairedTest(n, mean)
    error = spread * np.sqrt(1 / n + test_over_train)
    t = mean / error
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1)) * error
    p_value = float(2 * stats.t.sf(abs(t), n - 1))
    return PairedTest(n, mean, float(mean - half), float(mean + half), float(t), p_value)


def holm(p_values: npt.ArrayLike) -> FloatArray:
    """Correct p-values for how many there are (Holm's step-down method); NaN stays NaN and does not count.

    Parameters
    ----------
    p_values : array-like of shape (m,)
        Uncorrected.

    Returns
    -------
    ndarray of shape (m,)
        Corrected, in the same order, at most 1.

    References
    ----------
    S. Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian Journal of Statistics 6, 1979.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).round(3)
    array([0.03, 0.06, 0.06])
    """
    values = np.asarray(p_values, dtype=np.float64)
    corrected = np.full(values.shape, np.nan)
    known = np.flatnonzero(np.isfinite(values))
    order = known[np.argsort(values[known], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(values[order] * factors), 1.0)
    return corrected


def paired_differences(challenger: FloatArray, baseline: FloatArray, *, redrawn: bool) -> FloatArray:
    """Subtract scores run by run.

    Parameters
    ----------
    challenger, baseline : ndarray of shape (n_seeds, n_folds)
        Scores; NaN where a run failed.
    redrawn : bool
        Whether each seed has folds of its own. Where it has not, seeds repeat the same split of the documents: they
        are averaged, since counting them as further folds would understate the variance.

    Returns
    -------
    ndarray of shape (n_seeds * n_folds,) or (n_folds,)
        The differences, NaN where either failed.
    """
    differences = challenger - baseline
    # the plain mean keeps NaN: a fold in which some seed failed is left out whole
    return differences.ravel() if redrawn else differences.mean(axis=0)


def spreads(scores: FloatArray) -> tuple[float, float, float]:
    """Return the mean of scores (n_seeds, n_folds), their spread over folds and their spread over seeds.

    Over folds: the standard deviation within a seed, as the root of the mean variance. Over seeds: the standard
    deviation of the seeds' means. NaN where there is nothing to compare; runs that failed are left out.
    """
    if not np.isfinite(scores).any():
        return np.nan, np.nan, np.nan
    rows = [row[np.isfinite(row)] for row in scores]
    variances = [row.var(ddof=1) for row in rows if len(row) > 1]
    means = [row.mean() for row in rows if len(row)]
    over_folds = float(np.sqrt(np.mean(variances))) if variances else np.nan
    over_seeds = float(np.std(means, ddof=1)) if len(means) > 1 else np.nan
    return float(scores[np.isfinite(scores)].mean()), over_folds, over_seeds
