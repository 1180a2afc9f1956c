"""How tight bounds are by what has a gap of its own: every weight (on either side or the same on both), or every input.

    python benchmarks/kinds.py

Each kind is fitted around the same networks of the 1D task at quick scale, and compared at equal coverage.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from pathlib import Path
from typing import Any, get_args

import torch

import intervalnn as inn
from intervalnn.evaluation.cost import versions
from intervalnn.network.gaps import Kind
from intervalnn.paper.experiments import deconvolution
from intervalnn.paper.experiments.comparison import COVERAGE
from intervalnn.paper.experiments.scales import DECONVOLUTION

SCORE, DIRECTION = "winkler at equal coverage", "direction_accuracy"


def trial(setting: deconvolution.Setting, layers: Any, work: Path) -> dict[str, tuple[float, float]]:
    """Return for each kind the interval score at equal coverage, over the underlying model's error, and how often the
    wide side is the right one."""
    model = deconvolution.underlying(setting, work)
    train, held_out, test = setting.loaders()
    with torch.no_grad():
        mae = statistics.fmean(float((model(x) - y).abs().mean()) for x, y in test)
    found = {}
    for kind in get_args(Kind):
        net = inn.IntervalNetwork(model, layers=layers, kind=kind)
        epochs = setting.scale.fit_epochs
        options: dict[str, Any] = {"coverage": COVERAGE, "epochs": epochs, "seed": setting.seed, "progress": False}
        inn.fit(net, train, **options)
        how: dict[str, Any] = {"held_out": held_out, "coverage": COVERAGE, "progress": False}
        results = inn.evaluate({kind: net.eval()}, test, metrics=[inn.metrics.direction_accuracy], **how)
        found[kind] = results.spread(kind, SCORE).mean / mae, results.spread(kind, DIRECTION).mean
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "kinds-cpu.json")
    args = parser.parse_args()
    scale, rows = DECONVOLUTION["quick"], []
    with tempfile.TemporaryDirectory() as work:
        for noise in scale.noises:
            for layers in (deconvolution.LAYERS, "all"):
                settings = [deconvolution.Setting(scale, noise, seed) for seed in range(args.seeds)]
                trials = [trial(setting, layers, Path(work)) for setting in settings]
                for kind in get_args(Kind):
                    row = {
                        "noise": noise,
                        "layers": layers,
                        "kind": kind,
                        "score": statistics.fmean(one[kind][0] for one in trials),
                        "score, x weight": statistics.fmean(one[kind][0] / one["weight"][0] for one in trials),
                        "direction": statistics.fmean(one[kind][1] for one in trials),
                    }
                    rows.append(row)
                    print(row, flush=True)
    record = {
        "command": f"python benchmarks/kinds.py --seeds {args.seeds}",
        "versions": versions("cpu"),
        "rows": rows,
    }
    temporary = args.out.with_suffix(".part")
    temporary.write_text(json.dumps(record, indent=1))
    temporary.replace(args.out)


if __name__ == "__main__":
    main()
