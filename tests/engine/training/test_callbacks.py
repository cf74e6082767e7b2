"""Validation: the best epoch is kept whole, and training stops when nothing improves. The progress bar."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from skorch.history import History
from torch import nn

from sktransformer._engine.training import callbacks as room
from sktransformer._engine.training.callbacks import ProgressBar, StopTraining, StopWhenDue, ValidationScoring

NAN = float("nan")


def net_of(module: nn.Module) -> Any:
    return SimpleNamespace(module_=module, history=History())


def run(scores: list[float], n_iter_no_change: int) -> tuple[ValidationScoring, Any, nn.Linear]:
    """Let an epoch pass for each score, its number in the weights; stop where the callback says so."""
    module = nn.Linear(1, 1)
    module.register_buffer("seen", torch.zeros(1))
    net = net_of(module)
    remaining = iter(scores)
    callback = ValidationScoring(lambda: next(remaining), n_iter_no_change)
    stop = StopWhenDue(callback)
    callback.on_train_begin(net)
    for epoch in range(1, len(scores) + 1):
        net.history.new_epoch()
        with torch.no_grad():
            for tensor in module.state_dict().values():
                tensor.fill_(epoch)
        module.train()
        callback.on_epoch_end(net)
        try:
            stop.on_epoch_end(net)
        except StopTraining:
            break
    return callback, net, module


@pytest.mark.parametrize(
    ("scores", "patience", "epochs", "best"),
    [
        ([0.1, 0.2, 0.3], 1, 3, 3),
        ([0.3, 0.2, 0.9], 1, 2, 1),
        ([0.1, 0.3, 0.2, 0.2, 0.9], 2, 4, 2),
        ([0.1, 0.3, 0.2, 0.4, 0.1], 2, 5, 4),
        ([0.5, 0.5, 0.5, 0.9], 2, 3, 3),  # a tie does not go on, but the later epoch is kept
        ([0.5, 0.4, 0.5, 0.5], 3, 4, 4),
        ([0.0, 0.0], 5, 2, 2),
        ([-3.0, -2.0], 1, 2, 2),
        ([NAN, 0.1, 0.2], 2, 3, 3),  # an undefined score is worse than any
        ([NAN, NAN, 0.1, 0.0], 3, 4, 3),
        ([0.1, NAN, 0.2], 2, 3, 3),
        ([NAN, NAN, NAN, NAN], 2, 3, 3),
        ([float("-inf"), 0.1], 1, 2, 2),
    ],
)
def test_the_best_epoch_is_kept(scores: list[float], patience: int, epochs: int, best: int) -> None:
    callback, net, module = run(scores, patience)
    assert len(net.history) == epochs
    assert callback.best_epoch_ == best
    callback.restore(module)
    assert {tensor.item() for tensor in module.state_dict().values()} == {best}  # parameters and buffers


def test_scores_and_the_best_so_far_are_recorded() -> None:
    _, net, _ = run([0.1, 0.3, 0.2], 5)
    assert [row["valid_score"] for row in net.history] == [0.1, 0.3, 0.2]
    assert [bool(row["valid_score_best"]) for row in net.history] == [True, True, False]


def test_the_model_is_scored_in_evaluation_mode() -> None:
    module = nn.Linear(1, 1)
    net = net_of(module)
    seen = []
    callback = ValidationScoring(lambda: seen.append(module.training) or 1.0, 1)  # type: ignore[func-returns-value]
    callback.on_train_begin(net)
    net.history.new_epoch()
    module.train()
    callback.on_epoch_end(net)
    assert seen == [False]


def test_kept_weights_are_a_copy_on_the_host_and_given_up_once_restored() -> None:
    callback, _, module = run([0.5], 1)
    with torch.no_grad():
        module.weight.fill_(77.0)
    assert callback.best_weights_["weight"].item() == 1.0
    assert callback.best_weights_["weight"].device.type == "cpu"
    callback.restore(module)
    assert module.weight.item() == 1.0
    assert callback.best_weights_ == {}
    with torch.no_grad():
        module.weight.fill_(5.0)
    callback.restore(module)  # nothing is kept, so nothing is put back
    assert module.weight.item() == 5.0


def test_a_second_run_forgets_the_first() -> None:
    callback, net, _ = run([0.9], 1)
    callback.on_train_begin(net)
    assert callback.best_weights_ == {}
    assert callback.best_epoch_ == 0
    callback.score = lambda: 0.1
    callback.on_epoch_end(net)
    assert callback.best_score_ == 0.1


def test_stopping_is_no_error_of_the_users() -> None:
    """Nothing that catches errors by their common classes may swallow it."""
    assert not issubclass(StopTraining, (RuntimeError, ValueError, OSError, KeyboardInterrupt))


# -- the progress bar --------------------------------------------------------------------------------------------------


def shown(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Send the bar into a string, each step of it."""
    written = io.StringIO()
    original = room.tqdm

    def bar(**options: Any) -> Any:
        return original(
            **{**options, "file": written, "mininterval": 0, "dynamic_ncols": False, "ncols": 120}
        )

    monkeypatch.setattr(room, "tqdm", bar)
    return written


def test_the_bar_shows_epoch_step_loss_and_score(monkeypatch: pytest.MonkeyPatch) -> None:
    written = shown(monkeypatch)
    net = net_of(nn.Linear(1, 1))
    bar = ProgressBar(n_steps=4, n_epochs=2)
    bar.on_train_begin(net)
    for epoch in (1, 2):
        net.history.new_epoch()
        for step in (1, 2):
            net.history.new_batch()
            net.history.record_batch("train_loss", epoch + step / 10)
            bar.on_batch_end(net, training=True)
        net.history.record("valid_score", 0.75)
    assert bar.bar_.n == bar.bar_.total == 4
    bar.on_train_end(net)
    assert bar.bar_.disable  # closed
    last = written.getvalue().split("\r")[-1]
    for part in ("epoch 2/2", "4/4", "loss=2.200", "valid=0.750"):
        assert part in last


def test_the_bar_shows_the_newest_loss_that_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU the newest steps have none yet."""
    written = shown(monkeypatch)
    net = net_of(nn.Linear(1, 1))
    bar = ProgressBar(3, 1)
    bar.on_train_begin(net)
    net.history.new_epoch()
    net.history.new_batch()
    bar.on_batch_end(net)
    assert "loss" not in written.getvalue()
    net.history.record_batch("train_loss", 0.5)
    net.history.new_batch()
    bar.on_batch_end(net)
    assert "loss=0.500" in written.getvalue()
    bar.close()


def test_a_bar_that_was_never_opened_may_be_closed() -> None:
    ProgressBar(1, 1).close()
