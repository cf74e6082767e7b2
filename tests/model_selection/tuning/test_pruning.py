"""Trials that end early: by epoch where the estimator trains in epochs, else by fold."""

import gc
import weakref

import numpy as np
import optuna
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from skorch import NeuralNetClassifier
from skorch.callbacks import Callback

from sktransformer import EmailCleaner, OptunaSearch, TransformerClassifier
from sktransformer.exceptions import TruncationWarning
from sktransformer.model_selection.tuning._pruning import Steps, epochs_a_fold, trained_part
from sktransformer.testing import tiny_checkpoint

from .helpers import Counting, X, Y, shifted

TEXTS = ("où est ma facture ?", "le colis est en retard", "la facture est fausse", "colis perdu")
MAILS = [f"{text} {i}" for i in range(4) for text in TEXTS]
LABELS = ["facture", "colis"] * 8
STEP = "transformerclassifier__"

pytestmark = pytest.mark.filterwarnings(
    "ignore:training collapsed"
)  # two epochs of a tiny model; not the point


class Epochs(Callback):
    """Counts the epochs of all fits."""

    count = 0

    def on_epoch_end(self, net, dataset_train=None, dataset_valid=None, **kwargs):
        type(self).count += 1


@pytest.fixture(autouse=True)
def _no_epochs_yet():
    Epochs.count = 0


class Recorder(optuna.pruners.BasePruner):
    """Prunes what `ends` says, by (trial, step); remembers nothing, since the search uses a copy."""

    def __init__(self, *ends):
        self.ends = ends

    def prune(self, study, trial):
        return (trial.number, trial.last_step) in self.ends


def router(**options):
    options = {"max_epochs": 3, "batch_size": 8, "learning_rate": 5e-3, "random_state": 0, **options}
    return make_pipeline(
        EmailCleaner(), TransformerClassifier(str(tiny_checkpoint("bert")), callbacks=[Epochs], **options)
    )


def reports(search):
    return [list(trial.intermediate_values) for trial in search.study_.trials]


def test_steps_mean_the_same_fold_and_epoch_in_every_trial():
    steps = Steps(n_folds=3, epochs=4)
    assert [steps.after_epoch(fold, epoch) for fold in range(2) for epoch in (1, 2, 3, 4)] == [
        1,
        2,
        3,
        None,
        5,
        6,
        7,
        None,
    ]
    assert [steps.after_fold(fold) for fold in range(3)] == [4, 8, 12]
    assert steps.total == 12


def test_what_is_watched():
    pipe = router()
    assert trained_part(pipe) == ("transformerclassifier", pipe[-1])
    assert trained_part(make_pipeline(router()))[0] == "pipeline__transformerclassifier"
    assert trained_part(LogisticRegression())[1] is None
    assert epochs_a_fold(pipe, {}, {}) == 3
    assert epochs_a_fold(pipe, {}, {f"{STEP}max_epochs": optuna.distributions.IntDistribution(1, 7)}) == 7
    assert (
        epochs_a_fold(pipe, {}, {f"{STEP}max_epochs": optuna.distributions.CategoricalDistribution((2, 5))})
        == 5
    )
    assert epochs_a_fold(pipe, {f"{STEP}max_epochs": 6}, {}) == 6
    assert epochs_a_fold(LogisticRegression(), {}, {}) == 1


def test_epochs_report_running_means_and_a_pruned_trial_ends_there():
    space = {f"{STEP}max_epochs": [2, 3], f"{STEP}learning_rate": (1e-3, 1e-2, "log")}
    sampler = optuna.samplers.RandomSampler(seed=0)
    search = OptunaSearch(
        router(),
        space,
        n_trials=3,
        cv=2,
        pruner=Recorder((1, 1)),
        sampler=sampler,
        scoring="neg_log_loss",
        refit=False,
    )
    search.fit(MAILS, LABELS)
    epochs = [row[f"{STEP}max_epochs"] for row in search.cv_results_["params"]]
    expected = {2: [1, 3, 4, 6], 3: [1, 2, 3, 4, 5, 6]}
    assert reports(search) == [expected[epochs[0]], [1], expected[epochs[2]]]
    assert list(search.cv_results_["trial_state"]) == ["complete", "pruned", "complete"]
    assert Epochs.count == 2 * epochs[0] + 1 + 2 * epochs[2]
    values = search.study_.trials[0].intermediate_values
    folds = [search.cv_results_[f"split{fold}_test_score"][0] for fold in range(2)]
    assert values[3] == pytest.approx(folds[0])
    assert values[6] == pytest.approx(np.mean(folds)) == search.study_.trials[0].value
    assert np.isnan(search.cv_results_["mean_test_score"][1])
    assert search.cv_results_["rank_test_score"][1] == 3


