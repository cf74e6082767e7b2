"""What a Transformer is made of, as a Transformers configuration: three architectures, one vocabulary of fields.

A configuration is a dataclass that Transformers saves, loads and hands to its Auto classes. ``TransformerConfig`` is an
encoder; with ``architecture="decoder"`` or ``"encoder-decoder"`` it gives a configuration of that kind, whose class
Transformers tells apart.
"""

from __future__ import annotations

import copy
from inspect import Parameter, Signature
from typing import Any, ClassVar

from transformers import PreTrainedConfig

from .._engine.errors import did_you_mean
from .config_checks import check_choices, check_heads, check_names, check_sizes, fill_in


class TransformerConfig(PreTrainedConfig):
    """A Transformer's shape; passed as ``model=`` to an estimator, it is trained from scratch.

    Parameters
    ----------
    architecture : {"encoder", "decoder", "encoder-decoder"}, default="encoder"
        An encoder reads a text whole (BERT), a decoder writes one token after another (GPT-2), an encoder-decoder
        reads one text and writes another (the 2017 model, T5).
    vocab_size : int, default=8192
        Tokens in the vocabulary, V. From scratch it is the most that the tokenizer may learn.
    hidden_size : int, default=256
        Width of a token's vector, H.
    num_layers : int, default=4
        Layers, L; of the encoder where there are two stacks.
    num_decoder_layers : int, optional
        Layers of the decoder of an encoder-decoder; as many as `num_layers` when None.
    num_attention_heads : int, optional
        Heads; the one nearest to ``hidden_size / 64`` that divides the width when None.
    num_key_value_heads : int, optional
        Heads of keys and values: fewer than `num_attention_heads` is grouped-query attention, 1 is multi-query
        attention, None is one for each.
    head_dim : int, optional
        Width of a head, d_k; ``hidden_size / num_attention_heads`` when None.
    intermediate_size : int, optional
        Inner width of the feed-forward layers; ``4 * hidden_size``, of gated ones 2/3 of that, when None.
    max_position_embeddings : int, default=512
        Longest sequence, in tokens. Only learned positions can't go beyond it.
    positions : {"sinusoidal", "sinusoidal_halves", "learned", "rotary", "alibi", "relative", "none"}, \
default="sinusoidal"
        How the order of tokens comes in: see `sktransformer.nn.positions`.
    rotary_base : float, default=10000.0
        Base of the rotary angles.
    relative_buckets, relative_max_distance : int, default=32, 128
        Buckets of relative positions, and the distance from which on all share one.
    norm : {"layer", "rms"}, default="layer"
        Kind of normalisation.
    norm_position : {"pre", "post"}, default="pre"
        Before each sublayer, with one more norm at the end, or after the residual sum, as in 2017.
    norm_eps : float, default=1e-5
        Added to the variance.
    embedding_norm : bool, default=False
        Whether the embeddings are normalised, as BERT's are.
    feed_forward : {"relu", "gelu", "gelu_tanh", "silu", "reglu", "geglu", "geglu_tanh", "swiglu"}, default="gelu"
        The nonlinearity; the last four have a gate.
    num_experts : int, default=1
        Feed-forward layers to choose from; above 1 it is a mixture of experts.
    num_experts_per_token : int, default=2
        Experts that a token is sent to.
    router_aux_loss_coef : float, default=0.01
        Weight of the balance loss of the mixture of experts: that of the tokens of one forward pass, so that the loss
        of a batch depends a little on how it is cut to fit in memory.
    attention_window : int, optional
        Tokens that a token sees to each side, itself included; all when None.
    attention_scale : float, optional
        Factor on the products of queries and keys; ``1 / sqrt(head_dim)`` when None.
    attention_bias, feed_forward_bias : bool, default=True
        Whether those projections have biases.
    dropout : float, default=0.1
        Probability of dropping an element of the embeddings and of each sublayer's output.
    attention_dropout : float, default=0.1
        Probability of dropping an attention weight.
    classifier_dropout : float, optional
        Probability of dropping an element before a head's last layer; `dropout` when None.
    type_vocab_size : int, default=0
        Segments that are told apart, 2 for pairs of texts in the manner of BERT; 0 for none.
    scale_embeddings : bool, optional
        Whether token embeddings are multiplied by ``sqrt(hidden_size)``, and drawn that much smaller; for sinusoidal
        positions, beside which they would be lost otherwise, when None.
    cross_attention : bool, default=True
        Whether the decoder of an encoder-decoder reads what the encoder made; switched off to show what it does.
    logits_scale : float, default=1.0
        Factor on the last hidden states before the output layer of a language model.
    logits_bias : bool, default=False
        Whether the output layer of a language model has a bias.
    tie_word_embeddings : bool, default=True
        Whether the output layer of a language model is the table of token embeddings.
    initializer_range : float, optional
        Standard deviation of new weights; ``sqrt(2 / (inputs + outputs))`` of each linear layer when None (Glorot and
        Bengio 2010, section 4.2.1), as in the code of 2017. BERT and GPT-2 have 0.02.
    pad_token_id, bos_token_id, eos_token_id : int, default=0, 1, 2
        Ids of special tokens; from scratch they become the tokenizer's.
    decoder_start_token_id : int, optional
        What the decoder of an encoder-decoder reads first; the padding token when None.
    tokenizer : {"wordpiece", "bpe", "byte_bpe", "unigram"}, optional
        Kind of tokenizer that is learned from scratch: when None, WordPiece for an encoder, byte-level BPE for a
        decoder, Unigram for an encoder-decoder.
    use_cache : bool, default=True
        Whether decoders keep keys and values while they generate.
    **kwargs : object
        What every Transformers configuration takes, for instance ``num_labels``.

    Raises
    ------
    TypeError
        When there is no field of such a name.
    ValueError
        When values don't fit each other.

    See Also
    --------
    parameter_count : How many parameters a configuration gives.
    sktransformer.TransformerClassifier : Trains one from scratch, ``TransformerClassifier(TransformerConfig())``.

    Notes
    -----
    ``TransformerConfig.preset(name)`` gives the shapes of published models.

    References
    ----------
    Vaswani et al. 2017, "Attention Is All You Need", https://arxiv.org/abs/1706.03762, section 3 and table 3.

    Examples
    --------
    >>> from sktransformer.nn import TransformerConfig
    >>> config = TransformerConfig(hidden_size=128, num_layers=2, positions="rotary")
    >>> config.num_attention_heads, config.intermediate_size
    (2, 512)
    >>> TransformerConfig(architecture="decoder", hidden_size=64)
    DecoderConfig(hidden_size=64, num_attention_heads=1, num_key_value_heads=1, head_dim=64, intermediate_size=256, \
scale_embeddings=True)
    """

    __signature__: ClassVar[Signature]
    model_type: ClassVar[str] = "sktransformer-encoder"
    keys_to_ignore_at_inference: ClassVar[list[str]] = ["cache", "past_key_values"]
    # Transformers' own names for what is called otherwise here; both can be read and passed.
    attribute_map: ClassVar[dict[str, str]] = {
        "num_hidden_layers": "num_layers",
        "num_heads": "num_attention_heads",
        "d_model": "hidden_size",
    }

    architecture: str = "encoder"
    vocab_size: int = 8192
    hidden_size: int = 256
    num_layers: int = 4
    num_decoder_layers: int | None = None
    num_attention_heads: int | None = None
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    intermediate_size: int | None = None
    max_position_embeddings: int = 512
    positions: str = "sinusoidal"
    rotary_base: float = 10_000.0
    relative_buckets: int = 32
    relative_max_distance: int = 128
    norm: str = "layer"
    norm_position: str = "pre"
    norm_eps: float = 1e-5
    embedding_norm: bool = False
    feed_forward: str = "gelu"
    num_experts: int = 1
    num_experts_per_token: int = 2
    router_aux_loss_coef: float = 0.01
    attention_window: int | None = None
    attention_scale: float | None = None
    attention_bias: bool = True
    feed_forward_bias: bool = True
    dropout: float = 0.1
    attention_dropout: float = 0.1
    classifier_dropout: float | None = None
    type_vocab_size: int = 0
    scale_embeddings: bool | None = None
    cross_attention: bool = True
    logits_scale: float = 1.0
    logits_bias: bool = False
    tie_word_embeddings: bool = True
    initializer_range: float | None = None
    pad_token_id: int | None = 0
    bos_token_id: int | None = 1
    eos_token_id: int | None = 2
    decoder_start_token_id: int | None = None
    tokenizer: str | None = None
    use_cache: bool = True

    def __new__(cls, *args: Any, **kwargs: Any) -> TransformerConfig:
        """Give the class of the architecture that is asked for, as ``pathlib.Path`` gives the system's."""
        asked = kwargs.get("architecture")
        kind = _CLASSES.get(asked, cls) if cls is TransformerConfig and isinstance(asked, str) else cls
        return object.__new__(kind)

    def __post_init__(self, **kwargs: Any) -> None:
        """Fill in what follows from other fields, and check that all fit."""
        check_names(self, kwargs)
        for alias, field in self.attribute_map.items():
            if alias in kwargs:
                setattr(self, field, kwargs.pop(alias))
        check_choices(self)
        if type(self) in _CLASSES.values() and type(self) is not _CLASSES[self.architecture]:
            raise ValueError(
                f"architecture={self.architecture!r} is not what a {type(self).__name__} describes; pass "
                f"TransformerConfig(architecture={self.architecture!r}, ...)."
            )
        check_sizes(self)
        fill_in(self)
        check_heads(self)
        PreTrainedConfig.__post_init__(self, **kwargs)

    def __repr__(self) -> str:
        """Write the call that makes it, as scikit-learn's estimators do; ``to_dict()`` has all fields."""
        fields = [name for name in TransformerConfig.__signature__.parameters if name != "kwargs"]
        given = [
            f"{name}={getattr(self, name)!r}"
            for name in fields
            if getattr(self, name) != getattr(type(self), name)
        ]
        given += [f"num_labels={self.num_labels}"] if self.num_labels != 2 else []
        return f"{type(self).__name__}({', '.join(given)})"

    @classmethod
    def preset(cls, name: str, **changes: Any) -> TransformerConfig:
        """Return the shape of a published model.

        Parameters
        ----------
        name : {"transformer-base", "bert-base", "roberta-base", "gpt2-small", "t5-small", "llama-like"}
            The model: Vaswani et al. 2017, table 3; Devlin et al. 2019, section 3; Liu et al. 2019, section 5;
            Radford et al. 2019, table 2; Raffel et al. 2020, section 3.1.1; and a small one of the parts that
            Touvron et al. 2023, section 2.2, name.
        **changes : object
            Fields that are to differ.

        Returns
        -------
        TransformerConfig
            The configuration; nothing is loaded.

        Raises
        ------
        ValueError
            When there is no such preset.
        """
        from .presets import PRESETS  # here, since it makes no configuration but is a table of their fields

        if name not in PRESETS:
            raise ValueError(
                f"there is no preset {name!r}; there are {', '.join(PRESETS)}.{did_you_mean(str(name), PRESETS)}"
            )
        return TransformerConfig(**{**PRESETS[name], **changes})


