"""Learning rates step by step, and what each parameter learns and decays at."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from sktransformer._engine.checkpoints.loading import Checkpoint
from sktransformer._engine.checkpoints.structure import depth_of
from sktransformer._engine.training.schedules import fused_adamw, parameter_groups
from sktransformer.nn.schedules import SCHEDULES, schedule
from sktransformer.testing.checkpoints import ENCODERS

Loader = Callable[..., Checkpoint]


def factors(name: str, n_steps: int, warmup_ratio: float) -> list[float]:
    factor = schedule(name, n_steps, warmup_ratio)
    return [factor(step) for step in range(n_steps)]


# -- schedules ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "n_steps", "warmup_ratio", "expected"),
    [
        ("linear", 4, 0.0, [1, 3 / 4, 2 / 4, 1 / 4]),
        ("linear", 6, 1 / 3, [1 / 3, 2 / 3, 1, 3 / 4, 2 / 4, 1 / 4]),
        ("linear", 1, 0.0, [1]),
        ("linear", 3, 1.0, [1 / 4, 2 / 4, 3 / 4]),
        ("linear", 4, 0.01, [1 / 2, 1, 2 / 3, 1 / 3]),  # a part of a step is a step
        ("cosine", 4, 0.0, [1, 0.5 + math.sqrt(0.5) / 2, 0.5, 0.5 - math.sqrt(0.5) / 2]),
        ("cosine", 4, 0.5, [1 / 3, 2 / 3, 1, 0.5]),
        ("constant", 3, 0.0, [1, 1, 1]),
        ("constant", 4, 0.5, [1 / 3, 2 / 3, 1, 1]),
    ],
)
def test_factors_by_hand(name: str, n_steps: int, warmup_ratio: float, expected: list[float]) -> None:
    assert factors(name, n_steps, warmup_ratio) == pytest.approx(expected)


@given(st.sampled_from(SCHEDULES), st.integers(1, 300), st.floats(0, 1))
def test_a_schedule_climbs_then_falls_and_never_stands_at_zero(
    name: str, n_steps: int, warmup_ratio: float
) -> None:
    values = factors(name, n_steps, warmup_ratio)
    assert all(0 < value <= 1 for value in values)  # every step learns
    n_warmup = math.ceil(warmup_ratio * n_steps)
    climb, fall = values[: n_warmup + 1], values[n_warmup:]
    assert climb == sorted(climb)
    assert fall == sorted(fall, reverse=True)
    if fall:
        assert fall[0] == 1


@pytest.mark.parametrize("name", ["linear", "cosine"])
def test_a_schedule_ends_at_zero_and_stays_there(name: str) -> None:
    factor = schedule(name, 10, 0.1)
    assert factor(10) == pytest.approx(0)
    assert factor(15) == pytest.approx(0)


@pytest.mark.parametrize(
    ("name", "ratio", "message"),
    [
        ("lineer", 0.1, r"lr_schedule='lineer' is not known; choose one of .*Did you mean 'linear'\?"),
        (None, 0.1, "lr_schedule=None is not known"),
        ("linear", -0.1, r"warmup_ratio must lie in \[0, 1\], got -0\.1"),
        ("linear", 1.1, r"warmup_ratio must lie in \[0, 1\], got 1\.1"),
        ("linear", float("nan"), "warmup_ratio must lie in"),
    ],
)
def test_what_is_no_schedule_raises(name: str, ratio: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        schedule(name, 10, ratio)


# -- parameter groups --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ENCODERS)
def test_each_parameter_learns_at_the_rate_of_its_depth(name: str, checkpoint: Loader) -> None:
    model = checkpoint(name, "classification").model
    groups = parameter_groups(model, 0.1, 0.01, 0.5)
    settings = {id(p): (g["lr"], g["weight_decay"]) for g in groups for p in g["params"]}
    assert sum(len(g["params"]) for g in groups) == len(settings) == len(list(model.parameters()))
    for key, parameter in model.named_parameters():
        rate, decay = settings[id(parameter)]
        # two layers, so the head is at depth 3 and the embeddings at 0
        assert rate == pytest.approx(0.1 * 0.5 ** (3 - depth_of(key, 2))), key
        assert decay == (0.0 if parameter.ndim == 1 else 0.01), key


def test_the_heads_rate_comes_first(checkpoint: Loader) -> None:
    """The history records the first group's rate."""
    rates = [g["lr"] for g in parameter_groups(checkpoint("bert", "classification").model, 0.1, 0.01, 0.5)]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] == 0.1


def test_without_layer_decay_there_are_two_groups(checkpoint: Loader) -> None:
    groups = parameter_groups(checkpoint("bert", "classification").model, 0.1, 0.01, 1.0)
    assert [(g["lr"], g["weight_decay"]) for g in groups] in (
        [(0.1, 0.01), (0.1, 0.0)],
        [(0.1, 0.0), (0.1, 0.01)],
    )


def test_frozen_parameters_are_in_no_group(fresh_checkpoint: Loader) -> None:
    model = fresh_checkpoint("bert", "classification").model
    for parameter in model.base_model.parameters():
        parameter.requires_grad_(False)
    groups = parameter_groups(model, 0.1, 0.01, 0.9)
    assert {id(p) for g in groups for p in g["params"]} == {id(p) for p in model.classifier.parameters()}  # type: ignore[union-attr]


@pytest.mark.parametrize("value", [0.0, -1.0, 1.1, float("nan")])
def test_layer_decay_out_of_range_raises(value: float, checkpoint: Loader) -> None:
    with pytest.raises(ValueError, match=r"layer_decay must lie in \(0, 1\], got"):
        parameter_groups(checkpoint("bert", "classification").model, 0.1, 0.01, value)


# -- the optimizer -----------------------------------------------------------------------------------------------------


def test_adamw_by_its_formula() -> None:
    """theta <- theta - lr (m / (sqrt v + eps) + decay theta), with both moments corrected for their start."""
    weights = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    parameter = nn.Parameter(weights.clone())
    optimizer = fused_adamw([{"params": [parameter], "lr": 0.1, "weight_decay": 0.3}], 9.9)
    assert optimizer.defaults["fused"]
    m, v = torch.zeros(3), torch.zeros(3)
    for step, gradient in enumerate((torch.tensor([1.0, 0.0, -3.0]), torch.tensor([2.0, 1.0, 0.5])), start=1):
        parameter.grad = gradient.double()
        optimizer.step()
        m = 0.9 * m + 0.1 * gradient
        v = 0.999 * v + 0.001 * gradient**2
        direction = (m / (1 - 0.9**step)) / ((v / (1 - 0.999**step)).sqrt() + 1e-8)
        weights = weights - 0.1 * (direction + 0.3 * weights)
        torch.testing.assert_close(parameter.detach(), weights, rtol=1e-6, atol=0)


def test_parameters_elsewhere_are_stepped_without_the_fused_kernel() -> None:
    groups = [{"params": [nn.Parameter(torch.zeros(1, device="meta"))], "lr": 0.1, "weight_decay": 0.0}]
    assert not fused_adamw(groups, 0.1).defaults["fused"]
