"""reproduce: an experiment from training to figures, at a chosen scale; a run that was stopped goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from intervalnn.experiments import (
    deconvolution,
    fig_direction,
    fig_noise,
    fig_posterior,
    fig_schematic,
    fig_signals,
    noise_behaviour,
    run_time,
    tab_deconvolution,
)
from intervalnn.experiments.scales import DECONVOLUTION

__all__ = ["draw_deconvolution", "reproduce_deconvolution"]


def reproduce_deconvolution(
    folder: Path,
    *,
    scale: str = "quick",
    seeds: Sequence[int] | None = None,
    device: str = "cpu",
    say: Callable[[str], None] = lambda _: None,
) -> list[Path]:
    """Train the underlying model and every method, measure them, and write runs, figures and the table.

    Args:
        folder: Where to; what it holds already is not made again.
        scale: ``"quick"`` (two cores, minutes) or ``"paper"`` (the published sizes; one GPU).
        seeds: Which runs; by default as many as the scale has.
        device: Where to train.
        say: Is told what is going on.
    """
    if scale not in DECONVOLUTION:
        raise ValueError(f"scale must be one of {', '.join(map(repr, DECONVOLUTION))}, got {scale!r}")
    chosen = DECONVOLUTION[scale]
    folder.mkdir(parents=True, exist_ok=True)
    run_time.run(chosen, device, folder, say)
    for seed in range(chosen.seeds) if seeds is None else seeds:
        for noise in chosen.noises:
            deconvolution.run(deconvolution.Setting(chosen, noise, seed, device), folder, say)
    for seed in range(chosen.seeds) if seeds is None else seeds:
        if seed < chosen.sweep_seeds:
            noise_behaviour.run(chosen, seed, device, folder, say)
    return draw_deconvolution(folder, say=say)


def draw_deconvolution(folder: Path, *, say: Callable[[str], None] = lambda _: None) -> list[Path]:
    """Draw every figure and write the table from the runs that are there."""
    written = [tab_deconvolution.write(folder)]
    for module in (fig_signals, fig_noise, fig_direction, fig_posterior, fig_schematic):
        say(f"drawing {module.__name__.rpartition('.')[2]}")
        written += module.draw(folder)
    return written
