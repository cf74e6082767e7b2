"""Small instances of the package's estimators, cheap enough to be fitted hundreds of times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.base import BaseEstimator

from .checkpoints import tiny_checkpoint


def _classifiers(cls: type[BaseEstimator]) -> list[Any]:
    # One model that reads packed rows and one that reads padded ones; six steps are enough to move every weight.
    return [
        cls(str(tiny_checkpoint(name)), max_epochs=2, batch_size=8, learning_rate=5e-3, random_state=0)
        for name in ("bert", "modernbert")
    ]


def _embedders(cls: type[BaseEstimator]) -> list[Any]:
    return [
        cls(str(tiny_checkpoint("camembert"))),
        cls(str(tiny_checkpoint("distilbert")), pooling="cls", normalize=False, prompt="le "),
    ]


def _cleaners(cls: type[BaseEstimator]) -> list[Any]:
    return [cls()]


def _member(**parameters: Any) -> Any:
    """A classifier to put into a meta-estimator, of one epoch: it is the meta-estimator that is looked at."""
    from ..tasks.classification import TransformerClassifier

    settings = {"max_epochs": 1, "batch_size": 8, "learning_rate": 5e-3, "random_state": 0, **parameters}
    return TransformerClassifier(str(tiny_checkpoint("bert")), **settings)


def _rejections(cls: type[BaseEstimator]) -> list[Any]:
    # a person is asked for nothing, so that it is held to all that a classifier guarantees
    return [cls(_member(), threshold=0.0, reject_label="?")]


def _seeds(cls: type[BaseEstimator]) -> list[Any]:
    return [cls(_member(), n_seeds=2, on_collapse="keep", random_state=0)]


def _votes(cls: type[BaseEstimator]) -> list[Any]:
    return [cls([("first", _member()), ("second", _member(random_state=1))], cv=2)]


INSTANCES: dict[str, Callable[[type[BaseEstimator]], list[Any]]] = {
    "EmailCleaner": _cleaners,
    "RejectOption": _rejections,
    "SeedEnsemble": _seeds,
    "TransformerClassifier": _classifiers,
    "TransformerEmbedder": _embedders,
    "WeightedSoftVote": _votes,
}


def small_instances(cls: type[BaseEstimator]) -> list[Any]:
    """Return small instances of one of the package's estimators.

    Raises
    ------
    LookupError
        When none is known: every estimator needs one, or it would escape the checks.
    """
    if cls.__name__ not in INSTANCES:
        raise LookupError(f"{cls.__name__} has no small instance; add one to {__name__}.INSTANCES.")
    return INSTANCES[cls.__name__](cls)
