"""Linear layers by oneDNN give what torch's own give, and only where they may."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from sktransformer._engine.cpu import linear as module
from sktransformer._engine.cpu.kernels import CpuKernels, kernels_twice
from sktransformer.nn.attention_products import has_wide_onednn

needs_onednn = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="a torch without oneDNN")


@pytest.fixture(autouse=True)
def any_chip(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The operators exist on every chip that oneDNN knows, fast or not."""
    monkeypatch.setattr(module, "has_operators", torch.backends.mkldnn.is_available)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Shapes of what oneDNN was given to multiply."""
    seen: list[tuple[int, ...]] = []
    stock = module._product

    def product(x: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
        seen.append(tuple(x.shape))
        return stock(x, *rest)

    monkeypatch.setattr(module, "_product", product)
    return seen


def agree(compute: Callable[[], Sequence[torch.Tensor]], *, atol: float = 2e-6, rtol: float = 1e-5) -> None:
    """Assert that what is computed is the same under the mode and without it."""
    stock = compute()
    with CpuKernels():
        own = compute()
    for mine, theirs in zip(own, stock, strict=True):
        torch.testing.assert_close(mine, theirs, atol=atol, rtol=rtol)


@needs_onednn
@pytest.mark.parametrize("shape", [(5, 12), (2, 9, 12), (2, 3, 4, 12)])
@pytest.mark.parametrize("bias", [True, False])
def test_values_and_gradients_are_those_of_torch(
    shape: tuple[int, ...], bias: bool, calls: list[tuple[int, ...]]
) -> None:
    layer, x = nn.Linear(12, 7, bias=bias), torch.randn(shape, requires_grad=True)
    towards = torch.randn(*shape[:-1], 7)

    def everything() -> list[torch.Tensor]:
        wanted = [x, *layer.parameters()]
        product = layer(x)
        return [product, *torch.autograd.grad((product * towards).sum(), wanted)]

    agree(everything)
    assert len(calls) == 2  # forward, and the gradient of x


@needs_onednn
@pytest.mark.parametrize(("n_in", "n_out"), [(6, 9), (9, 6), (6, 6)])
@pytest.mark.parametrize("n", [63, 64, 65, 128, 150])
def test_any_number_of_rows_takes_the_kernels_of_a_few(
    n: int, n_in: int, n_out: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, stock = [], module.call
    monkeypatch.setattr(module, "call", lambda x, *rest: seen.append(len(x)) or stock(x, *rest))
    layer, x = nn.Linear(n_in, n_out), torch.randn(n, n_in, requires_grad=True)
    towards = torch.randn(n, n_out)

    def everything() -> list[torch.Tensor]:
        product = layer(x)
        return [product, *torch.autograd.grad((product * towards).sum(), [x, *layer.parameters()])]

    agree(everything, atol=1e-5)
    assert len(seen) == 2
    assert all(rows <= 64 or rows % 64 == 0 for rows in seen)


@needs_onednn
def test_rows_that_are_not_contiguous() -> None:
    layer = nn.Linear(6, 5)
    x = torch.randn(6, 40).t()[::2].detach().requires_grad_()

    def gradients() -> tuple[torch.Tensor, ...]:
        return torch.autograd.grad(layer(x).t().sum(0).pow(2).sum(), [x, layer.weight, layer.bias])

    agree(gradients)


@needs_onednn
def test_the_linear_layers_of_gpt2(calls: list[tuple[int, ...]]) -> None:
    from transformers.pytorch_utils import Conv1D

    layer, x = Conv1D(10, 6), torch.randn(2, 8, 6, requires_grad=True)
    agree(lambda: torch.autograd.grad(layer(x).pow(2).sum(), [x, layer.weight, layer.bias]), atol=5e-6)
    assert calls[0] == (16, 6)


@needs_onednn
def test_what_is_frozen_gets_no_gradient_and_keeps_nothing() -> None:
    layer = nn.Linear(6, 5).requires_grad_(False)
    x = torch.randn(8, 6, requires_grad=True)
    with CpuKernels():
        product = layer(x)
        assert not layer(x.detach()).requires_grad
        assert product.grad_fn.saved_tensors[0] is None  # type: ignore[union-attr]
        (d_x,) = torch.autograd.grad(product.sum(), [x])
    torch.testing.assert_close(d_x, layer.weight.sum(0).expand(8, 6))


@needs_onednn
def test_only_a_bias_is_trained() -> None:
    layer = nn.Linear(6, 5)
    layer.weight.requires_grad_(False)
    with CpuKernels():
        layer(torch.randn(8, 6)).sum().backward()
    assert layer.weight.grad is None
    torch.testing.assert_close(layer.bias.grad, torch.full((5,), 8.0))


@needs_onednn
@pytest.mark.parametrize("p", [0.0, 0.5])
def test_gradient_checkpointing_reads_again_in_the_same_way(p: float) -> None:
    layer, x = nn.Sequential(nn.Linear(6, 6), nn.GELU(), nn.Dropout(p), nn.Linear(6, 6)), torch.randn(8, 6)
    again, state = copy.deepcopy(layer), torch.get_rng_state()
    with CpuKernels():
        again(x).pow(2).sum().backward()
        torch.set_rng_state(state)
        checkpoint(layer, x, use_reentrant=False, context_fn=kernels_twice).pow(2).sum().backward()
    for mine, theirs in zip(layer.parameters(), again.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad, atol=2e-6, rtol=1e-5)


class Marked(torch.Tensor):
    """A tensor with products of its own, as quantized weights are."""


@needs_onednn
@pytest.mark.parametrize(
    "kind", ["double", "few rows", "subclass", "autocast", "switched off", "one output", "slice"]
)
def test_left_to_torch(kind: str, calls: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    x, weight = torch.randn(8, 6), torch.randn(5, 6)
    if kind == "double":
        x, weight = x.double(), weight.double()
    if kind == "few rows":
        x = x[:2]
    if kind == "subclass":
        weight = weight.as_subclass(Marked)
    if kind == "switched off":
        monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)
    if kind == "slice":
        weight = torch.randn(5, 18)[:, 6:12]
    if kind == "one output":
        weight = weight[:1]
    with (
        torch.autocast("cpu", dtype=torch.bfloat16, enabled=kind == "autocast"),
    ):
        stock = F.linear(x, weight)
        with CpuKernels():
            assert torch.equal(F.linear(x, weight), stock)
    assert calls == []


def test_torch_reports_a_wrong_width_itself() -> None:
    with CpuKernels(), pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        F.linear(torch.randn(8, 6), torch.randn(5, 7))


def test_the_detour_is_for_chips_with_wide_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    found = []
    for capability in ("AVX2", "DEFAULT", "AVX512"):
        has_wide_onednn.cache_clear()
        module.has_operators.cache_clear()
        monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)  # noqa: B023
        found.append(module.has_operators())
    has_wide_onednn.cache_clear()
    module.has_operators.cache_clear()
    assert found == [False, False, torch.backends.mkldnn.is_available()]


@needs_onednn
@pytest.mark.parametrize("shape", ["no columns", "bias of one", "bias of rows", "sparse weight"])
def test_shapes_of_no_layer_are_left_to_torch(shape: str, calls: list[tuple[int, ...]]) -> None:
    x, weight, bias = torch.randn(8, 6), torch.randn(5, 6), torch.randn(5)
    if shape == "no columns":
        x, weight = x[:, :0], weight[:, :0]
    if shape == "bias of one":
        bias = bias[:1]
    if shape == "bias of rows":
        bias = torch.randn(8, 5)
    if shape == "sparse weight":
        weight, bias = weight.to_sparse(), None
    stock = F.linear(x, weight, bias)
    with CpuKernels():
        assert torch.equal(F.linear(x, weight, bias), stock)
    assert calls == []


def test_torch_reports_a_product_of_more_than_matrices_itself() -> None:
    with CpuKernels(), pytest.raises(RuntimeError, match="must be a matrix"):
        torch.addmm(torch.randn(5), torch.randn(2, 4, 6), torch.randn(6, 5))


@needs_onednn
def test_arguments_may_be_named(calls: list[tuple[int, ...]]) -> None:
    x, weight, bias = torch.randn(8, 6), torch.randn(5, 6), torch.randn(5)
    with CpuKernels():
        one = F.linear(input=x, weight=weight, bias=bias)
        other = torch.addmm(input=bias, mat1=x, mat2=weight.t())
    torch.testing.assert_close(one, F.linear(x, weight, bias))
    torch.testing.assert_close(other, one)
    assert calls == [(8, 6), (8, 6)]


@needs_onednn
def test_second_derivatives_are_those_of_torch() -> None:
    layer, x = nn.Linear(6, 5), torch.randn(8, 6, requires_grad=True)

    def second() -> list[torch.Tensor]:
        inputs = [x, layer.weight, layer.bias]
        first = torch.autograd.grad(layer(x).pow(3).sum(), inputs, create_graph=True)
        # the penalty reaches the weight in two ways: one that is left out would show as a wrong number
        penalty = sum(gradient.pow(2).sum() for gradient in first) + layer.weight.pow(2).sum()
        return list(torch.autograd.grad(penalty, inputs))

    agree(second, rtol=1e-4, atol=1e-3)


@needs_onednn
@pytest.mark.filterwarnings(
    "ignore:`torch.jit.script` is deprecated:DeprecationWarning"
)  # by torch.func itself
def test_function_transforms_and_forward_derivatives_are_left_to_torch(calls: list[tuple[int, ...]]) -> None:
    x, weight, tangent = torch.randn(8, 6), torch.randn(5, 6), torch.randn(8, 6)
    with CpuKernels():
        gradient = torch.func.grad(lambda w: F.linear(x, w).pow(2).sum())(weight)
        _, forward = torch.func.jvp(lambda row: F.linear(row, weight), (x,), (tangent,))
    torch.testing.assert_close(gradient, 2 * F.linear(x, weight).t() @ x)
    torch.testing.assert_close(forward, F.linear(tangent, weight))
    assert calls == []
