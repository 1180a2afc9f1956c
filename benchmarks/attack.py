"""Search for outputs outside the bounds, and for how close to the bounds an attack comes.

    python benchmarks/attack.py --minutes 30

Each trial draws a network (``architectures.py``), gaps and inputs, and moves the weights inside their intervals
towards a bound of one output component: sign steps along the gradient, from several starts. Every output on the way
is checked in all its components. The reach is how much of the gap the attack used, at most 1 if the bounds are sound.

Gaps in a lower precision are right up to the rounding of each layer, which :func:`margin` states; a violation is what
lies beyond it. ``tests/properties/test_margin.py`` holds gaps to it without an attack.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import torch
from torch.func import functional_call

import intervalnn as inn
from architectures import architecture
from intervalnn.evaluation.cost import versions
from intervalnn.network.gaps import Kind

RESULTS = Path(__file__).parent / "results"
STEPS = 12
STARTS = 2
TARGETS = 3  # components attacked per network and gaps
ROUNDING = {torch.float64: 1e-9, torch.float32: 2e-4}  # relative to the largest output
ROUNDINGS = 2  # of a gap in each layer, in epsilons of a lower precision


def margin(depth: int, gap_dtype: torch.dtype | None) -> float:
    """Return by which share of itself a gap may be too small, since gaps were rounded on their way through a network.

    Args:
        depth: Layers between the first weight layer and the last.
        gap_dtype: In which gaps are propagated; None for that of the model, whose rounding is counted with the outputs.
    """
    return ROUNDINGS * (depth + 2) * torch.finfo(gap_dtype).eps if gap_dtype else 0.0


def trial(seed: int, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield what was found for each of three sizes of gaps around one network."""
    device, gap_dtype = options.device, getattr(torch, options.gap_dtype) if options.gap_dtype else None
    depth = (1, 1, 2, 3, 4, 6, 8)[seed % 7]
    made = architecture(seed, depth)
    dtype = torch.float32 if seed % 5 == 4 else torch.float64
    model, x = made.model.to(device, dtype), made.x.to(device, dtype)
    one_way = options.lopsided and seed % 2 == 0
    if one_way:
        model, x = _positive(model), x.abs()
    net = inn.IntervalNetwork(model, layers="all", kind=options.kind, gap_dtype=gap_dtype)
    net(x)
    generator = torch.Generator(device).manual_seed(seed)
    for rel in (1e-3, 1e-2, 1e-1):
        _random_gaps(net, rel, generator, lopsided=options.lopsided, one_way=one_way)
        with torch.no_grad():
            bounds = net(x)
        weights = {name: interval.detach() for name, interval in net.weight_intervals().items()}
        yield _attacked(model, x, bounds, weights, generator, margin(depth, gap_dtype)) | {
            "seed": seed,
            "depth": depth,
            "layers": made.layers,
            "rel": rel,
        }


@torch.no_grad()
def _positive(model: torch.nn.Module) -> torch.nn.Module:
    """Make all weights of a network positive, so that no signs even out gaps that are larger on one side."""
    for parameter in model.parameters():
        parameter.abs_()
    return model


@torch.no_grad()
def _random_gaps(
    net: inn.IntervalNetwork, rel: float, generator: torch.Generator, *, lopsided: bool, one_way: bool
) -> None:
    """Give every parameter gaps: asymmetric, about ``rel`` times its size, one in five zero.

    Lopsided ones are up to 10,000 times as large on one side, by parameter; one way, on the same side of all.
    """
    smaller = int(torch.randint(2, (), generator=generator, device=generator.device)) if one_way else None
    for name in net.names:
        gaps, point = net.gaps.get_submodule(name), net.weight_intervals()[name].point
        point = torch.view_as_real(point) if point.is_complex() else point
        size = rel if gaps.by_input else rel * (point.abs() + point.abs().mean())
        for side, gap in enumerate(gaps.sides):
            share, kept = (
                torch.rand(gap.shape, generator=generator, device=gap.device, dtype=gap.dtype) for _ in range(2)
            )
            less = torch.rand((), generator=generator, device=gap.device) if lopsided else 0.0
            if one_way:
                less = float(side == smaller)
            gap.copy_(10 ** (-4 * less) * size * share * (kept > 0.2))


def _attacked(
    model: torch.nn.Module,
    x: torch.Tensor,
    bounds: inn.Interval,
    weights: dict[str, inn.Interval],
    generator: torch.Generator,
    rounded: float,
) -> dict[str, Any]:
    """Return what was found; gaps may be too small by rounding, of the outputs and, as a share, of their own."""
    finite = bounds.width.isfinite()
    rounding = ROUNDING[x.dtype] * float(bounds.point.abs().max())
    gaps = ((1 + rounded) * gap.to(x.dtype) + rounding for gap in (bounds.below, bounds.above))
    allowed = inn.Interval(bounds.point, *gaps)
    outside, outputs, reached = 0, 0, []
    for _ in range(TARGETS):
        component = int(torch.randint(bounds.point.numel(), (), generator=generator, device=x.device))
        for sign in (1.0, -1.0):
            gap = (bounds.above if sign > 0 else bounds.below).flatten()[component]
            best = -math.inf
            for start in range(STARTS):
                for output in _steps(model, x, weights, component, sign, generator, random=start > 0):
                    outside += int((~allowed.contains(output)).sum())
                    outputs += 1
                    moved = sign * (output - bounds.point).flatten()[component]
                    best = max(best, float(moved))
            if bool(finite.flatten()[component]) and float(gap) > 10 * rounding:
                reached.append(best / float(gap))
    return {"outside": outside, "outputs": outputs, "reach": reached, "infinite": int((~finite).sum())}


