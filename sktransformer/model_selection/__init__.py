"""Comparing and tuning estimators, which are black boxes here: no file of this room loads torch by itself.

A name is looked up when it is first used, so that one of them does not load what only another needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for type checkers and editors: they do not see what `__getattr__` finds
    from .comparison.compare import compare_models
    from .comparison.display import ComparisonDisplay
    from .comparison.result import ComparisonResult
    from .tuning.search import OptunaSearch

# Public name -> the file it lives in. A new name goes here, into `__all__` and into the block above, sorted.
_ROOMS = {
    "ComparisonDisplay": "comparison.display",
    "ComparisonResult": "comparison.result",
    "OptunaSearch": "tuning.search",
    "compare_models": "comparison.compare",
}

__all__ = ["ComparisonDisplay", "ComparisonResult", "OptunaSearch", "compare_models"]


def __getattr__(name: str) -> Any:
    """Import the file of `name` on first use (PEP 562); afterwards the name is an ordinary attribute."""
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_ROOMS[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names as well as those already loaded, for tab completion."""
    return sorted({*globals(), *__all__})
