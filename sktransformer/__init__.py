"""Transformers as scikit-learn estimators.

Every public name can be imported from here. A name is looked up when it is first used, so that
importing the package loads neither torch nor transformers, and an e-mail cleaner or a baseline never does.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._engine.version import __version__

if TYPE_CHECKING:  # for type checkers and editors: they do not see what `__getattr__` finds
    from .baselines import tfidf_svm
    from .datasets import load_french_emails, load_squad
    from .email import EmailCleaner, LanguageRouter, read_mailbox
    from .ensemble import (
        RejectOption,
        RiskCoverageDisplay,
        SeedEnsemble,
        WeightedSoftVote,
        error_correlation,
        error_correlation_from_predictions,
        risk_coverage_curve,
        soft_vote,
    )
    from .model_selection import ComparisonDisplay, ComparisonResult, OptunaSearch, compare_models
    from .nn import TransformerConfig
    from .tasks.answer_scores import answer_exact_match_score, answer_f1_score
    from .tasks.answering import TransformerQuestionAnswerer
    from .tasks.causal import CausalLMGenerator
    from .tasks.classification import TransformerClassifier
    from .tasks.embedding import TransformerEmbedder
    from .tasks.prompting import PromptClassifier
    from .tasks.regression import TransformerRegressor
    from .tasks.retrieval import SemanticSearch
    from .tasks.seq2seq import Seq2SeqGenerator
    from .tasks.tagging import TransformerTokenClassifier
    from .tasks.text_scores import bleu_score, chrf_score, rouge_score
    from .tasks.truncation import truncation_report
    from .testing import check_text_estimator

# Public name -> the room it lives in. A new name goes here, into `__all__` and into the block above, sorted.
_ROOMS = {
    "CausalLMGenerator": "tasks.causal",
    "ComparisonDisplay": "model_selection",
    "ComparisonResult": "model_selection",
    "EmailCleaner": "email",
    "LanguageRouter": "email",
    "OptunaSearch": "model_selection",
    "PromptClassifier": "tasks.prompting",
    "RejectOption": "ensemble",
    "RiskCoverageDisplay": "ensemble",
    "SeedEnsemble": "ensemble",
    "SemanticSearch": "tasks.retrieval",
    "Seq2SeqGenerator": "tasks.seq2seq",
    "TransformerClassifier": "tasks.classification",
    "TransformerConfig": "nn",
    "TransformerEmbedder": "tasks.embedding",
    "TransformerQuestionAnswerer": "tasks.answering",
    "TransformerRegressor": "tasks.regression",
    "TransformerTokenClassifier": "tasks.tagging",
    "WeightedSoftVote": "ensemble",
    "answer_exact_match_score": "tasks.answer_scores",
    "answer_f1_score": "tasks.answer_scores",
    "bleu_score": "tasks.text_scores",
    "check_text_estimator": "testing",
    "chrf_score": "tasks.text_scores",
    "compare_models": "model_selection",
    "error_correlation": "ensemble",
    "error_correlation_from_predictions": "ensemble",
    "load_french_emails": "datasets",
    "load_squad": "datasets",
    "read_mailbox": "email",
    "risk_coverage_curve": "ensemble",
    "rouge_score": "tasks.text_scores",
    "soft_vote": "ensemble",
    "tfidf_svm": "baselines",
    "truncation_report": "tasks.truncation",
}
# `sktransformer.email` works after a plain `import sktransformer`, as in scikit-learn.
_DOORS = frozenset(
    {"baselines", "datasets", "email", "ensemble", "exceptions", "model_selection", "nn", "tasks", "testing"}
)

__all__ = [
    "CausalLMGenerator",
    "ComparisonDisplay",
    "ComparisonResult",
    "EmailCleaner",
    "LanguageRouter",
    "OptunaSearch",
    "PromptClassifier",
    "RejectOption",
    "RiskCoverageDisplay",
    "SeedEnsemble",
    "SemanticSearch",
    "Seq2SeqGenerator",
    "TransformerClassifier",
    "TransformerConfig",
    "TransformerEmbedder",
    "TransformerQuestionAnswerer",
    "TransformerRegressor",
    "TransformerTokenClassifier",
    "WeightedSoftVote",
    "__version__",
    "answer_exact_match_score",
    "answer_f1_score",
    "bleu_score",
    "check_text_estimator",
    "chrf_score",
    "compare_models",
    "error_correlation",
    "error_correlation_from_predictions",
    "load_french_emails",
    "load_squad",
    "read_mailbox",
    "risk_coverage_curve",
    "rouge_score",
    "soft_vote",
    "tfidf_svm",
    "truncation_report",
]


def __getattr__(name: str) -> Any:
    """Import the room of `name` on first use (PEP 562); afterwards the name is an ordinary attribute."""
    if name in _ROOMS:
        value = getattr(import_module(f".{_ROOMS[name]}", __name__), name)
    elif name in _DOORS:
        value = import_module(f".{name}", __name__)
    else:
        raise AttributeError(_unknown(name))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names as well as those already loaded, for tab completion."""
    return sorted({*globals(), *__all__, *_DOORS})


def _unknown(name: str) -> str:
    """Say that there is no such name, and which one was probably meant."""
    from difflib import get_close_matches  # 2 ms that only an error pays for

    message = f"module {__name__!r} has no attribute {name!r}"
    near = {known.lower(): known for known in (*_ROOMS, *_DOORS)}
    close = get_close_matches(name.lower(), near, n=1)
    return f"{message}; did you mean {near[close[0]]!r}?" if close else message
