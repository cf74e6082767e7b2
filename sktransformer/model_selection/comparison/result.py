"""What a comparison found: tables, sentences, pictures."""

from __future__ import annotations

import html
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ._statistics import FloatArray, corrected_t_test, holm, paired_differences, spreads
from ._verdict import p_text, write_verdict

if TYPE_CHECKING:
    from .display import ComparisonDisplay

COSTS = ("fit_seconds", "ms_per_document", "megabytes", "share_cut")
_HEADINGS = {
    "fit_seconds": "fit (s)",
    "ms_per_document": "predict (ms a document)",
    "megabytes": "size (MB)",
    "share_cut": "share cut",
    "difference": "difference",
    "p_value": "p (Holm)",
    "failed": "failed runs",
}


class ComparisonResult:
    """Scores and costs of several estimators on the same folds; what :func:`compare_models` returns.

    Parameters
    ----------
    runs : DataFrame
        One row an estimator, seed and fold, as in the attribute.
    scoring : sequence of str
        Names of the scorers, the deciding one first.
    baseline : str
        What the others are tested against.
    test_over_train : float
        Documents of a test part over documents of its training part.
    redrawn : bool, default=True
        Whether each seed had folds of its own; where not, the test averages over seeds.

    Attributes
    ----------
    frame : DataFrame
        One row an estimator, the best mean of the first scorer first, those that lack a score of it last. For each
        scorer its mean, ``{scorer}_fold_std`` (standard deviation over folds within a seed) and
        ``{scorer}_seed_std`` (of the seeds' means; NaN with one seed); then `difference` to the baseline and its
        `p_value` (two-sided, after Holm), both of the first scorer; `fit_seconds`, `ms_per_document` (prediction),
        `megabytes` (of the pickled estimator, 10^6 bytes), `share_cut` (of documents longer than the model reads; NaN
        for models without a limit) as means over runs; `failed`, the number of runs with an error.
    runs : DataFrame
        One row an estimator, seed and fold: the scores, the same costs, `error` and `traceback` (empty where all went
        well).
    tests : DataFrame
        One row a challenger, in the order of `frame`: `n` differences, their mean `difference`, the 95 % interval
        `low` to `high`, `t`, `p_value` before and `p_holm` after Holm's correction.
    verdict : str
        The same in sentences.
    scoring : list of str
        Names of the scorers.
    baseline : str
        What the others were tested against.

    See Also
    --------
    compare_models : Makes one.
    ComparisonDisplay : Its picture.

    Examples
    --------
    >>> import pandas as pd
    >>> from sktransformer.model_selection import ComparisonResult
    >>> runs = pd.DataFrame({
    ...     "estimator": ["A", "B"] * 3, "seed": 0, "fold": [0, 0, 1, 1, 2, 2],
    ...     "accuracy": [0.70, 0.81, 0.72, 0.81, 0.74, 0.84],
    ...     "fit_seconds": [1.0, 30.0] * 3, "ms_per_document": [0.1, 0.5] * 3, "megabytes": [1.0, 400.0] * 3,
    ...     "share_cut": float("nan"), "error": "", "traceback": ""})
    >>> result = ComparisonResult(runs, ["accuracy"], "A", test_over_train=1 / 2)
    >>> result.frame[["accuracy", "difference", "p_value"]].round(3)
               accuracy  difference  p_value
    estimator
    B              0.82         0.1    0.008
    A              0.72         NaN      NaN
    >>> print(result.verdict)
    B wins 10.0 points of accuracy over A, p = 0.008, at 30 times the fitting time and 5 times the prediction time.
    """

    def __init__(
        self,
        runs: pd.DataFrame,
        scoring: Any,
        baseline: str,
        test_over_train: float,
        *,
        redrawn: bool = True,
    ) -> None:
        self.runs = runs
        self.scoring = list(scoring)
        self.baseline = baseline
        grids = {
            str(name): _grid(own, self.scoring[0]) for name, own in runs.groupby("estimator", sort=False)
        }
        # a mean over the folds that went well can't be set beside a mean over all of them
        unranked = {name for name, scores in grids.items() if not np.isfinite(scores).all()}
        frame = _summary(runs, self.scoring, unranked)
        self.tests = _tests(grids, list(frame.index), unranked, baseline, test_over_train, redrawn=redrawn)
        self.frame = _with_tests(frame, self.tests, self.scoring)
        n_runs = len(runs) // len(frame)
        self.verdict = write_verdict(self.frame, self.tests, baseline, self.scoring[0], n_runs, unranked)

    def plot(self, ax: Any = None, *, scorer: str | None = None) -> ComparisonDisplay:
        """Draw each run's score, each estimator's mean, and the baseline.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        scorer : str or None, default=None
            Which of the scorers; None is the first.

        Returns
        -------
        ComparisonDisplay
            With `ax_` and `figure_`.

        Raises
        ------
        MissingExtraError
            Without matplotlib, which the extra ``[plot]`` brings.
        """
        from .display import ComparisonDisplay

        return ComparisonDisplay.from_result(self, ax=ax, scorer=scorer)

    def to_markdown(self) -> str:
        """Return the verdict and the table as markdown.

        Returns
        -------
        str
            A paragraph and a pipe table.
        """
        table = self._table()
        rows = [["estimator", *table.columns], *([name, *cells] for name, cells in _cells(table))]
        lines = ["| " + " | ".join(_escaped(cell) for cell in row) + " |" for row in rows]
        lines.insert(1, "|---|" + "---:|" * len(table.columns))
        return "\n".join([self.verdict, "", *lines, ""])

    def to_html(self) -> str:
        """Return the verdict and the table as HTML.

        Returns
        -------
        str
            A ``div``, to stand in a page.
        """
        table = self._table()
        head = "".join(f"<th>{html.escape(name)}</th>" for name in table.columns)
        body = "".join(
            f"<tr><th>{html.escape(name)}</th>"
            + "".join(f'<td style="text-align: right">{html.escape(cell)}</td>' for cell in cells)
            + "</tr>"
            for name, cells in _cells(table)
        )
        return (
            f"<div><p>{html.escape(self.verdict)}</p><table><thead><tr><th>estimator</th>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table></div>"
        )

    def _repr_html_(self) -> str:
        return self.to_html()

    def __repr__(self) -> str:
        return f"{self.verdict}\n\n{self._table().to_string()}"

    def _table(self) -> pd.DataFrame:
        """Return `frame` as people read it: rounded strings, and no column that says nothing."""
        frame, table = self.frame, pd.DataFrame(index=self.frame.index)
        for name in self.scoring:
            table[name] = [
                _number(mean) if np.isnan(spread) else f"{_number(mean)} ± {_number(spread)}"
                for mean, spread in zip(frame[name], frame[f"{name}_fold_std"], strict=True)
            ]
            if frame[f"{name}_seed_std"].notna().any():
                table[f"{name} over seeds"] = [
                    "" if np.isnan(spread) else f"± {_number(spread)}" for spread in frame[f"{name}_seed_std"]
                ]
        table["difference"] = [
            "" if np.isnan(value) else f"{value:+.4g}" for value in frame["difference"].round(3)
        ]
        for name in ("p_value", *COSTS):
            if frame[name].notna().any():
                table[_HEADINGS[name]] = [_number(value) for value in frame[name]]
        if "p (Holm)" in table:
            table["p (Holm)"] = [
                "" if np.isnan(p) else p_text(p).removeprefix("p ").removeprefix("= ")
                for p in frame["p_value"]
            ]
        if frame["failed"].any():
            table[_HEADINGS["failed"]] = frame["failed"].astype(str)
        return table


