"""Volume: any stored axes are turned upright and back."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest

from intervalnn.data import Geometry, Volume
from intervalnn.data.readers.volume import canonical, restored, restored_affine, upright

WAYS = [(order, signs) for order in permutations(range(3)) for signs in product((1, -1), repeat=3)]


@pytest.mark.parametrize(("order", "signs"), WAYS, ids=str)
def test_every_pixel_stays_where_it_is(order: tuple[int, ...], signs: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    stored = rng.normal(size=(3, 4, 5))
    affine = np.eye(4)
    affine[:3, :3] = np.diag([0.5, 0.75, 2.0])[:, list(order)] * signs + rng.normal(scale=0.02, size=(3, 3))
    affine[:3, 3] = rng.normal(size=3)

    axes, turned = canonical(stored.shape, affine)
    array = upright(stored, axes)

    directions = turned[:3, :3] / np.linalg.norm(turned[:3, :3], axis=0)
    assert (np.diag(directions.T @ [[0, 0, 1], [0, 1, 0], [-1, 0, 0]]) > 0.9).all()  # feet, back, left
    for index in np.ndindex(stored.shape):
        place = affine @ [*index, 1]
        found = np.rint(np.linalg.solve(turned, place)).astype(int)
        assert array[tuple(found[:3])] == stored[index]
    np.testing.assert_array_equal(restored(array, axes), stored)
    np.testing.assert_allclose(restored_affine(array.shape, turned, axes), affine)


def volume(count: int = 3, geometry: Geometry | None = None) -> Volume:
    images = np.zeros((count, 4, 5), np.float32)
    return Volume(images, "someone", "a.npy", "array", "hu", np.arange(count), geometry)


def test_a_regular_geometry_tells_places_and_spacing() -> None:
    found = volume(geometry=Geometry.regular([10, 7, 4], (0.5, 0.75)))

    assert found.spacing == (3, 0.5, 0.75)
    assert found.z is not None and found.z.tolist() == [10, 7, 4]
    assert found.geometry is not None and found.geometry.even
    np.testing.assert_allclose(found.geometry.affine @ [1, 2, 3, 1], [2.25, 1, 7, 1])


def test_missing_slices_make_it_uneven() -> None:
    assert not Geometry.regular([9, 6, 0], (1, 1)).even
    assert Geometry.regular([9, 6.001, 3], (1, 1)).even


def test_a_volume_without_places_says_how_to_give_them() -> None:
    assert volume().spacing is None and volume().z is None
    nowhere = volume(geometry=Geometry.regular([np.nan] * 3, (0.5, 0.75)))

    assert nowhere.spacing is not None and nowhere.spacing[1:] == (0.5, 0.75)
    for found in (volume(), nowhere):
        with pytest.raises(ValueError, match=r"Geometry\.regular"):
            found.positioned()


def test_a_volume_is_checked() -> None:
    with pytest.raises(ValueError, match=r"float32, got \(3, 4, 5\) in float64"):
        replace(volume(), images=np.zeros((3, 4, 5)))
    with pytest.raises(ValueError, match=r"as many slices each, got \[3, 2\]"):
        replace(volume(), index=np.arange(2))
    with pytest.raises(ValueError, match=r"as many slices each, got \[3, 3, 1\]"):
        volume(geometry=Geometry.regular([0], (1, 1)))


def test_a_volume_prints_in_one_line() -> None:
    assert repr(volume()) == "Volume(subject='someone', 3 slices of 4 x 5, unit='hu')"
    assert len(volume()) == 3
