"""Refusals: what a stranger reads when something cannot be bounded, line, reason and way out."""

from __future__ import annotations

import copy
import io
import math
import pickle
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.ao.quantization as quantization
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations, parametrize, prune

import intervalnn as inn
from intervalnn.torch_private import in_transform

aten = torch.ops.aten
X = torch.linspace(-1.0, 2.0, 12).reshape(4, 3)
HERE = r"test_refusals\.py:\d+ \(\"[^\"]*"


class Body(nn.Module):
    """One layer and one number; a function says what happens with them."""

    def __init__(self, does: Callable[[Any, Tensor], Any]) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.scale = nn.Parameter(torch.tensor(2.0))
        self.generator = torch.Generator()
        self.does = does

    def forward(self, x: Tensor) -> Any:
        return self.does(self, x)


def small() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).eval()


def bounds_of(model: nn.Module, x: Any = X) -> Any:
    net = inn.IntervalNetwork(model.eval(), layers="all")
    for name in net.names:
        net.set_gaps(name, 0.05, 0.05)
    return net(x)


def told(call: Callable[[], Any]) -> str:
    """Return what the refusal of a call says."""
    with pytest.raises((ValueError, TypeError, RuntimeError)) as caught:
        call()
    return str(caught.value)


def bounds_or_refusal(model: nn.Module) -> Any:
    """Return the bounds where this torch can capture the model, else what the refusal says."""
    try:
        return bounds_of(model)
    except ValueError as error:
        return str(error)


# --- what torch cannot follow ---


def sets_data(s: Any, x: Tensor) -> Tensor:
    s.layer.weight.data = s.layer.weight * 2  # here
    return s.layer(x)


def takes_gradient(s: Any, x: Tensor) -> Tensor:
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        s.layer(x).square().sum().backward()  # here
    assert x.grad is not None
    return x.grad


def loops_over_rows(s: Any, x: Tensor) -> Tensor:
    total = s.layer(x).sum()
    for row in x.relu().nonzero():  # here
        total = total + row.sum()
    return total


READS = r"reads the value of a tensor into Python.*leave it a tensor"
BRANCHES = r"branches on the value of a tensor.*torch\.where"
DIFFERENTIATES = r"computes a gradient while it runs.*write the derivative as operations"
NUMPY = r"hands a tensor to NumPy.*function of that name in torch"
JOINS = r"makes a tensor out of numbers in others.*torch\.stack"
NO_FAKE = r"calls an operation whose result torch cannot describe.*register_fake"
CHECKS = r"builds a torch\.distributions object.*validate_args=False"
MEMORY = r"looks into the memory of a tensor.*__init__"
VARIES = r"calls an operation whose result has a shape that depends on values.*before the model or behind it"

UNTRACEABLE: dict[str, tuple[Callable[[Any, Tensor], Any], str]] = {
    "float of a parameter": (lambda s, x: s.layer(x) * float(s.scale), READS),
    "int of a parameter": (lambda s, x: s.layer(x) * int(s.scale), READS),
    "math of a parameter": (lambda s, x: s.layer(x) * math.exp(s.scale), READS),
    "float of a value": (lambda s, x: s.layer(x) / float(s.layer(x).sum()), READS),
    "range": (lambda s, x: s.layer(x) * sum(range(s.layer(x).abs().sum().long())), READS),
    "a size": (lambda s, x: s.layer(x).sum() * torch.ones(int(s.layer(x).abs().sum())), READS),
    "an index": (lambda s, x: s.layer(x) * [1, 2, 3][s.layer(x).abs().sum().long() % 3], READS),
    "if": (lambda s, x: s.layer(x) if s.layer(x).sum() > 0 else x, BRANCHES),
    "bool of a parameter": (lambda s, x: s.layer(x) * bool(s.scale), BRANCHES),
    "torch.equal": (lambda s, x: s.layer(x) if torch.equal(s.layer(x), x) else x, BRANCHES),
    "torch.allclose": (lambda s, x: s.layer(x) if torch.allclose(s.layer(x), x) else x, BRANCHES),
    "sorted": (lambda s, x: sorted(s.layer(x).flatten())[1], BRANCHES),
    "rows": (loops_over_rows, r"loops over a tensor.*multiply by the mask"),
    "set data": (sets_data, r"sets \.data of a tensor.*compute a new tensor"),
    "autograd.grad": (lambda s, x: torch.autograd.grad(s.layer(x).sum(), s.scale), DIFFERENTIATES),
    "backward": (takes_gradient, DIFFERENTIATES),
    "func.grad": (lambda s, x: torch.func.grad(lambda v: s.layer(v).sum())(x), DIFFERENTIATES),
    "func.jvp": (lambda s, x: torch.func.jvp(s.layer, (x,), (x,)), DIFFERENTIATES),
    "func.jacrev": (lambda s, x: torch.func.jacrev(s.layer)(x), DIFFERENTIATES),
    "func.jacfwd": (lambda s, x: torch.func.jacfwd(s.layer)(x), DIFFERENTIATES),
    "func.hessian": (lambda s, x: torch.func.hessian(lambda v: s.layer(v).sum())(x), DIFFERENTIATES),
    "numpy": (lambda s, x: torch.from_numpy(s.layer(x).detach().numpy()), NUMPY),
    "numpy of a parameter": (lambda s, x: s.layer(x) * s.layer.bias.detach().numpy(), NUMPY),
    "a function of numpy": (lambda s, x: torch.as_tensor(np.tanh(s.layer(x).detach())), NUMPY),
    "tensor of tensors": (lambda s, x: torch.tensor([s.layer(x)[0, 0], 1.0]), JOINS),
    "deepcopy": (lambda s, x: copy.deepcopy(s.layer)(x), MEMORY),
    "data_ptr": (lambda s, x: s.layer(x) * (s.layer(x).data_ptr() > 0), MEMORY),
    "lstsq": (lambda s, x: torch.linalg.lstsq(s.layer(x), x).solution, VARIES),
    "nested": (lambda s, x: torch.nested.nested_tensor([s.layer(x)]), NO_FAKE),
    "cond": (
        lambda s, x: torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, (s.layer(x),)),
        r"calls one of torch.s higher-order operations.*torch\.where",
    ),
}  # fmt: skip


