"""Writing: a predicted volume for a viewer, as NIfTI or as DICOM that belongs to its source."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from intervalnn.data.readers import nifti
from intervalnn.data.readers.derived import Stored, write_series
from intervalnn.data.readers.volume import Volume
from intervalnn.files.whole import beside, replace_folder
from intervalnn.prediction import Prediction

__all__ = ["check_replaceable", "write_volume"]

QUANTITIES = ("lower", "point", "upper", "score", "direction")


def write_volume(
    folder: str | Path,
    prediction: Prediction,
    volume: Volume,
    *,
    form: Literal["nifti", "dicom"] = "nifti",
    overwrite: bool = False,
    promise: str = "",
) -> dict[str, Path]:
    """Write lower, point, upper, score and direction so that they lie on the volume, and return where they are.

    As NIfTI, ``lower.nii.gz`` and so on, in float32, on the grid of the volume's file; the description in the
    header says the unit (``intervalnn lower, HU``). As DICOM, a folder and a new series for each, in whole numbers;
    bounds are rounded outwards, so that they stay sound. DICOM files name the patient as the files of the volume do.

    Args:
        folder: Appears once all is written.
        prediction: ``(slices, rows, columns)``, what :func:`intervalnn.volumes.predict_volume` returns.
        volume: What it was predicted from.
        form: ``"nifti"`` or ``"dicom"``.
        overwrite: Whether to replace a folder that this function wrote before.
        promise: What holds on new data, in words, such as ``net.calibration.promise``; it is written along.
    """
    if form not in ("nifti", "dicom"):
        raise ValueError(f"form must be 'nifti' or 'dicom', got {form!r}")
    arrays = _arrays(prediction, volume)
    names = {name: f"{name}.nii.gz" if form == "nifti" else name for name in QUANTITIES}
    folder = Path(folder).resolve()
    check_replaceable(folder, overwrite)
    with beside(folder) as place:
        temporary = place / folder.name
        temporary.mkdir()
        if form == "nifti":
            comment = f"intervalnn promise: {promise}" if promise else ""
            for name, array in arrays.items():
                unit = ", HU" if volume.unit == "hu" and name != "direction" else ""
                description = f"intervalnn {name}{unit}"
                nifti.write(temporary / names[name], array, volume, description=description, comment=comment)
        else:
            write_series(temporary, _stored(arrays, volume), volume, promise=promise)
        replace_folder(folder, temporary)
    return {name: folder / file for name, file in names.items()}


def _arrays(prediction: Prediction, volume: Volume) -> dict[str, NDArray[np.float32]]:
    shape = tuple(prediction.point.shape)
    if shape != volume.images.shape:
        raise ValueError(f"the prediction must have shape {volume.images.shape}, like the volume, got {shape}")
    arrays = {name: prediction[name].detach().cpu().float().numpy() for name in QUANTITIES}
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise ValueError(f"the {name} must be finite to be written")
    return arrays


def check_replaceable(folder: Path, overwrite: bool) -> None:
    """Refuse a folder that is there, unless it is ours and to be replaced."""
    if not folder.exists():
        return
    if not overwrite:
        raise FileExistsError(f"{folder} is there already: take another, or overwrite=True")
    ours = {form for name in QUANTITIES for form in (name, f"{name}.nii.gz")}
    if not folder.is_dir() or not {path.name for path in folder.iterdir()} <= ours:
        raise FileExistsError(f"{folder} holds more than a prediction, and is not replaced; take another")


def _stored(arrays: dict[str, NDArray[np.float32]], volume: Volume) -> dict[str, Stored]:
    """Return whole numbers: bounds rounded outwards on one scale, so that lower <= point <= upper."""
    unit: Literal["HU", "US"] = "HU" if volume.unit == "hu" else "US"
    least, most = float(arrays["lower"].min()), float(arrays["upper"].max())
    middle = math.floor((least + most) / 2)
    slope = _slope((most - least) / 2 + 1)
    rounding = {"lower": np.floor, "point": np.rint, "upper": np.ceil}
    stored = {
        name: Stored(
            _whole(turn((arrays[name].astype(np.float64) - middle) / slope)), slope, middle, unit, f"INN {name}"
        )
        for name, turn in rounding.items()
    }
    slope = _slope(float(arrays["score"].max()))
    stored["score"] = Stored(_whole(np.ceil(arrays["score"].astype(np.float64) / slope)), slope, 0, unit, "INN score")
    stored["direction"] = Stored(_whole(arrays["direction"]), 1.0, 0, "US", "INN direction")
    return stored


def _slope(largest: float) -> float:
    """Return the least power of two, within reason, at which a value fits into 16 bits."""
    return 2.0 ** max(-14, math.ceil(math.log2(max(largest, 1e-9) / 32000)))


def _whole(numbers: NDArray[np.floating]) -> NDArray[np.int16]:
    return numbers.astype(np.int16)
