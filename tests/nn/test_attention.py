"""Attention: the fused kernels against the formula, groups of heads, masks."""

import math

import pytest
import torch

from sktransformer.nn import TransformerConfig
from sktransformer.nn.attention import MultiHeadAttention, repeat_groups, scaled_dot_product
from sktransformer.nn.masks import causal_mask, padding_mask, self_attention_mask, window_mask


def test_the_formula_by_hand():
    query = torch.tensor([[1.0, 0.0]])[None, None]
    key = torch.tensor([[1.0, 0.0], [0.0, 1.0]])[None, None]
    value = torch.tensor([[2.0], [4.0]])[None, None]
    attended, weights = scaled_dot_product(query, key, value)
    e = math.exp(1 / math.sqrt(2))
    torch.testing.assert_close(weights[0, 0, 0], torch.tensor([e / (e + 1), 1 / (e + 1)]))
    assert attended.item() == pytest.approx((2 * e + 4) / (e + 1))


def test_what_is_masked_has_no_weight():
    x = torch.randn(1, 2, 5, 4, generator=torch.Generator().manual_seed(0))
    for mask in (causal_mask(5, 5), window_mask(5, 5, 2), padding_mask(torch.tensor([[1, 1, 1, 0, 0]]))):
        _, weights = scaled_dot_product(x, x, x, mask)
        assert (weights[~mask.expand_as(weights)] == 0).all()
        torch.testing.assert_close(weights.sum(-1), torch.ones(1, 2, 5))


@pytest.mark.parametrize("groups", [4, 2, 1])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_kernels_agree_with_the_reference(groups, causal, masked):
    torch.manual_seed(0)
    config = TransformerConfig(
        hidden_size=16, num_attention_heads=4, num_key_value_heads=groups, attention_dropout=0.0
    )
    attention = MultiHeadAttention(config, 0, causal=causal)
    x = torch.randn(2, 7, 16)
    tokens = torch.tensor([[1] * 7, [1] * 4 + [0] * 3]) if masked else None
    mask = self_attention_mask(tokens, 7, 7, causal=causal)
    fast, nothing = attention(x, mask=mask)
    slow, weights = attention(x, mask=mask, need_weights=True)
    assert nothing is None
    torch.testing.assert_close(fast, slow, atol=1e-6, rtol=1e-5)
    assert weights.shape == (2, 4, 7, 7)
    if causal:
        assert weights.triu(1).abs().max() == 0


def test_one_group_of_keys_serves_neighbouring_heads():
    x = torch.arange(2.0)[None, :, None, None]
    assert repeat_groups(x, 6)[0, :, 0, 0].tolist() == [0, 0, 0, 1, 1, 1]


def test_multi_query_attention_has_one_head_of_keys():
    attention = MultiHeadAttention(
        TransformerConfig(hidden_size=16, num_attention_heads=4, num_key_value_heads=1), 0
    )
    assert attention.key.weight.shape == attention.value.weight.shape == (4, 16)
    assert attention.query.weight.shape == (16, 16)


@pytest.mark.parametrize("causal", [False, True])
def test_masks_are_left_out_where_a_kernel_needs_none(causal):
    assert self_attention_mask(None, 5, 5, causal=causal) is None
    assert self_attention_mask(None, 1, 5, causal=causal) is None
    assert self_attention_mask(None, 5, 5, causal=causal, window=5) is None
    assert self_attention_mask(None, 5, 5, causal=causal, window=4) is not None


def test_masks_of_several_new_tokens_behind_a_cache():
    seen = self_attention_mask(None, 2, 4, causal=True)
    assert seen[0, 0].int().tolist() == [[1, 1, 1, 0], [1, 1, 1, 1]]
    near = self_attention_mask(None, 2, 4, causal=True, window=2)
    assert near[0, 0].int().tolist() == [[0, 1, 1, 0], [0, 0, 1, 1]]


def test_padding_on_the_left_sees_itself_alone():
    mask = self_attention_mask(torch.tensor([[0, 0, 1, 1]]), 4, 4, causal=True)
    assert mask[0, 0].int().tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 1]]


def test_the_scale_can_be_set():
    torch.manual_seed(0)
    x = torch.randn(1, 4, 16)
    for scale, expected in ((1.0, 1.0), (None, 0.25)):
        config = TransformerConfig(
            hidden_size=16, num_attention_heads=1, attention_scale=scale, attention_dropout=0.0
        )
        attention = MultiHeadAttention(config, 0)
        assert attention.scaling == expected
    query, key, value = (attention._split(f(x)) for f in (attention.query, attention.key, attention.value))
    by_hand = torch.softmax(query @ key.transpose(2, 3) / 4, -1) @ value
    torch.testing.assert_close(attention(x)[0], attention.output(by_hand.transpose(1, 2).flatten(2)))
