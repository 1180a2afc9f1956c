"""The same call made otherwise: in other dtypes, with complex numbers, of other sizes, layouts and options.

A case says how an operation is mostly called. Models call it in other ways too, and for each of these a rule must
give bounds that hold, or refuse with words of its own.
"""

from __future__ import annotations

import functools
import itertools
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import Tensor

import intervalnn as inn
from intervalnn import Interval
from intervalnn.table import lookup
from properties.case import Case, Slot, at, intervals, is_interval, outputs, points, with_intervals
from properties.checks import assert_gaps, real_parts, same

aten = torch.ops.aten
Args = tuple[Any, ...]
Call = tuple[Args, dict[str, Any]]
# Torch calls these itself and does not check what they are given: other sizes read memory that is not theirs.
UNCHECKED = {
    aten._reshape_alias, aten._unsafe_view, aten._unsafe_index, aten._unsafe_index_put, aten._embedding_bag,
    aten._embedding_bag_forward_only, aten._native_batch_norm_legit, aten._native_batch_norm_legit_no_training,
    aten.native_layer_norm, aten.native_group_norm, aten._fft_r2c, aten._fft_c2r, aten._fft_c2c,
}  # fmt: skip
Variant = Callable[[Case, torch.Generator], Iterator[Call]]


def _draw(case: Case, random: torch.Generator) -> Args:
    return case.draw(_pick(random, range(1000)), _pick(random, ("straddling", "positive", "some gaps")))


def _pick(random: torch.Generator, choices: Any) -> Any:
    choices = list(choices)
    return choices[int(torch.randint(len(choices), (), generator=random))]


def _each(args: Args, change: Callable[[int, Any], Any]) -> Args:
    """Return the arguments with every tensor and interval changed, told which one it is."""
    count = itertools.count()
    return pytree.tree_map(  # type: ignore[no-any-return]
        lambda x: change(next(count), x) if isinstance(x, Interval | Tensor) else x, args, is_leaf=is_interval
    )


def _tensors(args: Args) -> list[Any]:
    return [x for x in pytree.tree_leaves(args, is_leaf=is_interval) if isinstance(x, Interval | Tensor)]


def _is_float(x: Any) -> bool:
    return (x.point if isinstance(x, Interval) else x).is_floating_point()


def _moved(x: Any, change: Callable[[Tensor], Tensor]) -> Any:
    return x.map(change) if isinstance(x, Interval) else change(x)


# --- complex numbers ---


def complex_intervals(case: Case, random: torch.Generator) -> Iterator[Call]:
    """Complex intervals in the place of all real ones, and of one of them."""
    slots = [s for s in pytree.tree_leaves(case.args, is_leaf=lambda s: isinstance(s, Slot)) if isinstance(s, Slot)]
    moving = [index for index, slot in enumerate(slots) if not slot.plain]
    for chosen in [range(len(slots)), *([i] for i in moving)] if len(slots) > 1 else [range(len(slots))]:
        count = itertools.count()
        args = pytree.tree_map(
            lambda s: replace(s, is_complex=s.is_complex or next(count) in chosen) if isinstance(s, Slot) else s,  # noqa: B023
            case.args,
            is_leaf=lambda s: isinstance(s, Slot),
        )
        yield _draw(Case(case.op, *args), random), case.kwargs


def complex_points(case: Case, random: torch.Generator) -> Iterator[Call]:
    """Complex tensors beside real intervals, and complex numbers in the place of real ones."""

    def turn(x: Any) -> Any:
        return x * (1 + 0.5j) if isinstance(x, float) or (isinstance(x, Tensor) and x.is_floating_point()) else x

    args = _draw(case, random)
    yield pytree.tree_map(turn, args, is_leaf=is_interval), case.kwargs
    for index, value in enumerate(args):
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield (*args[:index], value + 0.5j, *args[index + 1 :]), case.kwargs
    for name, value in case.kwargs.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield args, case.kwargs | {name: value + 0.5j}


# --- other dtypes ---

FLOATS = (torch.float32, torch.bfloat16, torch.float16)


def one_dtype(case: Case, random: torch.Generator) -> Iterator[Call]:
    """Everything in one of the other dtypes."""
    args = _draw(case, random)
    for dtype in FLOATS:
        yield _each(args, lambda _, x: x.to(dtype) if _is_float(x) else x), case.kwargs  # noqa: B023


