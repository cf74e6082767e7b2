"""An encoder that reads one text and a decoder that writes another: the model of the paper, without its output layer.

Vaswani et al. 2017, section 3 and figure 1.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers.cache_utils import Cache, DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqModelOutput

from .config import EncoderDecoderConfig
from .embeddings import Embeddings
from .models import CACHE, EncoderModel, TransformerPreTrainedModel, one_of, returns_tuple, wanted
from .stack import Stack, StackOutput


class EncoderDecoderModel(TransformerPreTrainedModel):
    """An encoder that reads one text and a decoder that writes another: the model of 2017.

    Both have the same table of embeddings, positions included (section 3.4).

    Parameters
    ----------
    config : EncoderDecoderConfig
        Its shape.

    References
    ----------
    Vaswani et al. 2017, section 3 and figure 1.

    Examples
    --------
    >>> import torch
    >>> from sktransformer.nn import EncoderDecoderModel, TransformerConfig
    >>> model = EncoderDecoderModel(
    ...     TransformerConfig(architecture="encoder-decoder", vocab_size=20, hidden_size=8)
    ... )
    >>> source, target = torch.tensor([[3, 4, 5]]), torch.tensor([[0, 6]])
    >>> model(source, decoder_input_ids=target).last_hidden_state.shape
    torch.Size([1, 2, 8])
    """

    config_class = EncoderDecoderConfig

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__(config)
        assert config.num_decoder_layers is not None  # a config fills it in
        self.embeddings = Embeddings(config)
        self.encoder = Stack(config, config.num_layers, causal=False)
        self.decoder = Stack(config, config.num_decoder_layers, causal=True, cross=config.cross_attention)
        self.post_init()

    get_input_embeddings = EncoderModel.get_input_embeddings
    set_input_embeddings = EncoderModel.set_input_embeddings

    def get_encoder(self, modality: str | None = None) -> EncoderHalf:
        """Return what reads the source, as `generate` calls it.

        Parameters
        ----------
        modality : str, optional
            Text alone is known.

        Returns
        -------
        EncoderHalf
            To be called as `encode`.
        """
        return EncoderHalf(self)

    def encode(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
    ) -> BaseModelOutput:
        """Read the source.

        Parameters
        ----------
        input_ids : int tensor of shape (B, T), optional
            Tokens.
        attention_mask : tensor of shape (B, T), optional
            1 for a token, 0 for padding.
        inputs_embeds : tensor of shape (B, T, H), optional
            Vectors in the place of tokens.
        output_hidden_states, output_attentions : bool, optional
            Return what each layer made, and each layer's attention weights.

        Returns
        -------
        BaseModelOutput
            With ``last_hidden_state`` (B, T, H).
        """
        tokens = one_of(input_ids, inputs_embeds)
        position_ids = self._count_positions(tokens, attention_mask, 0, count=False)
        made: StackOutput = self.encoder(
            self.embeddings(input_ids, position_ids, None, inputs_embeds),
            position_ids,
            attention_mask,
            keep_hidden=wanted(self.config, output_hidden_states, "output_hidden_states"),
            need_weights=wanted(self.config, output_attentions, "output_attentions"),
        )
        return BaseModelOutput(
            last_hidden_state=made.hidden, hidden_states=made.all_hidden, attentions=made.weights
        )

    @returns_tuple
    def forward(  # long: what Transformers' generate passes, one by one
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        decoder_input_ids: torch.Tensor | None = None,
        decoder_attention_mask: torch.Tensor | None = None,
        encoder_outputs: Any = None,
        cache: Cache | None = None,
        past_key_values: Cache | None = None,
        inputs_embeds: torch.Tensor | None = None,
        decoder_inputs_embeds: torch.Tensor | None = None,
        decoder_position_ids: torch.Tensor | None = None,
        use_cache: bool | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
        **kwargs: Any,
    ) -> Seq2SeqModelOutput:
        """Read the source, and the target so far.

        Parameters
        ----------
        input_ids : int tensor of shape (B, T), optional
            Tokens of the source.
        attention_mask : tensor of shape (B, T), optional
            1 for a token of the source, 0 for padding.
        decoder_input_ids : int tensor of shape (B, T_d), optional
            Tokens of the target, shifted: the first is ``decoder_start_token_id``.
        decoder_attention_mask : tensor of shape (B, T_d), optional
            1 for a token of the target, 0 for padding.
        encoder_outputs : BaseModelOutput or tuple, optional
            What `encode` returned, if it has run.
        cache, past_key_values : EncoderDecoderCache, optional
            Keys and values of the target's tokens before, and of the source; two names for one thing.
        inputs_embeds, decoder_inputs_embeds : tensor, optional
            Vectors in the place of tokens.
        decoder_position_ids : int tensor of shape (B or 1, T_d), optional
            Positions in the target; counted from 0 when None.
        use_cache : bool, optional
            Return a cache; the configuration's own, and not in training, when None.
        output_hidden_states, output_attentions : bool, optional
            Return what each layer made, and each layer's attention weights.
        **kwargs : object
            Not read.

        Returns
        -------
        Seq2SeqModelOutput
            With ``last_hidden_state`` (B, T_d, H), that of the encoder, and the cache.
        """
        told = {"output_hidden_states": output_hidden_states, "output_attentions": output_attentions}
        if encoder_outputs is None:
            encoder_outputs = self.encode(input_ids, attention_mask, inputs_embeds, **told)
        elif not isinstance(encoder_outputs, BaseModelOutput):
            encoder_outputs = BaseModelOutput(*encoder_outputs)
        tokens = one_of(decoder_input_ids, decoder_inputs_embeds)
        cache = past_key_values if cache is None else cache
        if use_cache is None:
            use_cache = self.config.use_cache and not self.training
        if use_cache and cache is None:
            cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
        n_before = 0 if cache is None else int(cache.get_seq_length())
        if decoder_position_ids is None:
            decoder_position_ids = self._count_positions(tokens, decoder_attention_mask, n_before, count=True)
        made: StackOutput = self.decoder(
            self.embeddings(decoder_input_ids, decoder_position_ids, None, decoder_inputs_embeds),
            decoder_position_ids,
            decoder_attention_mask,
            encoder_outputs.last_hidden_state,
            attention_mask,
            cache=cache,
            n_before=n_before,
            keep_hidden=wanted(self.config, output_hidden_states, "output_hidden_states"),
            need_weights=wanted(self.config, output_attentions, "output_attentions"),
        )
        kept: dict[str, Any] = {CACHE: cache if use_cache else None}
        return Seq2SeqModelOutput(
            last_hidden_state=made.hidden,
            decoder_hidden_states=made.all_hidden,
            decoder_attentions=made.weights,
            cross_attentions=made.cross_weights,
            encoder_last_hidden_state=encoder_outputs.last_hidden_state,
            encoder_hidden_states=encoder_outputs.hidden_states,
            encoder_attentions=encoder_outputs.attentions,
            **kept,
        )


class EncoderHalf:
    """The encoder of an `EncoderDecoderModel`, with its embeddings: `generate` runs it once, before it writes."""

    main_input_name = "input_ids"

    def __init__(self, model: EncoderDecoderModel) -> None:
        self.model = model

    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
        return_dict: bool | None = None,
    ) -> BaseModelOutput:
        """Read the source, as `EncoderDecoderModel.encode` does."""
        return self.model.encode(
            input_ids, attention_mask, inputs_embeds, output_hidden_states, output_attentions
        )

    __call__ = forward
