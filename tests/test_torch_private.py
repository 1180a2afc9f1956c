"""What the library takes of torch's private parts, each tried alone, so that a new torch tells what broke."""

from __future__ import annotations

import ast
import copy
import io
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses import FakeTensorMode
from torch.func import grad, vmap
from torch.nn.utils import parametrizations, parametrize

import intervalnn
from intervalnn import torch_private
from intervalnn.network.capture.call import Call
from intervalnn.network.capture.capture import _decompositions, capture

SOURCES = sorted(set(Path(intervalnn.__file__).parent.rglob("*.py")) - {Path(torch_private.__file__)})
OUTSIDE = {"_asdict", "_replace"}  # public methods of named tuples, although they begin so
OVERRIDDEN = {"_apply"}  # a method of torch's modules, which ours extends: no function can stand for it
aten = torch.ops.aten


# --- one place ---


def is_private(name: str) -> bool:
    return any(part.startswith("_") and not part.startswith("__") for part in name.split(".")) or "experimental" in name


def own_names(trees: list[ast.Module]) -> set[str]:
    """Return what the sources themselves define under a private name."""
    found = set(OUTSIDE)
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
    return found - OVERRIDDEN


def taken(tree: ast.Module, own: set[str]) -> set[str]:
    """Return what a source takes of torch's private parts."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("torch.")}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torch"):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Attribute):
            name = ast.unparse(node).replace("nn.modules.", "torch.nn.modules.").replace("torch.torch.", "torch.")
            if name.startswith("torch."):
                found.add(name)
            elif node.attr not in own and not name.startswith("aten."):
                found.add(node.attr)
        elif isinstance(node, ast.Constant) and node.value in TABLES:
            found.add(node.value)
    return {name for name in found if is_private(name)}


TABLES = {name for name in vars(nn.Module()) if name.startswith("_")}  # also where they are read by name


def test_nothing_else_takes_what_torch_keeps_private() -> None:
    trees = {path: ast.parse(path.read_text()) for path in SOURCES}
    own = own_names(list(trees.values()))

    found = {str(path): names for path, tree in trees.items() if (names := taken(tree, own) - OVERRIDDEN)}

    assert not found, "put these into torch_private.py, a function and a test each"


def test_what_a_source_takes_is_seen() -> None:
    text = "import torch.utils._pytree\nfrom torch.nn.modules.conv import _ConvNd\nx._cdata\nvars(m)['_forward_hooks']"

    found = taken(ast.parse(text), set())

    assert found == {"torch.utils._pytree", "torch.nn.modules.conv._ConvNd", "_cdata", "_forward_hooks"}


def test_every_private_part_has_a_test() -> None:
    used = {
        node.attr
        for node in ast.walk(ast.parse(Path(__file__).read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "torch_private"
    }

    assert set(torch_private.__all__) <= used


# --- modules ---


def test_families_of_modules_have_one_base_each() -> None:
    assert issubclass(nn.BatchNorm2d, torch_private.BatchNorm) and issubclass(nn.SyncBatchNorm, torch_private.BatchNorm)
    assert issubclass(nn.InstanceNorm2d, torch_private.BatchNorm)
    assert issubclass(nn.Dropout, torch_private.Dropout) and issubclass(nn.AlphaDropout, torch_private.Dropout)
    assert issubclass(nn.Conv1d, torch_private.Convolution) and issubclass(nn.LazyConv3d, torch_private.Convolution)
    assert issubclass(nn.ConvTranspose2d, torch_private.TransposedConvolution)
    assert issubclass(torch_private.TransposedConvolution, torch_private.Convolution)


def test_parameters_of_a_module_are_its_own() -> None:
    layer = nn.Linear(1, 1, bias=False)

    assert dict(torch_private.own_parameters(layer)) == {"weight": layer.weight, "bias": None}
    assert not torch_private.own_parameters(nn.Sequential(layer))


def test_names_of_what_a_module_holds_are_told_and_which_buffers_there_are() -> None:
    layer = nn.BatchNorm1d(2)
    layer.extra = nn.Linear(1, 1)
    layer.running_mean = None

    assert torch_private.names_held(layer) == (
        "extra", ("running_mean", True), ("running_var", False), ("num_batches_tracked", False)
    )  # fmt: skip


def test_hooks_of_a_module_are_told() -> None:
    layer = nn.Linear(1, 1)
    none = torch_private.hooks_of(layer)
    before, behind = lambda *_: None, lambda *_: None
    layer.register_forward_pre_hook(before)
    layer.register_forward_hook(behind)

    assert none == () and torch_private.hooks_of(layer) == (before, behind)


def test_a_shallow_copy_has_modules_of_its_own() -> None:
    model = nn.Sequential(nn.Linear(1, 1))

    copied = torch_private.shallow_copy(model)
    copied.add_module("more", nn.ReLU())

    assert copied[0] is model[0]
    assert (len(copied), len(model)) == (2, 1)


# --- tensors and operations ---


def test_changes_in_place_are_counted() -> None:
    x = torch.ones(2)
    before = torch_private.version_of(x)

    x.add_(1)

    assert torch_private.version_of(x) > before


def test_a_view_has_the_memory_of_its_base() -> None:
    x = torch.ones(4)

    own, view, other = (torch_private.key_of(t.untyped_storage()) for t in (x, x[1:], torch.ones(4)))

    assert own == view != other


def test_operations_are_known_with_their_arguments() -> None:
    add = aten.add.Tensor

    assert isinstance(add, torch_private.OpOverload) and isinstance(aten.add, torch_private.OpOverloadPacket)
    found = [(each.name, each.kwarg_only, each.default_value) for each in torch_private.arguments_of(add)]
    assert found == [("self", False, None), ("other", False, None), ("alpha", True, 1)]


def test_operations_are_seen_as_they_run() -> None:
    seen: list[Any] = []

    class Seen(torch_private.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func)
            return func(*args, **(kwargs or {}))

    with Seen():
        torch.ones(2) + 1

    assert aten.add.Tensor in seen


def test_trees_know_intervals() -> None:
    x = intervalnn.Interval.of(torch.ones(2))

    leaves, spec = torch_private.pytree.tree_flatten({"a": [x, 1]})
    again = torch_private.pytree.tree_unflatten(leaves, spec)

    assert len(leaves) == 4
    assert isinstance(again["a"][0], intervalnn.Interval)


# --- capturing ---


class Several(nn.Module):
    """Composite operations with rules and without, views that are written to, and a layer that has a table's entry."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.gru = nn.Conv1d(2, 4, 3, padding=1), nn.RMSNorm(4), nn.GRU(4, 3, batch_first=True)
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        y = nn.functional.adaptive_avg_pool1d(self.conv(x), 4).transpose(1, 2)
        y = self.norm(y).clone()
        y[:, 0] *= 2
        y = nn.functional.softplus(self.attention(y, y, y)[0]) + torch.einsum("bij,bkj->bik", y, y)
        return self.gru(y.outer(y) if y.dim() == 1 else y)[0].swapaxes(0, 1).tile(2).diff()


