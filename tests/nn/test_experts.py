"""The mixture of experts against a loop over tokens, and its balance loss."""

import pytest
import torch

from sktransformer.nn import DecoderForCausalLM, EncoderForMaskedLM, TransformerConfig
from sktransformer.nn.experts import MixtureOfExperts, balance_loss, balance_losses


@pytest.fixture
def layer():
    torch.manual_seed(0)
    return MixtureOfExperts(TransformerConfig(hidden_size=8, num_experts=5, num_experts_per_token=2))


def test_each_token_goes_through_its_best_experts(layer):
    x = torch.randn(3, 7, 8)
    made = layer(x)
    for row in range(3):
        for t in range(7):
            scores = layer.router(x[row, t])
            best = scores.argsort(descending=True)[:2]
            shares = torch.softmax(scores[best], -1)
            expected = sum(
                share * layer.experts[e](x[row, t]) for share, e in zip(shares, best.tolist(), strict=True)
            )
            torch.testing.assert_close(made[row, t], expected)


def test_balance_is_one_when_even_and_large_when_not():
    even = torch.tensor([[0], [1], [2], [3]])
    assert balance_loss(torch.zeros(4, 4), even).item() == 1.0
    scores = torch.tensor([[9.0, 0, 0, 0]] * 4)
    assert balance_loss(scores, torch.zeros(4, 1, dtype=torch.long)).item() == pytest.approx(4, rel=1e-3)


def test_losses_are_collected_in_training_by_who_asks(layer):
    x = torch.randn(1, 4, 8)
    with balance_losses() as outer:
        layer(x)
        with balance_losses() as inner:
            layer(x)
        with balance_losses(wanted=False) as unwanted:
            layer(x)
        layer.eval()(x)
    layer.train()(x)
    assert (len(outer), len(inner), len(unwanted)) == (2, 1, 0)


@pytest.mark.parametrize("kind", [EncoderForMaskedLM, DecoderForCausalLM])
def test_the_balance_loss_is_part_of_the_loss_in_training(build, ids, kind):
    parts = {}
    for coefficient in (0.0, 10.0):
        model = build(
            kind, num_experts=3, router_aux_loss_coef=coefficient, dropout=0.0, attention_dropout=0.0
        ).train()
        parts[coefficient] = model(ids, labels=ids).loss
    assert parts[10.0] > parts[0.0] + 5


def test_the_balance_loss_spreads_the_tokens(layer):
    torch.manual_seed(1)
    with torch.no_grad():
        layer.router.weight[0] += 2.0  # all tokens of positive sum go to the first
    x = torch.rand(64, 8)
    optimizer = torch.optim.Adam(layer.router.parameters(), lr=0.05)
    values = []
    for _ in range(60):
        with balance_losses() as losses:
            layer(x)
        optimizer.zero_grad()
        losses[0].backward()
        optimizer.step()
        values.append(losses[0].item())
    assert values[0] > 1.5
    assert values[-1] < 1.1
