"""Where a token stands: attention by itself is blind to order, so order has to come in from outside.

Added to the embeddings: sinusoidal (Vaswani et al. 2017, section 3.5) and learned (Gehring et al. 2017, "Convolutional
Sequence to Sequence Learning", section 3.1). Turning queries and keys: rotary (Su et al. 2021, "RoFormer", section
3.4.2). Added to the scores: ALiBi (Press et al. 2022, "Train Short, Test Long", section 3) and relative buckets (Raffel
et al. 2020, "T5", section 2.1). All but the learned ones are functions of the position, without parameters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from .masks import distances

BASE = 10_000.0


def sinusoidal(
    positions: torch.Tensor, width: int, *, interleaved: bool = True, dtype: torch.dtype = torch.float32
) -> torch.Tensor:
    """Return sines and cosines of the positions at falling frequencies.

    PE(p, 2 i) = sin(p / 10000^(2 i / H)) and PE(p, 2 i + 1) = cos of the same angle.

    Parameters
    ----------
    positions : int tensor of shape (...)
        Positions, from 0.
    width : int
        H, even.
    interleaved : bool, default=True
        Sines at even and cosines at odd places, as the paper has it; else all sines first, as in its code.
    dtype : torch.dtype, default=torch.float32
        What is wanted; angles are computed in at least float32.

    Returns
    -------
    tensor of shape (..., H)

    References
    ----------
    Vaswani et al. 2017, section 3.5.

    Examples
    --------
    >>> sinusoidal(torch.tensor([0, 1]), 4)
    tensor([[0.0000, 1.0000, 0.0000, 1.0000],
            [0.8415, 0.5403, 0.0100, 0.9999]])
    """
    angles = _angles(positions, width, BASE)  # (..., H / 2)
    parts = (angles.sin(), angles.cos())
    table = torch.stack(parts, dim=-1).flatten(-2) if interleaved else torch.cat(parts, dim=-1)
    return table.to(dtype)


def _angles(positions: torch.Tensor, width: int, base: float) -> torch.Tensor:
    """Return p / base^(2 i / width) for i < width / 2."""
    steps = torch.arange(0, width, 2, device=positions.device, dtype=torch.float32)
    return positions[..., None].float() * base ** (-steps / width)


@dataclass(frozen=True)
class Rotation:
    """Cosines and sines of the angles by which tokens are turned, (B or 1, 1, T, d / 2) each."""

    cosines: torch.Tensor
    sines: torch.Tensor

    def first(self, n_tokens: int, layout: dict[str, Any]) -> Rotation:
        """Return those of the first token of each document of a packed row: the only queries of its last layer."""
        starts = layout["packed_layout"].starts
        assert len(starts) == n_tokens
        return Rotation(self.cosines[:, :, starts], self.sines[:, :, starts])


def rotary(
    positions: torch.Tensor, head_dim: int, base: float = BASE, dtype: torch.dtype = torch.float32
) -> Rotation:
    """Return the angles p / base^(2 i / d) by which the i-th pair of a head's dimensions is turned.

    Parameters
    ----------
    positions : int tensor of shape (B or 1, T)
        Positions, from 0.
    head_dim : int
        d, even.
    base : float, default=10000.0
        Larger ones turn more slowly.
    dtype : torch.dtype, default=torch.float32
        What is wanted; angles are computed in float32.

    Returns
    -------
    Rotation

    References
    ----------
    Su et al. 2021, section 3.4.2, equation 34.

    Examples
    --------
    >>> rotary(torch.tensor([[0, 1]]), 4).cosines.shape
    torch.Size([1, 1, 2, 2])
    """
    angles = _angles(positions, head_dim, base)[:, None]  # one for all heads
    return Rotation(angles.cos().to(dtype), angles.sin().to(dtype))


def rotate(x: torch.Tensor, rotation: Rotation) -> torch.Tensor:
    """Turn the pairs (x_i, x_(i + d/2)) of each head: the product of two turned vectors knows their distance only.

    The paper pairs neighbours, (x_2i, x_(2i + 1)); pairing halves is the same up to the order of dimensions, and what
    Llama's weights are made for.

    Parameters
    ----------
    x : tensor of shape (B, heads, T, d)
        Queries or keys.
    rotation : Rotation
        The angles.

    Returns
    -------
    tensor of shape (B, heads, T, d)

    References
    ----------
    Su et al. 2021, section 3.4.2, equation 34.
    """
    a, b = x.chunk(2, dim=-1)
    cosines, sines = (
        rotation.cosines.to(x.dtype),
        rotation.sines.to(x.dtype),
    )  # autocast narrows projections only
    return torch.cat([a * cosines - b * sines, b * cosines + a * sines], dim=-1)


def alibi_slopes(n_heads: int) -> torch.Tensor:
    """Return each head's slope: 2^(-8 i / n) for i = 1 to n.

    Where n is no power of two, the slopes of the power below come first, then every other one of twice as many.

    Parameters
    ----------
    n_heads : int
        n.

    Returns
    -------
    tensor of shape (n_heads,)

    References
    ----------
    Press et al. 2022, section 3, and the code that they published.

    Examples
    --------
    >>> alibi_slopes(4).tolist()
    [0.25, 0.0625, 0.015625, 0.00390625]
    """
    power = 2 ** math.floor(math.log2(n_heads))
    slopes = [2.0 ** (-8.0 * i / power) for i in range(1, power + 1)]
    between = [2.0 ** (-8.0 * i / (2 * power)) for i in range(1, 2 * power + 1, 2)]
    return torch.tensor(slopes + between[: n_heads - power])


def alibi(n_queries: int, n_keys: int, n_heads: int, device: torch.device | None = None) -> torch.Tensor:
    """Return what is added to the scores: minus the slope of the head times the distance.

    Parameters
    ----------
    n_queries, n_keys : int
        T_q and T_k; the queries are the last ones of the keys.
    n_heads : int
        Heads.
    device : torch.device, optional
        Where it is wanted.

    Returns
    -------
    tensor of shape (1, heads, T_q, T_k)

    References
    ----------
    Press et al. 2022, section 3, for causal models; an encoder sees the same on the other side.

    Examples
    --------
    >>> alibi(1, 3, 1).tolist()
    [[[[-0.0078125, -0.00390625, -0.0]]]]
    """
    slopes = alibi_slopes(n_heads).to(device)
    return -slopes[None, :, None, None] * distances(n_queries, n_keys, device).abs()


class RelativeBias(nn.Module):
    """A learned number for each head and bucket of distances, added to the scores; one table for a whole stack.

    Half of the buckets hold one distance each, the others grow with its logarithm up to `max_distance`. Where later
    tokens are seen, each side has half of the buckets.

    Parameters
    ----------
    n_heads : int
        Heads.
    n_buckets : int
        Buckets.
    max_distance : int
        Distance from which on all share one bucket.
    bidirectional : bool
        Whether later tokens are seen.

    References
    ----------
    Raffel et al. 2020, section 2.1.

    Examples
    --------
    >>> bias = RelativeBias(n_heads=2, n_buckets=8, max_distance=16, bidirectional=True)
    >>> bias.buckets(torch.tensor([-20, -1, 0, 1])).tolist()
    [3, 1, 0, 5]
    """

    def __init__(self, n_heads: int, n_buckets: int, max_distance: int, *, bidirectional: bool) -> None:
        super().__init__()
        self.n_buckets = n_buckets
        self.max_distance = max_distance
        self.bidirectional = bidirectional
        self.table = nn.Embedding(n_buckets, n_heads)

    def buckets(self, distance: torch.Tensor) -> torch.Tensor:
        """Return the bucket of each distance, key minus query, of any shape."""
        n, first = self.n_buckets, torch.zeros_like(distance)
        if self.bidirectional:
            n //= 2
            first = (distance > 0).long() * n
            distance = distance.abs()
        else:
            distance = (-distance).clamp(min=0)
        exact = n // 2
        ratio = (distance.clamp(min=1).float() / exact).log() / math.log(self.max_distance / exact)
        far = (exact + (ratio * (n - exact)).long()).clamp(max=n - 1)
        return first + torch.where(distance < exact, distance, far)

    def forward(self, n_queries: int, n_keys: int) -> torch.Tensor:
        """Return the biases.

        Parameters
        ----------
        n_queries, n_keys : int
            T_q and T_k; the queries are the last ones of the keys.

        Returns
        -------
        tensor of shape (1, heads, T_q, T_k)
        """
        distance = distances(n_queries, n_keys, self.table.weight.device)
        bias: torch.Tensor = self.table(self.buckets(distance))  # (T_q, T_k, heads)
        return bias.permute(2, 0, 1)[None]
