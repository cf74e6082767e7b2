"""The result in plain sentences."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from typing import Any

import pandas as pd

SIGNIFICANT = 0.05
# scorers between 0 and 1, whose differences are told in points of a hundred
_SHARES = re.compile(
    r"(balanced_)?accuracy(_score)?|top_k_accuracy|average_precision|(f1|precision|recall|jaccard|roc_auc)(_\w+)?"
)
_AVERAGED = re.compile(r"(f1|precision|recall|jaccard)_(macro|micro|weighted|samples)")


def metric_name(scorer: str) -> str:
    """Return a scorer's name as people say it.

    Examples
    --------
    >>> metric_name("f1_macro"), metric_name("balanced_accuracy")
    ('macro-F1', 'balanced accuracy')
    """
    averaged = _AVERAGED.fullmatch(scorer)
    if averaged:
        return f"{averaged[2]}-{averaged[1].replace('f1', 'F1')}"
    return {"f1": "F1", "roc_auc": "ROC AUC"}.get(scorer, scorer.replace("_", " "))


def in_points(scorer: str) -> bool:
    """Whether differences of a scorer are told in points of a hundred."""
    return _SHARES.fullmatch(scorer) is not None


def number(value: float, digits: int = 2) -> str:
    """Round to significant digits, without an exponent.

    Examples
    --------
    >>> number(61.7), number(0.304), number(1234.5), number(3.04)
    ('62', '0.3', '1,200', '3')
    """
    if not math.isfinite(value) or value == 0:
        return "0" if value == 0 else "an unknown number of"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    rounded = round(value, places)
    text = f"{rounded:,.{max(places, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def p_text(p_value: float) -> str:
    """Return "p = 0.03", or "p < 0.001" where more digits would promise too much."""
    if p_value < 0.001:
        return "p < 0.001"
    if abs(p_value - SIGNIFICANT) < 0.005:  # two digits would not say on which side it lies
        return f"p = {p_value:.4f}"
    return f"p = {p_value:.3f}" if p_value < 0.01 else f"p = {p_value:.2f}"


def amount(difference: float, scorer: str) -> str:
    """Return how large a difference is, without its sign: "4.1 points of macro-F1"."""
    if in_points(scorer):
        return f"{abs(100 * difference):.1f} points of {metric_name(scorer)}"
    return f"{number(abs(difference), 3)} of {metric_name(scorer)}"


def write_verdict(
    frame: pd.DataFrame,
    tests: pd.DataFrame,
    baseline: str,
    scorer: str,
    n_runs: int,
    unranked: Collection[str],
) -> str:
    """Say which challenger wins by how much at which cost, best first, or that none does.

    Parameters
    ----------
    frame, tests : DataFrame
        Of the result.
    baseline : str
        What the others are tested against.
    scorer : str
        The first scoring.
    n_runs : int
        Runs of each estimator.
    unranked : collection of str
        Estimators that lack a score of the first scoring.

    Returns
    -------
    str
        One sentence a challenger, and one for those that failed.
    """
    rows = row_dicts(frame)
    whole = [name for name in rows if name not in unranked]
    challengers = [name for name in whole if name != baseline]
    sentences = []
    if baseline not in whole:
        sentences.append(f"{baseline}, the baseline, failed, so that nothing is tested.")
        if whole:
            best = whole[0]
            sentences.append(f"{best} is the best of the rest: {_level(rows[best][scorer], scorer)}.")
    elif not challengers:
        sentences.append(f"{baseline} reaches {_level(rows[baseline][scorer], scorer)}.")
        if len(frame) == 1:
            sentences.append("There is nothing to compare it with.")
    else:
        if whole[0] == baseline:
            sentences.append(f"No challenger scores higher than {baseline}.")
        tested = row_dicts(tests)
        sentences += [_about(name, tested[name], rows, baseline, scorer) for name in challengers]
        if len(challengers) > 1:
            sentences.append(f"p-values are corrected for {len(challengers)} challengers (Holm).")
    for name, row in rows.items():
        if row["failed"]:
            ranked = "" if name in whole else " and is not ranked"
            sentences.append(
                f"{name} failed in {row['failed']} of {n_runs} runs{ranked}; runs.error says why."
            )
    return " ".join(sentences)


def _level(score: float, scorer: str) -> str:
    if in_points(scorer):
        return f"{100 * score:.1f} points of {metric_name(scorer)}"
    sign = "-" if score < 0 else ""
    return f"{sign}{number(abs(score), 3)} of {metric_name(scorer)}"


def row_dicts(frame: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Return the rows by name."""
    rows: Any = frame.to_dict("index")  # the stubs allow any key for a column
    return {str(name): row for name, row in rows.items()}


def _about(
    name: str, test: Mapping[str, Any], rows: Mapping[str, Mapping[str, Any]], baseline: str, scorer: str
) -> str:
    """Write the sentence on one challenger."""
    difference, p_value = test["difference"], test["p_holm"]
    cost = _cost(rows[name], rows[baseline])
    if difference == 0:
        return f"{name} and {baseline} score the same, {cost}."
    much = amount(difference, scorer)
    if math.isnan(p_value):
        why = (
            "one difference can't be tested"
            if test["n"] < 2
            else "the same in every fold, which no t-test takes"
        )
        return f"{name} is {much} {'above' if difference > 0 else 'below'} {baseline} ({why}), {cost}."
    if p_value < SIGNIFICANT:
        verb = "wins" if difference > 0 else "loses"
        over = "over" if difference > 0 else "to"
        return f"{name} {verb} {much} {over} {baseline}, {p_text(p_value)}, {cost}."
    side = "above" if difference > 0 else "below"
    return f"{name} is {much} {side} {baseline}, which may be chance, {p_text(p_value)}, {cost}."


def _cost(challenger: Mapping[str, float], baseline: Mapping[str, float]) -> str:
    """Compare times: of a fit, and of a prediction."""
    parts = []
    for column, what in (("fit_seconds", "fitting time"), ("ms_per_document", "prediction time")):
        ratio = challenger[column] / baseline[column] if baseline[column] > 0 else math.nan
        if math.isfinite(ratio):
            parts.append(f"the same {what}" if 0.95 < ratio < 1.05 else f"{number(ratio)} times the {what}")
    return "at " + " and ".join(parts) if parts else "at an unknown cost"
