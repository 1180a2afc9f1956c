"""One process of a training run, for tests that start several of them or kill one.

python fit_worker.py OUT SETTINGS, where SETTINGS is JSON for :func:`run`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import intervalnn as inn
from intervalnn.calibration.calibration import calibrate
from intervalnn.training.engine import Engine, FabricEngine, TorchEngine


def task() -> tuple[nn.Module, TensorDataset]:
    """A tiny network with dropout, in double precision, so that rounding is told from errors."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(41, 1, 8, dtype=torch.float64, generator=generator)  # in batches of 10 the last one has 1
    y = x.flip(-1) + 0.3 * torch.randn(x.shape, dtype=torch.float64, generator=generator)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layers = (nn.Conv1d(1, 4, 3, padding=1), nn.ReLU(), nn.Dropout(), nn.Conv1d(4, 1, 1))
        return nn.Sequential(*layers).double().eval(), TensorDataset(x, y)


class Slow(list[Any]):
    """Batches that take their time, so that there is one to kill the process, and for ever the last time."""

    pause = 0.0
    times = 0

    def __iter__(self) -> Iterator[Any]:
        self.times -= 1
        time.sleep(self.pause if self.times else 1000 * self.pause)
        return super().__iter__()


def run(
    engine: Engine,
    *,
    plain: bool = False,
    scout: bool = False,
    epochs: int = 4,
    checkpoint: str | None = None,
    pause: float = 0.0,
    die_at_save: int | None = None,
) -> dict[str, Any]:
    """Fit and calibrate; return all that must come out the same."""
    model, data = task()
    method = model if plain else inn.IntervalNetwork(model, layers=None if scout else "all")
    loader = DataLoader(data, batch_size=10, shuffle=True)
    options: dict[str, Any] = {"loss": inn.losses.mse} if plain else {"coverage": 0.9}
    if checkpoint is not None:
        options["checkpoint"] = f"{checkpoint}.{engine.rank}"  # on a disk of its own
    held_out: Any = None if scout else loader  # fit itself holds some out where a scout has few targets
    if engine.world == 1 and not scout:
        held_out = Slow(DataLoader(data, batch_size=10))
        held_out.pause, held_out.times = pause, epochs
    if die_at_save is not None:
        die_before_rename(die_at_save)
    history = inn.fit(method, loader, epochs=epochs, validation=held_out, engine=engine, progress=False, **options)
    numbers = [(e.loss, e.coverage, e.width, e.validation) for e in history.epochs]
    found = {"gaps": method.state_dict(), "numbers": numbers, "best": history.best, "settings": history.settings}
    if isinstance(method, inn.IntervalNetwork):
        batches = [tuple(batch) for batch in DataLoader(data, batch_size=1)]
        calibration = calibrate(method, batches[engine.rank :: engine.world], coverage=0.8)
        found |= {"factors": calibration.factors, "images": calibration.images}
    return found


def sharded(engine: Engine) -> dict[str, Any]:
    """Train in a plain loop, with gaps and moments spread over the processes (FSDP2)."""
    model, data = task()
    x, y = (tensor[:10] for tensor in data.tensors)
    net = inn.IntervalNetwork(model, layers="all")
    net.balance(x)
    if engine.world > 1:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        fully_shard(net, mesh=init_device_mesh("cpu", (engine.world,)))
    optimizer, loss = torch.optim.Adam(net.parameters(), lr=0.1), inn.losses.pinball(coverage=0.9)
    for _ in range(5):
        optimizer.zero_grad()
        loss(net(x[engine.rank :: engine.world]), y[engine.rank :: engine.world]).backward()
        optimizer.step()
        with torch.no_grad():
            for gap in net.parameters():
                gap.clamp_(min=0.0)
    held = sum(getattr(gap, "to_local", lambda gap=gap: gap)().numel() for gap in net.parameters())
    gaps = {name: getattr(gap, "full_tensor", lambda gap=gap: gap)().detach() for name, gap in net.named_parameters()}
    return {"gaps": gaps, "held": held}


def die_before_rename(count: int) -> None:
    """Have this process killed when a checkpoint is written, for the ``count``-th time, but not in its place yet."""
    replace, seen = Path.replace, []

    def dying(self: Path, target: Any) -> Path:
        seen.append(target)
        if len(seen) == count:
            os.kill(os.getpid(), signal.SIGKILL)
        return replace(self, target)

    Path.replace = dying  # type: ignore[method-assign]


def main() -> None:
    torch.set_num_threads(1)
    out, settings = sys.argv[1], json.loads(sys.argv[2])
    engine: Engine
    if settings.pop("fabric", False):
        from lightning_fabric import Fabric  # type: ignore[import-not-found]

        world = int(os.environ.get("WORLD_SIZE", "1"))
        strategy = "ddp_find_unused_parameters_true" if world > 1 else "auto"
        fabric = Fabric(accelerator="cpu", strategy=strategy, devices=world)
        fabric.launch()
        engine = FabricEngine(fabric)
    else:
        engine = TorchEngine()
    found = sharded(engine) if settings.pop("sharded", False) else run(engine, **settings)
    torch.save(found, f"{out}.{engine.rank}")
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
