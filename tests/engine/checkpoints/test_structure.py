"""Depths, dropouts, maximum lengths and frozen parts, architecture by architecture."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from transformers import (
    BertConfig,
    DistilBertConfig,
    FlaubertConfig,
    GPT2Config,
    ModernBertConfig,
    RobertaConfig,
    T5Config,
)

from sktransformer._engine.checkpoints.loading import Checkpoint
from sktransformer._engine.checkpoints.structure import (
    depth_of,
    first_position,
    freeze,
    layer_count,
    max_tokens,
    set_dropout,
    without_decay,
)
from sktransformer.testing.checkpoints import ENCODERS, SENTENCES

Loader = Callable[..., Checkpoint]
CLASSIFIERS = [*ENCODERS, "t5", "bart", "gpt2", "llama"]
N_LAYERS = 2  # of every tiny checkpoint


# -- dropout -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "fields"),
    [
        (BertConfig(), ["hidden_dropout_prob", "classifier_dropout"]),
        (RobertaConfig(), ["hidden_dropout_prob", "classifier_dropout"]),
        (DistilBertConfig(), ["dropout", "seq_classif_dropout"]),
        (FlaubertConfig(), ["dropout", "summary_first_dropout"]),
        (T5Config(), ["dropout_rate", "classifier_dropout"]),
        (GPT2Config(), ["resid_pdrop", "embd_pdrop", "summary_first_dropout"]),
        (ModernBertConfig(), ["embedding_dropout", "mlp_dropout", "classifier_dropout"]),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, list) else "",
)
def test_dropout_is_written_under_each_familys_names(config: Any, fields: list[str]) -> None:
    before = config.to_dict()
    set_dropout(config, 0.25, None)
    changed = {name for name, value in config.to_dict().items() if value != before[name]}
    assert changed == set(fields)
    assert {getattr(config, field) for field in fields} == {0.25}


@pytest.mark.parametrize(
    ("config", "field"),
    [
        (BertConfig(), "attention_probs_dropout_prob"),
        (DistilBertConfig(), "attention_dropout"),
        (FlaubertConfig(), "attention_dropout"),
        (GPT2Config(), "attn_pdrop"),
        (ModernBertConfig(), "attention_dropout"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_attention_dropout_too(config: Any, field: str) -> None:
    before = config.to_dict()
    set_dropout(config, None, 0.5)
    assert {name for name, value in config.to_dict().items() if value != before[name]} == {field}
    assert getattr(config, field) == 0.5


def test_none_leaves_the_configs_own_dropout() -> None:
    config = BertConfig(hidden_dropout_prob=0.3, classifier_dropout=0.4)
    before = config.to_dict()
    set_dropout(config, None, None)
    assert config.to_dict() == before


@pytest.mark.parametrize("value", [-0.1, 1.0, float("nan")])
def test_dropout_out_of_range_raises(value: float) -> None:
    with pytest.raises(ValueError, match=r"dropout must lie in \[0, 1\), got"):
        set_dropout(BertConfig(), value, None)
    with pytest.raises(ValueError, match=r"attention_dropout must lie in \[0, 1\), got"):
        set_dropout(BertConfig(), None, value)


def test_a_dropout_that_the_architecture_lacks_raises() -> None:
    with pytest.raises(ValueError, match=r"attention_dropout=0\.1: T5Config has no such dropout; pass None"):
        set_dropout(T5Config(), None, 0.1)


@pytest.mark.parametrize("name", [name for name in CLASSIFIERS if name not in ("t5", "llama")])
def test_dropout_reaches_every_place_that_drops(name: str, fresh_checkpoint: Loader) -> None:
    """At 0, a forward pass in training is that of evaluation; at a half it is another one."""
    for rate, same in ((0.0, True), (0.5, False)):
        loaded = fresh_checkpoint(name, "classification", dropout=rate, attention_dropout=rate)
        inputs = loaded.tokenizer(SENTENCES[1], return_tensors="pt", return_token_type_ids=False)
        with torch.no_grad():
            expected = loaded.model(**inputs).logits
            loaded.model.train()
            found = loaded.model(**inputs).logits
        assert torch.allclose(found, expected, rtol=0, atol=1e-6) is same


# -- lengths and positions ---------------------------------------------------------------------------------------------


def config(**fields: Any) -> SimpleNamespace:
    return SimpleNamespace(**{"model_type": "bert", "pad_token_id": 1, **fields})


UNKNOWN = SimpleNamespace(model_max_length=int(1e30))


@pytest.mark.parametrize(
    ("fields", "tokenizer", "expected"),
    [
        ({"max_position_embeddings": 512}, UNKNOWN, 512),
        ({"max_position_embeddings": 512}, SimpleNamespace(model_max_length=128), 128),
        ({"max_position_embeddings": 512}, SimpleNamespace(model_max_length=1024), 512),
        ({"max_position_embeddings": 512}, SimpleNamespace(model_max_length=None), 512),
        ({"max_position_embeddings": 514, "model_type": "roberta"}, UNKNOWN, 512),
        ({"max_position_embeddings": 514, "model_type": "mpnet"}, UNKNOWN, 512),
        ({"max_position_embeddings": 4098, "model_type": "longformer"}, UNKNOWN, 4096),
        ({"n_positions": 1024}, UNKNOWN, 1024),
        ({"max_position_embeddings": -1}, UNKNOWN, None),
        ({}, SimpleNamespace(model_max_length=512), 512),
        ({}, UNKNOWN, None),
    ],
)
def test_the_longest_window(fields: dict[str, Any], tokenizer: Any, expected: int | None) -> None:
    assert max_tokens(config(**fields), tokenizer) == expected


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_model_reads_its_longest_window(name: str, checkpoint: Loader) -> None:
    loaded = checkpoint(name, "classification")
    limit = max_tokens(loaded.model.config, loaded.tokenizer)
    assert limit == 64
    ids = loaded.tokenizer(SENTENCES[0] * 9, truncation=True, max_length=limit, return_tensors="pt")[
        "input_ids"
    ]
    assert ids.shape == (1, limit)
    with torch.inference_mode():
        assert loaded.model(input_ids=ids).logits.isfinite().all()


def test_positions_begin_after_the_padding_id_in_robertas_family() -> None:
    for family in ("roberta", "camembert", "xlm-roberta", "xlm-roberta-xl", "mpnet"):
        assert first_position(config(model_type=family)) == 2
    for family in ("bert", "electra", "distilbert", "flaubert"):
        assert first_position(config(model_type=family)) == 0


# -- depths ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_parameter_has_a_depth(name: str, checkpoint: Loader) -> None:
    """Whatever an architecture calls them: embeddings are at 0, layers from 1 on, and new heads on top."""
    model = checkpoint(name, "classification").model
    assert layer_count(model.config) == N_LAYERS
    depths = {key: depth_of(key, N_LAYERS) for key, _ in model.named_parameters()}
    assert set(depths.values()) == {0, 1, 2, 3}
    by_identity = {id(p): key for key, p in model.named_parameters()}
    assert depths[by_identity[id(model.get_input_embeddings().weight)]] == 0
    head = [key for key in depths if not key.startswith(model.base_model_prefix + ".")]
    assert head
    assert {depths[key] for key in head} == {N_LAYERS + 1}
    sizes = {d: sum(p.numel() for key, p in model.named_parameters() if depths[key] == d) for d in (1, 2)}
    # the layers are equal but for what the first one alone has (T5's relative positions, ModernBERT's missing norm)
    assert abs(sizes[1] - sizes[2]) <= 2 * 2 * 32 * 2


@pytest.mark.parametrize(
    ("parameter", "depth"),
    [
        ("roberta.embeddings.word_embeddings.weight", 0),
        ("roberta.embeddings.LayerNorm.bias", 0),
        ("roberta.encoder.layer.0.attention.self.query.weight", 1),
        ("roberta.encoder.layer.11.output.dense.bias", 12),
        ("roberta.pooler.dense.weight", 13),
        ("classifier.out_proj.weight", 13),
        ("electra.embeddings_project.weight", 0),
        ("transformer.attentions.3.q_lin.weight", 4),
        ("transformer.layer_norm_emb.weight", 0),
        ("transformer.wte.weight", 0),
        ("wpe.weight", 0),
        ("transformer.h.2.mlp.c_fc.weight", 3),
        ("transformer.ln_f.weight", 13),
        ("shared.weight", 0),
        ("transformer.shared.weight", 0),
        ("model.final_norm.weight", 13),
        ("classifier.99.weight", 13),
    ],
)
def test_depths_by_name(parameter: str, depth: int) -> None:
    assert depth_of(parameter, 12) == depth


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (BertConfig(num_hidden_layers=3), 3),
        (DistilBertConfig(n_layers=4), 4),
        (FlaubertConfig(n_layers=5), 5),
        (GPT2Config(n_layer=6), 6),
        (T5Config(num_layers=7), 7),
    ],
    ids=lambda value: type(value).__name__,
)
def test_layers_are_counted(config: Any, expected: int) -> None:
    assert layer_count(config) == expected


def test_a_config_without_a_number_of_layers_raises() -> None:
    with pytest.raises(ValueError, match="SimpleNamespace says nowhere how many layers it has"):
        layer_count(SimpleNamespace())


# -- frozen parts ------------------------------------------------------------------------------------------------------


def trainable(model: nn.Module) -> set[str]:
    return {name for name, parameter in model.named_parameters() if parameter.requires_grad}


@pytest.mark.parametrize("name", ENCODERS)
def test_freezing_embeddings_then_layers_then_all(name: str, fresh_checkpoint: Loader) -> None:
    model = fresh_checkpoint(name, "classification").model
    everything = trainable(model)
    assert len(everything) == len(list(model.named_parameters()))
    freeze(model, None)
    assert trainable(model) == everything
    for what, lowest in (("embeddings", 1), (0, 1), (1, 2), (np.int64(2), 3)):
        freeze(model, what)  # type: ignore[arg-type]
        assert trainable(model) == {key for key in everything if depth_of(key, N_LAYERS) >= lowest}
    freeze(model, "all")
    head = {key for key in everything if not key.startswith(model.base_model_prefix + ".") or "pooler" in key}
    assert trainable(model) == head


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("layers", 'freeze=\'layers\' is not known; pass None, "embeddings", "all" or a number of layers'),
        (True, "freeze=True is not known"),
        (1.5, "freeze=1.5 is not known"),
        (3, "freeze=3 layers, but bert has 2"),
        (-1, "freeze=-1 layers, but bert has 2"),
    ],
)
def test_what_can_not_be_frozen_raises(what: Any, message: str, checkpoint: Loader) -> None:
    model = checkpoint("bert", "classification").model
    with pytest.raises(ValueError, match=message):
        freeze(model, what)
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_biases_and_norms_are_not_decayed(checkpoint: Loader) -> None:
    model = checkpoint("bert", "classification").model
    names = {name for name, _ in model.named_parameters()}
    assert without_decay(model) == {key for key in names if key.endswith(".bias") or "LayerNorm" in key}
