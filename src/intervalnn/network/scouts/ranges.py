"""Ranges: between which numbers an output of a model must lie, as its last operations say."""

from __future__ import annotations

import math
import operator
from typing import Any

from torch import fx

from intervalnn.table import aten, by_position

__all__ = ["range_of"]

Range = tuple[float, float]
_ANY: Range = (-math.inf, math.inf)
_HIGHEST = 64  # power whose range is told
_FIXED: dict[Any, Range] = {
    **dict.fromkeys((aten.sigmoid, aten.hardsigmoid, aten.softmax, aten._softmax), (0.0, 1.0)),
    **dict.fromkeys((aten.tanh, aten.sin, aten.cos, aten.erf), (-1.0, 1.0)),
    **dict.fromkeys(
        (aten.log_softmax, aten._log_softmax, aten.log_sigmoid, aten.log_sigmoid_forward), (-math.inf, 0.0)
    ),
    **dict.fromkeys((aten.relu, aten.softplus, aten.exp, aten.abs, aten.square, aten.sqrt), (0.0, math.inf)),
    aten.relu6: (0.0, 6.0),
    **dict.fromkeys((aten.zeros_like, aten.zeros), (0.0, 0.0)),
    **dict.fromkeys((aten.ones_like, aten.ones), (1.0, 1.0)),
}
# What moves values, picks some of them, or takes means of them.
_KEEPS = {
    *(aten.view, aten._unsafe_view, aten.reshape, aten.permute, aten.transpose, aten.squeeze, aten.unsqueeze),
    *(aten.expand, aten.slice, aten.select, aten.flatten, aten.unflatten, aten.flip, aten.roll, aten.clone),
    *(aten.contiguous, aten.alias, aten.narrow, aten.movedim, aten.pixel_shuffle, aten.pixel_unshuffle, aten.t),
    *(aten.max_pool1d, aten.max_pool2d, aten.max_pool3d, aten.adaptive_avg_pool1d, aten.adaptive_avg_pool2d),
    *(aten.upsample_nearest1d, aten.upsample_nearest2d, aten.upsample_nearest3d, aten.mean),
    *(aten.upsample_linear1d, aten.upsample_bilinear2d, aten.upsample_trilinear3d),
    *(aten._to_copy, aten.index_select, aten.gather, aten.index, aten.amax, aten.amin, aten.unbind, aten.split),
    *(aten.split_with_sizes, aten.chunk, aten.detach),
}


def range_of(node: Any) -> Range:
    """Return the least and the largest number that a value can be; infinite where its last operations do not say.

    Example:
        >>> graph = fx.Graph()
        >>> x = graph.placeholder("x")
        >>> y = graph.call_function(aten.view.default, (graph.call_function(aten.sigmoid.default, (x,)), [-1]))
        >>> range_of(y), range_of(x)
        ((0.0, 1.0), (-inf, inf))
        >>> range_of(graph.call_function(aten.rsub.Scalar, (y, 1)))
        (0.0, 1.0)
    """
    if isinstance(node, int | float):
        return float(node), float(node)
    if not isinstance(node, fx.Node) or node.op != "call_function":
        return _ANY
    packet = getattr(node.target, "overloadpacket", None)
    if packet in _FIXED:
        return _FIXED[packet]
    if packet in _KEEPS or node.target is operator.getitem:
        return range_of(node.args[0])
    args, _ = by_position(node.target, node.args, node.kwargs)
    if packet in (aten.full_like, aten.full):
        return range_of(args[1])
    if packet in (aten.cat, aten.stack):
        return _union(*args[0])
    if packet is aten.where:
        return _union(*args[1:])
    if packet in (aten.clamp, aten.hardtanh, aten.clamp_min, aten.clamp_max):
        return _cut(packet, args)
    return _computed(packet, args)


def _union(*values: Any) -> Range:
    ranges = [range_of(value) for value in values]
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def _computed(packet: Any, args: tuple[Any, ...]) -> Range:
    """Return the range of a sum, a product or a quotient, up to rounding."""
    if packet in (aten.add, aten.sub, aten.rsub) and (len(args) < 3 or args[2] == 1):
        (a, b), (c, d) = (range_of(value) for value in (args[1::-1] if packet is aten.rsub else args[:2]))
        return (a + c, b + d) if packet is aten.add else (a - d, b - c)
    if packet is aten.neg:
        low, high = range_of(args[0])
        return -high, -low
    if packet is aten.mul or (packet is aten.div and len(args) == 2 and isinstance(args[1], int | float) and args[1]):
        first, second = range_of(args[0]), range_of(args[1] if packet is aten.mul else 1 / args[1])
        ends = [a * b if a and b else 0.0 for a in first for b in second]  # zero times infinity is zero here
        return min(ends), max(ends)
    if packet is aten.pow and isinstance(args[1], int) and 0 < args[1] <= _HIGHEST:
        low, high = range_of(args[0])
        ends = [math.prod([end] * args[1]) for end in (low, high)]  # infinite where Python's own power raises
        return (0.0 if args[1] % 2 == 0 and low <= 0 <= high else min(ends)), max(ends)
    return _ANY


def _cut(packet: Any, args: tuple[Any, ...]) -> Range:
    """Return the range of a value between two limits, of which either may be missing, or a tensor."""
    x, *limits = args
    if packet is aten.clamp_max:
        limits = [None, *limits]
    if packet is aten.hardtanh:
        limits = [*limits, *(-1.0, 1.0)[len(limits) :]]
    (low, high), (least, most) = range_of(x), ([_number(limit) for limit in limits] + [None, None])[:2]
    least, most = -math.inf if least is None else least, math.inf if most is None else most
    return min(max(low, least), most), max(min(high, most), min(least, most))


def _number(limit: Any) -> float | None:
    return float(limit) if isinstance(limit, int | float) else None
