"""Labels and weights: lines 9 and 10 of the contract."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.utils import get_tags
from sklearn.utils.class_weight import compute_sample_weight

from ._require import require, require_close, require_different, require_equal, require_raises
from .registry import any_of, check, classifies, has, offers, takes
from .subject import Subject


def _renamed(subject: Subject, names: list[Any]) -> list[Any]:
    """Return the sample's targets under other names, in the same order of classes."""
    classes = sorted(set(subject.sample.y or []))
    return [names[classes.index(label)] for label in subject.sample.y or []]


def _types_of_labels(subject: Subject) -> Iterator[tuple[str, Any, list[Any]]]:
    """Yield a name, targets and the classes that are expected."""
    words, numbers = ["", "b c", "é"], [-7, 0, 10**9]
    yield "str", _renamed(subject, words), words
    yield "<U", np.array(_renamed(subject, words)), words
    yield "object", np.array(_renamed(subject, words), dtype=object), words
    yield "StringDType", np.array(_renamed(subject, words), dtype=np.dtypes.StringDType()), words
    yield "int", _renamed(subject, numbers), numbers
    yield "int8", np.array(_renamed(subject, [-1, 3, 4]), dtype=np.int8), [-1, 3, 4]
    yield "whole floats", np.array(_renamed(subject, [0.0, 1.0, 2.0])), [0.0, 1.0, 2.0]
    index = range(len(subject.sample.X), 0, -1)
    backwards = pd.CategoricalDtype(["z", "é", "b c", ""], ordered=True)
    yield "categorical", pd.Series(_renamed(subject, words), dtype=backwards, index=index), words
    yield "pandas str", pd.Series(_renamed(subject, words), dtype="str", index=index), words
    yield "Int64", pd.Series(_renamed(subject, numbers), dtype="Int64", index=index), numbers
    yield "one column", np.array(_renamed(subject, numbers))[:, None], numbers


# -- 9. labels -----------------------------------------------------------------------------------------------------


@check(9, classifies)
def labels_of_any_type(subject: Subject) -> None:
    """Labels may be of any type: sorted they are `classes_`, and their names change no number."""
    for name, y, classes in _types_of_labels(subject):
        with _column_vector_allowed():
            fitted = subject.fit(y=y)
        require_equal(fitted.classes_.tolist(), classes, f"classes_ for labels of type {name}")
        subject.same(subject.read(fitted), f"probabilities for labels of type {name}")
        predicted = fitted.predict(subject.sample.X_new)
        require_equal(
            predicted.dtype, fitted.classes_.dtype, f"dtype of predictions for labels of type {name}"
        )
        require(
            set(predicted.tolist()) <= set(classes),
            f"predictions outside the classes for labels of type {name}",
        )


def _column_vector_allowed() -> Any:
    import warnings

    from sklearn.exceptions import DataConversionWarning

    return warnings.catch_warnings(action="ignore", category=DataConversionWarning)


@check(9, classifies)
def two_classes(subject: Subject) -> None:
    """Two classes, bool ones too: two columns of probabilities, one decision value, positive for the second class."""
    outputs = []
    for y in ([False, True], [0, 1], ["non", "oui"]):
        fitted = subject.fit(y=_two(subject, y))
        require_equal(fitted.classes_.tolist(), y, "classes_")
        outputs.append(fitted.predict_proba(subject.sample.X_new))
        require_equal(outputs[-1].shape, (len(subject.sample.X_new), 2), "shape of predict_proba")
        predicted = fitted.predict(subject.sample.X_new)
        require_equal(
            predicted.tolist(), [y[int(p > 0.5)] for p in outputs[-1][:, 1]], "predictions of two classes"
        )
        if hasattr(fitted, "decision_function"):
            decision = fitted.decision_function(subject.sample.X_new)
            require_equal(decision.shape, (len(subject.sample.X_new),), "shape of decision_function")
            require_equal(decision > 0, outputs[-1][:, 1] > 0.5, "sign of decision_function")
    subject.same(outputs[1], "probabilities for 0 and 1 against False and True", outputs[0])
    subject.same(outputs[2], "probabilities for texts against False and True", outputs[0])


def _two(subject: Subject, names: list[Any]) -> list[Any]:
    """Return targets of two classes."""
    return _renamed(subject, [names[0], names[1], names[1]])


