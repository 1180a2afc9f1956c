"""Write the pages of results and the map of the paper from the runs in ``results/``; every number is read from there.

Run it with ``make results-doc`` after ``inn reproduce deconv --scale paper``.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from pathlib import Path
from typing import Any

import torch

from intervalnn.evaluation.records import Run
from intervalnn.evaluation.report.curves import pooled
from intervalnn.evaluation.results import Results
from intervalnn.paper.experiments import tab_deconvolution, tab_images, tables

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "docs")]

import scouts_page  # noqa: E402 - after the path is set

from attack import margin as rounding_margin  # noqa: E402

PAPER = ROOT / "results" / "deconv" / "paper"
LONGER = ROOT / "results" / "deconv" / "longer"
CT = ROOT / "results" / "ct" / "medium"
CAMPAIGNS = ROOT / "benchmarks" / "results"
WINKLER = tab_deconvolution.WINKLER
SHORT = {"inn": "INN", "paper": "INN, published", "drop": "MC dropout", "prob": "ProbOut, published"}


def mean(found: Results, name: str, metric: str, *, over_mae: bool = False) -> float:
    units = [run.settings["mae"] if over_mae else 1.0 for run in found.runs]
    return statistics.fmean(float(v.mean()) / u for v, u in zip(found.per_run(name, metric), units, strict=True))


def times_heads(found: Results, name: str) -> float:
    ours, heads = found.per_run(name, WINKLER), found.per_run("quantile heads", WINKLER)
    return statistics.fmean(float(a.mean() / b.mean()) for a, b in zip(ours, heads, strict=True))


# --- the page of results ---

FIGURES = {
    "signals-1": "One test signal: input and target, then for each method the prediction with its bounds, and the "
    "score against the absolute error; without noise on the left, with noise .05 on the right (the paper's Fig. 2). "
    "Vertical axes differ. Signals 2 to 4 (App. C) are beside it in `results/deconv/paper/figures`.",
    "noise-behaviour": "Mean score against the noise (Fig. 3), one run per noise, at the fixed `beta` and learning "
    "rate of Sec. 4. The published figure changed both with the noise, by a schedule that is not published; the green "
    "line has `beta` in proportion to the underlying model's error, which is the paper's advice.",
    "direction-noise-0": "Direction (upper graph of Fig. 4), without noise. The dashed line is the more frequent side, "
    "which a constant direction would reach.",
    "direction-noise-0.05": "The same with noise .05.",
    "markov-noise-0": "The bound of App. A, with the bounds as the published recipe leaves them and with offsets that "
    "make its conditions hold.",
    "posterior-bounds": "Bounds on the predictive density (App. B) for one component of one signal.",
    "schematic": "The schematic of Fig. 1, drawn from a network of 2-4-4-1 units that was really trained.",
}


def results_page() -> str:
    return page(
        tab_deconvolution.page(PAPER).replace("# 1D deconvolution at scale paper", "# Results: 1D deconvolution"),
        "\n**This page is written by `docs/make_results.py` from the runs in `results/deconv`; nothing is typed by "
        "hand.** `inn reproduce deconv --scale paper --device cuda` makes the runs. `INN` is what the library does by "
        'default, in the last four layers; `INN, published` is the paper\'s recipe to the letter (`recipe="paper"`).\n',
        summary(),
        longer(),
        figures("deconv/paper", FIGURES),
    )


def page(tables: str, made: str, short: str, more: str, drawn: str) -> str:
    """Return how the runs were made and what they say in short, before the tables; then more, and the figures."""
    head, _, rest = tables.partition("\n## ")
    return "\n".join([head, made, short, "\n## " + rest, more, "\n## Figures\n", drawn])


def figures(folder: str, captions: dict[str, str]) -> str:
    return "\n".join(
        f"![{name}](../results/{folder}/figures/{name}.png)\n\n*{caption}*\n" for name, caption in captions.items()
    )


def summary() -> str:
    quiet, noisy = tab_deconvolution.results(PAPER).values()
    lines = ["## In short\n"]
    for found, label in ((quiet, "Without noise"), (noisy, "With noise .05")):
        others = sorted((n for n in found.methods if n != "INN"), key=lambda n: mean(found, n, WINKLER))
        best = others[0]
        worse = [
            n
            for n in others
            if found.compare(WINKLER, "INN", n).p < 0.05 and times_heads(found, n) > times_heads(found, "INN")
        ]
        rank = 1 + sum(times_heads(found, n) < times_heads(found, "INN") for n in others)
        lines.append(
            f"- **{label}**, at equal coverage INN's interval score is {times_heads(found, 'INN'):.3f} times that of "
            f"quantile heads and place {rank} of {len(found.methods)} (best of the others: {best}, "
            f"{times_heads(found, best):.3f}). Significantly worse than INN (paired bootstrap, p < .05): "
            f"{', '.join(worse) or 'none'}. Asked for 90 %, INN covers {mean(found, 'INN', 'coverage'):.1%} of test "
            f"components as fitted and {mean(found, 'INN', 'coverage at equal coverage'):.1%} calibrated; the "
            f"published recipe covers {mean(found, 'INN, published', 'coverage'):.1%}."
        )
    return "\n".join(lines)


def longer() -> str:
    """Return why methods with a network of their own are ahead without noise."""
    quiet, _ = tab_deconvolution.results(PAPER).values()
    (run,) = (Run.load(path) for path in LONGER.glob("noise-0-seed-*.json"))
    other = Results([run])
    rows = [
        f"| {name} | {mean(quiet, name, 'centre_mae', over_mae=True):.2f} | {times_heads(quiet, name):.3f} "
        f"| {mean(other, name, 'centre_mae', over_mae=True):.2f} | {times_heads(other, name):.3f} |"
        for name in other.methods
    ]
    return "\n".join(
        [
            "\n## Why quantile heads are ahead without noise\n",
            "Without noise nothing but the network limits the error, and 100 epochs with dropout leave much of it. "
            "Quantile heads train on, without dropout, a copy of the network: the middle between their bounds predicts "
            f"with {mean(quiet, 'quantile heads', 'centre_mae', over_mae=True):.2f} of the underlying model's error. "
            "Interval networks and error predictors keep the prediction, so their bounds must hold all of that error. "
            "The scale `longer` trains the underlying model first as long as both together (314 epochs, one run): its "
            f"error falls from {statistics.fmean(r.settings['mae'] for r in quiet.runs):.4f} to "
            f"{run.settings['mae']:.4f}, and most of the lead goes.\n",
            "| | centre's error, 100 epochs | x quantile heads | centre's error, 314 epochs | x quantile heads |",
            "| --- | --- | --- | --- | --- |",
            *rows,
        ]
    )


# --- the map of the paper ---


def paper_map() -> str:
    """Fill the numbers into the template, whose tests must exist."""
    text = (ROOT / "docs" / "paper-map.template.md").read_text()
    found = numbers()
    if CT.exists():
        text += (ROOT / "docs" / "paper-map-ct.template.md").read_text()
        found |= ct_numbers()
    for file, name in re.findall(r"`(tests/[\w/.]+)::(\w+)`", text):
        if not re.search(rf"def {name}\(", (ROOT / file).read_text()):
            raise LookupError(f"the map of the paper names {name}, which is not in {file}")
    text = re.sub(r"`tests/([\w/.]+)::test_(\w+)`", lambda m: f"`{m[1]}`: {m[2].replace('_', ' ')}", text)
    return text.format(**found)


def direction(found: Results, name: str) -> str:
    """Return the accuracy at threshold 1, and at the largest one that keeps a hundredth of the components."""
    runs = [run.settings["curves"][name]["direction"] for run in found.runs]
    judged = [
        (accuracy, majority)
        for accuracy, majority, kept in zip(
            *(pooled(runs, key) for key in ("accuracy", "majority", "kept")), strict=True
        )
        if kept >= tables.KEPT
    ]
    return " to ".join(f"{a:.0%} ({m:.0%})" for a, m in (judged[0], judged[-1]))


def markov(found: Results, split: str, key: str) -> list[float]:
    """Return a curve of the published recipe's bounds with offsets, mean over runs."""
    curves = [run.settings["curves"]["INN, published"][f"markov with offsets, {split}"] for run in found.runs]
    return [statistics.fmean(values) for values in zip(*(curve[key] for curve in curves), strict=True)]


