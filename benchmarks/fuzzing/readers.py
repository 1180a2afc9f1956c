"""Readers: damaged files of every kind that ``data.read`` reads, beside whole ones, and what must come of it."""

from __future__ import annotations

import gzip
import io
import json
import struct
import tempfile
import traceback
import warnings
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import h5py
import nibabel
import numpy as np
from PIL import Image
from pydicom.uid import JPEG2000Lossless, JPEGLSLossless, RLELossless

from data.readers.dicoms import SECRETS, pixels, save, save_bare, slice_of
from fuzzing.mutations import changed, mutated
from intervalnn import data

__all__ = ["READERS", "Mutation", "Reader", "gzipped", "zipped"]

SHAPE = (3, 6, 5)
HU = np.random.default_rng(0).integers(-1000, 2000, SHAPE).astype(np.int16)
Mutation = Callable[[bytes, Random], bytes]


@dataclass(frozen=True, eq=False)
class Reader:
    """A kind of file, and how it is damaged and read.

    Attributes:
        path: What the damaged file is called; a whole one lies in ``whole/`` under the same name.
        make: Writes a whole file to a path.
        mutations: How to damage it.
        options: Of ``data.read``.
        sealed: Whether a checksum tells damage to the plain bytes: what is read must be what was written.
    """

    path: str
    make: Callable[[Path], object]
    mutations: tuple[Mutation, ...] = (mutated,)
    options: dict[str, Any] = field(default_factory=dict)
    sealed: bool = False

    @property
    def whole(self) -> str:
        """What the whole file is called."""
        return f"whole/{self.path}"

    @cache  # noqa: B019 - there are a dozen of them, for the whole run
    def original(self, name: str) -> bytes:
        """Return the bytes of a whole file of this name."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            self.make(path)
            return path.read_bytes()

    def case(self, random: Random, folder: Path) -> None:
        """Damage a file and read it; fails if anything else comes of it than its contents or a clear refusal."""
        mutation = random.choice(self.mutations)
        self.check(mutation(self.original(self.path), random), folder, plain=mutation is mutated)

    def check(self, content: bytes, folder: Path, *, plain: bool = True) -> None:
        """Read a folder with a file of these bytes and a whole one beside it."""
        for name, stored in ((self.path, content), (self.whole, self.original(self.whole))):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(stored)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # those of the libraries beneath
            self._skips(folder, identical=plain and self.sealed)
            self._refuses(folder)

    def _skips(self, folder: Path, *, identical: bool) -> None:
        volumes = data.read(folder, **self.options)
        found = list(volumes)
        text = f"{volumes.report} {[skipped.reason for skipped in volumes.report.skipped]} {found}"
        assert not [secret for secret in SECRETS if secret in text], f"quotes the patient: {text}"
        first, second = ([volume for volume in found if _from(volume, folder / p)] for p in (self.path, self.whole))
        assert second, f"the whole file beside it was not read: {volumes.report}"
        skipped = [each.path for each in volumes.report.skipped]
        assert first or self.path in skipped, f"neither read nor skipped: {volumes.report}"
        for volume in found:
            _usable(volume)
        if identical and first:
            for mine, theirs in zip(first, second, strict=True):
                np.testing.assert_array_equal(mine.images, theirs.images, err_msg="damage that a checksum tells")

    def _refuses(self, folder: Path) -> None:
        before = data.read(folder, **self.options)
        list(before)
        refusal: ValueError | None = None
        try:
            list(data.read(folder, errors="refuse", **self.options))
        except ValueError as error:
            refusal = error
        assert bool(refusal) == bool(before.report.skipped), f"refused: {refusal}; skipped: {before.report}"
        if refusal is not None:
            text = "".join(traceback.format_exception(refusal))
            assert self.path in str(refusal), f"does not name the file: {refusal}"
            assert not [secret for secret in SECRETS if secret in text], f"quotes the patient: {text}"


def _from(volume: data.Volume, path: Path) -> bool:
    return path.resolve() in volume.sources


def _usable(volume: data.Volume) -> None:
    assert volume.images.size and np.isfinite(volume.images).all(), f"{volume!r} is empty, or not finite"
    if volume.geometry is not None:
        for step in (volume.geometry.row_step, volume.geometry.column_step):
            assert np.isfinite(step).all() and np.linalg.norm(step) > 0, f"{volume!r} has a step of {step}"
    if max(volume.images.shape) < 1000:  # what is long and thin becomes a large square
        assert bool(data.slices([volume], 4).isfinite().all())


# --- damage below a layer that has a checksum of its own ---


def gzipped(content: bytes, random: Random) -> bytes:
    return gzip.compress(mutated(gzip.decompress(content), random), 1)


def zipped(content: bytes, random: Random) -> bytes:
    """Damage one member of an archive, and write it anew."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = random.choice(list(members))
    members[name] = mutated(members[name], random)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for each, part in members.items():
            archive.writestr(each, part)
    return made.getvalue()


