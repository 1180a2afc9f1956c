"""Capture: what is refused, with which words, and what Python code around tensors does to a program."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import intervalnn as inn
from intervalnn.network import search


def bounds_of(model: nn.Module, *args: Any, **kwargs: Any) -> Any:
    return inn.IntervalNetwork(model.eval(), layers="all")(*args, **kwargs)


class Body(nn.Module):
    """One layer; the tests say in their own class what happens around it."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)


# --- what is refused ---


class BranchOnValue(Body):
    def forward(self, x: Tensor) -> Tensor:
        h = self.layer(x)
        if h.sum() > 0:  # here
            return h
        return -h


class LoopOnValue(Body):
    def forward(self, x: Tensor) -> Tensor:
        h = self.layer(x)
        for _ in range(int(h.abs().sum())):  # here
            h = h + 1
        return h


class DropoutAlways(Body):
    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(self.layer(x), 0.5)  # here


class Noise(Body):
    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x) + torch.randn(3)  # here


class NoiseInside(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block = nn.ModuleDict({"inner": Noise()})

    def forward(self, x: Tensor) -> Tensor:
        return self.block["inner"](x)


class Counter(Body):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1  # here
        return self.layer(x) + self.calls


class Argmax(Body):
    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x).argmax(-1)  # here


class Threshold(Body):
    def forward(self, x: Tensor) -> Tensor:
        h = self.layer(x)
        return h > 0  # here


class Sorted(Body):
    def forward(self, x: Tensor) -> Tensor:
        return x.gather(-1, self.layer(x).sort(-1)[1])  # here


class Factors(Body):
    def forward(self, x: Tensor) -> Tensor:
        return torch.linalg.qr(self.layer(x))[1]  # here


class ToInteger(Body):
    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x).long()  # here


class ByMask(Body):
    def forward(self, x: Tensor) -> Tensor:
        h = self.layer(x)
        return h[h > 0].sum()  # here


@pytest.mark.rotating
@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (BranchOnValue, ValueError, r"test_capture.py:\d+ \(\"if h.sum\(\) > 0:.*branches on the value.*torch.where"),
        (LoopOnValue, ValueError, r"test_capture.py:\d+ \(\"for _ in range"),
        (DropoutAlways, inn.MissingRuleError, r"draws random numbers.*training=self.training.*F.dropout\(self.layer"),
        (
            Noise,
            inn.MissingRuleError,
            r"randn.*draws random numbers.*test_capture.py:\d+ \(\"return self.layer\(x\) \+",
        ),
        (NoiseInside, inn.MissingRuleError, r"in module 'block.inner'.*test_capture.py:\d+"),
        (Counter, ValueError, r"writes to its buffer 'calls' while it runs \(.*self.calls \+= 1"),
        (Argmax, inn.MissingRuleError, r"argmax.*a whole number.*test_capture.py:\d+.*return the scores"),
        (Threshold, inn.MissingRuleError, r"returns the result of aten.gt.Scalar.*test_capture.py:\d+.*the scores"),
        (ToInteger, inn.MissingRuleError, r"aten._to_copy.default.*whole number.*test_capture.py:\d+"),
        (ByMask, inn.MissingRuleError, r"picks by a mask that may change.*test_capture.py:\d+.*torch.where"),
        (Sorted, inn.MissingRuleError, r"output 1 of aten.sort.default is an index.*test_capture.py:\d+"),
        (
            Factors,
            inn.MissingRuleError,
            r"takes a matrix apart into factors.*test_capture.py:\d+",
        ),
    ],
)
def test_what_cannot_be_bounded_is_refused_with_the_users_line(
    model: type[nn.Module], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        bounds_of(model(), torch.randn(3, 3))


@pytest.mark.rotating
@pytest.mark.parametrize(
    ("module", "message"),
    [
        (nn.BatchNorm1d(3), "BatchNorm1d '1' is in training mode.*call model.eval"),
        (nn.Dropout(0.1), "Dropout '1' is active.*call model.eval"),
        (nn.AlphaDropout(0.1), "AlphaDropout '1' is active"),
    ],
)
def test_training_mode_is_refused_by_name(module: nn.Module, message: str) -> None:
    model = nn.Sequential(nn.Linear(3, 3), module).train()

    with pytest.raises(ValueError, match=message):
        inn.IntervalNetwork(model, layers="all")(torch.randn(4, 3))


def test_training_mode_is_refused_at_every_call_not_only_the_first() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).eval()
    net = inn.IntervalNetwork(model, layers="all")
    net(torch.randn(4, 3))

    model.train()

    with pytest.raises(ValueError, match="is in training mode"):
        net(torch.randn(4, 3))


