"""Numbers do not depend on how the work is cut: lines 11 to 13 of the contract."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._engine.errors import TruncationWarning
from ._require import recorded, require, require_close, require_different, require_equal, require_raises
from .registry import check, classifies, has, reads_texts, trains
from .subject import Subject

TOLERANCE = 1e-5
WORDS = 400  # of a document that is longer than any tiny model reads


def long_text(start: str = "facture", end: str = "retard", middle: str = "chat") -> str:
    """Return a text that is cut everywhere, with words of its own at both ends and in the middle."""
    half = " ".join(["mot"] * (WORDS // 2))
    return f"{start} {half} {middle} {half} {end}"


# -- 11. cuts ------------------------------------------------------------------------------------------------------


@check(11)
def order_does_not_matter(subject: Subject) -> None:
    """Documents in another order give the same rows in that order."""
    order = np.random.default_rng(0).permutation(len(subject.sample.X_new))
    output = subject.read(subject.fitted, [subject.sample.X_new[i] for i in order])
    require_close(output, subject.expected[order], "rows in another order", tolerance=TOLERANCE)


@check(11)
def neighbours_do_not_matter(subject: Subject) -> None:
    """A document gives the same row alone, twice in a call, and beside longer ones."""
    X = subject.sample.X_new
    for i, document in enumerate(X):
        alone = subject.read(subject.fitted, [document])
        require_close(alone, subject.expected[i : i + 1], f"document {i} alone", tolerance=TOLERANCE)
    twice = subject.read(subject.fitted, [*X, *X])
    expected = np.concatenate([subject.expected, subject.expected])
    require_close(twice, expected, "documents that come twice", tolerance=TOLERANCE)


@check(11)
def repetition_does_not_matter(subject: Subject) -> None:
    """The same call gives the same numbers again, to the last bit."""
    for _ in range(3):
        subject.same(subject.read(subject.fitted), "the same call again")


@check(11, has("token_budget"))
def token_budget_does_not_matter(subject: Subject) -> None:
    """Reading in batches of one token, of a few, or of all gives the same rows."""
    fitted = subject.fit()
    for budget in (1, 24, 100_000):
        output = subject.read(fitted.set_params(token_budget=budget))
        require_close(output, subject.expected, f"output with token_budget={budget}", tolerance=TOLERANCE)
    wrong: list[tuple[Any, type[Exception]]]
    wrong = [(0, ValueError), (-5, ValueError), (2.5, TypeError), ("much", TypeError)]
    for value, kind in wrong:
        with require_raises(kind, "token_budget"):
            subject.fit(token_budget=value)


@check(11, has("token_budget", "dropout", "attention_dropout"))
def token_budget_does_not_change_training(subject: Subject) -> None:
    """Training in micro-batches of few tokens gives the weights of training in whole batches."""
    parameters: dict[str, Any] = {"dropout": 0.0, "attention_dropout": 0.0}
    whole = subject.read(subject.fit(token_budget=100_000, **parameters))
    for budget in (1, 40):
        cut = subject.read(subject.fit(token_budget=budget, **parameters))
        require_close(cut, whole, f"output after training with token_budget={budget}", tolerance=1e-4)


@check(11, has("batch_size"))
def batch_size_does_not_change_reading(subject: Subject) -> None:
    """`batch_size` belongs to training: with another one a fitted estimator gives the same rows."""
    fitted = subject.fit()
    for size in (1, 3, 1000):
        output = subject.read(fitted.set_params(batch_size=size))
        require_close(output, subject.expected, f"output with batch_size={size}", tolerance=TOLERANCE)


# -- 12. rows ------------------------------------------------------------------------------------------------------


@check(12, reads_texts)
def one_row_a_document(subject: Subject) -> None:
    """Each document has one row, however long it is."""
    X = [long_text(), *subject.sample.X_new, long_text("colis"), ""]
    with recorded(TruncationWarning):
        output = subject.read(subject.fitted, X)
        require_equal(len(output), len(X), "rows")
        if subject.classifies:
            predicted = subject.fitted.predict(X)
            require_equal(
                predicted, subject.fitted.classes_[output.argmax(axis=1)], "predictions of long documents"
            )
    require_close(
        output[1 : 1 + len(subject.expected)],
        subject.expected,
        "rows beside long documents",
        tolerance=TOLERANCE,
    )


# -- 13. truncation ------------------------------------------------------------------------------------------------


@check(13, has("truncation"))
def truncation_is_counted(subject: Subject) -> None:
    """Cut documents are counted in one warning a call, in `fit` and in reading; without any there is none."""
    X = [long_text(), *subject.sample.X_new, long_text("colis")]
    calls: dict[str, Callable[[], Any]] = {f"of {len(X)}": lambda: subject.read(subject.fitted, X)}
    if has("max_epochs")(subject) and trains(subject):  # else `fit` reads no document to its end
        training = [long_text(), long_text("colis"), *subject.sample.X[2:]]
        calls[f"of {len(training)}"] = lambda: subject.fit(training)
    for total, call in calls.items():
        with recorded() as messages:
            call()
        cut = [message for message in messages if "cut" in message]
        require_equal(len(cut), 1, f"warnings about truncation ({messages})")
        require("2 " + total in cut[0], f'the warning lacks "2 {total}": {cut[0]}')
    with recorded(TruncationWarning) as messages:
        subject.read(subject.fitted)
    require(not messages, f"a warning although nothing was cut: {messages}")


@check(13, has("truncation", "max_length"))
def truncation_keeps_what_it_says(subject: Subject) -> None:
    """The truncation "head" keeps the beginning, "tail" the end, "head_tail" both and not the middle."""
    kept = {"head": (True, False), "tail": (False, True), "head_tail": (True, True)}
    X = [long_text(), long_text(start="panne"), long_text(end="panne"), long_text(middle="panne")]
    for truncation, (head, tail) in kept.items():
        with recorded(TruncationWarning):
            fitted = subject.fit(truncation=truncation, max_length=16)
            base, *changed = subject.read(fitted, X)
        for word, counts, row in zip(("first", "last", "middle"), (head, tail, False), changed, strict=True):
            compare = require_different if counts else _require_same_row
            compare(
                row, base, f"the row of a document whose {word} word differs, with truncation={truncation!r}"
            )


def _require_same_row(actual: Any, expected: Any, what: str) -> None:
    require_close(actual, expected, what, tolerance=TOLERANCE)


@check(13, has("truncation", "max_length"))
def a_document_that_just_fits_is_whole(subject: Subject) -> None:
    """A document of exactly the longest length is not cut, whatever the truncation; one token more is."""
    longest = int(subject.fitted.max_length_)
    words = next(n for n in range(1, WORDS) if _tokens(subject, n) > longest) - 1
    for n, cut in ((words, False), (words + 1, True)):
        with recorded(TruncationWarning) as messages:
            outputs = [
                subject.read(subject.fit(truncation=truncation), [_text(n)])
                for truncation in ("head", "tail")
            ]
        require_equal(
            bool(messages), cut, f"a warning for a document of {_tokens(subject, n)} tokens, limit {longest}"
        )
        if not cut:
            require_close(outputs[1], outputs[0], "a document that fits, by truncation", tolerance=TOLERANCE)


def _text(n: int) -> str:
    return " ".join(["le"] * n)


def _tokens(subject: Subject, n: int) -> int:
    tokenizer = subject.fitted.tokenizer_
    return len(tokenizer.tokenize(_text(n))) + int(tokenizer.num_special_tokens_to_add())


@check(13, has("truncation"))
def unknown_truncation_raises(subject: Subject) -> None:
    """A misspelt `truncation` raises ValueError before anything is loaded, and the nearest name is offered."""
    with require_raises(ValueError, "haed", "did you mean 'head'"):
        subject.fit(truncation="haed", model="/no/such/folder")


@check(13, has("max_length"))
def impossible_max_length_raises(subject: Subject) -> None:
    """A `max_length` that is no positive whole number, or leaves no room for a token, raises."""
    for max_length in (0, -1, 2.5, "many", None, True, 1):
        with require_raises((TypeError, ValueError), "max_length"):
            subject.fit(max_length=max_length)


@check(11, classifies, has("class_weight", "token_budget", "max_epochs"))
def loss_in_history_is_that_of_whole_batches(subject: Subject) -> None:
    """The training loss on record does not depend on the micro-batches either."""
    losses = []
    for budget in (1, 100_000):
        fitted = subject.fit(token_budget=budget, dropout=0.0, attention_dropout=0.0)
        losses.append(fitted.history_["train_loss"].to_numpy(dtype=float))
    require_close(losses[0], losses[1], "training losses by token_budget", tolerance=1e-4)
