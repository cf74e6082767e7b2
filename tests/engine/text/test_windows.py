"""Plans of windows: which tokens of which text stand in which window."""

from __future__ import annotations

import numpy as np
import pytest

from sktransformer._engine.inference.aggregation import by_document
from sktransformer._engine.text.windows import Cut, Encoded, Template, assemble, plan_windows

TEMPLATE = Template((101,), (102,), (103,))


def chunks(n: int, room: int, stride: int) -> list[tuple[int, int]]:
    plan = plan_windows([n], None, room, Cut(room + 2, "chunk", stride=stride))
    assert plan.n_cut == 0
    return [window.first[0] for window in plan.windows]


@pytest.mark.parametrize("n", range(0, 40))
@pytest.mark.parametrize(("room", "stride"), [(5, 0), (5, 2), (5, 4), (8, 3), (40, 10)])
def test_chunks_cover_a_text_and_share_the_stride(n: int, room: int, stride: int) -> None:
    found = chunks(n, room, stride)
    assert found[0][0] == 0
    assert found[-1][1] == n
    for (a, b), (c, d) in zip(found, found[1:], strict=False):
        assert b - a == room
        assert b - c == stride
        assert d > b  # each window reads something new
    assert all(b - a <= room for a, b in found)


def test_a_text_that_fits_is_one_window() -> None:
    assert chunks(5, 5, 2) == [(0, 5)]
    assert chunks(6, 5, 2) == [(0, 5), (3, 6)]


def test_windows_of_pairs_repeat_the_first_text() -> None:
    plan = plan_windows([2], [9], 6, Cut(9, "chunk", stride=1))
    encoded = assemble(TEMPLATE, [[np.arange(2, dtype=np.int32)], [np.arange(10, 19, dtype=np.int32)]], plan)
    rows = [encoded.ids[a:b].tolist() for a, b in zip(encoded.starts, encoded.starts[1:], strict=False)]
    assert rows == [
        [101, 0, 1, 102, 10, 11, 12, 13, 103],
        [101, 0, 1, 102, 13, 14, 15, 16, 103],
        [101, 0, 1, 102, 16, 17, 18, 103],
    ]
    assert encoded.document.tolist() == [0, 0, 0]
    assert (encoded.n_windows, encoded.n_documents, encoded.n_cut) == (3, 1, 0)


def test_a_long_first_text_of_a_pair_is_cut_and_counted() -> None:
    plan = plan_windows([9], [9], 6, Cut(9, "chunk", stride=5))
    assert plan.n_cut == 1
    assert {window.first for window in plan.windows} == {((0, 3),)}
    assert [window.second[0] for window in plan.windows] == [(i, i + 3) for i in range(7)]


@pytest.mark.parametrize("stride", [4, 5, 100])
def test_a_stride_that_does_not_get_on_is_refused(stride: int) -> None:
    with pytest.raises(ValueError, match=f"stride={stride} must be below the 4 tokens that max_length=6"):
        Cut(6, "chunk", stride=stride).room(2)
    assert Cut(6, "head", stride=stride).room(2) == 4  # of no meaning there


def encoded_of(lengths: list[int], owners: list[int]) -> Encoded:
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return Encoded(np.zeros(starts[-1], np.int32), starts, np.array(owners, np.int32), max(owners) + 1)


def test_aggregations_by_hand() -> None:
    rows = np.array([[0.2, 0.8], [0.6, 0.4], [1.0, 0.0]], dtype=np.float32)
    encoded = encoded_of([30, 10, 7], [0, 0, 1])
    expected = {"mean": [0.4, 0.6], "max": [0.6, 0.8], "length": [0.3, 0.7]}
    for how, first in expected.items():
        found = by_document(rows, encoded, how)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, [first, [1.0, 0.0]], rtol=1e-6)
