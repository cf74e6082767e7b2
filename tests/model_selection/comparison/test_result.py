"""Tables, sentences and pictures of runs with known numbers."""

import html
import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot

from sktransformer import ComparisonDisplay, ComparisonResult
from sktransformer.exceptions import MissingExtraError
from sktransformer.model_selection.comparison._verdict import amount, in_points, metric_name, number, p_text

BASE = np.array([[0.70, 0.72, 0.74], [0.71, 0.73, 0.75]])


def result_of(scores, baseline="base", scoring=("f1_macro",), redrawn=True, errors=(), seconds=None):
    """Runs whose scores are given as (n_seeds, n_folds) for each estimator; a fit takes 1 s unless `seconds` says."""
    rows = []
    for name, grid in scores.items():
        for (seed, fold), score in np.ndenumerate(np.asarray(grid, dtype=float)):
            failed = (name, seed, fold) in errors
            rows.append(
                {
                    "estimator": name,
                    "seed": seed,
                    "fold": fold,
                    **dict.fromkeys(scoring, np.nan if failed else score),
                    "fit_seconds": (seconds or {}).get(name, 1.0),
                    "ms_per_document": 2 * (seconds or {}).get(name, 1.0),
                    "megabytes": 3.0,
                    "share_cut": 0.25 if name == "better" else np.nan,
                    "error": "ValueError in fit: no" if failed else "",
                    "traceback": "",
                }
            )
    return ComparisonResult(pd.DataFrame(rows), scoring, baseline, 1 / 2, redrawn=redrawn)


BETTER = BASE + [[0.10, 0.12, 0.11], [0.09, 0.10, 0.11]]
CLOSE = BASE + [[0.05, -0.04, 0.02], [-0.03, 0.04, 0.0]]
WORSE = BASE - [[0.20, 0.22, 0.21], [0.19, 0.20, 0.21]]


def test_frame_and_tests_by_hand():
    result = result_of({"base": BASE, "better": BETTER})
    assert list(result.frame.index) == ["better", "base"]
    row = result.frame.loc["better"]
    assert row["f1_macro"] == pytest.approx(BETTER.mean())
    assert row["f1_macro_fold_std"] == pytest.approx(np.sqrt(BETTER.var(axis=1, ddof=1).mean()))
    assert row["f1_macro_seed_std"] == pytest.approx(BETTER.mean(axis=1).std(ddof=1))
    assert row["difference"] == pytest.approx(0.105)
    # six differences: s² = 1.1e-4; variance of the mean 1.1e-4 (1/6 + 1/2)
    assert result.tests.loc["better", "t"] == pytest.approx(0.105 / np.sqrt(1.1e-4 * (1 / 6 + 1 / 2)))
    assert result.tests.loc["better", "n"] == 6
    assert row[["fit_seconds", "ms_per_document", "megabytes", "share_cut", "failed"]].tolist() == [
        1,
        2,
        3,
        0.25,
        0,
    ]
    assert result.frame.loc["base", ["difference", "p_value"]].isna().all()


def test_folds_that_stay_are_counted_once():
    result = result_of({"base": BASE, "better": BETTER}, redrawn=False)
    assert result.tests.loc["better", "n"] == 3
    assert (
        result.tests.loc["better", "p_value"]
        > result_of({"base": BASE, "better": BETTER}).tests["p_value"].iloc[0]
    )


def test_holm_over_several_challengers():
    result = result_of({"base": BASE, "better": BETTER, "close": CLOSE, "worse": WORSE})
    assert list(result.frame.index) == ["better", "close", "base", "worse"]
    assert list(result.tests.index) == ["better", "close", "worse"]
    p = result.tests["p_value"]
    assert result.frame.loc["worse", "p_value"] == pytest.approx(3 * p["worse"])
    assert result.frame.loc["better", "p_value"] == pytest.approx(2 * p["better"])
    assert result.frame.loc["close", "p_value"] == pytest.approx(p["close"])


def test_a_winner():
    verdict = result_of({"base": BASE, "better": BETTER}, seconds={"base": 0.1, "better": 6.0}).verdict
    assert verdict == (
        "better wins 10.5 points of macro-F1 over base, p < 0.001, at 60 times the fitting time and 60 times the "
        "prediction time."
    )


def test_no_significant_difference_is_called_chance():
    verdict = result_of({"base": BASE, "close": CLOSE}).verdict
    assert verdict.startswith("close is 0.7 points of macro-F1 above base, which may be chance, p = 0.83,")
    assert "wins" not in verdict


def test_the_baseline_wins():
    verdict = result_of({"base": BASE, "worse": WORSE}).verdict
    assert verdict.startswith(
        "No challenger scores higher than base. worse loses 20.5 points of macro-F1 to base, p <"
    )


def test_several_challengers_are_told_best_first_with_the_correction():
    verdict = result_of({"worse": WORSE, "base": BASE, "better": BETTER}).verdict
    assert verdict.index("better wins") < verdict.index("worse loses")
    assert verdict.endswith("p-values are corrected for 2 challengers (Holm).")
    assert "No challenger" not in verdict


@pytest.mark.parametrize(
    ("scores", "says"),
    [
        ({"base": BASE}, "base reaches 72.5 points of macro-F1. There is nothing to compare it with."),
        ({"base": BASE, "twin": BASE}, "twin and base score the same, at the same fitting time"),
        (
            {"base": [[0.5, 0.5]], "up": [[0.7, 0.7]]},
            "up is 20.0 points of macro-F1 above base (the same in every fold",
        ),
        (
            {"base": [[0.5]], "down": [[0.4]]},
            "down is 10.0 points of macro-F1 below base (one difference can't be",
        ),
    ],
)
def test_what_can_not_be_tested(scores, says):
    assert says in result_of(scores).verdict


