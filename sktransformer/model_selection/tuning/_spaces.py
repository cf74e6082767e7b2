"""What may be searched over: the forms in which a space is given, and how a trial draws parameters from it."""

from __future__ import annotations

import json
import numbers
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
    distribution_to_json,
)
from optuna.trial import FrozenTrial

from ..._engine.errors import did_you_mean
from ._default_spaces import default_space

FORMS = (
    "a list of choices, a (low, high) or (low, high, 'log') tuple, an optuna distribution, or scipy's uniform, "
    "loguniform or randint"
)
_STORABLE = (type(None), bool, int, float, str)  # what optuna's storages keep as it is


class Space:
    """Parameters to search over.

    Parameters
    ----------
    distributions : dict of str to BaseDistribution
        Empty when `function` is given.
    choices : dict of str to dict
        For the parameters whose choices are no plain values: the label that the study stores, and the choice.
    function : callable or None
        Takes a trial and returns parameters.
    """

    def __init__(
        self,
        distributions: Mapping[str, BaseDistribution],
        choices: Mapping[str, Mapping[str, Any]],
        function: Callable[[Any], Any] | None = None,
    ) -> None:
        self.distributions = dict(distributions)
        self.choices = {name: dict(table) for name, table in choices.items()}
        self.function = function

    def suggest(self, trial: Any) -> dict[str, Any]:
        """Return parameters for a trial; for a finished one, those that it had."""
        if self.function is not None:
            params = self.function(trial)
            if not isinstance(params, Mapping):
                raise TypeError(
                    f"space, a function of the trial, must return a dict of parameters, got {type(params).__name__}."
                )
            return dict(params)
        return {name: self._suggest(trial, name, kind) for name, kind in self.distributions.items()}

    def replay(self, trial: FrozenTrial) -> dict[str, Any]:
        """Return the parameters of a finished trial; what it drew, where it ended before it drew them all."""
        try:
            return self.suggest(trial)
        except (
            Exception
        ):  # a trial that failed in the user's function has drawn only some, and may fail again
            return {
                name: self.choices.get(name, {}).get(value, value) for name, value in trial.params.items()
            }

    def describe(self) -> dict[str, str]:
        """Return the space as texts, to be kept with a study and compared with later."""
        if self.function is not None:
            return {"": f"{self.function.__module__}.{getattr(self.function, '__qualname__', '?')}"}
        return {name: distribution_to_json(kind) for name, kind in self.distributions.items()}

    def _suggest(self, trial: Any, name: str, kind: BaseDistribution) -> Any:
        if isinstance(kind, FloatDistribution):
            return trial.suggest_float(name, kind.low, kind.high, step=kind.step, log=kind.log)
        if isinstance(kind, IntDistribution):
            return trial.suggest_int(name, kind.low, kind.high, step=kind.step, log=kind.log)
        if not isinstance(kind, CategoricalDistribution):
            raise TypeError(f"space[{name!r}] is a {type(kind).__name__}, which is not known; pass {FORMS}.")
        value = trial.suggest_categorical(name, kind.choices)
        return self.choices[name][value] if name in self.choices else value


def as_space(space: Any, estimator: Any) -> Space:
    """Read the `space` of an `OptunaSearch`.

    Parameters
    ----------
    space : dict, callable or None
        What the user passed.
    estimator : estimator
        Whose parameters it names.

    Returns
    -------
    Space
        The space.

    Raises
    ------
    TypeError
        When it is neither a dict nor a function.
    ValueError
        When it is empty, names a parameter that the estimator lacks, or holds a form that is not known.
    """
    if space is None:
        space = default_space(estimator)
    elif callable(space):
        return Space({}, {}, space)
    if not isinstance(space, Mapping):
        raise TypeError(
            f"space must be a dict, a function of the trial or None, got {type(space).__name__} ({space!r:.80})."
        )
    if not space:
        raise ValueError(
            "space is empty; name a parameter to search over, or pass None for the default space."
        )
    check_names(space, estimator)
    distributions, choices = {}, {}
    for name, given in space.items():
        distributions[name], table = _distribution(name, given)
        if table is not None:
            choices[name] = table
    return Space(distributions, choices)


