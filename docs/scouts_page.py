"""The page on scouts, from the runs at scale small and the search for the usual scout; every number is read there."""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path

from intervalnn.evaluation.results import Results
from intervalnn.paper.experiments import tab_deconvolution, tab_images, tab_scouts
from intervalnn.paper.experiments.tables import WINKLER, over_mae, subjects_of

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

from scouts import summary as searched  # noqa: E402 - after the path is set

RUNS = ROOT / "results"
SEARCHES = {  # what was looked for, and what all others are compared with
    "scouts-1": "scout 32x3, last 4",
    "scouts-2": "scout 32x3, last 4",
    "scouts-3": "scout 48x4, 4 taps, rate 0.004, last 2",
}
TASKS = {
    "ct": "Limited-angle CT, 64x64",
    "denoising": "Denoising, 64x64",
    "mri": "Undersampled MRI, 64x64",
    "photos": "Super-resolution of photos, 64x64",
}
OURS, ALONE, LONGER = tab_scouts.OURS, "scout alone", "quantile heads, 4x steps"
NO_PEERS = (OURS, ALONE, "INN", LONGER)
AIMS = {"peer": 0.90, "longer": 0.95, "even": 0.9}


def found() -> dict[str, tuple[Results, str]]:
    """Return the runs of each task, and what is one draw there."""
    images = {name: (tab_images.results(RUNS / task / "small"), "subject") for task, name in TASKS.items()}
    images[TASKS["photos"]] = images[TASKS["photos"]][0], "photo"
    noises = tab_deconvolution.results(RUNS / "deconv" / "small")
    return images | {f"1D deconvolution, noise {noise:g}": (each, "signal") for noise, each in noises.items()}


def times(results: Results, ours: str, other: str, run: int | None = None) -> float:
    """Return the ratio of two interval scores, mean over the runs, or in one of them."""
    pairs = list(zip(over_mae(results, ours, WINKLER), over_mae(results, other, WINKLER), strict=True))
    return statistics.fmean(a / b for a, b in (pairs if run is None else pairs[run : run + 1]))


def page() -> str:
    every = found()
    return "\n".join(
        [
            "# Results: scouts\n",
            "**This page is written by `docs/make_results.py` from the runs in `results` and the searches in "
            "`benchmarks/results`; no number is typed by hand.** `inn reproduce ct --scale small --data "
            "FOLDER` and the "
            "like make the runs, `benchmarks/scouts.py` the searches.\n",
            "Small networks, so that all of it can be run again on a CPU: U-Nets of base 8 and about 1000 steps of 12 "
            "images, nine convolutions of 16 channels and 2000 steps of 64 signals. Real slices of 70 people, cut into "
            "three parts by person, and photos likewise: each run tests another part, so every person and every photo "
            "is tested once. Interval networks, scouts, MC dropout, ProbOut and quantile heads were fitted on an "
            "NVIDIA H200 with torch 2.11, the other methods of CT, denoising, MRI and 1D on a CPU with "
            "torch 2.13, each beside other "
            "work: so seconds do not compare.\n",
            _overview(every),
            *(_task(name, results, unit) for name, (results, unit) in every.items()),
            _at_the_published_size(),
            _search(),
        ]
    )


def _best_peer(results: Results) -> str:
    peers = [name for name in results.methods if name not in NO_PEERS and not _refused(results, name)]
    return min(peers, key=lambda name: statistics.fmean(over_mae(results, name, WINKLER)))


def _refused(results: Results, name: str) -> bool:
    return any("refused" in run.settings["curves"][name] for run in results.runs)


