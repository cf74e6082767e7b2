"""Translation, summaries, text to text: `Seq2SeqGenerator`."""

# long: the parameters of training and of writing are one list, in the class docstring and in `__init__`

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import make_scorer

from .._engine.validation import check_number
from ._generating.base import SequenceTransformer
from .text_scores import SCORES, chrf_score, require_scores

__all__ = ["Seq2SeqGenerator"]

DEFAULT_MODEL = "Helsinki-NLP/opus-mt-fr-en"


class Seq2SeqGenerator(SequenceTransformer):
    """An encoder-decoder that turns each text into another: a translation, a summary, an answer.

    A pretrained checkpoint writes as it is, without a `fit`; `fit` trains it further on pairs of texts, and a
    configuration from nothing.

    Parameters
    ----------
    model : str, path or PretrainedConfig, default="Helsinki-NLP/opus-mt-fr-en"
        A Marian, T5, BART, mBART, NLLB, M2M100, Pegasus or like checkpoint: a hub id, a local folder; or a
        configuration to be trained from scratch, with a tokenizer learned on `X` and `y`.
    prefix : str, default=""
        Put before each source text, such as T5's ``"summarize: "``.
    target_prefix : str, default=""
        What each text begins with: the decoder goes on from it. It is part neither of the loss nor of what is returned.
    source_language, target_language : str or None, default=None
        Languages of models that know several, by the codes of the family: ``"fra_Latn"`` for NLLB, ``"fr"`` for M2M100,
        ``"fr_XX"`` for mBART; the target alone for Marian's models of several targets (``"fra"``); names for T5
        (``"French"``), which are written out before each source.
    max_length : int, default=512
        Longest source, in tokens, special ones included.
    truncation : {"head", "tail", "head_tail"}, default="head"
        Which tokens of a longer source are read: the first, the last, or `head_length` of the first and the rest from
        the end.
    head_length : int, default=128
        For "head_tail", in tokens; at most half of what is read.
    max_target_length : int, default=128
        Longest target in training, in tokens, the one that ends it included. Longer ones are cut, with a warning, and
        do not end.
    max_new_tokens : int, default=128
        Longest text that is written, in tokens.
    min_new_tokens : int, default=0
        Shortest text that is written, in tokens.
    num_beams : int, default=4
        Beams of the beam search; 1 takes the most probable token each time.
    length_penalty : float, default=1.0
        A hypothesis of n tokens with log probability s has the score ``s / n ** length_penalty``: a higher one favours
        longer texts.
    beam_stopping : bool or "never", default=False
        When a beam search ends: at `num_beams` finished hypotheses (True), when none in progress scores better at its
        present length (False), or when none can become better ("never"). Transformers calls it ``early_stopping``.
    no_repeat_ngram_size : int, default=0
        No n-gram of so many tokens comes twice; 0 allows all.
    repetition_penalty : float, default=1.0
        Above 1, tokens that were written before are less probable.
    do_sample : bool, default=False
        Draw each token instead; needs ``num_beams=1``.
    temperature : float, default=1.0
        Of the draws: below 1 they keep closer to the most probable tokens.
    top_k : int or None, default=None
        Draw among the k most probable tokens.
    top_p : float or None, default=None
        Draw among the most probable tokens that have this probability together.
    min_p : float or None, default=None
        Draw among the tokens with at least this share of the highest probability.
    max_epochs : int, default=3
        Passes over the training pairs.
    batch_size : int, default=16
        Pairs of one optimizer step, however the step is cut to fit in memory.
    learning_rate : float, default=5e-5
        Highest learning rate of AdamW. From scratch, about 1e-3 for a small model.
    lr_schedule : {"linear", "cosine", "constant", "inverse_sqrt"}, default="linear"
        How the learning rate falls after the warm-up.
    warmup_ratio : float, default=0.1
        Share of the steps over which the learning rate climbs to its highest.
    weight_decay : float, default=0.01
        Decoupled weight decay; biases and norms are left alone.
    layer_decay : float, default=1.0
        Factor on the learning rate from each layer to the one below it, in both halves.
    freeze : {"embeddings"}, int or None, default=None
        What is not trained: the embeddings, or these and that many layers from the bottom of both halves.
    dropout : float or None, default=None
        Probability of dropping a hidden unit; None keeps the checkpoint's own.
    attention_dropout : float or None, default=None
        Probability of dropping an attention weight; None keeps the checkpoint's own.
    label_smoothing : float, default=0.0
        The true token's share in the target distribution is one minus this, the rest is spread over the vocabulary.
    max_grad_norm : float or None, default=1.0
        The gradient's norm is clipped to this.
    early_stopping : bool, default=False
        Hold out pairs, score each epoch on them, stop when that stops rising, and restore the best epoch's weights.
    validation_fraction : float, default=0.1
        Share of pairs held out.
    n_iter_no_change : int, default=2
        Epochs without a better score before training stops.
    scoring : {"chrf", "chrf++", "bleu", "rouge1", "rouge2", "rougeL", "rougeLsum"}, callable or None, default=None
        The scorer of the held-out pairs, which are written for it; None is chrF.
    missing : {"error", "empty"}, default="error"
        What to do with None and NaN sources: list their rows in an error, or read them as empty.
    gradient_checkpointing : bool, default=False
        Recompute activations in the backward pass: less memory, about a third slower.
    warm_start : bool, default=False
        Whether a second `fit` goes on from the first.
    callbacks : list of skorch callbacks or None, default=None
        Notified during training, after the estimator's own.
    token_budget : int or "auto", default="auto"
        Tokens of one training pass, sources and targets; in writing, those that all texts in progress may come to have.
        Results do not depend on it, but for the draws of dropout.
    device : str or torch.device, default="auto"
        Where to compute; "auto" takes a GPU when there is one.
    precision : {"auto", "float32", "bfloat16"}, default="auto"
        Of the matrix products; "auto" is bfloat16 where the chip has it. Weights stay float32.
    random_state : int, RandomState or None, default=None
        Seeds new weights, dropout, the order of pairs, the held-out split, and the draws of samples. A sample depends
        on the seed, its source and its number, and on nothing else. Global generators are left alone.
    verbose : int, default=0
        1 shows one progress bar a fit.

    Attributes
    ----------
    model_ : transformers.PreTrainedModel
        The model.
    tokenizer_ : transformers.PreTrainedTokenizerBase
        Its tokenizer.
    max_length_ : int
        Longest source that is read whole, in tokens: `max_length`, or the model's own limit.
    history_ : DataFrame
        One row an epoch: training loss, validation score, last learning rate, seconds (`dur`). Absent where nothing was
        trained.
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
    chrf_score : What `score` returns.
    TransformerClassifier : Labels instead of texts.

    Notes
    -----
    The loss of an epoch is the sum of ``-log p(token | source, tokens before)`` over all tokens of the targets, those
    that end them included, divided by their number; padding has no share in it. Each token of an epoch has the same
    weight, whichever batch it came in.

    Texts are written in one batch of up to 32 rows (256 on a GPU): rows whose text has ended leave it, waiting sources,
    longest first, take their places, and the keys of a source are computed once. A text does not depend on who shared
    the batch. Beam search scores and ends as Transformers' `generate` does [1]_.

    References
    ----------
    .. [1] Wolf et al. 2020, "Transformers: State-of-the-Art Natural Language Processing".
    .. [2] Vaswani et al. 2017, "Attention Is All You Need", sections 3 (architecture) and 5.4 (label smoothing).
    .. [3] Wu et al. 2016, "Google's Neural Machine Translation System", section 7 (beam search with a length penalty).

    Examples
    --------
    >>> from sktransformer import Seq2SeqGenerator
    >>> from sktransformer.testing import tiny_checkpoint
    >>> X = ["le chat dort", "le chien dort", "le chat mange"] * 4
    >>> y = ["the cat sleeps", "the dog sleeps", "the cat eats"] * 4
    >>> translator = Seq2SeqGenerator(
    ...     tiny_checkpoint("t5"), max_epochs=40, learning_rate=1e-2, batch_size=4, dropout=0.0, random_state=0
    ... )
    >>> translator.fit(X, y).predict(["le chien dort"]).tolist()
    ['the dog sleeps']
    """

    def __init__(
        self,
        model: Any = DEFAULT_MODEL,
        *,
        prefix: str = "",
        target_prefix: str = "",
        source_language: str | None = None,
        target_language: str | None = None,
        max_length: int = 512,
        truncation: str = "head",
        head_length: int = 128,
        max_target_length: int = 128,
        max_new_tokens: int = 128,
        min_new_tokens: int = 0,
        num_beams: int = 4,
        length_penalty: float = 1.0,
        beam_stopping: bool | str = False,
        no_repeat_ngram_size: int = 0,
        repetition_penalty: float = 1.0,
        do_sample: bool = False,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
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
        label_smoothing: float = 0.0,
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
        self.prefix = prefix
        self.target_prefix = target_prefix
        self.source_language = source_language
        self.target_language = target_language
        self.max_length = max_length
        self.truncation = truncation
        self.head_length = head_length
        self.max_target_length = max_target_length
        self.max_new_tokens = max_new_tokens
        self.min_new_tokens = min_new_tokens
        self.num_beams = num_beams
        self.length_penalty = length_penalty
        self.beam_stopping = beam_stopping
        self.no_repeat_ngram_size = no_repeat_ngram_size
        self.repetition_penalty = repetition_penalty
        self.do_sample = do_sample
        self.temperature = temperature
        self.top_k = top_k
        self.top_p = top_p
        self.min_p = min_p
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
        self.label_smoothing = label_smoothing
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Seq2SeqGenerator:
        """Train on pairs of a source and the text to be written.

        Parameters
        ----------
        X : iterable of n texts
            Sources; another table than of one column of texts is read row by row as ``name: value`` text.
        y : array-like of n texts
            Targets.
        sample_weight : array-like of shape (n,), optional
            Factors on the loss of each target's tokens, relative to their mean.

        Returns
        -------
        Seq2SeqGenerator
            The estimator itself.

        Raises
        ------
        TypeError
            For a row that is no text, or a parameter of the wrong kind.
        ValueError
            For missing texts, unequal lengths, a parameter out of range, options that contradict each other, a language
            that the model does not know, an unusable checkpoint.
        WrongTaskError
            For a model that is no encoder-decoder.
        NonFiniteLossError
            When the loss becomes NaN or infinite.
        """
        return self._fit(X, y, sample_weight)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the best text for each source, or a sample.

        Parameters
        ----------
        X : iterable of n texts
            Sources, as in `fit`; it may be empty.

        Returns
        -------
        ndarray of shape (n,), object
            Texts.

        Raises
        ------
        NotFittedError
            Before `fit`, where `model` is a configuration.
        """
        written = self._written(X, 1)
        texts = np.empty(len(written), dtype=object)
        texts[:] = [self.text_encoder_.text(found[0].ids) for found in written]
        return texts

    def predict_n_best(self, X: Any, n_best: int = 4) -> list[list[dict[str, Any]]]:
        """Return several texts for each source, with their scores.

        Parameters
        ----------
        X : iterable of n texts
            Sources, as in `fit`; it may be empty.
        n_best : int, default=4
            Texts a source: of a beam search those with the highest scores, at most `num_beams`; with ``do_sample=True``
            so many samples.

        Returns
        -------
        list of n lists of dicts
            ``text``; ``score``, its log probability over ``n ** length_penalty`` for n tokens; ``n_tokens``, the one
            that ends it not counted; ``finish``, what ended it: "stop" (the end token) or "length". The best comes
            first; samples come as they were drawn.

        Raises
        ------
        NotFittedError
            Before `fit`, where `model` is a configuration.
        ValueError
            For more texts than beams.
        """
        check_number("n_best", n_best, low=1, integer=True)
        return [[self._described(text) for text in found] for found in self._written(X, int(n_best))]

    def score(self, X: Any, y: Any) -> float:
        """Return the chrF of the predicted texts, see `chrf_score`; other scores are functions for `make_scorer`.

        Parameters
        ----------
        X : iterable of n texts
            Sources, as in `fit`.
        y : array-like of n texts, or of n lists of texts
            References; several a source count where they agree best.

        Returns
        -------
        float
            Between 0 and 1.
        """
        return chrf_score(y, self.predict(X))

    def _validate_training(self) -> None:
        super()._validate_training()
        if self.early_stopping and not callable(self.scoring):
            require_scores(self.scoring or "chrf")  # before training, not after its first epoch

    def _default_scorer(self) -> Any:
        return make_scorer(chrf_score)

    def _scorer_names(self) -> Sequence[str]:
        return tuple(SCORES)

    def _scorer(self, candidate: Any) -> Any:
        if not isinstance(self.scoring, str):
            return super()._scorer(candidate)
        metric, options = SCORES[self.scoring]
        return make_scorer(metric, **options)
