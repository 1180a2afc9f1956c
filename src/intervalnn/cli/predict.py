"""``inn predict``: predictions with bounds, of arrays and of volumes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from intervalnn.cli.command import command, refuse_existing
from intervalnn.cli.config import Config
from intervalnn.cli.extras import require
from intervalnn.cli.screen import Screen, Stopped

if TYPE_CHECKING:
    from intervalnn.cli.config.every_option import Predict
    from intervalnn.cli.jobs import Job

__all__ = ["predict"]

UNCALIBRATED = "None: the network was not calibrated."  # what a file says in the place of a promise
BLENDED = "This need not hold where patches are blended (--overlap)."
FORMATS = {"nifti": "nibabel", "dicom": "pydicom"}  # and what writes them
FILES = (".npz", ".npy", ".nii", ".nii.gz", ".dcm")  # endings that no folder should have


@command(
    "model",
    "predict",
    "",
    example="inn predict --net calibrated.safetensors \\\n"
    "    --model mymodels:unet --weights unet.safetensors \\\n"
    "    --input x.npy --out prediction.npz",
)
def predict(screen: Screen, config: Config, *, overwrite: bool) -> dict[str, Any]:
    """Predict with bounds, uncertainty score and direction.

    A file of arrays gives an npz file, a volume a folder of NIfTI files or DICOM series that name the patient as
    their source does, and a folder of several a folder with one of these for each. Stopped by Ctrl-C, the same command
    goes on where it was.

    An npz file has point, below and above (the gaps on either side), and promise, which says what holds on new data. It
    has input, unless that is complex; target, where there is one; score, where it is not the width, below + above; and
    for volumes dims, spacing where that is known, and unit where it is HU. intervalnn.view.load_npz reads it.

    The folder of a volume has lower, point, upper, score and direction, which is 1 where the gap above is the larger,
    -1 where that below is.
    """
    from intervalnn.cli.inputs import is_arrays
    from intervalnn.cli.jobs import array_jobs, volume_jobs
    from intervalnn.cli.models import device_of, load_network

    chosen = config.predict
    assert chosen.net is not None and chosen.input is not None and chosen.out is not None
    arrays = is_arrays(chosen.input)
    _check(chosen, arrays)
    refuse_existing(chosen.out, overwrite, folder=True, reads=(chosen.net, config.model.weights, chosen.input))
    net = load_network(chosen.net, config.model, device_of(config.device))
    size = config.batch_size
    promise = getattr(net.calibration, "promise", None)
    if promise and not arrays and chosen.patch is not None and chosen.overlap is not None:
        promise = f"{promise} {BLENDED}"
    told = promise or UNCALIBRATED
    limit = config.max_gib
    jobs = array_jobs(net, chosen.input, size, told, limit) if arrays else volume_jobs(net, chosen, size, told, limit)
    first = list(islice(jobs, 2))
    if len(first) == 1 and not (arrays and chosen.input.is_dir() and chosen.out.suffix != ".npz"):
        written = [_single(screen, first[0], chosen.out)]
    else:
        written = _several(screen, chain(first, jobs), config)
    screen.say(promise or "The network is not calibrated, so nothing is promised on new data: see inn calibrate.")
    screen.wrote(chosen.out)
    if any(path.is_dir() and not next(path.glob("*.nii.gz"), None) for path in written):
        screen.say("Any DICOM viewer opens these series; for inn view, predict with --format nifti or npz.")
    else:
        screen.hint("view", chosen.out)
    return {"out": chosen.out, "written": written, "promise": promise}


def _check(chosen: Predict, arrays: bool) -> None:
    """Refuse options that do not fit the input, or need a package that is not there."""
    if arrays and chosen.format not in (None, "npz"):
        raise click.UsageError(f"--format {chosen.format} is for volumes, and {chosen.input} holds arrays.")
    if chosen.format in FORMATS:
        require(f"--format {chosen.format}", chosen.format, FORMATS[chosen.format])
    if len(chosen.window) != 2:
        raise click.UsageError(f"--window wants two numbers, LOW,HIGH, got {len(chosen.window)}.")


def _single(screen: Screen, job: Job, out: Path) -> Path:
    from intervalnn.data.writing import check_replaceable

    if job.suffix and out.suffix != job.suffix:
        raise click.UsageError(f"--out must end in {job.suffix} for this input, got {out}.")
    if job.suffix and out.is_dir():
        raise IsADirectoryError(f"{out} is a folder; give the name of a file in it")
    if not job.suffix and out.suffix == ".npz":
        raise click.UsageError(f"a volume gives a folder, and --out {out} ends in .npz: add --format npz.")
    if not job.suffix:
        _refuse_file(out, "a volume gives a folder of files")
        check_replaceable(out, overwrite=True)
    job.write(out, screen.progress)
    return out


def _several(screen: Screen, jobs: Iterator[Job], config: Config) -> list[Path]:
    """Do job after job; what is done before a stop is not done again."""
    from intervalnn.cli.folder import Folder

    chosen = config.predict
    assert chosen.net is not None and chosen.out is not None
    _refuse_file(chosen.out, f"{chosen.input} gives a folder of predictions")
    with chosen.net.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    record = {name: value for name, value in asdict(chosen).items() if name != "out"} | {"sha256": sha256}
    folder = Folder(chosen.out, record)
    written = []
    try:
        for job in screen.track(jobs, "predicting"):
            name = f"{job.name}{job.suffix}"
            if not folder.has(name):
                job.write(folder.part / name, False)
            written.append(chosen.out / name)
    except KeyboardInterrupt:
        raise Stopped(f"{folder.part} holds what is done: the same command goes on from there") from None
    folder.finish()
    return written


def _refuse_file(out: Path, why: str) -> None:
    """Refuse a name that says file where a folder will be."""
    ending = max((each for each in FILES if out.name.endswith(each)), key=len, default=None)
    if ending is not None:
        raise click.UsageError(f"{why}, and --out {out} ends in {ending}, as a file does: leave {ending} out.")
