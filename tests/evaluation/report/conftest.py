from __future__ import annotations

from pathlib import Path

import pytest

from evaluation.report.made import measured


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with runs of signals and a run of images, with all that a report can show."""
    folder = tmp_path_factory.mktemp("results")
    measured(folder / "signals")
    measured(folder / "images", (1, 12, 16), seeds=(0,))
    return folder


@pytest.fixture(scope="session")
def page(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report on these runs."""
    pytest.importorskip("matplotlib", reason="a report needs matplotlib")
    pytest.importorskip("jinja2", reason="a report needs jinja2")
    from intervalnn.evaluation.report.html import write_report

    return write_report(runs, tmp_path_factory.mktemp("page") / "report.html", title="Everything")
