"""Forward passes: rows in the order they came, whatever the batches; memory that runs out; every architecture."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from transformers import PreTrainedModel

from sktransformer._engine.checkpoints.loading import Checkpoint
from sktransformer._engine.checkpoints.structure import first_position
from sktransformer._engine.errors import OutOfMemoryBackoffWarning
from sktransformer._engine.inference.forward import (
    Passes,
    forward,
    forward_tokens,
    read_logits,
    read_token_logits,
)
from sktransformer._engine.text.batches import Batch, Collator, Layout
from sktransformer._engine.text.documents import Documents
from sktransformer._engine.text.encoding import TextEncoder
from sktransformer._engine.text.windows import Cut, Encoded
from sktransformer.testing.checkpoints import ENCODERS, SENTENCES

Loader = Callable[..., Checkpoint]
CPU = torch.device("cpu")
LENGTHS = [3, 9, 1, 4, 4, 7, 2, 9, 5, 1]
LAYOUTS: list[Layout] = ["packed", "padded"]


def numbered(lengths: list[int]) -> Encoded:
    """Return windows whose tokens all hold the window's number."""
    ids = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
    starts = np.cumsum([0, *lengths])
    return Encoded(ids, starts, np.arange(len(lengths), dtype=np.int32), len(lengths))


def collator(layout: Layout = "padded") -> Collator:
    return Collator(layout, pad_token_id=99, first_position=0, device=CPU)


class Reader:
    """Stands in for a model: reads a window as its number and length, and fails on batches of too many tokens."""

    def __init__(self, memory: int | None = None, error: BaseException | None = None) -> None:
        self.memory = memory
        self.error = error or torch.OutOfMemoryError("CUDA out of memory.")
        self.sizes: list[int] = []

    def __call__(self, model: Any, batch: Batch) -> torch.Tensor:
        assert torch.is_inference_mode_enabled()
        if self.memory is not None and batch.input_ids.numel() > self.memory:
            raise self.error
        self.sizes.append(batch.input_ids.numel())
        if batch.packed is not None:
            first, lengths = batch.input_ids[0, batch.packed.starts], torch.tensor(batch.packed.lengths)
        else:
            first, lengths = batch.input_ids[:, 0], (batch.input_ids != 99).sum(dim=1)
        return torch.stack([first, lengths], dim=1).double()


def run(
    encoded: Encoded,
    read: Any,
    budget: int,
    layout: Layout = "padded",
    precision: torch.dtype = torch.float32,
) -> npt.NDArray[np.float32]:
    model: Any = None
    return forward(Passes(model, collator(layout), budget, precision), encoded, read)


EXPECTED = [[i, length] for i, length in enumerate(LENGTHS)]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("budget", [1, 5, 9, 20, 1000])
def test_rows_come_back_in_order(budget: int, layout: Layout) -> None:
    read = Reader()
    rows = run(numbered(LENGTHS), read, budget, layout)
    assert rows.dtype == np.float32
    assert rows.tolist() == EXPECTED
    assert all(size <= max(budget, 9) for size in read.sizes)


def test_one_window() -> None:
    assert run(numbered([4]), Reader(), 100).tolist() == [[0, 4]]


def test_rows_of_any_shape() -> None:
    rows = run(numbered(LENGTHS), lambda model, batch: batch.input_ids[:, :1, None].expand(-1, 2, 3), 20)
    assert rows.shape == (10, 2, 3)
    assert rows[:, 1, 2].tolist() == list(range(10))


def test_bfloat16_rows_come_back_as_float32() -> None:
    rows = run(numbered(LENGTHS), lambda model, batch: torch.ones(len(batch), 2, dtype=torch.bfloat16), 20)
    assert rows.dtype == np.float32


def test_matrix_products_run_in_the_precision_asked_for() -> None:
    seen = []

    def read(model: Any, batch: Batch) -> torch.Tensor:
        product = torch.ones(len(batch), 2) @ torch.ones(2, 2)
        seen.append(product.dtype)
        return product

    run(numbered([2]), read, 20, precision=torch.bfloat16)
    run(numbered([2]), read, 20, precision=torch.float32)
    assert seen == [torch.bfloat16, torch.float32]


# -- memory ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory."),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4000 bytes."),
        MemoryError(),
    ],
    ids=["cuda", "cpu", "python"],
)
def test_batches_are_halved_until_they_fit_with_one_warning(error: BaseException, layout: Layout) -> None:
    lengths = [20] * 16
    read = Reader(memory=45, error=error)
    with pytest.warns(OutOfMemoryBackoffWarning, match="pass token_budget=") as caught:
        rows = run(numbered(lengths), read, 320, layout)
    assert rows.tolist() == [[i, 20] for i in range(16)]
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert set(read.sizes) == {40}


