"""What a check is, and the list of them all in the order of the contract."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from .subject import Subject

Need = Callable[[Subject], bool]
Run = Callable[[Subject], None]


@dataclass(frozen=True)
class Check:
    """One guarantee: the line of the contract it belongs to, what it needs, and the function that tests it."""

    name: str
    line: int
    run: Run
    needs: tuple[Need, ...]

    def applies(self, subject: Subject) -> bool:
        """Whether the estimator has what the check is about."""
        return all(need(subject) for need in self.needs)

    def __call__(self, subject: Subject) -> None:
        """Run the check."""
        with warnings.catch_warnings():
            # six steps on eighteen texts may well end in one class; the warning for it has a check of its own
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.run(subject)

    @property
    def guarantee(self) -> str:
        """The first line of the check's docstring."""
        return (self.run.__doc__ or "").strip().splitlines()[0]


CHECKS: list[Check] = []


def check(line: int, *needs: Need) -> Callable[[Run], Run]:
    """Register the decorated function, called after what it guarantees, under a line of the contract."""

    def register(run: Run) -> Run:
        CHECKS.append(Check(run.__name__, line, run, needs))
        return run

    return register


def classifies(subject: Subject) -> bool:
    """Need: a classifier."""
    return subject.classifies


def regresses(subject: Subject) -> bool:
    """Need: a regressor."""
    return subject.regresses


def learns_targets(subject: Subject) -> bool:
    """Need: a classifier, a regressor or an answerer of questions."""
    return subject.classifies or subject.regresses or subject.answers


def transforms(subject: Subject) -> bool:
    """Need: a transformer."""
    return subject.transforms


def reads_texts(subject: Subject) -> bool:
    """Need: documents that are texts."""
    return subject.sample.texts


def reads_words(subject: Subject) -> bool:
    """Need: documents that are lists of words."""
    return subject.sample.words


def reads_pairs(subject: Subject) -> bool:
    """Need: pairs of texts in the sample."""
    return bool(subject.sample.pairs)


def gives_numbers(subject: Subject) -> bool:
    """Need: rows of numbers, not texts again."""
    return subject.sample.gives == "numbers"


def learns(subject: Subject) -> bool:
    """Need: an estimator that must be fitted before it is used."""
    return bool(get_tags(subject.estimator).requires_fit)


def trains(subject: Subject) -> bool:
    """Need: a fit that trains weights; an embedder's does so where `fine_tune` says on what."""
    return subject.estimator.get_params(deep=False).get("fine_tune", "always") is not None


def has(*names: str) -> Need:
    """Need: these constructor parameters."""

    def need(subject: Subject) -> bool:
        return all(name in subject.estimator.get_params(deep=False) for name in names)

    return need


def offers(method: str) -> Need:
    """Need: this method."""

    def need(subject: Subject) -> bool:
        return hasattr(subject.estimator, method)

    return need


def takes(argument: str) -> Need:
    """Need: an argument of `fit`."""

    def need(subject: Subject) -> bool:
        return bool(has_fit_parameter(subject.estimator, argument))

    return need


def any_of(*needs: Need) -> Need:
    """Need: one of several."""
    return lambda subject: any(need(subject) for need in needs)


def holds_weights(subject: Subject) -> bool:
    """Need: parameters that name a model whose weights are loaded."""
    return has("model")(subject)


__all__ = [
    "CHECKS",
    "Check",
    "Need",
    "any_of",
    "check",
    "classifies",
    "gives_numbers",
    "has",
    "holds_weights",
    "learns",
    "learns_targets",
    "offers",
    "reads_pairs",
    "reads_texts",
    "reads_words",
    "regresses",
    "takes",
    "trains",
    "transforms",
]
