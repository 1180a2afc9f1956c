"""Networks of complex numbers: no weights inside their intervals leave the bounds, and the point is the model's own."""

from __future__ import annotations

import pytest
import torch
from complex_zoo import ZOO
from soundness import leaves, misses, set_random_gaps
from zoo import Case

import intervalnn as inn
from intervalnn.network.gaps import Kind


@pytest.mark.rotating
@pytest.mark.parametrize("case", ZOO, ids=str)
def test_no_draw_of_weights_leaves_the_bounds_of_a_complex_network(case: Case) -> None:
    net = inn.IntervalNetwork(case.build(torch.float64), layers="all")
    set_random_gaps(net, rel=case.rel)
    args, kwargs = case.call(torch.float64)

    outside, _ = misses(net, case.build(torch.float64), args, kwargs, draws=100, rtol=1e-9)
    (bounds,) = leaves(net(*args, **kwargs))
    width = torch.view_as_real(bounds.width) if bounds.dtype.is_complex else bounds.width

    assert outside == 0
    assert width.isfinite().all() and width.amax() > 0


@pytest.mark.rotating
@pytest.mark.parametrize("kind", ["symmetric", "input"])
@pytest.mark.parametrize("case", ZOO, ids=str)
def test_nor_where_several_weights_or_both_sides_share_a_gap(case: Case, kind: Kind) -> None:
    net = inn.IntervalNetwork(case.build(torch.float64), layers="all", kind=kind)
    args, kwargs = case.call(torch.float64)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for gap in net.parameters():
            gap.copy_(case.rel * torch.rand(gap.shape, generator=generator))

    outside, _ = misses(net, case.build(torch.float64), args, kwargs, draws=20, rtol=1e-9)
    (bounds,) = leaves(net(*args, **kwargs))
    width = torch.view_as_real(bounds.width) if bounds.dtype.is_complex else bounds.width

    assert outside == 0
    assert width.isfinite().all() and width.amax() > 0


@pytest.mark.rotating
@pytest.mark.parametrize("case", ZOO, ids=str)
def test_the_point_of_a_complex_network_is_the_models_own_and_its_gaps_have_gradients(case: Case) -> None:
    model = case.build()
    net = inn.IntervalNetwork(model, layers="all")
    args, kwargs = case.call()

    (bounds,) = leaves(net(*args, **kwargs))
    width = torch.view_as_real(bounds.width) if bounds.dtype.is_complex else bounds.width
    width.sum().backward()

    assert torch.equal(bounds.point, model(*args, **kwargs))
    assert (width == 0).all()
    for name, gap in net.named_parameters():
        assert gap.grad is not None and gap.grad.isfinite().all() and gap.grad.any(), name
