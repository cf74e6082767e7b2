"""The CRF's sums, maxima and marginals equal those over all labellings, counted one by one."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from sktransformer.nn import crf as room
from sktransformer.nn.crf import BARRED, LinearChainCRF

LABELS, STEPS = 3, 5
LENGTHS = (5, 1, 3, 0, 2)


def drawn(seed: int = 0, *, barred: bool = False) -> tuple[LinearChainCRF, torch.Tensor, torch.Tensor]:
    """A CRF with random scores, random emissions (B, T, C) and the mask of `LENGTHS`, in float64."""
    generator = torch.Generator().manual_seed(seed)
    transitions = torch.ones(LABELS, LABELS, dtype=torch.bool)
    starts, ends = torch.ones(LABELS, dtype=torch.bool), torch.ones(LABELS, dtype=torch.bool)
    if barred:
        transitions[0, 2] = transitions[1, 1] = starts[2] = ends[0] = False
    crf = LinearChainCRF(LABELS, starts=starts, transitions=transitions, ends=ends).double()
    with torch.no_grad():
        for parameter in crf.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    emissions = torch.randn(len(LENGTHS), STEPS, LABELS, generator=generator, dtype=torch.float64)
    mask = torch.arange(STEPS) < torch.tensor(LENGTHS)[:, None]
    return crf, emissions, mask


def score(
    crf: LinearChainCRF,
    emissions: torch.Tensor,
    labels: tuple[int, ...],
    begins: bool = True,
    ends: bool = True,
) -> torch.Tensor:
    """The formula's s(y) for one sequence, term by term."""
    start = crf.start_scores.masked_fill(~crf.allowed_starts, BARRED)
    transitions = crf.transition_scores.masked_fill(~crf.allowed_transitions, BARRED)
    end = crf.end_scores.masked_fill(~crf.allowed_ends, BARRED)
    total = start[labels[0]] if begins else torch.zeros((), dtype=torch.float64)
    for t, label in enumerate(labels):
        total = total + emissions[t, label]
        if t:
            total = total + transitions[labels[t - 1], label]
    return total + (end[labels[-1]] if ends else 0.0)


def labellings(length: int) -> list[tuple[int, ...]]:
    return list(product(range(LABELS), repeat=length))


def all_scores(crf: LinearChainCRF, emissions: torch.Tensor, length: int, **pieces: bool) -> torch.Tensor:
    return torch.stack([score(crf, emissions, labels, **pieces) for labels in labellings(length)])


@pytest.mark.parametrize("barred", [False, True])
def test_log_partition_is_the_sum_over_all_labellings(barred: bool) -> None:
    crf, emissions, mask = drawn(barred=barred)
    expected = [
        torch.logsumexp(all_scores(crf, emissions[b], n), 0) if n else torch.zeros((), dtype=torch.float64)
        for b, n in enumerate(LENGTHS)
    ]
    torch.testing.assert_close(crf.log_partition(emissions, mask), torch.stack(expected), rtol=0, atol=1e-10)


@pytest.mark.parametrize(("begins", "ends"), [(True, True), (False, True), (True, False), (False, False)])
def test_log_likelihood(begins: bool, ends: bool) -> None:
    crf, emissions, mask = drawn(1)
    labels = torch.randint(LABELS, mask.shape, generator=torch.Generator().manual_seed(2))
    flags = (torch.full((len(LENGTHS),), begins), torch.full((len(LENGTHS),), ends))
    found = crf(emissions, labels, mask, begins=flags[0], ends=flags[1])
    for b, n in enumerate(LENGTHS):
        if not n:
            assert found[b] == 0.0
            continue
        gold = score(crf, emissions[b], tuple(labels[b, :n].tolist()), begins, ends)
        total = torch.logsumexp(all_scores(crf, emissions[b], n, begins=begins, ends=ends), 0)
        torch.testing.assert_close(found[b], gold - total, rtol=0, atol=1e-10)


def test_likelihoods_of_all_labellings_sum_to_one() -> None:
    crf, emissions, mask = drawn(3)
    labels = torch.tensor(labellings(STEPS))
    rows = len(labels)
    found = crf(emissions[:1].expand(rows, -1, -1), labels, mask[:1].expand(rows, -1))
    torch.testing.assert_close(found.exp().sum().item(), 1.0, rtol=0, atol=1e-12)


