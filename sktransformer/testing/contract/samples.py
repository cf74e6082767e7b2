"""A few documents for each kind of estimator: what the checks fit on and predict.

A new kind of estimator joins the suite with a function that returns a `Sample` and a line in `KINDS`. Texts are short:
the tiny checkpoints read 64 tokens, and spell most words letter by letter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier, is_regressor
from sklearn.pipeline import Pipeline

INVOICE = (
    "ma facture est fausse",
    "facture payée deux fois",
    "où est la facture de mai ?",
    "the invoice is wrong",
    "12 euros de trop !",
    "avoir svp",
)
DELIVERY = (
    "le colis est en retard",
    "colis cassé à l'arrivée",
    "where is my parcel",
    "pas livré",
    "la livraison de lundi n'est pas venue",
    "adresse de livraison",
)
BREAKDOWN = (
    "le chat ne marche plus",
    "écran noir",
    "panne ce matin, encore",
    "it does not start",
    "le bouton rouge est mort",
    "erreur 404",
)
NEW = (
    "facture ?",
    "le colis noir est resté à Montréal tout l'été",
    "ok",
    "the screen is black and the fox is lazy",
    "où",
    "merci pour la facture de lundi",
    "panne",
)
SECOND = ("Bonjour", "merci d'avance", "urgent !", "please find attached", "à lundi", "cordialement")


def read_finest(fitted: Any, X: Any) -> np.ndarray[Any, Any]:
    """Return probabilities, vectors or predictions, whichever comes first.

    Parameters
    ----------
    fitted : estimator
        Fitted.
    X : iterable of documents
        What to read.

    Returns
    -------
    ndarray
        One row a document.

    Raises
    ------
    TypeError
        When the estimator has none of `predict_proba`, `transform` and `predict`.
    """
    for method in ("predict_proba", "transform", "predict"):
        if hasattr(fitted, method):
            return np.asarray(getattr(fitted, method)(X))
    raise TypeError(
        f"{type(fitted).__name__} has none of predict_proba, transform, predict; give a Sample with `read`."
    )


def read_distances(fitted: Any, X: Any) -> np.ndarray[Any, Any]:
    """Return the distance of each query to each document, in the order of the documents.

    Parameters
    ----------
    fitted : estimator
        A fitted search, with `kneighbors`, perhaps as the last step of a pipeline.
    X : iterable of queries
        What to ask.

    Returns
    -------
    ndarray of shape (n, n_samples_fit_)
        One row a query.
    """
    if isinstance(fitted, Pipeline):
        X, fitted = fitted[:-1].transform(X), fitted[-1]
    # one that is not fitted says so itself
    distances, indices = fitted.kneighbors(X, getattr(fitted, "n_samples_fit_", 1))
    rows: np.ndarray[Any, Any] = np.empty_like(distances)
    np.put_along_axis(rows, indices, distances, axis=1)
    return rows


@dataclass(frozen=True)
class Sample:
    """Documents to fit on, their targets, and other documents to read.

    Parameters
    ----------
    X : list
        Documents, at least twelve, of many lengths and all short; two for each class and fold at least.
    y : list or None
        Targets; None when `fit` needs none.
    X_new : list
        Other documents, at least five, no two alike and of many lengths.
    read : callable, optional
        ``read(fitted, X)``: the finest numbers (or texts) that a fitted estimator gives, one row a document. It must be
        importable from another process. By default `predict_proba`, `transform` or `predict`, whichever comes first.
    texts : bool, default=True
        Whether a document is a text, so that the checks of containers and strange texts apply.
    gives : {"numbers", "texts"}, default="numbers"
        What the rows of the output hold.
    pairs : list of 2-tuples, optional
        As many pairs of texts as there are documents; the checks of pairs apply where there are some.
    spare : 2-tuple, optional
        Two targets that any document of `X` may have; by default the first two of `y`.
    words : bool, default=False
        Whether a document is a list of words with a tag each, so that the checks of those apply.
    models : tuple of str, default=("roberta", "electra")
        Two tiny checkpoints that the estimator's `model` may be.

    Examples
    --------
    A sample of one's own, for an estimator whose `transform` gives texts again:

    >>> from sktransformer.testing import Sample
    >>> texts = [f"bonjour, voici la facture {i}" for i in range(12)]
    >>> sample = Sample(texts, None, texts[::2], gives="texts")
    """

    X: list[Any]
    y: list[Any] | None
    X_new: list[Any]
    read: Callable[[Any, Any], Any] = read_finest
    texts: bool = True
    gives: Literal["numbers", "texts"] = "numbers"
    pairs: list[tuple[str, str]] = field(default_factory=list)
    spare: tuple[Any, Any] | None = None
    words: bool = False
    models: tuple[str, str] = ("roberta", "electra")


def is_classifier_by_looks(estimator: Any) -> bool:
    """Whether it is a classifier, also where wrongly ordered base classes make its tags say otherwise."""
    return bool(is_classifier(estimator)) or isinstance(estimator, ClassifierMixin)


def is_regressor_by_looks(estimator: Any) -> bool:
    """Whether it is a regressor, also where wrongly ordered base classes make its tags say otherwise."""
    return bool(is_regressor(estimator)) or isinstance(estimator, RegressorMixin)


def answers_by_looks(estimator: Any) -> bool:
    """Whether it answers questions."""
    return hasattr(estimator, "exact_match")


def classification_sample() -> Sample:
    """Three classes, six documents each, interleaved."""
    X = [text for row in zip(INVOICE, DELIVERY, BREAKDOWN, strict=True) for text in row]
    y = ["facture", "livraison", "panne"] * len(INVOICE)
    return Sample(X, y, list(NEW), pairs=_pairs(X))


def prompting_sample() -> Sample:
    """The same documents and classes, for a model that writes; its prompt has a place for one text."""
    labelled = classification_sample()
    return Sample(labelled.X, labelled.y, labelled.X_new, models=("gpt2", "llama"))


def regression_sample() -> Sample:
    """The same documents, with a number that depends on the kind and a little on the length."""
    X = classification_sample().X
    y = [2.0 * (i % 3) + len(text) / 100 for i, text in enumerate(X)]
    return Sample(X, y, list(NEW), pairs=_pairs(X))


def transformer_sample() -> Sample:
    """The same documents, no targets."""
    X = classification_sample().X
    return Sample(X, None, list(NEW), pairs=_pairs(X))


def contrastive_sample() -> Sample:
    """The same documents with their labels, for an embedder that is fine-tuned on them: single texts, no pairs."""
    labelled = classification_sample()
    return Sample(labelled.X, labelled.y, labelled.X_new)


def cleaning_sample() -> Sample:
    """Short mails with something to clean in each, and texts again as output."""
    tails = ("Cordialement,\nPaul", "> ancien texte", "Envoyé de mon iPhone", "")
    mails = [
        f"{text}\n\n{tails[i % len(tails)]}" for i, text in enumerate((*classification_sample().X, *NEW))
    ]
    X, X_new = mails[: -len(NEW)], mails[-len(NEW) :]
    return Sample(X, None, X_new, gives="texts", pairs=_pairs(X))


def read_margins(fitted: Any, X: Any) -> np.ndarray[Any, Any]:
    """Return by how much each question's best answer outscores no answer.

    The scores themselves are known up to a constant: no gradient says where a head's bias should be.
    """
    # a pipeline's other steps change nothing here
    last = fitted.steps[-1][1] if hasattr(fitted, "steps") else fitted
    margins = []
    for spans in last.predict_spans(X, n_best=2):  # one of the two may be that there is no answer
        best = next((span for span in spans if span["text"]), spans[0])
        margins.append(best["score"] - best["no_answer_score"])
    return np.asarray(margins, dtype=np.float32).reshape(-1, 1)


def answering_sample() -> Sample:
    """Questions about short contexts; the answer is the context's longest word, and a few have none."""
    contexts = classification_sample().X
    asked = ("quoi ?", "what is it about", "de quoi s'agit-il ?")
    X = [(asked[i % len(asked)], context) for i, context in enumerate(contexts)]
    y = [None if i % 7 == 6 else max(context.split(), key=len) for i, context in enumerate(contexts)]
    X_new = [(asked[i % 2], text) for i, text in enumerate(NEW)]
    return Sample(X, y, X_new, read_margins, texts=False, pairs=X, spare=(None, "r"))


