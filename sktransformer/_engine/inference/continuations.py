"""How likely a model finds each of a few continuations of many texts, with the work that they share done once.

A decoder reads the tokens with which all texts begin once, the rest of a text once for all its continuations, and of
these the first token costs nothing more. An encoder-decoder reads a text once, and its first step once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache, EncoderDecoderCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer

from ..checkpoints.structure import takes
from ..cpu.kernels import computing
from ..text.batches import Batch
from ..text.windows import Encoded, IntArray
from .forward import FloatArray, Passes, forward

WINDOWS = ("attention_window", "sliding_window", "window_size")  # as ours, most, and GPT-Neo call them
CACHED_TOKENS = 8192  # of the copies of a cache that continuations are read with, at a time


@dataclass(frozen=True)
class Continuations:
    """Token ids of C continuations, each of one token or more."""

    ids: tuple[IntArray, ...]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def longest(self) -> int:
        """Tokens of the longest one."""
        return max(map(len, self.ids))

    def firsts(self, device: torch.device) -> torch.Tensor:
        """Return the first token of each (C,)."""
        return torch.tensor([int(one[0]) for one in self.ids], device=device)

    @property
    def long(self) -> list[int]:
        """Those of more than one token."""
        return [i for i, one in enumerate(self.ids) if len(one) > 1]


def continuation_scores(
    passes: Passes, texts: Sequence[IntArray], continuations: Continuations, *, share: bool = True
) -> FloatArray:
    """Return the log-likelihood (n, C) of each continuation of each text, summed over its tokens, as float32.

    Parameters
    ----------
    passes : Passes
        A model with a language modelling head, decoder-only or encoder-decoder, and how it is run: padded.
    texts : sequence of int32 arrays
        Tokens of the texts, special ones included, one or more each.
    continuations : Continuations
        What may follow. An encoder-decoder writes them after its start token.
    share : bool, default=True
        Whether what texts and continuations share is read once; else each continuation is read with its whole text.
    """
    encoded = _encoded(texts)
    if getattr(passes.model.config, "is_encoder_decoder", False):
        return forward(passes, encoded, _Decoding(continuations))
    if not share or not _takes_parts(passes.model):
        return _whole(passes, texts, continuations)
    start = _common(texts)
    with computing(passes.collator.device, passes.precision):
        cache = _read(passes, texts[0][:start]) if start else None
    rest = encoded if not start else _encoded([text[start:] for text in texts])
    return forward(passes, rest, _Continuing(continuations, cache, start))


def _encoded(rows: Sequence[IntArray]) -> Encoded:
    lengths = [len(row) for row in rows]
    starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    ids = np.concatenate([*rows, np.zeros(0, dtype=np.int32)]).astype(np.int32, copy=False)
    return Encoded(ids, starts, np.arange(len(rows), dtype=np.int32), len(rows))


def _common(texts: Sequence[IntArray]) -> int:
    """Return how many tokens all texts begin with, and leave each one token at least; 0 for a single text."""
    if len(texts) < 2:
        return 0
    first, shared = texts[0], min(map(len, texts)) - 1
    for text in texts[1:]:
        different = np.flatnonzero(text[:shared] != first[:shared])
        shared = int(different[0]) if len(different) else shared
    return shared


def _takes_parts(model: PreTrainedModel) -> bool:
    """Whether positions may be given, and the cache is of keys and values of every token: no windows, no states.

    Padding stands between the parts, so that a mask alone would tell positions wrongly, and windows would count it.
    """
    by_distance = getattr(model.config, "positions", None) in ("alibi", "relative")
    if by_distance or getattr(model.config, "alibi", False):
        return False  # distances are counted between places in the cache, padding included
    if any(getattr(model.config, name, None) for name in WINDOWS):
        return False  # so are windows
    if not {"position_ids", cache_name(model)} <= takes(model):
        return False
    return all(type(layer) is DynamicLayer for layer in DynamicCache(config=model.config).layers)


def _read(passes: Passes, ids: IntArray) -> Any:
    """Return the cache of the tokens (1, T)."""
    row = torch.from_numpy(ids.astype(np.int64))[None].to(passes.collator.device)
    options = {"logits_to_keep": 1} if _keeps(passes.model) else {}
    return getattr(passes.model(input_ids=row, use_cache=True, **options), cache_name(passes.model))


def cache_name(model: PreTrainedModel) -> str:
    """Return what a model's forward pass calls the cache: Transformers before 5.24 says "past_key_values"."""
    return "cache" if "cache" in takes(model) else "past_key_values"


