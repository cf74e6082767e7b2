"""The risk-coverage curve and its picture."""

import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from sktransformer.ensemble import RiskCoverageDisplay, risk_coverage_curve
from sktransformer.ensemble.risk_coverage import area
from sktransformer.exceptions import MissingExtraError


@pytest.fixture(autouse=True)
def _no_figures_left():
    yield
    plt.close("all")


def two(confidences, first):
    """Probabilities of two classes "a" and "b"; `first` says which rows are for "a"."""
    p = np.where(first, confidences, 1 - np.asarray(confidences))
    return np.column_stack([p, 1 - p])


def test_worked_by_hand():
    proba = two([0.6, 0.9, 0.8, 0.7, 0.55], [True, True, True, True, False])
    coverage, risk, thresholds = risk_coverage_curve(["b", "a", "b", "a", "b"], proba)
    np.testing.assert_allclose(coverage, [0.2, 0.4, 0.6, 0.8, 1.0])
    np.testing.assert_allclose(risk, [0, 1 / 2, 1 / 3, 2 / 4, 2 / 5])
    np.testing.assert_allclose(thresholds, [0.9, 0.8, 0.7, 0.6, 0.55])
    assert area(coverage, risk) == pytest.approx(np.mean(risk))


def test_documents_of_one_confidence_are_answered_together():
    proba = two([0.8, 0.9, 0.8, 0.8], [True] * 4)
    coverage, risk, thresholds = risk_coverage_curve(["a", "a", "b", "a"], proba)
    assert coverage.tolist() == [0.25, 1.0]
    assert risk.tolist() == [0.0, 0.25]
    assert thresholds.tolist() == [0.9, 0.8]
    assert area(coverage, risk) == 0.25 * 0 + 0.75 * 0.25


def test_against_a_count_at_every_threshold(numbers):
    X, y = numbers
    fitted = LogisticRegression().fit(X[::2], y[::2])
    proba = fitted.predict_proba(X[1::2])
    coverage, risk, thresholds = risk_coverage_curve(pd.Series(y[1::2], index=range(100, 0, -1)), proba)
    wrong = fitted.predict(X[1::2]) != y[1::2]
    for c, r, t in zip(coverage, risk, thresholds, strict=True):
        answered = proba.max(axis=1) >= t
        assert c == answered.mean()
        assert r == pytest.approx(wrong[answered].mean(), abs=1e-12)
    assert coverage[-1] == 1.0
    assert (np.diff(coverage) > 0).all()
    assert (np.diff(thresholds) < 0).all()


def test_classes_may_be_given():
    proba = [[0.1, 0.7, 0.2], [0.3, 0.3, 0.4]]
    _, risk, _ = risk_coverage_curve(["b", "b"], proba, classes=["a", "b", "c"])
    assert risk.tolist() == [0.0, 0.5]
    with pytest.raises(
        ValueError, match=r"one column for each of 1 classes, got shape \(2, 3\).*classes=estim"
    ):
        risk_coverage_curve(["b", "b"], proba)


@pytest.mark.parametrize(
    ("y", "proba", "message"),
    [
        (["a", "b"], [0.5, 0.5], r"got shape \(2,\)"),
        (["a", "b"], [[0.5, 0.5]], "inconsistent"),
        (["a", "b"], [[0.5, 0.5], [np.nan, 0.5]], "not finite"),
        ([], np.zeros((0, 0)), r"0 sample\(s\)"),
        (["a", None], [[0.5, 0.5], [0.5, 0.5]], r"missing value\(s\), in row\(s\) 1"),
    ],
)
def test_what_is_refused(y, proba, message):
    with pytest.raises(ValueError, match=message):
        risk_coverage_curve(y, proba)


def test_display_from_an_estimator_and_from_predictions(numbers):
    X, y = numbers
    fitted = LogisticRegression().fit(X[::2], y[::2])
    display = RiskCoverageDisplay.from_estimator(fitted, X[1::2], y[1::2], color="black")
    coverage, risk, _ = risk_coverage_curve(y[1::2], fitted.predict_proba(X[1::2]))
    np.testing.assert_array_equal(display.line_.get_xdata(), coverage)
    np.testing.assert_array_equal(display.line_.get_ydata(), risk)
    assert display.line_.get_color() == "black"
    assert display.line_.get_label() == f"LogisticRegression (AURC = {area(coverage, risk):.3f})"
    assert display.ax_.get_legend().get_texts()[0].get_text() == display.line_.get_label()
    assert display.ax_.get_xlabel() == "Coverage (share of documents answered)"
    assert display.ax_.get_ylabel() == "Risk (share of errors among them)"
    assert display.figure_ is display.ax_.figure
    proba = fitted.predict_proba(X[1::2])
    second = RiskCoverageDisplay.from_predictions(y[1::2], proba, name="again", ax=display.ax_)
    assert second.ax_ is display.ax_
    assert len(display.ax_.get_legend().get_texts()) == 2
    np.testing.assert_array_equal(second.line_.get_ydata(), risk)


def test_the_axes_hold_every_curve():
    proba = two([0.9, 0.8, 0.7], [True] * 3)
    low = RiskCoverageDisplay.from_predictions(["a", "a", "b"], proba, name="low")
    RiskCoverageDisplay.from_predictions(["b", "a", "a"], proba, name="high", ax=low.ax_)
    assert low.ax_.get_ylim()[1] >= 1.0
    RiskCoverageDisplay.from_predictions(["a", "a", "b"], proba, ax=low.ax_)
    assert low.ax_.get_ylim()[1] >= 1.0


def test_a_curve_without_errors_has_axes():
    proba = two([0.9, 0.8], [True, False])
    low, high = RiskCoverageDisplay.from_predictions(["a", "b"], proba).ax_.get_ylim()
    assert low < 0 < high


def test_names_for_the_legend():
    bare = RiskCoverageDisplay(coverage=np.array([1.0]), risk=np.array([0.5])).plot()
    assert bare.ax_.get_legend() is None
    assert bare.plot(name="only").line_.get_label() == "only"
    assert bare.plot(label="mine").line_.get_label() == "mine"


def test_not_fitted():
    with pytest.raises(NotFittedError):
        RiskCoverageDisplay.from_estimator(LogisticRegression(), [[0.0]], ["a"])


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r'pip install "sktransformer-text\[plot\]"'):
        RiskCoverageDisplay(coverage=np.array([1.0]), risk=np.array([0.5])).plot()
