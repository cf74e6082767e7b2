"""Each check fails for an estimator with the fault it is there for: a check that can't fail would prove nothing."""

import sys
import warnings
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

from sktransformer.testing import Sample, check_text_estimator, guarantees, text_estimator_checks

# as if it were installed: a second process, which some checks start, must find its classes by name
sys.path.insert(0, str(Path(__file__).parent / "estimators"))
import letter_faults
import letters
import model_faults

FAULTS = [*letter_faults.FAULTS.items(), *letter_faults.IN_ANOTHER_PROCESS, *model_faults.FAULTS.items()]


@pytest.mark.parametrize(
    ("name", "estimator"), FAULTS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_fault_is_caught(name, estimator, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # one of them writes into the current folder
    with warnings.catch_warnings():
        # NumPy and scikit-learn warn of some faults too; it is the check that has to find them
        warnings.simplefilter("ignore")
        check = dict(text_estimator_checks(estimator))[name]
        with pytest.raises(AssertionError):
            check()
    model_faults.KEPT.clear()


def test_every_check_has_a_fault():
    assert {name for name, _ in FAULTS} == {name for _, name, _ in guarantees()}


@pytest.mark.parametrize(
    "estimator",
    [letters.Letters(), letters.LetterClassifier(), letters.LetterRegressor()],
    ids=["transformer", "classifier", "regressor"],
)
def test_honest_estimator_of_another_project_passes(estimator):
    results = check_text_estimator(estimator)
    assert set(results.values()) == {"passed"}
    assert len(results) > 40


@pytest.fixture
def two_checks(monkeypatch):
    """Leave two quick checks: what is done with results needs no more."""
    from sktransformer.testing import contract

    wanted = ("representations", "pipeline")
    monkeypatch.setattr(contract, "CHECKS", [one for one in contract.CHECKS if one.name in wanted])


@pytest.mark.usefixtures("two_checks")
class TestResults:
    mute = letter_faults.broken(letters.Letters, __repr__=lambda self: "an estimator")

    def test_all_pass(self):
        assert check_text_estimator(letters.Letters()) == {"pipeline": "passed", "representations": "passed"}

    def test_failures_are_listed_with_their_cause(self):
        with pytest.raises(
            AssertionError, match=r"fails 1 of 2 checks:\n  representations: AssertionError: repr"
        ) as caught:
            check_text_estimator(self.mute)
        assert "repr lacks" in str(caught.value.__cause__)

    def test_an_excuse_is_returned(self):
        results = check_text_estimator(self.mute, excused={"representations": "mute by design"})
        assert results == {"pipeline": "passed", "representations": "excused: mute by design"}

    def test_an_excuse_too_many_fails(self):
        with pytest.raises(
            AssertionError, match="pipeline: AssertionError: it passes, although it is excused: slow"
        ):
            check_text_estimator(letters.Letters(), excused={"pipeline": "slow"})

    def test_an_unknown_excuse_raises(self):
        with pytest.raises(ValueError, match=r"'pipelin', which is no check .* Did you mean 'pipeline'\?"):
            check_text_estimator(letters.Letters(), excused={"pipelin": "slow"})

    def test_another_sample_is_used(self):
        seen = []

        def read(fitted, X):
            seen.append(X)
            return fitted.transform(X)

        texts = [f"bonjour {i}" for i in range(12)]
        check_text_estimator(letters.Letters(), sample=Sample(texts, None, texts[:5], read))
        assert seen
        assert all(texts[:5] == X for X in seen)

    def test_no_kind_raises(self):
        with pytest.raises(
            TypeError,
            match="BaseEstimator is neither a classifier, a regressor nor a transformer; pass a sample=",
        ):
            check_text_estimator(BaseEstimator())
