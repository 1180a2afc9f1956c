"""The command line: thin commands over the library; torch is imported only where it is needed."""

from __future__ import annotations

import click


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="intervalnn")
def main() -> None:
    """Interval neural networks: bounds, uncertainty and direction for trained networks."""
