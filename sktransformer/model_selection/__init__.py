"""Choosing between models: comparison on the same folds, with a test and a price. Names are looked up on first use."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for type checkers and editors: they do not see what `__getattr__` finds
    from ._comparison import compare_models
    from ._display import ComparisonDisplay
    from ._result import ComparisonResult

# Public name -> its file. A new name goes here, into `__all__` and into the block above, sorted.
_FILES = {
    "ComparisonDisplay": "_display",
    "ComparisonResult": "_result",
    "compare_models": "_comparison",
}

__all__ = ["ComparisonDisplay", "ComparisonResult", "compare_models"]


def __getattr__(name: str) -> Any:
    """Import the file of `name` on first use (PEP 562); afterwards the name is an ordinary attribute."""
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_FILES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names as well as those already loaded, for tab completion."""
    return sorted({*globals(), *__all__})
