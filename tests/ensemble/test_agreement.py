"""How correlated the errors of classifiers are."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import matthews_corrcoef
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from sktransformer.ensemble import (
    SeedEnsemble,
    WeightedSoftVote,
    error_correlation,
    error_correlation_from_predictions,
)

NUMBERS = ["error_first", "error_second", "phi", "yule_q", "disagreement", "double_fault"]
# 20 documents: both right 12, both wrong 3, the first alone right 4, the second alone right 1
FIRST = ["a"] * 12 + ["b"] * 3 + ["a"] * 4 + ["b"]
SECOND = ["a"] * 12 + ["c"] * 3 + ["c"] * 4 + ["a"]


def test_worked_by_hand():
    table = error_correlation_from_predictions(["a"] * 20, {"one": FIRST, "two": SECOND})
    assert table[["first", "second"]].values.tolist() == [["one", "two"]]
    expected = [4 / 20, 7 / 20, (36 - 4) / np.sqrt(16 * 4 * 13 * 7), (36 - 4) / (36 + 4), 5 / 20, 3 / 20]
    np.testing.assert_allclose(table.loc[0, NUMBERS].to_numpy(dtype=float), expected, rtol=1e-12)


def test_phi_is_the_correlation_of_errors():
    random = np.random.default_rng(0)
    y, a, b = random.integers(0, 3, size=(3, 300))
    table = error_correlation_from_predictions(y, {"a": a, "b": b})
    assert table.loc[0, "phi"] == pytest.approx(np.corrcoef(a != y, b != y)[0, 1], abs=1e-12)
    assert table.loc[0, "phi"] == pytest.approx(matthews_corrcoef(a != y, b != y), abs=1e-12)


@pytest.mark.parametrize(
    ("second", "phi", "q"), [([1, 1, 0, 0], 1, 1), ([0, 0, 1, 1], -1, -1), ([1, 0, 1, 0], 0, 0)]
)
def test_ends_of_the_scale(second, phi, q):
    table = error_correlation_from_predictions([0] * 4, {"a": [1, 1, 0, 0], "b": second})
    assert (table.loc[0, "phi"], table.loc[0, "yule_q"]) == (phi, q)


def test_without_errors_nothing_is_defined():
    table = error_correlation_from_predictions([0, 0], {"a": [0, 0], "b": [0, 1]})
    assert table[["phi", "yule_q"]].isna().all(axis=None)
    assert table.loc[0, ["disagreement", "double_fault"]].tolist() == [0.5, 0.0]


def test_every_pair_has_a_row(numbers):
    _, y = numbers
    table = error_correlation_from_predictions(y, dict.fromkeys("abcd", y))
    assert table[["first", "second"]].agg("".join, axis=1).tolist() == ["ab", "ac", "ad", "bc", "bd", "cd"]


def test_of_estimators_and_of_folds(numbers):
    X, y = numbers
    members = {"bayes": GaussianNB(), "logistic": LogisticRegression()}
    fitted = {name: member.fit(X[::2], y[::2]) for name, member in members.items()}
    held, right = X[1::2], y[1::2]
    expected = error_correlation_from_predictions(right, {n: m.predict(held) for n, m in fitted.items()})
    pd.testing.assert_frame_equal(error_correlation(fitted, held, right), expected)
    pd.testing.assert_frame_equal(error_correlation(list(fitted.items()), held, right), expected)
    frame = pd.DataFrame(X, index=np.arange(len(y))[::-1])
    crossed = {name: cross_val_predict(member, X, y, cv=3) for name, member in members.items()}
    pd.testing.assert_frame_equal(
        error_correlation(members, frame, pd.Series(y), cv=3),
        error_correlation_from_predictions(y, crossed),
    )
    unnamed = error_correlation(list(fitted.values()), held, right)
    assert unnamed.loc[0, ["first", "second"]].tolist() == ["0: GaussianNB", "1: LogisticRegression"]


def test_of_the_members_of_ensembles(numbers):
    X, y = numbers
    pairs = [("bayes", GaussianNB()), ("out", "drop"), ("logistic", LogisticRegression())]
    vote = VotingClassifier(pairs, voting="soft").fit(X[::2], y[::2])
    alone = {n: m.fit(X[::2], y[::2]) for n, m in pairs if n != "out"}
    pd.testing.assert_frame_equal(
        error_correlation(vote, X[1::2], y[1::2]), error_correlation(alone, X[1::2], y[1::2])
    )
    seeds = SeedEnsemble(RandomForestClassifier(3), 3, random_state=0).fit(X[::2], y[::2])
    table = error_correlation(seeds, X[1::2], y[1::2])
    assert table[["first", "second"]].values.tolist() == [["0", "1"], ["0", "2"], ["1", "2"]]
    assert table["error_first"].iloc[0] == np.mean(seeds.estimators_[0].predict(X[1::2]) != y[1::2])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: error_correlation(GaussianNB(), [[0.0]], ["a"]), TypeError, "got GaussianNB"),
        (
            lambda: error_correlation([GaussianNB()], [[0.0]], ["a"]),
            ValueError,
            "two classifiers or more, got 1",
        ),
        (lambda: error_correlation({}, "facture", ["a"]), TypeError, "bare str"),
        (lambda: error_correlation({}, [[0.0]], ["a", "b"]), ValueError, "inconsistent"),
        (lambda: error_correlation_from_predictions([], {"a": [], "b": []}), ValueError, "y_true is empty"),
        (lambda: error_correlation_from_predictions([1], {"a": [1]}), ValueError, "two predictions or more"),
        (
            lambda: error_correlation_from_predictions([1, 2], {"a": [1, 2], "b": [1]}),
            ValueError,
            r"predictions\['b'\] has shape \(1,\), y_true has \(2,\)",
        ),
    ],
)
def test_what_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("labels", [("a", "b", "c"), (7, 5, 9), (0, 1, 2), (3, 1, 2)])
@pytest.mark.parametrize(
    "ensemble",
    [
        RandomForestClassifier(3, random_state=0),
        BaggingClassifier(n_estimators=3),
        VotingClassifier([("bayes", GaussianNB()), ("tree", DecisionTreeClassifier())]),
        WeightedSoftVote([("bayes", GaussianNB()), ("tree", DecisionTreeClassifier())], cv=2),
    ],
)
def test_members_that_were_fitted_on_positions_or_on_labels(ensemble, labels):
    X, y = load_iris(return_X_y=True)
    names = np.array(labels)[y]
    table = error_correlation(clone(ensemble).fit(X, names), X, names)
    assert table[["error_first", "error_second"]].to_numpy().max() < 0.1


def test_texts_and_numbers_are_never_right():
    with pytest.raises(TypeError, match=r"predictions\['b'\] are texts, and the labels are no texts"):
        error_correlation_from_predictions([0, 1], {"a": [0, 1], "b": ["0", "1"]})
    with pytest.raises(TypeError, match=r"predictions\['a'\] are no texts, and the labels are texts"):
        error_correlation_from_predictions(["0", "1"], {"a": [0, 1], "b": ["0", "1"]})
