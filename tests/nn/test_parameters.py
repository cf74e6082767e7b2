"""Counted parameters are those of the built model; estimates are near what is measured."""

from functools import partial

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import BertConfig

from sktransformer.nn import (
    DecoderForCausalLM,
    DecoderModel,
    EncoderDecoderForSeq2SeqLM,
    EncoderDecoderModel,
    EncoderForMaskedLM,
    EncoderModel,
    TransformerConfig,
    estimate_cost,
    parameter_count,
)
from sktransformer.nn.presets import PRESETS

BODIES = {"encoder": EncoderModel, "decoder": DecoderModel, "encoder-decoder": EncoderDecoderModel}
LANGUAGE_MODELS = {
    "encoder": EncoderForMaskedLM,
    "decoder": DecoderForCausalLM,
    "encoder-decoder": EncoderDecoderForSeq2SeqLM,
}
SMALL = {"vocab_size": 50, "hidden_size": 16, "num_layers": 3, "num_attention_heads": 4}
VARIANTS = [
    {"num_key_value_heads": 2, "feed_forward": "swiglu", "norm": "rms"},
    {"num_experts": 4, "positions": "learned", "type_vocab_size": 2},
    {"positions": "relative", "attention_bias": False, "feed_forward_bias": False, "head_dim": 6},
    {"norm_position": "post", "embedding_norm": True, "tie_word_embeddings": False, "logits_bias": True},
]


def parts(model):
    """Parameters by the part that their name says."""
    found = {"blocks": 0, "total": 0}
    for name, weight in model.named_parameters():
        found["total"] += weight.numel()
        found["blocks"] += weight.numel() * (".layers." in name)
    return found


def assert_counted(config):
    with torch.device("meta"):
        body, whole = BODIES[config.architecture](config), LANGUAGE_MODELS[config.architecture](config)
    counted = parameter_count(config, language_model=False)
    assert {"blocks": counted.blocks, "total": counted.total} == parts(body)
    counted = parameter_count(config)
    assert {"blocks": counted.blocks, "total": counted.total} == parts(whole)


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_counted_exactly(name):
    assert_counted(TransformerConfig.preset(name))


@pytest.mark.parametrize("fields", VARIANTS)
@pytest.mark.parametrize("architecture", BODIES)
def test_variants_are_counted_exactly(architecture, fields):
    assert_counted(TransformerConfig(architecture=architecture, num_decoder_layers=2, **SMALL, **fields))


def test_published_sizes():
    gpt2 = parameter_count(TransformerConfig.preset("gpt2-small"))
    assert (gpt2.total, gpt2.blocks) == (124_439_808, 85_054_464)
    assert gpt2.rule == pytest.approx(gpt2.total, rel=0.01)
    # Transformers' BertModel without its pooler; T5's 60 million
    assert parameter_count(TransformerConfig.preset("bert-base"), language_model=False).total == 108_891_648
    assert parameter_count(TransformerConfig.preset("t5-small")).total == 60_506_624


@pytest.mark.parametrize("fields", [{}, VARIANTS[0], VARIANTS[2]])
@pytest.mark.parametrize("architecture", BODIES)
def test_operations_are_those_that_torch_counts(architecture, fields):
    config = TransformerConfig(architecture=architecture, **SMALL, **fields)
    model = BODIES[architecture](config).eval()
    ids = torch.ones(2, 9, dtype=torch.long)
    inputs = {"decoder_input_ids": ids} if architecture == "encoder-decoder" else {}
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(
            ids, output_attentions=True, **inputs
        )  # written out: the counter knows few of the fused kernels
    cost = estimate_cost(config, batch_size=2, length=9, language_model=False)
    assert counter.get_total_flops() == cost.forward_flops


def test_memory_of_training_is_weights_gradients_moments_and_activations():
    cost = estimate_cost(TransformerConfig(**SMALL), batch_size=2, length=9)
    assert cost.optimizer == 2 * cost.gradients == 2 * cost.weights
    more = estimate_cost(TransformerConfig(**SMALL), batch_size=4, length=9)
    assert more.activations == 2 * cost.activations
    assert cost.training_memory == 4 * cost.weights + cost.activations


def test_activations_are_near_what_autograd_keeps():
    shape = {"vocab_size": 50, "hidden_size": 64, "num_layers": 4, "num_attention_heads": 2}
    model = DecoderModel(
        TransformerConfig(architecture="decoder", dropout=0.0, attention_dropout=0.0, **shape)
    )
    kept = {}

    def pack(x):
        if not isinstance(x, torch.nn.Parameter):
            kept[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
        return x

    weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        made = model.train()(torch.ones(4, 50, dtype=torch.long))
    measured = sum(size for place, size in kept.items() if place not in weights)
    estimate = estimate_cost(model.config, batch_size=4, length=50, language_model=False).activations
    assert made.last_hidden_state.requires_grad
    assert measured == pytest.approx(estimate, rel=0.25)


@pytest.mark.parametrize("config", [BertConfig(), None, "gpt2"])
def test_other_configurations_are_refused(config):
    for count in (parameter_count, partial(estimate_cost, batch_size=1, length=1)):
        with pytest.raises(
            TypeError, match=r"config must be a TransformerConfig, got \w+; .*from_transformers"
        ):
            count(config)


def test_a_batch_has_whole_numbers_of_texts_and_tokens():
    with pytest.raises(ValueError, match="batch_size must be at least 1, got 0"):
        estimate_cost(TransformerConfig(), batch_size=0, length=4)
    with pytest.raises(TypeError, match=r"length must be a whole number, got 4.5"):
        estimate_cost(TransformerConfig(), batch_size=1, length=4.5)
