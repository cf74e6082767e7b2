"""What a configuration costs before anything is built: parameters exactly, operations and memory to a few per cent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .config import TransformerConfig
from .config_checks import GATED_FEED_FORWARDS, require_whole

ADAM_MOMENTS = 2  # numbers that Adam keeps for each parameter: Kingma and Ba 2015, algorithm 1


@dataclass(frozen=True)
class ParameterCount:
    """Parameters of each part; see `parameter_count`.

    Parameters
    ----------
    tokens, positions, segments : int
        Of the tables of embeddings.
    self_attention, cross_attention, feed_forward : int
        Of these sublayers in all layers, each with its norm.
    norms : int
        Of the norms outside the layers: of the embeddings, and at the end of a stack.
    relative_bias : int
        Of the tables of relative positions.
    output : int
        Of a language model's output layer, as far as it is not the table of tokens.
    rule : int
        The rule of thumb, 12 L H^2 + V H.

    Examples
    --------
    >>> from sktransformer.nn import TransformerConfig, parameter_count
    >>> count = parameter_count(TransformerConfig.preset("gpt2-small"))
    >>> count.blocks == count.self_attention + count.feed_forward
    True
    """

    tokens: int
    positions: int
    segments: int
    self_attention: int
    cross_attention: int
    feed_forward: int
    norms: int
    relative_bias: int
    output: int
    rule: int

    @property
    def blocks(self) -> int:
        """Parameters of all layers."""
        return self.self_attention + self.cross_attention + self.feed_forward

    @property
    def total(self) -> int:
        """Parameters of all parts."""
        tables = self.tokens + self.positions + self.segments + self.relative_bias
        return tables + self.blocks + self.norms + self.output


def parameter_count(config: TransformerConfig, *, language_model: bool = True) -> ParameterCount:
    """Count the parameters of a model, part by part, without building it.

    Parameters
    ----------
    config : TransformerConfig
        Its shape.
    language_model : bool, default=True
        Whether the model has the output layer of a language model; if not, it is the body alone.

    Returns
    -------
    ParameterCount
        Exact numbers, and the rule of thumb 12 L H^2 + V H beside them: 4 H^2 in the four projections of attention
        and 8 H^2 in a feed-forward layer of inner width 4 H, for each of L layers, and V rows of embeddings. The rule
        leaves out cross-attention, positions, norms, biases and an output layer of its own.

    Raises
    ------
    TypeError
        For another kind of configuration.

    References
    ----------
    Kaplan et al. 2020, "Scaling Laws for Neural Language Models", section 2.1 and table 1 (12 L H^2).

    Examples
    --------
    >>> from sktransformer.nn import TransformerConfig, parameter_count
    >>> count = parameter_count(TransformerConfig.preset("gpt2-small"))
    >>> count.total, count.blocks, count.rule
    (124439808, 85054464, 123532032)
    """
    _require_config(config)
    width, n_norm = config.hidden_size, _norm(config)
    encoder, decoder = _depths(config)
    n_layers = encoder + decoder
    cross = decoder if config.architecture == "encoder-decoder" and config.cross_attention else 0
    attention, feed_forward = _attention(config) + n_norm, _feed_forward(config) + n_norm
    stacks = (encoder > 0) + (decoder > 0)
    return ParameterCount(
        tokens=config.vocab_size * width,
        positions=config.max_position_embeddings * width if config.positions == "learned" else 0,
        segments=config.type_vocab_size * width,
        self_attention=n_layers * attention,
        cross_attention=cross * attention,
        feed_forward=n_layers * feed_forward,
        norms=(stacks if config.norm_position == "pre" else 0) * n_norm + config.embedding_norm * n_norm,
        relative_bias=stacks * config.relative_buckets * _heads(config)[0]
        if config.positions == "relative"
        else 0,
        output=_output(config) if language_model else 0,
        rule=12 * n_layers * width**2 + config.vocab_size * width,
    )


@dataclass(frozen=True)
class Cost:
    """Operations and memory of a batch; see `estimate_cost`.

    Parameters
    ----------
    forward_flops, training_flops : float
        Floating-point operations of a forward pass, and of a training step.
    weights, gradients, optimizer, activations : float
        Bytes; the last three are those of training.

    Examples
    --------
    >>> from sktransformer.nn import TransformerConfig, estimate_cost
    >>> cost = estimate_cost(TransformerConfig.preset("bert-base"), batch_size=32, length=128)
    >>> cost.training_flops == 3 * cost.forward_flops
    True
    """

    forward_flops: float
    training_flops: float
    weights: float
    gradients: float
    optimizer: float
    activations: float

    @property
    def training_memory(self) -> float:
        """Bytes that training holds at once: weights, gradients, the optimizer's state, activations."""
        return self.weights + self.gradients + self.optimizer + self.activations


