"""Configurations: what they fill in, what they refuse, how they are saved."""

import copy

import pytest
import torch
from transformers import AutoConfig

from sktransformer.nn import (
    DecoderConfig,
    DecoderModel,
    EncoderDecoderConfig,
    EncoderDecoderModel,
    EncoderModel,
    TransformerConfig,
)
from sktransformer.nn.presets import PRESETS

BODIES = {"encoder": EncoderModel, "decoder": DecoderModel, "encoder-decoder": EncoderDecoderModel}


def test_what_follows_from_the_width():
    config = TransformerConfig(hidden_size=192)
    assert (config.num_attention_heads, config.head_dim, config.num_key_value_heads) == (3, 64, 3)
    assert config.intermediate_size == 768
    assert TransformerConfig(hidden_size=192, feed_forward="swiglu").intermediate_size == 512
    assert TransformerConfig(hidden_size=10).num_attention_heads == 1  # never more than the width can bear


@pytest.mark.parametrize(
    ("architecture", "kind"),
    [("encoder", TransformerConfig), ("decoder", DecoderConfig), ("encoder-decoder", EncoderDecoderConfig)],
)
def test_the_architecture_names_the_class(architecture, kind, tmp_path):
    config = TransformerConfig(architecture=architecture, hidden_size=32, num_layers=3, num_labels=5)
    assert type(config) is kind
    assert config.is_encoder_decoder == (architecture == "encoder-decoder")
    config.save_pretrained(tmp_path)
    for loaded in (AutoConfig.from_pretrained(tmp_path), TransformerConfig.from_pretrained(tmp_path)):
        assert type(loaded) is kind
        assert (loaded.num_layers, loaded.num_labels, loaded.architecture) == (3, 5, architecture)
    assert type(copy.deepcopy(config)) is kind


@pytest.mark.parametrize("name", PRESETS)
def test_it_is_written_as_the_call_that_makes_it(name):
    config = TransformerConfig.preset(name, num_labels=3)
    again = eval(repr(config))
    assert again == config
    assert type(again) is type(config)
    assert "norm_eps" not in repr(TransformerConfig())  # what is as by default is left out


def test_names_of_transformers_are_understood():
    config = TransformerConfig(num_hidden_layers=7, d_model=32)
    assert (config.num_layers, config.num_hidden_layers, config.hidden_size) == (7, 7, 32)


def test_the_decoders_own_depth_sizes_its_caches():
    config = TransformerConfig(architecture="encoder-decoder", num_layers=2, num_decoder_layers=5)
    assert config.get_text_config(decoder=True).num_hidden_layers == 5
    assert config.get_text_config().num_hidden_layers == 2


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_configurations(name):
    config = TransformerConfig.preset(name, dropout=0.3)
    assert (config.architecture, config.dropout) == (PRESETS[name]["architecture"], 0.3)


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"hiden_size": 8}, TypeError, "no field 'hiden_size'. Did you mean 'hidden_size'"),
        (
            {"positions": "rotory"},
            ValueError,
            "positions must be one of .* got 'rotory'. Did you mean 'rotary'",
        ),
        ({"feed_forward": "swish"}, ValueError, "feed_forward must be one of"),
        ({"architecture": "decodr"}, ValueError, "Did you mean 'decoder'"),
        ({"tokenizer": "sentencepiece"}, ValueError, "tokenizer must be one of None, 'wordpiece'"),
        (
            {"hidden_size": 10, "num_attention_heads": 4},
            ValueError,
            "hidden_size=10 is not divisible by num_att",
        ),
        (
            {"hidden_size": 12, "num_attention_heads": 4, "positions": "rotary"},
            ValueError,
            "head_dim=3 is odd",
        ),
        ({"hidden_size": 9, "num_attention_heads": 3}, ValueError, "needs an even hidden_size, got 9"),
        (
            {"num_attention_heads": 4, "num_key_value_heads": 3},
            ValueError,
            "not divisible by num_key_value_heads=3",
        ),
        ({"num_layers": 0}, ValueError, "num_layers must be at least 1, got 0"),
        ({"num_layers": 2.0}, TypeError, "num_layers must be a whole number, got 2.0"),
        ({"num_layers": True}, TypeError, "num_layers must be a whole number, got True"),
        ({"dropout": 1.0}, ValueError, r"dropout must lie in \[0, 1\), got 1.0"),
        ({"num_experts": 2, "num_experts_per_token": 3}, ValueError, "is more than num_experts=2"),
        ({"dropout": "much"}, TypeError, "dropout must be a number, got 'much'"),
        ({"norm_eps": -1e-5}, ValueError, "norm_eps must be at least 0, got -1e-05"),
        ({"norm_eps": float("nan")}, ValueError, "norm_eps must be at least 0, got nan"),
        ({"initializer_range": -0.02}, ValueError, "initializer_range must be at least 0"),
        ({"rotary_base": 0}, ValueError, "rotary_base must be above 0, got 0"),
        ({"attention_scale": 0.0}, ValueError, "attention_scale must be above 0"),
        ({"type_vocab_size": -1}, ValueError, "type_vocab_size must be at least 0, got -1"),
        ({"type_vocab_size": "2"}, TypeError, "type_vocab_size must be a whole number"),
        (
            {"positions": "relative", "relative_buckets": 3},
            ValueError,
            "needs at least 4 relative_buckets here, got 3",
        ),
        (
            {"positions": "relative", "relative_buckets": 1, "architecture": "decoder"},
            ValueError,
            "needs at least 2 relative_buckets here, got 1",
        ),
        (
            {"positions": "relative", "relative_max_distance": 8},
            ValueError,
            "relative_max_distance must be above 8, .* got 8",
        ),
    ],
)
def test_what_does_not_fit_is_refused(fields, error, message):
    with pytest.raises(error, match=message):
        TransformerConfig(**fields)


def test_a_class_takes_no_other_architecture():
    with pytest.raises(ValueError, match=r"pass TransformerConfig\(architecture='encoder', ...\)"):
        DecoderConfig(architecture="encoder")


def test_an_unknown_preset_is_refused():
    with pytest.raises(ValueError, match=r"no preset 'bert-bse'.*Did you mean 'bert-base'"):
        TransformerConfig.preset("bert-bse")


@pytest.mark.parametrize("architecture", ["encoder", "decoder", "encoder-decoder"])
def test_the_fewest_buckets_tell_distances(architecture):
    fewest = {"encoder": 4, "decoder": 2, "encoder-decoder": 4}[architecture]
    config = TransformerConfig(
        architecture=architecture,
        positions="relative",
        relative_buckets=fewest,
        relative_max_distance=fewest,
        vocab_size=20,
        hidden_size=8,
        num_layers=1,
        num_attention_heads=2,
    )
    model = BODIES[architecture](config).eval()
    ids = torch.arange(3, 20)[None]
    more = {"decoder_input_ids": ids} if architecture == "encoder-decoder" else {}
    assert torch.isfinite(model(input_ids=ids, **more).last_hidden_state).all()
