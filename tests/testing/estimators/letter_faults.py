"""Estimators of letters with one fault each, by the check that must find it."""

import random
import time
from itertools import count

import letters
import numpy as np
import pandas as pd
from letters import LetterClassifier, LetterRegressor, Letters
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin

STEPS = count()


def broken(base, **members):
    """Return an instance of a subclass of `base`, which can be pickled by name."""
    name = f"Broken{base.__name__}{next(STEPS)}"
    globals()[name] = type(name, (base,), {**members, "__module__": __name__})
    return globals()[name]()


def drifting(base):
    """Return an estimator that learns something else in each fit."""

    def fit(self, X, y=None, **parameters):
        super(type(self), self).fit(X, y, **parameters)
        if base is Letters:
            self.mean_ = self.mean_ + next(STEPS)
        else:
            self.linear_.coef_ *= 1 + 0.1 * next(STEPS)
        return self

    return broken(base, fit=fit)


def fitting(base, before):
    """Return an estimator whose `fit` does something else first; what that returns replaces X and y."""

    def fit(self, X, y=None, **parameters):
        changed = before(self, X, y)
        return super(type(self), self).fit(*(changed or (X, y)), **parameters)

    return broken(base, fit=fit)


def reading(base, change, method=None):
    """Return an estimator whose output is changed."""
    name = method or ("transform" if base is Letters else "predict_proba")

    def read(self, X):
        X = list(X) if isinstance(X, (map, zip)) or hasattr(X, "send") else X
        return change(self, X, getattr(base, name)(self, X))

    read.__name__ = name  # scikit-learn looks at it
    return broken(base, **{name: read})


def receiving(base, change):
    """Return an estimator that changes its documents before it fits on or reads them."""
    name = "transform" if base is Letters else "predict_proba"

    def fit(self, X, y=None, **parameters):
        return super(type(self), self).fit(change(X), y, **parameters)

    def read(self, X):
        return getattr(base, name)(self, change(X))

    read.__name__ = name
    return broken(base, fit=fit, **{name: read})


def sorted_by_label(X):
    return X.sort_index() if isinstance(X, pd.Series) else X


def first_column(kind):
    def change(X):
        if not isinstance(X, kind):
            return X
        if isinstance(X, pd.DataFrame):
            return X.iloc[:, 0]
        return (
            X[:, 0] if isinstance(X, np.ndarray) else [row[0] if isinstance(row, tuple) else row for row in X]
        )

    return change


def filled(X):
    return (
        ["" if pd.isna(text) else text for text in X] if isinstance(X, (list, np.ndarray, pd.Series)) else X
    )


class RightTransformer(BaseEstimator, TransformerMixin):
    fit, transform = Letters.fit, Letters.transform


class RightClassifier(BaseEstimator, ClassifierMixin):
    fit, predict_proba = LetterClassifier.fit, LetterClassifier.predict_proba


class RightRegressor(BaseEstimator, RegressorMixin):
    fit, predict = LetterRegressor.fit, LetterRegressor.predict


def sleepy(self, deep=True):
    time.sleep(0.002)
    return super(type(self), self).get_params(deep)


def lenient(self, **parameters):
    for name, value in parameters.items():
        setattr(self, name, value)
    return self


def opening(self, size=8):
    self.size, self.table = size, {}


def seed_globally(self, X, y):
    np.random.seed(0)  # noqa: NPY002 - the fault
    time.sleep(0.02)
    self.size = 8 + int(np.random.randint(1000) * 0)  # noqa: NPY002
    self.draw_ = np.random.rand()  # noqa: NPY002


def remember_nothing(self):
    self.mean_ = self.mean_ * 2
    return BaseEstimator.__getstate__(self)


def reset(self, state):
    BaseEstimator.__setstate__(self, {**state, "mean_": state["mean_"] * 0})


def named_after_itself(self, input_features=None):
    return np.array([f"{id(self)}_{i}" for i in range(self.size)])


