"""Misses: how much is missed when the gaps are scaled by each of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from intervalnn.calibration.groups import Groups
from intervalnn.calibration.processes import largest, summed
from intervalnn.prediction import Prediction

__all__ = ["ROUNDING", "Missed", "factors", "missed", "needed"]

# A missed share is a sum of fractions: what rounding may add to it, in images.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Missed:
    """What the images of one group miss.

    Attributes:
        losses: Sum of the losses of the images at each of :func:`factors`, falling.
        images: How many images there are.
    """

    losses: Tensor
    images: int

    @property
    def unscaled(self) -> float:
        """The mean loss of the images with gaps as they are, not scaled."""
        return float(self.losses[factors() == 1.0]) / self.images


def factors() -> Tensor:
    """Return the factors to choose from: 0, and from 2**-20 to 2**20, 1024 to each octave.

    They are exact in float32, and a factor rounded up to the next is at most 0.07 % too large.
    """
    octaves = torch.arange(-20 * 1024, 20 * 1024 + 1, dtype=torch.float64) / 1024
    return torch.cat((torch.zeros(1), (2.0**octaves).float())).double()


def needed(prediction: Prediction, target: Tensor) -> Tensor:
    """Return the factor at which each component comes to lie inside; infinity where none will do.

    Example:
        >>> point, gap = torch.zeros(3), torch.tensor([0.5, 1.0, 0.0])
        >>> needed(Prediction(point, gap, gap, gap), torch.tensor([1.0, -3.0, 0.1]))
        tensor([2., 3., inf], dtype=torch.float64)
    """
    distance = target.double() - prediction.point.double()
    gap = torch.where(distance > 0, prediction.above, prediction.below).double()
    return torch.where(distance == 0, 0.0, distance.abs() / gap)


def missed(pairs: Iterable[tuple[Prediction, Tensor]], groups: Groups, *, alpha: float | None = None) -> list[Missed]:
    """Return what each group misses, over the images of all processes.

    The loss of an image is the share of its components missed, whatever its size; or, given
    ``alpha``, whether that share is more than ``alpha``. Of the images only a histogram is kept, with a bin for each
    factor and a last bin for components that no factor covers.
    """
    histograms: dict[int, Tensor] = {}
    images: dict[int, int] = {}
    grid = factors()
    for prediction, target in pairs:
        grid = grid.to(target.device)
        place = torch.bucketize(needed(prediction, target), grid).reshape(len(target), -1)
        group = groups(prediction).reshape(place.shape)
        for own in group.unique().tolist():
            here = group == own
            histogram = histograms.setdefault(own, grid.new_zeros(len(grid) + 1))
            histogram.index_add_(0, *_falls(place, here, alpha))
            images[own] = images.get(own, 0) + int(here.any(1).sum())
    return _over_all_processes(histograms, images, grid, at_least=groups.count)


def _falls(place: Tensor, here: Tensor, alpha: float | None) -> tuple[Tensor, Tensor]:
    """Return the bins at which the losses of the images fall, and by how much, for the components ``here``."""
    size = here.sum(1, keepdim=True)
    if alpha is None:
        return place[here], (1 / size.double()).expand(place.shape)[here]
    ordered = place.where(here, place.max()).sort(1).values
    last_covered = (size.double() * (1 - alpha) - ROUNDING).ceil().long().clamp(min=1) - 1
    first = ordered.gather(1, last_covered)[size > 0]
    return first, torch.ones_like(first, dtype=torch.float64)


def _over_all_processes(
    histograms: dict[int, Tensor], images: dict[int, int], grid: Tensor, at_least: int
) -> list[Missed]:
    most = largest(torch.tensor(max(at_least, 1 + max(histograms)), device=grid.device))
    nothing = grid.new_zeros(len(grid) + 1)
    histogram = summed(torch.stack([histograms.get(group, nothing) for group in range(int(most))]))
    counts = summed(torch.tensor([images.get(group, 0) for group in range(int(most))], device=grid.device))
    losses = histogram.flip(1).cumsum(1).flip(1)[:, 1:].cpu()  # from the end, so that little is summed exactly
    return [Missed(*group) for group in zip(losses, counts.tolist(), strict=True)]
