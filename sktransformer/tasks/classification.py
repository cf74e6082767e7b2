"""Documents to labels."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring, f1_score, make_scorer
from sklearn.utils.validation import check_consistent_length

from .._engine.checkpoints.loading import Checkpoint, Head, load_checkpoint
from .._engine.checkpoints.quiet import quiet_transformers
from .._engine.checkpoints.sources import resolve
from .._engine.compat import check_columns, n_rows, sample_weights
from .._engine.devices import draw_seed, resolve_device, seeded
from .._engine.inference.forward import read_logits
from .._engine.text.documents import Documents
from .._engine.text.encoding import Encoded, TextEncoder
from .._engine.training.data import TrainingData, normalized_weights
from .._engine.training.fit import TrainingResult
from .._engine.training.losses import BinaryCrossEntropy, CrossEntropy
from .._engine.validation import check_number
from ._labels import Labels, as_labels, plain, row_weights
from ._training import TrainedTransformer, held_out

DEFAULT_MODEL = "almanach/camembert-base"


class TransformerClassifier(ClassifierMixin, TrainedTransformer):
    """Documents to labels, by a Transformer encoder."""

    _head: ClassVar[Head] = "classification"

    def __init__(
        self,
        model: Any = DEFAULT_MODEL,
        *,
        max_length: int = 512,
        truncation: str = "head_tail",
        head_length: int = 128,
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
            Labels of any type; a 0/1 indicator matrix for several labels a document; or a distribution over classes a row.
        sample_weight : array-like of shape (n,), optional
            Factors on each document's loss, relative to their mean.

        Returns
        -------
        self

        Raises
        ------
        TypeError
            For a row that is no text, or a parameter of the wrong kind.
        ValueError
            For missing texts or labels, unequal lengths, a single class, a parameter out of range, a checkpoint that is
            absent, corrupt or of another task.
        NonFiniteLossError
            When the loss becomes NaN or infinite.
        """
        documents, labels, weights = self._validate(X, y, sample_weight)
        seed = draw_seed(self.random_state)
        with seeded(seed, resolve_device(self.device)):
            checkpoint = self._load(documents, labels)
            encoder = TextEncoder(checkpoint.tokenizer)
            train_part, valid_part = self._split(labels, seed)
            encoded = self._encode(encoder, documents.take(train_part), self._limit(checkpoint))
            score = self._scoring(checkpoint, encoder, documents, labels, valid_part)
            result = self._train(checkpoint, encoded, labels.take(train_part), _take(weights, train_part), seed, score)
        self._record(X, documents, checkpoint, encoder, labels, result)
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the most probable label of each document.

        Parameters
        ----------
        X : iterable of n documents
            As in `fit`; it may be empty.

        Returns
        -------
        ndarray of shape (n,), or (n, C) of 0 and 1 when fitted on several labels a document
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
        float32 ndarray of shape (n, C), columns in the order of `classes_`
        """
        logits = self._logits(X)
        probabilities = expit(logits) if self.label_kind_ == "multilabel" else softmax(logits, axis=1)
        return probabilities.astype(np.float32, copy=False)  # type: ignore[no-any-return]

    def decision_function(self, X: Any) -> npt.NDArray[np.float32]:
        """Return the logits of the classes; for two classes, that of the second minus that of the first.

        Parameters
        ----------
        X : iterable of n documents
            As in `fit`; it may be empty.

        Returns
        -------
        float32 ndarray of shape (n, C), or (n,) for two classes
        """
        logits = self._logits(X)
        if self.label_kind_ != "multilabel" and len(self.classes_) == 2:
            return logits[:, 1] - logits[:, 0]
        return logits

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Write the fitted model and tokenizer as a folder that Transformers' Auto classes load.

        Parameters
        ----------
        folder : path
            Made if it does not exist. Labels are written into the config as texts.
        """
        checkpoint = self._fitted(folder)
        with quiet_transformers():
            checkpoint.model.save_pretrained(folder)
            checkpoint.tokenizer.save_pretrained(folder)

    @classmethod
    def from_pretrained(cls, model: Any, **parameters: Any) -> TransformerClassifier:
        """Return a fitted classifier from a checkpoint that has a trained classification head; nothing is trained.

        Parameters
        ----------
        model : path or str
            A folder (for instance one that `save_pretrained` wrote), a hub id or a bundled name.
        **parameters
            Parameters of the classifier.

        Returns
        -------
        TransformerClassifier

        Raises
        ------
        WrongTaskError
            When the checkpoint has no trained classification head.
        """
        return cls(model, **parameters)._adopt()

    # -- the five steps of fit --------------------------------------------------------------------------------------

    def _validate(self, X: Any, y: Any, sample_weight: Any) -> tuple[Documents, Labels, Any]:
        self._validate_training()
        check_number("label_smoothing", self.label_smoothing, low=0, high=1, open_high=True)
        documents = self._documents(X)
        if y is not None:
            check_consistent_length(documents.first, range(n_rows(y)))
        labels = as_labels(y)
        if self.class_weight is not None:
            row_weights(labels, self.class_weight, None)
        return documents, labels, sample_weights(sample_weight, len(documents))

    def _load(self, documents: Documents, labels: Labels) -> Checkpoint:
        warm = self._warm_checkpoint()
        if warm is not None:
            if not np.array_equal(self.classes_, labels.classes) or self.label_kind_ != labels.kind:
                raise ValueError(
                    f"warm_start=True needs the classes of the first fit, {self.classes_.tolist()}, "
                    f"got {labels.classes.tolist()}; pass warm_start=False."
                )
            return warm
        names = [str(label) for label in labels.classes]
        return self._load_checkpoint(
            documents,
            dropout=self.dropout,
            attention_dropout=self.attention_dropout,
            config_changes={
                "num_labels": len(names),
                "id2label": dict(enumerate(names)),
                "label2id": {name: i for i, name in enumerate(names)},
                "problem_type": "multi_label_classification"
                if labels.kind == "multilabel"
                else "single_label_classification",
            },
        )

    def _split(self, labels: Labels, seed: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        if not self.early_stopping:
            return np.arange(len(labels.index)), np.zeros(0, dtype=np.int64)
        return held_out(labels.index, labels.classes, self.validation_fraction, seed)

    def _scoring(
        self,
        checkpoint: Checkpoint,
        encoder: TextEncoder,
        documents: Documents,
        labels: Labels,
        rows: npt.NDArray[np.int64],
    ) -> Callable[[], float] | None:
        """Return the validation score of the weights in training, as a function of nothing; None without a split."""
        if not len(rows):
            return None
        encoded = encoder.encode(documents.take(rows), self._cut(self._limit(checkpoint)), warn=False)
        # scorers ask for a fitted estimator: this one shares the weights that are being trained
        candidate = type(self)(**self.get_params(deep=False))
        candidate._record_labels(labels)
        candidate._record_checkpoint(checkpoint, encoder, documents)
        scorer = self._scorer(candidate)
        expected = labels.original[rows]
        return lambda: float(scorer(candidate, encoded, expected))

    def _scorer(self, candidate: TransformerClassifier) -> Any:
        if self.scoring is None:
            return make_scorer(f1_score, average="macro", zero_division=0.0, pos_label=None)
        return check_scoring(candidate, scoring=self.scoring)

    def _train(
        self,
        checkpoint: Checkpoint,
        encoded: Encoded,
        labels: Labels,
        weights: npt.NDArray[np.float64] | None,
        seed: int,
        score: Callable[[], float] | None,
    ) -> TrainingResult:
        loss = BinaryCrossEntropy if labels.kind == "multilabel" else CrossEntropy
        combined = row_weights(labels, self.class_weight, weights)
        data = TrainingData(encoded, labels.targets, normalized_weights(combined, len(encoded)))
        result = self._run(checkpoint, loss(self.label_smoothing), data, seed, score)
        if labels.kind == "single" and len(result.predicted.unique()) == 1:
            only = plain(labels.classes[int(result.predicted[0])])
            warnings.warn(
                f"training collapsed: in the last epoch every document was taken for {only!r}; lower learning_rate, "
                f"raise warmup_ratio or max_epochs, or try another random_state.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return result

    def _record(
        self,
        X: Any,
        documents: Documents,
        checkpoint: Checkpoint,
        encoder: TextEncoder,
        labels: Labels,
        result: TrainingResult,
    ) -> None:
        check_columns(self, X, documents.width, reset=True)
        self._record_training(result)
        self._record_labels(labels)
        self._record_checkpoint(checkpoint, encoder, documents)

    # -- helpers ----------------------------------------------------------------------------------------------------

    def _record_labels(self, labels: Labels) -> None:
        self.classes_ = labels.classes
        self.label_kind_ = labels.kind

    def _logits(self, X: Any) -> npt.NDArray[np.float32]:
        return self._forward(X, read_logits, len(getattr(self, "classes_", ())))

    def _fitted(self, folder: str | os.PathLike[str]) -> Checkpoint:
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "model_")
        if Path(folder).is_file():
            raise FileExistsError(f"{os.fspath(folder)!r} is a file; pass a folder.")
        return self._fitted_checkpoint()

    def _adopt(self) -> TransformerClassifier:
        """Become fitted with the checkpoint's own head."""
        self._validate_training()
        checkpoint = load_checkpoint(
            resolve(self.model),
            self._head,
            dropout=self.dropout,
            attention_dropout=self.attention_dropout,
            need_head=True,
        )
        names = checkpoint.model.config.id2label
        self.classes_ = np.array([names[i] for i in range(len(names))], dtype=object)
        problem = getattr(checkpoint.model.config, "problem_type", None)
        self.label_kind_ = "multilabel" if problem == "multi_label_classification" else "single"
        self._record_checkpoint(checkpoint, TextEncoder(checkpoint.tokenizer), Documents([]))
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        # scikit-learn's checks pass tables of numbers, which a text model reads as digits
        tags.classifier_tags.poor_score = True
        return tags


def _take(weights: npt.NDArray[np.float64] | None, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64] | None:
    return None if weights is None else weights[rows]
