"""Are bounds the same bit for bit before and after a change? Checksums over all small networks of the tests.

    python benchmarks/same.py write before.json
    python benchmarks/same.py compare before.json        # ends with 1 where one differs

Every network of ``tests/networks/zoo.py`` gets the same random gaps, in every kind, exact and not, in float32 and with
gaps in bfloat16; point and gaps of all outputs, and the gradients of the gaps, go into the checksum.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import sys
import warnings
from pathlib import Path

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "networks"))

from complex_zoo import ZOO as COMPLEX
from soundness import leaves, set_random_gaps
from zoo import ZOO, Case

import intervalnn as inn

KINDS = ("weight", "symmetric", "input")


def checksum(tensors: list[Tensor]) -> str:
    digest = hashlib.sha256()
    for tensor in tensors:
        flat = tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8)
        digest.update(str((tensor.dtype, tuple(tensor.shape))).encode() + flat.numpy().tobytes())
    return digest.hexdigest()[:16]


def of(case: Case, kind: str, exact: bool, gap_dtype: torch.dtype | None) -> str:
    """Return the checksum of one network in one form, or the error by which it is refused."""
    try:
        net = inn.IntervalNetwork(case.build(), layers="all", kind=kind, exact=exact, gap_dtype=gap_dtype)
        args, kwargs = case.call()
        with torch.no_grad():
            net(*args, **kwargs)
        if kind == "weight":
            set_random_gaps(net, rel=case.rel)
        else:
            generator = torch.Generator().manual_seed(2)
            for gap in net.parameters():
                gap.data.copy_(case.rel * torch.rand(gap.shape, generator=generator))
        bounds = [leaf for leaf in leaves(net(*args, **kwargs)) if isinstance(leaf, inn.Interval)]
        parts = [part for x in bounds for part in (x.point, x.below, x.above)]
        width = sum((torch.view_as_real(w) if w.is_complex() else w).double().sum() for w in (x.width for x in bounds))
        slopes = torch.autograd.grad(width, list(net.parameters()), allow_unused=True, materialize_grads=True)
        return checksum([*parts, *slopes])
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:200]


def all_checksums(only: str) -> dict[str, str]:
    found = {}
    for case in (*ZOO, *COMPLEX):
        if only not in str(case):
            continue
        for kind, exact, dtype in itertools.product(KINDS, (False, True), (None, torch.bfloat16)):
            found[f"{case} | {kind} | {'exact' if exact else 'cheap'} | {dtype}"] = of(case, kind, exact, dtype)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("do", choices=["write", "compare"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", default="", help="part of a network's name")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    found = all_checksums(options.only)
    if options.do == "write":
        options.file.write_text(json.dumps(found, indent=1) + "\n")
        print(f"{len(found)} forms of networks written to {options.file}")
        return
    before = json.loads(options.file.read_text())
    known = {name: value for name, value in found.items() if name in before}  # networks may have come since
    others = [name for name, value in known.items() if before[name] != value]
    for name in others:
        print(f"{name}: was {before[name]}, is {known[name]}")
    print(f"{len(known) - len(others)} of {len(known)} are the same bit for bit")
    sys.exit(bool(others))


if __name__ == "__main__":
    main()
