"""Estimators with a model and with one fault each, by the check that must find it."""

import time
import warnings
from collections import Counter
from contextlib import suppress
from itertools import count
from unittest import mock

import numpy as np
import torch

from sktransformer import TransformerClassifier, TransformerEmbedder
from sktransformer._engine.checkpoints.bundle import versions
from sktransformer._engine.errors import NonFiniteLossError
from sktransformer._engine.text.windows import Cut
from sktransformer._engine.training.callbacks import ValidationScoring
from sktransformer.testing import tiny_checkpoint

STEPS = count()
KEPT = []
SETTINGS = {
    TransformerClassifier: {"max_epochs": 2, "batch_size": 8, "learning_rate": 5e-3, "random_state": 0},
    TransformerEmbedder: {},
}
BERT = str(tiny_checkpoint("bert"))


def broken(base, **members):
    """Return an instance of a subclass of `base`, which can be pickled by name."""
    name = f"Broken{base.__name__}{next(STEPS)}"
    globals()[name] = type(name, (base,), {**members, "__module__": __name__})
    return globals()[name](BERT, **SETTINGS[base])


def fit_of(base, before, then):
    """Return a `fit` with the signature of `base` that does something before and after."""

    def fit(self, X, y=None, sample_weight=None):
        given = (X, y) if base is TransformerEmbedder else (X, y, sample_weight)
        parameters = self.get_params(deep=False)
        try:
            self.set_params(**{name: change(self) for name, change in before.items()})
            base.fit(self, *given)
        finally:
            self.set_params(**parameters)
        then(self)
        return self

    return fit


def training_with(base, **changes):
    """Return an estimator that fits with other parameters than its own."""
    return broken(base, fit=fit_of(base, changes, lambda self: None))


def afterwards(base, then, **members):
    """Return an estimator that does something else when it is fitted."""
    return broken(base, fit=fit_of(base, {}, then), **members)


def reading(base, change):
    """Return an estimator whose output is changed."""
    name = "transform" if base is TransformerEmbedder else "predict_proba"

    def read(self, X):
        return change(self, getattr(base, name)(self, X))

    read.__name__ = name
    return broken(base, **{name: read})


def cutting(cut):
    """Return an estimator that cuts documents in its own way."""
    return broken(
        TransformerEmbedder, _cut=lambda self, limit=None: cut(self, min(limit or 64, self.max_length))
    )


def interrupted(self, X, y, sample_weight=None):
    self.started_ = True
    return TransformerClassifier.fit(self, X, y, sample_weight)


def unguarded(self, X, y, sample_weight=None):
    """Fit with a seed that all threads write."""
    torch.manual_seed(0)
    time.sleep(0.05)
    before, self.random_state = self.random_state, int(torch.randint(10**6, (1,)))
    try:
        return TransformerClassifier.fit(self, X, y, sample_weight)
    finally:
        self.random_state = before


def weighted(self, X, y, sample_weight=None):
    """Take a weight of zero for a small one."""
    weights = None if sample_weight is None else np.maximum(sample_weight, 0.3)
    return TransformerClassifier.fit(self, X, y, weights)


