"""Plain names for sizes."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.export import Dim

from intervalnn.saving.exporting.values import described


@pytest.mark.rotating
@pytest.mark.parametrize(
    ("shape", "names"),
    [
        ((2, 3), ("batch", "x_1")),
        ((2, 3, 4), ("batch", "length", "x_2")),
        ((2, 3, 4, 5), ("batch", "x_1", "height", "width")),
        ((2, 3, 4, 5, 6), ("batch", "x_1", "depth", "height", "width")),
    ],
)
def test_sizes_have_their_usual_names_and_outputs_say_how_they_depend_on_them(
    shape: tuple[int, ...], names: tuple[str, ...]
) -> None:
    varying = (dict.fromkeys(range(len(shape)), Dim.AUTO),)
    exported = torch.export.export(nn.Flatten(0), (torch.ones(shape),), dynamic_shapes=varying)
    nodes = {node.name: node.meta.get("val") for node in exported.graph.nodes}
    signature = exported.graph_signature

    inputs, outputs = described({"x": nodes[signature.user_inputs[0]]}, {"y": nodes[signature.user_outputs[0]]})

    assert inputs["x"].shape == names
    assert inputs["x"].dtype == "float32"
    assert set(str(outputs["y"].shape[0]).split("*")) == set(names)
