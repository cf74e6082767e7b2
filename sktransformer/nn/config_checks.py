"""What a `TransformerConfig` may hold, and what follows from what."""

from __future__ import annotations

import math
import numbers
from typing import Any

from .._engine.errors import did_you_mean

ARCHITECTURES = ("encoder", "decoder", "encoder-decoder")
POSITIONS = ("sinusoidal", "sinusoidal_halves", "learned", "rotary", "alibi", "relative", "none")
NORMS = ("layer", "rms")
NORM_POSITIONS = ("pre", "post")
FEED_FORWARDS = ("relu", "gelu", "gelu_tanh", "silu", "reglu", "geglu", "geglu_tanh", "swiglu")
TOKENIZERS = ("wordpiece", "bpe", "byte_bpe", "unigram")
HEAD_DIM = 64  # d_k of the 2017 model, and of BERT and GPT-2

# What Transformers itself hands over besides fields, when it reads a config.json or loads a model.
_PASSED_BY_TRANSFORMERS = frozenset(
    {
        "attn_implementation",
        "experts_implementation",
        "model_type",
        "name_or_path",
        "num_labels",
        "output_attentions",
        "per_layer_config",
        "tie_encoder_decoder",
        "torch_dtype",
        "use_return_dict",
    }
)
GATED_FEED_FORWARDS = frozenset({"reglu", "geglu", "geglu_tanh", "swiglu"})


def check_names(config: Any, kwargs: dict[str, Any]) -> None:
    """Raise for what is neither a field nor something that Transformers passes."""
    known = {*config.__dataclass_fields__, *config.attribute_map, *_PASSED_BY_TRANSFORMERS}
    for name in kwargs:
        if name not in known and not name.startswith("_"):
            raise TypeError(f"TransformerConfig has no field {name!r}.{did_you_mean(name, known)}")


def check_choices(config: Any) -> None:
    """Raise for a word that a field does not know."""
    choices = {
        "architecture": ARCHITECTURES,
        "positions": POSITIONS,
        "norm": NORMS,
        "norm_position": NORM_POSITIONS,
        "feed_forward": FEED_FORWARDS,
        "tokenizer": (None, *TOKENIZERS),
    }
    for name, allowed in choices.items():
        value = getattr(config, name)
        if value not in allowed:
            hint = did_you_mean(str(value), [choice for choice in allowed if choice is not None])
            raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}.{hint}")


def check_sizes(config: Any) -> None:
    """Raise for numbers that are none, or outside their range."""
    whole = (
        "vocab_size",
        "hidden_size",
        "num_layers",
        "max_position_embeddings",
        "relative_buckets",
        "relative_max_distance",
        "num_experts",
        "num_experts_per_token",
    )
    optional = (
        "num_decoder_layers",
        "num_attention_heads",
        "num_key_value_heads",
        "head_dim",
        "intermediate_size",
        "attention_window",
    )
    for name in (*whole, *(name for name in optional if getattr(config, name) is not None)):
        require_whole(name, getattr(config, name), low=1)
    if config.num_experts_per_token > config.num_experts > 1:
        raise ValueError(
            f"num_experts_per_token={config.num_experts_per_token} is more than num_experts={config.num_experts}."
        )
    require_whole("type_vocab_size", config.type_vocab_size, low=0)
    _check_reals(config)


def require_whole(name: str, value: Any, *, low: int) -> None:
    """Raise for anything but a whole number from `low` on."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, got {value!r}.")
    if value < low:
        raise ValueError(f"{name} must be at least {low}, got {value}.")


def _check_reals(config: Any) -> None:
    """Raise for factors and probabilities outside their range."""
    for name in ("dropout", "attention_dropout", "classifier_dropout"):
        probability = getattr(config, name)
        if probability is not None and not 0.0 <= _real(name, probability) < 1.0:
            raise ValueError(f"{name} must lie in [0, 1), got {probability!r}.")
    for name in ("norm_eps", "initializer_range", "router_aux_loss_coef"):
        value = getattr(config, name)
        if value is not None and not 0.0 <= _real(name, value) < math.inf:
            raise ValueError(f"{name} must be at least 0, got {value!r}.")
    for name in ("rotary_base", "attention_scale", "logits_scale"):
        value = getattr(config, name)
        if value is not None and not 0.0 < _real(name, value) < math.inf:
            raise ValueError(f"{name} must be above 0, got {value!r}.")


def _real(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {value!r}.")
    return float(value)


def fill_in(config: Any) -> None:
    """Set the fields that were left to follow from others."""
    width = config.hidden_size
    if config.num_attention_heads is None:
        wanted = width / (config.head_dim or HEAD_DIM)
        divisors = [n for n in range(1, width + 1) if width % n == 0]
        config.num_attention_heads = min(divisors, key=lambda n: abs(math.log(n / wanted)))
    if config.num_key_value_heads is None:
        config.num_key_value_heads = config.num_attention_heads
    if config.head_dim is None:
        if width % config.num_attention_heads:
            raise ValueError(
                f"hidden_size={width} is not divisible by num_attention_heads={config.num_attention_heads}; change "
                f"one of them, or pass head_dim."
            )
        config.head_dim = width // config.num_attention_heads
    if config.scale_embeddings is None:
        config.scale_embeddings = config.positions.startswith("sinusoidal")
    if config.intermediate_size is None:
        # three matrices of 2/3 of the width have as many weights as two: Shazeer 2020, section 2
        config.intermediate_size = (
            -(-8 * width // 24) * 8 if config.feed_forward in GATED_FEED_FORWARDS else 4 * width
        )
    if config.architecture == "encoder-decoder":
        config.is_encoder_decoder = True
        if config.num_decoder_layers is None:
            config.num_decoder_layers = config.num_layers
        if config.decoder_start_token_id is None:
            config.decoder_start_token_id = config.pad_token_id


def check_heads(config: Any) -> None:
    """Raise for heads that don't fit each other or the positions."""
    heads, groups, size = config.num_attention_heads, config.num_key_value_heads, config.head_dim
    if heads % groups:
        raise ValueError(
            f"num_attention_heads={heads} is not divisible by num_key_value_heads={groups}: each group of queries "
            f"shares one head of keys and values."
        )
    if config.positions == "rotary" and size % 2:
        raise ValueError(
            f'positions="rotary" turns the dimensions of a head in pairs, and head_dim={size} is odd; change '
            f"hidden_size or num_attention_heads."
        )
    if config.positions == "relative":
        _check_buckets(config)
    if config.positions.startswith("sinusoidal") and config.hidden_size % 2:
        raise ValueError(
            f"positions={config.positions!r} needs an even hidden_size, got {config.hidden_size}."
        )


def _check_buckets(config: Any) -> None:
    """Raise for buckets that leave none to a single distance, or none beyond it: Raffel et al. 2020, section 2.1."""
    sides = 1 if config.architecture == "decoder" else 2  # an encoder's distances have signs
    exact = config.relative_buckets // sides // 2
    if exact < 1:
        raise ValueError(
            f'positions="relative" needs at least {2 * sides} relative_buckets here, got {config.relative_buckets}.'
        )
    longest = config.relative_buckets // 2 if config.architecture == "encoder-decoder" else exact
    if config.relative_max_distance <= longest:
        raise ValueError(
            f"relative_max_distance must be above {longest}, up to which {config.relative_buckets} relative_buckets "
            f"tell each distance apart, got {config.relative_max_distance}."
        )