class Of(nn.Module):
    """A model of one function."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


@pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")
@pytest.mark.filterwarnings("ignore:.*assigned during export.*")
def test_a_program_is_taken_apart_as_torchs_own_function_does() -> None:
    model, x = Several().eval(), torch.randn(2, 2, 6)
    program = torch.export.export(model, (x,), dynamic_shapes=({0: torch.export.Dim.AUTO},))
    table, whole = _decompositions()

    ours, theirs = torch_private.decomposed(program, table, whole), program.run_decompositions(table)

    assert [str(n.target) for n in ours.graph.nodes] == [str(n.target) for n in theirs.graph.nodes]
    assert torch.equal(ours.module()(x), theirs.module()(x))


@pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")
def test_checks_stand_in_a_program_without_tokens() -> None:
    program = torch.export.export(Of(lambda x: torch.linalg.inv(x)), (torch.eye(2),)).run_decompositions({})

    plain = torch_private.without_effect_tokens(program)

    assert not [n for n in plain.graph.nodes if n.name.startswith("token") or "with_effects" in str(n.target)]
    assert torch.equal(plain.module()(2 * torch.eye(2)), torch.eye(2) / 2)


def test_conditions_on_sizes_are_python() -> None:
    def branches(x: Tensor) -> Tensor:
        return 2 * x if x.shape[0] * x.shape[0] > 5 else x

    program = torch.export.export(Of(branches), (torch.ones(3),), dynamic_shapes=({0: torch.export.Dim.AUTO},))

    guards = torch_private.guards_of(program)

    def hold(x: Tensor) -> list[bool]:
        return [eval(guard, {**torch_private.GUARD_NAMES}, {"L": {"x": x}}) for guard in guards]

    assert all(hold(torch.ones(4))) and not all(hold(torch.ones(2)))


def test_a_default_device_reaches_another_thread() -> None:
    found: list[Any] = []
    with torch.device("meta"):
        modes = torch_private.function_modes()

    def work() -> None:
        torch_private.push_function_modes(modes)
        found.append(torch.ones(1).device.type)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert found == ["meta"]
    assert torch.ones(1).device.type == "cpu"


def test_threads_export_one_after_the_other() -> None:
    code = f"""
