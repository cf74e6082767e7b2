"""The forms in which a space is given, and the default ones."""

import subprocess
import sys
from typing import Any

import numpy as np
import optuna
import pytest
import scipy.stats
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from sklearn.ensemble import VotingClassifier
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from sktransformer import EmailCleaner, OptunaSearch, TransformerClassifier, TransformerEmbedder, tfidf_svm
from sktransformer.model_selection.tuning._default_spaces import default_space
from sktransformer.model_selection.tuning._spaces import as_space

from .helpers import Counting, X, Y


def _said(value: Any) -> str:
    """Name a case alike in every process: scipy's distributions show their address."""
    return f"{value.dist.name}{value.args}" if hasattr(value, "dist") else str(value)


@pytest.mark.parametrize(
    ("given", "distribution"),
    [
        ([0.5, 1.0, None], CategoricalDistribution((0.5, 1.0, None))),
        (np.array([1, 2]), CategoricalDistribution((1, 2))),
        ((1, 8), IntDistribution(1, 8)),
        ((1, 8, "log"), IntDistribution(1, 8, log=True)),
        ((0.0, 1), FloatDistribution(0.0, 1.0)),
        ((1e-3, 1e3, "log"), FloatDistribution(1e-3, 1e3, log=True)),
        (FloatDistribution(0.0, 1.0, step=0.25), FloatDistribution(0.0, 1.0, step=0.25)),
        (scipy.stats.uniform(1, 2), FloatDistribution(1.0, 3.0)),
        (scipy.stats.loguniform(1e-2, 10), FloatDistribution(1e-2, 10.0, log=True)),
        (scipy.stats.randint(2, 5), IntDistribution(2, 4)),
    ],
    ids=_said,
)
def test_forms(given, distribution):
    assert as_space({"shift": given}, Counting()).distributions == {"shift": distribution}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "empty list"),
        ((1, 2, 3), r"must be \(low, high\) or \(low, high, 'log'\)"),
        (("a", "b"), "put choices into a list"),
        ((True, False), "put choices into a list"),
        ((2, 1), "must go from low to high"),
        ((0.0, 1.0, "log"), "with low above 0"),
        ("head", r"must be a list of choices.*got str \('head'\)"),
        (3, "got int"),
        (scipy.stats.norm(0, 1), "scipy's norm, which optuna can't draw from"),
    ],
    ids=_said,
)
def test_bad_forms_are_named(given, said):
    with pytest.raises(ValueError, match=said) as caught:
        OptunaSearch(Counting(), {"shift": given}).fit(X, Y)
    assert "space['shift']" in str(caught.value)


@pytest.mark.parametrize(
    ("space", "error", "said"),
    [
        ({}, ValueError, "space is empty"),
        ([1, 2], TypeError, "space must be a dict, a function of the trial or None, got list"),
        (
            {"shfit": [1.0]},
            ValueError,
            "names 'shfit', which is no parameter of Counting.*Did you mean 'shift'",
        ),
        (lambda trial: {"shfit": trial.suggest_float("a", 0, 1)}, ValueError, "names 'shfit'"),
        (
            lambda trial: trial.suggest_float("a", 0, 1),
            TypeError,
            "must return a dict of parameters, got float",
        ),
    ],
)
def test_bad_spaces_are_refused_before_a_fit(space, error, said, monkeypatch):
    monkeypatch.setattr(Counting, "fits", 0)
    with pytest.raises(error, match=said):
        OptunaSearch(Counting(), space).fit(X, Y)
    assert Counting.fits == 0


def test_choices_of_any_kind_come_back_as_they_were(tmp_path):
    choices = [(1, 1), (1, 2)]
    space = {"tfidf__word__ngram_range": choices, "svm__class_weight": [None, {"a": 2.0}, "balanced"]}
    mails = [
        f"{word} {number}" for number in ("un", "deux", "trois", "quatre") for word in ("facture", "colis")
    ]
    labels = ["a", "b"] * 4
    url = f"sqlite:///{tmp_path}/s.db"
    search = OptunaSearch(tfidf_svm(), space, n_trials=5, cv=2, storage=url, study_name="r", random_state=0)
    rows = search.fit(mails, labels).cv_results_["params"]
    assert {row["tfidf__word__ngram_range"] for row in rows} == set(choices)
    assert all(row["svm__class_weight"] in [None, {"a": 2.0}, "balanced"] for row in rows)
    assert (
        search.best_estimator_.get_params()["svm__class_weight"] == search.best_params_["svm__class_weight"]
    )
    assert {trial.params["tfidf__word__ngram_range"] for trial in search.study_.trials} == {
        "(1, 1)",
        "(1, 2)",
    }


def branches(trial):
    """A space in which one parameter depends on another, and one is computed."""
    shift = trial.suggest_categorical("kind", ["zero", "free"])
    return {"shift": 0.0 if shift == "zero" else trial.suggest_float("size", 0.5, 1.0) * 10}


