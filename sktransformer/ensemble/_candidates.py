"""Names and classifiers out of what a vote is given: checkpoints, or pairs of a name and a classifier."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.ensemble import VotingClassifier

from .._engine.errors import did_you_mean


def members_of(models: Sequence[Any], parameters: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return pairs of a name and a classifier."""
    pairs: list[tuple[str, Any]] = []
    built = 0
    for i, given in enumerate(models):
        if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str):
            pairs.append(given)
        elif isinstance(given, BaseEstimator):
            raise TypeError(
                f"models[{i}] is a {type(given).__name__} without a name; pass ('a name', estimator)."
            )
        elif given is None or isinstance(given, (int, float, type, tuple)):
            raise TypeError(
                f"models[{i}] must be a checkpoint (hub id, folder or config) or a pair (name, classifier), got "
                f"{type(given).__name__} ({given!r:.60})."
            )
        else:
            pairs.append((_name(given), _transformer(given, parameters)))
            built += 1
    if parameters and not built:
        raise TypeError(
            f"{', '.join(sorted(parameters))} would go to a TransformerClassifier, but all models are given as "
            f"estimators; set parameters on them."
        )
    names = [name for name, _ in pairs]
    for i, name in enumerate(names):
        check_name(name, VotingClassifier([]).get_params(deep=False))
        if name in names[:i]:
            raise ValueError(
                f"models[{i}] is called {name!r} like one before it; pass ('another name', estimator)."
            )
    return pairs


def check_name(name: Any, parameters: Iterable[str]) -> None:
    """Raise ValueError for a name that `set_params` could not tell from a parameter."""
    if not isinstance(name, str) or not name or "__" in name or name in parameters:
        raise ValueError(
            f"{name!r} can't be the name of a member: it must be a str that is not empty, holds no '__', and is no "
            f"parameter of the vote; pass ('another name', estimator)."
        )


def _name(model: Any) -> str:
    """Name a member after its checkpoint, in letters that scikit-learn allows in names."""
    if not isinstance(model, (str, os.PathLike)):
        return str(getattr(model, "model_type", type(model).__name__)).lower()
    last = os.path.basename(os.path.normpath(os.fspath(model))).rpartition(":")[2]
    return last.replace("__", "_") or "model"


def _transformer(model: Any, parameters: dict[str, Any]) -> Any:
    # here, since it loads torch, and votes of other classifiers need none
    from ..tasks.classification import TransformerClassifier

    known = TransformerClassifier().get_params()
    for name in parameters:
        if name not in known or name == "model":
            hint = " Its models are the first argument." if name == "model" else did_you_mean(name, known)
            raise TypeError(f"{name} is no parameter of soft_vote or TransformerClassifier.{hint}")
    return TransformerClassifier(model, **parameters)
