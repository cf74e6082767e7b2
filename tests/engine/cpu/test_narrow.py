"""Linear layers under bfloat16 autocast give what autocast's own give, and weights are narrowed once a step."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator, Sequence

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from sktransformer._engine.cpu import linear
from sktransformer._engine.cpu import narrow as module
from sktransformer._engine.cpu.kernels import CpuKernels
from sktransformer._engine.cpu.narrow import NarrowWeights, narrow_linear

pytestmark = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="a torch without oneDNN")


@pytest.fixture(autouse=True)
def any_chip(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The operators exist on every chip that oneDNN knows, fast or not."""
    if not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        pytest.skip("oneDNN has no bfloat16 on this chip")
    monkeypatch.setattr(linear, "has_operators", lambda: True)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[torch.Tensor]:
    """What oneDNN was given to multiply."""
    seen, stock = [], module.call
    monkeypatch.setattr(module, "call", lambda x, *rest: seen.append(x) or stock(x, *rest))
    return seen


def autocast() -> torch.autocast:
    return torch.autocast("cpu", dtype=torch.bfloat16)


def agree(compute: Callable[[], Sequence[torch.Tensor]]) -> None:
    """Assert that results under the mode are as near to float32's as those of autocast alone."""
    exact = compute()
    with autocast():
        stock = compute()
    with CpuKernels(), autocast():
        own = compute()
    for mine, theirs, true in zip(own, stock, exact, strict=True):
        assert mine.dtype == theirs.dtype
        scale = true.abs().max().item() + 1e-6
        assert (mine.float() - true).abs().max().item() <= (
            theirs.float() - true
        ).abs().max().item() + 0.01 * scale


@pytest.mark.parametrize("shape", [(5, 12), (2, 9, 12), (2, 3, 4, 12), (150, 12)])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_values_and_gradients_are_those_of_autocast(
    shape: tuple[int, ...], bias: bool, dtype: torch.dtype, calls: list[torch.Tensor]
) -> None:
    layer, x = nn.Linear(12, 7, bias=bias), torch.randn(shape).to(dtype).float().requires_grad_()
    towards = torch.randn(*shape[:-1], 7)

    def everything() -> list[torch.Tensor]:
        narrow = torch.is_autocast_enabled("cpu")
        product = layer(x.to(dtype) if narrow else x)
        gradients = torch.autograd.grad((product * towards).sum(), [x, *layer.parameters()])
        return [product.float(), *gradients]

    agree(everything)
    assert [x.dtype for x in calls] == [torch.bfloat16] * 2  # forward, and the gradient of x
    assert all(len(x) <= 64 or len(x) % 64 == 0 for x in calls)


def test_the_linear_layers_of_gpt2(calls: list[torch.Tensor]) -> None:
    from transformers.pytorch_utils import Conv1D

    layer, x = Conv1D(10, 6), torch.randn(2, 8, 6, requires_grad=True)
    agree(lambda: torch.autograd.grad(layer(x).float().pow(2).sum(), [x, layer.weight, layer.bias]))
    assert calls[0].shape == (16, 6)


def test_a_weight_is_narrowed_once_and_again_after_a_step() -> None:
    layer, x = nn.Linear(6, 5), torch.randn(8, 6)
    weights = NarrowWeights()
    first = weights.of(layer.weight)
    assert weights.of(layer.weight) is first
    assert weights.of(layer.weight.t()).data_ptr() != first.data_ptr()
    with CpuKernels(), autocast(), torch.no_grad():
        before = layer(x)
        layer.weight.mul_(2.0)
        layer.bias.mul_(2.0)
        torch.testing.assert_close(layer(x), 2 * before)
    assert weights.of(layer.weight) is not first


def test_what_is_no_parameter_is_not_held() -> None:
    """A product of LoRA's matrices, say: the next one may stand where it stood."""
    weights = NarrowWeights()
    made = torch.randn(5, 6) * 2
    gone = weakref.ref(made)
    assert weights.of(made).dtype == torch.bfloat16
    del made
    assert gone() is None


def test_nothing_is_held_behind_the_mode(calls: list[torch.Tensor]) -> None:
    layer, copies = nn.Linear(6, 5), []
    mode = CpuKernels()
    with mode, autocast(), torch.no_grad():
        layer(torch.randn(8, 6))
        copies += [weakref.ref(copy) for _, _, copy in mode._narrow._copies.values()]
    assert len(copies) == 2
    del mode
    gc.collect()
    assert all(copy() is None for copy in copies)


def test_what_is_frozen_gets_no_gradient_and_keeps_nothing() -> None:
    layer = nn.Linear(6, 5).requires_grad_(False)
    x = torch.randn(8, 6, requires_grad=True)
    with CpuKernels(), autocast():
        product = layer(x)
        assert not layer(x.detach()).requires_grad
        assert product.grad_fn.saved_tensors[0] is None
        (d_x,) = torch.autograd.grad(product.float().sum(), [x])
    assert d_x.dtype == torch.float32
    torch.testing.assert_close(d_x, layer.weight.sum(0).expand(8, 6), rtol=0.02, atol=0.02)


def test_second_derivatives_are_refused() -> None:
    layer, x = nn.Linear(6, 5), torch.randn(8, 6, requires_grad=True)
    with CpuKernels(), autocast():
        (d_x,) = torch.autograd.grad(layer(x).float().pow(2).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        d_x.sum().backward()


@pytest.mark.parametrize(
    ("x", "weight"),
    [
        (torch.ones(8, 6, dtype=torch.float64), torch.ones(5, 6)),
        (torch.ones(8, 6), torch.ones(5, 6, dtype=torch.float64)),
        (
            torch.ones(8, 6),
            torch.ones(5, 12)[:, ::2],
        ),  # columns of it: oneDNN has only reference code for them
        (torch.ones(3, 6), torch.ones(5, 6)),  # bound by memory
        (torch.ones(8, 6), torch.ones(6)),
    ],
)
def test_the_rest_is_left_to_torch(x: torch.Tensor, weight: torch.Tensor) -> None:
    with autocast():
        assert narrow_linear(x, weight, None, NarrowWeights()) is None


def test_only_under_autocast_to_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    x, weight = torch.ones(8, 6), torch.ones(5, 6)
    assert narrow_linear(x, weight, None, NarrowWeights()) is None
    with torch.autocast("cpu", dtype=torch.float16):
        assert narrow_linear(x, weight, None, NarrowWeights()) is None
    with autocast():
        assert torch.equal(
            narrow_linear(x, weight, None, NarrowWeights()).float(), F.linear(x, weight).float()
        )
        monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)
        assert narrow_linear(x, weight, None, NarrowWeights()) is None
