"""Which words go before a text: by its role, query or document, and by what the checkpoint was trained with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from ..._engine.checkpoints.sentence_files import SentenceFiles
from ..._engine.text.documents import Documents
from ..._engine.validation import check_choice

ROLES = ("query", "document")
E5 = {"query": "query: ", "document": "passage: "}  # Wang et al. 2024, "Multilingual E5", section 2
_IS_E5 = re.compile(r"(?<![a-z0-9])e5(?![a-z0-9])")


def check_prompts(prompt: Any, prompts: Any, role: Any) -> None:
    """Check the three parameters.

    Raises
    ------
    TypeError
        For a prompt that is no str.
    ValueError
        For an unknown role.
    """
    check_choice("role", role, ("auto", *ROLES))
    if prompt is not None and not isinstance(prompt, str):
        raise TypeError(f"prompt must be None or str, got {type(prompt).__name__}.")
    if prompts is None or isinstance(prompts, str):
        return
    if not isinstance(prompts, Mapping):
        raise TypeError(f'prompts must be "auto", str, dict or None, got {type(prompts).__name__}.')
    for name, value in prompts.items():
        check_choice("prompts: role", name, ROLES)
        if value is not None and not isinstance(value, str):
            raise TypeError(f"prompts[{name!r}] must be None or str, got {type(value).__name__}.")


def own_prompts(model: Any, files: SentenceFiles) -> dict[str, str]:
    """Return the prompts that a checkpoint was trained with, by role: its files', or those of E5 by its name.

    E5 models that follow instructions have prompts of their own in their files.
    """
    if files.prompts or not isinstance(model, (str, PurePath)):
        return dict(files.prompts)
    name = PurePath(str(model)).name.rpartition(":")[2].lower()
    return dict(E5) if _IS_E5.search(name) and "instruct" not in name else {}


def prompt_of(role: str | None, own: dict[str, str], *, prompt: Any, prompts: Any, default_role: str) -> str:
    """Return what goes before texts of `role`; None is a call that names no role.

    Parameters
    ----------
    role : {"query", "document"} or None
        What the call asks for.
    own : dict
        The checkpoint's prompts.
    prompt, prompts, default_role
        The parameters of the estimator.
    """
    if role is None:
        if prompt is not None:
            return str(prompt)
        # what E5's authors advise for texts that are not searched but compared or classified
        auto = "query" if own == E5 else "document"
        role = auto if default_role == "auto" else default_role
    if isinstance(prompts, Mapping):
        return prompts.get(role) or ""
    if isinstance(prompts, str) and prompts != "auto":
        return prompts
    if prompt is not None and (prompts is None or prompt not in own.values()):
        return str(prompt)  # the user's words count more than the checkpoint's
    return "" if prompts is None else own.get(role, "")


def prompted(documents: Documents, prompt: str) -> Documents:
    """Put `prompt` before each first text that does not start with it already."""
    if not prompt:
        return documents
    first = [text if text.startswith(prompt) else prompt + text for text in documents.first]
    return Documents(first, documents.second, documents.width, documents.names)
