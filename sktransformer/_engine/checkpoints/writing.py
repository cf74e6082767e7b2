"""Checkpoint folders that appear whole or not at all."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from safetensors import SafetensorError

from .loading import Checkpoint
from .quiet import quiet_transformers

__all__ = ["write_checkpoint"]


def write_checkpoint(checkpoint: Checkpoint, folder: str | os.PathLike[str]) -> None:
    """Write a model and its tokenizer as Transformers' own `save_pretrained` does.

    The files are written into a temporary folder beside the target and renamed at the end, so that a full disk or a
    killed process leaves nothing that could be taken for a checkpoint, and an older one as it was.

    Parameters
    ----------
    checkpoint : Checkpoint
        The model and the tokenizer.
    folder : path
        Made if it does not exist; files of the same names in it are replaced.

    Raises
    ------
    FileExistsError
        When `folder` is a file.
    OSError
        When the disk is full or not writable.
    """
    target = Path(folder).expanduser().absolute()
    if target.exists() and not target.is_dir():
        raise FileExistsError(f"{os.fspath(folder)!r} is a file; pass a folder.")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.unfinished-", dir=target.parent) as scratch:
            # a folder of our own in the private one, with the rights that the user's folders have
            written = Path(scratch, "checkpoint")
            written.mkdir()
            _write(checkpoint, written)
            _move(written, target)
    except (OSError, SafetensorError) as error:
        number = _errno(error)
        if number is None:
            raise
        raise OSError(
            number,
            f"{os.strerror(number)}, so the checkpoint was not written; make room or pass another folder",
            str(target),
        ) from error


def _write(checkpoint: Checkpoint, folder: Path) -> None:
    with quiet_transformers():
        checkpoint.model.save_pretrained(folder)
        checkpoint.tokenizer.save_pretrained(folder)
    rights = folder.stat().st_mode & 0o666
    for path in folder.rglob("*"):  # safetensors writes files that only their owner may read
        if path.is_file():
            path.chmod(rights)


def _move(written: Path, target: Path) -> None:
    if not target.exists():
        written.replace(target)
        return
    for path in sorted(written.rglob("*")):
        place = target / path.relative_to(written)
        if path.is_dir():
            place.mkdir(exist_ok=True)
        else:
            path.replace(place)


def _errno(error: Exception) -> int | None:
    """Return the system's error number; safetensors' writer, in Rust, has it in its message alone."""
    if isinstance(error, OSError):
        return error.errno
    found = re.search(r"os error (\d+)", str(error))
    return int(found.group(1)) if found else None