@pytest.mark.rotating
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", UNTRACEABLE)
def test_what_torch_cannot_follow_is_told_in_the_models_line_with_the_way_out(case: str) -> None:
    does, sentence = UNTRACEABLE[case]

    with torch.set_grad_enabled(case != "autograd.grad"):  # where the model itself would fail as well
        text = told(lambda: bounds_of(Body(does)))

    assert re.match(rf"\S*{HERE}\S*.*\"\): the model {sentence}", text), text


def asserts(s: Any, x: Tensor) -> Tensor:
    y = s.layer(x)
    torch._assert(y.isfinite().all(), "no")  # here
    return y  # type: ignore[no-any-return]


ASSERTED: dict[str, tuple[Callable[[Any, Tensor], Any], str]] = {
    "assert": (asserts, BRANCHES),
    "distribution": (lambda s, x: torch.distributions.Normal(s.layer(x), 1.0, validate_args=True).mean, CHECKS),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", ASSERTED)
def test_a_check_of_values_is_told_or_changes_no_bounds(case: str) -> None:
    does, sentence = ASSERTED[case]
    model = Body(does)

    found = bounds_or_refusal(model)

    if isinstance(found, str):
        assert re.match(rf"\S*{HERE}\S*.*\"\): the model {sentence}", found), found
        return
    model.does = lambda s, x: s.layer(x)
    unchecked = bounds_of(model)
    assert torch.equal(found.lower, unchecked.lower) and torch.equal(found.upper, unchecked.upper)
    assert (found.width > 0).all()


@pytest.mark.rotating
@pytest.mark.parametrize(
    ("does", "kind"),
    [
        (lambda s, x: (value for value in s.layer(x)), "generator"),
        (lambda s, x: {"out": lambda: s.layer(x)}, "function"),
    ],
)
def test_what_a_model_returns_is_told_in_the_line_of_its_forward(does: Any, kind: str) -> None:
    text = told(lambda: bounds_of(Body(does)))

    assert re.search(rf"{HERE}Body\.forward\"\): the model returns an object of type {kind}.*tuples", text), text


RANDOM: dict[str, Callable[[Any, Tensor], Any]] = {
    "randn": lambda s, x: s.layer(x) + torch.randn(3),
    "randint": lambda s, x: s.layer(x) + torch.randint(3, (3,)),
    "randperm": lambda s, x: s.layer(x)[:, torch.randperm(3)],
    "bernoulli": lambda s, x: s.layer(x) * torch.bernoulli(torch.full((3,), 0.5)),
    "random_": lambda s, x: s.layer(x) + torch.empty(3).random_(),
    "normal_": lambda s, x: s.layer(x) + torch.empty(3).normal_(),
    "uniform_": lambda s, x: s.layer(x) + torch.empty(3).uniform_(),
    "cauchy_": lambda s, x: s.layer(x) + torch.empty(3).cauchy_(),
    "geometric_": lambda s, x: s.layer(x) + torch.empty(3).geometric_(0.5),
    "multinomial": lambda s, x: s.layer(x) * torch.multinomial(torch.full((3,), 0.5), 3),
    "a generator of its own": lambda s, x: s.layer(x) + torch.randn(3, generator=s.generator),
    "a new generator": lambda s, x: s.layer(x) + torch.rand(3, generator=torch.Generator().manual_seed(0)),
}


@pytest.mark.rotating
@pytest.mark.parametrize("case", RANDOM)
def test_random_numbers_are_refused_in_the_models_line(case: str) -> None:
    text = told(lambda: bounds_of(Body(RANDOM[case])))

    assert re.search(rf"draws random numbers.*{HERE}", text) and "prediction to bound" in text, text


@pytest.mark.filterwarnings("ignore")
def test_a_quantisation_that_watches_its_input_is_refused_with_the_way_out() -> None:
    model = small().train()
    model.qconfig = quantization.get_default_qat_qconfig("x86")  # type: ignore[assignment]
    model = quantization.prepare_qat(model)
    model(X)

    text = told(lambda: bounds_of(model))

    assert re.search(r"watches its input.*version=0.*disable_observer.*in module '0\.weight_fake_quant'", text), text


def test_a_weight_that_is_shortened_in_each_call_is_refused() -> None:
    text = told(lambda: bounds_of(nn.Embedding(5, 3, max_norm=1.0), torch.tensor([1, 2])))

    assert "shortens rows of the embedding's weight" in text and "set max_norm to None" in text


class Sparse(nn.Module):
    """A layer, and a sparse matrix of points that mixes the samples."""

    def __init__(self, does: Callable[[Any, Tensor], Tensor], layout: torch.layout = torch.sparse_coo) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(3, 3)
        self.register_buffer("a", (torch.randn(4, 4) * (torch.rand(4, 4) > 0.4)).to_sparse(layout=layout))
        self.does = does

    def forward(self, x: Tensor) -> Tensor:
        return self.does(self, x)


SPARSE: dict[str, Callable[[Any, Tensor], Tensor]] = {
    "torch.sparse.mm": lambda s, x: torch.sparse.mm(s.a, s.layer(x)),
    "torch.spmm": lambda s, x: torch.spmm(s.a, s.layer(x)),
    "@": lambda s, x: s.a @ s.layer(x),
    "torch.sparse.addmm": lambda s, x: torch.sparse.addmm(x, s.a, s.layer(x), beta=0.5, alpha=-2.0),
    "torch.mv": lambda s, x: torch.mv(s.a, s.layer(x)[:, 0]),
    "mv": lambda s, x: s.a.mv(s.layer(x)[:, 0]),
    "transposed": lambda s, x: s.layer(x).T @ s.a.t(),
}


@pytest.mark.rotating
@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc], ids=str)
@pytest.mark.parametrize("case", SPARSE)
def test_a_sparse_matrix_times_an_interval_is_bounded(case: str, layout: torch.layout) -> None:
    model = Sparse(SPARSE[case], layout)

    bounds = bounds_of(model)

    assert_bounds(bounds, model)


