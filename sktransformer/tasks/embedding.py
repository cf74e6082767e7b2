"""Documents to vectors."""

from __future__ import annotations

import os
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._engine.inference.output import Output
from ._embedding.base import EmbedderBase

DEFAULT_MODEL = "intfloat/multilingual-e5-small"


class TransformerEmbedder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, EmbedderBase):
    """Documents to vectors: an encoder whose tokens are pooled, frozen or fine-tuned contrastively.

    Parameters
    ----------
    model : str, path or PretrainedConfig, default="intfloat/multilingual-e5-small"
        A hub id, a local folder, ``"bundled:NAME"``, or a config (random weights: useful in tests only).
    max_length : int, default=512
        Longest document, in tokens with the special ones; the model's own limit when that is lower.
    truncation : {"head", "tail", "head_tail", "chunk"}, default="head_tail"
        Which tokens of a longer document are kept; ``"chunk"`` reads all of them in windows that overlap.
    head_length : int, default=128
        Tokens kept from the beginning by ``"head_tail"``; at most half of the room.
    stride : int, default=64
        Tokens that two neighbouring windows of ``"chunk"`` share.
    aggregation : {"mean", "max", "length"}, default="length"
        How ``"chunk"`` puts the vectors of a document's windows together: their mean, their largest of each column, or
        the mean weighted by tokens.
    pooling : {"auto", "mean", "cls", "max", "last", "mean_last"}, default="auto"
        The vector of a document: the mean of its tokens' last hidden states, that of its first or last token
        (decoders), the largest of each column, or the mean over tokens of the last `last_layers` layers. "auto" is what
        the checkpoint's own sentence-transformers files say, else the mean.
    last_layers : int, default=4
        Layers that "mean_last" reads.
    prompt : str or None, default=None
        Put before each document that does not start with it already, where no role is asked for.
    prompts : "auto", str, dict or None, default="auto"
        The prompt of a role: ``{"query": "query: ", "document": "passage: "}``, or one for both. "auto" takes those of
        the checkpoint's files, or those of E5 models by their name; a `prompt` that is none of them stands before
        them. None is none.
    role : {"auto", "query", "document"}, default="auto"
        The role of texts in `transform` where neither it nor `prompt` says another; "auto" is "query" for E5, as its
        authors advise for features, and "document" for others.
    normalize : bool or "auto", default=True
        Divide each vector by its Euclidean norm, so that dot products are cosines; "auto" asks the checkpoint's files.
    truncate_dim : int or None, default=None
        Leading columns that are kept, before the norm (for models trained so, "Matryoshka" ones).
    output_dtype : {"float32", "float16", "int8", "binary"}, default="float32"
        "int8" has one scale for all columns, the largest component in up to 1000 documents of the fit; "binary" packs
        signs, eight columns to a byte (uint8).
    memory : None, "memory", path or joblib.Memory, default=None
        Where vectors are kept by the content of text and weights, so that each text is encoded once: nowhere, in this
        process (at most 256 MiB, for all embedders together), or in a folder that processes may share.
    fine_tune : {"labels", "pairs", "graded"} or None, default=None
        None leaves the encoder as it is and ignores `y`. "labels" pulls documents of a label together; "pairs", with
        pairs in `X`, the two texts of a row, away from those of other rows, and from those of its group in `y` first;
        "graded" orders pairs by their `y`.
    temperature : float, default=0.05
        Cosines are divided by it in the losses.
    mixing : float, default=1.0
        Share of the fine-tuned weights in those that are kept; the rest is what the fit began with. Less than 1 keeps
        more of what an encoder knew already; 0.5 served for search.
    max_epochs : int, default=3
        Passes over the training rows.
    batch_size : int, default=64
        Rows of one optimizer step, each of which is set against all others; memory does not grow with it.
    learning_rate : float, default=3e-5
        Highest learning rate of AdamW. Small encoders (MiniLM, multilingual-e5-small) take 1e-4.
    lr_schedule : {"linear", "cosine", "constant", "inverse_sqrt"}, default="linear"
        How the learning rate falls after the warm-up.
    warmup_ratio : float, default=0.1
        Share of the steps over which the learning rate climbs to its highest.
    weight_decay : float, default=0.01
        Decoupled weight decay; biases and norms are left alone.
    layer_decay : float, default=1.0
        Factor on the learning rate from each layer to the one below it.
    freeze : "embeddings", int or None, default=None
        Weights that stay as they are: the embeddings, or the embeddings and that many layers from the bottom.
    dropout : float or None, default=None
        Probability of dropping a hidden unit in training; None keeps the checkpoint's own.
    attention_dropout : float or None, default=None
        Probability of dropping an attention weight in training; None keeps the checkpoint's own.
    max_grad_norm : float or None, default=1.0
        The gradient's norm is clipped to this.
    early_stopping : bool, default=False
        Hold out rows, score each epoch on them, stop when that stops rising, and restore the best epoch's weights.
    validation_fraction : float, default=0.1
        Share of rows held out; of labels, two documents a class.
    n_iter_no_change : int, default=2
        Epochs without a better score before training stops.
    scoring : callable or None, default=None
        ``scoring(embedder, X, y)`` of what is held out. None is the share of documents whose nearest other one has
        their label, of first texts whose nearest second one is theirs, or Spearman's correlation of cosines and grades.
    missing : {"error", "empty"}, default="error"
        What to do with None and NaN documents.
    gradient_checkpointing : bool, default=False
        Recompute activations in the backward pass: less memory, about a third slower.
    warm_start : bool, default=False
        Whether a second fine-tuning goes on from the first.
    callbacks : list of skorch callbacks or None, default=None
        Notified during training, after the estimator's own.
    token_budget : int or "auto", default="auto"
        Tokens of one forward pass. Results do not depend on it, but for the draws of dropout.
    device : str or torch.device, default="auto"
        Where to compute; "auto" takes a GPU when there is one.
    precision : {"auto", "float32", "bfloat16"}, default="auto"
        Of the matrix products; "auto" is bfloat16 where the chip has it.
    random_state : int, RandomState or None, default=None
        Seeds dropout, the order of rows and those held out. Global generators are left alone.
    verbose : int, default=0
        1 shows one progress bar a fine-tuning and a transform.

    Attributes
    ----------
    model_ : transformers.PreTrainedModel
        The encoder. With `memory`, frozen embedders of the same files share it.
    tokenizer_ : transformers.PreTrainedTokenizerBase
        Its tokenizer.
    max_length_ : int
        Longest document that is read whole, in tokens: `max_length`, or the model's own limit.
    sentence_files_ : dict
        What the checkpoint's sentence-transformers files say.
    int8_scale_ : float
        The component that becomes 127, when `output_dtype` is "int8".
    classes_ : ndarray of shape (C,)
        Labels, when fine-tuned on some.
    history_ : DataFrame
        One row an epoch of a fine-tuning: training loss, validation score, last learning rate, seconds (`dur`).
    best_epoch_ : int
        The epoch whose weights the model has, counted from 1, when fine-tuned.
    n_epochs_ : int
        Epochs that the last fine-tuning ran.
    n_features_in_ : int
        Columns of `X`, when it was a table.
    feature_names_in_ : ndarray of str
        Their names, when they have any.

    See Also
    --------
    TransformerClassifier : Fine-tunes the encoder on labels, with a head.

    Notes
    -----
    Pooling leaves padding out, and a document's vector does not depend on its neighbours in `X`. A document that comes
    several times is read once.

    Losses compare cosines of all rows of a batch. A batch of more than `token_budget` tokens is read twice, first
    without a gradient [4]_, and the step is that of the whole batch. Labels come in twos to a batch; a label with one
    document serves as a contrast to the others, with a warning. Pairs that share a text are no contrast to each other.

    References
    ----------
    .. [1] Reimers and Gurevych 2019, "Sentence-BERT", section 3 (pooling).
    .. [2] Wang et al. 2024, "Multilingual E5 Text Embeddings", section 2 (prompts).
    .. [3] Khosla et al. 2020, "Supervised Contrastive Learning", equation 2 (labels); Henderson et al. 2017, "Efficient
       Natural Language Response Suggestion for Smart Reply", section 4.4 (pairs); Huang et al. 2024, "CoSENT", section
       III (graded).
    .. [4] Gao et al. 2021, "Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup", section 3.
    .. [5] Kusupati et al. 2022, "Matryoshka Representation Learning", section 3.
    .. [6] Wortsman et al. 2022, "Robust Fine-Tuning of Zero-Shot Models", section 3, equation 1 (`mixing`); Xiao et al.
       2023, "LM-Cocktail: Resilient Tuning of Language Models via Model Merging" (of embedders).

    Examples
    --------
    >>> from sktransformer import TransformerEmbedder
    >>> from sktransformer.testing import tiny_checkpoint
    >>> embed = TransformerEmbedder(tiny_checkpoint("camembert"))
    >>> embed.fit_transform(["où est ma facture ?", "le colis est en retard"]).shape
    (2, 32)
    """

    def __init__(  # long: every parameter is assigned as it is, and nothing else
        self,
        model: Any = DEFAULT_MODEL,
        *,
        max_length: int = 512,
        truncation: str = "head_tail",
        head_length: int = 128,
        stride: int = 64,
        aggregation: str = "length",
        pooling: str = "auto",
        last_layers: int = 4,
        prompt: str | None = None,
        prompts: Any = "auto",
        role: str = "auto",
        normalize: Any = True,
        truncate_dim: int | None = None,
        output_dtype: str = "float32",
        memory: Any = None,
        fine_tune: str | None = None,
        temperature: float = 0.05,
        mixing: float = 1.0,
        max_epochs: int = 3,
        batch_size: int = 64,
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
        self.pooling = pooling
        self.last_layers = last_layers
        self.prompt = prompt
        self.prompts = prompts
        self.role = role
        self.normalize = normalize
        self.truncate_dim = truncate_dim
        self.output_dtype = output_dtype
        self.memory = memory
        self.fine_tune = fine_tune
        self.temperature = temperature
        self.mixing = mixing
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

    def fit(self, X: Any, y: Any = None) -> TransformerEmbedder:
        """Load the encoder, and fine-tune it where `fine_tune` says on what.

        Parameters
        ----------
        X : iterable of n documents
            Texts, pairs of texts, or another table, which is read row by row as ``name: value`` text. To fine-tune on
            pairs, pairs of texts; `transform` then takes single texts.
        y : array-like of shape (n,), default=None
            Labels for ``fine_tune="labels"``, numbers for "graded". For "pairs" None, or the group of each pair, such
            as the article that it is about: pairs of a group come to the same batches, where each is a hard contrast to
            the others. Ignored while `fine_tune` is None.

        Returns
        -------
        TransformerEmbedder
            The embedder itself.

        Raises
        ------
        TypeError
            For a row that is no text, or a parameter of the wrong kind.
        ValueError
            For missing texts, a parameter out of range, a checkpoint that is absent or corrupt, rows or targets that
            `fine_tune` can't learn from.
        NonFiniteLossError
            When the loss becomes NaN or infinite.
        """
        if self.fine_tune is None:
            self._fit_frozen(X)
            return self
        return self._fit(X, y, None)

    def transform(self, X: Any, role: str | None = None) -> npt.NDArray[Any]:
        """Return one vector a document.

        Parameters
        ----------
        X : iterable of n documents
            As in `fit`; it may be empty.
        role : {"query", "document"}, default=None
            Whose prompt the texts get; None leaves it to the parameters `prompt` and `role`.

        Returns
        -------
        ndarray of shape (n, D), float32 unless `output_dtype` says otherwise
            One row a document, in the order of `X`.

        Raises
        ------
        ValueError
            For an unknown role, or "int8" without a scale from a fit.
        """
        check_is_fitted(self, "model_")
        self._validate_common()
        self._check_role(role)
        documents = self._prompted(self._documents_again(X), role)
        self._check_shape(self.model_.config)
        scale = getattr(self, "int8_scale_", None)
        if self.output_dtype == "int8" and scale is None:
            raise ValueError('output_dtype="int8" needs a scale, which fit finds; fit again.')
        output: Output = self._output()
        if not len(documents):
            return np.empty((0, self._n_features_out), dtype=output.numpy_dtype())
        return output.finish(self._vectors(documents), scale)

    def with_role(self, role: str) -> Self:
        """Return a fitted embedder with the same weights, not copied, whose `transform` gives texts this role.

        Parameters
        ----------
        role : {"query", "document"}
            Whose prompt the texts get.

        Returns
        -------
        TransformerEmbedder
            Another embedder, for instance to be put into a FrozenEstimator.
        """
        return self._view(role)

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Write the encoder as a folder that Transformers and sentence-transformers load.

        Parameters
        ----------
        folder : path
            Made if it does not exist. Pooling, norm and prompts go into sentence-transformers' files.

        Raises
        ------
        NotFittedError
            Before `fit`.
        ValueError
            When `folder` is empty, or the pooling is "mean_last", which those files have no name for.
        OSError
            When `folder` is a file, or the disk is full or not writable.
        """
        check_is_fitted(self, "model_")
        self._save(folder)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # whatever comes in, float32 comes out
        tags.target_tags.required = self.fine_tune in ("labels", "graded")
        return tags

    @property
    def _n_features_out(self) -> int:
        """Width of the vectors; scikit-learn's mixin names as many features."""
        return self._output().width(int(self.model_.config.hidden_size))
