"""Documents to labels without training: a language model says how likely the words of each label are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin

from ._prompting.base import Prompted
from ._prompting.frames import INSTRUCTION

DEFAULT_MODEL = "bundled:SmolLM2-135M-Instruct"


class PromptClassifier(ClassifierMixin, Prompted):
    r"""Documents to labels by a language model that is not trained for them, zero-shot or with a few examples.

    The model is asked which label a document has, and each label gets the likelihood of its words as the answer. With a
    model of natural language inference it gets the odds that the document entails a sentence about it.

    Parameters
    ----------
    model : str or path, default="bundled:SmolLM2-135M-Instruct"
        A hub id, a local folder or ``"bundled:NAME"``: a decoder (GPT-2, Llama), an encoder-decoder (T5), or a
        classifier that was trained on natural language inference.
    labels : list, dict or None, default=None
        The classes; a dict gives the words that each is called by in the prompt. None takes those of `y`.
    method : {"auto", "likelihood", "entailment"}, default="auto"
        ``"likelihood"`` scores the labels' words; ``"entailment"`` asks a model of natural language inference whether
        the document entails `hypothesis_template`. ``"auto"`` takes the latter for checkpoints with a trained
        classification head.
    template : str or None, default=None
        How a document is shown, with ``{text}`` (and ``{text_pair}`` for pairs of texts, ``{labels}`` for the labels'
        words): its end is what the label follows. None is ``"Text: {text}\nLabel:"``.
    instruction : str, default="Classify the text. Answer with one of these labels: {labels}."
        What stands before the examples and the document; it may be empty.
    chat : {"never", "auto", "always"}, default="never"
        Whether documents and labels become turns of a chat by the tokenizer's template; ``"auto"`` where it has one.
        The last line of `template`, where no text is in it, then begins the model's turn. Likelihoods of labels are
        often better without, also of models that were tuned to chat: try both.
    n_shots : int, default=4
        Examples in the prompt, out of those that `fit` gets: as many of each class as can be. 0 is zero-shot, which is
        often better for small models.
    hypothesis_template : str, default="This example is {label}."
        What ``"entailment"`` asks about.
    length_penalty : float, default=1.0
        A label's log-likelihood is divided by its number of tokens to this power: 1 is the mean over tokens, 0 the sum.
    calibration : {"auto", "content_free", "none"}, default="auto"
        ``"content_free"`` divides the probabilities by those that texts without content get in the same prompt;
        ``"auto"`` does so for ``"likelihood"``.
    content_free : list of str, default=("N/A", "", "[MASK]")
        Texts without content.
    max_length : int, default=2048
        Longest prompt with its label, in tokens; the model's own limit when that is lower.
    truncation : {"head_tail", "head", "tail"}, default="head_tail"
        Which tokens are kept of a document for which the prompt has no room. The rest of the prompt is never cut.
    head_length : int, default=128
        Tokens kept from the beginning by ``"head_tail"``; at most half of the room.
    missing : {"error", "empty"}, default="error"
        What to do with None and NaN documents: list their rows in an error, or read them as empty.
    token_budget : int or "auto", default="auto"
        Tokens of one forward pass. Results do not depend on it.
    device : str or torch.device, default="auto"
        Where to compute; "auto" takes a GPU when there is one.
    precision : {"auto", "float32", "bfloat16"}, default="auto"
        Of the matrix products; "auto" is bfloat16 where the chip has it. Weights stay float32.
    random_state : int, RandomState or None, default=None
        Chooses and orders the examples.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        Labels, in the order of the columns of `predict_proba`.
    label_words_ : tuple of str
        What each is called in the prompt.
    method_ : {"likelihood", "entailment"}
        How labels are scored.
    examples_ : list of (document, label)
        The examples in the prompt, in its order.
    frame_ : dict
        The prompt around a document; `prompt` shows it filled.
    content_free_proba_ : ndarray of shape (C,) or None
        Mean probabilities of the texts without content, by which others are divided.
    model_ : transformers.PreTrainedModel
        The model, as it was loaded.
    tokenizer_ : transformers.PreTrainedTokenizerBase
        Its tokenizer.
    max_length_ : int
        Longest prompt, in tokens: `max_length`, or the model's own limit.
    n_features_in_ : int
        Columns of `X`, when it was a table.
    feature_names_in_ : ndarray of str
        Their names, when they have any.

    See Also
    --------
    TransformerClassifier : Trained on examples; better where there are more than a few dozen.

    Notes
    -----
    A decoder reads the tokens that all prompts begin with (instruction, examples) once a call, the rest of a prompt
    once for all labels, and of the labels only what follows their first token: keys and values are kept and shared. An
    encoder-decoder reads each prompt once for all labels. Neither changes the numbers beyond rounding.

    A special token that a document spells out (``<|im_end|>``) is broken up by a blank: a document can't end its turn
    of a chat and begin another. It can still try to persuade the model in plain words, as any text in a prompt can.

    References
    ----------
    Brown et al. 2020, "Language Models are Few-Shot Learners", section 2.4 (likelihoods of the answers, by length);
    Zhao et al. 2021, "Calibrate Before Use: Improving Few-Shot Performance of Language Models", section 5;
    Yin et al. 2019, "Benchmarking Zero-shot Text Classification: Datasets, Evaluation and Entailment Approach",
    section 5 (entailment).

    Examples
    --------
    >>> from sktransformer import PromptClassifier
    >>> from sktransformer.testing import tiny_checkpoint
    >>> gpt2, labels = tiny_checkpoint("gpt2"), ["great", "awful"]
    >>> reviews = PromptClassifier(gpt2, labels=labels, template="{text} :", instruction="")
    >>> reviews.fit(None).predict_proba(["this movie was great", "ce film"]).shape
    (2, 2)
    >>> reviews.prompt("this movie")
    'this movie :'
    """

    def __init__(
        self,
        model: Any = DEFAULT_MODEL,
        *,
        labels: Any = None,
        method: str = "auto",
        template: str | None = None,
        instruction: str = INSTRUCTION,
        chat: str = "never",
        n_shots: int = 4,
        hypothesis_template: str = "This example is {label}.",
        length_penalty: float = 1.0,
        calibration: str = "auto",
        content_free: Sequence[str] = ("N/A", "", "[MASK]"),
        max_length: int = 2048,
        truncation: str = "head_tail",
        head_length: int = 128,
        missing: str = "error",
        token_budget: int | str = "auto",
        device: Any = "auto",
        precision: str = "auto",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.model = model
        self.labels = labels
        self.method = method
        self.template = template
        self.instruction = instruction
        self.chat = chat
        self.n_shots = n_shots
        self.hypothesis_template = hypothesis_template
        self.length_penalty = length_penalty
        self.calibration = calibration
        self.content_free = content_free
        self.max_length = max_length
        self.truncation = truncation
        self.head_length = head_length
        self.missing = missing
        self.token_budget = token_budget
        self.device = device
        self.precision = precision
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any = None, y: Any = None) -> PromptClassifier:
        """Load the model and put the prompt together; nothing is trained.

        Parameters
        ----------
        X : iterable of n documents or None, default=None
            Texts; pairs of texts; or another table, which is read row by row as ``name: value`` text. Some of them
            become examples in the prompt. None is zero-shot.
        y : array-like of shape (n,) or None, default=None
            Their labels. None is zero-shot, and needs `labels`. Beside `labels`, numbers from 0 stand for the sorted
            labels: so scikit-learn's votes, stacks and `cross_val_predict` hand them on.

        Returns
        -------
        PromptClassifier
            The classifier itself.

        Raises
        ------
        TypeError
            For a row that is no text, or a parameter of the wrong kind.
        ValueError
            For missing texts or labels, labels that `labels` has not, a prompt that is too long for the model, labels
            that are the same tokens, a checkpoint that neither writes texts nor judges entailment.
        """
        return self._fit(X, y)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the most probable label of each document.

        Parameters
        ----------
        X : iterable of n documents
            As in `fit`; it may be empty.

        Returns
        -------
        ndarray of shape (n,)
            Labels out of `classes_`.
        """
        probabilities = self.predict_proba(X)
        labels: npt.NDArray[Any] = self.classes_[probabilities.argmax(axis=1)]
        return labels

    def predict_proba(self, X: Any) -> npt.NDArray[np.float32]:
        """Return class probabilities: softmax of the labels' scores, calibrated.

        Parameters
        ----------
        X : iterable of n documents
            As in `fit`; it may be empty.

        Returns
        -------
        ndarray of shape (n, C), float32
            Columns in the order of `classes_`.
        """
        return self._probabilities(X)

    def prompt(self, text: str, text_pair: str = "") -> str:
        """Return what the model reads of a document: the text that a label's words follow.

        Parameters
        ----------
        text : str
            The document.
        text_pair : str, default=""
            Its second text, where documents are pairs.

        Returns
        -------
        str
            The whole prompt, without the special tokens that the tokenizer adds around it.

        Raises
        ------
        TypeError
            For anything but texts, such as a list of documents.
        """
        for name, given in (("text", text), ("text_pair", text_pair)):
            if not isinstance(given, str):
                raise TypeError(f"{name} must be the text of one document, got {type(given).__name__}.")
        return self._filled(text, text_pair)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # scikit-learn's checks pass numbers: to a text model, digits
        return tags