def gap_dtypes(case: Case, random: torch.Generator) -> Iterator[Call]:
    """Gaps in another dtype than their points."""
    args = _draw(case, random)
    for point, gap in (
        (torch.float32, torch.bfloat16),
        (torch.bfloat16, torch.float32),
        (torch.float64, torch.float32),
    ):
        yield (
            _each(
                args,
                lambda _, x: (
                    Interval(x.point.to(point), x.below.to(gap), x.above.to(gap))  # noqa: B023
                    if isinstance(x, Interval) and _is_float(x)
                    else x.to(point)  # noqa: B023
                    if _is_float(x)
                    else x
                ),
            ),
            case.kwargs,
        )


def mixed_dtypes(case: Case, random: torch.Generator) -> Iterator[Call]:
    """One of the tensors in another dtype than the others."""
    args = _draw(case, random)
    many = len(_tensors(args))
    pairs = ((torch.float64, torch.float32), (torch.float32, torch.float64), (torch.float32, torch.bfloat16))
    for (most, other), which in itertools.product(pairs, range(many if many > 1 else 0)):
        yield (
            _each(args, lambda k, x: x.to(other if k == which else most) if _is_float(x) else x),  # noqa: B023
            case.kwargs,
        )


def whole_numbers(case: Case, random: torch.Generator) -> Iterator[Call]:
    """Whole numbers and truth values in the place of points."""
    args = _draw(case, random)
    for dtype in (torch.int64, torch.uint8, torch.bool):
        for which, x in enumerate(_tensors(args)):
            others = [y for k, y in enumerate(_tensors(args)) if k != which and isinstance(y, Interval)]
            if others:
                value = (x.point if isinstance(x, Interval) else x).real.to(torch.float64).abs().to(dtype)
                yield _each(args, lambda k, y: value if k == which else y), case.kwargs  # noqa: B023


# --- other sizes and layouts ---


def empty(case: Case, random: torch.Generator) -> Iterator[Call]:
    """No entries along one of the dimensions."""
    args = _draw(case, random)
    if case.op.overloadpacket in UNCHECKED:
        return
    sizes = {x.shape[0] for x in _tensors(args) if x.dim()}
    for size in sizes:
        yield _each(args, lambda _, x: x[:0] if x.dim() and x.shape[0] == size else x), case.kwargs  # noqa: B023
    for which, x in enumerate(_tensors(args)):
        if x.dim():
            yield _each(args, lambda k, y: y[..., :0] if k == which else y), case.kwargs  # noqa: B023


def no_dimension(case: Case, random: torch.Generator) -> Iterator[Call]:
    """Single numbers, for all tensors and for one of them."""

    def first(x: Any) -> Any:
        return x[(0,) * x.dim()] if x.numel() else x

    args = _draw(case, random)
    if case.op.overloadpacket in UNCHECKED:
        return
    yield _each(args, lambda _, x: first(x)), case.kwargs
    for which in range(len(_tensors(args))):
        yield _each(args, lambda k, x: first(x) if k == which else x), case.kwargs  # noqa: B023


def _strided(x: Tensor) -> Tensor:
    """Return the same values, two apart in memory and in the other order of dimensions."""
    reverse = list(reversed(range(x.dim())))
    turned = x.permute(reverse)
    return torch.stack([turned, torch.ones_like(turned)], -1)[..., 0].permute(reverse)


def _channels_last(x: Tensor) -> Tensor:
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    return x.contiguous(memory_format=formats[x.dim()]) if x.dim() in formats else x


def _expanded(x: Tensor) -> Tensor:
    return x[:1].expand(x.shape) if x.dim() and x.shape[0] else x


def layouts(case: Case, random: torch.Generator) -> Iterator[Call]:
    """Values that lie elsewhere in memory; points and gaps of one interval each in a way of their own."""
    args = _draw(case, random)
    for change in (_strided, _channels_last, _expanded):
        yield _each(args, lambda _, x: _moved(x, change)), case.kwargs  # noqa: B023
    yield (
        _each(args, lambda _, x: Interval(_strided(x.point), x.below, _expanded(x.above)) if is_interval(x) else x),
        case.kwargs,
    )


