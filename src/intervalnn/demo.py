"""What ``inn demo`` shows: bounds for a trained network, from fit to picture, on the CPU."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from intervalnn import losses
from intervalnn.calibration import calibrate
from intervalnn.models import DeconvNet
from intervalnn.network import IntervalNetwork
from intervalnn.prediction import Prediction
from intervalnn.tasks import Deconvolution
from intervalnn.training import fit

__all__ = ["demo"]

# A small version of the paper's 1D experiment: shorter signals, a narrower network.
SIZE, SAMPLES, CHANNELS = 256, 1200, (16, 16, 32, 32, 32, 32, 16, 16, 16)
EPOCHS, BATCH, COVERAGE, LAYERS = 30, 64, 0.9, 4


def demo(folder: Path, console: Console) -> dict[str, Any]:
    """Run it all, write a picture and the numbers into ``folder``, and say so."""
    start = time.perf_counter()
    torch.manual_seed(0)
    task = Deconvolution(size=SIZE, samples=SAMPLES)
    train, held_out, test = task.splits(BATCH)

    console.print("[bold]1[/] Train a network that undoes a blur; any trained model would do.")
    model = DeconvNet(CHANNELS)
    fit(model, train, loss=losses.mse, epochs=EPOCHS, lr=2e-3)
    model.eval()

    console.print(f"[bold]2[/] Widen its last {LAYERS} layers into intervals and fit them to {COVERAGE:.0%} coverage.")
    net = IntervalNetwork(model, layers=LAYERS)
    fit(net, train, coverage=COVERAGE, epochs=EPOCHS)
    x, y = (torch.cat(parts) for parts in zip(*test, strict=True))
    fitted = net.predict(x)

    console.print("[bold]3[/] Calibrate on signals it has not seen.")
    calibration = calibrate(net, held_out, coverage=COVERAGE)
    prediction = net.predict(x)

    with torch.no_grad():
        unchanged = torch.equal(prediction.point, model(x))
    numbers = summary(prediction, y) | {
        "coverage_before_calibration": share_inside(fitted, y),
        "prediction_unchanged": unchanged,
        "seconds": time.perf_counter() - start,
    }
    folder.mkdir(parents=True, exist_ok=True)
    picture = plot(x, y, prediction, folder / "demo.png")
    record = folder / "demo.json"
    record.write_text(json.dumps({"numbers": numbers, "promise": calibration.promise}, indent=1))
    console.print(_table(numbers))
    console.print(f"[dim]{calibration.promise}[/]")
    console.print(f"\nWrote [bold]{picture}[/] (look at it first) and {record}, in {numbers['seconds']:.0f} s.")
    return numbers


def share_inside(prediction: Prediction, y: Tensor) -> float:
    """Return the share of the targets that lie between the bounds."""
    return float(prediction.bounds.contains(y).float().mean())


def summary(prediction: Prediction, y: Tensor) -> dict[str, Any]:
    """Return what the bounds are worth on targets that nothing was fitted to."""
    error = y - prediction.point
    agrees = torch.sign(error) == prediction.direction
    strong = torch.maximum(prediction.above, prediction.below) > 1.5 * torch.minimum(prediction.above, prediction.below)
    pairs = zip(error.abs().flatten(1), prediction.score.flatten(1), strict=True)
    correlation = [float(torch.corrcoef(torch.stack(pair))[0, 1]) for pair in pairs]
    return {
        "mean_absolute_error": float(error.abs().mean()),
        "coverage": share_inside(prediction, y),
        "mean_width": float(prediction.score.mean()),
        "correlation_of_score_and_error": sum(correlation) / len(correlation),
        "direction_right_where_strong": float(agrees[strong].float().mean()) if strong.any() else float("nan"),
    }


def _table(numbers: dict[str, Any]) -> Table:
    table = Table("on test signals", title="What the bounds are worth")
    table.add_column("", justify="right")
    for name, value in numbers.items():
        if name != "seconds":
            table.add_row(
                name.replace("_", " "), f"{value:.3f}" if isinstance(value, float) else "yes" if value else "no"
            )
    return table


def plot(x: Tensor, y: Tensor, prediction: Prediction, path: Path) -> Path:
    """Draw one signal: what was measured, what is predicted with its bounds, and the score next to the error."""
    from matplotlib.figure import Figure

    sample = int(prediction.score.mean((1, 2)).argsort()[len(y) // 2])  # of middling uncertainty
    measured, target, point, lower, upper, score, above, below = (
        t[sample, 0].tolist()
        for t in (x, y, prediction.point, prediction.lower, prediction.upper, prediction.score,
                  prediction.above, prediction.below)
    )  # fmt: skip
    places = range(len(target))
    figure = Figure(figsize=(10, 6.4), layout="constrained")
    top, middle, bottom = figure.subplots(3, 1, sharex=True, height_ratios=(1, 1.5, 1))
    top.plot(places, measured, color="#777777", lw=1.5, label="measurement, the input")
    middle.fill_between(places, lower, upper, color="#66ccee", alpha=0.5, lw=0, label="bounds, 90 %")
    middle.plot(places, target, color="black", lw=1.2, label="truth")
    middle.plot(places, point, color="#ee6677", lw=1.2, label="prediction, unchanged")
    bottom.plot(places, score, color="#4477aa", lw=1.4, label="uncertainty score")
    error = [abs(a - b) for a, b in zip(target, point, strict=True)]
    bottom.fill_between(places, error, color="#bbbbbb", lw=0, label="absolute error")
    for sign, color, label in ((1, "#228833", "truth rather above"), (-1, "#aa3377", "rather below")):
        chosen = [i for i in places if sign * (above[i] - below[i]) > 0.2 * (above[i] + below[i])]
        height = max(score) * 1.12
        bottom.scatter(chosen, [height] * len(chosen), color=color, marker="|", s=30, label=label)
    for axes in (top, middle, bottom):
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
        axes.margins(x=0)
    bottom.set_xlabel("position")
    figure.savefig(path, dpi=150)
    return path
