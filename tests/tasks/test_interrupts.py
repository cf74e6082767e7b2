"""Runs that end badly: interrupts, losses that are no number, memory that runs out, models that collapse."""

import gc
import os
import signal
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted
from skorch.callbacks import Callback, EpochTimer
from transformers import BertConfig

from sktransformer._engine.errors import NonFiniteLossError, OutOfMemoryBackoffWarning
from sktransformer._engine.training.net import MicroBatchNet
from sktransformer.tasks.classification import TransformerClassifier
from sktransformer.tasks.embedding import TransformerEmbedder
from sktransformer.testing.checkpoints import tiny_checkpoint

Maker = Callable[..., TransformerClassifier]
# a random model of one epoch takes every mail for one class, and says so
collapses = pytest.mark.filterwarnings("ignore:training collapsed:sklearn.exceptions.ConvergenceWarning")


# -- interrupts -------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _ctrl_c_interrupts() -> Iterator[None]:
    """As in a process of one's own: the workers of a parallel test run ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Interrupting(Callback):
    """Sends the process a real SIGINT at the end of a step."""

    def __init__(self, at: int) -> None:
        self.at = at

    def on_train_begin(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
        self.steps = 0

    def on_batch_end(self, net: Any, **kwargs: Any) -> None:
        self.steps += 1
        if self.steps == self.at:
            os.kill(os.getpid(), signal.SIGINT)


class Raising(Callback):
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        raise self.error


INTERRUPTS = {
    "signal": (Interrupting(2), KeyboardInterrupt),
    "raised": (Raising(KeyboardInterrupt()), KeyboardInterrupt),
    "error": (Raising(ZeroDivisionError("in a callback")), ZeroDivisionError),
}


@pytest.mark.parametrize("kind", INTERRUPTS)
@pytest.mark.parametrize("early_stopping", [False, True])
def test_an_interrupted_fit_leaves_an_unfitted_estimator(
    quick: Maker, mails: list[str], labels: list[str], kind: str, early_stopping: bool
) -> None:
    callback, error = INTERRUPTS[kind]
    estimator = quick(callbacks=[callback], early_stopping=early_stopping)
    before = dict(vars(estimator))
    state = torch.get_rng_state()
    with pytest.raises(error):
        estimator.fit(mails, labels)
    assert vars(estimator) == before
    assert torch.equal(torch.get_rng_state(), state)
    with pytest.raises(NotFittedError):
        estimator.predict(mails)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert estimator.set_params(callbacks=None).fit(mails, labels).predict(mails).shape == (24,)


@collapses
@pytest.mark.parametrize("kind", INTERRUPTS)
@pytest.mark.parametrize("warm_start", [False, True])
def test_an_earlier_fit_survives(
    quick: Maker, mails: list[str], labels: list[str], kind: str, warm_start: bool
) -> None:
    callback, error = INTERRUPTS[kind]
    estimator = quick(warm_start=warm_start).fit(mails, labels)
    probabilities, attributes = estimator.predict_proba(mails), dict(vars(estimator))
    estimator.set_params(callbacks=[callback], learning_rate=0.1)
    with pytest.raises(error):
        estimator.fit(
            mails[:12], [f"autre {label}" for label in labels[:12]] if not warm_start else labels[:12]
        )
    for name, value in attributes.items():
        if name.endswith("_"):
            assert vars(estimator)[name] is value
    np.testing.assert_array_equal(estimator.predict_proba(mails), probabilities)
    assert not estimator.model_.training
    assert all(parameter.grad is None for parameter in estimator.model_.parameters())


def test_ctrl_c_inside_a_callback_of_skorch_is_not_taken_for_its_stop_sign(
    quick: Maker, mails: list[str], labels: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """skorch's EarlyStopping stops by raising KeyboardInterrupt, in a module where a Ctrl-C may arrive as well."""

    class Clock:
        @staticmethod
        def time() -> float:
            signal.raise_signal(signal.SIGINT)
            return 0.0

    monkeypatch.setitem(EpochTimer.on_epoch_end.__globals__, "time", Clock)
    with pytest.raises(KeyboardInterrupt):
        quick().fit(mails, labels)


# -- numbers that are none --------------------------------------------------------------------------------------------