def _last_step(fitted: Any, X: Any) -> tuple[Any, Any]:
    """Return what a pipeline's other steps make of `X`, and its last step."""
    if not isinstance(fitted, Pipeline):
        return X, fitted
    return fitted[:-1].transform(X) if len(fitted) > 1 else X, fitted[-1]


def read_texts_scores(fitted: Any, X: Any) -> np.ndarray[Any, Any]:
    """Return the score of the best text for each source.

    Not its number of tokens: the texts of two roundings may differ where two tokens are as good as each other.
    """
    X, last = _last_step(fitted, X)
    scores = [texts[0]["score"] for texts in last.predict_n_best(X, 1)]
    return np.asarray(scores, dtype=np.float32).reshape(-1, 1)


def writing_sample() -> Sample:
    """The same documents, each with a short text to be written for it."""
    X = classification_sample().X
    y = [" ".join(sorted(text.split())[:2]) for text in X]
    # two targets of one length: another width of a batch rounds sums otherwise
    return Sample(X, y, list(NEW), read_texts_scores, spare=("ok", "ko"), models=("bart", "t5"))


def read_perplexities(fitted: Any, X: Any) -> np.ndarray[Any, Any]:
    """Return the logarithm of the perplexity of one response to each prompt."""
    X, last = _last_step(fitted, X)
    X = X if hasattr(X, "__len__") else list(X)
    rows: np.ndarray[Any, Any] = np.log(last.perplexity(X, ["ok"] * len(X))).astype(np.float32).reshape(-1, 1)
    return rows