def test_layers_that_do_the_same_in_training_mode_are_not_refused() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3), nn.Dropout(0.0)).train()

    assert not inn.IntervalNetwork(model, layers="all")(torch.randn(2, 3)).width.any()


def test_a_rule_of_ones_own_makes_an_operation_known() -> None:
    @torch.library.custom_op("intervalnn_tests::double", mutates_args=())
    def double(x: Tensor) -> Tensor:
        return 2 * x

    double.register_fake(lambda x: torch.empty_like(x))

    class Own(Body):
        def forward(self, x: Tensor) -> Tensor:
            return double(self.layer(x))

    net = inn.IntervalNetwork(Own().eval(), layers="all")
    net.set_gaps("layer.bias", 0.5, 0.25)
    with pytest.raises(inn.MissingRuleError, match=r"add one with intervalnn.rule\(torch.ops.intervalnn_tests.double"):
        net(torch.randn(2, 3))

    inn.rule(torch.ops.intervalnn_tests.double.default)(lambda fn, x: x.map(fn))

    try:
        net.refresh()
        assert torch.allclose(net(torch.randn(2, 3)).below, torch.tensor(1.0))
    finally:
        from intervalnn.table import RULES

        del RULES[torch.ops.intervalnn_tests.double.default]


class Crash(Body):
    def forward(self, x: Tensor) -> Tensor:
        raise RuntimeError("the user's own words")


class WrongShape(Body):
    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x) @ torch.ones(7, 7)  # here


