"""fit: the one training loop, for the gaps of an interval network and for plain models alike."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import torch
import torch.utils._pytree as pytree
from torch import Tensor, nn

from intervalnn.calibration.guarantee import beta_for_coverage
from intervalnn.data import loading as pairs
from intervalnn.interval import Interval
from intervalnn.network.network import IntervalNetwork
from intervalnn.training import losses
from intervalnn.training.batches import Batches, parts
from intervalnn.training.engine import Engine, any_engine
from intervalnn.training.history import Epoch, History, State
from intervalnn.training.optimiser import Proportional
from intervalnn.training.progress import Bar

__all__ = ["Epoch", "History", "Learner", "fit"]

# The paper's own choices (Sec. 4 and 5).
PAPER = {"beta": 2e-3, "epochs": 100, "lr": 1e-5}
STEPS = 1500  # optimiser steps to aim at
GROWTH = 150.0  # learning rate times steps: how far the logarithm of a gap may travel, twice over
FASTEST = 0.3  # how far in one step, where there are but few
OPENING = 0.5  # width of the bounds to start from, in mean absolute errors
LEAST = 1e-4  # the smallest gap, in what it starts from
EXPLODED = 1e4  # mean width, in mean absolute errors, from which on training has failed
LOOK = 50  # steps after which to look whether it has, and to show the numbers
SAMPLE = 16  # batches on which the underlying model's error is measured


@runtime_checkable
class Learner(Protocol):
    """A module that knows how to be trained, such as a baseline: :func:`fit` needs no loss for it.

    It may have ``paper``, a mapping with the ``"epochs"`` and the ``"lr"`` of ``recipe="paper"``.
    """

    def point(self, *args: Any) -> Tensor:
        """Return what the underlying model predicts."""
        ...

    def start_fit(self, *, coverage: float | None, mae: float) -> losses.Loss:
        """Get ready to be trained, given the underlying model's mean absolute error, and return the loss."""
        ...


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
    recompute: bool = False,
    engine: Engine | None = None,
    seed: int = 0,
    progress: bool = True,
) -> History:
    """Train the gaps of an interval network, or the parameters of a plain model.

    ``fit(net, loader, coverage=0.9)`` is all that most need. It measures the underlying
    model's error and the sensitivity of each layer, opens the gaps so that every layer has an equal share
    in a small width, and trains them with the pinball loss by steps in proportion to their size
    (:class:`intervalnn.training.optimiser.Proportional`), with cosine decay. The underlying model is only read.
    A calibration and offsets that the network has are dropped, since they were made for other bounds.
    After ``net.compile()`` every step is a compiled one, which pays in long runs on a GPU.

    Args:
        method: An :class:`IntervalNetwork`, whose gaps are trained; or any module, whose
            parameters are trained: a baseline, which knows its loss, or a plain one, which needs ``loss``.
        loader: Batches ``(x, y)`` or ``{"input", "target"}``. Use data that the underlying model
            has not seen where it fits its own training data better than new data.
        coverage: Share of the targets that the bounds are to contain; 0.9 by default.
        loss: A loss ``(output, target) -> scalar`` instead of the one that ``coverage`` or ``beta``
            stands for: a mean over the samples.
        beta: Use the paper's loss (Eq. 2) with this price of width.
        recipe: ``"paper"`` is the published procedure: Eq. 2, one rate for all gaps, projection, no
            balance, no decay. Given a ``coverage`` it takes the ``beta`` that has it for Laplace errors.
        epochs: How often to go through the loader; by default until there were about 1500 steps, 5 to 400 times.
        lr: Learning rate: of balanced gaps the share by which one may grow or shrink in a step, else Adam's.
        balance: Whether to balance the gaps, and take steps in proportion; by default unless the recipe is
            the paper's.
        validation: Batches to measure the loss on after each epoch; the best epoch's state is restored.
        patience: Stop after this many epochs without a better validation loss.
        checkpoint: A file to write after each epoch, and to go on from if it is there.
        precision: Autocast to this dtype (plain models; an interval network has ``gap_dtype``).
        recompute: Keep less for the backward pass and compute it again, for large inputs (interval networks).
        engine: Where to run; by default torch's own, on as many processes as ``torchrun`` started.
        seed: Seed of the order of the batches, and of what is random in the model.
        progress: Whether to show a progress bar.

    Returns:
        The settings used and what each epoch measured.

    Raises:
        FloatingPointError: If the loss is no longer finite or the bounds explode; it says where and what to try.
    """
    if patience is not None and validation is None:
        raise ValueError("patience waits for a better validation loss; give validation, or leave it out")
    if patience is not None and patience < 1:
        raise ValueError(f"patience must be at least 1, got {patience}")
    if validation is not None:
        pairs.batches(validation)
    run = _Run(method, loader, any_engine(engine), seed, precision)
    with run.recomputing() if recompute else nullcontext():
        run.choose(coverage, loss, beta, recipe, epochs, lr, balance)
        return run.train(validation, patience, None if checkpoint is None else Path(checkpoint), progress)