def assert_bounds(bounds: Any, model: Sparse) -> None:
    """Check that the bounds are around the model and around models at their ends."""
    assert torch.equal(bounds.point, model(X)) and (bounds.width > 0).any()
    with torch.no_grad():
        for move in (-0.05, 0.05):
            for parameter in model.parameters():
                parameter += move
            assert ((bounds.lower - 1e-5 <= model(X)) & (model(X) <= bounds.upper + 1e-5)).all()
            for parameter in model.parameters():
                parameter -= move


@pytest.mark.rotating
@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")
@pytest.mark.parametrize(
    ("does", "layout"),
    [(SPARSE["@"], torch.sparse_bsr), (lambda s, x: s.a.to_dense() @ s.layer(x), torch.sparse_csr)],
)
def test_other_compressed_layouts_are_bounded_or_refused_with_the_way_out(does: Any, layout: torch.layout) -> None:
    model = Sparse(does)
    model.a = model.a.to_dense().to_sparse(layout=layout, blocksize=(2, 2) if layout == torch.sparse_bsr else None)

    found = bounds_or_refusal(model)

    if isinstance(found, str):
        assert re.search(r"sparse tensor in a compressed layout.*\.to_sparse_coo\(\) or \.to_dense\(\)", found), found
    else:
        assert_bounds(found, model)


def test_a_sparse_tensor_of_intervals_is_refused() -> None:
    model = Sparse(lambda s, x: torch.sparse.mm(s.layer(x).to_sparse(), x.T))

    assert "a sparse tensor, and intervals" in told(lambda: bounds_of(model))


def test_a_package_of_distributions_is_not_torchs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.distributions.Distribution, "_validate_args", True)  # else off once Dynamo was used

    found = bounds_or_refusal(Body(lambda s, x: torch.distributions.StudentT(s.layer(x).exp()).log_prob(s.scale)))

    # Where this torch follows its own check, what is refused is what comes behind it, or nothing.
    assert not isinstance(found, str) or "set_default_validate_args(False)" in found, found


def test_a_packed_sequence_is_refused_with_the_way_out() -> None:
    class Packed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.GRU(3, 2, batch_first=True)

        def forward(self, x: Tensor) -> Tensor:
            packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([4, 2]), batch_first=True)
            return self.layer(packed)[0].data  # type: ignore[no-any-return]

    text = told(lambda: bounds_of(Packed(), torch.randn(2, 4, 3)))

    assert re.search(r"a recurrent layer on a packed sequence.*run it on the padded one", text), text


@pytest.mark.rotating
@pytest.mark.parametrize("read", ["item", "tolist"])
def test_a_number_read_of_what_an_interval_reaches_is_refused(read: str) -> None:
    text = told(lambda: bounds_of(Body(lambda s, x: x * getattr(s.scale, read)())))

    assert re.search(rf"reads a number back into Python.*keep it a tensor.*{HERE}", text), text


