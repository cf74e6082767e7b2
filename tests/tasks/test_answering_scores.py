"""F1 and exact match against values worked out by hand."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.metrics import make_scorer

from sktransformer import answer_exact_match_score, answer_f1_score

CASES = [  # true, predicted, F1, exact match
    ("Amsterdam", "Amsterdam", 1.0, 1.0),
    ("the cat", "Cat!", 1.0, 1.0),
    ("a red fox", "the red hen", 0.5, 0.0),
    ("x y z", "x", 0.5, 0.0),
    ("x x y", "x x", 0.8, 0.0),
    ("fox", "hen", 0.0, 0.0),
    (None, "", 1.0, 1.0),
    (None, "fox", 0.0, 0.0),
    ("fox", "", 0.0, 0.0),
    ("fox", None, 0.0, 0.0),
    ("the", "a", 1.0, 1.0),  # nothing is left of either
    ({"text": ["big fox", "fox"], "answer_start": [0, 4]}, "fox", 1.0, 1.0),
    ({"text": ["fox", "the"]}, "", 0.0, 0.0),
    (("fox", 3), "a fox", 1.0, 1.0),
    ("14,2 milliards", "142 milliards", 1.0, 1.0),  # punctuation goes without leaving a blank
    ("l'hôpital", "hôpital", 0.0, 0.0),
]


@pytest.mark.parametrize(("true", "predicted", "f1", "exact"), CASES)
def test_of_one_answer(true, predicted, f1, exact):
    assert answer_f1_score([true], [predicted]) == pytest.approx(f1)
    assert answer_exact_match_score([true], [predicted]) == exact


@pytest.mark.parametrize(
    ("true", "predicted", "f1"),
    [
        ("l'hôpital", "hôpital", 1.0),
        ("L’hôpital", "un hôpital.", 1.0),
        ("au chat", "les chats du chat", 2 / 3),
        ("avalanche", "avalanche", 1.0),
        ("the fox", "fox", 2 / 3),
    ],
)
def test_french_articles(true, predicted, f1):
    assert answer_f1_score([true], [predicted], articles="french") == pytest.approx(f1)


def test_mean_and_weights():
    true, predicted = ["a b", None, "c"], np.array(["b", "x", "c"], dtype=object)
    # "a" is an article
    assert answer_f1_score(true, predicted) == pytest.approx(2 / 3)
    assert answer_f1_score(true, predicted, sample_weight=[1, 2, 1]) == pytest.approx(0.5)
    assert answer_exact_match_score(true, predicted, sample_weight=[0, 1, 0]) == 0.0


def test_what_is_refused():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        answer_f1_score(["a"], ["a", "b"])
    with pytest.raises(ValueError, match="y_true is empty"):
        answer_exact_match_score([], [])
    with pytest.raises(ValueError, match=r"articles='frnech' is not known; .* Did you mean 'french'\?"):
        answer_f1_score(["a"], ["a"], articles="frnech")
    with pytest.raises(TypeError, match="y_pred must be a list of answers"):
        answer_f1_score(["a"], "a")
    with pytest.raises(TypeError, match=r"y_true\[0\] must be"):
        answer_f1_score([1.5], ["a"])


def test_as_a_scorer():
    class Parrot(BaseEstimator):
        def predict(self, X):
            return np.array(X, dtype=object)

        def fit(self, X, y):
            return self

    scorer = make_scorer(answer_f1_score, articles="french")
    assert scorer(Parrot(), ["le chat", ""], ["chat", None]) == 1.0