def _overview(every: dict[str, tuple[Results, str]]) -> str:
    lines = [
        "## In short\n",
        "Interval score at 90 % coverage over the model's mean absolute error, mean of three runs. *Times peer*: over "
        f"that of the best method that is not ours, at equal steps (aim {AIMS['peer']:.2f}). *Times longer*: over that "
        f"of quantile heads with four times the steps (aim {AIMS['longer']:.2f}). In brackets the same in the first "
        "run alone, whose test samples took no part in choosing the usual scout. *Even*: the share of people or photos "
        f"whose coverage lies within {tab_scouts.EVEN:.0%} of 90 % (aim {AIMS['even']:.0%}); in brackets that of "
        "constant width.\n",
        f"| task | {OURS} | {ALONE} | INN | best peer | its score | {LONGER} | times peer | times longer | even |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, (results, _) in every.items():
        peer = _best_peer(results)
        score = {key: statistics.fmean(over_mae(results, key, WINKLER)) for key in (OURS, ALONE, "INN", peer, LONGER)}
        ratios = " | ".join(_ratio(results, other, aim) for other, aim in ((peer, "peer"), (LONGER, "longer")))
        lines.append(
            f"| {name} | **{score[OURS]:.2f}** | {score[ALONE]:.2f} | {score['INN']:.2f} | {peer} | "
            f"{score[peer]:.2f} | "
            f"{score[LONGER]:.2f} | {ratios} | {_even(results)} |"
        )
    return "\n".join(lines) + "\n\n" + (ROOT / "docs" / "scouts-found.template.md").read_text()


def _ratio(results: Results, other: str, aim: str) -> str:
    ratio = times(results, OURS, other)
    return f"{ratio:.3f} ({times(results, OURS, other, 0):.3f}){', **missed**' if ratio > AIMS[aim] else ''}"


def _even(results: Results) -> str:
    groups = subjects_of(results)
    if groups is None:
        return ""
    ours, constant = (tab_scouts.within(results, name, groups)[2] for name in (OURS, "constant width"))
    return f"{ours:.0%} ({constant:.0%}){', **missed**' if ours < AIMS['even'] else ''}"


def _task(name: str, results: Results, unit: str) -> str:
    return f"\n## {name}\n{tab_scouts.table(results, unit).replace(chr(10) + '## Scouts' + chr(10), '')}"


def _at_the_published_size() -> str:
    """Return what scouts gain on the 1D task as it was published, in the runs that there are."""
    lines = [
        "\n## 1D deconvolution at the published size\n",
        "The network and the steps of [the paper's task](results-deconv.md), on an NVIDIA H200 with torch "
        "2.11. The time on it ended before all methods and runs were through: two runs without noise and one "
        "with. Interval score over the error, at equal coverage. **The aims are missed here**: scouts are as "
        "good as quantile heads, and not better. These heads are a copy of nine layers with up to 256 "
        "channels; the usual scout has four layers of 48.\n",
    ]
    noises = tab_deconvolution.results(RUNS / "deconv" / "paper-scouts")
    names = [
        name for name in next(iter(noises.values())).methods if all(name in each.methods for each in noises.values())
    ]
    lines += [
        f"| noise, runs | {' | '.join(names)} | {OURS}, times quantile heads |",
        "| --- |" + " --- |" * (len(names) + 1),
    ]
    for noise, each in noises.items():
        cells = " | ".join(f"{statistics.fmean(over_mae(each, name, WINKLER)):.2f}" for name in names)
        lines.append(f"| {noise:g}, {len(each.runs)} | {cells} | {times(each, OURS, 'quantile heads'):.3f} |")
    return "\n".join(lines)


def _search() -> str:
    lines = [
        "\n## How the usual scout was chosen\n",
        "Each variant was fitted on the training subjects of the first run, calibrated on one half of its validation "
        "subjects and measured on the other, and the other way round; no test sample was read. `scout 32x3, "
        "last 4` has "
        "three layers of 32 channels beside four interval layers, and reads eight values unless it says otherwise "
        "(`taps`). `rate` is the learning rate of its weights, .002 unless it says otherwise. `raw`: what it "
        "reads is not standardised. The underlying networks "
        "were trained anew for each search, so only numbers of one table compare. One fit each: differences below 2 % "
        "are chance.\n",
    ]
    for file, reference in SEARCHES.items():
        path = ROOT / "benchmarks" / "results" / f"{file}.json"
        about = json.loads(path.read_text())["versions"]
        lines += [f"\n`{path.name}` ({about['device']}, torch {about['torch']}):\n", searched(path, reference)]
    return "\n".join([*lines, (ROOT / "docs" / "scouts-search.template.md").read_text()])
