"""Limits: what unpacks to too much is skipped and named before memory is taken, and read where it is allowed."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
import zlib
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from torch import nn

import intervalnn as inn
from data.readers.bombs import BOMBS, deflated
from data.readers.dicoms import series
from intervalnn import data
from intervalnn.cli.weights import read_weights
from intervalnn.data.readers import images, nifti, npy
from intervalnn.data.readers.manifest import Manifest
from intervalnn.data.readers.npy import Npz
from intervalnn.evaluation.records import Run
from intervalnn.evaluation.results import Results
from intervalnn.files.container import verify_archive
from intervalnn.files.limits import check_file, inflated
from intervalnn.view import load_npz

MIB = 2**20
SMALL = 1 / 1024  # GiB
REFUSED = {  # for another reason than their size
    "NPZ, bzip2 that lies": "may be damaged",
    "NPZ, LZMA": "is packed by LZMA, must be by deflate or bzip2; write it with numpy.savez_compressed",
    "PNG with a text": "may be damaged",
    "PNG with a profile": "may be damaged",
    **dict.fromkeys(("DICOM, JPEG", "DICOM, JPEG-LS", "DICOM, JPEG 2000"), "has a compressed image of 2049 x 2049"),
}

MEASURED = """
import resource, sys
from intervalnn import data
from data.readers.bombs import BOMBS
import pydicom.pixels, nibabel, h5py, PIL.Image, numpy as np
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for name in sys.argv[2:]:
    volumes = data.read(f"{sys.argv[1]}/{name}", max_gib=1 / 64, **BOMBS[name][2])
    try:
        print(name, "was read:", list(volumes))
    except ValueError:
        assert volumes.report.skipped
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if after > before + 50 * 1024:
        print(name, "took", (after - before) // 1024, "MiB")
    before = after
"""


@pytest.mark.filterwarnings("ignore:Image size:Warning")
@pytest.mark.parametrize("name", BOMBS)
def test_what_unpacks_to_too_much_is_skipped_and_named(name: str, tmp_path: Path) -> None:
    file, make, options = BOMBS[name]
    make(tmp_path / file, 8 * MIB)

    volumes = data.read(tmp_path, max_gib=SMALL, **options)

    with pytest.raises(ValueError, match="there is no volume that could be read"):
        list(volumes)
    (skipped,) = volumes.report.skipped
    assert skipped.path in (file, ".")
    assert REFUSED.get(name, "and 0.000976562 are allowed; if you trust it, allow more: max_gib") in skipped.reason


@pytest.mark.rotating
def test_no_bomb_takes_memory(tmp_path: Path) -> None:
    names = [name for name in BOMBS if name != "NPZ, LZMA"]  # which takes long to pack
    for name in names:
        file, make, _ = BOMBS[name]
        (tmp_path / name).mkdir()
        make(tmp_path / name / file, 96 * MIB)

    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", MEASURED, tmp_path, *names],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert (done.stdout, done.returncode) == ("", 0), done.stderr


def test_the_same_files_are_read_where_that_much_is_allowed(tmp_path: Path) -> None:
    for name in ("NIfTI", "NPZ", "HDF5", "PNG", "TIFF", "TIFF of many pages"):
        file, make, options = BOMBS[name]
        (tmp_path / name).mkdir()
        make(tmp_path / name / file, 8 * MIB)

        volumes = list(data.read(tmp_path / name, errors="refuse", **options))

        assert sum(volume.images.size for volume in volumes) >= 2 * MIB


def test_a_deflated_series_is_read_as_any_other(tmp_path: Path) -> None:
    deflated(tmp_path / "deflated" / "1.dcm")
    series(tmp_path / "plain", 2)

    (one,), (two,) = (data.read(tmp_path / name, errors="refuse") for name in ("deflated", "plain"))

    np.testing.assert_array_equal(one.images[0], two.images[1])


def test_a_file_may_be_as_large_as_it_is(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((4, 300, 300)))
    np.savez(tmp_path / "b.npz", np.zeros((4, 300, 300)))
    series(tmp_path / "c", 20)

    assert len(list(data.read(tmp_path, kind="array", values="hu", max_gib=1e-6))) == 2
    assert len(list(data.read(tmp_path / "c", max_gib=1e-6))) == 1


def test_files_that_are_too_large_together_are_skipped_together(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for i in range(4):
        BOMBS["PNG"][1](tmp_path / "a" / f"{i}.png", MIB // 2)

    volumes = data.read(tmp_path, values="unit", max_gib=SMALL)

    with pytest.raises(ValueError, match="there is no volume"):
        list(volumes)
    assert [skipped.path for skipped in volumes.report.skipped] == ["a"]


def test_an_archive_that_is_packed_by_bzip2_is_read_to_its_checksum(tmp_path: Path) -> None:
    wanted = np.random.default_rng(0).normal(size=(3, 50, 60))
    repacked(tmp_path / "a.npz", wanted)
    whole = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "b.npz").write_bytes(whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:])
    repacked(tmp_path / "c.npz", wanted, more=b"x")

    np.testing.assert_array_equal(Npz(tmp_path / "a.npz")["x"], wanted)
    for name in ("b.npz", "c.npz"):
        with pytest.raises(ValueError, match="or a part of one only"):
            Npz(tmp_path / name)["x"]


def repacked(path: Path, array: np.ndarray, more: bytes = b"") -> None:
    """Write an npz file that is packed by bzip2, with more bytes behind the array than its index says."""
    content = BytesIO()
    np.save(content, array)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("x.npy", content.getvalue() + more)
    if more:
        stored, size = bytearray(path.read_bytes()), len(content.getvalue())
        for start in (stored.index(b"PK\3\4") + 22, stored.rindex(b"PK\1\2") + 24):
            stored[start : start + 4] = size.to_bytes(4, "little")
        path.write_bytes(stored)


@pytest.mark.parametrize("limit", [0, -1, float("nan")])
def test_a_limit_is_a_number_above_zero(limit: float, tmp_path: Path) -> None:
    np.savez(tmp_path / "b.npz", np.zeros((4, 3, 3)))

    with pytest.raises(ValueError, match="max_gib must be a number of GiB above 0"):
        data.read(tmp_path, values="hu", max_gib=limit)


def test_an_archive_with_two_arrays_of_one_name_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "b.npz", x=np.zeros(3), y=np.ones(3))
    stored = (tmp_path / "b.npz").read_bytes()
    (tmp_path / "b.npz").write_bytes(stored.replace(b"y.npy", b"x.npy"))

    with pytest.raises(ValueError, match="it has two arrays of one name"):
        Npz(tmp_path / "b.npz")


def test_what_pillow_reads_by_other_programs_is_no_image(tmp_path: Path) -> None:
    lines = [
        "%!PS-Adobe-3.0 EPSF-3.0",
        "%%BoundingBox: 0 0 8 8",
        "%ImageData: 8 8 8 1 0 1 1 beginimage",
        "%%EndComments",
    ]
    (tmp_path / "1.png").write_text("\n".join([*lines, "%%EOF", ""]))
    with Image.open(tmp_path / "1.png") as image:
        assert image.format == "EPS"  # which Ghostscript would draw

    volumes = data.read(tmp_path, values="unit")

    with pytest.raises(ValueError, match="there is no volume"):
        list(volumes)
    assert volumes.report.skipped[0].reason.endswith("(UnidentifiedImageError)")


def test_a_tiff_file_has_so_many_pages_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "_PAGES", 99)
    BOMBS["TIFF of many pages"][1](tmp_path / "1.tif", MIB)

    volumes = data.read(tmp_path, values="unit")

    with pytest.raises(ValueError, match="has more than 99 images; divide it into several files"):
        list(volumes)


@pytest.mark.parametrize("bare", [False, True])
def test_what_is_deflated_is_unpacked_as_zlib_does(bare: bool, tmp_path: Path) -> None:
    whole = np.random.default_rng(0).integers(0, 3, 300_000).astype(np.uint8).tobytes() + bytes(10 * MIB)
    packer = zlib.compressobj(wbits=-15 if bare else 15)
    packed = packer.compress(whole) + packer.flush()

    assert b"".join(inflated(tmp_path, packed + b"\0", 1.0, bare=bare)) == whole
    with pytest.raises(ValueError, match="was cut short"):
        list(inflated(tmp_path, packed[:-20], 1.0, bare=bare))


# --- what is no file ---


@pytest.mark.parametrize("kind", ["pipe", "device", "link to a device"])
def test_a_pipe_or_a_device_is_refused_rather_than_read(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path = Path("/dev/zero")
    else:
        path.symlink_to("/dev/zero")
    model = nn.Linear(1, 1)

    for read in (
        lambda: check_file(path),
        lambda: data.read(path, kind="dicom"),
        lambda: data.read(path, kind="array", values="hu"),
        lambda: npy.load(path),
        lambda: npy.load_mapped(path),
        lambda: Npz(path),
        lambda: nifti.load(path),
        lambda: inn.load(path, model),
        lambda: read_weights(path),
        lambda: verify_archive(path),
        lambda: Run.load(path),
        lambda: Results.load(path),
        lambda: load_npz(path),
        lambda: Manifest.load(path),
    ):
        with pytest.raises(ValueError, match="is a pipe or a device, and may never end"):
            read()
