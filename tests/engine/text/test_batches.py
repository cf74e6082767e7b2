"""Batches: every window once, longest first, within the budget, and each token, position and mask where it belongs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sktransformer._engine.checkpoints.loading import Checkpoint
from sktransformer._engine.text.batches import Batch, Collator, Layout, plan
from sktransformer._engine.text.windows import Encoded

CPU = torch.device("cpu")
LAYOUTS: tuple[Layout, Layout] = ("packed", "padded")
ROWS = [[11, 12, 13], [21], [31, 32, 33, 34, 35], [41, 42]]
SEGMENTS = [[0, 0, 1], [0], [0, 0, 0, 1, 1], [0, 1]]

lengths_of_windows = st.lists(st.integers(1, 300), max_size=60)
budgets = st.integers(1, 1200)
layouts = st.sampled_from(LAYOUTS)


def encoded(rows: list[list[int]], types: list[list[int]] | None = None) -> Encoded:
    """Lay rows of ids end to end."""
    starts = np.cumsum([0, *map(len, rows)])
    flat = np.array([i for row in rows for i in row], dtype=np.int32)
    segments = None if types is None else np.array([t for row in types for t in row], dtype=np.int8)
    return Encoded(flat, starts, np.arange(len(rows), dtype=np.int32), len(rows), segments)


def collator(layout: Layout, *, first_position: int = 0, pad: int = 7, segments: bool = True) -> Collator:
    return Collator(layout, pad_token_id=pad, first_position=first_position, device=CPU, segments=segments)


def cost(batch: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], layout: Layout) -> int:
    """Tokens that a batch makes the model read."""
    return int(lengths[batch].sum() if layout == "packed" else lengths[batch].max() * len(batch))


# -- plan --------------------------------------------------------------------------------------------------------------


@given(lengths_of_windows, budgets, layouts)
def test_every_window_is_in_one_batch(lengths: list[int], budget: int, layout: Layout) -> None:
    batches = plan(np.arange(len(lengths)), np.array(lengths, dtype=np.int64), budget, layout)
    assert sorted(w for batch in batches for w in batch.tolist()) == list(range(len(lengths)))
    assert all(len(batch) for batch in batches)


@given(lengths_of_windows, budgets, layouts)
def test_no_batch_is_over_the_budget_but_for_one_long_window(
    lengths: list[int], budget: int, layout: Layout
) -> None:
    sizes = np.array(lengths, dtype=np.int64)
    for batch in plan(np.arange(len(lengths)), sizes, budget, layout):
        assert len(batch) == 1 or cost(batch, sizes, layout) <= budget


@given(lengths_of_windows, budgets, layouts)
def test_longest_first(lengths: list[int], budget: int, layout: Layout) -> None:
    sizes = np.array(lengths, dtype=np.int64)
    batches = plan(np.arange(len(lengths)), sizes, budget, layout)
    order = [w for batch in batches for w in batch.tolist()]
    assert order == sorted(range(len(lengths)), key=lambda w: -lengths[w])  # equal lengths keep their order


@given(lengths_of_windows, budgets, layouts)
def test_batches_are_filled(lengths: list[int], budget: int, layout: Layout) -> None:
    """No batch could have taken the first window of the next."""
    sizes = np.array(lengths, dtype=np.int64)
    batches = plan(np.arange(len(lengths)), sizes, budget, layout)
    for batch, after in pairwise(batches):
        assert cost(np.append(batch, after[0]), sizes, layout) > budget


@given(st.data())
def test_a_part_of_the_windows_may_be_planned(data: st.DataObject) -> None:
    lengths = np.array(data.draw(st.lists(st.integers(1, 50), min_size=1, max_size=30)), dtype=np.int64)
    part = data.draw(st.lists(st.integers(0, len(lengths) - 1), unique=True))
    batches = plan(np.array(part, dtype=np.int64), lengths, 60, "padded")
    assert sorted(w for batch in batches for w in batch.tolist()) == sorted(part)


def test_plan_by_hand() -> None:
    lengths = np.array([3, 9, 4, 4, 1])
    windows = np.arange(5)
    assert [batch.tolist() for batch in plan(windows, lengths, 8, "packed")] == [[1], [2, 3], [0, 4]]
    assert [batch.tolist() for batch in plan(windows, lengths, 9, "padded")] == [[1], [2, 3], [0, 4]]
    assert [batch.tolist() for batch in plan(windows, lengths, 12, "packed")] == [[1], [2, 3, 0, 4]]
    assert [batch.tolist() for batch in plan(windows, lengths, 12, "padded")] == [[1], [2, 3, 0], [4]]
    assert plan(windows[:0], lengths, 8, "packed") == []


# -- collators ---------------------------------------------------------------------------------------------------------


def test_packed_by_hand() -> None:
    batch = collator("packed").batch(encoded(ROWS, SEGMENTS), np.array([2, 0, 1]))
    assert batch.input_ids.tolist() == [[31, 32, 33, 34, 35, 11, 12, 13, 21]]
    assert batch.position_ids is not None
    assert batch.position_ids.tolist() == [[0, 1, 2, 3, 4, 0, 1, 2, 0]]
    assert batch.token_type_ids is not None
    assert batch.token_type_ids.tolist() == [[0, 0, 0, 1, 1, 0, 0, 1, 0]]
    assert batch.attention_mask is None
    assert batch.packed is not None
    assert batch.packed.starts.tolist() == [0, 5, 8]
    assert batch.packed.bounds.tolist() == [0, 5, 8, 9]
    assert batch.packed.bounds.dtype == torch.int32
    assert batch.packed.lengths == (5, 3, 1)
    assert len(batch) == 3
    assert batch.windows.tolist() == [2, 0, 1]
    assert batch.input_ids.dtype == batch.position_ids.dtype == torch.int64


def test_padded_by_hand() -> None:
    batch = collator("padded").batch(encoded(ROWS, SEGMENTS), np.array([0, 3, 1]))
    assert batch.input_ids.tolist() == [[11, 12, 13], [41, 42, 7], [21, 7, 7]]
    assert batch.attention_mask is not None
    assert batch.attention_mask.tolist() == [[1, 1, 1], [1, 1, 0], [1, 0, 0]]
    assert batch.attention_mask.dtype == torch.int64
    assert batch.token_type_ids is not None
    assert batch.token_type_ids.tolist() == [[0, 0, 1], [0, 1, 0], [0, 0, 0]]
    assert batch.position_ids is None
    assert batch.packed is None


def test_no_mask_where_nothing_is_padded() -> None:
    assert collator("padded").batch(encoded([[1, 2], [3, 4]]), np.array([1, 0])).attention_mask is None


def test_a_mask_where_a_text_holds_the_padding_token() -> None:
    """FlauBERT would take it for the end of the text, GPT-2 would warn."""
    batch = collator("padded").batch(encoded([[1, 7], [3, 4]]), np.array([0, 1]))
    assert batch.attention_mask is not None
    assert batch.attention_mask.tolist() == [[1, 1], [1, 1]]


def test_segments_only_for_models_that_have_them() -> None:
    for layout in LAYOUTS:
        assert (
            collator(layout, segments=False).batch(encoded(ROWS, SEGMENTS), np.array([0])).token_type_ids
            is None
        )
        assert collator(layout).batch(encoded(ROWS), np.array([0])).token_type_ids is None


@pytest.mark.parametrize("layout", LAYOUTS)
def test_inputs_are_the_models_arguments(layout: Layout) -> None:
    batch = collator(layout).batch(encoded(ROWS, SEGMENTS), np.array([0, 1]))
    names = {"input_ids", "token_type_ids"}
    names |= {"position_ids", "packed_layout"} if layout == "packed" else {"attention_mask"}
    assert set(batch.inputs()) == names


@given(st.data())
def test_both_layouts_hold_the_same_tokens(data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.lists(st.integers(0, 99), min_size=1, max_size=9), min_size=1, max_size=12))
    windows = np.array(data.draw(st.permutations(range(len(rows)))), dtype=np.int64)
    packed = collator("packed").batch(encoded(rows), windows)
    padded = collator("padded").batch(encoded(rows), windows)
    expected = [rows[w] for w in windows]
    assert packed.packed is not None
    assert [part.tolist() for part in packed.input_ids[0].split(packed.packed.lengths)] == expected
    mask = torch.ones_like(padded.input_ids) if padded.attention_mask is None else padded.attention_mask
    assert [row[m.bool()].tolist() for row, m in zip(padded.input_ids, mask, strict=True)] == expected


# -- positions of the RoBERTa family -----------------------------------------------------------------------------------


def test_positions_begin_after_the_padding_id() -> None:
    batch = collator("packed", first_position=2, pad=1).batch(encoded(ROWS), np.array([3, 0]))
    assert batch.position_ids is not None
    assert batch.position_ids.tolist() == [[2, 3, 2, 3, 4]]


@given(st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=8), min_size=1, max_size=6))
def test_a_padding_token_inside_a_text_is_counted_as_transformers_does(rows: list[list[int]]) -> None:
    from transformers.models.roberta.modeling_roberta import RobertaEmbeddings

    batch = collator("packed", first_position=2, pad=1).batch(encoded(rows), np.arange(len(rows)))
    expected = [
        RobertaEmbeddings.create_position_ids_from_input_ids(torch.tensor([row]), 1)[0] for row in rows
    ]
    assert batch.position_ids is not None
    assert batch.position_ids[0].tolist() == torch.cat(expected).tolist()


def test_a_text_that_holds_the_padding_token_is_read_alike_in_both_layouts(
    checkpoint: Callable[..., Checkpoint], tokenizer: Callable[[str], Any]
) -> None:
    from sktransformer._engine.text.documents import Documents
    from sktransformer._engine.text.encoding import TextEncoder
    from sktransformer._engine.text.windows import Cut

    model = checkpoint("roberta", "classification").model
    texts = ["le <pad> chat", "<pad>", "le chat noir est assis"]
    windows = TextEncoder(tokenizer("roberta")).encode(Documents(texts), Cut(60))
    assert 1 in windows.ids

    def logits(layout: Layout) -> torch.Tensor:
        batch: Batch = collator(layout, first_position=2, pad=1).batch(windows, np.arange(3))
        with torch.inference_mode():
            return model(**batch.inputs()).logits

    torch.testing.assert_close(logits("packed"), logits("padded"), rtol=0, atol=1e-6)


@pytest.mark.parametrize(("n_windows", "n_filled"), [(1, 3), (2, 4), (3, 12), (4, 12)])
@pytest.mark.parametrize("types", [None, SEGMENTS])
def test_a_packed_row_is_filled_up_to_the_grain(
    n_windows: int, n_filled: int, types: list[list[int]] | None
) -> None:
    """Behind the last window, with tokens that nobody reads; a row no longer than the grain stays as it is."""
    windows, grained = np.arange(n_windows), replace(collator("packed", first_position=8), grain=4)
    made = grained.batch(encoded(ROWS, types), windows)
    plain = collator("packed", first_position=8).batch(encoded(ROWS, types), windows)
    n = plain.input_ids.shape[1]
    for name in ("input_ids", "position_ids", "token_type_ids")[: 2 if types is None else 3]:
        assert getattr(made, name).shape == (1, n_filled)
        assert torch.equal(getattr(made, name)[:, :n], getattr(plain, name))
    assert (made.input_ids[:, n:] == 7).all()
    assert (made.position_ids[:, n:] == 8).all()
    assert made.packed.lengths == plain.packed.lengths
    assert torch.equal(made.packed.bounds, plain.packed.bounds)
    assert torch.equal(made.flat(made.input_ids), plain.input_ids[0])
    assert torch.equal(made.owners(), plain.owners())