def one_class(self, X, y, sample_weight=None):
    if len(set(y)) > 1:
        return LetterClassifier.fit(self, X, y, sample_weight)
    self.classes_ = np.array(sorted(set(y)))
    return self


def without_missing(self, X, y):
    if y is not None and any(pd.isna(y)):
        kept = [i for i, label in enumerate(y) if not pd.isna(label)]
        return [X[i] for i in kept], [list(y)[i] for i in kept]
    return None


def shorter(self, X, y):
    return list(X)[: len(y)], list(y)[: len(X)]


def positive(self, sample_weight, n):
    weights = np.abs(np.resize(np.asarray(sample_weight, dtype=float), n)) + 1e-6
    return np.nan_to_num(weights, nan=1.0)


def huge_scale(self, X, out):
    longest = max((len(str(text)) for text in X), default=1) if isinstance(X, list) else 1
    return out + np.float32(longest > 1000)


FAULTS = {
    "clone_is_cheap": broken(Letters, get_params=sleepy),
    "parameters_round_trip": broken(Letters, set_params=lenient),
    "constructor_only_assigns": broken(Letters, __init__=opening),
    "classifier_mixin_stands_left": RightClassifier(),
    "transformer_mixin_stands_left": RightTransformer(),
    "same_seed_same_numbers": drifting(Letters),
    "global_random_state_is_untouched": reading(Letters, lambda self, X, out: (random.random(), out)[1]),
    "fit_leaves_parameters_alone": fitting(Letters, lambda self, X, y: setattr(self, "size", self.size + 1)),
    "inputs_are_not_mutated": fitting(Letters, lambda self, X, y: X.sort() if isinstance(X, list) else None),
    "failed_fit_leaves_nothing": fitting(Letters, lambda self, X, y: setattr(self, "seen_", True)),
    "failed_refit_leaves_the_first_fit": fitting(
        Letters, lambda self, X, y: setattr(self, "mean_", np.zeros(8))
    ),
    "containers_read_alike": reading(
        Letters, lambda self, X, out: out + isinstance(X, np.ndarray) if isinstance(X, np.ndarray) else out
    ),
    "containers_fit_alike": fitting(
        Letters, lambda self, X, y: (X[:1], y) if isinstance(X, pd.DataFrame) else None
    ),
    "rows_are_taken_by_position": receiving(Letters, sorted_by_label),
    "pairs_read_alike": receiving(Letters, first_column(np.ndarray)),
    "both_texts_of_a_pair_count": receiving(Letters, first_column(list)),
    "bare_string_raises": receiving(Letters, lambda X: [X] if isinstance(X, str) else X),
    "missing_texts_are_listed": receiving(Letters, filled),
    "other_rows_raise": receiving(Letters, lambda X: list(map(str, X)) if isinstance(X, list) else X),
    "empty_input": reading(Letters, lambda self, X, out: out if len(out) else np.zeros(0, np.float32)),
    "unequal_lengths_raise": fitting(LetterClassifier, shorter),
    "strange_texts_are_read": broken(
        Letters, _row=lambda self, text: Letters._row(self, text) / (text != "")
    ),
    "megabyte_of_text_is_read": reading(Letters, huge_scale),
    "labels_of_any_type": fitting(
        LetterClassifier, lambda self, X, y: (X, ["z" if label == "" else label for label in y])
    ),
    "two_classes": broken(LetterClassifier, decision_function=LetterClassifier.predict_proba),
    "prediction_is_most_probable_class": broken(
        LetterClassifier, predict=lambda self, X: self.classes_[self.predict_proba(X).argmin(axis=1)]
    ),
    "one_class_raises": broken(LetterClassifier, fit=one_class),
    "bad_labels_raise": fitting(LetterClassifier, without_missing),
    "equal_sample_weights_change_nothing": broken(
        LetterClassifier, _weights=lambda self, sample_weight, n: np.asarray(sample_weight)
    ),
    "bad_sample_weight_raises": broken(LetterClassifier, _weights=positive),
    "order_does_not_matter": reading(
        Letters, lambda self, X, out: out + np.arange(len(out), dtype=np.float32)[:, None]
    ),
    "neighbours_do_not_matter": reading(Letters, lambda self, X, out: out - out.mean(axis=0, keepdims=True)),
    "repetition_does_not_matter": reading(Letters, lambda self, X, out: out + np.float32(next(STEPS))),
    "one_row_a_document": reading(
        Letters, lambda self, X, out: np.concatenate([out, out[:1]]) if max(map(len, X)) > 1000 else out
    ),
    "stored_estimators_work_on": broken(Letters, __setstate__=reset),
    "storing_changes_nothing": broken(Letters, __getstate__=remember_nothing),
    "cross_validation": broken(LetterClassifier, score=lambda self, X, y, sample_weight=None: 1.5),
    "halving_search": drifting(LetterClassifier),
    "curve_of_learning": broken(LetterClassifier, score=lambda self, X, y, sample_weight=None: 1.5),
    "calibration": reading(
        LetterClassifier, lambda self, X, out: (vars(self).update(C=0), out + next(STEPS) % 5)[1]
    ),
    "soft_voting": drifting(LetterClassifier),
    "stacking": drifting(LetterClassifier),
    "one_versus_rest": drifting(LetterClassifier),
    "tuned_threshold": drifting(LetterClassifier),
    "permutation_of_a_column": broken(
        LetterClassifier, predict=lambda self, X: self.classes_[np.arange(len(X)) % len(self.classes_)]
    ),
    "bagging": reading(LetterClassifier, lambda self, X, out: np.roll(out, next(STEPS) % 3, axis=1)),
    "sample_weight_is_routed": broken(LetterClassifier, _weights=lambda self, sample_weight, n: None),
    "pipeline": drifting(Letters),
    "frozen": reading(Letters, lambda self, X, out: out + np.float32(next(STEPS))),
    "representations": broken(Letters, __repr__=lambda self: "an estimator"),
    "columns_reach_it_through_a_column_transformer": receiving(
        Letters, lambda X: ["column"] * len(X) if getattr(X, "ndim", 1) == 2 else X
    ),
    "selectors_of_a_column_transformer": receiving(
        Letters, lambda X: list(X) * len(X) if isinstance(X, pd.DataFrame) else X
    ),
    "pairs_in_a_column_transformer": receiving(Letters, first_column(pd.DataFrame)),
    "names_of_features": broken(
        Letters, get_feature_names_out=lambda self, names=None: np.array(["letters"] * 8)
    ),
    "pandas_and_polars_output": broken(Letters, get_feature_names_out=named_after_itself),
    "two_of_them_side_by_side": broken(Letters, get_feature_names_out=named_after_itself),
    "features_for_a_linear_model": drifting(Letters),
    "regressor_mixin_stands_left": RightRegressor(),
    "numbers_of_any_type": fitting(
        LetterRegressor, lambda self, X, y: (X, y.sort_index()) if isinstance(y, pd.Series) else None
    ),
    "bad_numbers_raise": broken(
        LetterRegressor,
        _values=lambda self, y: np.nan_to_num(LetterRegressor._values(self, np.nan_to_num(y))),
    ),
    "several_outputs": broken(
        LetterRegressor, predict=lambda self, X: LetterRegressor.predict(self, X)[..., ::-1]
    ),
    "cross_validation_of_numbers": drifting(LetterRegressor),
    "regressors_in_meta_estimators": drifting(LetterRegressor),
    "stored_estimators_work_elsewhere": letters.Forgetful(),
    "worker_processes_give_the_same": letters.ByProcess(),
}

SILENCE = ["Printing", "PrintingFromOutside", "Logging", "Warning_", "ComplainingAtForks"]
TRACES = ["Writing", "Calling", "Starting", "Changing"]
IN_ANOTHER_PROCESS = [
    *(("normal_run_is_silent", getattr(letters, name)()) for name in SILENCE),
    *(("normal_run_touches_nothing", getattr(letters, name)()) for name in TRACES),
]
