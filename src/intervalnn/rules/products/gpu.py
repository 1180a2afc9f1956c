"""What a GPU's memory asks of products: how their weights lie, and what is joined so that less is written and read.

Tensor cores take channels last, and eight of them at once. So the weights of convolutions are laid out so
(:func:`laid_out`), those that few channels meet share one product (:class:`Packed`), and of short windows the
convolution is a matrix product (:class:`Windows`). Compiled, what moves with the weights and what moves with the inputs
becomes one product of twice as many channels (:func:`side_by_side`), so that half as many results are written and read
again. It pays only where the pass that computes both halves writes each to its place (:func:`beside`), and where joins
are part of such a pass (:func:`one_pass`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch
from torch import Tensor, fx
from torch.nn import functional

from intervalnn.interval import Interval
from intervalnn.rules.mirrored import mirrored
from intervalnn.rules.products.factors import Factor, by_part, reach, sum_and_difference, upper
from intervalnn.rules.products.forms import OneGap, OneSided, Pair, Product, Sides, Sum, WeightsMove
from intervalnn.rules.products.layout import Layout, sizes
from intervalnn.rules.products.split import Split
from intervalnn.table import aten
from intervalnn.torch_private import write_parts

__all__ = ["Windows", "beside", "for_compiler", "laid_out", "one_pass", "packed", "side_by_side", "teach_compiler"]

FORMATS = {2: torch.channels_last, 3: torch.channels_last_3d}  # by the number of spatial dimensions
AT_ONCE = 8  # channels that a tensor core takes at once
FEW = 32  # entries of a window, up to which it is written out


# --- how weights lie ---


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """The weight of a convolution as a matrix, for windows that are written out as rows.

    Attributes:
        matrix: Entries of a window along its rows, filled up with zeros; outputs along its columns.
        window: Height and width of a window.
    """

    matrix: Tensor
    window: tuple[int, ...]

    @property
    def dtype(self) -> torch.dtype:
        """Data type of the product."""
        return self.matrix.dtype

    @staticmethod
    def of(w: Tensor, layout: Layout) -> Windows:
        """Return the weight of a convolution as a matrix."""
        return Windows(_filled(w.flatten(1), 1).T.contiguous(), layout.window)

    def product(self, x: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1, *_: Any) -> Tensor:
        """Return the convolution; channels come last in memory."""
        rows: Tensor = functional.unfold(x, self.window, dilation, padding, stride)
        rows = _filled(rows, -2).transpose(-1, -2)
        pad, spread, step = (sizes(given)[0] for given in (padding, dilation, stride))
        height = (x.size(-2) + 2 * pad - spread * (self.window[0] - 1) - 1) // step + 1
        result: Tensor = (rows @ self.matrix).transpose(-1, -2).unflatten(-1, (height, -1))
        return result


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """A :class:`Pair` whose two products are one, where so few channels come in that tensor cores take both at once.

    Attributes:
        weight: The weight of sums and differences joined: no output of the even half meets a difference.
        layout: How the results lie.
    """

    weight: Tensor | Windows
    layout: Layout

    @property
    def dtype(self) -> torch.dtype:
        """Data type of the product."""
        return self.weight.dtype

    @staticmethod
    def of(pair: Pair, layout: Layout) -> Packed:
        """Return the pair as one weight."""
        none = torch.zeros_like(pair.even)
        halves = torch.cat((pair.even, none), layout.inputs), torch.cat((none, pair.odd), layout.inputs)
        both = layout.stack(*halves)
        if not _by_window(both, layout):
            both = _filled(both, layout.inputs)
        return Packed(_laid_out(both, layout), layout)

    def sides(self, product: Product, total: Tensor, difference: Tensor) -> Sides:
        """Return both results, from their sums and differences."""
        both = torch.cat((total.to(self.dtype), difference.to(self.dtype)), self.layout.output)
        if not isinstance(self.weight, Windows):
            both = _filled(both, self.layout.output)
        return mirrored(*self.layout.unstack(product(both, self.weight)))


def laid_out(w: Split) -> Split:
    """Return a convolution's weight on a GPU as tensor cores take it, lest each call turns it; others unchanged."""
    return packed(w) if w.point.is_cuda else w


