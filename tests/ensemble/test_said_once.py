"""What a member says in every fold is said once."""

import warnings

import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from sktransformer._engine.errors import warn_user
from sktransformer.ensemble import RejectOption, SeedEnsemble, soft_vote
from sktransformer.exceptions import TruncationWarning

from .conftest import Moody


class Wordy(LogisticRegression):
    """Says in each fit how many documents it cut, as a Transformer does."""

    def fit(self, X, y, sample_weight=None):
        warn_user(f"{len(X)} documents were cut", TruncationWarning)
        return super().fit(X, y, sample_weight)


def said(estimator, X, y, category=TruncationWarning):
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        estimator.fit(X, y)
    return [str(w.message) for w in record if issubclass(w.category, category)]


@pytest.mark.parametrize(
    "wrap",
    [
        lambda: RejectOption(Wordy(), target_coverage=0.8),
        lambda: soft_vote([("one", Wordy()), ("two", Wordy(C=0.1))], weights="fit"),
        lambda: RejectOption(
            soft_vote([("one", Wordy()), ("two", Wordy(C=0.1))], weights="fit"), target_risk=0.5
        ),
    ],
    ids=["reject", "vote", "reject of a vote"],
)
def test_folds_do_not_repeat_what_was_said_of_all(numbers, wrap):
    X, y = numbers
    assert said(wrap(), X, y) == [f"{len(X)} documents were cut"]


def test_seeds_do_not_repeat_each_other(numbers):
    X, y = numbers
    ensemble = SeedEnsemble(Wordy(), n_seeds=3, random_state=0)
    assert len(said(ensemble, X, y)) == 1
    assert len(said(RejectOption(ensemble, target_coverage=0.8, cv=2), X, y)) == 1
    assert len(said(ensemble, X, y)) == 1  # a later fit is not silenced


class Sulky(Moody):
    """Tells of its own collapse, as a Transformer does."""

    def fit(self, X, y, sample_weight=None):
        warn_user("training collapsed: every document is taken for one class", ConvergenceWarning)
        return super().fit(X, y)


def test_the_ensemble_is_heard_where_its_members_are_not(numbers):
    X, y = numbers
    ensemble = SeedEnsemble(Sulky(every=1), n_seeds=3, random_state=0, on_collapse="keep")
    (alone,) = said(ensemble, X, y, ConvergenceWarning)
    (inside,) = said(RejectOption(ensemble, target_coverage=0.8, cv=2), X, y, ConvergenceWarning)
    assert alone.startswith("3 of 3 runs collapsed and were kept")
    assert inside == alone
