"""``inn evaluate``: several networks and methods on the same data."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from intervalnn.cli.command import command, refuse_existing
from intervalnn.cli.config import Config, did_you_mean
from intervalnn.cli.screen import Screen
from intervalnn.files.printable import printable

if TYPE_CHECKING:
    from torch import device as Device
    from torch import nn

    from intervalnn.evaluation.results import Results

__all__ = ["evaluate"]

FITTED = """give --method a function of your own that returns a fitted one, such as q=mymethods:quantiles with

def quantiles(model):
    method = inn.QuantileHeads(model)
    inn.fit(method, train)
    return method"""


@command(
    "model",
    "evaluate",
    "",
    example="inn evaluate --net INN=net.safetensors --method intervalnn:ConstantWidth \\\n"
    "    --model mymodels:unet --weights unet.safetensors \\\n"
    "    --data data/test --held-out data/held-out --out results/run.json",
)
def evaluate(screen: Screen, config: Config, *, overwrite: bool) -> dict[str, Any]:
    """Compare networks and other methods on the same data.

    Results are written as JSON and shown as a table. With --held-out, every method is calibrated on it first, and
    compared at equal coverage.
    """
    import torch

    from intervalnn.cli.loaders import loader_of
    from intervalnn.cli.models import device_of
    from intervalnn.evaluation.evaluation import evaluate as run

    chosen = config.evaluate
    assert chosen.data is not None and chosen.out is not None
    if not chosen.nets and not chosen.methods:
        raise click.UsageError("Give something to measure: --net FILE or --method MODULE:NAME, once or more often.")
    if clash := chosen.nets.keys() & chosen.methods.keys():
        raise click.UsageError(f"A network and a method are both named {min(clash)!r}; name one of them otherwise.")
    reads = (*chosen.nets.values(), config.model.weights, chosen.data, chosen.held_out)
    out = refuse_existing(chosen.out, overwrite, ends=".json", reads=reads)
    metrics = _metrics(chosen.metrics)
    torch.manual_seed(chosen.seed)
    device = device_of(config.device)
    methods, model = _methods(config, device)
    data = loader_of(chosen.data, chosen.data_options, model, config, device)
    held_out = None
    if chosen.held_out is not None:
        held_out = loader_of(chosen.held_out, chosen.held_out_options, model, config, device)
    results = run(
        methods,
        data,
        metrics,
        held_out=held_out,
        coverage=chosen.coverage,
        seed=chosen.seed,
        settings={"data": chosen.data, "held_out": chosen.held_out, "nets": chosen.nets, "methods": chosen.methods},
        progress=screen.progress,
    )
    results.runs[0].save(out, overwrite=overwrite)
    screen.say(_table(results))
    screen.wrote(out)
    return {"out": out, "coverage": chosen.coverage, "methods": _means(results)}


def _methods(config: Config, device: Device) -> tuple[dict[str, Any], nn.Module]:
    """Return the networks and methods by name, and a model with its weights."""
    from intervalnn.cli.models import load_network, make_model
    from intervalnn.cli.references import call, resolve
    from intervalnn.prediction import is_fitted

    chosen = config.evaluate
    # Each file gets a model of its own, since it may bring the model's weights along.
    found: dict[str, Any] = {name: load_network(Path(path), config.model, device) for name, path in chosen.nets.items()}
    model = next(iter(found.values())).model if found else make_model(config.model, device)
    for name, reference in chosen.methods.items():
        found[name] = call(reference, resolve(reference), model, options={})
        if not is_fitted(found[name]):
            raise ValueError(f"method {name!r} was never fitted, and inn evaluate fits nothing; {FITTED}")
    return found, model


def _metrics(names: tuple[str, ...]) -> dict[str, Any] | None:
    """Return functions by name; None for the usual ones."""
    from intervalnn import metrics

    known = [name for name in metrics.__all__ if _is_per_sample(getattr(metrics, name))]
    for name in names:
        if name not in known:
            raise click.UsageError(f"There is no metric {name!r}{did_you_mean(name, known)}")
    return {name: getattr(metrics, name) for name in names} or None


def _is_per_sample(metric: Any) -> bool:
    """Say whether a metric is a function of a prediction and a target that returns a tensor of numbers."""
    if not inspect.isfunction(metric) or metric.__name__.endswith("_map"):
        return False
    signature = inspect.signature(metric)
    return list(signature.parameters)[:2] == ["prediction", "target"] and signature.return_annotation == "Tensor"


def _table(results: Results) -> Any:
    """Return one column for each method, since there are more metrics than methods."""
    from rich.table import Table

    table = Table("", *map(printable, results.methods))
    for column in table.columns[1:]:
        column.justify = "right"
    for metric in results.metrics:
        best = results.best(metric)
        if best is not None:
            table.caption = "* better than all others, beyond chance"
        table.add_row(
            printable(metric),
            *(f"{_cell(results, name, metric)}{' *' if name == best else ''}" for name in results.methods),
        )
    measured = results.runs[0].methods.values()
    table.add_row("milliseconds each", *(f"{1000 * each.seconds:.3g}" for each in measured))
    table.add_row("peak MiB", *(f"{each.peak_mib:.3g}" for each in measured))
    return table


def _cell(results: Results, name: str, metric: str) -> str:
    spread = results.spread(name, metric)
    if not spread.samples:
        return "-"  # such as a density that a method has not
    left_out = f" ({spread.undefined} undefined)" if 0 < spread.undefined < spread.samples else ""
    return f"{spread}{left_out}"


def _means(results: Results) -> dict[str, Any]:
    run = results.runs[0]
    return {
        name: {metric: results.spread(name, metric).mean for metric in measured.values}
        | {"seconds": measured.seconds, "peak_mib": measured.peak_mib}
        for name, measured in run.methods.items()
    }