def estimate_cost(
    config: TransformerConfig,
    *,
    batch_size: int,
    length: int,
    language_model: bool = True,
    number_size: int = 4,
) -> Cost:
    """Estimate what a batch costs.

    Parameters
    ----------
    config : TransformerConfig
        The model's shape.
    batch_size : int
        Texts, B.
    length : int
        Tokens of each, T; of the target too where there is one.
    language_model : bool, default=True
        Whether the scores of all tokens of the vocabulary are computed.
    number_size : int, default=4
        Bytes of a number: 4 for float32, 2 for bfloat16.

    Returns
    -------
    Cost
        Products of matrices alone are counted, 2 operations for each weight and token, and 4 T d for each head and
        token in attention (causal masks are not deducted); backward takes twice as much. Memory is that of AdamW with
        the weights in `number_size`, with fused attention, which keeps no T x T weights.

    Raises
    ------
    TypeError
        For another kind of configuration, or a number that is not whole.
    ValueError
        For a number below 1.

    References
    ----------
    Kaplan et al. 2020, section 2.1 (operations); Korthikanti et al. 2022, "Reducing Activation Recomputation in Large
    Transformer Models", section 4.1 (activations).

    Examples
    --------
    >>> from sktransformer.nn import TransformerConfig, estimate_cost
    >>> cost = estimate_cost(TransformerConfig.preset("gpt2-small"), batch_size=1, length=1024)
    >>> round(cost.forward_flops / 1e9), round(cost.weights / 1e6)
    (292, 498)
    """
    _require_config(config)
    for name, value in (("batch_size", batch_size), ("length", length), ("number_size", number_size)):
        require_whole(name, value, low=1)
    heads, groups, size = _heads(config)
    encoder, decoder = _depths(config)
    cross = decoder if config.architecture == "encoder-decoder" and config.cross_attention else 0
    tokens = float(batch_size * length)
    attended = 4.0 * length * heads * size
    attention = 2.0 * config.hidden_size * size * (2 * heads + 2 * groups)
    layers = (encoder + decoder) * (attention + attended + 2.0 * _active_weights(config))
    per_token = layers + cross * (attention + attended)
    if language_model:
        per_token += 2.0 * config.vocab_size * config.hidden_size
    parameters = parameter_count(config, language_model=language_model).total * number_size
    return Cost(
        forward_flops=tokens * per_token,
        training_flops=3 * tokens * per_token,
        weights=parameters,
        gradients=parameters,
        optimizer=ADAM_MOMENTS * parameters,
        activations=tokens * number_size * _kept(config, encoder + decoder, cross, language_model),
    )


def _require_config(config: Any) -> None:
    if not isinstance(config, TransformerConfig):
        raise TypeError(
            f"config must be a TransformerConfig, got {type(config).__name__}; of a model of Transformers, "
            f"from_transformers(model).config is one."
        )


def _heads(config: TransformerConfig) -> tuple[int, int, int]:
    heads, groups, size = config.num_attention_heads, config.num_key_value_heads, config.head_dim
    assert heads is not None  # a config fills them in
    assert groups is not None
    assert size is not None
    return heads, groups, size


def _depths(config: TransformerConfig) -> tuple[int, int]:
    """Layers of the encoder and of the decoder."""
    if config.architecture == "encoder-decoder":
        return config.num_layers, config.num_decoder_layers or config.num_layers
    return (config.num_layers, 0) if config.architecture == "encoder" else (0, config.num_layers)


def _norm(config: TransformerConfig) -> int:
    return config.hidden_size * (2 if config.norm == "layer" else 1)


def _attention(config: TransformerConfig) -> int:
    heads, groups, size = _heads(config)
    weights = config.hidden_size * size * (2 * heads + 2 * groups)
    biases = size * (heads + 2 * groups) + config.hidden_size
    return weights + (biases if config.attention_bias else 0)


def _feed_forward(config: TransformerConfig) -> int:
    one = _expert_weights(config)
    if config.feed_forward_bias:
        one += _ups(config) * (config.intermediate_size or 0) + config.hidden_size
    if config.num_experts == 1:
        return one
    return config.num_experts * one + config.num_experts * config.hidden_size  # and the router


def _ups(config: TransformerConfig) -> int:
    return 2 if config.feed_forward in GATED_FEED_FORWARDS else 1


def _expert_weights(config: TransformerConfig) -> int:
    return (_ups(config) + 1) * config.hidden_size * (config.intermediate_size or 0)


def _active_weights(config: TransformerConfig) -> int:
    """Weights of a feed-forward layer that one token meets."""
    if config.num_experts == 1:
        return _expert_weights(config)
    return config.num_experts_per_token * _expert_weights(config) + config.num_experts * config.hidden_size


def _output(config: TransformerConfig) -> int:
    own = 0 if config.tie_word_embeddings else config.vocab_size * config.hidden_size
    own += config.vocab_size if config.logits_bias else 0
    if config.architecture == "encoder":  # the layer before it
        own += config.hidden_size**2 + config.hidden_size + _norm(config)
    return own


def _kept(config: TransformerConfig, n_layers: int, cross: int, language_model: bool) -> float:
    """Numbers for each token that the backward pass reads."""
    heads, groups, size = _heads(config)
    width, inner = config.hidden_size, config.intermediate_size or 0
    # a norm's input and output, queries, keys, values, what was attended, the dropped output's mask
    attention = 3 * width + size * (2 * heads + 2 * groups)
    times = 1 if config.num_experts == 1 else config.num_experts_per_token
    feed_forward = 3 * width + times * inner * (2 if _ups(config) == 1 else 4)
    scores = 2 * config.vocab_size if language_model else 0
    return float(n_layers * (attention + feed_forward) + cross * attention + 2 * width + scores)
