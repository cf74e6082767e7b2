"""What tells one set of weights from another, and one checkpoint in the memory of all who only read it."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import torch
from transformers import PreTrainedModel

from .bundle import config_text
from .loading import Checkpoint

_known: WeakKeyDictionary[PreTrainedModel, bytes] = WeakKeyDictionary()
_shared: dict[Any, Checkpoint] = {}  # one at most: the newest
_lock = threading.Lock()


def fingerprint(model: PreTrainedModel, tokenizer: Any) -> bytes:
    """Return a hash of a model's class, config and weights, and of its tokenizer: 1 s for each gigabyte, once a model.

    It is remembered by the model, so weights must not be changed afterwards.
    """
    with _lock:
        known = _known.get(model)
    if known is not None:
        return known
    digest = hashlib.blake2b(digest_size=32)
    digest.update(f"{type(model).__name__} {config_text(model)}".encode())
    digest.update(_tokenizer_text(tokenizer).encode("utf-8", "surrogatepass"))
    for name, tensor in model.state_dict().items():
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        flat = tensor.detach().cpu().contiguous().flatten().view(torch.uint8)
        digest.update(memoryview(flat.numpy()))
    with _lock:
        return _known.setdefault(model, digest.digest())


def _tokenizer_text(tokenizer: Any) -> str:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        return str(backend.to_str())
    return type(tokenizer).__name__ + json.dumps(sorted(tokenizer.get_vocab().items()))


def shared_checkpoint(folder: Path, device: str, load: Callable[[], Checkpoint]) -> Checkpoint:
    """Return the checkpoint of `folder`, the very object that the last call for the same files returned.

    Only for readers: nobody may train it. It is held until another one is asked for, so that a grid search, which drops
    one estimator before it makes the next, loads it once.
    """
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    marks = tuple((str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files)
    key = (str(folder), device, marks)
    with _lock:
        found = _shared.get(key)
    if found is not None:
        return found
    loaded = load()
    if getattr(loaded.tokenizer, "backend_tokenizer", None) is None:
        return loaded  # a tokenizer in pure Python, which threads may not share
    with _lock:
        _shared.clear()
        return _shared.setdefault(key, loaded)
