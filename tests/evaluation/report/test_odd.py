"""Odd runs: one of them does not cost the page, which names it and why; and no name is more than a name."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from evaluation.report.made import measured, numbers, run, scored
from intervalnn.cli import main
from intervalnn.evaluation.records import Measured, Run
from intervalnn.evaluation.report.html import write_report
from intervalnn.evaluation.results import Results

NAMES = [
    *("$x_", "a$b$c", r"$\frac{$", r"\$", "$$", "%", "a_b", "#1 {x}", r"\input{x}", "^~"),
    *("<b>&amp;", '"><script>alert(1)</script>', "{{ 1 }}", "|", "a|b", "`code`", "[a](http://b)", "**bold**", "a\\"),
    *("a\nb", "a\r\n\r\nb", "\x1b[2J\x1b[31m", "\x00", "\x07", "\u202etxt", "\u2028", "\ud800", "\ufeff", "\x9b1m"),
    *("", " ", "..", "a/b", "x" * 3000, "[red]", "[/]"),
]


def good(folder: Path) -> None:
    run(scored(ours=1.0, theirs=2.0)).save(folder / "good" / "run.json")


def odd(folder: Path, change: Callable[[dict[str, Any]], object], name: str = "run.json") -> None:
    """Write a run and change what stands in its file."""
    path = run(scored(first=1.0, second=2.0)).save(folder / "odd" / name)
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def left_out(page: Path) -> dict[str, str]:
    """Return the files that a page names as left out, and why."""
    listed = page.read_text().partition("<summary>Files that are left out</summary>")[2].partition("</details>")[0]
    return dict(re.findall(r"<li>(.*?): (.*?)</li>", listed))


WRONG: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "no coverage": (lambda c: c.pop("coverage"), "missing 1 required positional argument"),
    "coverage without a number": (lambda c: c.update(coverage=float("nan")), "a coverage"),
    "coverage without end": (lambda c: c.update(coverage=float("inf")), "a coverage"),
    "coverage below zero": (lambda c: c.update(coverage=-1), "a coverage"),
    "a text for a method": (lambda c: c["methods"].update(first="a"), "must be a mapping"),
    "a text for values": (lambda c: c["methods"]["first"].update(values="a"), "no attribute"),
    "other counts": (lambda c: c["methods"]["first"]["values"].update({"winkler at equal coverage": [1]}), "as many"),
    "no methods": (lambda c: c.update(methods={}), "without any method"),
    "another format": (lambda c: c.update(format="x"), "another format"),
    "versions without end": (lambda c: c.update(versions=[1]), "must be tables"),
}


@pytest.mark.rotating
@pytest.mark.parametrize("case", WRONG)
def test_a_run_that_is_none_is_named_with_the_reason(case: str, tmp_path: Path) -> None:
    change, why = WRONG[case]
    good(tmp_path)
    odd(tmp_path, change)

    page = write_report(tmp_path)

    assert why in left_out(page)["odd/run.json"]
    assert "1 run of 2 methods, in 1 comparison. 1 file left out: see the end of the page." in page.read_text()


def folder_named_json(path: Path) -> None:
    path.mkdir()


def link_to_itself(path: Path) -> None:
    path.symlink_to(path)


@pytest.mark.rotating
@pytest.mark.parametrize(
    ("make", "why"),
    [
        (os.mkfifo, "is a pipe or a device"),
        (lambda path: path.symlink_to("/dev/zero"), "is a pipe or a device"),
        (folder_named_json, "is a folder"),
        (link_to_itself, "symbolic links"),
        (lambda path: path.symlink_to("nowhere"), "there is no file"),
        (lambda path: path.write_bytes(b""), "Expecting value"),
        (lambda path: path.write_bytes(b'{"format": "intervalnn res'), "Unterminated string"),
        (lambda path: path.write_bytes(b"\xff\xfe\x00"), "utf-8"),
        (lambda path: path.write_bytes(b"[" * 10**5), "recursion"),
        (lambda path: path.write_bytes(b"9" * 10**5), "digits"),
        (lambda path: path.write_bytes(b"null"), "no attribute"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_the_reason(
    make: Callable[[Path], object], why: str, tmp_path: Path
) -> None:
    good(tmp_path)
    (tmp_path / "odd").mkdir()
    make(tmp_path / "odd" / "x.json")

    page = write_report(tmp_path)

    assert why in left_out(page)["odd/x.json"]


def test_alone_an_odd_run_is_told_why_there_is_no_page(tmp_path: Path) -> None:
    odd(tmp_path, lambda content: content.update(coverage=2))

    with pytest.raises(FileNotFoundError, match=r"no runs in .*run\.json.*a coverage"):
        write_report(tmp_path)


CURVES = ("calibration", "sparsification", "direction", "explanation")


@pytest.mark.rotating
@pytest.mark.parametrize("value", ["text", [1, 2], {"levels": [0.5]}, 7], ids=str)
def test_a_figure_that_cannot_be_drawn_says_so(value: Any, tmp_path: Path) -> None:
    good(tmp_path)
    odd(tmp_path, lambda content: content["settings"].update(curves={"first": dict.fromkeys(CURVES, value)}))

    text = write_report(tmp_path).read_text()

    for curve in CURVES:
        assert f"The figure of {curve} cannot be drawn from what these runs hold:" in text
    assert text.count("<h3>How far behind: interval score</h3>") == 2


@pytest.mark.rotating
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1e308, 0.0])
def test_numbers_without_end_are_shown_as_what_they_are(value: float, tmp_path: Path) -> None:
    good(tmp_path)
    values = {"winkler at equal coverage": [value] * 40, "coverage": [value, *numbers(0.9, 0.01, 39)]}
    methods = {"first": Measured(values, value, value), "second": Measured(values, 0.1, 1.0)}
    replace(run({}), methods=methods).save(tmp_path / "odd" / "run.json")

    with np.errstate(all="ignore"):
        text = write_report(tmp_path).read_text()

    assert text.count('<section class="group"') == 3  # two groups, and what the metrics mean


@pytest.mark.rotating
@pytest.mark.parametrize("names", [NAMES[i : i + 6] for i in range(0, len(NAMES), 6)], ids=lambda n: ascii(n[0]))
def test_whatever_names_are_the_page_and_its_tables_and_figures_are_whole(names: list[str], tmp_path: Path) -> None:
    values = {name: {"mae": numbers(i), names[0]: numbers(i)} for i, name in enumerate(names)}
    curve = {
        "calibration": {"levels": [0.0, 0.5, 1.0], "shares": [0.0, 0.4, 1.0]},
        "explanation": [{"name": name, "share": 0.5} for name in names],
    }
    settings = {name: name for name in names}
    run(values, curves=dict.fromkeys(names, curve), **settings).save(tmp_path / "odd" / "run.json")
    arrays = {key: np.random.default_rng(0).random((2, 1, 9)) for key in ("x", "y")}
    plain = [name for name in names if not {"\ud800", "\x00"} & set(name)]  # numpy writes no others into an archive
    parts = {f"{name}/{part}": np.ones((2, 1, 9)) for name in plain for part in ("point", "below", "above", "score")}
    np.savez(tmp_path / "odd" / "run.npz", **arrays, **parts)

    page = write_report(tmp_path, title=names[0])

    text = page.read_text(encoding="utf-8")
    assert "cannot be drawn" not in text and "Files that are left out" not in text
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e\ufeff]", text)
    assert text.count("<script>") == 1 and "<b>&" not in text
    (markdown,) = page.with_name("report-tables").glob("odd*.md")
    rows = markdown.read_text().splitlines()[: 2 + len(names)]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {6}
    (latex,) = page.with_name("report-tables").glob("odd*.tex")
    lines = [line for line in latex.read_text().splitlines() if line.endswith(r"\\") and "multicolumn" not in line]
    assert [len(re.findall(r"(?<!\\)&", line)) for line in lines] == [4] * (1 + len(names))
    table = Results([Run.load(tmp_path / "odd" / "run.json")]).table().splitlines()
    assert not re.search(r"[\x00-\x1f\x7f-\x9f]", "".join(table))


@pytest.mark.rotating
@pytest.mark.parametrize("name", ["a\nb", "\x1b[31mred", "$x_$", "a b|c", "é" * 60, "<i>"])
def test_whatever_a_folder_is_called_the_page_is_whole(name: str, tmp_path: Path) -> None:
    for each in (name, f"{name}2"):
        run(scored(ours=1.0, theirs=2.0)).save(tmp_path / each / "run.json")
    (tmp_path / name / "odd.json").write_text("{")

    done = CliRunner().invoke(main, ["report", str(tmp_path), "--out", str(tmp_path / name / "page.html")])

    assert done.exit_code == 0, done.output
    assert "\x1b" not in done.output
    text = (tmp_path / name / "page.html").read_text()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text) and "<i>" not in text


@pytest.mark.skipif(os.name != "posix", reason="elsewhere names are texts")
def test_names_that_are_no_text_are_shown_by_their_bytes(tmp_path: Path) -> None:
    good(tmp_path)
    (tmp_path / os.fsdecode(b"\xff.json")).write_text("{")

    page = write_report(tmp_path)

    assert list(left_out(page)) == [r"\udcff.json"]


def test_npz_files_beside_a_run_that_are_none_of_its_examples_are_named(tmp_path: Path) -> None:
    good(tmp_path)
    measured(tmp_path / "odd", seeds=(0, 1))
    np.savez(tmp_path / "odd" / "run-0.npz", x=np.array([None, 1], object), allow_pickle=True)
    (tmp_path / "good" / "run.npz").write_bytes(b"PK\3\4 damaged")

    page = write_report(tmp_path)

    assert left_out(page).keys() == {"odd/run-0.npz", "good/run.npz"}
    assert page.read_text().count("<h3>Best and worst samples</h3>") == 1  # those of the other run


def test_many_methods_and_samples_are_drawn(tmp_path: Path) -> None:
    values = {f"method {i}": {"mae": numbers(1.0 + i, n=3, seed=i)} for i in range(60)}
    run(values).save(tmp_path / "run.json")

    text = write_report(tmp_path).read_text()

    assert "cannot be drawn" not in text and text.count('<th scope="row">method ') == 60
