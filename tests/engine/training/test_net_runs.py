"""A run of the net: its order, its end, and losses that are no number."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import skorch
import torch
import torch.nn.functional as F
from skorch.callbacks import EarlyStopping

from sktransformer._engine.errors import NonFiniteLossError
from sktransformer._engine.training import net as room
from sktransformer._engine.training.losses import OnLogits
from sktransformer._engine.training.net import MicroBatchNet

MakeTask = Callable[..., Any]


# -- a run -------------------------------------------------------------------------------------------------------------


class Recorder(skorch.callbacks.Callback):  # type: ignore[misc]
    """Notes the rows of each batch, and raises where asked."""

    def __init__(self, raises: BaseException | None = None, at: str = "") -> None:
        self.raises = raises
        self.at = at
        self.events: list[str] = []
        self.rows: list[list[int]] = []

    def notify(self, name: str) -> None:
        self.events.append(name)
        if self.raises is not None and name == self.at:
            raise self.raises

    def on_train_begin(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
        self.notify("train begins")

    def on_train_end(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
        self.notify("train ends")

    def on_epoch_end(
        self, net: Any, dataset_train: Any = None, dataset_valid: Any = None, **kwargs: Any
    ) -> None:
        self.notify("epoch ends")

    def on_batch_end(self, net: Any, batch: Any = None, training: bool = False, **kwargs: Any) -> None:
        self.rows.append(batch[0].tolist())
        self.notify("batch ends")


def test_a_run_sees_every_document_each_epoch_in_a_new_order(make_task: MakeTask) -> None:
    task, recorder = make_task(), Recorder()
    net = task.net(callbacks=[("recorder", recorder)])
    net.run(task.data)
    assert [len(rows) for rows in recorder.rows] == [4] * 8
    first, second = np.concatenate(recorder.rows[:4]).tolist(), np.concatenate(recorder.rows[4:]).tolist()
    assert sorted(first) == sorted(second) == list(range(16))
    assert first != second
    epoch = [*["batch ends"] * 4, "epoch ends"]
    assert recorder.events == ["train begins", *epoch, *epoch, "train ends"]
    assert len(net.history) == 2
    losses = [batch["train_loss"] for batch in net.history[-1]["batches"]]
    assert len(losses) == 4
    assert all(np.isfinite(losses))
    assert [batch["train_batch_size"] for batch in net.history[-1]["batches"]] == [4] * 4


def test_a_last_batch_may_be_small(make_task: MakeTask) -> None:
    task, recorder = make_task(), Recorder()
    task.net(callbacks=[("recorder", recorder)], batch_size=5, max_epochs=1).run(task.data)
    assert [len(rows) for rows in recorder.rows] == [5, 5, 5, 1]


def test_runs_of_one_seed_are_equal_bit_by_bit(make_task: MakeTask) -> None:
    states = []
    for seed in (3, 3, 4):
        task = make_task(dropout=0.1)
        torch.manual_seed(0)
        task.net(seed=seed, lr=1e-2).run(task.data)
        states.append(torch.cat([p.detach().flatten() for p in task.model.parameters()]))
    assert torch.equal(states[0], states[1])
    assert not torch.equal(states[0], states[2])


@pytest.mark.parametrize("budget", [16, 32, 10_000])
def test_trained_weights_do_not_depend_on_the_budget(budget: int, make_task: MakeTask) -> None:
    expected, task = make_task(), make_task(layout="padded")
    expected.net(lr=1e-2, token_budget=64).run(expected.data)
    task.net(lr=1e-2, token_budget=budget).run(task.data)
    with torch.inference_mode():
        ids = torch.from_numpy(task.data.encoded.ids[:9].astype(np.int64))[None]
        difference = task.model(input_ids=ids).logits - expected.model(input_ids=ids).logits
    assert difference.abs().max() < 2e-4


def test_the_users_interrupt_goes_up(make_task: MakeTask) -> None:
    task = make_task()
    recorder = Recorder(KeyboardInterrupt(), at="batch ends")
    with pytest.raises(KeyboardInterrupt):
        task.net(callbacks=[("recorder", recorder)]).run(task.data)
    assert "train ends" not in recorder.events


def test_skorchs_early_stopping_ends_a_run(make_task: MakeTask) -> None:
    """It raises KeyboardInterrupt, which is no interrupt of the user's."""
    task, recorder = make_task(), Recorder()
    stopping = EarlyStopping(
        monitor="train_batch_count", patience=2, lower_is_better=True, sink=lambda text: None
    )
    net = task.net(callbacks=[("recorder", recorder), ("stop", stopping)], max_epochs=9)
    net.run(task.data)
    assert len(net.history) == 3  # the first is the best, and two bring nothing
    assert recorder.events[-1] == "train ends"