class _Run:
    """One call of :func:`fit`."""

    def __init__(
        self, method: nn.Module, loader: Iterable[Any], engine: Engine, seed: int, precision: torch.dtype | None
    ) -> None:
        if not isinstance(method, nn.Module):
            raise TypeError(f"fit trains an IntervalNetwork or a module, got a {type(method).__name__}")
        self.method, self.engine, self.precision, self.seed = method, engine, precision, seed
        self.net = method if isinstance(method, IntervalNetwork) else None
        if self.net is not None and precision is not None:
            raise ValueError(
                "precision would change the prediction of an interval network; "
                "for fast bounds use IntervalNetwork(model, gap_dtype=torch.bfloat16)"
            )
        self.batches = Batches(pairs.batches(loader), seed=seed, rank=engine.rank, world=engine.world)
        first = next((self.net.model if self.net else method).parameters(), None)
        if first is None:
            raise ValueError(f"{type(method).__name__} has no parameters to train; calibrate it, if it is a method")
        self.device = first.device
        if self.device.type == "meta":
            raise ValueError("the model is on the meta device, where there are no numbers; load its weights first")
        self.loss: losses.Loss = losses.mse
        self.settings: dict[str, Any] = {"seed": seed}
        self.paper = False

    def recomputing(self) -> AbstractContextManager[None]:
        if self.net is None:
            raise ValueError("recompute is for interval networks; in a plain model use torch.utils.checkpoint")
        return self.net.recomputing()

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
        if epochs is not None and epochs < 1:
            raise ValueError(f"epochs must be at least 1, got {epochs}")
        if lr is not None and not 0 < lr < math.inf:
            raise ValueError(f"lr must be positive, got {lr}")
        self.paper = recipe == "paper"
        if not len(self.batches):
            raise ValueError("the loader is empty: it must yield at least one batch")
        steps = len(self.batches)
        if epochs is None:
            epochs = int(self._paper("epochs", 100)) if self.paper else min(max(math.ceil(STEPS / steps), 5), 400)
        default_lr = self._paper("lr", 1e-3) if self.paper else 1e-3
        if self.net is None:
            self.loss = self._own_loss(coverage, loss, beta)
        else:
            self.net.calibration = self.net.offsets = None
            mae = self._look_at_the_model(self.net.model, first=self.net)
            self.loss = self._interval_loss(coverage, loss, beta, mae)
            balanced = not self.paper if balance is None else balance
            default_lr = min(GROWTH / (steps * epochs), FASTEST) if balanced else PAPER["lr"]
            self.settings |= {"mae": mae, "balanced": balanced}
        name = getattr(self.loss, "__qualname__", type(self.loss).__name__).partition(".")[0]
        self.settings |= {"recipe": recipe, "loss": name, "epochs": epochs, "lr": default_lr if lr is None else lr}

    def _paper(self, name: str, otherwise: float) -> float:
        """Return a published setting of the method that is trained."""
        published: dict[str, float] = PAPER if self.net is not None else getattr(self.method, "paper", {})
        return published.get(name, otherwise)

    def _own_loss(self, coverage: float | None, loss: losses.Loss | None, beta: float | None) -> losses.Loss:
        """Return the loss of a module that is no interval network."""
        if not isinstance(self.method, Learner):
            if loss is None:
                raise ValueError("a plain model needs a loss, for example loss=losses.mse")
            return loss
        if beta is not None:
            raise ValueError("beta is for interval networks; give this method a coverage, or loss=losses.interval(...)")
        mae = self._look_at_the_model(self.method.point)
        own = self.method.start_fit(coverage=coverage, mae=mae)
        if loss is None and hasattr(self.method, "coverage"):
            self.settings["coverage"] = self.method.coverage
        return own if loss is None else loss

    def _interval_loss(
        self, coverage: float | None, loss: losses.Loss | None, beta: float | None, mae: float
    ) -> losses.Loss:
        if loss is not None:
            return loss
        if self.paper and coverage is not None:
            beta = beta_for_coverage(coverage, mae)
        elif self.paper and beta is None:
            beta = PAPER["beta"]
        if beta is not None:
            self.settings["beta"] = beta
            return losses.interval(beta=beta)
        self.settings["coverage"] = 0.9 if coverage is None else coverage
        return losses.pinball(coverage=self.settings["coverage"])

    @torch.no_grad()
    def _look_at_the_model(self, model: Callable[..., Any], first: Callable[..., Any] | None = None) -> float:
        """Return the underlying model's error; let ``first`` see a batch before, so that its layers are known."""
        total = torch.zeros(2, dtype=torch.float64, device=self.device)
        for i, (batch, weight) in enumerate(self.batches.epoch(0)):
            args, target = parts(batch, self.device)
            output = first(*args) if first is not None and i == 0 else model(*args)
            output = output.point if isinstance(output, Interval) else output
            if not isinstance(output, Tensor):
                return 1.0  # of several outputs, of which the loss alone knows what they are
            if output.shape != target.shape:
                raise ValueError(
                    f"the target must have shape {tuple(output.shape)}, like the bounds, got {tuple(target.shape)}"
                )
            if weight:
                error = (output - target).abs().double()
                total += torch.stack((error.sum(), torch.full_like(error.sum(), error.numel())))
            if i + 1 == SAMPLE:
                break
        error_sum, components = map(float, self.engine.sum(total))
        if not components:
            raise ValueError("the loader is empty: it must yield at least one batch")
        if not math.isfinite(error_sum):
            hint = self._bad_batch(self.batches) or "look for NaN in inputs, targets or weights"
            raise ValueError(f"the underlying model's error is not finite: {hint}")
        return max(error_sum / components, torch.finfo(torch.float32).tiny)

    def _balance(self, net: IntervalNetwork) -> None:
        """Balance the gaps on the whole of the first batch, whatever the process's share of it."""
        args, weight = self._first()
        found = net.sensitivities(*args)
        own = torch.tensor(list(found.values()), dtype=torch.float64, device=self.device)
        mean = self.engine.sum(own * weight) / self.engine.world
        net.balance_by(dict(zip(found, mean.tolist(), strict=True)))

    def _optimizer(self) -> torch.optim.Optimizer:
        if self.net is None or not self.settings["balanced"]:
            return torch.optim.Adam(self.method.parameters())
        opening = OPENING * self.settings["mae"] / max(len(self.net.names), 1)  # each has an equal share in the width
        return Proportional(self.method.parameters(), start=opening, least=LEAST * opening)

    def _first(self) -> tuple[tuple[Any, ...], float]:
        batch, weight = next(self.batches.epoch(0))
        return parts(batch, self.device)[0], weight

    # --- the loop ---

    def train(
        self, validation: Iterable[Any] | None, patience: int | None, checkpoint: Path | None, progress: bool
    ) -> History:
        """Train, and return what happened."""
        # No gap, or parameter, is added after this: what an optimiser holds must not be replaced.
        state = State(History(self.settings), self.method, self._optimizer())
        resumed = checkpoint is not None and state.load(checkpoint, self.engine, self.device)
        if self.net is not None and self.settings["balanced"] and not resumed:
            self._balance(self.net)
        module, mode = self.engine.wrap(self.method), self.method.training
        done, epochs = len(state.history.epochs), self.settings["epochs"]
        with Bar(epochs, len(self.batches), done=done, shown=progress and self.engine.rank == 0) as bar:
            for number in range(done, epochs):
                if patience is not None and state.waited() >= patience:
                    break
                start = time.perf_counter()
                with _seeded(self.device, self.seed, number, self.engine.rank):
                    found = self._epoch(number, module, state.optimizer, bar)
                    valid = math.nan if validation is None else self._validate(validation, number)
                state.add(Epoch(*found, valid, time.perf_counter() - start))
                bar.show(number, *found, valid)
                if checkpoint is not None and self.engine.rank == 0:
                    state.save(checkpoint)
        state.restore()
        self.method.train(mode)
        return state.history

    def _epoch(
        self, number: int, module: nn.Module, optimizer: torch.optim.Optimizer, bar: Bar
    ) -> tuple[float, float, float]:
        """Take the steps of one epoch; return mean loss, coverage and mean width."""
        self.method.train()
        tally, steps = _Tally(self.device), len(self.batches)
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
            if self.net is not None:
                self.net.project()
            tally.add(loss.detach(), output, target, weight)
            bar.step()
            if step % LOOK == LOOK - 1:
                found = tally.result(self.engine)
                self._refuse_explosion(number, found)
                bar.show(number, *found)
        found = tally.result(self.engine)
        self._refuse_explosion(number, found)
        return found

    def _rate(self, step: int) -> float:
        rate: float = self.settings["lr"]
        if self.paper:
            return rate
        return rate * (1 + math.cos(math.pi * step / (len(self.batches) * self.settings["epochs"]))) / 2

    @torch.no_grad()
    def _validate(self, validation: Iterable[Any], number: int) -> float:
        self.method.eval()
        tally = _Tally(self.device)
        for batch, weight in Batches(validation, rank=self.engine.rank, world=self.engine.world).epoch(0):
            args, target = parts(batch, self.device)
            output = self.method(*args)
            tally.add(self.loss(output, target), output, target, weight)
        found = tally.result(self.engine, "validation loader")
        self._refuse_explosion(number, found, validation)
        return found[0]

    # --- when it fails ---

    def _refuse_explosion(
        self, number: int, found: tuple[float, float, float], validation: Iterable[Any] | None = None
    ) -> None:
        """Stop where nothing good can come any more."""
        loss, _, width = found
        # The published recipe starts by exploding, and comes back; so it may.
        exploded = self.net is not None and not self.paper and width > EXPLODED * self.settings["mae"]
        if exploded or not math.isfinite(loss):
            what = f"the loss became {loss:.3g}" + (f" and the mean width {width:.3g}" if self.net else "")
            seen = [self.batches] if validation is None else [Batches(validation), self.batches]
            hint = next(filter(None, map(self._bad_batch, seen)), None) or self._widest_layer()
            raise FloatingPointError(f"in epoch {number + 1} {what} (lr {self.settings['lr']:.3g}); {hint}")

    @torch.no_grad()
    def _bad_batch(self, batches: Batches) -> str | None:
        """Say which batch, and which sample of it, has or makes numbers that are not finite."""
        name = "loader" if batches is self.batches else "validation loader"
        for i, batch in enumerate(batches.in_order(), 1):
            args, target = parts(batch, self.device)
            for what, value in (
                ("has NaN or infinity in its inputs", args),
                ("has NaN or infinity in its target", target),
            ):
                if (sample := _not_finite(value)) is not None:
                    return f"batch {i} of the {name} {what} (sample {sample}); leave such samples out"
            if self.net is not None and (sample := _not_finite(self.net.model(*args))) is not None:
                return f"the model makes NaN or infinity of finite inputs, in batch {i} of the {name} (sample {sample})"
        return None

    def _widest_layer(self) -> str:
        if self.net is None:
            return "try a lower lr"
        rows = self.net.explain(*self._first()[0]).rows
        # Gaps that are no longer numbers have all moved alike; then it was the most sensitive one.
        worst = max(rows, key=lambda row: (row.width if math.isfinite(row.width) else math.inf, row.sensitivity))
        share = f" ({worst.share:.0%} of the width)" if math.isfinite(worst.share) else ""
        return (
            f"'{worst.name}' opens the bounds most{share}. Try a lower lr, fewer layers (layers=4), balance=True, "
            "or a cap on the gaps"
        )


