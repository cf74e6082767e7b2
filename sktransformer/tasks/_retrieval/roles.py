"""Texts to unit vectors in a role, query or document: the one place that knows how an embedder is told the role.

An embedder that knows roles has a `transform` with a `role` argument. One that has a `prompt` alone is borrowed with
another prompt, weights shared. Any other gets texts that begin with the prompt.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn import config_context
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from ..._engine.text.documents import MAX_LISTED

Role = Literal["query", "document"]
Prompts = dict[str, str | None] | Literal["auto"] | None
ROLES = ("query", "document")


def check_prompts(prompts: Any) -> None:
    """Raise unless `prompts` is "auto", None, or a dict with a prompt a role.

    Raises
    ------
    TypeError
        When it is something else, or a prompt is no str.
    ValueError
        When a role is missing or unknown.
    """
    if prompts is None or (isinstance(prompts, str) and prompts == "auto"):
        return
    if not isinstance(prompts, Mapping):
        raise TypeError(
            f'prompts must be "auto", None or a dict, got {type(prompts).__name__} ({prompts!r:.40}).'
        )
    if set(prompts) != set(ROLES):
        raise ValueError(f"prompts must have the keys {ROLES}, got {tuple(prompts)}.")
    for role, prompt in prompts.items():
        if prompt is not None and not isinstance(prompt, str):
            raise TypeError(f"prompts[{role!r}] must be None or str, got {type(prompt).__name__}.")


def resolve_prompts(prompts: Any, embedder: Any) -> Prompts:
    """Return the prompts of both roles; "auto" where the embedder knows its own; None where it is left as it is."""
    if isinstance(prompts, Mapping):
        return dict(prompts)
    if prompts is None:
        return None
    return "auto" if _knows_roles(_parts(embedder)[1]) else None


def embed(embedder: Any, texts: list[str], role: Role, prompts: Prompts) -> npt.NDArray[np.float32]:
    """Return one unit vector a text; a vector of zeros stays one.

    Raises
    ------
    ValueError
        When the embedder gives a sparse matrix, another number of rows, or numbers that are not finite.
    """
    before, last = _parts(embedder)
    given: Any = texts
    with config_context(enable_metadata_routing=False):
        for step in before:
            given = step.transform(given)
    vectors: Any = _transformed(last, given, role, prompts)
    if hasattr(vectors, "nnz"):  # SciPy's sparse matrices and arrays
        raise ValueError(
            f"the embedder gives a sparse matrix of {vectors.shape[1]} columns; put TruncatedSVD behind it, or use "
            f'mode="sparse" with it as vectorizer.'
        )
    return _unit(np.asarray(vectors, dtype=np.float32), len(texts), role)


def _transformed(last: Any, texts: Any, role: Role, prompts: Prompts) -> Any:
    if prompts is None:
        return last.transform(texts)
    if _knows_roles(last):
        told = last if prompts == "auto" else _borrowed(last, "prompts", prompts)
        return told.transform(texts, role=role)
    prompt = None if prompts == "auto" else prompts[role]
    if "prompt" in last.get_params(deep=False):
        return _borrowed(last, "prompt", prompt).transform(texts)
    prompt = prompt or ""
    return last.transform([text if text.startswith(prompt) else prompt + text for text in texts])


def _parts(embedder: Any) -> tuple[list[Any], Any]:
    """Return the steps before the last of a pipeline, and the last; a frozen estimator is looked into."""
    if isinstance(embedder, FrozenEstimator):
        return _parts(embedder.estimator)
    if isinstance(embedder, Pipeline):
        steps = [step for _, step in embedder.steps if step not in (None, "passthrough")]
        before, last = _parts(steps[-1])
        return [*steps[:-1], *before], last
    return [], embedder


def _knows_roles(embedder: Any) -> bool:
    return "role" in inspect.signature(embedder.transform).parameters


def _borrowed(embedder: Any, parameter: str, value: Any) -> Any:
    """Return another estimator with one parameter changed and the very same learned state, which is not copied."""
    twin = object.__new__(type(embedder))
    twin.__dict__.update(embedder.__dict__, **{parameter: value})
    return twin


def _unit(vectors: npt.NDArray[np.float32], n: int, role: Role) -> npt.NDArray[np.float32]:
    if vectors.ndim != 2 or len(vectors) != n:
        raise ValueError(
            f"the embedder must give {n} rows of numbers, one a {role}, got shape {vectors.shape}."
        )
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad):
        rows = ", ".join(map(str, bad[:MAX_LISTED])) + (", ..." if len(bad) > MAX_LISTED else "")
        raise ValueError(
            f"the embedder gives NaN or infinity for {len(bad)} {role}(s), row(s) {rows} of X; "
            f"leave them out, or look at what they hold."
        )
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    unit: npt.NDArray[np.float32] = (vectors / np.maximum(norms, np.finfo(np.float32).tiny)).astype(
        np.float32
    )
    return np.ascontiguousarray(unit)
