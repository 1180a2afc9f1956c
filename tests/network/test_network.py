"""IntervalNetwork: what a user calls, apart from whether the bounds hold (tests/networks)."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import parametrize

import intervalnn as inn
from counting import convolutions
from intervalnn.network.capture import given
from intervalnn.network.lifting.lift import Lifted


class Net(nn.Module):
    """Four layers, so that there is a first, a middle and a last."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = nn.Conv1d(1, 4, 3, padding=1), nn.Conv1d(4, 4, 3), nn.Conv1d(4, 2, 1)
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x: Tensor) -> Tensor:
        return self.third(self.norm(F.relu(self.second(F.relu(self.first(x))))))


def make(dtype: torch.dtype = torch.float32) -> Net:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return Net().eval().to(dtype)


def signal(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*(shape or (2, 1, 8)), generator=torch.Generator().manual_seed(1)).to(dtype)


def with_gaps(net: inn.IntervalNetwork, gap: float = 1e-2) -> inn.IntervalNetwork:
    for name in net.names:
        net.set_gaps(name, below=gap, above=2 * gap)
    return net


def lifted_of(net: inn.IntervalNetwork) -> Lifted:
    return next(reversed(net._search.programs._plans)).lifted


# --- the gaps ---


def test_its_parameters_are_the_gaps_and_nothing_else() -> None:
    model = make()
    net = inn.IntervalNetwork(model, layers="all")

    gaps = {id(p) for p in net.parameters()}

    assert not gaps & {id(p) for p in model.parameters()}
    assert sum(p.numel() for p in net.parameters()) == 2 * sum(p.numel() for p in model.parameters())
    names = {name for name, _ in net.named_parameters()}
    assert names == {f"gaps.{n}.{s}" for n, _ in model.named_parameters() for s in ("below", "above")}
    assert all(name.startswith("gaps.") for name in net.state_dict())
    assert all(not p.any() for p in net.parameters())


def test_weight_intervals_has_every_parameter_and_no_gaps_where_it_is_a_point() -> None:
    net = with_gaps(inn.IntervalNetwork(make(), layers=["third"]))

    weights = net.weight_intervals()

    assert list(weights) == [name for name, _ in net.model.named_parameters()]
    assert {name for name, w in weights.items() if w.width.any()} == {"third.weight", "third.bias"}
    assert all(torch.equal(w.point, net.model.get_parameter(name)) for name, w in weights.items())


def test_tied_names_share_one_pair_of_gaps() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3)).eval()
    model[2].weight = model[0].weight
    net = inn.IntervalNetwork(model, layers=["2"])

    net.set_gaps("2.weight", below=0.1, above=0.2)

    weights = net.weight_intervals()
    assert torch.equal(weights["0.weight"].above, weights["2.weight"].above)
    assert len(list(net.parameters())) == 4  # the tied weight and one bias


def test_complex_weights_have_gaps_for_their_real_and_imaginary_part() -> None:
    class Complex(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(3, 3, dtype=torch.complex64))

        def forward(self, x: Tensor) -> Tensor:
            return torch.fft.irfft(torch.fft.rfft(x) @ self.weight, n=4)

    net = inn.IntervalNetwork(Complex().eval(), layers="all")
    net.set_gaps("weight", below=torch.full((3, 3), 0.1 + 0.2j), above=0.0)

    below = net.weight_intervals()["weight"].below

    assert torch.equal(below, torch.full((3, 3), 0.1 + 0.2j))
    assert (net(torch.randn(2, 4)).width > 0).all()


def test_a_gap_in_double_precision_is_the_number_that_was_given() -> None:
    net = inn.IntervalNetwork(make().double(), layers="all")

    net.set_gaps("third.weight", below=0.02, above=0.1)

    bounds = net.weight_intervals()["third.weight"]
    assert (bounds.below == 0.02).all() and (bounds.above == 0.1).all()


@pytest.mark.rotating
@pytest.mark.parametrize(
    ("name", "below", "error", "message"),
    [
        ("thirt.weight", 0.1, KeyError, "did you mean 'third.weight'"),
        ("third.weight", torch.zeros(3), ValueError, r"must have shape \(2, 4, 1\), or be a number, got \(3,\)"),
        ("third.weight", -0.1, ValueError, "must be finite and not negative, got -0.1"),
        ("third.weight", float("nan"), ValueError, "must be finite and not negative"),
        ("third.weight", float("inf"), ValueError, "must be finite and not negative"),
        ("first.weight", 0.1, ValueError, "'first.weight' is a point.*third.weight, third.bias"),
    ],
)
def test_set_gaps_says_what_is_wrong(name: str, below: Any, error: type[Exception], message: str) -> None:
    net = inn.IntervalNetwork(make(), layers=["third"])

    with pytest.raises(error, match=message):
        net.set_gaps(name, below=below, above=0.1)


def test_negative_gaps_count_as_none_and_can_come_back() -> None:
    net = with_gaps(inn.IntervalNetwork(make(), layers=["third"]))
    gap = net.gaps.get_parameter("third.bias.above")
    gap.data.fill_(-1.0)

    bounds = net(signal())
    (bounds.upper - 10.0).square().sum().backward()  # which asks for a larger upper bound

    assert not net.weight_intervals()["third.bias"].above.any()
    assert (gap.grad < 0).all()


# --- which layers ---