def _summary(runs: pd.DataFrame, scoring: list[str], unranked: Collection[str]) -> pd.DataFrame:
    """Average the runs of each estimator, and sort; the unranked come last."""
    rows = {}
    for name, own in runs.groupby("estimator", sort=False):
        row: dict[str, Any] = {}
        for scorer in scoring:
            mean, over_folds, over_seeds = spreads(_grid(own, scorer))
            row |= {scorer: mean, f"{scorer}_fold_std": over_folds, f"{scorer}_seed_std": over_seeds}
        row |= {cost: own[cost].mean() for cost in COSTS}
        rows[name] = row | {"failed": int((own["error"] != "").sum())}
    frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis("estimator")
    ranked = frame.assign(_last=frame.index.isin(list(unranked))).sort_values(
        ["_last", scoring[0]], ascending=[True, False], kind="stable"
    )
    return ranked.drop(columns="_last")


def _grid(own: pd.DataFrame, scorer: str) -> FloatArray:
    """Return the scores of one estimator, a row a seed and a column a fold."""
    scores: FloatArray = own.pivot(index="seed", columns="fold", values=scorer).to_numpy(dtype=np.float64)
    return scores


def _tests(
    grids: Mapping[str, FloatArray],
    names: Sequence[str],
    unranked: Collection[str],
    baseline: str,
    test_over_train: float,
    *,
    redrawn: bool,
) -> pd.DataFrame:
    """Test every challenger against the baseline; one that lacks a score is not tested."""
    rows = {}
    for name in names:
        if name != baseline:
            differences = paired_differences(grids[name], grids[baseline], redrawn=redrawn)
            if name in unranked or baseline in unranked:
                differences = np.full_like(differences, np.nan)
            rows[name] = vars(corrected_t_test(differences, test_over_train))
    columns = ["n", "difference", "low", "high", "t", "p_value"]
    tests = pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("estimator")
    tests["p_holm"] = holm(tests["p_value"].to_numpy(dtype=np.float64))
    return tests


def _with_tests(frame: pd.DataFrame, tests: pd.DataFrame, scoring: list[str]) -> pd.DataFrame:
    """Put difference and p-value between the scores and the costs."""
    scores = [f"{name}{suffix}" for name in scoring for suffix in ("", "_fold_std", "_seed_std")]
    found = tests[["difference", "p_holm"]].rename(columns={"p_holm": "p_value"}).astype(np.float64)
    return pd.concat([frame[scores], found.reindex(frame.index), frame[[*COSTS, "failed"]]], axis=1)


def _cells(table: pd.DataFrame) -> list[tuple[str, list[str]]]:
    return [
        (str(name), [str(cell) for cell in row])
        for name, row in zip(table.index, table.to_numpy(), strict=True)
    ]


def _number(value: float) -> str:
    """Three decimals below ten, three significant digits above, nothing for NaN."""
    if np.isnan(value):
        return ""
    if abs(value) < 10:
        return f"{value:.3f}" if value == 0 or abs(value) >= 0.001 else f"{value:.1g}"
    return f"{value:,.1f}" if abs(value) < 100 else f"{value:,.0f}"


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|").replace("\n", " ")
