"""Html: all runs in a folder as one page that needs nothing else, with its tables and figures beside it."""

from __future__ import annotations

import base64
import hashlib
import os
import warnings
from pathlib import Path
from typing import Any, NamedTuple

from intervalnn import __version__
from intervalnn.evaluation.report import words
from intervalnn.evaluation.report.comparison import glossary, table, write_tables
from intervalnn.evaluation.report.gallery import write_figures
from intervalnn.evaluation.report.groups import Found, Group, as_name, as_reason, as_text, find, flat
from intervalnn.files.printable import printable
from intervalnn.files.whole import replacing

__all__ = ["write_report"]

TEMPLATES = Path(__file__).parent / "templates"
LARGE = 10 * 2**20  # bytes that a page shall stay below


def write_report(folder: str | Path, out: str | Path | None = None, *, title: str | None = None) -> Path:
    """Write all runs below a folder as one HTML page, and return its path.

    The page needs neither network nor other files. Beside it lie its tables (Markdown, LaTeX) and its figures (PDF,
    SVG), in folders named after it. What a run does not hold is left out, with a sentence that says how to get it.
    The same runs make the same page. Needs matplotlib and jinja2.

    Args:
        folder: Where to look for runs, in folders within it too: files that ``Run.save`` has written; or one such
            file. Curves are read from the settings of a run, and examples from the ``.npz`` file of its name; see
            :mod:`intervalnn.evaluation.examples`.
        out: The page, or the folder for a ``report.html``; by default the folder of the runs.
        title: Of the page.
    """
    template = _template()
    folder = Path(folder)
    found = find(folder)
    out = (folder if folder.is_dir() else folder.parent) if out is None else Path(out)
    out = out / "report.html" if out.is_dir() or not out.suffix else out
    sections, left_out = _sections(found, out)
    groups = tuple(section["group"] for section in sections)
    text = template.render(
        title=title or f"Report on {folder.resolve().stem}",
        sections=sections,
        others=[(os.path.relpath(path, folder), reason) for path, reason in left_out],
        metrics=glossary(groups),
        version=__version__,
        level=words.LEVEL,
        lead=_lead(groups, len(left_out)),
        percent=words.percent,
        css=_asset("report.css"),
        script=_asset("report.js"),
    )
    with replacing(out) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")  # names of files may be no text
    if (size := out.stat().st_size) > LARGE:
        warnings.warn(
            f"{out} has {size / 2**20:.1f} MiB, more than the {LARGE / 2**20:.0f} MiB that a page should have; "
            "report on fewer folders at a time, or keep smaller examples beside the runs",
            stacklevel=2,
        )
    return out


def _template() -> Any:
    try:
        import jinja2
        import matplotlib  # noqa: F401  (so that nothing is written without it)
    except ImportError as error:
        raise ImportError('a report needs matplotlib and jinja2: pip install "intervalnn[report]"') from error
    loader = jinja2.FileSystemLoader(TEMPLATES)
    chosen = jinja2.Environment(
        loader=loader,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: printable(value) if type(value) is str else value,  # all but what is marked as safe
    )
    chosen.filters["short"] = as_name
    return chosen.get_template("report.html")


class Asset(NamedTuple):
    """A style or a script, and the hash by which the page allows it."""

    text: str
    hash: str


def _asset(name: str) -> Asset:
    text = (TEMPLATES / name).read_text(encoding="utf-8")
    return Asset(text, base64.b64encode(hashlib.sha256(text.encode()).digest()).decode())


# --- one group of runs ---


def _sections(found: Found, out: Path) -> tuple[list[dict[str, Any]], list[tuple[Path, str]]]:
    """Return what the page says of each group, and the files that it says nothing of, with the reason."""
    sections, left_out = [], list(found.others)
    for group in found.groups:
        try:
            section, others = _section(group, out)
        except OSError:  # a full disk is no fault of the runs
            raise
        except Exception as error:  # whatever numbers do that nobody measured: one run does not cost the page
            left_out += [(path, as_reason(error)) for path in group.files]
        else:
            sections.append(section)
            left_out += others
    if not sections:
        raise ValueError(f"nothing can be told of the runs: {'; '.join(reason for _, reason in left_out[:3])}")
    return sections, left_out


def _section(group: Group, out: Path) -> tuple[dict[str, Any], list[tuple[Path, str]]]:
    """Return what the page says of a group, and files it could not use; write its tables and figures."""
    shown, missing, left_out = write_figures(group, out.with_name(f"{out.stem}-figures"))
    return {
        "group": group,
        "facts": _facts(group),
        "verdict": words.verdict(group),
        "promises": words.promises(group),
        "also_best": words.also_best(group),
        "table": table(group),
        "files": write_tables(group, out.with_name(f"{out.stem}-tables")),
        "figures": shown,
        "missing": missing,
        "settings": _over_runs([flat(run.settings) for run in group.results.runs]),
        "versions": _over_runs([run.versions for run in group.results.runs]),
    }, left_out


def _lead(groups: tuple[Group, ...], left_out: int) -> str:
    runs = sum(len(group.results.runs) for group in groups)
    methods = len({name for group in groups for name in group.results.methods})
    return (
        f"{runs} {'run' if runs == 1 else 'runs'} of {methods} {'method' if methods == 1 else 'methods'}, "
        f"in {len(groups)} {'comparison' if len(groups) == 1 else 'comparisons'}."
        + (f" {left_out} {'file' if left_out == 1 else 'files'} left out: see the end of the page." if left_out else "")
    )


def _facts(group: Group) -> str:
    runs = group.results.runs
    seeds = f"{len(runs)} runs, seeds {', '.join(str(run.seed) for run in runs)}" if len(runs) > 1 else "1 run"
    device = " and ".join(dict.fromkeys(as_text(run.versions["device"]) for run in runs if "device" in run.versions))
    count = f"{len(group.results.methods)} methods on {group.samples} samples"
    return "; ".join(
        filter(None, (seeds, count, f"compared at {words.percent(group.first.coverage)} coverage", device))
    )


def _over_runs(each: list[Any]) -> dict[str, str]:
    """Return values by name: one where runs agree, else those of all."""
    keys = dict.fromkeys(key for settings in each for key in settings)
    return {key: ", ".join(dict.fromkeys(as_text(settings.get(key, "–")) for settings in each)) for key in keys}
