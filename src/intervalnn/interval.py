"""Interval: a point and the gaps below and above it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from intervalnn.table import apply, aten
from intervalnn.torch_private import pytree

__all__ = ["Interval", "Symmetric", "capped", "cut", "plus"]


@dataclass(frozen=True, slots=True, eq=False)
class Interval:
    """A point and how far the interval around it reaches.

    The point is computed exactly as the underlying model computes it, and the gaps are
    sums of non-negative terms; so the point is inside in every dtype, by construction.
    The gaps may have another dtype than the point: bfloat16 gaps around a float32 point
    are the fast choice on tensor cores. A complex interval is a box, with gaps of its own
    for the real and for the imaginary part.

    Attributes:
        point: A value inside the interval, of any shape.
        below: How far the interval reaches below it, ``>= 0``.
        above: How far it reaches above it, ``>= 0``.

    Example:
        >>> x = Interval(torch.tensor([1.0]), below=torch.tensor([0.5]), above=torch.tensor([0.25]))
        >>> x.lower, x.upper
        (tensor([0.5000]), tensor([1.2500]))
        >>> (2 * x - 1).width
        tensor([1.5000])
    """

    point: Tensor
    below: Tensor
    above: Tensor

    def __post_init__(self) -> None:
        for part in (self.point, self.below, self.above):
            if not isinstance(part, Tensor):
                raise TypeError(
                    f"an Interval is made of three tensors, got a {type(part).__name__}; "
                    "Interval.of(x) makes one without gaps"
                )
        if not (self.point.is_floating_point() or self.point.is_complex()):
            raise TypeError(
                f"an Interval needs a floating-point tensor, got {self.point.dtype}; "
                "integers (indices, counts) stay plain tensors"
            )
        if not self.point.shape == self.below.shape == self.above.shape:
            raise ValueError(
                "point, below and above must have one shape, got "
                f"{tuple(self.point.shape)}, {tuple(self.below.shape)} and {tuple(self.above.shape)}"
            )

    @staticmethod
    def of(x: Interval | Tensor) -> Interval:
        """Return ``x`` itself if it is an interval, else the interval that is just ``x``."""
        if isinstance(x, Interval):
            return x
        gap = torch.zeros_like(x)
        return Interval(x, gap, gap)

    @staticmethod
    def around(point: Tensor, lower: Tensor, upper: Tensor, gap_dtype: torch.dtype | None = None) -> Interval:
        """Return the interval from ``lower`` to ``upper``, widened where it misses ``point``.

        Example:
            >>> x = torch.tensor([0.0, 1.0])
            >>> Interval.around(x, lower=x - 1, upper=x + 2).width
            tensor([3., 3.])
        """
        dtype = gap_dtype or point.dtype
        below = _reach(point, lower, point - lower).to(dtype)
        above = _reach(point, upper, upper - point).to(dtype)
        return Interval(point, below, above)

    @property
    def lower(self) -> Tensor:
        """The lower end."""
        return plus(self.point, -self.below)

    @property
    def upper(self) -> Tensor:
        """The upper end."""
        return plus(self.point, self.above)

    @property
    def width(self) -> Tensor:
        """``upper - lower``, from the gaps, so that small widths keep their digits."""
        return self.below + self.above

    @property
    def shape(self) -> torch.Size:
        """Shape of the point, and of both gaps."""
        return self.point.shape

    @property
    def dtype(self) -> torch.dtype:
        """Data type of the point."""
        return self.point.dtype

    @property
    def gap_dtype(self) -> torch.dtype:
        """Data type of the gaps."""
        return self.above.dtype

    @property
    def device(self) -> torch.device:
        """Device of the point, and of both gaps."""
        return self.point.device

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self.point.ndim

    def dim(self) -> int:
        """Return the number of dimensions."""
        return self.point.dim()

    def size(self, dim: int | None = None) -> Any:
        """Return the shape, or the size of one dimension."""
        return self.point.size() if dim is None else self.point.size(dim)

    def numel(self) -> int:
        """Return the number of components."""
        return self.point.numel()

    def contains(self, y: Tensor | Interval, *, atol: float = 0.0) -> Tensor:
        """Say for each component whether ``y`` lies inside; an interval must lie inside whole.

        Args:
            y: A tensor or an interval, of the same shape.
            atol: How far outside still counts as inside.
        """
        if y.shape != self.shape:
            raise ValueError(f"y must have shape {tuple(self.shape)}, like the interval, got {tuple(y.shape)}")
        low, high = (y.lower, y.upper) if isinstance(y, Interval) else (y, y)
        lower, upper = self.lower, self.upper
        if self.point.is_complex():
            low, high, lower, upper = map(torch.view_as_real, (low, high, lower, upper))
        inside = (lower - atol <= low) & (high <= upper + atol)
        return inside.all(-1) if self.point.is_complex() else inside

    def map(self, fn: Callable[[Tensor], Tensor]) -> Interval:
        """Return the interval of ``fn`` of each of the three tensors; for moves and views."""
        return Interval(fn(self.point), fn(self.below), fn(self.above))

    def to(self, *args: Any, **kwargs: Any) -> Interval:
        """Return a copy on another device or in another dtype, as ``Tensor.to``."""
        return self.map(lambda part: part.to(*args, **kwargs))

    def detach(self) -> Interval:
        """Return the same interval, cut off from autograd."""
        return self.map(Tensor.detach)

    def __len__(self) -> int:
        return len(self.point)

    def __getitem__(self, index: Any) -> Interval:
        return self.map(lambda part: part[index])

    def __add__(self, other: Interval | Tensor | float) -> Interval:
        return apply(aten.add.Tensor, self, other)  # type: ignore[no-any-return]

    __radd__ = __add__

    def __sub__(self, other: Interval | Tensor | float) -> Interval:
        return apply(aten.sub.Tensor, self, other)  # type: ignore[no-any-return]

    def __rsub__(self, other: Tensor | float) -> Interval:
        return -self + other

    def __mul__(self, other: Interval | Tensor | float) -> Interval:
        return apply(aten.mul.Tensor, self, other)  # type: ignore[no-any-return]

    __rmul__ = __mul__

    def __truediv__(self, other: Interval | Tensor | float) -> Interval:
        return apply(aten.div.Tensor, self, other)  # type: ignore[no-any-return]

    def __rtruediv__(self, other: Tensor | float) -> Interval:
        return apply(aten.reciprocal.default, self) * other  # type: ignore[no-any-return]

    def __matmul__(self, other: Interval | Tensor) -> Interval:
        return apply(aten.matmul.default, self, other)  # type: ignore[no-any-return]

    def __rmatmul__(self, other: Tensor) -> Interval:
        return apply(aten.matmul.default, other, self)  # type: ignore[no-any-return]

    def __pow__(self, exponent: float) -> Interval:
        return apply(aten.pow.Tensor_Scalar, self, exponent)  # type: ignore[no-any-return]

    def __neg__(self) -> Interval:
        return Interval(-self.point, self.above, self.below)

    def __abs__(self) -> Interval:
        return apply(aten.abs.default, self)  # type: ignore[no-any-return]


class Symmetric(Interval):
    """An interval that reaches as far below its point as above, with one gap for both sides.

    Products take it by its one gap, which saves one of them. What any other operation makes of it is an
    :class:`Interval`.

    Args:
        point: A value in the middle of the interval.
        gap: How far it reaches on either side.
    """

    __slots__ = ()

    def __init__(self, point: Tensor, gap: Tensor) -> None:
        super().__init__(point, gap, gap)


def plus(x: Tensor, y: Tensor) -> Tensor:
    """Return ``x + y``; of complex numbers part by part, since torch's own sum of an infinite one is not a number.

    Example:
        >>> plus(torch.tensor([1 + 2j]), torch.tensor([complex(torch.inf, 1)]))
        tensor([inf+3.j])
    """
    if not (x.is_complex() or y.is_complex()):
        return x + y
    x, y = (v.to(torch.promote_types(x.dtype, y.dtype)) for v in (x, y))
    return torch.complex(x.real + y.real, x.imag + y.imag)


def _reach(point: Tensor, end: Tensor, gap: Tensor) -> Tensor:
    """Return a gap that is not negative, and zero between two infinities that are the same."""
    return cut(torch.where((point == end) & point.isinf(), 0.0, gap), point)


def cut(x: Tensor, point: Tensor | None = None) -> Tensor:
    """Return ``x``, and zero where it is negative; at zero the derivative is one, in every version of torch.

    A gap that is closed can only open. What torch takes for the derivative of its own cuts where they bend
    has changed between versions, and with a zero there no closed gap would ever be trained. Nor would one of which
    the end was rounded to the other side of its point; so with ``point``, what is negative by rounding counts as zero.

    Example:
        >>> x = torch.tensor([-1.0, 0.0, 1.0], requires_grad=True)
        >>> torch.autograd.grad(cut(x).sum(), x)[0]
        tensor([0., 1., 1.])
    """
    if not (x.requires_grad and torch.is_grad_enabled()):
        return x.clamp(min=0.0)
    if not torch.compiler.is_dynamo_compiling():
        return _Cut.apply(x, point)  # type: ignore[no-any-return, no-untyped-call]
    if point is None:
        return torch.where(x < 0, 0.0, x)
    return torch.where(x < _rounding(point), 0.0, torch.where(x < 0, x - x.detach(), x))


def _rounding(point: Tensor) -> Tensor:
    """Return how far below zero rounding may leave a gap that is closed."""
    return -16 * torch.finfo(point.dtype).eps * point.detach().abs()


def capped(x: Tensor, most: Tensor | float) -> Tensor:
    """Return ``x``, and ``most`` where it is larger; where both are equal, the gradient goes to ``x``."""
    if isinstance(most, Tensor) and not (x.requires_grad and torch.is_grad_enabled()):
        return torch.minimum(x, most)  # in half the time
    return torch.where(x > most, most, x)


class _Cut(torch.autograd.Function):
    """As fast as torch's own cut, which the derivative of a ``torch.where`` is not on a CPU."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, point: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, point)
        return x.clamp(min=0.0)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        x, point = ctx.saved_tensors
        return torch.where(x < (0 if point is None else _rounding(point)), 0.0, grad), None


def _register(cls: type[Interval], parts: tuple[str, ...]) -> None:
    """Have intervals pass through torch.compile, torch.export and activation checkpointing, as the tensors in them."""

    def flatten(x: Interval) -> tuple[list[Any], None]:
        return [getattr(x, name) for name in parts], None

    def flatten_with_keys(x: Interval) -> tuple[list[tuple[pytree.KeyEntry, Any]], None]:
        return [(pytree.GetAttrKey(name), getattr(x, name)) for name in parts], None

    def unflatten(leaves: Iterable[Any], _context: None) -> Interval:
        """Put the parts together unchecked: a tree of tensors may hold anything while it is mapped."""
        x = object.__new__(cls)
        given = dict(zip(parts, leaves, strict=True))
        for name in ("point", "below", "above"):
            object.__setattr__(x, name, given.get(name, given["below"]))
        return x

    name = f"intervalnn.{cls.__name__}"
    pytree.register_pytree_node(
        cls, flatten, unflatten, serialized_type_name=name, flatten_with_keys_fn=flatten_with_keys
    )


_register(Interval, ("point", "below", "above"))
_register(Symmetric, ("point", "below"))
