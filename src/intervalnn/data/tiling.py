"""Tiling: predict inputs too large for memory tile by tile, with the result of the whole."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple, TypeVar

import torch
from rich.progress import track
from torch import Tensor

from intervalnn.data.halo import BLENDED, Halo, predicted_parts, rounded_up, short
from intervalnn.evaluation.cost import peak_bytes
from intervalnn.prediction import Method, Prediction

__all__ = ["Halo", "predict_tiled"]

T = TypeVar("T")


def predict_tiled(
    method: Method,
    x: Tensor,
    *,
    tile: int | Sequence[int] | None = None,
    halo: Halo | Sequence[Halo] | None = None,
    memory: int = 2**32,
    batch_size: int = 1,
    progress: bool = True,
) -> Prediction:
    """Return the prediction for a whole input, up to rounding, computed tile by tile.

    Each tile is as much wider than what is kept of it as the network looks around; at the borders of the input it
    ends where the input does, so that padding stays as it is. The network must have a limited receptive field, as a
    U-Net has. Attention, a mean over the image, and instance or group norm look everywhere, and are refused.

    Tiles go to the method's device one by one; the result is where ``x`` is. A calibration is applied to each
    tile: it must not be one by regions of the image.

    Args:
        method: Anything with ``predict(x)`` that maps an input to an output of its size.
        x: ``(batch, channels, *signal)``, in any number of dimensions.
        tile: The largest size of a tile with its halo, for all axes or for each; an axis that is no longer is not
            cut. By default as large as ``memory`` allows, cut along as few axes as pays off.
        halo: How far the network looks, for all axes or for each; measured by default. One that is too small
            spoils the edges of tiles, unnoticed.
        memory: Bytes that tensors may take while a tile is predicted, by an estimate.
        batch_size: How many samples to take at a time.
        progress: Whether to show a progress bar.

    Example:
        >>> model = torch.nn.Conv1d(1, 1, 3, padding=1).eval()
        >>> from intervalnn import IntervalNetwork
        >>> net = IntervalNetwork(model, layers="all")
        >>> x = torch.rand(1, 1, 1000)
        >>> p = predict_tiled(net, x, tile=200, progress=False)
        >>> torch.allclose(p.upper, net.predict(x).upper)
        True
    """
    if x.dim() < 3 or not x.is_floating_point() or not x.numel():
        raise ValueError(f"x must be numbers (batch, channels, *signal), got {tuple(x.shape)} of {x.dtype}")
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    tiles = _tiles(method, x, tile, halo, memory / batch_size)
    work = list(product((slice(i, i + batch_size) for i in range(0, len(x), batch_size)), tiles))
    whole: dict[str, Tensor] = {}
    for samples, places in track(work, "predicting") if progress else work:
        seen, core, kept = zip(*places, strict=True)
        for name, part in predicted_parts(method, x[samples, :, *seen]).items():
            if name not in whole:
                shape = (len(x), part.shape[1], *x.shape[2:])
                whole[name] = torch.empty(shape, dtype=part.dtype, device=x.device)
            whole[name][samples, :, *core] = part[..., *kept]
    return Prediction(**whole)


class _Place(NamedTuple):
    """Where a tile lies along an axis, what of the whole it stands for, and where in the tile that is."""

    tile: slice
    core: slice
    kept: slice


def _tiles(
    method: Method, x: Tensor, tile: int | Sequence[int] | None, halo: Halo | Sequence[Halo] | None, memory: float
) -> list[tuple[_Place, ...]]:
    """Return where all tiles lie, along each axis."""
    sizes = tuple(x.shape[2:])
    given = [None] * len(sizes) if halo is None else _each(halo, len(sizes), "halo")
    halos: list[Halo | None] = [None] * len(sizes)
    if tile is None:
        cores = _fitted(method, x, given, halos, memory)
    else:
        cores = list(sizes)
        for axis, most in enumerate(_each(tile, len(sizes), "tile")):
            if most < sizes[axis]:
                around = halos[axis] = given[axis] or Halo.measure(method, x, axis)
                cores[axis] = _core(most, around, axis)
    return list(product(*(list(_places(*along)) for along in zip(sizes, cores, halos, strict=True))))


def _fitted(
    method: Method, x: Tensor, given: Sequence[Halo | None], halos: list[Halo | None], memory: float
) -> Sequence[int]:
    """Return how much to keep of the largest tiles for the memory, and fill in the halos of the axes that are cut."""
    sizes, problem = tuple(x.shape[2:]), ""
    for axis in sorted(range(len(sizes)), key=lambda axis: -sizes[axis]):
        try:
            halo = halos[axis] = given[axis] or Halo.measure(method, x, axis)
        except ValueError as error:
            problem = problem or str(error)
            continue
        cores = _largest(sizes, halos, memory / _bytes(method, x, halo.stride))
        if cores and cores[axis] >= halo.before + halo.after:  # so that another cut would not make less work
            return cores
    if not any(halos) and math.prod(sizes) <= memory / _bytes(method, x, 1):
        return sizes
    if not any(halos) or not cores:
        raise ValueError(problem or "no tile is small enough for this memory, because the network looks too far")
    return cores


def _places(size: int, core: int, halo: Halo | None) -> Iterator[_Place]:
    before, after = (halo.before, halo.after) if halo else (0, 0)
    for start in range(0, size, core):
        stop = min(start + core, size)
        first = max(start - before, 0)
        yield _Place(slice(first, min(stop + after, size)), slice(start, stop), slice(start - first, stop - first))


def _core(tile: int, halo: Halo, axis: int) -> int:
    """Return how much of a tile is kept."""
    around = halo.before + halo.after
    if tile < around + halo.stride:
        raise ValueError(
            f"along axis {axis} of the signal a tile must have at least {around + halo.stride} positions, for "
            f"cuts spoil {around} and lie at multiples of {halo.stride}, got {tile}; blend smaller ones: {BLENDED}"
        )
    return (tile - around) // halo.stride * halo.stride


def _largest(sizes: Sequence[int], halos: Sequence[Halo | None], most: float) -> list[int]:
    """Return how much of each tile to keep so that none has more positions than ``most``, if anything."""
    if math.prod(sizes) <= most:
        return list(sizes)
    axes = sorted((axis for axis, halo in enumerate(halos) if halo), key=lambda axis: -sizes[axis])
    found = []
    for count in range(1, len(axes) + 1):  # the longest axis into thin slabs, or more axes into larger pieces
        for core in range(max(sizes), 0, -16):
            cores, tiles, work = list(sizes), list(sizes), 1
            for axis in axes[:count]:
                halo, size = halos[axis], sizes[axis]
                assert halo is not None
                pieces = math.ceil(size / rounded_up(core, halo.stride))
                cores[axis] = rounded_up(math.ceil(size / pieces), halo.stride)
                tiles[axis] = min(cores[axis] + halo.before + halo.after, size)
                work *= pieces
            if math.prod(tiles) <= most:
                found.append((work * math.prod(tiles), cores))
                break
    return min(found)[1] if found else []


def _bytes(method: Method, x: Tensor, stride: int) -> float:
    """Return an estimate of what the prediction of one position takes."""
    sizes = [short(size, stride) for size in x.shape[2:]]
    part = x[:1, :, *map(slice, sizes)]
    predicted_parts(method, part)  # once before, for what is prepared at the first call
    device: torch.device = getattr(method, "device", x.device)
    return peak_bytes(lambda: predicted_parts(method, part), device.type) / math.prod(sizes)


def _each(given: T | Sequence[T], axes: int, name: str) -> Sequence[T]:
    """Return what is given for each axis."""
    each = given if isinstance(given, Sequence) else [given] * axes
    if len(each) != axes:
        raise ValueError(f"{name} must be one for all {axes} axes of the signal or one for each, got {given}")
    return each
