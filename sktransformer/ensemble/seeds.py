"""The same estimator with several seeds."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator, MetaEstimatorMixin, is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, get_scorer_names, r2_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from .._engine.errors import warn_user
from .._engine.validation import check_choice, check_flag, check_number
from ._inputs import as_labels, as_rows, as_targets, as_weights, draw_seeds
from ._members import Floats, aligned, copy_columns, fit_clone, tags_of
from ._runs import Judge, Run, held_out, seed_names, seeded_clone, train_run
from ._tables import TablesTravel

__all__ = ["SeedEnsemble"]


def _has_probabilities(ensemble: SeedEnsemble) -> bool:
    return hasattr(getattr(ensemble, "estimators_", [ensemble.estimator])[0], "predict_proba")


class SeedEnsemble(TablesTravel, MetaEstimatorMixin, BaseEstimator):
    """Fit one estimator with several seeds, leave out the runs that collapsed, and average the others.

    Fine-tuning depends on its seed: on a few hundred documents the score of one model moves by points from seed to
    seed, and now and then a run learns nothing at all [1]_, [2]_. Several seeds show the spread, and their mean is a
    better model than one of them [3]_.

    Parameters
    ----------
    estimator : classifier or regressor
        What to fit; a pipeline too. Every parameter called `random_state` in it, however deep, is set to the seed.
    n_seeds : int, default=5
        Runs.
    scoring : str, callable or None, default=None
        Scorer of the held-out part, as in scikit-learn; None is macro-averaged F1 for classifiers, R² for regressors.
    validation_fraction : float, default=0.1
        Share of the rows that is held out, the same for all runs; of each class at least one row, and never its last.
    on_collapse : {"drop", "retrain", "keep"}, default="drop"
        What becomes of a run that collapsed: left out, tried again with another seed, or kept. A run whose loss or
        probabilities are not finite is never kept.
    max_retrain : int, default=2
        How often a run is tried again with ``on_collapse="retrain"``; left out when that does not help.
    keep : {"all", "best"}, default="all"
        Whether all members are kept or the one with the best validation score; the others are let go as they come.
    refit : bool, default=False
        Whether the members are fitted again on all rows, with the same seeds, once the runs have been judged. It takes
        as long again, and what is fitted then is not judged.
    n_jobs : int or None, default=None
        Runs at the same time, as in joblib. Results do not depend on it. Leave it at None on a GPU.
    random_state : int, RandomState instance or None, default=None
        Draws the seeds and the held-out part.
    verbose : int, default=0
        Verbosity of joblib.

    Attributes
    ----------
    estimators_ : list of estimators
        The members.
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted; of a classifier only.
    seed_results_ : DataFrame
        One row a run: `member`, `seed`, `score`, `collapsed`, `reason`, `seconds` and `kept`.
    validation_scores_ : ndarray
        Scores of the runs that did not collapse, or were kept all the same, in the order of the members.
    validation_mean_ : float
        Their mean.
    validation_std_ : float
        Their standard deviation (with n - 1), 0 for a single one.
    n_features_in_ : int
        Number of columns seen in `fit`, where the members know it.
    feature_names_in_ : ndarray of str
        Names of these columns, where the members know them.

    See Also
    --------
    soft_vote : Different models instead of different seeds.
    error_correlation : How much the members differ in their errors.

    Notes
    -----
    A run counts as collapsed when its loss became NaN or infinite, its probabilities are not finite, it predicts a
    single class while several were held out, or its score on the held-out part is not above that of a constant
    prediction [1]_. One ConvergenceWarning tells of all of them.

    The members never see the held-out rows, unless ``refit=True``. Their scores are comparable with each other, and too
    optimistic for the one picked by ``keep="best"``. A class with a single document stays in the training part, and a
    warning names it.

    `predict` takes the class with the highest mean probability; classifiers without `predict_proba` vote, and the first
    of `classes_` wins a tie. Regressors are averaged. To have a run of its own again: ``set_params(random_state=seed)``
    with a seed from `seed_results_`, on the training part.

    `sample_weight` reaches the members, and the last step of a pipeline; scores are not weighted.

    References
    ----------
    .. [1] M. Mosbach, M. Andriushchenko and D. Klakow, "On the Stability of Fine-tuning BERT: Misconceptions,
       Explanations, and Strong Baselines", ICLR 2021, https://arxiv.org/abs/2006.04884
    .. [2] J. Dodge et al., "Fine-Tuning Pretrained Language Models: Weight Initializations, Data Orders, and Early
       Stopping", 2020, https://arxiv.org/abs/2002.06305
    .. [3] B. Lakshminarayanan, A. Pritzel and C. Blundell, "Simple and Scalable Predictive Uncertainty Estimation using
       Deep Ensembles", NeurIPS 2017, https://arxiv.org/abs/1612.01474

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neural_network import MLPClassifier
    >>> from sktransformer.ensemble import SeedEnsemble
    >>> X, y = load_iris(return_X_y=True)
    >>> network = MLPClassifier(8, solver="lbfgs", max_iter=1000)
    >>> ensemble = SeedEnsemble(network, n_seeds=3, validation_fraction=0.3, random_state=0).fit(X, y)
    >>> ensemble.seed_results_[["seed", "collapsed", "kept"]].shape
    (3, 3)
    >>> bool(ensemble.validation_mean_ > 0.9)
    True
    """

    _frames = ("seed_results_",)

    def __init__(
        self,
        estimator: Any,
        n_seeds: int = 5,
        *,
        scoring: Any = None,
        validation_fraction: float = 0.1,
        on_collapse: str = "drop",
        max_retrain: int = 2,
        keep: str = "all",
        refit: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.n_seeds = n_seeds
        self.scoring = scoring
        self.validation_fraction = validation_fraction
        self.on_collapse = on_collapse
        self.max_retrain = max_retrain
        self.keep = keep
        self.refit = refit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the members.

        Parameters
        ----------
        X : list, array, sparse matrix, Series or frame of n rows
            What the estimator takes.
        y : array-like of shape (n,)
            Labels or numbers.
        sample_weight : array-like of shape (n,), optional
            Weights that each member's `fit` is given.

        Returns
        -------
        SeedEnsemble
            The ensemble itself.

        Raises
        ------
        TypeError
            For a parameter of the wrong kind, or `sample_weight` where the estimator takes none.
        ValueError
            For a parameter out of range, an estimator without `random_state`, or classes with a single member each.
        RuntimeError
            When every run collapsed.
        """
        self._validate()
        X = as_rows(X)
        index, classes = None, np.array([])
        if is_classifier(self.estimator):
            classes, index, values = as_labels(X, y)
        else:
            values = as_targets(X, y)
        weights = as_weights(sample_weight, len(values))
        seeds = draw_seeds(self.random_state, 1 + self.n_seeds * (1 + self.max_retrain))
        parts = held_out(index, classes, len(values), self.validation_fraction, int(seeds[0]))
        judge = Judge(self.estimator, self.scoring, X, values, parts)
        attempts = seeds[1:].reshape(-1, self.n_seeds)
        with warnings.catch_warnings():  # a member's own warning says less than the one below
            warnings.filterwarnings("ignore", "training collapsed", ConvergenceWarning)
            results, runs = self._runs(attempts, X, values, weights, parts[0], judge)
            members = [run.estimator for run in runs if run.estimator is not None]
            if members and self.refit:
                seeded = [seeded_clone(self.estimator, run.seed) for run in runs if run.estimator is not None]
                members = Parallel(n_jobs=self.n_jobs, verbose=self.verbose)(
                    delayed(fit_clone)(one, X, values, weights) for one in seeded
                )
        self._report(results)
        self._record(results, runs, members, classes)
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict by the mean of the members.

        Parameters
        ----------
        X : list, array, sparse matrix, Series or frame of n rows
            As in `fit`.

        Returns
        -------
        ndarray of shape (n,)
            Labels out of `classes_`, or numbers.
        """
        check_is_fitted(self)
        X = as_rows(X)
        if not hasattr(self, "classes_"):
            mean: npt.NDArray[Any] = np.mean([member.predict(X) for member in self.estimators_], axis=0)
            return mean
        support = self.predict_proba(X) if _has_probabilities(self) else self._votes(X)
        labels: npt.NDArray[Any] = self.classes_[support.argmax(axis=1)]
        return labels

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Average the members' class probabilities.

        Parameters
        ----------
        X : list, array, sparse matrix, Series or frame of n rows
            As in `fit`.

        Returns
        -------
        ndarray of shape (n, n_classes)
            Columns in the order of `classes_`.
        """
        check_is_fitted(self)
        X = as_rows(X)
        each = [
            aligned(member.predict_proba(X), member.classes_, self.classes_) for member in self.estimators_
        ]
        mean: Floats = np.mean(each, axis=0)
        return mean

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of a classifier, R² of a regressor.

        Parameters
        ----------
        X : list, array, sparse matrix, Series or frame of n rows
            As in `fit`.
        y : array-like of shape (n,)
            What is right.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows.

        Returns
        -------
        float
            At most 1; higher is better.
        """
        measure = accuracy_score if is_classifier(self) else r2_score
        return float(measure(y, self.predict(X), sample_weight=sample_weight))

    # -- helpers ----------------------------------------------------------------------------------------------------

    def _validate(self) -> None:
        known = hasattr(self.estimator, "__sklearn_tags__")
        if not known or not (is_classifier(self.estimator) or is_regressor(self.estimator)):
            raise TypeError(
                f"estimator must be a classifier or a regressor, got {type(self.estimator).__name__} "
                f"({self.estimator!r:.60})."
            )
        if not seed_names(self.estimator):
            raise ValueError(
                f"{type(self.estimator).__name__} has no parameter random_state, so that every seed would give the "
                f"same model; use it by itself."
            )
        check_number("n_seeds", self.n_seeds, low=1, integer=True)
        check_number("max_retrain", self.max_retrain, low=0, integer=True)
        check_number(
            "validation_fraction", self.validation_fraction, low=0, high=1, open_low=True, open_high=True
        )
        check_choice("on_collapse", self.on_collapse, ("drop", "retrain", "keep"))
        check_choice("keep", self.keep, ("all", "best"))
        check_flag("refit", self.refit)
        if isinstance(self.scoring, str):
            check_choice("scoring", self.scoring, get_scorer_names())
        elif self.scoring is not None and not callable(self.scoring):
            raise TypeError(
                f"scoring must be a scorer's name or a callable, got {type(self.scoring).__name__}."
            )

    def _runs(
        self, attempts: npt.NDArray[np.int64], X: Any, y: Any, weights: Any, training: Any, judge: Judge
    ) -> tuple[list[tuple[int, Run]], list[Run]]:
        """Train; return (member, run) of every attempt, and the run that stands for each member that has one.

        Estimators that are not wanted any more are let go at once, since each of them may be a gigabyte.
        """
        results: list[tuple[int, Run]] = []
        standing: dict[int, Run] = {}
        pending = list(range(self.n_seeds))
        best: Run | None = None
        for seeds in attempts if self.on_collapse == "retrain" else attempts[:1]:
            found = Parallel(n_jobs=self.n_jobs, verbose=self.verbose, return_as="generator")(
                delayed(train_run)(self.estimator, int(seeds[i]), X, y, weights, training, judge)
                for i in pending
            )
            failed = []
            for i, run in zip(pending, found, strict=True):
                results.append((i, run))
                if run.estimator is None or (run.reason and self.on_collapse != "keep"):
                    run.estimator = None
                    failed.append(i)
                    continue
                standing[i] = run
                if self.keep == "best":
                    worse, best = (best, run) if best is None or run.score > best.score else (run, best)
                    if worse is not None:
                        worse.estimator = None
            pending = failed
            if not pending:
                break
        return results, [standing[i] for i in sorted(standing)]

    def _report(self, results: list[tuple[int, Run]]) -> None:
        """Warn of the runs that collapsed; raise when there is no other."""
        collapsed = [f"seed {run.seed} ({run.reason})" for _, run in results if run.reason]
        if not collapsed:
            return
        what = f"{len(collapsed)} of {len(results)} runs collapsed"
        remedy = "lower learning_rate, raise warmup_ratio or max_epochs, or look at the labels"
        if all(run.estimator is None for _, run in results):
            raise RuntimeError(
                f"all {what.partition(' of ')[2]}, so there is nothing to average: {'; '.join(collapsed)}. To mend it, "
                f"{remedy}; on_collapse='keep' keeps runs whose probabilities are finite."
            )
        done = {"drop": "were left out", "keep": "were kept", "retrain": "were tried again with another seed"}
        warn_user(
            f"{what} and {done[self.on_collapse]}: {'; '.join(collapsed)}. If many do, {remedy}.",
            ConvergenceWarning,
        )

    def _record(
        self, results: list[tuple[int, Run]], runs: list[Run], members: list[Any], classes: npt.NDArray[Any]
    ) -> None:
        columns = ["member", "seed", "score", "collapsed", "reason", "seconds", "kept"]
        rows = [
            (i, run.seed, run.score, bool(run.reason), run.reason, run.seconds, run.estimator is not None)
            for i, run in results
        ]
        self.seed_results_ = pd.DataFrame(rows, columns=columns)
        self.validation_scores_ = np.array([run.score for run in runs])
        self.validation_mean_ = float(self.validation_scores_.mean())
        self.validation_std_ = float(self.validation_scores_.std(ddof=1)) if len(runs) > 1 else 0.0
        self.estimators_ = members
        if is_classifier(self.estimator):
            self.classes_ = classes
        elif hasattr(self, "classes_"):
            del self.classes_
        copy_columns(self, members[0])

    def _votes(self, X: Any) -> Floats:
        """Count the votes for each class; (n, C)."""
        each = [np.searchsorted(self.classes_, member.predict(X)) for member in self.estimators_]
        votes: Floats = np.stack([np.eye(len(self.classes_))[choice] for choice in each]).sum(axis=0)
        return votes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = tags_of(self, self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_label = False  # one label a row: runs are judged by class
        tags.input_tags = inner.input_tags
        return tags
