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
beside the point's own, whatever the signs; two if weights or inputs are points. Where ``U`` is ``D``, one product,
``D*(x+ + x-)``, is both of the first pair; then it costs three. Of the two results the smaller may be lost in the
rounding of the larger, so both get as much more as that can be: a few roundings of the second product.

Compiled for a GPU, what moves with the weights and what moves with the inputs becomes one product of twice as many
channels (:func:`side_by_side`), so that half as many results are written and read again.

Inputs that stand side by side several times, as nearest upsampling puts them, are taken once (:class:`Repeats`).

Of a weight whose input channels shrink and grow by shares of their own (:class:`Stretched`), the
inputs carry these shares as gaps, and the weight is a point: two products, in either form.

The exact form (``exact=True``) takes for every single product the corner that matters; it
costs six products for non-negative inputs and twelve for others, and is looser than the best
possible only where weight and input both straddle zero. The two differ by gap times width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from intervalnn.interval import Interval, cut, plus
from intervalnn.rules.arithmetic import mirrored
from intervalnn.rules.complexes import box, complex_product, conjugate, has_complex
from intervalnn.rules.products.beside import beside
from intervalnn.rules.products.stretched import Stretched
from intervalnn.table import aten, rule

Product = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the outputs of a product lie, so that two weights can share one call.

    Attributes:
        weight: Dimension of the weight that counts the outputs.
        inputs: Dimension of the weight that counts the inputs.
        output: Dimension of the result that counts the outputs, and of the input that
            counts the inputs, from the end.
        groups: Groups of a convolution.
        transposed: Whether it is a transposed convolution, whose weight has its groups elsewhere.
        window: Height and width of what an output sees, of a convolution that may be computed from these windows
            one by one; else empty.
    """

    weight: int
    inputs: int
    output: int
    groups: int = 1
    transposed: bool = False
    window: tuple[int, ...] = ()

    def stack(self, first: Tensor, second: Tensor) -> Tensor:
        """Return one weight that computes both products, group by group."""
        if self.groups == 1 or self.transposed:
            return torch.cat((first, second), self.weight)
        parts = (w.unflatten(self.weight, (self.groups, -1)) for w in (first, second))
        return torch.cat(tuple(parts), self.weight + 1).flatten(self.weight, self.weight + 1)

    def unstack(self, result: Tensor) -> tuple[Tensor, Tensor]:
        """Return the two products that a stacked weight has computed."""
        if self.groups == 1:
            half = result.size(self.output) // 2  # not by chunk, whose size onnxscript must know
            return result.narrow(self.output, 0, half), result.narrow(self.output, half, half)
        grouped = result.unflatten(self.output, (self.groups, 2, -1))
        first, second = grouped.unbind(self.output - 1)
        return first.flatten(self.output - 1, self.output), second.flatten(self.output - 1, self.output)


@dataclass(frozen=True, slots=True)
class Joined:
    """Values joined into the first factor of a product, which joins what it makes of each of them.

    So nothing is written that only the next pass over memory reads. Points have no gaps to
    multiply, and a skip connection often is one; so only the run of parts from the first to the
    last interval need take part in the products of the gaps.
    """

    parts: tuple[Interval | Tensor, ...]
    dim: int

    def each(
        self, make: Callable[[Interval | Tensor], tuple[Tensor, ...]], *, moving: bool = False
    ) -> tuple[Tensor, ...]:
        """Return the results of ``make``, joined over the parts; over those only that move where asked."""
        parts = self.moving_parts if moving else self.parts
        return tuple(torch.cat(column, self.dim) for column in zip(*map(make, parts), strict=True))

    def whole(self) -> Interval:
        """Return the parts as one interval."""
        dtype = next(part.gap_dtype for part in self.parts if isinstance(part, Interval))
        return Interval(self.point, *(self._gaps(side, self.parts, dtype) for side in ("below", "above")))

    @property
    def point(self) -> Tensor:
        """The joined points."""
        return torch.cat([_point(part) for part in self.parts], self.dim)

    @property
    def moving_parts(self) -> tuple[Interval | Tensor, ...]:
        """The parts from the first to the last that has gaps."""
        moves = [i for i, part in enumerate(self.parts) if isinstance(part, Interval)]
        return self.parts[moves[0] : moves[-1] + 1]

    @property
    def moving(self) -> tuple[Tensor, Tensor]:
        """The gaps below and above of these parts."""
        run = self.moving_parts
        assert isinstance(run[0], Interval)
        return self._gaps("below", run, run[0].gap_dtype), self._gaps("above", run, run[0].gap_dtype)

    def _gaps(self, side: str, parts: tuple[Interval | Tensor, ...], dtype: torch.dtype) -> Tensor:
        gaps = [getattr(p, side) if isinstance(p, Interval) else torch.zeros_like(p, dtype=dtype) for p in parts]
        return torch.cat(gaps, self.dim) if len(gaps) > 1 else gaps[0]


def joined(parts: list[Interval | Tensor], dim: int) -> Joined:
    """Return the parts, to be joined along ``dim`` where a product needs them."""
    return Joined(tuple(parts), dim)


@dataclass(frozen=True, slots=True)
class Repeated:
    """Values that stand side by side several times, the first factor of a convolution; :class:`Repeats` says how often.

    Attributes:
        point: Their points, as often as they stand there, with zeros around them: what the model's own call takes.
        values: Each of them once, with its gaps.
    """

    point: Tensor
    values: Interval


@dataclass(frozen=True, slots=True)
class Repeats:
    """How often values stand side by side before a convolution, and how many zeros around them.

    A convolution of repeated values is a transposed one of each value once, whose kernel adds up the weights that meet
    the same value. So it multiplies less, and bounds are tighter where these weights cancel.

    Attributes:
        times: How often each value stands there, along each spatial dimension.
        before: Zeros in front of them.
        after: Zeros behind them.
    """

    times: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def more(self) -> list[int]:
        """How much larger the result is than that of zeros alike on both ends."""
        return [after - before for before, after in zip(self.before, self.after, strict=True)]

    def fits(self, window: tuple[int, ...]) -> bool:
        """Say whether torch has that transposed convolution."""
        sizes = zip(self.more, self.times, self.before, window, strict=True)
        return all(0 <= more < times and before < size for more, times, before, size in sizes)

    def kernel(self, w: Tensor, dtype: torch.dtype) -> Tensor:
        """Return the weight of the transposed convolution, rounded no more coarsely than ``dtype``."""
        wide = w.to(torch.promote_types(torch.promote_types(w.dtype, dtype), torch.float32))
        wide = wide.transpose(0, 1)
        for dim, times in enumerate(self.times, start=2):
            size = w.size(dim)
            ends = [(max(last - times, 0), min(last, size)) for last in range(size + times - 1, 0, -1)]
            wide = torch.stack([wide.narrow(dim, start, stop - start).sum(dim) for start, stop in ends], dim)
        return wide

    def product(self, x: Tensor, kernel: Tensor) -> Tensor:
        """Return the convolution of the repeated values, from each of them once."""
        sizes = zip(kernel.shape[2:], self.times, self.before, strict=True)
        padding = [size - times - before for size, times, before in sizes]
        ones = [1] * len(padding)
        return torch.convolution(x, kernel, None, self.times, padding, ones, True, self.more, 1)


Factor = Interval | Joined | Tensor


@dataclass(frozen=True, slots=True)
class Split:
    """The second factor of a product, split into what the first one will be multiplied by.

    Attributes:
        point: The factor as the model has it.
        pairs: Weights of the products, by what they are multiplied with.
        layout: Where the outputs lie.
        gap_dtype: Data type of the gaps and of their products.
        nonneg: Whether the first factor is known to be non-negative.
        moving: First, and one past the last, of the inputs that have gaps; None if all may have.
        whole: The factor as it came, for complex products.
        shares: By which shares inputs shrink and grow, each along the input's channels; None if they do not.
        repeats: How often values stand side by side in the first factor; None if it is not :class:`Repeated`.
    """

    point: Tensor
    pairs: dict[str, Tensor]
    layout: Layout | None
    gap_dtype: torch.dtype
    nonneg: bool
    whole: Interval | Stretched | Tensor
    moving: tuple[int, int] | None = None
    shares: tuple[Tensor, Tensor] | None = None
    repeats: Repeats | None = None

    @property
    def is_interval(self) -> bool:
        """Whether the factor has gaps."""
        return not isinstance(self.whole, Tensor)


def split(
    w: Interval | Stretched | Tensor,
    layout: Layout | None = None,
    *,
    by_interval: bool = True,
    nonneg: bool = False,
    exact: bool = False,
    gap_dtype: torch.dtype | None = None,
    moving: tuple[int, int, int] | None = None,
) -> Split:
    """Split a factor into the weights of the products that bound it.

    Args:
        w: The second factor of the product.
        layout: Where the outputs lie; None where two products cannot share a call.
        by_interval: Whether the first factor is an interval, else a point.
        nonneg: Whether the first factor is known to be non-negative.
        exact: Take the exact form instead of the default.
        gap_dtype: Data type of the products, where ``w`` is a point.
        moving: Where the first factor may have gaps, if not everywhere: a dimension,
            counted from the end, and from where to where along it.
    """
    if isinstance(w, Stretched):
        assert layout is not None
        return _split_stretched(w, layout, nonneg, gap_dtype or w.point.dtype)
    if has_complex(w):
        return Split(w.point if isinstance(w, Interval) else w, {}, None, w.dtype, False, w)
    nonneg = nonneg and layout is not None
    where = None
    if moving is not None and layout is not None and moving[0] == layout.output and layout.groups == 1:
        where = moving[1:]
    if not isinstance(w, Interval):
        dtype = gap_dtype or w.dtype
        pairs = _moving_inputs(_movable(w, layout, where).to(dtype)) if by_interval else {}
        return Split(w, _laid_out(pairs, layout), layout, dtype, nonneg, w, where)
    if exact and by_interval and layout is not None:
        pairs = _exact(w, layout, nonneg, where)
    else:
        pairs = _moving_weights(w, layout, nonneg)
        if by_interval:
            pairs |= _moving_inputs(_movable(w.point, layout, where).to(w.gap_dtype))
    return Split(w.point, _laid_out(pairs, layout), layout, w.gap_dtype, nonneg, w, where)


def _split_stretched(
    w: Stretched, layout: Layout, nonneg: bool, dtype: torch.dtype, repeats: Repeats | None = None
) -> Split:
    along = [-1] + [1] * (-1 - layout.output)  # the channels of the input
    shrink, grow = (share.flatten().repeat(layout.groups).view(along) for share in (w.shrink, w.grow))
    size, own = w.point.abs(), w.point
    if repeats is not None:  # weights that meet the same value stretch one by one, so they do not cancel
        size, own = repeats.kernel(size, dtype), repeats.kernel(own, dtype)
    pairs = {"sum": size.to(dtype) / 2, "difference": own.to(dtype) / 2}
    return Split(w.point, _laid_out(pairs, layout), layout, dtype, nonneg, w, shares=(shrink, grow))


def _split_repeated(w: Interval | Stretched | Tensor, repeats: Repeats, layout: Layout, **form: Any) -> Split:
    """Split the weight of a convolution of :class:`Repeated` values; see :func:`split` for what ``form`` may say."""
    layout = Layout(weight=1, inputs=0, output=layout.output, transposed=True)
    point = w if isinstance(w, Tensor) else w.point
    dtype = w.gap_dtype if isinstance(w, Interval) else form["gap_dtype"] or point.dtype
    if isinstance(w, Stretched):
        found = _split_stretched(w, layout, form["nonneg"], dtype, repeats)
    elif isinstance(w, Interval):  # sums of weights have the sums of their gaps
        below = repeats.kernel(w.below, dtype).to(dtype)
        above = below if w.above is w.below else repeats.kernel(w.above, dtype).to(dtype)
        found = split(Interval(repeats.kernel(point, dtype), below, above), layout, **form)
    else:
        found = split(repeats.kernel(w, dtype), layout, **form | {"gap_dtype": dtype})
    return replace(found, point=point, whole=w, repeats=repeats)


_FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}
_MIRRORED = (("sum", "difference"), ("reach_sum", "reach_difference"))
_AT_ONCE = 8  # channels that a tensor core takes at once
_FEW = 32  # entries of a window, up to which it is written out


def _laid_out(pairs: dict[str, Tensor], layout: Layout | None) -> dict[str, Tensor]:
    """Return the weights of convolutions as tensor cores take them: channels last, lest each call turns them."""
    if not all(w.is_cuda and w.dim() in _FORMATS for w in pairs.values()):
        return pairs
    if layout is not None:
        pairs = packed(pairs, layout)
    return {n: w.contiguous(memory_format=_FORMATS[w.dim()]) if w.dim() in _FORMATS else w for n, w in pairs.items()}


def side_by_side(w: Split) -> Split:
    """Return the weight of a convolution with one product for sums and one for differences, each from joined inputs.

    Their halves are what moves with the inputs, ``sum`` and ``difference``, and what moves with the weights.
    """
    layout, pairs = w.layout, dict(w.pairs)
    if layout is None or layout.groups != 1 or not {"sum", "difference"} <= pairs.keys():
        return w
    even, odd = pairs.pop("sum"), pairs.pop("difference")
    if even.dim() not in _FORMATS or not pairs:
        return w
    reach: tuple[Tensor, ...]
    if "reach_both" in pairs:
        reach = (pairs["reach_both"],)
    elif "reach" in pairs:
        above, below = pairs["reach"].chunk(2, layout.weight)
        reach = ((above + below) / 2, (above - below) / 2)
    else:
        reach = (pairs["reach_sum"], pairs["reach_difference"])
    both = [torch.cat(halves, layout.inputs) for halves in zip((even, odd), reach, strict=False)]
    even, odd = (each.contiguous(memory_format=_FORMATS[each.dim()]) for each in (*both, odd)[:2])
    return replace(w, pairs={"even": even, "odd": odd})


def packed(pairs: dict[str, Tensor], layout: Layout) -> dict[str, Tensor]:
    """Make one weight of two, for a sum and a difference, where so few channels come in that one product takes both.

    Tensor cores take eight channels at once, so nothing is saved where fewer come, as in the layer that sees an image.
    Where not even the windows have many entries, these become rows, and the weight a matrix.
    """
    pairs = dict(pairs)
    for first, second in _MIRRORED:
        if second in pairs and layout.groups == 1 and 2 * pairs[first].size(layout.inputs) <= _AT_ONCE:
            even, odd = pairs[first], pairs.pop(second)
            none = torch.zeros_like(even)
            both = layout.stack(torch.cat((even, none), layout.inputs), torch.cat((none, odd), layout.inputs))
            pairs[first] = both if _by_window(both, layout) else _filled(both, layout.inputs)
    return {n: _filled(w.flatten(1), 1).T.contiguous() if _by_window(w, layout) else w for n, w in pairs.items()}


def _by_window(w: Tensor, layout: Layout) -> bool:
    """Say whether a weight takes so few entries of each window that it is multiplied as a matrix."""
    few = w.size(layout.inputs) <= _AT_ONCE and w[0].numel() <= _FEW
    return few and bool(layout.window) and layout.groups == 1


def _filled(x: Tensor, dim: int) -> Tensor:
    """Return ``x`` with zeros behind its channels, up to as many as are taken at once."""
    rest = list(x.shape)
    rest[dim] = -x.size(dim) % _AT_ONCE
    return torch.cat((x, x.new_zeros(rest)), dim)


def _windows(
    x: Tensor, w: Tensor, window: tuple[int, ...], stride: Any = 1, padding: Any = 0, dilation: Any = 1, *rest: Any
) -> Tensor:
    """Return a convolution as a matrix product of windows written out; channels come last in memory."""
    rows: Tensor = _filled(functional.unfold(x, window, dilation, padding, stride), -2).transpose(-1, -2)
    pad, spread, step = (_sizes(given)[0] for given in (padding, dilation, stride))
    height = (x.size(-2) + 2 * pad - spread * (window[0] - 1) - 1) // step + 1
    result: Tensor = (rows @ w).transpose(-1, -2).unflatten(-1, (height, -1))
    return result


def _movable(w: Tensor, layout: Layout | None, moving: tuple[int, int] | None) -> Tensor:
    """Return the part of a weight that meets inputs with gaps."""
    if layout is None or moving is None:
        return w
    return w.narrow(layout.inputs, moving[0], moving[1] - moving[0])


def _moving_inputs(w: Tensor) -> dict[str, Tensor]:
    """Weights for ``W+*a + W-*b`` and its mirror."""
    return {"sum": w.abs() / 2, "difference": w / 2}


def _moving_weights(w: Interval, layout: Layout | None, nonneg: bool) -> dict[str, Tensor]:
    """Weights for ``U*x+ + D*x-`` and its mirror; only one where the same gaps lie on both sides."""
    if w.above is w.below:
        return {"reach_both": w.above}
    if nonneg and layout is not None:
        return {"reach": layout.stack(w.above, w.below)}
    return {"reach_sum": (w.above + w.below) / 2, "reach_difference": (w.above - w.below) / 2}


def _exact(w: Interval, layout: Layout, nonneg: bool, moving: tuple[int, int] | None) -> dict[str, Tensor]:
    """Weights for each corner, stacked as (above, below), by the input they belong to."""
    lower, upper = (_movable(end, layout, moving) for end in (w.lower, w.upper))
    lower_pos, lower_neg = (part.to(w.gap_dtype) for part in (cut(lower), cut(-lower)))
    upper_pos, upper_neg = (part.to(w.gap_dtype) for part in (cut(upper), cut(-upper)))
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


def gaps(product: Product, x: Factor, w: Split) -> tuple[Tensor, Tensor]:
    """Return how far the product reaches below and above its point."""
    if "c+" in w.pairs:
        return _exact_gaps(product, Interval.of(x) if isinstance(x, Tensor) else x, w)
    if "even" in w.pairs:
        return _gaps_side_by_side(product, x, w)
    above: Tensor | None = None
    below: Tensor | None = None
    for high, low in (_weights_move(product, x, w), _inputs_move(product, x, w)):
        if high is not None and low is not None:
            above = high if above is None else above + high
            below = low if below is None else below + low
    assert above is not None and below is not None
    return cut(below), cut(above)


def _gaps_side_by_side(product: Product, x: Factor, w: Split) -> tuple[Tensor, Tensor]:
    assert w.layout is not None
    even, odd = w.pairs["even"], w.pairs["odd"]
    symmetric = odd.size(w.layout.inputs) < even.size(w.layout.inputs)

    def reach(part: Interval | Tensor) -> tuple[Tensor, ...]:
        both = (_upper(part),) * 2 if w.nonneg else _reach(part)
        return tuple(end.to(w.gap_dtype) for end in (both[:1] if symmetric else both))

    far = _by_part(x, reach)
    near = _by_part(x, lambda part: _sum_and_difference(part, w.gap_dtype), moving=w.moving is not None)
    total, difference = (gap.to(w.gap_dtype) for gap in near)
    total = product(beside([total, far[0]], w.layout.output), even)
    difference = product(difference if symmetric else beside([difference, far[1]], w.layout.output), odd)
    above, below = mirrored(total, difference)
    return cut(below), cut(above)


Pair = tuple[Tensor, Tensor] | tuple[None, None]


def _weights_move(product: Product, x: Factor, w: Split) -> Pair:
    if "reach_both" in w.pairs:
        (reach,) = _by_part(x, lambda part: (_farthest(part, nonneg=w.nonneg).to(w.gap_dtype),))
        both = product(reach, w.pairs["reach_both"])
        return both, both
    if "reach" in w.pairs:
        assert w.layout is not None
        (reach,) = _by_part(x, lambda part: (_upper(part).to(w.gap_dtype),))
        return w.layout.unstack(product(reach, w.pairs["reach"]))
    if "reach_sum" not in w.pairs:
        return None, None
    total, difference = _by_part(x, _reach)
    return _pair(product, total, difference, w, "reach_sum", "reach_difference")


def _inputs_move(product: Product, x: Factor, w: Split) -> Pair:
    if w.shares is not None:
        return _pair(product, *_with_shares(x, w), w, "sum", "difference")
    if isinstance(x, Tensor):
        return None, None
    moving = w.moving is not None
    total, difference = _by_part(x, lambda part: _sum_and_difference(part, w.gap_dtype), moving=moving)
    return _pair(product, total, difference, w, "sum", "difference")


def _by_part(
    x: Factor, make: Callable[[Interval | Tensor], tuple[Tensor, ...]], *, moving: bool = False
) -> tuple[Tensor, ...]:
    return x.each(make, moving=moving) if isinstance(x, Joined) else make(x)


def _upper(x: Interval | Tensor) -> Tensor:
    return x.upper if isinstance(x, Interval) else x


def _farthest(x: Interval | Tensor, *, nonneg: bool) -> Tensor:
    """Return ``x+ + x-``."""
    return _upper(x) if nonneg else _reach(x)[0]


def _reach(x: Interval | Tensor) -> tuple[Tensor, Tensor]:
    """Return ``x+ + x-`` and ``x+ - x-``."""
    if isinstance(x, Tensor):
        return x.abs(), x
    high, low = cut(x.upper), cut(-x.lower)
    return high + low, high - low


def _sum_and_difference(x: Interval | Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return sum and difference of the gaps, rounded no more coarsely than ``dtype``, in which they are multiplied."""
    if isinstance(x, Interval):
        below, above = (gap.to(torch.promote_types(gap.dtype, dtype)) for gap in (x.below, x.above))
        return above + below, above - below
    zero = torch.zeros_like(x)
    return zero, zero


