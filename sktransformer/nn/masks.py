"""Which key a query may see, as boolean tensors: True is seen.

Formula: masked scores are set to minus infinity before the softmax, so that their weights are 0: Vaswani et al. 2017,
section 3.2.3. Shapes are (B, 1, T_q, T_k), with 1 where an axis makes no difference; None lets everything through.
"""

from __future__ import annotations

import torch


def padding_mask(attention_mask: torch.Tensor) -> torch.Tensor:
    """Hide padding keys from every query.

    Parameters
    ----------
    attention_mask : tensor of shape (B, T)
        1 for a token, 0 for padding.

    Returns
    -------
    bool tensor of shape (B, 1, 1, T)

    Examples
    --------
    >>> padding_mask(torch.tensor([[1, 1, 0]])).tolist()
    [[[[True, True, False]]]]
    """
    return attention_mask.bool()[:, None, None, :]


def causal_mask(
    n_queries: int, n_keys: int, *, window: int | None = None, device: torch.device | None = None
) -> torch.Tensor:
    """Hide keys that come after the query, or lie `window` tokens or more before it.

    The queries are the last ones of the keys: with a cache, fewer of them than keys.

    Parameters
    ----------
    n_queries, n_keys : int
        T_q and T_k.
    window : int, optional
        Tokens that a query sees, itself included (Beltagy et al. 2020, "Longformer", section 3.1; Jiang et al. 2023,
        "Mistral 7B", section 2); all when None.
    device : torch.device, optional
        Where the mask is wanted.

    Returns
    -------
    bool tensor of shape (1, 1, T_q, T_k)

    Examples
    --------
    >>> causal_mask(2, 3).int().tolist()
    [[[[1, 1, 0], [1, 1, 1]]]]
    """
    distance = distances(n_queries, n_keys, device)  # (T_q, T_k), positive for what follows
    seen = distance <= 0
    if window is not None:
        seen = seen & (distance > -window)
    return seen[None, None]


def window_mask(
    n_queries: int, n_keys: int, window: int, *, device: torch.device | None = None
) -> torch.Tensor:
    """Hide keys `window` tokens or more away from the query, on either side.

    Parameters
    ----------
    n_queries, n_keys : int
        T_q and T_k.
    window : int
        Tokens that a query sees to each side, itself included.
    device : torch.device, optional
        Where the mask is wanted.

    Returns
    -------
    bool tensor of shape (1, 1, T_q, T_k)

    References
    ----------
    Beltagy et al. 2020, "Longformer: The Long-Document Transformer", section 3.1.

    Examples
    --------
    >>> window_mask(3, 3, 2).int().tolist()
    [[[[1, 1, 0], [1, 1, 1], [0, 1, 1]]]]
    """
    return (distances(n_queries, n_keys, device).abs() < window)[None, None]


def distances(n_queries: int, n_keys: int, device: torch.device | None = None) -> torch.Tensor:
    """Return position of the key minus that of the query, (T_q, T_k); the last query stands at the last key."""
    keys = torch.arange(n_keys, device=device)
    return keys[None, :] - keys[n_keys - n_queries :, None]


def self_attention_mask(
    attention_mask: torch.Tensor | None,
    n_queries: int,
    n_keys: int,
    *,
    causal: bool,
    window: int | None = None,
    device: torch.device | None = None,
) -> torch.Tensor | None:
    """Combine what hides keys in self-attention; None where a plain, or a plainly causal, attention is meant.

    A causal attention of as many queries as keys without padding needs no tensor: the kernels have a flag for it.

    Parameters
    ----------
    attention_mask : tensor of shape (B, T_k) or None
        1 for a token, 0 for padding.
    n_queries, n_keys : int
        T_q and T_k.
    causal : bool
        Whether later tokens are hidden.
    window : int, optional
        Tokens that a query sees to each side, itself included.
    device : torch.device, optional
        Where the mask is wanted.

    Returns
    -------
    bool tensor of shape (B or 1, 1, T_q or 1, T_k), or None

    Examples
    --------
    >>> self_attention_mask(None, 4, 4, causal=True) is None
    True
    """
    if attention_mask is not None and attention_mask.ndim == 4:
        return attention_mask.bool()  # made by the caller, whole
    padding = None if attention_mask is None else padding_mask(attention_mask)
    if window is not None and window >= n_keys:
        window = None
    if causal and (padding is not None or window is not None or 1 < n_queries < n_keys):
        order = causal_mask(n_queries, n_keys, window=window, device=device)
        if padding is None:
            return order
        # padding on the left would see nothing at all, and a softmax over nothing is no number: let it see itself
        return (order & padding) | (distances(n_queries, n_keys, device) == 0)[None, None]
    if not causal and window is not None:
        near = window_mask(n_queries, n_keys, window, device=device)
        return near if padding is None else (near & padding) | (distances(n_queries, n_keys, device) == 0)
    return padding if not causal else None
