"""Risk: how much may be missed on the images at hand, so that a limit is kept on new ones."""

from __future__ import annotations

import math

import torch

__all__ = ["allowed_share", "hoeffding_bentkus", "images_needed"]


def allowed_share(images: int, alpha: float, delta: float | None = None) -> float:
    """Return the largest mean loss of the images at which that of new ones is at most ``alpha``.

    On average over draws of the images, it takes ``(n * loss + 1) / (n + 1) <= alpha``
    (Angelopoulos et al., *Conformal Risk Control*, 2022, Theorem 1). For all draws but a share
    of ``delta``, it takes a bound on the mean (:func:`hoeffding_bentkus`; Bates et al.,
    *Distribution-Free, Risk-Controlling Prediction Sets*, 2021). Losses lie between 0 and 1.
    Negative where there are fewer than :func:`images_needed`.

    Example:
        >>> allowed_share(images=99, alpha=0.1)  # 9 of 99, as in split conformal
        0.09090909090909091
        >>> round(allowed_share(images=99, alpha=0.1, delta=0.1), 4)
        0.0421
    """
    if delta is None:
        return ((images + 1) * alpha - 1) / images
    if hoeffding_bentkus(0.0, images, alpha) > delta:
        return -1.0
    holds, fails = 0.0, alpha
    while fails - holds > 1e-12:
        middle = (holds + fails) / 2
        if hoeffding_bentkus(middle, images, alpha) <= delta:
            holds = middle
        else:
            fails = middle
    return holds


def hoeffding_bentkus(loss: float, images: int, alpha: float) -> float:
    """Return a bound on the probability of a mean loss this low, where the true one is above ``alpha``.

    The smaller of Hoeffding's and Bentkus's bound, for losses between 0 and 1 (Bates et al. 2021, Sec. 3.1).

    Example:
        >>> round(hoeffding_bentkus(loss=0.0, images=22, alpha=0.1), 4)  # 0.9 ** 22
        0.0985
    """
    loss = min(loss, alpha)
    hoeffding = math.exp(-images * _divergence(loss, alpha))
    bentkus = math.e * _binomial_cdf(math.ceil(images * loss), images, alpha)
    return min(hoeffding, bentkus, 1.0)


def images_needed(alpha: float, delta: float | None = None) -> int:
    """Return how many images it takes to promise ``alpha``, on average or with confidence ``1 - delta``.

    Example:
        >>> images_needed(0.1), images_needed(0.1, delta=0.1)
        (9, 22)
    """
    exact = 1 / alpha - 1 if delta is None else math.log(delta) / math.log1p(-alpha)
    return max(1, math.ceil(exact - 1e-9))


def _divergence(p: float, q: float) -> float:
    """Return the Kullback-Leibler divergence of two coins, ``0 <= p <= q < 1``."""
    heads = p * math.log(p / q) if p > 0 else 0.0
    return heads + (1 - p) * math.log((1 - p) / (1 - q))


def _binomial_cdf(count: int, n: int, p: float) -> float:
    """Return the probability of at most ``count`` heads in ``n`` tosses."""
    k = torch.arange(count + 1, dtype=torch.float64)
    chosen = math.lgamma(n + 1) - torch.lgamma(k + 1) - torch.lgamma(n - k + 1)
    return float(torch.logsumexp(chosen + k * math.log(p) + (n - k) * math.log1p(-p), 0).exp())
