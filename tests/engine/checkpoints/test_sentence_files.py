"""sentence-transformers' files beside a checkpoint: read, written, and read by that library's own rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sktransformer._engine.checkpoints.sentence_files import (
    SentenceFiles,
    read_sentence_files,
    write_sentence_files,
)
from sktransformer._engine.errors import CheckpointCorruptError

OLD = "sentence_transformers.models."
NEW = "sentence_transformers.sentence_transformer.modules."


def write(folder: Path, kinds: list[str], pooling: Any = None, config: Any = None) -> Path:
    places = {"Pooling": "1_Pooling", "Dense": "2_Dense"}
    modules = [
        {"idx": i, "path": places.get(kind.rpartition(".")[2], ""), "type": kind}
        for i, kind in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    if pooling is not None:
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    if config is not None:
        (folder / "config_sentence_transformers.json").write_text(json.dumps(config))
    return folder


def test_a_folder_without_them_says_nothing(tmp_path: Path) -> None:
    assert read_sentence_files(tmp_path) == read_sentence_files(None) == SentenceFiles()
    assert SentenceFiles().pooling is None


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "cls"),
        ({"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}, "mean"),
        ({"pooling_mode_max_tokens": True}, "max"),
        ({"pooling_mode_lasttoken": True, "include_prompt": True}, "last"),
        ({"pooling_mode": "cls"}, "cls"),
        ({"pooling_mode": ["lasttoken"]}, "last"),
        ({"word_embedding_dimension": 4}, "mean"),
        (None, "mean"),
    ],
)
def test_pooling(tmp_path: Path, pooling: Any, expected: str) -> None:
    found = read_sentence_files(write(tmp_path, [OLD + "Transformer", OLD + "Pooling"], pooling))
    assert found == SentenceFiles(expected, normalize=False)


@pytest.mark.parametrize(
    ("kinds", "pooling", "fault"),
    [
        (["Transformer", "Pooling", "Dense"], {"pooling_mode": "mean"}, "a Dense module"),
        (["Transformer", "Pooling"], {"pooling_mode_cls_token": True, "pooling_mode_max_tokens": True},
         "the pooling cls_token with max_tokens"),
        (["Transformer", "Pooling"], {"pooling_mode": "weightedmean"}, "the pooling weightedmean"),
        (["Transformer", "Pooling"], {"pooling_mode": "mean", "include_prompt": False},
         "a pooling that leaves the prompt out"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_said(tmp_path: Path, kinds: list[str], pooling: Any, fault: str) -> None:
    assert read_sentence_files(write(tmp_path, [NEW + kind for kind in kinds], pooling)).fault == fault


def test_norm_and_prompts(tmp_path: Path) -> None:
    prompts = {"query": "q: ", "passage": "p: ", "clustering": "c: ", "document": "d: "}
    config = {"prompts": prompts, "default_prompt_name": None}
    kinds = [NEW + "Transformer", NEW + "Pooling", NEW + "Normalize"]
    found = read_sentence_files(write(tmp_path, kinds, {"pooling_mode": "mean"}, config))
    assert found.normalize is True
    assert found.prompts == {"query": "q: ", "document": "p: "}  # of two names of a role the first


@pytest.mark.parametrize("content", ["{", "{}"])
def test_damaged_files(tmp_path: Path, content: str) -> None:
    (tmp_path / "modules.json").write_text(content)
    with pytest.raises(CheckpointCorruptError, match=r"modules\.json .*copy the checkpoint again"):
        read_sentence_files(tmp_path)


@pytest.mark.parametrize("pooling", ["mean", "cls", "max", "last"])
@pytest.mark.parametrize("normalize", [True, False])
def test_what_is_written_is_read(tmp_path: Path, pooling: str, normalize: bool) -> None:
    prompts = {"query": "q: "}
    write_sentence_files(tmp_path, pooling=pooling, width=8, normalize=normalize, prompts=prompts)
    assert read_sentence_files(tmp_path) == SentenceFiles(pooling, normalize, prompts)
    with pytest.raises(ValueError, match="pooling='mean_last' has no name"):
        write_sentence_files(tmp_path, pooling="mean_last", width=8, normalize=True, prompts={})
