"""Build tiny checkpoints once, and keep them in the user's cache folder."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from ..._engine.checkpoints.bundled import cache_root, publish
from ..._engine.checkpoints.folder_checks import check_folder
from ..._engine.checkpoints.quiet import quiet_transformers
from ..._engine.errors import did_you_mean
from . import _models, _tokenizers

SEED = 0


class _Recipe(NamedTuple):
    tokenizer: _tokenizers.Maker
    model: _models.Maker


_ENCODERS = {
    "bert": _Recipe(_tokenizers.bert, _models.bert),
    "distilbert": _Recipe(_tokenizers.bert, _models.distilbert),
    "electra": _Recipe(_tokenizers.bert, _models.electra),
    "roberta": _Recipe(_tokenizers.roberta, _models.roberta),
    "camembert": _Recipe(_tokenizers.camembert, _models.camembert),
    "xlm-roberta": _Recipe(_tokenizers.xlm_roberta, _models.xlm_roberta),
    "flaubert": _Recipe(_tokenizers.flaubert, _models.flaubert),
    "flaubert-prenorm": _Recipe(_tokenizers.flaubert, _models.flaubert_prenorm),
    "modernbert": _Recipe(_tokenizers.modernbert, _models.modernbert),
}
_SEQ2SEQ = {
    "t5": _Recipe(_tokenizers.t5, _models.t5),
    "bart": _Recipe(_tokenizers.bart, _models.bart),
    "marian": _Recipe(_tokenizers.marian, _models.marian),
}
_CAUSAL = {
    "gpt2": _Recipe(_tokenizers.gpt2, _models.gpt2),
    "llama": _Recipe(_tokenizers.llama, _models.llama),
}
_RECIPES = {**_ENCODERS, **_SEQ2SEQ, **_CAUSAL}

ENCODERS = tuple(_ENCODERS)
SEQ2SEQ = tuple(_SEQ2SEQ)
CAUSAL = tuple(_CAUSAL)
TINY_NAMES = tuple(_RECIPES)


def tiny_checkpoint(name: str, folder: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of a tiny random checkpoint.

    Parameters
    ----------
    name : str
        One of ``TINY_NAMES``.
    folder : str or path-like, optional
        Where to write a copy of its own, for a test that changes files. By default the folder is one in the
        user's cache that everybody shares, which is only to be read.

    Returns
    -------
    Path
        The checkpoint folder.

    Raises
    ------
    ValueError
        When there is no such tiny checkpoint, or `folder` is empty.
    MissingExtraError
        When the family's tokenizer needs a package that is not installed (FlauBERT sacremoses, Marian
        sentencepiece).

    Notes
    -----
    Weights are drawn with a fixed seed, and torch's random state is left as it was.

    Examples
    --------
    >>> from sktransformer.testing.checkpoints import tiny_checkpoint
    >>> (tiny_checkpoint("camembert") / "model.safetensors").exists()
    True
    """
    if name not in _RECIPES:
        raise ValueError(
            f"there is no tiny checkpoint {name!r}; there are {', '.join(TINY_NAMES)}."
            f"{did_you_mean(name, TINY_NAMES)}"
        )
    if folder is not None and not os.fspath(folder):
        raise ValueError("folder is empty; pass '.' for the current folder, or the path of another one.")
    target = cache_root() / "tiny" / _edition() / name
    publish(target, lambda out: _build(name, out), check_folder)
    if folder is None:
        return target
    own = Path(folder)
    shutil.copytree(target, own, dirs_exist_ok=True)
    return own


@functools.cache
def _edition() -> str:
    """Name a cache folder after everything that the checkpoints depend on."""
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    for distribution in ("torch", "transformers", "tokenizers"):
        digest.update(metadata.version(distribution).encode())
    return digest.hexdigest()[:12]


def _build(name: str, out: Path) -> None:
    import torch

    recipe = _RECIPES[name]
    tokenizer = recipe.tokenizer(out)
    # The CPU's generator alone: torch.manual_seed would also reseed accelerators, which are not restored.
    before = torch.default_generator.get_state()
    try:
        torch.default_generator.manual_seed(SEED)
        with quiet_transformers():
            model = recipe.model(tokenizer)
            tokenizer.save_pretrained(out)
            model.save_pretrained(out)
    finally:
        torch.default_generator.set_state(before)
