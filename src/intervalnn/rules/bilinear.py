"""Products: linear layers, convolutions and matrix products, of intervals by intervals.

Every product here is bilinear, ``w * x`` with a sum behind it. Weights lie in
``[W - D, W + U]`` and inputs in ``[c - b, c + a]``. Two forms bound it; in both every term
is non-negative, and the point's own product ``W * c`` is the model's own call.

The default form lets the weights move at the farthest input, and the inputs move at the
point weight. With ``x+ = max(c + a, 0)`` and ``x- = max(b - c, 0)``::

    above = U*x+ + D*x-  +  W+*a + W-*b
    below = D*x+ + U*x-  +  W+*b + W-*a

A pair ``P*p + Q*q`` and ``Q*p + P*q`` costs two products, not four: it is the sum and the
difference of ``(P+Q)/2 * (p+q)`` and ``(P-Q)/2 * (p-q)``. So this form costs four products
beside the point's own, whatever the signs; two if weights or inputs are points.

The exact form (``exact=True``) takes for every single product the corner that matters; it
costs six products for non-negative inputs and twelve for others, and is looser than the best
possible only where weight and input both straddle zero. The two differ by gap times width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval
from intervalnn.rules.complexes import complex_product, has_complex
from intervalnn.table import aten, rule

Product = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the outputs of a product lie, so that two weights can share one call.

    Attributes:
        weight: Dimension of the weight that counts the outputs.
        output: Dimension of the result that counts them, from the end.
        groups: Groups of a convolution.
        transposed: Whether it is a transposed convolution, whose weight has its groups elsewhere.
    """

    weight: int
    output: int
    groups: int = 1
    transposed: bool = False

    def stack(self, first: Tensor, second: Tensor) -> Tensor:
        """Return one weight that computes both products, group by group."""
        if self.groups == 1 or self.transposed:
            return torch.cat((first, second), self.weight)
        parts = (w.unflatten(self.weight, (self.groups, -1)) for w in (first, second))
        return torch.cat(tuple(parts), self.weight + 1).flatten(self.weight, self.weight + 1)

    def unstack(self, result: Tensor) -> tuple[Tensor, Tensor]:
        """Return the two products that a stacked weight has computed."""
        if self.groups == 1:
            first, second = result.chunk(2, self.output)
            return first, second
        grouped = result.unflatten(self.output, (self.groups, 2, -1))
        first, second = grouped.unbind(self.output - 1)
        return first.flatten(self.output - 1, self.output), second.flatten(self.output - 1, self.output)


@dataclass(frozen=True, slots=True)
class Split:
    """The second factor of a product, split into what the first one will be multiplied by.

    Attributes:
        point: The factor as the model has it.
        pairs: Weights of the products, by what they are multiplied with.
        layout: Where the outputs lie.
        gap_dtype: Data type of the gaps and of their products.
        nonneg: Whether the first factor is known to be non-negative.
        whole: The factor as it came, for complex products.
    """

    point: Tensor
    pairs: dict[str, Tensor]
    layout: Layout | None
    gap_dtype: torch.dtype
    nonneg: bool
    whole: Interval | Tensor

    @property
    def is_interval(self) -> bool:
        """Whether the factor has gaps."""
        return isinstance(self.whole, Interval)


def split(
    w: Interval | Tensor,
    layout: Layout | None = None,
    *,
    by_interval: bool = True,
    nonneg: bool = False,
    exact: bool = False,
    gap_dtype: torch.dtype | None = None,
) -> Split:
    """Split a factor into the weights of the products that bound it.

    Args:
        w: The second factor of the product.
        layout: Where the outputs lie; None where two products cannot share a call.
        by_interval: Whether the first factor is an interval, else a point.
        nonneg: Whether the first factor is known to be non-negative.
        exact: Take the exact form instead of the default.
        gap_dtype: Data type of the products, where ``w`` is a point.
    """
    if has_complex(w):
        return Split(w.point if isinstance(w, Interval) else w, {}, None, w.dtype, False, w)
    nonneg = nonneg and layout is not None
    if not isinstance(w, Interval):
        dtype = gap_dtype or w.dtype
        return Split(w, _moving_inputs(w.to(dtype)) if by_interval else {}, layout, dtype, nonneg, w)
    if exact and by_interval and layout is not None:
        pairs = _exact(w, layout, nonneg)
    else:
        pairs = _moving_weights(w, layout, nonneg)
        pairs |= _moving_inputs(w.point.to(w.gap_dtype)) if by_interval else {}
    return Split(w.point, pairs, layout, w.gap_dtype, nonneg, w)


