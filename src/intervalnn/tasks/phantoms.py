"""Phantoms: slices through made-up patients that look like CT, to try things out on without anyone's data."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from intervalnn.tasks import hounsfield
from intervalnn.tasks.anatomy import draw
from intervalnn.tasks.canvas import Canvas
from intervalnn.tasks.checks import check_counts, check_numbers

__all__ = ["Phantoms"]

PATIENTS = 2**20  # the most that one seed has
LOWEST, HIGHEST = -16.0, 15.0  # where the lowest slice of a patient may lie, in centimetres from the diaphragm


@dataclass(frozen=True)
class Phantoms:
    """Axial slices through chest or abdomen of made-up patients, neighbouring slices of each, from head to feet.

    Values are on the scale of :func:`hounsfield.to_unit <intervalnn.tasks.hounsfield.to_unit>`: air 0, water 0.5,
    +1000 HU 1. An image is 40 cm wide; the front of the patient is up, and the right side is left.

    A patient is the same whenever number, ``slices`` and ``spacing`` are, whatever the size; two seeds have no
    patient in common, so take one for each of train, validation and test.

    Args:
        size: Rows and columns of the images.
        patients: How many patients.
        slices: How many slices of each.
        seed: Which patients.
        spacing: Centimetres from one slice to the next.

    Example:
        >>> images, subjects = Phantoms(size=64, patients=2, slices=3).data()
        >>> images.shape, subjects
        (torch.Size([6, 1, 64, 64]), tensor([0, 0, 0, 1, 1, 1]))
    """

    size: int = 128
    patients: int = 20
    slices: int = 10
    seed: int = 0
    spacing: float = 0.5

    def __post_init__(self) -> None:
        check_counts(size=self.size, patients=self.patients, slices=self.slices)
        check_numbers(spacing=self.spacing)
        if self.patients > PATIENTS or not 0 <= self.seed < PATIENTS:
            raise ValueError(
                f"there are at most {PATIENTS} patients of each seed from 0 to {PATIENTS - 1}, "
                f"got patients={self.patients}, seed={self.seed}"
            )

    def data(self) -> tuple[Tensor, Tensor]:
        """Return images ``(patients * slices, 1, size, size)``, and the number of the patient on each."""
        subjects = self.seed * PATIENTS + torch.arange(self.patients)
        images = torch.cat([self._patient(subject) for subject in subjects.tolist()])
        return images, subjects.repeat_interleave(self.slices)

    def _patient(self, subject: int) -> Tensor:
        generator = torch.Generator().manual_seed(subject)
        lowest = LOWEST + (HIGHEST - LOWEST) * float(torch.rand((), generator=generator))
        canvas = Canvas(self.size, lowest + self.spacing * torch.arange(self.slices).flip(0), generator)
        draw(canvas)
        return hounsfield.to_unit(canvas.hu)[:, None]
