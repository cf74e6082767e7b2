"""Documents to vectors."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from .._engine.checkpoints.heads import Head
from .._engine.compat import check_columns
from .._engine.devices import draw_seed, resolve_device, seeded
from .._engine.inference.pooling import POOLINGS, reader
from .._engine.text.documents import Documents
from .._engine.validation import check_choice, check_flag, check_number
from ._base import TransformerEstimator, text_encoder

DEFAULT_MODEL = "intfloat/multilingual-e5-small"


class TransformerEmbedder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, TransformerEstimator):
    """Documents to vectors: a frozen encoder whose tokens are pooled.

    Parameters
    ----------
    model : str, path or PretrainedConfig, default="intfloat/multilingual-e5-small"
        A hub id, a local folder, ``"bundled:NAME"``, or a config (random weights: useful in tests only).
    max_length : int, default=512
        Longest document, in tokens with the special ones; the model's own limit when that is lower.
    truncation : {"head", "tail", "head_tail", "chunk"}, default="head_tail"
        Which tokens of a longer document are kept; ``"chunk"`` reads all of them in windows that overlap, and takes
        the mean of their vectors, weighted by their tokens.
    head_length : int, default=128
        Tokens kept from the beginning by ``"head_tail"``; at most half of the room.
    stride : int, default=64
        Tokens that two neighbouring windows of ``"chunk"`` share.
    pooling : {"mean", "cls"}, default="mean"
        The vector of a document: the mean of its tokens' last hidden states, or that of its first token.
    prompt : str or None, default=None
        Put before each document that does not start with it already, for instance ``"query: "`` for E5 models.
    normalize : bool, default=True
        Divide each vector by its Euclidean norm, so that dot products are cosines.
    missing : {"error", "empty"}, default="error"
        What to do with None and NaN documents.
    token_budget : int or "auto", default="auto"
        Tokens of one forward pass. Results do not depend on it.
    device : str or torch.device, default="auto"
        Where to compute; "auto" takes a GPU when there is one.
    precision : {"auto", "float32", "bfloat16"}, default="auto"
        Of the matrix products; "auto" is bfloat16 where the chip has it.
    verbose : int, default=0
        1 shows one progress bar a transform.

    Attributes
    ----------
    model_ : transformers.PreTrainedModel
        The encoder.
    tokenizer_ : transformers.PreTrainedTokenizerBase
        Its tokenizer.
    max_length_ : int
        Longest document that is read whole, in tokens: `max_length`, or the model's own limit.
    n_features_in_ : int
        Columns of `X`, when it was a table.
    feature_names_in_ : ndarray of str
        Their names, when they have any.

    See Also
    --------
    TransformerClassifier : Fine-tunes the encoder on labels.

    Notes
    -----
    Mean pooling leaves padding out, and a document's vector does not depend on its neighbours in `X`.

    References
    ----------
    Reimers and Gurevych 2019, "Sentence-BERT", section 3 (pooling);
    Wang et al. 2024, "Multilingual E5 Text Embeddings", section 2 (prompts).

    Examples
    --------
    >>> from sktransformer import TransformerEmbedder
    >>> from sktransformer.testing import tiny_checkpoint
    >>> embed = TransformerEmbedder(tiny_checkpoint("camembert"))
    >>> embed.fit_transform(["où est ma facture ?", "le colis est en retard"]).shape
    (2, 32)
    """

    _head: ClassVar[Head] = "encoder"

    def __init__(
        self,
        model: Any = DEFAULT_MODEL,
        *,
        max_length: int = 512,
        truncation: str = "head_tail",
        head_length: int = 128,
        stride: int = 64,
        pooling: str = "mean",
        prompt: str | None = None,
        normalize: bool = True,
        missing: str = "error",
        token_budget: int | str = "auto",
        device: Any = "auto",
        precision: str = "auto",
        verbose: int = 0,
    ) -> None:
        self.model = model
        self.max_length = max_length
        self.truncation = truncation
        self.head_length = head_length
        self.stride = stride
        self.pooling = pooling
        self.prompt = prompt
        self.normalize = normalize
        self.missing = missing
        self.token_budget = token_budget
        self.device = device
        self.precision = precision
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> TransformerEmbedder:
        """Load the encoder; nothing is trained.

        Parameters
        ----------
        X : iterable of n documents
            Texts, pairs of texts, or another table, which is read row by row as ``name: value`` text.
        y : ignored
            Present for scikit-learn.

        Returns
        -------
        TransformerEmbedder
            The embedder itself.

        Raises
        ------
        TypeError
            For a row that is no text, or a parameter of the wrong kind.
        ValueError
            For missing texts, a parameter out of range, a checkpoint that is absent or corrupt.
        """
        self._validate_common()
        documents = self._documents(X)
        with seeded(
            draw_seed(0), resolve_device(self.device)
        ):  # a config's random weights, the same each time
            checkpoint = self._load_checkpoint(documents)
        encoder = text_encoder(checkpoint)
        self._encode(encoder, documents.take([]), None)  # raises when max_length leaves no room for a text
        after = self._shadow()
        check_columns(after, X, documents.width, reset=True)
        after._record_checkpoint(checkpoint, encoder, documents)
        self.__dict__ = after.__dict__
        return self

    def transform(self, X: Any) -> npt.NDArray[np.float32]:
        """Return one vector a document.

        Parameters
        ----------
        X : iterable of n documents
            As in `fit`; it may be empty.

        Returns
        -------
        ndarray of shape (n, D), float32
            One row a document, in the order of `X`.
        """
        self._validate_common()
        width = self._n_features_out if hasattr(self, "model_") else 0
        vectors = self._forward(
            X, reader(self.pooling), width, aggregation="length", progress=bool(self.verbose)
        )
        if self.normalize:
            norms = np.linalg.norm(vectors, axis=1, keepdims=True)
            vectors = vectors / np.maximum(norms, np.finfo(np.float32).tiny)
        return vectors

    def _validate_common(self) -> None:
        super()._validate_common()
        check_choice("pooling", self.pooling, POOLINGS)
        check_flag("normalize", self.normalize)
        check_number("verbose", self.verbose, low=0, integer=True)
        if self.prompt is not None and not isinstance(self.prompt, str):
            raise TypeError(f"prompt must be None or str, got {type(self.prompt).__name__}.")

    def _documents_again(self, X: Any) -> Documents:
        documents = super()._documents_again(X)
        prompt = self.prompt
        if not prompt:
            return documents
        first = [text if text.startswith(prompt) else prompt + text for text in documents.first]
        return Documents(first, documents.second, documents.width, documents.names)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # whatever comes in, float32 comes out
        return tags

    @property
    def _n_features_out(self) -> int:
        """Width of the vectors; scikit-learn's mixin names as many features."""
        return int(self.model_.config.hidden_size)