def _moving_inputs(w: Tensor) -> dict[str, Tensor]:
    """Weights for ``W+*a + W-*b`` and its mirror."""
    return {"sum": w.abs() / 2, "difference": w / 2}


def _moving_weights(w: Interval, layout: Layout | None, nonneg: bool) -> dict[str, Tensor]:
    """Weights for ``U*x+ + D*x-`` and its mirror."""
    if nonneg and layout is not None:
        return {"reach": layout.stack(w.above, w.below)}
    return {"reach_sum": (w.above + w.below) / 2, "reach_difference": (w.above - w.below) / 2}


def _exact(w: Interval, layout: Layout, nonneg: bool) -> dict[str, Tensor]:
    """Weights for each corner, stacked as (above, below), by the input they belong to."""
    lower, upper = w.lower, w.upper
    lower_pos, lower_neg = (part.to(w.gap_dtype) for part in (lower.clamp(min=0.0), (-lower).clamp(min=0.0)))
    upper_pos, upper_neg = (part.to(w.gap_dtype) for part in (upper.clamp(min=0.0), (-upper).clamp(min=0.0)))
    pairs = {
        "c+": layout.stack(w.above, w.below),
        "a+": layout.stack(upper_pos, lower_neg),
        "b+": layout.stack(upper_neg, lower_pos),
    }
    if not nonneg:
        pairs |= {
            "c-": layout.stack(w.below, w.above),
            "a-": layout.stack(lower_pos, upper_neg),
            "b-": layout.stack(lower_neg, upper_pos),
        }
    return pairs


def gaps(product: Product, x: Interval | Tensor, w: Split) -> tuple[Tensor, Tensor]:
    """Return how far the product reaches below and above its point."""
    if "c+" in w.pairs:
        return _exact_gaps(product, Interval.of(x), w)
    above: Tensor | None = None
    below: Tensor | None = None
    for high, low in (_weights_move(product, x, w), _inputs_move(product, x, w)):
        if high is not None and low is not None:
            above = high if above is None else above + high
            below = low if below is None else below + low
    assert above is not None and below is not None
    return below.clamp(min=0.0), above.clamp(min=0.0)


Pair = tuple[Tensor, Tensor] | tuple[None, None]


def _weights_move(product: Product, x: Interval | Tensor, w: Split) -> Pair:
    if "reach" in w.pairs:
        assert w.layout is not None
        reach = x.upper if isinstance(x, Interval) else x
        return w.layout.unstack(product(reach.to(w.gap_dtype), w.pairs["reach"]))
    if "reach_sum" not in w.pairs:
        return None, None
    if isinstance(x, Interval):
        high, low = x.upper.clamp(min=0.0), (-x.lower).clamp(min=0.0)
        spread, centre = high + low, high - low
    else:
        spread, centre = x.abs(), x
    return _pair(product, spread, centre, w, "reach_sum", "reach_difference")


def _inputs_move(product: Product, x: Interval | Tensor, w: Split) -> Pair:
    if not isinstance(x, Interval):
        return None, None
    return _pair(product, x.above + x.below, x.above - x.below, w, "sum", "difference")


def _pair(product: Product, total: Tensor, difference: Tensor, w: Split, first: str, second: str) -> Pair:
    """Return ``P*p + Q*q`` and ``Q*p + P*q`` from the sums and the differences."""
    even = product(total.to(w.gap_dtype), w.pairs[first])
    odd = product(difference.to(w.gap_dtype), w.pairs[second])
    return even + odd, even - odd


def _exact_gaps(product: Product, x: Interval, w: Split) -> tuple[Tensor, Tensor]:
    c = x.point
    if w.nonneg:
        parts = {"c+": c, "a+": x.above, "b+": x.below}
    else:
        positive = c.clamp(min=0.0)
        above = x.upper.clamp(min=0.0) - positive
        below = positive - x.lower.clamp(min=0.0)
        parts = {"c+": positive, "a+": above, "b+": below}
        parts |= {"c-": (-c).clamp(min=0.0), "a-": x.above - above, "b-": x.below - below}
    both = sum(product(part.to(w.gap_dtype), w.pairs[name]) for name, part in parts.items())
    assert w.layout is not None and isinstance(both, Tensor)
    above, below = w.layout.unstack(both)
    return below.clamp(min=0.0), above.clamp(min=0.0)


