"""A few networks of public packages, out of those that ``make coverage-outside`` tries."""

from __future__ import annotations

from typing import Any

import outside
import pytest
import torch
from soundness import fingerprint, leaves, misses, set_random_gaps
from zoo import Case

import intervalnn as inn

FEW = {
    "entmax": ["1.5-entmax"],
    "ncps": ["CfC, mode=pure", "LTC"],
    "normflows": ["masked affine", "Glow block"],
    "torch_geometric": ["GAT", "GCN, a Batch object"],
    "torchdiffeq": ["midpoint"],
    "zuko": ["MAF", "NSF"],
}


def cases() -> list[Any]:
    chosen = [
        (package, case) for package, names in FEW.items() for case in outside.LIBRARIES[package]
        if case.name in names
    ]  # fmt: skip
    return [pytest.param(*each, id=f"{each[0]}, {each[1]}") for each in chosen]


@pytest.mark.rotating
@pytest.mark.parametrize(("package", "case"), cases())
def test_a_network_of_a_package_converts_without_an_edit(package: str, case: Case) -> None:
    pytest.importorskip(package, reason=f"{package} is not installed; pip install {package}")
    model = case.build(torch.float64)
    args, kwargs = case.call(torch.float64)
    before = fingerprint(model)
    net = inn.IntervalNetwork(model, layers="all")
    set_random_gaps(net, rel=case.rel)

    outside, reached = misses(net, case.build(torch.float64), args, kwargs, draws=20, rtol=1e-9)

    assert outside == 0 and reached > 0
    assert fingerprint(model) == before
    with torch.no_grad():
        for bounds, output in zip(leaves(net(*args, **kwargs)), leaves(model(*args, **kwargs)), strict=True):
            torch.testing.assert_close(bounds.point, output, rtol=1e-9, atol=1e-10)
