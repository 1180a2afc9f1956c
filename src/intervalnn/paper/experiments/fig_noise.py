"""Figure "Noise Behavior" (Sec. 4): mean uncertainty against the noise."""

from __future__ import annotations

import json
from pathlib import Path

from intervalnn.evaluation.report.curves import lines
from intervalnn.evaluation.report.style import save

__all__ = ["draw"]


def draw(folder: Path) -> list[Path]:
    """Draw the mean score of each method, over all runs that are there; nothing for a scale that has none."""
    runs = [json.loads(path.read_text())["rows"] for path in sorted(folder.glob("noise-behaviour-seed-*.json"))]
    if not runs:
        return []
    noises = [row["noise"] for row in runs[0]]
    runs = [rows for rows in runs if [row["noise"] for row in rows] == noises]
    series = {name: [[row["score"][name] for row in rows] for rows in runs] for name in runs[0][0]["score"]}
    drawn = lines(
        noises, series, xlabel="standard deviation of the noise", ylabel="mean score (width, or standard deviation)"
    )
    return save(drawn, folder / "figures" / "noise-behaviour")
