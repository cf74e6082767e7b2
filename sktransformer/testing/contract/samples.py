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


def is_classifier_by_looks(estimator: Any) -> bool:
    """Whether it is a classifier, also where wrongly ordered base classes make its tags say otherwise."""
    return bool(is_classifier(estimator)) or isinstance(estimator, ClassifierMixin)


def is_regressor_by_looks(estimator: Any) -> bool:
    """Whether it is a regressor, also where wrongly ordered base classes make its tags say otherwise."""
    return bool(is_regressor(estimator)) or isinstance(estimator, RegressorMixin)


def classification_sample() -> Sample:
    """Three classes, six documents each, interleaved."""
    X = [text for row in zip(INVOICE, DELIVERY, BREAKDOWN, strict=True) for text in row]
    y = ["facture", "livraison", "panne"] * len(INVOICE)
    return Sample(X, y, list(NEW), pairs=_pairs(X))


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


def _pairs(X: list[str]) -> list[tuple[str, str]]:
    return [(first[:24], SECOND[i % len(SECOND)]) for i, first in enumerate(X)]


# The first line whose condition holds gives the sample.
KINDS: list[tuple[Callable[[Any], bool], Callable[[], Sample]]] = [
    (lambda estimator: type(estimator).__name__ == "EmailCleaner", cleaning_sample),
    (is_classifier_by_looks, classification_sample),
    (lambda estimator: getattr(estimator, "fine_tune", None) == "labels", contrastive_sample),
    (is_regressor_by_looks, regression_sample),
    (lambda estimator: hasattr(estimator, "transform"), transformer_sample),
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
