"""Packed rows: the same numbers and gradients as Transformers' own model, one document at a time."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification, PreTrainedModel

from sktransformer._engine.checkpoints.heads import Head
from sktransformer._engine.checkpoints.loading import Checkpoint
from sktransformer._engine.checkpoints.packing import ATTENTION, PACKABLE, enable_packing
from sktransformer._engine.checkpoints.structure import first_position
from sktransformer._engine.text.batches import Batch, Collator, Layout
from sktransformer._engine.text.documents import Documents
from sktransformer._engine.text.encoding import TextEncoder
from sktransformer._engine.text.windows import Cut
from sktransformer._engine.training.fit import _checkpointing
from sktransformer.testing.checkpoints import SENTENCES, TINY_NAMES

PACKED = ["bert", "electra", "roberta", "camembert", "xlm-roberta"]
TEXTS = ["", "chat", *SENTENCES]
Loader = Callable[..., Checkpoint]


def stock(checkpoint: Checkpoint) -> PreTrainedModel:
    """Return the same weights in a model that Transformers made and nothing of ours touched."""
    kind: Any = type(checkpoint.model)
    config = type(checkpoint.model.config)(
        **{**checkpoint.model.config.to_dict(), "attn_implementation": None}
    )
    config._attn_implementation = "sdpa"
    model: PreTrainedModel = kind(config)
    model.load_state_dict(checkpoint.model.state_dict())
    return model.eval()


def batch_of(checkpoint: Checkpoint, documents: Documents, layout: Layout) -> Batch:
    """Return all documents as one batch."""
    config = checkpoint.model.config
    encoded = TextEncoder(checkpoint.tokenizer).encode(documents, Cut(64))
    collator = Collator(
        layout,
        checkpoint.tokenizer.pad_token_id,
        first_position(config),
        torch.device("cpu"),
        config.type_vocab_size > 1,
    )
    return collator.batch(encoded, np.arange(len(documents)))


def one_by_one(model: PreTrainedModel, tokenizer: Any, documents: Documents) -> list[Any]:
    """Run the stock model and tokenizer over each document."""
    rows = [
        (text,) if documents.second is None else ([text], [other])
        for text, other in zip(documents.first, documents.second or documents.first, strict=True)
    ]
    inputs = [tokenizer(*row, return_tensors="pt") for row in rows]
    return [model(**{name: tensor.reshape(1, -1) for name, tensor in row.items()}) for row in inputs]


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("pairs", [False, True])
@torch.inference_mode()
def test_a_packed_head_gives_what_the_stock_model_gives(name: str, pairs: bool, checkpoint: Loader) -> None:
    loaded = checkpoint(name, "classification")
    documents = Documents(TEXTS, TEXTS[::-1] if pairs else None)
    packed = loaded.model(**batch_of(loaded, documents, "packed").inputs()).logits
    expected = torch.cat([out.logits for out in one_by_one(stock(loaded), loaded.tokenizer, documents)])
    assert packed.shape == (len(TEXTS), 3)
    torch.testing.assert_close(packed, expected, rtol=0, atol=2e-6)
    padded = loaded.model(**batch_of(loaded, documents, "padded").inputs()).logits
    torch.testing.assert_close(padded, expected, rtol=0, atol=2e-6)


@pytest.mark.parametrize("name", PACKED)
@torch.inference_mode()
def test_a_packed_encoder_gives_every_token(name: str, checkpoint: Loader) -> None:
    loaded = checkpoint(name, "encoder")
    documents = Documents(TEXTS)
    hidden = loaded.model(**batch_of(loaded, documents, "packed").inputs()).last_hidden_state
    expected = [out.last_hidden_state[0] for out in one_by_one(stock(loaded), loaded.tokenizer, documents)]
    torch.testing.assert_close(hidden[0], torch.cat(expected), rtol=0, atol=2e-6)


def gradients(model: PreTrainedModel, loss: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the gradient of each weight that has one."""
    model.zero_grad(set_to_none=True)
    loss.backward()
    found = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad(set_to_none=True)
    return found


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("checkpointing", [False, True])
def test_gradients_are_those_of_the_stock_model(
    name: str, checkpointing: bool, fresh_checkpoint: Loader
) -> None:
    loaded = fresh_checkpoint(name, "classification", dropout=0.0, attention_dropout=0.0)
    documents = Documents(TEXTS)
    targets = torch.arange(len(TEXTS)) % 3
    reference = stock(loaded)
    logits = torch.cat([out.logits for out in one_by_one(reference, loaded.tokenizer, documents)])
    expected = gradients(reference, torch.nn.functional.cross_entropy(logits, targets))
    loaded.model.train()
    with _checkpointing(loaded.model) if checkpointing else nullcontext():
        logits = loaded.model(**batch_of(loaded, documents, "packed").inputs()).logits
        found = gradients(loaded.model, torch.nn.functional.cross_entropy(logits, targets))
    assert found.keys() == expected.keys()
    for weight, gradient in found.items():
        torch.testing.assert_close(gradient, expected[weight], rtol=0, atol=2e-6, msg=weight)


