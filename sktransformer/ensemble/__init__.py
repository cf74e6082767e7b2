"""Several models instead of one: seeds, votes, and a person for what none of them is sure of. Nothing here needs torch.

Names are looked up when they are first used, as in the package itself.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for type checkers and editors: they do not see what `__getattr__` finds
    from .agreement import error_correlation, error_correlation_from_predictions
    from .rejection import RejectOption
    from .risk_coverage import RiskCoverageDisplay, risk_coverage_curve
    from .seeds import SeedEnsemble
    from .voting import WeightedSoftVote, soft_vote

_FILES = {  # public name -> the file it stands in
    "RejectOption": "rejection",
    "RiskCoverageDisplay": "risk_coverage",
    "SeedEnsemble": "seeds",
    "WeightedSoftVote": "voting",
    "error_correlation": "agreement",
    "error_correlation_from_predictions": "agreement",
    "risk_coverage_curve": "risk_coverage",
    "soft_vote": "voting",
}

__all__ = [
    "RejectOption",
    "RiskCoverageDisplay",
    "SeedEnsemble",
    "WeightedSoftVote",
    "error_correlation",
    "error_correlation_from_predictions",
    "risk_coverage_curve",
    "soft_vote",
]


def __getattr__(name: str) -> Any:
    """Import the file of `name` on first use (PEP 562)."""
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(f".{_FILES[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    """List the public names as well as those already loaded, for tab completion."""
    return sorted({*globals(), *__all__})