@pytest.mark.rotating
@pytest.mark.parametrize(
    ("layers", "names"),
    [
        (1, ["third.weight", "third.bias"]),
        (2, ["second.weight", "second.bias", "third.weight", "third.bias"]),
        (["norm", "third.bias"], ["third.bias", "norm.weight", "norm.bias"]),
        (lambda name, module: isinstance(module, nn.BatchNorm1d), ["norm.weight", "norm.bias"]),
        ([], []),
    ],
)
def test_layers_by_number_name_or_predicate(layers: Any, names: list[str]) -> None:
    net = inn.IntervalNetwork(make(), layers=layers)

    net(signal())

    assert net.names == names


@pytest.mark.rotating
@pytest.mark.parametrize(
    ("layers", "error", "message"),
    [
        (["thrid"], ValueError, "no layer or parameter 'thrid'; did you mean 'third'"),
        ("third", ValueError, r"for one name: \['third'\]"),
        (True, TypeError, "layers must be 'all', a number, names or a predicate"),
    ],
)
def test_layers_that_do_not_exist_are_refused_at_once(layers: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        inn.IntervalNetwork(make(), layers=layers)


@pytest.mark.rotating
@pytest.mark.parametrize("count", [0, 4, -1])
def test_a_number_of_layers_out_of_range_is_refused_at_the_first_call(count: int) -> None:
    net = inn.IntervalNetwork(make(), layers=count)

    with pytest.raises(ValueError, match="between 1 and 3, the number of weight layers"):
        net(signal())


def test_a_number_of_layers_is_not_known_before_the_first_call() -> None:
    net = inn.IntervalNetwork(make(), layers=1)

    with pytest.raises(RuntimeError, match=r"not known before the first call; call net\(x\) once"):
        list(net.parameters())

    net(signal())
    assert len(list(net.parameters())) == 4


def test_the_last_layers_are_the_last_to_run_not_to_be_registered() -> None:
    class Backwards(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.out, self.hidden = nn.Linear(4, 2), nn.Linear(3, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.out(F.relu(self.hidden(x)))

    net = inn.IntervalNetwork(Backwards().eval(), layers=1)
    net(torch.randn(2, 3))

    assert net.names == ["out.weight", "out.bias"]


# --- the point prefix ---


def test_what_comes_before_the_first_interval_layer_is_computed_once_as_plain_operations() -> None:
    net = with_gaps(inn.IntervalNetwork(make(), layers=["third"]))
    net(signal())

    found = [n for n in lifted_of(net).run.graph.nodes if n.target is torch.ops.aten.conv1d.default]
    rules = [n.target.__name__ for n in lifted_of(net).run.graph.nodes if getattr(n.target, "__module__", "") and
             str(getattr(n.target, "__module__", "")).startswith("intervalnn.rules")]  # fmt: skip

    assert len(found) == 2
    assert rules == ["layer"]


def test_no_product_is_computed_twice() -> None:
    net = with_gaps(inn.IntervalNetwork(make(), layers=["third"]))
    x = signal()
    with torch.no_grad():
        net(x)

    plain, bounded = convolutions(lambda: net.model(x)), convolutions(lambda: net(x))

    assert plain == 3
    assert 3 < bounded <= 5  # at most two more around a point: U*x+ + D*x- and its mirror


# --- predict ---


def test_predict_needs_no_gradients_and_gives_all_five() -> None:
    net = with_gaps(inn.IntervalNetwork(make(), layers="all"))
    x = signal()

    p = net.predict(x)

    assert isinstance(p, inn.Prediction)
    assert torch.equal(p.point, net.model(x))
    assert not p.score.requires_grad
    assert (p.lower <= p.point).all() and (p.point <= p.upper).all()
    assert torch.equal(p.score, p.below + p.above)
    assert set(p.direction.unique().tolist()) <= {-1.0, 0.0, 1.0}


def test_predict_in_batches_is_predict_at_once() -> None:
    net = with_gaps(inn.IntervalNetwork(make(), layers="all"))
    x = signal(5, 1, 8)

    parts, whole = net.predict(x, batch_size=2), net.predict(x)

    torch.testing.assert_close((parts.point, parts.below, parts.above), (whole.point, whole.below, whole.above))


@pytest.mark.rotating
@pytest.mark.parametrize(("size", "message"), [(0, "at least 1"), (2, "must have one first dimension, got")])
def test_predict_refuses_batches_that_make_no_sense(size: int, message: str) -> None:
    class Two(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return x.sum() + y

    with pytest.raises(ValueError, match=message):
        inn.IntervalNetwork(Two(), layers=[]).predict(torch.ones(4), torch.ones(3), batch_size=size)


@pytest.mark.rotating
@pytest.mark.parametrize(
    ("x", "message"), [((), "the call has no tensor among its arguments"), ((torch.ones(()),), r"got shapes \[\(\)\]")]
)
def test_predict_in_batches_wants_something_to_cut(x: tuple[Tensor, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        inn.IntervalNetwork(make(), layers="all").predict(*x, batch_size=2)


def test_balancing_takes_large_sensitivities_in_half_precision() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(64, 64) for _ in range(6))).half().eval()
    for parameter in model.parameters():
        parameter.data.mul_(2)
    net, x = inn.IntervalNetwork(model, layers="all"), torch.randn(8, 64).half()

    sensitivity = net.balance(x)

    assert max(sensitivity.values()) > torch.finfo(torch.float16).max
    assert not any(gap.isnan().any() for gap in net.parameters())
    net.set_gaps("0.bias", below=0.01, above=0.01)
    assert net(x).width.isfinite().all() and (net(x).width > 0).any()


def test_arrays_among_the_arguments_are_told_apart_by_all_their_numbers() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 2)

        def forward(self, x: Tensor, factors: Any) -> Tensor:
            return self.layer(x) * float(factors.sum())

    net, x, factors = inn.IntervalNetwork(Scaled().eval(), layers="all"), torch.ones(2, 3), np.ones(2000)
    net(x, factors)
    factors[1000] = 500.0  # which the array's text leaves out

    assert torch.equal(net(x, factors).point, net.model(x, factors))


def test_what_was_captured_under_autocast_is_not_taken_outside_of_it() -> None:
    net, x = inn.IntervalNetwork(make(), layers="all"), signal(2, 1, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside, wanted = net(x).point, net.model(x)

    assert inside.dtype == wanted.dtype
    assert torch.equal(net(x).point, net.model(x))


def test_a_model_without_parameters_takes_intervals() -> None:
    bounds = inn.IntervalNetwork(nn.ReLU().eval(), layers=[])(inn.Interval(*(torch.ones(2) for _ in range(3))))

    assert torch.equal(bounds.lower, torch.zeros(2)) and torch.equal(bounds.upper, torch.full((2,), 2.0))


def test_weights_that_are_no_longer_tied_are_refused() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3)).eval()
    model[1].weight = model[0].weight
    net = inn.IntervalNetwork(model, layers="all")
    net(torch.ones(1, 3))
    model[1].weight = nn.Parameter(torch.ones(3, 3))

    with pytest.raises(ValueError, match=r"were tied together, untied, added or removed .* make a new IntervalNetwork"):
        net(torch.ones(1, 3))


def test_sizes_may_be_rounded_by_python() -> None:
    class Part(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(x)[: round(x.shape[0] * 0.6)]

    net = inn.IntervalNetwork(Part().eval(), layers="all")
    for size in (4, 9, 11):
        x = torch.ones(size, 3)
        assert torch.equal(net(x).point, net.model(x))


def test_predict_keeps_the_models_structure() -> None:
    class Structured(Net):
        def forward(self, x: Tensor) -> Any:
            y = super().forward(x)
            return {"y": y, "parts": [y[:, :1], torch.arange(3)], "name": "mine"}

    net = with_gaps(inn.IntervalNetwork(Structured().eval(), layers="all"))

    out = net.predict(signal(4, 1, 8), batch_size=4)

    assert isinstance(out["y"], inn.Prediction) and isinstance(out["parts"][0], inn.Prediction)
    assert torch.equal(out["parts"][1], torch.arange(3))
    assert out["name"] == "mine"


# --- the cache ---


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> tuple[inn.IntervalNetwork, list[int]]:
    net = with_gaps(inn.IntervalNetwork(make(), layers="all"))
    with torch.no_grad():
        net(signal())
    lifted, calls = lifted_of(net), []
    forward = lifted.prepare.forward
    monkeypatch.setattr(lifted.prepare, "forward", lambda *args: calls.append(1) or forward(*args))
    return net, calls


def test_split_weights_are_kept_while_nothing_changes(counted: tuple[inn.IntervalNetwork, list[int]]) -> None:
    net, calls = counted

    with torch.no_grad():
        net(signal())
        net(signal(3, 1, 9))

    assert not calls


def changes() -> dict[str, Callable[[inn.IntervalNetwork], Any]]:
    def step(net: inn.IntervalNetwork) -> None:
        optimiser = torch.optim.SGD(net.parameters(), lr=1e-3)
        with torch.enable_grad():
            net(signal()).width.sum().backward()
        optimiser.step()

    def replace(net: inn.IntervalNetwork) -> None:
        net.model.third.bias = nn.Parameter(torch.zeros(2))

    def assign(net: inn.IntervalNetwork) -> None:
        net.load_state_dict({k: 3 * v for k, v in net.state_dict().items()}, assign=True)

    def parametrise(net: inn.IntervalNetwork) -> None:
        gaps = net.gaps.get_submodule("third.bias")
        parametrize.register_parametrization(gaps, "above", nn.Softplus())
        net(signal())
        gaps.parametrizations.above.original.add_(1.0)

    def swap(net: inn.IntervalNetwork) -> None:
        side = net.gaps.get_submodule("third.bias").above
        side.data = side.data + 0.5

    return {
        "set_gaps": lambda net: net.set_gaps("third.bias", 0.5, 0.5),
        "a parametrisation of gaps": parametrise,
        "other data of gaps": swap,
        "a step of an optimiser": step,
        "load_state_dict": lambda net: net.load_state_dict({k: 2 * v for k, v in net.state_dict().items()}),
        "load_state_dict by assignment": assign,
        "the model's own weights": lambda net: net.model.third.weight.mul_(2),
        "a new parameter": replace,
        "loading into the model": lambda net: net.model.load_state_dict(
            {k: v + 0.1 for k, v in net.model.state_dict().items()}
        ),
    }


@pytest.mark.rotating
@pytest.mark.parametrize("change", changes())
def test_split_weights_are_made_anew_when_something_changes(change: str) -> None:
    net = with_gaps(inn.IntervalNetwork(make(), layers="all"))
    with torch.no_grad():
        before = net(signal())

        changes()[change](net)
        after = net(signal())
        for plan in net._search.programs._plans:
            plan.prepared = None
        fresh = net(signal())

    assert not torch.equal(before.upper, after.upper)
    assert torch.equal(after.point, fresh.point)
    assert torch.equal(after.below, fresh.below) and torch.equal(after.above, fresh.above)


def test_gradients_never_come_from_the_cache(counted: tuple[inn.IntervalNetwork, list[int]]) -> None:
    net, calls = counted

    for _ in range(2):
        net(signal()).width.sum().backward()

    assert len(calls) == 2
    assert all(p.grad is not None for p in net.parameters())


# --- torch's own bookkeeping ---


def test_state_dict_round_trip_gives_the_same_bounds() -> None:
    net, other = with_gaps(inn.IntervalNetwork(make(), layers="all")), inn.IntervalNetwork(make(), layers="all")

    other.load_state_dict(net.state_dict())

    assert torch.equal(other(signal()).above, net(signal()).above)


@pytest.mark.rotating
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))], ids=["copy", "pickle"])
def test_a_copy_is_a_network_of_its_own(copied: Callable[[Any], Any]) -> None:
    net = with_gaps(inn.IntervalNetwork(make(), layers="all"))
    want = net(signal())

    twin = copied(net)
    got = twin(signal())
    twin.set_gaps("third.bias", 1.0, 1.0)
    twin.model.third.bias.data.zero_()

    assert torch.equal(got.point, want.point) and torch.equal(got.above, want.above)
    assert torch.equal(net(signal()).above, want.above)