def test_attention_dropout_acts_in_training_alone(fresh_checkpoint: Loader) -> None:
    loaded = fresh_checkpoint("bert", "encoder", dropout=0.0, attention_dropout=0.5)
    inputs = batch_of(loaded, Documents(TEXTS), "packed").inputs()
    with torch.no_grad():
        first, second = (loaded.model(**inputs).last_hidden_state for _ in range(2))
        loaded.model.train()
        torch.manual_seed(0)
        third, fourth = (loaded.model(**inputs).last_hidden_state for _ in range(2))
        torch.manual_seed(0)
        again = loaded.model(**inputs).last_hidden_state
    assert torch.equal(first, second)
    assert not torch.equal(third, fourth)
    assert torch.equal(third, again)


def test_threads_pack_and_pad_on_one_model(checkpoint: Loader) -> None:
    """The layout travels with the call: neither the attention function nor the hook keeps state."""
    loaded = checkpoint("camembert", "classification")
    layouts: list[Layout] = ["packed", "padded"]
    calls = [batch_of(loaded, Documents(TEXTS[i:]), layouts[i % 2]).inputs() for i in range(8)]

    def run(inputs: dict[str, object]) -> torch.Tensor:
        with torch.inference_mode():
            logits: torch.Tensor = loaded.model(**inputs).logits
        return logits

    expected = [run(inputs) for inputs in calls]
    with ThreadPoolExecutor(8) as pool:
        for found, wanted in zip(pool.map(run, calls * 4), expected * 4, strict=True):
            assert torch.equal(found, wanted)


@pytest.mark.parametrize("head", ["classification", "encoder"])
def test_these_models_take_packed_rows(head: Head, checkpoint: Loader) -> None:
    names = [name for name in TINY_NAMES if name not in ("t5", "bart", "marian")]
    assert [name for name in names if checkpoint(name, head).packable] == [n for n in names if n in PACKED]
    assert set(PACKED) == PACKABLE


def test_other_models_are_left_alone(checkpoint: Loader) -> None:
    for name in ("distilbert", "modernbert", "flaubert", "gpt2"):
        assert checkpoint(name, "encoder").model.config._attn_implementation != ATTENTION


@pytest.mark.parametrize("changes", [{"is_decoder": True}, {"position_embedding_type": "relative_key"}])
def test_a_causal_or_relative_bert_is_not_packed(changes: dict[str, Any]) -> None:
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    config = BertConfig(vocab_size=10, **sizes)
    for name, value in changes.items():
        setattr(config, name, value)
    model = BertForSequenceClassification(config)
    assert not enable_packing(model, gather=True)
    assert model.config._attn_implementation != ATTENTION


def test_a_stored_config_does_not_name_our_attention(checkpoint: Loader, tmp_path: Any) -> None:
    """Else nobody could load the folder without this package."""
    checkpoint("bert", "classification").model.save_pretrained(tmp_path)
    assert ATTENTION not in (tmp_path / "config.json").read_text()
    assert ATTENTION not in json.dumps(checkpoint("bert", "classification").model.config.to_dict())
