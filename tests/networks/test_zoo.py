"""Whole networks: random weights inside their intervals never leave the bounds, and the model is only read."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch
from soundness import fingerprint, leaves, misses, set_random_gaps
from torch import Tensor, nn
from zoo import ZOO, Case

import intervalnn as inn

CASES = [pytest.param(case, id=str(case), marks=[pytest.mark.slow] if case.slow else []) for case in ZOO]
QUICK = {"U-Net, transposed convolution, batch norm", "item assignment", "gates on strided halves"}


def few(wanted: Any = lambda case: True) -> list[Any]:
    """Return the cases for a test that captures anew: a few quick ones, and all others when there is time."""
    marks = {True: [], False: [pytest.mark.slow]}
    return [pytest.param(case, id=str(case), marks=marks[str(case) in QUICK]) for case in ZOO if wanted(case)]


@functools.cache
def fitted(case: Case) -> inn.IntervalNetwork:
    """Return the network in double precision with random gaps, captured once for all tests of this module."""
    net = inn.IntervalNetwork(case.build(torch.float64), layers="all")
    set_random_gaps(net, rel=case.rel)
    return net


@torch.no_grad()
def intervals(net: inn.IntervalNetwork, case: Case, **options: Any) -> list[inn.Interval]:
    args, kwargs = case.call(net_dtype(net), **options)
    return [leaf for leaf in leaves(net(*args, **kwargs)) if isinstance(leaf, inn.Interval)]


def net_dtype(net: inn.IntervalNetwork) -> torch.dtype:
    return next(p.dtype for p in net.model.parameters() if p.is_floating_point())


@pytest.mark.rotating
@pytest.mark.parametrize("case", CASES)
def test_no_draw_of_weights_leaves_the_bounds_and_the_model_is_not_edited(case: Case) -> None:
    net = fitted(case)
    args, kwargs = case.call(torch.float64)
    before = fingerprint(net.model)

    outside, used = misses(net, case.build(torch.float64), args, kwargs, draws=200, rtol=1e-9)

    assert outside == 0
    assert used > 0  # the draws did move the output
    assert fingerprint(net.model) == before


@pytest.mark.rotating
@pytest.mark.parametrize("case", CASES)
def test_the_gradient_of_every_gap_is_finite_and_not_all_are_zero(case: Case) -> None:
    net = fitted(case)
    args, kwargs = case.call(torch.float64)
    net.zero_grad()

    outputs = [leaf for leaf in leaves(net(*args, **kwargs)) if isinstance(leaf, inn.Interval)]
    sum(out.width.sum() + (out.above**2).sum() for out in outputs if out.width.requires_grad).backward()

    grads = {name: p.grad for name, p in net.named_parameters() if p.grad is not None}
    assert all(grad.isfinite().all() for grad in grads.values())
    still = {name for name, grad in grads.items() if not grad.any()} | {
        name for name, p in net.named_parameters() if p.grad is None
    }
    assert not still - unused(case.build(torch.float64), case)


def unused(model: nn.Module, case: Case) -> set[str]:
    """Return the gaps of those parameters that the model's own output does not depend on."""
    args, kwargs = case.call(torch.float64)
    if case.name == "out= into a buffer":
        return set()  # autograd does not take it
    tensors = [x for x in leaves(model(*args, **kwargs)) if x.requires_grad]
    sum((x.real**2).sum() + x.real.sum() for x in tensors).backward()
    names = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    return {f"gaps.{name}.{side}" for name in names for side in ("below", "above")}


@pytest.mark.rotating
@pytest.mark.parametrize("case", few(lambda case: case.resized is not None))
def test_other_sizes_need_one_more_capture_at_most_and_give_the_bounds_of_a_fresh_one(case: Case) -> None:
    net, fresh = (inn.IntervalNetwork(case.build(torch.float64), layers="all") for _ in range(2))
    for each in (net, fresh):
        set_random_gaps(each, rel=case.rel)
    intervals(net, case)
    args, kwargs = case.call(torch.float64, resized=True)

    outside, _ = misses(net, case.build(torch.float64), args, kwargs, draws=10, rtol=1e-9)
    pairs = zip(intervals(net, case, resized=True), intervals(fresh, case, resized=True), strict=True)

    assert outside == 0
    for ours, theirs in pairs:
        torch.testing.assert_close((ours.below, ours.above), (theirs.below, theirs.above), rtol=1e-9, atol=1e-12)
    intervals(net, case)
    assert len(net._search.programs) <= 2 and len(set(net._search.programs._plans.values())) == 1


@pytest.mark.parametrize("case", few())
def test_the_point_is_the_models_own_output_and_zero_gaps_have_zero_width(case: Case) -> None:
    model = case.build()
    args, kwargs = case.call()
    net = inn.IntervalNetwork(model, layers="all")

    with torch.no_grad():
        wanted, got = leaves(model(*args, **kwargs)), leaves(net(*args, **kwargs))

    for want, bounds in zip(wanted, got, strict=True):
        point = bounds.point if isinstance(bounds, inn.Interval) else bounds
        if case.bitwise:
            assert torch.equal(point, want)
        torch.testing.assert_close(point, want, rtol=1e-5, atol=1e-6)
        if isinstance(bounds, inn.Interval):
            assert not bounds.below.any() and not bounds.above.any()