def margin(found: Results) -> float:
    """Return by how much at least coverage exceeds what App. A promises, with offsets."""
    return min(
        inside - promised
        for split in ("train", "test")
        for inside, promised in zip(*(markov(found, split, key) for key in ("inside", "promised")), strict=True)
    )


def numbers() -> dict[str, str]:
    quiet, noisy = tab_deconvolution.results(PAPER).values()
    time = json.loads((PAPER / "run-time.json").read_text())["seconds"]
    sweep = json.loads((PAPER / "noise-behaviour-seed-0.json").read_text())["rows"]
    found = {"runs": str(len(quiet.runs))}
    for key, each in (("quiet", quiet), ("noisy", noisy)):
        found[f"margin_{key}"] = f"{margin(each):.3f}"
        found[f"offset_{key}"] = f"{curve_offset(each):.2g}"
        for short, name in SHORT.items():
            found[f"winkler_{short}_{key}"] = f"{times_heads(each, name):.2f}"
            found[f"coverage_{short}_{key}"] = f"{mean(each, name, 'coverage'):.1%}"
            found[f"paper_coverage_{short}_{key}"] = f"{mean(each, name, 'paper_coverage'):.1%}"
            found[f"pearson_{short}_{key}"] = f"{mean(each, name, 'pearson'):.2f}"
            if name.startswith("INN"):
                found[f"direction_{short}_{key}"] = direction(each, name)
    for short, name in (("inn", "INN"), ("paper", "INN, published"), ("drop", "MC dropout"), ("prob", "ProbOut")):
        found[f"time_{short}"] = f"{time[name]['predict'] / time['plain']['predict']:.1f}"
        if short != "prob":
            found[f"sweep_{short}"] = ", ".join(f"{row['score'][name]:.2g}" for row in sweep)
    found["sweep_prob"] = ", ".join(f"{row['score']['ProbOut, published']:.2g}" for row in sweep)
    found["noises"] = ", ".join(f"{row['noise']:g}" for row in sweep)
    return found


