"""Models that give a score to every token of the vocabulary: of a hidden token, or of the next one.

The output layer is the table of embeddings turned round, where ``tie_word_embeddings`` says so: Vaswani et al. 2017,
section 3.4; Press and Wolf 2017, "Using the Output Embedding to Improve Language Models", section 2.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import nn
from transformers import GenerationMixin
from transformers.modeling_outputs import CausalLMOutputWithPast, MaskedLMOutput, Seq2SeqLMOutput

from .config import DecoderConfig, EncoderDecoderConfig, TransformerConfig
from .encoder_decoder import EncoderDecoderModel, EncoderHalf
from .experts import balance_losses
from .heads import IGNORED, MaskedLMHead, token_loss, with_balance
from .models import (
    CACHE,
    DecoderModel,
    EncoderModel,
    TransformerPreTrainedModel,
    returns_tuple,
)

TABLE = "model.embeddings.tokens.weight"


class EncoderForMaskedLM(TransformerPreTrainedModel):
    """An encoder and scores of the tokens that were hidden from it.

    Parameters
    ----------
    config : TransformerConfig
        Its shape.

    References
    ----------
    Devlin et al. 2019, section 3.1.

    Examples
    --------
    >>> import torch
    >>> from sktransformer.nn import EncoderForMaskedLM, TransformerConfig
    >>> model = EncoderForMaskedLM(TransformerConfig(vocab_size=20, hidden_size=8))
    >>> model(torch.tensor([[3, 4, 5]])).logits.shape
    torch.Size([1, 3, 20])
    """

    _tied_weights_keys = {"lm_head.decoder.weight": TABLE}  # noqa: RUF012 - an instance variable in Transformers

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config)
        self.model = EncoderModel(config)
        self.lm_head = MaskedLMHead(config)
        self.post_init()

    def get_output_embeddings(self) -> nn.Module:
        """Return the output layer.

        Returns
        -------
        nn.Module
            From (B, T, H) to (B, T, V).
        """
        layer: nn.Module = self.lm_head.decoder
        return layer

    def set_output_embeddings(self, new_embeddings: nn.Module) -> None:
        """Replace the output layer.

        Parameters
        ----------
        new_embeddings : nn.Module
            The new one.
        """
        self.lm_head.decoder = cast(nn.Linear, new_embeddings)

    @returns_tuple
    def forward(
        self, input_ids: torch.Tensor | None = None, labels: torch.Tensor | None = None, **kwargs: Any
    ) -> MaskedLMOutput:
        """Score tokens.

        Parameters
        ----------
        input_ids : int tensor of shape (B, T), optional
            Tokens, some of them masked.
        labels : int tensor of shape (B, T), optional
            What stood there; -100 is left out of the loss that is returned then.
        **kwargs : object
            As for `EncoderModel`.

        Returns
        -------
        MaskedLMOutput
            With ``logits`` (B, T, V).
        """
        with balance_losses(labels is not None) as balance:
            made = self.model(input_ids, **kwargs)
        logits = self.lm_head(made.last_hidden_state)
        loss = None if labels is None else token_loss(logits, labels)
        return MaskedLMOutput(
            loss=with_balance(self.config, loss, balance),
            logits=logits,
            hidden_states=made.hidden_states,
            attentions=made.attentions,
        )


class DecoderForCausalLM(TransformerPreTrainedModel, GenerationMixin):
    """A decoder and scores of the next token; it generates.

    Parameters
    ----------
    config : DecoderConfig
        Its shape.

    References
    ----------
    Radford et al. 2018, "Improving Language Understanding by Generative Pre-Training", section 3.1.

    Examples
    --------
    >>> import torch
    >>> from sktransformer.nn import DecoderForCausalLM, TransformerConfig
    >>> model = DecoderForCausalLM(TransformerConfig(architecture="decoder", vocab_size=20, hidden_size=8)).eval()
    >>> model.generate(torch.tensor([[3, 4, 5]]), max_new_tokens=2, do_sample=False, eos_token_id=None).shape
    torch.Size([1, 5])
    """

    config_class = DecoderConfig
    _tied_weights_keys = {"lm_head.weight": TABLE}  # noqa: RUF012 - an instance variable in Transformers

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__(config)
        self.model = DecoderModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=config.logits_bias)
        self.post_init()

    @returns_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        cache: Any = None,
        past_key_values: Any = None,
        labels: torch.Tensor | None = None,
        use_cache: bool | None = None,
        logits_to_keep: int | torch.Tensor = 0,
        **kwargs: Any,
    ) -> CausalLMOutputWithPast:
        """Score the next token at each place.

        Parameters
        ----------
        input_ids : int tensor of shape (B, T), optional
            Tokens; with a cache those that it does not hold.
        attention_mask : tensor of shape (B, tokens in the cache + T), optional
            1 for a token, 0 for padding, on either side.
        position_ids : int tensor of shape (B or 1, T), optional
            Positions.
        inputs_embeds : tensor of shape (B, T, H), optional
            Vectors in the place of tokens.
        cache, past_key_values : Cache, optional
            Keys and values of the tokens before; two names for one thing.
        labels : int tensor of shape (B, T), optional
            The tokens themselves; they are shifted here, and -100 is left out of the loss that is returned then.
        use_cache : bool, optional
            Return a cache.
        logits_to_keep : int or tensor, default=0
            Score the last so many places only, or those of the tensor; all when 0.
        **kwargs : object
            As for `DecoderModel`.

        Returns
        -------
        CausalLMOutputWithPast
            With ``logits`` (B, T, V) and the cache.
        """
        with balance_losses(labels is not None) as balance:
            made = self.model(
                input_ids,
                attention_mask,
                position_ids=position_ids,
                inputs_embeds=inputs_embeds,
                cache=past_key_values if cache is None else cache,
                use_cache=use_cache,
                **kwargs,
            )
        kept = slice(-logits_to_keep, None) if isinstance(logits_to_keep, int) else logits_to_keep
        logits = self.lm_head(made.last_hidden_state[:, kept] * self.config.logits_scale)
        loss = None if labels is None else token_loss(logits[:, :-1], labels[:, 1:])
        return CausalLMOutputWithPast(
            loss=with_balance(self.config, loss, balance),
            logits=logits,
            hidden_states=made.hidden_states,
            attentions=made.attentions,
            **{CACHE: getattr(made, CACHE)},
        )


class EncoderDecoderForSeq2SeqLM(TransformerPreTrainedModel, GenerationMixin):
    """An encoder, a decoder, and scores of the target's next token; it generates.

    Parameters
    ----------
    config : EncoderDecoderConfig
        Its shape.

    References
    ----------
    Vaswani et al. 2017, sections 3 and 3.4.

    Examples
    --------
    >>> import torch
    >>> from sktransformer.nn import EncoderDecoderForSeq2SeqLM, TransformerConfig
    >>> config = TransformerConfig(architecture="encoder-decoder", vocab_size=20, hidden_size=8)
    >>> model = EncoderDecoderForSeq2SeqLM(config)
    >>> model(torch.tensor([[3, 4, 2]]), labels=torch.tensor([[5, 2]])).logits.shape
    torch.Size([1, 2, 20])
    """

    config_class = EncoderDecoderConfig
    _tied_weights_keys = {"lm_head.weight": TABLE}  # noqa: RUF012 - an instance variable in Transformers

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__(config)
        self.model = EncoderDecoderModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=config.logits_bias)
        self.post_init()

    def get_encoder(self, modality: str | None = None) -> EncoderHalf:
        """Return what reads the source.

        Parameters
        ----------
        modality : str, optional
            Text alone is known.

        Returns
        -------
        EncoderHalf
            To be called as `EncoderDecoderModel.encode`.
        """
        half: EncoderHalf = self.model.get_encoder()
        return half

    def prepare_decoder_input_ids_from_labels(self, labels: torch.Tensor) -> torch.Tensor:
        """Shift the target by one: the decoder reads the start token and all but the last.

        Parameters
        ----------
        labels : int tensor of shape (B, T_d)
            The target; -100 stands for padding.

        Returns
        -------
        int tensor of shape (B, T_d)
            What the decoder reads.

        Raises
        ------
        ValueError
            When the configuration names no padding or no start token.
        """
        start, pad = self.config.decoder_start_token_id, self.config.pad_token_id
        if start is None or pad is None:
            raise ValueError(
                "pad_token_id and decoder_start_token_id must be set for a target to be shifted."
            )
        shifted = torch.cat([torch.full_like(labels[:, :1], start), labels[:, :-1]], dim=1)
        return shifted.masked_fill(shifted == IGNORED, pad)

    @returns_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        decoder_input_ids: torch.Tensor | None = None,
        decoder_attention_mask: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        decoder_inputs_embeds: torch.Tensor | None = None,
        logits_to_keep: int | torch.Tensor = 0,
        **kwargs: Any,
    ) -> Seq2SeqLMOutput:
        """Score the target's next token at each place.

        Parameters
        ----------
        input_ids : int tensor of shape (B, T), optional
            Tokens of the source.
        attention_mask : tensor of shape (B, T), optional
            1 for a token of the source, 0 for padding.
        decoder_input_ids : int tensor of shape (B, T_d), optional
            Tokens of the target, shifted; made from `labels` when None.
        decoder_attention_mask : tensor of shape (B, T_d), optional
            1 for a token of the target, 0 for padding.
        labels : int tensor of shape (B, T_d), optional
            The target; -100 is left out of the loss that is returned then.
        decoder_inputs_embeds : tensor of shape (B, T_d, H), optional
            Vectors in the place of the target's tokens.
        logits_to_keep : int or tensor, default=0
            Score the last so many places only, or those of the tensor; all when 0.
        **kwargs : object
            As for `EncoderDecoderModel`.

        Returns
        -------
        Seq2SeqLMOutput
            With ``logits`` (B, T_d, V) and the cache.
        """
        if labels is not None and decoder_input_ids is None and decoder_inputs_embeds is None:
            decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
        with balance_losses(labels is not None) as balance:
            made = self.model(
                input_ids,
                attention_mask,
                decoder_input_ids,
                decoder_attention_mask,
                decoder_inputs_embeds=decoder_inputs_embeds,
                **kwargs,
            )
        kept = slice(-logits_to_keep, None) if isinstance(logits_to_keep, int) else logits_to_keep
        logits = self.lm_head(made.last_hidden_state[:, kept] * self.config.logits_scale)
        loss = with_balance(self.config, None if labels is None else token_loss(logits, labels), balance)
        fields = {name: value for name, value in made.items() if name != "last_hidden_state"}
        return Seq2SeqLMOutput(loss=loss, logits=logits, **fields)