def _with_shares(x: Factor, w: Split) -> tuple[Tensor, Tensor]:
    """Return sum and difference of the gaps of inputs that carry the shares by which weights shrink and grow."""
    assert w.layout is not None and w.shares is not None
    if not isinstance(x, Joined):
        return _stretched(x, *w.shares, nonneg=w.nonneg)
    shares: Any = (w.shares,) * len(x.parts)
    if x.dim == w.layout.output:
        sizes = [_point(part).size(x.dim) for part in x.parts]
        shares = zip(*(share.split(sizes) for share in w.shares), strict=True)
    made = [_stretched(part, *own, nonneg=w.nonneg) for part, own in zip(x.parts, shares, strict=True)]
    total, difference = ([side.to(w.gap_dtype) for side in sides] for sides in zip(*made, strict=True))
    return torch.cat(total, x.dim), torch.cat(difference, x.dim)


def _stretched(x: Interval | Tensor, shrink: Tensor, grow: Tensor, *, nonneg: bool) -> tuple[Tensor, Tensor]:
    """Return sum and difference of the gaps of ``x`` times a factor from ``1 - shrink`` to ``1 + grow``, exactly."""
    if isinstance(x, Tensor):
        return (grow + shrink) * x.abs(), (grow - shrink) * x
    upper, lower = x.upper, x.lower
    if nonneg:
        above, below = x.above + grow * upper, x.below + shrink * lower
    else:
        above = x.above + grow * cut(upper) + shrink * cut(-upper)
        below = x.below + shrink * cut(lower) + grow * cut(-lower)
    return above + below, above - below


