"""Fourier transforms, which are linear: the signed part by the transform itself, the sizes by matrices."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval, cut
from intervalnn.rules.mirrored import mirrored
from intervalnn.table import aten, rule


def _scale(normalization: int, n: int) -> float:
    """Return the factor that each of torch's normalisations stands for."""
    return {0: 1.0, 1: 1 / math.sqrt(n), 2: 1 / n}[normalization]


def _sizes(n: int, outputs: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Return the sizes of the cosines and sines of a transform, ``(outputs, n)``."""
    k, j = torch.arange(outputs, device=like.device), torch.arange(n, device=like.device)
    angle = torch.outer(k, j).remainder(n).to(torch.float64) * (2 * math.pi / n)
    return angle.cos().abs().to(like.dtype), angle.sin().abs().to(like.dtype)


def _along(matrix: Tensor, x: Tensor, dim: int) -> Tensor:
    return (x.transpose(dim, -1) @ matrix.mT).transpose(dim, -1)


def _spread(re: Tensor, im: Tensor | None, dim: int, outputs: int) -> tuple[Tensor, Tensor]:
    """Bound how far sums of half widths reach in the real and in the imaginary part, along one axis."""
    cosines, sines = _sizes(re.size(dim), outputs, re)
    new_re, new_im = _along(cosines, re, dim), _along(sines, re, dim)
    if im is not None:
        new_re, new_im = new_re + _along(sines, im, dim), new_im + _along(cosines, im, dim)
    return new_re, new_im


def _halves(x: Interval) -> tuple[Tensor, Tensor]:
    dtype = x.dtype
    below, above = x.below.to(dtype), x.above.to(dtype)
    return (above + below) / 2, (above - below) / 2


def _around(point: Tensor, even: Tensor, odd: Tensor) -> Interval:
    """Return the interval that reaches ``even + odd`` above and ``even - odd`` below the point."""
    if point.is_complex():
        sides = mirrored(torch.view_as_real(even), torch.view_as_real(odd))
        above, below = (torch.view_as_complex(cut(gap)) for gap in sides)
    else:
        above, below = (cut(gap) for gap in mirrored(even, odd))
    return Interval(point, below, above)


def _size(x: Interval, dims: list[int]) -> int:
    return math.prod(x.size(d) for d in dims)


@rule(aten._fft_r2c)
def real_to_complex(fn: Any, x: Interval, dims: list[int], normalization: int, onesided: bool) -> Interval:
    """Bound the spectrum of a real signal."""
    half, difference = _halves(x)
    re: Tensor = half
    im: Tensor | None = None
    for dim in reversed(dims):
        last = dim == dims[-1]
        n = x.size(dim)
        re, im = _spread(re, im, dim, n // 2 + 1 if onesided and last else n)
    assert im is not None
    scale = _scale(normalization, _size(x, dims))
    even = torch.complex(re, im) * scale
    return _around(fn(x.point, dims, normalization, onesided), even, fn(difference, dims, normalization, onesided))


@rule(aten._fft_c2c, complexes=True)
def complex_to_complex(fn: Any, x: Interval, dims: list[int], normalization: int, forward: bool) -> Interval:
    """Bound the spectrum of a complex signal, or the signal of a spectrum."""
    half, difference = _halves(x)
    re, im = half.real, half.imag
    for dim in dims:
        re, im = _spread(re, im, dim, x.size(dim))
    even = torch.complex(re, im) * _scale(normalization, _size(x, dims))
    return _around(fn(x.point, dims, normalization, forward), even, fn(difference, dims, normalization, forward))


@rule(aten._fft_c2r, complexes=True)
def complex_to_real(fn: Any, x: Interval, dims: list[int], normalization: int, n: int) -> Interval:
    """Bound the real signal of one half of its spectrum."""
    half, difference = _halves(x)
    re, im = half.real, half.imag
    for dim in dims[:-1]:
        re, im = _spread(re, im, dim, x.size(dim))
    last = dims[-1]
    cosines, sines = (m[:, : x.size(last)] for m in _sizes(n, n, re))
    twice = torch.full((x.size(last),), 2.0, dtype=re.dtype, device=re.device)  # each bin stands for its mirror too
    twice[0] = 1.0
    if n % 2 == 0:
        twice[-1] = 1.0
    even = _along(cosines * twice, re, last) + _along(sines * twice, im, last)
    even = even * _scale(normalization, n * _size(x, dims[:-1]))
    return _around(fn(x.point, dims, normalization, n), even, fn(difference, dims, normalization, n))