def test_the_models_own_error_comes_with_its_line_and_what_it_was_given() -> None:
    text = told(lambda: bounds_of(Body(lambda s, x: s.layer(x) @ torch.ones(7, 7))))

    assert re.match(rf"\S*{HERE}.*the model itself does not take this input, torch\.float32 of shape \(4, 3\)", text)
    assert "parameters are torch.float32 on cpu" in text and "mat1 and mat2" in text


def test_a_long_line_is_cut() -> None:
    # fmt: off
    does = lambda s, x: s.layer(x) if s.layer(x).sum() > 0 else (s.layer(x) + s.layer(x) + s.layer(x) + s.layer(x))  # noqa: E731
    # fmt: on
    text = told(lambda: bounds_of(Body(does)))

    assert re.search(r'\("does = .{80,95}\.\.\."\): the model branches', text), text


# --- what torch can follow, with some help ---


@pytest.mark.rotating
@pytest.mark.parametrize(
    "does",
    [
        lambda s, x: F.linear(x, s.layer.weight.data),
        lambda s, x: F.linear(x, s.layer.weight.data * 2) + s.layer(x).data,
        lambda s, x: F.linear(x, s.layer.weight.data.clamp(0.0)),
    ],
)
def test_data_of_a_weight_has_its_gaps(does: Any) -> None:
    model = Body(does)
    net = inn.IntervalNetwork(model.eval(), layers="all")
    net.set_gaps("layer.weight", 0.1, 0.1)

    bounds = net(X)

    assert torch.equal(bounds.point, model(X))
    for move in (-0.1, 0.1):
        other = copy.deepcopy(model)
        other.layer.weight.data += move
        assert ((bounds.lower - 1e-5 <= other(X)) & (other(X) <= bounds.upper + 1e-5)).all()
    assert (bounds.width > 0).any()


CHECKED: dict[str, Callable[[Tensor], Tensor]] = {
    "cholesky": torch.linalg.cholesky,
    "lu_factor": lambda a: torch.linalg.lu_factor(a)[0],
    "ldl_factor": lambda a: torch.linalg.ldl_factor(a)[0],
    "tensorinv": lambda a: torch.linalg.tensorinv(a, ind=1),
}


@pytest.mark.rotating
@pytest.mark.parametrize("case", CHECKED)
def test_a_checked_operation_runs_on_points_and_is_refused_on_intervals(case: str) -> None:
    of = CHECKED[case]
    outside = Body(lambda s, x: s.layer(of(x.T @ x + torch.eye(3))))
    inside = Body(lambda s, x: of(s.layer(x).T @ s.layer(x) + torch.eye(3)))

    bounds, text = bounds_of(outside), told(lambda: bounds_of(inside))

    assert torch.equal(bounds.point, outside(X)) and (bounds.width > 0).any()
    assert re.search(rf"takes a matrix apart into factors.*{HERE}", text), text


def test_a_check_of_torch_holds_in_later_calls_too() -> None:
    net = inn.IntervalNetwork(Body(lambda s, x: s.layer(torch.linalg.inv(x))).eval(), layers="all")
    net(torch.eye(3))

    assert re.search(rf"{HERE}.*the model itself does not take.*singular", told(lambda: net(torch.zeros(3, 3))))


# --- what fails while the program runs ---


def test_a_rule_that_fails_is_told_in_the_models_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(fn: Any, x: Any) -> Any:
        raise NotImplementedError("not for these numbers")

    from intervalnn.table import RULES, Rule

    monkeypatch.setitem(RULES, aten.sin.default, Rule(broken))

    for does in (lambda s, x: s.layer(x).sin(), lambda s, x: x * s.scale.sin()):
        text = told(lambda does=does: bounds_of(Body(does)))
        want = rf"aten\.sin\.default cannot be bounded here \(NotImpl.*not for these.*intervalnn\.rule.*{HERE}"
        assert re.search(want, text), text


@pytest.mark.rotating
@pytest.mark.parametrize("of", [torch.sinh, torch.softmax, lambda z: z / z.flip(0), lambda z: z.abs().atan2(z.abs())])
def test_complex_numbers_are_bounded_or_refused_by_name(of: Any) -> None:
    def does(s: Any, x: Tensor) -> Any:
        z = torch.complex(s.layer(x), s.layer(x).flip(0))
        return torch.view_as_real(of(z, -1) if of is torch.softmax else of(z) + 0j)

    try:
        text = "" if bounds_of(Body(does)).point.isfinite().all() else "not finite"
    except (inn.MissingRuleError, ValueError) as error:
        text = str(error)

    assert not text or re.search(HERE, text), text


@pytest.mark.rotating
@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int64, torch.bool, torch.complex64])
@pytest.mark.parametrize("known", [False, True])
def test_an_input_of_another_dtype_is_told_beside_that_of_the_parameters(dtype: torch.dtype, known: bool) -> None:
    net = inn.IntervalNetwork(small(), layers="all")
    if known:
        net(X)

    with pytest.raises(ValueError, match=rf"does not take this input, {dtype} .*parameters are torch\.float32 on cpu"):
        net(X.to(dtype))


