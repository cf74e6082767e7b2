"""Dropout by fifteen bits: its rate, its mean, its gradient, its seed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from sktransformer.nn.dropout import Dropout, dropout, factor, kept


@pytest.fixture(autouse=True)
def own_generator() -> Iterator[None]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


@pytest.mark.parametrize("p", [0.1, 0.25, 0.5, 0.9])
def test_the_rate_is_p(p: float) -> None:
    n = 1_000_000
    mask = kept(torch.empty(n), p)
    assert set(mask.unique().tolist()) == {0, -1}  # no bit, or every bit
    deviation = (p * (1 - p) / n) ** 0.5
    assert abs((mask != 0).double().mean().item() - (1 - p)) < 5 * deviation + 2e-5
    assert factor(p) == pytest.approx(1 / (1 - p), rel=1e-4)


def test_neighbours_are_independent() -> None:
    """Four elements share a draw of 64 bits: no lag up to 8 may show it."""
    mask = (kept(torch.empty(400_000), 0.5) != 0).float() - 0.5
    for lag in range(1, 9):
        correlation = (mask[lag:] * mask[:-lag]).mean().item() / 0.25
        assert abs(correlation) < 5 / 400_000**0.5


@pytest.mark.parametrize("shape", [(1,), (3,), (5, 7), (2, 3, 9)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_kept_elements_are_scaled_and_others_zero(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x = torch.ones(shape, dtype=dtype)
    y = dropout(x, 0.5)
    assert y.dtype == dtype
    assert y.shape == x.shape
    assert set(y.unique().tolist()) <= {0.0, 2.0}
    assert (x == 1).all()


def test_gradient_is_that_of_the_same_mask() -> None:
    x = torch.randn(50, 3, dtype=torch.float64, requires_grad=True)
    y = dropout(x, 0.3)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    expected = torch.where(y != 0, torch.tensor(factor(0.3), dtype=torch.float64), 0.0)
    torch.testing.assert_close(gradient, expected, rtol=1e-12, atol=0)


def test_torch_seeds_it() -> None:
    x = torch.ones(1000)
    torch.manual_seed(4)
    first = dropout(x, 0.2)
    second = dropout(x, 0.2)
    torch.manual_seed(4)
    assert torch.equal(dropout(x, 0.2), first)
    assert not torch.equal(first, second)


def test_a_transposed_input() -> None:
    x = torch.arange(1.0, 13.0).reshape(3, 4).t()
    y = dropout(x, 0.5)
    assert ((y == 0) | (y == 2 * x)).all()


def test_the_module_drops_in_training_alone():
    module, x = Dropout(0.25), torch.ones(40_000, requires_grad=True)
    dropped = module(x)
    assert dropped.unique().tolist() == [0.0, pytest.approx(4 / 3)]
    assert dropped.detach().mean().item() == pytest.approx(1.0, abs=0.02)
    dropped.sum().backward()
    assert torch.equal(x.grad, dropped.detach())
    assert torch.equal(module.eval()(x), x)
    assert torch.equal(Dropout(0.0)(x), x)


def test_second_derivatives() -> None:
    x = torch.linspace(1, 2, 40, requires_grad=True)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        dropped = dropout(x, 0.5)
    scale = (dropped / x).detach()  # 0 or 2
    (first,) = torch.autograd.grad(dropped.pow(3).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    torch.testing.assert_close(first, 3 * scale**3 * x**2)
    torch.testing.assert_close(second, 6 * scale**3 * x)
