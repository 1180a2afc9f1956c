"""What is kept between calls: never out of date, whoever changes the weights and how, and never without end."""

from __future__ import annotations

import copy
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, vector_to_parameters

import intervalnn as inn
from intervalnn.network import programs, search
from intervalnn.network.capture import kept
from intervalnn.network.capture.kept import Kept
from intervalnn.network.programs import PREPARED, PROGRAMS, SIZES, Programs, Recent

Net = inn.IntervalNetwork
X = torch.randn(3, 1, 8, 8, generator=torch.Generator().manual_seed(0))


class Model(nn.Module):
    """A convolution, statistics, a layer that is square and one whose weight is made of others."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.square = nn.Linear(8, 8)
        self.made = parametrizations.weight_norm(nn.Linear(8, 2))
        self.register_buffer("mask", torch.ones(8))

    def forward(self, x: Tensor) -> Tensor:
        return self.made(self.square(self.norm(self.conv(x)).relu()).relu() * self.mask)  # type: ignore[no-any-return]


def make(**options: Any) -> Net:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = Net(Model().eval(), **({"layers": "all"} | options))
        with torch.no_grad():
            for gap in net.parameters():
                gap.uniform_(0.001, 0.01)
    return net


def fresh(net: Net) -> Net:
    """Return a network that has nothing to remember, around copies of the same numbers."""
    other = Net(copy.deepcopy(net.model), layers=net.layers, kind=net.kind, cap=net.cap)
    other.load_state_dict(copy.deepcopy(net.state_dict()))
    return other


def is_up_to_date(net: Net, x: Tensor = X) -> bool:
    """Say whether point and bounds are those of the weights as they are now."""
    theirs = net(x)  # of which gradients may be asked, so nothing that was prepared is taken
    with torch.no_grad():
        ours = net(x)
        point = torch.allclose(ours.point, net.model(x), rtol=1e-5, atol=1e-6)  # torch takes weight norm apart
    parts = ((getattr(ours, name), getattr(theirs, name)) for name in ("point", "below", "above"))
    return point and all(torch.equal(mine, other) for mine, other in parts)


# --- what torch does not see ---


def in_inference_mode(net: Net) -> None:
    weight = net.model.conv.weight
    net.model.conv.weight = nn.Parameter(weight.detach().clone(), requires_grad=False)
    net(X)
    with torch.inference_mode():
        net.model.conv.weight.copy_(2 * weight)


def by_aliased_optimiser(net: Net, **options: Any) -> None:
    aliases = [nn.Parameter(p.data) for p in net.model.parameters()]
    for alias in aliases:
        alias.grad = torch.ones_like(alias)
    torch.optim.Adam(aliases, lr=0.1, **options).step()


def by_swapping(net: Net) -> None:
    for p in net.model.parameters():  # as averages of weights are put in the place of these, and back
        p.data, _ = 1.5 * p.data, p.data


def by_numpy(tensor: Tensor) -> None:
    tensor.detach().numpy()[...] *= 2


def set_data(tensor: Tensor, value: Tensor) -> None:
    tensor.data = value


UNSEEN: dict[str, Callable[[Net], Any]] = {
    "weight.data.mul_": lambda net: net.model.conv.weight.data.mul_(2),
    "one entry of weight.data": lambda net: net.model.square.weight.data.view(-1)[7:8].add_(0.5),
    "one bit of weight.data": lambda net: (
        net.model.conv.weight.data.view(torch.int32).view(-1)[3:4].bitwise_xor_(1 << 22)
    ),
    "weight.data, signs": lambda net: net.model.square.weight.data.neg_(),
    "weight.data, turned round": lambda net: net.model.square.weight.data.copy_(net.model.square.weight.data.flip(0)),
    "bias.data": lambda net: net.model.conv.bias.data.add_(1),
    "other weight.data": lambda net: set_data(net.model.conv.weight, 2 * net.model.conv.weight.data),
    "weight.data transposed": lambda net: set_data(net.model.square.weight, net.model.square.weight.data.t()),
    "a weight that others are made of": lambda net: net.model.made.parametrizations.weight.original0.data.mul_(2),
    "NumPy": lambda net: by_numpy(net.model.conv.weight),
    "storage": lambda net: net.model.conv.weight.untyped_storage().copy_((2 * net.model.conv.weight).untyped_storage()),
    "set_": lambda net: (
        net.model.conv.weight.detach().set_(2 * net.model.conv.weight.detach()) is None
        or by_numpy(net.model.conv.weight)
    ),
    "foreach": lambda net: torch._foreach_mul_([p.data for p in net.model.parameters()], 2.0),
    "an optimiser of .data": by_aliased_optimiser,
    "a fused optimiser of .data": lambda net: by_aliased_optimiser(net, fused=True),
    "a swap of .data": by_swapping,
    "inference mode": in_inference_mode,
    "vector_to_parameters": lambda net: vector_to_parameters(
        torch.cat([p.data.flatten() for p in net.model.parameters()]) * 2, net.model.parameters()
    ),
    "statistics": lambda net: net.model.norm.running_mean.data.add_(1),
    "other statistics": lambda net: set_data(net.model.norm.running_var, 2 * net.model.norm.running_var),
    "a buffer": lambda net: net.model.mask.data[3:].zero_(),
    "gaps": lambda net: net.gaps.get_submodule("conv.weight").below.data.mul_(2),
    "gaps by NumPy": lambda net: by_numpy(net.gaps.get_submodule("square.bias").above),
    "other gaps": lambda net: set_data(net.gaps.get_submodule("square.weight").above, torch.ones(8, 8)),
    "scale of gaps": lambda net: net.gaps.get_submodule("conv.weight").scale.data.mul_(3),
    "gaps by an optimiser": lambda net: torch._foreach_add_([p.data for p in net.parameters()], 0.1),
}


@pytest.mark.rotating
@pytest.mark.parametrize("change", UNSEEN)
def test_bounds_are_those_of_the_weights_that_the_point_comes_from(change: str) -> None:
    net = make()
    with torch.no_grad():
        before = net(X)

        UNSEEN[change](net)

        after = net(X)
    assert not (torch.equal(before.above, after.above) and torch.equal(before.below, after.below))
    assert is_up_to_date(net)


@pytest.mark.rotating
@pytest.mark.parametrize("options", [{"kind": "input"}, {"kind": "symmetric", "cap": 0.5}], ids=str)
def test_gaps_relative_to_weights_follow_them(options: dict[str, Any]) -> None:
    net = make(**options)
    net.predict(X)

    net.model.square.weight.data.mul_(3)

    assert is_up_to_date(net)


@pytest.mark.rotating
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
def test_changes_are_seen_in_every_dtype(dtype: torch.dtype) -> None:
    model = nn.Sequential(nn.Linear(3, 3, dtype=dtype), nn.Linear(3, 1, dtype=dtype))
    net = inn.IntervalNetwork(model.eval(), layers="all")
    for name in net.names:
        net.set_gaps(name, 0.01, 0.02)
    x = torch.ones(2, 3, dtype=dtype)
    before = net.predict(x)

    model[0].weight.data[1, 2] *= 3

    after = net.predict(x)
    assert torch.equal(after.point, model(x).detach())
    assert not torch.equal(before.above, after.above)


def test_a_weight_in_a_mapped_file_may_be_written_by_anyone(tmp_path: Path) -> None:
    mapped = np.memmap(tmp_path / "weight", dtype=np.float32, mode="w+", shape=(2, 3))
    mapped[:] = 1.0
    model = nn.Linear(3, 2).eval()
    model.weight = nn.Parameter(torch.from_numpy(mapped))
    net = inn.IntervalNetwork(model, layers="all")
    net.set_gaps("weight", 0.1, 0.1)
    x = inn.Interval(*(torch.ones(1, 3),) * 3)
    narrow = net.predict(x).score

    np.memmap(tmp_path / "weight", dtype=np.float32, mode="r+", shape=(2, 3))[:] = 5.0

    assert (net.predict(x).score > narrow + 10).all()


def test_a_weight_in_shared_memory_may_be_written_by_another_process() -> None:
    net = make()
    net.model.share_memory()
    before = net.predict(X)
    alias = torch.multiprocessing.reductions.rebuild_storage_filename  # what the other process calls
    handle = net.model.conv.weight.untyped_storage()._share_filename_cpu_()
    other = torch.tensor([], dtype=torch.float32).set_(alias(torch.UntypedStorage, *handle), 0, (4, 1, 3, 3))

    other.mul_(2)

    assert is_up_to_date(net) and not torch.equal(net.predict(X).score, before.score)


def test_what_becomes_not_a_number_and_back_is_seen() -> None:
    net = make()
    weight = net.model.conv.weight.data
    right, value = net.predict(X), weight[0, 0, 0, 0].item()

    weight[0, 0, 0, 0] = torch.nan
    assert net.predict(X).score.isinf().any()
    weight[0, 0, 0, 0] = value

    assert torch.equal(net.predict(X).above, right.above)


def test_a_point_prefix_is_not_looked_through() -> None:
    net = make(layers=["made"])
    net.predict(X)

    (plan,) = net._search.programs._plans
    looked_at = sum(x.numel() for x, _ in plan.prepared.made_of.here)
    net.model.conv.weight.data.mul_(2)

    assert looked_at < 80 < net.model.square.weight.numel() + net.model.conv.weight.numel()
    assert is_up_to_date(net)


def test_nothing_is_prepared_anew_while_no_number_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    net, calls = make(), []
    net.predict(X)
    (plan,) = net._search.programs._plans
    forward = plan.lifted.prepare.forward
    monkeypatch.setattr(plan.lifted.prepare, "forward", lambda *args: calls.append(1) or forward(*args))

    net.model.conv.weight.data.mul_(1)
    net.predict(X)
    assert not calls
    net.model.conv.weight.data.mul_(2)
    net.predict(X)
    assert calls == [1]


# --- where nobody may wait for the answer ---


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat the CPU as a device that must not be waited for."""
    monkeypatch.setattr(kept, "_is_here", lambda device: False)