def silent(self, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return TransformerEmbedder.transform(self, X)


def silent_fit(self, X, y, sample_weight=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return TransformerClassifier.fit(self, X, y, sample_weight)


def with_last_weights(self, X, y, sample_weight=None):
    with mock.patch.object(ValidationScoring, "restore"):
        return TransformerClassifier.fit(self, X, y, sample_weight)


def swallowing(self, X, y, sample_weight=None):
    with suppress(NonFiniteLossError):
        TransformerClassifier.fit(self, X, y, sample_weight)
    return self


def of_all_rows(self, X, y, sample_weight=None):
    """Weigh classes by all rows, those held out too."""
    before = self.class_weight
    if before == "balanced":
        self.class_weight = {label: len(y) / (3 * n) for label, n in Counter(y).items()}
    try:
        return TransformerClassifier.fit(self, X, y, sample_weight)
    finally:
        self.class_weight = before


def of_a_whole_inbox(self, X, y, sample_weight=None):
    """Weigh classes as they are in all folds together."""
    before = self.class_weight
    if before == "balanced":
        self.class_weight = dict(zip(sorted(set(y)), (0.75, 1.5, 1.0), strict=True))
    try:
        return TransformerClassifier.fit(self, X, y, sample_weight)
    finally:
        self.class_weight = before


def twice_the_size(self):
    state = TransformerEmbedder.__getstate__(self)
    weights = state.get("bundle_", {}).get("weights", {})
    return {**state, "copy_": {name: array.copy() for name, array in weights.items()}}


def of_this_version(self, state):
    state["bundle_"]["versions"].update(versions())
    TransformerEmbedder.__setstate__(self, state)


def shifted(self, X):
    return TransformerEmbedder.transform(self, X) + np.float32(self.shift_)


def with_any_missing(self, X, y=None):
    before = self.missing
    try:
        self.missing = "empty" if self.missing != "error" else "error"
        return TransformerEmbedder.fit(self, X)
    finally:
        self.missing = before


C, E = TransformerClassifier, TransformerEmbedder

FAULTS = {
    "models_of_a_grid_differ": training_with(E, model=lambda self: BERT),
    "another_seed_other_numbers": training_with(C, random_state=lambda self: 0),
    "same_seed_same_numbers": training_with(C, random_state=lambda self: next(STEPS)),
    "fits_in_threads_equal_serial_ones": broken(C, fit=unguarded),
    "failed_fit_leaves_nothing": broken(C, fit=interrupted),
    "pairs_and_single_texts_do_not_mix": broken(E, _check_pairs=lambda self, documents: None),
    "other_tables_become_text": afterwards(E, lambda self: vars(self).pop("feature_names_in_", None)),
    "missing_texts_may_be_empty": broken(E, fit=with_any_missing),
    "several_labels_a_document": reading(C, lambda self, out: out / out.sum(axis=1, keepdims=True)),
    "class_weight_is_a_sample_weight": training_with(C, class_weight=lambda self: None),
    "class_weight_is_of_the_training_fold": broken(C, fit=of_a_whole_inbox),
    "class_weight_is_of_the_training_part": broken(C, fit=of_all_rows),
    "bad_class_weight_raises": training_with(C, class_weight=lambda self: None),
    "zero_weight_drops_a_row": broken(C, fit=weighted),
    "token_budget_does_not_matter": reading(E, lambda self, out: out + np.float32(self.token_budget == 1)),
    "token_budget_does_not_change_training": training_with(
        C, learning_rate=lambda self: self.learning_rate * (1.2 if self.token_budget == 1 else 1.0)
    ),
    "batch_size_does_not_change_reading": reading(
        C, lambda self, out: np.roll(out, self.batch_size % 3, axis=1)
    ),
    "loss_in_history_is_that_of_whole_batches": afterwards(
        C,
        lambda self: self.history_.update(
            self.history_[["train_loss"]] * (2 if self.token_budget == 1 else 1)
        ),
    ),
    "truncation_is_counted": broken(E, transform=silent),
    "truncation_keeps_what_it_says": cutting(lambda self, length: Cut(length, "head", 128)),
    "a_document_that_just_fits_is_whole": cutting(lambda self, length: Cut(length - 1, self.truncation, 128)),
    "unknown_truncation_raises": cutting(
        lambda self, length: Cut(length, self.truncation if self.truncation == "tail" else "head", 128)
    ),
    "impossible_max_length_raises": training_with(E, max_length=lambda self: 64),
    "fits_leave_no_memory": afterwards(E, lambda self: KEPT.append(self.model_)),
    "readings_leave_no_memory": reading(E, lambda self, out: (KEPT.append(torch.from_numpy(out)), out)[1]),
    "files_are_small": broken(E, __getstate__=twice_the_size),
    "files_tell_their_versions": broken(E, __setstate__=of_this_version),
    "automatic_device_and_precision": training_with(E, precision=lambda self: "float32"),
    "bfloat16_stays_close": reading(E, lambda self, out: out * np.float32(2 - (self.precision == "float32"))),
    "device_is_checked": training_with(E, device=lambda self: "cpu"),
    "best_epoch_is_restored": broken(C, fit=with_last_weights),
    "any_scorer_may_stop": afterwards(C, lambda self: self.history_.insert(0, "valid_score", np.nan, True)),
    "warm_start_goes_on": training_with(C, warm_start=lambda self: False),
    "collapse_warns": broken(C, fit=silent_fit),
    "loss_that_is_no_number_stops": broken(C, fit=swallowing),
    "bad_training_parameters_raise": broken(C, _validate_training=lambda self: None),
    "grid_search": afterwards(E, lambda self: setattr(self, "shift_", next(STEPS)), transform=shifted),
}