# --- what is no underlying model ---


def scripted_file() -> nn.Module:
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(small()), file)
    file.seek(0)
    return torch.jit.load(file)  # type: ignore[no-any-return]


@pytest.mark.filterwarnings("ignore")
def quantised() -> nn.Module:
    return quantization.quantize_dynamic(small(), {nn.Linear})


def quantised_before() -> nn.Module:
    model = nn.Sequential(quantization.QuantStub(), nn.Linear(3, 4), nn.ReLU(), quantization.DeQuantStub()).eval()
    model.qconfig = quantization.get_default_qconfig("x86")  # type: ignore[assignment]
    prepared = quantization.prepare(model)
    prepared(X)
    return quantization.convert(prepared)  # type: ignore[no-any-return]


class Packed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.packed = quantised()[0]._packed_params._packed_params  # type: ignore[index, union-attr]

    def forward(self, x: Tensor) -> Tensor:
        return x


def on_meta() -> nn.Module:
    with torch.device("meta"):
        return small()


def in_inference() -> nn.Module:
    with torch.inference_mode():
        return small()


def holding(weight: Tensor) -> nn.Module:
    model = Body(lambda s, x: s.layer(x))
    model.weight = nn.Parameter(weight, requires_grad=False)
    return model


class Own(Tensor):
    """A tensor with operations of its own."""

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return NotImplemented


def own_tensor() -> Tensor:
    return Tensor._make_subclass(Own, torch.ones(4, 3))  # type: ignore[attr-defined, no-any-return]


def halved(x: Tensor) -> Tensor:
    return x / 2


ORIGINAL = "give the original"
NO_MODELS: dict[str, tuple[Callable[[], Any], str]] = {
    "a class": (lambda: Body, r"got the class Body; make an instance, Body\(\.\.\.\)\.eval\(\)"),
    "a function": (lambda: (lambda x: x), r"got function; .*forward of a torch\.nn\.Module"),
    "a method": (lambda: small().forward, r"got method; .*forward of a torch\.nn\.Module"),
    "a state dict": (lambda: small().state_dict(), r"got OrderedDict; .*load_state_dict"),
    "a checkpoint": (lambda: {"model": small().state_dict()}, r"got dict; .*load_state_dict"),
    "a file name": (lambda: "model.pt", r"got str; load the model"),
    "a path": (lambda: Path("model.pt"), r"got \w*Path; load the model"),
    "a tensor": (lambda: X, r"got Tensor; the model comes first"),
    "a list": (lambda: [small()], r"model must be a torch\.nn\.Module, got list"),
    "nothing": (lambda: None, r"model must be a torch\.nn\.Module, got NoneType"),
    "an exported program": (lambda: torch.export.export(small(), (X,)), r"got ExportedProgram; .*\.module\(\)"),
    "a scripted function": (lambda: torch.jit.script(halved), r"got ScriptFunction"),
    "an interval network": (lambda: inn.IntervalNetwork(small(), layers="all"), "is an interval network already"),
    "one inside": (
        lambda: nn.Sequential(small(), inn.IntervalNetwork(small(), layers="all")),
        r"module '1' of the model.* already",
    ),
    "traced": (lambda: torch.jit.trace(small(), X), f"TorchScript.*{ORIGINAL} module"),
    "scripted": (lambda: torch.jit.script(small()), f"TorchScript.*{ORIGINAL} module"),
    "frozen": (lambda: torch.jit.freeze(torch.jit.script(small())), f"TorchScript.*{ORIGINAL} module"),
    "loaded": (scripted_file, f"TorchScript.*{ORIGINAL} module"),
    "scripted inside": (lambda: nn.Sequential(torch.jit.script(nn.Linear(3, 3))), f"module '0'.*{ORIGINAL} module"),
    "quantised": (quantised, f"module '0'.*quantised.*{ORIGINAL} model, in floating point"),
    "quantised inside": (lambda: nn.Sequential(quantised()), r"module '0\.0'.*quantised"),
    "quantised before": (quantised_before, f"quantised.*{ORIGINAL} model, in floating point"),
    "packed": (Packed, f"an object of C\\+\\+.*{ORIGINAL} model"),
    "a list of modules": (lambda: nn.ModuleList([small()]), "ModuleList, has no forward"),
    "a lazy module": (lambda: nn.Sequential(nn.LazyLinear(2)), r"'0\.weight' has no shape yet.*call model\(x\) once"),
    "on meta": (on_meta, r"'0\.weight' is on the meta device.*load the weights"),
    "in inference mode": (in_inference, r"torch\.inference_mode\(\).*copy\.deepcopy\(model\)"),
    "sparse": (lambda: holding(torch.eye(3).to_sparse()), r"'weight' is sparse.*\.to_dense\(\)"),
    "sparse rows": (lambda: holding(torch.eye(3).to_sparse_csr()), r"'weight' is sparse.*\.to_dense\(\)"),
    "in 8 bits": (lambda: holding(torch.eye(3).to(torch.float8_e4m3fn)), r"float8_e4m3fn.*model\.float\(\)"),
}  # fmt: skip


