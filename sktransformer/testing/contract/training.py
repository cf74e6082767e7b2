"""What training promises: lines 19 and 20 of the contract."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted

from ._require import recorded, require, require_close, require_equal, require_raises
from .registry import check, classifies, has, learns, learns_targets, trains
from .subject import Subject


class ScriptedScore:
    """A scorer that follows a script, and notes what the estimator gave for the new documents each time."""

    def __init__(self, script: list[float], subject: Subject) -> None:
        self.script = script
        self.subject = subject
        self.outputs: list[np.ndarray[Any, Any]] = []

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Return the next score of the script."""
        require_equal(len(estimator.predict(X)), len(y), "predictions for the validation documents")
        self.outputs.append(self.subject.read(estimator))
        return self.script[len(self.outputs) - 1]


# -- 19. the best epoch --------------------------------------------------------------------------------------------


@check(19, learns_targets, has("early_stopping", "max_epochs", "n_iter_no_change", "scoring", "lr_schedule"))
def best_epoch_is_restored(subject: Subject) -> None:
    """With early stopping the weights of the best epoch are restored whole, and training ends when nothing improves."""
    score = ScriptedScore([0.1, 0.8, 0.3, 0.2, 0.9], subject)
    fitted = subject.fit(
        early_stopping=True,
        validation_fraction=0.34,
        max_epochs=5,
        n_iter_no_change=2,
        lr_schedule="constant",
        scoring=score,
    )
    require_equal(len(score.outputs), 4, "epochs until two in a row brought nothing")
    subject.same(subject.read(fitted), "output against that of the best epoch, the second", score.outputs[1])
    require(not np.array_equal(score.outputs[1], score.outputs[3]), "epochs 2 and 4 give the same output")
    require_equal(fitted.best_epoch_, 2, "best_epoch_")
    require_equal(fitted.history_["valid_score"].tolist(), [0.1, 0.8, 0.3, 0.2], "valid_score in history_")


@check(19, classifies, has("early_stopping", "scoring"))
def any_scorer_may_stop(subject: Subject) -> None:
    """`scoring` takes the names of scikit-learn's scorers; the score on record is theirs, on documents held out."""
    for scoring in ("f1_macro", "accuracy", "neg_log_loss", "roc_auc_ovr", None):
        fitted = subject.fit(early_stopping=True, validation_fraction=0.34, scoring=scoring)
        scores = fitted.history_["valid_score"].to_numpy(dtype=float)
        require(np.isfinite(scores).all(), f"scores of {scoring!r} are not finite: {scores}")
        low, high = (-np.inf, 0.0) if scoring == "neg_log_loss" else (0.0, 1.0)
        require(
            ((scores >= low) & (scores <= high)).all(), f"scores of {scoring!r} are out of range: {scores}"
        )
    with require_raises(ValueError, "accuracyy"):
        subject.fit(early_stopping=True, scoring="accuracyy")


@check(19, learns_targets, has("warm_start", "max_epochs"))
def warm_start_goes_on(subject: Subject) -> None:
    """`warm_start=True` goes on from the fitted weights, and only it does; other classes or outputs raise."""
    fitted = subject.fit(warm_start=True)
    subject.same(subject.read(fitted), "the first fit with warm_start=True")
    epochs = len(fitted.history_)
    subject.refit(fitted)
    require(
        not np.array_equal(subject.read(fitted), subject.expected),
        "a second fit with warm_start=True did nothing",
    )
    require_equal(fitted.history_["epoch"].tolist(), list(range(1, 2 * epochs + 1)), "epochs in history_")
    if subject.answers:  # one head fits all answers
        return
    with require_raises(ValueError, "warm_start"):
        y = list(subject.sample.y or [])
        subject.refit(
            fitted, y=[f"{label}2" for label in y] if subject.classifies else [[one, one] for one in y]
        )


# -- 20. runs that go wrong ----------------------------------------------------------------------------------------


@check(20, classifies, has("class_weight", "learning_rate", "max_epochs"))
def collapse_warns(subject: Subject) -> None:
    """A run that ends with one class for every document warns with ConvergenceWarning, which names the class."""
    only = sorted(set(subject.sample.y or []))[0]
    weight = {label: 1.0 if label == only else 1e-6 for label in subject.sample.y or []}
    with recorded(ConvergenceWarning) as messages:
        subject.fit(class_weight=weight, learning_rate=0.02, max_epochs=3)
    require_equal(len(messages), 1, f"convergence warnings ({messages})")
    require(only in messages[0], f"the warning does not name {only!r}: {messages[0]}")
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        subject.fit(learning_rate=0.01, max_epochs=12, batch_size=6)


@check(20, has("learning_rate", "max_epochs", "max_grad_norm"), trains)
def loss_that_is_no_number_stops(subject: Subject) -> None:
    """A loss that is no number stops with FloatingPointError, naming the step and what to try; nothing is fitted."""
    estimator = subject.new(learning_rate=1e30, max_grad_norm=None, warmup_ratio=0.0)
    with require_raises(FloatingPointError, "step", "learning_rate"):
        subject.refit(estimator)
    require(not hasattr(estimator, "history_"), "something was recorded of a fit that failed")
    if learns(subject):
        with require_raises(NotFittedError):
            check_is_fitted(estimator)
    again = subject.refit(estimator.set_params(**subject.estimator.get_params(deep=False)))
    require_close(
        subject.read(again), subject.expected, "output of a fit after one that failed", tolerance=0.0
    )


@check(20, has("learning_rate", "max_epochs", "batch_size", "warmup_ratio"))
def bad_training_parameters_raise(subject: Subject) -> None:
    """Parameters of the wrong kind raise TypeError, out of range ValueError, by name and before anything is loaded."""
    wrong: dict[str, list[tuple[Any, type[Exception] | tuple[type[Exception], ...]]]] = {
        "max_epochs": [(0, ValueError), (1.5, TypeError), ("3", TypeError)],
        "batch_size": [(0, ValueError), (None, TypeError), (True, TypeError)],
        "learning_rate": [(-1e-5, ValueError), ("1e-5", TypeError), (float("nan"), ValueError)],
        "warmup_ratio": [(1.5, ValueError), (-0.1, ValueError)],
        "weight_decay": [(-1, ValueError), ("0", TypeError)],
        "layer_decay": [(0.0, ValueError), (1.2, ValueError)],
        "validation_fraction": [(0.0, ValueError), (1.0, ValueError), ("0.1", TypeError)],
        "n_iter_no_change": [(0, ValueError), (2.0, TypeError)],
        "max_grad_norm": [(0, ValueError), ("1", TypeError)],
        "label_smoothing": [(1.0, ValueError), (-0.1, ValueError), ("0", TypeError)],
        "dropout": [(1.0, ValueError), ("0.1", TypeError)],
        "attention_dropout": [(-0.5, ValueError)],
        "early_stopping": [("yes", TypeError), (1, TypeError)],
        "warm_start": [(None, TypeError)],
        "lr_schedule": [("linaer", ValueError)],
        "freeze": [("embedings", ValueError), (True, (TypeError, ValueError))],
    }
    for name, values in wrong.items():
        if name in subject.estimator.get_params(deep=False):
            for value, kind in values:
                with require_raises(kind, name):
                    subject.fit(**{name: value, "model": "/no/such/folder"})
