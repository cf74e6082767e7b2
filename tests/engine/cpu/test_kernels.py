"""The CPU's own ways of dropout and embedding tables give what the stock ones give."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from sktransformer._engine.cpu.kernels import CpuKernels

IDS = torch.tensor([[1, 3, 3], [0, 2, 1]])


def table(padding_idx: int | None = None) -> nn.Embedding:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Embedding(6, 4, padding_idx=padding_idx)


def gradient_of(embedding: nn.Embedding, *, times: int, own: bool) -> torch.Tensor:
    embedding.zero_grad()
    for i in range(times):
        if own:
            with CpuKernels():
                (embedding(IDS + i % 2) ** 2).sum().backward()
        else:
            (embedding(IDS + i % 2) ** 2).sum().backward()
    assert embedding.weight.grad is not None
    return embedding.weight.grad.clone()


@pytest.mark.parametrize("padding_idx", [None, 3])
@pytest.mark.parametrize("times", [1, 3])
def test_gradients_of_a_table_add_up(padding_idx: int | None, times: int) -> None:
    embedding = table(padding_idx)
    stock = gradient_of(embedding, times=times, own=False)
    torch.testing.assert_close(gradient_of(embedding, times=times, own=True), stock)
    if padding_idx is not None:
        assert (stock[padding_idx] == 0).all()


def test_a_tied_table_gets_both_gradients() -> None:
    embedding = table()

    def step() -> torch.Tensor:
        embedding.zero_grad()
        hidden = embedding(IDS)
        F.linear(hidden, embedding.weight).logsumexp(-1).sum().backward()
        assert embedding.weight.grad is not None
        return embedding.weight.grad.clone()

    stock = step()
    with CpuKernels():
        own = step()
    torch.testing.assert_close(own, stock)


def test_a_frozen_table_gets_none() -> None:
    embedding = table().requires_grad_(False)
    with CpuKernels():
        rows = embedding(IDS)
    assert not rows.requires_grad
    assert torch.equal(rows, embedding.weight[IDS])


def test_max_norm_is_left_to_torch() -> None:
    embedding = nn.Embedding(6, 4, max_norm=0.5)
    with CpuKernels():
        rows = embedding(IDS)
    assert (rows.norm(dim=-1) <= 0.5 + 1e-6).all()


def test_dropout_of_a_module_is_replaced_in_training_only() -> None:
    layer, x = nn.Dropout(0.5), torch.ones(1000)
    with torch.random.fork_rng(), CpuKernels():
        torch.manual_seed(0)
        own = layer(x)
        assert torch.equal(layer.eval()(x), x)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        assert not torch.equal(layer.train()(x), own)
    assert set(own.unique().tolist()) == {0.0, 2.0}
    assert 400 < (own == 0).sum().item() < 600


@pytest.mark.parametrize(("p", "inplace"), [(0.0, False), (1.0, False), (0.5, True)])
def test_the_ends_and_in_place_are_left_to_torch(p: float, inplace: bool) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        stock = F.dropout(torch.ones(100), p, True, inplace)
        torch.manual_seed(0)
        with CpuKernels():
            assert torch.equal(F.dropout(torch.ones(100), p, True, inplace), stock)


def both(look_up: Callable[[torch.Tensor], torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gradients of a table by torch and by ours."""
    gradients = []
    for own in (False, True):
        weight = table().weight
        with CpuKernels() if own else nullcontext():
            (look_up(weight) ** 2).sum().backward()
        assert weight.grad is not None
        gradients.append(weight.grad)
    return gradients[0], gradients[1]


def test_padding_is_counted_from_the_end_too() -> None:
    stock, own = both(lambda weight: F.embedding(torch.tensor([1, 5, 5]), weight, -1))
    assert (stock[5] == 0).all()
    torch.testing.assert_close(own, stock)


def test_hooks_get_the_gradient() -> None:
    def hooked(weight: torch.Tensor) -> torch.Tensor:
        weight.register_hook(lambda gradient: gradient * 3)
        weight.register_post_accumulate_grad_hook(_double)
        return F.embedding(IDS, weight)

    stock, own = both(hooked)
    torch.testing.assert_close(own, stock)


def _double(weight: torch.Tensor) -> None:
    assert weight.grad is not None
    weight.grad.mul_(2)


@pytest.mark.parametrize("tied", [True, False])
def test_a_gradient_that_is_asked_for_is_returned_whole(tied: bool) -> None:
    weight = table().weight

    def gradient() -> torch.Tensor:
        rows = F.embedding(IDS, weight)
        return torch.autograd.grad((F.linear(rows, weight) if tied else rows).pow(2).sum(), weight)[0]

    stock = gradient()
    with CpuKernels():
        torch.testing.assert_close(gradient(), stock)
    assert weight.grad is None


def test_a_gradient_can_be_derived_again() -> None:
    weight = table().weight

    def second() -> torch.Tensor:
        (first,) = torch.autograd.grad(F.embedding(IDS, weight).pow(3).sum(), weight, create_graph=True)
        return torch.autograd.grad(first.pow(2).sum(), weight)[0]

    stock = second()
    with CpuKernels():
        torch.testing.assert_close(second(), stock)


@pytest.mark.parametrize("option", [{"max_norm": 2.0}, {"scale_grad_by_freq": True}])
def test_options_of_a_table_are_kept(option: dict[str, Any]) -> None:
    stock, own = both(lambda weight: _rows(weight, option))
    torch.testing.assert_close(own, stock)


def _rows(weight: torch.Tensor, option: dict[str, Any]) -> torch.Tensor:
    with torch.no_grad():
        weight.mul_(10)
    rows = F.embedding(IDS, weight, **option)
    assert "max_norm" not in option or (rows.norm(dim=-1) < 2.01).all()
    return rows


@pytest.mark.parametrize("ids", [torch.tensor([-1]), torch.tensor([6]), torch.tensor([True] * 6)])
def test_ids_outside_of_the_table_are_refused(ids: torch.Tensor) -> None:
    with pytest.raises((IndexError, RuntimeError)), CpuKernels():
        F.embedding(ids, table().weight)
