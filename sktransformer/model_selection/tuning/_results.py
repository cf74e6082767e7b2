"""From the trials of a study to `cv_results_`, and to the error or warning about those that failed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.ma import MaskedArray
from optuna.study import Study
from optuna.trial import TrialState
from scipy.stats import rankdata
from sklearn.exceptions import FitFailedWarning

from ..._engine.errors import warn_user
from ._spaces import Space
from ._trials import ERROR, FOLDS

FINISHED = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)


def cv_results(study: Study, space: Space, n_splits: int, error_score: float) -> dict[str, Any]:
    """Return scikit-learn's table of results, one row a finished trial of the study, in the order of their numbers.

    Parameters
    ----------
    study : Study
        With all its trials, those of earlier runs and of other processes included.
    space : Space
        Gives the parameters of a trial.
    n_splits : int
        Folds.
    error_score : float
        Score of a fold that failed.

    Returns
    -------
    dict of str to array
        As `GridSearchCV` has it, with columns `trial_number` and `trial_state` besides. A fold that a trial did not
        reach has NaN.
    """
    trials = study.get_trials(deepcopy=False, states=FINISHED)
    params = [space.replay(trial) for trial in trials]
    folds = [trial.user_attrs.get(FOLDS, []) for trial in trials]
    results: dict[str, Any] = {}
    for key in ("fit_time", "score_time"):
        array = np.full((len(trials), n_splits), np.nan)
        for row, records in enumerate(folds):
            array[row, : len(records)] = [record[key] for record in records]
        results[f"mean_{key}"], results[f"std_{key}"] = _moments(array, partial=True)
    results.update(_param_columns(params))
    results["params"] = params
    for part in ("test", "train"):
        names = dict.fromkeys(
            name for records in folds for record in records for name in record.get(part) or ()
        )
        for name in names:
            _add_scores(results, f"{part}_{name}", _score_table(folds, part, name, n_splits, error_score))
    results["trial_number"] = np.array([trial.number for trial in trials], dtype=np.int64)
    results["trial_state"] = np.array([trial.state.name.lower() for trial in trials], dtype=object)
    return results


def _score_table(
    folds: list[list[dict[str, Any]]], part: str, name: str, n_splits: int, error_score: float
) -> npt.NDArray[np.float64]:
    """Scores (trials, folds)."""
    table = np.full((len(folds), n_splits), np.nan)
    for row, records in enumerate(folds):
        for column, record in enumerate(records):
            scores = record.get(part)
            table[row, column] = error_score if scores is None else scores.get(name, np.nan)
    table[~np.isfinite(table)] = (
        np.nan
    )  # nothing is better than infinite, or worse, and nothing can be averaged with it
    return table


def _add_scores(results: dict[str, Any], key: str, table: npt.NDArray[np.float64]) -> None:
    for fold in range(table.shape[1]):
        results[f"split{fold}_{key}"] = table[:, fold]
    mean, results[f"std_{key}"] = _moments(table, partial=False)
    results[f"mean_{key}"] = mean
    if key.startswith("test_"):
        worst = np.nanmin(mean, initial=0.0) - 1  # trials without a score come last, all in one place
        results[f"rank_{key}"] = rankdata(-np.where(np.isnan(mean), worst, mean), method="min").astype(
            np.int32
        )


def _moments(table: npt.NDArray[np.float64], *, partial: bool) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Mean and spread of each row; NaN for a row with a gap, or over what is there with `partial`."""
    there = ~np.isnan(table) if partial else np.ones(table.shape, dtype=bool)
    count = there.sum(axis=1)
    some = np.maximum(count, 1)
    mean = np.where(there, table, 0.0).sum(axis=1) / some
    spread = np.sqrt(np.where(there, (table - mean[:, None]) ** 2, 0.0).sum(axis=1) / some)
    mean[count == 0] = spread[count == 0] = np.nan
    return mean, spread


def _param_columns(params: list[dict[str, Any]]) -> dict[str, MaskedArray[Any, Any]]:
    """One masked column a parameter: masked where a trial did not have it."""
    columns: dict[str, MaskedArray[Any, Any]] = {}
    for name in dict.fromkeys(name for row in params for name in row):
        mask = [name not in row for row in params]
        kinds = {type(row[name]) for row in params if name in row}
        numeric = kinds <= {int, float} and (len(kinds) == 1 or not kinds)
        values = np.empty(len(params), dtype=kinds.pop() if numeric else object)
        for place, row in enumerate(params):
            if name in row:
                values[place] = row[name]
            elif numeric:
                values[place] = 0
        columns[f"param_{name}"] = MaskedArray(values, mask=mask)
    return columns


def counts(study: Study) -> Counter[TrialState]:
    """Count the trials of a study by state."""
    return Counter(trial.state for trial in study.get_trials(deepcopy=False))


def require_a_complete_trial(study: Study, first_error: Exception | None, timeout: float | None) -> None:
    """Raise ValueError when no trial of the study has a score."""
    by_state = counts(study)
    if by_state[TrialState.COMPLETE]:
        return
    failed, pruned = by_state[TrialState.FAIL], by_state[TrialState.PRUNED]
    said = f"{type(first_error).__name__}: {first_error}" if first_error else _stored_error(study)
    reasons = []
    if failed:
        reasons.append(f"The first failure was: {said}")
    if pruned:
        reasons.append("The pruner ended trials before any had a score; take a milder one, or pruner=None.")
    if not failed and not pruned:
        reasons.append(f"timeout={timeout} s was over before a trial ended; raise it.")
    error = ValueError(
        f"the search found no score: 0 complete, {failed} failed, {pruned} pruned trials in study "
        f"{study.study_name!r}, which is kept in `study_`. {' '.join(reasons)}"
    )
    if first_error is not None:
        error.add_note("Rows that the failure names are counted within the training or test part of a fold.")
    raise error from first_error


def _stored_error(study: Study) -> str:
    """The text of the first failure that a study holds."""
    texts = (trial.user_attrs.get(ERROR) for trial in study.get_trials(deepcopy=False))
    return next((str(text) for text in texts if text), "interrupted, or no reason was kept")


def warn_of_failures(study: Study) -> None:
    """Warn once, with the count, of the trials that failed."""
    trials = study.get_trials(deepcopy=False)
    failed = [trial for trial in trials if ERROR in trial.user_attrs]
    if failed:
        warn_user(
            f"{len(failed)} of {len(trials)} trials of study {study.study_name!r} failed, whole or in a "
            f"fold; the first said: {failed[0].user_attrs[ERROR]}. See cv_results_['trial_state'].",
            FitFailedWarning,
        )
