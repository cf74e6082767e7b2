"""The products of attention are the formula's in both layouts, and the layout follows the chip and the length."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from sktransformer.nn import attention_products as room
from sktransformer.nn.attention_products import Batched, Grouped, Products, products_for
from sktransformer.nn.packed_attention import packed_attention

HEADS, WIDTH = 3, 8
needs_onednn = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="a torch without oneDNN")
LAYOUTS = [Batched(), pytest.param(Grouped(), marks=needs_onednn)]


def heads(n: int, seed: int) -> torch.Tensor:
    """Draw (h, n, d) as attention holds it: each token's heads side by side."""
    drawn = torch.randn(n, HEADS, WIDTH, generator=torch.Generator().manual_seed(seed))
    return drawn.transpose(0, 1)


def by_head(products: Products, weights: torch.Tensor) -> torch.Tensor:
    return products.by_head(weights)


@pytest.mark.parametrize("products", LAYOUTS)
@pytest.mark.parametrize(("n_queries", "n_keys"), [(5, 5), (40, 40), (1, 7), (9, 4)])
def test_products_are_those_of_the_formula(products: Products, n_queries: int, n_keys: int) -> None:
    query, key, value = heads(n_queries, 0), heads(n_keys, 1), heads(n_keys, 2)
    scores = products.scores(query, key)
    torch.testing.assert_close(by_head(products, scores), query @ key.transpose(1, 2), rtol=1e-5, atol=1e-5)
    read, gathered = products.read(scores, value), products.gathered(scores, query)
    expected = query @ key.transpose(1, 2)
    torch.testing.assert_close(read, expected @ value, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(gathered, expected.transpose(1, 2) @ query, rtol=1e-4, atol=1e-4)


def test_some_heads_of_several() -> None:
    query, key = heads(6, 0), heads(6, 1)
    found = Grouped().scores(query[1:], key[1:])
    torch.testing.assert_close(found.transpose(0, 1), (query @ key.transpose(1, 2))[1:], rtol=1e-5, atol=1e-5)


def test_long_documents_in_float32_on_wide_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "has_wide_onednn", lambda: True)
    assert isinstance(products_for(torch.float32, 128, 128), Grouped)
    assert isinstance(products_for(torch.float32, 1, 500), Batched)
    assert isinstance(products_for(torch.float64, 500, 500), Batched)
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)
    assert isinstance(products_for(torch.float32, 500, 500), Batched)
    monkeypatch.undo()
    monkeypatch.setattr(room, "has_wide_onednn", lambda: False)
    assert isinstance(products_for(torch.float32, 500, 500), Batched)


@needs_onednn
def test_attention_over_long_documents_has_the_values_and_gradients_of_torch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A probability that rounds to nothing takes the path of dropped weights and drops none."""
    monkeypatch.setattr(room, "has_wide_onednn", lambda: True)
    lengths = (150, 20, 129)
    bounds = torch.tensor([0, *lengths]).cumsum(0).int()
    found = []
    for dropout in (1e-9, 0.0):
        inputs = [torch.cat([heads(n, 3 * i + j) for i, n in enumerate(lengths)], 1)[None] for j in range(3)]
        inputs = [x.requires_grad_() for x in inputs]
        attended = packed_attention(*inputs, bounds, lengths, dropout=dropout)
        towards = torch.linspace(-1, 1, attended.numel()).view_as(attended)
        found.append([attended, *torch.autograd.grad((attended * towards).sum(), inputs)])
    for own, stock in zip(*found, strict=True):
        torch.testing.assert_close(own, stock, rtol=1e-4, atol=1e-5)


@needs_onednn
def test_dropped_weights_of_long_documents_are_scaled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "has_wide_onednn", lambda: True)
    n = 200
    query = torch.zeros(1, 2, n, 4)  # every weight is 1 / n
    value = torch.ones(1, 2, n, 1)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        attended = packed_attention(query, query, value, torch.tensor([0, n]).int(), (n,), dropout=0.25)[
            0, :, :, 0
        ]
    kept = attended * 0.75 * n  # how many of a row's weights stand
    assert torch.allclose(kept, kept.round(), atol=1e-3)
    assert abs(kept.mean().item() / n - 0.75) < 0.01
    assert not torch.equal(kept[:, 0], kept[:, 1])
    assert F.mse_loss(attended.mean(), torch.tensor(1.0)) < 1e-3
