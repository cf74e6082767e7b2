"""Hyper-parameter search with Optuna behind scikit-learn's search interface."""

from __future__ import annotations

import math
import numbers
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn import get_config
from sklearn.base import clone, is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils import indexable

from ..._engine.compat import (
    SearchCV,
    best_index,
    check_refit_name,
    n_rows,
    routed_fit_params,
    scorer_attribute,
    search_scorers,
)
from ..._engine.errors import optional_import, say_once
from ..._engine.validation import check_flag, check_number
from .._inputs import as_documents, as_targets

if TYPE_CHECKING:  # optuna takes a second to load, and only a fit needs it
    from optuna.study import Study

    from ._trials import Objective


class OptunaSearch(SearchCV):
    """Search for the best parameters with Optuna, as `GridSearchCV` does with a grid.

    Parameters
    ----------
    estimator : estimator
        What to tune; pipelines are named into as everywhere in scikit-learn (``"tfidfvectorizer__min_df"``).
    space : dict, callable or None, default=None
        Where to search. A dict from parameter to a list of choices, to ``(low, high)`` or ``(low, high, "log")`` (of
        two ints: integers), to an optuna distribution, or to scipy's ``uniform``, ``loguniform`` or ``randint``. Or a
        function that takes an optuna trial and returns a dict of parameters. None takes the default space of each known
        estimator inside, see Notes.
    n_trials : int or None, default=20
        Trials of this call; those that a stored study has already come on top. None goes on until `timeout`.
    timeout : float or None, default=None
        Seconds after which no new trial begins; the running one ends as usual.
    cv : int, splitter, iterable or None, default=5
        The folds, made once and the same for all trials.
    scoring : str, callable, list, tuple, dict or None, default=None
        As in `GridSearchCV`; with several scores `refit` names the one that decides.
    refit : bool, str or callable, default=True
        Whether to fit the best parameters on all data, by which score they are chosen, or a function from `cv_results_`
        to the chosen row.
    sampler : optuna sampler or None, default=None
        Draws the parameters; None is optuna's TPE [1]_, seeded from `random_state` and the trial's number.
    pruner : {"median", "hyperband"}, optuna pruner or None, default=None
        Ends bad trials early, see Notes.
    storage : str, path, optuna storage or None, default=None
        Where the study is kept: None in memory, a text with ``://`` is a database (``"sqlite:///study.db"``), another
        one the path of a journal file.
    study_name : str or None, default=None
        A study of this name in `storage` is continued; without a name each fit makes a study of its own.
    n_jobs : int or None, default=None
        Trials run at the same time, in threads. Several processes may share one `storage` and `study_name` instead.
    error_score : "raise" or float, default=nan
        Score of a fold that failed. NaN ends the trial and counts it as failed.
    return_train_score : bool, default=False
        Whether `cv_results_` holds the scores of the training parts too.
    random_state : int, RandomState or None, default=None
        Seeds the sampler; the same number gives the same trials, with ``n_jobs=None``.
    verbose : int, default=0
        1 lets optuna log each trial.

    Attributes
    ----------
    cv_results_ : dict of str to array
        As in `GridSearchCV`, one row a finished trial of the study, with `trial_number` and `trial_state` ("complete",
        "pruned" or "fail") besides. Folds that a trial did not reach have NaN.
    best_estimator_ : estimator
        Fitted on all data with the best parameters; not with ``refit=False``.
    best_params_ : dict
        The best trial's parameters.
    best_score_ : float
        Its mean score over the folds.
    best_index_ : int
        Its row in `cv_results_`.
    scorer_ : callable or dict
        What scores.
    n_splits_ : int
        Folds.
    refit_time_ : float
        Seconds of the last fit.
    multimetric_ : bool
        Whether there are several scores.
    study_ : optuna.Study
        The study of the last search, also of one that failed or was interrupted; all other attributes are of the last
        one that came to its end. It is not pickled.
    study_name_ : str
        Its name.
    feature_names_in_ : ndarray of str
        Columns of `X`, when `best_estimator_` has them.

    See Also
    --------
    sklearn.model_selection.GridSearchCV : Every combination of a grid.

    Notes
    -----
    **Default space.** The package's own Transformers: `learning_rate` 1e-5 to 1e-4 (log), `max_epochs` 2 to 6,
    `warmup_ratio` 0 to 0.2, `weight_decay` 1e-3 to 0.1 (log), `dropout` 0 to 0.3, `truncation`, `class_weight`.
    `LinearSVC`, `SVC`, `LogisticRegression`: `C` 0.01 to 100 (log); `RidgeClassifier`, `Ridge`, `SGDClassifier` and
    naive Bayes: `alpha`; scikit-learn's text vectorizers: `ngram_range`. A frozen embedder has none: what follows it
    is tuned.

    **Pruning.** An estimator, or last step of a pipeline, that has the parameters `callbacks` and `max_epochs` (the
    package's Transformers, skorch nets) reports after each epoch, others after each fold. What is reported is the mean
    of the finished folds' scores and the current epoch's, on the fold's test part; an estimator with
    ``early_stopping=True`` whose `scoring` is the same text as the search's reports its own validation score instead,
    which costs nothing. Step numbers mean the same fold and epoch in all trials. Scoring an epoch draws no random
    numbers, so that a trial that runs to its end scores what it would have scored without a pruner. The refit on all
    data is neither watched nor pruned. "median" ends a trial that is worse than the median at the same step, after
    five trials and not before a third of the first fold's epochs [2]_; "hyperband" gives most trials a small share of
    all epochs [3]_.

    **Resuming.** A named study may go on only with the estimator, space, scoring, data and folds that it was begun
    with; anything else raises before the first fit. Parameters that only change speed or output (`verbose`, `device`,
    `n_jobs`, `token_budget`, `callbacks`, ...) may differ. In nested cross-validation leave `study_name` out.

    **Failures.** A trial that raises, or scores NaN, is kept as failed, and one warning counts them. Without any
    complete trial `fit` raises. An interrupted search keeps its finished trials in `study_`. Copies of a document on
    both sides of a fold are told by a warning, since they make scores too good.

    **Pickling** leaves `study_` out, since a study is a connection to its storage; `cv_results_` has all its trials,
    and ``optuna.load_study(study_name=search.study_name_, storage=...)`` opens a stored one.

    References
    ----------
    .. [1] Akiba et al. 2019, "Optuna: A Next-generation Hyperparameter Optimization Framework", KDD, section 3; its
       default sampler, TPE, is from Bergstra et al. 2011, "Algorithms for Hyper-Parameter Optimization", NeurIPS,
       section 4.
    .. [2] Golovin et al. 2017, "Google Vizier: A Service for Black-Box Optimization", KDD, section 3.5.2 (median rule).
    .. [3] Li et al. 2018, "Hyperband: A Novel Bandit-Based Approach to Hyperparameter Optimization", JMLR 18,
       section 3.

    Examples
    --------
    >>> from sktransformer import OptunaSearch, tfidf_svm
    >>> mails = [f"{mail} {i}" for i in range(6) for mail in ("ma facture est fausse", "mon colis est perdu")]
    >>> labels = ["facturation", "livraison"] * 6
    >>> search = OptunaSearch(tfidf_svm(), {"svm__C": (0.01, 10.0, "log")}, n_trials=3, cv=3, random_state=0)
    >>> search.fit(mails, labels).predict(["où est mon colis ?"])
    array(['livraison'], dtype='<U11')
    >>> list(search.best_params_), len(search.cv_results_["params"]), search.best_score_
    (['svm__C'], 3, np.float64(1.0))
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {}  # checked in `fit`, with messages of our own

    def __init__(
        self,
        estimator: Any,
        space: Any = None,
        *,
        n_trials: int | None = 20,
        timeout: float | None = None,
        cv: Any = 5,
        scoring: Any = None,
        refit: Any = True,
        sampler: Any = None,
        pruner: Any = None,
        storage: Any = None,
        study_name: str | None = None,
        n_jobs: int | None = None,
        error_score: Any = np.nan,
        return_train_score: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.space = space
        self.n_trials = n_trials
        self.timeout = timeout
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.sampler = sampler
        self.pruner = pruner
        self.storage = storage
        self.study_name = study_name
        self.n_jobs = n_jobs
        self.error_score = error_score
        self.return_train_score = return_train_score
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Run trials, and fit the best one's parameters on all data.

        Parameters
        ----------
        X : iterable of n rows
            Whatever the estimator takes.
        y : array-like of shape (n,) or (n, n_outputs), default=None
            Targets.
        **params : dict
            `groups` go to the splitter; others, such as `sample_weight`, to the estimator's `fit`, those of length n
            split like `X`. With metadata routing on, each goes where it was requested.

        Returns
        -------
        OptunaSearch
            The search itself.

        Raises
        ------
        TypeError
            For a parameter of the wrong kind.
        ValueError
            For a parameter out of range, a class with fewer members than folds, a study that was made for something
            else, or when no trial had a score; the counts and the first failure are in the message.
        TimeoutError
            When another process kept the study's file locked.
        OSError
            When the storage can't be read or written.
        """
        self._validate()
        optional_import("optuna", "tuning")
        from ._studies import close, open_storage, storage_errors, verbosity

        X, y = indexable(as_documents(X), None if y is None else as_targets(y))
        with ExitStack() as stack:
            stack.enter_context(verbosity(self.verbose))
            objective, fit_params = self._objective(
                X, y, params
            )  # which warns of folds, apart from what trials say
            stack.enter_context(say_once())
            stack.enter_context(storage_errors(self.storage))
            storage = open_storage(self.storage)
            stack.callback(close, storage, self.storage)
            study = self._open(storage, objective)
            self.study_, self.study_name_ = study, study.study_name  # reachable, however the search ends
            n_jobs = effective_n_jobs(self.n_jobs)  # type: ignore[arg-type]  # the stubs do not know None
            study.optimize(objective.run_in_this_context(), self.n_trials, self.timeout, n_jobs)
            results = self._results(study, objective)
        learned = self._learned(objective, results)
        if self.refit:
            learned |= self._refit(X, y, fit_params, learned["best_params_"])
        self._record(learned)
        return self

    # -- before the trials ------------------------------------------------------------------------------------------

    def _validate(self) -> None:
        if isinstance(self.estimator, type) or not hasattr(self.estimator, "fit"):
            raise TypeError(f"estimator must be an instance with a fit method, got {self.estimator!r:.80}.")
        if self.n_trials is None and self.timeout is None:
            raise ValueError("n_trials=None needs a timeout in seconds: without both a search never ends.")
        if self.n_trials is not None:
            check_number("n_trials", self.n_trials, low=1, integer=True)
        if self.timeout is not None:
            check_number("timeout", self.timeout, low=0)
        if self.n_jobs is not None:
            check_number("n_jobs", self.n_jobs, integer=True)
        if self.error_score != "raise" and not isinstance(self.error_score, numbers.Real):
            raise ValueError(f"error_score must be 'raise' or a number, got {self.error_score!r}.")
        if self.study_name is not None and not (isinstance(self.study_name, str) and self.study_name):
            raise TypeError(
                f"study_name must be None or a str that is not empty, got {self.study_name!r:.80}."
            )
        check_flag("return_train_score", self.return_train_score)
        check_number("verbose", self.verbose, low=0, integer=True)

    def _objective(self, X: Any, y: Any, params: dict[str, Any]) -> tuple[Objective, dict[str, Any]]:
        """Settle all that the trials share."""
        from ._folds import check_class_sizes, check_splits, warn_of_copies
        from ._pruning import Steps, epochs_a_fold
        from ._spaces import as_space, check_names
        from ._studies import probe
        from ._trials import Objective

        space = as_space(self.space, self.estimator)
        drawn, distributions = probe(space)
        check_names(drawn, self.estimator)
        scorer, metric = search_scorers(self)
        fit_params, split_params, score_params = routed_fit_params(self, X, params)
        cv = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        check_class_sizes(cv, y)
        splits = list(cv.split(X, y, **split_params))
        check_splits(splits, n_rows(X))
        warn_of_copies(X, splits)
        objective = Objective(
            estimator=clone(self.estimator),
            X=X,
            y=y,
            splits=splits,
            space=space,
            distributions=distributions,
            scorer=scorer,
            metric=self.refit if isinstance(self.refit, str) else metric,
            scoring=self.scoring,
            fit_params=fit_params,
            score_params=score_params,
            error_score=self.error_score,
            return_train_score=self.return_train_score,
            steps=Steps(len(splits), epochs_a_fold(self.estimator, drawn, distributions)),
            prunes=self.pruner is not None,
            config=get_config(),
        )
        return objective, fit_params

    def _open(self, storage: Any, objective: Objective) -> Study:
        """Make the study, or take up one that was made for the same."""
        from ._fingerprints import record_of
        from ._studies import as_pruner, as_sampler, claim, open_study

        sampler = as_sampler(self.sampler, self.random_state)
        pruner = as_pruner(self.pruner, objective.steps.epochs, objective.steps.total)
        study = open_study(storage, self.study_name, sampler, pruner)
        record = record_of(
            self.estimator,
            objective.space,
            self.scoring,
            objective.metric,
            objective.X,
            objective.y,
            objective.splits,
        )
        claim(study, record, objective.distributions)
        return study

    # -- after them -------------------------------------------------------------------------------------------------

    def _results(self, study: Study, objective: Objective) -> dict[str, Any]:
        from ._results import cv_results, require_a_complete_trial, warn_of_failures

        require_a_complete_trial(study, objective.first_error, self.timeout)
        error_score = math.nan if self.error_score == "raise" else float(self.error_score)
        results = cv_results(study, objective.space, len(objective.splits), error_score)
        warn_of_failures(study)
        return results

    def _learned(self, objective: Objective, results: dict[str, Any]) -> dict[str, Any]:
        """Return what the trials showed."""
        names = [name.removeprefix("rank_test_") for name in results if name.startswith("rank_test_")]
        multimetric = names != ["score"]
        if multimetric and callable(self.scoring):  # only now is it known that it returns several
            check_refit_name(self, dict.fromkeys(names, 0.0))
        learned = {
            "cv_results_": results,
            "multimetric_": multimetric,
            "n_splits_": len(objective.splits),
            "scorer_": scorer_attribute(objective.scorer),
        }
        if self.refit or not multimetric:
            metric = objective.metric if objective.metric in names else names[0]
            best = best_index(self, metric, results)
            learned |= {"best_index_": best, "best_params_": results["params"][best]}
            if not callable(self.refit):
                learned["best_score_"] = results[f"mean_test_{metric}"][best]
        return learned

    def _refit(self, X: Any, y: Any, fit_params: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
        # parameters may be estimators: those in cv_results_ stay unfitted
        best = clone(self.estimator).set_params(**clone(params, safe=False))
        start = time.perf_counter()
        targets = () if y is None else (y,)
        best.fit(X, *targets, **fit_params)
        learned = {"refit_time_": time.perf_counter() - start, "best_estimator_": best}
        if hasattr(best, "feature_names_in_"):
            learned["feature_names_in_"] = best.feature_names_in_
        return learned

    def _record(self, learned: dict[str, Any]) -> None:
        """Write all that was learned at once, in the place of what an earlier fit had learned."""
        study = ("study_", "study_name_")
        for name in [name for name in vars(self) if name.endswith("_") and name not in study]:
            if not name.startswith("_"):
                delattr(self, name)
        self.__dict__.update(learned)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "cv_results_")

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the study, which is a connection to its storage."""
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("study_", None)
        return state
