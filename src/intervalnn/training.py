"""fit: the one training loop, for the gaps of an interval network and for plain models alike."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor, nn

from intervalnn import losses
from intervalnn.batches import Batches, parts
from intervalnn.engine import Engine, any_engine
from intervalnn.interval import Interval
from intervalnn.network import IntervalNetwork

__all__ = ["Epoch", "History", "fit"]

# The paper's own choices (Sec. 4 and 5).
PAPER = {"beta": 2e-3, "epochs": 100, "lr": 1e-5}
# Chosen on the 1D task, a U-Net on CT and a denoiser: see benchmarks/results/fit-*.md.
STEPS = 1500  # optimiser steps to aim at
EXPLODED = 1e4  # mean width, in mean absolute errors, from which on training has failed
TRAVEL = 40.0  # how far a balanced gap may travel: learning rate times steps, in mean absolute errors


@dataclass(frozen=True, slots=True)
class Epoch:
    """What one epoch of training measured.

    Attributes:
        loss: Mean training loss.
        coverage: Share of the training targets between the bounds; NaN for a plain model.
        width: Mean width of the bounds; NaN for a plain model.
        validation: Mean loss on the validation loader; NaN without one.
        seconds: How long it took.
    """

    loss: float
    coverage: float
    width: float
    validation: float
    seconds: float


@dataclass(slots=True)
class History:
    """What training did: its settings, its epochs, and which of them was kept."""

    settings: dict[str, Any]
    epochs: list[Epoch] = field(default_factory=list)
    best: int = -1

    def as_dict(self) -> dict[str, Any]:
        """Return the history as plain values, for a JSON file."""
        return {"settings": self.settings, "epochs": [asdict(e) for e in self.epochs], "best": self.best}


def fit(
    method: nn.Module,
    loader: Iterable[Any],
    *,
    coverage: float | None = None,
    loss: losses.Loss | None = None,
    beta: float | None = None,
    recipe: Literal["default", "paper"] = "default",
    epochs: int | None = None,
    lr: float | None = None,
    balance: bool | None = None,
    validation: Iterable[Any] | None = None,
    patience: int | None = None,
    checkpoint: str | Path | None = None,
    precision: torch.dtype | None = None,
    engine: Engine | None = None,
    seed: int = 0,
    progress: bool = True,
) -> History:
    """Train the gaps of an interval network, or the parameters of a plain model.

    ``fit(net, loader, coverage=0.9)`` is all that most need. It measures the underlying
    model's error and the sensitivity of each layer, balances the gaps, and trains them with the
    pinball loss, a rate derived from both, and cosine decay. The underlying model is only read.

    Args:
        method: An :class:`IntervalNetwork`, whose gaps are trained; or any module, whose
            parameters are trained (``loss`` is then needed).
        loader: Batches ``(x, y)`` or ``{"input", "target"}``. Use data that the underlying model
            has not seen where it fits its own training data better than new data.
        coverage: Share of the targets that the bounds are to contain.
        loss: A loss ``(output, target) -> scalar`` instead of the one that ``coverage`` or ``beta`` stands for.
        beta: Use the paper's loss (Eq. 2) with this price of width.
        recipe: ``"paper"`` is the published procedure: Eq. 2, one rate for all gaps, projection, no balance.
        epochs: How often to go through the loader; by default until there were about 1500 steps.
        lr: Learning rate; of balanced gaps in units of the output per step.
        balance: Whether to balance the gaps first; by default unless the recipe is the paper's.
        validation: Batches to measure the loss on after each epoch; the best epoch's state is restored.
        patience: Stop after this many epochs without a better validation loss.
        checkpoint: A file to write after each epoch, and to go on from if it is there.
        precision: Autocast to this dtype (plain models; gaps have ``gap_dtype``).
        engine: Where to run; by default torch's own, on as many processes as ``torchrun`` started.
        seed: Seed of the order of the batches.
        progress: Whether to show a progress bar.

    Returns:
        The settings used and what each epoch measured.
    """
    run = _Run(method, loader, any_engine(engine), seed, precision)
    run.choose(coverage, loss, beta, recipe, epochs, lr, balance)
    return run.train(validation, patience, Path(checkpoint) if checkpoint else None, progress)


class _Run:
    """One call of :func:`fit`."""

    def __init__(
        self, method: nn.Module, loader: Iterable[Any], engine: Engine, seed: int, precision: torch.dtype | None
    ) -> None:
        self.method, self.engine, self.precision = method, engine, precision
        self.net = method if isinstance(method, IntervalNetwork) else None
        self.batches = Batches(loader, seed=seed, rank=engine.rank, world=engine.world)
        model = method.model if isinstance(method, IntervalNetwork) else method
        self.device = next(model.parameters()).device
        self.loss: losses.Loss = losses.mse
        self.settings: dict[str, Any] = {"seed": seed}
        self.project = False
        self.cosine = True

    # --- what is not given ---

    def choose(
        self,
        coverage: float | None,
        loss: losses.Loss | None,
        beta: float | None,
        recipe: str,
        epochs: int | None,
        lr: float | None,
        balance: bool | None,
    ) -> None:
        """Settle every setting that was left open."""
        if recipe not in ("default", "paper"):
            raise ValueError(f"recipe must be 'default' or 'paper', got {recipe!r}")
        if sum(given is not None for given in (coverage, loss, beta)) > 1:
            raise ValueError("give one of coverage, loss and beta: each of them chooses the loss")
        paper = recipe == "paper"
        if self.net is None:
            if loss is None:
                raise ValueError("a plain model needs a loss, for example loss=losses.mse")
            self.loss, self.settings["lr"] = loss, lr or 1e-3
        else:
            self._capture()
            self.settings["mae"] = mae = self._mean_absolute_error()
            self.loss = self._interval_loss(coverage, loss, beta, paper)
            self.settings["balanced"] = balanced = balance if balance is not None else not paper
            self.project, self.cosine = paper, not paper
        self.settings["recipe"] = recipe
        steps = max(len(self.batches), 1)
        default_epochs = int(PAPER["epochs"]) if paper else min(max(math.ceil(STEPS / steps), 5), 400)
        self.settings["epochs"] = epochs if epochs is not None else default_epochs
        if self.net is not None:
            total = steps * max(self.settings["epochs"], 1)
            default = PAPER["lr"] if paper or not balanced else TRAVEL * mae / total
            self.settings["lr"] = lr if lr is not None else default

    def _capture(self) -> None:
        """Let the network see one batch, so that its layers are known."""
        assert self.net is not None
        args, target = parts(self._first(), self.device)
        with torch.no_grad():
            bounds = self.net(*args)
        if isinstance(bounds, Interval) and bounds.shape != target.shape:
            raise ValueError(
                f"the target must have shape {tuple(bounds.shape)}, like the bounds, got {tuple(target.shape)}"
            )

    def _first(self) -> Any:
        for batch, _ in self.batches.epoch(0):
            return batch
        raise ValueError("the loader is empty")

    def _interval_loss(
        self, coverage: float | None, loss: losses.Loss | None, beta: float | None, paper: bool
    ) -> losses.Loss:
        if loss is not None:
            return loss
        if beta is not None or (paper and coverage is None):
            self.settings["beta"] = beta if beta is not None else PAPER["beta"]
            return losses.interval(beta=self.settings["beta"])
        self.settings["coverage"] = 0.9 if coverage is None else coverage
        return losses.pinball(coverage=self.settings["coverage"])

    @torch.no_grad()
    def _mean_absolute_error(self, most: int = 16) -> float:
        """Return the underlying model's error on the first batches."""
        assert self.net is not None
        total = torch.zeros(2, dtype=torch.float64, device=self.device)
        for i, (batch, weight) in enumerate(self.batches.epoch(0)):
            if i == most:
                break
            args, target = parts(batch, self.device)
            output = self.net.model(*args)
            if weight and isinstance(output, Tensor):
                error = (output - target).abs()
                total += torch.stack((error.double().sum(), torch.tensor(float(error.numel()), device=self.device)))
        total = self.engine.sum(total)
        mae = float(total[0] / total[1]) if total[1] else 1.0
        if not math.isfinite(mae):
            raise ValueError("the underlying model's error is not finite: look for NaN in inputs, targets or weights")
        return max(mae, torch.finfo(torch.float32).tiny)

    # --- the loop ---

    def train(
        self, validation: Iterable[Any] | None, patience: int | None, checkpoint: Path | None, progress: bool
    ) -> History:
        """Train, and return what happened."""
        state = _State(History(self.settings), torch.optim.Adam(self.method.parameters(), lr=1.0))
        if checkpoint is not None and checkpoint.exists():
            state.load(checkpoint, self.method, self.device)
        elif self.net is not None and self.settings["balanced"]:
            args, _ = parts(self._first(), self.device)
            self.net.balance(*args)
        module = self.engine.wrap(self.method)
        was_training = self.method.training
        with _Bar(self.settings["epochs"], progress and self.engine.rank == 0) as bar:
            for number in range(len(state.history.epochs), self.settings["epochs"]):
                self.method.train()
                epoch = self._epoch(number, module, state.optimizer, validation)
                state.add(epoch, self.method)
                bar.show(number + 1, epoch)
                if checkpoint is not None and self.engine.rank == 0:
                    state.save(checkpoint, self.method)
                if patience is not None and number - state.history.best >= patience:
                    break
        self.engine.barrier()
        state.restore(self.method)
        self.method.train(was_training)
        return state.history

    def _epoch(
        self, number: int, module: nn.Module, optimizer: torch.optim.Optimizer, validation: Iterable[Any] | None
    ) -> Epoch:
        start, tally = time.perf_counter(), _Tally(self.device)
        steps = len(self.batches)
        for step, (batch, weight) in enumerate(self.batches.epoch(number)):
            for group in optimizer.param_groups:
                group["lr"] = self._rate(number * steps + step)
            args, target = parts(batch, self.device)
            with torch.autocast(self.device.type, self.precision, enabled=self.precision is not None):
                output = module(*args)
            loss = self.loss(output, target)
            optimizer.zero_grad(set_to_none=True)
            self.engine.backward(loss * weight)
            optimizer.step()
            if self.project:
                with torch.no_grad():
                    for gap in self.method.parameters():
                        gap.clamp_(min=0.0)
            tally.add(loss.detach(), output, target, weight)
        found = tally.result(self.engine)
        self._refuse_explosion(found, number)
        valid = math.nan if validation is None else self._validate(validation)
        return Epoch(*found, valid, time.perf_counter() - start)

    def _rate(self, step: int) -> float:
        rate: float = self.settings["lr"]
        if not self.cosine:
            return rate
        total = len(self.batches) * max(self.settings["epochs"], 1)
        return rate * (1 + math.cos(math.pi * step / total)) / 2

    @torch.no_grad()
    def _validate(self, validation: Iterable[Any]) -> float:
        self.method.eval()
        tally = _Tally(self.device)
        shares = Batches(validation, rank=self.engine.rank, world=self.engine.world)
        for batch, weight in shares.epoch(0):
            args, target = parts(batch, self.device)
            output = self.method(*args)
            tally.add(self.loss(output, target), output, target, weight)
        return tally.result(self.engine)[0]

    def _refuse_explosion(self, found: tuple[float, float, float], number: int) -> None:
        loss, _, width = found
        exploded = self.net is not None and width > EXPLODED * self.settings["mae"]
        if math.isfinite(loss) and not exploded:
            return
        what = f"the mean width grew to {width:.3g}" if exploded else f"the loss became {loss}"
        hint = "look for NaN in inputs and targets, or lower lr"
        if self.net is not None:
            args, _ = parts(self._first(), self.device)
            worst = max(self.net.explain(*args).rows, key=lambda row: row.share)
            hint = (
                f"'{worst.name}' opens the bounds most ({worst.share:.0%} of the width). Try a lower lr, fewer "
                "layers (layers=4), balance=True, or a cap on the gaps"
            )
        raise FloatingPointError(f"in epoch {number + 1} {what} (lr {self.settings['lr']:.3g}); {hint}")