FEW = ["weight.data.mul_", "a weight that others are made of", "foreach", "inference mode", "statistics", "gaps"]


@pytest.mark.rotating
@pytest.mark.parametrize("change", FEW)
def test_bounds_of_other_weights_than_the_points_are_endless_on_a_device(far: None, change: str) -> None:
    net = make()
    with torch.no_grad():
        net(X)

        UNSEEN[change](net)
        first, second = net(X), net(X)

    assert first.width.isinf().all() or torch.equal(first.width, second.width)
    assert (first.point.isnan() | (first.point == second.point)).all()  # NaN, as some weights are made of others
    assert second.width.isfinite().all() and is_up_to_date(net)


def test_the_point_is_the_models_own_on_a_device_where_no_weight_is_made_of_others(far: None) -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)).eval()
    net = inn.IntervalNetwork(model, layers="all")
    net.predict(X)

    model[0].weight.data.mul_(2)

    first, second = net.predict(X), net.predict(X)
    assert first.score.isinf().all() and second.score.isfinite().all()
    assert torch.equal(first.point, model(X)) and torch.equal(second.point, model(X))


def test_bounds_of_unchanged_weights_are_as_they_are_on_a_device(far: None) -> None:
    net = make()

    first, second = net.predict(X), net.predict(X)

    assert first.score.isfinite().all() and torch.equal(first.score, second.score)
    assert is_up_to_date(net)


