"""Names: what each tensor that goes in or comes out is called."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from torch import Tensor

from intervalnn.network.capture.parts import is_plain
from intervalnn.prediction import Prediction
from intervalnn.torch_private import pytree

__all__ = ["apart", "flat", "joined_name", "named_leaves"]


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


def apart(names: Iterable[str], taken: Collection[str] = ()) -> list[str]:
    """Return names that differ from each other and from those that are taken, by numbers behind them where need be.

    Example:
        >>> apart(["a", "b", "a"], taken=["b"])
        ['a', 'b_2', 'a_2']
    """
    found: list[str] = []
    for name in names:
        candidates = itertools.chain([name], (f"{name}_{number}" for number in itertools.count(2)))
        found.append(next(each for each in candidates if each not in taken and each not in found))
    return found


def named_leaves(predictions: Any) -> dict[str, Prediction | Tensor]:
    """Return the predictions and tensors of a structure by where they are in it, as the beginning of a name.

    What stands alone needs none.
    """
    found = pytree.tree_flatten_with_path(_opened(predictions))[0]
    leaves = {path: leaf for path, leaf in found if isinstance(leaf, Prediction | Tensor)}
    if len(leaves) == 1:
        return dict.fromkeys([""], *leaves.values())
    names = apart(joined_name(*path) for path in leaves)
    return {f"{name}_": leaf for name, leaf in zip(names, leaves.values(), strict=True)}


def _opened(value: Any) -> Any:
    """Return a structure with the attributes of objects that torch does not take apart."""

    def attributes(leaf: Any) -> Any:
        if isinstance(leaf, Prediction | Tensor) or is_plain(leaf):
            return leaf
        names = [field.name for field in fields(leaf)] if is_dataclass(leaf) else list(vars(leaf))
        return _opened({name: getattr(leaf, name) for name in names})

    return pytree.tree_map(attributes, value)


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
