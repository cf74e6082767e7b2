"""A mixture of experts: several feed-forward layers, of which each token goes through the few that a router picks.

Formula: y = sum over the k best experts e of g_e E_e(x), with g the softmax of the router's scores over those k:
Shazeer et al. 2017, "Outrageously Large Neural Networks", section 2.1; Jiang et al. 2024, "Mixtral of Experts",
section 2.1. Balance loss: E sum_e f_e P_e, with f_e the share of the places that expert e gets and P_e its mean
probability: Fedus et al. 2022, "Switch Transformers", section 2.2, equations 4 to 6; it is 1 when both are even.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

import torch
from torch import nn

from .config import TransformerConfig
from .feed_forward import FeedForward

_balance: ContextVar[list[torch.Tensor] | None] = ContextVar("balance", default=None)


@contextlib.contextmanager
def balance_losses(wanted: bool = True) -> Iterator[list[torch.Tensor]]:
    """Collect the balance losses of all mixtures of experts that run, in training, inside the block.

    The losses come beside the model's output, and a caller adds their mean, times a coefficient, to its own loss. They
    are collected for this thread alone, by the innermost block that wants them.

    Parameters
    ----------
    wanted : bool, default=True
        Whether this block collects; if not, one around it does.

    Yields
    ------
    list of tensor of shape ()
        Filled as layers run.

    Examples
    --------
    >>> from sktransformer.nn import TransformerConfig
    >>> from sktransformer.nn.experts import MixtureOfExperts, balance_losses
    >>> layer = MixtureOfExperts(TransformerConfig(hidden_size=8, num_experts=4))
    >>> with balance_losses() as losses:
    ...     _ = layer(torch.randn(2, 3, 8))
    >>> len(losses)
    1
    """
    losses: list[torch.Tensor] = []
    if not wanted:
        yield losses
        return
    token = _balance.set(losses)
    try:
        yield losses
    finally:
        _balance.reset(token)


class MixtureOfExperts(nn.Module):
    """Experts and their router.

    Parameters
    ----------
    config : TransformerConfig
        Number of experts, how many a token is sent to, and the shape of each.

    References
    ----------
    See the module's docstring.

    Examples
    --------
    >>> from sktransformer.nn import TransformerConfig
    >>> MixtureOfExperts(TransformerConfig(hidden_size=8, num_experts=4))(torch.randn(1, 3, 8)).shape
    torch.Size([1, 3, 8])
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.n_chosen = config.num_experts_per_token
        self.router = nn.Linear(config.hidden_size, config.num_experts, bias=False)
        self.experts = nn.ModuleList(FeedForward(config) for _ in range(config.num_experts))

    def forward(self, x: torch.Tensor, real: torch.Tensor | None = None) -> torch.Tensor:
        """Send each token through its experts: (..., H) to (..., H); `real` (...) is 0 where there is padding."""
        tokens = x.flatten(0, -2)  # (N, H)
        scores = self.router(tokens).float()  # (N, E)
        best, chosen = scores.topk(self.n_chosen, dim=-1)  # (N, k)
        shares = torch.softmax(best, dim=-1).to(x.dtype)
        self._record_balance(scores, chosen, real)
        mixed = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):  # each reads the tokens that chose it, at once
            token, place = (chosen == number).nonzero(as_tuple=True)
            mixed.index_add_(0, token, expert(tokens[token]) * shares[token, place, None])
        return mixed.view_as(x)

    def _record_balance(self, scores: torch.Tensor, chosen: torch.Tensor, real: torch.Tensor | None) -> None:
        if not self.training:
            return
        # computed also where nobody asks: activation checkpointing reads again, outside of the block that asks, and
        # wants the same operations
        loss = balance_loss(scores, chosen, None if real is None else real.flatten())
        losses = _balance.get()
        if losses is not None:
            losses.append(loss)


def balance_loss(
    scores: torch.Tensor, chosen: torch.Tensor, real: torch.Tensor | None = None
) -> torch.Tensor:
    """Return E sum_e f_e P_e: smallest, 1, when tokens are spread evenly over the experts.

    Parameters
    ----------
    scores : tensor of shape (N, E)
        The router's scores.
    chosen : int tensor of shape (N, k)
        The experts that each token was sent to.
    real : tensor of shape (N,), optional
        1 for a token, 0 for padding, which has no share; all are tokens when None.

    Returns
    -------
    tensor of shape ()

    References
    ----------
    Fedus et al. 2022, section 2.2, equations 4 to 6.

    Examples
    --------
    >>> balance_loss(torch.zeros(2, 2), torch.tensor([[0], [1]])).item()
    1.0
    """
    n_experts = scores.shape[-1]
    shares = scores.new_ones(len(scores)) if real is None else real.to(scores.dtype)
    shares = shares / shares.sum().clamp(min=1)
    places = scores.new_zeros(n_experts)
    places = (
        places.index_add(0, chosen.flatten(), shares.repeat_interleave(chosen.shape[1])) / chosen.shape[1]
    )
    return n_experts * (places * (shares[:, None] * torch.softmax(scores, dim=-1)).sum(dim=0)).sum()


def make_feed_forward(config: TransformerConfig) -> nn.Module:
    """Return the feed-forward layer that a configuration names."""
    return MixtureOfExperts(config) if config.num_experts > 1 else FeedForward(config)
