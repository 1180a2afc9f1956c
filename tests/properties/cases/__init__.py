"""The table of cases: at least one for every operation that has a rule, more where it has several ways."""

from __future__ import annotations

from properties.cases import (
    activations,
    arithmetic,
    comparisons,
    complex_functions,
    complexes,
    normalization,
    products,
    reduction,
    refusals,
    selection,
    special,
    structure,
)

CASES = [
    *arithmetic.CASES,
    *products.CASES,
    *activations.CASES,
    *normalization.CASES,
    *selection.CASES,
    *structure.CASES,
    *complexes.CASES,
    *comparisons.CASES,
    *complex_functions.CASES,
    *special.CASES,
    *reduction.CASES,
]
REFUSED = refusals.REFUSED
SHAPE_ONLY = refusals.SHAPE_ONLY
