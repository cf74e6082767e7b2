"""What costs dear on a CPU, computed in another way with the same result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch.autograd import forward_ad
from torch.overrides import TorchFunctionMode

from ...nn.dropout import dropout
from ..devices import autocast
from .embedding import embedding
from .linear import linear
from .narrow import NarrowWeights, narrow_linear


class CpuKernels(TorchFunctionMode):
    """Within it, models' own calls of dropout, of embedding tables and of linear layers take the ways of this folder.

    On CPU tensors, that is. A mode rather than other modules in the model: the model stays as Transformers made it, in
    this thread and others.
    """

    def __init__(self) -> None:
        super().__init__()
        self._narrow = NarrowWeights()

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call `func`, or what stands for it here."""
        given, replaced = kwargs or {}, None
        if func in _REPLACED and not _watched():
            replaced = _REPLACED[func](*args, **given)
        elif func in _LAYERS and not _watched():
            replaced = _LAYERS[func](self._narrow, *args, **given)
        return func(*args, **given) if replaced is None else replaced


def kernels(device: torch.device) -> AbstractContextManager[Any]:
    """Compute as this folder does, where `device` is the CPU."""
    return CpuKernels() if device.type == "cpu" else nullcontext()


def kernels_twice() -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
    """Return contexts of a first and a second reading, as activation checkpointing wants them.

    The second takes place in the backward pass, which torch runs outside of any mode; the two must agree in what they
    draw and keep.
    """
    return CpuKernels(), CpuKernels()


@contextmanager
def computing(device: torch.device, precision: torch.dtype) -> Iterator[None]:
    """Run a model without gradients: matrix products in `precision`, the CPU's in the ways of this folder."""
    with torch.inference_mode(), autocast(device, precision), kernels(device):
        yield


def _watched() -> bool:
    """Whether torch looks at what is called: its compiler, its tracer, its function transforms, forward derivatives.

    They know torch's operators, and not those of this folder.
    """
    if torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None:
        return True
    return torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0


def _dropout(
    input: torch.Tensor,  # torch's name
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
) -> torch.Tensor | None:
    if (
        not training
        or inplace
        or not 0.0 < p < 1.0
        or input.device.type != "cpu"
        or not input.is_floating_point()
    ):
        return None
    return dropout(input, p)


def _linear(narrow: NarrowWeights, input: Any, weight: Any, bias: Any = None) -> torch.Tensor | None:
    if torch.is_autocast_enabled("cpu"):
        return narrow_linear(input, weight, bias, narrow)
    return linear(input, weight, bias)


def _addmm(
    narrow: NarrowWeights, input: Any, mat1: Any, mat2: Any, *args: Any, **kwargs: Any
) -> torch.Tensor | None:
    """Return b + x W for W (K, N), how GPT-2 writes its linear layers."""
    if args or kwargs or not all(isinstance(one, torch.Tensor) and one.dim() == 2 for one in (mat1, mat2)):
        return None
    return _linear(narrow, mat1, mat2.t(), input)


_LAYERS: dict[Any, Callable[..., torch.Tensor | None]] = {F.linear: _linear, torch.addmm: _addmm}
_REPLACED: dict[Any, Callable[..., torch.Tensor | None]] = {
    F.dropout: _dropout,
    F.embedding: embedding,
}
