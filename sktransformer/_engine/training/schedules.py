"""The optimizer and its parameter groups."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ..checkpoints.structure import depth_of, layer_count, without_decay


def parameter_groups(
    model: nn.Module, learning_rate: float, weight_decay: float, layer_decay: float
) -> list[dict[str, Any]]:
    """Group trainable parameters by learning rate and decay.

    A parameter at depth d of a model with L layers learns at ``learning_rate * layer_decay ** (L + 1 - d)``, so the
    head learns at the full rate and the embeddings slowest. Biases and norms are not decayed. A module may have a
    `learning_rate_factor` for its own parameters.

    References
    ----------
    Howard and Ruder 2018, "ULMFiT", section 3.2 (discriminative fine-tuning).
    """
    if not 0.0 < layer_decay <= 1.0:
        raise ValueError(f"layer_decay must lie in (0, 1], got {layer_decay!r}.")
    n_layers = layer_count(model.config)
    exempt = without_decay(model)
    factors = _factors(model)
    groups: dict[tuple[float, float, float], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        rate = learning_rate * layer_decay ** (n_layers + 1 - depth_of(name, n_layers))
        key = (rate, factors.get(parameter, 1.0), 0.0 if name in exempt else weight_decay)
        groups.setdefault(key, []).append(parameter)
    # the head's group first: the history records the rate of the first one
    by_rate = sorted(groups.items(), key=lambda group: (-group[0][0], group[0][1]))
    return [{"params": p, "lr": rate * factor, "weight_decay": decay} for (rate, factor, decay), p in by_rate]


def _factors(model: nn.Module) -> dict[nn.Parameter, float]:
    """Return the factors of the parameters whose own module names one."""
    factors: dict[nn.Parameter, float] = {}
    for module in model.modules():
        factor = getattr(module, "learning_rate_factor", None)
        if isinstance(factor, float):
            factors.update(dict.fromkeys(module.parameters(recurse=False), factor))
    return factors


def fused_adamw(groups: list[dict[str, Any]], learning_rate: float) -> torch.optim.AdamW:
    """AdamW in one kernel: several times faster than the loop over tensors, on CPU and GPU.

    References
    ----------
    Loshchilov and Hutter 2019, "Decoupled Weight Decay Regularization", algorithm 2.
    """
    fused = all(p.device.type in ("cpu", "cuda") for group in groups for p in group["params"])
    return torch.optim.AdamW(groups, lr=learning_rate, fused=fused)
