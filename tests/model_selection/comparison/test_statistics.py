"""The test against hand-computed values, and how often it cries wolf."""

import numpy as np
import pytest
from scipy import stats

from sktransformer.model_selection.comparison._statistics import (
    corrected_t_test,
    holm,
    paired_differences,
    spreads,
)


def test_the_formula_by_hand():
    # mean 0.04; s² = (4 + 1 + 1 + 4 + 0) e-4 / 4 = 2.5e-4; variance of the mean 2.5e-4 (1/5 + 1/4) = 1.125e-4
    found = corrected_t_test([0.02, 0.05, 0.03, 0.06, 0.04], 1 / 4)
    assert found.n == 5
    assert found.difference == pytest.approx(0.04)
    assert found.t == pytest.approx(0.04 / np.sqrt(1.125e-4))
    # table of Student's t with 4 degrees of freedom: 2.776 leaves 2.5 % on each side
    assert found.high - found.difference == pytest.approx(2.776 * np.sqrt(1.125e-4), rel=1e-3)
    assert found.low + found.high == pytest.approx(2 * found.difference)
    assert found.p_value == pytest.approx(0.0196, abs=5e-5)


def test_critical_value_gives_the_level():
    """A difference of exactly 2.262 standard errors on 9 degrees of freedom is p = 0.05."""
    values = np.array([-1, 1] * 5, dtype=float)
    values = values / values.std(ddof=1)
    error = np.sqrt(1 / 10 + 1 / 9)
    assert corrected_t_test(values + 2.26216 * error, 1 / 9).p_value == pytest.approx(0.05, abs=1e-5)


def test_without_overlap_it_is_students_test():
    values = np.random.default_rng(0).normal(0.3, 1, 12)
    assert corrected_t_test(values, 0.0).p_value == pytest.approx(stats.ttest_1samp(values, 0).pvalue)


def test_sign_turns_with_the_order():
    up, down = corrected_t_test([0.1, 0.2, 0.4], 0.5), corrected_t_test([-0.1, -0.2, -0.4], 0.5)
    assert (up.t, up.p_value, up.low) == (
        pytest.approx(-down.t),
        pytest.approx(down.p_value),
        pytest.approx(-down.high),
    )


@pytest.mark.parametrize(
    ("values", "n", "difference", "p_value"),
    [
        ([], 0, np.nan, np.nan),
        ([np.nan, np.nan], 0, np.nan, np.nan),
        ([0.2], 1, 0.2, np.nan),
        ([0.0, 0.0, 0.0], 3, 0.0, 1.0),
        ([0.1, 0.1 + 1e-17, 0.1], 3, 0.1, np.nan),  # t would be rounding error
    ],
)
def test_where_it_is_not_defined(values, n, difference, p_value):
    found = corrected_t_test(values, 0.25)
    assert found.n == n
    assert found.difference == pytest.approx(difference, nan_ok=True)
    assert found.p_value == pytest.approx(p_value, nan_ok=True)


def test_failed_runs_are_left_out():
    assert corrected_t_test([0.1, np.nan, 0.3, 0.2], 0.25) == corrected_t_test([0.1, 0.3, 0.2], 0.25)


def false_positives(n_worlds: int, n_seeds: int, n_folds: int) -> tuple[float, float]:
    """Share of significant differences between two equally good learners: with the correction, and without.

    Each learner has a feature of its own with the same signal, and cuts it half-way between the training means.
    """
    generator = np.random.default_rng(0)
    corrected, plain = 0, 0
    for _ in range(n_worlds):
        y = np.repeat([0, 1], 40)
        X = generator.normal(size=(80, 2)) + 0.8 * y[:, None]
        differences = []
        for _ in range(n_seeds):
            order = generator.permutation(80)
            for test in np.array_split(order, n_folds):
                train = np.setdiff1d(order, test)
                cut = (X[train][y[train] == 0].mean(axis=0) + X[train][y[train] == 1].mean(axis=0)) / 2
                right = ((X[test] > cut) == y[test][:, None]).mean(axis=0)
                differences.append(right[0] - right[1])
        corrected += corrected_t_test(differences, 1 / (n_folds - 1)).p_value < 0.05
        plain += stats.ttest_1samp(differences, 0).pvalue < 0.05
    return corrected / n_worlds, plain / n_worlds


def test_equal_learners_are_rarely_told_apart():
    corrected, plain = false_positives(n_worlds=200, n_seeds=3, n_folds=5)
    assert corrected <= 0.08  # 0.05, and two standard deviations of a share of 200
    assert plain >= 0.15  # what the correction is for


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]).tolist() == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]).tolist() == pytest.approx([1.0, 1.0])
    assert holm([0.02]).tolist() == [0.02]
    assert holm([]).tolist() == []


def test_holm_does_not_count_what_was_not_tested():
    corrected = holm([np.nan, 0.02, 0.03])
    assert np.isnan(corrected[0])
    assert corrected[1:].tolist() == pytest.approx([0.04, 0.04])


def test_the_same_folds_twice_are_not_two_samples():
    some, base = np.array([[0.6, 0.8], [0.8, 0.8]]), np.array([[0.5, 0.5], [0.5, 0.5]])
    assert paired_differences(some, base, redrawn=True).tolist() == pytest.approx([0.1, 0.3, 0.3, 0.3])
    assert paired_differences(some, base, redrawn=False).tolist() == pytest.approx([0.2, 0.3])


def test_spreads_by_hand():
    mean, folds, seeds = spreads(np.array([[0.1, 0.3], [0.5, 0.5]]))
    assert mean == pytest.approx(0.35)
    assert folds == pytest.approx(np.sqrt((0.02 + 0) / 2))
    assert seeds == pytest.approx(0.3 / np.sqrt(2))


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([[0.4]], (0.4, np.nan, np.nan)),
        ([[0.4, np.nan, 0.6]], (0.5, np.sqrt(0.02), np.nan)),
        ([[np.nan, np.nan]], (np.nan, np.nan, np.nan)),
        ([[0.4, 0.4], [np.nan, np.nan]], (0.4, 0.0, np.nan)),
    ],
)
def test_spreads_of_few(scores, expected):
    assert spreads(np.array(scores)) == pytest.approx(expected, nan_ok=True, abs=1e-12)