def _pair(product: Product, total: Tensor, difference: Tensor, w: Split, first: str, second: str) -> Pair:
    """Return ``P*p + Q*q`` and ``Q*p + P*q`` from the sums and the differences."""
    total, difference = total.to(w.gap_dtype), difference.to(w.gap_dtype)
    if second not in w.pairs:
        assert w.layout is not None
        both = torch.cat((total, difference), w.layout.output)
        both = both if _is_matrix(w.pairs[first], w) else _filled(both, w.layout.output)
        even, odd = w.layout.unstack(product(both, w.pairs[first]))
    else:
        even, odd = product(total, w.pairs[first]), product(difference, w.pairs[second])
    return mirrored(even, odd)


def _is_matrix(w: Tensor, whole: Split) -> bool:
    """Say whether the weight of a product is a matrix for windows, where that of the layer is not."""
    return w.dim() == 2 < whole.point.dim()


def _exact_gaps(product: Product, x: Interval | Joined, w: Split) -> tuple[Tensor, Tensor]:
    assert w.layout is not None
    x = x.whole() if isinstance(x, Joined) and w.moving is None else x
    below, above = x.moving if isinstance(x, Joined) else (x.below, x.above)
    if w.nonneg:
        parts = {"c+": x.point, "a+": above, "b+": below}
    else:
        point = x.point
        positive = cut(point)
        start, stop = w.moving or (0, point.size(w.layout.output))
        c, kept = (part.narrow(w.layout.output, start, stop - start) for part in (point, positive))
        up = cut(c + above) - kept
        down = kept - cut(c - below)
        parts = {"c+": positive, "a+": up, "b+": down}
        parts |= {"c-": cut(-point), "a-": above - up, "b-": below - down}
    both = sum(product(part.to(w.gap_dtype), w.pairs[name]) for name, part in parts.items())
    assert isinstance(both, Tensor)
    high, low = w.layout.unstack(both)
    return cut(low), cut(high)


