"""How tight the intervals are at equal coverage, next to fair baselines, on the 1D task.

    python benchmarks/fit_deconvolution.py run --noise 0.05 --seed 1 --device cuda --out runs
    python benchmarks/fit_deconvolution.py table runs

Every method is scaled by one factor on the validation split to the coverage asked for (conformal risk control), and
compared on the test split: interval (Winkler) score over the underlying model's mean absolute error, lower is better.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import measure
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import intervalnn as inn
from intervalnn import Prediction, losses

COVERAGE = 0.9
SMALL = (8, 16, 16, 16, 16, 16, 16, 16, 8)


class Heads(nn.Module):
    """The underlying network's body with a new last layer of several outputs, warm-started from it."""

    def __init__(self, model: nn.Module, outputs: int) -> None:
        super().__init__()
        body = copy.deepcopy(model.layers)
        last = body[-1]
        self.body = body[:-1]
        self.last = nn.Conv1d(last.in_channels, outputs, 1).to(last.weight)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.body(x))


def quantile_loss(output: Tensor, target: Tensor) -> Tensor:
    """Pinball loss of two quantiles, given as offsets from nothing: lower and upper end themselves."""
    middle = output.mean(1, keepdim=True)
    lower, upper = output.split(1, 1)
    gap = torch.zeros_like(middle)
    bounds = inn.Interval(middle, gap + middle - lower, gap + upper - middle)
    return losses.pinball(coverage=COVERAGE)(bounds, target)


def gaussian_loss(output: Tensor, target: Tensor) -> Tensor:
    mean, log_var = output.split(1, 1)
    return (0.5 * log_var + 0.5 * (target - mean).square() * torch.exp(-log_var)).mean()


def in_batches(fn: Callable[[Tensor], Any], x: Tensor, size: int = 256) -> list[Any]:
    with torch.no_grad():
        return [fn(part) for part in x.split(size)]


def symmetric(point: Tensor, spread: Tensor) -> Prediction:
    return Prediction(point, spread, spread, spread)


def winkler(p: Prediction, y: Tensor) -> Tensor:
    missed = (y - p.upper).clamp(min=0) + (p.lower - y).clamp(min=0)
    return p.below + p.above + 2 / (1 - COVERAGE) * missed


def factor(p: Prediction, y: Tensor) -> float:
    """The smallest factor of the gaps that keeps the coverage on new images (conformal risk control)."""
    tiny = 1e-12
    needed = torch.maximum((y - p.point) / p.above.clamp(min=tiny), (p.point - y) / p.below.clamp(min=tiny)).clamp(
        min=0
    )
    n, each = len(y), y[0].numel()
    allowed = ((1 - COVERAGE) * (n + 1) - 1) / n
    keep = int((1 - allowed) * n * each) + 1
    return float(needed.flatten().kthvalue(min(keep, needed.numel())).values)


def inside(p: Prediction, y: Tensor) -> float:
    return float(((p.lower <= y) & (y <= p.upper)).float().mean())


def score(val: Prediction, vy: Tensor, test: Prediction, ty: Tensor, mae: float) -> dict[str, float]:
    q = factor(val, vy)
    scaled = Prediction(test.point, q * test.below, q * test.above, q * test.score)
    error, width = (test.point - ty).abs().flatten(1), (test.below + test.above).flatten(1)
    pearson = [
        float(torch.corrcoef(torch.stack(pair))[0, 1]) for pair in zip(error, width, strict=True) if pair[1].std() > 0
    ]
    sign = torch.sign(test.above - test.below)
    moved = sign != 0
    return {
        "coverage": inside(test, ty),
        "coverage_calibrated": inside(scaled, ty),
        "winkler": float(winkler(test, ty).mean()) / mae,
        "winkler_calibrated": float(winkler(scaled, ty).mean()) / mae,
        "width_calibrated": float((scaled.below + scaled.above).mean()) / mae,
        "factor": q,
        "pearson": statistics.mean(pearson) if pearson else float("nan"),
        "direction": float((sign == torch.sign(ty - test.point))[moved].float().mean())
        if moved.any()
        else float("nan"),
    }


