"""Kill jobs that write files at random moments, start them again, and look what is lost.

    python benchmarks/kill.py --minutes 10

Fits with a checkpoint, caches of inputs, saved networks, runs, predictions, volumes and exports: each is a process
of its own that gets SIGKILL several times on its way (``fuzzing/kills.py``). After every kill, whatever has its
final name must be whole and no older than before; in the end all must be, byte for byte, what an undisturbed job makes.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import torch

from fuzzing.kills import Found, jobs, one_round
from intervalnn.evaluation.cost import versions

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--kills", type=int, default=0, help="go on until there were so many, whatever the time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", metavar="REGEX", help="jobs whose names match; all by default")
    parser.add_argument("--out", type=Path, default=RESULTS / "kill.json")
    given = parser.parse_args()
    torch.set_num_threads(1)  # a fork has one thread, whatever its parent had
    root, chance, start = Path(tempfile.mkdtemp()), random.Random(given.seed), time.monotonic()
    chosen = jobs(given.only)
    found = {job.name: Found() for job in chosen}
    try:
        for job in chosen:
            (root / "whole" / job.name).mkdir(parents=True)
            job.undisturbed(root / "whole" / job.name)
        spent = dict.fromkeys(found, 0.0)
        while (
            0.0 in spent.values()
            or time.monotonic() - start < 60 * given.minutes
            or sum(each.kills for each in found.values()) < given.kills
        ):
            job = min(chosen, key=lambda job: spent[job.name])  # an equal share of the time for each
            begin = time.monotonic()
            one_round(job, root / job.name, chance, found[job.name])
            spent[job.name] += time.monotonic() - begin
    finally:
        shutil.rmtree(root)
    bad = [each for one in found.values() for each in one.bad]
    total = {
        "kills": sum(each.kills for each in found.values()),
        "while_writing": sum(each.while_writing for each in found.values()),
        "in_between": sum(each.in_between for each in found.values()),
        **{
            name: sum(len(getattr(each, name)) for each in found.values())
            for name in ("lost", "half_written", "different", "failed", "left")
        },
    }
    about = {
        "command": f"python benchmarks/kill.py --minutes {given.minutes:g} --seed {given.seed}",
        "versions": versions("cpu"),
        "minutes": round((time.monotonic() - start) / 60, 2),
        "total": total,
        "jobs": {name: asdict(each) for name, each in found.items()},
    }
    given.out.write_text(json.dumps(about, indent=1) + "\n")
    print(json.dumps(total, indent=1), *bad, sep="\n")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
