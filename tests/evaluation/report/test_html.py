"""The page as a file: what it holds, that it says what the results say, and that it needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from evaluation.report.made import numbers, run, scored
from intervalnn.evaluation.report import html
from intervalnn.evaluation.report.groups import find
from intervalnn.evaluation.report.html import write_report


class Tables(HTMLParser):
    """Reads the comparison tables: of each row the name, and of each cell value and whether it is best."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[tuple[str, list[tuple[str, bool]]]] = []
        self.inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag == "tbody":
            self.inside = True
        elif tag == "th" and self.inside:
            self.rows.append(("", []))
        elif tag == "td" and self.inside:
            self.rows[-1][1].append((found["data-value"] or "", "best" in (found.get("class") or "").split()))

    def handle_endtag(self, tag: str) -> None:
        if tag == "tbody":
            self.inside = False

    def handle_data(self, data: str) -> None:
        if self.inside and self.rows and not self.rows[-1][1]:
            self.rows[-1] = (self.rows[-1][0] + data.strip(), [])


def test_the_page_has_every_part(page: Path) -> None:
    text = page.read_text()

    for heading in (
        "Everything",
        "Comparison",
        "Coverage",
        "How far behind: interval score",
        "Calibration",
        "Sparsification",
        "Direction",
        "What opens the bounds",
        "Best and worst samples",
        "Settings, versions and files",
        "What the metrics mean",
    ):
        assert f">{heading}<" in text, heading
    assert "Not in these runs" not in text
    assert page.stat().st_size < html.LARGE


def test_tables_and_figures_lie_beside_the_page(page: Path) -> None:
    beside = {str(path.relative_to(page.parent)) for path in page.parent.rglob("*") if path.is_file()}

    kinds = ("coverage", "differences", "calibration", "sparsification", "direction", "explanation", "samples")
    wanted = {f"report-figures/signals-{kind}.{end}" for kind in kinds for end in ("pdf", "svg")}
    wanted |= {f"report-tables/{group}.{end}" for group in ("signals", "images") for end in ("md", "tex")}
    assert wanted <= beside
    assert {name for name in beside if not name.startswith(("report-figures", "report-tables"))} == {"report.html"}


def test_figures_in_the_page_are_those_in_the_files(page: Path) -> None:
    shown = [
        base64.b64decode(part) for part in re.findall(r'src="data:image/svg\+xml;base64,([^"]*)"', page.read_text())
    ]

    assert sorted(shown) == sorted(path.read_bytes() for path in page.parent.rglob("*.svg"))
    assert all(path.read_bytes().startswith(b"%PDF") for path in page.parent.rglob("*.pdf"))


def test_numbers_in_the_table_are_those_of_the_results(page: Path, runs: Path) -> None:
    tables = Tables(page.read_text())

    groups = find(runs).groups
    rows = iter(tables.rows)
    for group in groups:
        metrics = {
            m: [group.results.spread(name, m).mean for name in group.results.methods] for m in group.results.metrics
        }
        found = [next(rows) for _ in group.results.methods]
        assert [name for name, _ in found] == group.results.methods
        columns = [
            tuple(float(v) if v else None for v in column)
            for column in zip(*([v for v, _ in cells] for _, cells in found), strict=True)
        ]
        expected = [tuple(None if v != v else v for v in values) for values in metrics.values()]
        assert sorted(columns[:-2], key=str) == sorted(expected, key=str)
        seconds = [
            sum(r.methods[n].seconds for r in group.results.runs) / len(group.results.runs)
            for n in group.results.methods
        ]
        assert columns[-2] == pytest.approx([1e3 * s for s in seconds])
    assert next(rows, None) is None


def test_the_star_goes_to_the_best_beyond_chance_and_to_no_other(tmp_path: Path) -> None:
    values = scored(ours=1.0, theirs=1.5)
    values["ours"] |= {"mae": numbers(1.0), "coverage": numbers(0.9, 0.01), "pearson": numbers(0.5)}
    values["theirs"] |= {"mae": numbers(1.001, seed=1), "coverage": numbers(0.8, 0.01, seed=1), "pearson": numbers(0.9)}
    run(values).save(tmp_path / "run.json")

    text = write_report(tmp_path).read_text()

    # winkler: ours is far ahead; coverage has no better; pearson: theirs; mae: a difference that may be chance; cost
    assert Tables(text).rows[0][0] == "ours" and Tables(text).rows[1][0] == "theirs"
    assert [best for _, best in Tables(text).rows[0][1]] == [True, False, False, False, False, False]
    assert [best for _, best in Tables(text).rows[1][1]] == [False, False, True, False, False, False]
    assert text.count("★</span>") == 2
    for suffix, bold in ((".md", r"\*\*[^*]*\*\*"), (".tex", r"\\mathbf")):
        (table,) = (tmp_path / "report-tables").glob(f"*{suffix}")
        assert len(re.findall(bold, table.read_text())) == 2