def ct_numbers() -> dict[str, str]:
    """Return the numbers of the runs on tomography."""
    found = tab_images.results(CT)
    about = found.runs[0].settings
    values = {
        "ct_images": str(about["images"]),
        "ct_counts": " / ".join(str(count) for count in about["counts"].values()),
        "ct_base": str(about["scale"]["base"]),
        "ct_runs": str(len(found.runs)),
        "ct_calibrated_inn": f"{mean(found, 'INN', 'coverage at equal coverage'):.1%}",
    }
    for short, name in SHORT.items():
        values |= {
            f"ct_cosine_{short}": str(found.spread(name, "paper_pwcc")),
            f"ct_pwcc_{short}": str(found.spread(name, "pwcc")),
            f"ct_mse_{short}": str(found.spread(name, "mse")),
            f"ct_coverage_{short}": f"{mean(found, name, 'coverage'):.1%}",
            f"ct_winkler_{short}": f"{times_heads(found, name):.2f}",
        }
        if name.startswith("INN"):
            values[f"ct_direction_{short}"] = direction(found, name)
    difference = found.compare("paper_pwcc", "INN, published", "MC dropout")
    values["ct_direction_heads"] = direction(found, "quantile heads")
    values["ct_verdict_pwcc"] = (
        f"**{'holds' if difference.lower > 0 else 'does not hold'}**, by little: INN minus dropout, by the published "
        f"metric, {difference.difference:.0f} (95 % interval {difference.lower:.0f} to {difference.upper:.0f}); the "
        "published difference, 41, is a tenth of a standard deviation"
    )
    return values


def curve_offset(found: Results) -> float:
    """Return the mean of the two offsets that make the conditions of App. A hold on the training data."""
    return statistics.fmean(
        (run.settings["curves"]["INN, published"]["offsets"][side]) for run in found.runs for side in ("below", "above")
    )


CT_FIGURES = {
    "images-1": "One test image (the paper's Fig. 5): input and target, then for each method the prediction, its "
    "uncertainty, the absolute error, and the direction. The arrow points at the largest error. Images 2 to 4 (App. D) "
    "are beside it.",
    "profile": "The row with the largest error of the same image, with the bounds of each method as fitted.",
    "direction": "Direction (lower graph of Fig. 4). The dashed line is the more frequent side.",
    "markov": "The bound of App. A, for the published recipe.",
}


