"""Our encoders read packed rows without padding: the same numbers as one text at a time."""

import numpy as np
import pytest
import torch

from sktransformer._engine.checkpoints.loading import prepare
from sktransformer._engine.text.batches import Collator
from sktransformer.nn import (
    DecoderForSequenceClassification,
    EncoderForSequenceClassification,
    EncoderForTokenClassification,
)

LENGTHS = np.array([7, 3, 9, 1])


@pytest.fixture
def encoded():
    starts = np.concatenate([[0], np.cumsum(LENGTHS)[:-1]])
    ids = np.random.default_rng(0).integers(3, 40, LENGTHS.sum()).astype(np.int32)
    return ids, starts


def collator(layout, segments=False):
    return Collator(layout, pad_token_id=0, first_position=0, device=torch.device("cpu"), segments=segments)


class Windows:
    """What a collator reads of `Encoded`."""

    def __init__(self, ids, starts):
        self.ids, self.starts, self.lengths, self.types = ids, starts, LENGTHS, None


FIELDS = [
    {},
    {"positions": "rotary", "num_key_value_heads": 2, "norm": "rms", "feed_forward": "swiglu"},
    {"positions": "learned", "norm_position": "post", "embedding_norm": True, "type_vocab_size": 2},
    {"positions": "none", "num_experts": 3},
    {"positions": "sinusoidal_halves"},
]


@pytest.mark.parametrize("fields", FIELDS)
@pytest.mark.parametrize(
    ("kind", "head"),
    [(EncoderForSequenceClassification, "classification"), (EncoderForTokenClassification, "tokens")],
)
def test_packed_rows_give_the_numbers_of_single_texts(build, encoded, kind, head, fields):
    model = build(kind, **fields)
    ids, starts = encoded
    with torch.no_grad():
        alone = [
            model(torch.from_numpy(ids[s : s + n].astype(np.int64))[None]).logits[0]
            for s, n in zip(starts, LENGTHS, strict=True)
        ]
        assert prepare(model, head)
        windows = np.arange(4)
        for layout in ("packed", "padded"):
            batch = collator(layout).batch(Windows(ids, starts), windows)
            logits = model(**batch.inputs()).logits
            rows = logits if head == "classification" else batch.flat(logits).split(LENGTHS.tolist())
            for row, expected in zip(rows, alone, strict=True):
                torch.testing.assert_close(row, expected, atol=1e-5, rtol=1e-4)


def test_a_classifiers_last_layer_computes_first_tokens_only(build, encoded):
    model = build(EncoderForSequenceClassification)
    prepare(model, "classification")
    shapes = []
    for layer in model.model.encoder.layers:
        layer.feed_forward.register_forward_hook(lambda module, args, made: shapes.append(tuple(made.shape)))
    batch = collator("packed").batch(Windows(*encoded), np.arange(4))
    model(**batch.inputs())
    assert shapes == [(1, 20, 16), (1, 4, 16)]


@pytest.mark.parametrize(
    "fields", [{"positions": "alibi"}, {"positions": "relative"}, {"attention_window": 4}]
)
def test_what_knows_the_place_in_the_row_is_padded(build, fields):
    assert not prepare(build(EncoderForSequenceClassification, **fields), "classification")


def test_a_packed_row_has_no_weights(build, encoded):
    model = build(EncoderForSequenceClassification)
    prepare(model, "tokens")
    batch = collator("packed").batch(Windows(*encoded), np.arange(4))
    with pytest.raises(ValueError, match="pass the texts as padded rows"):
        model(**batch.inputs(), output_attentions=True)


def test_decoders_are_padded(build):
    assert not prepare(build(DecoderForSequenceClassification), "classification")


def test_gradients_of_packed_and_padded_batches_agree(build, encoded):
    gradients = {}
    for layout in ("packed", "padded"):
        model = build(
            EncoderForSequenceClassification, positions="rotary", dropout=0.0, attention_dropout=0.0
        ).train()
        prepare(model, "classification")
        batch = collator(layout).batch(Windows(*encoded), np.arange(4))
        model(**batch.inputs()).logits.square().sum().backward()
        gradients[layout] = [p.grad for p in model.parameters() if p.grad is not None]
    for packed, padded in zip(*gradients.values(), strict=True):
        torch.testing.assert_close(packed, padded, atol=2e-4, rtol=1e-3)
