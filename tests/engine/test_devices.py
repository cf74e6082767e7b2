"""Devices, precisions and seeds: what is present, what is right, and generators left as they were."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import torch

from sktransformer._engine import devices
from sktransformer._engine.devices import (
    autocast,
    draw_seed,
    has_bfloat16,
    is_out_of_memory,
    resolve_device,
    resolve_precision,
    seeded,
)

CPU = torch.device("cpu")
CUDA = torch.device("cuda", 0)


@pytest.fixture
def no_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that the machine has a CPU alone."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)


@pytest.fixture
def two_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that the machine has two CUDA devices."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)


# -- devices -----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_accelerator")
def test_auto_is_the_cpu_where_there_is_nothing_else() -> None:
    assert resolve_device("auto") == CPU


def test_auto_prefers_cuda_then_mps(monkeypatch: pytest.MonkeyPatch, no_accelerator: None) -> None:
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert resolve_device("auto") == torch.device("mps")
    assert resolve_device("mps") == torch.device("mps")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert resolve_device("auto") == torch.device("cuda")


@pytest.mark.usefixtures("two_cards")
def test_a_card_is_named_by_its_number() -> None:
    assert resolve_device("cuda:1") == torch.device("cuda", 1)
    assert resolve_device("cuda") == torch.device("cuda")
    with pytest.raises(
        ValueError, match="device='cuda:2' was asked for, but the last CUDA device here is cuda:1"
    ):
        resolve_device("cuda:2")


def test_a_device_may_be_an_object() -> None:
    assert resolve_device(torch.device("cpu")) == CPU


@pytest.mark.parametrize("device", ["gpu", "cuda:x", "", None, 1.5])
def test_what_is_no_device_raises(device: Any) -> None:
    with pytest.raises(ValueError, match='is not a device; pass "auto", "cpu", "cuda"'):
        resolve_device(device)


@pytest.mark.usefixtures("no_accelerator")
@pytest.mark.parametrize(("device", "name"), [("cuda", "CUDA"), ("cuda:1", "CUDA"), ("mps", "MPS")])
def test_an_absent_device_raises(device: str, name: str) -> None:
    with pytest.raises(
        ValueError, match=f"device='{device}' was asked for, but torch .* sees no {name} here"
    ):
        resolve_device(device)


# -- precision ---------------------------------------------------------------------------------------------------------


def test_precisions_are_never_float16() -> None:
    assert resolve_precision("float32", CPU) is torch.float32
    assert resolve_precision("bfloat16", CPU) is torch.bfloat16
    for name in ("float16", "fp16", "half", None):
        with pytest.raises(ValueError, match=f"precision={name!r} is not known; choose one of"):
            resolve_precision(name, CPU)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"Did you mean 'bfloat16'\?"):
        resolve_precision("bfloat", CPU)


@pytest.mark.parametrize("native", [True, False])
def test_auto_is_bfloat16_where_the_chip_has_it(native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: native)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    assert has_bfloat16(CPU) is native
    assert resolve_precision("auto", CPU) is (torch.bfloat16 if native else torch.float32)


def test_a_torch_that_hides_the_chips_flags_means_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.cpu, "_is_avx512_bf16_supported")
    monkeypatch.delattr(torch.cpu, "_is_amx_tile_supported")
    assert not has_bfloat16(CPU)


@pytest.mark.parametrize(("capability", "native"), [((7, 5), False), ((8, 0), True), ((9, 0), True)])
def test_cards_have_bfloat16_from_ampere_on(
    capability: tuple[int, int], native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    assert has_bfloat16(CUDA) is native
    assert not has_bfloat16(torch.device("mps"))


def test_autocast_leaves_float32_alone() -> None:
    matrix = torch.ones(2, 2)
    with autocast(CPU, torch.float32):
        assert (matrix @ matrix).dtype is torch.float32
    with autocast(CPU, torch.bfloat16):
        assert (matrix @ matrix).dtype is torch.bfloat16


# -- seeds -------------------------------------------------------------------------------------------------------------


def test_seeds_of_integers_are_themselves() -> None:
    assert draw_seed(0) == 0
    assert draw_seed(np.int64(7)) == 7
    assert draw_seed(2**32 - 1) == 2**32 - 1


def test_seeds_of_none_differ_and_leave_numpys_stream_alone() -> None:
    before = np.random.get_state()[1].copy()  # type: ignore[union-attr,index]  # noqa: NPY002
    seeds = {draw_seed(None) for _ in range(8)}
    assert len(seeds) == 8
    assert all(0 <= seed < 2**32 for seed in seeds)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # type: ignore[index]  # noqa: NPY002


def test_a_random_state_moves_on() -> None:
    state = np.random.RandomState(0)
    again = np.random.RandomState(0)
    first, second = draw_seed(state), draw_seed(state)
    assert (first, second) == (again.randint(2**31 - 1), again.randint(2**31 - 1))
    assert first != second


@pytest.mark.parametrize("value", [-1, 2**32])
def test_a_seed_out_of_range_raises(value: int) -> None:
    with pytest.raises(ValueError, match=rf"random_state must lie in \[0, 2\*\*32\), got {value}"):
        draw_seed(value)


@pytest.mark.parametrize("value", ["0", 1.0, True, np.random.default_rng(0)])
def test_what_is_no_random_state_raises(value: Any) -> None:
    with pytest.raises(
        ValueError, match=f"random_state must be None, an int or .*, got {type(value).__name__}"
    ):
        draw_seed(value)


def test_seeded_gives_the_same_numbers_and_leaves_the_generator_as_it_was() -> None:
    torch.manual_seed(5)
    expected = torch.rand(4)
    torch.manual_seed(5)
    with seeded(1, CPU):
        first = torch.rand(3)
    after = torch.rand(4)
    with seeded(1, CPU):
        second = torch.rand(3)
    with seeded(2, CPU):
        other = torch.rand(3)
    assert torch.equal(after, expected)
    assert torch.equal(first, second)
    assert not torch.equal(first, other)
    assert torch.equal(first, torch.rand(3, generator=torch.Generator().manual_seed(1)))


def _interrupt(drawn: torch.Tensor) -> None:
    raise KeyboardInterrupt


def test_seeded_restores_after_an_error() -> None:
    before = torch.get_rng_state()
    with pytest.raises(KeyboardInterrupt), seeded(1, CPU):
        _interrupt(torch.rand(1))
    assert torch.equal(torch.get_rng_state(), before)
    with seeded(1, CPU):  # and the lock is free
        pass


def test_seeded_may_be_nested() -> None:
    with seeded(1, CPU):
        expected = torch.rand(2)
    with seeded(1, CPU):
        first = torch.rand(1)
        with seeded(9, CPU):
            torch.rand(5)
        assert torch.equal(torch.cat([first, torch.rand(1)]), expected)


def test_seeding_for_the_cpu_touches_no_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    def touched(*args: object) -> None:
        raise AssertionError("an accelerator was seeded")

    for name in ("manual_seed", "manual_seed_all"):
        monkeypatch.setattr(torch.cuda, name, touched)
    with seeded(0, CPU):
        torch.rand(1)


def test_seeded_restores_the_cards_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    cards = (torch.Generator().manual_seed(10), torch.Generator().manual_seed(11))
    monkeypatch.setattr(torch.cuda, "init", lambda: None)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    monkeypatch.setattr(torch.cuda, "default_generators", cards)
    before = [card.get_state() for card in cards]
    with seeded(3, torch.device("cuda")):
        drawn = torch.rand(2, generator=cards[1])
        assert torch.equal(cards[0].get_state(), before[0])
    assert torch.equal(drawn, torch.rand(2, generator=torch.Generator().manual_seed(3)))
    assert torch.equal(cards[1].get_state(), before[1])


def test_threads_take_turns() -> None:
    with seeded(0, CPU):
        expected = torch.rand(1000)
    found: list[torch.Tensor] = []

    def draw() -> None:
        with seeded(0, CPU):
            found.append(torch.cat([torch.rand(100) for _ in range(10)]))

    threads = [threading.Thread(target=draw) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with seeded(0, CPU):
        expected = torch.cat([torch.rand(100) for _ in range(10)])
    assert len(found) == 8
    assert all(torch.equal(drawn, expected) for drawn in found)


# -- memory ------------------------------------------------------------------------------------------------------------


def test_the_host_allocators_error_is_lack_of_memory() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**60)
    assert is_out_of_memory(caught.value)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), True),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), True),
        (RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 8 bytes."), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (ValueError("not enough memory"), False),
        (KeyboardInterrupt(), False),
    ],
)
def test_lack_of_memory_is_told_from_other_errors(error: BaseException, expected: bool) -> None:
    assert is_out_of_memory(error) is expected


def test_precisions_are_listed() -> None:
    assert devices.PRECISIONS == ("auto", "float32", "bfloat16")