def bound_product(fn: Product, x: Factor, w: Split) -> Interval:
    """Bound ``fn(x, w)`` for a bilinear ``fn``."""
    point = fn(_point(x), w.point)
    if has_complex(point):
        x = x.whole() if isinstance(x, Joined) else x
        assert not isinstance(w.whole, Stretched)

        def multiply(a: Interval | Tensor, b: Interval | Tensor) -> Interval:
            return bound_product(fn, a, split(b, by_interval=isinstance(a, Interval)))

        return box(point, *complex_product(multiply, x, w.whole))
    below, above = gaps(fn, x, w)
    return Interval(point, below, above)


def _point(x: Any) -> Any:
    return x.point if isinstance(x, Interval | Joined | Repeated) else x


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
        return Layout(weight=0, inputs=1, output=-1)
    if packet is aten.convolution:
        transposed, groups = rest[3], rest[5]
        spatial = weight.dim() - 2
    else:
        spatial, transposed = _CONVOLUTIONS[packet]
        groups = rest[3] if len(rest) > 3 else 1
    named = len(rest) > 1 and isinstance(rest[1], str)  # a padding such as "same"
    window = tuple(weight.shape[2:]) if spatial == 2 and not transposed and not named else ()
    return Layout(int(transposed), int(not transposed), -1 - spatial, groups, transposed, window)


