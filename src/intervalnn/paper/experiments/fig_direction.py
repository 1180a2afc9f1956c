"""Figure "Directional Information" (Sec. 5), its upper graph: the 1D task."""

from __future__ import annotations

from pathlib import Path

from intervalnn.evaluation.records import Run
from intervalnn.evaluation.report.curves import direction, markov
from intervalnn.evaluation.report.style import save
from intervalnn.paper.experiments.comparison import WITH_DIRECTION
from intervalnn.paper.experiments.tables import so_many

__all__ = ["draw"]


def draw(folder: Path) -> list[Path]:
    """Draw direction and Markov curves for each noise, over all runs that are there."""
    runs = [Run.load(path) for path in sorted(folder.glob("noise-*-seed-*.json")) if "behaviour" not in path.name]
    written = []
    for noise in sorted({run.settings["noise"] for run in runs}):
        group = [run for run in runs if run.settings["noise"] == noise]
        curves = {
            name: [run.settings["curves"][name]["direction"] for run in group]
            for name in WITH_DIRECTION
            if all(name in run.methods for run in group)
        }
        drawn = direction(curves, f"1D deconvolution, noise {noise:g}, test signals, {so_many(group)}")
        written += save(drawn, folder / "figures" / f"direction-noise-{noise:g}")
        first = group[0].settings["curves"].get("INN, published", {})
        bound = {key: curve for key, curve in first.items() if key.startswith("markov")}
        title = f"Coverage bound of App. A, published recipe, noise {noise:g}"
        if bound:
            written += save(markov(bound, title), folder / "figures" / f"markov-noise-{noise:g}")
    return written
