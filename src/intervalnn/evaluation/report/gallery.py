"""Gallery: the figures of a group, each with its caption, in the page and as files; and what is missing for others."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from intervalnn.evaluation.report import figures, words
from intervalnn.evaluation.report.curves import direction, markov
from intervalnn.evaluation.report.groups import Group, as_reason
from intervalnn.evaluation.report.samples import Example, examples, pictures
from intervalnn.files.whole import replacing

__all__ = ["Shown", "write_figures"]

Drawn = tuple[Any, str, str]  # a figure, its heading and its caption

WIDE = 700  # pixels of a figure that has no room beside another
PLAIN: Any = {"text.parse_math": False, "text.usetex": False}  # a dollar in a name is a dollar

# What a run may lack, and how to get it.
CURVES = {
    "calibration": "calibration curves",
    "sparsification": "sparsification curves",
    "direction": "curves of the direction (of methods whose gaps differ from side to side)",
    "explanation": "which layers open the bounds (of interval networks)",
}
HOW_TO_RECORD = (
    "Record them as the methods are measured, with curves_of from intervalnn.evaluation.examples: evaluate(..., "
    "settings={'curves': {name: curves_of(method, loader) for name, method in methods.items()}})."
)
NOT_CALIBRATED = (
    "Methods at equal coverage: give evaluate samples to calibrate on, as held_out, and coverage, width and interval "
    "score of the calibrated bounds stand beside the others."
)
NO_SAMPLES = (
    "Best and worst samples: write them beside a run with save_examples(file of the run, methods, loader) from "
    "intervalnn.evaluation.examples."
)


class Shown(NamedTuple):
    """A figure in the page.

    Attributes:
        address: The figure itself, as a data address.
        heading: What it is of.
        caption: How to read it.
        width: Of the figure as drawn, in pixels.
    """

    address: str
    heading: str
    caption: str
    width: int

    @property
    def wide(self) -> bool:
        """Whether it takes the whole width of the page."""
        return self.width > WIDE


def write_figures(group: Group, folder: Path) -> tuple[list[Shown], list[str], list[tuple[Path, str]]]:
    """Write the figures that the runs have data for; return them, what is missing, and the files left out."""
    import matplotlib

    shown: list[Shown] = []
    failed: dict[str, str] = {}
    kinds: list[str] = []
    found, left_out = examples(group)
    drawing = DRAWN | {"samples": lambda _: _samples(found)}
    for kind, draw in drawing.items():
        try:
            with matplotlib.rc_context(PLAIN):
                drawn = [_rendered(group, kind, number, each) for number, each in enumerate(draw(group), 1)]
        except Exception as error:  # whatever odd numbers do to a library: one figure does not cost the page
            failed[kind] = f"The figure of {kind} cannot be drawn from what these runs hold: {as_reason(error)}."
            continue
        for name, svg, pdf, figure in drawn:
            kinds.append(kind)
            _write(folder / name, svg, pdf)
            shown.append(figure)
    return shown, [*failed.values(), *_missing(group, [*kinds, *failed])], left_out


def _missing(group: Group, kinds: list[str]) -> list[str]:
    curves = [text for kind, text in CURVES.items() if kind not in kinds]
    said = [] if "coverage at equal coverage" in group.results.metrics else [NOT_CALIBRATED]
    said += [f"{'; '.join(curves).capitalize()}. {HOW_TO_RECORD}"] if curves else []
    return said + ([] if "samples" in kinds else [NO_SAMPLES])


# --- what is drawn: figure, heading and caption ---


def _coverage(group: Group) -> Iterator[Drawn]:
    if {"coverage", "coverage at equal coverage"} & set(group.results.metrics):
        yield (
            figures.coverage(group),
            "Coverage",
            "Dots are means over all samples and should lie on the dashed line. The lines hold the middle 90 % of the "
            "samples: long ones mean that single samples are covered much better or worse than the mean.",
        )


def _differences(group: Group) -> Iterator[Drawn]:
    if group.ranked_by is not None and len(group.ranked) > 1:
        yield (
            figures.differences(group),
            f"How far behind: {words.meaning(group.ranked_by).name}",
            "Paired on the same samples, with 95 % intervals of a bootstrap over samples. Hollow and grey: the "
            "difference may be chance.",
        )


def _calibration(group: Group) -> Iterator[Drawn]:
    if curves := group.curves("calibration"):
        yield (
            figures.calibration(curves, figures.lines_of(group.results.methods)),
            "Calibration",
            "Below the dashed line bounds are too narrow, above it too wide. Bounds are made for one level; for the "
            "others their gaps are scaled as those of a normal density.",
        )


def _sparsification(group: Group) -> Iterator[Drawn]:
    if curves := group.curves("sparsification"):
        yield (
            figures.sparsification(curves, figures.lines_of(group.results.methods)),
            "Sparsification",
            "A score that follows the error lets it fall fast, at best as fast as the grey line.",
        )


def _bounds(group: Group) -> Iterator[Drawn]:
    for name, bound in _markov(group).items():
        yield (
            markov(bound, ""),
            f"Coverage bound of {name}",
            "Share of the targets inside bounds that are moved out, beside what the interval loss promises for "
            "training data (first run).",
        )


def _direction(group: Group) -> Iterator[Drawn]:
    if curves := {name: runs for name, runs in group.curves("direction").items() if any(map(_is_line, runs))}:
        yield (
            direction(curves, ""),
            "Direction",
            "How often the target lies on the side of the larger gap, among components whose gaps differ by at least a "
            "factor. Orange must rise above the dashed grey line, which is what the more frequent side alone gets.",
        )


def _explanation(group: Group) -> Iterator[Drawn]:
    if curves := group.curves("explanation"):
        yield (
            figures.layers(curves),
            "What opens the bounds",
            "Width that the gaps of each parameter open at the output, if alone and small, as a share of the sum. "
            f"Parameters with the largest shares, {figures.SHOWN} at most; dots are runs.",
        )


def _samples(found: list[Example]) -> Iterator[Drawn]:
    for drawn in pictures(found) if found else ():
        yield (
            drawn,
            "Best and worst samples",
            f"Ranked by what {found[0].names[0]} gets. Bounds are scaled by the run's calibration where that is "
            "one factor.",
        )


DRAWN: dict[str, Callable[[Group], Iterator[Drawn]]] = {
    "coverage": _coverage,
    "differences": _differences,
    "calibration": _calibration,
    "sparsification": _sparsification,
    "markov": _bounds,
    "direction": _direction,
    "explanation": _explanation,
}


def _is_line(curve: dict[str, Any]) -> bool:
    return sum(value is not None for value in curve["accuracy"]) > 1


def _markov(group: Group) -> dict[str, Any]:
    """Return the Markov curves of the first run, by method."""
    kind = re.compile(r"markov( with offsets)?, (train|validation|test)")
    curves = group.first.settings.get("curves")
    found = {
        name: {key: curve for key, curve in own.items() if kind.fullmatch(key)}
        for name, own in (curves.items() if isinstance(curves, dict) else ())
        if isinstance(own, dict)
    }
    return {name: own for name, own in found.items() if own}


# --- how it is written ---


def _rendered(group: Group, kind: str, number: int, drawn: Drawn) -> tuple[str, bytes, bytes, Shown]:
    """Return the name of a figure's files, what they hold, and how the page shows it; the same bytes each time."""
    import matplotlib

    figure, heading, caption = drawn
    name = f"{group.name}-{kind}" + (f"-{number}" if number > 1 else "")
    svg, pdf = io.BytesIO(), io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "path"}):
        figure.savefig(svg, format="svg", dpi=150, metadata={"Date": None})
    figure.set_layout_engine("none")  # it is laid out, and stays as it is
    figure.savefig(pdf, format="pdf", dpi=150, metadata={"CreationDate": None})
    address = "data:image/svg+xml;base64," + base64.b64encode(svg.getvalue()).decode()
    caption = caption.replace(" %", "\N{NO-BREAK SPACE}%")
    return name, svg.getvalue(), pdf.getvalue(), Shown(address, heading, caption, round(96 * figure.get_figwidth()))


def _write(path: Path, svg: bytes, pdf: bytes) -> None:
    """Write a figure for the page (SVG) and for print (PDF)."""
    for suffix, content in ((".svg", svg), (".pdf", pdf)):
        with replacing(path.with_name(path.name + suffix)) as temporary:
            temporary.write_bytes(content)