# What help() and completion show: the fields of this room, rather than all those of every Transformers configuration.
_OTHERS = Signature([Parameter("kwargs", Parameter.VAR_KEYWORD)])
TransformerConfig.__signature__ = Signature(
    [
        Parameter(name, Parameter.KEYWORD_ONLY, default=getattr(TransformerConfig, name))
        for name in TransformerConfig.__annotations__
        if not str(TransformerConfig.__annotations__[name]).startswith("ClassVar")
    ]
    + list(_OTHERS.parameters.values())
)


class DecoderConfig(TransformerConfig):
    """A decoder-only model: `TransformerConfig` with ``architecture="decoder"``.

    Parameters
    ----------
    **kwargs : object
        The fields of `TransformerConfig`.

    Examples
    --------
    >>> from sktransformer.nn import DecoderConfig
    >>> DecoderConfig(hidden_size=128).architecture
    'decoder'
    """

    model_type: ClassVar[str] = "sktransformer-decoder"

    __signature__: ClassVar[Signature] = _OTHERS

    architecture: str = "decoder"


class EncoderDecoderConfig(TransformerConfig):
    """An encoder and a decoder: `TransformerConfig` with ``architecture="encoder-decoder"``.

    Parameters
    ----------
    **kwargs : object
        The fields of `TransformerConfig`.

    Examples
    --------
    >>> from sktransformer.nn import EncoderDecoderConfig
    >>> EncoderDecoderConfig(num_layers=3).num_decoder_layers
    3
    """

    model_type: ClassVar[str] = "sktransformer-encoder-decoder"

    __signature__: ClassVar[Signature] = _OTHERS

    architecture: str = "encoder-decoder"
    is_encoder_decoder: bool = True

    def get_text_config(self, decoder: bool | None = None, encoder: bool | None = None) -> TransformerConfig:
        """Return this configuration; for the decoder alone, by which caches are sized, one with its depth.

        Parameters
        ----------
        decoder, encoder : bool, optional
            Which half is asked for.

        Returns
        -------
        TransformerConfig
            This one, or a copy.
        """
        if not decoder or self.num_decoder_layers is None or self.num_decoder_layers == self.num_layers:
            return self
        half = copy.copy(self)
        half.num_layers = self.num_decoder_layers
        return half


_CLASSES: dict[str, type[TransformerConfig]] = {
    "encoder": TransformerConfig,
    "decoder": DecoderConfig,
    "encoder-decoder": EncoderDecoderConfig,
}
