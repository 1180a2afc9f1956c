"""Figure "INNs and Bayes" (App. B): bounds on the predictive density, of a real component instead of a sketch."""

from __future__ import annotations

from pathlib import Path

import torch

from intervalnn.data.readers.npy import Npz
from intervalnn.evaluation.report.density import bounds
from intervalnn.evaluation.report.style import save
from intervalnn.interval import Interval
from intervalnn.paper.bayes import predictive_density
from intervalnn.paper.experiments.deconvolution import examples

__all__ = ["draw"]


def draw(folder: Path) -> list[Path]:
    """Draw the component of the first noisy test signal whose bounds have the median width."""
    arrays = dict(Npz(max(examples(folder))))
    point, below, above = (torch.from_numpy(arrays[f"INN/{part}"][0, 0]) for part in ("point", "below", "above"))
    chosen = int((below + above).argsort()[len(point) // 2])
    own = Interval(*(part[chosen].double() for part in (point, below, above)))
    precision = 3.0 / float(own.width)  # one standard deviation is a third of the width, so that both can be seen
    y = torch.linspace(float(own.lower - 2 * own.width), float(own.upper + 2 * own.width), 400, dtype=torch.float64)
    density = predictive_density(own.map(lambda part: part.expand(len(y))), y, precision=precision)
    drawn = bounds(
        y.tolist(), density.lower.tolist(), density.upper.tolist(), density.point.tolist(),
        interval=(float(own.lower), float(own.upper)), precision=precision,
    )  # fmt: skip
    return save(drawn, folder / "figures" / "posterior-bounds")
