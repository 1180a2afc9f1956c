"""Units of CT images: Hounsfield units, attenuation, and the scales that networks work on.

Each scale is a fixed map, the same for all images, and starts at air: what is below -1000 HU is padding.
"""

from __future__ import annotations

from torch import Tensor

__all__ = [
    "LODOPAB",
    "UNIT",
    "WATER",
    "from_attenuation",
    "from_lodopab",
    "from_unit",
    "to_attenuation",
    "to_lodopab",
    "to_unit",
]

WATER = 0.2  # attenuation of water per centimetre, at 60 to 70 keV
UNIT = 2 * WATER  # attenuation per centimetre at 1 of to_unit
AIR = 0.0002  # attenuation of air per centimetre, in LoDoPaB-CT
LODOPAB = WATER + 3.071 * (WATER - AIR)  # attenuation per centimetre at 1 of LoDoPaB-CT, which is 3071 HU


def to_unit(hu: Tensor, *, clip: bool = True) -> Tensor:
    """Return Hounsfield units as numbers from 0 to 1: air 0, water 0.5, +1000 HU 1.

    They are proportional to the attenuation, so that line integrals scale with them.

    Args:
        hu: Hounsfield units.
        clip: Whether to cut at 0 and 1, as targets of networks are.
    """
    unit = (hu + 1000) / 2000
    return unit.clamp(0.0, 1.0) if clip else unit


def from_unit(unit: Tensor) -> Tensor:
    """Return Hounsfield units of numbers of :func:`to_unit`."""
    return 2000 * unit - 1000


def to_attenuation(hu: Tensor) -> Tensor:
    """Return the attenuation per centimetre, 0 for air and less."""
    return WATER * (1 + hu.clamp(min=-1000) / 1000)


def from_attenuation(attenuation: Tensor) -> Tensor:
    """Return Hounsfield units of an attenuation per centimetre."""
    return 1000 * (attenuation / WATER - 1)


def to_lodopab(hu: Tensor) -> Tensor:
    """Return Hounsfield units on the scale of LoDoPaB-CT: 0 to 1 for -1001 to 3071 HU, clipped."""
    return ((WATER + hu * ((WATER - AIR) / 1000)) / LODOPAB).clamp(0.0, 1.0)


def from_lodopab(x: Tensor) -> Tensor:
    """Return Hounsfield units of images of LoDoPaB-CT."""
    return (x * LODOPAB - WATER) * (1000 / (WATER - AIR))
