"""Inside scikit-learn's own machinery, any estimator and transformers: the first part of line 21 of the contract."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import FeatureUnion, make_pipeline

from ..._engine.errors import TruncationWarning
from ._require import recorded, require, require_close, require_equal, require_raises
from .registry import check, gives_numbers, has, offers, reads_pairs, reads_texts, transforms
from .subject import Fingerprint, Subject


@check(21)
def pipeline(subject: Subject) -> None:
    """As the last step of a Pipeline it gives what it gives alone."""
    step = make_pipeline("passthrough", subject.new())
    subject.same(subject.read(subject.refit(step)), "output of a pipeline")


@check(21, has("max_length"))
def grid_search(subject: Subject) -> None:
    """GridSearchCV fits each candidate anew, and its refitted winner is the candidate fitted alone."""
    search = GridSearchCV(
        subject.new(), {"max_length": [8, 60]}, scoring=Fingerprint(subject), cv=KFold(2), error_score="raise"
    )
    with recorded(TruncationWarning):
        subject.refit(search)
        alone = subject.read(subject.fit(**search.best_params_))
        output = subject.read(search.best_estimator_)
    require(np.isfinite(search.cv_results_["mean_test_score"]).all(), "scores that are not finite")
    subject.same(output, "output of the refitted winner", alone)


@check(21)
def frozen(subject: Subject) -> None:
    """FrozenEstimator passes a fitted estimator on as it is, and its `fit` does nothing."""
    held = FrozenEstimator(subject.fitted)
    held.fit(subject.sample.X[::-1], subject.sample.y)
    subject.same(subject.read(held), "output of a frozen estimator")


@check(21)
def representations(subject: Subject) -> None:
    """`repr` and the HTML diagram name the estimator, fitted or not, also inside a pipeline."""
    name = type(subject.estimator).__name__
    for estimator in (subject.new(), subject.fitted, make_pipeline(subject.new())):
        require(name in repr(estimator), f"repr lacks {name}")
        require(name in estimator._repr_html_(), f"the HTML diagram lacks {name}")
    require(
        "<details" in subject.fitted._repr_html_() or "sk-" in subject.fitted._repr_html_(), "no HTML diagram"
    )


@check(21, reads_texts)
def columns_reach_it_through_a_column_transformer(subject: Subject) -> None:
    """Behind a ColumnTransformer that passes a column of texts through, it reads those texts."""
    X = _frame(subject, subject.sample.X)
    columns = ColumnTransformer([("text", "passthrough", ["body"])])
    fitted = subject.refit(make_pipeline(columns, subject.new()), X)
    output = subject.read(fitted, _frame(subject, subject.sample.X_new))
    subject.same(output, "output behind a ColumnTransformer")


def _frame(subject: Subject, texts: list[str]) -> pd.DataFrame:
    """Return a frame with a repeated index, a column of texts and one of numbers."""
    index = [10, 5, 7, 10, *range(100, 96 + len(texts))]
    heads = [text[:20] for text in texts]
    return pd.DataFrame({"subject": heads, "body": texts, "n_links": np.arange(len(texts))}, index=index)


# -- transformers --------------------------------------------------------------------------------------------------


@check(21, transforms, reads_texts, gives_numbers)
def selectors_of_a_column_transformer(subject: Subject) -> None:
    """A scalar selector, a list of one and a callable select the same texts; numbers stand beside them."""
    X = _frame(subject, subject.sample.X_new)
    selectors = ("body", ["body"], make_column_selector("body"))
    for selector in selectors:
        columns = ColumnTransformer([("t", subject.new(), selector), ("n", "passthrough", ["n_links"])])
        subject.refit(columns, _frame(subject, subject.sample.X))
        output = columns.transform(X)
        require_equal(
            output.shape, (len(X), subject.expected.reshape(len(X), -1).shape[1] + 1), "shape of the output"
        )
        texts = np.asarray(output[:, :-1]).reshape(subject.expected.shape).astype(subject.expected.dtype)
        require_close(texts, subject.expected, f"output for the selector {selector!r}", tolerance=1e-6)


@check(21, transforms, reads_pairs, gives_numbers)
def pairs_in_a_column_transformer(subject: Subject) -> None:
    """A list of two columns gives one row a document, that of the pair."""
    X = _frame(subject, subject.sample.X)
    columns = ColumnTransformer([("t", subject.new(), ["subject", "body"])])
    output = subject.refit(columns, X).transform(X)
    pairs = list(zip(X["subject"], X["body"], strict=True))
    expected = subject.read(subject.fit(pairs), pairs)
    require_close(
        np.asarray(output).reshape(expected.shape).astype(expected.dtype),
        expected,
        "output of two columns",
        tolerance=1e-6,
    )


@check(21, transforms, reads_texts, offers("get_feature_names_out"))
def names_of_features(subject: Subject) -> None:
    """`get_feature_names_out` gives one unique str a column, whatever held the documents in `fit`."""
    X = subject.sample.X
    expected = subject.fitted.get_feature_names_out()
    width = subject.expected.reshape(len(subject.expected), -1).shape[1]
    require_equal(len(expected), width, "number of names")
    require_equal(len(set(expected)), width, "number of different names")
    require(all(isinstance(name, str) for name in expected), "names that are not str")
    for holder in (pd.Series(X, name="body"), pd.DataFrame({"body": X}), np.array(X, dtype=object)[:, None]):
        names = subject.fit(holder).get_feature_names_out()
        require_equal(list(names), list(expected), f"names after a fit on {type(holder).__name__}")


@check(21, transforms, reads_texts)
def pandas_and_polars_output(subject: Subject) -> None:
    """`set_output` gives frames with those names: pandas ones with the index of X, alone and in a ColumnTransformer."""
    X, X_new = _frame(subject, subject.sample.X), _frame(subject, subject.sample.X_new)
    for container in ("pandas", "polars"):
        if find_spec(container) is None:  # polars is optional
            continue
        alone = subject.new().set_output(transform=container)
        output = subject.refit(alone, X["body"]).transform(X_new["body"])
        require_equal(
            list(output.columns), list(alone.get_feature_names_out()), f"columns of a {container} frame"
        )
        columns = ColumnTransformer([("t", subject.new(), "body"), ("n", "passthrough", ["n_links"])])
        joined = subject.refit(columns.set_output(transform=container), X).transform(X_new)
        require_equal(
            list(joined.columns),
            list(columns.get_feature_names_out()),
            f"columns of a joined {container} frame",
        )
        require_equal(list(joined.columns)[:-1], [f"t__{name}" for name in output.columns], "prefixed names")
        if container == "pandas":
            for frame in (output, joined):
                require_equal(frame.index.tolist(), X_new.index.tolist(), "index of the output")
        values = np.asarray(output).reshape(subject.expected.shape).astype(subject.expected.dtype)
        require_close(values, subject.expected, f"values of a {container} frame", tolerance=1e-6)


@check(21, transforms, reads_texts, gives_numbers)
def two_of_them_side_by_side(subject: Subject) -> None:
    """Two of them in a ColumnTransformer or FeatureUnion stand side by side; equal names without prefixes raise."""
    X = _frame(subject, subject.sample.X)
    two = [("a", subject.new(), "subject"), ("b", subject.new(), "body")]
    columns = subject.refit(ColumnTransformer(two), X)
    names = columns.get_feature_names_out()
    require_equal(len(set(names)), columns.transform(X).shape[1], "different names of two of them")
    plain = ColumnTransformer(two, verbose_feature_names_out=False).set_output(transform="pandas")
    with require_raises(ValueError, "not unique"):
        subject.refit(plain, X)
    union = subject.refit(FeatureUnion([("a", subject.new()), ("b", subject.new())]))
    output = np.asarray(union.transform(subject.sample.X_new))
    flat = subject.expected.reshape(len(subject.expected), -1)
    half = output.shape[1] // 2
    for part in (output[:, :half], output[:, half:]):
        require_close(part.astype(flat.dtype), flat, "one half of a FeatureUnion", tolerance=1e-6)


@check(21, transforms, gives_numbers)
def features_for_a_linear_model(subject: Subject) -> None:
    """Before a linear model in a pipeline it gives the features that it gives alone."""
    y = np.arange(len(subject.sample.X)) % 3
    model = make_pipeline(subject.new(), LogisticRegression(max_iter=1000)).fit(subject.sample.X, y)
    alone = LogisticRegression(max_iter=1000).fit(subject.fitted.transform(subject.sample.X), y)
    probability = alone.predict_proba(subject.expected)
    require_close(
        model.predict_proba(subject.sample.X_new),
        probability,
        "probabilities of the pipeline",
        tolerance=1e-6,
    )


def column_of(X: list[Any]) -> np.ndarray[Any, Any]:
    """Return the documents as an (n, 1) array of objects."""
    return np.array(X, dtype=object)[:, None]
