"""FlauBERT's published small and large checkpoints (``pre_norm=True``) crash in Transformers' forward pass.

It subscripts the cache once a layer, and `EncoderDecoderCache` has no subscript. A cache that returns itself, made anew
for each forward, gives what the code meant. Seen in Transformers 5.24; the hook goes when the subscript there does.
"""

from __future__ import annotations

from typing import Any

from torch import nn
from transformers import PreTrainedModel
from transformers.cache_utils import DynamicCache, EncoderDecoderCache


class _SelfReturningCache(EncoderDecoderCache):
    def __getitem__(self, layer: int) -> _SelfReturningCache:
        return self


def _give_cache(
    module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    if kwargs.get("cache") is not None:
        return None
    config: Any = module.config
    cache = _SelfReturningCache(DynamicCache(config=config), DynamicCache(config=config))
    return args, {**kwargs, "cache": cache}


def repair_flaubert(model: PreTrainedModel) -> None:
    """Make a pre-norm FlauBERT run; leave every other model alone."""
    if model.config.model_type == "flaubert" and getattr(model.config, "pre_norm", False):
        model.base_model.register_forward_pre_hook(_give_cache, with_kwargs=True)