# --- other options ---

NUMBERS = (-2.5, -1, 0, 0.5, 1, 2, 3, True)
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.complex64, torch.complex128, torch.int64, None)
WORDS = {
    "rounding_mode": (None, "floor", "trunc"),
    "padding": ("same", "valid"),
    "mode": ("constant", "reflect", "replicate", "circular"),
    "approximate": ("none", "tanh"),
    "reduce": ("sum", "prod", "mean", "amax", "amin"),
    "indexing": ("ij", "xy"),
    "interpolation": ("linear", "lower", "higher", "midpoint", "nearest"),
}
LEFT_ALONE = {"device", "layout", "pin_memory", "non_blocking", "size", "shape", "output_size", "momentum", "generator"}


def _is_dimension(name: str) -> bool:
    return name.startswith(("dim", "axis")) or name in {"start_dim", "end_dim", "source", "destination"}


def _option(argument: Any, rank: int, current: Any, random: torch.Generator) -> Any:
    """Return another value of an argument that is not a tensor."""
    name, kind = argument.name, str(argument.type)
    optional = kind.startswith("Optional")
    kind = kind.removeprefix("Optional[").removesuffix("]") if optional else kind
    if optional and _pick(random, range(4)) == 0:
        return None
    if name in WORDS and "str" in kind:
        return _pick(random, WORDS[name])
    if name == "dtype":
        return _pick(random, DTYPES)
    if name == "memory_format":
        return _pick(random, (torch.contiguous_format, torch.preserve_format, torch.channels_last))
    if kind == "bool":
        return _pick(random, (True, False))
    if _is_dimension(name):
        one = functools.partial(_pick, random, range(-rank, max(rank, 1)))
        return [one() for _ in range(_pick(random, range(rank + 1)))] if "List" in kind else one()
    if kind in ("number", "float"):
        return _pick(random, NUMBERS)
    if kind == "int":
        return _pick(random, range(-2, 5))
    if kind == "List[float":
        return [_pick(random, (0.5, 1.0, 1.7, 2.0)) for _ in current or [0]]
    if kind == "List[int":
        given = current if isinstance(current, list | tuple) else [1]
        return [_pick(random, range(-1, 4)) for _ in given[: _pick(random, (1, len(given), len(given)))]]
    return current


def options(case: Case, random: torch.Generator, tries: int = 12) -> Iterator[Call]:
    """Other values of one to three of the arguments that are not tensors."""
    schema = case.op._schema.arguments if case.op.overloadpacket not in UNCHECKED else []
    free = [
        (index, argument)
        for index, argument in enumerate(schema)
        if "Tensor" not in str(argument.type) and argument.name not in LEFT_ALONE
    ]
    for _ in range(tries if free else 0):
        args, kwargs = list(_draw(case, random)), dict(case.kwargs)
        rank = max((x.dim() for x in _tensors(tuple(args))), default=0)
        for index, argument in {_pick(random, range(len(free))): None for _ in range(_pick(random, (1, 1, 2, 3)))} and [
            free[k] for k in {_pick(random, range(len(free))) for _ in range(_pick(random, (1, 1, 2, 3)))}
        ]:
            if argument.kwarg_only:
                kwargs[argument.name] = _option(argument, rank, kwargs.get(argument.name), random)
                continue
            args += [other.default_value for other in schema[len(args) : index + 1]]
            args[index] = _option(argument, rank, args[index], random)
        yield tuple(args), kwargs


VARIANTS: dict[str, Variant] = {
    "complex intervals": complex_intervals,
    "complex points": complex_points,
    "one dtype": one_dtype,
    "dtypes of gaps": gap_dtypes,
    "mixed dtypes": mixed_dtypes,
    "whole numbers": whole_numbers,
    "empty": empty,
    "no dimension": no_dimension,
    "layouts": layouts,
    "options": options,
}


# --- whether a call is bounded soundly, or refused ---


def _plain(case: Case, args: Args, kwargs: dict[str, Any]) -> list[Any]:
    return Case(case.op, **kwargs).plain(args)


