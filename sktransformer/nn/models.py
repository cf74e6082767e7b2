"""An encoder alone and a decoder alone, without a head, as Transformers models: they save, load, and go where those go.

Vaswani et al. 2017, section 3 and figure 1: an encoder reads, a decoder writes. An encoder alone is BERT's kind (Devlin
et al. 2019), a decoder alone GPT's (Radford et al. 2018).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import torch
from torch import nn
from transformers import PreTrainedModel, initialization
from transformers.cache_utils import Cache, DynamicCache
from transformers.modeling_outputs import (
    BaseModelOutput,
    BaseModelOutputWithPastAndCrossAttentions,
)
from transformers.utils.generic import can_return_tuple

from .config import DecoderConfig, TransformerConfig
from .embeddings import Embeddings
from .residual import ResidualLinear, TokenTable
from .stack import Stack

# Transformers 5.24 calls the keys and values of earlier tokens "cache" where it said "past_key_values" before.
CACHE = (
    "cache"
    if "cache" in BaseModelOutputWithPastAndCrossAttentions.__dataclass_fields__
    else "past_key_values"
)


_F = TypeVar("_F", bound=Callable[..., Any])


def returns_tuple(forward: _F) -> _F:
    """Let ``return_dict=False`` make a tuple of what `forward` returns, as everywhere in Transformers."""
    return cast(_F, can_return_tuple(forward))


class TransformerPreTrainedModel(PreTrainedModel):
    """What all models of this room share: how weights are drawn, and what Transformers may do with them."""

    config: TransformerConfig
    config_class: Any = TransformerConfig
    base_model_prefix = "model"
    main_input_name = "input_ids"
    supports_gradient_checkpointing = True
    _no_split_modules = ["TransformerLayer"]  # noqa: RUF012 - an instance variable in Transformers
    _supports_sdpa = True
    _supports_attention_backend = True

    def __init__(self, config: TransformerConfig) -> None:
        # a model of another architecture would be built all the same, and be loaded as that one afterwards
        expected = self.config_class.architecture
        if not isinstance(config, TransformerConfig) or config.architecture != expected:
            got = getattr(config, "architecture", type(config).__name__)
            raise TypeError(
                f"{type(self).__name__} needs TransformerConfig(architecture={expected!r}, ...), got {got!r}."
            )
        super().__init__(config)

    def post_init(self) -> None:
        """Draw the weights and tie those that are one."""
        PreTrainedModel.post_init(self)

    def _init_weights(self, module: nn.Module) -> None:
        """Draw from a normal distribution, biases 0 and gains 1.

        Embeddings that are multiplied by sqrt(H) are drawn with 1 / sqrt(H), as in the code of Vaswani et al. 2017, so
        that they are as large as the sines beside them. With norms before the sublayers, weights that write into the
        residual stream are divided by sqrt(2 L): Radford et al. 2019, section 2.3.
        """
        std = self._initial_std(module)
        if std is None:
            PreTrainedModel._init_weights(self, module)
            return
        weighted: Any = module
        initialization.normal_(weighted.weight, mean=0.0, std=std)  # leaves weights alone that were loaded
        if getattr(weighted, "bias", None) is not None:
            initialization.zeros_(weighted.bias)

    def _initial_std(self, module: nn.Module) -> float | None:
        """Return the standard deviation of a module's weights, None where Transformers' own rule holds."""
        if isinstance(module, TokenTable) and self.config.scale_embeddings:
            return float(self.config.hidden_size**-0.5)
        if not isinstance(module, nn.Linear):
            return None
        std = self.config.initializer_range
        if std is None:
            std = (2.0 / (module.in_features + module.out_features)) ** 0.5
        if isinstance(module, ResidualLinear) and self.config.norm_position == "pre":
            std /= (2 * self.config.num_layers) ** 0.5
        return float(std)

    def _count_positions(
        self, tokens: torch.Tensor, attention_mask: torch.Tensor | None, n_before: int, *, count: bool
    ) -> torch.Tensor:
        """Count from 0; where padding may stand in front (`count`), tokens only."""
        n_tokens = tokens.shape[1]
        if count and attention_mask is not None and attention_mask.ndim == 2:
            return (attention_mask.long().cumsum(-1) - 1).clamp(min=0)[:, -n_tokens:]
        return torch.arange(n_before, n_before + n_tokens, device=tokens.device)[None]


def wanted(config: TransformerConfig, given: bool | None, name: str) -> bool:
    """Return an option of a call, or the configuration's where the call has none."""
    return bool(getattr(config, name, False) if given is None else given)


def one_of(input_ids: torch.Tensor | None, inputs_embeds: torch.Tensor | None) -> torch.Tensor:
    """Return the one that is given; both, or none, raise ValueError."""
    if (input_ids is None) == (inputs_embeds is None):
        raise ValueError("pass either input_ids or inputs_embeds, and not both.")
    tokens = inputs_embeds if input_ids is None else input_ids
    assert tokens is not None
    return tokens