@pytest.mark.rotating
@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Crash, r"test_capture.py:\d+ \(\"raise RuntimeError.*the model itself does not take.*the user's own words"),
        (WrongShape, r"test_capture.py:\d+ \(\"return self.layer\(x\) @ torch.ones.*shapes cannot be multiplied"),
    ],
)
def test_an_error_inside_the_model_comes_with_its_line(model: type[nn.Module], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bounds_of(model(), torch.randn(2, 3))


# --- Python around tensors ---


class PadIfOdd(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(1, 2, 2, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[2] % 2:
            x = F.pad(x, (0, 1), value=3.0)
        return self.conv(x)


class AloneOrNot(Body):
    def forward(self, x: Tensor) -> Tensor:
        h = self.layer(x)
        return 10 * h if x.shape[0] == 1 else h - h.mean(0)


class ByLen(Body):
    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x) + torch.arange(len(x))[:, None]


@pytest.mark.rotating
@pytest.mark.parametrize(
    ("model", "shapes"),
    [
        (PadIfOdd, [(2, 1, 6), (2, 1, 7), (3, 1, 8), (3, 1, 9), (1, 1, 6)]),
        (AloneOrNot, [(4, 3), (1, 3), (2, 3), (1, 3)]),
        (ByLen, [(4, 3), (2, 3), (5, 3)]),
    ],
)
def test_code_that_depends_on_sizes_is_right_for_each_size(model: type[nn.Module], shapes: Any) -> None:
    net = inn.IntervalNetwork(model().eval(), layers="all")
    for name in net.names:
        net.set_gaps(name, 0.1, 0.1)

    for shape in shapes:
        x = torch.randn(shape)
        bounds = net(x)

        assert torch.equal(bounds.point, net.model(x))
        assert (bounds.width > 0).all()


def test_sizes_that_vary_are_learned_so_that_the_third_size_needs_no_capture(monkeypatch: pytest.MonkeyPatch) -> None:
    from intervalnn.network import search

    captured: list[Any] = []
    true = search.capture
    monkeypatch.setattr(search, "capture", lambda *args: captured.append(args[1].tensors[0].shape) or true(*args))
    net = inn.IntervalNetwork(
        nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.ReLU(), nn.Conv2d(2, 1, 1)).eval(), layers="all"
    )

    for shape in [(2, 1, 8, 8), (5, 1, 8, 8), (2, 1, 6, 8), (3, 1, 9, 8), (2, 1, 9, 7), (4, 1, 5, 6)]:
        x = torch.randn(shape)
        assert torch.equal(net(x).point, net.model(x))

    assert [tuple(shape) for shape in captured] == [(2, 1, 8, 8), (2, 1, 6, 8), (2, 1, 9, 7)]


class Options(Body):
    def forward(self, x: Tensor, scale: float = 1.0, *, mode: str = "plain", extra: Any = None) -> Any:
        h = scale * self.layer(x)
        h = h.relu() if mode == "relu" else h
        return h if extra is None else (h, h + extra["shift"])


def test_arguments_that_are_no_tensors_are_part_of_the_program() -> None:
    net = inn.IntervalNetwork(Options().eval(), layers="all")
    x = torch.randn(2, 3)

    for args, kwargs in [((x,), {}), ((x, 2.0), {}), ((x,), {"scale": 3.0}), ((x,), {"mode": "relu"})]:
        assert torch.equal(net(*args, **kwargs).point, net.model(*args, **kwargs))
    first, second = net(x, extra={"shift": torch.ones(3)})

    torch.testing.assert_close(second.point, first.point + 1)


def test_another_rank_or_dtype_is_captured_anew() -> None:
    net = inn.IntervalNetwork(Options().eval(), layers="all")

    for x in (torch.randn(3), torch.randn(2, 3), torch.randn(2, 4, 3)):
        assert torch.equal(net(x).point, net.model(x))


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.norm, self.act = nn.Linear(3, 3), nn.LayerNorm(3), nn.ReLU()
        self.factor, self.doubled, self.then, self.settings = 2.0, False, torch.tanh, {"shift": 1.0}

    def forward(self, x: Tensor) -> Tensor:
        x = self.act(self.norm(self.layer(x))) * self.factor + self.settings["shift"]
        return self.then(x + x if self.doubled else x)


class Constants(Body):
    def __init__(self) -> None:
        super().__init__()
        self.table = torch.tensor([1.0, 2.0, 3.0])  # not registered
        self.factor = 2.0

    def forward(self, x: Tensor) -> Tensor:
        return self.factor * self.layer(x) + self.table + torch.tensor([0.5, 0.5, 0.5])


def test_tensors_that_are_not_registered_are_read_as_they_are_now() -> None:
    net = inn.IntervalNetwork(Constants().eval(), layers="all")
    x = torch.randn(2, 3)
    net(x)

    net.model.table = torch.tensor([7.0, 8.0, 9.0])

    assert torch.equal(net(x).point, net.model(x))


CHANGES: dict[str, Callable[[Plain], None]] = {
    "number": lambda model: setattr(model, "factor", 5.0),
    "flag": lambda model: setattr(model, "doubled", True),
    "function": lambda model: setattr(model, "then", torch.sigmoid),
    "number of a layer of torch's": lambda model: setattr(model.norm, "eps", 1.0),
    "class of a layer": lambda model: setattr(model.act, "__class__", nn.Tanh),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_a_changed_plain_attribute_is_seen(change: Callable[[Plain], None]) -> None:
    net = inn.IntervalNetwork(Plain().eval(), layers="all")
    x = torch.randn(2, 3)
    before = net(x).point

    change(net.model)

    assert torch.equal(net(x).point, net.model(x))
    assert not torch.equal(net(x).point, before)


def test_attributes_that_alternate_cost_no_capture_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    net = inn.IntervalNetwork(Plain().eval(), layers="all")
    x, captures, capture = torch.randn(2, 3), [], search.capture
    monkeypatch.setattr(search, "capture", lambda *args: captures.append(args) or capture(*args))

    for factor in (2.0, 3.0, 2.0, 3.0, 2.0):
        net.model.factor = factor
        assert torch.equal(net(x).point, net.model(x))

    assert len(captures) == 2


def test_a_buffer_may_be_taken_away() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).eval()
    net = inn.IntervalNetwork(model, layers="all")
    x = torch.randn(4, 3)
    net(x)

    model[1].running_mean = model[1].running_var = None  # the layer then takes the moments of the batch

    torch.testing.assert_close(net(x).point, model(x))


def test_what_a_forward_reads_beside_its_attributes_needs_refresh() -> None:
    net = inn.IntervalNetwork(Plain().eval(), layers="all")
    x = torch.randn(2, 3)
    net(x)

    net.model.settings["shift"] = 5.0
    net.refresh()

    assert torch.equal(net(x).point, net.model(x))


class Remembers(Body):
    """Keeps what it has seen last, as attention maps are kept for a look at them."""

    last: Tensor | None = None

    def __init__(self) -> None:
        super().__init__()
        self.history: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.last = self.layer(x)
        self.history.append(self.last)
        return F.relu(self.last)


@pytest.mark.rotating
@pytest.mark.parametrize("called", [False, True])
def test_what_a_model_remembers_is_left_as_it_was(called: bool) -> None:
    model = Remembers().eval()
    x = torch.randn(2, 3)
    if called:
        model(x)
    before, history = dict(model.__dict__), list(model.history)

    bounds = bounds_of(model, 2 * x)

    assert model.__dict__.keys() == before.keys()
    assert model.last is before.get("last")
    assert [id(h) for h in model.history] == [id(h) for h in history]
    assert torch.equal(bounds.point, model(2 * x))


class AddsHookOnce(Body):
    """Adds a hook at the first call and notes that it did, as transformers' models do."""

    added = False

    def forward(self, x: Tensor) -> Tensor:
        if not self.added:
            self.layer.register_forward_hook(lambda module, args, output: output + 1)
            self.added = True
        return self.layer(x)


def test_hooks_that_a_model_adds_to_itself_are_not_added_twice() -> None:
    model, twin = AddsHookOnce().eval(), AddsHookOnce().eval()
    twin.load_state_dict(model.state_dict())
    x = torch.randn(2, 3)

    bounds = bounds_of(model, x)

    assert torch.equal(bounds.point, twin(x))
    assert torch.equal(model(x), twin(x))
    assert len(model.layer._forward_hooks) == 1


class Contexts(Body):
    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            h = self.layer(x)
        return F.relu(h) + self.layer(h)


class GradientInside(Body):
    def forward(self, x: Tensor) -> Tensor:
        with torch.enable_grad():
            x = x.requires_grad_()
            (slope,) = torch.autograd.grad(self.layer(x).square().sum(), x)
        return slope


def test_a_gradient_inside_the_model_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match=r"torch.autograd.grad\(.*computes a gradient while it runs"):
        bounds_of(GradientInside(), torch.randn(2, 3))


