"""Transformers without its progress bars and load reports, for the length of a call."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from logging import ERROR
from typing import Any

__all__ = ["loading", "quiet_transformers"]

# Transformers 5.24 that loads T5 in two threads forgets in both, and for the rest of the process, which weights are
# tied.
_one_load = threading.RLock()
_lock = threading.Lock()
_inside = 0
_before: tuple[int, Any] | None = None


@contextlib.contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence Transformers' log lines below errors and its progress bars, and put both back as they were.

    The two switches are global to the process: the first thread that enters saves them and the last that
    leaves restores them, so overlapping calls don't leave the silence behind.

    Examples
    --------
    >>> with quiet_transformers():
    ...     pass
    """
    _enter()
    try:
        yield
    finally:
        _leave()


@contextlib.contextmanager
def loading() -> Iterator[None]:
    """Hold what a load needs: silence, and no other load beside it.

    Examples
    --------
    >>> with loading():
    ...     pass
    """
    with _one_load, quiet_transformers():
        yield


def _enter() -> None:
    global _inside, _before
    from transformers.utils import logging

    with _lock:
        if _inside == 0:
            # The hook, since `disable_progress_bar` would also switch off the bars of huggingface_hub, with a
            # warning where an environment variable holds them on.
            empty: Any = logging.EmptyTqdm  # untyped in Transformers
            hook = logging.set_tqdm_hook(lambda factory, args, kwargs: empty(*args, **kwargs))
            _before = (logging.get_verbosity(), hook)
            logging.set_verbosity(ERROR)
        _inside += 1


def _leave() -> None:
    global _inside, _before
    from transformers.utils import logging

    with _lock:
        _inside -= 1
        if _inside == 0 and _before is not None:
            verbosity, hook = _before
            logging.set_verbosity(verbosity)
            logging.set_tqdm_hook(hook)
            _before = None