class EncoderModel(TransformerPreTrainedModel):
    """An encoder: each token becomes a vector that knows all others.

    Parameters
    ----------
    config : TransformerConfig
        Its shape.

    References
    ----------
    Vaswani et al. 2017, section 3.1; Devlin et al. 2019, section 3.

    Examples
    --------
    >>> import torch
    >>> from sktransformer.nn import EncoderModel, TransformerConfig
    >>> model = EncoderModel(TransformerConfig(vocab_size=20, hidden_size=8))
    >>> model(torch.tensor([[3, 4, 5]])).last_hidden_state.shape
    torch.Size([1, 3, 8])
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config)
        self.embeddings = Embeddings(config)
        self.encoder = Stack(config, config.num_layers, causal=False)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        """Return the table of token embeddings.

        Returns
        -------
        nn.Module
            (V, H).
        """
        return self.embeddings.tokens

    def set_input_embeddings(self, value: nn.Module) -> None:
        """Replace the table of token embeddings.

        Parameters
        ----------
        value : nn.Module
            The new one.
        """
        self.embeddings.tokens = cast(TokenTable, value)

    @returns_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
        **kwargs: Any,
    ) -> BaseModelOutput:
        """Read texts.

        Parameters
        ----------
        input_ids : int tensor of shape (B, T), optional
            Tokens; or one packed row (1, N).
        attention_mask : tensor of shape (B, T), optional
            1 for a token, 0 for padding.
        token_type_ids : int tensor of shape (B, T), optional
            Segments.
        position_ids : int tensor of shape (B or 1, T), optional
            Positions; counted from 0 when None.
        inputs_embeds : tensor of shape (B, T, H), optional
            Vectors in the place of tokens.
        output_hidden_states, output_attentions : bool, optional
            Return what each layer made, and each layer's attention weights.
        **kwargs : object
            Handed on to the attention functions.

        Returns
        -------
        BaseModelOutput
            With ``last_hidden_state`` (B, T, H).
        """
        tokens = one_of(input_ids, inputs_embeds)
        if position_ids is None:
            position_ids = self._count_positions(tokens, attention_mask, 0, count=False)
        made = self.encoder(
            self.embeddings(input_ids, position_ids, token_type_ids, inputs_embeds),
            position_ids,
            attention_mask,
            keep_hidden=wanted(self.config, output_hidden_states, "output_hidden_states"),
            need_weights=wanted(self.config, output_attentions, "output_attentions"),
            **kwargs,
        )
        return BaseModelOutput(
            last_hidden_state=made.hidden, hidden_states=made.all_hidden, attentions=made.weights
        )


class DecoderModel(TransformerPreTrainedModel):
    """A decoder: each token becomes a vector that knows those before it.

    Parameters
    ----------
    config : DecoderConfig
        Its shape.

    References
    ----------
    Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", section 2.3.

    Examples
    --------
    >>> import torch
    >>> from sktransformer.nn import DecoderModel, TransformerConfig
    >>> model = DecoderModel(TransformerConfig(architecture="decoder", vocab_size=20, hidden_size=8))
    >>> model(torch.tensor([[3, 4, 5]])).last_hidden_state.shape
    torch.Size([1, 3, 8])
    """

    config_class = DecoderConfig

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__(config)
        self.embeddings = Embeddings(config)
        self.decoder = Stack(config, config.num_layers, causal=True)
        self.post_init()

    get_input_embeddings = EncoderModel.get_input_embeddings
    set_input_embeddings = EncoderModel.set_input_embeddings

    @returns_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        cache: Cache | None = None,
        past_key_values: Cache | None = None,
        use_cache: bool | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
        **kwargs: Any,
    ) -> BaseModelOutputWithPastAndCrossAttentions:
        """Read the tokens so far.

        Parameters
        ----------
        input_ids : int tensor of shape (B, T), optional
            Tokens; with a cache those that it does not hold.
        attention_mask : tensor of shape (B, tokens in the cache + T), optional
            1 for a token, 0 for padding, on either side.
        token_type_ids : int tensor of shape (B, T), optional
            Segments.
        position_ids : int tensor of shape (B or 1, T), optional
            Positions; tokens are counted from 0 when None.
        inputs_embeds : tensor of shape (B, T, H), optional
            Vectors in the place of tokens.
        cache, past_key_values : Cache, optional
            Keys and values of the tokens before; two names for one thing.
        use_cache : bool, optional
            Return a cache; the configuration's own, and not in training, when None.
        output_hidden_states, output_attentions : bool, optional
            Return what each layer made, and each layer's attention weights.
        **kwargs : object
            Handed on to the attention functions.

        Returns
        -------
        BaseModelOutputWithPastAndCrossAttentions
            With ``last_hidden_state`` (B, T, H) and the cache.
        """
        tokens = one_of(input_ids, inputs_embeds)
        cache = past_key_values if cache is None else cache
        if use_cache is None:
            use_cache = self.config.use_cache and not self.training
        if use_cache and cache is None:
            cache = DynamicCache(config=self.config)
        n_before = 0 if cache is None else int(cache.get_seq_length())
        if position_ids is None:
            position_ids = self._count_positions(tokens, attention_mask, n_before, count=True)
        made = self.decoder(
            self.embeddings(input_ids, position_ids, token_type_ids, inputs_embeds),
            position_ids,
            attention_mask,
            cache=cache,
            n_before=n_before,
            keep_hidden=wanted(self.config, output_hidden_states, "output_hidden_states"),
            need_weights=wanted(self.config, output_attentions, "output_attentions"),
            **kwargs,
        )
        kept: dict[str, Any] = {CACHE: cache if use_cache else None}
        return BaseModelOutputWithPastAndCrossAttentions(
            last_hidden_state=made.hidden,
            hidden_states=made.all_hidden,
            attentions=made.weights,
            **kept,
        )
