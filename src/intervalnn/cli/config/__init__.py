"""Config: every option of the commands, and where its value may come from.

One TOML file may hold the options of all commands: ``[model]`` and ``[network]`` say what is given bounds, and
each command has a table of its own. What is set with ``--set`` wins over the file, and an option on the command line
over both. Paths are taken from the folder that the command runs in, wherever the file lies.
"""

from intervalnn.cli.config.every_option import Config, Flag
from intervalnn.cli.config.options import Option, options_of, settings
from intervalnn.cli.config.sources import from_sources
from intervalnn.cli.config.values import ConfigError, did_you_mean

__all__ = ["Config", "ConfigError", "Flag", "Option", "did_you_mean", "from_sources", "options_of", "settings"]
