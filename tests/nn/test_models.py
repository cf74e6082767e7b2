"""Models as Transformers models: registered, saved and loaded, tied, losses, weights as they are drawn."""

import pytest
import torch
import torch.nn.functional as F
from transformers import AutoModel, AutoModelForCausalLM

from sktransformer.nn import (
    DecoderForCausalLM,
    DecoderModel,
    EncoderDecoderForSeq2SeqLM,
    EncoderForMaskedLM,
    EncoderForQuestionAnswering,
    EncoderForSequenceClassification,
    EncoderForTokenClassification,
    EncoderModel,
    TransformerConfig,
)
from sktransformer.nn.registration import MODELS

REGISTERED = [(auto, model) for auto, models in MODELS.items() for model in models]


@pytest.mark.parametrize(("auto", "kind"), REGISTERED, ids=[kind.__name__ for _, kind in REGISTERED])
def test_saved_and_loaded_by_its_auto_class(build, ids, auto, kind, tmp_path):
    model = build(kind, tie_word_embeddings=True, classifier_dropout=0.2)
    model.save_pretrained(tmp_path)
    loaded = auto.from_pretrained(tmp_path).eval()
    assert type(loaded) is kind
    inputs = {"decoder_input_ids": ids} if model.config.is_encoder_decoder else {}
    with torch.no_grad():
        before, after = model(ids, **inputs), loaded(ids, **inputs)
    assert torch.equal(before[0], after[0])
    assert type(auto.from_config(model.config)) is kind


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("kind", [EncoderForMaskedLM, DecoderForCausalLM, EncoderDecoderForSeq2SeqLM])
def test_the_output_layer_is_the_table_where_it_is_tied(build, kind, tied, tmp_path):
    model = build(kind, tie_word_embeddings=tied)
    same = model.get_output_embeddings().weight is model.get_input_embeddings().weight
    assert same == tied
    model.save_pretrained(tmp_path)
    loaded = kind.from_pretrained(tmp_path)
    assert (loaded.get_output_embeddings().weight is loaded.get_input_embeddings().weight) == tied


def test_weights_are_drawn_as_the_papers_say():
    model = EncoderForMaskedLM(
        TransformerConfig(hidden_size=256, num_layers=8, vocab_size=500, initializer_range=0.02)
    )
    layer = model.model.encoder.layers[0]
    assert model.get_input_embeddings().weight.std().item() == pytest.approx(1 / 16, rel=0.02)
    assert layer.self_attention.query.weight.std().item() == pytest.approx(0.02, rel=0.02)
    for written in (layer.self_attention.output, layer.feed_forward.down):
        assert written.weight.std().item() == pytest.approx(0.02 / 4, rel=0.02)
        assert written.bias.abs().max() == 0
    post = EncoderModel(TransformerConfig(hidden_size=256, norm_position="post", positions="learned"))
    down = post.encoder.layers[0].feed_forward.down.weight
    assert down.std().item() == pytest.approx((2 / (256 + 1024)) ** 0.5, rel=0.02)
    assert post.get_input_embeddings().weight.std().item() == pytest.approx(0.02, rel=0.02)
    assert post.encoder.norm is None


def test_losses_of_language_models(build, ids):
    masked, causal = build(EncoderForMaskedLM), build(DecoderForCausalLM)
    labels = ids.masked_fill(torch.arange(9) % 2 == 0, -100)
    with torch.no_grad():
        made = masked(ids, labels=labels)
        assert made.loss.item() == pytest.approx(
            F.cross_entropy(made.logits[:, 1::2].flatten(0, 1), ids[:, 1::2].flatten()).item()
        )
        made = causal(ids, labels=ids)
        assert made.loss.item() == pytest.approx(
            F.cross_entropy(made.logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten()).item()
        )
        last = causal(ids, logits_to_keep=1).logits
    torch.testing.assert_close(last, made.logits[:, -1:])


def test_the_target_is_shifted_by_one(build, ids):
    model = build(EncoderDecoderForSeq2SeqLM)
    labels = torch.tensor([[5, 6, 2], [7, 2, -100]])
    shifted = model.prepare_decoder_input_ids_from_labels(labels)
    assert shifted.tolist() == [[0, 5, 6], [0, 7, 2]]
    with torch.no_grad():
        made = model(ids, labels=labels)
        assert torch.equal(made.logits, model(ids, decoder_input_ids=shifted).logits)
    rows = labels != -100
    assert made.loss.item() == pytest.approx(F.cross_entropy(made.logits[rows], labels[rows]).item())


