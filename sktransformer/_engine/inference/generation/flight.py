"""The rows in flight: one batch of a model's decoder that rows leave as they end and others join."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from transformers import DynamicCache, EncoderDecoderCache, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput

from ...checkpoints.structure import takes
from .cache import RowCache, join_sources, keep_sources
from .positions import takes_positions
from .rows import Prompt

READ = {"cuda": 65_536, "mps": 8192}  # tokens, padding included, of a pass that reads prompts
CPU_READ = 2048


class Flight:
    """Keys, values and masks of the rows in flight, and the passes that extend them.

    Rows end at the same column: a shorter one is padded on the left, where the mask hides it and its positions do not
    count. The sources of an encoder-decoder model are padded on the right, and their keys are computed once.
    """

    def __init__(
        self, model: PreTrainedModel, device: torch.device, positions: Callable[[torch.Tensor], None]
    ) -> None:
        self.model = model
        self.device = device
        self.has_encoder = bool(model.config.is_encoder_decoder)
        self._say_positions = positions
        self._names = _arguments(model)
        self._clear()

    def _clear(self) -> None:
        self.cache: RowCache | None = None
        self.sources: DynamicCache | None = None
        self.mask = torch.zeros(0, 0, dtype=torch.bool, device=self.device)  # (B, W)
        self.source_mask = torch.zeros(0, 0, dtype=torch.bool, device=self.device)  # (B, S)

    def __len__(self) -> int:
        return len(self.mask)

    def admit(self, prompts: Sequence[Prompt], copies: int) -> torch.Tensor:
        """Read prompts, and add `copies` rows for each; return the logits (n copies, V) of their next tokens."""
        first, logits = None, []
        for part in _parts(prompts, READ.get(self.device.type, CPU_READ)):
            new = Flight(self.model, self.device, self._say_positions)
            logits.append(new._read(part))
            if copies > 1:
                new._repeat(copies)
                logits[-1] = logits[-1].repeat_interleave(copies, dim=0)
            if first is None:
                first = new
            else:
                first._join(new)
        if first is not None:
            self._join(first)
        return torch.cat(logits)

    def step(self, tokens: torch.Tensor) -> torch.Tensor:
        """Extend each row by its token (B,); return the logits (B, V) of the next ones."""
        mask = F.pad(self.mask, (0, 1), value=True)
        logits = self._pass(tokens[:, None], mask, mask.sum(dim=1, keepdim=True) - 1)
        self.mask = mask
        return logits

    def keep(self, rows: torch.Tensor) -> None:
        """Keep `rows` alone, and no more columns than the longest of them has."""
        if not len(rows) or self.cache is None:
            self._clear()
            return
        self.mask = self.mask[rows]
        width = int(self.mask.sum(dim=1).max())
        self.mask = self.mask[:, self.mask.shape[1] - width :]
        self.cache.keep(rows, width)
        if self.sources is not None:
            self.source_mask = self.source_mask[rows]
            width = int(self.source_mask.sum(dim=1).max())
            self.source_mask = self.source_mask[:, :width]
            keep_sources(self.sources, rows, width)

    def reorder(self, rows: torch.Tensor) -> None:
        """Let each row go on from another of the same prompt: their sources, and so those keys, are the same."""
        if self.cache is not None:
            self.cache.reorder_cache(rows)

    # -- passes -----------------------------------------------------------------------------------------------------

    def _read(self, prompts: Sequence[Prompt]) -> torch.Tensor:
        self.cache = RowCache()
        texts: list[Any] = [prompt.begin if self.has_encoder else prompt.ids for prompt in prompts]
        ids, self.mask = self._padded(texts, left=True)
        encoded = None
        if self.has_encoder:
            self.sources = DynamicCache()
            source, self.source_mask = self._padded([prompt.ids for prompt in prompts], left=False)
            encoded = self.model.get_encoder()(input_ids=source, attention_mask=self.source_mask.long())[0]
        return self._pass(ids, self.mask, (self.mask.cumsum(dim=1) - 1).clamp(min=0), encoded)

    def _padded(self, texts: Sequence[Any], *, left: bool) -> tuple[torch.Tensor, torch.Tensor]:
        width = max(map(len, texts))
        ids = np.zeros((len(texts), width), dtype=np.int64)  # a mask hides it: any id serves
        mask = np.zeros(ids.shape, dtype=bool)
        for i, text in enumerate(texts):
            place = slice(width - len(text), width) if left else slice(0, len(text))
            ids[i, place], mask[i, place] = text, True
        return torch.from_numpy(ids).to(self.device), torch.from_numpy(mask).to(self.device)

    def _pass(
        self,
        ids: torch.Tensor,
        mask: torch.Tensor,
        positions: torch.Tensor,
        encoded: torch.Tensor | None = None,
    ) -> torch.Tensor:
        assert self.cache is not None
        arguments: dict[str, Any] = {"use_cache": True}
        if self.has_encoder:
            assert self.sources is not None
            self._say_positions(positions)
            cache: Any = EncoderDecoderCache(self.cache, self.sources)
            arguments |= {
                "decoder_input_ids": ids,
                "decoder_attention_mask": mask.long(),
                "attention_mask": self.source_mask.long(),
                "encoder_outputs": BaseModelOutput(last_hidden_state=self._encoded(encoded)),
            }
            if self._names.positions:
                arguments["decoder_position_ids"] = positions
        else:
            cache = self.cache
            arguments |= {"input_ids": ids, "attention_mask": mask.long()}
            if self._names.positions:
                arguments["position_ids"] = positions
            if self._names.last_only:
                arguments["logits_to_keep"] = 1
        arguments[self._names.cache] = cache
        logits: torch.Tensor = self.model(**arguments).logits[:, -1].float()
        self.cache.advance(ids.shape[1])
        return logits

    def _encoded(self, encoded: torch.Tensor | None) -> torch.Tensor:
        """Return what the encoder gave, or, once its keys are known, something of that shape that nobody reads."""
        if encoded is not None:
            return encoded
        return torch.zeros(1, 1, 1, device=self.device).expand(*self.source_mask.shape, 1)

    # -- rows -------------------------------------------------------------------------------------------------------

    def _repeat(self, copies: int) -> None:
        assert self.cache is not None
        self.cache.repeat(copies)
        self.mask = self.mask.repeat_interleave(copies, dim=0)
        if self.sources is not None:
            self.sources.batch_repeat_interleave(copies)
            self.source_mask = self.source_mask.repeat_interleave(copies, dim=0)

    def _join(self, new: Flight) -> None:
        if self.cache is None or new.cache is None:
            self.cache, self.sources = new.cache, new.sources
            self.mask, self.source_mask = new.mask, new.source_mask
            return
        self.cache.join(new.cache)
        if self.sources is not None and new.sources is not None:
            join_sources(self.sources, new.sources)
            self.source_mask = _stacked(self.source_mask, new.source_mask, left=False)
        self.mask = _stacked(self.mask, new.mask, left=True)


def _stacked(first: torch.Tensor, second: torch.Tensor, *, left: bool) -> torch.Tensor:
    width = max(first.shape[1], second.shape[1])
    gaps = [(width - part.shape[1]) for part in (first, second)]
    return torch.cat(
        [F.pad(part, (gap, 0) if left else (0, gap)) for part, gap in zip((first, second), gaps, strict=True)]
    )


def _parts(prompts: Sequence[Prompt], most: int) -> Iterator[Sequence[Prompt]]:
    """Cut prompts, as they come, into passes of at most `most` tokens, or of one prompt."""
    start, longest = 0, 0
    for i, prompt in enumerate(prompts):
        longest = max(longest, len(prompt.ids))
        if i > start and (i - start + 1) * longest > most:
            yield prompts[start:i]
            start, longest = i, len(prompt.ids)
    yield prompts[start:]


class _Names:
    """What a model's forward pass calls its arguments."""

    def __init__(self, cache: str, positions: bool, last_only: bool) -> None:
        self.cache = cache
        self.positions = positions
        self.last_only = last_only


def _arguments(model: PreTrainedModel) -> _Names:
    own, body = takes(model), takes(model, body=True)
    return _Names(
        "cache" if "cache" in own else "past_key_values",  # the name before transformers 5.24
        takes_positions(model)
        if model.config.is_encoder_decoder
        else "position_ids" in own or "position_ids" in body,
        "logits_to_keep" in own,
    )