def test_a_function_of_the_trial_gives_the_parameters():
    search = OptunaSearch(Counting(), branches, n_trials=8, cv=2, random_state=0).fit(X, Y)
    drawn = [row["shift"] for row in search.cv_results_["params"]]
    kinds = [trial.params["kind"] for trial in search.study_.trials]
    assert {"zero", "free"} == set(kinds)
    assert all(
        (value == 0.0) == (kind == "zero") and (value == 0 or 5 <= value <= 10)
        for value, kind in zip(drawn, kinds, strict=True)
    )
    assert search.best_estimator_.shift == search.best_params_["shift"]


def test_a_function_that_draws_from_other_choices_is_refused_on_resuming(tmp_path):
    path = tmp_path / "s.log"

    def draws(trial):
        return {"shift": trial.suggest_categorical("shift", choices)}

    choices = [0.0, 1.0]
    search = OptunaSearch(
        Counting(), draws, n_trials=2, cv=2, storage=path, study_name="r", random_state=0
    ).fit(X, Y)
    choices.append(2.0)
    with pytest.raises(ValueError, match=r"space\['shift'\] was \[0.0, 1.0\], is \[0.0, 1.0, 2.0\]"):
        search.fit(X, Y)


def test_a_function_that_fails_now_and_then_costs_its_trial_alone():
    def draws(trial):
        if trial.number == 1:
            raise ZeroDivisionError("odd luck")
        return {"shift": trial.suggest_float("shift", 0, 1)}

    with pytest.warns(FitFailedWarning, match="1 of 3 trials.*ZeroDivisionError: odd luck"):
        search = OptunaSearch(Counting(), draws, n_trials=3, cv=2, random_state=0).fit(X, Y)
    assert list(search.cv_results_["param_shift"].mask) == [False, True, False]
    assert list(search.cv_results_["trial_state"]) == ["complete", "fail", "complete"]


def test_default_space_of_the_classifier_in_a_pipeline():
    space = default_space(make_pipeline(EmailCleaner(), TransformerClassifier()))
    inner = {name.removeprefix("transformerclassifier__") for name in space}
    assert inner == {
        "learning_rate", "max_epochs", "warmup_ratio", "weight_decay", "dropout", "truncation", "class_weight",
    }  # fmt: skip
    assert space["transformerclassifier__learning_rate"] == FloatDistribution(1e-5, 1e-4, log=True)
    TransformerClassifier(**dict.fromkeys(inner, None)).get_params()
    assert set(default_space(TransformerClassifier())) == inner


def test_default_space_of_linear_models():
    assert set(default_space(tfidf_svm())) == {
        "svm__C",
        "tfidf__word__ngram_range",
        "tfidf__char__ngram_range",
    }
    assert "svm__estimator__C" in default_space(tfidf_svm(calibrated=True))
    assert set(default_space(make_pipeline(TransformerEmbedder(), LogisticRegression()))) == {
        "logisticregression__C"
    }
    vote = VotingClassifier(
        [("a", tfidf_svm()), ("b", make_pipeline(TransformerEmbedder(), LogisticRegression()))]
    )
    assert {"a__svm__C", "b__logisticregression__C"} <= set(default_space(vote))


def test_default_space_is_searched_over():
    search = OptunaSearch(LogisticRegression(), n_trials=2, cv=2, random_state=0).fit(X, Y)
    assert 1e-2 <= search.best_params_["C"] <= 1e2


def test_no_default_space_is_an_error_with_a_way_out():
    with pytest.raises(ValueError, match=r"no default space for KNeighborsClassifier; pass space="):
        OptunaSearch(KNeighborsClassifier()).fit(X, Y)


def test_a_linear_search_loads_no_torch_and_a_mere_import_no_optuna():
    script = """
import sys
from typing import Any
from sktransformer import OptunaSearch, tfidf_svm
search = OptunaSearch(tfidf_svm(), n_trials=1, cv=2, random_state=0)
assert "optuna" not in sys.modules
search.fit(["un", "deux", "un chat", "deux chats"], ["a", "b", "a", "b"])
assert "optuna" in sys.modules and not {"torch", "skorch", "transformers"} & set(sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_optuna_missing_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ImportError, match=r"pip install \"sktransformer-text\[tuning\]\""):
        OptunaSearch(Counting(), {"shift": [0.0]}).fit(X, Y)


def test_optuna_s_own_distributions_may_be_mixed_with_others():
    space = {"shift": optuna.distributions.FloatDistribution(0.0, 1.0, step=0.5), "fail": [False]}
    search = OptunaSearch(Counting(), space, n_trials=6, cv=2, random_state=0).fit(X, Y)
    assert {row["shift"] for row in search.cv_results_["params"]} <= {0.0, 0.5, 1.0}