@pytest.mark.parametrize(
    ("labels", "fields", "loss"),
    [
        (torch.tensor([1, 0]), {"num_labels": 3}, lambda z, y: F.cross_entropy(z, y)),
        (torch.tensor([0.5, -1.0]), {"num_labels": 1}, lambda z, y: F.mse_loss(z[:, 0], y)),
        (
            torch.tensor([[1.0, 0.0], [1.0, 1.0]]),
            {"num_labels": 2, "problem_type": "multi_label_classification"},
            lambda z, y: F.binary_cross_entropy_with_logits(z, y),
        ),
    ],
)
def test_losses_of_a_sequence_head(build, ids, labels, fields, loss):
    model = build(EncoderForSequenceClassification, **fields)
    with torch.no_grad():
        made = model(ids, labels=labels)
    assert made.loss.item() == pytest.approx(loss(made.logits, labels).item())


def test_losses_of_token_and_span_heads(build, ids):
    tags = ids % 2
    with torch.no_grad():
        made = build(EncoderForTokenClassification)(ids, labels=tags)
        assert made.loss.item() == pytest.approx(
            F.cross_entropy(made.logits.flatten(0, 1), tags.flatten()).item()
        )
        starts, ends = torch.tensor([1, 2]), torch.tensor([3, 3])
        made = build(EncoderForQuestionAnswering)(ids, start_positions=starts, end_positions=ends)
    both = F.cross_entropy(made.start_logits, starts) + F.cross_entropy(made.end_logits, ends)
    assert made.loss.item() == pytest.approx(both.item() / 2)


def test_states_and_weights_on_request(build, ids):
    made = build(EncoderDecoderForSeq2SeqLM)(
        ids, decoder_input_ids=ids[:, :5], output_hidden_states=True, output_attentions=True
    )
    assert [x.shape for x in made.encoder_attentions] == [(2, 4, 9, 9)] * 2
    assert [x.shape for x in made.decoder_attentions] == [(2, 4, 5, 5)] * 2
    assert [x.shape for x in made.cross_attentions] == [(2, 4, 5, 9)] * 2
    assert [x.shape for x in made.decoder_hidden_states] == [(2, 5, 16)] * 3
    for weights in (*made.encoder_attentions, *made.cross_attentions):
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
    plain = build(EncoderModel)(ids, return_dict=False)
    assert isinstance(plain, tuple)
    assert len(plain) == 1


def test_a_text_longer_than_the_learned_positions_is_refused(build):
    model = build(EncoderModel, positions="learned")
    with pytest.raises(
        ValueError, match=r"has 33 tokens, and there are 32 learned positions \(max_position_embeddings"
    ):
        model(torch.ones(1, 33, dtype=torch.long))
    assert build(EncoderModel, positions="rotary")(torch.ones(1, 33, dtype=torch.long))[0].shape == (
        1,
        33,
        16,
    )


def test_tokens_and_vectors_at_once_are_refused(build, ids):
    with pytest.raises(ValueError, match="either input_ids or inputs_embeds"):
        build(EncoderModel)()


def test_gradient_checkpointing_changes_no_gradient(build, ids):
    gradients = []
    for checkpointed in (False, True):
        model = build(DecoderForCausalLM, positions="relative", dropout=0.0, attention_dropout=0.0).train()
        if checkpointed:
            # the name since 5.2x of gradient_checkpointing_enable
            getattr(model, "activation_checkpointing_enable", model.gradient_checkpointing_enable)()
        model(ids, labels=ids).loss.backward()
        gradients.append([p.grad for p in model.parameters()])
    for plain, again in zip(*gradients, strict=True):
        torch.testing.assert_close(again, plain)


def test_eager_attention_is_the_reference(build, ids):
    model = build(DecoderModel)
    with torch.no_grad():
        fused = model(ids)[0]
        model.set_attn_implementation("eager")
        torch.testing.assert_close(model(ids)[0], fused, atol=1e-5, rtol=1e-4)


def test_the_vocabulary_can_grow(build, ids):
    model = build(DecoderForCausalLM)
    model.resize_token_embeddings(50, mean_resizing=False)
    assert model(ids).logits.shape == (2, 9, 50)
    assert model.lm_head.weight is model.model.embeddings.tokens.weight


@pytest.mark.parametrize(
    ("kind", "architecture"),
    [(DecoderForCausalLM, "encoder"), (EncoderModel, "decoder"), (EncoderDecoderForSeq2SeqLM, "decoder")],
)
def test_a_configuration_of_another_architecture_is_refused(kind, architecture):
    expected = kind.config_class.architecture
    with pytest.raises(TypeError, match=f"needs .*architecture='{expected}', .* got '{architecture}'"):
        kind(TransformerConfig(architecture=architecture, hidden_size=16))


def test_an_encoder_is_no_generator():
    with pytest.raises(ValueError, match="Unrecognized configuration class"):
        AutoModelForCausalLM.from_config(TransformerConfig(hidden_size=16))
    assert type(AutoModel.from_config(TransformerConfig(hidden_size=16, num_layers=1))) is EncoderModel
