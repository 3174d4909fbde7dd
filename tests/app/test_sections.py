"""Help pages: options under headings, with descriptions and examples; close names for unknown commands."""

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

import redraft
from redraft.app.cli import cli
from redraft.app.options import RECIPES
from redraft.app.sections import SectionCommand
from redraft.errors import InputError


def _help(*command: str) -> str:
    return CliRunner().invoke(cli, [*command, "--help"]).output


def _commands() -> Iterator[tuple[str, click.Command]]:
    context = click.Context(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        yield name, command


@pytest.mark.parametrize("command", ["generate", "infill"])
def test_options_of_writing_are_grouped(command: str) -> None:
    shown = _help(command)
    headings = ("What to write:", "How to write it:", "Output:", "Models:", "Sampling:", "Recipes:", "Examples:")
    places = [shown.index(f"\n{heading}\n") for heading in headings]
    assert places == sorted(places)
    assert shown.index("--ban") < shown.index("How to write it:") < shown.index("--steps") < shown.index("Output:")


def test_every_option_is_shown_once_and_described() -> None:
    for name, command in _commands():
        if not isinstance(command, SectionCommand):
            continue
        shown = _help(name)
        for param in command.params:
            if isinstance(param, click.Option) and not param.hidden:
                assert param.help, f"redraft {name} {param.opts[0]} has no description"
                assert sum(line.startswith(f"  {param.opts[0]}") for line in shown.splitlines()) >= 1


def test_the_listed_recipes_are_the_real_ones() -> None:
    with pytest.raises(InputError, match="choose one of: ") as refused:
        redraft.load(recipe="no such recipe")
    real = str(refused.value).partition("choose one of: ")[2].split(", ")
    assert sorted(RECIPES) == sorted(real)
    assert all(name in _help("generate") for name in real)


def test_commands_are_grouped_with_examples() -> None:
    shown = _help()
    assert all(f"\n{heading}:\n" in shown for heading in ("Write", "Understand", "Measure", "Models", "Examples"))
    assert all(f"\n  {name} " in shown for name, _ in _commands())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["genrate", "dog"], "There is no command 'genrate'. Did you mean 'generate'?"),
        (["zzz"], "There is no command 'zzz'."),
        (["generate", "--sed", "1"], "--seed"),
        (["train", "clasifier"], "Did you mean 'classifier'?"),
    ],
)
def test_unknown_names_are_answered_with_close_ones(given: list[str], message: str) -> None:
    result = CliRunner().invoke(cli, given)
    assert result.exit_code == 2
    assert message in result.stderr
