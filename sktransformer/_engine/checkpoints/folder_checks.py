"""Whether a checkpoint folder is whole, told from a few kilobytes of it.

Loading a half-copied folder fails deep inside safetensors or Transformers, with a message about byte offsets.
The checks here read the configuration, the headers of the weights and the ends of the tokenizer files, and
name the file and the remedy. None of them needs torch.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import CheckpointCorruptError

SAFETENSORS = "model.safetensors"
SAFETENSORS_INDEX = "model.safetensors.index.json"
PICKLE = "pytorch_model.bin"
PICKLE_INDEX = "pytorch_model.bin.index.json"
FOREIGN_WEIGHTS = ("tf_model.h5", "flax_model.msgpack", "model.onnx", "model.ckpt.index", "rust_model.ot")

# Any one of these is a vocabulary; the names are those that `save_pretrained` of Transformers' tokenizers
# writes.
VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json", "bpe.codes", "tekken.json")
VOCABULARY_SUFFIXES = (".model", ".spm", ".tiktoken")
# Tokenizers that read bytes or code points and so have no vocabulary file.
VOCABULARY_FREE = ("ByT5Tokenizer", "CanineTokenizer", "PerceiverTokenizer")

PARSED_BYTES = 1_000_000  # vocabularies up to this size are parsed; of larger ones the end is looked at

GIT_LFS_POINTER = b"version https://git-lfs"
# The safetensors format limits its header to 100 MB (huggingface/safetensors, README, "Format").
MAX_HEADER_BYTES = 100_000_000


def check_folder(folder: Path, *, tokenizer: bool = True) -> None:
    """Check that a folder holds a whole checkpoint.

    Parameters
    ----------
    folder : Path
        An existing folder.
    tokenizer : bool, default=True
        Whether tokenizer files are required.

    Raises
    ------
    CheckpointCorruptError
        For the first fault found; the message names the file and the remedy.
    """
    _check_config(folder)
    _check_weights(folder)
    if tokenizer:
        _check_tokenizer(folder)


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object from a file of a checkpoint.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    dict
        The object.

    Raises
    ------
    CheckpointCorruptError
        When the file is empty, cut, not UTF-8 or not a JSON object.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise CheckpointCorruptError(
            f"{path} is not valid JSON ({error}; {path.stat().st_size} bytes): {_again(path)}"
        ) from error
    if not isinstance(content, dict):
        raise CheckpointCorruptError(
            f"{path} must hold a JSON object, got {type(content).__name__}: {_again(path)}"
        )
    return content


def _again(path: Path) -> str:
    return f"the file is damaged or only half copied; copy {path.name} again, or save the model anew."


def _check_config(folder: Path) -> None:
    path = folder / "config.json"
    if not path.is_file():
        raise CheckpointCorruptError(
            f"{folder} holds no config.json, so it is no checkpoint{_explain(folder)}"
        )
    config = read_json(path)
    if not isinstance(config.get("model_type"), str):
        raise CheckpointCorruptError(
            f"{path} names no 'model_type', so Transformers can't tell the architecture; add the model_type "
            "(such as 'camembert' or 'bert') that the weights were trained with, or save the model anew."
        )


def _explain(folder: Path) -> str:
    """Say what the folder seems to be instead, and what to pass."""
    if (folder / "adapter_config.json").is_file():
        return (
            ": it is a PEFT adapter only. Merge it into its base model and save that, then pass the result."
        )
    below = [
        path.parent for pattern in ("*", "snapshots/*") for path in folder.glob(f"{pattern}/config.json")
    ]
    inner = sorted(path for path in below if (path / SAFETENSORS).exists())
    if inner:
        shown = ", ".join(str(path) for path in inner[:3])
        return f". A checkpoint lies below it; pass one of: {shown}."
    return (
        ". Pass a folder that save_pretrained wrote; if a repository of the hub was meant, rename or move "
        "this folder, since an existing folder wins over a hub id of the same name."
    )


def _check_weights(folder: Path) -> None:
    if (folder / SAFETENSORS).exists():
        _check_safetensors(folder / SAFETENSORS)
    elif (folder / SAFETENSORS_INDEX).exists():
        for shard in _shards(folder / SAFETENSORS_INDEX):
            _check_safetensors(shard)
    elif (folder / PICKLE).exists():
        _check_pickle(folder / PICKLE)
    elif (folder / PICKLE_INDEX).exists():
        for shard in _shards(folder / PICKLE_INDEX):
            _check_pickle(shard)
    else:
        foreign = [name for name in FOREIGN_WEIGHTS if (folder / name).exists()]
        found = f" (only {', '.join(foreign)}, which is not PyTorch's)" if foreign else ""
        remedy = (
            "convert them to PyTorch and save_pretrained them"
            if foreign
            else "copy the weights beside config.json, or pass the configuration itself, "
            "model=AutoConfig.from_pretrained(folder), to train from scratch"
        )
        raise CheckpointCorruptError(
            f"{folder} holds no weights: no {SAFETENSORS} nor {PICKLE}{found}; {remedy}."
        )


def _shards(index: Path) -> Iterator[Path]:
    weight_map = read_json(index).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise CheckpointCorruptError(f"{index} lists no weights under 'weight_map': {_again(index)}")
    names = sorted({str(name) for name in weight_map.values()})
    missing = [name for name in names if not (index.parent / name).exists()]
    if missing:
        raise CheckpointCorruptError(
            f"{index.parent} lacks {len(missing)} of its {len(names)} weight files: {', '.join(missing[:5])}"
            f"{', ...' if len(missing) > 5 else ''}; copy the missing files beside {index.name}."
        )
    yield from (index.parent / name for name in names)


def _check_safetensors(path: Path) -> None:
    """Compare the length of the file with what its header promises.

    The layout is 8 bytes of header length (little endian), the header (JSON, with a ``data_offsets`` pair for
    each tensor), then the data (huggingface/safetensors, README, "Format").
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(64)
        _check_pointer(path, start)
        length = int.from_bytes(start[:8], "little")
        if size < 8 or not 2 <= length <= MAX_HEADER_BYTES:
            raise CheckpointCorruptError(f"{path} is no safetensors file ({size} bytes): {_again(path)}")
        file.seek(8)
        header = file.read(length)
    try:
        if len(header) < length:
            raise ValueError(f"a header of {length} bytes in a file of {size}")
        tensors = json.loads(header)
        data = max(
            (int(t["data_offsets"][1]) for name, t in tensors.items() if name != "__metadata__"), default=0
        )
    except (ValueError, TypeError, AttributeError, KeyError, IndexError) as error:
        raise CheckpointCorruptError(
            f"the header of {path} can't be read ({error}): {_again(path)}"
        ) from error
    expected = 8 + length + data
    if size != expected:
        fault = "only half copied" if size < expected else "longer than its header says"
        raise CheckpointCorruptError(
            f"{path} is {fault}: it has {size} bytes, its header announces {expected}; copy it again."
        )


