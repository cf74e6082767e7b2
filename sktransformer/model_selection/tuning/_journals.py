"""Journal files of studies: what they must look like, and lines that a killed process left half-written."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock, JournalFileSymlinkLock

_SQLITE_FILE = b"SQLite format 3\x00"
_START = b'{"op_code"'  # of every line of a journal
_BLOCK = 65_536


class Journal(JournalFileBackend):
    """Optuna's journal, with an error for a broken line that names the file."""

    def __init__(self, path: Path, lock: Any) -> None:
        super().__init__(str(path), lock_obj=lock)
        self._named = str(path)

    def read_logs(self, log_number_from: int) -> Generator[dict[str, Any], None, None]:
        """See optuna."""
        try:
            yield from super().read_logs(log_number_from)
        except ValueError as error:  # JSON's own is one
            raise OSError(
                f"storage={self._named!r} has a line that is broken ({error}); the lines above and below it are "
                "finished trials. Take the line out, or pass another path."
            ) from error


def open_journal(path: Path) -> JournalStorage:
    """Open a journal file, or begin one.

    Parameters
    ----------
    path : Path
        The file; its folder must be there.

    Returns
    -------
    JournalStorage
        The storage.

    Raises
    ------
    ValueError
        When the path leads to a folder, nowhere, or to a file of another kind.
    OSError
        When the file can't be read or written.
    """
    if path.is_dir() or not path.parent.is_dir():
        what = "is a folder" if path.is_dir() else f"lies in {str(path.parent)!r}, which does not exist"
        raise ValueError(
            f"storage={str(path)!r} {what}; pass the path of a journal file, or 'sqlite:///study.db'."
        )
    # symbolic links need a privilege on Windows
    lock = (JournalFileOpenLock if os.name == "nt" else JournalFileSymlinkLock)(str(path))
    try:
        if path.exists():
            _refuse_others(path)
            _end_cut_line(path, lock)
        return JournalStorage(Journal(path, lock))
    except (OSError, KeyError) as error:
        if str(error).startswith("storage="):
            raise
        raise OSError(
            f"storage={str(path)!r} can't be read or written: {error}; pass another path."
        ) from error


def _refuse_others(path: Path) -> None:
    with path.open("rb") as file:
        start = file.read(len(_SQLITE_FILE))
    if start == _SQLITE_FILE:
        raise ValueError(f"storage={str(path)!r} is an SQLite file; pass 'sqlite:///{path}'.")
    if not start.startswith(_START[: len(start)]):
        raise ValueError(
            f"storage={str(path)!r} is no journal of optuna: it begins with {start!r}; pass a new path, or a "
            "database URL such as 'sqlite:///study.db'."
        )


def _end_cut_line(path: Path, lock: Any) -> None:
    """Drop the half of a line that a killed process left: the next one would be glued to it, and both be lost."""
    if not _cut_at(path):
        return
    lock.acquire()  # who holds it may be in the middle of a line
    try:
        cut = _cut_at(path)
        if cut:
            os.truncate(path, path.stat().st_size - cut)
    finally:
        lock.release()


def _cut_at(path: Path) -> int:
    """Count the bytes below the last end of a line."""
    size = path.stat().st_size
    with path.open("rb") as file:
        for n_bytes in range(_BLOCK, size + _BLOCK, _BLOCK):
            file.seek(max(0, size - n_bytes))
            tail = file.read(size - file.tell())
            if b"\n" in tail:
                return len(tail) - tail.rfind(b"\n") - 1
    return size