def bound_product(fn: Product, x: Interval | Tensor, w: Split) -> Interval:
    """Bound ``fn(x, w)`` for a bilinear ``fn``."""
    point = fn(_point(x), w.point)
    if has_complex(x, w.point):
        whole = complex_product(lambda a, b: _real_product(fn, a, b), x, w.whole)
        return Interval(point, whole.below, whole.above)
    below, above = gaps(fn, x, w)
    return Interval(point, below, above)


def _real_product(fn: Product, x: Interval | Tensor, w: Interval | Tensor) -> Interval:
    if isinstance(x, Interval) or isinstance(w, Interval):
        return bound_product(fn, x, split(w, by_interval=isinstance(x, Interval)))
    return Interval.of(fn(x, w))


def _point(x: Any) -> Any:
    return x.point if isinstance(x, Interval) else x


# --- convolutions and linear layers: (input, weight, bias, ...) ---

_CONVOLUTIONS = {  # spatial dimensions, transposed
    aten.conv1d: (1, False),
    aten.conv2d: (2, False),
    aten.conv3d: (3, False),
    aten.conv_transpose1d: (1, True),
    aten.conv_transpose2d: (2, True),
    aten.conv_transpose3d: (3, True),
}


def _layout(fn: Any, weight: Tensor | Interval, rest: tuple[Any, ...]) -> Layout:
    packet = fn.overloadpacket
    if packet is aten.linear:
        return Layout(weight=0, output=-1)
    if packet is aten.convolution:
        transposed, groups = rest[3], rest[5]
        return Layout(1 if transposed else 0, 1 - weight.dim(), groups, transposed)
    spatial, transposed = _CONVOLUTIONS[packet]
    groups = rest[3] if len(rest) > 3 else 1
    return Layout(1 if transposed else 0, -1 - spatial, groups, transposed)


def prepare_layer(fn: Any, x: Any, weight: Interval | Tensor, bias: Any = None, *rest: Any, **form: Any) -> Split:
    """Split the weight of a layer; see :func:`split` for what ``form`` may say."""
    return split(weight, _layout(fn, weight, rest), **form)


@rule(aten.linear, aten.convolution, *_CONVOLUTIONS, takes=(0, 1, 2), prepare=prepare_layer)
def layer(fn: Any, x: Interval | Tensor, weight: Split, bias: Interval | Tensor | None = None, *rest: Any) -> Interval:
    """Bound a layer with weights and, perhaps, a bias."""
    if has_complex(x, weight.point):
        raise NotImplementedError(f"{fn} of complex intervals: split it into real and imaginary parts")
    point = fn(_point(x), weight.point, _point(bias), *rest)
    if isinstance(x, Interval) or weight.is_interval:
        below, above = gaps(lambda a, w: fn(a, w, None, *rest), x, weight)
    else:  # only the bias is an interval
        below = above = torch.zeros_like(point, dtype=weight.gap_dtype)
    if isinstance(bias, Interval):
        assert weight.layout is not None
        shape = [-1] + [1] * (-1 - weight.layout.output)
        below, above = below + bias.below.view(shape), above + bias.above.view(shape)
    return Interval(point, below, above)


# --- matrix products ---


def prepare_matrix(fn: Any, x: Any, w: Interval | Tensor, **form: Any) -> Split:
    """Split the second factor of a matrix product."""
    return split(w, Layout(weight=-1, output=-1) if w.dim() > 1 else None, **form)


@rule(aten.mm, aten.bmm, aten.matmul, aten.mv, aten.dot, aten.vdot, takes=(0, 1), prepare=prepare_matrix)
def matrix_product(fn: Any, x: Interval | Tensor, w: Split) -> Interval:
    """Bound a product of two matrices, either or both of them intervals."""
    return bound_product(fn, x, w)


_FUSED = {aten.addmm: aten.mm, aten.baddbmm: aten.bmm, aten.addmv: aten.mv}


@rule(*_FUSED, takes=(0, 1, 2))
def fused_matrix_product(
    fn: Any, bias: Interval | Tensor, x: Interval | Tensor, w: Interval | Tensor, *, beta: float = 1, alpha: float = 1
) -> Interval:
    """Bound ``beta * bias + alpha * (x @ w)``."""
    product = _FUSED[fn.overloadpacket].default
    gap = Interval.of(bias) * beta
    if isinstance(x, Interval) or isinstance(w, Interval):
        gap = gap + bound_product(product, x, split(w, by_interval=isinstance(x, Interval))) * alpha
    point = fn(_point(bias), _point(x), _point(w), beta=beta, alpha=alpha)
    return Interval(point, gap.below.expand(point.shape), gap.above.expand(point.shape))
