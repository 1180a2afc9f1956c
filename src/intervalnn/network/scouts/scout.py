"""Scouts: gaps with features of their own, from a small network that is trained beside the underlying model.

A scout reads values that the model computes on the way, and the prediction, and puts out channels ``h >= 0``. These
enter the output by weights that are zero, inside intervals from ``-D`` to ``U``::

    y = model(x) + 0 * h(x)
    below = below of model(x) + D * h(x)
    above = above of model(x) + U * h(x)

So the prediction stays what it is. For every choice of weights inside their intervals, zero among them, the output
of the widened model lies within the bounds. What the scout reads are points, as in a frozen copy of the model; its own
weights are points too.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from intervalnn.interval import Interval, capped, cut
from intervalnn.network.gaps import Gaps
from intervalnn.network.scouts.reading import Reader, mixed
from intervalnn.network.scouts.taps import Fit
from intervalnn.rules.arithmetic import point_of
from intervalnn.torch_private import BatchNorm, Dropout, shallow_copy

__all__ = ["Features", "Lies", "Looking", "Scout", "Widening"]

Lies = Literal["", "folded", "vector"]


@dataclass(frozen=True, slots=True)
class Scout:
    """What scout a network gets; the usual one is what measured best over several tasks.

    Attributes:
        width: How many channels it has.
        depth: How many layers lie between the values that it reads and the channels that it puts out.
        taps: How many values of the model it reads beside the prediction, from all depths; or the names of the
            layers that take them.
        seed: Of its weights before training.
        body: A module of your own in the place of its layers: from ``width`` channels at the positions of the output to
            any number of channels there, of which the positive parts count. Every output gets a copy.
    """

    width: int = 48
    depth: int = 4
    taps: int | tuple[str, ...] = 4
    seed: int = 0
    body: nn.Module | None = None

    def __post_init__(self) -> None:
        counts = {"width": self.width, "taps": self.taps if isinstance(self.taps, int) else 1}
        for name, count in counts.items():
            if count < 1:
                raise ValueError(f"{name} of a scout must be at least 1, got {count}")
        if self.depth < 0:
            raise ValueError(f"depth of a scout must not be negative, got {self.depth}")
        if not isinstance(self.body, nn.Module | None):
            raise TypeError(f"body of a scout must be a torch.nn.Module, got a {type(self.body).__name__}")
        for name, part in () if self.body is None else self.body.named_modules():
            if isinstance(part, Dropout) or (isinstance(part, BatchNorm) and part.running_mean is not None):
                raise ValueError(
                    f"the body of a scout must do the same in training as in use, and its '{name}', a "
                    f"{type(part).__name__}, does not; leave it out, or take a GroupNorm or a LayerNorm for it"
                )


class Features(nn.Module):
    """Non-negative channels at each position of an output, from points.

    Each value is standardised, projected to the scout's width, and resampled to the positions of the output. The layers
    of the scout take the sum of these. The last channel is one everywhere.

    Args:
        fits: How the values are brought to the output; the last one is the prediction itself.
        scout: Width, depth and seed.
        dims: How many dimensions the positions have, with channels behind the batch; 0 where channels stand last.
        channels: How many come out of a body of the user's own.
    """

    def __init__(self, fits: Sequence[Fit], scout: Scout, dims: int, channels: int | None = None) -> None:
        super().__init__()
        self.scout, self.fits, self.dims = scout, tuple(fits), dims
        self.channels = 1 + (scout.width if channels is None else channels)
        generator = torch.Generator().manual_seed(scout.seed)
        self.readers = nn.ModuleList(Reader(fit, scout.width, generator) for fit in fits)
        self.weights = nn.ParameterList()
        self.biases = nn.ParameterList()
        self.body = None if scout.body is None else copy.deepcopy(scout.body).float()
        for _ in range(scout.depth if scout.body is None else 0):
            weight = torch.empty(scout.width, scout.width, *[3] * dims)
            self.weights.append(nn.init.kaiming_uniform_(weight, nonlinearity="relu", generator=generator))
            self.biases.append(torch.zeros(scout.width))

    def forward(self, point: Tensor, *taps: Tensor) -> Tensor:
        """Return the channels ``h``."""
        read = [reader(value, point, self.dims) for reader, value in zip(self.readers, (*taps, point), strict=True)]
        h = functional.relu(sum(read[1:], read[0]) / math.sqrt(len(read)))
        for weight, bias in zip(self.weights, self.biases, strict=True):
            h = functional.relu(mixed(h, weight, bias, self.dims))
        if self.body is not None:
            h = functional.relu(self.body(h))
        return torch.cat((h, torch.ones_like(h.narrow(self.channel_dim, 0, 1))), self.channel_dim)

    @property
    def channel_dim(self) -> int:
        """Which dimension counts the channels."""
        return 1 if self.dims else -1

    def sums(self, point: Tensor, *taps: Tensor) -> list[Tensor]:
        """Return count, sum and sum of squares of each value, by channel."""
        return [reader.sums(value) for reader, value in zip(self._readers(), (*taps, point), strict=True)]

    def normalise(self, sums: Sequence[Tensor]) -> None:
        """Standardise the values from now on, by mean and size from what :meth:`sums` has summed up."""
        for reader, own in zip(self._readers(), sums, strict=True):
            reader.normalise(own)

    def _readers(self) -> Iterator[Reader]:
        return (reader for reader in self.readers if isinstance(reader, Reader))


class Widening(nn.Module):
    """A scout, and the gaps by which its channels open the bounds of one output.

    Args:
        features: From points to channels ``h >= 0``.
        channels: How many channels the output has.
        dims: How many dimensions its positions have, with channels behind the batch; 0 where channels stand last.
        lies: How the output lies: as it is (``""``), without a dimension for its only channel (``"folded"``), or as a
            vector that was given more dimensions (``"vector"``).
        low: The smallest value that the output can have.
        high: The largest.
    """

    def __init__(
        self,
        features: Features,
        channels: int,
        dims: int,
        *,
        lies: Lies = "",
        low: float = -math.inf,
        high: float = math.inf,
    ) -> None:
        super().__init__()
        self.features, self.dims, self.lies, self.low, self.high = features, dims, lies, low, high
        self.gaps = Gaps(torch.zeros(channels, features.channels))

    @property
    def taps(self) -> tuple[str, ...]:
        """Names of the layers that take what the scout reads, beside the output itself."""
        return tuple(fit.layer for fit in self.features.fits[:-1])

    def settings(self) -> dict[str, Any]:
        """Return all but the tensors, as plain values."""
        return {
            "scout": asdict(replace(self.features.scout, body=None)),
            "body": None if self.features.body is None else self.features.channels - 1,
            "reads": [asdict(fit) for fit in self.features.fits],
            "channels": self.gaps.shape[0],
            "dims": self.dims,
            "lies": self.lies,
            "range": [end if math.isfinite(end) else None for end in (self.low, self.high)],
        }

    @staticmethod
    def from_settings(settings: Mapping[str, Any], body: nn.Module | None = None) -> Widening:
        """Return a scout whose tensors are still to be loaded, with its body, if that was the user's own."""
        taps, channels = settings["scout"]["taps"], settings.get("body")
        own = {"taps": taps if isinstance(taps, int) else tuple(taps), "body": body}
        scout = Scout(**settings["scout"] | own)
        reads = [Fit(**fit | {"window": tuple(fit["window"])}) for fit in settings["reads"]]
        low, high = settings["range"]
        return Widening(
            Features(reads, scout, settings["dims"], channels),
            settings["channels"],
            settings["dims"],
            lies=settings["lies"],
            low=-math.inf if low is None else low,
            high=math.inf if high is None else high,
        )

    def with_gaps(self, others: Mapping[Gaps, Gaps]) -> Widening:
        """Return the same scout with other gaps in the place of its own, if there are any for these."""
        other = shallow_copy(self)
        other.gaps = others.get(self.gaps, self.gaps)
        return other

    def forward(self, bounds: Interval | Tensor, *taps: Interval | Tensor) -> Interval:
        """Return the bounds, widened by the scout, which reads the points of the taps.

        With ``h >= 0``, a point output ``y`` and weights ``0`` in ``[-D, U]``::

            y - below - D * h  <=  y' + w * h  <=  y + above + U * h

        for all ``y'`` within the bounds and ``w`` within ``[-D, U]``. Where the model ends in a cut, its output stays
        in a range; the widened model ends in the same cut, so its bounds stay there too.
        """
        bounds = Interval.of(bounds)
        point = bounds.point.detach()
        output = self.unfolded(point)
        rank, dim = (self.dims + 2, 1) if self.dims else (output.dim(), -1)
        if output.dim() != rank or output.shape[dim] != self.gaps.shape[0]:
            raise ValueError(
                f"the scout was made for outputs with {self.gaps.shape[0]} channels, and this one has shape "
                f"{tuple(point.shape)}; give arguments like those of the first call, or take scout=False"
            )
        h = self.features(output, *(point_of(tap).detach() for tap in taps))
        own = self.gaps.around_zero()
        below, above = (self._opened(h, gap, bounds.below) for gap in (own.below, own.above))
        below, above = bounds.below + below, bounds.above + above
        exact = bounds.point.to(torch.promote_types(bounds.point.dtype, below.dtype))
        if self.low > -math.inf:
            below = capped(below, cut(exact - self.low).to(below.dtype))
        if self.high < math.inf:
            above = capped(above, cut(self.high - exact).to(above.dtype))
        return Interval(bounds.point, below, above)

    def unfolded(self, x: Tensor) -> Tensor:
        """Return an output with its channels in a dimension of their own."""
        if self.lies == "vector":
            return x.flatten(1)
        return x.unsqueeze(1 if self.dims else -1) if self.lies == "folded" else x

    def _opened(self, h: Tensor, gap: Tensor, like: Tensor) -> Tensor:
        """Return by how much one side opens."""
        opened = mixed(h, gap.reshape(*gap.shape, *[1] * self.dims), None, self.dims)
        return opened.reshape(like.shape).to(like.dtype)


class Looking(nn.Module):
    """Replaces a scout for one pass, and sums up the values that the scout reads.

    Attributes:
        sums: Count, sum and sum of squares of each value, by channel.
    """

    def __init__(self, widening: Widening) -> None:
        super().__init__()
        self.widening = widening
        self.sums: list[Tensor] = []

    def forward(self, bounds: Interval | Tensor, *taps: Interval | Tensor) -> Interval | Tensor:
        """Look, and return the bounds as they are."""
        point = self.widening.unfolded(point_of(bounds))
        self.sums = self.widening.features.sums(point, *map(point_of, taps))
        return bounds