def _coarsest(*trees: Any) -> float:
    dtypes = [x.dtype for x in pytree.tree_leaves(trees) if isinstance(x, Tensor)]
    dtypes += [x for x in pytree.tree_leaves(trees) if isinstance(x, torch.dtype)]
    return max((torch.finfo(d).eps for d in dtypes if d.is_floating_point or d.is_complex), default=0.0)


def _inside(args: Args, random: torch.Generator, corners: int = 5, inner: int = 2) -> Iterator[Args]:
    xs = intervals(args)
    sizes = [(*x.shape, 2) if x.dtype.is_complex else x.shape for x in xs]
    for k in range(corners + inner + 2):
        shares = [torch.rand(size, generator=random) for size in sizes]
        if k < corners:
            shares = [share.round() for share in shares]
        elif k < corners + 2:
            shares = [torch.full_like(share, float(k - corners)) for share in shares]
        kinds = [real_parts(x.lower).dtype for x in xs]
        yield with_intervals(args, [at(x, s.to(d)) for x, s, d in zip(xs, shares, kinds, strict=True)])


class Wrong(AssertionError):
    """A rule gave bounds that do not hold, or failed in a way that was not a refusal."""


def _refusal(error: Exception) -> bool:
    """Say whether an error is one that the library raised itself, to say what it cannot bound."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    kinds = (inn.MissingRuleError, NotImplementedError, TypeError, ValueError)
    return isinstance(error, kinds) and "/intervalnn/" in last.filename and (last.line or "").startswith("raise")


def examine(case: Case, call: Call, random: torch.Generator) -> str:
    """Return ``"bounded"``, ``"refused"``, or ``"none"`` where torch itself refuses the call or no interval is left.

    Raises:
        Wrong: If the bounds do not hold, or the rule fails without a refusal.
    """
    args, kwargs = call
    if not intervals(args):
        return "none"
    try:
        plain = _plain(case, points(args), kwargs)
    except Exception:  # whatever torch has against it
        return "none"
    try:
        made = inn.apply(case.op, *args, **kwargs)
    except Exception as error:
        if _refusal(error):
            return "refused"
        raise Wrong(f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}") from error
    hidden = lookup(case.op).hidden  # type: ignore[union-attr]
    bounds = [bound for index, bound in enumerate(outputs(made)) if index not in hidden]
    _hold(case, bounds, plain, args, kwargs, random)
    _close(case, args, kwargs)
    return "bounded"


def _hold(
    case: Case, bounds: list[Any], plain: list[Any], args: Args, kwargs: dict[str, Any], random: torch.Generator
) -> None:
    for bound, value in zip(bounds, plain, strict=True):
        if not isinstance(bound, Interval):
            raise Wrong(f"a {type(bound).__name__} of {value.dtype}, where the result moves")
        if not same(bound.point, value):
            raise Wrong(f"the point is {bound.dtype} {tuple(bound.shape)}, torch's {value.dtype} {tuple(value.shape)}")
        assert_gaps(bound)
    eps = _coarsest(args, plain, kwargs)
    for sample in _inside(args, random):
        for bound, value in zip(bounds, _plain(case, sample, kwargs), strict=True):
            if value.shape != bound.shape:
                raise Wrong(f"the shape depends on the values: {tuple(value.shape)} instead of {tuple(bound.shape)}")
            point, below, above, value = (
                real_parts(v).double() for v in (bound.point, bound.below, bound.above, value)
            )
            size = (point.abs() + below + above + value.abs()).nan_to_num(0.0, 0.0, 0.0)
            slack = 64 * eps * (1 + (size.amax() if size.numel() else 0.0))
            outside = (point - below > value + slack) | (point + above < value - slack)
            if outside.any():
                raise Wrong(
                    f"{value[outside][0]} outside {(point - below)[outside][0]} to {(point + above)[outside][0]}"
                )


def _close(case: Case, args: Args, kwargs: dict[str, Any]) -> None:
    closed = with_intervals(args, [Interval(x.point, 0 * x.below, 0 * x.above) for x in intervals(args)])
    for bound in outputs(inn.apply(case.op, *closed, **kwargs)):
        if isinstance(bound, Interval) and bool(
            (real_parts(bound.width)[real_parts(bound.point).isfinite()] != 0).any()
        ):
            raise Wrong("without gaps the bounds have a width")
