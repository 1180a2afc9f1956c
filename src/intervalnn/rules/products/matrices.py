"""Matrices: products of two matrices, or of vectors, either or both of them intervals."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from intervalnn.interval import Interval
from intervalnn.rules.complexes import box, complex_product, conjugate, has_complex
from intervalnn.rules.products.factors import Factor, Joined, point_of
from intervalnn.rules.products.forms import Product
from intervalnn.rules.products.layout import Layout
from intervalnn.rules.products.split import ComplexFactor, Split, split, split_or_complex
from intervalnn.table import aten, rule

__all__ = ["bound_product", "prepare_matrix"]


def bound_product(fn: Product, x: Factor, w: Split | ComplexFactor) -> Interval:
    """Bound ``fn(x, w)`` for a bilinear ``fn``."""
    point = fn(point_of(x), w.point)
    if isinstance(w, Split):
        return Interval(point, *w.gaps(fn, x))

    def multiply(a: Interval | Tensor, b: Interval | Tensor) -> Interval:
        return bound_product(fn, a, split(b, by_interval=isinstance(a, Interval)))

    x = x.whole() if isinstance(x, Joined) else x
    return box(point, *complex_product(multiply, x, w.whole))


def prepare_matrix(fn: Any, x: Any, w: Interval | Tensor, **form: Any) -> Split | ComplexFactor:
    """Split the second factor of a matrix product."""
    form.setdefault("by_interval", not isinstance(x, Tensor))
    return split_or_complex(w, Layout(weight=-1, inputs=-2) if w.dim() > 1 else None, **form)


@rule(aten.mm, aten.bmm, aten.matmul, aten.mv, aten.dot, takes=(0, 1), prepare=prepare_matrix, complexes=True)
def matrix_product(fn: Any, x: Factor, w: Split | ComplexFactor) -> Interval:
    """Bound a product of two matrices, either or both of them intervals."""
    return bound_product(fn, x, w)


@rule(aten.vdot, takes=(0, 1), prepare=prepare_matrix, complexes=True)
def conjugate_product(fn: Any, x: Factor, w: Split | ComplexFactor) -> Interval:
    """Bound a product of two vectors, the first of them conjugated."""
    x = x.whole() if isinstance(x, Joined) else x
    if has_complex(x):
        x = conjugate(aten._conj.default, x) if isinstance(x, Interval) else x.conj()
    product = bound_product(aten.dot.default, x, w)
    return Interval(fn(point_of(x).conj(), w.point), product.below, product.above)


_FUSED = {aten.addmm: aten.mm, aten.baddbmm: aten.bmm, aten.addmv: aten.mv, aten.addbmm: aten.bmm}


@rule(*_FUSED, takes=(0, 1, 2), complexes=True)
def fused_matrix_product(
    fn: Any, bias: Interval | Tensor, x: Interval | Tensor, w: Interval | Tensor, *, beta: float = 1, alpha: float = 1
) -> Interval:
    """Bound ``beta * bias + alpha * (x @ w)``, of a batch one by one or added up."""
    product = _FUSED[fn.overloadpacket].default
    gap = Interval.of(bias) * beta
    if isinstance(x, Interval) or isinstance(w, Interval):
        terms = bound_product(product, x, split_or_complex(w, by_interval=isinstance(x, Interval)))
        gap = gap + (terms.map(lambda part: part.sum(0)) if fn.overloadpacket is aten.addbmm else terms) * alpha
    point = fn(point_of(bias), point_of(x), point_of(w), beta=beta, alpha=alpha)
    return Interval(point, gap.below.expand(point.shape), gap.above.expand(point.shape))
