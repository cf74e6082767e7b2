"""Checkpoint folders that appear whole or not at all."""

from __future__ import annotations

import contextlib
import glob
import os
import platform
import re
import shutil
import tempfile
import time
from pathlib import Path

from safetensors import SafetensorError

from .bundle import require_bare
from .bundled.cache import ABANDONED
from .loading import Checkpoint
from .quiet import quiet_transformers

__all__ = ["write_checkpoint"]


def write_checkpoint(checkpoint: Checkpoint, folder: str | os.PathLike[str]) -> None:
    """Write a model and its tokenizer as Transformers' own `save_pretrained` does.

    The files are written into a temporary folder beside the target and renamed at the end, so that a full disk or a
    killed process leaves nothing that could be taken for a checkpoint, and an older one as it was. What is left of a
    temporary folder by then is removed by the next call for the same target.

    Parameters
    ----------
    checkpoint : Checkpoint
        The model and the tokenizer.
    folder : path
        Made if it does not exist; files of the same names in it are replaced.

    Raises
    ------
    PersistenceError
        When the model is in a wrapper, see `require_bare`.
    TypeError
        When `folder` is no path.
    ValueError
        When `folder` is empty, which would be the current folder.
    FileExistsError
        When `folder` is a file.
    OSError
        When the disk is full or not writable.
    """
    require_bare(checkpoint.model)
    target = _target(folder)
    if target.exists() and not target.is_dir():
        raise FileExistsError(f"{os.fspath(folder)!r} is a file; pass a folder.")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep(target)
        with tempfile.TemporaryDirectory(prefix=_prefix(target) + _owner(), dir=target.parent) as scratch:
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


def _target(folder: str | os.PathLike[str]) -> Path:
    if not isinstance(folder, (str, os.PathLike)):
        raise TypeError(f"folder must be a str or a path, got {type(folder).__name__}; pass a folder.")
    if not os.fspath(folder).strip():
        raise ValueError(f"folder={folder!r} names no folder; pass '.' for the current one, or another path.")
    return Path(folder).expanduser().absolute()


def _prefix(target: Path) -> str:
    return f".{target.name}.unfinished-"


def _owner() -> str:
    """Name this process in the name of a folder: another one can tell whether it still lives."""
    return f"{os.getpid()}-{re.sub(r'[^0-9A-Za-z.]', '_', platform.node())[:20]}-"


def _sweep(target: Path) -> None:
    """Remove what killed processes left of checkpoints on their way to `target`."""
    for remains in target.parent.glob(f"{glob.escape(_prefix(target))}*"):
        with contextlib.suppress(OSError):  # another process was quicker
            if _is_abandoned(remains, remains.name.removeprefix(_prefix(target))):
                shutil.rmtree(remains, ignore_errors=True)


def _is_abandoned(remains: Path, owner: str) -> bool:
    """Whether the process that made a folder is gone, or, where nobody can tell, whether the folder is old."""
    number, _, host = owner.partition("-")
    # on Windows `os.kill` would end the process that it asks about
    if os.name == "posix" and number.isdecimal() and host.startswith(_owner().partition("-")[2]):
        try:
            os.kill(int(number), 0)
        except ProcessLookupError:
            return True
        except (PermissionError, OverflowError):
            return False
    return time.time() - remains.stat().st_mtime > ABANDONED


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
