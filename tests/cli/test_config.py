"""Config: one table of options for files, --set and the command line, the stronger source winning."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

import intervalnn as inn
from intervalnn.cli.config import Config, ConfigError, Option, from_sources, options_of
from intervalnn.cli.config.options import sections

OPTIONS = [option for section in ("", *sections()) for option in options_of(section)]

TAKEN_BY: dict[str, Any] = {
    "network": inn.IntervalNetwork,
    "fit": inn.fit,
    "calibrate": inn.calibrate,
    "predict": inn.volumes.predict_volume,
    "evaluate": inn.evaluate,
    "export": inn.export,
    "view": inn.view.view,
}
# Options that say in a text what a program says by an object.
AS_TEXT = {"network.layers", "network.gap_dtype", "predict.window", "export.net", "export.outputs"}
AS_TEXT |= {"evaluate.methods", "evaluate.metrics", "evaluate.held_out"}
SHARED = [
    option
    for option in OPTIONS
    if option.key[0] in TAKEN_BY
    and option.key[-1] in inspect.signature(TAKEN_BY[option.key[0]]).parameters
    and option.name not in AS_TEXT
]


def toml(value: Any) -> str:
    return json.dumps(list(value) if isinstance(value, tuple) else str(value) if isinstance(value, Path) else value)


@pytest.mark.parametrize("option", SHARED, ids=lambda option: option.name)
def test_an_option_has_the_type_and_the_default_of_the_argument_it_stands_for(option: Option) -> None:
    function = TAKEN_BY[option.key[0]]
    argument = inspect.signature(function).parameters[option.key[-1]]
    kind = get_type_hints(function.__init__ if inspect.isclass(function) else function)[option.key[-1]]

    assert option.default == argument.default
    assert {*(get_args(option.kind) or [option.kind])} <= {*(get_args(kind) or [kind])}


def test_no_option_stands_for_an_argument_unseen() -> None:
    assert len(SHARED) > 20 and {option.name for option in OPTIONS} >= AS_TEXT


def test_a_file_with_every_default_changes_nothing(tmp_path: Path) -> None:
    lines: dict[str, list[str]] = {}
    for option in OPTIONS:
        if option.default is not None and option.default != {}:
            lines.setdefault(".".join(option.key[:-1]), []).append(f"{option.key[-1]} = {toml(option.default)}")
    file = tmp_path / "all.toml"
    file.write_text("\n".join("\n".join([f"[{table}]" if table else "", *rows]) for table, rows in lines.items()))

    assert from_sources(file, [], {}) == Config()
    assert len(lines) > 5


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_every_option_says_what_it_does(option: Option) -> None:
    assert option.flag.help.rstrip("]").endswith((".", "...", "0.9", "OUT.checkpoint", "usual\xa0ones"))
    assert not option.flag_name or option.flag_name.startswith("--")


def test_the_command_line_wins_over_set_and_set_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text("device = 'a'\n[fit]\nepochs = 1\nseed = 1\nlr = 1\n[model]\noptions = {x = 1, y = 1}")

    config = from_sources(file, ["fit.epochs=2", "fit.seed=2", "model.options.y=2"], {("fit", "epochs"): 3})

    assert (config.device, config.fit.lr, config.fit.seed, config.fit.epochs) == ("a", 1.0, 2, 3)
    assert config.model.options == {"x": 1, "y": 2}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("all", "all"),
        ("4", 4),
        ("head,body", "head,body"),
        ('["head", "body"]', ("head", "body")),
        ("'4'", "4"),
    ],
)
def test_set_takes_values_as_toml_does_and_words_without_quotes(text: str, value: Any) -> None:
    assert from_sources(None, [f"network.layers={text}"], {}).network.layers == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fit.epochs", "--set wants table.key=value, such as fit.epochs=5, got 'fit.epochs'"),
        ("fit..epochs=3", "--set wants table.key=value"),
        ("fit.epochs=1.5", "'fit.epochs' must be a whole number, got 1.5"),
        ("fit.epochs=true", "'fit.epochs' must be a whole number, got True"),
        ("fit.lr=true", "'fit.lr' must be a number, got True"),
        ("network.exact=1", "'network.exact' must be true or false, got 1"),
        ("network.kind=row", "'weight' or 'symmetric' or 'input', got 'row'"),
        ("network.layers=1.5", "'network.layers' must be a whole number or a text or a list of texts, got 1.5"),
        ("predict.patch=[1, 'a']", "'predict.patch' must be a list of whole numbers"),
        ("evaluate.nets=3", "'evaluate.nets' must be a table of texts, got 3"),
        ("evaluate.nets.a=3", "'evaluate.nets' must be a table of texts"),
        ("model.weights=3", "'model.weights' must be a path, got 3"),
        ("fit=3", "'fit' must be a table, [fit], got 3"),
        ("fit.layers=3", "unknown key 'fit.layers'; did you mean 'network.layers'?"),
        ("calibrate.covrage=3", "unknown key 'calibrate.covrage'; did you mean 'coverage'?"),
        ("calibrate.zzz=3", "unknown key 'calibrate.zzz'; there is net, data"),
    ],
)
def test_what_no_option_can_be_is_refused_with_what_it_can(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        from_sources(None, [text], {})

    assert message in str(error.value)
