"""Card: what a file takes, returns and promises, as plain values."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from intervalnn.calibration.calibration import Calibration
from intervalnn.network.network import IntervalNetwork
from intervalnn.saving.exporting.standalone import Standalone

__all__ = ["card"]

_MEANING = {
    "point": "the underlying model's own prediction",
    "lower": "lower bound: never above the point",
    "upper": "upper bound: never below the point",
    "below": "how far the bounds reach below the point",
    "above": "how far the bounds reach above the point",
    "score": "uncertainty of each component: the width of the bounds",
    "direction": "+1 where the gap above is the larger, and large errors would lie above; -1 below; 0 where neither",
    "value": "integers that the underlying model returns",
}


def card(net: IntervalNetwork, settings: Mapping[str, Any], program: Standalone, file: Path) -> dict[str, Any]:
    """Return the card of a file: the same values each time, without dates or places.

    Args:
        net: The network.
        settings: What :func:`intervalnn.saving.settings_of` says of it.
        program: What was written of it.
        file: The file.
    """
    training, calibration = settings["training"] or {}, net.calibration
    coverage, promise, factors = training.get("coverage"), None, None
    if isinstance(calibration, Calibration):
        coverage, promise = calibration.coverage, calibration.promise
        factors = calibration.factors.tolist()
    return {
        "file": file.name,
        "sha256": _sha256(file),
        "inputs": [{"name": name, "shape": list(x.shape), "dtype": x.dtype} for name, x in program.inputs.items()],
        "outputs": [
            {"name": name, "shape": list(x.shape), "dtype": x.dtype, "meaning": _MEANING[name.split("_")[-1]]}
            for name, x in program.outputs.items()
        ],
        "coverage": coverage,
        "promise": promise or "None: the network was not calibrated.",
        "calibration": settings["calibration"] and settings["calibration"] | {"factors": factors},
        "offsets": settings["offsets"],
        "loss": training.get("loss"),
        "training": settings["training"],
        "intervals": {key: settings[key] for key in ("names", "kind", "cap", "exact", "gap_dtype")},
        "model": {"class": type(net.model).__name__, "digest": settings["model"]["digest"]},
    }


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
