"""Every rule is sound: whatever lies inside its arguments is computed to lie inside its bounds.

Each case is tried with intervals that lie in every way they can (``PATTERNS``), in float64:
all corners where there are few, random ones where there are many, the corners to which the
gradient of single outputs points, and points between. The tolerance is ``1e-12 (1 + |value|)``.
"""

from __future__ import annotations

import itertools
import zlib
from typing import Any

import pytest
import torch
import torch.utils._pytree as pytree
from torch._ops import OpOverload, OpOverloadPacket

import intervalnn as inn
from intervalnn import Interval
from intervalnn.table import RULES, Rule, lookup, overloads
from properties.case import (
    PATTERNS,
    Case,
    attacks,
    intervals,
    is_interval,
    points,
    samples,
    with_intervals,
)
from properties.cases import CASES, REFUSED, SHAPE_ONLY
from properties.checks import assert_gaps, assert_inside, assert_wider, real_parts, same

aten = torch.ops.aten


def seeds(case: Case) -> tuple[int, int]:
    """Return two seeds to draw a case with: zero, and one of its own."""
    return 0, zlib.crc32(str(case).encode())


NO_DERIVATIVE = {
    aten.copy.default,
    aten.detach_copy.default,
    aten.scatter.reduce,
    aten.scatter.value_reduce,
    aten._embedding_bag_forward_only.default,
    aten.linspace.Tensor_Tensor,
    aten.linspace.Tensor_Scalar,
    aten.linspace.Scalar_Tensor,
}
NO_COMPLEX_DERIVATIVE = {aten.select_scatter.default, aten.slice_scatter.default, aten.scatter_reduce.two}


def _has_derivative(case: Case, args: Any) -> bool:
    """Say whether torch differentiates a call; where real and complex values meet, it does not everywhere."""
    values = [x for x in pytree.tree_leaves(args, is_leaf=is_interval) if isinstance(x, Interval | torch.Tensor)]
    kinds = {x.dtype.is_complex for x in values if x.dtype.is_complex or x.dtype.is_floating_point}
    kinds |= {dtype.is_complex for dtype in case.kwargs.values() if isinstance(dtype, torch.dtype)}
    none = NO_DERIVATIVE | NO_COMPLEX_DERIVATIVE if True in kinds else NO_DERIVATIVE
    return case.op not in none and len(kinds) == 1


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_bounds_contain_every_value(case: Case) -> None:
    for pattern, seed in itertools.product(PATTERNS, seeds(case)):
        args = case.draw(seed, pattern)

        bounds = case.bounds(args)

        for bound in bounds:
            assert_gaps(bound)
        tried = [*samples(args, seed, corners=4, inner=2)]
        if _has_derivative(case, args):
            tried += attacks(case, args, seed, components=2)
        results = zip(*(case.plain(values) for values in tried), strict=True)
        for bound, values in zip(bounds, results, strict=True):
            assert_inside(bound, torch.stack(values), f"{case}, {pattern}, seed {seed}")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_without_gaps_the_bounds_are_the_plain_result_bit_for_bit(case: Case) -> None:
    for seed in seeds(case):
        args = case.draw(seed, "no gaps")

        bounds, plain = case.bounds(args), case.plain(points(args))

        for bound, value in zip(bounds, plain, strict=True):
            assert same(bound.point, value)
            assert (bound.width[value.isfinite()] == 0).all()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_wider_arguments_never_give_narrower_bounds(case: Case) -> None:
    seed = seeds(case)[1]
    random = torch.Generator().manual_seed(seed)

    def widen(gap: torch.Tensor) -> torch.Tensor:
        more = torch.rand(real_parts(gap).shape, generator=random, dtype=torch.float64)
        wider = real_parts(gap) * (1 + more) + 0.1 * more.round()
        return torch.view_as_complex(wider) if gap.is_complex() else wider

    for pattern in ("positive", "straddling", "some gaps", "tiny"):
        args = case.draw(seed, pattern)
        wider = with_intervals(args, [Interval(x.point, widen(x.below), widen(x.above)) for x in intervals(args)])

        narrow, wide = case.bounds(args), case.bounds(wider)

        for small, large in zip(narrow, wide, strict=True):
            assert_wider(large, small, f"{case}, {pattern}, seed {seed}", relative=1e-10)


def _promises_sign(case: Case, entry: Rule) -> bool:
    """Say whether the result is promised not to be negative, as the lifting reads the table."""
    numbers = [case.args[i] for i in entry.takes if i < len(case.args)] + list(case.kwargs.values())
    if any(isinstance(x, int | float) and x < 0 for x in numbers):
        return False
    return not any(x.dtype.is_complex for x in intervals(case.draw(0, "positive")))


def _not_negative(args: tuple[Any, ...], takes: tuple[int, ...]) -> tuple[Any, ...]:
    def cut(x: Any) -> Any:
        if isinstance(x, Interval):
            return Interval(x.point.abs(), torch.minimum(x.below, x.point.abs()), x.above)
        return x.abs() if isinstance(x, torch.Tensor) and x.dtype != torch.bool else x

    return tuple(
        pytree.tree_map(cut, arg, is_leaf=is_interval) if index in takes else arg for index, arg in enumerate(args)
    )