class _Tally:
    """Sums of what an epoch measures, on the device until its end."""

    def __init__(self, device: torch.device) -> None:
        self.sums = torch.zeros(5, dtype=torch.float64, device=device)  # loss, batches, inside, width, components

    @torch.no_grad()
    def add(self, loss: Tensor, output: Any, target: Tensor, weight: float) -> None:
        zero = torch.zeros((), dtype=torch.float64, device=self.sums.device)
        found = [loss.double() * weight, zero + 1, zero, zero, zero]
        if isinstance(output, Interval) and weight:
            found[2:] = [output.contains(target).sum().double(), output.width.double().sum(), zero + target.numel()]
        self.sums += torch.stack(found)

    def result(self, engine: Engine) -> tuple[float, float, float]:
        """Return mean loss, coverage and mean width over all processes."""
        loss, batches, inside, width, components = engine.sum(self.sums).tolist()
        if not batches:
            raise ValueError("the loader is empty")
        return loss / batches, *((inside / components, width / components) if components else (math.nan, math.nan))


class _State:
    """What a run needs to go on after it was stopped."""

    def __init__(self, history: History, optimizer: torch.optim.Optimizer) -> None:
        self.history, self.optimizer = history, optimizer
        self.best: dict[str, Tensor] | None = None

    def add(self, epoch: Epoch, method: nn.Module) -> None:
        """Take note of an epoch, and of the state after it if it is the best."""
        self.history.epochs.append(epoch)
        known = [e.validation for e in self.history.epochs]
        if math.isnan(epoch.validation):
            self.history.best = len(known) - 1
        elif epoch.validation <= min(known):
            self.history.best = len(known) - 1
            self.best = {name: value.detach().clone() for name, value in method.state_dict().items()}

    def restore(self, method: nn.Module) -> None:
        """Put the best epoch's state back."""
        if self.best is not None:
            method.load_state_dict(self.best)

    def save(self, path: Path, method: nn.Module) -> None:
        """Write all of it, whole or not at all."""
        content = {
            "history": self.history.as_dict(),
            "method": method.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "best": self.best,
            "random": torch.get_rng_state(),
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(path.name + ".part")
        torch.save(content, temporary)
        temporary.replace(path)

    def load(self, path: Path, method: nn.Module, device: torch.device) -> None:
        """Go on from a file that :meth:`save` wrote for the same settings."""
        try:
            content = torch.load(path, weights_only=True, map_location=device)
            saved = content["history"]
        except Exception as error:
            raise ValueError(f"{path} is not a checkpoint that fit has written; move it away to start anew") from error
        for name, value in self.history.settings.items():
            if saved["settings"].get(name) != value:
                raise ValueError(
                    f"{path} was written with {name}={saved['settings'].get(name)}, now it is {value}; "
                    "use the same settings to go on, or another file to start anew"
                )
        self.history.epochs = [Epoch(**epoch) for epoch in saved["epochs"]]
        self.history.best = saved["best"]
        method.load_state_dict(content["method"])
        self.optimizer.load_state_dict(content["optimizer"])
        self.best = content["best"]
        torch.set_rng_state(content["random"].cpu())


class _Bar:
    """A progress bar with loss, coverage and width, or nothing."""

    def __init__(self, epochs: int, shown: bool) -> None:
        self.epochs = epochs
        columns = (TextColumn("fit"), BarColumn(), TextColumn("{task.completed}/{task.total} {task.fields[text]}"))
        self.bar = Progress(*columns, TimeRemainingColumn(), disable=not shown)
        self.task = self.bar.add_task("fit", total=epochs, text="")

    def __enter__(self) -> _Bar:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def show(self, done: int, epoch: Epoch) -> None:
        """Show the numbers of the last epoch."""
        text = f"loss {epoch.loss:.4g}"
        if not math.isnan(epoch.coverage):
            text += f" coverage {epoch.coverage:.3f} width {epoch.width:.4g}"
        if not math.isnan(epoch.validation):
            text += f" validation {epoch.validation:.4g}"
        self.bar.update(self.task, completed=done, text=text)
