"""Try random members of each class of fault that once was silent, for a given time.

    python benchmarks/stress.py --minutes 10
    python benchmarks/stress.py --only state --seed 17 --once
    PYTHONPATH=before/src python benchmarks/stress.py --out stress-before --of "commit 9e1c0fe"  # older code

A member is drawn from its class and a seed, and can be repeated by them. It either gives bounds, which are checked
against the model itself, or is refused by an error that helps; anything else is a fault, and the command ends with 1.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import sys
import time
import traceback
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

try:
    from intervalnn.evaluation.cost import versions
except ImportError:  # its place in older code
    from intervalnn.cost import versions

RESULTS = Path(__file__).parent / "results"
CLASSES = {
    "slopes at closed gaps": "operations.slopes",
    "bounds of operations": "operations.bounds",
    "aliases of parameters": "aliases.member",
    "arguments": "arguments.member",
    "state": "state.member",
    "caches": "caches.member",
    "numbers": "numbers.member",
    "threads": "threads.member",
    "refusals": "errors.member",
}


def member(name: str) -> Callable[[Random], str]:
    """Return what tries a member of a class; it is imported here, since older code may lack what one class needs."""
    module, _, function = CLASSES[name].partition(".")
    found: Callable[[Random], str] = getattr(importlib.import_module(f"members.{module}"), function)
    return found


def can_be_tried(name: str) -> bool:
    try:
        return bool(member(name))
    except ImportError as error:
        print(f"{name} cannot be tried: {error}")
        return False


def run(name: str, seed: int) -> tuple[str, str]:
    """Return how one member ended, and what was wrong with it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return member(name)(Random(f"{name} {seed}")), ""
    except Exception as error:
        said = f"{type(error).__name__}: {error}".splitlines()[0][:300]
        return "fault", re.sub(r"/\S*/(?=[\w.]+\.py)", "", said)  # without paths of this machine


def campaign(names: list[str], minutes: float, seed: int) -> dict[str, Any]:
    """Try the classes in turn until the time is up; each gets as much of it."""
    ended, faults = defaultdict(Counter), []
    spent: Counter[str] = Counter()
    start = time.monotonic()
    while time.monotonic() - start < 60 * minutes:
        name = min(names, key=lambda each: spent[each])
        began = time.monotonic()
        how, said = run(name, seed + sum(ended[name].values()))
        spent[name] += time.monotonic() - began
        ended[name][how] += 1
        if said:
            faults.append({"class": name, "seed": seed + sum(ended[name].values()) - 1, "said": said})
            print(f"{name}, seed {faults[-1]['seed']}: {said}", flush=True)
    return {"tried": {name: dict(ended[name]) for name in names}, "faults": faults}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=CLASSES)
    parser.add_argument("--once", action="store_true", help="one member, with its traceback")
    parser.add_argument("--out", default="stress", help="the name of the file in results/, without suffix")
    parser.add_argument("--of", default="", help="which state of the code is tried, if not this one")
    options = parser.parse_args()
    torch.set_num_threads(1)
    names = [name for name in ([options.only] if options.only else CLASSES) if can_be_tried(name)]
    if options.once:
        print(member(names[0])(Random(f"{names[0]} {options.seed}")))
        return
    found = campaign(names, options.minutes, options.seed)
    for name, counts in found["tried"].items():
        print(f"{name:24} {counts}")
    if not options.only:
        record = {
            "command": " ".join(["python", *sys.argv]),
            "minutes": options.minutes,
            "seed": options.seed,
            "of": options.of,
        }
        (RESULTS / f"{options.out}.json").write_text(
            json.dumps(record | {"versions": versions("cpu")} | found, indent=1) + "\n"
        )
    sys.exit(bool(found["faults"]))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        traceback.print_exc(limit=1)