def joined(parts: list[Prediction]) -> Prediction:
    return Prediction(*(torch.cat([getattr(p, name) for p in parts]) for name in ("point", "below", "above", "score")))


def run(args: argparse.Namespace) -> dict[str, Any]:
    torch.manual_seed(args.seed)
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True
    size, samples, channels = (128, 1000, SMALL) if args.small else (512, 2000, inn.models.deconv_net.CHANNELS)
    task = inn.tasks.Deconvolution(noise=args.noise, size=size, samples=samples, seed=args.seed)
    splits = [(x.to(args.device), y.to(args.device)) for x, y in task.tensors()]
    (tx, ty), (vx, vy), (ex, ey) = splits
    train = DataLoader(TensorDataset(tx, ty), 256, shuffle=True)
    results: dict[str, Any] = {}
    seconds: dict[str, float] = {}

    def fitted(name: str, module: nn.Module, loss: Any, lr: float = 1e-3, data: Any = train) -> nn.Module:
        start = time.perf_counter()
        inn.fit(module, data, loss=loss, epochs=args.epochs, lr=lr, seed=args.seed, progress=False)
        seconds[name] = time.perf_counter() - start
        return module.eval()

    model = fitted("underlying", inn.models.DeconvNet(channels).to(args.device), losses.mse)
    point = {"val": torch.cat(in_batches(model, vx)), "test": torch.cat(in_batches(model, ex))}
    mae = float((point["test"] - ey).abs().mean())

    def add(name: str, predict: Callable[[Tensor], Prediction]) -> None:
        results[name] = score(joined(in_batches(predict, vx)), vy, joined(in_batches(predict, ex)), ey, mae)
        results[name]["seconds"] = seconds.get(name, 0.0)
        print(
            f"noise {args.noise} seed {args.seed} {name:34s}",
            {k: round(v, 3) for k, v in results[name].items()},
            flush=True,
        )

    add("constant width", lambda x: symmetric(model(x), torch.ones_like(x)))
    for name, layers, options in INTERVALS:
        if args.only and args.only not in name:
            continue
        net = inn.IntervalNetwork(model, layers=layers, **options.get("net", {}))
        start = time.perf_counter()
        inn.fit(net, train, seed=args.seed, progress=False, **options.get("fit", {"coverage": COVERAGE}))
        seconds[name] = time.perf_counter() - start
        add(name, net.predict)

    if not args.only:
        baselines(args, model, channels, train, (tx, ty), fitted, add)
    return {
        "noise": args.noise, "seed": args.seed, "epochs": args.epochs, "small": args.small, "mae": mae,
        "versions": measure.versions(args.device), "results": results,
    }  # fmt: skip


def baselines(
    args: argparse.Namespace,
    model: nn.Module,
    channels: Any,
    train: Any,
    data: tuple[Tensor, Tensor],
    fitted: Any,
    add: Any,
) -> None:
    tx, ty = data
    quantiles = fitted("quantile heads", Heads(model, 2), quantile_loss)

    def quantile_prediction(x: Tensor) -> Prediction:
        c, (low, high) = model(x), quantiles(x).split(1, 1)
        below, above = (c - low).clamp(min=0), (high - c).clamp(min=0)
        return Prediction(c, below, above, below + above)

    add("quantile heads", quantile_prediction)
    with torch.no_grad():
        errors = (torch.cat(in_batches(model, tx)) - ty).abs()
    pairs = DataLoader(TensorDataset(tx, errors), 256, shuffle=True)
    predictor = fitted("error predictor", Heads(model, 1), losses.mae, data=pairs)
    add("error predictor", lambda x: symmetric(model(x), predictor(x).clamp(min=1e-6)))
    gaussian = Heads(model, 2)
    with torch.no_grad():
        gaussian.last.weight[0], gaussian.last.bias[0] = model.layers[-1].weight[0], model.layers[-1].bias[0]
    fitted("ProbOut (fair)", gaussian, gaussian_loss, lr=1e-4)

    def prob_out(x: Tensor) -> Prediction:
        mean, log_var = gaussian(x).split(1, 1)
        return symmetric(mean, torch.exp(0.5 * log_var))

    add("ProbOut (fair)", prob_out)
    active = copy.deepcopy(model)
    for module in active.modules():
        if isinstance(module, nn.Dropout):
            module.train()
    add("MC dropout, 64 passes", lambda x: symmetric(model(x), torch.stack([active(x) for _ in range(64)]).std(0)))
    members = [model]
    start = time.perf_counter()
    for k in range(4):
        torch.manual_seed(1000 * args.seed + k)
        members.append(fitted("member", inn.models.DeconvNet(channels).to(args.device), losses.mse))
    print("ensemble", time.perf_counter() - start)

    def ensemble(x: Tensor) -> Prediction:
        outputs = torch.stack([member(x) for member in members])
        return symmetric(outputs.mean(0), outputs.std(0))

    add("deep ensemble of 5", ensemble)


