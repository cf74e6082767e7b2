"""A linear-chain conditional random field over the scores of a sequence's elements.

Formula: log p(y | x) = s(y) - log sum_y' exp s(y'), where s(y) is the start score of y_1, plus the emission of each
y_t, plus the transition score of each (y_t, y_t+1), plus the end score of y_T: Lafferty, McCallum and Pereira 2001,
"Conditional Random Fields: Probabilistic Models for Segmenting and Labeling Sequence Data", sections 3 and 4.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.autograd.function import once_differentiable

# Score of what may not be. Finite, so that a sequence without any allowed labelling still has a best one.
BARRED = -1e5
BLOCK = 1 << 22  # numbers of one block of pair probabilities, 16 MB in float32


class LinearChainCRF(nn.Module):
    """Scores of starts, transitions and ends, learned, with the exact sums and maxima over all labellings.

    Parameters
    ----------
    num_labels : int
        Number of labels, C.
    starts, ends : bool tensor of shape (C,), optional
        Which labels may come first and last; all when None.
    transitions : bool tensor of shape (C, C), optional
        Which label, by column, may follow which, by row; all when None.
    learning_rate_factor : float, default=1.0
        Factor on the learning rate of these scores, for whoever builds the optimizer: beside an encoder that is
        fine-tuned in small steps they would hardly move.

    References
    ----------
    Lafferty et al. 2001, sections 3 and 4; Rabiner 1989, "A Tutorial on Hidden Markov Models", section III (forward,
    backward and Viterbi recursions); Sutton and McCallum 2012, "An Introduction to Conditional Random Fields",
    section 4.1 (their use here).

    Examples
    --------
    >>> import torch
    >>> from sktransformer.nn.crf import LinearChainCRF
    >>> crf = LinearChainCRF(2, transitions=torch.tensor([[True, True], [True, False]]))
    >>> emissions, mask = torch.tensor([[[0.0, 3.0], [0.0, 2.0]]]), torch.ones(1, 2, dtype=torch.bool)
    >>> crf.decode(emissions, mask).tolist()
    [[1, 0]]
    """

    allowed_starts: torch.Tensor
    allowed_ends: torch.Tensor
    allowed_transitions: torch.Tensor

    def __init__(
        self,
        num_labels: int,
        *,
        starts: torch.Tensor | None = None,
        transitions: torch.Tensor | None = None,
        ends: torch.Tensor | None = None,
        learning_rate_factor: float = 1.0,
    ) -> None:
        super().__init__()
        self.learning_rate_factor = learning_rate_factor
        self.start_scores = nn.Parameter(torch.zeros(num_labels))
        self.transition_scores = nn.Parameter(torch.zeros(num_labels, num_labels))
        self.end_scores = nn.Parameter(torch.zeros(num_labels))
        for name, given, scores in (
            ("starts", starts, self.start_scores),
            ("transitions", transitions, self.transition_scores),
            ("ends", ends, self.end_scores),
        ):
            allowed = torch.ones_like(scores, dtype=torch.bool) if given is None else given.bool()
            if allowed.shape != scores.shape:
                raise ValueError(f"{name} must have shape {tuple(scores.shape)}, got {tuple(allowed.shape)}.")
            # what is allowed follows from the labels, so it is no part of the weights
            self.register_buffer(f"allowed_{name}", allowed, persistent=False)

    def forward(
        self,
        emissions: torch.Tensor,
        labels: torch.Tensor,
        mask: torch.Tensor,
        *,
        begins: torch.Tensor | None = None,
        ends: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return the log-likelihood of each sequence's labels.

        Parameters
        ----------
        emissions : tensor of shape (B, T, C)
            Score of each label at each element.
        labels : int64 tensor of shape (B, T)
            The labels; what stands beyond a sequence's end does not matter.
        mask : bool tensor of shape (B, T)
            True for the elements of a sequence, which stand first in its row. A row may be empty: its
            log-likelihood is 0.
        begins, ends : bool tensor of shape (B,), optional
            Whether the first (last) element of the row is that of a sequence, rather than of a piece cut out of a
            longer one, whose start (end) has no score; True when None.

        Returns
        -------
        tensor of shape (B,)
            Natural logarithms, at most 0.
        """
        lengths = _lengths(mask)
        start, transitions, end = self._scores(emissions, lengths, begins, ends)
        safe = torch.where(mask, labels, 0)  # (B, T)
        score = (emissions.gather(2, safe[..., None])[..., 0] * mask).sum(dim=1)
        score = score + start.gather(1, safe[:, :1])[:, 0] * mask[:, 0]
        pairs = transitions[safe[:, :-1], safe[:, 1:]]  # (B, T - 1)
        score = score + (pairs * mask[:, 1:]).sum(dim=1)
        last = safe.gather(1, (lengths - 1).clamp(min=0)[:, None])
        score = score + end.gather(1, last)[:, 0] * mask[:, 0]
        total: torch.Tensor = _LogPartition.apply(emissions, start, transitions, end, lengths)  # type: ignore[no-untyped-call]
        return torch.where(lengths > 0, score - total, 0.0)

    def log_partition(self, emissions: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the logarithm of the sum of exp(score) over all labellings of each sequence.

        Parameters
        ----------
        emissions : tensor of shape (B, T, C)
            As in `forward`.
        mask : bool tensor of shape (B, T)
            As in `forward`.

        Returns
        -------
        tensor of shape (B,)
            0 for an empty sequence.
        """
        lengths = _lengths(mask)
        scores = self._scores(emissions, lengths, None, None)
        total: torch.Tensor = _LogPartition.apply(emissions, *scores, lengths)  # type: ignore[no-untyped-call]
        return torch.where(lengths > 0, total, 0.0)

    @torch.no_grad()
    def marginals(self, emissions: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the probability of each label at each element, given the whole sequence.

        Parameters
        ----------
        emissions : tensor of shape (B, T, C)
            As in `forward`.
        mask : bool tensor of shape (B, T)
            As in `forward`.

        Returns
        -------
        tensor of shape (B, T, C)
            Rows sum to 1; those beyond a sequence's end are 0.
        """
        lengths = _lengths(mask)
        start, transitions, end = self._scores(emissions, lengths, None, None)
        forward, backward = _both_ways(emissions, start, transitions, end, lengths)
        logits = forward + backward - emissions  # (B, T, C): the emission is in both
        return torch.softmax(logits, dim=-1) * mask[..., None]

    @torch.no_grad()
    def decode(self, emissions: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the most probable labelling of each sequence (Viterbi).

        Parameters
        ----------
        emissions : tensor of shape (B, T, C)
            As in `forward`.
        mask : bool tensor of shape (B, T)
            As in `forward`.

        Returns
        -------
        int64 tensor of shape (B, T)
            Labels; 0 beyond a sequence's end.
        """
        lengths = _lengths(mask)
        start, transitions, end = self._scores(emissions, lengths, None, None)
        n_steps = emissions.shape[1]
        best = start + emissions[:, 0]  # (B, C): score of the best labelling up to here, by its last label
        steps, came_from = [best], []
        for t in range(1, n_steps):
            best, origin = (best[:, :, None] + transitions).max(dim=1)
            best = best + emissions[:, t]
            steps.append(best)
            came_from.append(origin)
        last = (lengths - 1).clamp(min=0)
        at_end = torch.stack(steps, dim=1)[torch.arange(len(last), device=last.device), last] + end
        label = at_end.argmax(dim=1)
        path = torch.zeros(mask.shape, dtype=torch.int64, device=emissions.device)
        for t in range(n_steps - 1, -1, -1):
            path[:, t] = label
            if t:  # a sequence that ended before t stays at its last label
                label = torch.where(t <= last, came_from[t - 1].gather(1, label[:, None])[:, 0], label)
        return path * mask

    def _scores(
        self,
        emissions: torch.Tensor,
        lengths: torch.Tensor,
        begins: torch.Tensor | None,
        ends: torch.Tensor | None,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the scores of starts (B, C), transitions (C, C) and ends (B, C), with what is barred."""
        start = self.start_scores.masked_fill(~self.allowed_starts, BARRED).to(emissions.dtype)
        transitions = self.transition_scores.masked_fill(~self.allowed_transitions, BARRED)
        end = self.end_scores.masked_fill(~self.allowed_ends, BARRED).to(emissions.dtype)
        shape = (len(lengths), len(start))
        starts, stops = start.expand(shape), end.expand(shape)
        if begins is not None:
            starts = torch.where(begins[:, None], starts, 0.0)
        if ends is not None:
            stops = torch.where(ends[:, None], stops, 0.0)
        return starts, transitions.to(emissions.dtype), stops


class _LogPartition(torch.autograd.Function):
    """The log-sum over all labellings, with its gradient in closed form.

    Its derivative by a score is the probability of what the score is of: of a label at an element, of a pair of labels,
    of a first or last label (Sutton and McCallum 2012, section 5.1). Forward and backward recursions run side by side
    in one loop, and the gradient is then a few products over all elements at once, instead of a second loop through
    autograd's graph.
    """

    @staticmethod
    def forward(
        ctx: Any,
        emissions: torch.Tensor,
        start: torch.Tensor,
        transitions: torch.Tensor,
        end: torch.Tensor,
        lengths: torch.Tensor,
    ) -> torch.Tensor:
        forward, backward = _both_ways(emissions, start, transitions, end, lengths)
        last = (lengths - 1).clamp(min=0)
        total = torch.logsumexp(forward[torch.arange(len(last), device=last.device), last] + end, dim=1)
        ctx.save_for_backward(emissions, transitions, lengths, forward, backward, total)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        emissions, transitions, lengths, forward, backward, total = ctx.saved_tensors
        n_steps = emissions.shape[1]
        inside = torch.arange(n_steps, device=lengths.device) < lengths[:, None]  # (B, T)
        weight = torch.where(inside, grad[:, None], 0.0)[..., None]
        logits = forward + backward - emissions
        shares = torch.softmax(logits, dim=-1) * weight  # (B, T, C)
        rows, last = torch.arange(len(lengths), device=lengths.device), (lengths - 1).clamp(min=0)
        pairs = inside[:, 1:]
        of_pairs = _pair_sums(
            (forward[:, :-1] - total[:, None, None])[pairs],
            backward[:, 1:][pairs],
            transitions,
            grad[:, None].expand_as(pairs)[pairs],
        )
        return shares, shares[:, 0], of_pairs, shares[rows, last], None


def _pair_sums(
    left: torch.Tensor, right: torch.Tensor, transitions: torch.Tensor, weights: torch.Tensor
) -> torch.Tensor:
    """Sum the weighted probabilities of pairs of neighbouring labels: (N, C) and (N, C) become (C, C)."""
    total = torch.zeros_like(transitions)
    size = max(1, BLOCK // transitions.numel())
    for a, b, weight in zip(left.split(size), right.split(size), weights.split(size), strict=True):
        pairs = torch.exp(a[:, :, None] + b[:, None, :] + transitions)  # (n, C, C)
        total += torch.einsum("n,nij->ij", weight, pairs)
    return total


def _both_ways(
    emissions: torch.Tensor,
    start: torch.Tensor,
    transitions: torch.Tensor,
    end: torch.Tensor,
    lengths: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return, for each element and label, the log-sums over what stands before it and behind it, (B, T, C) each.

    Both hold the element's own emission. The second is the first of the sequence read backwards, so that one loop of T
    steps over 2 B rows does for both.
    """
    n_rows, n_steps, _ = emissions.shape
    steps = torch.arange(n_steps, device=lengths.device)
    # a row backwards, from its own last element on; what stands beyond its end stays where it is
    turned = torch.where(steps < lengths[:, None], lengths[:, None] - 1 - steps, steps)  # (B, T)
    places = turned[..., None].expand_as(emissions)
    scores = torch.cat([emissions, emissions.gather(1, places)])  # (2 B, T, C)
    pairs = torch.stack([transitions, transitions.T])[:, None]  # (2, 1, C, C)
    sums = [torch.cat([start, end]) + scores[:, 0]]
    for t in range(1, n_steps):
        reached = sums[-1].unflatten(0, (2, n_rows))[..., None] + pairs  # (2, B, C, C)
        sums.append(torch.logsumexp(reached, dim=2).flatten(0, 1) + scores[:, t])
    forward, backward = torch.stack(sums, dim=1).chunk(2)
    return forward, backward.gather(1, places)


def _lengths(mask: torch.Tensor) -> torch.Tensor:
    if bool((mask[:, 1:] & ~mask[:, :-1]).any()):
        raise ValueError("mask must be True for the first elements of a row only; put each sequence's first.")
    return mask.sum(dim=1)
