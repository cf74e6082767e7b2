"""Positions against their formulas, computed one number at a time."""

import math

import pytest
import torch

from sktransformer.nn.positions import RelativeBias, alibi, alibi_slopes, rotary, rotate, sinusoidal


def test_sinusoidal_is_the_papers_formula():
    table = sinusoidal(torch.arange(50), 6)
    for p in (0, 1, 7, 49):
        for i in range(3):
            angle = p / 10_000 ** (2 * i / 6)
            assert table[p, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[p, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_the_two_orders_of_columns_hold_the_same():
    positions = torch.arange(20)
    mixed, halves = sinusoidal(positions, 8), sinusoidal(positions, 8, interleaved=False)
    assert torch.equal(mixed[:, 0::2], halves[:, :4])
    assert torch.equal(mixed[:, 1::2], halves[:, 4:])


def test_rotary_turns_each_pair_by_its_angle():
    x = torch.randn(1, 1, 9, 6, generator=torch.Generator().manual_seed(0))
    turned = rotate(x, rotary(torch.arange(9)[None], 6, base=100.0))
    for p in (0, 4, 8):
        for i in range(3):
            angle = p / 100.0 ** (2 * i / 6)
            a, b = x[0, 0, p, i].item(), x[0, 0, p, i + 3].item()
            assert turned[0, 0, p, i].item() == pytest.approx(
                a * math.cos(angle) - b * math.sin(angle), abs=1e-6
            )
            assert turned[0, 0, p, i + 3].item() == pytest.approx(
                b * math.cos(angle) + a * math.sin(angle), abs=1e-6
            )


def test_products_of_turned_vectors_know_the_distance_only():
    query, key = torch.randn(2, 1, 1, 1, 8, generator=torch.Generator().manual_seed(0))

    def product(p, q):
        turned = (rotate(x, rotary(torch.tensor([[at]]), 8)) for x, at in ((query, p), (key, q)))
        return (next(turned) * next(turned)).sum().item()

    assert product(3, 10) == pytest.approx(product(103, 110), abs=1e-4)
    assert product(3, 10) != pytest.approx(product(3, 11), abs=1e-4)


def test_alibi_is_slope_times_distance():
    assert alibi_slopes(8).tolist() == [2.0**-i for i in range(1, 9)]
    bias = alibi(3, 5, 2)
    assert bias.shape == (1, 2, 3, 5)
    for head, slope in enumerate((2.0**-4, 2.0**-8)):
        for query in range(3):
            for key in range(5):
                assert bias[0, head, query, key].item() == -slope * abs(key - (query + 2))


def test_slopes_between_powers_of_two():
    # the published code's for 6 heads: those of 4, then every other one of 8
    assert alibi_slopes(6).tolist() == [2.0**-2, 2.0**-4, 2.0**-6, 2.0**-8, 2.0**-1, 2.0**-3]


@pytest.mark.parametrize("bidirectional", [True, False])
def test_relative_buckets_grow_with_the_distance(bidirectional):
    bias = RelativeBias(2, 16, 40, bidirectional=bidirectional)
    before = bias.buckets(-torch.arange(60))
    half = 8 if bidirectional else 16
    exact = half // 2
    for distance in range(60):
        wanted = distance
        if distance >= exact:
            ratio = math.log(distance / exact) / math.log(40 / exact)
            wanted = min(exact + int(ratio * (half - exact)), half - 1)
        assert before[distance].item() == wanted
    after = bias.buckets(torch.arange(1, 60))
    assert torch.equal(after, before[1:] + 8) if bidirectional else (after == 0).all()
