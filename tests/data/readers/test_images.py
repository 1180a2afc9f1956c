"""Images: a folder of PNG or TIFF files is a volume."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from intervalnn import data

RNG = np.random.default_rng(0)


def png(path: Path, values: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(values).save(path)


def test_sixteen_bits_are_kept_and_names_are_sorted_as_people_do(tmp_path: Path) -> None:
    images = RNG.integers(0, 65536, (11, 4, 5)).astype(np.uint16)
    for i, image in enumerate(images):
        png(tmp_path / "someone" / f"slice_{i}.png", image)

    (volume,) = data.read(tmp_path, values="hu+32768", errors="refuse")
    (unit,) = data.read(tmp_path, values="unit")

    np.testing.assert_array_equal(volume.images, np.maximum(images.astype(np.float32) - 32768, -1024))
    np.testing.assert_allclose(unit.images, images / 65535, rtol=1e-6)
    assert volume.subject == volume.name == "someone"


def test_eight_bits_are_windowed(tmp_path: Path) -> None:
    png(tmp_path / "a" / "1.png", np.array([[0, 255]], np.uint8))

    (volume,) = data.read(tmp_path, values="unit", window=(-160, 240))

    assert volume.images.tolist() == [[[-160, 240]]] and volume.unit == "hu"
    skipping = data.read(tmp_path, values="hu")
    with pytest.raises(ValueError, match="there is no volume that could be read"):
        list(skipping)
    assert "8 bits" in skipping.report.skipped[0].reason


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.uint16])
def test_tiff_slices_hold_hounsfield_units(tmp_path: Path, dtype: type) -> None:
    images = RNG.integers(0, 2000, (3, 4, 5)).astype(dtype)
    frames = [Image.fromarray(image) for image in images]
    frames[0].save(tmp_path / "a.tif", save_all=True, append_images=frames[1:])

    (volume,) = data.read(tmp_path, values="hu")

    np.testing.assert_array_equal(volume.images, images)


def test_subjects_of_one_folder_are_told_apart_by_pattern(tmp_path: Path) -> None:
    for name in ("L067_1.png", "L067_2.png", "L096_1.png"):
        png(tmp_path / "train" / name, np.zeros((2, 2), np.uint16))
    for name in ("p1_1.png", "p2_1.png", "p2_2.png"):
        png(tmp_path / "test" / name, np.zeros((2, 2), np.uint16))

    assert [(v.subject, len(v)) for v in data.read(tmp_path / "train", values="hu")] == [("L067", 2), ("L096", 1)]
    found = data.read(tmp_path / "test", values="hu", subject=r"p\d")
    assert [(v.subject, len(v)) for v in found] == [("p1", 1), ("p2", 2)]


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    for i in range(3):
        png(tmp_path / f"{i}.png", RNG.integers(0, 2000, (40, 50)).astype(np.uint16))
    png(tmp_path / "wide.png", np.zeros((40, 60), np.uint16))
    png(tmp_path / "colour.png", np.zeros((40, 50, 3), np.uint8))
    content = (tmp_path / "0.png").read_bytes()
    (tmp_path / "cut.png").write_bytes(content[: len(content) // 2])
    (tmp_path / "text.png").write_text("words")

    volumes = data.read(tmp_path, values="hu")

    assert [len(volume) for volume in volumes] == [3]
    assert {s.path for s in volumes.report.skipped} == {"wide.png", "colour.png", "cut.png", "text.png"}
