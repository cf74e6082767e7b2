"""SeedEnsemble: runs that collapse, and classes too small to tell (case C2)."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from sktransformer.ensemble import SeedEnsemble

from .conftest import Moody, healthy, held_out_rows


def moody(mood="constant", every=2, **parameters):
    return SeedEnsemble(Moody(every=every, mood=mood), **{"n_seeds": 6, "random_state": 0, **parameters})


@pytest.mark.parametrize(
    ("mood", "reason"),
    [
        ("constant", "predicts facture alone"),
        ("nan", "probabilities are not finite"),
        ("loss", "the loss was not finite"),
    ],
)
def test_collapsed_runs_are_dropped_and_reported_once(numbers, mood, reason):
    X, y = numbers
    with pytest.warns(ConvergenceWarning) as record:
        ensemble = moody(mood).fit(X, y)
    results = ensemble.seed_results_
    bad = results["seed"] % 2 == 0
    assert 0 < bad.sum() < 6
    assert (results["collapsed"] == bad).all()
    assert (results["kept"] == ~bad).all()
    assert set(results.loc[bad, "reason"]) == {reason}
    assert [m.seed_ for m in ensemble.estimators_] == results.loc[~bad, "seed"].tolist()
    assert len(ensemble.validation_scores_) == len(ensemble.estimators_)
    assert len(record) == 1
    message = str(record[0].message)
    assert message.startswith(f"{bad.sum()} of 6 runs collapsed and were left out: seed ")
    assert all(f"seed {seed} ({reason})" in message for seed in results.loc[bad, "seed"])
    assert "lower learning_rate" in message
    assert record[0].filename == __file__


def test_no_better_than_a_constant_is_a_collapse(numbers):
    with pytest.warns(ConvergenceWarning, match=r"is not above 0\.2\d\d, that of a constant prediction"):
        ensemble = moody("wrong").fit(*numbers)
    results = ensemble.seed_results_
    assert results["collapsed"].tolist() == (results["seed"] % 2 == 0).tolist()
    assert (results.loc[results["collapsed"], "score"] < 0.25).all()


def test_a_run_is_tried_again_with_another_seed(numbers):
    with pytest.warns(ConvergenceWarning, match="tried again with another seed"):
        ensemble = moody(on_collapse="retrain", max_retrain=20).fit(*numbers)
    results = ensemble.seed_results_
    assert len(ensemble.estimators_) == 6
    assert results["seed"].is_unique
    assert sorted(results.loc[results["kept"], "member"]) == list(range(6))
    first = moody(on_collapse="keep")
    with pytest.warns(ConvergenceWarning):
        first.fit(*numbers)
    assert results["seed"][:6].tolist() == first.seed_results_["seed"].tolist()
    assert all(member.seed_ % 2 for member in ensemble.estimators_)


def test_trying_again_ends(numbers):
    with pytest.warns(ConvergenceWarning):
        ensemble = moody(on_collapse="retrain", max_retrain=1).fit(*numbers)
    results = ensemble.seed_results_
    first = (results["seed"][:6] % 2 == 0).sum()
    assert len(results) == 6 + first
    assert len(ensemble.estimators_) == results["kept"].sum() == (results["seed"] % 2 == 1).sum()


def test_collapsed_runs_may_be_kept_unless_not_finite(numbers):
    with pytest.warns(ConvergenceWarning, match="were kept"):
        assert len(moody(on_collapse="keep").fit(*numbers).estimators_) == 6
    with pytest.warns(ConvergenceWarning):
        ensemble = moody("nan", on_collapse="keep").fit(*numbers)
    assert 0 < len(ensemble.estimators_) < 6
    assert np.isfinite(ensemble.predict_proba(numbers[0])).all()


@pytest.mark.parametrize("on_collapse", ["drop", "retrain"])
def test_when_all_collapse(numbers, on_collapse):
    ensemble = moody(every=1, n_seeds=2, on_collapse=on_collapse)
    count = {"drop": 2, "retrain": 6}[on_collapse]
    with pytest.raises(
        RuntimeError, match=rf"all {count} runs collapsed.*predicts facture.*lower learning_rate"
    ):
        ensemble.fit(*numbers)
    with pytest.raises(NotFittedError):
        ensemble.predict(numbers[0])


def test_a_failed_fit_leaves_the_fitted_ensemble_as_it_was(numbers):
    ensemble = healthy().fit(*numbers)
    before = ensemble.predict_proba(numbers[0])
    ensemble.set_params(estimator__every=1)
    with pytest.raises(RuntimeError, match="all 3 runs collapsed"):
        ensemble.fit(*numbers)
    np.testing.assert_array_equal(ensemble.predict_proba(numbers[0]), before)


def test_other_errors_of_a_member_are_not_hidden(numbers):
    with pytest.raises(ValueError, match="n_estimators") as caught:
        SeedEnsemble(RandomForestClassifier(-1), 2).fit(*numbers)
    assert "Rows are counted among those that the run was fitted on" in caught.value.__notes__[0]


# -- case C2: a class with a single member ---------------------------------------------------------------------------


def test_a_single_member_stays_in_training():
    X = np.r_[np.zeros((8, 2)), np.ones((8, 2)), [[5.0, -5.0]]] + np.random.default_rng(0).normal(
        0, 0.1, (17, 2)
    )
    y = ["facture"] * 8 + ["livraison"] * 8 + ["juridique"]
    with pytest.warns(UserWarning, match="single member") as record:
        ensemble = healthy().fit(X, y)
    assert [str(one.message) for one in record] == [
        "1 class(es) with a single member stay out of validation: juridique."
    ]
    assert ensemble.classes_.tolist() == ["facture", "juridique", "livraison"]
    assert not held_out_rows(ensemble, X)[-1]
    assert held_out_rows(ensemble, X).sum() == 2
    assert ensemble.predict(X).tolist() == y


def test_single_members_alone():
    with pytest.raises(ValueError, match="every class has a single member: a, b; pass more documents"):
        healthy().fit([[0.0], [1.0]], ["a", "b"])


def test_a_held_out_part_of_one_class_tells_no_collapse():
    X = np.r_[np.zeros((9, 1)), [[9.0]]]
    with pytest.warns(UserWarning, match="single member"):
        ensemble = healthy().fit(X, ["a"] * 9 + ["b"])
    assert not ensemble.seed_results_["collapsed"].any()