@pytest.mark.rotating
@pytest.mark.parametrize("convert", ["half", "double", "bfloat16"])
def test_it_refuses_to_convert_its_model(convert: str) -> None:
    net = inn.IntervalNetwork(make(), layers="all")

    with pytest.raises(TypeError, match="follows the dtype of its model"):
        getattr(net, convert)()

    assert next(net.model.parameters()).dtype == torch.float32


def test_to_its_own_dtype_and_device_changes_nothing() -> None:
    net = with_gaps(inn.IntervalNetwork(make(torch.float64), layers="all"))
    want = net(signal(dtype=torch.float64))

    got = net.to("cpu", torch.float64)(signal(dtype=torch.float64))

    assert torch.equal(got.above, want.above)
    with pytest.raises(TypeError, match="follows the dtype"):
        net.float()


def test_train_and_eval_of_the_network_leave_the_model_alone() -> None:
    net = inn.IntervalNetwork(make(), layers="all")

    net.train()

    assert not any(m.training for m in net.model.modules())
    net(signal())


def test_a_parameter_that_is_not_a_number_is_refused_at_once() -> None:
    model = make()
    model.second.weight.data[0, 0, 0] = torch.nan

    with pytest.raises(ValueError, match=r"'second.weight' has entries that are NaN"):
        inn.IntervalNetwork(model, layers="all")


