"""Arrays as one npz file, written whole or not at all."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from intervalnn.files.whole import replacing

__all__ = ["write_npz"]


def write_npz(path: str | Path, arrays: Mapping[str, Any], *, compressed: bool = False) -> None:
    """Write arrays to a file that ``numpy.load`` reads.

    Before 2.2, ``numpy.savez`` itself leaves the archive open where the disk is full, which Python then complains of.
    """
    packing = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w", packing) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