@pytest.mark.rotating
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layers", ["all", 1])
@pytest.mark.parametrize("case", NO_MODELS)
def test_what_is_no_underlying_model_is_refused_with_what_to_give_instead(case: str, layers: Any) -> None:
    given, text = NO_MODELS[case]
    model = given()

    with pytest.raises((TypeError, ValueError), match=text):
        inn.IntervalNetwork(model, layers)


@pytest.fixture(scope="module")
def group() -> Iterator[None]:
    distributed = torch.distributed
    distributed.init_process_group("gloo", rank=0, world_size=1, store=distributed.HashStore())
    yield
    distributed.destroy_process_group()


@pytest.mark.filterwarnings("ignore")
def test_a_model_that_is_spread_over_processes_is_refused(group: None) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import distribute_module

    mesh = init_device_mesh("cpu", (1,))
    sharded = small()
    fully_shard(sharded, mesh=mesh)

    for model, text in [
        (nn.parallel.DistributedDataParallel(small()), r"model\.module"),
        (sharded, r"shards its parameters; gather them"),
        (distribute_module(small(), mesh), r"'0\.weight' is a DTensor.*full_tensor"),
    ]:
        with pytest.raises(TypeError, match=text):
            inn.IntervalNetwork(model, layers="all")


def hooked() -> nn.Module:
    model = small()
    model[2].register_forward_hook(lambda module, args, out: out * 2)
    model[2].register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    return model


def pruned() -> nn.Module:
    model = small()
    prune.l1_unstructured(model[0], "weight", 0.5)  # type: ignore[no-untyped-call]
    return model


def compiled_inside() -> nn.Module:
    model = small()
    model[0] = torch.compile(model[0], backend="eager")
    return model


class WholeNumbers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.times = nn.Parameter(torch.tensor([1, 2]), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x) * self.times


MODELS: dict[str, Callable[[], nn.Module]] = {
    "compiled": lambda: torch.compile(small(), backend="eager"),
    "compiled inside": compiled_inside,
    "exported": lambda: torch.export.export(small(), (X,)).module(),
    "traced by fx": lambda: torch.fx.symbolic_trace(small()),
    "DataParallel": lambda: nn.DataParallel(small()),
    "averaged": lambda: torch.optim.swa_utils.AveragedModel(small()),
    "hooked": hooked,
    "pruned": pruned,
    "weight norm": lambda: nn.Sequential(parametrizations.weight_norm(nn.Linear(3, 2))),
    "spectral norm": lambda: nn.Sequential(parametrizations.spectral_norm(nn.Linear(3, 2))).eval(),
    "whole numbers": WholeNumbers,
    "copied out of inference mode": lambda: copy.deepcopy(in_inference()),
}


@pytest.mark.rotating
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", MODELS)
def test_other_ways_to_hold_a_model_are_bounded(case: str) -> None:
    model = MODELS[case]()
    net = inn.IntervalNetwork(model, layers="all")
    parameters = dict(model.named_parameters())
    for name in net.names:
        net.set_gaps(name, 0.05, 0.05)

    bounds = net(X)

    with torch.no_grad():
        assert torch.equal(bounds.point, model(X))
        for move in (-0.05, 0.05):
            for name in net.names:
                parameters[name] += move
            if case != "pruned":  # whose hook keeps a weight that was made before
                assert ((bounds.lower - 1e-5 <= model(X)) & (model(X) <= bounds.upper + 1e-5)).all()
            for name in net.names:
                parameters[name] -= move
    assert (bounds.width > 0).all()


def test_a_model_without_weight_layers_says_so_where_the_last_ones_are_asked_for() -> None:
    with pytest.raises(ValueError, match=r"layers=2 asks for the last weight layers.*layers='all'"):
        inn.IntervalNetwork(nn.Sequential(nn.ReLU()), 2)(X)


@pytest.mark.rotating
@pytest.mark.parametrize(
    "layers", [2.5, None, torch.tensor(1), nn.Linear(3, 2), nn.Linear, [0], [["0"]], b"0", range(2)]
)
def test_layers_of_another_type_are_refused(layers: Any) -> None:
    with pytest.raises(TypeError, match=r"layers must be 'all', a number, names or a predicate, got .*named_modules"):
        inn.IntervalNetwork(small(), layers)


# --- what is no input ---


