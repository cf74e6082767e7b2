"""Several estimators on the same folds: scores, costs, a test against the baseline."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_classifier
from sklearn.exceptions import FitFailedWarning
from sklearn.utils.parallel import Parallel, delayed
from tqdm.auto import tqdm

from ..._engine.compat import sample_weights
from ..._engine.errors import warn_user
from ..._engine.validation import check_choice, check_number
from .._inputs import (
    as_column,
    as_documents,
    as_targets,
    check_lengths,
    checked_baseline,
    named_estimators,
    named_scorers,
)
from .._leaks import duplicate_groups, merge_groups, refuse_leak
from ._folds import Folds, draw_folds
from ._runs import Data, Outcome, fit_routes, run
from ._store import Store, fingerprint
from .result import COSTS, ComparisonResult

Key = tuple[str, int, int]


def compare_models(
    estimators: Any,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    sample_weight: Any = None,
    cv: Any = 5,
    scoring: Any = ("f1_macro", "accuracy"),
    n_seeds: int = 1,
    baseline: str | None = None,
    random_state: int | np.random.RandomState | None = 0,
    n_jobs: int | None = None,
    store: Any = None,
    duplicates: str = "raise",
    verbose: int = 0,
) -> ComparisonResult:
    """Cross-validate several estimators on the same folds, and say which one is worth its cost.

    Parameters
    ----------
    estimators : dict of str to estimator, or list of estimators
        What to compare. They are cloned. Without names a pipeline is called by its steps, others by their class.
    X : list, array, Series or frame of n documents
        Handed on as it is, some rows at a time.
    y : array-like of n targets
        Labels, or whatever the estimators and scorers take.
    groups : array-like of shape (n,), default=None
        Documents of one group, such as a thread or a sender, stay in one fold.
    sample_weight : array-like of shape (n,), default=None
        Weights of the documents in `fit`, for a pipeline in the `fit` of its last step. With scikit-learn's metadata
        routing switched on, requests decide, and a scorer that requests weights gets them.
    cv : int, splitter or iterable of (train, test), default=5
        An int shuffles: stratified folds when one of the estimators is a classifier and `y` has classes, and no group
        torn apart. A splitter is used as it is, but for its `random_state`. Masks and positions may be iterated over.
    scoring : str, callable, or list or dict of them, default=("f1_macro", "accuracy")
        Scorers as in scikit-learn: higher is better. The first one ranks and is tested.
    n_seeds : int, default=1
        Repetitions. Each has its own seed: folds are drawn anew with it, and every parameter called `random_state`,
        however deep in an estimator, is set to it.
    baseline : str or None, default=None
        Name of the estimator that the others are tested against; None is the first.
    random_state : int, RandomState or None, default=0
        The first seed; the others count up from it.
    n_jobs : int or None, default=None
        Runs at a time, as in joblib. The scores are the same; times are those of a busy machine.
    store : str, path or None, default=None
        A file to which every finished run is added at once. The same call with the same file goes on where it
        stopped; failed runs are tried again. Several processes may write to one file.
    duplicates : {"raise", "group", "allow"}, default="raise"
        What to do when copies of a document (case and blanks aside) lie on both sides of a fold: refuse, keep copies
        in one fold as if they were a group, or go on with a warning.
    verbose : int, default=0
        1 shows one progress bar, of runs.

    Returns
    -------
    ComparisonResult
        With `frame`, `runs`, `tests`, `verdict`, `plot`, `to_markdown` and `to_html`.

    Raises
    ------
    TypeError
        For an argument of the wrong kind, or an estimator that takes no `sample_weight` when there is one.
    ValueError
        For arguments that don't fit together, duplicates across folds, a store of another comparison, or when every
        run failed.
    FileNotFoundError
        When the folder of `store` is not there.
    TimeoutError
        When another process kept `store` locked.
    OSError
        When `store` can't be written.

    See Also
    --------
    sktransformer.baselines.tfidf_svm : The baseline to beat.
    ComparisonResult : What is returned.

    Notes
    -----
    The test is a paired t-test over folds and seeds whose variance is corrected for overlapping training sets [1]_,
    [2]_; the p-values of several challengers are corrected by Holm's method. It speaks of these documents and others
    like them, not of another inbox.

    A run that raises is recorded in `runs` with its error, and the others are unharmed. An estimator that lacks a
    score of the first scorer is ranked last and not tested, since its mean would be over other folds.

    With an int for `cv`, a class with one member stays in the training part of every fold, and a class with fewer
    members than folds is in the test part of some folds only; one warning names them. With a splitter, classes that a
    training part lacks are named by a warning.

    References
    ----------
    .. [1] C. Nadeau and Y. Bengio, "Inference for the Generalization Error", Machine Learning 52, 2003,
       https://doi.org/10.1023/A:1024068626366
    .. [2] R. Bouckaert and E. Frank, "Evaluating the Replicability of Significance Tests for Comparing Learning
       Algorithms", PAKDD 2004, https://doi.org/10.1007/978-3-540-24775-3_3

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from sktransformer import compare_models, tfidf_svm
    >>> X = [f"facture numéro {i}" for i in range(20)] + [f"le colis {i} est perdu" for i in range(20)]
    >>> y = ["facture"] * 20 + ["colis"] * 20
    >>> models = {"guess": DummyClassifier(strategy="stratified"), "TF-IDF + SVM": tfidf_svm()}
    >>> result = compare_models(models, X, y, cv=4, n_seeds=2)
    >>> result.frame[["accuracy", "p_value"]].round(3)
                  accuracy  p_value
    estimator
    TF-IDF + SVM      1.00      0.0
    guess             0.45      NaN
    >>> print(result.verdict)  # times differ
    TF-IDF + SVM wins 58.7 points of macro-F1 over guess, p < 0.001, at ... times the prediction time.
    """
    data, folds, named = _validate(
        estimators, X, y, groups, sample_weight, cv, scoring, n_seeds, random_state, duplicates
    )
    first = checked_baseline(baseline, list(named))
    routes = {name: fit_routes(name, estimator, data.metadata) for name, estimator in named.items()}
    kept = None if store is None else _open(store, named, data, folds, random_state)
    outcomes = _run_all(named, data, folds, routes, kept, n_jobs, progress=bool(verbose))
    _report(outcomes)
    runs = pd.DataFrame([_row(outcome) for outcome in outcomes])
    return ComparisonResult(runs, data.scorers, first, folds.test_over_train, redrawn=folds.redrawn)


def _validate(
    estimators: Any,
    X: Any,
    y: Any,
    groups: Any,
    sample_weight: Any,
    cv: Any,
    scoring: Any,
    n_seeds: int,
    random_state: Any,
    duplicates: str,
) -> tuple[Data, Folds, dict[str, Any]]:
    """Check what came, and draw the folds."""
    check_number("n_seeds", n_seeds, low=1, integer=True)
    check_choice("duplicates", duplicates, ("raise", "group", "allow"))
    named, scorers = named_estimators(estimators), named_scorers(scoring)
    X, y = as_documents(X), as_targets(y)
    n = check_lengths(X, y)
    groups = as_column("groups", groups, n)
    weights = (
        None if sample_weight is None else sample_weights(as_column("sample_weight", sample_weight, n), n)
    )
    copies = duplicate_groups(X)
    together = groups
    if duplicates == "group" and copies is not None:
        codes = None if groups is None else np.unique(groups, return_inverse=True)[1]
        together = merge_groups(copies, codes)
    with warnings.catch_warnings():
        if (
            together is not groups
        ):  # the user passed no such groups; `refuse_leak` says whether they were needed
            warnings.filterwarnings("ignore", "The groups parameter is ignored", UserWarning)
        seeds = _seeds(random_state, n_seeds)
        classification = any(is_classifier(estimator) for estimator in named.values())
        folds = draw_folds(cv, X, y, together, seeds, n_rows=n, classification=classification)
    refuse_leak(copies, [split for of_seed in folds.splits for split in of_seed], duplicates, cv)
    metadata = {"sample_weight": weights, "groups": groups}
    return Data(X, y, {k: v for k, v in metadata.items() if v is not None}, scorers), folds, named


def _seeds(random_state: Any, n_seeds: int) -> list[int]:
    """Count up from `random_state`; None draws the first seed without touching the global generator."""
    if random_state is None:
        start = int(np.random.SeedSequence().generate_state(1)[0] >> 1)
    elif isinstance(random_state, np.random.RandomState):
        start = int(random_state.randint(2**31 - 1))
    else:
        check_number("random_state", random_state, low=0, high=2**32 - n_seeds, integer=True)
        start = int(random_state)
    return [start + i for i in range(n_seeds)]


def _open(store: Any, named: Mapping[str, Any], data: Data, folds: Folds, random_state: Any) -> Store:
    if random_state is None or isinstance(random_state, np.random.RandomState):
        raise ValueError("store needs an int for random_state, so that a later call draws the same folds.")
    header = fingerprint(
        estimators=named,
        X=data.X,
        y=data.y,
        sample_weight=data.metadata.get("sample_weight"),
        scorers=data.scorers,
        seeds=folds.seeds,
        splits=folds.splits,
    )
    return Store(store, header)


def _run_all(
    named: Mapping[str, Any],
    data: Data,
    folds: Folds,
    routes: Mapping[str, Mapping[str, str]],
    store: Store | None,
    n_jobs: int | None,
    *,
    progress: bool,
) -> list[Outcome]:
    """Do what is left to do, and return all outcomes: by seed, fold, estimator."""
    # estimators innermost: what is there when a comparison is stopped is a smaller comparison, and a machine that is
    # busy for a while slows all of them alike
    keys: list[Key] = [
        (name, seed, fold) for seed in folds.seeds for fold in range(folds.n_folds) for name in named
    ]
    done = (
        {} if store is None else {k: o for k, o in store.outcomes.items() if k in set(keys) and not o.error}
    )
    left = [key for key in keys if key not in done]
    with tqdm(
        total=len(keys), initial=len(done), unit="run", dynamic_ncols=True, disable=not progress
    ) as bar:
        for outcome in _outcomes(left, named, data, folds, routes, n_jobs):
            if store is not None:
                store.append(outcome)
            done[outcome.key] = outcome
            bar.set_postfix_str(
                f"{outcome.estimator}, seed {outcome.seed}, fold {outcome.fold}", refresh=False
            )
            bar.update()
    return [done[key] for key in keys]


def _outcomes(
    keys: list[Key],
    named: Mapping[str, Any],
    data: Data,
    folds: Folds,
    routes: Mapping[str, Mapping[str, str]],
    n_jobs: int | None,
) -> Iterator[Outcome]:
    """Yield outcomes as they come in."""
    splits = dict(zip(folds.seeds, folds.splits, strict=True))
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    yield from parallel(
        delayed(run)(name, named[name], data, *splits[seed][fold], seed, fold, routes[name])
        for name, seed, fold in keys
    )


def _report(outcomes: list[Outcome]) -> None:
    """Raise when nothing came out; warn of failed runs, and of what the estimators warned of, once each."""
    failed = [outcome for outcome in outcomes if outcome.error]
    deciding = next(iter(outcomes[0].scores))
    if not any(np.isfinite(outcome.scores[deciding]) for outcome in outcomes):
        first = failed[0]
        error = ValueError(
            f"All {len(outcomes)} runs failed to give a score of {deciding}. The first, {first.estimator!r} with seed "
            f"{first.seed} in fold {first.fold}: {first.error}"
        )
        error.add_note(first.traceback)
        raise error
    for name in dict.fromkeys(outcome.estimator for outcome in failed):
        own = [outcome for outcome in failed if outcome.estimator == name]
        total = sum(outcome.estimator == name for outcome in outcomes)
        warn_user(
            f"{name!r} failed in {len(own)} of {total} runs; the first: {own[0].error}", FitFailedWarning
        )
    said: dict[tuple[str, type[Warning]], list[str]] = {}
    for outcome in outcomes:
        for category in dict.fromkeys(category for category, _ in outcome.warned):
            text = next(text for own, text in outcome.warned if own is category)
            said.setdefault((outcome.estimator, category), []).append(text)
    for (name, category), texts in said.items():
        warn_user(f"{name!r}, in {len(texts)} run(s): {texts[0]}", category)


def _row(outcome: Outcome) -> dict[str, Any]:
    return {
        "estimator": outcome.estimator,
        "seed": outcome.seed,
        "fold": outcome.fold,
        **outcome.scores,
        **{cost: getattr(outcome, cost) for cost in COSTS},
        "error": outcome.error,
        "traceback": outcome.traceback,
    }
