"""What ``model=`` is understood as, and which faults of a folder are told before anything is loaded."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from transformers import BertConfig

from sktransformer._engine.checkpoints import folder_checks
from sktransformer._engine.checkpoints.folder_checks import check_folder
from sktransformer._engine.checkpoints.sources import resolve
from sktransformer._engine.errors import CheckpointCorruptError, CheckpointNotFoundError
from sktransformer.testing.checkpoints import TINY_NAMES, tiny_checkpoint


@pytest.fixture
def bert(tmp_path):
    return tiny_checkpoint("bert", tmp_path / "bert")


@pytest.fixture
def roberta(tmp_path):
    return tiny_checkpoint("roberta", tmp_path / "roberta")


# What is accepted


def test_a_configuration_is_kept_as_it_is():
    config = BertConfig()
    source = resolve(config)
    assert source.kind == "config"
    assert source.config is config
    assert source.folder is None
    assert source.name == "BertConfig(...)"


@pytest.mark.parametrize("kind", [str, Path, lambda p: str(p) + os.sep])
def test_a_folder(bert, kind):
    source = resolve(kind(bert))
    assert source.kind == "folder"
    assert source.folder == bert
    assert source.config is None


def test_a_relative_folder_and_one_below_home(bert, monkeypatch):
    monkeypatch.chdir(bert.parent)
    assert resolve("./bert").folder.resolve() == bert
    monkeypatch.setenv("HOME", str(bert.parent))
    monkeypatch.setenv("USERPROFILE", str(bert.parent))
    source = resolve("~/bert")
    assert source.folder == bert
    assert source.name == "~/bert"


def test_an_existing_folder_wins_over_a_hub_id(bert, monkeypatch):
    (bert.parent / "owner").mkdir()
    bert.rename(bert.parent / "owner" / "model")
    monkeypatch.chdir(bert.parent)
    assert resolve("owner/model").kind == "folder"


@pytest.mark.parametrize("name", TINY_NAMES)
def test_whole_folders_of_every_family_pass(name):
    assert resolve(tiny_checkpoint(name)).kind == "folder"


def test_checking_a_folder_needs_neither_torch_nor_transformers(bert):
    code = (
        "import sys; from sktransformer._engine.checkpoints.sources import resolve; "
        f"resolve({str(bert)!r}); print('torch' in sys.modules, 'transformers' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
    assert done.stderr == ""


# What is not


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (None, r"got NoneType; name one"),
        (3, r"got int \(3\)"),
        (["a"], r"got list"),
        (BertConfig, r"pass an instance, BertConfig\(\.\.\.\), not the class"),
        (b"folder", r"got bytes"),
    ],
)
def test_other_kinds_raise_type_errors_with_a_remedy(model, message):
    with pytest.raises(TypeError, match=message):
        resolve(model)


def test_a_loaded_model_is_told_to_be_saved():
    from transformers import BertModel

    model = BertModel(BertConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=1, vocab_size=9))
    with pytest.raises(TypeError, match=r"save it with save_pretrained\(folder\) and pass the folder"):
        resolve(model)


@pytest.mark.parametrize("model", ["", "   "])
def test_an_empty_name(model):
    with pytest.raises(CheckpointNotFoundError, match="got an empty string"):
        resolve(model)


@pytest.mark.parametrize(
    "model",
    [
        "./bret",
        "../x/y",
        "~/bret-nowhere",
        "a/b/c",
        "models\\bert",
        "bert/",
        "~nobody-at-all/x",
        "/" + "x" * 300,
    ],
)
def test_what_looks_like_a_path_is_not_looked_for_on_the_hub(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CheckpointNotFoundError, match="there is no such folder"):
        resolve(model)


def test_a_misspelt_path_names_its_near_sibling(bert, monkeypatch):
    monkeypatch.chdir(bert.parent)
    with pytest.raises(CheckpointNotFoundError, match=r"Did you mean 'bert'\?"):
        resolve("./bret")
    with pytest.raises(CheckpointNotFoundError, match=r"nearest parent that exists is .*It holds: 'bert'"):
        resolve("./some/where/else")


def test_a_missing_path_object_is_never_a_hub_id(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CheckpointNotFoundError, match="pass its id as a str"):
        resolve(Path("almanach/camembert-base"))


@pytest.mark.parametrize(
    "model", ["two words", "owner/model:tag", "-x", "a--b", "a..b", "é/x", "x" * 97, "bundled/"]
)
def test_what_can_be_no_hub_id(model):
    with pytest.raises(CheckpointNotFoundError) as caught:
        resolve(model)
    assert repr(model) in str(caught.value)


def test_a_file_names_its_folder(bert):
    with pytest.raises(CheckpointNotFoundError, match="is a file; pass the folder") as caught:
        resolve(bert / "model.safetensors")
    assert repr(str(bert)) in str(caught.value)


def test_unknown_bundled_weights_list_the_known():
    with pytest.raises(
        CheckpointNotFoundError, match=r"Did you mean 'bundled:multilingual-e5-small'\?"
    ) as caught:
        resolve("bundled:multilingual-e5-smal")
    assert "'bundled:SmolLM2-135M-Instruct'" in str(caught.value)


# Faults of a folder


def _expect(folder, *fragments):
    with pytest.raises(CheckpointCorruptError) as caught:
        resolve(folder)
    for fragment in fragments:
        assert fragment in str(caught.value)


def test_no_config(bert):
    (bert / "config.json").unlink()
    _expect(bert, "holds no config.json", "an existing folder wins over a hub id")


@pytest.mark.parametrize("content", ['{"model_type": "bert"', "", "[1]", "nonsense"])
def test_an_unreadable_config(bert, content):
    (bert / "config.json").write_text(content)
    _expect(bert, str(bert / "config.json"), "copy config.json again")


def test_a_config_that_is_not_text(bert):
    (bert / "config.json").write_bytes(b"\xff\xfe\x00")
    _expect(bert, "config.json is not valid JSON")


def test_a_config_without_model_type(bert):
    (bert / "config.json").write_text('{"hidden_size": 32}')
    _expect(bert, "names no 'model_type'")


def test_an_adapter_alone(bert):
    (bert / "config.json").unlink()
    (bert / "adapter_config.json").write_text("{}")
    _expect(bert, "PEFT adapter only", "Merge it")


def test_checkpoints_one_level_below(bert, tmp_path):
    runs = tmp_path / "runs"
    shutil.copytree(bert, runs / "checkpoint-500")
    _expect(runs, "A checkpoint lies below it", str(runs / "checkpoint-500"))


def test_no_weights(bert):
    (bert / "model.safetensors").unlink()
    _expect(bert, "holds no weights", "train from scratch")


def test_weights_of_another_framework(bert):
    (bert / "model.safetensors").rename(bert / "tf_model.h5")
    _expect(bert, "only tf_model.h5", "convert them to PyTorch")


@pytest.mark.parametrize("share", [0.0, 0.00001, 0.0001, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99999])
def test_half_copied_safetensors(bert, share):
    path = bert / "model.safetensors"
    size = path.stat().st_size
    os.truncate(path, int(size * share))
    _expect(bert, str(path), "copy")


def test_safetensors_say_how_much_is_missing(bert):
    path = bert / "model.safetensors"
    size = path.stat().st_size
    os.truncate(path, size - 1)
    _expect(bert, "only half copied", f"has {size - 1} bytes", f"announces {size}")
    with path.open("ab") as file:
        file.write(b"ab")
    _expect(bert, "longer than its header says")


@pytest.mark.parametrize(
    "content",
    [
        b"\x10\x00\x00\x00\x00\x00\x00\x00not json at all!",
        b"\xff" * 64,
        b"\x02\x00\x00\x00\x00\x00\x00\x00[]",
        b'\x1b\x00\x00\x00\x00\x00\x00\x00{"w": {"data_offsets": "x"}}'[:35],
    ],
)
def test_safetensors_with_a_broken_header(bert, content):
    (bert / "model.safetensors").write_bytes(content)
    _expect(bert, "model.safetensors", "copy model.safetensors again")


def test_a_git_lfs_pointer(bert):
    (bert / "model.safetensors").write_text(
        "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
    )
    _expect(bert, "Git LFS pointer", "git lfs pull")


def _shard(folder):
    """Split the weights in two files with an index, as save_pretrained does for large models."""
    from safetensors.torch import load_file, save_file

    state = load_file(folder / "model.safetensors")
    names = sorted(state)
    parts = {"model-00001-of-00002.safetensors": names[::2], "model-00002-of-00002.safetensors": names[1::2]}
    for part, own in parts.items():
        save_file({name: state[name] for name in own}, folder / part, {"format": "pt"})
    index = {"metadata": {}, "weight_map": {name: part for part, own in parts.items() for name in own}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "model.safetensors").unlink()


def test_shards(bert):
    _shard(bert)
    assert resolve(bert).kind == "folder"
    os.truncate(bert / "model-00002-of-00002.safetensors", 5000)
    _expect(bert, "model-00002-of-00002.safetensors", "only half copied")
    (bert / "model-00002-of-00002.safetensors").unlink()
    _expect(bert, "lacks 1 of its 2 weight files", "model-00002-of-00002.safetensors")


@pytest.mark.parametrize("content", ["{}", '{"weight_map": {}}', '{"weight_map": [1]}'])
def test_an_index_that_lists_nothing(bert, content):
    _shard(bert)
    (bert / "model.safetensors.index.json").write_text(content)
    _expect(bert, "lists no weights")


@pytest.mark.parametrize("legacy", [False, True])
def test_pickled_weights(bert, legacy):
    from safetensors.torch import load_file

    path = bert / "pytorch_model.bin"
    state = load_file(bert / "model.safetensors")
    torch.save(state, path, _use_new_zipfile_serialization=not legacy)
    (bert / "model.safetensors").unlink()
    assert resolve(bert).kind == "folder"
    os.truncate(path, 0 if legacy else path.stat().st_size // 2)
    _expect(bert, str(path), "can't be read as PyTorch weights")


def test_no_tokenizer(bert):
    for path in bert.glob("tokenizer*"):
        path.unlink()
    _expect(bert, "holds weights but no tokenizer", "tokenizer.save_pretrained(folder)")
    check_folder(bert, tokenizer=False)  # for who needs none


def test_a_tokenizer_that_reads_bytes_needs_no_vocabulary(bert):
    (bert / "tokenizer.json").unlink()
    (bert / "tokenizer_config.json").write_text('{"tokenizer_class": "ByT5Tokenizer"}')
    assert resolve(bert).kind == "folder"


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
@pytest.mark.parametrize("parsed", [True, False])
def test_a_cut_tokenizer(bert, share, parsed, monkeypatch):
    if not parsed:  # as for vocabularies of many megabytes
        monkeypatch.setattr(folder_checks, "PARSED_BYTES", 0)
    path = bert / "tokenizer.json"
    assert resolve(bert).kind == "folder"
    os.truncate(path, int(path.stat().st_size * share))
    _expect(bert, str(path), "copy tokenizer.json again")


def test_a_cut_tokenizer_config(bert):
    os.truncate(bert / "tokenizer_config.json", 10)
    _expect(bert, "tokenizer_config.json is not valid JSON")


def test_pieces_without_merges(tmp_path):
    folder = tiny_checkpoint("flaubert", tmp_path / "flaubert")
    (folder / "merges.txt").unlink()
    _expect(folder, "vocab.json without merges.txt")
