"""One training run from end to end: what it learns, records, restores and leaves behind."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import skorch
import torch

from sktransformer._engine.checkpoints.structure import freeze
from sktransformer._engine.errors import NonFiniteLossError
from sktransformer._engine.inference.forward import Passes, forward, read_logits
from sktransformer._engine.training import fit as room
from sktransformer._engine.training.fit import HISTORY, TrainingResult, train
from sktransformer._engine.training.losses import CrossEntropy, OnLogits
from sktransformer.nn.schedules import schedule

MakeTask = Callable[..., Any]


def run(task: Any, **options: Any) -> TrainingResult:
    torch.manual_seed(0)
    return train(task.model, OnLogits(CrossEntropy()), task.data, task.collator, task.settings, **options)


def weights(task: Any) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in task.model.parameters()])


def predictions(task: Any) -> np.ndarray:
    rows = forward(Passes(task.model, task.collator, 200, torch.float32), task.data.encoded, read_logits)
    return rows.argmax(axis=1)


@pytest.mark.parametrize(
    "name", ["bert", "camembert", "distilbert", "flaubert-prenorm", "modernbert", "gpt2"]
)
def test_a_separable_task_is_learned(name: str, make_task: MakeTask) -> None:
    task = make_task(
        name, max_epochs=12, learning_rate=5e-3, dropout=None if name == "flaubert-prenorm" else 0.0
    )
    result = run(task)
    losses = [row["train_loss"] for row in result.history]
    assert losses[-1] < 0.3 < losses[0]
    assert predictions(task).tolist() == task.data.targets.values.tolist()


def test_the_history_has_a_row_an_epoch(make_task: MakeTask) -> None:
    result = run(make_task())
    assert [row["epoch"] for row in result.history] == [1, 2, 3]
    for row in result.history:
        assert list(row)[:4] == ["epoch", "train_loss", "learning_rate", "dur"]
        assert [name for name in HISTORY if name in row] == list(row)[:4]
        assert row["dur"] > 0
        assert not any(isinstance(value, (list, dict)) for value in row.values())
    assert result.best_epoch == 3


def test_the_loss_of_an_epoch_is_the_mean_over_documents(make_task: MakeTask) -> None:
    """Also when the last batch is small; at a rate of 0 every epoch has the loss of the first weights."""
    task = make_task(batch_size=5, learning_rate=0.0, weight_decay=0.0)
    rows = forward(Passes(task.model, task.collator, 200, torch.float32), task.data.encoded, read_logits)
    expected = CrossEntropy()(torch.from_numpy(rows), task.data.targets.values).mean().item()
    assert [row["train_loss"] for row in run(task).history] == pytest.approx([expected] * 3, abs=1e-6)


@pytest.mark.parametrize("name", ["linear", "cosine", "constant", "inverse_sqrt"])
def test_each_step_learns_at_its_rate_of_the_schedule(name: str, make_task: MakeTask) -> None:
    seen: list[float] = []

    class Rates(skorch.callbacks.Callback):  # type: ignore[misc]
        def on_grad_computed(self, net: Any, named_parameters: Any, **kwargs: Any) -> None:
            seen.append(net.optimizer_.param_groups[0]["lr"])

    task = make_task(lr_schedule=name, warmup_ratio=0.25, learning_rate=0.01)
    result = run(task, callbacks=[("rates", Rates())])
    factor = schedule(name, 12, 0.25)
    assert seen == pytest.approx([0.01 * factor(step) for step in range(12)])
    # the record of an epoch is the rate of its last step
    assert [row["learning_rate"] for row in result.history] == pytest.approx([seen[3], seen[7], seen[11]])


def test_gradients_are_clipped(make_task: MakeTask) -> None:
    norms: list[float] = []

    class Norms(skorch.callbacks.Callback):  # type: ignore[misc]
        def on_grad_computed(self, net: Any, named_parameters: Any, **kwargs: Any) -> None:
            norms.append(torch.stack([p.grad.norm() for _, p in named_parameters]).norm().item())

    run(make_task(max_grad_norm=0.001, max_epochs=1), callbacks=[("norms", Norms())])
    assert norms == pytest.approx([0.001] * 4, rel=1e-3)
    norms.clear()
    run(make_task(max_grad_norm=None, max_epochs=1), callbacks=[("norms", Norms())])
    assert min(norms) > 0.002


def test_the_model_is_left_ready_to_predict(make_task: MakeTask) -> None:
    task = make_task(dropout=0.5)
    run(task)
    assert not task.model.training
    assert all(parameter.grad is None for parameter in task.model.parameters())
    np.testing.assert_array_equal(predictions(task), predictions(task))


def test_runs_are_equal_bit_by_bit(make_task: MakeTask) -> None:
    first, second, third = make_task(dropout=0.1), make_task(dropout=0.1), make_task(dropout=0.1, seed=1)
    for task in (first, second, third):
        run(task)
    assert torch.equal(weights(first), weights(second))
    assert not torch.equal(weights(first), weights(third))


def test_frozen_weights_stay_as_they_are(make_task: MakeTask) -> None:
    task = make_task()
    freeze(task.model, 1)
    before = {name: p.detach().clone() for name, p in task.model.named_parameters()}
    run(task)
    for name, parameter in task.model.named_parameters():
        assert torch.equal(parameter, before[name]) is (not parameter.requires_grad), name


def test_lower_layers_learn_less_under_layer_decay(make_task: MakeTask) -> None:
    task = make_task(layer_decay=0.1, weight_decay=0.0, max_epochs=1)
    before = {name: p.detach().clone() for name, p in task.model.named_parameters()}
    run(task)
    moved = {name: (p - before[name]).abs().max().item() for name, p in task.model.named_parameters()}
    layers = [max(v for k, v in moved.items() if f"layer.{i}." in k) for i in (0, 1)]
    assert moved["classifier.weight"] > 5 * layers[1] > 25 * layers[0] > 0


# -- validation --------------------------------------------------------------------------------------------------------


def scores(values: list[float]) -> tuple[Callable[[], float], list[torch.Tensor], list[Any]]:
    """Return a score that follows `values`, and the weights at each call."""
    kept: list[torch.Tensor] = []
    holder: list[Any] = []
    remaining = iter(values)

    def score() -> float:
        kept.append(weights(holder[0]))
        return next(remaining)

    return score, kept, holder


def test_the_best_epochs_weights_are_restored(make_task: MakeTask) -> None:
    task = make_task(max_epochs=4, n_iter_no_change=9)
    score, kept, holder = scores([0.1, 0.9, 0.2, 0.3])
    holder.append(task)
    result = run(task, score=score)
    assert len(result.history) == 4
    assert result.best_epoch == 2
    assert torch.equal(weights(task), kept[1])
    assert not torch.equal(kept[1], kept[3])
    assert [row["valid_score"] for row in result.history] == [0.1, 0.9, 0.2, 0.3]


def test_training_stops_when_nothing_improves(make_task: MakeTask) -> None:
    task = make_task(max_epochs=9, n_iter_no_change=2)
    score, kept, holder = scores([0.5, 0.4, 0.3, 0.9])
    holder.append(task)
    ends: list[str] = []
    epochs: list[int] = []

    class Ends(skorch.callbacks.Callback):  # type: ignore[misc]
        def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
            epochs.append(len(net.history))

        def on_train_end(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
            ends.append("end")

    result = run(task, score=score, callbacks=[("ends", Ends())])
    assert len(result.history) == 3
    assert result.best_epoch == 1
    assert torch.equal(weights(task), kept[0])
    assert ends == ["end"]
    assert epochs == [1, 2, 3]  # the user's callbacks see the last epoch too


@pytest.mark.parametrize("name", ["bert", "modernbert", "flaubert", "gpt2"])
def test_training_goes_on_after_a_validation_that_predicts(name: str, make_task: MakeTask) -> None:
    """Validation runs in inference mode: nothing that it made may be needed for a gradient."""
    task = make_task(name)
    seen: list[bool] = []

    def score() -> float:
        seen.append(task.model.training)
        return float((predictions(task) == task.data.targets.values.numpy()).mean())

    result = run(task, score=score)
    assert seen == [False] * len(result.history)
    assert len({row["train_loss"] for row in result.history}) == len(result.history)


def test_validation_changes_no_step(make_task: MakeTask) -> None:
    first, second = make_task(dropout=0.1), make_task(dropout=0.1)
    remaining = iter([0.1, 0.2, 0.3])
    run(first)
    run(second, score=lambda: predictions(second).mean() * 0 + next(remaining))
    assert torch.equal(weights(first), weights(second))


# -- gradient checkpointing --------------------------------------------------------------------------------------------


def is_checkpointed(model: torch.nn.Module) -> bool:
    return any(getattr(module, "gradient_checkpointing", False) for module in model.modules())


class Listener(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@pytest.mark.parametrize(
    ("name", "dropout"),
    [("bert", 0.0), ("bert", 0.3), ("distilbert", 0.0), ("modernbert", 0.0), ("gpt2", 0.3)],
)
def test_checkpointing_changes_no_number_and_leaves_nothing(
    name: str, dropout: float, make_task: MakeTask
) -> None:
    plain, checkpointed = (
        make_task(name, dropout=dropout, gradient_checkpointing=on) for on in (False, True)
    )
    hooks = [len(module._forward_hooks) for module in checkpointed.model.modules()]
    fields = checkpointed.model.config.to_dict()
    listener = Listener()
    logging.getLogger("transformers").addHandler(listener)
    try:
        run(checkpointed)
    finally:
        logging.getLogger("transformers").removeHandler(listener)
    run(plain)
    torch.testing.assert_close(weights(checkpointed), weights(plain), rtol=0, atol=1e-5)
    assert not is_checkpointed(checkpointed.model)
    assert [len(module._forward_hooks) for module in checkpointed.model.modules()] == hooks
    assert checkpointed.model.config.to_dict() == fields
    assert listener.lines == []
    assert len(predictions(checkpointed)) == 16


def test_checkpointing_is_off_after_an_error_too(make_task: MakeTask) -> None:
    task = make_task(gradient_checkpointing=True)

    def objective(model: Any, batch: Any, targets: torch.Tensor) -> torch.Tensor:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        train(task.model, objective, task.data, task.collator, task.settings)
    assert not is_checkpointed(task.model)
    assert not task.model.training


def test_a_model_that_can_not_be_checkpointed_raises(make_task: MakeTask) -> None:
    task = make_task("flaubert", gradient_checkpointing=True)
    with pytest.raises(
        ValueError, match="gradient_checkpointing=True, but Transformers can't do it for flaubert models"
    ):
        run(task)


# -- what goes wrong ---------------------------------------------------------------------------------------------------


def test_weights_that_the_last_step_breaks_raise(make_task: MakeTask) -> None:
    task = make_task(max_epochs=1, batch_size=16, learning_rate=float("inf"), warmup_ratio=0.0)
    with pytest.raises(
        NonFiniteLossError, match="the last step left weights that are NaN or infinite; lower learning_rate"
    ):
        run(task)


def test_a_learning_rate_that_explodes_raises(make_task: MakeTask) -> None:
    task = make_task(max_epochs=5, learning_rate=1e30, max_grad_norm=None)
    with pytest.raises(NonFiniteLossError, match="lower learning_rate"):
        run(task)


def test_an_interrupt_leaves_gradients_and_mode_clean(make_task: MakeTask) -> None:
    task = make_task()

    class Interrupt(skorch.callbacks.Callback):  # type: ignore[misc]
        def on_batch_end(self, net: Any, **kwargs: Any) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(task, callbacks=[("interrupt", Interrupt())])
    assert not task.model.training
    assert all(parameter.grad is None for parameter in task.model.parameters())


# -- what is shown -----------------------------------------------------------------------------------------------------


def test_nothing_is_shown_unless_asked(make_task: MakeTask, capfd: pytest.CaptureFixture[str]) -> None:
    run(make_task())
    assert capfd.readouterr() == ("", "")


def test_verbose_shows_one_bar_and_closes_it(
    make_task: MakeTask, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bars: list[Any] = []

    class Kept(room.ProgressBar):
        def __init__(self, n_steps: int, n_epochs: int) -> None:
            super().__init__(n_steps, n_epochs)
            bars.append(self)

    monkeypatch.setattr(room, "ProgressBar", Kept)
    run(make_task(verbose=1))
    out, err = capfd.readouterr()
    assert out == ""
    assert "epoch 3/3" in err
    assert "12/12" in err
    (bar,) = bars
    assert bar.bar_.disable

    def objective(model: Any, batch: Any, targets: torch.Tensor) -> torch.Tensor:
        raise ZeroDivisionError

    task = make_task(verbose=1)
    with pytest.raises(ZeroDivisionError):
        train(task.model, objective, task.data, task.collator, task.settings)
    assert bars[1].bar_.disable
