"""Layers: linear layers and convolutions, of an input, a weight and perhaps a bias."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval, plus
from intervalnn.rules.complexes import box, complex_product, has_complex
from intervalnn.rules.products.factors import Factor, Joined, Repeated, point_of
from intervalnn.rules.products.gpu import Windows, laid_out
from intervalnn.rules.products.layout import CONVOLUTIONS, layout_of
from intervalnn.rules.products.repeats import Repeats
from intervalnn.rules.products.split import ComplexFactor, Split, split_or_complex
from intervalnn.rules.products.stretched import Stretched
from intervalnn.table import aten, rule

__all__ = ["layer", "prepare_layer", "stretches"]


def stretches(fn: Any, weight: Tensor, rest: tuple[Any, ...]) -> bool:
    """Say whether a layer takes a :class:`Stretched`: of a real weight whose second dimension counts the inputs."""
    return not weight.is_complex() and layout_of(fn, weight, rest).inputs == 1


def prepare_layer(
    fn: Any,
    x: Any,
    weight: Interval | Stretched | Tensor,
    bias: Any = None,
    *rest: Any,
    repeats: tuple[tuple[int, ...], ...] | None = None,
    **form: Any,
) -> Split | ComplexFactor:
    """Split the weight of a layer.

    Args:
        fn: The operation.
        x: Its input; None where ``form`` has ``by_interval``.
        weight: The weight.
        bias: The bias, which is not read.
        rest: What the operation takes behind it.
        repeats: What :class:`Repeats` takes, if values stand side by side in the input.
        form: What :func:`split` takes.
    """
    form.setdefault("by_interval", not isinstance(x, Tensor))
    point = weight.point if isinstance(weight, Stretched) else weight
    layout = layout_of(fn, point, rest) if point.dim() > 1 else None
    found = split_or_complex(weight, layout, repeats=repeats and Repeats(*repeats), **form)
    return laid_out(found) if isinstance(found, Split) else found


@rule(aten.linear, aten.convolution, *CONVOLUTIONS, takes=(0, 1, 2), prepare=prepare_layer, complexes=True)
def layer(
    fn: Any, x: Factor | Repeated, weight: Split | ComplexFactor, bias: Interval | Tensor | None = None, *rest: Any
) -> Interval:
    """Bound a layer with weights and, perhaps, a bias."""
    if has_complex(bias) and not has_complex(weight.point):
        raise TypeError(f"{fn} has a complex bias and a real weight; make both of one kind")
    if isinstance(weight, ComplexFactor):
        return _complex_layer(fn, x.whole() if isinstance(x, Joined) else x, weight.whole, bias, *rest)
    point = fn(point_of(x), weight.point, point_of(bias), *rest)

    def product(a: Tensor, w: Tensor | Windows) -> Tensor:
        if isinstance(w, Windows):
            return w.product(a, *rest)
        return fn(a, w, None, *rest)  # type: ignore[no-any-return]

    if weight.form is None:  # only the bias is an interval
        below = above = torch.zeros_like(point, dtype=weight.gap_dtype)
    else:
        below, above = weight.gaps(product, x)
    if isinstance(bias, Interval):
        assert weight.layout is not None
        below, above = (gap + weight.layout.per_output(own) for gap, own in ((below, bias.below), (above, bias.above)))
    return Interval(point, below, above)


def _complex_layer(fn: Any, x: Any, weight: Any, bias: Interval | Tensor | None, *rest: Any) -> Interval:
    """Bound a layer of complex numbers by layers of their parts."""

    def real_layer(a: Interval | Tensor, w: Interval | Tensor) -> Interval:
        return layer(fn, a, prepare_layer(fn, a, w, None, *rest), None, *rest)

    point = fn(point_of(x), point_of(weight), point_of(bias), *rest)
    moves = isinstance(x, Interval) or isinstance(weight, Interval)
    bounds = box(point, *complex_product(real_layer, x, weight)) if moves else Interval.of(point)
    if isinstance(bias, Interval):
        layout = layout_of(fn, weight, rest)
        below, above = (
            plus(gap, layout.per_output(own)) for gap, own in ((bounds.below, bias.below), (bounds.above, bias.above))
        )
        bounds = Interval(point, below, above)
    return bounds
