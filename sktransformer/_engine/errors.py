"""The project's own exceptions and warnings, and the helpers that phrase them.

Floor 0: the standard library only. Every class subclasses the builtin that a caller would catch anyway, so
``except ValueError`` and ``except OSError`` keep working for people who never heard of this module.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib
import inspect
import warnings
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from types import ModuleType
from typing import Any

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
    "did_you_mean",
    "optional_import",
    "say_once",
    "warn_user",
]

DISTRIBUTION = "sktransformer-text"
# Packages through which a user's call runs down to where a warning is raised.
BETWEEN = frozenset({"sktransformer", "sklearn", "skorch", "torch", "joblib", "contextlib", "optuna"})


class CheckpointNotFoundError(FileNotFoundError, ValueError):
    """No checkpoint is where ``model=`` points: no such folder, hub repository or bundled name.

    An ``OSError``, which is what Transformers raises for the same fault, and a ``ValueError``, since it is
    the value of a parameter that is wrong.
    """


class CheckpointCorruptError(ValueError):
    """A checkpoint is there but incomplete, half copied or unreadable."""


class WrongTaskError(ValueError):
    """A checkpoint was trained for another task than the estimator's."""


class NonFiniteLossError(FloatingPointError):
    """The training loss became NaN or infinite."""


def require_numbers(found: bool) -> None:
    """Raise unless what a model gave were numbers: an argmax over NaN would be an answer like any other.

    Raises
    ------
    FloatingPointError
        When they were not.
    """
    if not found:
        raise FloatingPointError(
            "the model's outputs are NaN: its weights hold what is no number (a damaged checkpoint, a training that "
            'diverged), or precision="bfloat16" is too coarse for it; load it anew, or pass precision="float32".'
        )


class MissingExtraError(ImportError):
    """An optional dependency is not installed."""


class PersistenceError(ValueError):
    """A stored estimator can't be read, for instance because a newer version wrote it."""


class VersionMismatchWarning(UserWarning):
    """A stored estimator was written with other library versions than those that read it."""


class TruncationWarning(UserWarning):
    """Documents were cut at ``max_length`` tokens.

    Parameters
    ----------
    message : str
        What happened, and the remedy.
    n_cut : int, default=0
        Documents that were cut, an attribute too.
    n_documents : int, default=0
        Out of how many, an attribute too; 0 where nobody counted.
    """

    def __init__(self, message: str = "", n_cut: int = 0, n_documents: int = 0) -> None:
        super().__init__(message)
        self.n_cut = n_cut
        self.n_documents = n_documents


class OutOfMemoryBackoffWarning(UserWarning):
    """The token budget was lowered because memory ran out; results are the same, only slower."""


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """Phrase a suggestion for a misspelt name.

    Parameters
    ----------
    name : str
        What came.
    choices : iterable of str
        The valid names.

    Returns
    -------
    str
        ``" Did you mean 'x'?"``, with its leading blank, ready to be put behind a sentence; empty where no
        choice is close.

    Examples
    --------
    >>> did_you_mean("haed", ["head", "tail"])
    " Did you mean 'head'?"
    >>> did_you_mean("middle", ["head", "tail"])
    ''
    """
    by_folded: dict[str, str] = {}
    for choice in choices:
        by_folded.setdefault(choice.casefold(), choice)
    close = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.6)
    return f" Did you mean {by_folded[close[0]]!r}?" if close else ""


def optional_import(module: str, extra: str) -> ModuleType:
    """Import a module that one of the distribution's extras brings.

    Parameters
    ----------
    module : str
        Dotted name of the module.
    extra : str
        The extra that installs it.

    Returns
    -------
    module
        The imported module.

    Raises
    ------
    MissingExtraError
        When the module, or something that it imports itself, is not installed; the message holds the
        install line.

    Examples
    --------
    >>> optional_import("json", "email").__name__
    'json'
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = error.name or module
        needed_by = "" if missing == module else f" (which {module!r} imports)"
        raise MissingExtraError(
            f"{missing!r}{needed_by} is not installed; run: {install_line(extra)}", name=missing
        ) from error


def install_line(extra: str) -> str:
    """Return the shell line that installs an extra.

    Parameters
    ----------
    extra : str
        Name of the extra.

    Returns
    -------
    str
        The line.

    Examples
    --------
    >>> install_line("bundled")
    'pip install "sktransformer-text[bundled]"'
    """
    return f'pip install "{DISTRIBUTION}[{extra}]"'


_said: ContextVar[set[type[Warning]] | None] = ContextVar("said", default=None)


@contextlib.contextmanager
def say_once(afresh: type[Warning] | None = None) -> Iterator[None]:
    """Issue each category of `warn_user`'s warnings once until the end of the block, in this thread.

    A fit runs the model in training, in validation and at its end: where memory is short, each of them says so. Inside
    another such block, a search's for instance, the outer one counts.

    Parameters
    ----------
    afresh : type of Warning, optional
        A category that an outer block neither silences in this one nor hears of: its warnings are silenced by whoever
        opens the block, and a better one follows it.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as record, say_once():
    ...     warnings.simplefilter("always")
    ...     warn_user("first", UserWarning)
    ...     warn_user("again", UserWarning)
    >>> len(record)
    1
    """
    outer = _said.get()
    if outer is not None and afresh is None:
        yield
        return
    inner = {category for category in outer or () if category is not afresh}
    token = _said.set(inner)
    try:
        yield
    finally:
        _said.reset(token)
        if outer is not None:
            outer.update(category for category in inner if category is not afresh)


def warn_user(message: str, category: type[Warning], **details: Any) -> None:
    """Warn at the line of the user's code that led here.

    How many calls lie between differs with the way in (``fit``, ``predict``, a pipeline, a grid search), so that no
    fixed ``stacklevel`` is right.

    Parameters
    ----------
    message : str
        What happened, and the remedy.
    category : type of Warning
        Its class.
    **details : object
        What the class takes besides the message.
    """
    said = _said.get()
    if said is not None:
        if category in said:
            return
        said.add(category)
    level = 2  # the caller of this function
    frame = inspect.currentframe()
    frame = None if frame is None else frame.f_back
    while frame is not None and str(frame.f_globals.get("__name__", "")).split(".")[0] in BETWEEN:
        frame = frame.f_back
        level += 1
    warnings.warn(category(message, **details), stacklevel=level)
