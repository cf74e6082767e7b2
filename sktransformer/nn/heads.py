"""What stands on a body: a class for a text, a class for each token, or a span.

Sequence, token and span heads: Devlin et al. 2019, section 4. Masked language modelling: the same, section 3.1.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from transformers.modeling_outputs import (
    QuestionAnsweringModelOutput,
    SequenceClassifierOutput,
    TokenClassifierOutput,
)

from .config import DecoderConfig, TransformerConfig
from .dropout import Dropout
from .experts import balance_losses
from .feed_forward import ACTIVATIONS
from .models import DecoderModel, EncoderModel, TransformerPreTrainedModel, returns_tuple
from .norms import make_norm

IGNORED = -100  # a label that no loss reads, as everywhere in Transformers


class ClassificationHead(nn.Module):
    """Classes of a text from the vector of one token: a layer with tanh, then one score a class.

    References
    ----------
    Devlin et al. 2019, section 4.1, with the pooler of the published code.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.dropout = _head_dropout(config)
        self.scores = nn.Linear(config.hidden_size, config.num_labels or 2)

    def forward(self, vector: torch.Tensor) -> torch.Tensor:
        """Map (B, H) to (B, C)."""
        hidden = torch.tanh(self.dense(self.dropout(vector)))
        scores: torch.Tensor = self.scores(self.dropout(hidden))
        return scores


class MaskedLMHead(nn.Module):
    """The hidden token from its vector: a layer with the body's nonlinearity and a norm, then one score a token.

    References
    ----------
    Devlin et al. 2019, section 3.1, with the transform of the published code.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.activation = ACTIVATIONS[config.feed_forward]
        self.norm = make_norm(config)
        self.decoder = nn.Linear(config.hidden_size, config.vocab_size, bias=config.logits_bias)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Map (B, T, H) to (B, T, V)."""
        scores: torch.Tensor = self.decoder(self.norm(self.activation(self.dense(hidden))))
        return scores


def _head_dropout(config: TransformerConfig) -> Dropout:
    return Dropout(config.dropout if config.classifier_dropout is None else config.classifier_dropout)


def with_balance(
    config: TransformerConfig, loss: torch.Tensor | None, balance: list[torch.Tensor]
) -> torch.Tensor | None:
    """Add the balance loss of a mixture of experts, where one ran."""
    if loss is None or not balance:
        return loss
    return loss + config.router_aux_loss_coef * torch.stack(balance).mean()


def _class_loss(config: TransformerConfig, logits: torch.Tensor, labels: torch.Tensor | None) -> Any:
    """Cross-entropy of classes, squared error of numbers, binary cross-entropy of several classes at once."""
    if labels is None:
        return None
    kind = config.problem_type
    if kind == "regression" or (kind is None and logits.shape[-1] == 1):
        return F.mse_loss(logits.reshape(labels.shape), labels.to(logits.dtype))
    if kind == "multi_label_classification" or (kind is None and labels.is_floating_point()):
        return F.binary_cross_entropy_with_logits(logits, labels.to(logits.dtype))
    return F.cross_entropy(logits, labels)


def token_loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Cross-entropy, averaged over the tokens whose label is not -100: (B, T, V) and (B, T) become a number."""
    return F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), ignore_index=IGNORED)


class EncoderForSequenceClassification(TransformerPreTrainedModel):
    """An encoder and classes of a text, read off its first token.

    Parameters
    ----------
    config : TransformerConfig
        Its shape, and ``num_labels``.

    References
    ----------
    Devlin et al. 2019, section 4.1.

    Examples
    --------
    >>> import torch
    >>> from sktransformer.nn import EncoderForSequenceClassification, TransformerConfig
    >>> model = EncoderForSequenceClassification(TransformerConfig(vocab_size=20, hidden_size=8, num_labels=3))
    >>> model(torch.tensor([[3, 4, 5]])).logits.shape
    torch.Size([1, 3])
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config)
        self.model = EncoderModel(config)
        self.classifier = ClassificationHead(config)
        self.post_init()

    @returns_tuple
    def forward(
        self, input_ids: torch.Tensor | None = None, labels: torch.Tensor | None = None, **kwargs: Any
    ) -> SequenceClassifierOutput:
        """Score classes.

        Parameters
        ----------
        input_ids : int tensor of shape (B, T), optional
            Tokens.
        labels : tensor of shape (B,), optional
            Classes, or numbers where ``num_labels`` is 1: a loss is returned.
        **kwargs : object
            As for `EncoderModel`.

        Returns
        -------
        SequenceClassifierOutput
            With ``logits`` (B, C).
        """
        with balance_losses(labels is not None) as balance:
            made = self.model(input_ids, **kwargs)
        logits = self.classifier(made.last_hidden_state[:, 0])
        loss = with_balance(self.config, _class_loss(self.config, logits, labels), balance)
        return SequenceClassifierOutput(
            loss=loss, logits=logits, hidden_states=made.hidden_states, attentions=made.attentions
        )