def test_without_a_significant_difference_there_is_no_star(tmp_path: Path) -> None:
    run(scored(ours=1.0, theirs=1.001)).save(tmp_path / "run.json")

    text = write_report(tmp_path).read_text()

    assert "★</span>" not in text and ">may be chance<" in text and ">beyond chance<" not in text


def test_what_is_missing_is_said_with_how_to_get_it(tmp_path: Path) -> None:
    run({"a": {"mae": numbers(1.0)}, "b": {"mae": numbers(2.0)}}).save(tmp_path / "run.json")

    text = write_report(tmp_path).read_text()

    assert "Not in these runs" in text and "as held_out" in text
    assert "curves_of from intervalnn.evaluation.examples" in text and "save_examples(file of the run" in text
    assert ">Calibration<" not in text and ">Best and worst samples<" not in text


def test_the_same_runs_make_the_same_bytes(tmp_path: Path) -> None:
    run(scored(a=1.0, b=2.0)).save(tmp_path / "in" / "run.json")

    first, second = (write_report(tmp_path / "in", tmp_path / where).parent for where in ("first", "second"))

    files = sorted(path.relative_to(first) for path in first.rglob("*") if path.is_file())
    assert {path.suffix for path in files} == {".html", ".md", ".tex", ".pdf", ".svg"}
    assert all((first / path).read_bytes() == (second / path).read_bytes() for path in files)


def test_the_policy_allows_its_own_style_and_script_only(page: Path) -> None:
    text = page.read_text()

    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    for tag in ("style", "script"):
        (inside,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        assert f"{tag}-src 'sha256-{base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()}'" in policy
    assert not re.findall(r'(?:src|href)="(?!data:|#)', text) and " style=" not in text and " on" + "click=" not in text


def test_names_cannot_break_out_of_the_page(tmp_path: Path) -> None:
    bad = '<script>alert("1")</script>'
    values = {bad: {bad: [1.0, 2.0], "mae": [1.0, 2.0]}, "b": {"mae": [2.0, 3.0]}}
    run(values, **{bad: bad}).save(tmp_path / "run.json")

    text = write_report(tmp_path, title=bad).read_text()

    assert "<script>alert" not in text and text.count("<script>") == 1
    assert "&lt;script&gt;alert(&#34;1&#34;)" in text


def test_a_latex_table_escapes_what_latex_would_read(tmp_path: Path) -> None:
    values = {"50% & a_b #1 {x}": {"mae": numbers(1.0), "p_q": numbers(1.0)}, r"\b~^$": {"mae": numbers(2.0, seed=1)}}
    run(values).save(tmp_path / "run.json")

    write_report(tmp_path)

    (path,) = (tmp_path / "report-tables").glob("*.tex")
    lines = path.read_text().splitlines()
    assert lines[2] == r"method & mae & p\_q & seconds each & peak MiB \\"
    assert lines[4].startswith(r"50\% \& a\_b \#1 \{x\} & $\mathbf{1.000}$ & $1.000$ & ")
    assert lines[5].startswith(r"\textbackslash{}b\textasciitilde{}\textasciicircum{}\$ & $2.000$ & -- & ")
    assert path.read_text().count("{") == path.read_text().count("}")


def test_a_large_page_brings_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(scored(a=1.0)).save(tmp_path / "run.json")
    monkeypatch.setattr(html, "LARGE", 2**10)

    with pytest.warns(UserWarning, match=r"report.html has 0.\d MiB, more than the 0 MiB .*fewer folders"):
        write_report(tmp_path)


@pytest.mark.parametrize(("out", "where"), [(None, "report.html"), ("sub", "sub/report.html"), ("x/y.htm", "x/y.htm")])
def test_the_page_is_written_where_it_was_asked_for(out: str | None, where: str, tmp_path: Path) -> None:
    run(scored(a=1.0)).save(tmp_path / "run.json")

    written = write_report(tmp_path, None if out is None else tmp_path / out)

    assert written == tmp_path / where and written.exists()
    assert written.with_name(f"{written.stem}-tables").is_dir()


def test_a_missing_package_is_named_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(scored(a=1.0)).save(tmp_path / "run.json")
    monkeypatch.setitem(sys.modules, "jinja2", None)

    with pytest.raises(ImportError, match=r"pip install \"intervalnn\[report\]\""):
        write_report(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_a_failed_page_leaves_no_part_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("disk full")

    run(scored(a=1.0)).save(tmp_path / "run.json")
    monkeypatch.setattr(Path, "write_text", fail)

    with pytest.raises(OSError, match="disk full"):
        write_report(tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.suffix in (".html", ".tmp", ".md")]