@pytest.mark.rotating
@pytest.mark.parametrize("model", [torch.relu, "model", None])
def test_what_is_no_module_is_refused(model: Any) -> None:
    with pytest.raises(TypeError, match=r"must be a torch.nn.Module"):
        inn.IntervalNetwork(model, layers="all")


def test_a_call_without_tensors_is_refused() -> None:
    with pytest.raises(ValueError, match="no tensor among its arguments"):
        inn.IntervalNetwork(make(), layers="all")()


def test_printing_it_names_the_model() -> None:
    assert "Net, layers=['third']" in repr(inn.IntervalNetwork(make(), layers=["third"]))


# --- dtypes, forms, compilation ---


@pytest.mark.rotating
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_models_of_any_floating_dtype_work(dtype: torch.dtype) -> None:
    model = make(dtype)
    net = with_gaps(inn.IntervalNetwork(model, layers="all"))

    bounds = net(signal(dtype=dtype))

    assert bounds.dtype == dtype and bounds.gap_dtype == (torch.float32 if dtype == torch.float16 else dtype)
    assert torch.equal(bounds.point, model(signal(dtype=dtype)))
    assert bounds.below.isfinite().all() and (bounds.below >= 0).all() and bounds.above.any()


@pytest.mark.rotating
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("training", [False, True], ids=["use", "training"])
def test_another_form_holds_from_the_next_call_on(training: bool, compiled: bool) -> None:
    net, x = small("weight")
    if compiled:
        net.compile(backend="eager")
    with torch.set_grad_enabled(training):
        loose = net(x)

        net.form = dataclasses.replace(net.form, gap_dtype=torch.float64)
        fine = net(x)
        net.form = dataclasses.replace(net.form, exact=True)
        exact = net(x)

    assert loose.gap_dtype == torch.float32 and fine.gap_dtype == exact.gap_dtype == torch.float64
    torch.testing.assert_close(fine.above, loose.above.double())
    assert (exact.above <= fine.above).all() and (exact.above < 0.999 * fine.above).any()


def test_gaps_in_bfloat16_leave_the_point_as_it_is() -> None:
    model = make()
    net, half = (
        with_gaps(inn.IntervalNetwork(model, layers="all")),
        with_gaps(inn.IntervalNetwork(model, layers="all", gap_dtype=torch.bfloat16)),
    )

    want, got = net(signal()), half(signal())

    assert torch.equal(got.point, want.point)
    assert got.gap_dtype == torch.bfloat16
    torch.testing.assert_close(got.above.float(), want.above, rtol=0.05, atol=0)
    with pytest.raises(TypeError, match="gap_dtype must be a floating-point dtype"):
        inn.IntervalNetwork(model, layers="all", gap_dtype=torch.int32)


@pytest.mark.rotating
@pytest.mark.parametrize("dtype", [torch.float16, torch.float8_e4m3fn, torch.float8_e5m2])
def test_gaps_in_a_dtype_of_few_exponents_are_refused(dtype: torch.dtype) -> None:
    with pytest.raises(ValueError, match=rf"got {dtype}, in which small gaps vanish.*torch\.bfloat16 is as fast"):
        inn.IntervalNetwork(make(), layers="all", gap_dtype=dtype)


