"""A source becomes a model with a head, in evaluation mode and float32; what is missing or misshapen raises."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModel, BertConfig, RobertaConfig

from sktransformer._engine.checkpoints.loading import Checkpoint, load_checkpoint, read_config
from sktransformer._engine.checkpoints.sources import resolve
from sktransformer._engine.devices import seeded
from sktransformer._engine.errors import CheckpointCorruptError, WrongTaskError
from sktransformer.testing.checkpoints import ENCODERS, SENTENCES, tiny_checkpoint

Loader = Callable[..., Checkpoint]
CPU = torch.device("cpu")
SIZES = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}


def load(folder: Path, head: Any = "classification", seed: int = 0, **options: Any) -> Checkpoint:
    with seeded(seed, CPU):
        return load_checkpoint(resolve(folder), head, **options)


def rewrite(folder: Path, change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]) -> None:
    """Change the weights of a checkpoint folder."""
    path = folder / "model.safetensors"
    save_file(change(load_file(path)), path, metadata={"format": "pt"})


def change_config(folder: Path, **fields: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Return a copy of the tiny BERT that the test may spoil."""
    return tiny_checkpoint("bert", tmp_path / "bert")


# -- what is loaded ----------------------------------------------------------------------------------------------------


# a pre-norm FlauBERT does not run in Transformers alone: see test_flaubert.py
@pytest.mark.parametrize("name", [*(name for name in ENCODERS if name != "flaubert-prenorm"), "gpt2"])
@torch.inference_mode()
def test_the_body_is_the_checkpoints(name: str, checkpoint: Loader) -> None:
    """Under a new head too: its body computes what Transformers' own loader gives."""
    loaded = checkpoint(name, "classification", 5)
    assert not loaded.model.training
    assert {p.dtype for p in loaded.model.parameters()} == {torch.float32}
    assert loaded.model.config.num_labels == 5
    stock = AutoModel.from_pretrained(tiny_checkpoint(name)).eval()
    ids = loaded.tokenizer(SENTENCES[0], return_tensors="pt")["input_ids"]
    expected = stock(input_ids=ids).last_hidden_state
    torch.testing.assert_close(checkpoint(name, "encoder").model(input_ids=ids).last_hidden_state, expected)
    body = loaded.model.base_model
    for key, tensor in stock.state_dict().items():
        if "pooler" not in key:
            assert torch.equal(body.state_dict()[key], tensor), key


def test_a_new_head_follows_the_seed() -> None:
    folder = tiny_checkpoint("camembert")
    heads = [load(folder, seed=seed).model.classifier.out_proj.weight for seed in (1, 1, 2)]  # type: ignore[union-attr]
    assert torch.equal(heads[0], heads[1])
    assert not torch.equal(heads[0], heads[2])


def test_a_head_that_is_stored_is_kept(tmp_path: Path) -> None:
    first = load(tiny_checkpoint("bert"), config_changes={"num_labels": 4})
    first.model.save_pretrained(tmp_path)
    first.tokenizer.save_pretrained(tmp_path)
    second = load(tmp_path, seed=9, need_head=True)
    for key, tensor in first.model.state_dict().items():
        assert torch.equal(second.model.state_dict()[key], tensor), key
    third = load(tmp_path, seed=9, config_changes={"num_labels": 2})  # another number of labels: a new head
    assert third.model.classifier.weight.shape == (2, 32)  # type: ignore[union-attr]
    assert torch.equal(third.model.bert.pooler.dense.weight, first.model.bert.pooler.dense.weight)  # type: ignore[union-attr]


def test_dropouts_and_other_fields_reach_the_model() -> None:
    changes = {
        "num_labels": 2,
        "id2label": {0: "non", 1: "oui"},
        "problem_type": "single_label_classification",
    }
    loaded = load(tiny_checkpoint("bert"), dropout=0.3, attention_dropout=0.4, config_changes=changes)
    rates = {module.p for module in loaded.model.modules() if isinstance(module, torch.nn.Dropout)}
    assert rates == {0.3, 0.4}
    assert loaded.model.config.id2label == {0: "non", 1: "oui"}
    assert loaded.model.config.problem_type == "single_label_classification"


def test_half_precision_checkpoints_are_computed_in_float32(own: Path) -> None:
    rewrite(own, lambda weights: {key: tensor.bfloat16() for key, tensor in weights.items()})
    change_config(own, dtype="bfloat16")
    loaded = load(own)
    assert {p.dtype for p in loaded.model.parameters()} == {torch.float32}
    table = loaded.model.get_input_embeddings().weight
    assert torch.equal(table, table.bfloat16().float())


def test_a_config_is_trained_from_scratch_and_not_changed() -> None:
    config = RobertaConfig(vocab_size=320, max_position_embeddings=40, **SIZES)
    before = config.to_dict()
    with seeded(0, CPU):
        loaded = load_checkpoint(
            resolve(config),
            "classification",
            texts=SENTENCES,
            max_length=32,
            dropout=0.5,
            config_changes={"num_labels": 7},
        )
    assert config.to_dict() == before
    assert loaded.model.config.num_labels == 7
    assert loaded.model.config.hidden_dropout_prob == 0.5
    assert loaded.model.config.vocab_size == len(loaded.tokenizer)
    assert loaded.packable
    assert not loaded.model.training


def test_loading_leaves_torchs_generator_alone_when_nothing_is_drawn(own: Path) -> None:
    first = load(own)
    first.model.save_pretrained(own)
    before = torch.get_rng_state()
    load_checkpoint(resolve(own), "classification", need_head=True)
    assert torch.equal(torch.get_rng_state(), before)


