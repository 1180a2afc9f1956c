"""Truth values and whole numbers that may change inside an interval, in operations whose rules take floating point.

Where the result is in floating point, the discrete values are converted first, as torch does. Where the result is
discrete too, a monotone operation is applied to both ends.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval
from intervalnn.rules import activations, monotone, sorting, structure
from intervalnn.rules.arithmetic import point_of
from intervalnn.rules.comparison import unequal
from intervalnn.rules.discrete_values import Discrete
from intervalnn.table import MissingRuleError, Rule, aten
from intervalnn.torch_private import pytree

# Rules of operations that never decrease in anything they take.
RISING = {
    structure.carry, structure.carry_to_parts, structure.join, structure.constant_pad, structure.pad,
    structure.write_part, structure.index_put, structure.copy, structure.fill,
    sorting.keeps_sign, sorting.extremum_of_two, activations.clamp, activations.relu,
    monotone.monotone, monotone.nan_to_num, monotone.sign,
}  # fmt: skip
_TOTALS = {aten.sum, aten.cumsum}
_SUMS = {aten.add, aten.sub, aten.rsub, aten.mul, aten.neg}
_PERIODS = {aten.remainder: "floor", aten.fmod: "trunc"}  # and how their quotients are rounded


def discrete_way(operation: Any, entry: Rule) -> Any:
    """Return what bounds an operation that takes and gives discrete values.

    Raises:
        MissingRuleError: If there is nothing.
    """
    if entry.discrete:
        return entry.bound
    if operation.overloadpacket in _SUMS:
        return arithmetic
    if entry.bound is monotone.convert:
        return recast
    if operation.overloadpacket in _PERIODS:
        return remainder
    if entry.bound in RISING:
        return ends
    raise MissingRuleError(
        f"{operation} takes no truth values or whole numbers that may change inside an interval; convert them to "
        "floating point first, with .to(x.dtype)"
    )


def bounded(operation: Any, entry: Rule, bound: Any, *args: Any, **kwargs: Any) -> Any:
    """Return what a rule, by its function ``bound``, makes of arguments, some of which may be discrete."""
    if entry.discrete or not any(isinstance(leaf, Discrete) for leaf in _leaves(args)):
        return bound(operation, *args, **kwargs)
    dtype = _leaves(operation(*_each(args, point_of), **_each(kwargs, point_of)))[0].dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        return discrete_way(operation, entry)(operation, *args, **kwargs)
    args = _each(args, lambda x: x.interval(dtype.to_real()) if isinstance(x, Discrete) else x)
    return bound(operation, *args, **kwargs)


def _leaves(values: Any) -> list[Any]:
    return pytree.tree_leaves(values, is_leaf=lambda x: isinstance(x, Interval | Discrete))


def _each(values: Any, fn: Any) -> Any:
    return pytree.tree_map(fn, values, is_leaf=lambda x: isinstance(x, Interval | Discrete))


def ends(fn: Any, *args: Any, **kwargs: Any) -> Any:
    """Bound an operation that never decreases, by the ends."""
    point, lower, upper = (
        fn(*_each(args, lambda x, side=side: _end(x, side)), **kwargs) for side in ("point", "lower", "upper")
    )
    if not isinstance(point, Tensor):
        return [Discrete(*part) for part in zip(point, lower, upper, strict=True)]
    if fn.overloadpacket in _TOTALS:
        true = (fn(_end(args[0], side).double(), *args[1:], **kwargs) for side in ("lower", "upper"))
        return _unwrapped(Discrete(point, lower, upper), *true)
    return Discrete(point, lower, upper)


def _end(x: Any, side: str) -> Any:
    if isinstance(x, list | tuple):
        return [_end(part, side) for part in x]
    return getattr(x, side) if isinstance(x, Discrete) else x


def _unwrapped(x: Discrete, lower: Tensor, upper: Tensor) -> Discrete:
    """Return any number where the true ends are out of range, and whole numbers wrap around."""
    least, largest = torch.iinfo(x.dtype).min, torch.iinfo(x.dtype).max
    inside = (lower > least) & (upper < largest) | x.sure
    return Discrete(x.point, torch.where(inside, x.lower, least), torch.where(inside, x.upper, largest))


def recast(fn: Any, x: Discrete, *args: Any, **kwargs: Any) -> Discrete:
    """Bound a cast from one discrete data type to another; a number becomes ``True`` where it is not zero."""
    result: Discrete = ends(fn, x, *args, **kwargs)
    if result.dtype != torch.bool:
        return result
    answer = unequal(aten.ne.Scalar, x, 0)
    return Discrete(result.point, answer.lower, answer.upper)


def arithmetic(fn: Any, *args: Any, **kwargs: Any) -> Discrete:
    """Bound a sum or a product of whole numbers by its corners."""
    point = fn(*(point_of(x) for x in args), **kwargs)
    values = ((x.lower, x.upper) if isinstance(x, Discrete) else (x,) for x in args)
    corners = [*itertools.product(*values)]
    results = torch.stack([fn(*corner, **kwargs).expand(point.shape) for corner in corners])
    found = Discrete(point, results.amin(0), results.amax(0))
    if point.dtype == torch.bool:
        return found
    wide = ([v.double() if isinstance(v, Tensor) else v for v in corner] for corner in corners)
    true = torch.stack([fn(*corner, **kwargs).expand(point.shape) for corner in wide])
    return _unwrapped(found, true.amin(0), true.amax(0))


def remainder(fn: Any, x: Discrete | Tensor, divisor: Discrete | Tensor | int) -> Discrete:
    """Bound the remainder of a whole number: the ends, or all remainders where the quotient may change."""
    if not isinstance(x, Discrete) or isinstance(divisor, Discrete):
        raise NotImplementedError(f"{fn} by a whole number that may change inside an interval")
    point, lower, upper = (fn(part, divisor) for part in (x.point, x.lower, x.upper))
    mode = _PERIODS[fn.overloadpacket]
    same = torch.eq(*(torch.div(end, divisor, rounding_mode=mode) for end in (x.lower, x.upper)))
    size = torch.as_tensor(divisor, device=point.device).abs() - 1
    least, largest = (-size, size) if fn.overloadpacket is aten.fmod else _signed(divisor, size)
    return Discrete.around(point, torch.where(same, lower, least), torch.where(same, upper, largest))


def _signed(divisor: Tensor | int, size: Tensor) -> tuple[Tensor, Tensor]:
    """Return the least and the largest remainder, which have the sign of the divisor."""
    positive = torch.as_tensor(divisor, device=size.device) > 0
    return torch.where(positive, 0, -size), torch.where(positive, size, 0)
