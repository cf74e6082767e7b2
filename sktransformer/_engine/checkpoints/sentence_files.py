"""What sentence-transformers keeps beside a model's weights: pooling, norm, prompts; read and written."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import CheckpointCorruptError

POOLING_NAMES = {  # its names of the poolings that exist here
    "cls": "cls",
    "mean": "mean",
    "max": "max",
    "lasttoken": "last",
    "cls_token": "cls",
    "mean_tokens": "mean",
    "max_tokens": "max",
}
WRITTEN = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens", "last": "lasttoken"}
ROLES = {"query": "query", "document": "document", "passage": "document", "corpus": "document"}
_PLAIN = ("Transformer", "Pooling", "Normalize", "Dropout")


@dataclass(frozen=True)
class SentenceFiles:
    """What was found; `pooling` is None where there are no such files.

    `fault` says why the vectors that they describe can't be made here.
    """

    pooling: str | None = None
    normalize: bool = True
    prompts: dict[str, str] = field(default_factory=dict)
    fault: str | None = None


def read_sentence_files(folder: Path | None) -> SentenceFiles:
    """Read ``modules.json`` and what it points to; a folder without it says nothing.

    Raises
    ------
    CheckpointCorruptError
        When a file is no JSON of the known shape.
    """
    if folder is None or not (folder / "modules.json").is_file():
        return SentenceFiles()
    modules = _json(folder / "modules.json", list)
    kinds = [str(module.get("type", "")).rpartition(".")[2] for module in modules]
    prompts = _prompts(folder / "config_sentence_transformers.json")
    others = sorted(set(kinds) - set(_PLAIN))
    if others:
        return SentenceFiles("mean", "Normalize" in kinds, prompts, f"a {others[0]} module")
    if "Pooling" not in kinds:
        return SentenceFiles("mean", "Normalize" in kinds, prompts)
    path = folder / str(modules[kinds.index("Pooling")].get("path", "1_Pooling")) / "config.json"
    pooling, fault = _pooling(_json(path, dict)) if path.is_file() else ("mean", None)
    return SentenceFiles(pooling, "Normalize" in kinds, prompts, fault)


def _pooling(config: dict[str, Any]) -> tuple[str, str | None]:
    named = config.get("pooling_mode")
    if named is None:
        marks = [key.removeprefix("pooling_mode_") for key, on in config.items() if on is True]
        named = [mark for mark in marks if f"pooling_mode_{mark}" in config] or ["mean"]
    modes = [named] if isinstance(named, str) else list(named)
    if len(modes) != 1 or modes[0] not in POOLING_NAMES:
        return "mean", f"the pooling {' with '.join(map(str, modes))}"
    if config.get("include_prompt", True) is False:
        return POOLING_NAMES[modes[0]], "a pooling that leaves the prompt out"
    return POOLING_NAMES[modes[0]], None


def _prompts(path: Path) -> dict[str, str]:
    if not path.is_file():
        return {}
    given = _json(path, dict).get("prompts") or {}
    prompts: dict[str, str] = {}
    for name, prompt in given.items():
        if name in ROLES and isinstance(prompt, str):
            prompts.setdefault(ROLES[name], prompt)
    return prompts


def _json(path: Path, kind: type) -> Any:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointCorruptError(f"{path} can't be read ({error}); copy the checkpoint again.") from error
    if not isinstance(found, kind):
        raise CheckpointCorruptError(f"{path} must hold a JSON {kind.__name__}; copy the checkpoint again.")
    return found


def write_sentence_files(
    folder: Path, *, pooling: str, width: int, normalize: bool, prompts: dict[str, str]
) -> None:
    """Write the files, so that sentence-transformers and ``pooling="auto"`` read the same vectors.

    Raises
    ------
    ValueError
        When they have no name for `pooling`.
    """
    if pooling not in WRITTEN:
        raise ValueError(
            f"pooling={pooling!r} has no name in sentence-transformers' files; choose one of {tuple(WRITTEN)}."
        )
    kinds = [("", "Transformer"), ("1_Pooling", "Pooling")]
    kinds += [("2_Normalize", "Normalize")] if normalize else []
    modes = {f"pooling_mode_{name}": key == pooling for key, name in WRITTEN.items()}
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(kinds)
    ]
    (folder / "1_Pooling").mkdir(exist_ok=True)
    written = {
        "modules.json": modules,
        "1_Pooling/config.json": {"word_embedding_dimension": width, **modes},
        "config_sentence_transformers.json": {"prompts": prompts, "default_prompt_name": None},
    }
    for name, content in written.items():
        (folder / name).write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", "utf-8")