def test_an_epoch_s_report_is_the_test_part_s_score_then():
    """The weights after one epoch of three are those of a fit that is stopped there."""
    stopped = {}

    class Keep(optuna.pruners.BasePruner):
        def prune(self, study, trial):
            stopped[trial.last_step] = trial.intermediate_values[trial.last_step]
            return False

        def __deepcopy__(self, memo):
            return self

    search = OptunaSearch(
        router(lr_schedule="constant", warmup_ratio=0.0),
        {f"{STEP}max_epochs": [3]},
        n_trials=1,
        cv=2,
        pruner=Keep(),
        scoring="neg_log_loss",
        refit=False,
    ).fit(MAILS, LABELS)
    one = OptunaSearch(
        router(lr_schedule="constant", warmup_ratio=0.0, max_epochs=1), {f"{STEP}max_epochs": [1]}, n_trials=1, cv=2,
        scoring="neg_log_loss", refit=False,
    ).fit(MAILS, LABELS)  # fmt: skip
    fold = [search_.cv_results_["split0_test_score"][0] for search_ in (search, one)]
    assert stopped[1] == pytest.approx(fold[1], abs=1e-6)
    assert stopped[1] != pytest.approx(fold[0], abs=1e-6)
    assert stopped[4] == pytest.approx((fold[0] + one.cv_results_["split1_test_score"][0]) / 2, abs=1e-6)


def test_watching_changes_no_score_and_the_refit_is_not_watched():
    options = {"n_trials": 2, "cv": 2, "scoring": "neg_log_loss", "random_state": 0}
    space = {f"{STEP}learning_rate": (1e-3, 1e-2, "log")}
    plain = OptunaSearch(router(max_epochs=2), space, **options).fit(MAILS, LABELS)
    watched = OptunaSearch(router(max_epochs=2), space, pruner=Recorder(), **options).fit(MAILS, LABELS)
    np.testing.assert_array_equal(
        plain.cv_results_["mean_test_score"], watched.cv_results_["mean_test_score"]
    )
    np.testing.assert_array_equal(plain.predict_proba(MAILS), watched.predict_proba(MAILS))
    assert watched.best_estimator_[-1].callbacks == [Epochs]
    assert len(watched.study_.trials[0].intermediate_values) == 4  # and none of the refit


@pytest.mark.parametrize(("own", "n_scored"), [("accuracy", 1), ("f1_macro", 2)])
def test_early_stopping_with_the_same_metric_reports_its_own_score(own, n_scored, monkeypatch):
    scored, original = [], TransformerClassifier.predict

    def predict(self, X):
        scored.append(len(X))
        return original(self, X)

    monkeypatch.setattr(TransformerClassifier, "predict", predict)
    estimator = router(max_epochs=2, early_stopping=True, validation_fraction=0.25, scoring=own)
    search = OptunaSearch(
        estimator,
        {f"{STEP}learning_rate": [5e-3]},
        n_trials=1,
        cv=KFold(3),
        pruner=Recorder(),
        scoring="accuracy",
        refit=False,
    ).fit(MAILS, LABELS)
    assert reports(search) == [[1, 2, 3, 4, 5, 6]]
    assert scored.count(6) == n_scored  # the first fold tests 6 mails; no other part has as many


def test_other_estimators_are_pruned_by_fold(monkeypatch):
    monkeypatch.setattr(Counting, "fits", 0)
    search = OptunaSearch(
        Counting(), {"shift": [0.0]}, n_trials=3, cv=4, pruner=Recorder((1, 2)), refit=False
    ).fit(X, Y)
    assert reports(search) == [[1, 2, 3, 4], [1, 2], [1, 2, 3, 4]]
    assert Counting.fits == 4 + 2 + 4


