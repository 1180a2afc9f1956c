"""What torch keeps private does what we take it to do."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from intervalnn.network.capture import _decompositions
from intervalnn.network.torch_private import decomposed


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


@pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")
@pytest.mark.filterwarnings("ignore:.*assigned during export.*")
def test_a_program_is_taken_apart_as_torchs_own_function_does() -> None:
    model, x = Several().eval(), torch.randn(2, 2, 6)
    program = torch.export.export(model, (x,), dynamic_shapes=({0: torch.export.Dim.AUTO},))
    table, whole = _decompositions()

    ours, theirs = decomposed(program, table, whole), program.run_decompositions(table)

    assert [str(n.target) for n in ours.graph.nodes] == [str(n.target) for n in theirs.graph.nodes]
    assert torch.equal(ours.module()(x), theirs.module()(x))
