"""The numbers of the 1D part in one page: published, and ours with the published and with the corrected metrics."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from intervalnn.data.readers.npy import Npz
from intervalnn.evaluation.records import Run
from intervalnn.evaluation.results import Results
from intervalnn.paper.experiments import run_time, tab_scouts, tables
from intervalnn.paper.experiments.comparison import WITH_DIRECTION
from intervalnn.paper.experiments.tables import WINKLER, comparison, published, together

__all__ = ["WINKLER", "page", "results", "write"]

LARGEST = (1.0, 0.1, 0.02)  # shares of the errors, by size
PUBLISHED = {"coverage": "89 %", "direction": "62 to 75 %"}  # Sec. 4: 12 to 25 points above 50 %


def results(folder: Path) -> dict[float, Results]:
    """Return all runs in a folder, by noise; methods that not every run has are left out."""
    runs = [Run.load(path) for path in sorted(folder.glob("noise-*-seed-*.json")) if "behaviour" not in path.name]
    if not runs:
        raise FileNotFoundError(f"no runs in {folder}; make some with inn reproduce deconv")
    noises = sorted({run.settings["noise"] for run in runs})
    return {noise: together(run for run in runs if run.settings["noise"] == noise) for noise in noises}


def page(folder: Path) -> str:
    """Return the page as Markdown."""
    found = results(folder)
    first = next(iter(found.values())).runs[0]
    scale = first.settings["scale"]
    lines = [
        f"# 1D deconvolution at scale {scale['name']}\n",
        f"Written by `inn reproduce deconv` from the files beside it ({first.versions['device']}, torch "
        f"{first.versions['torch']}). {scale['samples']} signals of length {scale['size']}, "
        f"{first.settings['parameters']} parameters, {scale['epochs']} epochs. Mean ± standard deviation over runs.",
    ]
    for noise, each in found.items():
        title = f"Noise {noise:g}, seeds {[run.seed for run in each.runs]}"
        lines += [comparison(title, each, "signals"), tab_scouts.table(each, "signal")]
        lines += [published(each, PUBLISHED), _large_errors(folder, noise)]
    if (folder / "run-time.json").exists():
        lines.append(run_time.table(folder / "run-time.json", "signals"))
    return "\n".join(filter(None, lines)) + "\n"


def _large_errors(folder: Path, noise: float) -> str:
    """Return how often the direction is right, for all errors and for large ones, on the signals kept as examples."""
    files = [dict(Npz(path)) for path in sorted(folder.glob(f"noise-{noise:g}-seed-*.npz"))]
    lines = [
        "\nWhere the wide side points to: share of right directions among the largest errors, on the example signals "
        "of all runs. A wide side says where large errors lie; where errors are skewed, small ones lie on the other.\n",
        "| method | " + " | ".join(f"largest {share:.0%}" if share < 1 else "all errors" for share in LARGEST) + " |",
        "| --- |" + " --- |" * len(LARGEST),
    ]
    for name in WITH_DIRECTION:
        if any(f"{name}/point" not in arrays for arrays in files):
            continue
        error = np.concatenate([(a["y"] - a[f"{name}/point"]).ravel() for a in files])
        tilt = np.concatenate([(a[f"{name}/above"] - a[f"{name}/below"]).ravel() for a in files])
        right, size = np.sign(error) == np.sign(tilt), abs(error)
        shares = (right[size >= np.quantile(size, 1 - share)].mean() for share in LARGEST)
        lines.append(f"| {name} | " + " | ".join(f"{share:.1%}" for share in shares) + " |")
    return "\n".join(lines)


def write(folder: Path) -> Path:
    """Write the page beside the runs."""
    return tables.write(folder / "README.md", page(folder))
