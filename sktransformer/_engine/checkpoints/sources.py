"""What ``model=`` means: a folder, a repository of the hub, bundled weights or a configuration.

``resolve`` is the one door. Whatever it returns can be loaded without the network: a hub repository has been
downloaded, bundled weights have been unpacked, and the folder has been checked to be whole.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..errors import CheckpointNotFoundError, did_you_mean
from .bundled import BUNDLED_NAMES, bundled_folder, suggest_bundled
from .folder_checks import check_folder
from .hub import hub_folder

if TYPE_CHECKING:
    from transformers import PretrainedConfig

__all__ = ["Source", "resolve"]

BUNDLED_PREFIX = "bundled:"
# "name" or "owner/name", as the hub defines them: letters, digits, "-", "_" and ".", no "--" nor "..".
HUB_ID = re.compile(r"(?:[A-Za-z0-9][\w.-]*/)?[A-Za-z0-9][\w.-]*", re.ASCII)
MAX_HUB_ID = 96


@dataclass(frozen=True)
class Source:
    """Where a model comes from.

    Parameters
    ----------
    kind : {"folder", "hub", "bundled", "config"}
        What ``model=`` was understood as.
    name : str
        What the user wrote, for messages.
    folder : Path or None
        A checked checkpoint folder; None for a configuration.
    config : PretrainedConfig or None
        The configuration to train from scratch; None for the other kinds.
    """

    kind: Literal["folder", "hub", "bundled", "config"]
    name: str
    folder: Path | None = None
    config: PretrainedConfig | None = None


def resolve(
    model: str | os.PathLike[str] | PretrainedConfig, *, revision: str | None = None, progress: bool = False
) -> Source:
    """Find the checkpoint that ``model=`` names, and make it loadable without the network.

    Parameters
    ----------
    model : str, path-like or PretrainedConfig
        A folder, a hub id, ``"bundled:NAME"`` or a configuration. An existing folder wins over a hub id of
        the same name.
    revision : str, optional
        Branch, tag or commit of a hub repository; ignored for the other kinds.
    progress : bool, default=False
        Whether a download shows progress bars.

    Returns
    -------
    Source
        The kind and, unless it is a configuration, a checked folder.

    Raises
    ------
    TypeError
        When ``model`` is of no accepted kind.
    CheckpointNotFoundError
        When there is no such folder, bundled name or hub repository, or the hub can't be reached and its
        cache does not hold the repository.
    CheckpointCorruptError
        When the folder is there but not whole.

    Examples
    --------
    >>> from transformers import BertConfig
    >>> resolve(BertConfig()).kind
    'config'
    """
    given: Any = model  # what users pass is not bound by the annotation
    if isinstance(given, str):
        return _resolve_text(given, revision, progress)
    if isinstance(given, os.PathLike):
        return _resolve_folder(os.fspath(given))
    if _is_config(given):
        return Source("config", f"{type(given).__name__}(...)", config=given)
    raise TypeError(
        "model must be a hub id, a folder, 'bundled:NAME' or a configuration, "
        f"got {type(given).__name__}{_type_remedy(given)}"
    )


def _resolve_text(model: str, revision: str | None, progress: bool) -> Source:
    if not model.strip():
        raise CheckpointNotFoundError(
            "model must name a checkpoint, got an empty string; pass a hub id, a folder or 'bundled:NAME'."
        )
    if model.startswith(BUNDLED_PREFIX):
        return Source("bundled", model, bundled_folder(model.removeprefix(BUNDLED_PREFIX)))
    # os.path, which answers False where a pathlib.Path raises: names too long, an unknown user after "~".
    if os.path.exists(os.path.expanduser(model)) or _looks_like_path(model):
        return _resolve_folder(model)
    _check_hub_id(model)
    return Source("hub", model, hub_folder(model, revision=revision, progress=progress))


def _looks_like_path(model: str) -> bool:
    separators = {"/", os.sep}
    return (
        model.startswith((".", "/", "~"))
        or "\\" in model
        or model.endswith("/")
        or any(model.count(separator) > 1 for separator in separators)
        or bool(os.path.splitdrive(model)[0])
    )


def _resolve_folder(name: str | bytes) -> Source:
    if isinstance(name, bytes):
        raise TypeError(f"model must be a str path, got bytes {name!r}; decode it with os.fsdecode.")
    folder = Path(os.path.expanduser(name))
    if os.path.isdir(folder):
        check_folder(folder)
        return Source("folder", name, folder)
    if os.path.exists(folder):
        raise CheckpointNotFoundError(
            f"model={name!r} is a file; pass the folder that holds config.json and the weights: "
            f"{str(folder.parent)!r}."
        )
    is_id = HUB_ID.fullmatch(name) is not None
    hint = " If a repository of the hub was meant, pass its id as a str." if is_id else ""
    raise CheckpointNotFoundError(f"model={name!r}: there is no such folder.{_siblings(folder)}{hint}")


def _siblings(folder: Path) -> str:
    """Name the nearest existing parent, and a folder in it that is spelt nearly alike."""
    missing = folder.absolute()
    while not os.path.isdir(missing.parent) and missing.parent != missing.parent.parent:
        missing = missing.parent
    try:
        names = sorted(entry.name for entry in os.scandir(missing.parent) if entry.is_dir())
    except OSError:  # a parent that may not be listed; the message does without suggestions
        names = []
    guess = did_you_mean(missing.name, names)
    if not guess and names:
        shown = ", ".join(repr(name) for name in names[:5] if not name.startswith("."))
        guess = f" It holds: {shown}{', ...' if len(names) > 5 else ''}." if shown else ""
    return f" The nearest parent that exists is {str(missing.parent)!r}.{guess}"


def _check_hub_id(model: str) -> None:
    if HUB_ID.fullmatch(model) and len(model) <= MAX_HUB_ID and "--" not in model and ".." not in model:
        return
    raise CheckpointNotFoundError(
        f"model={model!r} is neither an existing folder nor a hub id such as 'almanach/camembert-base' "
        "(letters, digits, '-', '_' and '.', at most one '/'), nor "
        f"{', '.join(repr(BUNDLED_PREFIX + name) for name in BUNDLED_NAMES)}.{suggest_bundled(model)}"
    )


def _is_config(model: Any) -> bool:
    from transformers import PretrainedConfig  # here, since a folder needs no Transformers to be checked

    return isinstance(model, PretrainedConfig)


def _type_remedy(model: object) -> str:
    if model is None:
        return "; name one, for instance model='almanach/camembert-base'."
    if isinstance(model, type):
        return f" {model.__name__}; pass an instance, {model.__name__}(...), not the class."
    if hasattr(model, "save_pretrained"):
        return "; save it with save_pretrained(folder) and pass the folder."
    return f" ({model!r:.80})."