def _keeps(model: PreTrainedModel) -> bool:
    return "logits_to_keep" in takes(model)


def _rows(cache: Any, rows: torch.Tensor) -> Any:
    """Return a new cache of the chosen rows of another."""
    if isinstance(cache, EncoderDecoderCache):
        return EncoderDecoderCache(
            _rows(cache.self_attention_cache, rows), _rows(cache.cross_attention_cache, rows)
        )
    chosen = DynamicCache()
    for i, layer in enumerate(cache.layers):
        chosen.update(layer.keys.index_select(0, rows), layer.values.index_select(0, rows), i)
    return chosen


def _expanded(cache: Any, n: int) -> Any:
    """Return a new cache of n views of another's single row."""
    views = DynamicCache()
    for i, layer in enumerate(cache.layers):
        views.update(layer.keys.expand(n, -1, -1, -1), layer.values.expand(n, -1, -1, -1), i)
    return views


@dataclass(frozen=True)
class _Tails:
    """What follows the first token of the long continuations: (M, S) tokens read, tokens expected, which are real."""

    columns: torch.Tensor
    read: torch.Tensor
    expected: torch.Tensor
    real: torch.Tensor

    @classmethod
    def of(cls, continuations: Continuations, device: torch.device) -> _Tails:
        long = continuations.long
        width = max(len(continuations.ids[i]) for i in long) - 1
        read = np.zeros((len(long), width), dtype=np.int64)
        expected, real = np.zeros_like(read), np.zeros(read.shape, dtype=bool)
        for row, i in enumerate(long):
            ids = continuations.ids[i]
            read[row, : len(ids) - 1], expected[row, : len(ids) - 1] = ids[:-1], ids[1:]
            real[row, : len(ids) - 1] = True
        columns = torch.tensor(long, device=device)
        return cls(columns, *(torch.from_numpy(part).to(device) for part in (read, expected, real)))

    def likelihood(self, logits: torch.Tensor) -> torch.Tensor:
        """Return the log-likelihood (n, M) under logits (n M, S, V)."""
        n = len(logits) // len(self.columns)
        logs = logits.float().log_softmax(dim=-1).unflatten(0, (n, len(self.columns)))
        found = logs.gather(-1, self.expected.expand(n, -1, -1)[..., None])[..., 0]
        return torch.where(self.real, found, 0.0).sum(dim=-1)


class _Continuing:
    """Reads what comes after the shared beginning of a decoder's texts, and then the continuations."""

    def __init__(self, continuations: Continuations, beginning: Any, start: int) -> None:
        self.continuations = continuations
        self.beginning = beginning
        self.start = start

    def __call__(self, model: PreTrainedModel, batch: Batch) -> torch.Tensor:
        """Return the log-likelihoods (B, C)."""
        ids = batch.input_ids
        n, width = ids.shape
        mask = torch.ones_like(ids) if batch.attention_mask is None else batch.attention_mask
        lengths = mask.sum(dim=1)
        steps = torch.arange(width, device=ids.device)
        mask = torch.cat([mask.new_ones(n, self.start), mask], dim=1)
        lasts, places = torch.unique(lengths - 1, return_inverse=True)
        keeps = _keeps(model)
        output = model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=(self.start + steps).expand(n, -1),
            use_cache=bool(self.continuations.long),
            **({} if self.beginning is None else {cache_name(model): _expanded(self.beginning, n)}),
            **({"logits_to_keep": lasts} if keeps else {}),
        )
        columns = places if keeps else lengths - 1
        logits = output.logits[torch.arange(n, device=ids.device), columns].float()  # (B, V)
        scores: torch.Tensor = logits.log_softmax(dim=-1)[:, self.continuations.firsts(ids.device)]  # (B, C)
        if self.continuations.long:
            self._add_tails(model, scores, getattr(output, cache_name(model)), mask, self.start + lengths)
        return scores

    def _add_tails(
        self, model: PreTrainedModel, scores: torch.Tensor, cache: Any, mask: torch.Tensor, ends: torch.Tensor
    ) -> None:
        tails = _Tails.of(self.continuations, scores.device)
        m, width = tails.read.shape
        steps = torch.arange(width, device=scores.device)
        for chosen in _parts(len(scores), m * (mask.shape[1] + width), scores.device):
            rows = chosen.repeat_interleave(m)
            logits = model(
                input_ids=tails.read.repeat(len(chosen), 1),
                attention_mask=torch.cat([mask[rows], tails.real.repeat(len(chosen), 1).to(mask)], dim=1),
                position_ids=ends[rows][:, None] + steps,
                use_cache=True,
                **{cache_name(model): _rows(cache, rows)},
            ).logits
            scores[chosen[:, None], tails.columns] += tails.likelihood(logits)


