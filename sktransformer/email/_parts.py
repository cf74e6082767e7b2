"""The classifiers of a language router: which language gets one, fitting each, one table of their answers."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from .._engine.errors import did_you_mean, warn_user
from .._engine.validation import check_choice, check_number, check_one_kind, check_scalars, label_array
from ._identify import KNOWN
from ._rows import Rows, take

FALLBACK = "fallback"


class Plan(NamedTuple):
    """Who learns from what."""

    own: dict[str, Any]
    """The unfitted classifier of each language that gets one."""
    routes: NDArray[np.object_]
    """For each row the language whose classifier learns from it, or "fallback"."""
    default: str
    """Where texts in other languages go."""


def all_have(method: str) -> Callable[[Any], bool]:
    """Make the check of whether all classifiers of a router have a method, before and after its fit."""

    def check(router: Any) -> bool:
        fitted = getattr(router, "estimators_", None)
        if fitted is None:
            parts = list(router._parts().values())
            return bool(parts) and all(hasattr(part, method) for part in parts)
        parts = [part for part in (*fitted.values(), router.fallback_) if part is not None]
        return all(hasattr(part, method) or len(part.classes_) == 1 for part in parts)

    return check


def check_parameters(router: Any, parts: Mapping[str, Any]) -> None:
    """Raise unless the parameters of a router are of the right kind and in range."""
    check_number("min_words", router.min_words, low=0, integer=True)
    check_number("min_confidence", router.min_confidence, low=0, high=1)
    check_number("min_samples", router.min_samples, low=1, integer=True)
    check_choice("missing", router.missing, ("error", "empty"))
    if isinstance(router.languages, str):
        raise TypeError(
            f"languages must be a sequence of codes, got {router.languages!r}; pass a list of them."
        )
    if isinstance(router.estimators, Mapping):
        _check_languages(router.estimators)
    for name, part in parts.items():
        if isinstance(part, type) or not hasattr(part, "fit"):
            raise TypeError(f"the estimator of {name!r} must be a classifier (an instance), got {part!r}.")


def _check_languages(estimators: Mapping[Any, Any]) -> None:
    if not estimators:
        raise ValueError("estimators is an empty dict; pass a classifier a language: {'fr': ..., 'en': ...}.")
    for language, part in estimators.items():
        if not isinstance(language, str):
            raise TypeError(
                f"estimators has the key {language!r}; its keys must be codes of languages: {{'fr': ..., 'en': ...}}."
            )
        if part is None:
            raise TypeError(f"the estimator of {language!r} must be a classifier (an instance), got None.")


def default_language(router: Any) -> str:
    """The language of undecided texts.

    Raises
    ------
    ValueError
        If nobody would take them.
    """
    by_language = isinstance(router.estimators, Mapping)
    if router.default is None:
        first = router.estimators if by_language else router.languages
        return str(next(iter(KNOWN if first is None else first), KNOWN[0]))
    if by_language and router.default not in router.estimators and router.fallback is None:
        raise ValueError(
            f"default={router.default!r} has no estimator, and there is no fallback; choose one of "
            f"{sorted(router.estimators)}.{did_you_mean(str(router.default), router.estimators)}"
        )
    return str(router.default)


def check_labels(y: Any, n_rows: int, name: str) -> NDArray[Any]:
    """Read one label a row.

    Raises
    ------
    TypeError
        If labels are collections, or of several kinds.
    ValueError
        If there are no rows, not as many labels, missing ones, or fewer than two different ones.
    """
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None; pass one label a text.")
    if not n_rows:
        raise ValueError(f"Found array with 0 sample(s) while a minimum of 1 is required by {name}.")
    labels: NDArray[Any] = column_or_1d(label_array(y), warn=True)
    check_consistent_length(range(n_rows), labels)
    absent = [row for row, label in enumerate(labels.tolist()) if _is_missing(label)]
    if absent:
        raise ValueError(
            f"y has {len(absent)} missing label(s) (None, nan), the first in row {absent[0]}; drop those rows."
        )
    if labels.dtype == object:
        check_scalars(labels)
        check_one_kind(labels)
        labels = np.array(labels.tolist())
    check_classification_targets(labels)
    classes = np.unique(labels)
    if len(classes) < 2:
        raise ValueError(
            "This solver needs samples of at least 2 classes in the data, but the data contains only one class: "
            f"{classes.tolist()[0]!r}"
        )
    return labels


def _is_missing(label: Any) -> bool:
    # NaN differs from itself; comparing pandas' NA gives NA again.
    return label is None or type(label).__name__ == "NAType" or bool(label != label)


def plan_routes(router: Any, default: str, languages: NDArray[np.object_], y: NDArray[Any]) -> Plan:
    """Decide which languages get a classifier, and who learns from each row.

    Raises
    ------
    ValueError
        If texts are in a language without a classifier, and there is no fallback.
    """
    counts = Counter(languages.tolist())
    if isinstance(router.estimators, Mapping):
        own = {language: part for language, part in router.estimators.items() if counts[language]}
    else:
        own = {language: router.estimators for language, n in counts.items() if n >= router.min_samples}
        if router.estimators is None:
            own = {}
        elif not own and router.fallback is None:
            own = {_most_frequent(counts, counts): router.estimators}
    if router.fallback is not None:  # a language with one label learns nothing from its own texts
        own = {name: part for name, part in own.items() if len(np.unique(y[languages == name])) > 1}
    strays = sorted(set(counts) - set(own))
    if strays and router.fallback is None and isinstance(router.estimators, Mapping):
        raise ValueError(_without_estimator(router.estimators, counts, strays))
    home = FALLBACK
    if router.fallback is None:
        home = default if default in own else _most_frequent(counts, own)
    routes = np.empty(len(languages), dtype=object)
    routes[:] = [language if language in own else home for language in languages.tolist()]
    return Plan(dict(sorted(own.items())), routes, home)


def _most_frequent(counts: Counter[str], languages: Iterable[str]) -> str:
    return max(languages, key=lambda language: (counts[language], language))


def _without_estimator(estimators: Mapping[str, Any], counts: Counter[str], strays: list[str]) -> str:
    found = ", ".join(f"{language} ({counts[language]} text(s))" for language in strays)
    return (
        f"X holds texts in {len(strays)} language(s) without an estimator: {found}; there are estimators for "
        f"{sorted(estimators)}. Add an estimator for each, pass fallback=... for all others, restrict the "
        f"guesses to languages={sorted(estimators)}, or leave those texts out (identify(X) tells which they are)."
    )


def count_routes(
    languages: NDArray[np.object_], undecided: NDArray[np.bool_], routes: NDArray[np.object_]
) -> list[tuple[str, int, int, str]]:
    """Count what went where: language, texts, undecided ones among them, and whose classifier takes them."""
    rows = []
    for language in sorted(set(languages.tolist())):
        here = languages == language
        rows.append((language, int(here.sum()), int(undecided[here].sum()), str(routes[here][0])))
    return rows


def fit_one(
    part: Any,
    name: str,
    rows: Rows,
    y: NDArray[Any],
    places: NDArray[np.intp],
    params: dict[str, dict[str, Any]],
) -> Any:
    """Fit a clone of one classifier on some of the rows."""
    labels = y[places]
    if len(np.unique(labels)) == 1:
        warn_user(
            f"All {len(places)} text(s) of {name!r} have the label {labels.tolist()[0]!r}; every text of it will get "
            "that label. Add examples, or pass fallback=... to have them classified by another estimator.",
            UserWarning,
        )
        return DummyClassifier(strategy="prior").fit(np.zeros((len(places), 1)), labels)
    given = params[name] if name in params else params["estimators"]
    own = {
        key: take(value, places) if _one_a_row(value, len(rows)) else value for key, value in given.items()
    }
    return clone(part).fit(rows.take(places), labels, **own)


def _one_a_row(value: Any, n_rows: int) -> bool:
    if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__len__"):
        return False
    return getattr(value, "ndim", 1) > 0 and len(value) == n_rows


def parameters_of(estimators: Mapping[str, Any]) -> dict[str, Any]:
    """Classifiers and their parameters, ``fr`` and ``fr__C``."""
    named: dict[str, Any] = dict(estimators)
    for name, part in estimators.items():
        if hasattr(part, "get_params") and not isinstance(part, type):
            named.update({f"{name}__{key}": value for key, value in part.get_params(deep=True).items()})
    return named


def scores_of(part: Any, X: Any) -> NDArray[Any]:
    """The scores of one classifier, a column a class also where it has two classes or one."""
    if len(part.classes_) == 1:
        return np.zeros((len(X), 1))
    scores: NDArray[Any] = np.asarray(part.decision_function(X))
    return np.column_stack([-scores, scores]) if scores.ndim == 1 else scores


def align(
    classes: NDArray[Any],
    n_rows: int,
    parts: Iterable[tuple[Any, NDArray[np.intp], NDArray[Any]]],
    *,
    absent: float | None,
) -> NDArray[Any]:
    """Put the answers of several classifiers into one table.

    Parameters
    ----------
    classes : ndarray
        The labels of the columns, sorted.
    n_rows : int
        The number of rows.
    parts : iterable of (classifier, places, answers)
        Fitted classifiers, the rows they answered, and their answers, a column a class of theirs.
    absent : float or None
        Value of classes that a classifier does not know; None for 1 below the lowest of the row.

    Returns
    -------
    ndarray of shape (n_rows, n_classes)
        The answers.
    """
    parts = list(parts)
    kinds = [answers.dtype for _, _, answers in parts]
    table = np.zeros((n_rows, len(classes)), dtype=np.result_type(*kinds) if kinds else np.float64)
    for part, places, answers in parts:
        table[places] = answers.min(axis=1, keepdims=True) - 1 if absent is None else absent
        table[np.ix_(places, np.searchsorted(classes, part.classes_))] = answers
    return table