def repeats_before(
    fn: Any, weight: Tensor, rest: tuple[Any, ...], times: list[int], zeros: list[int]
) -> tuple[tuple[int, ...], ...] | None:
    """Return what :class:`Repeats` takes, for a convolution of repeated values; None where it cannot take them once.

    Args:
        fn: The operation.
        weight: Its weight.
        rest: What it takes behind weight and bias.
        times: How often each value stands side by side, along each spatial dimension.
        zeros: Zeros around these, as ``torch.nn.functional.pad`` takes them.
    """
    spatial, transposed = _CONVOLUTIONS.get(fn.overloadpacket, (0, False))
    settings: list[Any] = [*rest, *(1, 0, 1, 1)[len(rest) :]]
    if transposed or len(times) != spatial or len(zeros) > 2 * spatial or settings[3] != 1:
        return None
    steps, own, dilation = ([*size] if len(size) > 1 else [*size] * spatial for size in map(_sizes, settings[:3]))
    window = tuple(weight.shape[2:])
    if {*steps, *dilation} != {1} or not all(type(size) is int for size in (*own, *window)):  # known before it runs
        return None
    zeros = zeros + [0] * (2 * spatial - len(zeros))  # from the last dimension on
    before = tuple(zeros[-2 - 2 * i] + own[i] for i in range(spatial))
    after = tuple(zeros[-1 - 2 * i] + own[i] for i in range(spatial))
    return (tuple(times), before, after) if Repeats(tuple(times), before, after).fits(window) else None