def _not_finite(values: Any) -> int | None:
    """Return the number of the first sample in which some tensor is not finite."""
    for tensor in pytree.tree_leaves(values):
        if isinstance(tensor, Tensor) and not bool(tensor.isfinite().all()):
            return int((~tensor.isfinite()).reshape(len(tensor), -1).any(1).nonzero()[0]) if tensor.dim() else 0
    return None


@contextmanager
def _seeded(device: torch.device, seed: int, number: int, rank: int) -> Iterator[None]:
    """Let what is random depend on these numbers alone, and leave the global state as it was."""
    devices = [] if device.type == "cpu" else [device]
    with torch.random.fork_rng(devices, device_type="cuda" if not devices else device.type):
        torch.manual_seed(((seed * 1_000_003 + number) * 65_537 + rank) % 2**63)
        yield


class _Tally:
    """Sums of what an epoch measures, on the device until someone asks."""

    def __init__(self, device: torch.device) -> None:
        self.sums = torch.zeros(5, dtype=torch.float64, device=device)  # loss, samples, inside, width, components

    @torch.no_grad()
    def add(self, loss: Tensor, output: Any, target: Tensor, weight: float) -> None:
        """Count a batch; a share without weight belongs to others."""
        if not weight:
            return
        samples = torch.full_like(self.sums[0], len(target))
        found = [loss.double() * samples, samples, *torch.zeros_like(self.sums[2:])]
        if isinstance(output, Interval):
            inside, width = output.contains(target).sum().double(), output.width.double().sum()
            found[2:] = [inside, width, torch.full_like(inside, target.numel())]
        self.sums += torch.stack(found)

    def result(self, engine: Engine, name: str = "loader") -> tuple[float, float, float]:
        """Return mean loss, coverage and mean width over all processes."""
        loss, samples, inside, width, components = engine.sum(self.sums).tolist()
        if not samples:
            raise ValueError(f"the {name} is empty: it must yield at least one batch")
        return loss / samples, *((inside / components, width / components) if components else (math.nan, math.nan))
