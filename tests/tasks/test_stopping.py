"""When a run ends, who watches it, what its history says, and how another goes on from it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import get_scorer, make_scorer, recall_score
from skorch.callbacks import Callback, EarlyStopping, EpochTimer

from sktransformer.tasks._holdout import held_out
from sktransformer.tasks.classification import TransformerClassifier

Maker = Callable[..., TransformerClassifier]
Weights = dict[str, torch.Tensor]
# a random model of one epoch takes every mail for one class, and says so
pytestmark = pytest.mark.filterwarnings("ignore:training collapsed:sklearn.exceptions.ConvergenceWarning")


SCORERS = {
    "default": (None, make_scorer(recall_score, average="macro")),
    "f1_macro": ("f1_macro", get_scorer("f1_macro")),
    "accuracy": ("accuracy", get_scorer("accuracy")),
    "neg_log_loss": ("neg_log_loss", get_scorer("neg_log_loss")),
    "roc_auc": ("roc_auc", get_scorer("roc_auc")),
    "scorer": (make_scorer(recall_score, pos_label="facture"),) * 2,
    "callable": ((lambda estimator, X, y: -float(estimator.predict_proba(X)[0, 0])),) * 2,
}


@pytest.mark.parametrize("kind", SCORERS)
def test_early_stopping_restores_the_best_epoch(
    classifier: Maker, mails: list[str], labels: list[str], kind: str
) -> None:
    scoring, scorer = SCORERS[kind]
    fitted = classifier(
        early_stopping=True, validation_fraction=0.34, scoring=scoring, n_iter_no_change=2, max_epochs=8
    ).fit(mails, labels)
    scores = fitted.history_.valid_score.to_numpy()
    assert np.isfinite(scores).all()
    assert fitted.best_epoch_ == int(np.flatnonzero(scores == scores.max())[-1]) + 1  # the later of equals
    assert fitted.n_epochs_ == len(scores) == min(8, int(scores.argmax()) + 1 + 2)
    if kind != "default":
        _, held = held_out(np.arange(24) % 2, fitted.classes_, 0.34, 0)
        again = scorer(fitted, [mails[i] for i in held], [labels[i] for i in held])
        assert again == pytest.approx(scores.max(), abs=1e-6)


def test_the_best_epoch_comes_back_whole_with_its_buffers(
    quick: Maker, mails: list[str], labels: list[str]
) -> None:
    snapshots: list[Weights] = []
    scores = iter([0.1, 0.9, 0.3, 0.2])

    class Snapshots(Callback):
        def on_train_begin(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
            net.module_.register_buffer("seen", torch.zeros(1))

        def on_batch_end(self, net: Any, **kwargs: Any) -> None:
            net.module_.seen += 1

        def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
            snapshots.append({n: t.clone() for n, t in net.module_.state_dict().items()})

    fitted = quick(
        early_stopping=True,
        max_epochs=4,
        n_iter_no_change=3,
        scoring=lambda estimator, X, y: next(scores),
        callbacks=[Snapshots()],
    ).fit(mails, labels)
    assert fitted.best_epoch_ == 2
    state = fitted.model_.state_dict()
    assert state.keys() == snapshots[1].keys()
    assert all(torch.equal(state[name], snapshots[1][name]) for name in state)
    assert float(state["seen"]) == 6.0  # 22 mails in training, 8 a step
    assert not torch.equal(state["classifier.dense.weight"], snapshots[3]["classifier.dense.weight"])
    assert not fitted.model_.training


def test_skorch_early_stopping_stops(quick: Maker, mails: list[str], labels: list[str]) -> None:
    stop = EarlyStopping(monitor="train_loss", patience=2, threshold=10.0, threshold_mode="abs")
    fitted = quick(max_epochs=9, callbacks=[stop]).fit(mails, labels)
    assert fitted.n_epochs_ == len(fitted.history_) == 3  # the first counts as progress, two more do not
    assert fitted.predict(mails).shape == (24,)


def test_callbacks_are_called_in_order(quick: Maker, mails: list[str], labels: list[str]) -> None:
    seen: list[str] = []

    class Listening(Callback):
        def __init__(self, name: str) -> None:
            self.name = name

        def on_train_begin(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
            seen.append(f"{self.name} begins")

        def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
            seen.append(f"{self.name} {net.history[-1, 'train_loss']:.3f}")

        def on_train_end(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
            seen.append(f"{self.name} ends")

    fitted = quick(callbacks=[Listening("a"), Listening("b")]).fit(mails, labels)
    loss = f"{fitted.history_.train_loss[0]:.3f}"
    assert seen == ["a begins", "b begins", f"a {loss}", f"b {loss}", "a ends", "b ends"]


class Counting(Callback):
    def __init__(self) -> None:
        self.epochs = 0

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        self.epochs += 1


def test_callbacks_come_in_the_forms_that_skorch_takes(
    quick: Maker, mails: list[str], labels: list[str]
) -> None:
    counter = Counting()
    quick(callbacks=[("mine", counter), EpochTimer]).fit(mails, labels)
    assert counter.epochs == 1
    assert quick(callbacks=()).fit(mails, labels).n_epochs_ == 1


class Asking(Callback):
    """Asks the estimator in training for its probabilities."""

    def __init__(self, texts: list[str]) -> None:
        self.texts = texts
        self.said: list[Any] = []

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        net.module_.eval()
        self.said.append(net.estimator_.predict_proba(self.texts))


def test_a_callback_may_ask_the_estimator_in_training(
    quick: Maker, mails: list[str], labels: list[str]
) -> None:
    asking = Asking(mails[:3])
    fitted = quick(max_epochs=2, callbacks=[asking]).fit(mails, labels)
    assert not np.array_equal(asking.said[0], asking.said[1])
    np.testing.assert_array_equal(asking.said[1], fitted.predict_proba(mails[:3]))


@pytest.mark.parametrize(
    ("callbacks", "error", "message"),
    [
        (
            Counting(),
            TypeError,
            "callbacks must be a list of skorch callbacks, got Counting; put it into a list",
        ),
        ([None], TypeError, r"callbacks\[0\] must be a skorch callback, got NoneType"),
        ([Counting(), "early"], TypeError, r"callbacks\[1\] must be a skorch callback, got str"),
        # its default is to monitor valid_loss
        (
            [EarlyStopping()],
            ValueError,
            r"Key 'valid_loss' was not found .*It has \['train_loss'\]; let the callback",
        ),
    ],
)
def test_callbacks_that_can_not_work(
    quick: Maker, mails: list[str], labels: list[str], callbacks: Any, error: type, message: str
) -> None:
    with pytest.raises(error, match=message):
        quick(callbacks=callbacks).fit(mails, labels)


def test_warm_start_goes_on(quick: Maker, mails: list[str], labels: list[str]) -> None:
    fitted = quick(warm_start=True, max_epochs=2).fit(mails, labels)
    first = {name: tensor.clone() for name, tensor in fitted.model_.state_dict().items()}
    before = fitted.predict_proba(mails)
    fitted.set_params(learning_rate=0.0).fit(mails, labels)
    np.testing.assert_array_equal(fitted.predict_proba(mails), before)
    assert fitted.history_.epoch.tolist() == [1, 2, 3, 4]
    assert fitted.best_epoch_ == 4
    fitted.set_params(learning_rate=1e-3).fit(mails, labels)
    assert not torch.equal(first["classifier.dense.weight"], fitted.model_.classifier.dense.weight)
    assert len(fitted.history_) == 6
    fresh = fitted.set_params(warm_start=False).fit(mails, labels)
    np.testing.assert_array_equal(fresh.predict_proba(mails), before)
    assert len(fresh.history_) == 2


def test_warm_start_needs_the_same_classes(quick: Maker, mails: list[str], labels: list[str]) -> None:
    fitted = quick(warm_start=True).fit(mails, labels)
    before = fitted.predict_proba(mails)
    other = [label.replace("livraison", "colis") for label in labels]
    with pytest.raises(
        ValueError, match=r"the first fit, \['facture', 'livraison'\], got \['colis', 'facture'\]"
    ):
        fitted.fit(mails, other)
    np.testing.assert_array_equal(fitted.predict_proba(mails), before)


def test_history_has_a_row_an_epoch(quick: Maker, mails: list[str], labels: list[str]) -> None:
    plain = quick(max_epochs=2).fit(mails, labels).history_
    assert plain.columns.tolist() == ["epoch", "train_loss", "learning_rate", "dur"]
    assert plain.epoch.tolist() == [1, 2]
    assert (plain.dur > 0).all()
    scored = quick(early_stopping=True).fit(mails, labels).history_
    assert scored.columns.tolist() == [
        "epoch", "train_loss", "valid_score", "learning_rate", "dur",
    ]  # fmt: skip
