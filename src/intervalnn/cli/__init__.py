"""The command line: thin commands over the library; torch is imported only where it is needed."""

from __future__ import annotations

import click

from intervalnn import __version__
from intervalnn.cli import calibrate, demo, doctor, evaluate, explain, export, fit, predict, report, reproduce, view
from intervalnn.cli.allocation import keep_freed_memory
from intervalnn.cli.command import Commands

__all__ = ["main"]


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(__version__, prog_name="inn")
def main() -> None:
    """Interval neural networks: bounds, uncertainty and direction for trained networks."""
    keep_freed_memory()


main.add_command(demo.demo)
main.add_command(fit.fit)
main.add_command(calibrate.calibrate)
main.add_command(predict.predict)
main.add_command(evaluate.evaluate)
main.add_command(explain.explain)
main.add_command(export.export)
main.add_command(report.report)
main.add_command(view.view)
main.add_command(reproduce.reproduce)
main.add_command(doctor.doctor)