def test_failed_runs_are_neither_ranked_nor_tested():
    result = result_of({"base": BASE, "better": BETTER, "close": CLOSE}, errors={("better", 0, 1)})
    assert list(result.frame.index) == ["close", "base", "better"]
    assert result.frame.loc["better", "failed"] == 1
    assert np.isnan(result.frame.loc["better", "p_value"])
    assert (
        result.frame.loc["close", "p_value"] == result.tests.loc["close", "p_value"]
    )  # one test, no correction
    assert result.verdict.endswith("better failed in 1 of 6 runs and is not ranked; runs.error says why.")


def test_a_baseline_that_failed():
    verdict = result_of({"base": BASE, "better": BETTER}, errors={("base", 1, 1)}).verdict
    assert "base, the baseline, failed, so that nothing is tested." in verdict
    assert "better is the best of the rest: 83.0 points of macro-F1." in verdict


@pytest.mark.parametrize(
    ("scorer", "name", "points"),
    [
        ("f1_macro", "macro-F1", True),
        ("precision_weighted", "weighted-precision", True),
        ("f1", "F1", True),
        ("roc_auc_ovr", "roc auc ovr", True),
        ("balanced_accuracy", "balanced accuracy", True),
        ("neg_log_loss", "neg log loss", False),
        ("r2", "r2", False),
        ("my_score", "my score", False),
    ],
)
def test_names_of_metrics(scorer, name, points):
    assert metric_name(scorer) == name
    assert in_points(scorer) is points


def test_a_score_without_bounds_is_not_told_in_points():
    assert amount(-0.12345, "neg_log_loss") == "0.123 of neg log loss"
    verdict = result_of({"base": -BASE, "better": -WORSE}, scoring=["neg_log_loss"]).verdict
    assert verdict.startswith("better wins 0.205 of neg log loss over base")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (59.6, "60"),
        (0.0123, "0.012"),
        (1.0, "1"),
        (99.7, "100"),
        (123456, "120,000"),
        (2.34, "2.3"),
    ],
)
def test_two_digits(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("p", "text"), [(0.0004, "p < 0.001"), (0.0042, "p = 0.004"), (0.0321, "p = 0.03"), (1.0, "p = 1.00")]
)
def test_p_values(p, text):
    assert p_text(p) == text


def test_a_p_value_just_below_the_level_is_not_rounded_onto_it():
    assert p_text(0.0496) == "p = 0.0496"
    assert p_text(0.0504) == "p = 0.0504"


NASTY = "<b>a | b</b>"


def test_markdown_is_one_table_whatever_the_names():
    text = result_of({"base": BASE, NASTY: BETTER}).to_markdown()
    verdict, blank, *table = text.splitlines()
    assert verdict.startswith(NASTY)
    assert blank == ""
    assert len(table) == 4
    assert len({line.replace("\\|", "").count("|") for line in table}) == 1
    assert "| base | 0.725 ± 0.020 | ± 0.007 |" in text


def test_html_is_escaped():
    result = result_of({"base": BASE, NASTY: BETTER})
    page = result.to_html()
    assert result._repr_html_() == page
    assert NASTY not in page
    assert page.count(html.escape(NASTY)) == 2  # in the sentence and in the table
    assert page.count("<tr>") == 3


def test_the_text_leaves_out_what_says_nothing():
    shown = repr(result_of({"base": BASE[:1], "close": CLOSE[:1]}))
    assert "close is" in shown
    assert "over seeds" not in shown
    assert "share cut" not in shown
    assert "failed" not in shown
    assert "share cut" in repr(result_of({"base": BASE, "better": BETTER}))


def test_the_picture():
    result = result_of({"base": BASE, "better": BETTER, "worse": WORSE}, scoring=["f1_macro", "accuracy"])
    figure, ax = pyplot.subplots()
    display = result.plot(ax)
    assert isinstance(display, ComparisonDisplay)
    assert display.ax_ is ax
    assert display.figure_ is figure
    names = [label.get_text().split("\n")[0] for label in ax.get_yticklabels()]
    assert names == ["better", "base", "worse"]
    assert "+10.5 points, p < 0.001, 2 ms a document" in ax.get_yticklabels()[0].get_text()
    assert "baseline" in ax.get_yticklabels()[1].get_text()
    bottom, top = ax.get_ylim()
    assert bottom > top  # the best on top
    dots = [
        points.get_offsets()[:, 0].tolist() for points in ax.collections if len(points.get_offsets()) == 6
    ]
    assert sorted(dots[0]) == pytest.approx(sorted(BETTER.ravel()))
    assert ax.get_xlabel().startswith("macro-F1")
    pyplot.close(figure)
    other = result.plot(scorer="accuracy")
    assert other.ax_.get_xlabel().startswith("accuracy")
    assert "points" not in other.ax_.get_yticklabels()[0].get_text()  # the test was of macro-F1
    pyplot.close(other.figure_)


def test_a_picture_with_failures():
    errors = {("better", seed, fold) for seed in range(2) for fold in range(3)}
    display = result_of({"base": BASE, "better": BETTER}, errors=errors).plot()
    assert "6 run(s) failed" in display.ax_.get_yticklabels()[1].get_text()
    pyplot.close(display.figure_)


def test_an_unknown_scorer_is_named():
    with pytest.raises(ValueError, match=r"scorer='f1_marco' is none of .*Did you mean 'f1_macro'"):
        result_of({"base": BASE}).plot(scorer="f1_marco")


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match=r'pip install "sktransformer-text\[plot\]"'):
        result_of({"base": BASE}).plot()
