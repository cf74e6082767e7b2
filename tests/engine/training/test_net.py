"""One optimizer step, however it is cut: gradients, weights, memory that runs out, losses that are no number."""

# long: one class, whose steps share their set-up

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import skorch
import torch
import torch.nn.functional as F

from sktransformer._engine.errors import OutOfMemoryBackoffWarning
from sktransformer._engine.text.batches import Layout
from sktransformer._engine.text.windows import Encoded
from sktransformer._engine.training import net as room
from sktransformer._engine.training.data import DocumentTargets, TrainingData

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
        total = total + weights[row] * F.cross_entropy(logits, task.data.targets.values[row : row + 1])
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
            F.cross_entropy(
                task.model(input_ids=ids[None]).logits, task.data.targets.values[row : row + 1]
            ).item()
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
    net.data_ = TrainingData(cut, DocumentTargets(targets), weights)
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