def _sizes(given: Any) -> list[int]:
    """Return a setting of a convolution as a list: of one number for all dimensions, or of one for each."""
    return list(given) if isinstance(given, list | tuple) else [given]


def stretches(fn: Any, weight: Tensor, rest: tuple[Any, ...]) -> bool:
    """Say whether a layer takes a :class:`Stretched` as its weight: its second dimension must count the inputs."""
    return _layout(fn, weight, rest).inputs == 1


def prepare_layer(
    fn: Any,
    x: Any,
    weight: Interval | Stretched | Tensor,
    bias: Any = None,
    *rest: Any,
    repeats: tuple[tuple[int, ...], ...] | None = None,
    **form: Any,
) -> Split:
    """Split the weight of a layer; see :func:`split` for what ``form`` may say, :class:`Repeats` for ``repeats``."""
    shape = weight.point if isinstance(weight, Stretched) else weight
    layout = _layout(fn, shape, rest) if shape.dim() > 1 else None
    if repeats is None:
        return split(weight, layout, **form)
    assert layout is not None
    return _split_repeated(weight, Repeats(*repeats), layout, **form)


@rule(aten.linear, aten.convolution, *_CONVOLUTIONS, takes=(0, 1, 2), prepare=prepare_layer, complexes=True)
def layer(fn: Any, x: Factor | Repeated, weight: Split, bias: Interval | Tensor | None = None, *rest: Any) -> Interval:
    """Bound a layer with weights and, perhaps, a bias."""
    if has_complex(bias) and not has_complex(weight.point):
        raise TypeError(f"{fn} has a complex bias and a real weight; make both of one kind")
    if has_complex(weight.point):
        return _complex_layer(fn, x, weight.whole, bias, *rest)
    point = fn(_point(x), weight.point, _point(bias), *rest)

    def product(a: Tensor, w: Tensor) -> Tensor:
        if weight.repeats is not None:
            return weight.repeats.product(a, w)
        if _is_matrix(w, weight):
            assert weight.layout is not None
            return _windows(a, w, weight.layout.window, *rest)
        return fn(a, w, None, *rest)  # type: ignore[no-any-return]

    if not isinstance(x, Tensor) or weight.is_interval:
        below, above = gaps(product, x.values if isinstance(x, Repeated) else x, weight)
    else:  # only the bias is an interval
        below = above = torch.zeros_like(point, dtype=weight.gap_dtype)
    if isinstance(bias, Interval):
        assert weight.layout is not None
        shape = [-1] + [1] * (-1 - weight.layout.output)
        below, above = below + bias.below.view(shape), above + bias.above.view(shape)
    return Interval(point, below, above)