@contextmanager
def not_waiting() -> Iterator[None]:
    """Fail where something waits for the GPU."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Synchronization debug mode is a prototype", UserWarning)
            torch.cuda.set_sync_debug_mode("error")
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.rotating
@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:TensorFloat32 tensor cores")
@pytest.mark.parametrize("compiled", [False, True])
def test_a_gpu_is_not_waited_for_and_never_gives_bounds_of_other_weights(compiled: bool) -> None:
    net, x = make().to("cuda"), X.cuda()
    if compiled:
        net.compile()
    right = net.predict(x)
    net.model.conv.weight.data.mul_(2)
    torch.cuda.synchronize()

    with not_waiting():
        first = net.predict(x)
    torch.cuda.synchronize()
    second = net.predict(x)

    assert right.score.isfinite().all() and first.score.isinf().all() and second.score.isfinite().all()
    wanted = fresh(net).to("cuda").predict(x)
    torch.testing.assert_close(second.above, wanted.above, rtol=1e-3, atol=1e-5)


# --- Kept by itself ---


@pytest.mark.rotating
@pytest.mark.parametrize(
    "x",
    [
        torch.zeros(5),
        torch.zeros(()),
        torch.zeros(0, 3),
        torch.zeros(3, dtype=torch.bool),
        torch.zeros(7, dtype=torch.int8),
        torch.zeros(3, 5, dtype=torch.bfloat16).t(),
        torch.zeros(2, 4, 3, 3).contiguous(memory_format=torch.channels_last),
        torch.zeros(9)[1::2],
        torch.zeros(9)[1:],
        torch.zeros(4, 6, dtype=torch.complex128)[:, ::2],
        torch.zeros(1, 3).expand(4, 3),
    ],
    ids=lambda x: f"{tuple(x.shape)} {x.dtype} {x.stride()}",
)
def test_every_entry_of_every_layout_is_compared(x: Tensor) -> None:
    seen = Kept([x])
    assert seen.are([x])

    for place in range(x.numel() if 0 not in x.stride() else 3):
        entry = x.data[np.unravel_index(place, x.shape)] if x.dim() else x.data
        before = entry.clone()
        entry.fill_(1)
        assert not seen.are([x]), place
        entry.copy_(before)
        assert seen.are([x])


def test_another_tensor_with_the_same_numbers_is_another() -> None:
    x = torch.zeros(3)

    assert not Kept([x]).are([x.clone()])
    assert not Kept([x], only_read=[x]).are([x], only_read=[x.clone()])


def test_a_tensor_without_memory_of_its_own_is_another() -> None:
    x = torch.zeros(3, 2)
    seen = Kept([x])

    def look(y: Tensor) -> Tensor:
        assert not seen.are([y])
        with pytest.raises(RuntimeError):
            Kept([y])
        return y

    torch.func.vmap(look)(x)


def test_numbers_that_are_only_read_may_change() -> None:
    x, y = torch.zeros(3), torch.zeros(3)
    seen = Kept([x], only_read=[y])

    y.data.add_(1)

    assert seen.are([x], only_read=[y])


def test_zeros_of_either_sign_differ() -> None:
    x = torch.zeros(3)
    seen = Kept([x])

    x.data.neg_()

    assert not seen.are([x])


# --- without end ---


@pytest.mark.rotating
def test_ever_new_sizes_leave_no_more_than_so_much_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "SIZES", 16)
    net = make()

    for size in range(1, 40):
        x = X[:1, :, :1, :1].expand(2, 1, size, 8)
        assert torch.allclose(net.predict(x).point, net.model(x), atol=1e-6)

    assert is_up_to_date(net, x)
    assert len(net._search.programs) <= 3 and len(net._search.programs._sizes) <= 16 < 40 < SIZES


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x: Tensor, factor: float) -> Tensor:
        return self.layer(x) * factor  # type: ignore[no-any-return]


@pytest.mark.rotating
def test_ever_new_arguments_leave_no_more_than_so_much_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "PROGRAMS", 5)
    monkeypatch.setattr(programs, "PREPARED", 2)
    net, x = inn.IntervalNetwork(Scaled().eval(), layers="all"), torch.ones(2, 2)
    net.compile(backend="eager")

    for factor in (*range(9), 0, 8):
        assert torch.equal(net.predict(x, float(factor)).point, net.model(x, float(factor)))

    assert len(net._search.programs) == 5 < PROGRAMS
    assert sum(plan.prepared is not None for plan in net._search.programs._plans) == 2 < PREPARED
    assert len(net._search.programs._sizes) <= 5


def test_what_is_used_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "PROGRAMS", 3)
    net, x = inn.IntervalNetwork(Scaled().eval(), layers="all"), torch.ones(2, 2)
    net(x, 1.0)
    (often,) = net._search.programs._plans

    for factor in range(2, 7):
        net(x, float(factor))
        net(x, 1.0)

    assert often in net._search.programs._plans


def test_recent_things_are_made_once_by_one_thread() -> None:
    squares, made, ready = Recent[int, int](3), [], threading.Barrier(4)

    def square(n: int) -> int:
        made.append(n)
        return n * n

    def work() -> None:
        ready.wait()
        assert [squares.get(n, square) for n in (1, 2, 3)] == [1, 4, 9]

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert sorted(made) == [1, 2, 3] and len(squares) == 3


def test_what_is_captured_while_all_is_forgotten_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    net = make()
    capture = search.capture

    def late(*args: Any) -> Any:
        program = capture(*args)
        net.refresh()  # as another thread may, that has changed the model
        return program

    monkeypatch.setattr(search, "capture", late)
    net.predict(X)

    assert not len(net._search.programs) and len(Programs()) == 0
