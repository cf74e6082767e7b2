"""Learning-rate schedules: a factor on the learning rate for each step.

Vaswani et al. 2017, section 5.3, equation 3, is "inverse_sqrt": up in a line, then down with the root of the step.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from .._engine.errors import did_you_mean

SCHEDULES = ("linear", "cosine", "constant", "inverse_sqrt")


def schedule(name: str, n_steps: int, warmup_ratio: float) -> Callable[[int], float]:
    """Return the factor on the learning rate at each step.

    It climbs linearly over the first ``warmup_ratio * n_steps`` steps, then falls to 0 linearly or along half a cosine,
    stays ("constant"), or falls with the square root of the step ("inverse_sqrt").

    Parameters
    ----------
    name : {"linear", "cosine", "constant", "inverse_sqrt"}
        What comes after the climb.
    n_steps : int
        Steps of the whole run.
    warmup_ratio : float
        Share of them in which the rate climbs, in [0, 1].

    Returns
    -------
    callable
        Of the step, from 0.

    Raises
    ------
    ValueError
        For an unknown name or a ratio out of range.

    References
    ----------
    Linear: Devlin et al. 2019, "BERT", appendix A.2. Cosine: Loshchilov and Hutter 2017, "SGDR", equation 5. Inverse
    square root: Vaswani et al. 2017, section 5.3, equation 3, scaled so that its largest value is 1.

    Examples
    --------
    >>> factor = schedule("inverse_sqrt", n_steps=100, warmup_ratio=0.04)
    >>> [round(factor(step), 2) for step in (0, 3, 4, 15, 63)]
    [0.2, 0.8, 1.0, 0.56, 0.28]
    """
    if name not in SCHEDULES:
        hint = did_you_mean(str(name), SCHEDULES)
        raise ValueError(f"lr_schedule={name!r} is not known; choose one of {SCHEDULES}.{hint}")
    if not 0.0 <= warmup_ratio <= 1.0:
        raise ValueError(f"warmup_ratio must lie in [0, 1], got {warmup_ratio!r}.")
    n_warmup = math.ceil(warmup_ratio * n_steps)

    def factor(step: int) -> float:
        if step < n_warmup:
            return (step + 1) / (n_warmup + 1)
        if name == "constant":
            return 1.0
        if name == "inverse_sqrt":
            return math.sqrt((n_warmup + 1) / (step + 1))
        progress = min(1.0, (step - n_warmup) / max(1, n_steps - n_warmup))
        return 1.0 - progress if name == "linear" else 0.5 * (1.0 + math.cos(math.pi * progress))

    return factor