def test_an_error_of_a_callback_goes_up(make_task: MakeTask) -> None:
    task = make_task()
    with pytest.raises(ZeroDivisionError):
        task.net(callbacks=[("recorder", Recorder(ZeroDivisionError(), at="epoch ends"))]).run(task.data)


def test_nothing_is_printed(make_task: MakeTask, capfd: pytest.CaptureFixture[str]) -> None:
    task = make_task()
    task.net().run(task.data)
    assert capfd.readouterr() == ("", "")


# -- losses that are no number -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_names_its_step(value: float, make_task: MakeTask) -> None:
    task = make_task()
    calls = []

    def objective(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        calls.append(len(targets))
        losses = F.cross_entropy(logits, targets, reduction="none")
        return losses * value if sum(calls) > 24 else losses  # in the third batch of the second epoch

    net = MicroBatchNet(
        task.model,
        OnLogits(objective),
        collator=task.collator,
        token_budget=1000,
        precision=torch.float32,
        weight_decay=0.0,
        layer_decay=1.0,
        seed=0,
        lr=1e-3,
        max_epochs=3,
        batch_size=4,
    )
    message = f"the loss became {value} at epoch 2, step 3; lower learning_rate, raise warmup_ratio, set max_grad_norm"
    with pytest.raises(NonFiniteLossError, match=message):
        net.run(task.data)


def run_as_on_a_gpu(net: MicroBatchNet, losses: list[float]) -> list[int]:
    """Run an epoch of given losses as if the device were a GPU; return how many the history knew after each step."""
    net.collator = SimpleNamespace(device=SimpleNamespace(type="cuda"))  # type: ignore[assignment]
    net.history.new_epoch()
    known: list[int] = []
    remaining = iter(losses)

    class Count(skorch.callbacks.Callback):  # type: ignore[misc]
        def on_batch_end(self, net: Any, **kwargs: Any) -> None:
            known.append(sum("train_loss" in batch for batch in net.history[-1]["batches"]))

    net.callbacks_ = [*net.callbacks_, ("count", Count())]
    batches = [(np.array([i]),) for i in range(len(losses))]
    net.run_single_epoch(
        batches,
        training=True,
        prefix="train",
        step_fn=lambda batch: {"loss": torch.tensor(next(remaining)), "y_pred": torch.zeros(1)},
    )
    return known


def test_on_a_gpu_losses_are_read_once_in_a_while(
    make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "GPU_CHECK_EVERY", 4)
    net = make_task().net().initialize()
    losses = [float(i) for i in range(10)]
    assert run_as_on_a_gpu(net, losses) == [0, 0, 0, 4, 4, 4, 4, 8, 8, 10]
    assert [batch["train_loss"] for batch in net.history[-1]["batches"]] == losses


def test_on_a_gpu_too_the_step_is_named(make_task: MakeTask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "GPU_CHECK_EVERY", 4)
    net = make_task().net().initialize()
    with pytest.raises(NonFiniteLossError, match="the loss became nan at epoch 1, step 2;"):
        run_as_on_a_gpu(net, [1.0, float("nan"), float("nan"), 1.0, 1.0])