def test_a_loss_that_is_nan_names_epoch_and_step(
    quick: Maker, mails: list[str], labels: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = iter(range(100))
    accumulate = MicroBatchNet._accumulate

    def broken(self: MicroBatchNet, documents: Any) -> Any:
        step = accumulate(self, documents)
        return {**step, "loss": step["loss"] * float("nan")} if next(steps) == 4 else step

    monkeypatch.setattr(MicroBatchNet, "_accumulate", broken)
    estimator = quick(max_epochs=3, batch_size=8)  # three steps an epoch
    with pytest.raises(
        NonFiniteLossError, match="the loss became nan at epoch 2, step 2; lower learning_rate"
    ):
        estimator.fit(mails, labels)
    with pytest.raises(NotFittedError):
        check_is_fitted(estimator)


def test_a_huge_learning_rate(quick: Maker, mails: list[str], labels: list[str]) -> None:
    with pytest.raises(NonFiniteLossError, match="lower learning_rate"):
        quick(learning_rate=1e38, max_epochs=3, warmup_ratio=0.0).fit(mails, labels)


def test_weights_that_the_last_step_breaks(quick: Maker, mails: list[str], labels: list[str]) -> None:
    """No later loss would show it."""
    estimator = quick(learning_rate=1e39, batch_size=24, warmup_ratio=0.0, weight_decay=0.0)
    with pytest.raises(NonFiniteLossError, match="the last step left weights that are NaN or infinite"):
        estimator.fit(mails, labels)
    with pytest.raises(NotFittedError):
        check_is_fitted(estimator)


@pytest.mark.parametrize("scoring", ["neg_log_loss", lambda estimator, X, y: float("nan")])
def test_a_score_that_is_not_defined_on_the_held_out_mails(
    quick: Maker, three_mails: list[str], scoring: Any
) -> None:
    y = [*["a"] * 12, *["b"] * 5, "c"]
    estimator = quick(early_stopping=True, validation_fraction=0.1, scoring=scoring)
    with (
        pytest.warns(UserWarning, match=r"1 class\(es\) with a single member stay out of validation: c\."),
        pytest.raises(ValueError, match="can't be computed on the 2 documents held out for early stopping"),
    ):
        estimator.fit(three_mails, y)


def test_collapse_is_said(quick: Maker, mails: list[str]) -> None:
    y = ["facture"] * 22 + ["livraison"] * 2
    with pytest.warns(
        ConvergenceWarning,
        match=r"training collapsed: every document is taken for 'facture'; lower",
    ) as record:
        quick(max_epochs=3).fit(mails, y)
    assert len(record) == 1
    assert record[0].filename == __file__


def test_a_model_that_learns_does_not_collapse(
    classifier: Maker, mails: list[str], labels: list[str]
) -> None:
    classifier().fit(mails, labels)  # a warning is an error here


# -- memory -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_memory(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Make a model run out of memory above 64 tokens; the list holds the size of each forward pass that ran."""
    passes: list[int] = []
    owner = torch.nn.Module
    call = owner.__call__

    def limited(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        if "input_ids" in kwargs and type(self).__name__.endswith(("ForSequenceClassification", "Model")):
            size = kwargs["input_ids"].numel()
            if size > 64:
                raise torch.OutOfMemoryError(f"CUDA out of memory at {size} tokens")
            passes.append(size)
        return call(self, *args, **kwargs)

    monkeypatch.setattr(owner, "__call__", limited)
    return passes


@collapses
@pytest.mark.parametrize("name", ["camembert", "flaubert"])
def test_training_goes_on_in_smaller_pieces(
    classifier: Maker, mails: list[str], labels: list[str], name: str, small_memory: list[int]
) -> None:
    expected = classifier(name, max_epochs=3, token_budget=64).fit(mails, labels)
    assert max(small_memory) <= 64
    estimator = classifier(name, max_epochs=3, token_budget=1024)
    with pytest.warns(OutOfMemoryBackoffWarning) as record:
        estimator.fit(mails, labels)
    (warning,) = [w for w in record if w.category is OutOfMemoryBackoffWarning]
    assert str(warning.message).startswith("out of memory: continuing with micro-batches of 64 tokens")
    assert warning.filename == __file__
    state = estimator.model_.state_dict()
    for parameter, tensor in expected.model_.state_dict().items():
        torch.testing.assert_close(state[parameter], tensor, atol=1e-6, rtol=0)


@collapses
def test_a_fit_says_once_that_memory_is_short(
    classifier: Maker, mails: list[str], labels: list[str], small_memory: list[int]
) -> None:
    """In training, in each epoch's validation and in the look at its end."""
    estimator = classifier(max_epochs=3, early_stopping=True, validation_fraction=0.4)
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        estimator.fit(mails, labels)
    assert [w.category for w in record].count(OutOfMemoryBackoffWarning) == 1
    with pytest.warns(OutOfMemoryBackoffWarning):  # another call says so again
        estimator.predict(mails)


@collapses
def test_prediction_goes_on_in_smaller_pieces(
    classifier: Maker, mails: list[str], labels: list[str], small_memory: list[int]
) -> None:
    fitted = classifier(max_epochs=3, token_budget=64).fit(mails, labels)
    embedder = TransformerEmbedder(tiny_checkpoint("bert"), token_budget=64, precision="float32").fit(mails)
    for estimator, method in ((fitted, "predict_proba"), (embedder, "transform")):
        expected = getattr(estimator, method)(mails)
        estimator.set_params(token_budget=2048)
        with pytest.warns(OutOfMemoryBackoffWarning) as record:
            got = getattr(estimator, method)(mails)
        assert len(record) == 1
        assert record[0].filename == __file__
        np.testing.assert_allclose(got, expected, atol=1e-6)


@collapses
def test_gradients_of_a_failed_attempt_are_dropped(
    quick: Maker, mails: list[str], labels: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = quick(token_budget=32).fit(mails, labels)
    call, passes = torch.nn.Module.__call__, iter(range(10**6))

    def failing(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        if type(self).__name__ == "CamembertForSequenceClassification" and next(passes) == 2:
            raise RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 1 bytes.")
        return call(self, *args, **kwargs)

    monkeypatch.setattr(torch.nn.Module, "__call__", failing)
    estimator = quick(token_budget=64)
    with pytest.warns(OutOfMemoryBackoffWarning):
        estimator.fit(mails, labels)
    np.testing.assert_allclose(estimator.predict_proba(mails), expected.predict_proba(mails), atol=1e-6)
    np.testing.assert_allclose(estimator.history_.train_loss, expected.history_.train_loss, rtol=1e-6)


def test_memory_that_is_short_for_one_mail_is_an_error(
    quick: Maker, mails: list[str], labels: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Any, documents: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(MicroBatchNet, "_accumulate", full)
    estimator = quick()
    with pytest.raises(torch.OutOfMemoryError):
        estimator.fit(mails, labels)
    with pytest.raises(NotFittedError):
        check_is_fitted(estimator)


def test_other_errors_of_torch_are_no_lack_of_memory(
    quick: Maker, mails: list[str], labels: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Any, documents: Any) -> Any:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    monkeypatch.setattr(MicroBatchNet, "_accumulate", broken)
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        quick().fit(mails, labels)


def test_a_fit_in_a_thread_needs_no_signals(quick: Maker, mails: list[str], labels: list[str]) -> None:
    fitted: list[Any] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        thread = threading.Thread(target=lambda: fitted.append(quick().fit(mails, labels)))
        thread.start()
        thread.join()
    assert fitted[0].predict(mails).shape == (24,)


# -- what is left behind ----------------------------------------------------------------------------------------------


@collapses
def test_folds_leave_no_models_behind(quick: Maker, mails: list[str], labels: list[str]) -> None:
    models = []
    for seed in range(3):
        fitted = (
            quick(random_state=seed, early_stopping=True, warm_start=True)
            .fit(mails, labels)
            .fit(mails, labels)
        )
        fitted.predict(mails)
        models.append(weakref.ref(fitted.model_))
    del fitted
    gc.collect()
    assert [model() for model in models] == [None] * 3


@collapses
def test_ten_folds_and_a_hundred_predictions_keep_memory_flat(
    quick: Maker, mails: list[str], labels: list[str]
) -> None:
    process = pytest.importorskip("psutil").Process()

    def memory() -> int:
        gc.collect()
        return int(process.memory_info().rss)

    config = BertConfig(hidden_size=256, num_hidden_layers=2, num_attention_heads=4, intermediate_size=1024)
    kept = quick().set_params(model=config, max_length=32)
    for _ in range(3):
        kept.fit(mails, labels)
    size = sum(4 * parameter.numel() for parameter in kept.model_.parameters())
    before = memory()
    for _ in range(10):
        kept.fit(mails, labels)
    after_folds = memory()
    for _ in range(100):
        kept.predict(mails[:4])
    assert after_folds - before < 5 * size  # a model kept a fold would be ten
    assert memory() - after_folds < size / 2