class Autocast(Body):
    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            h = self.layer(x)
        return h.float() + x


@pytest.mark.rotating
@pytest.mark.parametrize("model", [Contexts, Autocast])
def test_contexts_inside_the_model_keep_their_meaning(model: type[nn.Module]) -> None:
    net = inn.IntervalNetwork(model().eval(), layers="all")
    net.set_gaps("layer.bias", 0.1, 0.1)
    x = torch.randn(2, 3)

    bounds = net(x)
    bounds.width.sum().backward()

    with torch.no_grad():
        assert torch.equal(bounds.point, net.model(x))
    assert (bounds.width > 0).all()
    assert net.gaps.get_parameter("layer.bias.above").grad.all()


def test_a_frozen_transformer_is_captured_beside_its_fast_path() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False).eval().requires_grad_(False)
    net = inn.IntervalNetwork(model, layers="all")
    net.set_gaps("layers.0.linear2.bias", 0.1, 0.1)
    x = torch.randn(2, 4, 8)

    bounds = net(x)

    torch.testing.assert_close(bounds.point, model(x), rtol=1e-5, atol=1e-6)
    assert (bounds.width > 0).all()
    assert torch.backends.mha.get_fastpath_enabled()


def test_shrinking_functions_are_kept_whole_and_torch_is_left_as_it_was() -> None:
    before = dict(torch.ops.aten.softshrink.default.py_kernels)

    bounds = bounds_of(
        nn.Sequential(nn.Linear(3, 3), nn.Softshrink(), nn.Linear(3, 3), nn.Hardshrink()), torch.ones(1, 3)
    )

    assert not bounds.width.any()
    assert torch.ops.aten.softshrink.default.py_kernels == before


def test_capture_neither_prints_nor_warns(capfd: pytest.CaptureFixture[str]) -> None:
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(inplace=True), nn.Flatten(), nn.LazyLinear(2))
    model.eval()(torch.randn(1, 1, 6, 6))
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        inn.IntervalNetwork(model, layers="all")(torch.randn(2, 1, 6, 6))
        with pytest.raises(ValueError, match="cannot be multiplied"):
            bounds_of(WrongShape(), torch.randn(2, 3))

    assert capfd.readouterr() == ("", "")


def test_a_warning_of_the_models_own_is_not_hidden() -> None:
    class Warns(Body):
        def forward(self, x: Tensor) -> Tensor:
            warnings.warn("mind the step", stacklevel=1)
            return self.layer(x)

    with pytest.warns(UserWarning, match="mind the step"):
        bounds_of(Warns(), torch.randn(2, 3))


# --- a parameter that forward reaches without its name ---


class Kept(Body):
    def __init__(self, how: str) -> None:
        super().__init__()
        weight = self.layer.weight
        self.helper: Any = {
            "list": [weight], "dict": {"w": weight}, "data": (weight.data,), "closure": lambda: weight,
            "object": type("Holder", (), {})(),
        }[how]  # fmt: skip
        self.how = how
        if how == "object":
            self.helper.weight = weight

    def forward(self, x: Tensor) -> Tensor:
        get = {"list": lambda h: h[0], "dict": lambda h: h["w"], "data": lambda h: h[0], "closure": lambda h: h()}
        weight = self.helper.weight if self.how == "object" else get[self.how](self.helper)
        return F.linear(x, weight)


