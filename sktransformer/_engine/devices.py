"""Where the numbers are computed, and in which precision.

Nothing here is decided at import: ``"auto"`` is looked up when an estimator is fitted or asked to predict,
so that an estimator trained on a GPU loads on a machine that has none.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from .errors import did_you_mean

DEVICE_TYPES = ("cpu", "cuda", "mps", "xpu")
PRECISIONS = ("auto", "float32", "bfloat16")
# The host allocator's words (Linux; Windows), and those of the matrix library of CUDA: plain RuntimeErrors all.
SMALLEST_BUDGET = 16  # tokens of a batch; below it memory is short for another reason than the batch
OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "CUBLAS_STATUS_ALLOC_FAILED")

# torch keeps one random generator for the whole process: two seeded fits in two threads would draw from each other's
# stream. Fits take this lock; predictions draw nothing and do not.
_TRAINING_LOCK = threading.RLock()


def resolve_device(device: Any) -> torch.device:
    """Turn ``"auto"``, a device string or a `torch.device` into a device that is present.

    Raises
    ------
    ValueError
        When the string is no device, or names one that this machine lacks.
    """
    if device == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps") if torch.backends.mps.is_available() else torch.device("cpu")
    try:
        resolved = torch.device(device)
        if resolved.type not in DEVICE_TYPES:  # "meta" among others, which would lose the weights
            raise TypeError(f"{resolved.type} computes nothing here")
    except (RuntimeError, TypeError, OverflowError) as error:
        raise ValueError(
            f'device={device!r} is not a device; pass "auto", "cpu", "cuda", "cuda:1" or "mps".'
        ) from error
    present = _count(resolved.type)
    if not present:
        raise ValueError(
            f"device={device!r} was asked for, but torch {torch.__version__} sees no {resolved.type.upper()} here; "
            f'pass device="auto" or "cpu".'
        )
    if resolved.type == "cuda" and (resolved.index or 0) >= present:
        raise ValueError(
            f"device={device!r} was asked for, but the last CUDA device here is cuda:{present - 1}."
        )
    return resolved


def _count(kind: str) -> int:
    if kind == "cuda":
        return torch.cuda.device_count()
    return int(torch.backends.mps.is_available()) if kind == "mps" else 1


def has_bfloat16(device: torch.device) -> bool:
    """Whether the chip multiplies bfloat16 natively; emulated it is several times slower than float32."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    if device.type == "cpu":
        # private, but the only place where torch reads the processor's flags; absent, float32 is always right
        flags = [
            getattr(torch.cpu, name, None) for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
        ]
        return any(flag is not None and bool(flag()) for flag in flags)
    return False


def resolve_precision(precision: str, device: torch.device) -> torch.dtype:
    """Turn a `precision` parameter into the dtype of the matrix products; never float16."""
    if precision not in PRECISIONS:
        hint = did_you_mean(str(precision), PRECISIONS)
        raise ValueError(f"precision={precision!r} is not known; choose one of {PRECISIONS}.{hint}")
    if precision == "auto":
        return torch.bfloat16 if has_bfloat16(device) else torch.float32
    return torch.bfloat16 if precision == "bfloat16" else torch.float32


@contextmanager
def autocast(device: torch.device, dtype: torch.dtype) -> Iterator[None]:
    """Run matrix products in `dtype` on `device`, also where a caller has an autocast on; weights stay float32."""
    narrow = None if dtype is torch.float32 else dtype
    # torch keeps the narrowed weights until the outermost autocast ends, so steps of ours would go on with old ones
    torch.clear_autocast_cache()
    try:
        with torch.autocast(device.type, dtype=narrow, enabled=narrow is not None):
            yield
    finally:
        torch.clear_autocast_cache()


def draw_seed(random_state: Any) -> int:
    """Draw one seed from a scikit-learn `random_state`, without moving NumPy's global stream for ``None``."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        if not 0 <= int(random_state) < 2**32:
            raise ValueError(f"random_state must lie in [0, 2**32), got {random_state}.")
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    raise ValueError(
        f"random_state must be None, an int or a numpy.random.RandomState, got {type(random_state).__name__}."
    )


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Hold the training lock, seed the host's and the device's generators, and leave them as they were.

    A caller's inference mode, disabled gradients and autocast are left outside.

    Not with `torch.manual_seed`: it seeds every accelerator of the process, and `fork_rng` restores only those that
    it was told of.
    """
    with _TRAINING_LOCK:
        sources = generators(device)
        before = [generator.get_state() for generator in sources]
        try:
            for generator in sources:
                generator.manual_seed(seed)
            with torch.inference_mode(False), torch.enable_grad(), autocast(device, torch.float32):
                yield
        finally:
            for generator, state in zip(sources, before, strict=True):
                generator.set_state(state)


def generators(device: torch.device) -> list[torch.Generator]:
    """Return the generators that a model on `device` draws from: the host's, and the device's own."""
    return [torch.default_generator, *_device_generators(device)]


def _device_generators(device: torch.device) -> list[torch.Generator]:
    if device.type == "cuda":
        torch.cuda.init()  # before it there are no generators
        index = torch.cuda.current_device() if device.index is None else device.index
        return [torch.cuda.default_generators[index]]
    return [torch.mps._get_default_mps_generator()] if device.type == "mps" else []


def is_out_of_memory(error: BaseException) -> bool:
    """Whether `error` says that a device (or the host allocator) ran out of memory."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in OUT_OF_MEMORY)