class _Decoding:
    """Reads an encoder-decoder's texts, the start of what it writes, and then the continuations."""

    def __init__(self, continuations: Continuations) -> None:
        self.continuations = continuations

    def __call__(self, model: PreTrainedModel, batch: Batch) -> torch.Tensor:
        """Return the log-likelihoods (B, C)."""
        ids = batch.input_ids
        mask = torch.ones_like(ids) if batch.attention_mask is None else batch.attention_mask
        states = model.get_encoder()(input_ids=ids, attention_mask=mask)
        begin = torch.tensor(_beginning(model), device=ids.device)
        output = model(
            encoder_outputs=states,
            attention_mask=mask,
            decoder_input_ids=begin.expand(len(ids), -1),
            use_cache=bool(self.continuations.long),
        )
        scores: torch.Tensor = (
            output.logits[:, -1].float().log_softmax(dim=-1)[:, self.continuations.firsts(ids.device)]
        )
        if not self.continuations.long:
            return scores
        tails = _Tails.of(self.continuations, ids.device)
        m, width = tails.read.shape
        for chosen in _parts(len(ids), m * (ids.shape[1] + width), ids.device):
            rows = chosen.repeat_interleave(m)
            logits = model(
                # the cache holds its keys and values; the shape is looked at still
                encoder_outputs=(states[0][rows],),
                attention_mask=mask[rows],
                decoder_input_ids=tails.read.repeat(len(chosen), 1),
                use_cache=True,
                **{cache_name(model): _rows(getattr(output, cache_name(model)), rows)},
            ).logits
            scores[chosen[:, None], tails.columns] += tails.likelihood(logits)
        return scores


def _beginning(model: PreTrainedModel) -> list[int]:
    """Return the tokens that an encoder-decoder's output begins with: the start, and a language where one is forced."""
    generation: Any = model.generation_config
    start = getattr(generation, "decoder_start_token_id", None)
    start = model.config.decoder_start_token_id if start is None else start
    forced = getattr(generation, "forced_bos_token_id", None)
    return [int(start), *([] if forced is None else [int(forced)])]


def _parts(n: int, cost: int, device: torch.device) -> list[torch.Tensor]:
    """Cut rows 0 to n - 1 into parts whose copies of the cache stay within bounds."""
    return list(torch.arange(n, device=device).split(max(1, CACHED_TOKENS // cost)))


class _Likelihood:
    """Reads texts with their continuation: the log-likelihood of the last `lengths` tokens of each window."""

    def __init__(self, lengths: np.ndarray[Any, np.dtype[np.int64]]) -> None:
        self.lengths = lengths

    def __call__(self, model: PreTrainedModel, batch: Batch) -> torch.Tensor:
        ids = batch.input_ids
        mask = torch.ones_like(ids) if batch.attention_mask is None else batch.attention_mask
        ends = mask.sum(dim=1)[:, None] - 1
        tails = torch.from_numpy(self.lengths[batch.windows]).to(ids.device)[:, None]
        steps = torch.arange(ids.shape[1] - 1, device=ids.device)
        counted = (steps < ends) & (
            steps >= ends - tails
        )  # (B, T - 1): where a token of a continuation is told
        columns = counted.any(dim=0).nonzero()[:, 0]
        keeps = _keeps(model)
        options = {"logits_to_keep": columns} if keeps else {}
        logits: torch.Tensor = model(input_ids=ids, attention_mask=mask, use_cache=False, **options).logits
        logs = (logits if keeps else logits[:, columns]).float().log_softmax(dim=-1)
        found = logs.gather(-1, ids[:, columns + 1, None])[..., 0]
        return torch.where(counted[:, columns], found, 0.0).sum(dim=1, keepdim=True)


def _whole(passes: Passes, texts: Sequence[IntArray], continuations: Continuations) -> FloatArray:
    """Read each continuation with its whole text: any decoder can, and padding on the right changes nothing."""
    rows = [np.concatenate([text, one]) for text in texts for one in continuations.ids]
    lengths = np.array([len(one) for _ in texts for one in continuations.ids], dtype=np.int64)
    return forward(passes, _encoded(rows), _Likelihood(lengths)).reshape(len(texts), len(continuations))