@pytest.mark.parametrize("pruner", ["median", "hyperband"])
def test_pruners_by_name_end_what_is_worse(pruner, monkeypatch):
    monkeypatch.setattr(Counting, "fits", 0)
    values = list(np.linspace(1.0, 0.0, 16))
    sampler = optuna.samplers.GridSampler({"shift": values}, seed=3)
    search = OptunaSearch(
        Counting(), {"shift": values}, n_trials=16, cv=5, pruner=pruner, sampler=sampler,
        scoring=shifted({value: value for value in values}), study_name="fixed",
    ).fit(X, Y)  # fmt: skip
    states = search.cv_results_["trial_state"]
    assert search.best_score_ == 1.0
    assert 4 <= (states == "pruned").sum() < 15
    assert Counting.fits < 16 * 5 * 0.8
    pruned = search.cv_results_["param_shift"][states == "pruned"]
    assert pruned.mean() < search.cv_results_["param_shift"][states == "complete"].mean()


def test_without_a_pruner_nothing_is_ended_or_watched():
    search = OptunaSearch(
        router(max_epochs=2), {f"{STEP}learning_rate": [1e-3]}, n_trials=1, cv=2, refit=False
    )
    assert reports(search.fit(MAILS, LABELS)) == [[2, 4]]


class Tracked(Counting):
    """Holds a megabyte; its fits are remembered weakly."""

    alive: list = []  # noqa: RUF012

    def fit(self, X, y):
        self.megabyte_ = np.zeros(131_072)
        type(self).alive.append(weakref.ref(self))
        if self.shift > 0.9:
            raise RuntimeError("too large")
        return super().fit(X, y)


def test_thirty_trials_leave_no_estimator_behind():
    Tracked.alive = []
    gc.disable()  # what only the collector frees would pile up between its runs
    try:
        search = OptunaSearch(
            Tracked(),
            {"shift": (0.0, 1.0)},
            n_trials=30,
            cv=3,
            pruner="median",
            random_state=0,
            study_name="fixed",
        )
        with pytest.warns(Warning, match="failed"):
            search.fit(X, Y)
        alive = [ref() for ref in Tracked.alive if ref() is not None]
    finally:
        gc.enable()
    assert len(Tracked.alive) > 40
    assert {"complete", "pruned", "fail"} == set(search.cv_results_["trial_state"])
    assert len(alive) == 1
    assert alive[0] is search.best_estimator_


def test_pruned_transformers_leave_no_model_behind(monkeypatch):
    models = []
    load = TransformerClassifier._load

    def loads(self, *args):
        checkpoint = load(self, *args)
        models.append(weakref.ref(checkpoint.model))
        return checkpoint

    monkeypatch.setattr(TransformerClassifier, "_load", loads)
    search = OptunaSearch(
        router(max_epochs=2),
        {f"{STEP}learning_rate": [1e-3]},
        n_trials=3,
        cv=2,
        pruner=Recorder((1, 1), (2, 2)),
        refit=False,
    ).fit(MAILS, LABELS)
    assert list(search.cv_results_["trial_state"]) == ["complete", "pruned", "pruned"]
    gc.collect()
    assert len(models) == 4
    assert not [model for model in models if model() is not None]


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_cut_mails_are_said_once_for_all_trials_and_once_for_the_refit(n_jobs):
    search = OptunaSearch(
        router(max_epochs=1, max_length=4),
        {f"{STEP}learning_rate": (1e-3, 1e-2)},
        n_trials=3,
        cv=2,
        n_jobs=n_jobs,
    )
    with pytest.warns(TruncationWarning) as caught:
        search.fit(MAILS, LABELS)
    cut = [warning for warning in caught if warning.category is TruncationWarning]
    assert len(cut) == 2
    assert "of 16 documents" in str(cut[1].message)
    if n_jobs is None:
        assert cut[0].filename == __file__


def test_a_net_of_skorch_is_watched_by_epoch_too():
    def net(epochs=3):
        return NeuralNetClassifier(
            torch.nn.Linear, module__in_features=5, module__out_features=2, criterion=torch.nn.CrossEntropyLoss,
            max_epochs=epochs, train_split=None, verbose=0,
        )  # fmt: skip

    options = {"n_trials": 2, "cv": 2, "refit": False, "scoring": "neg_log_loss", "random_state": 0}
    data = X.astype(np.float32)
    search = OptunaSearch(net(), {"lr": (1e-3, 1e-1, "log")}, pruner=Recorder((1, 2)), **options)
    search.fit(data, Y.astype(np.int64))
    assert reports(search) == [[1, 2, 3, 4, 5, 6], [1, 2]]
    assert list(search.cv_results_["trial_state"]) == ["complete", "pruned"]
