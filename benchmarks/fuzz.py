"""Search for files, configs and command lines that end in anything but a clear error or the right result.

    python benchmarks/fuzz.py --minutes 10
    python benchmarks/fuzz.py --only commands --minutes 10
    python benchmarks/fuzz.py --kind NIfTI --seed 17 --once

Every case is drawn from its kind and a seed by the generators of ``fuzzing``, and can be repeated by them. Each
kind runs in a process of its own, with little memory: one that dies, hangs or asks for more has failed. Where atheris
is installed, half of the time goes to the same checks with bytes that it makes, led by coverage. With ``--only``, what
is found takes the place of that kind in the file of results, beside how it was found; all else there stays.
"""

from __future__ import annotations

import argparse
import base64
import faulthandler
import importlib.util
import json
import logging
import os
import re
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

RESULTS = Path(__file__).parent / "results"
MEMORY = 6 * 2**30  # bytes that a process may ask for, torch and all
SECONDS = 60  # that a case may take
GUIDED = ["DICOM", "DICOM, no header", "NIfTI", "NIfTI-2", "NPY", "NPZ", "HDF5", "PNG", "TIFF"]
GUIDED += ["network", "checkpoint", "results", "prediction, NPZ", "configs"]
INSTRUMENTED = [
    "intervalnn.data",
    "intervalnn.cli.config",
    "intervalnn.evaluation.records",
    "intervalnn.files.container",
]
INSTRUMENTED += [
    "pydicom.filereader",
    "nibabel.nifti1",
    "nibabel.volumeutils",
    "PIL.TiffImagePlugin",
    "PIL.PngImagePlugin",
]


def cases() -> dict[str, Callable[[Random, Path], list[str] | None]]:
    """Return what tries one case of each kind, and says as what to count it where there is more to say."""
    from fuzzing import commands, configs
    from fuzzing.readers import READERS
    from fuzzing.saved import SAVED

    return {
        **{name: reader.case for name, reader in READERS.items()},
        **{name: saved.case for name, saved in SAVED.items()},
        "configs": configs.case,
        "commands": commands.case,
    }


def one(kind: str, seed: int) -> list[str] | None:
    with tempfile.TemporaryDirectory() as folder:
        return cases()[kind](Random(f"{kind} {seed}"), Path(folder))


def confine() -> None:
    """Let too much memory, too much time, and what libraries log, be seen as what they are."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    faulthandler.enable()
    logging.disable(logging.CRITICAL)
    sys.dont_write_bytecode = True


def many(kind: str, seed: int, seconds: float) -> None:
    """Try case after case, and write a line for each failure and one for the count, in the process of a kind."""
    cases()[kind]
    confine()
    start, first = time.monotonic(), seed
    while time.monotonic() - start < seconds:
        print(json.dumps({"at": seed}), flush=True)
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        try:
            print(json.dumps({"counts": one(kind, seed) or []}), flush=True)
        except BaseException as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            text = f"{type(error).__name__}: {error}"[:600]
            print(json.dumps({"seed": seed, "error": text, "at line": f"{where.name}:{where.lineno}"}), flush=True)
        seed += 1
    faulthandler.cancel_dump_traceback_later()
    print(json.dumps({"cases": seed - first}), flush=True)


def guided(kind: str, seconds: float, folder: Path) -> None:
    """Let atheris try bytes of its own making, in the process of a kind; it ends the process itself."""
    import atheris

    with atheris.instrument_imports(include=INSTRUMENTED):
        from fuzzing import configs
        from fuzzing.readers import READERS
        from fuzzing.saved import SAVED
    corpus = folder / "corpus"
    corpus.mkdir()
    if kind == "configs":
        original = b'device = "cpu"\n[fit]\nepochs = 3\nlr = 0.1\n[network]\nlayers = ["a"]\n'
    else:
        original = (
            READERS[kind].original(READERS[kind].path)
            if kind in READERS
            else SAVED[kind].original()[0][SAVED[kind].name]
        )
    (corpus / "whole").write_bytes(original)
    logging.disable(logging.CRITICAL)

    def target(content: bytes) -> None:
        with tempfile.TemporaryDirectory() as place:
            if kind == "configs":
                configs.check(content, [], Path(place))
            else:
                (READERS | SAVED)[kind].check(content, Path(place))

    limits = [f"-max_total_time={int(seconds)}", f"-timeout={SECONDS}", f"-rss_limit_mb={MEMORY // 2**20}"]
    files = [f"-artifact_prefix={folder}/", f"-max_len={2 * len(original)}", "-print_final_stats=1", str(corpus)]
    atheris.Setup([sys.argv[0], *limits, *files], target)
    atheris.Fuzz()


def searched(kind: str, seed: int, seconds: float) -> dict[str, Any]:
    """Search a kind in a process of its own, again and again if it dies, and return what was found."""
    found: dict[str, Any] = {"cases": 0, "failures": [], "counts": Counter()}
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        words = [sys.executable, __file__, "--kind", kind, "--seed", str(seed), "--seconds", str(left)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        last = max([line["at"] for line in lines if "at" in line], default=seed)
        found["failures"] += [line for line in lines if "error" in line]
        found["counts"].update(name for line in lines for name in line.get("counts", ()))
        found["cases"] += last - seed + 1 if lines else 0
        if done.returncode:
            why = f"ended with {done.returncode}: {done.stderr[:600]} ... {done.stderr[-600:]}"
            found["failures"].append({"seed": last, "error": why})
            if not lines:
                break
        seed = last + 1
    return found


def searched_guided(kind: str, seconds: float) -> dict[str, Any]:
    """Let atheris search a kind in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, __file__, "--kind", kind, "--seconds", str(seconds), "--guided", folder]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        count = re.search(r"stat::number_of_executed_units:\s*(\d+)", done.stderr)
        left = [path for path in Path(folder).iterdir() if path.is_file()]
        failures = [
            {"bytes": base64.b64encode(path.read_bytes()).decode(), "error": done.stderr[-3000:]} for path in left
        ]
        if done.returncode and not left:
            failures.append({"error": f"ended with {done.returncode}: {done.stderr[-1500:]}"})
        return {"cases": int(count[1]) if count else 0, "failures": failures}


