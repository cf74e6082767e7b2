"""The project's own errors and warnings, to be caught or filtered by name.

Each subclasses the builtin that a caller would catch anyway.
"""

from __future__ import annotations

from ._engine.errors import (
    CheckpointCorruptError,
    CheckpointNotFoundError,
    MissingExtraError,
    NonFiniteLossError,
    OutOfMemoryBackoffWarning,
    PersistenceError,
    TruncationWarning,
    VersionMismatchWarning,
    WrongTaskError,
)

__all__ = [
    "CheckpointCorruptError",
    "CheckpointNotFoundError",
    "MissingExtraError",
    "NonFiniteLossError",
    "OutOfMemoryBackoffWarning",
    "PersistenceError",
    "TruncationWarning",
    "VersionMismatchWarning",
    "WrongTaskError",
]