def ct_page() -> str:
    title = "# Limited-angle tomography at scale medium"
    whole = page(
        tab_images.page(CT).replace(title, "# Results: limited-angle tomography"),
        "\n**This page is written by `docs/make_results.py` from the runs in `results/ct`; no number is typed "
        "by hand.** `inn reproduce ct --data FOLDER --scale medium --device cuda --seed 0 --seed 1 --seed 2` makes the "
        "runs.\n",
        ct_summary(),
        other_tasks(),
        figures("ct/medium", CT_FIGURES),
    )
    return whole + "\n" + (ROOT / "docs" / "ct-data.template.md").read_text()


def ct_summary() -> str:
    found = tab_images.results(CT)
    others = sorted((n for n in found.methods if n != "INN"), key=lambda n: times_heads(found, n))
    worst = max(found.compare(WINKLER, "INN", name).p for name in others)
    ahead = times_heads(found, "INN") < times_heads(found, others[0])
    place = "the best of all" if ahead else f"behind {others[0]} ({times_heads(found, others[0]):.3f})"
    return "\n".join(
        [
            "## In short\n",
            f"- At equal coverage INN's interval score is {times_heads(found, 'INN'):.3f} times that of quantile "
            f"heads, {place} (largest p against another method: {worst:.2g}); the published recipe has "
            f"{times_heads(found, 'INN, published'):.3f}, MC dropout {times_heads(found, 'MC dropout'):.3f}, ProbOut "
            f"{times_heads(found, 'ProbOut'):.3f}. Its score also goes best with the error (Pearson "
            f"{mean(found, 'INN', 'pearson'):.2f}; MC dropout {mean(found, 'MC dropout', 'pearson'):.2f}).",
            f"- Asked for 90 %, INN covers {mean(found, 'INN', 'coverage'):.1%} as fitted: the network fits the "
            "patients of training better than new ones, and the bounds were fitted on the same images. Calibrated on "
            f"validation patients it covers {mean(found, 'INN', 'coverage at equal coverage'):.1%} of the test "
            "patient. Test images are of one patient, as in the paper, so this says little of the next one, and p "
            "values that take slices for independent are too small.",
            f"- **Direction says little here.** It is right in {direction(found, 'INN')} (in brackets: always naming "
            f"the more frequent side), by the published recipe in {direction(found, 'INN, published')}, by quantile "
            f"heads in {direction(found, 'quantile heads')}. The networks are mostly too low on this patient, and INN "
            "says so nearly everywhere.",
            "- An ensemble is missing: at this scale each member would cost as much as the network again. So are "
            "interval-loss heads: their gaps are zero at so many pixels that no scaling covers 90 %, "
            "which stopped the first two runs; `inn reproduce ct` now says so in the table and goes on.",
        ]
    )


