"""Convert the networks of public packages, each in a process of its own, and try what could be silently wrong.

Run it with ``make coverage-outside``, which makes its environment. Give part of a name to see only those networks, and
``--missing`` for those alone of which nothing is kept yet. What was found is kept after each network.
"""

from __future__ import annotations

import argparse
import copy
import json
import multiprocessing
import platform
import resource
import signal
import sys
import time
import traceback
import warnings
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / "networks"), str(Path(__file__).parent)]

from coverage_outside import FOUND  # noqa: E402 - after the path is set
from outside import LIBRARIES  # noqa: E402
from soundness import fingerprint, leaves, misses, precision, set_random_gaps  # noqa: E402
from zoo import Case  # noqa: E402

import intervalnn as inn  # noqa: E402

DRAWS = 10
LAST_REL = 0.01  # gaps relative to the weights, where only the last two layers have some
SECONDS = 120


@dataclass
class Found:
    """What was found of one network of a package.

    Attributes:
        library: Its package.
        name: Its name.
        parameters: How many numbers it has.
        seconds: How long the first call took, in CPU time: other processes may run beside it.
        difference: Of the point from the model's own output in float32, relative to the largest output.
        draws: How many weights were drawn.
        outside: How many outputs left the bounds.
        reached: How much of a gap the draws used at most; next to nothing where bounds pile up through many layers.
        unbounded: The share of outputs with infinite bounds, for gaps as small as those of the draws.
        reason: Why it was refused, or could not be tried.
        wrong: What was silently wrong, one sentence each.
        kind: ``converts``, ``refused``, ``wrong``, ``crashed``, or ``untried`` where the model itself does not run
            here, or the whole took too long.
    """

    library: str
    name: str
    parameters: int = 0
    seconds: float = 0.0
    difference: float = 0.0
    draws: int = 0
    outside: int = 0
    reached: float = 0.0
    unbounded: float = 0.0
    reason: str = ""
    wrong: list[str] = field(default_factory=list)
    kind: str = "untried"


def examine(library: str, case: Case) -> Found:
    """Convert one network and try it: point, bounds, every parameter's part, the model's state, a second input."""
    found = Found(library, case.name)
    try:
        model = case.build()
        found.parameters = sum(p.numel() for p in model.parameters())
        args, kwargs = case.call()
        with torch.no_grad():
            model(*args, **kwargs)  # what a first call keeps is kept before the state is noted
            own = leaves(model(*args, **kwargs))
    except Exception as error:
        found.reason = said(error)
        return found
    before = state(model)
    try:
        net = inn.IntervalNetwork(model, layers="all")
        start = time.process_time()
        with torch.no_grad():
            bounds = leaves(net(*args, **kwargs))
        found.seconds = time.process_time() - start
        found.difference = farthest(bounds, own)
        found.wrong += changes(before, state(model))
        found.wrong += second(net, model, case)
        found.kind = "converts"
        within(case, found)
    except Exception as error:
        found.kind, found.reason = "refused", said(error)
        found.wrong += [f"after the refusal: {change}" for change in changes(before, state(model))]
    if found.difference > 1e-4:
        found.wrong.append(f"the point is {found.difference:.0e} away from the model's output")
    if found.outside:
        found.wrong.append(f"{found.outside} outputs left the bounds")
    if found.wrong:
        found.kind = "wrong"
    return found


def within(case: Case, found: Found) -> None:
    """Draw weights, and look for parameters whose gaps are ignored; in float64 where the model runs in it."""
    dtype, rtol = precision(case)
    args, kwargs = case.call(dtype)
    net = inn.IntervalNetwork(case.build(dtype), layers="all")
    set_random_gaps(net, rel=case.rel)
    try_draws(net, case, found, dtype, rtol)
    found.unbounded = unbounded(net, args, kwargs)
    found.wrong += ignored(net, case.build(dtype), args, kwargs)
    last_two(case, found, dtype, rtol)


def try_draws(net: inn.IntervalNetwork, case: Case, found: Found, dtype: torch.dtype, rtol: float) -> None:
    """Draw weights inside the intervals, and note which outputs leave the bounds, and how much of them is reached."""
    outside, reached = misses(net, case.build(dtype), *case.call(dtype), draws=DRAWS, rtol=rtol)
    found.draws += DRAWS
    found.outside += outside
    found.reached = max(found.reached, reached)


