"""The mixture of experts against a loop over tokens, and its balance loss."""

import pytest
import torch

from sktransformer.nn import (
    DecoderForCausalLM,
    EncoderDecoderForSeq2SeqLM,
    EncoderForMaskedLM,
    TransformerConfig,
)
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


def test_padding_has_no_share_in_the_balance(layer):
    x, other = torch.randn(2, 6, 8), torch.randn(2, 6, 8)
    real = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 0, 0, 0, 0]])
    with balance_losses() as losses:
        layer(x, real)
        layer(torch.where(real[..., None] == 1, x, other), real)
        layer(x[real == 1][None])
        layer(x)
    torch.testing.assert_close(losses[1], losses[0])
    torch.testing.assert_close(losses[2], losses[0])
    assert abs(losses[3] - losses[0]) > 1e-4


@pytest.mark.parametrize("kind", [EncoderForMaskedLM, DecoderForCausalLM, EncoderDecoderForSeq2SeqLM])
def test_padding_has_no_share_in_the_loss(build, ids, kind):
    model = build(kind, num_experts=3, router_aux_loss_coef=10.0, dropout=0.0, attention_dropout=0.0).train()
    padded = torch.cat([ids, torch.zeros(len(ids), 5, dtype=torch.long)], dim=1)
    mask = torch.cat([torch.ones_like(ids), torch.zeros(len(ids), 5, dtype=torch.long)], dim=1)
    labels = padded.masked_fill(mask == 0, -100)
    more = {}
    if kind is EncoderDecoderForSeq2SeqLM:
        more = {"decoder_input_ids": padded, "decoder_attention_mask": mask}
    alone = model(ids, labels=ids, **({"decoder_input_ids": ids} if more else {})).loss
    together = model(padded, attention_mask=mask, labels=labels, **more).loss
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=1e-5)


def test_activations_are_computed_again(build, ids):
    """Also outside of the block that collects the losses, as a backward pass is."""
    gradients = []
    for again in (False, True):
        model = build(EncoderForMaskedLM, num_experts=3, router_aux_loss_coef=1.0, dropout=0.0).train()
        if again:
            model.activation_checkpointing_enable({"use_reentrant": False})
        model(ids, labels=ids).loss.backward()
        gradients.append([p.grad for p in model.parameters()])
    for mine, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-6, rtol=1e-5)
