"""The user's cache folder, and folders in it that appear whole or not at all."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from ...errors import CheckpointCorruptError

__all__ = ["cache_root", "publish", "write_json"]

# Seconds after which an unfinished folder of another process is taken for the remains of a killed one.
ABANDONED = 6 * 3600.0


def cache_root() -> Path:
    """Return the user's cache folder for this project; nothing is created.

    Returns
    -------
    Path
        ``$SKTRANSFORMER_CACHE`` if set; else ``sktransformer`` below ``$XDG_CACHE_HOME``, or below the
        platform's own cache folder (``~/.cache``, ``~/Library/Caches`` on macOS, ``%LOCALAPPDATA%`` on
        Windows).
    """
    own = os.environ.get("SKTRANSFORMER_CACHE")
    if own:
        return Path(own).expanduser()
    shared = os.environ.get("XDG_CACHE_HOME")
    if shared:
        return Path(shared).expanduser() / "sktransformer"
    if sys.platform == "win32":
        return (
            Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
            / "sktransformer"
            / "Cache"
        )
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "sktransformer"
    return Path.home() / ".cache" / "sktransformer"


def publish(target: Path, build: Callable[[Path], None], check: Callable[[Path], None]) -> Path:
    """Return a folder, building it once; it appears under its name only when it is whole.

    Parameters
    ----------
    target : Path
        Where the folder shall be.
    build : callable
        ``build(folder)`` fills an existing empty folder.
    check : callable
        ``check(folder)`` raises CheckpointCorruptError where the folder is not whole. A folder that fails it
        is built anew.

    Returns
    -------
    Path
        ``target``.

    Raises
    ------
    OSError
        When the folder can't be written; the message says how to choose another cache folder.

    Notes
    -----
    The work happens in a temporary folder beside the target, which is renamed at the end, so a killed process
    leaves nothing that could be taken for the result. A lock keeps several processes from doing the same
    work; it is the system's own, which a killed process loses, and the rename alone keeps the result right
    should a file system not honour it.
    """
    if _is_whole(target, check):
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _lock(target):
            if not _is_whole(target, check):
                _build_beside(target, build, check)
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(
            error.errno,
            f"{error.strerror} while unpacking into the cache folder; set the environment variable "
            "SKTRANSFORMER_CACHE to a writable folder with room",
            str(error.filename or target),
        ) from error
    return target


def _is_whole(target: Path, check: Callable[[Path], None]) -> bool:
    if not target.is_dir():
        return False
    try:
        check(target)
    except CheckpointCorruptError:
        return False
    return True


def _lock(target: Path) -> contextlib.AbstractContextManager[object]:
    from filelock import FileLock  # torch and huggingface_hub both depend on it

    return FileLock(target.with_name(f".{target.name}.lock"))


def _build_beside(target: Path, build: Callable[[Path], None], check: Callable[[Path], None]) -> None:
    prefix = f".{target.name}.unfinished-"
    _sweep(target.parent, prefix)
    work = target.with_name(f"{prefix}{os.getpid()}-{uuid.uuid4().hex[:8]}")
    work.mkdir()
    try:
        build(work)
        check(work)
        # safetensors writes files that only their owner may read; a shared cache needs the folder's own
        # rights.
        rights = work.stat().st_mode & 0o666
        for path in work.rglob("*"):
            if path.is_file():
                path.chmod(rights)
        if target.exists():  # damaged, else nobody would build
            shutil.rmtree(target)
        work.replace(target)
    except OSError:
        # Another process may have published first where the lock is not honoured; its folder is as good.
        if not _is_whole(target, check):
            raise
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _sweep(folder: Path, prefix: str) -> None:
    """Remove what killed processes left."""
    for remains in folder.glob(f"{prefix}*"):
        with contextlib.suppress(OSError):
            if time.time() - remains.stat().st_mtime > ABANDONED:
                shutil.rmtree(remains, ignore_errors=True)


def write_json(path: Path, content: object) -> None:
    """Write a JSON file as checkpoints have them.

    Parameters
    ----------
    path : Path
        The file.
    content : object
        What to write.
    """
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