@pytest.mark.rotating
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("given", "text"),
    [
        (X.numpy, r"no tensor among its arguments \(got ndarray\).*torch\.from_numpy"),
        (X.tolist, r"no tensor among its arguments \(got float\)"),
        (lambda: "scan.png", r"no tensor among its arguments \(got str\)"),
        (lambda: None, r"no tensor among its arguments \(got NoneType\)"),
        (lambda: [X[0], X[1]], r"the model itself does not take.*must be Tensor, not list"),
        (lambda: torch.nested.nested_tensor([X]), r"nested tensor; pad it"),
        (lambda: torch.quantize_per_tensor(X, 0.1, 0, torch.quint8), r"quantised tensor.*x\.dequantize\(\)"),
        (X.to_mkldnn, r"MKL-DNN.*x\.to_dense\(\)"),
        (own_tensor, r"an input is a Own, a tensor with operations of its own"),
    ],
    ids=["array", "numbers", "text", "nothing", "list", "nested", "quantised", "mkldnn", "special"],
)
def test_what_is_no_input_is_refused_with_what_to_give_instead(given: Any, text: str) -> None:
    net, x = inn.IntervalNetwork(small(), layers="all"), given()

    for call in (net, lambda x: net.predict(x, batch_size=2)):
        with pytest.raises((TypeError, ValueError), match=text):
            call(x)


@pytest.mark.rotating
@pytest.mark.parametrize(
    "given",
    [X.clone().requires_grad_(), nn.Parameter(X), X.T.contiguous().T, X[:1].expand(4, 3), X.to_sparse(), X[:0]],
    ids=["asks for gradients", "parameter", "turned", "expanded", "sparse", "empty"],
)
def test_other_plain_tensors_are_inputs(given: Tensor) -> None:
    model = small()

    assert torch.equal(bounds_of(model, given).point, model(given))


# --- what is done to a network ---


