"""A fitted model as plain bytes: NumPy arrays, JSON and files, which joblib, pickle and skops all carry.

A pickled torch module costs a copy of its weights and ties the file to torch's own pickle layout; a raw state dict
fails for tied weights; some tokenizers pickle the paths they came from. So weights travel as NumPy views of the
tensors (tied ones once), the config as JSON, and the tokenizer as the files that its `save_pretrained` writes.
"""

from __future__ import annotations

import json
import tempfile
import warnings
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from transformers import AutoConfig, GenerationConfig, PreTrainedModel

from ... import nn
from ..errors import PersistenceError, VersionMismatchWarning, warn_user
from .heads import Head
from .loading import Checkpoint, prepare, read_tokenizer
from .quiet import loading, quiet_transformers

FORMAT = 1
RECORDED = ("torch", "transformers", "tokenizers", "scikit-learn", "numpy")
DISTRIBUTION = "sktransformer-text"


def versions() -> dict[str, str]:
    """Versions of this library and of those that decide what the weights mean."""
    found = {}
    for name in (DISTRIBUTION, *RECORDED):
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # run from a source tree
            found[name] = "unknown"
    return found


def to_bundle(checkpoint: Checkpoint, head: Head) -> dict[str, Any]:
    """Return the checkpoint as arrays, strings and bytes; CPU weights are shared, not copied.

    Raises
    ------
    PersistenceError
        When the model is in a wrapper, see `require_bare`.
    """
    require_bare(checkpoint.model)
    model = checkpoint.model
    weights: dict[str, np.ndarray] = {}
    dtypes: dict[str, str] = {}
    seen: dict[tuple[int, tuple[int, ...]], str] = {}
    for name, tensor in model.state_dict().items():
        place = (tensor.data_ptr(), tuple(tensor.shape))
        if tensor.numel() and seen.setdefault(place, name) != name:
            continue  # tied: loading ties it again
        tensor = tensor.detach().cpu().contiguous()
        if tensor.dtype is torch.bfloat16:  # NumPy has no such type; the bits travel as integers
            dtypes[name], tensor = "bfloat16", tensor.view(torch.int16)
        weights[name] = tensor.numpy()
    return {
        "format": FORMAT,
        "versions": versions(),
        "head": head,
        "class": type(model).__name__,
        "config": config_text(model),
        # what begins and ends the texts that it writes; empty for models that write none
        "generation": model.generation_config.to_json_string() if model.can_generate() else "",
        "weights": weights,
        "dtypes": dtypes,
        "tokenizer": _tokenizer_files(checkpoint.tokenizer),
    }


def require_bare(model: Any) -> None:
    """Raise when a model was put into a wrapper, as of adapters: it would be written, and could not be read again.

    Raises
    ------
    PersistenceError
        When it was.
    """
    if not isinstance(model, PreTrainedModel):
        merges = "set model_ to what model_.merge_and_unload() returns, and store that"
        raise PersistenceError(
            f"model_ is a {type(model).__name__}, which is stored by the library that made it; "
            f"{merges if hasattr(model, 'merge_and_unload') else 'set model_ back to the model within'}."
        )


def config_text(model: PreTrainedModel) -> str:
    """Return the config as JSON, without the path that it came from: it may name a user, and may be gone."""
    fields = json.loads(model.config.to_json_string(use_diff=False))
    fields.pop("_name_or_path", None)
    return json.dumps(fields)


def from_bundle(bundle: dict[str, Any]) -> Checkpoint:
    """Rebuild the checkpoint that `to_bundle` took apart, on the CPU.

    Raises
    ------
    PersistenceError
        When a newer version wrote it, this Transformers does not know its architecture, or weights are missing.
    """
    _check(bundle)
    config = AutoConfig.for_model(**json.loads(bundle["config"]))
    model_class = getattr(nn, bundle["class"], None) or getattr(transformers, bundle["class"], None)
    if not (isinstance(model_class, type) and issubclass(model_class, PreTrainedModel)):
        raise PersistenceError(
            f"this file holds a {bundle['class']}, which transformers {transformers.__version__} does not have; "
            f"install transformers {bundle['versions'].get('transformers')}."
        )
    state = {name: _tensor(array, bundle["dtypes"].get(name)) for name, array in bundle["weights"].items()}
    with loading():
        loaded: Any = model_class.from_pretrained(
            None, config=config, state_dict=state, dtype=torch.float32, output_loading_info=True
        )
    model, report = loaded
    if bundle.get("generation"):
        model.generation_config = GenerationConfig.from_dict(json.loads(bundle["generation"]))
    model.config._name_or_path = ""  # Transformers wrote the path that it was given there: None
    absent = sorted([*report["missing_keys"], *report["mismatched_keys"]], key=str)
    if absent:  # Transformers would draw them at random
        raise PersistenceError(
            f"this file lacks {len(absent)} weights of its {bundle['class']} ({absent[0]}, ...); it is damaged, "
            f"store the estimator again."
        )
    return Checkpoint(model, _tokenizer(bundle["tokenizer"]), prepare(model, bundle["head"]))


def _check(bundle: dict[str, Any]) -> None:
    if not isinstance(bundle.get("format"), int):
        raise PersistenceError(
            "this file holds no sktransformer model, or a damaged one; store the estimator again."
        )
    if bundle["format"] > FORMAT:
        raise PersistenceError(
            f"this file has format {bundle['format']}, this version reads up to {FORMAT}; "
            f"install {DISTRIBUTION} {bundle['versions'].get(DISTRIBUTION)} or newer."
        )
    here = versions()
    different = [
        f"{name} {bundle['versions'].get(name)} (here {here[name]})"
        for name in here
        if bundle["versions"].get(name) != here[name]
    ]
    if different:
        warn_user(
            f"the estimator was stored with {', '.join(different)}; predictions may differ.",
            VersionMismatchWarning,
        )


def _tensor(array: np.ndarray, dtype: str | None) -> torch.Tensor:
    with warnings.catch_warnings():
        # a memory-mapped array is read-only; nothing writes into it before training copies it
        warnings.filterwarnings("ignore", "The given NumPy array is not writable", UserWarning)
        tensor = torch.from_numpy(np.asarray(array))
    return tensor.view(torch.bfloat16) if dtype == "bfloat16" else tensor


def _tokenizer_files(tokenizer: Any) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder, quiet_transformers():
        tokenizer.save_pretrained(folder)
        return {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(Path(folder).rglob("*"))
            if path.is_file()
        }


def _tokenizer(files: dict[str, bytes]) -> Any:
    with tempfile.TemporaryDirectory() as folder, quiet_transformers():
        for name, data in files.items():
            path = Path(folder, name).resolve()
            if not path.is_relative_to(Path(folder).resolve()):
                raise PersistenceError(
                    f"this file wants to write {name!r} outside its folder; don't trust it."
                )
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return read_tokenizer(folder)
