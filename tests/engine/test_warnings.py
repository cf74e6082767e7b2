"""Warnings point at the user's line, whatever lies between it and the place that warns."""

from __future__ import annotations

import inspect
import linecache
import warnings
from collections.abc import Callable
from types import FunctionType
from typing import Any

import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline

from sktransformer import TransformerClassifier
from sktransformer._engine import errors
from sktransformer._engine.errors import TruncationWarning, warn_user
from sktransformer.testing.checkpoints import SENTENCES, tiny_checkpoint


def inside(module: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` as if `module` had defined it."""
    assert isinstance(function, FunctionType)
    return FunctionType(
        function.__code__, {**function.__globals__, "__name__": module}, closure=function.__closure__
    )


def source(warning: warnings.WarningMessage) -> str:
    """Return the line that a warning points at."""
    return linecache.getline(warning.filename, warning.lineno)


def test_a_direct_call_is_its_own_place() -> None:
    with pytest.warns(UserWarning, match="^what$") as caught:
        warn_user("what", UserWarning)  # here
    assert source(caught[0]).endswith("# here\n")


def test_frames_of_the_packages_between_are_passed_over() -> None:
    ours = inside("sktransformer.tasks.classification", lambda: warn_user("what", TruncationWarning))
    pipeline = inside("sklearn.pipeline", lambda: ours())
    search = inside("joblib.parallel", lambda: pipeline())
    with pytest.warns(TruncationWarning) as caught:
        search()  # here
    assert source(caught[0]).endswith("# here\n")


def test_the_nearest_other_frame_counts() -> None:
    """A package of the user's, called by scikit-learn, is the user's code."""
    ours = inside("sktransformer.x", lambda: warn_user("what", UserWarning))

    def users() -> None:
        ours()  # here

    with pytest.warns(UserWarning, match="what") as caught:
        inside("sklearn.x", lambda: users())()
    assert source(caught[0]).endswith("# here\n")


def test_a_package_whose_name_begins_like_ours_is_the_users() -> None:
    ours = inside("sktransformer", lambda: warn_user("what", UserWarning))
    users = inside("sktransformer_extras.x", lambda: ours())  # here
    with pytest.warns(UserWarning, match="what") as caught:
        users()
    assert source(caught[0]).endswith("# here\n")


def test_a_stack_without_the_user_still_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a worker process, whose stack begins in joblib."""
    everything = {str(frame.frame.f_globals.get("__name__")).split(".")[0] for frame in inspect.stack()}
    monkeypatch.setattr(errors, "BETWEEN", frozenset({*everything, "sktransformer"}))
    with pytest.warns(UserWarning, match="what"):
        warn_user("what", UserWarning)


@pytest.fixture(scope="module")
def classifier() -> TransformerClassifier:
    estimator = TransformerClassifier(
        str(tiny_checkpoint("bert")), max_epochs=1, random_state=0, precision="float32"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # what it learns does not matter here
        return estimator.fit(["bon", "mauvais"] * 4, ["a", "b"] * 4)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
def test_cuts_are_told_at_the_call_of_each_method(classifier: TransformerClassifier, method: str) -> None:
    long = [SENTENCES[0] * 9]
    with pytest.warns(TruncationWarning, match="1 of 1 documents are longer than 64 tokens") as caught:
        getattr(classifier, method)(long)  # here
    assert len(caught) == 1
    assert source(caught[0]).endswith("# here\n")


def test_cuts_are_told_at_the_call_of_a_pipeline(classifier: TransformerClassifier) -> None:
    pipeline = make_pipeline(classifier)
    with pytest.warns(TruncationWarning) as caught:
        pipeline.predict([SENTENCES[0] * 9])  # here
    assert len(caught) == 1
    assert source(caught[0]).endswith("# here\n")


def test_cuts_are_told_at_the_call_of_fit(classifier: TransformerClassifier) -> None:
    texts = [SENTENCES[0] * 9, *SENTENCES[1:]] * 2
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make_pipeline(classifier).fit(texts, [0, 1] * 7)  # here
    cuts = [w for w in caught if w.category is TruncationWarning]
    assert [str(w.message).split(" are")[0] for w in cuts] == ["2 of 14 documents"]
    assert [(w.message.n_cut, w.message.n_documents) for w in cuts] == [(2, 14)]
    assert all(source(w).endswith("# here\n") for w in caught)  # that of a collapse too, where there is one
