"""Attention within the documents of a packed row equals attention under a dense block-diagonal mask."""

from __future__ import annotations

import inspect
import math
from itertools import pairwise
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention import varlen

from sktransformer.nn import attention_tiles
from sktransformer.nn import packed_attention as room
from sktransformer.nn.attention_tiles import tiles
from sktransformer.nn.dropout import factor, kept
from sktransformer.nn.packed_attention import packed_attention

HEADS, WIDTH = 2, 4
LENGTHS = [(5,), (1, 1, 1), (3, 1, 4), (7, 2, 2, 1)]


def inputs(lengths: tuple[int, ...], dtype: torch.dtype = torch.float64) -> list[torch.Tensor]:
    """Draw query, key and value (1, heads, N, d)."""
    generator = torch.Generator().manual_seed(0)
    size = (1, HEADS, sum(lengths), WIDTH)
    return [torch.randn(size, generator=generator, dtype=dtype) for _ in range(3)]


def bounds_of(lengths: tuple[int, ...]) -> torch.Tensor:
    return torch.tensor([0, *lengths]).cumsum(0).int()


def attend(tensors: list[torch.Tensor], lengths: tuple[int, ...], **options: Any) -> torch.Tensor:
    return packed_attention(*tensors, bounds_of(lengths), lengths, **options)


def dense(tensors: list[torch.Tensor], lengths: tuple[int, ...], scale: float | None = None) -> torch.Tensor:
    """Attend by the formula, with minus infinity outside each document's block."""
    query, key, value = tensors
    owner = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
    scores = query @ key.transpose(-1, -2) * (1 / math.sqrt(WIDTH) if scale is None else scale)
    scores = scores.masked_fill(owner[:, None] != owner[None, :], -torch.inf)
    return (scores.softmax(dim=-1) @ value).transpose(1, 2)  # (1, N, heads, d)


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("scale", [None, 0.3])
def test_equals_a_dense_block_diagonal_mask(lengths: tuple[int, ...], scale: float | None) -> None:
    tensors = inputs(lengths)
    attended = attend(tensors, lengths, scale=scale)
    assert attended.shape == (1, sum(lengths), HEADS, WIDTH)
    torch.testing.assert_close(attended, dense(tensors, lengths, scale), rtol=0, atol=1e-12)


def test_by_hand() -> None:
    """Two documents of two tokens; keys are zero, so that each token gets the mean of its document's values."""
    value = torch.tensor([1.0, 3.0, 10.0, 20.0]).reshape(1, 1, 4, 1)
    attended = packed_attention(
        torch.ones(1, 1, 4, 1), torch.zeros(1, 1, 4, 1), value, bounds_of((2, 2)), (2, 2)
    )
    assert attended.flatten().tolist() == [2.0, 2.0, 15.0, 15.0]


@pytest.mark.parametrize("lengths", LENGTHS)
def test_gradients_equal_those_of_the_dense_mask(lengths: tuple[int, ...]) -> None:
    weights = torch.linspace(-1, 1, sum(lengths) * HEADS * WIDTH, dtype=torch.float64)
    gradients = []
    for function in (attend, dense):
        tensors = [tensor.requires_grad_() for tensor in inputs(lengths)]
        (function(tensors, lengths).flatten() * weights).sum().backward()
        gradients.append([tensor.grad for tensor in tensors])
    torch.testing.assert_close(gradients[0], gradients[1], rtol=0, atol=1e-12)


def test_a_document_does_not_see_its_neighbours() -> None:
    lengths = (3, 4, 2)
    first = inputs(lengths, torch.float32)
    second = [tensor.clone() for tensor in first]
    for tensor in second:
        tensor[:, :, 3:7] = torch.randn(1, HEADS, 4, WIDTH)
    before, after = attend(first, lengths), attend(second, lengths)
    assert torch.equal(before[:, :3], after[:, :3])
    assert torch.equal(before[:, 7:], after[:, 7:])
    assert not torch.equal(before[:, 3:7], after[:, 3:7])


# -- dropout -----------------------------------------------------------------------------------------------------------


def test_dropout_drops_weights_and_scales_the_rest() -> None:
    """A document of one token has one weight, 1: dropped, its output is 0, and kept, its value over 1 - p."""
    lengths = (1,) * 400
    tensors = inputs(lengths)
    torch.manual_seed(0)
    attended = attend(tensors, lengths, dropout=0.25)
    value = tensors[2].transpose(1, 2)  # (1, N, heads, d)
    dropped = (attended == 0).all(dim=-1)  # (1, N, heads)
    torch.testing.assert_close(attended[~dropped], (value / 0.75)[~dropped], rtol=0, atol=1e-12)
    assert 0.2 < dropped.double().mean().item() < 0.3
    assert not torch.equal(dropped[..., 0], dropped[..., 1])  # each head for itself


