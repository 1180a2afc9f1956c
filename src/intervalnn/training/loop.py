"""fit: the one training loop, for the gaps of an interval network and for plain models alike."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from intervalnn.data.loading import batches
from intervalnn.network.scouts.scouted import features_of
from intervalnn.training import losses
from intervalnn.training.batches import Batches, parts
from intervalnn.training.engine import Engine, any_engine
from intervalnn.training.explosion import refuse_explosion
from intervalnn.training.history import Epoch, History, State
from intervalnn.training.job import Job
from intervalnn.training.opening import balance_gaps, optimizer_of
from intervalnn.training.progress import Bar
from intervalnn.training.recipe import Learner, Recipe, settle
from intervalnn.training.sums import Means, Sums

__all__ = ["Epoch", "History", "Learner", "fit"]

LOOK = 50  # steps after which to look whether training has failed, and to show the numbers
HELD_OUT = 10  # one of so many samples, where a scout might learn them by heart
SHORT = 0.03  # by how much less the bounds may hold of held-out targets than was asked for, without a warning


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
    validation: Iterable[Any] | Literal[False] | None = None,
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
        validation: Batches to measure the loss on after each epoch; the best epoch's state is restored. Give data
            that the underlying model has not seen: a warning then says, with both numbers, where the bounds hold
            too little of them. By default a tenth of the samples is held out of training for it where a scout has
            more numbers to train than the loader has targets, since it could learn these by heart; ``False`` holds
            nothing out.
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
    if patience is not None and (validation is None or validation is False):
        raise ValueError("patience waits for a better validation loss; give validation, or leave it out")
    if patience is not None and patience < 1:
        raise ValueError(f"patience must be at least 1, got {patience}")
    job = Job.of(method, loader, any_engine(engine), seed, precision)
    given = None
    if validation is not None and validation is not False:
        given = Batches(batches(validation), rank=job.engine.rank, world=job.engine.world)
    with job.recomputing() if recompute else nullcontext():
        settled = settle(
            job, coverage=coverage, loss=loss, beta=beta, recipe=recipe, epochs=epochs, lr=lr, balance=balance
        )
        if validation is None and not settled.paper:
            job, given = _held_out(job)
        return _Loop(job, settled).run(given, patience, None if checkpoint is None else Path(checkpoint), progress)


def _held_out(job: Job) -> tuple[Job, Batches | None]:
    """Hold samples out of training where there are fewer targets than numbers to train, and a scout to learn them."""
    net = job.net
    if net is None or not features_of(net) or job.batches.samples is None:
        return job, None
    _, target = parts(next(job.batches.in_order()), job.device)
    targets = len(job.batches.samples) * target.numel() // max(len(target), 1)
    parted = job.batches.parted(HELD_OUT)
    if parted is None or targets >= sum(parameter.numel() for parameter in net.parameters()):
        return job, None
    return replace(job, batches=parted[0]), parted[1]


@dataclass(frozen=True, slots=True)
class _Loop:
    """The epochs and steps of one call of :func:`fit`."""

    job: Job
    recipe: Recipe

    def run(self, validation: Batches | None, patience: int | None, checkpoint: Path | None, progress: bool) -> History:
        """Train, and return what happened."""
        method, engine, epochs = self.job.method, self.job.engine, self.recipe.epochs
        state = self._started(checkpoint)
        module, mode, done = engine.wrap(method), method.training, len(state.history.epochs)
        with Bar(epochs, len(self.job.batches), done=done, shown=progress and engine.rank == 0) as bar:
            for number in range(done, epochs):
                if patience is not None and state.waited() >= patience:
                    break
                state.add(self._epoch(number, module, state.optimizer, validation, bar))
                if checkpoint is not None and engine.rank == 0:
                    state.save(checkpoint)
        state.restore()
        method.train(mode)
        if engine.rank == 0:
            self._warn_where_short(state.history, validation)
        return state.history

    def _warn_where_short(self, history: History, validation: Batches | None) -> None:
        """Warn where the bounds hold less of new data than was asked for, beyond what few samples show by chance."""
        asked, kept = self.recipe.coverage, history.epochs[history.best]
        if validation is None or asked is None or not kept.held_out < min(asked, kept.coverage) - SHORT:
            return
        samples = sum(len(parts(batch, self.job.device)[1]) for batch in validation.in_order())
        if kept.held_out < min(asked, kept.coverage) - 2 * math.sqrt(asked * (1 - asked) / samples):
            warnings.warn(
                f"the bounds hold {kept.held_out:.3f} of the validation targets, where {asked:g} was asked for and "
                f"{kept.coverage:.3f} of the training targets lie inside. Most likely the model fits its training data "
                "better than new data. Fit the gaps on data that is new to the model, and calibrate on others",
                stacklevel=4,
            )

    def _chosen_samples(self) -> dict[str, Any]:
        """Return how many samples were held out, where that was our own choice."""
        samples = self.job.batches.samples
        out = 0 if samples is None else len(self.job.batches.loader.dataset) - len(samples)  # type: ignore[attr-defined]
        return {"held_out": out} if out else {}

    def _started(self, checkpoint: Path | None) -> State:
        """Return where to begin: the checkpoint, if there is one, else gaps that are balanced where they are to be."""
        # No gap or parameter is added after this, since the optimiser would not know of it.
        optimizer = optimizer_of(self.job, self.recipe)
        state = State(History(self.recipe.settings() | self._chosen_samples()), self.job.method, optimizer)
        resumed = checkpoint is not None and state.load(checkpoint, self.job.engine, self.job.device)
        if self.recipe.balanced and not resumed:
            balance_gaps(self.job)
        return state

    def _epoch(
        self,
        number: int,
        module: nn.Module,
        optimizer: torch.optim.Optimizer,
        validation: Batches | None,
        bar: Bar,
    ) -> Epoch:
        """Train for one epoch, and measure the loss on the validation batches after it."""
        start = time.perf_counter()
        with _seeded(self.job.device, self.recipe.seed, number, self.job.engine.rank):
            found = self._steps(number, module, optimizer, bar)
            valid = Means(math.nan, math.nan, math.nan) if validation is None else self._validate(validation, number)
        bar.show(number, *found, valid.loss)
        return Epoch(*found, valid.loss, time.perf_counter() - start, valid.coverage)

    def _steps(self, number: int, module: nn.Module, optimizer: torch.optim.Optimizer, bar: Bar) -> Means:
        """Take the steps of one epoch."""
        self.job.method.train()
        sums, count = Sums(self.job.device), len(self.job.batches)
        for step, (batch, weight) in enumerate(self.job.batches.epoch(number)):
            rate = self.recipe.rate(number * count + step, count * self.recipe.epochs)
            self._step(batch, weight, module, optimizer, rate, sums)
            bar.step()
            if step % LOOK == LOOK - 1:
                bar.show(number, *self._checked(sums, number))
        return self._checked(sums, number)

    def _step(
        self, batch: Any, weight: float, module: nn.Module, optimizer: torch.optim.Optimizer, rate: float, sums: Sums
    ) -> None:
        job = self.job
        for group in optimizer.param_groups:
            group["lr"] = rate * group.get("share", 1.0)
        args, target = parts(batch, job.device)
        with torch.autocast(job.device.type, job.precision, enabled=job.precision is not None):
            output = module(*args)
        loss = self.recipe.loss(output, target)
        optimizer.zero_grad(set_to_none=True)
        job.engine.backward(loss * weight)
        optimizer.step()
        if job.net is not None:
            job.net.project()
        sums.add(loss.detach(), output, target, weight)

    @torch.no_grad()
    def _validate(self, validation: Batches, number: int) -> Means:
        """Return the means over other batches."""
        job, sums = self.job, Sums(self.job.device)
        job.method.eval()
        for batch, weight in validation.epoch(0):
            args, target = parts(batch, job.device)
            output = job.method(*args)
            sums.add(self.recipe.loss(output, target), output, target, weight)
        return self._checked(sums, number, validation)

    def _checked(self, sums: Sums, number: int, validation: Batches | None = None) -> Means:
        """Return the means over all processes, if anything good can still come."""
        found = sums.means(self.job.engine, "loader" if validation is None else "validation loader")
        lr, widest = self.recipe.lr, self.recipe.widest
        refuse_explosion(self.job, found, epoch=number, lr=lr, widest=widest, validation=validation)
        return found


@contextmanager
def _seeded(device: torch.device, seed: int, number: int, rank: int) -> Iterator[None]:
    """Seed the random generators by these numbers, and restore their states at the end."""
    devices = [] if device.type == "cpu" else [device]
    with torch.random.fork_rng(devices, device_type="cuda" if not devices else device.type):
        torch.manual_seed(((seed * 1_000_003 + number) * 65_537 + rank) % 2**63)
        yield
