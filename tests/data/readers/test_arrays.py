"""Arrays: npy and npz files, and a manifest that says whose they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from intervalnn import data

IMAGES = np.random.default_rng(0).integers(0, 3000, (6, 4, 5)).astype(np.uint16)


def manifest(folder: Path, *volumes: dict[str, Any], **changes: Any) -> Path:
    content = {"array": "img", "value": "HU + 1024 rounded", "volumes": volumes, **changes}
    (folder / "manifest.json").write_text(json.dumps(content))
    return folder / "manifest.json"


@pytest.mark.parametrize("values", ["hu", "hu+1024", "unit"])
def test_an_array_is_what_the_user_says(tmp_path: Path, values: Any) -> None:
    np.save(tmp_path / "a.npy", IMAGES)

    (volume,) = data.read(tmp_path, values=values)

    expected = {"hu": IMAGES, "hu+1024": IMAGES - 1024.0, "unit": IMAGES / 65535}[values]
    np.testing.assert_allclose(volume.images, expected, rtol=1e-6)
    assert volume.unit == ("unit" if values == "unit" else "hu")
    assert volume.subject == "a" and volume.geometry is None


def test_an_array_does_not_say_what_it_is(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", IMAGES)

    with pytest.raises(ValueError, match="give values, such as 'hu'"):
        data.read(tmp_path)


def test_one_image_is_one_slice(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", IMAGES[0])

    (volume,) = data.read(tmp_path / "a.npy", values="hu")

    assert volume.images.shape == (1, 4, 5)


def test_the_array_of_a_file_is_chosen_by_name(tmp_path: Path) -> None:
    np.savez(tmp_path / "one.npz", whatever=IMAGES)
    np.savez(tmp_path / "two.npz", a=IMAGES[:2], b=IMAGES[:3])

    volumes = data.read(tmp_path, values="hu")
    chosen = data.read(tmp_path, values="hu", key="b")

    assert [len(volume) for volume in volumes] == [6]
    assert volumes.report.skipped[0].reason == "holds several arrays: say which, key='a' or 'b'"
    assert [len(volume) for volume in chosen] == [3]
    assert chosen.report.skipped[0].reason == "has no array 'b', but whatever"


def test_a_manifest_says_it_all(tmp_path: Path) -> None:
    z = np.array([0, -3, -6, 0, -3, -6], np.float32)  # two visits
    np.savez_compressed(tmp_path / "a.npz", img=IMAGES, z_mm=z, spacing_mm=np.float32([0.5, 0.75]))
    spacing = np.float32([[1, 1], [1, 1], [2, 2], [1, 1], [1, 1], [1, 1]])
    np.savez(tmp_path / "b.npz", img=IMAGES, subject_index=np.int16([0, 0, 0, 1, 1, 2]), spacing_mm=spacing)
    manifest(tmp_path, {"file": "a.npz", "subject": "A"}, {"file": "b.npz", "subject_ids": ["B", "C", "D"]})

    volumes = data.read(tmp_path, errors="refuse")
    found = list(volumes)

    assert volumes.subjects == ("A", "B", "C", "D")
    assert [(v.subject, len(v)) for v in found] == [("A", 3), ("A", 3), ("B", 2), ("B", 1), ("C", 2), ("D", 1)]
    np.testing.assert_array_equal(np.concatenate([v.images for v in found[2:]]), IMAGES - np.float32(1024))
    assert found[0].spacing == (3, 0.5, 0.75) and found[1].index.tolist() == [3, 4, 5]
    assert found[3].spacing is not None and found[3].spacing[1:] == (2, 2)
    assert [v.subject for v in volumes.only(["C"])] == ["C"]


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "good.npz", img=IMAGES)
    content = (tmp_path / "good.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(content[:-30])
    (tmp_path / "flipped.npz").write_bytes(content[:120] + bytes([content[120] ^ 255]) + content[121:])
    (tmp_path / "text.npz").write_text("words")
    np.savez(tmp_path / "objects.npz", img=np.array([{}], object))
    np.savez(tmp_path / "flat.npz", img=np.zeros(3, np.uint16))
    np.savez(tmp_path / "lost.npz", img=IMAGES, subject_index=np.arange(6))
    np.savez(tmp_path / "unlisted.npz", img=IMAGES)
    listed = ["good", "cut", "flipped", "text", "objects", "flat", "lost"]
    manifest(tmp_path, *({"file": f"{name}.npz", "subject": name} for name in listed))

    volumes = data.read(tmp_path)

    assert [volume.name for volume in volumes] == ["good.npz"]
    assert {s.path for s in volumes.report.skipped} == {f"{name}.npz" for name in [*listed[1:], "unlisted"]}


@pytest.mark.parametrize("content", ["{", "[]", '{"volumes": [{}]}', '{"volumes": [{"file": "a.npz"}]}'])
def test_a_bad_manifest_is_refused(tmp_path: Path, content: str) -> None:
    np.savez(tmp_path / "a.npz", img=IMAGES)
    (tmp_path / "manifest.json").write_text(content)

    with pytest.raises(ValueError, match=r"manifest\.json must"):
        data.read(tmp_path, values="hu")
