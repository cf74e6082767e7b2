"""How much of the documents a model gets to read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .._engine.checkpoints.loading import read_config, read_tokenizer
from .._engine.checkpoints.sources import resolve
from .._engine.checkpoints.structure import max_tokens
from .._engine.text.documents import Documents, as_documents
from .._engine.text.encoding import TextEncoder
from .._engine.text.windows import Cut
from .._engine.validation import check_number

__all__ = ["truncation_report"]

_WORD = re.compile(r"\w+")


def truncation_report(
    texts: Any,
    models: str | Path | Iterable[Any] | Mapping[str, Any],
    *,
    max_length: int = 512,
    stride: int = 64,
    missing: Any = "error",
) -> pd.DataFrame:
    """Say how several models' vocabularies cut up the same texts, and how much of them each model drops.

    Parameters
    ----------
    texts : iterable of n documents
        Texts, pairs of texts or another table, as an estimator takes them; of e-mails, those that are cleaned already.
    models : model, list of models, or dict
        Hub ids, folders, bundled names, or fitted estimators of texts; a dict gives them names of your own. Only
        tokenizers are loaded.
    max_length : int, default=512
        Longest window, in tokens with the special ones; a model's own limit when that is lower.
    stride : int, default=64
        Tokens that two windows of ``truncation="chunk"`` share.
    missing : {"error", "empty"}, default="error"
        What to do with None and NaN documents.

    Returns
    -------
    DataFrame
        One row a model, in the order given, with

        - ``max_length``: tokens that fit, special ones included;
        - ``tokens_per_word``: the vocabulary's *fertility* [1]_, tokens divided by words (runs of letters and digits);
        - ``unknown``: share of the tokens that stand for what the vocabulary can't spell;
        - ``median_tokens``, ``longest_tokens``: of the documents, special tokens included;
        - ``documents_cut``: share of the documents that are longer than that;
        - ``tokens_lost``: share of all tokens that are dropped;
        - ``windows``: windows a document that ``truncation="chunk"`` would read.

    Raises
    ------
    TypeError
        For a row that is no text, or a model of an unknown kind.
    ValueError
        For no texts, missing texts, no models, or a checkpoint that is absent or corrupt.

    See Also
    --------
    TransformerClassifier : Its `truncation` says which tokens are kept.

    Notes
    -----
    A vocabulary learned on French spells French words with fewer tokens than one that a hundred languages share: the
    same 512 tokens hold more of a message, and each costs less time.

    References
    ----------
    .. [1] Rust et al. 2021, "How Good is Your Tokenizer?", section 3.2.

    Examples
    --------
    >>> from sktransformer import truncation_report
    >>> from sktransformer.testing import tiny_checkpoint
    >>> texts = ["la facture est fausse", "le colis"]
    >>> report = truncation_report(texts, {"tiny": tiny_checkpoint("camembert")}, max_length=12)
    >>> report.loc["tiny", ["documents_cut"]].tolist()
    [0.5]
    """
    check_number("max_length", max_length, low=1, integer=True)
    check_number("stride", stride, low=0, integer=True)
    documents = as_documents(texts, missing=missing, name="texts")
    if not len(documents):
        raise ValueError("texts is empty; pass at least one document.")
    named = _named(models)
    if not named:
        raise ValueError("models is empty; pass a hub id, a folder, a bundled name or a fitted estimator.")
    rows = {name: _row(documents, *_tokenizer(model), max_length, stride) for name, model in named.items()}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("model")


def _named(models: Any) -> dict[str, Any]:
    if isinstance(models, Mapping):
        return {str(name): model for name, model in models.items()}
    given: Sequence[Any] = (
        [models] if isinstance(models, (str, Path)) or hasattr(models, "fit") else list(models)
    )
    names = [str(getattr(model, "model", model)) for model in given]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"models holds {twice[0]!r} twice; pass a dict that gives each its own name.")
    return dict(zip(names, given, strict=True))


def _tokenizer(model: Any) -> tuple[Any, int | None]:
    """Return a tokenizer, and how many tokens its model can read."""
    if hasattr(model, "tokenizer_"):
        return model.tokenizer_, max_tokens(model.model_.config, model.tokenizer_)
    source = resolve(model)
    if source.folder is None:
        raise TypeError(
            f"models holds a {type(model).__name__}, whose tokenizer is learned when it is fitted; pass the fitted "
            f"estimator."
        )
    tokenizer = read_tokenizer(source.folder)
    return tokenizer, max_tokens(read_config(source.folder), tokenizer)


def _row(
    documents: Documents, tokenizer: Any, limit: int | None, max_length: int, stride: int
) -> dict[str, Any]:
    encoder = TextEncoder(tokenizer)
    special = (encoder.single if documents.second is None else encoder.pair).n_special
    longest = int(max_length if limit is None else min(max_length, limit))
    room = Cut(longest, "head").room(special)
    columns = encoder.tokenize(documents)
    tokens = np.sum([list(map(len, column)) for column in columns], axis=0)
    words = sum(
        len(_WORD.findall(text)) for texts in (documents.first, documents.second or []) for text in texts
    )
    ids = np.concatenate([row for column in columns for row in column])
    unknown = -1 if tokenizer.unk_token_id is None else tokenizer.unk_token_id
    step = max(1, room - stride)
    return {
        "max_length": longest,
        "tokens_per_word": float(tokens.sum() / words) if words else float("nan"),
        "unknown": float((ids == unknown).mean()) if len(ids) else 0.0,
        "median_tokens": float(np.median(tokens + special)),
        "longest_tokens": int(tokens.max() + special),
        "documents_cut": float((tokens > room).mean()),
        "tokens_lost": float(np.maximum(tokens - room, 0).sum() / max(1, tokens.sum())),
        "windows": float((1 + np.ceil(np.maximum(tokens - room, 0) / step)).mean()),
    }
