"""Splits: images for training, validation and test, whose subject each of them shows, and folds over subjects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from intervalnn import data
from intervalnn.data.readers.reading import Volumes
from intervalnn.data.readers.volume import Volume
from intervalnn.tasks import Phantoms

__all__ = ["Split", "crossed", "made_up", "of_folder", "of_folds", "spread"]

NAMES = ("train", "val", "test")
HELD_OUT = 4  # one of so many subjects that are not tested is for calibration


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Images, and whose they are.

    Attributes:
        images: ``(count, 1, rows, columns)``.
        subjects: The subject on each image.
    """

    images: Tensor
    subjects: tuple[str, ...]

    def take(self, numbers: Iterable[int]) -> Split:
        """Return some of the images."""
        chosen = list(numbers)
        return Split(self.images[chosen], tuple(self.subjects[i] for i in chosen))


def spread(size: int, count: int) -> Tensor:
    """Return so many numbers below ``size``, from the first to the last in even steps."""
    return torch.linspace(0, size - 1, min(count, size), dtype=torch.float64).round().long()


def made_up(size: int, patients: Iterable[int], slices: int) -> dict[str, Split]:
    """Return slices of made-up patients, so many patients for train, validation and test."""
    found = {}
    for seed, (name, count) in enumerate(zip(NAMES, patients, strict=True)):
        images, numbers = Phantoms(size, count, slices, seed=seed).data()
        found[name] = Split(images, tuple(map(str, numbers.tolist())))
    return found


def of_folder(volumes: Volumes, folder: Path, size: int, *, most: int | None) -> dict[str, Split]:
    """Return the splits that a manifest names, or else 8 : 1 : 1, with at most so many slices each."""
    every = {name: _read(part, size) for name, part in _listed(volumes, folder).items()}
    return {
        name: part.take(spread(len(part.images), most or len(part.images)).tolist()) for name, part in every.items()
    }


def of_folds(volumes: Volumes, folder: Path, size: int, *, fold: int, folds: int, each: int | None) -> dict[str, Split]:
    """Return splits of which the test one has the subjects of a fold; whatever else a manifest names stays as it is."""
    listed = _listed(volumes, folder)
    own = volumes.only(subject for name in NAMES for subject in listed[name].subjects)
    others = {name: _read(part, size) for name, part in listed.items() if name not in NAMES}
    return crossed(_read(own, size), fold=fold, folds=folds, each=each) | others


def crossed(whole: Split, *, fold: int, folds: int, each: int | None) -> dict[str, Split]:
    """Return train, validation and test, no subject in two of them; every subject is in the test split of one fold.

    Subjects with many images and those with few are shared out evenly.

    Args:
        whole: All images.
        fold: Which subjects to test.
        folds: How many parts there are.
        each: How many images of a subject to validate and to test on at most, evenly chosen; None for all.
    """
    counts = Counter(whole.subjects)
    by_size = sorted(counts, key=lambda subject: (-counts[subject], subject))
    test = by_size[fold % folds :: folds]
    rest = [subject for subject in by_size if subject not in test]
    val = rest[1::HELD_OUT]
    train = [subject for subject in rest if subject not in val]
    if not (train and val and test):
        raise ValueError(f"{folds} folds need more subjects, got {len(counts)}")
    chosen = zip(NAMES, (train, val, test), (None, each, each), strict=True)
    return {name: whole.take(_numbers(whole.subjects, subjects, most)) for name, subjects, most in chosen}


def _numbers(subjects: tuple[str, ...], wanted: Iterable[str], most: int | None) -> list[int]:
    """Return which images are of the wanted subjects, at most so many of each."""
    found = []
    for subject in wanted:
        own = [i for i, other in enumerate(subjects) if other == subject]
        found += [own[i] for i in spread(len(own), most or len(own)).tolist()]
    return sorted(found)


def _listed(volumes: Volumes, folder: Path) -> dict[str, Volumes]:
    manifest = folder / "manifest.json"
    listed = data.split_by_subject(volumes, manifest=manifest if manifest.exists() else None)
    if missing := set(NAMES) - listed.keys():
        raise ValueError(f"{manifest} must name train, val and test, and lacks {', '.join(sorted(missing))}")
    return listed


def _read(volumes: Iterable[Volume], size: int) -> Split:
    parts = [(data.slices([volume], size), volume.subject) for volume in volumes]
    subjects = (subject for images, subject in parts for _ in images)
    return Split(torch.cat([images for images, _ in parts]), tuple(subjects))
