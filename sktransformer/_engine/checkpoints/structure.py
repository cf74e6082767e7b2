"""What differs between architectures but means the same: depths, dropouts, maximum lengths."""

from __future__ import annotations

import re
from inspect import signature
from typing import Any

import numpy as np
from torch import nn
from transformers import PreTrainedModel

# Names that architectures give to one thing. A config keeps those it has.
HIDDEN_DROPOUT = (
    "hidden_dropout_prob",
    "dropout",
    "dropout_rate",
    "resid_pdrop",
    "embd_pdrop",
    "embedding_dropout",
    "mlp_dropout",
    "activation_dropout",
    "classifier_dropout",
    "seq_classif_dropout",
    "summary_last_dropout",
    "summary_first_dropout",
)
ATTENTION_DROPOUT = ("attention_probs_dropout_prob", "attention_dropout", "attn_pdrop")
LAYER_COUNT = ("num_hidden_layers", "n_layers", "n_layer", "num_layers", "encoder_layers")
POSITIONS = ("max_position_embeddings", "n_positions", "n_ctx", "max_sequence_length")
# Architectures that number positions from pad_token_id + 1, as fairseq's RoBERTa did.
OFFSET_POSITIONS = frozenset(
    (
        "camembert",
        "data2vec-text",
        "ibert",
        "longformer",
        "luke",
        "mpnet",
        "roberta",
        "roberta-prelayernorm",
        "xlm-roberta",
        "xlm-roberta-xl",
        "xmod",
    )
)

_LAYER = re.compile(r"\.(\d+)\.")


def set_dropout(config: Any, hidden: float | None, attention: float | None) -> None:
    """Write dropout probabilities into a config under the names it knows; None leaves its own."""
    for value, name, fields in (
        (hidden, "dropout", HIDDEN_DROPOUT),
        (attention, "attention_dropout", ATTENTION_DROPOUT),
    ):
        if value is None:
            continue
        if not 0.0 <= value < 1.0:
            raise ValueError(f"{name} must lie in [0, 1), got {value!r}.")
        known = [field for field in fields if isinstance(getattr(config, field, None), (int, float))]
        if name == "dropout" and hasattr(config, "classifier_dropout"):
            known.append("classifier_dropout")  # None there means "as the hidden dropout"
        if not known and value:  # 0 is what a model without dropout does anyway
            raise ValueError(f"{name}={value}: {type(config).__name__} has no such dropout; pass None.")
        for field in known:
            setattr(config, field, float(value))


def max_tokens(config: Any, tokenizer: Any) -> int | None:
    """The longest window that the model can read, in tokens with the special ones; None when unbounded."""
    limits = []
    for field in POSITIONS:
        value = getattr(config, field, None)
        if isinstance(value, int) and value > 0:
            limits.append(value - first_position(config))
            break
    declared = getattr(tokenizer, "model_max_length", None)
    if isinstance(declared, int) and declared < 10**9:  # Transformers writes a huge number for "not known"
        limits.append(declared)
    return min(limits) if limits else None


def first_position(config: Any) -> int:
    """The position id of a document's first token: after the padding id in the RoBERTa family, else 0."""
    return int(config.pad_token_id) + 1 if config.model_type in OFFSET_POSITIONS else 0


def layer_count(config: Any) -> int:
    """Number of Transformer layers."""
    for field in LAYER_COUNT:
        value = getattr(config, field, None)
        if isinstance(value, int):
            return value
    raise ValueError(f"{type(config).__name__} says nowhere how many layers it has.")


def takes(model: nn.Module, *, body: bool = False) -> frozenset[str]:
    """Names of the arguments of a model's forward pass, or of its body's.

    Wrappers such as PEFT's take any, and hand them on to the model within.
    """
    within: Any = model
    if hasattr(model, "get_base_model"):
        within = model.get_base_model()  # type: ignore[operator]
    return frozenset(signature((within.base_model if body else within).forward).parameters)


def layer_number(name: str) -> int | None:
    """The first number between dots in a parameter's name: which of the layers it belongs to, if any."""
    match = _LAYER.search(name)
    return int(match.group(1)) if match else None


def depth_of(name: str, n_layers: int) -> int:
    """Depth of a parameter: 0 for embeddings, 1 to `n_layers` for layers, ``n_layers + 1`` for what stands above.

    Read off the parameter's name, since every architecture numbers its layers and calls its embeddings so.
    """
    number = layer_number(name)
    if number is not None and number < n_layers:
        return number + 1
    return 0 if re.search(r"embed|(^|\.)w[tp]e\.|layer_norm_emb|(^|\.)shared\.", name) else n_layers + 1


def freeze(model: PreTrainedModel, what: str | int | None) -> None:
    """Stop gradients for the embeddings, for the embeddings and the lowest n layers, or for all but the head."""
    n_layers = layer_count(model.config)
    if what is None:
        return
    named = {"embeddings": 0, "all": n_layers + 1}
    if isinstance(what, str) and what in named:
        limit = named[what]
    elif isinstance(what, (int, np.integer)) and not isinstance(what, bool):
        limit = int(what)
        if not 0 <= limit <= n_layers:
            raise ValueError(f"freeze={what} layers, but {model.config.model_type} has {n_layers}.")
    else:
        raise ValueError(
            f'freeze={what!r} is not known; pass None, "embeddings", "all" or a number of layers.'
        )
    prefix = model.base_model_prefix + "."
    if not any(name.startswith(prefix) for name, _ in model.named_parameters()):
        prefix = (
            ""  # T5 has its two halves at the top; its head is the embeddings once more, or above all layers
        )
    for name, parameter in model.named_parameters():
        # a pooler is head: it is new in most checkpoints; a norm after the last layer is not
        if name.startswith(prefix) and "pooler" not in name and depth_of(name, n_layers) <= limit:
            parameter.requires_grad_(False)
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ValueError(
            f"freeze={what!r} leaves nothing to train: the head of this {model.config.model_type!r} model is its "
            f'embeddings once more; pass a number of layers, "embeddings" or None.'
        )


def without_decay(model: nn.Module) -> set[str]:
    """Names of the parameters that weight decay leaves alone: biases, and the gains of norms."""
    return {name for name, parameter in model.named_parameters() if parameter.ndim <= 1}