@check(9, classifies, offers("predict_proba"))
def prediction_is_most_probable_class(subject: Subject) -> None:
    """`classes_[proba.argmax(1)] == predict`, rows sum to 1, float32; also for reloaded estimators and single rows."""
    X = subject.sample.X_new
    for fitted in (subject.fitted, pickle.loads(pickle.dumps(subject.fitted))):
        probability = fitted.predict_proba(X)
        require_equal(probability.dtype, np.dtype(np.float32), "dtype of predict_proba")
        require_equal(probability.shape, (len(X), len(fitted.classes_)), "shape of predict_proba")
        require(((probability >= 0) & (probability <= 1)).all(), "probabilities outside [0, 1]")
        require_close(
            probability.sum(axis=1), np.ones(len(X), np.float32), "sums of probabilities", tolerance=1e-5
        )
        require_equal(
            fitted.predict(X), fitted.classes_[probability.argmax(axis=1)], "predict against predict_proba"
        )
        require_equal(fitted.predict(X[:1]), fitted.predict(X)[:1], "the prediction of one document")
        if hasattr(fitted, "decision_function"):
            decision = fitted.decision_function(X)
            require_equal(decision.argmax(axis=1), probability.argmax(axis=1), "order of decision_function")


@check(9, classifies)
def one_class_raises(subject: Subject) -> None:
    """A single class raises ValueError with scikit-learn's own words and the class."""
    with require_raises(ValueError, "class", "facture"):
        subject.fit(y=["facture"] * len(subject.sample.X))