def check_names(names: Mapping[str, Any], estimator: Any) -> None:
    """Raise ValueError for a name that is no parameter of `estimator`."""
    known = estimator.get_params(deep=True)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"space names {name!r}; names of parameters are str.")
        parents = [name[:place] for place in range(len(name)) if name.startswith("__", place)]
        if name not in known and not any(parent in names for parent in parents):
            raise ValueError(
                f"space names {name!r}, which is no parameter of {type(estimator).__name__}; "
                f"estimator.get_params() lists them all.{did_you_mean(str(name), known)}"
            )


def _distribution(name: str, given: Any) -> tuple[BaseDistribution, dict[str, Any] | None]:
    """Return the distribution of a parameter, and its labelled choices where it has some."""
    if isinstance(given, BaseDistribution):
        return given, None
    if isinstance(given, tuple):
        return _range(name, given), None
    if isinstance(given, (list, np.ndarray)):
        return _categories(name, list(given))
    if hasattr(given, "dist") and hasattr(given, "support"):
        return _from_scipy(name, given), None
    raise ValueError(f"space[{name!r}] must be {FORMS}, got {type(given).__name__} ({given!r:.80}).")


def _range(name: str, given: tuple[Any, ...]) -> BaseDistribution:
    numeric = len(given) in (2, 3) and all(
        isinstance(end, numbers.Real) and not isinstance(end, bool) for end in given[:2]
    )
    if not numeric or given[2:] not in ((), ("log",)):
        raise ValueError(
            f"space[{name!r}] is a tuple, so it must be (low, high) or (low, high, 'log'), got {given!r:.80}; "
            "put choices into a list."
        )
    low, high = given[:2]
    log = len(given) == 3
    if not low <= high or not np.isfinite([low, high]).all() or (log and low <= 0):
        above = " with low above 0" if log else ""
        raise ValueError(f"space[{name!r}] must go from low to high{above}, both finite, got {given!r}.")
    if isinstance(low, numbers.Integral) and isinstance(high, numbers.Integral):
        return IntDistribution(int(low), int(high), log=log)
    return FloatDistribution(float(low), float(high), log=log)


def _categories(name: str, given: list[Any]) -> tuple[CategoricalDistribution, dict[str, Any] | None]:
    choices = [choice.item() if isinstance(choice, np.generic) else choice for choice in given]
    if not choices:
        raise ValueError(f"space[{name!r}] is an empty list; give at least one choice.")
    if all(isinstance(choice, _STORABLE) for choice in choices):
        return CategoricalDistribution(choices), None
    table = {_label(place, choice): choice for place, choice in enumerate(choices)}
    return CategoricalDistribution(list(table)), table


def _label(place: int, choice: Any) -> str:
    """A text for a choice that a study can't store; the same in another process."""
    text = repr(choice)
    if isinstance(choice, type) or " at 0x" in text:
        return f"{place}: {getattr(choice, '__qualname__', type(choice).__qualname__)}"
    return text if isinstance(choice, (tuple, list)) else f"{place}: {text}"


def _from_scipy(name: str, given: Any) -> BaseDistribution:
    kind = given.dist.name
    low, high = (float(end) for end in given.support())
    if kind == "randint":
        return IntDistribution(int(low), int(high))
    if kind in ("uniform", "loguniform", "reciprocal"):
        return FloatDistribution(low, high, log=kind != "uniform")
    raise ValueError(f"space[{name!r}] is scipy's {kind}, which optuna can't draw from; pass {FORMS}.")


def shown(described: str) -> str:
    """Phrase a description of `Space.describe` for a message: choices, or the ends of a range."""
    try:
        content = json.loads(described)["attributes"]
    except (ValueError, TypeError, KeyError):
        return described
    if "choices" in content:
        return str(list(content["choices"]))
    step = f", step {content['step']}" if content.get("step") not in (None, 1) else ""
    return f"{content['low']} to {content['high']}{step}{' (log)' if content.get('log') else ''}"
