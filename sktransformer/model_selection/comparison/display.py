"""The picture of a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..._engine.errors import did_you_mean, optional_import
from ._verdict import amount, metric_name, number, p_text, row_dicts


class ComparisonDisplay:
    r"""Scores of all runs, an estimator a line, in the style of scikit-learn's displays.

    Parameters
    ----------
    result : ComparisonResult
        What to draw.
    scorer : str or None, default=None
        Which of the scorers; None is the first.

    Attributes
    ----------
    ax_ : matplotlib Axes
        What was drawn on.
    figure_ : matplotlib Figure
        Its figure.

    See Also
    --------
    ComparisonResult.plot : The short way.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from sktransformer import ComparisonDisplay, compare_models, tfidf_svm
    >>> X = [f"facture numéro {i}" for i in range(20)] + [f"le colis {i} est perdu" for i in range(20)]
    >>> y = ["facture"] * 20 + ["colis"] * 20
    >>> result = compare_models([DummyClassifier(), tfidf_svm()], X, y, cv=4)
    >>> display = ComparisonDisplay.from_result(result, scorer="accuracy")
    >>> [label.get_text().split("\n")[0] for label in display.ax_.get_yticklabels()]
    ['text + tfidf + svm', 'DummyClassifier']
    """

    def __init__(self, result: Any, scorer: str | None = None) -> None:
        self.result = result
        self.scorer = scorer

    @classmethod
    def from_result(cls, result: Any, *, ax: Any = None, scorer: str | None = None) -> ComparisonDisplay:
        """Make the display of a result, and draw it.

        Parameters
        ----------
        result : ComparisonResult
            What to draw.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        scorer : str or None, default=None
            Which of the scorers; None is the first.

        Returns
        -------
        ComparisonDisplay
            With `ax_` and `figure_`.
        """
        return cls(result, scorer).plot(ax)

    def plot(self, ax: Any = None) -> ComparisonDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        ComparisonDisplay
            The display itself.

        Raises
        ------
        MissingExtraError
            Without matplotlib, which the extra ``[plot]`` brings.
        ValueError
            When `scorer` is none of the result's.
        """
        pyplot = optional_import("matplotlib.pyplot", "plot")
        scorer = self._scorer()
        rows = row_dicts(self.result.frame)
        if ax is None:
            _, ax = pyplot.subplots(figsize=(8, 1.5 + 0.6 * len(rows)), layout="constrained")
        for place, (name, row) in enumerate(rows.items()):
            self._draw(ax, place, name, row, scorer)
        base = rows[self.result.baseline][scorer]
        if np.isfinite(base):
            ax.axvline(base, color="0.6", linestyle="--", linewidth=1, zorder=0)
        ax.set_yticks(range(len(rows)), [self._label(name, row, scorer) for name, row in rows.items()])
        ax.set_ylim(len(rows) - 0.5, -0.5)  # the best on top
        ax.set_xlabel(f"{metric_name(scorer)}\n(dots: runs; bar: mean ± deviation over folds)")
        ax.spines[["top", "right"]].set_visible(False)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _scorer(self) -> str:
        known = self.result.scoring
        if self.scorer is None:
            return str(known[0])
        if self.scorer not in known:
            raise ValueError(
                f"scorer={self.scorer!r} is none of {known}.{did_you_mean(str(self.scorer), known)}"
            )
        return self.scorer

    def _draw(self, ax: Any, place: int, name: str, row: Mapping[str, float], scorer: str) -> None:
        """Draw the runs of one estimator as pale dots, and its mean with the spread over folds."""
        runs = self.result.runs
        scores = runs.loc[runs["estimator"] == name, scorer].dropna().to_numpy()
        if not len(scores):
            return
        color = "C7" if name == self.result.baseline else "C0"
        # dots that would hide each other are spread over the height of the line, always in the same way
        heights = place + 0.16 * np.sin(2.4 * np.arange(len(scores)))
        ax.scatter(scores, heights, s=18, color=color, alpha=0.35, linewidths=0, zorder=2)
        spread = row[f"{scorer}_fold_std"]
        ax.errorbar(
            row[scorer],
            place,
            xerr=None if np.isnan(spread) else spread,
            fmt="o",
            color=color,
            markerfacecolor="white" if row["failed"] else color,  # hollow: a mean over other runs
            capsize=3,
            zorder=3,
        )

    def _label(self, name: str, row: Mapping[str, float], scorer: str) -> str:
        """Return the name, and below it what the test said and what a document costs."""
        below = []
        if row["failed"]:
            below.append(f"{int(row['failed'])} run(s) failed")
        if name == self.result.baseline:
            below.append("baseline")
        elif scorer == self.result.scoring[0] and np.isfinite(row["p_value"]):
            sign = "+" if row["difference"] >= 0 else "−"
            below.append(
                f"{sign}{amount(row['difference'], scorer).split(' of ')[0]}, {p_text(row['p_value'])}"
            )
        if np.isfinite(row["ms_per_document"]):
            below.append(f"{number(row['ms_per_document'])} ms a document")
        return "\n".join([name, ", ".join(below)])