@check(9, classifies)
def bad_labels_raise(subject: Subject) -> None:
    """Missing, continuous, mixed or no labels raise; missing ones are listed."""
    y = list(subject.sample.y or [])
    for absent in (None, np.nan, pd.NA):
        holes = [*y[:3], absent, *y[4:]]
        for given in (holes, np.array(holes, dtype=object), pd.Series(holes, dtype=object)):
            with require_raises(ValueError, "3"):
                subject.fit(y=given)
    with require_raises(ValueError, "continuous"):
        subject.fit(y=np.linspace(0, 1, len(y)))
    with require_raises(ValueError, "nan"):
        subject.fit(y=np.array([0.0, 1.0, np.nan] * (len(y) // 3)))
    with require_raises((TypeError, ValueError)):
        subject.fit(y=[*y[:-1], 3])
    with require_raises(ValueError, "requires y"):
        subject.new().fit(subject.sample.X, None)


def _multilabel(subject: Subject) -> bool:
    tags = get_tags(subject.estimator).classifier_tags
    return tags is not None and bool(tags.multi_label)


@check(9, classifies, _multilabel)
def several_labels_a_document(subject: Subject) -> None:
    """An indicator matrix trains one sigmoid a label: (n, C) probabilities, predictions 0 and 1, cut at a half."""
    one_hot = np.array(pd.get_dummies(pd.Series(subject.sample.y)), dtype=int)
    one_hot[::4, 0] = 1
    for y in (one_hot, pd.DataFrame(one_hot, columns=["a", "b", "c"])):
        fitted = subject.fit(y=y)
        probability, predicted = (
            fitted.predict_proba(subject.sample.X_new),
            fitted.predict(subject.sample.X_new),
        )
        require_equal(probability.shape, (len(subject.sample.X_new), 3), "shape of predict_proba")
        require_equal(probability.dtype, np.dtype(np.float32), "dtype of predict_proba")
        require_equal(predicted, (probability > 0.5).astype(int), "predict against predict_proba")
        require_different(
            probability.sum(axis=1), np.ones(len(probability), np.float32), "sums of rows and 1"
        )


# -- 10. weights ---------------------------------------------------------------------------------------------------


@check(10, classifies, has("class_weight"), takes("sample_weight"))
def class_weight_is_a_sample_weight(subject: Subject) -> None:
    """`class_weight`, "balanced" or a dict, trains as the sample weights that scikit-learn computes for it."""
    y = _uneven(subject)
    first = sorted(set(y))[0]
    plain = subject.read(subject.fit(y=y))
    for class_weight in ("balanced", {first: 20.0}, {label: i + 1 for i, label in enumerate(sorted(set(y)))}):
        weights = compute_sample_weight(class_weight, y)
        by_class = subject.read(subject.fit(y=y, class_weight=class_weight))
        by_row = subject.read(subject.new().fit(subject.sample.X, y, sample_weight=weights))
        require_close(
            by_class, by_row, f"class_weight={class_weight!r} against its sample weights", tolerance=1e-5
        )
        require_different(by_class, plain, f"class_weight={class_weight!r} against none")


def _uneven(subject: Subject) -> list[Any]:
    """Return the targets with a third of the second class moved into the first."""
    y = list(subject.sample.y or [])
    return [y[0] if i in (1, 4) else label for i, label in enumerate(y)]


@check(10, classifies, has("class_weight"), takes("sample_weight"))
def class_weight_is_of_the_training_fold(subject: Subject) -> None:
    """In cross-validation "balanced" counts the classes of the training fold alone."""
    X, y = subject.sample.X, np.array(_uneven(subject))
    folds = list(
        KFold(2).split(X, y)
    )  # not stratified: the classes' shares must differ from those of the whole
    crossed = cross_val_predict(subject.new(class_weight="balanced"), X, y, cv=folds, method="predict_proba")
    for training, test in folds:
        weights = compute_sample_weight("balanced", y[training])
        fold = subject.new().fit([X[i] for i in training], y[training], sample_weight=weights)
        require_close(
            crossed[test], fold.predict_proba([X[i] for i in test]), "probabilities of a fold", tolerance=1e-5
        )


@check(10, classifies, has("class_weight", "early_stopping", "scoring"), takes("sample_weight"))
def class_weight_is_of_the_training_part(subject: Subject) -> None:
    """Documents held out for early stopping do not count in "balanced" either."""
    y = _uneven(subject)
    held_out: list[Any] = []

    def score(estimator: Any, X: Any, y: Any) -> float:
        held_out[:] = list(y)
        return 0.0

    stopping = subject.new(early_stopping=True, validation_fraction=0.34, scoring=score)
    balanced = subject.read(clone(stopping).set_params(class_weight="balanced").fit(subject.sample.X, y))
    training = Counter(y) - Counter(held_out)
    weights = [1 / training[label] for label in y]
    by_row = subject.read(clone(stopping).fit(subject.sample.X, y, sample_weight=weights))
    require_close(balanced, by_row, '"balanced" against weights of the training part', tolerance=1e-5)


@check(10, classifies, has("class_weight"))
def bad_class_weight_raises(subject: Subject) -> None:
    """A `class_weight` that is neither "balanced" nor a dict of known classes raises, and names it."""
    with require_raises(ValueError, "balanced"):
        subject.fit(class_weight="balance")
    with require_raises(ValueError, "autre"):
        subject.fit(class_weight={"autre": 2.0})


@check(10, takes("sample_weight"))
def equal_sample_weights_change_nothing(subject: Subject) -> None:
    """Weights of one equal no weights, to the last bit; the scale of the weights does not matter."""
    X, y = subject.sample.X, subject.sample.y
    for weight in (1.0, 4.0):
        output = subject.read(subject.new().fit(X, y, sample_weight=np.full(len(X), weight)))
        subject.same(output, f"output with all weights {weight:g}")
    uneven = np.linspace(0.5, 2.0, len(X))
    once, thrice = (
        subject.read(subject.new().fit(X, y, sample_weight=uneven * scale)) for scale in (1.0, 3.0)
    )
    require_close(once, thrice, "output with weights times 3", tolerance=1e-5)
    require_different(once, subject.expected, "output with uneven weights against equal ones")


@check(10, takes("sample_weight"), any_of(has("batch_size", "dropout", "attention_dropout")))
def zero_weight_drops_a_row(subject: Subject) -> None:
    """A row of weight zero has no say: its label does not matter, and leaving it out gives the same model."""
    X, y = list(subject.sample.X), list(subject.sample.y or [])
    weights = np.ones(len(X))
    weights[[2, 5]] = 0.0
    # one batch and no dropout, so that nothing but the loss depends on the rows
    whole = subject.new(batch_size=2 * len(X), dropout=0.0, attention_dropout=0.0)
    outputs = []
    for label in subject.sample.spare or (y[0], y[1]):
        other = [label if weight == 0 else kept for kept, weight in zip(y, weights, strict=True)]
        outputs.append(subject.read(whole.fit(X, other, sample_weight=weights)))
    subject.same(outputs[1], "output when only labels of weight zero differ", outputs[0])
    kept = [i for i in range(len(X)) if weights[i]]
    dropped = subject.read(whole.fit([X[i] for i in kept], [y[i] for i in kept]))
    require_close(outputs[0], dropped, "weight zero against leaving the row out", tolerance=1e-4)


@check(10, takes("sample_weight"))
def bad_sample_weight_raises(subject: Subject) -> None:
    """Weights of the wrong length, negative, not finite or all zero raise ValueError."""
    X, y = subject.sample.X, subject.sample.y
    n = len(X)
    for weights in (np.ones(n - 1), -np.ones(n), np.full(n, np.nan), np.zeros(n), np.ones((n, 2))):
        with require_raises(ValueError):
            subject.new().fit(X, y, sample_weight=weights)