@pytest.mark.parametrize("barred", [False, True])
def test_gradients_are_those_of_the_enumeration(barred: bool) -> None:
    """The closed form against autograd through all 243 labellings."""
    crf, emissions, mask = drawn(4, barred=barred)
    emissions.requires_grad_(True)
    weights = torch.tensor([1.0, -2.0, 0.5, 7.0, 3.0], dtype=torch.float64)
    parameters = [emissions, *crf.parameters()]
    found = torch.autograd.grad((crf.log_partition(emissions, mask) * weights).sum(), parameters)
    by_hand = sum(
        weights[b] * torch.logsumexp(all_scores(crf, emissions[b], n), 0) for b, n in enumerate(LENGTHS) if n
    )
    for one, other in zip(found, torch.autograd.grad(by_hand, parameters), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


def test_gradients_of_the_likelihood_agree_with_finite_differences() -> None:
    crf, emissions, mask = drawn(5)
    labels = torch.randint(LABELS, mask.shape, generator=torch.Generator().manual_seed(6))
    begins = torch.tensor([True, False, True, True, False])

    def likelihood(emissions: torch.Tensor) -> torch.Tensor:
        return crf(emissions, labels, mask, begins=begins)

    assert torch.autograd.gradcheck(likelihood, emissions.requires_grad_(True))


def test_pairs_are_summed_in_blocks_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    crf, emissions, mask = drawn(7)
    whole = torch.autograd.grad(crf.log_partition(emissions, mask).sum(), crf.transition_scores)[0]
    monkeypatch.setattr(room, "BLOCK", 2 * LABELS**2)  # two pairs a block
    cut = torch.autograd.grad(crf.log_partition(emissions, mask).sum(), crf.transition_scores)[0]
    torch.testing.assert_close(cut, whole, rtol=0, atol=1e-12)


@pytest.mark.parametrize("barred", [False, True])
def test_marginals_are_sums_over_labellings(barred: bool) -> None:
    crf, emissions, mask = drawn(8, barred=barred)
    found = crf.marginals(emissions, mask)
    for b, n in enumerate(LENGTHS):
        expected = torch.zeros(STEPS, LABELS, dtype=torch.float64)
        if n:
            shares = torch.softmax(all_scores(crf, emissions[b], n), 0)
            for share, labels in zip(shares, labellings(n), strict=True):
                for t, label in enumerate(labels):
                    expected[t, label] += share.detach()
        torch.testing.assert_close(found[b], expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("barred", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_viterbi_is_the_best_of_all_labellings(seed: int, barred: bool) -> None:
    crf, emissions, mask = drawn(10 + seed, barred=barred)
    found = crf.decode(emissions, mask)
    for b, n in enumerate(LENGTHS):
        best = labellings(n)[int(all_scores(crf, emissions[b], n).argmax())] if n else ()
        assert found[b].tolist() == [*best, *[0] * (STEPS - n)]


def test_what_is_barred_never_comes_up_and_has_no_probability() -> None:
    crf, _, _ = drawn(barred=True)
    emissions = 30 * torch.randn(2000, 7, LABELS, generator=torch.Generator().manual_seed(0)).double()
    mask = torch.ones(2000, 7, dtype=torch.bool)
    path = crf.decode(emissions, mask)
    assert crf.allowed_transitions[path[:, :-1], path[:, 1:]].all()
    assert crf.allowed_starts[path[:, 0]].all()
    assert crf.allowed_ends[path[:, -1]].all()
    assert crf.marginals(emissions, mask)[:, 0, 2].max() == 0.0


def test_where_nothing_is_allowed_something_comes_out() -> None:
    crf = LinearChainCRF(2, starts=torch.tensor([False, False]), ends=torch.tensor([True, False]))
    emissions, mask = torch.tensor([[[1.0, 2.0]]]), torch.ones(1, 1, dtype=torch.bool)
    assert crf.decode(emissions, mask).tolist() == [[0]]
    assert torch.isfinite(crf.marginals(emissions, mask)).all()
    assert torch.isfinite(crf(emissions, torch.tensor([[1]]), mask)).all()


def test_long_sequences_stay_exact_in_float32() -> None:
    """A chain of 2000 elements with zero transitions is 2000 independent choices."""
    emissions = 5 * torch.randn(2, 2000, 4, generator=torch.Generator().manual_seed(0))
    mask = torch.ones(2, 2000, dtype=torch.bool)
    crf = LinearChainCRF(4)
    expected = torch.logsumexp(emissions.double(), -1).sum(1)
    torch.testing.assert_close(crf.log_partition(emissions, mask).double(), expected, rtol=1e-5, atol=0)
    marginals = crf.double().marginals(emissions.double(), mask)
    torch.testing.assert_close(marginals.float(), emissions.softmax(-1), rtol=0, atol=1e-6)
    assert torch.equal(crf.decode(emissions, mask), emissions.argmax(-1))


def test_padding_does_not_matter() -> None:
    crf, emissions, mask = drawn(20)
    changed = torch.where(mask[..., None], emissions, 1e3)
    for method in (crf.log_partition, crf.marginals, crf.decode):
        torch.testing.assert_close(method(changed, mask), method(emissions, mask), rtol=0, atol=0)


def test_learns_a_transition() -> None:
    """Labels that alternate, under emissions that say nothing: only transitions can know."""
    labels = torch.tensor([[0, 1, 0, 1, 0, 1]] * 4)
    emissions, mask = torch.zeros(4, 6, 2), torch.ones(4, 6, dtype=torch.bool)
    crf = LinearChainCRF(2)
    optimizer = torch.optim.AdamW(crf.parameters(), lr=0.1, weight_decay=0.0)
    for _ in range(60):
        optimizer.zero_grad()
        (-crf(emissions, labels, mask).mean()).backward()
        optimizer.step()
    assert crf.decode(emissions, mask).tolist() == labels.tolist()
    assert crf(emissions, labels, mask).mean().exp() > 0.9


def test_holes_in_the_mask_are_refused() -> None:
    crf, emissions, mask = drawn()
    mask[0, 1] = False
    with pytest.raises(ValueError, match="first elements of a row only"):
        crf.log_partition(emissions, mask)


def test_bars_of_a_wrong_shape_are_refused() -> None:
    with pytest.raises(ValueError, match=r"transitions must have shape \(3, 3\), got \(2, 2\)"):
        LinearChainCRF(3, transitions=torch.ones(2, 2))
