"""Where to search when nobody says: a space for each estimator, found by the names of its classes.

By name, since looking a class up would load its library: a search over a linear model must not load torch.
"""

from __future__ import annotations

from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

_C = FloatDistribution(1e-2, 1e2, log=True)
_BALANCED = CategoricalDistribution((None, "balanced"))

# Fine-tuning: the learning rates, epochs and warm-up that Devlin et al. 2019 (appendix A.3) and Mosbach et al. 2021
# (section 6) search over or recommend; a name that an estimator lacks is left out.
_FINE_TUNING: dict[str, BaseDistribution] = {
    "learning_rate": FloatDistribution(1e-5, 1e-4, log=True),
    "max_epochs": IntDistribution(2, 6),
    "warmup_ratio": FloatDistribution(0.0, 0.2),
    "weight_decay": FloatDistribution(1e-3, 1e-1, log=True),
    "dropout": FloatDistribution(0.0, 0.3),
    "truncation": CategoricalDistribution(("head", "tail", "head_tail")),
    "class_weight": _BALANCED,
}

SPACES: dict[str, dict[str, BaseDistribution]] = {
    "TrainedTransformer": _FINE_TUNING,
    "LinearSVC": {"C": _C},
    "SVC": {"C": _C},
    "LogisticRegression": {"C": _C},
    "RidgeClassifier": {"alpha": _C},
    "Ridge": {"alpha": _C},
    "SGDClassifier": {"alpha": FloatDistribution(1e-6, 1e-2, log=True)},
    "MultinomialNB": {"alpha": FloatDistribution(1e-3, 10.0, log=True)},
    "ComplementNB": {"alpha": FloatDistribution(1e-3, 10.0, log=True)},
}

# Runs of words or of characters, by the vectorizer's analyzer.
NGRAMS: dict[str, list[Any]] = {
    "word": [(1, 1), (1, 2), (1, 3)],
    "char": [(1, 4), (2, 4), (2, 5), (3, 5)],
    "char_wb": [(1, 4), (2, 4), (2, 5), (3, 5)],
}
_VECTORIZERS = ("TfidfVectorizer", "CountVectorizer", "HashingVectorizer")


def default_space(estimator: Any) -> dict[str, Any]:
    """Return a space for every estimator that is known, wherever it is in pipelines and ensembles.

    Parameters
    ----------
    estimator : estimator
        Of any kind.

    Returns
    -------
    dict
        Parameter to distribution or list of choices.

    Raises
    ------
    ValueError
        When it holds none that is known.
    """
    known = estimator.get_params(deep=True)
    inside = {name: value for name, value in known.items() if _is_estimator(value)}
    space: dict[str, Any] = {}
    for path, part in {"": estimator, **inside}.items():
        prefix = f"{path}__" if path else ""
        for name, kind in _space_of(part).items():
            if prefix + name in known:
                space[prefix + name] = kind
    if not space:
        raise ValueError(
            f"there is no default space for {type(estimator).__name__}; pass space={{parameter: choices}}, for "
            "instance space={'C': (0.01, 100.0, 'log')}."
        )
    return space


def _is_estimator(value: Any) -> bool:
    return hasattr(value, "get_params") and not isinstance(value, type)


def _space_of(part: Any) -> dict[str, Any]:
    if getattr(part, "fine_tune", "") is None:
        return {}  # an embedder that is not trained
    names = [kind.__name__ for kind in type(part).__mro__]
    if any(name in names for name in _VECTORIZERS):
        ngrams = NGRAMS.get(part.analyzer) if isinstance(part.analyzer, str) else None
        return {} if ngrams is None else {"ngram_range": ngrams}
    return next((SPACES[name] for name in names if name in SPACES), {})
