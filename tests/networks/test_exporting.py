"""Every network of the zoo as a file: what ONNX can express agrees, and the rest is refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.utils._pytree as pytree
from soundness import set_random_gaps
from zoo import ZOO, Case

import intervalnn as inn
from intervalnn.saving.exporting import export

# Complex numbers: torch's translations to ONNX know too few operations on them.
COMPLEX = {"Fourier neural operator, complex weights", "Fourier neural operator, real weights"}
# Norms and softmax amplify rounding: the network itself is as far from double precision as the file is from it.
ROUNDED = {"transformer encoder, ReLU", "transformer encoder, GELU, norm first", "vision transformer"}

pytestmark = pytest.mark.slow


def given(case: Case) -> tuple[inn.IntervalNetwork, Any]:
    net = inn.IntervalNetwork(case.build(), layers="all")
    set_random_gaps(net, rel=case.rel)
    args, kwargs = case.call()
    if not kwargs:
        return net, args
    names = ("x", "others")  # of the one network that takes some by name
    return net, dict(zip(names, args, strict=True)) | kwargs


@pytest.mark.rotating
@pytest.mark.parametrize("case", [case for case in ZOO if case.name not in COMPLEX], ids=str)
def test_onnxruntime_agrees_with_the_network(case: Case, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    net, example = given(case)

    card = export(net, example, tmp_path / "net.onnx", tolerance=1e-3 if case.name in ROUNDED else 1e-4)

    assert card["inputs"][0]["shape"][0] == "batch"
    assert len(card["verification"]["calls"]) >= 2


@pytest.mark.rotating
@pytest.mark.parametrize("case", [case for case in ZOO if case.name in COMPLEX], ids=str)
def test_complex_numbers_are_refused_by_name(case: Case, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    net, example = given(case)

    with pytest.raises(ValueError, match=r"ONNX cannot express aten\.\w+\.\w+ \(.*complex"):
        export(net, example, tmp_path / "net.onnx")


# The others take long, and it is the same program that was written as ONNX above.
@pytest.mark.rotating
@pytest.mark.parametrize("case", [case for case in ZOO if case.name in COMPLEX or not case.slow], ids=str)
def test_torch_export_agrees_with_the_network(case: Case, tmp_path: Path) -> None:
    net, example = given(case)

    export(net, example, tmp_path / "net.pt2", tolerance=1e-3 if case.name in ROUNDED else 1e-4)

    program = torch.export.load(tmp_path / "net.pt2").module()
    tensors = [leaf for leaf in pytree.tree_leaves(example) if isinstance(leaf, torch.Tensor)]
    assert all(value.isfinite().all() for value in program(*tensors).values())
