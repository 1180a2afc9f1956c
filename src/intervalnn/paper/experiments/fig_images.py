"""Figure "CT Task Results" (Sec. 5) and its three further samples (App. D); and the lower graph of Fig. 4."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from intervalnn.data.readers.npy import Npz
from intervalnn.evaluation.records import Run
from intervalnn.evaluation.report.curves import direction, markov
from intervalnn.evaluation.report.images import comparison, profile
from intervalnn.evaluation.report.style import save
from intervalnn.paper.experiments.comparison import WITH_DIRECTION
from intervalnn.paper.experiments.tables import so_many

__all__ = ["draw"]

# The paper's three, then what we would use instead.
METHODS = ("MC dropout", "ProbOut, published", "INN, published", "INN", "quantile heads")


def draw(folder: Path) -> list[Path]:
    """Draw the examples of the first run, and direction and Markov curves over all runs."""
    runs = [Run.load(path) for path in sorted(folder.glob("seed-*.json"))]
    figures = folder / "figures"
    kept = min(folder.glob("seed-*.npz"), default=None)  # large, so maybe not everywhere
    written = [] if kept is None else _examples(dict(Npz(kept)), figures)
    curves = {
        name: [run.settings["curves"][name]["direction"] for run in runs]
        for name in WITH_DIRECTION
        if all(name in run.methods for run in runs)
    }
    if curves:
        written += save(direction(curves, f"test images, {so_many(runs)}"), figures / "direction")
    first = runs[0].settings["curves"].get("INN, published", {})
    bound = {key: curve for key, curve in first.items() if key.startswith("markov")}
    if bound:
        written += save(markov(bound, "Coverage bound of App. A, published recipe"), figures / "markov")
    return written


def _examples(arrays: dict[str, Any], figures: Path) -> list[Path]:
    names = [name for name in METHODS if f"{name}/point" in arrays]
    written = []
    for sample in range(len(arrays["y"])):
        drawn = comparison(
            arrays, names, sample, title=f"test image {sample + 1}; the arrow points at the largest error"
        )
        written += save(drawn, figures / f"images-{sample + 1}")
    return written + save(profile(arrays, names, 0), figures / "profile")