@pytest.mark.rotating
@pytest.mark.parametrize("how", ["list", "dict", "data", "closure", "object"])
def test_a_parameter_that_is_reached_without_its_name_keeps_its_gaps(how: str) -> None:
    model, x = Kept(how).eval(), torch.rand(2, 3) + 0.5
    net = inn.IntervalNetwork(model, layers="all")
    net.set_gaps("layer.weight", 0.1, 0.2)

    bounds = net(x)

    assert torch.equal(bounds.point, model(x))
    torch.testing.assert_close(bounds.above, 0.2 * x.sum(-1, keepdim=True).expand(2, 3))


def test_a_kept_view_of_a_parameter_is_refused_where_it_has_gaps() -> None:
    class Row(Body):
        def __init__(self) -> None:
            super().__init__()
            self.row = self.layer.weight.detach()[1]

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(x) + self.row

    with pytest.raises(ValueError, match=r"part of its parameter 'layer\.weight' through a view.*'row'"):
        bounds_of(Row(), torch.ones(2, 3))
    bounds = inn.IntervalNetwork(Row().eval(), layers=["layer.bias"])(torch.ones(2, 3))
    assert bounds.point.isfinite().all()


# --- arguments ---


@dataclass
class Graph:
    nodes: Tensor
    weights: Any
    name: str = "graph"


class OfGraph(Body):
    def forward(self, graph: Any) -> Tensor:
        return self.layer(graph["nodes"] if hasattr(graph, "keys") else graph.nodes) * torch.as_tensor(graph.weights)


def test_tensors_inside_an_object_are_inputs() -> None:
    model = OfGraph().eval()
    net = inn.IntervalNetwork(model, layers="all")

    for seed in range(3):
        graph = Graph(torch.full((2, 3), float(seed)), torch.full((3,), seed + 1.0))
        assert torch.equal(net(graph).point, model(graph))

    assert len(net._search.programs) == 1


def test_nearly_equal_arrays_inside_an_object_are_told_apart() -> None:
    model, x = OfGraph().eval(), torch.ones(2, 3)
    net = inn.IntervalNetwork(model, layers="all")
    for value in (1.0, 1.0 + 1e-6):
        graph = Graph(x, np.full((2, 3), value, dtype=np.float32))
        assert torch.equal(net(graph).point, model(graph))
    graph.weights[:] = 5.0  # the same object, changed
    assert torch.equal(net(graph).point, model(graph))


def test_an_argument_that_cannot_be_told_from_another_is_refused() -> None:
    graph = Graph(torch.ones(2, 3), 1.0)
    graph.name = lambda: 1  # type: ignore[assignment]
    with pytest.raises(TypeError, match=r"type Graph cannot be taken apart.*pass its tensors"):
        bounds_of(OfGraph(), graph)


class WritesToInput(Body):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        x += 1.0
        return self.layer(x) + y


def test_an_input_that_is_written_to_may_be_passed_twice() -> None:
    model, x = WritesToInput().eval(), torch.ones(2, 3)

    bounds = inn.IntervalNetwork(model, layers="all")(x, x)

    y = torch.ones(2, 3)
    assert torch.equal(bounds.point, model(y, y))


# --- the model is only read ---


class Frozen(dict):  # type: ignore[type-arg]
    def clear(self) -> None:
        raise TypeError("this dict is frozen")

    update = __setitem__ = __delitem__ = clear  # type: ignore[assignment]


class LeavesTraces(Body):
    def __init__(self) -> None:
        super().__init__()
        self.config = Frozen(width=3)
        self.seen: dict[str, Any] = {"nested": []}
        self.log: list[Tensor] = []
        self.register_forward_hook(lambda module, args, out: self.log.append(out))

    def forward(self, x: Tensor) -> Tensor:
        h = self.layer(x)
        self.last = h
        self.seen["nested"].append(h)
        return h


def test_capture_leaves_the_model_as_it_was() -> None:
    model = LeavesTraces().eval()

    bounds_of(model, torch.ones(2, 3))

    assert model.config == {"width": 3}
    assert not hasattr(model, "last") and model.seen == {"nested": []} and model.log == []


def test_first_calls_from_many_threads_all_succeed() -> None:
    models = [nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).eval() for _ in range(2)]
    nets = [inn.IntervalNetwork(model, layers=1) for model in models]
    x = torch.rand(5, 3)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: nets[i % 2].predict(x).point, range(16)))

    assert all(torch.equal(point, models[i % 2](x)) for i, point in enumerate(found))
