"""What holds for every shape: order, causes, padding, caches, packed rows."""

import pytest
import torch

from sktransformer.nn import (
    DecoderForCausalLM,
    DecoderForSequenceClassification,
    DecoderModel,
    EncoderDecoderForSeq2SeqLM,
    EncoderModel,
)

POSITIONS = ("sinusoidal", "sinusoidal_halves", "learned", "rotary", "alibi", "relative", "none")
VARIANTS = [
    {"norm": "rms", "feed_forward": "swiglu", "num_key_value_heads": 2},
    {"norm_position": "post", "embedding_norm": True, "num_key_value_heads": 1},
    {"num_experts": 4},
    {"attention_window": 3},
]


def close(a, b, atol=2e-5):
    torch.testing.assert_close(a, b, atol=atol, rtol=1e-4)


def test_without_positions_an_encoder_does_not_see_order(build, ids):
    order = torch.tensor([4, 0, 8, 2, 6, 1, 3, 7, 5])
    model = build(EncoderModel, positions="none")
    with torch.no_grad():
        close(model(ids[:, order]).last_hidden_state, model(ids).last_hidden_state[:, order])


@pytest.mark.parametrize("positions", [name for name in POSITIONS if name != "none"])
def test_with_positions_it_does(build, ids, positions):
    model = build(EncoderModel, positions=positions)
    order = torch.tensor([4, 0, 8, 2, 6, 1, 3, 7, 5])
    with torch.no_grad():
        moved = model(ids[:, order]).last_hidden_state - model(ids).last_hidden_state[:, order]
    assert moved.abs().max() > 1e-3


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("positions", POSITIONS)
def test_no_gradient_comes_from_later_tokens(build, ids, positions, need_weights):
    model = build(DecoderModel, positions=positions)
    vectors = model.embeddings.tokens(ids).detach().requires_grad_()
    states = model(inputs_embeds=vectors, output_attentions=need_weights).last_hidden_state
    states[:, 4].square().sum().backward()
    assert vectors.grad[:, 5:].abs().max() == 0
    assert (vectors.grad[:, :5].abs().amax(-1) > 0).all()


def test_the_target_sees_no_later_token_but_all_of_the_source(build, ids):
    model = build(EncoderDecoderForSeq2SeqLM)
    source, target = (model.model.embeddings.tokens(x).detach().requires_grad_() for x in (ids, ids.flip(0)))
    logits = model(inputs_embeds=source, decoder_inputs_embeds=target).logits
    logits[:, 4].square().sum().backward()
    assert target.grad[:, 5:].abs().max() == 0
    assert (source.grad.abs().amax(-1) > 0).all()


def test_without_cross_attention_the_source_is_not_read(build, ids):
    model = build(EncoderDecoderForSeq2SeqLM, cross_attention=False)
    source = model.model.embeddings.tokens(ids).detach().requires_grad_()
    model(inputs_embeds=source, decoder_input_ids=ids).logits.sum().backward()
    assert source.grad is None


def test_a_window_ends_where_it_should(build, ids):
    for kind in (EncoderModel, DecoderModel):
        model = build(kind, num_layers=1, attention_window=3)
        vectors = model.embeddings.tokens(ids).detach().requires_grad_()
        model(inputs_embeds=vectors).last_hidden_state[:, 4].square().sum().backward()
        seen = vectors.grad[0].abs().amax(-1) > 0
        expected = [2, 3, 4, 5, 6] if kind is EncoderModel else [2, 3, 4]
        assert seen.nonzero()[:, 0].tolist() == expected


CASES = [(positions, {}) for positions in POSITIONS] + [
    (positions, fields) for positions in ("rotary", "alibi") for fields in VARIANTS
]


@pytest.mark.parametrize(("positions", "fields"), CASES)
def test_padding_changes_nothing(build, ids, positions, fields):
    model = build(EncoderModel, positions=positions, **fields)
    padded = torch.cat([ids, torch.zeros(2, 4, dtype=torch.long)], dim=1)
    mask = (torch.arange(13) < 9).long().expand(2, -1)
    with torch.no_grad():
        close(model(padded, attention_mask=mask).last_hidden_state[:, :9], model(ids).last_hidden_state)