def other_tasks() -> str:
    lines = [
        "\n## MRI and denoising\n",
        "The paper names both, without numbers. One run each on made-up patients, at scale quick (`inn reproduce mri`, "
        "`inn reproduce denoising`); interval score at equal coverage, times that of quantile heads:\n",
        "| task | INN, coverage as fitted | INN | error predictor | MC dropout | ProbOut | INN, published |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for task in ("mri", "denoising"):
        found = tab_images.results(ROOT / "results" / task / "quick")
        names = ("INN", "error predictor", "MC dropout", "ProbOut", "INN, published")
        cells = " | ".join(f"{times_heads(found, name):.3f}" for name in names)
        lines.append(f"| {task} | {mean(found, 'INN', 'coverage'):.1%} | {cells} |")
    return "\n".join(lines)


def robustness_page() -> str:
    """Return what campaigns against the library found."""
    return "\n".join(
        [
            "# Robustness\n",
            "**Written by `docs/make_results.py` from `benchmarks/results`; no number is typed by hand.** The "
            "campaigns are `benchmarks/attack.py`, `kill.py`, `fuzz.py` and `stress.py`, each for a given time and "
            "with a seed; short versions of `kill.py` and `fuzz.py` run with the tests (`tests/abuse`).",
            attacks(),
            kills(),
            fuzz(),
            stress(),
            (ROOT / "docs" / "robustness-found.template.md").read_text(),
        ]
    )


def kills() -> str:
    """Return what killing processes has cost."""
    found = json.loads((CAMPAIGNS / "kill.json").read_text())
    wrong = ("lost", "half_written", "different", "failed", "left")
    lines = [
        "\n## Killed at random moments\n",
        f"{found['minutes']:.0f} minutes of SIGKILL: {found['total']['kills']} kills, "
        f"{found['total']['while_writing']} of them while a file was being written. After each, the job starts again; "
        "at the end the result must be that of an undisturbed run, bit for bit, and every file whole.\n",
        "| job | kills | while writing | lost | half-written | different | could not go on | rubbish left |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, job in found["jobs"].items():
        cells = " | ".join(str(len(job[key])) for key in wrong)
        lines.append(f"| {name} | {job['kills']} | {job['while_writing']} | {cells} |")
    return "\n".join(lines)


def fuzz() -> str:
    """Return what damaged files and odd settings led to."""
    found = json.loads((CAMPAIGNS / "fuzz.json").read_text())
    random, guided = found["cases"], found["guided cases"]
    lines = [
        "\n## Damaged files and odd settings\n",
        f"{found['minutes']:.0f} minutes, {sum(random.values()) + sum(guided.values())} cases, "
        f"{len(found['failures'])} failures. Real files with bytes changed, cut, added or taken out, and headers with "
        "odd values; configurations and command lines of odd parts. A case fails unless it gives the right result or a "
        "clear error that names the file, quotes no patient, and leaves nothing behind. Guided cases are chosen by "
        "atheris, which looks for inputs that reach new code.\n",
        "| what | random cases | guided cases |",
        "| --- | --- | --- |",
    ]
    lines += [f"| {name} | {random.get(name, 0)} | {guided.get(name, 0) or ''} |" for name in random | guided]
    return "\n".join(lines)


# The classes of ``benchmarks/stress.py``: what a member is.
CLASSES = {
    "aliases of parameters": "A parameter that `forward` reaches by another path than its registered name: kept in an "
    "attribute, a container, a closure, as a view or through `functional_call`. Its gaps once opened nothing.",
    "bounds of operations": "An operation with a rule, on intervals that are drawn anew; `linspace` once dropped them.",
    "slopes at closed gaps": "An operation with a rule, at points anywhere, on kinks and at ties: the gradient of "
    "closed gaps is the slope of opening them, whatever torch takes for a derivative there.",
    "arguments": "An argument that is no tensor, and holds tensors or arrays: a second object once got the first one's "
    "answer.",
    "state": "A `forward` that counts, keeps, draws or writes, so that its output depends on more than its input.",
    "caches": "Weights, gaps, buffers or modes that change between calls, in place, through `.data` or by replacement.",
    "numbers": "Gaps from 1e-18 to 1e5, in four dtypes, around weights of any scale; a share of them once vanished.",
    "threads": "Eight threads that predict, explain, measure sensitivities and save at once, from the first call on. "
    "A plain `model(x)` is among them, whose output must be the same bit for bit.",
    "refusals": "A model, a use or an operation that cannot be bounded: the error names its line or its argument, and "
    "the way out.",
}


def stress() -> str:
    """Return, class by class, what random members of the faults that once were silent led to, now and before."""
    now, before = (json.loads((CAMPAIGNS / f"{name}.json").read_text()) for name in ("stress", "stress-before"))
    lines = [
        "\n## Never silently wrong\n",
        f"`{now['command']}` draws random members of each class of fault below: {now['minutes']:.0f} minutes, with "
        f"torch {now['versions']['torch']}. A member passes if it gives bounds that hold the model's own output for "
        "weights drawn from their intervals, or is refused by an error that helps. *Before* are members from the same "
        f"seeds, in {before['minutes']:.0f} minutes, with the code as it was before the classes were worked on "
        f"({before['of']}); what cannot be tried there is left empty. Files and "
        "pages have a campaign of their own, above; networks of public packages are in [coverage](coverage.md).\n",
    ]
    for name, said in CLASSES.items():
        cells = " | ".join(f"{tried} | {failed}" for tried, failed in (_counts(before, name), _counts(now, name)))
        lines += [
            f"### {name[0].upper()}{name[1:]}\n",
            f"{said}\n",
            "| tried before | failed before | tried now | failing now |\n| --- | --- | --- | --- |",
            f"| {cells} |\n",
        ]
    return "\n".join(lines)


def _counts(campaign: dict[str, Any], name: str) -> tuple[str, str]:
    counts = campaign["tried"].get(name)
    return (str(sum(counts.values())), str(counts.get("fault", 0))) if counts else ("", "")


def attacks() -> str:
    """Return what the search for outputs outside the bounds found."""
    lines = [
        "\n## Soundness under attack\n",
        "Each trial draws a network of random layers, gaps around all its weights and "
        "an input, and moves the weights inside their intervals towards a bound of one output component, by sign steps "
        "along the gradient from two starts. Every output on the way is checked in all its components. The reach is "
        "how much of the gap the attack used: 1 is a bound that is met.\n",
        _margins(),
        "| machine | kind of gaps | minutes | networks | trials | outputs checked | violations | failed conversions |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    found = _attacks()
    for each in found.values():
        counts = (each["networks"], each["trials"], each["outputs"], len(each["violations"]), len(each["failures"]))
        cells = " | ".join(str(count) for count in counts)
        lines.append(f"| {each['versions']['device']} | {_gaps_of(each)} | {each['minutes']:.0f} | {cells} |")
    for each in found.values():
        for title, groups in each["reach"].items():
            lines += [
                f"\n### Reach {title} ({each['versions']['device']}, {_gaps_of(each)})\n",
                "| | median | largest | components |",
                "| --- | --- | --- | --- |",
            ]
            lines += [
                f"| {name} | {group['median']:.3f} | {group['most']:.3f} | {group['components']} |"
                for name, group in groups.items()
            ]
    lines.append(
        "\nA low reach has two causes that this search cannot tell apart: a loose bound, or an attack that gets stuck. "
        "Lopsided gaps are up to 10,000 times as large on one side. In half of their networks "
        "this is the same side everywhere and all weights are positive, lest random signs even the gaps out before "
        "rounding shows; `tests/properties/test_precision.py` checks the same product by product."
    )
    return "\n".join(lines)


def _attacks() -> dict[str, dict[str, Any]]:
    return {path.stem: json.loads(path.read_text()) for path in sorted(CAMPAIGNS.glob("attack-*.json"))}


def _margins() -> str:
    """Say how far above 1 a reach may lie by rounding, and how far it does."""
    few, many = (rounding_margin(depth, torch.bfloat16) for depth in (1, 8))
    whole = max(_most(each) for each in _attacks().values() if not each.get("gap dtype"))
    rounded = max(_most(each) for each in _attacks().values() if each.get("gap dtype"))
    return (
        "A reach may lie above 1 by rounding, and by how much is stated: gaps in bfloat16 may be too small by "
        f"{few:.1%} of themselves with one layer between the weight layers and by {many:.1%} with eight (`margin` in "
        "`benchmarks/attack.py`; `tests/properties/test_margin.py` holds gaps to it). Beyond this is a violation. The "
        f"largest reach was {rounded:.4f} with such gaps, and {whole:.6f} with gaps in the model's own dtype, which "
        "may be too small by the rounding of the outputs alone.\n"
    )


def _most(campaign: dict[str, Any]) -> float:
    return max(group["most"] for groups in campaign["reach"].values() for group in groups.values())


def _gaps_of(campaign: dict[str, Any]) -> str:
    """Return in words what gaps a search had."""
    dtype = f", in {campaign['gap dtype']}" if campaign.get("gap dtype") else ""
    return f"`{campaign.get('kind', 'weight')}`{dtype}{', lopsided' if campaign.get('lopsided') else ''}"


PAGES = {
    "docs/results-deconv.md": results_page,
    "docs/results-scouts.md": scouts_page.page,
    "docs/paper-map.md": paper_map,
    "benchmarks/results/deconvolution.md": lambda: tab_deconvolution.page(PAPER),
}


def main() -> None:
    pages = PAGES | ({"docs/results-ct.md": ct_page} if CT.exists() else {})
    pages |= {"docs/robustness.md": robustness_page} if list(CAMPAIGNS.glob("attack-*.json")) else {}
    for name, page in pages.items():
        temporary = (ROOT / name).with_suffix(".part")
        temporary.write_text(page().rstrip() + "\n")
        temporary.replace(ROOT / name)
        print(f"wrote {name}")


if __name__ == "__main__":
    main()
