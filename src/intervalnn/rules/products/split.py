"""Split: the second factor of a product, split into the weights of the products that bound it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval, Symmetric, cut
from intervalnn.rules.complexes import has_complex
from intervalnn.rules.products.exact import Corners
from intervalnn.rules.products.factors import Factor, Repeated
from intervalnn.rules.products.forms import Form, InputsMove, OneGap, OneSided, Product, Sum, WeightsMove
from intervalnn.rules.products.layout import Layout, moving_part
from intervalnn.rules.products.repeats import Repeats
from intervalnn.rules.products.stretched import Stretched, StretchedInputs

__all__ = ["ComplexFactor", "Split", "split", "split_or_complex"]


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """The second factor of a product, split into what the first one will be multiplied by.

    Attributes:
        point: The factor as the model has it.
        form: How far products with it reach; None where neither factor has gaps.
        layout: Where the outputs lie; None where two products cannot share a call.
        gap_dtype: Data type of the gaps and of their products.
        repeats: How often values stand side by side in a first factor that is :class:`Repeated`; None for others.
    """

    point: Tensor
    form: Form | None
    layout: Layout | None
    gap_dtype: torch.dtype
    repeats: Repeats | None = None

    def gaps(self, product: Product, x: Factor | Repeated) -> tuple[Tensor, Tensor]:
        """Return how far the product reaches below and above its point."""
        assert self.form is not None
        if isinstance(x, Repeated):
            assert self.repeats is not None
            above, below = self.form.sides(self.repeats.product, x.values)
        else:
            above, below = self.form.sides(product, x)
        return cut(below), cut(above)


@dataclass(frozen=True, slots=True, eq=False)
class ComplexFactor:
    """A second factor of complex numbers, whose parts are split for each product of real numbers by itself."""

    whole: Interval | Tensor

    @property
    def point(self) -> Tensor:
        """The factor as the model has it."""
        return self.whole.point if isinstance(self.whole, Interval) else self.whole


def split_or_complex(
    w: Interval | Stretched | Tensor, layout: Layout | None = None, **form: Any
) -> Split | ComplexFactor:
    """Split a factor of real numbers, as :func:`split` does, and keep one of complex numbers as it is."""
    if not isinstance(w, Stretched) and has_complex(w):
        return ComplexFactor(w)
    return split(w, layout, **form)


def split(
    w: Interval | Stretched | Tensor,
    layout: Layout | None = None,
    *,
    by_interval: bool = True,
    nonneg: bool = False,
    exact: bool = False,
    gap_dtype: torch.dtype | None = None,
    moving: tuple[int, int, int] | None = None,
    repeats: Repeats | None = None,
) -> Split:
    """Split a factor of real numbers into the weights of the products that bound it.

    Args:
        w: The second factor of the product.
        layout: Where the outputs lie; None where two products cannot share a call.
        by_interval: Whether the first factor is an interval, else a point.
        nonneg: Whether the first factor is known to be non-negative.
        exact: Take the exact form instead of the default.
        gap_dtype: Data type of the products, where ``w`` is a point.
        moving: Where the first factor may have gaps, if not everywhere: a dimension,
            counted from the end, and from where to where along it.
        repeats: How often values stand side by side in the first factor, if it is :class:`Repeated`.
    """
    point = w if isinstance(w, Tensor) else w.point
    dtype = w.gap_dtype if isinstance(w, Interval) else gap_dtype or point.dtype
    nonneg = nonneg and layout is not None
    if repeats is not None:
        assert layout is not None
        layout = repeats.layout(layout)
    form: Form | None
    if isinstance(w, Stretched):
        assert layout is not None
        form = StretchedInputs.of(w, layout, nonneg=nonneg, kernel=lambda part: _kernel(part, dtype, repeats))
    else:
        w = w if repeats is None else repeats.weight(w, dtype)
        inputs = _inputs(moving, layout)
        form = _form(w, layout, dtype, by_interval=by_interval, nonneg=nonneg, exact=exact, moving=inputs)
    return Split(point, form, layout, dtype, repeats)


def _kernel(w: Tensor, dtype: torch.dtype, repeats: Repeats | None) -> Tensor:
    return (w if repeats is None else repeats.kernel(w, dtype)).to(dtype)


def _inputs(moving: tuple[int, int, int] | None, layout: Layout | None) -> tuple[int, int] | None:
    """Return the inputs that may have gaps, where a weight can be cut to these; else None."""
    if moving is None or layout is None or layout.groups != 1 or moving[0] != layout.output:
        return None
    return moving[1:]


def _form(
    w: Interval | Tensor, layout: Layout | None, dtype: torch.dtype, *,
    by_interval: bool, nonneg: bool, exact: bool, moving: tuple[int, int] | None,
) -> Form | None:  # fmt: skip
    if not isinstance(w, Interval):
        return _inputs_move(w.to(dtype), layout, moving) if by_interval else None
    if exact and by_interval and layout is not None:
        return Corners.of(w, layout, nonneg=nonneg, moving=moving)
    weights = _weights_move(w, layout, nonneg=nonneg)
    return Sum(weights, _inputs_move(w.point.to(dtype), layout, moving)) if by_interval else weights


def _weights_move(w: Interval, layout: Layout | None, *, nonneg: bool) -> WeightsMove | OneSided | OneGap:
    if isinstance(w, Symmetric):
        return OneGap.of(w, nonneg=nonneg)
    return OneSided.of(w, layout) if nonneg and layout is not None else WeightsMove.of(w)


def _inputs_move(w: Tensor, layout: Layout | None, moving: tuple[int, int] | None) -> InputsMove:
    own = w if layout is None else moving_part(w, layout.inputs, moving)
    return InputsMove.of(own, moving_only=moving is not None)
