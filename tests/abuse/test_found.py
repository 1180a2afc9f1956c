"""What the search for damaged files, odd configs and odd command lines has found, once each."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

import h5py
import nibabel
import numpy as np
import pytest
import torch

from data.readers.dicoms import pixels, save, slice_of
from fuzzing.saved import SAVED
from intervalnn import data
from intervalnn.cli.config import ConfigError, from_sources
from intervalnn.cli.weights import read_weights
from intervalnn.data.readers.npy import Npz
from intervalnn.evaluation.results import Results
from intervalnn.training.history import _read


def promising(shape: tuple[int, ...]) -> bytes:
    """Return an npy file whose header promises more than there is."""
    made = io.BytesIO()
    np.lib.format.write_array_header_1_0(made, {"descr": "<f4", "fortran_order": False, "shape": shape})
    return made.getvalue() + bytes(100)


@pytest.mark.parametrize("name", ["a.npy", "a.nii", "ground_truth_test_000.hdf5"])
def test_what_a_header_promises_is_refused_before_memory_is_taken(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if name == "a.npy":
        path.write_bytes(promising((10**5, 10**5, 10**5)))
    elif name == "a.nii":
        header = nibabel.Nifti1Image(np.zeros((1, 1, 1), np.int16), np.eye(4))
        header.header["dim"][1:4] = 32000
        path.write_bytes(header.header.binaryblock + bytes(100))
    else:
        with h5py.File(path, "w") as file:
            file.create_dataset("data", shape=(10**5, 10**5, 10**5), dtype="f4", chunks=(1, 4, 4))
    options: dict[str, Any] = {"values": "hu"} if name == "a.npy" else {}

    volumes = data.read(path, **options)

    with pytest.raises(ValueError, match="there is no volume that could be read"):
        list(volumes)
    assert [skipped.path for skipped in volumes.report.skipped] == [name]


def test_an_archive_whose_header_says_less_than_it_holds_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.arange(12.0).reshape(4, 3))
    stored = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "a.npz").write_bytes(stored.replace(b"(4, 3)", b"(1, 3)"))

    with pytest.raises(ValueError, match=r"a\.npz is no npz file of plain numbers"):
        Npz(tmp_path / "a.npz")["x"]


def test_damage_to_a_zipped_volume_is_told_by_its_checksum(tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(0, 1000, (4, 4, 4)).astype(np.int16)
    nibabel.save(nibabel.Nifti1Image(values, np.eye(4)), tmp_path / "a.nii")
    stored = bytearray(gzip.compress((tmp_path / "a.nii").read_bytes()))
    stored[-8] ^= 1  # of the checksum itself
    (tmp_path / "a.nii").unlink()
    (tmp_path / "a.nii.gz").write_bytes(stored)

    with pytest.raises(ValueError, match=r"a\.nii\.gz could not be read"):
        list(data.read(tmp_path, errors="refuse"))


def test_a_slice_stored_upside_down_can_become_a_tensor(tmp_path: Path) -> None:
    save(tmp_path / "1.dcm", slice_of(pixels(1), ImageOrientationPatient=[1, 0, 0, 0, -1, 0]))

    images = data.slices(data.read(tmp_path, errors="refuse"), 4)

    assert images.shape == (1, 1, 4, 4)


@pytest.mark.parametrize("tags", [{"PixelSpacing": ["1e400", "1"]}, {"RescaleSlope": "1e38"}], ids=str)
def test_a_slice_with_numbers_without_end_is_skipped(tags: dict[str, Any], tmp_path: Path) -> None:
    save(tmp_path / "1.dcm", slice_of(pixels(1), **tags))

    volumes = data.read(tmp_path)

    with pytest.raises(ValueError, match="there is no volume that could be read"):
        list(volumes)
    assert [skipped.path for skipped in volumes.report.skipped] == ["1.dcm"]


@pytest.mark.parametrize("kind", ["checkpoint", "weights, torch"])
def test_one_wrong_bit_among_the_numbers_of_a_torch_file_is_told(kind: str, tmp_path: Path) -> None:
    made = SAVED[kind]
    made.make(tmp_path)
    path = tmp_path / made.name
    stored, number = bytearray(path.read_bytes()), next(iter(torch.load(path, weights_only=True).values()))
    if kind == "checkpoint":
        number = torch.load(path, weights_only=True)["method"]["0.weight"]
    at = stored.find(number.numpy().tobytes())
    stored[at] ^= 1
    path.write_bytes(stored)

    with pytest.raises(ValueError, match=path.name):
        _read(path) if kind == "checkpoint" else read_weights(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("9" * 5000, "is no TOML"),
        ("[" * 5000, "is no TOML"),
        ("0x" + "f" * 5000, "must be a whole number, got something too long"),
        ("1" + "0" * 400, "must be a whole number, got 1000"),
    ],
    ids=["digits", "depth", "hexadecimal", "large"],
)
def test_a_config_without_end_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(f"[fit]\nseed = {text}")

    with pytest.raises(ConfigError, match=rf"c\.toml.*{message}"):
        from_sources(tmp_path / "c.toml", [], {})


def test_set_takes_one_value_and_no_second_line() -> None:
    with pytest.raises(ConfigError, match=r"'fit\.epochs' must be a whole number"):
        from_sources(None, ["fit.epochs=1\nseed=2"], {})


@pytest.mark.parametrize("change", [('"seed": 3', '"seed": "x"'), ('"lower"', '"sideways"'), ("0.1", '"a"')], ids=str)
def test_results_of_the_wrong_kind_are_refused_when_they_are_read(change: tuple[str, str], tmp_path: Path) -> None:
    SAVED["results"].make(tmp_path)
    path = tmp_path / "run.json"
    path.write_text(path.read_text().replace(*change))

    with pytest.raises(ValueError, match=r"run\.json is not a file of results"):
        Results.load(path)