@torch.no_grad()
def unbounded(net: inn.IntervalNetwork, args: Any, kwargs: Any) -> float:
    """Return the share of outputs without finite bounds around a finite point."""
    bounds = [b for b in leaves(net(*args, **kwargs)) if isinstance(b, inn.Interval)]
    endless = sum(int((b.point.isfinite() & ~b.width.isfinite()).sum()) for b in bounds)
    return endless / max(sum(b.numel() for b in bounds), 1)


def farthest(bounds: list[Any], own: list[Tensor]) -> float:
    """Return the largest difference of a point from the model's own output, relative to the largest output."""
    if len(bounds) != len(own):
        return float("inf")
    found = 0.0
    for bound, output in zip(bounds, own, strict=True):
        point = bound.point if isinstance(bound, inn.Interval) else bound
        if point.shape != output.shape:
            return float("inf")
        if not torch.equal(point, output) and output.numel():
            scale = output.to(torch.float64 if not output.is_complex() else output.dtype).abs().max().clamp_min(1e-30)
            found = max(found, float(((point - output).abs().max() / scale).nan_to_num(float("inf"))))
    return found


def second(net: inn.IntervalNetwork, model: nn.Module, case: Case) -> list[str]:
    """Try a second input of the same sizes, which must get its own answer."""
    args, kwargs = case.call(seed=5)
    with torch.no_grad():
        difference = farthest(leaves(net(*args, **kwargs)), leaves(model(*args, **kwargs)))
    return [f"on a second input the point is {difference:.0e} away"] if difference > 1e-4 else []


@torch.no_grad()
def last_two(case: Case, found: Found, dtype: torch.dtype, rtol: float) -> None:
    """Try it with intervals in the last two layers alone, where bounds are near what the draws reach."""
    net = inn.IntervalNetwork(case.build(dtype), layers=2)
    args, kwargs = case.call(dtype)
    try:
        net(*args, **kwargs)
    except ValueError as error:
        if "the number of weight layers" in str(error) or "layers=2 asks for" in str(error):
            return  # it has no two
        raise
    set_random_gaps(net, rel=LAST_REL)
    bounds = [b for b in leaves(net(*args, **kwargs)) if isinstance(b, inn.Interval)]
    if not any(bool((b.width.abs() > 0).any()) for b in bounds):
        found.wrong.append("layers=2: gaps around the last two layers leave every width 0")
    try_draws(net, case, found, dtype, rtol)


def ignored(net: inn.IntervalNetwork, model: nn.Module, args: Any, kwargs: Any) -> list[str]:
    """Name the parameters that move the model's output while their gaps leave every width as it is.

    Those whose closed gaps have a gradient are part of the program; each of the rest is tried alone.
    """
    for name in net.names:
        net.set_gaps(name, 0.0, 0.0)
    bounds = [b for b in leaves(net(*args, **kwargs)) if isinstance(b, inn.Interval)]
    total = sum((real_width(b)).sum() for b in bounds)
    if isinstance(total, Tensor) and total.requires_grad:
        total.backward()  # type: ignore[no-untyped-call]
    silent = [name for name in net.names if not _moves(net, name)]
    return [
        f"the gaps of '{name}' are ignored"
        for name in silent
        if _width_alone(net, name, args, kwargs) == 0 and _output_moves(model, name, args, kwargs)
    ]


def real_width(bound: inn.Interval) -> Tensor:
    """Return widths as real, finite numbers."""
    width = torch.view_as_real(bound.width) if bound.width.is_complex() else bound.width
    return width.nan_to_num(0, 0, 0)


def _moves(net: inn.IntervalNetwork, name: str) -> bool:
    gradients = [p.grad for p in net.gaps.get_submodule(name).parameters()]
    return any(g is not None and bool((g != 0).any()) for g in gradients)


@torch.no_grad()
def _width_alone(net: inn.IntervalNetwork, name: str, args: Any, kwargs: Any) -> float:
    for other in net.names:
        gap = 0.1 if other == name else 0.0
        net.set_gaps(other, gap, gap)
    bounds = [b for b in leaves(net(*args, **kwargs)) if isinstance(b, inn.Interval)]
    return max((float(b.width.abs().max()) for b in bounds if b.width.numel()), default=0.0)


