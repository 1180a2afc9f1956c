"""reproduce: an experiment from training to figures, at a chosen scale; a run that was stopped goes on."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn

from intervalnn.files.limits import MAX_GIB
from intervalnn.paper.experiments import (
    deconvolution,
    fig_direction,
    fig_images,
    fig_noise,
    fig_posterior,
    fig_schematic,
    fig_signals,
    images,
    noise_behaviour,
    run_time,
    tab_deconvolution,
    tab_images,
)
from intervalnn.paper.experiments.comparison import Make, Progress
from intervalnn.paper.experiments.scales import DECONVOLUTION, IMAGES, DeconvolutionScale
from intervalnn.paper.models import DeconvNet
from intervalnn.training import losses
from intervalnn.training.loop import fit

__all__ = ["draw_deconvolution", "draw_images", "reproduce_deconvolution", "reproduce_images"]


def reproduce_deconvolution(
    folder: Path,
    *,
    scale: str = "quick",
    seeds: Sequence[int] | None = None,
    methods: Collection[str] = (),
    device: str = "cpu",
    say: Progress = lambda _: None,
) -> list[Path]:
    """Train the underlying model and every method, measure them, and write runs, figures and the table.

    Args:
        folder: Where to; what it holds already is not made again.
        scale: ``"quick"`` (two cores, minutes), ``"small"`` (full fits of a small network on the CPU), ``"paper"``
            (the published sizes; one GPU), or ``"longer"`` (the underlying model trained for longer).
        seeds: Which runs; by default as many as the scale has.
        methods: Which methods; by default all.
        device: Where to train.
        say: Is told what is going on.
    """
    chosen = _chosen(DECONVOLUTION, scale)
    folder.mkdir(parents=True, exist_ok=True)
    if chosen.timed:
        _time_deconvolution(folder, chosen, device, say)
    for seed in range(chosen.seeds) if seeds is None else seeds:
        for noise in chosen.noises:
            deconvolution.run(deconvolution.Setting(chosen, noise, seed, device), folder, say, methods)
    for seed in range(chosen.seeds) if seeds is None else seeds:
        if seed < chosen.sweep_seeds:
            noise_behaviour.run(chosen, seed, device, folder, say)
    return draw_deconvolution(folder, say=say)


def _chosen(scales: dict[str, Any], scale: str) -> Any:
    if scale not in scales:
        raise ValueError(f"scale must be one of {', '.join(map(repr, scales))}, got {scale!r}")
    return scales[scale]


def _time_deconvolution(folder: Path, scale: DeconvolutionScale, device: str, say: Progress) -> None:
    train, _, test = deconvolution.Setting(scale, scale.noises[-1], 0, device).loaders()

    def plain(epochs: int) -> nn.Module:
        model = DeconvNet(scale.channels).to(device)
        fit(model, train, loss=losses.mse, epochs=epochs, lr=scale.lr, progress=False)
        return model.eval()

    def methods(model: nn.Module, epochs: int) -> Iterator[tuple[str, Make]]:
        return deconvolution.methods_of(model, train, replace(scale, epochs=epochs, fit_epochs=epochs, longer=0), 0)

    more = max(2, scale.epochs // 12)
    run_time.run(folder / "run-time.json", next(iter(test))[0], plain, methods, more=more, say=say)


def draw_deconvolution(folder: Path, *, say: Progress = lambda _: None) -> list[Path]:
    """Draw every figure and write the table from the runs that are there."""
    written = [tab_deconvolution.write(folder)]
    for module in (fig_signals, fig_noise, fig_direction, fig_posterior, fig_schematic):
        say(f"drawing {module.__name__.rpartition('.')[2]}")
        written += module.draw(folder)
    return written


def reproduce_images(
    folder: Path,
    *,
    task: str = "ct",
    scale: str = "quick",
    source: Path | None = None,
    values: Any = None,
    max_gib: float = MAX_GIB,
    seeds: Sequence[int] | None = None,
    methods: Collection[str] = (),
    device: str = "cpu",
    say: Progress = lambda _: None,
) -> list[Path]:
    """Train the U-Net and every method on images, measure them, and write runs, figures and the table.

    Args:
        folder: Where to; what it holds already is not made again.
        task: ``"ct"``, ``"mri"``, ``"denoising"`` or ``"photos"``.
        scale: ``"quick"`` (two cores, minutes), ``"small"`` (full fits of a small network on the CPU; subjects of
            given data are cross-validated), ``"medium"`` (one GPU, minutes a run) or ``"paper"`` (the published sizes).
        source: Folder of CT data, in any form that :func:`intervalnn.data.read` takes; without, made-up patients.
            Photos are those of scikit-image.
        values: What the numbers of arrays and images in it are, where nothing there says so.
        max_gib: How much a volume in it may unpack to, in GiB, unless it is as large itself.
        seeds: Which runs; by default as many as the scale has.
        methods: Which methods; by default all.
        device: Where to train.
        say: Is told what is going on.
    """
    if task not in images.TASKS:
        raise ValueError(f"task must be one of {', '.join(map(repr, images.TASKS))}, got {task!r}")
    if task == "photos" and source is not None:
        raise ValueError("photos are those of scikit-image: leave out the folder of data")
    chosen = _chosen(IMAGES, scale)
    settings = [
        images.Setting(task, chosen, seed, device, source, values, max_gib)
        for seed in (range(chosen.seeds) if seeds is None else seeds)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    found = images.Data(settings[0], folder / "work", say)
    if chosen.timed:
        _time_images(folder, settings[0], found, say)
    for setting in settings:
        if setting.crossed and setting is not settings[0]:
            found = images.Data(setting, folder / "work", say)
        images.run(setting, found, folder, say, methods)
    return draw_images(folder, say=say)


def _time_images(folder: Path, setting: images.Setting, found: images.Data, say: Progress) -> None:
    scale, train = setting.scale, found.loader("train", count=10 * setting.scale.batch)

    def plain(epochs: int) -> nn.Module:
        model = images.new_network(scale, setting.device)
        fit(model, train, loss=losses.mse, epochs=epochs, lr=scale.lr, progress=False)
        return model.eval()

    def methods(model: nn.Module, epochs: int) -> Iterator[tuple[str, Make]]:
        short = replace(
            scale, epochs=epochs, fit_epochs=epochs, published_epochs=epochs, probout_epochs=epochs, longer=0
        )
        return images.methods_of(model, train, replace(short, published_batch=scale.batch), 0)

    run_time.run(folder / "run-time.json", next(iter(found.loader("test")))[0], plain, methods, more=2, say=say)


def draw_images(folder: Path, *, say: Progress = lambda _: None) -> list[Path]:
    """Draw every figure and write the table from the runs that are there."""
    written = [tab_images.write(folder)]
    say("drawing fig_images")
    return written + fig_images.draw(folder)
