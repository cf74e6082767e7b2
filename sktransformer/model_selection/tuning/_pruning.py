"""Ending a trial early: what is reported when, and how a fit in progress is scored.

A trial goes through the folds one after another, and through the epochs inside each. After each epoch it reports the
mean of the finished folds' scores and the current epoch's, after each fold the mean of the finished folds. Folds are
the same for all trials, and step ``fold * epochs + epoch`` (folds from 0, epochs from 1) means the same fold and epoch
in each of them, also where the number of epochs is searched over: ``epochs`` is then the largest that may be drawn, and
a fold that ends earlier leaves its last steps out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution
from sklearn.pipeline import Pipeline

from ..._engine.errors import optional_import

Scorer = Callable[
    [Any, Any], float
]  # of a fitted last step and of what the steps before it make of the texts


class Steps:
    """Numbers of the reports of a trial, from 1; `epochs` steps a fold."""

    def __init__(self, n_folds: int, epochs: int) -> None:
        self.n_folds = n_folds
        self.epochs = epochs

    def after_epoch(self, fold: int, epoch: int) -> int | None:
        """Return the step of an epoch, counted from 1; None for the fold's last, which reports as a whole fold."""
        return fold * self.epochs + epoch if epoch < self.epochs else None

    def after_fold(self, fold: int) -> int:
        """Return the step of a fold's end, whatever the number of its epochs."""
        return (fold + 1) * self.epochs

    @property
    def total(self) -> int:
        """The last step."""
        return self.n_folds * self.epochs


def trained_part(estimator: Any) -> tuple[str, Any]:
    """Return path and value of what trains in epochs and takes skorch callbacks: the estimator or its last step.

    The value is None where there is no such part, also where another meta-estimator wraps it: its copies train, and
    several of them a fold.
    """
    path, part = "", estimator
    while isinstance(part, Pipeline):
        name, part = part.steps[-1]
        path = f"{path}__{name}" if path else name
    if not hasattr(part, "get_params") or isinstance(part, type):
        return path, None
    params = part.get_params(deep=False)
    takes = params.get("callbacks") is None or isinstance(params["callbacks"], (list, tuple))
    return path, part if takes and {"callbacks", "max_epochs"} <= set(params) else None


def epochs_a_fold(estimator: Any, params: dict[str, Any], distributions: dict[str, BaseDistribution]) -> int:
    """Return the most epochs of a fold: 1 for estimators that are pruned by fold alone."""
    path, part = trained_part(estimator)
    if part is None:
        return 1
    name = f"{path}__max_epochs" if path else "max_epochs"
    kind = distributions.get(name)
    if isinstance(kind, CategoricalDistribution):
        return max(int(choice) for choice in kind.choices)  # type: ignore[arg-type]  # epochs are numbers
    if kind is not None and hasattr(kind, "high"):
        return int(kind.high)
    return max(int(params.get(name, 1)), int(part.max_epochs))


class Watch:
    """Reports the epochs of one fold; made before `fit` and released after it.

    Parameters
    ----------
    estimator : estimator
        About to be fitted; its last step gets one more callback.
    scorer : callable
        Scores a fitted last step on what the steps before it make of the test part.
    X_test : object
        The test part.
    same_metric : callable
        Whether the trained part's own validation score is the search's.
    report : callable
        Takes epoch and score; may end the trial.
    """

    def __init__(
        self,
        estimator: Any,
        scorer: Scorer,
        X_test: Any,
        same_metric: Callable[[Any], bool],
        report: Callable[[int, float], None],
    ) -> None:
        _, self._part = trained_part(estimator)
        self._reporter: Any = None
        if self._part is None:
            return
        self._estimator, self._scorer, self._X, self._report = estimator, scorer, X_test, report
        self._transformed: Any = None
        self._own_score = bool(getattr(self._part, "early_stopping", False)) and same_metric(self._part)
        self._max_epochs = int(self._part.max_epochs)
        optional_import("skorch", "tuning")
        from ._epochs import EpochReporter

        self._reporter = EpochReporter(self._epoch)
        self._part.set_params(callbacks=[*(self._part.callbacks or []), self._reporter])

    def release(self) -> None:
        """Let go of the estimator and its data: a callback and an estimator that hold each other outlive the fold."""
        if self._reporter is not None:
            self._reporter.release()
            self._reporter = self._part = self._estimator = self._X = self._transformed = None

    def _epoch(self, epoch: int, net: Any) -> None:
        if epoch >= self._max_epochs:  # the whole fold reports in its place
            return
        row = net.history[-1]
        if self._own_score and "valid_score" in row:
            self._report(epoch, float(row["valid_score"]))
            return
        # the package's own estimators give their net one that reads texts
        scored = net if net is self._part else getattr(net, "estimator_", None)
        if scored is None:
            return  # a net of somebody else's estimator, which can't be asked to predict; folds are still reported
        if hasattr(net, "module_"):
            net.module_.eval()
        self._report(epoch, self._scorer(scored, self._test_part()))

    def _test_part(self) -> Any:
        """What the fitted steps before the last one make of the test part; once a fold."""
        if self._transformed is None:
            X, part = self._X, self._estimator
            while isinstance(part, Pipeline):
                if len(part) > 1:
                    X = part[:-1].transform(X)
                part = part.steps[-1][1]
            self._transformed = X
        return self._transformed
