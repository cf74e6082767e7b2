"""One optimizer step, however it is cut: gradients, weights, memory that runs out, losses that are no number."""

# long: one class, whose steps share their set-up

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import skorch
import torch
import torch.nn.functional as F
from skorch.callbacks import EarlyStopping

from sktransformer._engine.errors import NonFiniteLossError, OutOfMemoryBackoffWarning
from sktransformer._engine.text.batches import Layout
from sktransformer._engine.text.encoding import Encoded
from sktransformer._engine.training import net as room
from sktransformer._engine.training.data import TrainingData
from sktransformer._engine.training.losses import OnLogits
from sktransformer._engine.training.net import MicroBatchNet

MakeTask = Callable[..., Any]
ROWS = np.array([5, 2, 7, 0, 3])
LAYOUTS: list[Layout] = ["packed", "padded"]


def reference(task: Any, rows: np.ndarray, weights: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return gradients of the weighted mean loss, each document read by itself, by the formula."""
    task.model.zero_grad(set_to_none=True)
    encoded = task.data.encoded
    total = torch.zeros(())
    for row in rows:
        window = encoded.ids[encoded.starts[row] : encoded.starts[row + 1]]
        logits = task.model(input_ids=torch.from_numpy(window.astype(np.int64))[None]).logits
        total = total + weights[row] * F.cross_entropy(logits, task.data.targets[row : row + 1])
    (total / len(rows)).backward()
    return take_gradients(task.model)


def take_gradients(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    found = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad(set_to_none=True)
    return found


def assert_same(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, expected[name], rtol=0, atol=3e-7, msg=name)


# -- gradients ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["bert", "camembert", "distilbert", "flaubert"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("budget", [16, 64, 10_000])
def test_the_gradient_is_that_of_the_whole_batch(
    name: str, layout: Layout, budget: int, make_task: MakeTask
) -> None:
    task = make_task(name, layout)
    expected = reference(task, ROWS, torch.ones(16))
    task.net(token_budget=budget).initialize().train_step_single((ROWS,))
    assert_same(take_gradients(task.model), expected)


def test_weights_multiply_each_documents_loss(make_task: MakeTask) -> None:
    weights = np.arange(16) / 3
    task = make_task(weights=weights)
    scaled = torch.from_numpy(weights / weights.mean()).float()
    torch.testing.assert_close(task.data.weights, scaled)
    expected = reference(task, ROWS, scaled)
    task.net().initialize().train_step_single((ROWS,))
    assert_same(take_gradients(task.model), expected)


def test_a_weight_of_zero_drops_the_loss(make_task: MakeTask) -> None:
    weights = np.ones(16)
    weights[[2, 7]] = 0.0
    task = make_task(weights=weights)
    task.net().initialize().train_step_single((ROWS,))
    found = take_gradients(task.model)
    kept = np.array([5, 0, 3])
    expected = reference(task, kept, torch.full((16,), 16 / 14))
    # the sum is over the three that count, the mean over the five of the batch
    assert_same(found, {name: gradient * 3 / 5 for name, gradient in expected.items()})


@pytest.mark.parametrize("budget", [16, 10_000])
def test_the_loss_of_the_step_is_the_mean_over_the_batch(budget: int, make_task: MakeTask) -> None:
    task = make_task()
    step = task.net(token_budget=budget).initialize().train_step_single((ROWS,))
    losses = []
    for row in ROWS:
        encoded = task.data.encoded
        ids = torch.from_numpy(encoded.ids[encoded.starts[row] : encoded.starts[row + 1]].astype(np.int64))
        losses.append(
            F.cross_entropy(task.model(input_ids=ids[None]).logits, task.data.targets[row : row + 1]).item()
        )
    assert step["loss"].item() == pytest.approx(np.mean(losses), abs=1e-6)
    assert not step["loss"].requires_grad


def test_the_windows_of_a_document_share_its_weight(make_task: MakeTask) -> None:
    """Document 0 in two windows counts as much as document 1 in one."""
    task = make_task()
    encoded = task.data.encoded
    spans = [encoded.ids[a:b] for a, b in zip(encoded.starts[:3], encoded.starts[1:4], strict=True)]
    cut = Encoded(
        np.concatenate(spans), encoded.starts[:4].copy(), np.array([0, 0, 1], dtype=np.int32), n_documents=2
    )
    targets, weights = torch.tensor([1, 0]), torch.tensor([0.5, 1.5])
    net = task.net(token_budget=16).initialize()
    net.data_ = TrainingData(cut, targets, weights)
    step = net.train_step_single((np.array([0, 1]),))
    found = take_gradients(task.model)
    losses = [
        F.cross_entropy(
            task.model(input_ids=torch.from_numpy(span.astype(np.int64))[None]).logits,
            targets[document : document + 1],
        )
        for span, document in zip(spans, (0, 0, 1), strict=True)
    ]
    expected = (0.5 * (losses[0] + losses[1]) / 2 + 1.5 * losses[2]) / 2
    assert step["loss"].item() == pytest.approx(expected.item(), abs=1e-6)
    expected.backward()
    assert_same(found, take_gradients(task.model))


def test_a_step_is_adamws(make_task: MakeTask) -> None:
    """The whole of skorch's step: gradients zeroed first, one optimizer step after."""
    first, second = make_task(), make_task()
    net = first.net(token_budget=16).initialize()
    net.train_step_single((np.array([1]),))  # a stale gradient
    net.train_step((ROWS,))
    gradients = reference(second, ROWS, torch.ones(16))
    optimizer = torch.optim.AdamW(
        [
            {"params": [p for p in second.model.parameters() if p.ndim > 1], "weight_decay": 0.01},
            {"params": [p for p in second.model.parameters() if p.ndim <= 1], "weight_decay": 0.0},
        ],
        lr=1e-3,
    )
    for name, parameter in second.model.named_parameters():
        parameter.grad = gradients[name]
    optimizer.step()
    for name, parameter in first.model.named_parameters():
        # Adam divides by the gradient's size: where that is rounding alone, the direction is too
        certain = gradients[name].abs() > 1e-5
        other = dict(second.model.named_parameters())[name]
        torch.testing.assert_close(parameter[certain], other[certain], rtol=0, atol=1e-5, msg=name)


def test_dropout_is_on_in_a_step(make_task: MakeTask) -> None:
    task = make_task(dropout=0.5)
    net = task.net().initialize()
    torch.manual_seed(0)
    losses = [net.train_step_single((ROWS,))["loss"].item() for _ in range(2)]
    assert task.model.training
    assert losses[0] != losses[1]


def test_matrix_products_run_in_the_precision_and_gradients_in_float32(make_task: MakeTask) -> None:
    task = make_task()
    seen = []
    task.model.classifier.register_forward_hook(lambda module, args, output: seen.append(output.dtype))
    task.net(precision=torch.bfloat16).initialize().train_step_single((ROWS,))
    assert set(seen) == {torch.bfloat16}
    assert {p.grad.dtype for p in task.model.parameters()} == {torch.float32}


# -- memory ------------------------------------------------------------------------------------------------------------


class Memory:
    """Stands before a model's forward pass: batches of more tokens than there is room for raise."""

    def __init__(self, model: torch.nn.Module, room_for: int, error: BaseException | None = None) -> None:
        self.sizes: list[int] = []
        self.room_for = room_for
        self.error = error or torch.OutOfMemoryError("CUDA out of memory.")
        model.register_forward_pre_hook(self._check, with_kwargs=True)

    def _check(self, module: torch.nn.Module, args: Any, kwargs: dict[str, Any]) -> None:
        size = kwargs["input_ids"].numel()
        if size > self.room_for:
            raise self.error
        self.sizes.append(size)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_step_that_finds_no_memory_is_cut_finer_and_done_again(layout: Layout, make_task: MakeTask) -> None:
    task = make_task(layout=layout)
    rows = np.arange(16)
    expected = reference(task, rows, torch.ones(16))
    net = task.net(token_budget=512).initialize()
    memory = Memory(task.model, room_for=40)
    with pytest.warns(
        OutOfMemoryBackoffWarning, match="micro-batches of 32 tokens .* pass token_budget=32"
    ) as caught:
        net.train_step_single((rows,))
    assert_same(take_gradients(task.model), expected)  # nothing of the failed attempts is left in it
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert net.token_budget == 32
    assert max(memory.sizes) <= 40
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        net.train_step_single((rows,))  # and the next step starts there


def test_memory_that_runs_out_within_a_step_counts_no_gradient_twice(
    make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = make_task()
    rows = np.arange(16)
    expected = reference(task, rows, torch.ones(16))
    net = task.net(token_budget=64).initialize()
    memory = Memory(task.model, room_for=1000)
    backward = torch.Tensor.backward

    def shrinking(self: torch.Tensor, *args: Any, **kwargs: Any) -> None:
        backward(self, *args, **kwargs)
        memory.room_for = 33

    monkeypatch.setattr(torch.Tensor, "backward", shrinking)
    with pytest.warns(OutOfMemoryBackoffWarning, match="of 32 tokens"):
        net.train_step_single((rows,))
    monkeypatch.undo()
    assert memory.sizes[0] > 33
    assert_same(take_gradients(task.model), expected)


def test_memory_that_is_always_short_raises(make_task: MakeTask) -> None:
    task = make_task()
    net = task.net(token_budget=64).initialize()
    Memory(task.model, room_for=0)
    with pytest.raises(torch.OutOfMemoryError):
        net.train_step_single((ROWS,))
    assert net.token_budget >= room.SMALLEST_BUDGET


def test_other_errors_are_not_taken_for_lack_of_memory(make_task: MakeTask) -> None:
    task = make_task()
    net = task.net(token_budget=512).initialize()
    Memory(task.model, room_for=0, error=RuntimeError("shapes cannot be multiplied"))
    with pytest.raises(RuntimeError, match="shapes"):
        net.train_step_single((ROWS,))
    assert net.token_budget == 512


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


def test_one_back_off_warning_a_run(make_task: MakeTask) -> None:
    task = make_task()
    memory = Memory(task.model, room_for=100)

    class Shrink(skorch.callbacks.Callback):  # type: ignore[misc]
        def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
            memory.room_for = 33

    net = task.net(token_budget=10_000, batch_size=16, callbacks=[("shrink", Shrink())])
    with pytest.warns(OutOfMemoryBackoffWarning, match="out of memory") as caught:
        net.run(task.data)
    assert len(caught) == 1
    assert net.token_budget <= 39


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