def packed(w: Split) -> Split:
    """Return the weight of a convolution of images or volumes as tensor cores take it, others as they are."""
    if w.form is None or w.layout is None or w.layout.spatial not in FORMATS:
        return w
    return replace(w, form=_in_form(w.form, w.layout))


def _in_form(form: Any, layout: Layout) -> Any:
    if isinstance(form, Sum):
        return Sum(_in_form(form.weights, layout), _in_form(form.inputs, layout))
    return replace(form, weights=_each(form.weights, layout))


def _each(weights: Any, layout: Layout) -> Any:
    if isinstance(weights, tuple):
        return tuple(_laid_out(w, layout) for w in weights)
    if not isinstance(weights, Pair):
        return _laid_out(weights, layout)
    if layout.groups == 1 and 2 * weights.even.size(layout.inputs) <= AT_ONCE:
        return Packed.of(weights, layout)
    return Pair(_laid_out(weights.even, layout), _laid_out(weights.odd, layout))


def _laid_out(w: Tensor, layout: Layout) -> Tensor | Windows:
    return Windows.of(w, layout) if _by_window(w, layout) else _channels_last(w, layout)


def _channels_last(w: Tensor, layout: Layout) -> Tensor:
    return w.contiguous(memory_format=FORMATS[layout.spatial])


def _by_window(w: Tensor, layout: Layout) -> bool:
    """Say whether a weight takes so few entries of each window that it is multiplied as a matrix."""
    few = w.size(layout.inputs) <= AT_ONCE and w[0].numel() <= FEW
    return few and bool(layout.window) and layout.groups == 1


def _filled(x: Tensor, dim: int) -> Tensor:
    """Return ``x`` with its channels padded by zeros, up to the number that a tensor core takes at once."""
    rest = list(x.shape)
    rest[dim] = -x.size(dim) % AT_ONCE
    return torch.cat((x, x.new_zeros(rest)), dim)


# --- what is joined in a compiled forward pass ---


@dataclass(frozen=True, slots=True, eq=False)
class SideBySide:
    """Weights and inputs move: one product for sums and one for differences, each of joined channels.

    The halves are those of :class:`InputsMove`, then those of what the weights bring::

        even = |W|/2 * (a + b) + (U + D)/2 * (x+ + x-)
        odd  =  W/2  * (a - b) + (U - D)/2 * (x+ - x-)      nothing behind the first term where U = D
        above = even + odd
        below = even - odd

    Attributes:
        even: Weights of the sums.
        odd: Weights of the differences.
        layout: Where the channels lie.
        moving_only: Whether the weights of the gaps are those of a joined factor's moving parts alone.
        nonneg: Whether inputs are never negative: ``x- = 0``.
        one_gap: Whether ``U = D``.
    """

    even: Tensor
    odd: Tensor
    layout: Layout
    moving_only: bool
    nonneg: bool
    one_gap: bool

    @staticmethod
    def of(form: Sum, near: Pair, layout: Layout) -> SideBySide:
        """Return the form of a convolution whose weights and inputs move, ``near`` being the weights of the gaps."""
        one_gap, far = isinstance(form.weights, OneGap), _halves(form.weights, layout)
        nonneg = isinstance(form.weights, OneSided) or (isinstance(form.weights, OneGap) and form.weights.nonneg)
        even = torch.cat((near.even, far[0]), layout.inputs)
        odd = near.odd if one_gap else torch.cat((near.odd, far[1]), layout.inputs)
        even, odd = (_channels_last(each, layout) for each in (even, odd))
        return SideBySide(even, odd, layout, form.inputs.moving_only, nonneg, one_gap)

    def sides(self, product: Product, x: Factor) -> Sides:
        """Multiply the gaps of ``x`` beside how far it is from zero."""
        dtype, dim = self.even.dtype, self.layout.output
        far = by_part(x, self._far)
        near = by_part(x, lambda part: sum_and_difference(part, dtype), moving=self.moving_only)
        total, difference = (gap.to(dtype) for gap in near)
        even = product(beside([total, far[0]], dim), self.even)
        odd = product(difference if self.one_gap else beside([difference, far[1]], dim), self.odd)
        return mirrored(even, odd)

    def _far(self, x: Interval | Tensor) -> tuple[Tensor, ...]:
        ends = (upper(x),) * 2 if self.nonneg else reach(x)
        return tuple(end.to(self.even.dtype) for end in (ends[:1] if self.one_gap else ends))


