"""What each ATen operation does to intervals, one module per family; importing fills the table."""

from intervalnn.rules import (
    arithmetic,
    attention,
    bilinear,
    choice,
    comparison,
    complex_functions,
    complex_powers,
    complex_tangents,
    complexes,
    discrete,
    extrema,
    fourier,
    monotone,
    normalization,
    odd,
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
    "complex_functions",
    "complex_powers",
    "complex_tangents",
    "complexes",
    "discrete",
    "extrema",
    "fourier",
    "monotone",
    "normalization",
    "odd",
    "refusals",
    "structure",
]
