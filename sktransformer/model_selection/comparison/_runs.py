"""One run: an estimator, a seed and a fold; what it scores and what it costs."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from inspect import Parameter, signature
from time import perf_counter
from typing import Any

import joblib
import numpy as np
import numpy.typing as npt
from sklearn import get_config
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import has_fit_parameter

from ..._engine.compat import take_rows
from ..._engine.errors import TruncationWarning
from .._inputs import Scorer

RESPONSES = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "transform",
    "predict_spans",
)


@dataclass
class Outcome:
    """What a run gave; NaN for what it did not reach.

    Attributes
    ----------
    estimator : str
        Its name.
    seed, fold : int
        Which run; folds count from 0.
    scores : dict of str to float
        One a scorer.
    fit_seconds, ms_per_document, megabytes, share_cut : float
        As in the result's `frame`.
    error, traceback : str
        Why it failed; empty when it did not.
    warned : list of (type of Warning, str)
        What it warned of; not stored.
    """

    estimator: str
    seed: int
    fold: int
    scores: dict[str, float] = field(default_factory=dict)
    fit_seconds: float = np.nan
    ms_per_document: float = np.nan
    megabytes: float = np.nan
    share_cut: float = np.nan
    error: str = ""
    traceback: str = ""
    warned: list[tuple[type[Warning], str]] = field(default_factory=list)

    @property
    def key(self) -> tuple[str, int, int]:
        """What tells runs apart."""
        return self.estimator, self.seed, self.fold

    def fail(self, error: Exception, where: str) -> None:
        """Record the first error."""
        if not self.error:
            self.error = f"{type(error).__name__} in {where}: {error}"
            self.traceback = "".join(traceback.format_exception(error))


@dataclass(frozen=True)
class Data:
    """What all runs share."""

    X: Any
    y: Any
    metadata: Mapping[str, npt.NDArray[Any]]
    scorers: Mapping[str, Scorer]


def run(
    name: str,
    estimator: Any,
    data: Data,
    train: Any,
    test: Any,
    seed: int,
    fold: int,
    routes: Mapping[str, str],
) -> Outcome:
    """Fit a clone on the training part, and score it on the test part.

    Parameters
    ----------
    name : str
        Of the estimator.
    estimator : estimator
        It is cloned, and left alone.
    data : Data
        Documents, targets, metadata and scorers.
    train, test : ndarray of int
        Positions.
    seed : int
        For every parameter called `random_state`.
    fold : int
        Number of the fold.
    routes : mapping of str to str
        What of the metadata `fit` takes, and under which name.

    Returns
    -------
    Outcome
        An error of the estimator or of a scorer is recorded, not raised.
    """
    outcome = Outcome(name, seed, fold, dict.fromkeys(data.scorers, np.nan))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TruncationWarning)  # counted below, whatever the user's filters say
        fitted = _fit(outcome, estimator, data, train, routes)
        caught_in_fit = len(caught)
        if fitted is not None:
            _score(outcome, fitted, data, test)
            outcome.megabytes = pickled_megabytes(fitted)
            outcome.share_cut = _share_cut(fitted, caught[caught_in_fit:])
    outcome.warned = [
        (w.category, str(w.message)) for w in caught if not issubclass(w.category, TruncationWarning)
    ]
    return outcome


def _fit(outcome: Outcome, estimator: Any, data: Data, train: Any, routes: Mapping[str, str]) -> Any:
    try:
        candidate = seeded_clone(estimator, outcome.seed)
        X, y = take_rows(data.X, train), take_rows(data.y, train)
        metadata = {name: data.metadata[key][train] for key, name in routes.items()}
        start = perf_counter()
        candidate.fit(X, y, **metadata)
        outcome.fit_seconds = perf_counter() - start
    except Exception as error:  # an estimator may raise anything; the others go on
        outcome.fail(error, "fit")
        return None
    return candidate


def _score(outcome: Outcome, fitted: Any, data: Data, test: Any) -> None:
    X, y = take_rows(data.X, test), take_rows(data.y, test)
    watched = Watched(fitted)
    for name, scorer in data.scorers.items():
        try:
            score = float(scorer(watched, X, y, **_scorer_metadata(scorer, data.metadata, test)))
            if not np.isfinite(score):
                raise ValueError(f"the score is {score}; it is not defined on this fold's labels")
            outcome.scores[name] = score
        except Exception as error:  # as above; the other scorers go on
            outcome.fail(error, f"scoring {name}")
    if watched.seconds:
        seconds = watched.seconds.get("predict", next(iter(watched.seconds.values())))
        outcome.ms_per_document = 1000 * seconds / len(test)


class Watched:
    """A fitted estimator whose answers are computed once for each set of documents, and timed.

    Several scorers ask for the same predictions; a Transformer would compute them anew for each.
    """

    def __init__(self, fitted: Any) -> None:
        self.fitted = fitted
        self.seconds: dict[str, float] = {}
        self.answers: dict[tuple[str, int], tuple[Any, Any]] = {}

    def __getattr__(self, name: str) -> Any:
        if name == "fitted":  # asked for before __init__, by copy
            raise AttributeError(name)
        value = getattr(self.fitted, name)
        return self._watch(name, value) if name in RESPONSES else value

    def _watch(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)  # scorers look at its name
        def answer(X: Any, *args: Any, **kwargs: Any) -> Any:
            if args or kwargs:
                return method(X, *args, **kwargs)
            key = name, id(X)
            if key not in self.answers:
                start = perf_counter()
                found = method(X)
                self.seconds.setdefault(name, perf_counter() - start)
                self.answers[key] = X, found  # with X, so that its id is not given to another
            return self.answers[key][1]

        return answer

    def __sklearn_is_fitted__(self) -> bool:
        return True


def seeded_clone(estimator: Any, seed: int) -> Any:
    """Clone, and set every parameter called `random_state`, however deep, to the seed."""
    candidate = clone(estimator)
    names = [name for name in candidate.get_params(deep=True) if name.rpartition("__")[2] == "random_state"]
    # FrozenEstimator.set_params() without arguments loses its estimator (scikit-learn 1.9)
    return candidate.set_params(**dict.fromkeys(names, seed)) if names else candidate


def fit_routes(name: str, estimator: Any, metadata: Mapping[str, Any]) -> dict[str, str]:
    """Find out which metadata `fit` takes, and under which name.

    Raises
    ------
    TypeError
        When it can't take `sample_weight`, which would make the comparison unfair.
    """
    routes: dict[str, str] = {}
    routing = get_config()["enable_metadata_routing"]
    if "groups" in metadata and routing and get_routing_for_object(estimator).consumes("fit", ["groups"]):
        routes["groups"] = "groups"
    if "sample_weight" in metadata:
        # with routing on, requests decide, and scikit-learn says what to do about a missing one
        route = "sample_weight" if routing else _weight_name(estimator)
        if route is None:
            raise TypeError(
                f"estimators[{name!r}] takes no sample_weight in fit; leave it out of the comparison, or pass "
                f"sample_weight=None."
            )
        routes["sample_weight"] = route
    return routes


def _weight_name(estimator: Any) -> str | None:
    """Return the keyword under which `fit` takes sample weights without metadata routing."""
    if isinstance(estimator, Pipeline):
        step, last = estimator.steps[-1]
        inner = _weight_name(last)
        return None if inner is None else f"{step}__{inner}"
    if has_fit_parameter(estimator, "sample_weight"):
        return "sample_weight"
    inner_estimator = getattr(estimator, "estimator", None)  # a search hands keywords on as they are
    takes_any = any(p.kind is Parameter.VAR_KEYWORD for p in signature(estimator.fit).parameters.values())
    return _weight_name(inner_estimator) if takes_any and hasattr(inner_estimator, "fit") else None


def _scorer_metadata(scorer: Scorer, metadata: Mapping[str, Any], test: Any) -> dict[str, Any]:
    """Return what the scorer has requested with ``set_score_request``."""
    if (
        not metadata
        or not get_config()["enable_metadata_routing"]
        or not hasattr(scorer, "get_metadata_routing")
    ):
        return {}
    wanted = get_routing_for_object(scorer).consumes("score", list(metadata))
    return {key: metadata[key][test] for key in wanted}


class _Counter:
    """A file that only counts what is written to it."""

    def __init__(self) -> None:
        self.n_bytes = 0

    def write(self, data: Any) -> int:
        n_bytes = memoryview(data).nbytes
        self.n_bytes += n_bytes
        return n_bytes

    def tell(self) -> int:
        return self.n_bytes

    def flush(self) -> None:
        """Nothing waits to be written."""


def pickled_megabytes(fitted: Any) -> float:
    """Size of what ``joblib.dump`` would write, in units of 10^6 bytes, without keeping it; NaN if it can't.

    joblib writes arrays in pieces of 16 MB, so that no second copy of them is made here.
    """
    counter = _Counter()
    try:
        joblib.dump(fitted, counter)
    except Exception:  # a model that can't be pickled may be compared all the same
        return np.nan
    return counter.n_bytes / 1e6


def _share_cut(fitted: Any, caught: list[warnings.WarningMessage]) -> float:
    """Return the largest share of documents that a prediction cut; NaN for what does not cut."""
    cuts = [w.message for w in caught if isinstance(w.message, TruncationWarning)]
    shares = [cut.n_cut / cut.n_documents for cut in cuts if cut.n_documents]
    if shares:
        return max(shares)
    may_cut = any(name.rpartition("__")[2] == "truncation" for name in fitted.get_params(deep=True))
    return 0.0 if may_cut else np.nan
