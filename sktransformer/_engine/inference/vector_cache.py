"""Vectors by the content of their text, in this process's memory or in a folder that processes share.

A key is a hash of all that decides a vector: the text and, as the `context`, weights, tokenizer, cuts, pooling,
precision. Nothing is looked up by name or position, so no entry can be stale.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
import uuid
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ..errors import warn_user

MEMORY_BYTES = 2**28  # vectors held in the memory of a process, all estimators together: 256 MiB
FOLDER = Path(
    "joblib", "sktransformer", "vectors-1"
)  # within a joblib.Memory's location, which `clear` empties
KEY_BYTES = 20


class Entry(NamedTuple):
    """The vector of a text, and whether tokens of it were cut off."""

    vector: npt.NDArray[np.float32]
    cut: bool


class VectorCache(Protocol):
    """Where vectors are kept."""

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Entry]: ...

    def put(self, entries: dict[bytes, Entry]) -> None: ...


def key_of(context: bytes, texts: Sequence[str]) -> bytes:
    """Return the key of a text, or of a pair of texts."""
    digest = hashlib.blake2b(context, digest_size=KEY_BYTES)
    for text in texts:
        encoded = text.encode("utf-8")
        digest.update(len(encoded).to_bytes(8, "little"))  # ("ab", "c") is not ("a", "bc")
        digest.update(encoded)
    return digest.digest()


class MemoryCache:
    """At most `limit` bytes of vectors, the longest unused ones forgotten first; safe for threads."""

    def __init__(self, limit: int = MEMORY_BYTES) -> None:
        self.limit = limit
        self._entries: OrderedDict[bytes, Entry] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Entry]:
        """Return the entries that are there."""
        with self._lock:
            found = {key: self._entries[key] for key in keys if key in self._entries}
            for key in found:
                self._entries.move_to_end(key)
            return found

    def put(self, entries: dict[bytes, Entry]) -> None:
        """Keep entries, and forget others if there are too many."""
        with self._lock:
            for key, entry in entries.items():
                if key not in self._entries:
                    # a copy: a row of a matrix would keep the whole matrix
                    self._entries[key] = Entry(entry.vector.copy(), entry.cut)
                    self._bytes += entry.vector.nbytes
            while self._bytes > self.limit:
                self._bytes -= self._entries.popitem(last=False)[1].vector.nbytes

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._entries.clear()
            self._bytes = 0


class FolderCache:
    """A folder of files, each the vectors of one call, written whole under another name and renamed.

    Files are never changed, so readers need no lock, and two processes that encode the same text write it twice. They
    are memory-mapped; this process holds the keys and what was read.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._places: dict[bytes, tuple[npt.NDArray[Any], int]] = {}
        self._read: set[str] = set()
        self._lock = threading.Lock()

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Entry]:
        """Return the entries that are there, files of other processes included."""
        with self._lock:
            if any(key not in self._places for key in keys):
                self._look()
            found = {}
            for key in keys:
                if key in self._places:
                    table, row = self._places[key]
                    found[key] = Entry(np.array(table["vector"][row]), bool(table["cut"][row]))
            return found

    def put(self, entries: dict[bytes, Entry]) -> None:
        """Write entries into a file of their own.

        Raises
        ------
        OSError
            When the folder can't be written.
        """
        if not entries:
            return
        width = len(next(iter(entries.values())).vector)
        layout = np.dtype([("key", f"V{KEY_BYTES}"), ("cut", "?"), ("vector", "<f4", (width,))])
        table = np.empty(len(entries), dtype=layout)
        table["key"] = np.array([np.void(key) for key in entries], dtype=f"V{KEY_BYTES}")
        table["cut"] = [entry.cut for entry in entries.values()]
        table["vector"] = [entry.vector for entry in entries.values()]
        self.folder.mkdir(parents=True, exist_ok=True)
        name = uuid.uuid4().hex
        unfinished = self.folder / f".{name}.unfinished"
        try:
            with unfinished.open("wb") as file:
                np.save(file, table)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(self.folder / f"{name}.npy")
        finally:
            unfinished.unlink(missing_ok=True)

    def _look(self) -> None:
        """Take in the files that have come since."""
        with contextlib.suppress(FileNotFoundError), os.scandir(self.folder) as listed:
            for name in sorted(one.name for one in listed if one.name.endswith(".npy")):
                if name not in self._read:
                    self._read.add(name)
                    self._take(self.folder / name)

    def _take(self, path: Path) -> None:
        try:
            table = np.load(path, mmap_mode="r", allow_pickle=False)
            keys = [key.tobytes() for key in table["key"]]
        except FileNotFoundError:  # cleared by another process a moment ago
            return
        except (OSError, ValueError, IndexError, EOFError) as error:  # EOFError: an empty file
            warn_user(
                f"{path} can't be read ({error}) and is left aside; its texts are encoded anew.", UserWarning
            )
            return
        self._places.update({key: (table, row) for row, key in enumerate(keys)})


_IN_MEMORY = MemoryCache()
_FOLDERS: dict[str, FolderCache] = {}
_FOLDERS_LOCK = threading.Lock()


def cache_for(memory: Any) -> VectorCache | None:
    """Return the cache that a `memory` parameter names: None, "memory", a folder, or a `joblib.Memory`.

    Raises
    ------
    TypeError
        When it is none of these.
    """
    location = getattr(memory, "location", memory) if not isinstance(memory, (str, os.PathLike)) else memory
    if location is None:
        return None
    if isinstance(location, str) and location == "memory" and memory is location:
        return _IN_MEMORY
    if not isinstance(location, (str, os.PathLike)) or not os.fspath(location):
        raise TypeError(
            f'memory must be None, "memory", a folder or a joblib.Memory, got {type(memory).__name__} ({memory!r:.40}).'
        )
    folder = Path(location).expanduser().absolute() / FOLDER
    with _FOLDERS_LOCK:
        return _FOLDERS.setdefault(str(folder), FolderCache(folder))