def test_loading_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    records: list[logging.LogRecord] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record)

    listener = Listener()
    logging.getLogger("transformers").addHandler(listener)
    try:
        for name in ("bert", "camembert", "flaubert"):
            load(tiny_checkpoint(name))
    finally:
        logging.getLogger("transformers").removeHandler(listener)
    assert records == []
    assert capfd.readouterr() == ("", "")


def test_a_config_is_read_without_its_weights(own: Path) -> None:
    (own / "model.safetensors").unlink()
    assert read_config(own).hidden_size == 32


# -- what is wrong -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("head", ["classification", "encoder"])
def test_missing_layers_raise(head: str, own: Path) -> None:
    rewrite(own, lambda weights: {key: t for key, t in weights.items() if ".layer.1.attention" not in key})
    with pytest.raises(
        CheckpointCorruptError, match=r"10 weights of the bert .* missing \(.*layer\.1\.attention"
    ):
        load(own, head)


@pytest.mark.parametrize("head", ["classification", "encoder"])
@pytest.mark.parametrize(
    ("field", "value", "weight"),
    [
        ("vocab_size", 150, "word_embeddings"),
        ("intermediate_size", 128, "intermediate"),
        ("max_position_embeddings", 32, "position_embeddings"),
    ],
)
def test_weights_of_other_shapes_raise(field: str, value: int, weight: str, head: str, own: Path) -> None:
    """Transformers would draw them at random, and say so in a log line that is silenced."""
    change_config(own, **{field: value})
    with pytest.raises(CheckpointCorruptError, match=f"have other shapes than config.json says .*{weight}"):
        load(own, head)


def test_a_deeper_config_raises(own: Path) -> None:
    change_config(own, num_hidden_layers=3)
    with pytest.raises(CheckpointCorruptError, match=r"16 weights of the bert model are missing .*layer\.2"):
        load(own)


def test_weights_of_another_model_raise(own: Path) -> None:
    (own / "model.safetensors").write_bytes((tiny_checkpoint("gpt2") / "model.safetensors").read_bytes())
    with pytest.raises(CheckpointCorruptError, match="weights of the bert model are missing"):
        load(own)


def test_an_unknown_architecture_raises(own: Path) -> None:
    change_config(own, model_type="bertt")
    with pytest.raises(CheckpointCorruptError, match=r"config\.json can't be read as a model's config"):
        load(own)


def test_a_broken_tokenizer_raises(own: Path) -> None:
    (own / "tokenizer.json").write_text('{"version": "1.0"}')
    with pytest.raises(CheckpointCorruptError, match="tokenizer can't be loaded"):
        load(own)


def test_a_trained_head_that_is_needed_and_absent_raises() -> None:
    with pytest.raises(WrongTaskError, match=r"holds no trained classification head \(.* is missing\)"):
        load(tiny_checkpoint("bert"), need_head=True)


@pytest.mark.parametrize(
    ("name", "head", "message"),
    [
        ("marian", "classification", "is a 'marian' model, which has no classification head"),
        ("t5", "encoder", "is a 't5' model, an encoder and a decoder"),
        ("bart", "encoder", "is a 'bart' model, an encoder and a decoder"),
    ],
)
def test_architectures_without_the_head_raise(name: str, head: str, message: str) -> None:
    with pytest.raises(WrongTaskError, match=message):
        load(tiny_checkpoint(name), head)


def test_a_config_of_another_kind_raises_before_anything_is_made() -> None:
    from transformers import MarianConfig

    with pytest.raises(WrongTaskError, match=r"MarianConfig\(\.\.\.\) is a 'marian' model"):
        load_checkpoint(resolve(MarianConfig()), "classification", texts=SENTENCES)


def test_errors_name_what_was_passed(own: Path) -> None:
    change_config(own, vocab_size=150)
    with pytest.raises(CheckpointCorruptError, match=f"^{own}: "):
        load(own)


@pytest.mark.parametrize(("name", "end"), [("gpt2", 0), ("llama", 2)])
def test_a_causal_model_without_a_padding_token_pads_with_its_end_token(
    name: str, end: int, tmp_path: Path
) -> None:
    """As the published GPT-2 and Llama are; without one, their heads refuse batches."""
    folder = tiny_checkpoint(name, tmp_path / name)
    for file, field in (("config.json", "pad_token_id"), ("tokenizer_config.json", "pad_token")):
        fields = json.loads((folder / file).read_text())
        fields.pop(field, None)
        (folder / file).write_text(json.dumps(fields))
    loaded = load(folder)
    assert loaded.tokenizer.pad_token_id is None
    assert loaded.tokenizer.eos_token_id == end
    assert loaded.model.config.pad_token_id == end
    rows = [loaded.tokenizer(text)["input_ids"] for text in SENTENCES[:3]]
    longest = max(map(len, rows))
    ids = torch.tensor([row + [end] * (longest - len(row)) for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
    with torch.inference_mode():
        together = loaded.model(input_ids=ids, attention_mask=mask).logits
        alone = torch.cat([loaded.model(input_ids=torch.tensor([row])).logits for row in rows])
    torch.testing.assert_close(together, alone, rtol=0, atol=2e-6)


def test_configs_of_bert_are_built_offline() -> None:
    with seeded(0, CPU):
        loaded = load_checkpoint(
            resolve(BertConfig(vocab_size=120, **SIZES)), "encoder", texts=SENTENCES, max_length=16
        )
    assert loaded.tokenizer.model_max_length == 16
