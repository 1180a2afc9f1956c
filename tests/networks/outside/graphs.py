"""Networks of torch_geometric, and of e3nn, whose layers turn with their inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from zoo import Case, Inputs, real

from outside.case import Call, network, of


def graph(width: int = 5, *, edges: int = 0, batch: bool = False, kinds: int = 0) -> Callable[[], Inputs]:
    """Nodes and edges, with what else a network takes."""

    def made() -> Inputs:
        index = torch.tensor([[0, 1, 2, 3, 4, 5, 0, 2], [1, 0, 3, 2, 5, 4, 2, 0]])
        more: tuple[Tensor, ...] = (torch.randint(0, kinds, (8,)),) if kinds else ()
        more += (torch.randn(8, edges),) if edges else ()
        more += (torch.tensor([0, 0, 0, 0, 1, 1]),) if batch else ()
        return (torch.randn(6, width), index, *more), {}

    return made


def pyg(name: str, inputs: Callable[[], Inputs] | None = None, *args: Any, **options: Any) -> Case:
    return network(name, lambda: getattr(of("torch_geometric.nn"), name)(*args, **options), inputs or graph(), rel=1e-3)


def pooled(model: nn.Module, x: Tensor, edges: Tensor, batch: Tensor) -> Any:
    """Pool each graph of a batch: as the examples of the package do."""
    return of("torch_geometric.nn").global_mean_pool(model(x, edges), batch)


def of_batch(model: nn.Module, data: Any) -> Any:
    return pooled(model, data.x, data.edge_index, data.batch)


def batch_of_graphs() -> Inputs:
    Data, Batch = of("torch_geometric.data").Data, of("torch_geometric.data").Batch
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    return (Batch.from_data_list([Data(x=torch.randn(3, 5), edge_index=edges) for _ in range(2)]),), {}


def gcn() -> nn.Module:
    made: nn.Module = of("torch_geometric.nn").GCN(5, 6, 2, 3)
    return made


def atoms() -> Inputs:
    return (torch.randint(1, 9, (6,)), torch.randn(6, 3), torch.tensor([0, 0, 0, 1, 1, 1])), {}


def near(positions: Tensor, batch: Tensor) -> tuple[Tensor, Tensor]:
    """Join the atoms of each molecule: what the package itself would look for by a kernel that it does not bring."""
    edges = torch.tensor([[0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5], [1, 2, 0, 2, 0, 1, 4, 5, 3, 5, 3, 4]])
    return edges, (positions[edges[0]] - positions[edges[1]]).norm(dim=-1)


PYG = [
    pyg("GCN", None, 5, 6, 2, 3),
    pyg("GraphSAGE", None, 5, 6, 2, 3),
    pyg("GIN", None, 5, 6, 2, 3),
    pyg("GAT", None, 5, 6, 2, 3, heads=2),
    pyg("PNA", None, 5, 6, 2, 3, aggregators=["mean", "max", "std"], scalers=["identity"], deg=torch.tensor([0, 4, 2])),
    pyg("EdgeCNN", None, 5, 6, 2, 3),
    pyg("GATv2Conv", None, 5, 3, heads=2),
    pyg("TransformerConv", None, 5, 3, heads=2),
    pyg("ChebConv", None, 5, 3, 2),
    pyg("GatedGraphConv", None, 6, 2),
    pyg("ARMAConv", None, 5, 3, num_stacks=2, num_layers=2),
    pyg("RGCNConv", graph(kinds=3), 5, 4, 3),
    pyg("GraphUNet", None, 5, 6, 3, 2),
    pyg("SchNet", atoms, hidden_channels=8, num_filters=8, num_interactions=1, num_gaussians=4, interaction_graph=near),
    network("GCN, mean pool of a batch", lambda: Call(gcn(), pooled), graph(batch=True), rel=1e-3),
    network("GCN, a Batch object", lambda: Call(gcn(), of_batch), batch_of_graphs, rel=1e-3),
]


def _e3nn(activated: bool) -> nn.Module:
    o3, e3 = of("e3nn.o3"), of("e3nn.nn")
    scalars, gates = o3.Irreps("4x0e"), o3.Irreps("2x0e")
    if not activated:
        made: nn.Module = o3.Linear("4x0e + 2x1o", "3x0e + 2x1o")
        return made
    gate = e3.Gate(scalars, [torch.relu], gates, [torch.sigmoid], o3.Irreps("2x1o"))
    return nn.Sequential(o3.Linear("4x0e + 2x1o", gate.irreps_in), gate)


E3NN = [
    network("linear", lambda: _e3nn(False), real(2, 10), rel=1e-3),
    network("linear and gate", lambda: _e3nn(True), real(2, 10), rel=1e-3),
    network(
        "tensor product",
        lambda: of("e3nn.o3").FullyConnectedTensorProduct("2x0e + 1x1o", "1x0e + 1x1o", "2x0e + 1x1o"),
        lambda: ((torch.randn(2, 5), torch.randn(2, 4)), {}),
        rel=1e-3,
    ),
]
