"""Folds: the same for all, drawn anew for each seed, and no class or document lost on the way."""

import warnings

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, RepeatedStratifiedKFold, ShuffleSplit, StratifiedKFold

from sktransformer import compare_models, tfidf_svm
from sktransformer.model_selection.comparison._folds import draw_folds


def draw(cv, y, groups=None, seeds=(0, 1), classification=True):
    y = np.asarray(y)
    return draw_folds(
        cv, np.zeros(len(y)), y, groups, list(seeds), n_rows=len(y), classification=classification
    )


EVEN = ["a", "b"] * 12


def test_an_int_stratifies_shuffles_and_covers_all():
    folds = draw(4, EVEN)
    assert (folds.n_folds, folds.redrawn, folds.test_over_train) == (4, True, pytest.approx(1 / 3))
    for of_seed in folds.splits:
        assert sorted(np.concatenate([test for _, test in of_seed])) == list(range(24))
        for train, test in of_seed:
            assert [list(np.asarray(EVEN)[test]).count(label) for label in "ab"] == [3, 3]
            assert sorted([*train, *test]) == list(range(24))


def test_the_seed_decides():
    again, other = draw(4, EVEN, seeds=[0, 1]), draw(4, EVEN, seeds=[5, 1])
    first = draw(4, EVEN)
    assert [test.tolist() for _, test in first.splits[0]] == [test.tolist() for _, test in again.splits[0]]
    assert [test.tolist() for _, test in first.splits[0]] != [test.tolist() for _, test in other.splits[0]]
    assert [test.tolist() for _, test in first.splits[1]] == [test.tolist() for _, test in other.splits[1]]


@pytest.mark.parametrize(
    ("cv", "n_folds", "redrawn"),
    [
        (KFold(3), 3, False),
        (KFold(3, shuffle=True, random_state=7), 3, True),
        (StratifiedKFold(3, shuffle=True), 3, True),
        (RepeatedStratifiedKFold(n_splits=2, n_repeats=3), 6, True),
        (ShuffleSplit(5, test_size=0.25, random_state=0), 5, True),
        ([(range(12), range(12, 24)), (np.arange(24) >= 12, np.arange(24) < 12)], 2, False),
    ],
)
def test_splitters(cv, n_folds, redrawn):
    folds = draw(cv, EVEN)
    assert (folds.n_folds, folds.redrawn) == (n_folds, redrawn)
    if isinstance(cv, KFold) and cv.shuffle:
        assert cv.random_state == 7  # the user's own is left alone


def test_groups_are_never_torn():
    groups = np.repeat(np.arange(8), 3)
    for classification in (True, False):
        for of_seed in draw(4, EVEN, groups, classification=classification).splits:
            for train, test in of_seed:
                assert not set(groups[train]) & set(groups[test])


LONE = ["facture"] * 8 + ["livraison"] * 8 + ["juridique"]


def test_a_single_member_stays_in_training_with_one_warning():
    with pytest.warns(UserWarning, match="single member stay in the training part.*'juridique'") as caught:
        folds = draw(2, LONE)
    assert len(caught) == 1
    for of_seed in folds.splits:
        assert all(16 in train and 16 not in test for train, test in of_seed)
        assert sorted(np.concatenate([test for _, test in of_seed])) == list(range(16))


def test_case_c2_through_compare_models():
    X = [f"{label} {i}" for i, label in enumerate(LONE)]
    with pytest.warns(UserWarning, match="'juridique'") as caught:
        result = compare_models({"svm": tfidf_svm(), "guess": DummyClassifier()}, X, LONE, cv=2, n_seeds=2)
    assert len(caught) == 1
    assert (result.runs["error"] == "").all()
    assert result.frame.loc["svm", "f1_macro"] == 1.0


def test_few_members_are_named_with_their_number():
    with pytest.warns(
        UserWarning, match=r"1 class\(es\) have fewer members than the 5 folds: 'c' \(3\)"
    ) as caught:
        folds = draw(5, EVEN + ["c"] * 3)
    assert len(caught) == 1
    for of_seed in folds.splits:
        assert sum(24 in test or 25 in test or 26 in test for _, test in of_seed) == 3


def test_a_splitter_that_takes_a_class_out_of_training_is_told():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        draw(StratifiedKFold(2), LONE)
    texts = [str(warning.message) for warning in caught]
    assert len(texts) == 2  # scikit-learn's own, once for both seeds, and this
    assert "1 class(es) are missing from training parts" in texts[1]
    assert "'juridique' (in 2 of 4)" in texts[1]


@pytest.mark.parametrize(
    ("cv", "y", "groups", "message"),
    [
        (1, EVEN, None, "cv=1 must be at least 2 and at most the number of documents, 24"),
        (25, EVEN, None, "cv=25 must be at least 2 and at most the number of documents, 24"),
        (5, EVEN, np.repeat([0, 1, 2], 8), "at most the number of groups, 3"),
        (5, ["a", "a", "a", "b", "c", "c"], None, "the largest, 'a', has 3; pass cv=3 or more documents"),
        (2, ["a", "b", "c"], None, "each class has one, for instance 'a'; pass more documents"),
        ([], EVEN, None, "at least one, for every seed"),
        ([(range(3), [])], EVEN, None, "test part of fold 0 is empty"),
        ([(range(3), [24])], EVEN, None, "test part of fold 0 must hold positions from 0 to 23"),
        ([(range(3), [2, 5])], EVEN, None, "Fold 0 has 1 document.s. in both parts, the first in row 2"),
        ([(range(3), [4], [5])], EVEN, None, "pairs .train, test., got 3 parts in fold 0"),
    ],
)
def test_bad_folds(cv, y, groups, message):
    with pytest.raises(ValueError, match=message):
        draw(cv, y, groups)


@pytest.mark.parametrize("cv", ["5", 5.0, None, True])
def test_no_cv(cv):
    with pytest.raises(TypeError, match="cv must be an int, a splitter or an iterable"):
        draw(cv, EVEN)


def test_numbers_are_not_stratified():
    X = np.arange(30.0).reshape(-1, 1)
    result = compare_models([LinearRegression()], X, 2 * X.ravel(), cv=3, scoring="r2")
    assert result.frame.loc["LinearRegression", "r2"] == pytest.approx(1.0)