import threading, torch
from intervalnn import torch_private

torch_private.{torch_private.keep_device_guard.__name__}()
for _ in range(3):
    work = threading.Thread(target=torch.export.export, args=(torch.nn.ReLU(), (torch.ones(2),)))
    work.start()
    work.join()
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


def test_transforms_and_their_tensors_are_told() -> None:
    found: list[Any] = []

    def look(x: Tensor) -> Tensor:
        found.append((torch_private.in_transform(), torch_private.has_gradient(x)))
        return x.sum()

    grad(look)(torch.ones(2))
    vmap(look)(torch.ones(2, 2))
    look(torch.ones(2))

    assert found == [(True, True), (True, False), (False, False)]


def test_tracing_is_told() -> None:
    found = [torch_private.is_traced()]

    def look(x: Tensor) -> Tensor:
        found.append(torch_private.is_traced())
        return x

    torch.jit.trace(look, torch.ones(1), check_trace=False)

    assert found == [False, True]


def test_an_export_leaves_no_transform_and_no_stand_in_behind() -> None:
    layer = parametrizations.weight_norm(nn.Linear(2, 2))
    with parametrize.cached():
        outside = layer.weight
        with torch_private.itself_alone():
            assert layer.weight is not outside  # nothing is taken from the cache, or left in it
            torch._C._functorch._grad_increment_nesting()  # as an error inside of a transform does
        assert layer.weight is outside

    assert not torch_private.in_transform()


# --- compiling ---


def test_the_compilers_modes_are_known() -> None:
    assert torch_private.compiler_modes()["reduce-overhead"]["triton.cudagraphs"] is True
    assert torch_private.compiler_modes()["default"] == {}


def test_a_tensor_may_be_kept_in_place() -> None:
    weight, seen = torch.ones(3), []

    def backend(graph: Any, example: Any) -> Any:
        seen.append([tuple(x.shape) for x in example if isinstance(x, Tensor)])
        return graph.forward

    torch_private.keep_in_place(weight)
    run = torch.compile(lambda w, x: w.sum() * x, backend=backend, dynamic=True)
    run(weight, torch.ones(4))
    run(weight, torch.ones(5))

    assert len(seen) == 1  # x may vary, and weight counts as it is
    assert (3,) in seen[0]


@torch.library.custom_op("intervalnn::beside_in_a_test", mutates_args=())
def joined(parts: list[Tensor], dim: int) -> Tensor:
    raise NotImplementedError("this is only for the compiler")


