"""Figure "1DDeconv Task Results" (Sec. 4) and its three further samples (App. C)."""

from __future__ import annotations

from pathlib import Path

from intervalnn.data.readers.npy import Npz
from intervalnn.evaluation.report.signals import columns
from intervalnn.evaluation.report.style import save
from intervalnn.paper.experiments.deconvolution import examples

__all__ = ["draw"]

# The paper's three, and what we would use instead of the published recipe.
METHODS = ("MC dropout", "ProbOut, published", "INN, published", "INN")


def draw(folder: Path) -> list[Path]:
    """Draw each example of the first run: without noise on the left, with noise on the right."""
    settings = {f"noise {path.stem.split('-')[1]}": dict(Npz(path)) for path in examples(folder)}
    count = len(next(iter(settings.values()))["y"])
    names = [name for name in METHODS if all(f"{name}/point" in arrays for arrays in settings.values())]
    written = []
    for sample in range(count):
        written += save(columns(settings, names, sample), folder / "figures" / f"signals-{sample + 1}")
    return written
