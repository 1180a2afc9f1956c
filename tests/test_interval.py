"""Interval: a point and two gaps, and how it behaves beside tensors."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import pytest
import torch
import torch.utils._pytree as pytree

import intervalnn as inn
from intervalnn import Interval
from intervalnn.interval import Symmetric


@pytest.fixture
def x() -> Interval:
    point = torch.tensor([[1.0, -2.0, 0.5], [0.0, 3.0, -1.0]], dtype=torch.float64)
    return Interval(point, torch.full_like(point, 0.5), torch.full_like(point, 0.25))


def test_an_interval_describes_itself_as_its_point_does(x: Interval) -> None:
    assert x.shape == x.size() == torch.Size([2, 3])
    assert (x.size(0), x.size(-1), x.ndim, x.dim(), x.numel(), len(x)) == (2, 3, 2, 2, 6, 2)
    assert x.dtype == x.gap_dtype == torch.float64
    assert x.device == torch.device("cpu")


def test_the_ends_and_the_width_follow_from_the_gaps(x: Interval) -> None:
    assert torch.equal(x.lower, x.point - 0.5)
    assert torch.equal(x.upper, x.point + 0.25)
    assert torch.equal(x.width, torch.full_like(x.point, 0.75))


def test_a_tiny_width_keeps_its_digits_beside_a_large_point() -> None:
    gap = torch.tensor([1e-12])

    assert Interval(torch.tensor([1e6]), gap, gap).width.item() == pytest.approx(2e-12)


def test_the_gaps_may_have_another_dtype(x: Interval) -> None:
    mixed = Interval(x.point.float(), x.below.bfloat16(), x.above.bfloat16())

    assert (mixed.dtype, mixed.gap_dtype) == (torch.float32, torch.bfloat16)
    assert (mixed * 2.0).gap_dtype == torch.bfloat16


def test_an_index_takes_the_same_part_of_all_three(x: Interval) -> None:
    row, column = x[0], x[..., :1]

    assert row.shape == (3,) and column.shape == (2, 1)
    assert torch.equal(row.lower, x.lower[0]) and torch.equal(column.upper, x.upper[:, :1])


@pytest.mark.parametrize(
    ("name", "fn"),
    [
        ("add", lambda a, b: a + b),
        ("sub", lambda a, b: a - b),
        ("mul", lambda a, b: a * b),
        ("div", lambda a, b: a / b),
    ],
)
@pytest.mark.parametrize("other", [2, -0.5, torch.tensor([1.0, -2.0, 4.0], dtype=torch.float64)], ids=str)
def test_operators_take_numbers_and_tensors_on_either_side(name: str, fn, other, x: Interval) -> None:
    x = Interval(x.point + 5, x.below, x.above)
    for left, right in ((x, other), (other, x)):
        bounds = fn(left, right)

        at_ends = [
            fn(*(getattr(v, end) if isinstance(v, Interval) else v for v in (left, right)))
            for end in ("point", "lower", "upper")
        ]
        assert isinstance(bounds, Interval)
        assert all(bounds.contains(value, atol=1e-12).all() for value in at_ends)
        assert torch.allclose(bounds.point, at_ends[0], rtol=1e-15)


def test_operators_take_intervals(x: Interval) -> None:
    for bounds in (x + x, x - x, x * x, x @ x[0], x[0] @ x[1], x**2, x**-1.0, abs(x), -x):
        assert isinstance(bounds, Interval)
    assert torch.equal((-x).below, x.above)


def test_a_tensor_times_an_interval_as_matrices(x: Interval) -> None:
    matrix = torch.ones(4, 2, dtype=torch.float64)

    bounds = matrix @ x

    assert isinstance(bounds, Interval) and bounds.shape == (4, 3)
    assert bounds.contains(matrix @ x.lower, atol=1e-12).all()


def test_contains_tells_for_each_component(x: Interval) -> None:
    assert x.contains(x.lower).all() and x.contains(x.upper).all() and x.contains(x).all()
    assert not x.contains(x.lower - 0.1).any() and not x.contains(x.upper + 0.1).any()
    assert x.contains(x.upper + 0.1, atol=0.2).all()
    assert not Interval.of(x.point).contains(x).any()


def test_a_complex_interval_contains_what_both_parts_contain() -> None:
    gap = torch.tensor([0.5 + 0.25j])
    box = Interval(torch.tensor([1 + 1j]), gap, gap)

    assert box.contains(torch.tensor([1.4 + 1.2j])).item()
    assert not box.contains(torch.tensor([1.4 + 1.3j])).item()
    assert not box.contains(torch.tensor([1.6 + 1.2j])).item()


def test_contains_wants_the_same_shape(x: Interval) -> None:
    with pytest.raises(ValueError, match=r"y must have shape \(2, 3\)"):
        x.contains(torch.zeros(3))


def test_around_reaches_both_ends_and_never_misses_the_point() -> None:
    point = torch.tensor([0.0, 0.0])

    bounds = Interval.around(point, lower=torch.tensor([-1.0, 1.0]), upper=torch.tensor([2.0, 2.0]))

    assert bounds.lower.tolist() == [-1.0, 0.0]
    assert bounds.upper.tolist() == [2.0, 2.0]


def test_an_end_rounded_to_the_other_side_of_its_point_still_trains() -> None:
    point = torch.tensor([0.3, 0.3])
    lower, upper = (point + torch.tensor([missed, 0.1]) for missed in (3e-8, -3e-8))
    ends = [end.requires_grad_() for end in (lower, upper - torch.tensor([0.0, 0.2]))]  # the second misses it by far

    for around in (Interval.around, torch.compile(Interval.around, backend="aot_eager")):
        bounds = around(point, *ends)
        slopes = torch.autograd.grad(bounds.width.sum(), ends)

        assert bounds.width.tolist() == [0.0, 0.0]
        assert [slope.tolist() for slope in slopes] == [[-1.0, 0.0], [1.0, 0.0]]


def test_of_leaves_an_interval_as_it_is_and_gives_a_tensor_no_gaps(x: Interval) -> None:
    assert Interval.of(x) is x
    assert (Interval.of(x.point).width == 0).all()


def test_parts_of_different_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"one shape, got \(2,\), \(1,\) and \(2,\)"):
        Interval(torch.zeros(2), torch.zeros(1), torch.zeros(2))


def test_integers_are_refused() -> None:
    with pytest.raises(TypeError, match=r"floating-point tensor, got torch\.int64"):
        Interval(torch.tensor([1]), torch.tensor([0]), torch.tensor([0]))


def test_what_is_not_a_tensor_is_refused() -> None:
    with pytest.raises(TypeError, match="three tensors, got a float"):
        Interval(torch.zeros(1), 0.0, torch.zeros(1))  # type: ignore[arg-type]


def test_an_interval_cannot_be_changed_and_is_no_tensor(x: Interval) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        x.point = torch.zeros(1)  # type: ignore[misc]
    assert not isinstance(x, torch.Tensor)
    assert x != Interval(x.point, x.below, x.above)


def test_an_interval_is_a_tree_of_three_tensors(x: Interval) -> None:
    leaves, spec = pytree.tree_flatten({"a": x})

    doubled = pytree.tree_map(lambda part: 2 * part, {"a": x})["a"]

    assert len(leaves) == 3 and all(isinstance(leaf, torch.Tensor) for leaf in leaves)
    assert isinstance(doubled, Interval) and torch.equal(doubled.lower, 2 * x.lower)
    assert isinstance(pytree.tree_unflatten(leaves, spec)["a"], Interval)


def test_an_interval_passes_through_torch_compile(x: Interval) -> None:
    @torch.compile(backend="eager", fullgraph=True)
    def double(x: Interval) -> Interval:
        return Interval(2 * x.point, 2 * x.below, 2 * x.above)

    assert torch.equal(double(x).upper, 2 * x.upper)


def test_an_interval_moves_detaches_and_pickles(x: Interval) -> None:
    trained = Interval(x.point, x.below.clone().requires_grad_(), x.above)

    assert trained.to(torch.float32).dtype == torch.float32
    assert not trained.detach().below.requires_grad
    assert torch.equal(pickle.loads(pickle.dumps(x)).lower, x.lower)


def test_the_public_names_are_there() -> None:
    assert {"Interval", "IntervalNetwork", "MissingRuleError", "Prediction", "apply", "rule"} <= set(inn.__all__)


def test_one_gap_for_both_sides_stays_one_in_trees_and_copies_and_no_longer_behind_operations() -> None:
    x = Symmetric(torch.ones(2), torch.tensor([0.5, 0.25]))

    leaves, spec = pytree.tree_flatten(x)
    again = [pytree.tree_unflatten(leaves, spec), copy.deepcopy(x), pickle.loads(pickle.dumps(x))]

    assert len(leaves) == 2 and x.lower.tolist() == [0.5, 0.75] and x.upper.tolist() == [1.5, 1.25]
    for other in again:
        assert type(other) is Symmetric and other.below is other.above and torch.equal(other.above, x.above)
    for other in (x.detach(), x + x, x[:1], -x):
        assert type(other) is Interval