def _complex_layer(fn: Any, x: Any, weight: Any, bias: Interval | Tensor | None, *rest: Any) -> Interval:
    """Bound a layer of complex numbers by layers of their parts."""

    def real_layer(a: Interval | Tensor, w: Interval | Tensor) -> Interval:
        return layer(fn, a, prepare_layer(fn, a, w, None, *rest, by_interval=isinstance(a, Interval)), None, *rest)

    point = fn(_point(x), _point(weight), _point(bias), *rest)
    moves = isinstance(x, Interval) or isinstance(weight, Interval)
    bounds = box(point, *complex_product(real_layer, x, weight)) if moves else Interval.of(point)
    if isinstance(bias, Interval):
        shape = [-1] + [1] * (-1 - _layout(fn, weight, rest).output)
        sides = (plus(bounds.below, bias.below.view(shape)), plus(bounds.above, bias.above.view(shape)))
        bounds = Interval(point, *sides)
    return bounds


# --- matrix products ---


def prepare_matrix(fn: Any, x: Any, w: Interval | Tensor, **form: Any) -> Split:
    """Split the second factor of a matrix product."""
    return split(w, Layout(weight=-1, inputs=-2, output=-1) if w.dim() > 1 else None, **form)


@rule(aten.mm, aten.bmm, aten.matmul, aten.mv, aten.dot, takes=(0, 1), prepare=prepare_matrix, complexes=True)
def matrix_product(fn: Any, x: Factor, w: Split) -> Interval:
    """Bound a product of two matrices, either or both of them intervals."""
    return bound_product(fn, x, w)