@pytest.mark.rotating
@pytest.mark.parametrize("case", few())
def test_the_point_is_bit_identical_with_gaps_too(case: Case) -> None:
    model = case.build()
    args, kwargs = case.call()
    net = inn.IntervalNetwork(model, layers="all")
    set_random_gaps(net, rel=case.rel)

    with torch.no_grad():
        wanted, got = leaves(model(*args, **kwargs)), leaves(net(*args, **kwargs))

    for want, bounds in zip(wanted, got, strict=True):
        if isinstance(bounds, inn.Interval):
            torch.testing.assert_close(
                bounds.point, want, rtol=0 if case.bitwise else 1e-5, atol=0 if case.bitwise else 1e-6
            )
            assert bounds.contains(bounds.point).all()


@pytest.mark.rotating
@pytest.mark.parametrize("case", few())
def test_intervals_in_the_last_layer_only_are_sound(case: Case) -> None:
    net = inn.IntervalNetwork(case.build(torch.float64), layers=1)
    args, kwargs = case.call(torch.float64)
    net(*args, **kwargs)
    set_random_gaps(net, rel=0.1)

    outside, used = misses(net, case.build(torch.float64), args, kwargs, draws=50, rtol=1e-9)

    assert outside == 0
    assert used > 0
    assert 0 < len(net.names) <= 5


@pytest.mark.rotating
@pytest.mark.parametrize("case", few())
def test_named_layers_and_a_predicate_choose_the_same_and_are_sound(case: Case) -> None:
    model = case.build(torch.float64)
    seen: list[str] = []
    inn.IntervalNetwork(model, layers=lambda name, module: bool(seen.append(name)))
    first = next(name for name in seen if name)
    by_predicate = inn.IntervalNetwork(model, layers=lambda name, module: f"{name}.".startswith(f"{first}."))
    by_name = inn.IntervalNetwork(model, layers=[first])
    set_random_gaps(by_name, rel=case.rel)
    args, kwargs = case.call(torch.float64)

    outside, _ = misses(by_name, case.build(torch.float64), args, kwargs, draws=20, rtol=1e-9)

    assert by_predicate.names == by_name.names
    assert outside == 0


@pytest.mark.rotating
@pytest.mark.parametrize("case", few(lambda case: "language" not in case.name))
def test_interval_inputs_are_sound(case: Case) -> None:
    model = case.build(torch.float64)
    args, kwargs = case.call(torch.float64)
    net = inn.IntervalNetwork(model, layers=[])

    def widen(x: Any) -> Any:
        return inn.Interval(x, 1e-3 * torch.rand_like(x), 1e-3 * torch.rand_like(x)) if isinstance(x, Tensor) else x

    wide = (widen(args[0]), *args[1:])
    with torch.no_grad():
        bounds = leaves(net(*wide, **kwargs))
        for corner in (True, False) * 20:
            share = torch.rand_like(args[0])
            x = wide[0].lower + (share.round() if corner else share) * (wide[0].upper - wide[0].lower)
            outputs = leaves(model(x, *args[1:], **kwargs))

            for bound, output in zip(bounds, outputs, strict=True):
                if isinstance(bound, inn.Interval):
                    assert bound.contains(output, atol=1e-9 * float(output.abs().max())).all()


@pytest.mark.slow
@pytest.mark.parametrize("case", few())
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")  # from inside dynamo
def test_compiled_equals_eager_in_training_and_in_use(case: Case) -> None:
    net = inn.IntervalNetwork(case.build(torch.float64), layers="all")
    set_random_gaps(net, rel=case.rel)
    want = bounds_and_gradients(net, case)

    torch._dynamo.reset()
    net.compile(backend="aot_eager")
    got = bounds_and_gradients(net, case)
    used = intervals(net, case)

    torch.testing.assert_close(got, want, rtol=1e-9, atol=1e-12)
    for (below, above), bounds in zip(want[0], used, strict=True):
        torch.testing.assert_close((bounds.below, bounds.above), (below, above), rtol=1e-9, atol=1e-12)


def bounds_and_gradients(net: inn.IntervalNetwork, case: Case) -> tuple[list[tuple[Tensor, Tensor]], list[Any]]:
    net.zero_grad()
    args, kwargs = case.call(net_dtype(net))
    found = [leaf for leaf in leaves(net(*args, **kwargs)) if isinstance(leaf, inn.Interval)]
    widths = [torch.view_as_real(b.width) if b.dtype.is_complex else b.width for b in found]
    torch.stack([width.sum() for width in widths if width.requires_grad]).sum().backward()
    return [(b.below.detach(), b.above.detach()) for b in found], [gap.grad for gap in net.parameters()]
