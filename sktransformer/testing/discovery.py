"""Every estimator of the package, and small instances of each to be put through the checks."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
from typing import Any

from sklearn.base import BaseEstimator

ROOMS = ("tasks", "email", "model_selection", "ensemble", "baselines", "nn")
_PACKAGE = __name__.split(".", 1)[0]


def all_estimators() -> list[tuple[str, type[BaseEstimator]]]:
    """Return name and class of every public estimator, sorted by name.

    Returns
    -------
    list of (str, type)
        The classes of the public rooms that scikit-learn would call estimators.

    Examples
    --------
    >>> from sktransformer.testing import all_estimators
    >>> [name for name, _ in all_estimators() if name.endswith("Classifier")]
    ['PromptClassifier', 'TransformerClassifier', 'TransformerTokenClassifier']
    """
    found: dict[str, type[BaseEstimator]] = {}
    for module in _public_modules():
        public = getattr(module, "__all__", None)
        for name, value in vars(module).items():
            if name.startswith("_") or (public is not None and name not in public):
                continue
            if (
                inspect.isclass(value)
                and issubclass(value, BaseEstimator)
                and value.__module__ == module.__name__
            ):
                found[name] = value
    return sorted(found.items())


def _public_modules() -> list[Any]:
    """Import the modules of the public rooms; those that begin with an underscore are nobody's business."""
    modules = []
    for room in ROOMS:
        name = f"{_PACKAGE}.{room}"
        if importlib.util.find_spec(name) is None:
            continue
        module = importlib.import_module(name)
        modules.append(module)
        for info in pkgutil.walk_packages(getattr(module, "__path__", []), f"{name}."):
            if not any(part.startswith("_") for part in info.name.split(".")):
                modules.append(importlib.import_module(info.name))
    return modules
