"""The parts of `nn` are those of the published models: with their weights they make the same hidden states."""

import pytest
import torch
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    LlamaConfig,
    LlamaForCausalLM,
    ModernBertConfig,
    ModernBertModel,
    T5Config,
    T5ForConditionalGeneration,
)

from sktransformer.nn import from_transformers
from sktransformer.testing.checkpoints import tiny_checkpoint

TOLERANCE = 1e-5


def tokens(config, n_rows=3, n_tokens=11, seed=0):
    """Rows of random tokens, none of them padding, and a mask that makes them of different lengths."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, config.vocab_size - 1, (n_rows, n_tokens), generator=generator)
    mask = torch.ones_like(ids)
    for row in range(1, n_rows):
        mask[row, n_tokens - 2 * row :] = 0
    pad = config.pad_token_id if config.pad_token_id is not None else 0
    return ids.masked_fill(mask == 0, pad), mask


def both(auto_class, name):
    torch.manual_seed(0)  # heads that the checkpoint does not have
    theirs = auto_class.from_pretrained(tiny_checkpoint(name)).eval()
    return theirs, from_transformers(theirs)


def assert_same_states(theirs, ours, mask, **inputs):
    with torch.no_grad():
        a = theirs(**inputs, attention_mask=mask, output_hidden_states=True)
        b = ours(**inputs, attention_mask=mask, output_hidden_states=True)
    for key in ("hidden_states", "encoder_hidden_states"):
        if getattr(a, key, None) is not None and getattr(b, key, None) is not None:
            assert len(getattr(a, key)) == len(getattr(b, key))
            for theirs_states, ours_states in zip(getattr(a, key), getattr(b, key), strict=True):
                torch.testing.assert_close(
                    ours_states[mask.bool()], theirs_states[mask.bool()], atol=TOLERANCE, rtol=0
                )
    return a, b


@pytest.mark.parametrize("name", ["bert", "roberta", "camembert", "xlm-roberta", "gpt2", "llama"])
def test_hidden_states_of_single_stacks(name):
    theirs, ours = both(AutoModel, name)
    ids, mask = tokens(theirs.config)
    assert_same_states(theirs, ours, mask, input_ids=ids)


def test_segments_of_bert():
    theirs, ours = both(AutoModel, "bert")
    ids, mask = tokens(theirs.config)
    segments = (torch.arange(11) > 4).long().expand_as(ids)
    assert_same_states(theirs, ours, mask, input_ids=ids, token_type_ids=segments)


@pytest.mark.parametrize("name", ["marian", "t5"])
def test_hidden_states_of_encoder_decoders(name):
    theirs, ours = both(AutoModelForSeq2SeqLM, name)
    ids, mask = tokens(theirs.config)
    target, _ = tokens(theirs.config, n_tokens=7, seed=1)
    a, b = assert_same_states(theirs, ours, mask, input_ids=ids, labels=target)
    for theirs_states, ours_states in zip(a.decoder_hidden_states, b.decoder_hidden_states, strict=True):
        torch.testing.assert_close(ours_states, theirs_states, atol=TOLERANCE, rtol=0)
    torch.testing.assert_close(b.logits, a.logits, atol=TOLERANCE, rtol=0)
    torch.testing.assert_close(b.loss, a.loss, atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("auto_class", [AutoModelForMaskedLM, AutoModelForSequenceClassification])
@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_logits_of_encoders_with_heads(name, auto_class):
    theirs, ours = both(auto_class, name)
    ids, mask = tokens(theirs.config)
    with torch.no_grad():
        a, b = theirs(ids, attention_mask=mask).logits, ours(ids, attention_mask=mask).logits
    kept = mask.bool() if a.ndim == 3 else slice(None)
    torch.testing.assert_close(b[kept], a[kept], atol=TOLERANCE, rtol=0)


def test_logits_of_a_token_head():
    theirs, ours = both(AutoModelForTokenClassification, "bert")
    ids, mask = tokens(theirs.config)
    with torch.no_grad():
        torch.testing.assert_close(
            ours(ids, attention_mask=mask).logits[mask.bool()],
            theirs(ids, attention_mask=mask).logits[mask.bool()],
            atol=TOLERANCE,
            rtol=0,
        )


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_generated_tokens_of_decoders(name):
    theirs, ours = both(AutoModelForCausalLM, name)
    ids, _ = tokens(theirs.config, n_rows=1)
    settings = {
        "max_new_tokens": 12,
        "do_sample": False,
        "pad_token_id": 0,
        "attention_mask": torch.ones_like(ids),
    }
    assert torch.equal(theirs.generate(ids, **settings), ours.generate(ids, **settings))


@pytest.mark.parametrize("name", ["marian", "t5"])
def test_generated_tokens_of_encoder_decoders(name):
    theirs, ours = both(AutoModelForSeq2SeqLM, name)
    ids, mask = tokens(theirs.config)
    settings = {"max_new_tokens": 12, "num_beams": 3, "do_sample": False, "attention_mask": mask}
    assert torch.equal(theirs.generate(ids, **settings), ours.generate(ids, **settings))


def test_grouped_queries_and_biases_of_llama():
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=50,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        attention_bias=True,
        mlp_bias=True,
        rope_parameters={"rope_type": "default", "rope_theta": 500.0},
        pad_token_id=0,
    )
    theirs = LlamaForCausalLM(config).eval()
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.2)  # biases too, which are new at 0
    ids, mask = tokens(config)
    assert_same_states(theirs, from_transformers(theirs), mask, input_ids=ids)


def test_gated_feed_forward_of_t5():
    torch.manual_seed(0)
    config = T5Config(
        vocab_size=50, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_decoder_layers=3, num_heads=4,
        feed_forward_proj="gated-gelu", decoder_start_token_id=0,
    )  # fmt: skip
    theirs = T5ForConditionalGeneration(config).eval()
    ids, mask = tokens(config)
    ours = from_transformers(theirs)
    assert (ours.config.feed_forward, ours.config.num_decoder_layers) == ("geglu_tanh", 3)
    _, b = assert_same_states(theirs, ours, mask, input_ids=ids, labels=ids)
    assert b.logits.shape == (3, 11, 50)
    settings = {"max_new_tokens": 6, "do_sample": False, "attention_mask": mask}
    # their cache has as many layers as the encoder, and fails where the decoder has more (seen in 5.24)
    expected = theirs.generate(ids, use_cache=False, **settings)
    assert torch.equal(expected, ours.generate(ids, **settings))


def test_what_has_no_counterpart_is_refused():
    tiny = {"vocab_size": 30, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = ModernBertConfig(**tiny, intermediate_size=16, pad_token_id=0, layer_types=["full_attention"])
    with pytest.raises(ValueError, match="'modernbert' models have no counterpart here; there are bert"):
        from_transformers(ModernBertModel(config))
    gpt2 = AutoModelForSequenceClassification.from_pretrained(tiny_checkpoint("gpt2"))
    with pytest.raises(ValueError, match="head without counterpart here; pass its body"):
        from_transformers(gpt2)
    gpt2.base_model.config.activation_function = "tanh"
    with pytest.raises(ValueError, match="activation 'tanh' has no counterpart"):
        from_transformers(gpt2.base_model)
    with pytest.raises(TypeError, match="model must be a model of Transformers, got str"):
        from_transformers("gpt2")
