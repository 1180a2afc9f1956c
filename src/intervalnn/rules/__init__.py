"""What each ATen operation does to intervals, one module per family; importing fills the table."""

from intervalnn.rules import (
    arithmetic,
    attention,
    bilinear,
    complexes,
    extrema,
    fourier,
    monotone,
    normalization,
    refusals,
    structure,
)

__all__ = [
    "arithmetic",
    "attention",
    "bilinear",
    "complexes",
    "extrema",
    "fourier",
    "monotone",
    "normalization",
    "refusals",
    "structure",
]