def test_the_warning_names_a_budget_that_fits() -> None:
    read = Reader(memory=45)
    with pytest.warns(OutOfMemoryBackoffWarning, match="out of memory") as caught:
        run(numbered([20] * 16), read, 320)
    budget = int(str(caught[0].message).split("token_budget=")[1].split()[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(numbered([20] * 16), Reader(memory=45), budget)


def test_memory_that_runs_out_late_loses_no_row() -> None:
    class Shrinking(Reader):
        def __call__(self, model: Any, batch: Batch) -> torch.Tensor:
            if len(self.sizes) == 2:
                self.memory = 40
            return super().__call__(model, batch)

    read = Shrinking(memory=1000)
    with pytest.warns(OutOfMemoryBackoffWarning, match="out of memory"):
        rows = run(numbered([20] * 16), read, 100)
    assert read.sizes[:3] == [100, 100, 40]
    assert rows.tolist() == [[i, 20] for i in range(16)]


def test_a_window_that_does_not_fit_alone_raises_at_once() -> None:
    attempts: list[int] = []

    def read(model: Any, batch: Batch) -> torch.Tensor:
        attempts.append(len(batch))
        raise torch.OutOfMemoryError("CUDA out of memory.")

    with pytest.raises(torch.OutOfMemoryError):
        run(numbered([200]), read, 1000)
    assert attempts == [1]  # a smaller budget would cut it no finer


def test_a_budget_is_not_halved_for_ever() -> None:
    with pytest.raises(torch.OutOfMemoryError, match="out of memory"):
        run(numbered([1] * 500), Reader(memory=0), 1000)


def test_other_errors_are_not_taken_for_lack_of_memory() -> None:
    with pytest.raises(RuntimeError, match="shapes"):
        run(numbered(LENGTHS), Reader(memory=0, error=RuntimeError("shapes")), 100)


# -- every architecture ------------------------------------------------------------------------------------------------

TEXTS = ["", "le <pad> chat", *SENTENCES, "a", " ".join(SENTENCES[1:3])]


def collator_of(loaded: Checkpoint, layout: Layout) -> Collator:
    config = loaded.model.config
    segments = getattr(config, "type_vocab_size", 0) > 1
    return Collator(layout, loaded.tokenizer.pad_token_id, first_position(config), CPU, segments)


def logits(loaded: Checkpoint, texts: list[str], budget: int, layout: Layout) -> npt.NDArray[np.float32]:
    encoded = TextEncoder(loaded.tokenizer).encode(Documents(texts), Cut(64), warn=False)
    passes = Passes(loaded.model, collator_of(loaded, layout), budget, torch.float32)
    return forward(passes, encoded, read_logits)


@pytest.mark.parametrize("name", [*ENCODERS, "bart", "gpt2", "llama"])
def test_a_document_gives_the_same_numbers_in_any_company(name: str, checkpoint: Loader) -> None:
    loaded = checkpoint(name, "classification")
    layouts: list[Layout] = LAYOUTS if loaded.packable else ["padded"]
    alone = np.concatenate([logits(loaded, [text], 1000, layouts[0]) for text in TEXTS])
    assert len(np.unique(alone.round(5), axis=0)) == len(TEXTS)  # each document has numbers of its own
    for layout in layouts:
        for budget in (1, 40, 10_000):
            np.testing.assert_allclose(logits(loaded, TEXTS, budget, layout), alone, rtol=0, atol=2e-6)
            np.testing.assert_allclose(
                logits(loaded, TEXTS[::-1], budget, layout), alone[::-1], rtol=0, atol=2e-6
            )


@pytest.mark.parametrize("name", [*ENCODERS, "bart", "gpt2", "llama"])
def test_the_numbers_are_those_of_the_tokenizer_and_the_model(name: str, checkpoint: Loader) -> None:
    loaded = checkpoint(name, "classification")
    model: PreTrainedModel = loaded.model
    expected = []
    for text in SENTENCES:
        inputs = loaded.tokenizer(text, return_tensors="pt", return_token_type_ids=False)
        with torch.inference_mode():
            expected.append(model(**inputs).logits[0].numpy())
    found = logits(loaded, list(SENTENCES), 80, "packed" if loaded.packable else "padded")
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6)


def test_threads_read_one_model(checkpoint: Loader) -> None:
    loaded = checkpoint("camembert", "classification")
    expected = logits(loaded, TEXTS, 60, "packed")
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: logits(loaded, TEXTS, 60, "packed"), range(24)):
            np.testing.assert_array_equal(found, expected)


def test_nothing_is_recorded_for_a_gradient(checkpoint: Loader) -> None:
    loaded = checkpoint("bert", "classification")
    logits(loaded, TEXTS, 60, "padded")
    assert all(parameter.grad is None for parameter in loaded.model.parameters())


@pytest.mark.parametrize("name", ["bert", "camembert", "distilbert", "flaubert", "modernbert", "gpt2"])
def test_each_token_has_its_row_however_windows_are_batched(name: str, checkpoint: Loader) -> None:
    loaded = checkpoint(name, "tokens")
    encoded = TextEncoder(loaded.tokenizer).encode(Documents(TEXTS), Cut(64), warn=False)
    alone = []
    for a, b in pairwise(encoded.starts):
        ids = torch.from_numpy(encoded.ids[a:b].astype(np.int64))[None]
        # with a mask: without one, FlauBERT takes a text's "<pad>" for padding
        alone.append(loaded.model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[0].detach())
    expected = torch.cat(alone).numpy()
    layouts: list[Layout] = LAYOUTS if loaded.packable else ["padded"]
    for layout in layouts:
        for budget in (1, 40, 10_000):
            passes = Passes(loaded.model, collator_of(loaded, layout), budget, torch.float32)
            rows = forward_tokens(passes, encoded, read_token_logits)
            np.testing.assert_allclose(rows, expected, rtol=0, atol=2e-6)