@pytest.mark.rotating
@pytest.mark.parametrize("size", [1e-12, 1e-9, 1e-6, 1e-3, 1e5])
def test_no_gap_is_lost_around_weights_in_float16(size: float) -> None:
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3)).half().eval()
    x = torch.rand(5, 4, generator=torch.Generator().manual_seed(0)).half()
    net, fine = (
        inn.IntervalNetwork(model, layers="all"),
        inn.IntervalNetwork(copy.deepcopy(model).float(), layers="all"),
    )
    for each in (net, fine):
        each(x.to(next(each.model.parameters()).dtype))
        for name in each.names:
            each.set_gaps(name, size, 2 * size)

    with torch.no_grad():
        bounds, wanted = net(x), fine(x.float())
    weights = net.weight_intervals()

    assert all(torch.equal(weights[name].below, weight.below) for name, weight in fine.weight_intervals().items())
    torch.testing.assert_close(bounds.below, wanted.below, rtol=0.02, atol=0.0)
    torch.testing.assert_close(bounds.above, wanted.above, rtol=0.02, atol=0.0)


def test_an_input_brings_its_gaps_in_float16() -> None:
    model = nn.Linear(3, 2).eval()
    x, gap = torch.ones(1, 3), torch.full((1, 3), 1e-7)

    bounds = inn.IntervalNetwork(model, layers="all")(inn.Interval(x, gap.half(), gap.half()))

    assert bounds.gap_dtype == torch.float32 and (bounds.above > 0).all()


@pytest.mark.rotating
@pytest.mark.parametrize(("gap", "said"), [(-1e-3, "-0.001"), (torch.nan, "NaN")])
@pytest.mark.parametrize("side", ["below", "above"])
def test_an_input_whose_gaps_are_none_is_refused(side: str, gap: float, said: str) -> None:
    zero, bad = torch.zeros(2, 3), torch.tensor([[0.0, 1.0, gap], [0.0, 0.0, 0.0]])
    net = inn.IntervalNetwork(nn.Linear(3, 2).eval(), layers="all")

    with pytest.raises(ValueError, match=rf"gap {side} must be 0 or more everywhere, got {said}; .*Interval\.around"):
        net(inn.Interval(torch.ones(2, 3), **{"below": zero, "above": zero} | {side: bad}))
    box = torch.complex(bad, zero)
    with pytest.raises(ValueError, match=rf"gap {side} must be 0 or more"):
        net(inn.Interval(torch.ones(2, 3) + 0j, **{"below": zero + 0j, "above": zero + 0j} | {side: box}))


def test_an_endless_gap_of_an_input_gives_endless_bounds() -> None:
    net = inn.IntervalNetwork(nn.Sequential(nn.Linear(3, 2), nn.ReLU()).eval(), layers="all")
    gap = torch.tensor([[0.0, torch.inf, 0.0]])

    bounds = net(inn.Interval(torch.ones(1, 3), gap, gap))

    assert bounds.above.isinf().all() and not bounds.below.isnan().any()


def test_on_a_device_that_nothing_waits_for_bad_gaps_of_an_input_are_endless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(given, "_is_here", lambda gap: False)
    gap = torch.tensor([[0.0, -1.0], [0.0, torch.nan], [0.0, 1.0]])

    bounds = inn.IntervalNetwork(nn.Linear(2, 1).eval(), layers="all")(inn.Interval(torch.ones(3, 2), gap, gap))

    assert bounds.above.isinf().flatten().tolist() == [True, True, False]


def test_the_exact_form_is_never_looser() -> None:
    model = nn.Sequential(nn.Conv1d(1, 4, 3), nn.ReLU(), nn.Conv1d(4, 4, 3), nn.Tanh(), nn.Conv1d(4, 2, 1)).double()
    default, exact = (
        with_gaps(inn.IntervalNetwork(model.eval(), layers="all", exact=form), 0.1) for form in (False, True)
    )
    x = signal(dtype=torch.float64)

    loose, tight = default(x), exact(x)

    assert torch.equal(loose.point, tight.point)
    assert loose.contains(tight, atol=1e-12).all()
    assert tight.width.sum() < 0.99 * loose.width.sum()


def forward_and_gradient(net: inn.IntervalNetwork, call: Callable[..., Any]) -> list[Tensor]:
    net.zero_grad()
    bounds = call(signal())
    (bounds.width.sum() + bounds.above.square().sum()).backward()
    return [bounds.point.detach(), bounds.below.detach(), bounds.above.detach(), *(p.grad for p in net.parameters())]


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
@pytest.mark.parametrize("how", [pytest.param("torch.compile(net)", marks=pytest.mark.slow), "net.compile()"])
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")  # from inside dynamo
def test_compiled_equals_eager(backend: str, how: str) -> None:
    net = with_gaps(inn.IntervalNetwork(make(), layers="all"))
    want = forward_and_gradient(net, net)

    if how == "net.compile()":
        net.compile(backend=backend)
        got = forward_and_gradient(net, net)
    else:
        got = forward_and_gradient(net, torch.compile(net, backend=backend))

    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.rotating
