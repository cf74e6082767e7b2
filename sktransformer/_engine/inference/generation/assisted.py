"""Greedy texts with the help of a draft: a small model proposes tokens, the large one reads several at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from transformers import GenerationConfig, PreTrainedModel

from ...checkpoints.quiet import quiet_transformers
from ...checkpoints.structure import max_tokens
from ...cpu.kernels import computing
from ...text.windows import IntArray
from .options import Decoding
from .rows import Generated


def assisted(
    model: PreTrainedModel,
    draft: PreTrainedModel,
    prompts: Sequence[IntArray],
    options: Decoding,
    precision: torch.dtype,
) -> list[Generated]:
    """Return the greedy text of each prompt, by Transformers' assisted generation, which takes one row at a time.

    A proposed token stands where the large model would have chosen it too, so that the text is that without a draft.

    References
    ----------
    Leviathan et al. 2023, "Fast Inference from Transformers via Speculative Decoding", section 2.3, for a temperature
    of 0.
    """
    device = next(model.parameters()).device
    found = []
    for row in prompts:
        ids = torch.from_numpy(np.asarray(row, dtype=np.int64))[None].to(device)
        with computing(device, precision), quiet_transformers():
            written = _written(model, draft, ids, options)
        stops = [i for i, token in enumerate(written) if token in options.stop_ids]
        kept = written[: stops[0]] if stops else written
        found.append(Generated(kept, 0.0, "stop" if stops else "length"))
    return found


def _written(model: Any, draft: PreTrainedModel, ids: torch.Tensor, options: Decoding) -> list[int]:
    """Return the tokens that follow a prompt (1, T): with the draft up to its last position, then without it."""
    begin, longest = ids.shape[1], ids.shape[1] + options.max_new_tokens
    for helper in (draft, None):
        ends = [max_tokens(one.config, None) for one in (model, helper) if one is not None]
        room = min([longest, *(end for end in ends if end is not None)]) - ids.shape[1]
        ended = ids.shape[1] > begin and int(ids[0, -1]) in options.stop_ids
        if room < 1 or ended:
            continue
        settings: Any = GenerationConfig
        config = settings(
            max_new_tokens=room,
            do_sample=False,
            eos_token_id=list(options.stop_ids) or None,
            pad_token_id=options.stop_ids[0] if options.stop_ids else 0,
        )
        ids = model.generate(
            ids, attention_mask=torch.ones_like(ids), generation_config=config, assistant_model=helper
        )
    tokens: list[int] = ids[0, begin:].tolist()
    return tokens