def _search(options: argparse.Namespace) -> dict[str, Any]:
    import torch

    from intervalnn.evaluation.cost import versions

    start = time.monotonic()
    kinds = [kind for kind in cases() if options.only in (kind, None)]
    if not kinds:
        sys.exit(f"there is no kind {options.only!r}; there is {', '.join(cases())}")
    guided_kinds = [kind for kind in GUIDED if kind in kinds] if importlib.util.find_spec("atheris") else []
    jobs = min(options.jobs, len(kinds) + len(guided_kinds))
    share = 60 * options.minutes * jobs / (2 if guided_kinds else 1)
    record: dict[str, Any] = {
        "command": shlex.join(["python", *sys.argv]),
        "versions": versions(torch.device("cpu").type) | _installed(),
        "seed": options.seed,
        "cases": {},
        "guided cases": {},
        "counts": {},
        "failures": [],
    }

    def search(kind: str, led: bool) -> None:
        if led:
            found = searched_guided(kind, share / len(guided_kinds))
        else:
            found = searched(kind, options.seed, share / len(kinds))
        record["guided cases" if led else "cases"][kind] = found["cases"]
        if counts := found.get("counts"):
            record["counts"][kind] = dict(sorted(counts.items()))
        record["failures"] += [{"kind": kind, "guided": led} | each for each in found["failures"]]
        name = f"{kind}, guided" if led else kind
        print(f"{name}: {found['cases']} cases, {len(found['failures'])} failures", flush=True)

    with ThreadPoolExecutor(options.jobs) as pool:
        for done in [pool.submit(search, k, led) for led, ks in ((False, kinds), (True, guided_kinds)) for k in ks]:
            done.result()
    return record | {"minutes": (time.monotonic() - start) / 60}


def _merged(record: dict[str, Any], new: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return a record in which one kind was searched anew."""
    again = record.get("again", {})
    counted = again.get(kind, {"minutes": 0})["minutes"]
    parts = {part: record.get(part, {}) | new[part] for part in ("cases", "guided cases", "counts")}
    return {
        **record,
        **parts,
        "failures": [each for each in record["failures"] if each["kind"] != kind] + new["failures"],
        "minutes": record["minutes"] - counted + new["minutes"],
        "again": again | {kind: {name: new[name] for name in ("command", "versions", "seed", "minutes")}},
    }


def _installed() -> dict[str, str]:
    from importlib import metadata

    names = ("atheris", "numpy", "pydicom", "nibabel", "h5py", "pillow", "safetensors", "click")
    return {name: metadata.version(name) for name in names if importlib.util.find_spec(name.replace("pillow", "PIL"))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument(
        "--seed", type=int, default=0, help="the first of every kind; case after case counts up from it"
    )
    parser.add_argument("--jobs", type=int, default=2, help="how many processes search at a time")
    parser.add_argument("--kind", help="repeat a case, or search this kind alone")
    parser.add_argument("--only", help="search this kind, and keep what is recorded of the others")
    parser.add_argument("--once", action="store_true", help="try the case of --kind and --seed, and show its traceback")
    parser.add_argument("--seconds", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--guided", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=RESULTS / "fuzz.json")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if options.once:
        one(options.kind, options.seed)
    elif options.guided:
        guided(options.kind, options.seconds, options.guided)
    elif options.kind:
        many(options.kind, options.seed, options.seconds or 60 * options.minutes)
    else:
        record = _search(options)
        failures = record["failures"]
        if options.only and options.out.exists():
            record = _merged(json.loads(options.out.read_text()), record, options.only)
        options.out.parent.mkdir(parents=True, exist_ok=True)
        temporary = options.out.with_suffix(".part")
        temporary.write_text(json.dumps(record, indent=1) + "\n")
        temporary.replace(options.out)
        total = sum(record["cases"].values()) + sum(record["guided cases"].values())
        print(f"{total} cases, {len(record['failures'])} failures: {options.out}")
        sys.exit(bool(failures))


if __name__ == "__main__":
    main()