def _steps(
    model: torch.nn.Module,
    x: torch.Tensor,
    weights: dict[str, inn.Interval],
    component: int,
    sign: float,
    generator: torch.Generator,
    *,
    random: bool,
) -> Iterator[torch.Tensor]:
    """Yield outputs of weights that move towards a bound, never leaving their intervals."""
    share = {
        name: torch.rand(w.point.shape, generator=generator, device=x.device, dtype=x.dtype)
        if random
        else torch.where(w.width > 0, w.below / w.width.clamp(min=1e-300 if x.dtype == torch.float64 else 1e-30), 0.5)
        for name, w in weights.items()
    }
    for step in range(STEPS):
        now = {}
        for name, w in weights.items():
            value = torch.lerp(w.lower, w.upper, share[name])
            now[name] = torch.minimum(torch.maximum(value, w.lower), w.upper).requires_grad_()
        output = functional_call(model, now, (x,))
        yield output.detach()
        (sign * output.flatten()[component]).backward()
        rate = 1.0 if step < 2 else 0.5 ** (step - 1)  # first to a corner, then finer
        for name, w in now.items():
            if w.grad is not None:
                share[name] = (share[name] + rate * w.grad.sign()).clamp(0, 1)


def _summary(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Return how close the attack came, by depth, by size of the gaps, and by kind of layer where it stands alone."""

    def spread(groups: dict[Any, list[float]]) -> dict[str, Any]:
        return {
            str(key): {
                "median": statistics.median(values),
                "most": max(values),
                "components": len(values),
            }
            for key, values in sorted(groups.items(), key=lambda item: str(item[0]))
        }

    depth: dict[Any, list[float]] = defaultdict(list)
    size: dict[Any, list[float]] = defaultdict(list)
    layer: dict[Any, list[float]] = defaultdict(list)
    for one in found:
        depth[one["depth"]] += one["reach"]
        size[one["rel"]] += one["reach"]
        if one["depth"] == 1:
            layer[one["layers"][0]] += one["reach"]
    return {
        "by depth": spread({k: v for k, v in depth.items() if v}),
        "by size of the gaps": spread({k: v for k, v in size.items() if v}),
        "by layer, alone between two weight layers": spread({k: v for k, v in layer.items() if v}),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--kind", choices=get_args(Kind), default="weight", help="what has a gap of its own")
    parser.add_argument("--gap-dtype", choices=["bfloat16"], help="data type of the gaps, if not the model's")
    parser.add_argument("--lopsided", action="store_true", help="gaps that are much larger on one side")
    parser.add_argument("--seed", type=int, default=0, help="the first; trial after trial counts up from it")
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    chosen = (options.kind if options.kind != "weight" else None, options.gap_dtype, options.lopsided and "lopsided")
    suffix = "".join(f"-{each}" for each in chosen if each)
    out = options.out or RESULTS / f"attack-{options.device}{suffix}.json"
    torch.backends.cudnn.allow_tf32 = False  # its rounding is coarser than what is searched for
    start, seed = time.monotonic(), options.seed
    found: list[dict[str, Any]] = []
    violations: list[dict[str, Any]] = []
    failures: list[dict[str, Any]] = []
    said = start
    while time.monotonic() - start < 60 * options.minutes:
        try:
            for one in trial(seed, options):
                found.append(one)
                if one["outside"]:
                    violations.append(one)
                    print(f"VIOLATION {one}", flush=True)
        except Exception as error:
            failures.append({"seed": seed, "error": f"{type(error).__name__}: {error}"[:300]})
            traceback.print_exc(limit=-2)
        seed += 1
        if time.monotonic() - said > 60:
            said = time.monotonic()
            print(
                f"{(said - start) / 60:.0f} min: {seed - options.seed} networks, {len(violations)} violations",
                flush=True,
            )
    record = {
        "command": "python " + " ".join(sys.argv),
        "minutes": (time.monotonic() - start) / 60,
        "versions": versions(torch.device(options.device).type),
        "kind": options.kind,
        "gap dtype": options.gap_dtype,
        "lopsided": options.lopsided,
        "networks": seed - options.seed,
        "trials": len(found),
        "outputs": sum(one["outputs"] for one in found),
        "violations": violations,
        "failures": failures,
        "infinite bounds": sum(bool(one["infinite"]) for one in found),
        "reach": _summary(found),
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    temporary = out.with_suffix(".part")
    temporary.write_text(json.dumps(record, indent=1) + "\n")
    temporary.replace(out)
    print(f"{len(found)} trials, {record['outputs']} outputs, {len(violations)} violations: {out}")
    sys.exit(bool(violations))


if __name__ == "__main__":
    main()