def test_sizes_of_inputs_vary_and_those_of_weights_do_not() -> None:
    net, taken = with_gaps(inn.IntervalNetwork(make(), layers="all")), []

    def backend(graph: torch.fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        values = (node.meta["example_value"] for node in graph.graph.find_nodes(op="placeholder"))
        taken.extend(value for value in values if isinstance(value, Tensor))
        return graph.forward

    net.compile(backend=backend, dynamic=True)
    with torch.no_grad():
        net(signal())

    varying = [value.dim() for value in taken if not all(type(size) is int for size in value.shape)]
    assert len(taken) > 4 and varying == [signal().dim()]


@pytest.mark.rotating
@pytest.mark.parametrize(("layer", "by_entry"), [
    (nn.MaxPool2d(2), True), (nn.MaxPool2d((1, 3)), True), (nn.MaxPool2d(3, stride=2), False),
    (nn.MaxPool2d(2, padding=1), False), (nn.MaxPool2d(2, ceil_mode=True), False), (nn.MaxPool2d(3), False),
    (nn.Upsample(scale_factor=2), True), (nn.Upsample(scale_factor=(4, 1)), True), (nn.Upsample(scale_factor=3), False),
    (nn.Upsample(size=(14, 18)), False),
])  # fmt: skip
def test_simple_pools_and_upsampling_are_compiled_entry_by_entry(layer: nn.Module, by_entry: bool) -> None:
    seen: list[str] = []

    def backend(program: torch.fx.GraphModule, example: Any) -> Callable[..., Any]:
        seen.extend(str(node.target) for node in program.graph.nodes)
        return program.forward

    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), layer, nn.Conv2d(2, 1, 1)).eval()
    net, x = with_gaps(inn.IntervalNetwork(model, layers="all")), torch.randn(2, 1, 11, 13)
    x[0, 0, 0, 0] = torch.nan
    with torch.no_grad():
        want = net(x)
        net.compile(backend=backend)
        got = net(x)

    for name in ("point", "below", "above"):
        torch.testing.assert_close(getattr(got, name), getattr(want, name), rtol=0, atol=0, equal_nan=True)
    assert any("max_pool" in name or "upsample" in name for name in seen) is not by_entry