INTERVALS: list[tuple[str, Any, dict[str, Any]]] = [
    ("INN, default, all layers", "all", {}),
    ("INN, default, last 4", 4, {}),
    ("INN, default, last 2", 2, {}),
    ("INN, published recipe", "all", {"fit": {"recipe": "paper"}}),
]


def table(folder: Path) -> str:
    """One row per method, mean and spread over seeds."""
    runs = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    lines = []
    for noise in sorted({r["noise"] for r in runs}):
        group = [r for r in runs if r["noise"] == noise]
        seeds = sorted(r["seed"] for r in group)
        lines += [
            f"\n## noise {noise}, seeds {seeds}, mean absolute error {statistics.mean(r['mae'] for r in group):.4f}\n",
            "| method | coverage | calibrated | Winkler / MAE at equal coverage | x quantile heads "
            "| Pearson | direction | seconds |",
            "| --- | --- | --- | --- | --- | --- | --- | --- |",
        ]
        names = [n for n in group[0]["results"] if all(n in r["results"] for r in group)]
        for name in sorted(names, key=lambda n: statistics.mean(r["results"][n]["winkler_calibrated"] for r in group)):
            rows = [r["results"][name] for r in group]

            def both(key: str, digits: int, rows: list[dict[str, float]] = rows) -> str:
                values = [row[key] for row in rows]
                spread = statistics.stdev(values) if len(values) > 1 else 0.0
                return f"{statistics.mean(values):.{digits}f} ± {spread:.{digits}f}"

            ratio = "-"
            if "quantile heads" in names:
                ratios = [
                    r["results"][name]["winkler_calibrated"] / r["results"]["quantile heads"]["winkler_calibrated"]
                    for r in group
                ]
                ratio = f"{statistics.mean(ratios):.3f}"
            lines.append(
                f"| {name} | {both('coverage', 3)} | {both('coverage_calibrated', 3)} "
                f"| {both('winkler_calibrated', 2)} | {ratio} "
                f"| {both('pearson', 3)} | {both('direction', 3)} | {both('seconds', 0)} |"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("run")
    one.add_argument("--noise", type=float, default=0.0)
    one.add_argument("--seed", type=int, default=0)
    one.add_argument("--epochs", type=int, default=100)
    one.add_argument("--device", default="cpu")
    one.add_argument("--small", action="store_true", help="a small network and short signals, for a look on the CPU")
    one.add_argument("--only", default="", help="only the interval networks whose name contains this")
    one.add_argument("--out", type=Path, default=Path("runs"))
    page = commands.add_parser("table")
    page.add_argument("folder", type=Path)
    args = parser.parse_args()
    if args.command == "table":
        print(table(args.folder))
        return
    found = run(args)
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / f"noise{args.noise}-seed{args.seed}.json"
    path.with_suffix(".part").write_text(json.dumps(found, indent=1))
    path.with_suffix(".part").replace(path)


if __name__ == "__main__":
    main()
