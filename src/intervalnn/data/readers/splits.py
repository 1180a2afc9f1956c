"""Splits: always by subject, never by slice."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from intervalnn.data.readers.manifest import Manifest
from intervalnn.data.readers.reading import Volumes

__all__ = ["split_by_subject"]

_SHARES = {"train": 0.8, "val": 0.1, "test": 0.1}  # Sec. 5: eight patients, one, one


def split_by_subject(
    volumes: Volumes,
    *,
    shares: Mapping[str, float] | None = None,
    seed: int = 0,
    manifest: str | Path | Mapping[str, Iterable[str]] | None = None,
    field: str = "split",
) -> dict[str, Volumes]:
    """Return the volumes of each split; all volumes of a subject are in the same one.

    Args:
        volumes: What :func:`read` returned.
        shares: What share of the subjects each split gets, at least one each; by default 8 : 1 : 1
            into ``train``, ``val`` and ``test``.
        seed: Chooses who goes where, whatever order the files have.
        manifest: Says who goes where instead: the subjects of each split, or a manifest file.
        field: Where in the manifest file the split is named; a subject with null there is left out.
    """
    subjects = set(volumes.subjects)
    if manifest is None:
        chosen: Mapping[str, str | None] = _chosen(subjects, _SHARES if shares is None else shares, seed)
    elif shares is not None:
        raise ValueError("give shares or a manifest, not both")
    else:
        chosen = _listed(manifest, field)
        unknown = sorted(subjects - chosen.keys())
        if unknown:
            raise ValueError(f"the manifest must say where each subject belongs, and says nothing of {unknown}")
    names = dict.fromkeys(name for name in chosen.values() if name is not None)
    return {name: volumes.only(s for s in subjects if chosen[s] == name) for name in names}


def _chosen(subjects: Iterable[str], shares: Mapping[str, float], seed: int) -> dict[str, str]:
    order = sorted(set(subjects), key=lambda s: hashlib.sha256(f"{seed}:{s}".encode()).digest())
    if not shares or any(share <= 0 for share in shares.values()) or not math.isclose(sum(shares.values()), 1):
        raise ValueError(f"shares must be positive and add up to 1, got {dict(shares)}")
    if len(order) < len(shares):
        raise ValueError(f"{len(shares)} splits need as many subjects at least, got {len(order)}")
    counts = {name: max(1, math.floor(share * len(order) + 1e-9)) for name, share in shares.items()}
    by_need = sorted(shares, key=lambda name: counts[name] - shares[name] * len(order))
    for i in range(len(order) - sum(counts.values())):  # what rounding down left over
        counts[by_need[i % len(by_need)]] += 1
    while sum(counts.values()) > len(order):  # what the least of one took too much
        counts[max(counts, key=lambda name: counts[name])] -= 1
    names = (name for name, count in counts.items() for _ in range(count))
    return dict(zip(order, names, strict=True))


def _listed(manifest: str | Path | Mapping[str, Iterable[str]], field: str) -> Mapping[str, str | None]:
    if not isinstance(manifest, Mapping):
        return Manifest.load(manifest).splits(field)
    counts = Counter(subject for subjects in manifest.values() for subject in set(subjects))
    twice = sorted(subject for subject, count in counts.items() if count > 1)
    if twice:
        raise ValueError(f"a subject belongs to one split, and {twice} are in several")
    return {subject: name for name, subjects in manifest.items() for subject in subjects}