@pytest.mark.rotating
@pytest.mark.parametrize(
    "transform",
    [
        torch.vmap, torch.func.jacrev, torch.func.jacfwd,
        lambda fn: torch.func.grad(lambda x: fn(x).sum()), lambda fn: lambda x: torch.func.jvp(fn, (x,), (x,)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("known", [False, True])
def test_transforms_of_torch_are_refused_with_what_to_do(transform: Any, known: bool) -> None:
    net = inn.IntervalNetwork(small(), layers="all")
    if known:
        net(X)

    with pytest.raises(RuntimeError, match=r"inside torch\.func.*whole batches.*torch\.autograd\.functional\.jacobian"):
        transform(lambda x: net(x).width)(X)

    assert torch.equal(net(X).point, net.model(X)) and not in_transform()


def test_derivatives_in_forward_mode_are_refused_with_what_to_do() -> None:
    net = inn.IntervalNetwork(small(), layers="all")
    net.set_gaps("2.weight", 0.1, 0.1)

    with torch.autograd.forward_ad.dual_level(), pytest.raises(RuntimeError, match=r"forward mode.*functional\.jvp"):
        net(torch.autograd.forward_ad.make_dual(X, X))

    assert torch.autograd.functional.jvp(lambda x: net(x).width, X, X)[1].any()


def test_what_the_refusal_of_a_transform_advises_works() -> None:
    net = inn.IntervalNetwork(small(), layers="all")
    net.set_gaps("2.weight", 0.1, 0.1)

    slopes = torch.autograd.functional.jacobian(lambda x: net(x).width, X)

    assert slopes.shape == (4, 2, 4, 3) and slopes.any()


@pytest.mark.rotating
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "write",
    [
        lambda net: torch.jit.trace(net, X),
        lambda net: torch.jit.script(net),
        lambda net: torch.export.export(net, (X,)),
        lambda net: torch.export.export(net, (X,), strict=True),
        lambda net: torch.compile(net, fullgraph=True, backend="eager")(X),
    ],
    ids=["trace", "script", "export", "strict export", "full graph"],
)
def test_writing_down_the_module_is_refused_with_the_way_to_write_the_program(write: Any) -> None:
    net = inn.IntervalNetwork(small(), layers="all")
    net(X)

    assert "intervalnn.export" in told(lambda: write(net))


@pytest.mark.rotating
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
def test_a_copy_has_gaps_and_a_model_of_its_own(copied: Any) -> None:
    net = inn.IntervalNetwork(small(), layers="all")
    net.set_gaps("0.bias", 0.1, 0.1)
    before = net(X)

    other = copied(net)
    assert torch.equal(other(X).width, before.width)
    other.set_gaps("0.bias", 1.0, 1.0)
    other.model[0].bias.data += 1.0

    assert torch.equal(net(X).width, before.width) and torch.equal(net(X).point, before.point)
    assert not torch.equal(other(X).point, before.point)


@pytest.mark.rotating
@pytest.mark.parametrize("wrap", [nn.DataParallel, lambda net: net.train(), lambda net: net.eval()])
def test_a_network_may_be_wrapped_and_set_to_a_mode(wrap: Any) -> None:
    net = inn.IntervalNetwork(small(), layers="all")

    assert torch.equal(wrap(net)(X).point, net.model(X)) and not net.model.training


def test_other_gaps_may_stand_in_for_the_own_for_one_call() -> None:
    net = inn.IntervalNetwork(small(), layers="all")
    net.set_gaps("2.bias", 0.1, 0.1)
    closed = {name: torch.zeros_like(gap) for name, gap in net.named_parameters()}

    assert not torch.func.functional_call(net, closed, (X,)).width.any()
    assert torch.allclose(net(X).width, torch.tensor(0.2))


# --- what changes after the intervals were put around the weights ---


def set_to(name: str, value: Tensor) -> Callable[[nn.Module], None]:
    def change(model: nn.Module) -> None:
        path, _, leaf = name.rpartition(".")
        setattr(model.get_submodule(path), leaf, nn.Parameter(value))

    return change


def data_to(name: str, value: Tensor) -> Callable[[nn.Module], None]:
    def change(model: nn.Module) -> None:
        model.get_parameter(name).data = value

    return change


OTHER = r"was torch\.float32 of shape \([\d, ]+\) before, and is now .*make a new IntervalNetwork"
CHANGES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "another shape": (set_to("0.weight", torch.ones(5, 3)), rf"'0\.weight' of the model {OTHER}"),
    "a shape that broadcasts": (set_to("0.bias", torch.ones(1)), rf"'0\.bias' of the model {OTHER}"),
    "another dtype": (set_to("0.weight", torch.ones(4, 3).double()), rf"'0\.weight' of the model {OTHER}"),
    "all of another dtype": (lambda model: model.double(), rf"'0\.weight' of the model {OTHER}"),
    "data of another shape": (data_to("0.weight", torch.ones(5, 3)), rf"'0\.weight' of the model {OTHER}"),
    "data that broadcasts": (data_to("0.bias", torch.ones(1)), rf"'0\.bias' of the model {OTHER}"),
    "data of another dtype": (data_to("0.bias", torch.ones(4).double()), rf"'0\.bias' of the model {OTHER}"),
    "another module": (lambda model: model.__setitem__(0, nn.Linear(3, 5)), rf"'0\.\w+' of the model {OTHER}"),
    "deleted": (lambda model: delattr(model[0], "bias"), r"removed \('0\.bias'\)"),
    "none": (lambda model: setattr(model[0], "bias", None), r"removed \('0\.bias'\)"),
    "no module": (lambda model: model.__delitem__(2), r"removed \('2\.bias', '2\.weight'\)"),
    "one module more": (lambda model: model.append(nn.Linear(2, 2)), r"removed \('3\.bias', '3\.weight'\)"),
    "parametrised": (lambda model: parametrizations.weight_norm(model[0]), r"added or removed .*'0\.weight'"),
}


@pytest.mark.rotating
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("case", CHANGES)
def test_a_parameter_that_became_another_is_refused_by_name(case: str, known: bool) -> None:
    change, text = CHANGES[case]
    net = inn.IntervalNetwork(small(), layers="all")
    if known:
        net(X)

    change(net.model)

    with pytest.raises(ValueError, match=text):
        net(X)


def test_a_point_that_became_one_of_another_shape_is_taken_after_refresh() -> None:
    model = Body(lambda s, x: s.layer(x) * s.scale * s.scale.numel())
    net = inn.IntervalNetwork(model.eval(), layers=["layer"])
    net(X)

    model.scale.data = torch.ones(3)

    with pytest.raises(
        ValueError, match=r"'scale' of the model .* is now .*shape \(3,\); set it back.*net\.refresh\(\)"
    ):
        net(X)
    net.refresh()
    assert torch.equal(net(X).point, model(X))


@pytest.mark.rotating
@pytest.mark.parametrize(
    "change",
    [
        set_to("0.weight", torch.ones(4, 3)),
        data_to("0.weight", torch.ones(4, 3)),
        lambda model: model.__setitem__(1, nn.Tanh().eval()),
        lambda model: model.append(nn.ReLU().eval()),
        lambda model: model[0].register_forward_hook(lambda module, args, out: out * 2),
        lambda model: model[0].register_forward_pre_hook(lambda module, args: (args[0] * 2,)),
        lambda model: setattr(model[0], "forward", lambda x: F.linear(x, model[0].weight)),
    ],
    ids=["parameter", "data", "module", "module more", "hook", "hook before", "forward"],
)
def test_another_part_of_the_same_shape_is_taken(change: Any) -> None:
    net = inn.IntervalNetwork(small(), layers="all")
    net(X)

    change(net.model)

    assert torch.equal(net(X).point, net.model(X))


# --- nothing stays behind ---


@pytest.mark.rotating
@pytest.mark.parametrize("case", ["func.grad", "func.jvp", "func.jacrev", "func.jacfwd", "func.hessian", "if", "numpy"])
def test_a_refused_model_leaves_nothing_behind(case: str) -> None:
    for does in (UNTRACEABLE[case][0], lambda s, x: torch.func.vmap(lambda v: v if v.sum() > 0 else -v)(s.layer(x))):
        told(lambda does=does: bounds_of(Body(does)))

    assert not in_transform()
    model = small()
    assert torch.equal(bounds_of(model).point, model(X))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(X, X)
        assert torch.autograd.forward_ad.unpack_dual(model(dual)).tangent is not None


def test_no_stand_in_stays_in_the_cache_of_parametrisations() -> None:
    model = nn.Sequential(parametrizations.weight_norm(nn.Linear(3, 2))).eval()

    with parametrize.cached():
        bounds = bounds_of(model)
        assert torch.equal(bounds.point, model(X))