@joined.register_fake
def _(parts: list[Tensor], dim: int) -> Tensor:
    return torch.cat(parts, dim)


@pytest.mark.slow
def test_parts_are_written_without_a_call() -> None:
    if why := torch_private.why_no_compiler():
        pytest.skip(why)
    torch_private.write_parts(torch.ops.intervalnn.beside_in_a_test.default)

    found = torch.compile(lambda x: joined([x + 1, x * 2], 0))(torch.ones(3))

    assert torch.equal(found, torch.tensor([2.0] * 6))


@pytest.mark.slow
def test_a_module_is_compiled_ahead_packed_and_run(tmp_path: Path) -> None:
    if why := torch_private.why_no_compiler():
        pytest.skip(why)
    program = torch.export.export(Of(lambda x: {"twice": 2 * x}), (torch.ones(3),))  # type: ignore[arg-type, return-value]
    packed = io.BytesIO()

    options = {"aot_inductor.package": True, "aot_inductor.output_path": str(tmp_path)}
    files = torch_private.compiled_ahead(program.module(check_guards=False), (torch.ones(3),), {}, options)
    torch_private.pack(files, packed)
    (tmp_path / "net.pt2").write_bytes(packed.getbuffer())
    run = torch_private.load_package(tmp_path / "net.pt2")

    assert torch.equal(run(torch.ones(3))["twice"], torch.full((3,), 2.0))


def test_a_missing_compiler_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor import cpp_builder, exc

    def missing() -> str:
        raise exc.InvalidCxxCompiler

    found = torch_private.why_no_compiler()
    monkeypatch.setattr(cpp_builder, "get_cpp_compiler", missing)

    assert "C++" in torch_private.why_no_compiler()
    assert found in ("", torch_private.why_no_compiler())


def test_a_module_moves_by_the_method_that_ours_extends() -> None:
    model = copy.deepcopy(nn.Linear(1, 1))

    assert model._apply(Tensor.double) is model
    assert model.weight.dtype == torch.float64


def test_numbers_are_computed_beside_stand_ins() -> None:
    number = torch.tensor([1.0, 2.0])

    with FakeTensorMode():
        outside = torch.ones(2)
        with torch_private.no_modes():
            found = float((number + 1).sum())

    assert found == 5.0
    assert type(outside) is not Tensor


def test_capture_leaves_the_kernels_of_other_threads_on() -> None:
    seen = []

    class Watched(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(3, 2, batch_first=True)

        def forward(self, x: Tensor) -> Tensor:
            seen.append((torch._C._get_mkldnn_enabled(), torch._C._get_nnpack_enabled()))
            made: Tensor = self.lstm(x)[0]
            return made

    before = (torch._C._get_mkldnn_enabled(), torch._C._get_nnpack_enabled())
    model, x = Watched().eval(), torch.rand(2, 4, 3)

    bounds = intervalnn.IntervalNetwork(model, "all")(x)

    assert set(seen) == {before}
    torch.testing.assert_close(bounds.point, model(x))


def test_torch_still_turns_its_kernels_off_in_exports_of_others() -> None:
    with torch_private.kernels_kept():
        pass
    seen = []

    class Watched(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            seen.append(torch._C._get_mkldnn_enabled())
            return x + 1

    torch.export.export(Watched(), (torch.ones(2),))
    assert not any(seen)


def test_a_model_that_is_not_on_the_cpu_is_captured_without_a_devices_own_kernels() -> None:
    seen = []

    class Watched(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 2)

        def forward(self, x: Tensor) -> Tensor:
            seen.append((torch._C._get_mkldnn_enabled(), torch._C._get_cudnn_enabled()))
            made: Tensor = self.layer(x)
            return made

    capture(Watched().to("meta").eval(), Call.of((torch.empty(2, 3, device="meta"),), {}))

    assert (False, False) in seen
