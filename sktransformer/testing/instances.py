"""Small instances of the package's estimators, cheap enough to be fitted hundreds of times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from ..baselines import TextJoiner
from .checkpoints import tiny_checkpoint


def _fine_tuned(cls: type[BaseEstimator]) -> list[Any]:
    # One model that reads packed rows and one that reads padded ones; six steps are enough to move every weight.
    return [
        cls(str(tiny_checkpoint(name)), max_epochs=2, batch_size=8, learning_rate=5e-3, random_state=0)
        for name in ("bert", "modernbert")
    ]


def _answerers(cls: type[BaseEstimator]) -> list[Any]:
    return [
        cls(str(tiny_checkpoint(name)), max_epochs=2, batch_size=8, learning_rate=5e-3, random_state=0)
        for name in ("camembert", "modernbert")
    ]


def _embedders(cls: type[BaseEstimator]) -> list[Any]:
    return [
        cls(str(tiny_checkpoint("camembert"))),
        cls(str(tiny_checkpoint("distilbert")), pooling="cls", normalize=False, prompt="le "),
        cls(str(tiny_checkpoint("camembert")), memory="memory"),
        cls(
            str(tiny_checkpoint("bert")),
            fine_tune="labels",
            max_epochs=2,
            batch_size=8,
            learning_rate=5e-3,
            random_state=0,
        ),
    ]


def _cleaners(cls: type[BaseEstimator]) -> list[Any]:
    return [cls()]


def _member(dtype: Any = np.float32) -> Any:
    """A classifier to put into a meta-estimator, cheap to fit: it is the meta-estimator that is looked at."""
    return make_pipeline(TextJoiner(), TfidfVectorizer(dtype=dtype), LogisticRegression())


def _routers(cls: type[BaseEstimator]) -> list[Any]:
    # The sample is French. One classifier of all languages, so that a clone is one clone.
    return [cls(_member(np.float64))]


def _rejections(cls: type[BaseEstimator]) -> list[Any]:
    # a person is asked for nothing, so that it is held to all that a classifier guarantees
    return [cls(_member(), threshold=0.0, reject_label="?")]


def _seeds(cls: type[BaseEstimator]) -> list[Any]:
    return [cls(_member(), n_seeds=2, on_collapse="keep", random_state=0)]


def _searches(cls: type[BaseEstimator]) -> list[Any]:
    return [cls(_member(), {"logisticregression__C": [0.1, 1.0]}, n_trials=2, cv=2, random_state=0)]


def _retrievers(cls: type[BaseEstimator]) -> list[Any]:
    from ..tasks.embedding import TransformerEmbedder  # torch, which the other instances need not

    # one that has all the parts, one that has no vectors
    embedder = TransformerEmbedder(str(tiny_checkpoint("bert")))
    return [cls(embedder, mode="hybrid", index="approximate"), cls(mode="sparse")]


def _votes(cls: type[BaseEstimator]) -> list[Any]:
    # one of the two is left out, so that a clone of both stays below a millisecond
    return [cls([("first", _member()), ("second", "drop")], cv=2)]


def _taggers(cls: type[BaseEstimator]) -> list[Any]:
    # one tokenizer that tells which characters a token stands for, and one in pure Python that does not
    settings: dict[str, Any] = {"max_epochs": 2, "batch_size": 6, "learning_rate": 5e-3, "random_state": 0}
    return [
        cls(str(tiny_checkpoint("bert")), decoding="argmax", **settings),
        cls(str(tiny_checkpoint("flaubert")), decoding="crf", **settings),
    ]


def _continuers(cls: type[BaseEstimator]) -> list[Any]:
    # one that reads packed rows, one that reads padded ones
    settings: dict[str, Any] = {"max_epochs": 2, "batch_size": 8, "learning_rate": 5e-3, "random_state": 0}
    return [
        cls(str(tiny_checkpoint("llama")), max_new_tokens=6, **settings),
        cls(str(tiny_checkpoint("gpt2")), max_new_tokens=6, packing=False, **settings),
    ]


def _prompters(cls: type[BaseEstimator]) -> list[Any]:
    # a decoder with a prefix to share, an encoder-decoder, and short prompts: tiny models read 64 tokens
    settings: dict[str, Any] = {
        "instruction": "le chat noir ,",
        "template": "{text} !",
        "n_shots": 0,
        "random_state": 0,
    }
    return [cls(str(tiny_checkpoint(name)), **settings) for name in ("llama", "t5")]


def _writers(cls: type[BaseEstimator]) -> list[Any]:
    # one that counts distances, with a fast tokenizer, and one that counts positions, with one in pure Python
    settings: dict[str, Any] = {"max_epochs": 2, "batch_size": 8, "max_new_tokens": 6, "random_state": 0}
    return [
        cls(str(tiny_checkpoint("t5")), num_beams=2, learning_rate=5e-3, **settings),
        # so fast that each source's words show in what is written
        cls(str(tiny_checkpoint("marian")), num_beams=1, learning_rate=3e-2, **settings),
    ]


INSTANCES: dict[str, Callable[[type[BaseEstimator]], list[Any]]] = {
    "CausalLMGenerator": _continuers,
    "EmailCleaner": _cleaners,
    "LanguageRouter": _routers,
    "OptunaSearch": _searches,
    "PromptClassifier": _prompters,
    "RejectOption": _rejections,
    "SeedEnsemble": _seeds,
    "SemanticSearch": _retrievers,
    "Seq2SeqGenerator": _writers,
    "TransformerClassifier": _fine_tuned,
    "TransformerEmbedder": _embedders,
    "TransformerQuestionAnswerer": _answerers,
    "TransformerRegressor": _fine_tuned,
    "TransformerTokenClassifier": _taggers,
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
