"""What each ATen operation does to intervals, one module per family; importing fills the table."""

from intervalnn.rules import (
    arithmetic,
    attention,
    bilinear,
    choice,
    comparison,
    complexes,
    discrete,
    extrema,
    fourier,
    monotone,
    normalization,
    positions,
    refusals,
    structure,
)
from intervalnn.rules.discrete import bounded

__all__ = [
    "arithmetic",
    "attention",
    "bilinear",
    "bounded",
    "choice",
    "comparison",
    "complexes",
    "discrete",
    "extrema",
    "fourier",
    "monotone",
    "normalization",
    "positions",
    "refusals",
    "structure",
]