class Joining(nn.Module):
    """A network that joins so many values before a product."""

    def __init__(self, parts: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv1d(1, 1, 1) for _ in range(parts))
        self.last = nn.Conv1d(parts, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.last(torch.cat([layer(x) for layer in self.layers], 1))
        return result


@pytest.mark.rotating
@pytest.mark.parametrize(("parts", "device", "joined"), [(2, "cuda", True), (5, "cuda", False), (2, "cpu", False)])
def test_few_parts_are_joined_in_the_pass_before_a_product_on_a_gpu(
    parts: int, device: str, joined: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = with_gaps(inn.IntervalNetwork(Joining(parts).eval(), layers="all"))
    net(torch.randn(1, 1, 4))
    monkeypatch.setattr(inn.IntervalNetwork, "device", torch.device(device))
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(torch, "compile", lambda program, **options: asked.append(options["options"]) or program)

    net.compile(options={"realize_reads_threshold": 5})
    net(torch.randn(1, 1, 4))

    assert asked[0].get("force_pointwise_cat", False) is joined
    assert asked[0]["realize_reads_threshold"] == 5


@pytest.mark.rotating
@pytest.mark.parametrize(("activation", "fused"), [(nn.ReLU(), True), (nn.LayerNorm(4), False), (nn.GELU(), False)])
def test_what_is_long_between_two_products_is_left_to_the_compiler(
    activation: nn.Module, fused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = nn.Sequential(nn.Linear(4, 4), activation, nn.Linear(4, 4)).eval()
    net = with_gaps(inn.IntervalNetwork(model, layers="all"))
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(torch, "compile", lambda program, **options: asked.append(options["options"]) or program)

    net.compile()
    net(torch.randn(1, 4))

    assert bool(asked[0]) is fused


def test_a_mode_of_the_compiler_keeps_one_pass_between_products(monkeypatch: pytest.MonkeyPatch) -> None:
    net = with_gaps(inn.IntervalNetwork(nn.Linear(4, 4).eval(), layers="all"))
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(torch, "compile", lambda program, **options: asked.append(options) or program)

    net.compile(mode="reduce-overhead", options={"max_autotune": True}, dynamic=False)
    net(torch.randn(1, 4))

    assert asked[0].keys() == {"options", "dynamic"}  # torch takes no mode beside options
    options = asked[0]["options"]
    assert options["triton.cudagraphs"] and options["max_autotune"] and options["realize_opcount_threshold"] > 30


def test_an_unknown_mode_of_the_compiler_is_named() -> None:
    net = inn.IntervalNetwork(nn.Linear(4, 4).eval(), layers="all")

    with pytest.raises(ValueError, match=r"mode must be one of 'default'.*, got 'fastest'"):
        net.compile(mode="fastest")


class Small(nn.Module):
    """What a U-Net has: one channel that comes in, a pool, an upsampling, and a join."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.last = nn.Conv2d(16, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        skip = F.relu(self.first(x))
        deep = F.relu(self.second(F.max_pool2d(skip, 2)))
        result: Tensor = self.last(torch.cat((skip, F.interpolate(deep, scale_factor=2)), 1))
        return result


KINDS = ["weight", "symmetric", "input"]


def small(kind: Any, **options: Any) -> tuple[inn.IntervalNetwork, Tensor]:
    torch.manual_seed(0)
    model, x = Small().eval(), torch.randn(2, 1, 16, 24)
    net = inn.IntervalNetwork(model, kind=kind, **({"layers": "all"} | options))
    net.balance(x)
    with torch.no_grad():
        for gap in net.parameters():
            gap.uniform_(-1e-3, 0.01)  # some have been pushed too far
    return net, x


def gradients(net: inn.IntervalNetwork, x: Tensor) -> list[Tensor]:
    net.zero_grad()
    bounds = net(x)
    (bounds.width.float().sum() + bounds.above.float().square().sum()).backward()
    return [gap.grad.cpu() for gap in net.parameters() if gap.grad is not None]


@pytest.mark.rotating
@pytest.mark.parametrize("kind", KINDS)
def test_a_step_of_training_is_compiled_as_one_graph_with_the_weights_in_it(kind: Any) -> None:
    net, x = small(kind)
    want, graphs = gradients(net, x), []

    def backend(program: torch.fx.GraphModule, example: Any) -> Callable[..., Any]:
        graphs.append(program)
        return program.forward

    net.compile(backend=backend, fullgraph=True)
    torch.testing.assert_close(gradients(net, x), want)
    with torch.no_grad():
        for gap in net.parameters():
            gap.mul_(2.0)
        net.model.get_parameter("second.weight").mul_(1.5)
    again = gradients(net, x)

    assert len(graphs) == 1  # neither gaps nor weights that have moved make another
    fresh = inn.IntervalNetwork(net.model, layers="all", kind=kind)
    fresh.load_state_dict(net.state_dict())
    torch.testing.assert_close(again, gradients(fresh, x))
    products = sum("conv2d" in str(node.target) for node in graphs[0].graph.nodes)
    # Points come into the first layer; of a gap per weight, two products share a call where inputs are non-negative.
    assert products == {"weight": 3 + 2 + 3 + 3, "symmetric": 3 + 1 + 3 + 3, "input": 3 + 2 + 2 + 2}.get(kind, products)


def test_more_networks_than_torch_compiles_one_function_for_are_all_compiled() -> None:
    compiled = []

    def backend(program: torch.fx.GraphModule, example: Any) -> Callable[..., Any]:
        compiled.append(program)
        return program.forward

    with torch._dynamo.config.patch(recompile_limit=2):
        for _ in range(4):
            net, x = small("weight")
            net.compile(backend=backend, fullgraph=True)
            gradients(net, x)

    assert len(compiled) == 4


@pytest.mark.rotating
@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:TensorFloat32 tensor cores")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_compiled_step_on_a_gpu_gives_the_gradients_of_the_cpu(
    kind: Any, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    net, x = small(kind)
    want = gradients(net, x)
    on_gpu = inn.IntervalNetwork(copy.deepcopy(net.model).cuda(), layers="all", kind=kind, gap_dtype=dtype).cuda()
    on_gpu.load_state_dict(net.state_dict())
    on_gpu.compile(dynamic=False)

    for near, far in zip(want, gradients(on_gpu, x.cuda()), strict=True):
        share = 1e-4 if dtype is torch.float32 else 0.05
        assert (near - far).abs().max() <= share * near.abs().max()


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:TensorFloat32 tensor cores", "ignore:The CUDA Graph is empty")
def test_cuda_graphs_give_the_same_steps_and_leave_what_earlier_calls_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    net, x = small("symmetric")
    net, x = inn.IntervalNetwork(net.model.cuda(), layers="all", kind="symmetric").cuda(), x.cuda()
    net.balance(x)
    with torch.no_grad():
        for gap in net.parameters():
            gap.uniform_(0.0, 0.1)
    graphs = copy.deepcopy(net)
    graphs.compile(mode="reduce-overhead", dynamic=False)
    parts = [x * scale for scale in (1.0, 0.5, 2.0, 1.5)]

    with torch.no_grad():
        returned = [graphs(part) for part in parts]
        for part, bounds in zip(parts, returned, strict=True):
            torch.testing.assert_close(bounds.width, net(part).width, rtol=1e-4, atol=1e-5)
    for each in (net, graphs):
        optimizer = torch.optim.SGD(each.parameters(), lr=1e-4)
        for part in parts:
            optimizer.zero_grad()
            each(part).width.square().mean().backward()
            optimizer.step()
    for near, far in zip(net.parameters(), graphs.parameters(), strict=True):
        torch.testing.assert_close(far, near, rtol=1e-4, atol=1e-6)


@pytest.mark.rotating
@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:TensorFloat32 tensor cores")
@pytest.mark.parametrize("kind", ["weight", "symmetric", "input"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_compiled_on_a_gpu_gives_the_bounds_of_the_cpu(
    kind: Any, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    torch.manual_seed(0)
    model = inn.models.UNet(8).eval()  # joins, pools, and one channel that comes in
    x = torch.randn(2, 1, 32, 48)
    net = inn.IntervalNetwork(model, layers="all", kind=kind)
    net.balance(x)
    with torch.no_grad():
        for gap in net.parameters():
            gap.uniform_(0.0, 0.01)
        want = net(x)
        on_gpu = inn.IntervalNetwork(copy.deepcopy(model).cuda(), layers="all", kind=kind, gap_dtype=dtype)
        on_gpu.load_state_dict(net.state_dict())
        on_gpu.compile(dynamic=False)
        got = on_gpu(x.cuda())

    share = 1e-4 if dtype is torch.float32 else 0.05  # of bfloat16's rounding, over 23 layers
    for name in ("below", "above"):
        near, far = getattr(want, name), getattr(got, name).float().cpu()
        assert (far - near).abs().max() <= share * near.max(), name
    assert (got.point.cpu() - want.point).abs().max() <= 1e-4 * want.point.abs().max()


# --- modes ---


@pytest.mark.rotating
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_what_was_prepared_for_inference_serves_gradients_of_inputs_too(compiled: bool) -> None:
    net, x = small("weight")
    net.requires_grad_(False)
    if compiled:
        net.compile(backend="eager")
    with torch.inference_mode():
        net.predict(x)
    x.requires_grad_()

    net(x).point.sum().backward()

    (want,) = torch.autograd.grad(net.model(x).sum(), x)
    torch.testing.assert_close(x.grad, want)


class Moody(nn.Module):
    """Does more in one mode than in the other, without a layer that says so."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.mix(x)
        return 2 * y if self.training else y


def test_a_change_of_mode_is_noticed() -> None:
    model, x = Moody().eval(), signal(2, 3)
    net = inn.IntervalNetwork(model, layers="all")
    for mode in (False, True, False):
        model.train(mode)

        assert torch.equal(net.predict(x).point, model(x))


@pytest.mark.rotating
def test_a_batch_norm_with_gaps_is_compiled_whole() -> None:
    net, whole = (
        with_gaps(inn.IntervalNetwork(make(), layers="all")),
        with_gaps(inn.IntervalNetwork(make(), layers="all")),
    )
    whole.compile(backend="eager", fullgraph=True)

    want, got = net.predict(signal()), whole.predict(signal())

    torch.testing.assert_close((got.below, got.above), (want.below, want.above))
    whole(signal()).width.sum().backward()  # in training too


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_torchs_own_compiler_gives_the_same_bounds_for_matrices(kind: Any) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 7), nn.BatchNorm1d(7), nn.ReLU(), nn.Linear(7, 5), nn.LayerNorm(5)).eval()
    net, x = inn.IntervalNetwork(model, layers="all", kind=kind), signal(4, 3)
    net.balance(x)
    with torch.no_grad():
        for gap in net.parameters():
            gap.uniform_(0.0, 0.01)
    want = net.predict(x)
    net.compile()

    got = net.predict(x)

    torch.testing.assert_close((got.point, got.below, got.above), (want.point, want.below, want.above))


# --- odd inputs ---


def test_inputs_that_are_not_finite_give_the_models_own_point_and_no_nan_in_the_gaps() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).eval()
    net = with_gaps(inn.IntervalNetwork(model, layers="all"))
    x = torch.tensor([[torch.inf, 1.0, 1.0], [torch.nan, 1.0, 1.0], [1.0, 1.0, 1.0]])

    bounds = net(x)

    torch.testing.assert_close(bounds.point, model(x), rtol=0, atol=0, equal_nan=True)
    assert not bounds.below.isnan().any() and not bounds.above.isnan().any()
    assert bounds.above[:2].isinf().all() and bounds.above[2].isfinite().all()