def test_dropout_stays_within_a_document() -> None:
    lengths = (4, 4)
    query, key, _ = inputs(lengths)
    value = torch.zeros(1, HEADS, 8, 2, dtype=torch.float64)
    value[:, :, :4, 0] = value[:, :, 4:, 1] = 1.0  # column i holds the weight on document i
    attended = packed_attention(query, key, value, bounds_of(lengths), lengths, dropout=0.5)
    assert (attended[:, :4, :, 1] == 0).all()
    assert (attended[:, 4:, :, 0] == 0).all()
    assert attended.any()


def test_dropout_follows_torchs_generator() -> None:
    tensors = inputs((3, 4))
    drawn = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        drawn.append(attend(tensors, (3, 4), dropout=0.5))
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


# -- the flash kernel --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [None, 1 / math.sqrt(WIDTH), 0.3])
def test_the_flash_kernel_gets_the_documents_laid_out_as_it_wants(
    scale: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel runs on a GPU only; here one stands in for it that follows its documentation."""
    lengths = (3, 1, 4)
    names = list(inspect.signature(varlen.varlen_attn).parameters)[:7]
    assert names == ["query", "key", "value", "cu_seq_q", "cu_seq_k", "max_q", "max_k"]

    def kernel(q: Any, k: Any, v: Any, bounds_q: Any, bounds_k: Any, max_q: int, max_k: int) -> torch.Tensor:
        assert q.shape == k.shape == v.shape == (8, HEADS, WIDTH)
        assert q.is_contiguous()
        assert k.is_contiguous()
        assert v.is_contiguous()
        assert bounds_q.dtype == bounds_k.dtype == torch.int32
        assert bounds_q.tolist() == bounds_k.tolist() == [0, 3, 4, 8]
        assert max_q == max_k == 4
        parts = [
            F.scaled_dot_product_attention(*(x[a:b].transpose(0, 1) for x in (q, k, v))).transpose(0, 1)
            for a, b in pairwise(bounds_q.tolist())
        ]
        return torch.cat(parts)  # (N, heads, d)

    monkeypatch.setattr(varlen, "varlen_attn", kernel)
    tensors = inputs(lengths)
    attended = room._flash(*tensors, bounds_of(lengths), lengths, lengths, scale)
    torch.testing.assert_close(attended, dense(tensors, lengths, scale), rtol=0, atol=1e-12)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="the flash kernel needs a GPU")
@pytest.mark.parametrize("scale", [None, 0.2])
def test_the_flash_kernel_equals_the_dense_mask(scale: float | None) -> None:
    lengths = (30, 1, 77)
    generator = torch.Generator("cuda").manual_seed(0)
    size = (1, 4, sum(lengths), 64)
    tensors = [torch.randn(size, generator=generator, device="cuda", dtype=torch.bfloat16) for _ in range(3)]
    attended = packed_attention(*tensors, bounds_of(lengths).cuda(), lengths, scale=scale)
    owner = torch.repeat_interleave(torch.arange(3), torch.tensor(lengths)).cuda()
    mask = owner[:, None] == owner[None, :]
    expected = F.scaled_dot_product_attention(*(x.float() for x in tensors), attn_mask=mask, scale=scale)
    torch.testing.assert_close(attended.float(), expected.transpose(1, 2), rtol=0.02, atol=0.02)


@pytest.mark.parametrize("lengths", LENGTHS)
def test_one_query_a_document_gives_the_rows_of_all_queries(lengths: tuple[int, ...]) -> None:
    query, key, value = inputs(lengths)
    starts = bounds_of(lengths)[:-1].long()
    whole = attend([query, key, value], lengths)
    alone = attend([query[:, :, starts], key, value], lengths)
    torch.testing.assert_close(alone, whole[:, starts], rtol=0, atol=1e-12)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[torch.Tensor]:
    """The masks that attention draws, in order."""
    seen: list[torch.Tensor] = []
    monkeypatch.setattr(room, "kept", lambda like, p: seen.append(kept(like, p)) or seen[-1])
    return seen


def by_document(drawn: list[torch.Tensor], lengths: tuple[int, ...], element_size: int) -> list[torch.Tensor]:
    """Sort the masks of tiles into those of documents, (heads, n, n)."""
    found: dict[int, list[torch.Tensor]] = {}
    for tile, mask in zip(tiles(element_size, HEADS, lengths, lengths), drawn, strict=True):
        for of_document, rows in zip(mask.chunk(len(tile.read)), tile.read, strict=True):
            n = rows.stop - rows.start
            found.setdefault(rows.start, []).append(of_document[:, :n, :n] != 0)
    return [torch.cat(found[start]) for start in sorted(found)]


@pytest.mark.parametrize("lengths", [(5,), (3, 1, 4), (9, 8, 8, 7, 17)])
@pytest.mark.parametrize("tile", [1, 200, 10_000])
@pytest.mark.parametrize(
    ("dtype", "atol"), [(torch.float64, 1e-12), (torch.float32, 1e-6), (torch.bfloat16, 0.05)]
)
def test_dropped_weights_are_those_of_the_formula(
    lengths: tuple[int, ...],
    tile: int,
    dtype: torch.dtype,
    atol: float,
    drawn: list[torch.Tensor],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also when the weights of a document's heads are computed in several tiles, or several documents in one."""
    monkeypatch.setattr(attention_tiles, "TILE", tile)
    p, tensors = 0.4, [x.to(dtype) for x in inputs(lengths)]
    with torch.random.fork_rng():
        torch.manual_seed(3)
        attended = attend(tensors, lengths, dropout=p)
    assert attended.dtype == dtype
    parts = zip(*(x.double().split(lengths, dim=2) for x in tensors), strict=True)
    masks = by_document(drawn, lengths, dtype.itemsize)
    expected = []
    for (q, k, v), mask in zip(parts, masks, strict=True):
        assert mask.any()
        weights = (q[0] @ k[0].transpose(1, 2) / math.sqrt(WIDTH)).softmax(-1)
        expected.append((weights * mask * factor(p)) @ v[0])
    found = attended[0].double()
    torch.testing.assert_close(found, torch.cat(expected, dim=1).transpose(0, 1), rtol=0, atol=atol)


def test_what_stands_behind_the_last_document_gets_zeros_and_gives_no_gradient() -> None:
    lengths = (3, 5)
    for dropout in (0.0, 1e-9):
        tensors = [torch.cat([x, torch.full_like(x, 7.0)], 2).requires_grad_() for x in inputs(lengths)]
        attended = attend(tensors, lengths, dropout=dropout)
        assert attended.shape[1] == 16
        assert not attended[:, 8:].any()
        alone = attend([x[:, :, :8] for x in tensors], lengths)
        torch.testing.assert_close(attended[:, :8], alone, rtol=1e-9, atol=1e-9)
        for gradient in torch.autograd.grad(attended.pow(2).sum(), tensors):
            assert not gradient[:, :, 8:].any()
            assert gradient[:, :, :8].any()


@pytest.mark.parametrize("dropout", [0.0, 1e-9])
def test_first_tokens_of_a_filled_row(dropout: float) -> None:
    lengths = (3, 5)
    query, key, value = inputs(lengths)
    first = query[:, :, bounds_of(lengths)[:-1].long()]
    filled = [torch.cat([x, torch.full_like(x, 7.0)], 2) for x in (key, value)]
    expected = attend([query, key, value], lengths)[:, bounds_of(lengths)[:-1].long()]
    found = attend([first, *filled], lengths, dropout=dropout)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("first_only", [False, True])
@pytest.mark.parametrize("tile", [1, 10, 10_000])
def test_gradients_of_dropped_attention(first_only: bool, tile: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention_tiles, "TILE", tile)
    lengths = (3, 1, 2)
    query, key, value = inputs(lengths)
    if first_only:
        query = query[:, :, bounds_of(lengths)[:-1].long()]
    tensors = [x.clone().requires_grad_() for x in (query, key, value)]

    def seeded(*given: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(5)  # the same masks at every evaluation
        return attend(list(given), lengths, dropout=0.3, scale=0.7)

    with torch.random.fork_rng():
        assert torch.autograd.gradcheck(seeded, tensors)


def test_dropped_attention_is_right_on_average() -> None:
    tensors = inputs((4,))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        mean = torch.stack([attend(tensors, (4,), dropout=0.25) for _ in range(4000)]).mean(0)
    torch.testing.assert_close(mean, attend(tensors, (4,)), rtol=0, atol=0.05)


@pytest.mark.parametrize("lengths", [(5,), (9, 8, 8, 7, 33)])
def test_training_in_bfloat16_has_the_gradients_of_the_formula(lengths: tuple[int, ...]) -> None:
    exact = [x.to(torch.bfloat16).double().requires_grad_() for x in inputs(lengths)]
    tensors = [x.detach().to(torch.bfloat16).requires_grad_() for x in exact]
    attended = attend(tensors, lengths)
    assert "WrittenOut" in type(attended.grad_fn.next_functions[0][0]).__name__
    expected = dense(exact, lengths)
    assert attended.dtype == torch.bfloat16
    torch.testing.assert_close(attended.double(), expected, rtol=0.02, atol=0.02)
    towards = torch.linspace(-1, 1, expected.numel(), dtype=torch.float64).view_as(expected)
    found = torch.autograd.grad((attended * towards.to(torch.bfloat16)).sum(), tensors)
    for own, true in zip(found, torch.autograd.grad((expected * towards).sum(), exact), strict=True):
        torch.testing.assert_close(own.double(), true, rtol=0.03, atol=0.03)


@pytest.mark.parametrize(
    ("dtype", "dropout", "trained", "written_out"),
    [
        (torch.float32, 0.0, True, False),
        (torch.bfloat16, 0.0, False, False),
        (torch.bfloat16, 0.0, True, True),
        (torch.float32, 0.1, True, True),
        (torch.float16, 0.1, True, False),
    ],
)
def test_what_is_written_out(
    dtype: torch.dtype, dropout: float, trained: bool, written_out: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    met, stock = [], room._WrittenOut.apply
    monkeypatch.setattr(room._WrittenOut, "apply", lambda *given: met.append(given) or stock(*given))
    attend([x.to(dtype).requires_grad_(trained) for x in inputs((3, 4))], (3, 4), dropout=dropout)
    assert bool(met) == written_out
