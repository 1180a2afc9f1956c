"""How tight the intervals are at equal coverage, next to fair baselines, on the 1D task.

    python benchmarks/fit_deconvolution.py run --noise 0.05 --seed 1 --device cuda --out runs
    python benchmarks/fit_deconvolution.py table runs

Every method is scaled on the validation split to the coverage asked for (conformal risk control), and compared on
the test split. All that is trained takes the steps that `fit` takes by default, but for what the paper publishes.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import intervalnn as inn
from intervalnn import losses, methods
from intervalnn.results import Measured, Results, Run

COVERAGE = 0.9
SMALL = (8, 16, 16, 16, 16, 16, 16, 16, 8)
WINKLER = "winkler at equal coverage"


def fitted(method: Any, train: DataLoader[Any], **options: Any) -> Any:
    inn.fit(method, train, progress=False, **options)
    return method.eval()


def candidates(model: nn.Module, train: DataLoader[Any], seed: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield how each method is made, the cheap ones first."""
    ask = {"coverage": COVERAGE, "seed": seed}
    yield "constant width", lambda: methods.ConstantWidth(model)
    yield "MC dropout, 64 passes", lambda: methods.MCDropout(model, samples=64, seed=seed)
    yield "quantile heads", lambda: fitted(methods.QuantileHeads(model), train, **ask)
    yield "INN, last 4", lambda: fitted(inn.IntervalNetwork(model, layers=4), train, **ask)
    yield "error predictor", lambda: fitted(methods.ErrorPredictor(model), train, **ask)
    yield "ProbOut", lambda: fitted(methods.ProbOut(model), train, **ask)
    yield "INN, last 2", lambda: fitted(inn.IntervalNetwork(model, layers=2), train, **ask)
    yield (
        "ensemble of 5",
        lambda: fitted(methods.Ensemble.like(model, 5, seed=seed + 1), train, epochs=100, lr=1e-3, seed=seed),
    )
    yield "ProbOut, published", lambda: fitted(methods.ProbOut(model), train, recipe="paper", seed=seed)
    yield (
        "INN, published",
        lambda: fitted(inn.IntervalNetwork(model, layers="all"), train, recipe="paper", seed=seed),
    )
    yield "INN, all layers", lambda: fitted(inn.IntervalNetwork(model, layers="all"), train, **ask)


def run(args: argparse.Namespace) -> None:
    torch.manual_seed(args.seed)
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True
    size, samples, channels = (128, 1000, SMALL) if args.small else (512, 2000, inn.models.deconv_net.CHANNELS)
    task = inn.tasks.Deconvolution(noise=args.noise, size=size, samples=samples, seed=args.seed)
    splits = [TensorDataset(x.to(args.device), y.to(args.device)) for x, y in task.tensors()]
    train, val, test = (DataLoader(split, 256, shuffle=index == 0) for index, split in enumerate(splits))
    model = inn.models.DeconvNet(channels).to(args.device)
    fitted(model, train, loss=losses.mse, epochs=args.epochs, lr=1e-3, seed=args.seed)
    found: dict[str, Measured] = {}
    took: dict[str, float] = {}
    for name, make in candidates(model, train, args.seed):
        if args.only and args.only not in name:
            continue
        start = time.perf_counter()
        method = make()
        took[name] = time.perf_counter() - start
        one = inn.evaluate({name: method}, test, held_out=val, coverage=COVERAGE, seed=args.seed).runs[0]
        found |= one.methods
        with torch.no_grad():
            mae = float(torch.cat([(model(x) - y).abs() for x, y in test]).mean())
        settings = {"noise": args.noise, "epochs": args.epochs, "small": args.small, "mae": mae, "fit_seconds": took}
        whole = Run(dict(found), COVERAGE, one.better, args.seed, settings, one.versions)
        whole.save(args.out / f"noise{args.noise}-seed{args.seed}.json", overwrite=True)  # of this very run
        values = {m: round(statistics.fmean(v), 4) for m, v in found[name].values.items()}
        print(f"noise {args.noise} seed {args.seed} {name} {took[name]:.0f} s {values}", flush=True)


def table(folder: Path) -> str:
    """One table per noise, with the interval score in multiples of the underlying model's error."""
    runs = [Run.load(path) for path in sorted(folder.glob("noise*.json"))]
    pages = ["# Interval networks and baselines on the 1D task\n"]
    pages.append(
        "Written by `python benchmarks/fit_deconvolution.py table FOLDER` from the runs beside it "
        f"({runs[0].versions['device']}, torch {runs[0].versions['torch']}). Mean ± standard deviation over seeds. "
        "Winkler is the interval score at equal coverage (calibrated on the validation split), over the underlying "
        "model's mean absolute error, lower is better; x is its ratio to that of the quantile heads, and p how likely "
        "a difference as large is by chance (paired bootstrap over test signals)."
    )
    for noise in sorted({run.settings["noise"] for run in runs}):
        group = [run for run in runs if run.settings["noise"] == noise]
        names = [name for name in group[0].methods if all(name in run.methods for run in group)]
        kept = [Run({n: r.methods[n] for n in names}, r.coverage, r.better, r.seed, r.settings) for r in group]
        pages.append(_table_of(Results(kept), noise))
    return "\n".join(pages) + "\n"


def _table_of(results: Results, noise: float) -> str:
    runs = results.runs
    mae = statistics.fmean(run.settings["mae"] for run in runs)
    lines = [
        f"\n## Noise {noise}, seeds {[run.seed for run in runs]}, mean absolute error {mae:.4f}\n",
        "| method | coverage | calibrated | Winkler / MAE | x | p | Pearson | fit, s |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]

    def each(name: str, metric: str, scaled: bool = False) -> list[float]:
        unit = [run.settings["mae"] if scaled else 1.0 for run in runs]
        return [float(v.mean()) / u for v, u in zip(results.per_run(name, metric), unit, strict=True)]

    def both(values: list[float], digits: int) -> str:
        spread = statistics.stdev(values) if len(values) > 1 else 0.0
        return f"{statistics.fmean(values):.{digits}f} ± {spread:.{digits}f}"

    for name in sorted(results.methods, key=lambda n: statistics.fmean(each(n, WINKLER, scaled=True))):
        score, base = (each(n, WINKLER, scaled=True) for n in (name, "quantile heads"))
        ratio = statistics.fmean(a / b for a, b in zip(score, base, strict=True))
        p = results.compare(WINKLER, name, "quantile heads").p if name != "quantile heads" else 1.0
        pearson = results.spread(name, "pearson")
        seconds = statistics.fmean(run.settings["fit_seconds"][name] for run in runs)
        lines.append(
            f"| {name} | {both(each(name, 'coverage'), 3)} | {both(each(name, 'coverage at equal coverage'), 3)} "
            f"| {both(score, 2)} | {ratio:.3f} | {p:.2g} | {pearson} | {seconds:.0f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("run")
    one.add_argument("--noise", type=float, default=0.0)
    one.add_argument("--seed", type=int, default=0)
    one.add_argument("--epochs", type=int, default=100, help="of the underlying model")
    one.add_argument("--device", default="cpu")
    one.add_argument("--small", action="store_true", help="a small network and short signals, for a look on the CPU")
    one.add_argument("--only", default="", help="only methods whose name contains this")
    one.add_argument("--out", type=Path, default=Path("runs"))
    page = commands.add_parser("table")
    page.add_argument("folder", type=Path)
    args = parser.parse_args()
    if args.command == "table":
        text = table(args.folder)
        (args.folder / "README.md").write_text(text)
        print(text)
    else:
        run(args)


if __name__ == "__main__":
    main()
