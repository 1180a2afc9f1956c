"""What public packages do inside their networks, each as a minimal module that needs none of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import intervalnn as inn

BESIDE_TORCH = f"{Path(torch.__file__).parent}_geometric/net.py"
BRANCHES = """
def forward(layer, x):
    return x if layer(x).sum() > 0 else -x
"""


class FromPackage(nn.Module):
    """A network whose forward stands in a package with a name that begins with torch."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        names: dict[str, Any] = {}
        exec(compile(BRANCHES, BESIDE_TORCH, "exec"), names)
        self.call = names["forward"]

    def forward(self, x: Tensor) -> Any:
        return self.call(self.layer, x)


def test_the_line_of_a_package_is_named_whose_name_begins_with_torch() -> None:
    with pytest.raises(ValueError, match=r"torch_geometric/net.py:3 .*branches on the value"):
        inn.IntervalNetwork(FromPackage().eval(), layers="all")(torch.randn(2, 3))
