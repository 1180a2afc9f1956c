"""Halo: how far a network looks around, measured, and so how much of a tile a cut spoils."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import NamedTuple

import torch
from torch import Tensor

from intervalnn.prediction import Method, one

__all__ = ["BLENDED", "Halo", "predicted_parts", "rounded_up", "short"]

_STRIDES = (16, 32, 48, 64, 96, 128)  # tried in turn; a multiple of the network's own stride does as well
_REFUSALS = (RuntimeError, ValueError, TypeError, AssertionError)
BLENDED = "predict_volume(..., overlap=0.25), on the command line --overlap 0.25"


@dataclass(frozen=True, slots=True)
class Halo:
    """How much of a tile a cut spoils along one axis, and where cuts may lie.

    Attributes:
        before: Positions spoiled behind a cut at the start of a tile.
        after: Positions spoiled in front of a cut at its end.
        stride: Tiles start at multiples of it: of all strides of the network multiplied.
    """

    before: int
    after: int
    stride: int = 1

    def __post_init__(self) -> None:
        if self.before < 0 or self.after < 0 or self.stride < 1:
            raise ValueError(f"a halo must not be negative, nor its stride below 1, got {self}")
        for name in ("before", "after"):  # so that every cut lies at a multiple of the stride
            object.__setattr__(self, name, rounded_up(getattr(self, name), self.stride))

    @staticmethod
    def measure(method: Method, x: Tensor, axis: int) -> Halo:
        """Return what the method itself shows: NaN in an input reaches all outputs that depend on it.

        NaN passes through a ReLU or a maximum, where a finite probe might be hidden. The prediction of a part must then
        equal that of the whole, halo aside. This second check finds strides, and methods that know the position.

        Args:
            method: Anything with ``predict(x)`` that maps ``(batch, channels, *signal)`` to that size.
            x: An input; only its shape, dtype and device count.
            axis: Axis of the signal, from 0.
        """
        where = f"along axis {axis} of the signal"
        for stride in _STRIDES:
            try:
                reach = _reach(method, x, axis, stride)
            except _REFUSALS as error:  # of a network with another stride, for which the size is wrong
                if stride == _STRIDES[-1]:
                    raise ValueError(f"no part {where} could be predicted: {error}; give the halo") from error
                continue
            if reach is None:
                raise ValueError(
                    f"{where} the network looks too far for tiles, or at the whole image (attention, a mean over it, "
                    "circular padding, instance or group norm, a Fourier transform), so that no tile is predicted as "
                    f"in the whole; predict the whole, or blend patches: {BLENDED}"
                )
            end = reach.probe.shape[2] // stride * stride - stride
            if _repeats(method, reach, reach.probe[:2, :, stride:end], axis, stride):
                moves = reach.even and _repeats(method, reach, reach.probe[:2].roll(-1, 2), axis, 1)
                return Halo(reach.before, reach.after, 1 if moves else stride)
        raise ValueError(
            f"{where} a part is predicted otherwise than in the whole, wherever it is cut: the method is random, or "
            f"knows where it is in the image, or has a stride that divides none of {', '.join(map(str, _STRIDES))}; "
            f"give the halo in the last case, blend patches in the others: {BLENDED}"
        )


class _Reach(NamedTuple):
    """How much a cut spoils on either side, and the probe that shows it, with the axis in front.

    Its samples: as it is; NaN at one position, whose trace has to move along with a cut; NaN along a stride.
    """

    before: int
    after: int
    even: bool  # every position alone spoils as much as a stride of them
    probe: Tensor
    point: Tensor
    nan: Tensor


def _reach(method: Method, x: Tensor, axis: int, stride: int) -> _Reach | None:
    """Return how far the network looks along an axis, or nothing if that is too far."""
    size = x.shape[2 + axis]
    length = 8 * stride
    longest = 4096 if x.dim() == 3 else 1024  # for which attention still fits into memory
    while length <= min(4 * max(size, 4 * stride), longest):
        probe, middle = _probe(x, axis, length + size % stride, stride), length // 2
        probe[1, :, middle] = math.nan
        probe[2, :, middle : middle + stride] = math.nan
        point, nan = _traced(method, probe, axis)
        spoiled = (nan[2] | _changed(method, x, probe, axis, middle, stride)).nonzero().flatten().tolist() or [middle]
        before, after = max(spoiled[-1] + 1 - middle - stride, 0), max(middle - spoiled[0], 0)
        if 2 * (before + after + 3 * stride) <= length:  # so that both ends of a trace lie outside the halos
            even = bool(nan[1, middle - after] and nan[1, middle + before])
            if _goes_round(method, probe, axis, stride):
                return None
            return _Reach(before, after, even, probe, point, nan)
        length *= 2
    return None


def _changed(method: Method, x: Tensor, probe: Tensor, axis: int, middle: int, stride: int) -> Tensor:
    """Say where outputs change with a stride of inputs that leaves the range of ``x``: comparisons swallow NaN."""
    low, high = x.nan_to_num().aminmax()
    probe = probe[:1].repeat(4, *[1] * (probe.dim() - 1))
    probe[2, :, middle : middle + stride] = 2 * low - high - 1
    probe[3, :, middle : middle + stride] = 2 * high - low + 1
    point, _ = _traced(method, probe, axis)
    moved = (point[1:] - point[:1]).abs().transpose(1, 2).flatten(2).amax(2)
    rounding = 64 * torch.finfo(point.dtype).eps * point.abs().amax()
    draws = (moved[0] > rounding).any()  # at some place; at others it may draw the same twice. Told apart elsewhere
    return (moved[1:] > rounding).any(0) & ~draws


def _goes_round(method: Method, probe: Tensor, axis: int, stride: int) -> bool:
    """Say whether one end of a probe influences the other, as with circular padding, which tiles cannot reproduce."""
    probe = probe[:1].repeat(3, *[1] * (probe.dim() - 1))
    probe[1, :, :stride] = math.nan
    probe[2, :, -stride:] = math.nan
    _, nan = _traced(method, probe, axis)
    half = nan.shape[1] // 2
    return bool(nan[1, half:].any() or nan[2, :half].any())


def _repeats(method: Method, reach: _Reach, moved: Tensor, axis: int, step: int) -> bool:
    """Tell whether a probe that begins ``step`` positions later is predicted the same but for the halo."""
    try:
        point, nan = _traced(method, moved, axis)
    except _REFUSALS:
        return False
    halo = Halo(reach.before, reach.after, step)
    part = slice(halo.before, nan.shape[1] - halo.after - step)
    whole = slice(part.start + step, part.stop + step)
    error = (point[0, :, part] - reach.point[0, :, whole]).abs().max()
    eps = torch.finfo(point.dtype).eps
    rounding = 64 * eps if step == 1 else eps**0.5  # strides other than 1 show in NaN, and need not in values
    return bool(error <= rounding * reach.point[0].abs().max()) and nan[1, part].equal(reach.nan[1, whole])


def _probe(x: Tensor, axis: int, length: int, stride: int) -> Tensor:
    """Return three times the same random sample, with one axis in front, that long, and the others short."""
    sizes = [short(size, stride) for size in x.shape[2:]]
    del sizes[axis]
    shape = (1, x.shape[1], length, *sizes)
    values = torch.rand(shape, generator=torch.Generator().manual_seed(0))
    return values.to(x.device, x.dtype).repeat(3, *[1] * (len(shape) - 1))


def _traced(method: Method, probe: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """Return the points, with one axis in front, and where along it NaN in an input shows.

    Gaps that are NaN become infinite at an output. So outputs count that are not finite any more, but are finite in the
    first sample, which has no NaN.
    """
    # Other ways to convolve mix positions that do not depend on each other, which NaN would show.
    with torch.backends.cudnn.flags(enabled=False), torch.backends.nnpack.flags(enabled=False):
        parts = predicted_parts(method, probe.movedim(2, 2 + axis))
    first = {name: part.movedim(2 + axis, 2) for name, part in parts.items()}
    lost = (~part.isfinite() & part[:1].isfinite() for part in first.values())
    nan = torch.stack([part.transpose(1, 2).flatten(2).any(2) for part in lost]).any(0)
    return first["point"], nan


def predicted_parts(method: Method, x: Tensor) -> dict[str, Tensor]:
    """Return the parts of a prediction by name."""
    with torch.no_grad():
        prediction = one(method.predict(x.to(getattr(method, "device", x.device))))
    if prediction.point.dim() != x.dim() or prediction.point.shape[2:] != x.shape[2:]:
        raise ValueError(
            f"the prediction must have the size of x, (batch, channels, {', '.join(map(str, x.shape[2:]))}), "
            f"got {tuple(prediction.point.shape)}"
        )
    parts = {field.name: getattr(prediction, field.name) for field in fields(prediction)}
    return {name: part for name, part in parts.items() if part is not None}


def short(size: int, stride: int) -> int:
    """Return a small size that a network which takes ``size`` takes as well."""
    return min(size, rounded_up(32, 2 * stride) + size % stride)


def rounded_up(size: int, stride: int) -> int:
    """Return the next multiple of the stride."""
    return math.ceil(size / stride) * stride
