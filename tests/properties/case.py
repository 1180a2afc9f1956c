"""What a case of a rule is: one call of one operation, with intervals drawn for some of its arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import torch
import torch.utils._pytree as pytree
from torch import Tensor
from torch._ops import OpOverload

import intervalnn as inn
from intervalnn import Interval
from intervalnn.rules.discrete_values import Discrete

Ends: TypeAlias = tuple[Tensor, Tensor]  # of an interval
# How intervals can lie: on either side of zero or across it, with gaps missing, tiny or large.
PATTERNS = ("positive", "negative", "straddling", "some gaps", "tiny", "large", "at zero")


@dataclass(frozen=True)
class Slot:
    """An argument of a case that is drawn anew each time: an interval or, if ``plain``, a tensor."""

    shape: tuple[int, ...]
    low: float = -math.inf
    high: float = math.inf
    is_complex: bool = False
    plain: bool = False
    diagonal: float = 0.0
    share: float = 1.0

    def __repr__(self) -> str:
        kind = "plain" if self.plain else "complex" if self.is_complex else "interval"
        return f"{kind}{'x'.join(map(str, self.shape))}"

    def draw(self, random: torch.Generator, pattern: str) -> Interval | Tensor:
        if self.is_complex:
            re, im = (replace(self, is_complex=False).draw(random, pattern) for _ in range(2))
            if isinstance(re, Tensor) and isinstance(im, Tensor):
                return torch.complex(re, im)
            parts = zip(pytree.tree_leaves(re), pytree.tree_leaves(im), strict=True)
            return Interval(*(torch.complex(*part) for part in parts))
        point, below, above = _real(self.shape, random, pattern)
        if math.isfinite(self.low):
            size = (self.high - self.low) if math.isfinite(self.high) else 3.0
            point = self.low + size * point.abs().clamp(0.01, 2.99) / 3
            below = torch.minimum(below, 0.9 * (point - self.low))
            above = torch.minimum(above, 0.9 * (self.high - point))
        if self.diagonal:
            point = point + self.diagonal * torch.eye(self.shape[-1], dtype=point.dtype)
            below, above = self.share * below, self.share * above
        return point if self.plain else Interval(point, below, above)


def _real(shape: tuple[int, ...], random: torch.Generator, pattern: str) -> tuple[Tensor, Tensor, Tensor]:
    def uniform() -> Tensor:
        return torch.rand(shape, generator=random, dtype=torch.float64)

    point, below, above = 6 * uniform() - 3, uniform(), uniform()
    if pattern in ("positive", "negative"):
        point = point.abs() + 0.1
        below = below * point * 0.99
        if pattern == "negative":
            point, below, above = -point, above, below
    elif pattern == "straddling":
        below, above = below + point.clamp(min=0.0), above + (-point).clamp(min=0.0)
    elif pattern == "some gaps":
        below, above = below * (uniform() < 0.5), above * (uniform() < 0.5)
    elif pattern == "tiny":
        below, above = 1e-8 * below, 1e-8 * above
    elif pattern == "large":
        below, above = 30 * below, 30 * above
    elif pattern == "at zero":
        point = point * (uniform() < 0.5)
    elif pattern == "no gaps":
        below, above = torch.zeros_like(below), torch.zeros_like(above)
    else:
        raise ValueError(f"pattern must be one of {PATTERNS} or 'no gaps', got {pattern!r}")
    return point, below, above


def real(*shape: int) -> Slot:
    return Slot(shape)


def positive(*shape: int) -> Slot:
    return Slot(shape, low=0.0)


def within(low: float, high: float, *shape: int) -> Slot:
    return Slot(shape, low, high)


def complexes(*shape: int) -> Slot:
    return Slot(shape, is_complex=True)


def regular(*shape: int) -> Slot:
    """Return matrices of which most have no singular one inside."""
    return Slot(shape, diagonal=10.0, share=0.02)


def near_singular(*shape: int) -> Slot:
    """Return matrices of which many have a singular one inside."""
    return Slot(shape, diagonal=5.0, share=0.3)


def plain(slot: Slot) -> Slot:
    return replace(slot, plain=True)


class Case:
    """One call of an operation, some of whose arguments are slots for intervals."""

    def __init__(self, op: OpOverload, *args: Any, **kwargs: Any) -> None:
        self.op = op
        self.args = args
        self.kwargs = kwargs

    def __repr__(self) -> str:
        args = ", ".join(_short(arg) for arg in self.args)
        return f"{self.op}({args})".removeprefix("aten.") + "".join(f" {k}={v}" for k, v in self.kwargs.items())

    def draw(self, seed: int, pattern: str) -> tuple[Any, ...]:
        """Return the arguments, with intervals in the place of the slots."""
        random = torch.Generator().manual_seed(seed)
        args: tuple[Any, ...] = pytree.tree_map(
            lambda arg: arg.draw(random, pattern) if isinstance(arg, Slot) else arg, self.args
        )
        return args

    def bounds(self, args: tuple[Any, ...]) -> list[Interval]:
        """Return the bounds of all outputs that have some; those of truth values and whole numbers as of real ones."""
        found = outputs(inn.apply(self.op, *args, **self.kwargs))
        found = [x.interval(torch.float64) if isinstance(x, Discrete) else x for x in found]
        return [bound for bound in found if isinstance(bound, Interval)]

    def plain(self, args: tuple[Any, ...]) -> list[Tensor]:
        """Return what the operation itself computes, for the same outputs."""
        entry = inn.table.lookup(self.op)
        hidden = entry.hidden if entry is not None else {}
        results = outputs(self.op(*args, **self.kwargs))
        return [_as_real(result) for index, result in enumerate(results) if index not in hidden]


class Asked(Case):
    """A case, some of whose arguments are not the values that are drawn but answers and whole numbers made of these.

    Args:
        made: By the position of an argument, the operation that makes it, and what that takes beside the drawn value.
        op: The operation that is tried.
    """

    def __init__(self, made: dict[int, tuple[Any, ...]], op: OpOverload, *args: Any, **kwargs: Any) -> None:
        super().__init__(op, *args, **kwargs)
        self.made = made

    def bounds(self, args: tuple[Any, ...]) -> list[Interval]:
        return super().bounds(self._make(args, inn.apply))

    def plain(self, args: tuple[Any, ...]) -> list[Tensor]:
        return super().plain(self._make(args, lambda op, *rest, **how: op(*rest, **how)))

    def _make(self, args: tuple[Any, ...], call: Callable[..., Any]) -> tuple[Any, ...]:
        def make(index: int, arg: Any) -> Any:
            if index not in self.made:
                return arg
            op, *rest = self.made[index]
            each = [call(op, x, *rest) if isinstance(x, Interval | Tensor) else x for x in outputs(arg)]
            return each if isinstance(arg, list) else each[0]

        return tuple(make(index, arg) for index, arg in enumerate(args))


def _as_real(x: Tensor) -> Tensor:
    return x if x.is_floating_point() or x.is_complex() else x.to(torch.float64)


def _short(arg: Any) -> str:
    if isinstance(arg, Tensor):
        return f"tensor{'x'.join(map(str, arg.shape))}"
    return str(arg).replace("torch.", "")


def outputs(result: Any) -> list[Any]:
    return list(result) if isinstance(result, tuple | list) else [result]


def is_interval(x: Any) -> bool:
    return isinstance(x, Interval)


def intervals(args: Any) -> list[Interval]:
    """Return the intervals among the arguments, those in lists too."""
    return [leaf for leaf in pytree.tree_leaves(args, is_leaf=is_interval) if isinstance(leaf, Interval)]


def with_intervals(args: Any, values: list[Any]) -> Any:
    """Return the arguments with other values in the place of the intervals, in order."""
    rest = iter(values)
    if not any(isinstance(arg, list) for arg in args):  # which is most of them, and quicker
        return tuple(next(rest) if isinstance(arg, Interval) else arg for arg in args)
    return pytree.tree_map(lambda leaf: next(rest) if isinstance(leaf, Interval) else leaf, args, is_leaf=is_interval)


def points(args: Any) -> Any:
    """Return the arguments with the point of every interval."""
    return with_intervals(args, [x.point for x in intervals(args)])


def at(x: Interval, share: Tensor) -> Tensor:
    """Return the value that lies a ``share`` of the way from the lower to the upper end."""
    return _along((x.lower, x.upper), share)


def _along(ends: Ends, share: Tensor) -> Tensor:
    lower, upper = ends
    if lower.is_complex():
        return torch.view_as_complex(_between(torch.view_as_real(lower), torch.view_as_real(upper), share))
    return _between(lower, upper, share)


def _between(lower: Tensor, upper: Tensor, share: Tensor) -> Tensor:
    inside = torch.lerp(lower, upper, share)
    return torch.where(share == 0, lower, torch.where(share == 1, upper, inside)).clamp(lower, upper)


def _shares(xs: list[Interval], random: torch.Generator) -> list[Tensor]:
    sizes = [(*x.shape, 2) if x.dtype.is_complex else x.shape for x in xs]
    return [torch.rand(size, generator=random, dtype=torch.float64) for size in sizes]


def samples(args: Any, seed: int, corners: int = 12, inner: int = 4) -> Iterator[Any]:
    """Yield arguments inside the intervals: all corners where there are few, else some; and others."""
    xs = intervals(args)
    random = torch.Generator().manual_seed(seed)
    like = _shares(xs, random)
    ends = [(x.lower, x.upper) for x in xs]

    def inside(shares: list[Tensor]) -> Any:
        return with_intervals(args, [_along(e, s) for e, s in zip(ends, shares, strict=True)])

    for end in (0.0, 1.0):
        yield inside([torch.full_like(s, end) for s in like])
    total = sum(share.numel() for share in like)
    if total <= 5:
        for corner in range(2**total):
            bits = iter(torch.tensor([corner >> k & 1 for k in range(total)], dtype=torch.float64))
            shares = [torch.tensor([next(bits) for _ in range(s.numel())]).to(s).reshape(s.shape) for s in like]
            yield inside(shares)
    else:
        for _ in range(corners):
            yield inside([share.round() for share in _shares(xs, random)])
    for _ in range(inner):
        yield inside(_shares(xs, random))


def attacks(case: Case, args: Any, seed: int, components: int = 3) -> Iterator[Any]:
    """Yield the corners to which the gradient of an output component points, and those it points away from."""
    xs = intervals(args)
    random = torch.Generator().manual_seed(seed)
    ends = [(x.lower, x.upper) for x in xs]
    start = [_along(e, s).requires_grad_() for e, s in zip(ends, _shares(xs, random), strict=True)]
    for result in case.plain(with_intervals(args, start)):
        if not result.requires_grad or not result.numel():
            continue
        flat = (torch.view_as_real(result.resolve_conj()) if result.is_complex() else result).flatten()
        for index in torch.randint(flat.numel(), (components,), generator=random).tolist():
            try:
                grads = torch.autograd.grad(flat[index], start, retain_graph=True, allow_unused=True)
            except RuntimeError:
                if case.op is torch.ops.aten.narrow_copy.default:  # which torch 2.11 cannot differentiate
                    return
                raise
            for direction in (1, -1):
                toward = [
                    x.point if g is None else _toward(e, g, direction) for x, e, g in zip(xs, ends, grads, strict=True)
                ]
                yield with_intervals(args, toward)


def _toward(ends: Ends, gradient: Tensor, direction: int) -> Tensor:
    real = torch.view_as_real(gradient.resolve_conj()) if gradient.is_complex() else gradient
    return _along(ends, (real * direction > 0).to(torch.float64))
