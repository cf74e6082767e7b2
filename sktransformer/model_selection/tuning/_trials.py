"""One trial of a search: parameters, folds, scores. All that lasts is written into the study."""

from __future__ import annotations

import math
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.exceptions import OptunaError, TrialPruned
from sklearn import config_context
from sklearn.base import clone

from ..._engine.compat import rows_of_params, safe_split
from ._pruning import Steps, Watch
from ._spaces import Space

FOLDS = "folds"  # attribute of a trial: what each finished fold took and scored
ERROR = "error"  # attribute of a trial: why it has no score
_TEXT = 2000  # characters of an error that a study keeps


@dataclass
class Objective:
    """A function of an optuna trial that returns the mean score of the folds.

    No estimator outlives its fold. The attributes are the search's, and `first_error` is the first exception that made
    a trial fail, without what its frames held.
    """

    estimator: Any
    X: Any
    y: Any
    splits: Sequence[tuple[Any, Any]]
    space: Space
    distributions: dict[str, BaseDistribution]
    scorer: Any
    metric: str
    scoring: Any
    fit_params: dict[str, Any]
    score_params: dict[str, Any]
    error_score: Any
    return_train_score: bool
    steps: Steps
    prunes: bool
    config: dict[str, Any]
    first_error: Exception | None = None
    _context: Context = field(default_factory=copy_context)
    _lock: Any = field(default_factory=threading.Lock)

    def run_in_this_context(self) -> Objective:
        """Let trials take over the context of the caller, in which warnings are said once."""
        self._context = copy_context()
        return self

    def __call__(self, trial: Any) -> float:
        """Run the trial; a thread of optuna's takes over the context of the fit."""
        return self._context.copy().run(self._configured, trial)

    def _configured(self, trial: Any) -> float:
        reason = ""
        with config_context(**self.config):  # scikit-learn's settings are a thread's own
            try:
                return self._run(trial)
            except TrialPruned as pruned:
                # optuna keeps the exception in a frame that the exception keeps: the fold's estimator would live on
                traceback.clear_frames(pruned.__traceback__)
                reason = str(pruned)
        raise TrialPruned(reason)

    def _run(self, trial: Any) -> float:
        try:
            params = self.space.suggest(trial)
        except OptunaError:
            raise
        except Exception as error:
            if self.error_score == "raise":
                raise
            self._failed(trial, error)
            return math.nan
        folds: list[dict[str, Any]] = []
        for number in range(len(self.splits)):
            fold, failure = self._fold(trial, params, number, [self._value(done) for done in folds])
            folds.append(fold)
            trial.set_user_attr(FOLDS, folds)
            if failure is not None:
                self._failed(trial, failure)
            mean = float(np.mean([self._value(done) for done in folds]))
            if not math.isfinite(mean):  # whatever the other folds score
                if failure is None:
                    trial.set_user_attr(ERROR, f"the score of fold {number} is {_shown(mean)}")
                return math.nan
            self._report(trial, self.steps.after_fold(number), mean, last=number + 1 == len(self.splits))
        return mean

    def _fold(
        self, trial: Any, params: Mapping[str, Any], number: int, earlier: list[float]
    ) -> tuple[dict[str, Any], Exception | None]:
        """Fit and score one fold; return its record, and what went wrong."""
        train, test = self.splits[number]
        watch: Watch | None = None
        start = time.perf_counter()
        fitted = start
        fold: dict[str, Any] = {"test": None}
        failure: Exception | None = None
        try:
            # parameters may be estimators themselves, and a fit must not reach those of the next fold
            estimator = clone(self.estimator).set_params(**clone(dict(params), safe=False))
            X_train, y_train = safe_split(estimator, self.X, self.y, train)
            X_test, y_test = safe_split(estimator, self.X, self.y, test, train)
            score_params = rows_of_params(self.X, self.score_params, test)
            if self.prunes:
                watch = self._watch(trial, estimator, (X_test, y_test, score_params), number, earlier)
            fit_params = rows_of_params(self.X, self.fit_params, train)
            targets = () if y_train is None else (y_train,)
            estimator.fit(X_train, *targets, **fit_params)
            fitted = time.perf_counter()
            fold["test"] = self._scores(estimator, X_test, y_test, score_params)
            if self.return_train_score:
                of_train = rows_of_params(self.X, self.score_params, train)
                fold["train"] = self._scores(estimator, X_train, y_train, of_train)
        except OptunaError:  # pruned, or the storage failed
            raise
        except Exception as error:
            if self.error_score == "raise":
                raise
            traceback.clear_frames(error.__traceback__)
            fold["test"], failure = None, error
        finally:
            if watch is not None:
                watch.release()
        end = time.perf_counter()
        fitted = fitted if fitted > start else end
        return {"fit_time": fitted - start, "score_time": end - fitted, **fold}, failure

    def _watch(
        self, trial: Any, estimator: Any, test: tuple[Any, ...], number: int, earlier: list[float]
    ) -> Watch:
        """Report the epochs of the coming fit."""
        X_test, y_test, score_params = test

        def score(part: Any, X: Any) -> float:
            return self._decisive(self._scores(part, X, y_test, score_params))

        def same_metric(part: Any) -> bool:
            return isinstance(self.scoring, str) and getattr(part, "scoring", None) == self.scoring

        def report(epoch: int, value: float) -> None:
            step = self.steps.after_epoch(number, epoch)
            if step is not None and math.isfinite(value):
                self._report(trial, step, float(np.mean([*earlier, value])), last=False)

        return Watch(estimator, score, X_test, same_metric, report)

    def _report(self, trial: Any, step: int, value: float, *, last: bool) -> None:
        trial.report(value, step)
        if self.prunes and not last and trial.should_prune():
            raise TrialPruned(f"at step {step} of {self.steps.total}, with {value:.4g}")

    def _scores(self, estimator: Any, X: Any, y: Any, params: dict[str, Any]) -> dict[str, float]:
        targets = () if y is None else (y,)
        scores = self.scorer(estimator, X, *targets, **params)
        if not isinstance(scores, Mapping):
            scores = {"score": scores}
        for name, value in scores.items():
            if isinstance(value, str):  # what scikit-learn makes of a scorer that failed beside others
                raise RuntimeError(f"scorer {name!r} failed: {value.strip().splitlines()[-1]}")
        return {str(name): _number(name, value) for name, value in scores.items()}

    def _decisive(self, scores: Mapping[str, float]) -> float:
        """The score that decides; the first one where `refit` names none."""
        return scores[self.metric] if self.metric in scores else next(iter(scores.values()))

    def _value(self, fold: Mapping[str, Any]) -> float:
        return float(self.error_score) if fold["test"] is None else self._decisive(fold["test"])

    def _failed(self, trial: Any, error: Exception) -> None:
        traceback.clear_frames(error.__traceback__)
        with self._lock:
            if self.first_error is None:
                self.first_error = error
        trial.set_user_attr(ERROR, f"{type(error).__name__}: {error}"[:_TEXT])


def _shown(score: float) -> str:
    return "NaN" if math.isnan(score) else f"{score}, which is no number to compare"


def _number(name: Any, value: Any) -> float:
    if np.ndim(value) or not np.issubdtype(np.asarray(value).dtype, np.number):
        raise ValueError(
            f"a scorer must return one number, got {type(value).__name__} ({value!r:.60}) for {name!r}."
        )
    return float(value)
