"""What each ATen operation does to intervals, one module per family; importing fills the table."""

from intervalnn.rules import (
    arithmetic,
    attention,
    bilinear,
    complex_functions,
    complex_powers,
    complex_tangents,
    complexes,
    extrema,
    fourier,
    monotone,
    normalization,
    odd,
    refusals,
    structure,
)

__all__ = [
    "arithmetic",
    "attention",
    "bilinear",
    "complex_functions",
    "complex_powers",
    "complex_tangents",
    "complexes",
    "extrema",
    "fourier",
    "monotone",
    "normalization",
    "odd",
    "refusals",
    "structure",
]
