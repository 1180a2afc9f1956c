"""Photos: patches of the photographs and textures that scikit-image has in its package, grey, in [0, 1]."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import numpy as np
import torch

from intervalnn.paper.experiments.splits import Split, spread

__all__ = ["NAMES", "patches"]

MOST = 64  # patches of a photo, evenly chosen, lest the largest ones outweigh the others
# Those that need no download and are in the public domain, CC0 or without known copyright by their documentation.
NAMES = (
    "astronaut",
    "brick",
    "camera",
    "cell",
    "chelsea",
    "coffee",
    "coins",
    "grass",
    "gravel",
    "hubble_deep_field",
    "immunohistochemistry",
    "retina",
    "rocket",
    "text",
)


def patches(size: int) -> Split:
    """Return squares that each photo is cut into, side by side; the subject of a patch is its photo."""
    if find_spec("skimage") is None:
        raise ValueError('photos are those of scikit-image, which is not installed: pip install "intervalnn[photos]"')
    grey, photos = import_module("skimage.color").rgb2gray, import_module("skimage.data")
    images, subjects = [], []
    for name in NAMES:
        photo = getattr(photos, name)()
        flat = np.asarray(grey(photo) if photo.ndim == 3 else photo / 255.0, np.float32)
        squares = torch.from_numpy(flat).unfold(0, size, size).unfold(1, size, size).reshape(-1, 1, size, size)
        images.append(squares[spread(len(squares), MOST)])
        subjects += [name] * len(images[-1])
    return Split(torch.cat(images).contiguous(), tuple(subjects))
