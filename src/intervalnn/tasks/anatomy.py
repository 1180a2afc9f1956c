"""Anatomy: a body of random build, painted slice by slice on a canvas."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from intervalnn.tasks.canvas import AIR, Canvas, rounded

__all__ = ["draw"]

LUNG, FAT, FLUID, MUSCLE = -860.0, -100.0, 12.0, 55.0  # Hounsfield units
VERTEBRA = 2.9  # centimetres from one vertebra, or rib, to the next

# Center and radii in centimetres, and tilt. The diaphragm is near z = 0, the head above.
CHAMBERS = (
    ((3.8, 1.2, 4.0), (2.6, 1.8, 4.0), -0.5),
    ((0.0, 3.6, 4.5), (2.4, 1.6, 4.0), -0.5),
    ((0.0, 0.2, 6.0), (2.2, 1.3, 2.5), -0.5),
    ((-2.3, 2.2, 5.0), (1.5, 1.9, 3.0), -0.5),
)
HEART = ((2.2, 2.0, 4.5), (6.0, 4.6, 6.5), -0.5)
LIVER = (((-7.2, 0.0, -4.0), (8.0, 8.8, 9.5), 0.25), ((-0.5, 4.8, -2.5), (7.5, 3.2, 5.5), -0.15))
SPLEEN = ((10.2, -3.2, -3.5), (3.4, 5.3, 6.0), 0.25)
GALLBLADDER = ((-4.2, 4.0, -8.5), (1.7, 1.3, 2.6), 0.4)
PANCREAS = ((1.5, 1.0, -8.5), (5.5, 1.1, 1.8), 0.25)


def draw(canvas: Canvas) -> None:
    """Paint a patient of random build on a table."""
    body = _Body(canvas)
    body.table()
    body.wall()
    body.abdomen()
    body.chest()
    body.skeleton()
    canvas.hu = canvas.hu + 8.0 * canvas.noise(0.5) * canvas.cover(body.outline)


class _Body:
    """The build of a patient, as distances: outline, muscle under the fat, the cavity within, and the diaphragm."""

    def __init__(self, canvas: Canvas) -> None:
        self.canvas = canvas
        x, y, z, between = canvas.x, canvas.y, canvas.z, canvas.between
        self.fat = between(0.5, 2.6)  # centimetres
        self.blood = between(60.0, 260.0)  # with more or less contrast agent
        self.organ = MUSCLE + 0.2 * self.blood
        self.food = FLUID + 25.0 * canvas.noise(0.8)
        self.height = between(9.6, 10.8) + 0.5 * self.fat
        back = torch.where(y < 0, 0.92, 1.0)  # is flatter
        self.outline = canvas.oval(0.0, between(14.0, 15.6) + 0.7 * self.fat, self.height * back, 2.4)
        self.spine = -0.92 * self.height + 0.75 * self.fat + 5.0  # its y
        self.around = torch.atan2(x.abs(), -(y + 2.0)) / math.pi  # 0 at the back, 1 in front
        self.muscle = self.outline + self.fat * (0.75 + 0.5 * self.around + 0.15 * canvas.noise(8.0)).clamp(min=0.2)
        shoulder = torch.sigmoid((z - 10.0) / 2.0) * (1 - 0.6 * self.around)
        self.cavity = self.muscle + 1.6 + 1.2 * shoulder + 1.0 * torch.exp(-((x / 3.5) ** 2)) * (y < 0)
        right = 3.5 - ((x + 6.0) / 3.6) ** 2 - ((y - 1.5) / 4.0) ** 2
        left = 2.0 - ((x - 7.0) / 3.6) ** 2 - ((y - 1.5) / 4.0) ** 2
        self.above = (torch.maximum(right, left) - z) / 1.6  # the side of the diaphragm where the lungs are

    def within(self, distance: Tensor) -> Tensor:
        """Return what of a shape is in the cavity."""
        return torch.maximum(distance, self.cavity + 0.2)

    def vessels(self, calibre: Tensor | float) -> Tensor:
        """Return the share that thin vessels cover: the curves where two random fields are both near zero."""
        first, second = self.canvas.noise(1.6), self.canvas.noise(1.6)
        return (1.5 - torch.hypot(first, second) / calibre).clamp(0.0, 1.0)

    def table(self) -> None:
        """Paint the table, a curved shell."""
        c = self.canvas
        top = -self.height - 1.4 + 0.012 * c.flat_x**2
        board = rounded((c.flat_y - top).abs() - 0.8, c.flat_x.abs() - 17.0)
        c.paint(board, -250.0)
        c.paint(board + 0.25, -950.0)

    def wall(self) -> None:
        """Paint skin, fat, muscle in two layers, and the fat inside."""
        c = self.canvas
        c.paint(self.outline, 0.0)
        c.paint(self.outline + 0.2, FAT + 8.0 * c.noise(1.0))
        c.paint(self.muscle, MUSCLE + 8.0 * c.noise(1.0))
        seam = (self.cavity - 1.0 + 0.8 * c.noise(4.0)).abs() - 0.08 - 0.05 * self.fat
        c.paint(torch.maximum(seam, self.muscle), FAT + 40.0)
        c.paint(self.cavity, FAT + 10.0 * c.noise(1.5))
        c.blend(self.vessels(0.16) * c.cover(self.cavity + 1.0), MUSCLE)

    def abdomen(self) -> None:
        """Paint what is below the diaphragm; the chest hides what of it reaches higher."""
        c = self.canvas
        self.bowel()
        self.hollow(
            (c.between(5.0, 7.0), c.between(2.0, 3.5), -3.0), (c.between(3.4, 4.6), c.between(2.8, 3.6), 6.0), 0.4
        )
        c.paint(self.within(c.ellipsoid(*SPLEEN)), self.organ + 15.0)
        liver = self.within(torch.minimum(*(c.ellipsoid(*lobe) for lobe in LIVER)))
        c.paint(liver, self.organ + 5.0 * c.noise(1.5))
        c.blend(self.vessels(0.2) * c.cover(liver + 0.6), self.organ + 0.35 * self.blood)
        c.paint(c.ellipsoid(*GALLBLADDER), FLUID)
        c.paint(c.ellipsoid(*PANCREAS), self.organ - 10.0)
        for side in (-1.0, 1.0):
            x, y, z = side * c.between(5.6, 6.6), self.spine + c.between(-0.4, 0.8), side - 10.5
            kidney = c.ellipsoid((x, y, z), (2.8, 2.4, 5.2), side * 0.6)
            c.paint(kidney - 0.5, FAT)
            c.paint(kidney, MUSCLE + 0.6 * self.blood)
            c.paint(c.ellipsoid((x - side * 1.2, y + 0.5, z), (1.3, 0.7, 2.6), side * 0.6), FAT + 40.0)

    def bowel(self) -> None:
        """Paint the colon on both sides, and loops of bowel in front."""
        c = self.canvas
        loops = [(-10.3, -0.5, 2.3), (10.3, -1.5, 1.9)]
        loops += [(c.between(-9.0, 9.0), c.between(0.0, 7.5), c.between(1.1, 1.9)) for _ in range(20)]
        for x, y, radius in loops:
            radii = (radius * c.between(0.9, 1.6), radius, c.between(2.5, 5.0))
            self.hollow((x, y, c.between(-20.0, -9.0)), radii, c.between(-1.0, 1.0))

    def hollow(self, center: tuple[float, float, float], radii: tuple[float, float, float], tilt: float) -> None:
        """Paint a hollow organ: its wall, food, and gas above a level."""
        c = self.canvas
        shape = self.within(c.ellipsoid(center, radii, tilt))
        level = center[1] + radii[1] * c.between(-0.4, 1.6)
        c.paint(shape, MUSCLE + 0.1 * self.blood)
        c.paint(shape + 0.3, self.food)
        c.paint(torch.maximum(shape + 0.3, level - c.flat_y), AIR + 40.0)

    def chest(self) -> None:
        """Paint lungs, heart, great vessels and airways, all above the diaphragm."""
        c = self.canvas
        x, y = c.x, c.y
        between = 0.7 + 2.0 * torch.exp(-(((y - 0.5) / 3.5) ** 2)) + 1.6 * torch.exp(-(((y - self.spine) / 2.2) ** 2))
        lungs = torch.maximum(rounded(self.cavity + 0.25, between - (x - 0.6).abs(), 1.0), self.above)
        c.paint(torch.maximum(self.cavity, self.above), MUSCLE)
        c.paint(torch.maximum(torch.maximum(self.cavity + 0.3, self.above), -lungs), FAT + 60.0)
        c.paint(lungs, LUNG - 9.0 * y + 25.0 * c.noise(0.8))
        from_root = torch.hypot(x.abs() - 3.5, y)
        c.blend(self.vessels((0.36 - 0.025 * from_root).clamp(min=0.1)) * c.cover(lungs + 0.3), 30.0)
        self.heart()
        split = (10.0 - c.z).clamp(min=0.0)  # how far below the branching of the windpipe
        for side in (-1.0, 1.0):
            airway = torch.maximum(c.rod(side * 0.9 * split, -0.6, 0.9 - 0.05 * split), 6.0 - c.z)
            c.paint(airway - 0.15, MUSCLE)
            c.paint(airway, AIR + 10.0)

    def heart(self) -> None:
        """Paint the heart in its fat, and the vessels above it."""
        c = self.canvas
        heart = self.within(c.ellipsoid(*HEART) + c.between(-0.6, 0.4))
        c.paint(torch.maximum(heart - 0.4, self.above), FAT)
        c.paint(torch.maximum(heart, self.above), MUSCLE + 0.3 * self.blood)
        for chamber in CHAMBERS:
            c.paint(torch.maximum(c.ellipsoid(*chamber), self.above), self.blood)
        c.paint(torch.maximum(c.rod(-1.3, 2.4, 1.6), 9.0 - c.z), self.blood)  # rising aorta
        c.paint(torch.maximum(c.rod(-3.0, 1.6, 0.9), 8.0 - c.z), self.blood + 30.0)  # vena cava
        c.paint(c.ellipsoid((0.8, 1.9, 9.5), (3.0, 1.2, 1.5), 0.3), self.blood)  # lung artery

    def skeleton(self) -> None:
        """Paint the muscles of the back, the vessels along the spine, the spine, ribs and shoulder blades."""
        c = self.canvas
        x, y, z, spine = c.x, c.y, c.z, self.spine
        for side in (-1.0, 1.0):
            along = c.ellipsoid((side * 3.0, spine - 3.2, 0.0), (2.6, 1.8, math.inf), side * 0.3)
            c.paint(torch.maximum(along, self.muscle), MUSCLE + 8.0 * c.noise(0.7))
            c.paint(c.rod(side * 3.4, spine + 0.3, 0.25 * (-7.0 - z).clamp(-1.0, 8.0)), MUSCLE)  # psoas
        c.paint(c.rod(2.3, spine + 1.6, 1.2 + 0.2 * torch.sigmoid(z)), self.blood)  # aorta
        cava = c.ellipsoid((-2.0, spine + 2.2, 0.0), (1.5, 1.1, math.inf))
        c.paint(torch.maximum(cava, z - 3.0), 0.8 * self.blood)
        self.ribs()
        middle = 0.5 + 0.5 * torch.cos(2 * math.pi * z / VERTEBRA)  # of a vertebra; 0 at a disc
        vertebra = c.oval(spine, 2.1, 1.6, 2.6)
        c.bone(vertebra)
        c.paint(vertebra + 0.22, 90.0 + 150.0 * middle)
        wing = rounded((y - spine + 2.4 + 0.25 * x.abs()).abs() - 0.4, x.abs() - 1.8 - 1.6 * middle)
        thorn = rounded(x.abs() - 0.4, (y - spine + 4.0).abs() - 1.0 - 0.4 * middle)
        c.bone(torch.minimum(torch.minimum(wing, thorn), c.oval(spine - 2.1, 1.5, 1.2, 2.0)))
        c.paint(c.oval(spine - 2.1, 0.95, 0.8, 2.0), 25.0)  # spinal canal

    def ribs(self) -> None:
        """Paint ribs, which descend from back to front and so appear in pieces, breastbone and shoulder blades."""
        c = self.canvas
        z = c.z
        turn = (z + 11.0 * self.around) / VERTEBRA
        along = 2 * VERTEBRA * (turn - turn.floor() - 0.5).abs() - 0.9
        end = 15.0 * (self.around - (0.62 + 0.02 * z).clamp(0.2, 0.8))
        c.bone(rounded((self.cavity - 0.45).abs() - 0.42, torch.maximum(along, end)))
        breast = rounded((self.cavity - 0.3).abs() - 0.55, c.x.abs() - 1.7)
        c.bone(torch.maximum(torch.maximum(breast, -c.y), 0.5 - z))
        blade = rounded((self.cavity - 1.9 + 0.15 * (c.x.abs() - 9.0)).abs() - 0.3, (c.x.abs() - 9.0).abs() - 3.0)
        c.bone(torch.maximum(torch.maximum(blade, c.y), 10.0 - z))
