"""The numbers of an experiment on images in one page: the paper's Table 1 and what it leaves out."""

from __future__ import annotations

import statistics
from pathlib import Path

from intervalnn.evaluation.records import Run
from intervalnn.evaluation.results import Results
from intervalnn.paper.experiments import run_time, tab_scouts, tables
from intervalnn.paper.experiments.comparison import COVERAGE
from intervalnn.paper.experiments.tables import both, comparison, published, so_many, together

__all__ = ["page", "results", "write"]

# Table 1 and Sec. 5; for tomography on other data, so only the order of methods can be compared.
PUBLISHED = {"coverage": "76 ± 6 %", "direction": "57 to 72 %"}
TABLE = {
    "MC dropout": ("2170 ± 513", "7.4e-4 ± 0.65e-4"),
    "ProbOut, published": ("190 ± 28", "6.7e-3 ± 2e-3"),
    "INN, published": ("2211 ± 403", "7.4e-4 ± 0.65e-4"),
}
TITLES = {
    "ct": "Limited-angle tomography",
    "mri": "Undersampled MRI",
    "denoising": "Denoising",
    "photos": "Super-resolution of photos",
}


def results(folder: Path) -> Results:
    """Return all runs in a folder; methods that not every run has are left out."""
    runs = [Run.load(path) for path in sorted(folder.glob("seed-*.json"))]
    if not runs:
        raise FileNotFoundError(f"no runs in {folder}; make some with inn reproduce ct, mri, denoising or photos")
    return together(runs)


def page(folder: Path) -> str:
    """Return the page as Markdown."""
    found = results(folder)
    about = found.runs[0].settings
    scale, counts = about["scale"], about["counts"]
    versions = found.runs[0].versions
    lines = [
        f"# {TITLES[about['task']]} at scale {scale['name']}\n",
        f"Written by `inn reproduce {about['task']}` from the files beside it ({versions['device']}, torch "
        f"{versions['torch']}). Images: {about['images']}, {scale['size']}x{scale['size']}, "
        + ", ".join(f"{count} {name}" for name, count in counts.items())
        + f" {_split(about['task'])}. Measured by `{about['problem']}`. U-Net "
        f"of base {scale['base']}, {about['parameters']} parameters, dropout {scale['dropout']}, {scale['epochs']} "
        f"epochs; {so_many(found.runs)}. Mean ± standard deviation over runs.",
        _table_1(found, about["task"]),
        comparison(f"Methods at equal coverage, seeds {[run.seed for run in found.runs]}", found, "images"),
        tab_scouts.table(found),
        published(found, PUBLISHED if about["task"] == "ct" else None),
        _promises(found),
    ]
    if all(run.settings["artefacts"] for run in found.runs):
        lines.append(_artefacts(found))
    if "ood" in counts:
        lines.append(_ood(found))
    if (folder / "run-time.json").exists():
        lines.append(run_time.table(folder / "run-time.json", "images"))
    return "\n".join(filter(None, lines)) + "\n"


def _split(task: str) -> str:
    """Return what the images are parts of, and their scale."""
    if task == "photos":
        return "patches in the first run, split by photo, other photos for each run, grey, in [0, 1]"
    return "slices, split by patient, on the scale [0, 1] = -1000 to 1000 HU"


def _table_1(found: Results, task: str) -> str:
    lines = [
        "\n## Table 1 of the paper\n",
        "PWCC by the published metric (cosine) and by correlation. "
        + ("The published numbers are of other patients, at other sizes.\n" if task == "ct" else "\n"),
        "| method | PWCC, cosine | PWCC | MSE | published PWCC | published MSE |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name in found.methods:
        theirs = TABLE.get(name, ("", "")) if task == "ct" else ("", "")
        ours = (str(found.spread(name, metric)) for metric in ("paper_pwcc", "pwcc", "mse"))
        lines.append(f"| {name} | " + " | ".join((*ours, *theirs)) + " |")
    return "\n".join(lines)


def _promises(found: Results) -> str:
    lines = [
        f"\n## A promise for the draw at hand\n\nCalibrated on the validation images so that {COVERAGE:.0%} is kept "
        "but for an unlucky draw of those images (risk-controlling prediction sets):\n",
        "| method | unlucky draws | factor | coverage on test | width |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name in found.methods:
        each = [run.settings["curves"].get(name, {}).get("promise") for run in found.runs]
        if not all(each):
            continue
        if refused := next((one["refused"] for one in each if "refused" in one), None):
            lines.append(f"| {name} | refused: {refused} | | | |")
        else:
            columns = (("factor", ".3f"), ("coverage", ".4f"), ("width", ".4f"))
            cells = (both([one[key] for one in each], digits) for key, digits in columns)
            lines.append(f"| {name} | {each[0]['delta']:.0%} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _artefacts(found: Results) -> str:
    made = [run.settings["artefacts"] for run in found.runs]
    lines = [
        "\n## Artefacts: does the score tell where they are?\n",
        "Painted: a perturbation of the input, of "
        f"{statistics.fmean(m['painted']['perturbation'] for m in made):.1%} of its norm, makes the underlying network "
        f"paint a bright square that is not there ({statistics.fmean(m['painted']['painted'] for m in made):.0%} of "
        "the wanted brightness). Inserted: a bright ring that no patient has is put into the image before it is "
        "measured. AUROC (chance .5) and average precision of the score against the mask of the artefact; in brackets "
        "the AUROC of the score without the artefact, at the same place.\n",
        "| method | painted, AUROC | average precision | inserted, AUROC | average precision |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name in found.methods:
        cells = []
        for kind in ("painted", "inserted"):
            each = [run.settings["curves"].get(name, {}).get(kind) for run in found.runs]
            if not all(each):
                break
            mean = {key: [statistics.fmean(one[key]) for one in each] for key in each[0]}
            cells += [
                f"{both(mean['auroc'], '.3f')} ({statistics.fmean(mean['auroc, clean']):.3f})",
                both(mean["average_precision"], ".3f"),
            ]
        if cells:
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _ood(found: Results) -> str:
    lines = [
        "\n## Other anatomy\n\nAs fitted, on images unlike those of training (a head), and how much wider the bounds "
        "are there than on the test images:\n",
        "| method | coverage | width / width on test | error / error on test |",
        "| --- | --- | --- | --- |",
    ]
    for name in found.methods:
        each = [run.settings["curves"].get(name, {}).get("ood") for run in found.runs]
        if all(each):
            width = [o["width"] / float(v.mean()) for o, v in zip(each, found.per_run(name, "width"), strict=True)]
            error = [o["mae"] / float(v.mean()) for o, v in zip(each, found.per_run(name, "mae"), strict=True)]
            coverage = both([o["coverage"] for o in each], ".3f")
            lines.append(f"| {name} | {coverage} | {both(width, '.2f')} | {both(error, '.2f')} |")
    return "\n".join(lines)


def write(folder: Path) -> Path:
    """Write the page beside the runs."""
    return tables.write(folder / "README.md", page(folder))