def _check_pickle(path: Path) -> None:
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(64)
    _check_pointer(path, start)
    # A zip file's directory stands at its end, so a cut one is told without reading the data; files older
    # than PyTorch 1.6 are bare pickles, of which only the beginning can be told.
    whole = zipfile.is_zipfile(path) if start.startswith(b"PK") else start.startswith(b"\x80")
    if not whole:
        raise CheckpointCorruptError(
            f"{path} can't be read as PyTorch weights ({size} bytes): {_again(path)}"
        )


def _check_pointer(path: Path, start: bytes) -> None:
    if start.startswith(GIT_LFS_POINTER):
        raise CheckpointCorruptError(
            f"{path} is a Git LFS pointer, not the file itself: run `git lfs pull` in {path.parent}."
        )


def _check_tokenizer(folder: Path) -> None:
    names = sorted(entry.name for entry in os.scandir(folder) if entry.is_file())
    config = read_json(folder / "tokenizer_config.json") if "tokenizer_config.json" in names else {}
    vocabularies = [name for name in names if name in VOCABULARIES or name.endswith(VOCABULARY_SUFFIXES)]
    if not vocabularies:
        if config.get("tokenizer_class") in VOCABULARY_FREE:
            return
        raise CheckpointCorruptError(
            f"{folder} holds weights but no tokenizer (none of tokenizer.json, vocab.txt, vocab.json, "
            "*.model); save the tokenizer beside the model: tokenizer.save_pretrained(folder)."
        )
    for name in vocabularies:
        _check_vocabulary(folder / name)
    # vocab.json holds pieces; which pairs make them stands beside it, in one of several files.
    completing = {"merges.txt", "bpe.codes", "tokenizer.json", "source.spm"}
    if vocabularies == ["vocab.json"] and not completing & set(names):
        raise CheckpointCorruptError(
            f"{folder} holds vocab.json without merges.txt; copy merges.txt beside it."
        )


def _check_vocabulary(path: Path) -> None:
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(64)
        file.seek(max(0, size - 64))
        end = file.read().rstrip()
    _check_pointer(path, start)
    if size == 0:
        raise CheckpointCorruptError(f"{path} is empty: {_again(path)}")
    if path.suffix != ".json":
        return
    if size <= PARSED_BYTES:
        read_json(path)
    # Parsing 17 MB would cost as much as loading them. An indented file ends in a brace at the margin, a file
    # on one line in any brace.
    elif not end.endswith(b"\n}" if b"\n" in start else b"}"):
        raise CheckpointCorruptError(f"{path} is cut ({size} bytes): {_again(path)}")
