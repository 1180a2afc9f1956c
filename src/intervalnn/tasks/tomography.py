"""Limited-angle computed tomography: parallel beam, a missing wedge of angles, low dose (Sec. 5)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from intervalnn.tasks import hounsfield
from intervalnn.tasks.checks import check_counts, check_images, check_numbers
from intervalnn.tasks.projection import ParallelBeam, wide_enough

__all__ = ["Tomography", "low_dose"]

FEWEST_COUNTS = 0.1  # below which a bin's counts are cut before the logarithm


def low_dose(
    integrals: Tensor, photons: float, generator: torch.Generator | None = None, *, electronic: float = 0.0
) -> Tensor:
    """Return line integrals as a scanner would measure them with few photons.

    Args:
        integrals: In physical units: a ray keeps the share ``exp(-integral)`` of its photons.
        photons: How many enter each ray. What noise that makes depends on bin size and number of views.
        generator: Source of the noise, on the device of the integrals.
        electronic: Standard deviation of the detector's own noise, in photons.
    """
    check_numbers(photons=photons)
    check_numbers(electronic=electronic, zero=True)
    counts = torch.poisson(photons * torch.exp(-integrals), generator=generator)
    if electronic:
        counts = counts + electronic * torch.randn(
            counts.shape, generator=generator, dtype=counts.dtype, device=counts.device
        )
    return -torch.log(counts.clamp(min=FEWEST_COUNTS) / photons)  # slightly negative in air, and left so


def ramp(views: Tensor) -> Tensor:
    """Return views ``(..., detectors)`` filtered for back-projection: the band-limited ramp, sampled in space."""
    bins = views.shape[-1]
    distance = torch.arange(2 * bins, dtype=torch.float64)
    distance = torch.minimum(distance, 2 * bins - distance)
    kernel = torch.where(distance % 2 == 1, -1 / (math.pi * distance.clamp(min=1)) ** 2, 0.0)
    kernel[0] = 0.25
    response = torch.fft.rfft(kernel).real.to(views)
    filtered: Tensor = torch.fft.irfft(torch.fft.rfft(views, 2 * bins) * response, 2 * bins)
    return filtered[..., :bins]


@dataclass(frozen=True)
class Tomography:
    """Images, their line integrals at the angles that were measured, and filtered back-projection.

    ``angles`` views are spread evenly over 180 degrees, from 0; a wedge of them is not measured. The views
    left out are the nearest whole number to ``angles * wedge / 180``, in a row, around ``wedge_center``,
    from ``floor(angles * wedge_center / 180 - left_out / 2)`` on. The paper does not say where its wedge
    lies; the default is that of the authors' later script, 85 of 512 views, the first 42 and the last 43.
    The amplitude of the back-projection is right for any wedge, since each view weighs one true angle step.

    For the noise, an image is a square ``field`` wide, and ``attenuation`` says what its value 1 means; the
    defaults fit :func:`hounsfield.to_unit <intervalnn.tasks.hounsfield.to_unit>`.

    Args:
        size: Rows and columns of the images.
        angles: Views over 180 degrees, the missing ones included.
        wedge: Width of the missing wedge in degrees; 0 measures all.
        wedge_center: Its middle in degrees, the angle between a view's detector and the x axis.
        detectors: Bins of a view, as wide as a pixel; unless given, as many as see the corners too.
        photons: Photons per ray of a low-dose measurement; without, there is no noise, as in the paper.
        electronic: Standard deviation of the detector's own noise, in photons.
        field: Width of an image in centimetres.
        attenuation: Attenuation per centimetre of a pixel of value 1.

    Example:
        >>> task = Tomography(64, angles=180)
        >>> x = task.measure(torch.rand(2, 1, 64, 64))
        >>> x.shape, task.A_dagger(x).shape
        (torch.Size([2, 1, 150, 91]), torch.Size([2, 1, 64, 64]))
    """

    size: int
    angles: int = 512
    wedge: float = 30.0
    wedge_center: float = 0.0
    detectors: int | None = None
    photons: float | None = None
    electronic: float = 0.0
    field: float = 40.0
    attenuation: float = hounsfield.UNIT

    def __post_init__(self) -> None:
        check_counts(size=self.size, angles=self.angles)
        check_numbers(field=self.field, attenuation=self.attenuation)
        check_numbers(electronic=self.electronic, zero=True)
        if self.detectors is not None:
            check_counts(detectors=self.detectors)
        if self.photons is not None:
            check_numbers(photons=self.photons)
        elif self.electronic:
            raise ValueError("electronic noise is counted in photons: give photons too")
        if not (0 <= self.wedge < 180 and math.isfinite(self.wedge_center)) or self._left_out >= self.angles:
            raise ValueError(
                f"the wedge must be from 0 to less than 180 degrees wide, around a finite center, and leave at "
                f"least one of {self.angles} angles; got wedge={self.wedge}, wedge_center={self.wedge_center}"
            )

    @property
    def _left_out(self) -> int:
        return round(self.angles * self.wedge / 180)

    @property
    def measured(self) -> Tensor:
        """Which of all ``angles`` are measured, as booleans."""
        first = math.floor(self.angles * self.wedge_center / 180 - self._left_out / 2)
        measured = torch.ones(self.angles, dtype=torch.bool)
        measured[torch.arange(first, first + self._left_out) % self.angles] = False
        return measured

    @property
    def step(self) -> float:
        """The angle from one view to the next in radians, which is each view's weight in the back-projection."""
        return math.pi / self.angles

    @property
    def theta(self) -> Tensor:
        """The measured angles in radians, ``(views,)``, float64."""
        return (torch.arange(self.angles, dtype=torch.float64) * self.step)[self.measured]

    @cached_property
    def _beam(self) -> ParallelBeam:
        return ParallelBeam(self.size, self.theta, self.detectors or wide_enough(self.size))

    def A(self, y: Tensor) -> Tensor:  # noqa: N802 - the paper's letter
        """Return the line integrals of images, ``(batch, 1, views, detectors)``, in pixel widths."""
        check_images(y, self.size, self.size)
        return self._beam.project(y[:, 0])[:, None]

    def A_adjoint(self, x: Tensor) -> Tensor:  # noqa: N802
        """Return the transpose of ``A``, applied to line integrals."""
        self._check_views(x)
        return self._beam.project_adjoint(x[:, 0])[:, None]

    def A_dagger(self, x: Tensor) -> Tensor:  # noqa: N802
        """Return the filtered back-projection of line integrals, an image ``(batch, 1, size, size)``."""
        self._check_views(x)
        return self._beam.smear(ramp(x[:, 0]))[:, None] * self.step

    fbp = A_dagger

    def measure(self, y: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Return line integrals of images as measured: with noise if there are ``photons``."""
        x = self.A(y)
        if self.photons is None:
            return x
        physical = self.attenuation * self.field / self.size
        return low_dose(physical * x, self.photons, generator, electronic=self.electronic) / physical

    def inputs(self, y: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Return what a network is given for images: the filtered back-projection of a measurement."""
        return self.A_dagger(self.measure(y, generator))

    def _check_views(self, x: Tensor) -> None:
        check_images(x, len(self._beam.theta), self._beam.detectors, what="line integrals")
