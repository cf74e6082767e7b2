"""The tiles of a row hold every weight once, and tensors come back to where they were taken from."""

from __future__ import annotations

import pytest
import torch

from sktransformer.nn import attention_tiles as room
from sktransformer.nn.attention_tiles import Tile, tiles

HEADS, WIDTH = 3, 2
LENGTHS = [(1,), (17,), (9, 9, 8, 1), (40, 33, 32, 31, 5)]


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("size", [1, 600, 1 << 20])
@pytest.mark.parametrize("element_size", [2, 4, 8])
def test_each_head_of_each_document_once(
    lengths: tuple[int, ...], size: int, element_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "TILE", size)
    met = []
    for tile in tiles(element_size, HEADS, lengths, lengths):
        assert tile.asked == tile.read
        assert tile.n_queries == tile.n_keys or tile.n_queries == 1
        assert tile.n_keys % (64 // element_size) == 0
        n_heads = tile.heads.stop - tile.heads.start
        assert (
            n_heads * len(tile.read) == 1 or n_heads * len(tile.read) * tile.n_queries * tile.n_keys <= size
        )
        met += [(h, rows.start, rows.stop) for h in range(HEADS)[tile.heads] for rows in tile.read]
    ends = torch.tensor(lengths).cumsum(0).tolist()
    expected = [(h, end - n, end) for h in range(HEADS) for n, end in zip(lengths, ends, strict=True)]
    assert sorted(met) == sorted(expected)


def test_documents_about_as_long_share_a_tile() -> None:
    found = list(tiles(2, HEADS, (40, 35, 33, 32, 5), (40, 35, 33, 32, 5)))
    assert [(len(tile.read), tile.n_keys) for tile in found] == [(3, 64), (2, 32)]
    assert found[1].read == (slice(108, 140), slice(140, 145))


def test_one_query_a_document_is_not_filled_up() -> None:
    (tile,) = tiles(4, HEADS, (1, 1), (10, 12))
    assert (tile.n_queries, tile.n_keys) == (1, 16)
    assert tile.asked == (slice(0, 1), slice(1, 2))
    assert tile.read == (slice(0, 10), slice(10, 22))


@pytest.mark.parametrize("by_token", [False, True])
@pytest.mark.parametrize("lengths", LENGTHS)
def test_what_is_gathered_is_put_back(lengths: tuple[int, ...], by_token: bool) -> None:
    x = torch.randn(sum(lengths), HEADS, WIDTH, generator=torch.Generator().manual_seed(0))
    keys, queries = torch.full_like(x, torch.nan), torch.full_like(x, torch.nan)
    for tile in tiles(4, HEADS, lengths, lengths):
        rows = tile.keys(x.transpose(0, 1), by_token)
        assert rows.shape == (HEADS * len(tile.read), tile.n_keys, WIDTH)
        assert rows.transpose(0, 1).is_contiguous() if by_token else rows.is_contiguous()
        for of_document, place in zip(rows.chunk(len(tile.read)), tile.read, strict=True):
            assert not of_document[:, place.stop - place.start :].any()
        tile.put_keys(rows, keys)
        tile.put_queries(tile.queries(x.transpose(0, 1), by_token), queries)
    assert torch.equal(keys, x)
    assert torch.equal(queries, x)


def test_what_stands_behind_a_document_is_hidden() -> None:
    tile = Tile(slice(0, 2), (slice(0, 3), slice(3, 7)), (slice(0, 3), slice(3, 7)), 4, 4)
    scores = torch.zeros(4, 4, 4)
    tile.hide(scores)
    assert torch.equal(scores.isinf().any(dim=1).sum(dim=1), torch.tensor([1, 1, 0, 0]))
    assert scores[:2, :, 3].isneginf().all()
