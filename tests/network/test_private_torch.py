"""What the library takes of torch's private parts, each tried alone, so that another torch says which it changed."""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.utils._pytree as pytree
from torch import Tensor, nn

import intervalnn
from intervalnn.network import torch_private

# All but the room for it, whose functions have tests of their own.
SOURCES = sorted(set(Path(intervalnn.__file__).parent.rglob("*.py")) - {Path(torch_private.__file__)})
OUTSIDE = {"_asdict", "_replace"}  # public methods of named tuples, although they begin so
OVERRIDDEN = {"_apply"}  # torch's, although the sources define them too
aten = torch.ops.aten


def imported(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(module), attribute, None) or import_module(name)


def is_base_of(name: str, *kinds: type) -> bool:
    return all(issubclass(kind, imported(name)) for kind in kinds)


def exported(forward: Callable[[Tensor], Tensor] = torch.relu) -> torch.export.ExportedProgram:
    class Model(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return forward(x)

    return torch.export.export(Model(), (torch.ones(3),))


def counts_operations() -> bool:
    mode = imported("torch.utils._python_dispatch.TorchDispatchMode")
    seen: list[Any] = []

    class Seen(mode):  # type: ignore[misc, valid-type]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func)
            return func(*args, **(kwargs or {}))

    with Seen():
        torch.ones(2) + 1
    return aten.add.Tensor in seen


def flattens_our_own() -> bool:
    x = intervalnn.Interval.of(torch.ones(2))
    leaves, spec = pytree.tree_flatten(x)
    return len(leaves) == 3 and isinstance(pytree.tree_unflatten(leaves, spec), intervalnn.Interval)


def counts_versions() -> bool:
    x = torch.ones(2)
    before = x._version
    x.add_(1)
    return bool(x._version > before)


def tells_storages_apart() -> bool:
    x = torch.ones(4)
    own, view, other = (t.untyped_storage()._cdata for t in (x, x[1:], torch.ones(4)))
    return own == view != other


def moves_all() -> bool:
    model = nn.Linear(1, 1)
    return model._apply(Tensor.double) is model and model.weight.dtype == torch.float64


# Of modules, what is imported; of objects, an attribute; and a try that it does what the library wants of it.
PRIVATE: dict[str, Callable[[], Any]] = {
    "torch._dynamo.mark_static": lambda: torch._dynamo.mark_static(torch.ones(2)) is None,
    "torch._dynamo.mark_static_address": lambda: torch._dynamo.mark_static_address(torch.ones(2)) is None,
    "torch._inductor.aot_compile": lambda: callable(imported("torch._inductor.aot_compile")),
    "torch._inductor.aoti_load_package": lambda: callable(imported("torch._inductor.aoti_load_package")),
    "torch._inductor.cpp_builder.get_cpp_compiler": lambda: callable(
        imported("torch._inductor.cpp_builder.get_cpp_compiler")
    ),
    "torch._inductor.exc.InvalidCxxCompiler": lambda: is_base_of("builtins.Exception", imported(
        "torch._inductor.exc.InvalidCxxCompiler"
    )),
    "torch._inductor.ir": lambda: imported("torch._inductor.ir").ConcatKernel.create,
    "torch._inductor.list_mode_options": lambda: "max-autotune" in torch._inductor.list_mode_options(),
    "torch._inductor.lowering": lambda: imported("torch._inductor.lowering").register_lowering,
    "torch._inductor.package.package.package_aoti": lambda: callable(
        imported("torch._inductor.package.package.package_aoti")
    ),
    "torch._ops.OpOverload": lambda: isinstance(aten.relu.default, imported("torch._ops.OpOverload")),
    "torch._ops.OpOverloadPacket": lambda: isinstance(aten.relu, imported("torch._ops.OpOverloadPacket")),
    "torch.fx.experimental.symbolic_shapes.SYMPY_INTERP": lambda: (
        "math" in imported("torch.fx.experimental.symbolic_shapes.SYMPY_INTERP")
    ),
    "torch.nn.modules.batchnorm._NormBase": lambda: is_base_of(
        "torch.nn.modules.batchnorm._NormBase", nn.BatchNorm2d, nn.InstanceNorm2d
    ),
    "torch.nn.modules.conv._ConvNd": lambda: is_base_of("torch.nn.modules.conv._ConvNd", nn.Conv1d, nn.ConvTranspose3d),
    "torch.nn.modules.conv._ConvTransposeNd": lambda: is_base_of(
        "torch.nn.modules.conv._ConvTransposeNd", nn.ConvTranspose1d, nn.ConvTranspose3d
    ),
    "torch.nn.modules.dropout._DropoutNd": lambda: is_base_of(
        "torch.nn.modules.dropout._DropoutNd", nn.Dropout, nn.Dropout3d
    ),
    "torch.utils._python_dispatch.TorchDispatchMode": counts_operations,
    "torch.utils._pytree": flattens_our_own,
    "_apply": moves_all,
    "_buffers": lambda: "running_var" in nn.BatchNorm1d(1)._buffers,
    "_cdata": tells_storages_apart,
    "_guards_code": lambda: all(isinstance(guard, str) for guard in exported()._guards_code),
    "_parameters": lambda: set(nn.Linear(1, 1)._parameters) == {"weight", "bias"},
    "_schema": lambda: [each.name for each in aten.add.Tensor._schema.arguments] == ["self", "other", "alpha"],
    "_version": counts_versions,
}  # fmt: skip


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
    return {name for name in found if is_private(name)}


def test_the_list_is_whole() -> None:
    trees = [ast.parse(path.read_text()) for path in SOURCES]
    own = own_names(trees)
    found = set().union(*(taken(tree, own) for tree in trees))

    left_out = {name for name in found if not any(name == each or each.startswith(f"{name}.") for each in PRIVATE)}
    assert not left_out, f"the sources take these of torch's private parts, which are not in PRIVATE: {left_out}"
    assert not set(PRIVATE) - found, f"no source takes these any more: {set(PRIVATE) - found}"


@pytest.mark.parametrize("name", PRIVATE)
def test_torch_has_the_private_part(name: str) -> None:
    assert PRIVATE[name]()