def continuing_sample() -> Sample:
    """The same documents as prompts, each with a short response."""
    sample = writing_sample()
    return Sample(
        sample.X, sample.y, sample.X_new, read_perplexities, spare=sample.spare, models=("gpt2", "llama")
    )


def search_sample() -> Sample:
    """The same documents as corpus, the new ones as queries."""
    return Sample(classification_sample().X, None, list(NEW), read=read_distances)


# The first six sentences have as many words, so that a check may give one the tags of another.
TAGGED = (
    ("Marie habite Lyon", "B-PER O B-LOC"),
    ("Paul Martin arrive", "B-PER I-PER O"),
    ("le chat noir", "O O O"),
    ("Lyon et Paris", "B-LOC O B-LOC"),
    ("Marie aime Paul", "B-PER O B-PER"),
    ("colis pour Marie", "O O B-PER"),
    ("la facture de Paul est fausse", "O O O B-PER O O"),
    ("Saint Denis", "B-LOC I-LOC"),
    ("où est Marie Martin ?", "O O B-PER I-PER O"),
    ("Lyon", "B-LOC"),
    ("rien", "O"),
    ("je vais à Paris avec Marie", "O O O B-LOC O B-PER"),
)
UNTAGGED = (
    "Paul habite Paris",
    "le colis noir de Marie est resté à Lyon tout l' été",
    "Martin",
    "rien ici",
    "où est la facture de Saint Denis ?",
    "Marie Martin et Paul vont à Lyon",
)


def read_sentences(fitted: Any, X: Any) -> np.ndarray[Any, Any]:
    """Return one row a sentence: probabilities of its first word, of its last, and their means over its words."""
    shares = fitted.predict_proba(X)
    empty = np.zeros((1, len(fitted.classes_)), dtype=np.float32)
    rows = [
        np.concatenate([row[0], row[-1], row.mean(axis=0, dtype=np.float64).astype(np.float32)])
        for row in (share if len(share) else empty for share in shares)
    ]
    return np.array(rows, dtype=np.float32).reshape(len(rows), 3 * len(fitted.classes_))


def tagging_sample() -> Sample:
    """Sentences as words, with people and places."""
    X = [text.split() for text, _ in TAGGED]
    y = [tags.split() for _, tags in TAGGED]
    return Sample(X, y, [text.split() for text in UNTAGGED], read_sentences, texts=False, words=True)


def _pairs(X: list[str]) -> list[tuple[str, str]]:
    return [(first[:24], SECOND[i % len(SECOND)]) for i, first in enumerate(X)]


# The first line whose condition holds gives the sample.
KINDS: list[tuple[Callable[[Any], bool], Callable[[], Sample]]] = [
    (lambda estimator: type(estimator).__name__ == "EmailCleaner", cleaning_sample),
    (answers_by_looks, answering_sample),
    (lambda estimator: hasattr(estimator, "predict_spans") and hasattr(estimator, "scheme"), tagging_sample),
    (lambda estimator: hasattr(estimator, "n_shots"), prompting_sample),
    (lambda estimator: hasattr(estimator, "perplexity"), continuing_sample),
    (lambda estimator: hasattr(estimator, "predict_n_best"), writing_sample),
    (is_classifier_by_looks, classification_sample),
    (lambda estimator: getattr(estimator, "fine_tune", None) == "labels", contrastive_sample),
    (is_regressor_by_looks, regression_sample),
    (lambda estimator: hasattr(estimator, "transform"), transformer_sample),
    (lambda estimator: hasattr(estimator, "kneighbors"), search_sample),
]


def sample_for(estimator: Any) -> Sample:
    """Return the sample of an estimator's kind.

    Raises
    ------
    TypeError
        When no kind fits.
    """
    for fits, make in KINDS:
        if fits(estimator):
            return make()
    raise TypeError(
        f"{type(estimator).__name__} is neither a classifier, a regressor nor a transformer; "
        f"pass a sample=Sample(...) of its kind."
    )