class DecoderForSequenceClassification(TransformerPreTrainedModel):
    """A decoder and classes of a text, read off its last token: the only one that knows all others.

    Parameters
    ----------
    config : DecoderConfig
        Its shape, and ``num_labels``.

    References
    ----------
    Radford et al. 2018, section 3.2.

    Examples
    --------
    >>> import torch
    >>> from sktransformer.nn import DecoderForSequenceClassification, TransformerConfig
    >>> config = TransformerConfig(architecture="decoder", vocab_size=20, hidden_size=8)
    >>> DecoderForSequenceClassification(config)(torch.tensor([[3, 4, 5]])).logits.shape
    torch.Size([1, 2])
    """

    config_class = DecoderConfig

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__(config)
        self.model = DecoderModel(config)
        self.classifier = ClassificationHead(config)
        self.post_init()

    @returns_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        **kwargs: Any,
    ) -> SequenceClassifierOutput:
        """Score classes.

        Parameters
        ----------
        input_ids : int tensor of shape (B, T), optional
            Tokens.
        attention_mask : tensor of shape (B, T), optional
            1 for a token, 0 for padding, on either side.
        labels : tensor of shape (B,), optional
            Classes, or numbers where ``num_labels`` is 1: a loss is returned.
        **kwargs : object
            As for `DecoderModel`.

        Returns
        -------
        SequenceClassifierOutput
            With ``logits`` (B, C).
        """
        with balance_losses(labels is not None) as balance:
            made = self.model(input_ids, attention_mask, **{"use_cache": False, **kwargs})
        hidden = made.last_hidden_state
        rows = torch.arange(hidden.shape[0], device=hidden.device)
        if attention_mask is None:
            last = torch.full_like(rows, hidden.shape[1] - 1)
        else:
            places = torch.arange(hidden.shape[1], device=hidden.device)
            last = (attention_mask.long() * places).argmax(
                dim=-1
            )  # the last 1, whatever the side of the padding
        logits = self.classifier(hidden[rows, last])
        loss = with_balance(self.config, _class_loss(self.config, logits, labels), balance)
        return SequenceClassifierOutput(
            loss=loss, logits=logits, hidden_states=made.hidden_states, attentions=made.attentions
        )


class EncoderForTokenClassification(TransformerPreTrainedModel):
    """An encoder and classes of each token.

    Parameters
    ----------
    config : TransformerConfig
        Its shape, and ``num_labels``.

    References
    ----------
    Devlin et al. 2019, section 5.3.

    Examples
    --------
    >>> import torch
    >>> from sktransformer.nn import EncoderForTokenClassification, TransformerConfig
    >>> model = EncoderForTokenClassification(TransformerConfig(vocab_size=20, hidden_size=8, num_labels=3))
    >>> model(torch.tensor([[3, 4, 5]])).logits.shape
    torch.Size([1, 3, 3])
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config)
        self.model = EncoderModel(config)
        self.dropout = _head_dropout(config)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels or 2)
        self.post_init()

    @returns_tuple
    def forward(
        self, input_ids: torch.Tensor | None = None, labels: torch.Tensor | None = None, **kwargs: Any
    ) -> TokenClassifierOutput:
        """Score classes of tokens.

        Parameters
        ----------
        input_ids : int tensor of shape (B, T), optional
            Tokens.
        labels : int tensor of shape (B, T), optional
            Classes; -100 is left out of the loss that is returned then.
        **kwargs : object
            As for `EncoderModel`.

        Returns
        -------
        TokenClassifierOutput
            With ``logits`` (B, T, C).
        """
        with balance_losses(labels is not None) as balance:
            made = self.model(input_ids, **kwargs)
        logits = self.classifier(self.dropout(made.last_hidden_state))
        loss = None if labels is None else token_loss(logits, labels)
        return TokenClassifierOutput(
            loss=with_balance(self.config, loss, balance),
            logits=logits,
            hidden_states=made.hidden_states,
            attentions=made.attentions,
        )


class EncoderForQuestionAnswering(TransformerPreTrainedModel):
    """An encoder and two scores of each token: that an answer begins there, and that it ends there.

    Parameters
    ----------
    config : TransformerConfig
        Its shape.

    References
    ----------
    Devlin et al. 2019, section 4.2.

    Examples
    --------
    >>> import torch
    >>> from sktransformer.nn import EncoderForQuestionAnswering, TransformerConfig
    >>> model = EncoderForQuestionAnswering(TransformerConfig(vocab_size=20, hidden_size=8))
    >>> model(torch.tensor([[3, 4, 5]])).start_logits.shape
    torch.Size([1, 3])
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config)
        self.model = EncoderModel(config)
        self.spans = nn.Linear(config.hidden_size, 2)
        self.post_init()

    @returns_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        start_positions: torch.Tensor | None = None,
        end_positions: torch.Tensor | None = None,
        **kwargs: Any,
    ) -> QuestionAnsweringModelOutput:
        """Score beginnings and ends.

        Parameters
        ----------
        input_ids : int tensor of shape (B, T), optional
            Tokens.
        start_positions, end_positions : int tensor of shape (B,), optional
            Where the answer begins and ends: a loss is returned.
        **kwargs : object
            As for `EncoderModel`.

        Returns
        -------
        QuestionAnsweringModelOutput
            With ``start_logits`` and ``end_logits`` (B, T).
        """
        with balance_losses(start_positions is not None) as balance:
            made = self.model(input_ids, **kwargs)
        starts, ends = self.spans(made.last_hidden_state).unbind(-1)
        loss = None
        if start_positions is not None and end_positions is not None:
            loss = (F.cross_entropy(starts, start_positions) + F.cross_entropy(ends, end_positions)) / 2
        return QuestionAnsweringModelOutput(
            loss=with_balance(self.config, loss, balance),
            start_logits=starts,
            end_logits=ends,
            hidden_states=made.hidden_states,
            attentions=made.attentions,
        )