@pytest.mark.parametrize("positions", POSITIONS)
def test_padding_on_either_side_of_a_decoder_changes_nothing(build, ids, positions):
    model = build(DecoderModel, positions=positions)
    pad, alone = torch.zeros(2, 4, dtype=torch.long), model(ids).last_hidden_state
    with torch.no_grad():
        left = model(torch.cat([pad, ids], 1), attention_mask=(torch.arange(13) >= 4).long().expand(2, -1))
        right = model(torch.cat([ids, pad], 1), attention_mask=(torch.arange(13) < 9).long().expand(2, -1))
    close(left.last_hidden_state[:, 4:], alone)
    close(right.last_hidden_state[:, :9], alone)
    assert left.last_hidden_state.isfinite().all()


def test_a_decoder_classifies_by_its_last_token_whatever_the_padding(build, ids):
    model = build(DecoderForSequenceClassification)
    pad = torch.zeros(2, 4, dtype=torch.long)
    with torch.no_grad():
        alone = model(ids).logits
        close(model(torch.cat([pad, ids], 1), (torch.arange(13) >= 4).long().expand(2, -1)).logits, alone)
        close(model(torch.cat([ids, pad], 1), (torch.arange(13) < 9).long().expand(2, -1)).logits, alone)


@pytest.mark.parametrize(("positions", "fields"), CASES)
def test_cached_decoding_is_uncached_decoding(build, ids, positions, fields):
    model = build(DecoderForCausalLM, positions=positions, **fields)
    with torch.no_grad():
        whole = model(ids, use_cache=False)
        cache, rows = None, []
        for t in range(9):
            step = model(ids[:, t : t + 1], cache=cache, use_cache=True)
            cache = step.cache
            rows.append(step.logits)
        first = model(ids[:, :4], use_cache=True)
        rest = model(ids[:, 4:], cache=first.cache)
    assert whole.cache is None
    close(torch.cat(rows, 1), whole.logits)
    close(torch.cat([first.logits, rest.logits], 1), whole.logits)


@pytest.mark.parametrize("positions", POSITIONS)
def test_cached_decoding_with_a_source(build, ids, positions):
    model = build(EncoderDecoderForSeq2SeqLM, positions=positions, num_decoder_layers=3)
    mask = torch.tensor([[1] * 9, [1] * 6 + [0] * 3])
    target = ids.flip(1)
    with torch.no_grad():
        whole = model(ids, mask, target, use_cache=False).logits
        encoded = model.get_encoder()(ids, mask)
        cache, rows = None, []
        for t in range(9):
            step = model(
                attention_mask=mask,
                encoder_outputs=encoded,
                decoder_input_ids=target[:, t : t + 1],
                cache=cache,
            )
            cache = step.cache
            rows.append(step.logits)
    close(torch.cat(rows, 1), whole)


def test_keys_of_the_source_are_computed_once(build, ids):
    model = build(EncoderDecoderForSeq2SeqLM)
    calls = []
    for layer in model.model.decoder.layers:
        layer.cross_attention.key.register_forward_hook(lambda *_: calls.append(1))
    model.generate(ids, max_new_tokens=6, do_sample=False, eos_token_id=None)
    assert len(calls) == len(model.model.decoder.layers)


@pytest.mark.parametrize("kind", [DecoderForCausalLM, EncoderDecoderForSeq2SeqLM])
def test_generate_with_and_without_a_cache(build, ids, kind):
    model = build(kind, positions="rotary")
    mask = torch.tensor([[1] * 9, [0] * 3 + [1] * 6])
    settings = {
        "attention_mask": mask,
        "max_new_tokens": 8,
        "num_beams": 3,
        "do_sample": False,
        "eos_token_id": None,
    }
    assert torch.equal(model.generate(ids, **settings), model.generate(ids, use_cache=False, **settings))