def test_integer_inputs_and_integer_outputs_stay_plain() -> None:
    class Tokens(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(5, 3)

        def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
            return self.table(ids), ids + 1

    net = with_gaps(inn.IntervalNetwork(Tokens().eval(), layers="all"), 0.1)

    rows, following = net(torch.tensor([[1, 4]]))

    assert isinstance(following, Tensor)
    torch.testing.assert_close(rows.above, torch.full((1, 2, 3), 0.2))


def test_an_interval_input_reaches_the_output_through_point_weights() -> None:
    net = inn.IntervalNetwork(make(), layers=[])
    x = signal()

    bounds = net(inn.Interval(x, torch.zeros_like(x), 0.1 * torch.ones_like(x)))

    assert torch.equal(bounds.point, net.model(x))
    assert bounds.width.any()
    assert not net(x).width.any()


# --- changes to the model after the first call ---


def test_a_replaced_layer_is_seen_at_the_next_call() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 2)).eval()
    net = inn.IntervalNetwork(model, layers=["2"])
    x = torch.randn(4, 3)
    net(x)

    model[1] = nn.Tanh()
    model[0] = nn.Linear(3, 3)

    assert torch.equal(net(x).point, model(x))


def test_a_model_made_in_inference_mode_is_never_read_from_the_cache() -> None:
    with torch.inference_mode():
        model = nn.Linear(3, 2).eval()
        net = inn.IntervalNetwork(model, layers=[])
        x = torch.randn(4, 3)
        before = net(x).point.clone()

        model.weight.mul_(2.0)

        assert not torch.equal(net(x).point, before)
        assert torch.equal(net(x).point, model(x))


@pytest.mark.rotating
@pytest.mark.parametrize(
    ("dim", "layers", "exact"),
    [(0, "all", False), (1, "all", False), (2, ["first.weight"], False), (1, ["last.weight"], False), (1, 2, True)],
    ids=str,
)
def test_a_product_of_joined_values_contains_every_draw_whatever_they_are_joined_along(
    dim: int, layers: Any, exact: bool
) -> None:
    class Joined(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Conv1d(2, 2, 3, padding=1), nn.Conv1d(6 if dim == 1 else 2, 3, 3)

        def forward(self, x: Tensor) -> Tensor:
            h = self.first(x)
            return self.last(torch.cat((x, h, torch.relu(h)), dim))

    torch.manual_seed(0)
    model, x = Joined().double(), torch.randn(2, 2, 9, dtype=torch.float64)
    net = inn.IntervalNetwork(model, layers=layers, exact=exact)
    with torch.no_grad():
        net(x)
        for name in net.names:
            gap = 0.3 * model.get_parameter(name).abs() + 0.1
            net.set_gaps(name, gap, 2 * gap)
        bounds = net(x)
        intervals = net.weight_intervals()
        for _ in range(50):
            drawn = {n: i.lower + torch.rand_like(i.point) * i.width for n, i in intervals.items()}
            assert bounds.contains(torch.func.functional_call(model, drawn, (x,)), atol=1e-9).all()
