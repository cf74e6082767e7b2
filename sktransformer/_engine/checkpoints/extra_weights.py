"""Weights that stand in a checkpoint folder beside those of its Transformers class."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import safe_open


def read_extra_weights(folder: Path, prefix: str) -> dict[str, torch.Tensor]:
    """Return the tensors of a folder whose names begin with `prefix`, by the rest of their names.

    Only the files' headers and those tensors are read.
    """
    found: dict[str, torch.Tensor] = {}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118 - it is no dict
                if name.startswith(prefix):
                    found[name.removeprefix(prefix)] = file.get_tensor(name).float()
    return found