@rule(aten.vdot, takes=(0, 1), prepare=prepare_matrix, complexes=True)
def conjugate_product(fn: Any, x: Factor, w: Split) -> Interval:
    """Bound a product of two vectors, the first of them conjugated."""
    x = x.whole() if isinstance(x, Joined) else x
    if has_complex(x):
        x = conjugate(aten._conj.default, x) if isinstance(x, Interval) else x.conj()
    product = bound_product(aten.dot.default, x, w)
    return Interval(fn(_point(x).conj(), w.point), product.below, product.above)


_FUSED = {aten.addmm: aten.mm, aten.baddbmm: aten.bmm, aten.addmv: aten.mv, aten.addbmm: aten.bmm}


@rule(*_FUSED, takes=(0, 1, 2), complexes=True)
def fused_matrix_product(
    fn: Any, bias: Interval | Tensor, x: Interval | Tensor, w: Interval | Tensor, *, beta: float = 1, alpha: float = 1
) -> Interval:
    """Bound ``beta * bias + alpha * (x @ w)``, of a batch one by one or added up."""
    product = _FUSED[fn.overloadpacket].default
    gap = Interval.of(bias) * beta
    if isinstance(x, Interval) or isinstance(w, Interval):
        terms = bound_product(product, x, split(w, by_interval=isinstance(x, Interval)))
        gap = gap + (terms.map(lambda part: part.sum(0)) if fn.overloadpacket is aten.addbmm else terms) * alpha
    point = fn(_point(bias), _point(x), _point(w), beta=beta, alpha=alpha)
    return Interval(point, gap.below.expand(point.shape), gap.above.expand(point.shape))