def _halves(weights: WeightsMove | OneSided | OneGap, layout: Layout) -> tuple[Tensor, ...]:
    """Return ``(U + D)/2``, and ``(U - D)/2`` unless it is zero."""
    if isinstance(weights, OneGap):
        return (weights.weights,)
    if isinstance(weights, OneSided):
        above, below = weights.weights.chunk(2, layout.weight)
        return (above + below) / 2, (above - below) / 2
    assert isinstance(weights.weights, Pair)  # of no fewer channels than those of the gaps, which are not packed
    return weights.weights.even, weights.weights.odd


def for_compiler(value: Any) -> Any:
    """Return what was prepared in the form that a compiled forward pass on a GPU computes soonest."""
    return side_by_side(value) if isinstance(value, Split) and value.point.is_cuda else value


def side_by_side(w: Split) -> Split:
    """Return the weight of a convolution with one product for sums and one for differences, each from joined inputs."""
    if w.layout is None or w.layout.spatial not in FORMATS or w.layout.groups != 1 or not isinstance(w.form, Sum):
        return w
    near = w.form.inputs.weights
    if not (isinstance(near, Pair) and isinstance(near.even, Tensor)):  # packed, or as windows
        return w
    return replace(w, form=SideBySide.of(w.form, near, w.layout))


@torch.library.custom_op("intervalnn::beside", mutates_args=())
def _join(parts: list[Tensor], dim: int) -> Tensor:
    return torch.cat(parts, dim)


@_join.register_fake
def _(parts: list[Tensor], dim: int) -> Tensor:
    return torch.cat(parts, dim)


def beside(parts: list[Tensor], dim: int) -> Tensor:
    """Return the parts joined along ``dim``, counted from the end.

    For a plain ``torch.cat`` on a GPU, torch's compiler computes every part at every position, and selects one. This
    pays where the parts are computed from different values, not where all are computed from the same.
    """
    if torch.compiler.is_dynamo_compiling() and not torch.is_grad_enabled():
        joined: Tensor = _join(parts, parts[0].dim() + dim)
        return joined
    return torch.cat(parts, dim)


# --- what torch's compiler is told ---


@cache
def teach_compiler() -> None:
    """Make torch's compiler write each part directly into the joined tensor."""
    write_parts(torch.ops.intervalnn.beside.default)


# How much torch's compiler may compute anew, or read at once, before it writes a value to memory. Between two products
# of intervals lie some 60 operations on 8 values, four times as many where a pool lies too; by its own defaults (30, 4
# and 8) the compiler cuts them into several passes.
_ONE_PASS = {"realize_reads_threshold": 8, "realize_acc_reads_threshold": 64, "realize_opcount_threshold": 500}
# What by itself takes more than that.
_LONG = {aten.layer_norm, aten.native_layer_norm, aten.rms_norm, aten.group_norm, aten.native_group_norm, aten.gelu}
_FEW_PARTS = 4  # of a value that are joined at a product, in the pass before it, rather than each in its own pass


def one_pass(program: fx.GraphModule, device: torch.device) -> dict[str, Any]:
    """Return options by which torch's compiler makes one pass of what lies between two products.

    Return None where many operations lie between two products: fusing them all takes far longer to compile, and runs no
    faster.
    """
    called = {getattr(node.args[0], "overloadpacket", None) for node in program.graph.nodes if node.args}
    if called & _LONG:
        return {}
    lists = (arg for node in program.graph.nodes for arg in node.args if isinstance(arg, list | tuple))
    few = all(sum(isinstance(part, fx.Node) for part in parts) <= _FEW_PARTS for parts in lists)
    return _ONE_PASS | ({"force_pointwise_cat": True} if few and device.type == "cuda" else {})