@torch.no_grad()
def _output_moves(model: nn.Module, name: str, args: Any, kwargs: Any) -> bool:
    before = copy.deepcopy(leaves(model(*args, **kwargs)))
    parameter = model.get_parameter(name)
    kept = parameter.clone()
    parameter.add_(0.05)
    after = leaves(model(*args, **kwargs))
    parameter.copy_(kept)
    return any(not torch.equal(a, b) for a, b in zip(before, after, strict=True))


def state(model: nn.Module) -> dict[str, Any]:
    """Return what a user could notice of a model, with the plain values of its attributes and its configuration."""
    noted = fingerprint(model)
    noted["attributes"] = {
        f"{name}.{key}": repr(value)
        for name, module in model.named_modules()
        for key, value in module.__dict__.items()
        if isinstance(value, int | float | str | None | dict | list | tuple) and not key.startswith("_")
    }
    noted["config"] = repr(getattr(model, "config", None))
    return noted


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Say what differs between two states."""
    found = []
    for part, noted in before.items():
        if noted != after[part]:
            keys = [k for k in noted if noted[k] != after[part].get(k)] if isinstance(noted, dict) else []
            found.append(f"the model's {part} changed{': ' + ', '.join(keys[:3]) if keys else ''}")
    return found


def said(error: Exception) -> str:
    """Return the first line of an error, without paths of this machine."""
    text = str(error).strip()
    line = text.splitlines()[0] if text else traceback.format_exception_only(error)[-1].strip()
    if not isinstance(error, ValueError | inn.MissingRuleError):
        line += f" [at {traceback.extract_tb(error.__traceback__)[-1].filename}]"
    for part in (Path(torch.__file__).parents[1], ROOT, Path(inn.__file__).parents[1]):
        line = line.replace(f"{part}/", "")
    return f"`{type(error).__name__}`: {line}"


def apart(library: str, case: Case) -> Found:
    """Examine one network in a process of its own, which may crash or hang without ending the others."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def work() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))  # SIGXCPU, before SIGKILL
        sender.send(asdict(examine(library, case)))

    process = context.Process(target=work)
    process.start()
    sender.close()
    found = Found(library, case.name)
    try:
        if receiver.poll(10 * SECONDS):
            return Found(**receiver.recv())
        found.reason = f"waited for more than {10 * SECONDS} s"
    except EOFError:
        process.join()
        if process.exitcode == -signal.SIGXCPU:
            found.reason = f"took more than {SECONDS} s"
        elif process.exitcode == -signal.SIGKILL:
            found.reason = "was killed, most likely because the memory of this machine was full"
        else:
            found.kind, found.reason = "crashed", f"the process ended with code {process.exitcode}"
    finally:
        if process.is_alive():
            process.kill()
        process.join()
    return found


def main() -> None:
    """Examine, print a row for each, and keep what was found."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wanted", nargs="?", default="", help="part of a package's or a network's name")
    parser.add_argument("--missing", action="store_true", help="only networks of which nothing is kept yet")
    options = parser.parse_args()
    for library, cases in LIBRARIES.items():
        for case in cases:
            if options.wanted in f"{library}: {case.name}" and not (options.missing and (library, case.name) in kept()):
                found = apart(library, case)
                keep(found)
                print(
                    f"{found.kind:9} {found.library}: {found.name} ({found.parameters:,}, {found.seconds:.1f} s, "
                    f"reached {found.reached:.0e}, without bounds {found.unbounded:.0%}) "
                    f"{found.reason} {'; '.join(found.wrong[:6])}",
                    flush=True,
                )


def kept() -> dict[tuple[str, str], dict[str, Any]]:
    """Return what was found of each network."""
    rows = json.loads(FOUND.read_text(encoding="utf-8"))["networks"] if FOUND.exists() else []
    return {(row["library"], row["name"]): row for row in rows}


def keep(found: Found) -> None:
    """Put what was found in the place of what was found of the same network before."""
    rows = kept() | {(found.library, found.name): asdict(found)}
    listed = [rows[key] for lib, cases in LIBRARIES.items() for case in cases if (key := (lib, case.name)) in rows]
    versions = {"Python": platform.python_version()}
    for name in ["torch", *LIBRARIES]:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    FOUND.write_text(
        json.dumps({"versions": versions, "seconds": SECONDS, "networks": listed}, indent=1) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