SIGNED = [case for case in CASES if lookup(case.op).sign != "unknown" and _promises_sign(case, lookup(case.op))]


@pytest.mark.parametrize("case", SIGNED, ids=str)
def test_a_rule_that_promises_a_sign_keeps_it(case: Case) -> None:
    entry = lookup(case.op)
    for pattern in PATTERNS:
        args = case.draw(0, pattern)
        sign = entry.sign_of(*args, **case.kwargs)
        if sign == "unknown":
            continue
        if sign == "keeps":
            args = _not_negative(args, entry.takes)

        for values in samples(args, 0):
            for value in case.plain(values):
                assert value.is_complex() or not (value < 0).any()


def test_a_rule_says_where_it_takes_intervals() -> None:
    for case in CASES:
        given_intervals = {index for index, arg in enumerate(case.draw(0, "positive")) if intervals([arg])}

        assert given_intervals <= set(lookup(case.op).takes), case


def _entries(cases: list[Case]) -> set[OpOverload | OpOverloadPacket]:
    return {case.op if case.op in RULES else case.op.overloadpacket for case in cases}


def test_every_rule_has_a_case_and_every_case_a_rule() -> None:
    # other tests may have registered rules of their own, which are not ATen's
    ours = {op: entry for op, entry in RULES.items() if str(op).startswith("aten.")}
    assert _entries(CASES) == {op for op, entry in ours.items() if entry.bound is not None}
    assert _entries(REFUSED) == {op for op, entry in ours.items() if entry.refusal}
    assert _entries(SHAPE_ONLY) == {op for op, entry in ours.items() if entry.reads_shape_only}


SCRIPT_ONLY = {  # of TorchScript, which torch.export never writes
    "index.list_Tensor", "index.Tensor_hacked_twin", "_unsafe_index.Tensor_hacked_twin", "copy.Dict_Tensor",
    "index_put.hacked_twin", "_unsafe_index_put.hacked_twin", "split.default", "to.prim_Device", "to.prim_dtype",
    "to.prim_other", "eq.Tensor_list", "ne.Tensor_list",
}  # fmt: skip


def _of_values(overload: OpOverload) -> list[int]:
    """Return the positions of the arguments that are tensors, of an overload that only returns its result."""
    schema = overload._schema
    if schema.is_mutable or any(a.is_out for a in schema.arguments) or "name" in overload._overloadname:
        return []  # nor one by names of dimensions, which torch.export never writes
    return [index for index, argument in enumerate(schema.arguments) if "Tensor" in str(argument.type)]


def test_every_overload_that_an_interval_can_reach_has_a_case_or_refuses_it() -> None:
    tried = {case.op for case in (*CASES, *REFUSED, *SHAPE_ONLY)}
    missing = []
    for operation, entry in RULES.items():
        for overload in overloads(operation) if str(operation).startswith("aten.") else ():
            reached = set(_of_values(overload)) & set(entry.takes)
            known = entry.refusal or lookup(overload) is not entry or overload in tried
            if reached and not known and str(overload).removeprefix("aten.") not in SCRIPT_ONLY:
                missing.append(str(overload))
    assert missing == []


def test_every_core_operation_has_a_rule_or_a_reason() -> None:
    names = {schema.name.removeprefix("aten::") for schema in torch._C._jit_get_all_schemas()}
    packets = [getattr(aten, name, None) for name in sorted(names) if "::" not in name]
    overloads = [getattr(p, o) for p in packets if isinstance(p, OpOverloadPacket) for o in p.overloads()]
    core = [overload for overload in overloads if torch.Tag.core in overload.tags]

    assert len(core) > 150
    assert [str(overload) for overload in core if lookup(overload) is None] == []


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_a_refusal_names_the_operation_and_the_reason(case: Case) -> None:
    with pytest.raises(inn.MissingRuleError) as error:
        inn.apply(case.op, *case.draw(0, "positive"))

    assert str(case.op) in str(error.value)
    assert lookup(case.op).refusal in str(error.value)


@pytest.mark.parametrize("case", SHAPE_ONLY, ids=str)
def test_an_operation_that_reads_shapes_gives_the_same_for_all_values(case: Case) -> None:
    first, second = (case.op(*points(case.draw(seed, "straddling"))) for seed in (0, 1))

    if isinstance(first, torch.Tensor):
        assert first.shape == second.shape and first.dtype == second.dtype
        assert "empty" in str(case.op) or torch.equal(first, second)
    else:
        assert first == second


@pytest.mark.parametrize(
    ("op", "args"),
    [
        (aten.topk.default, (2, -1, True, False)),
        (aten.softplus.default, (-1.0,)),
        (aten.grid_sampler_2d.default, (torch.zeros(1, 1, 1, 2), 2, 0, False)),
    ],
    ids=str,
)
def test_what_a_rule_cannot_bound_it_refuses(op: OpOverload, args: Any) -> None:
    x = Interval.of(torch.ones(2, 3, dtype=torch.float64))

    with pytest.raises((NotImplementedError, TypeError)):
        inn.apply(op, x, **args) if isinstance(args, dict) else inn.apply(op, x, *args)
