"""Names: what each tensor that goes in or comes out is called."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import torch.utils._pytree as pytree
from torch import Tensor

from intervalnn.prediction import Prediction

__all__ = ["flat", "joined_name", "named_leaves"]


def joined_name(*path: Any) -> str:
    """Return a place in a structure as one plain name.

    Example:
        >>> joined_name(pytree.MappingKey("hidden"), pytree.SequenceKey(0))
        'hidden_0'
        >>> joined_name(pytree.SequenceKey(1))
        'output_1'
    """
    name = re.sub(r"\W+", "_", pytree.keystr(path)).strip("_")
    return f"output_{name}" if name[:1].isdigit() else name


def named_leaves(predictions: Any) -> dict[str, Prediction | Tensor]:
    """Return the predictions and tensors of a structure by where they are in it, as the beginning of a name.

    What stands alone needs none.
    """
    found = pytree.tree_flatten_with_path(predictions)[0]
    leaves = {path: leaf for path, leaf in found if isinstance(leaf, Prediction | Tensor)}
    return {joined_name(*path) + "_" if len(leaves) > 1 else "": leaf for path, leaf in leaves.items()}


def flat(predictions: Any, outputs: Sequence[str]) -> dict[str, Tensor]:
    """Return the tensors of a structure of predictions by name.

    Args:
        predictions: What a network predicts.
        outputs: What to take of each :class:`Prediction`.

    Example:
        >>> import torch
        >>> p = Prediction(*torch.ones(4, 1))
        >>> flat({"a": p, "index": torch.arange(2)}, ["lower"])
        {'a_lower': tensor([0.]), 'index_value': tensor([0, 1])}
        >>> list(flat([p], ["point", "score"]))
        ['point', 'score']
    """
    tensors: dict[str, Tensor] = {}
    for place, leaf in named_leaves(predictions).items():
        if isinstance(leaf, Prediction):
            tensors |= {f"{place}{key}": leaf[key] for key in outputs}
        else:
            tensors[f"{place}value"] = leaf
    return tensors