def _chunks(content: bytes, random: Random) -> bytes:
    """Damage one chunk of a PNG file, under a checksum that is right."""
    parts, at = [], 8
    while at < len(content):
        (length,) = struct.unpack_from(">I", content, at)
        parts.append((content[at + 4 : at + 8], content[at + 8 : at + 8 + length]))
        at += 12 + length
    number = random.randrange(len(parts))
    parts[number] = (parts[number][0], mutated(parts[number][1], random))
    packed = (struct.pack(">I", len(d)) + n + d + struct.pack(">I", zlib.crc32(n + d)) for n, d in parts)
    return content[:8] + b"".join(packed)


def _npy(content: bytes, random: Random) -> bytes:
    """Write another header, as numpy does, before the same numbers."""
    shape = tuple(random.choice((0, 1, 3, -1, 10**15, 2**62)) for _ in range(random.randrange(5)))
    descr = random.choice(("<i2", ">f4", "<f8", "|u1", "<c8", "|O", "|S3", "<U9", "<M8[s]", "|b1", "<f2", "|V8"))
    header = {"descr": descr, "fortran_order": random.random() < 0.5, "shape": shape}
    made = io.BytesIO()
    np.lib.format.write_array_header_1_0(made, header)
    return made.getvalue() + content[-SHAPE[0] * SHAPE[1] * SHAPE[2] * 2 :]


def _hdf5(content: bytes, random: Random) -> bytes:
    """Write another data set under the name of the one that is read, of which nothing is stored."""
    made = io.BytesIO()
    shape = tuple(random.choice((0, 1, 3, 128, 10**5, 10**12)) for _ in range(random.randrange(1, 5)))
    with h5py.File(made, "w") as file:
        what = random.randrange(4)
        if what == 0:
            file.create_group("data")
        elif what == 1:
            file["data"] = h5py.SoftLink("/elsewhere")
        elif what == 2:
            file.create_dataset("data", data="text")
        else:
            kind = random.choice(("f4", "i2", "S4", "c8", "?", [("a", "f4")]))
            file.create_dataset(
                "data", shape=shape, dtype=kind, chunks=None if 0 in shape else tuple(min(n, 4) for n in shape)
            )
    return made.getvalue()


def _manifest(content: bytes, random: Random) -> bytes:
    return json.dumps(changed(json.loads(content), random)).encode()


# --- whole files ---


def _write_dicom(path: Path, syntax: str | None = None, bare: bool = False) -> None:
    one = slice_of(pixels(1, (36, 34)), 3.0, SeriesInstanceUID="1.2.4" if "whole" in path.parts else "1.2.3")
    if bare:
        save_bare(path, one)
    else:
        save(path, one, **({} if syntax is None else {"syntax": syntax}))


def _write_nifti(path: Path, kind: Any = nibabel.Nifti1Image) -> None:
    nibabel.save(kind(HU, np.diag([0.5, 0.75, 2.5, 1.0])), path)


def _write_hdf5(path: Path, **options: Any) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("data", data=np.random.default_rng(0).random(SHAPE, np.float32), **options)


def _write_npz(path: Path) -> None:
    np.savez(path, images=HU, z_mm=np.arange(3.0)[::-1], spacing_mm=np.ones(2), subject_index=np.zeros(3, int))


def _write_image(path: Path) -> None:
    Image.fromarray(HU[0].astype(np.int32) + 1024).convert("I;16").save(path)


_HU = {"values": "hu"}
READERS: dict[str, Reader] = {
    "DICOM": Reader("a/1.dcm", _write_dicom),
    "DICOM, no header": Reader("a/1.dcm", partial(_write_dicom, bare=True)),
    "DICOM, RLE": Reader("a/1.dcm", partial(_write_dicom, syntax=RLELossless)),
    "DICOM, JPEG-LS": Reader("a/1.dcm", partial(_write_dicom, syntax=JPEGLSLossless)),
    "DICOM, JPEG 2000": Reader("a/1.dcm", partial(_write_dicom, syntax=JPEG2000Lossless)),
    "NIfTI": Reader("a.nii", _write_nifti),
    "NIfTI-2": Reader("a.nii", partial(_write_nifti, kind=nibabel.Nifti2Image)),
    "NIfTI, zipped": Reader("a.nii.gz", _write_nifti, (mutated, gzipped), sealed=True),
    "HDF5": Reader("a/ground_truth_test_000.hdf5", _write_hdf5, (mutated, mutated, _hdf5)),
    "HDF5, in chunks": Reader(
        "a/ground_truth_test_000.hdf5", partial(_write_hdf5, chunks=(1, 6, 5), compression="gzip", fletcher32=True)
    ),
    "NPY": Reader("a.npy", lambda path: np.save(path, HU), (mutated, _npy), _HU),
    "NPZ": Reader("a.npz", _write_npz, (mutated, zipped), _HU | {"key": "images"}, sealed=True),
    "PNG": Reader("a/1.png", _write_image, (mutated, _chunks), {"values": "hu+1024"}, sealed=True),
    "TIFF": Reader("a/1.tif", _write_image, options={"values": "hu+1024"}),
}
