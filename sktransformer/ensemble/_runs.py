"""One run of one seed: what is held out for it, how it is trained, and how it is told that it collapsed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import f1_score, get_scorer, make_scorer

from .._engine.compat import take_rows
from .._engine.errors import NonFiniteLossError, warn_user
from ._members import Fold, fit_clone

# A score computed in another order of sums is not a better one.
TOLERANCE = 1e-9


@dataclass
class Run:
    """What became of one seed. `estimator` is None when nothing was fitted that could be asked again."""

    seed: int
    score: float
    reason: str  # why it counts as collapsed; empty when it does not
    seconds: float
    estimator: Any


def held_out(
    index: npt.NDArray[np.int64] | None, names: npt.NDArray[Any], n: int, fraction: float, seed: int
) -> Fold:
    """Split rows into training and validation.

    With classes (`index` is not None) each gives its share, but at least one row and never its last one: scores of
    seeds are comparable only where every class is asked for. A class with one member stays in training, with one
    warning, where scikit-learn's splitters would raise.
    """
    shuffled = np.random.RandomState(seed).permutation(n)
    if index is None:
        if n < 3:
            raise ValueError(
                f"validation needs 3 rows at least, 2 of them to hold out, got {n}; pass more rows."
            )
        size = min(max(2, round(fraction * n)), n - 1)
        return np.sort(shuffled[size:]), np.sort(shuffled[:size])
    chosen, alone = [], []
    for number, name in enumerate(names):
        members = shuffled[index[shuffled] == number]
        if len(members) < 2:
            alone.append(str(name))
        else:
            chosen.append(members[: min(max(1, round(fraction * len(members))), len(members) - 1)])
    if not chosen:
        raise ValueError(
            f"SeedEnsemble holds out a part of the documents, but every class has a single member: "
            f"{', '.join(alone)}; pass more documents."
        )
    if alone:
        warn_user(
            f"{len(alone)} class(es) with a single member stay out of validation: {', '.join(alone)}.",
            UserWarning,
        )
    validation = np.sort(np.concatenate(chosen))
    return np.setdiff1d(np.arange(n), validation), validation


def scorer_of(scoring: Any, classifier: bool) -> Any:
    """Return a scorer: macro-averaged F1 or R² by default."""
    if scoring is None and classifier:
        return make_scorer(f1_score, average="macro", zero_division=0.0, pos_label=None)
    return scoring if callable(scoring) else get_scorer(scoring or "r2")


class Judge:
    """The held-out part, and what a run has to reach on it.

    A run has failed when it does no better there than a constant prediction, the most frequent class of the training
    part: the definition of Mosbach et al., "On the Stability of Fine-tuning BERT", ICLR 2021, arXiv:2006.04884.
    """

    def __init__(self, estimator: Any, scoring: Any, X: Any, y: npt.NDArray[Any], parts: Fold) -> None:
        self.classifier = bool(is_classifier(estimator))
        self.scoring = scoring
        self.scorer = scorer_of(scoring, self.classifier)
        self.X, self.y = take_rows(X, parts[1]), y[parts[1]]
        # on a single class or value a perfect run is constant too
        self.tells = len(np.unique(self.y)) > 1
        self.bar = self._constant(y[parts[0]]) if self.tells else -np.inf

    def _constant(self, training: npt.NDArray[Any]) -> float:
        dummy = DummyClassifier(strategy="most_frequent") if self.classifier else DummyRegressor()
        try:
            # it looks at no row, and scikit-learn's dummies ask for none that are numbers
            score = float(
                self.scorer(dummy.fit(np.zeros(len(training)), training), np.zeros(len(self.y)), self.y)
            )
        except (AttributeError, TypeError, ValueError):
            return -np.inf  # a scorer that reads the documents, or asks for more than predictions
        return score if np.isfinite(score) else -np.inf

    def __call__(self, fitted: Any) -> tuple[float, str, bool]:
        """Return the score, why the run counts as collapsed ("" when it does not), and whether it can be used."""
        if hasattr(fitted, "predict_proba") and not np.isfinite(fitted.predict_proba(self.X)).all():
            return np.nan, "probabilities are not finite", False
        predicted = np.asarray(fitted.predict(self.X))
        if not self.classifier and not np.isfinite(predicted).all():
            return np.nan, "predictions are not finite", False
        score = self._score(fitted)
        if self.tells and len(np.unique(predicted)) == 1:
            return score, f"predicts {predicted[0]!s} alone", True
        if score <= self.bar + TOLERANCE:
            return (
                score,
                f"score {score:.3g} is not above {self.bar:.3g}, that of a constant prediction",
                True,
            )
        return score, "", True

    def _score(self, fitted: Any) -> float:
        try:
            score = float(self.scorer(fitted, self.X, self.y))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{self._complaint()}: {error}; {self._remedy()}") from error
        if not np.isfinite(score):
            raise ValueError(f"{self._complaint()}: it is {score}; {self._remedy()}")
        return score

    def _complaint(self) -> str:
        return f"scoring={self.scoring!r} can't be computed on the {len(self.y)} rows held out for validation"

    def _remedy(self) -> str:
        return "raise validation_fraction or choose another scoring."


def seed_names(estimator: Any) -> list[str]:
    """Return the names of all parameters `random_state`, however deep."""
    return [name for name in estimator.get_params(deep=True) if name.rpartition("__")[2] == "random_state"]


def seeded_clone(estimator: Any, seed: int) -> Any:
    """Return a clone with every `random_state` set to `seed`."""
    copy = clone(estimator)
    return copy.set_params(**dict.fromkeys(seed_names(copy), seed))


def train_run(
    estimator: Any,
    seed: int,
    X: Any,
    y: npt.NDArray[Any],
    weights: npt.NDArray[np.float64] | None,
    training: npt.NDArray[np.int64],
    judge: Judge,
) -> Run:
    """Fit one seed on the training part and judge it."""
    start = time.perf_counter()
    try:
        fitted = fit_clone(seeded_clone(estimator, seed), X, y, weights, training)
    except (TypeError, ValueError) as error:
        error.add_note(
            "Rows are counted among those that the run was fitted on, which leaves out the held-out part."
        )
        raise
    except NonFiniteLossError:
        return Run(seed, np.nan, "the loss was not finite", time.perf_counter() - start, None)
    seconds = time.perf_counter() - start
    score, reason, usable = judge(fitted)
    return Run(seed, score, reason, seconds, fitted if usable else None)
