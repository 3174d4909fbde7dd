"""The command line. A command's module is imported when it is run or listed, and torch only when it is needed."""

import importlib
import os
import sys

import click

from redraft.app.sections import suggestion, write_examples
from redraft.app.streams import escape_unknown_letters
from redraft.errors import RedraftError
from redraft.version import VERSION

# By default, waiting threads of torch spin, which is many times slower when another program is busy. OpenMP reads this
# when torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# The commands by their heading on the help page, and the module of each.
_SECTIONS = {
    "Write": {
        "generate": "redraft.app.generate:generate",
        "infill": "redraft.app.generate:infill",
        "serve": "redraft.app.serve:serve",
    },
    "Understand": {
        "explain": "redraft.app.explain:explain",
        "diagnose": "redraft.app.diagnose:diagnose",
    },
    "Measure": {
        "evaluate": "redraft.app.evaluate:evaluate",
        "testset": "redraft.app.evaluate:testset",
        "reproduce": "redraft.app.reproduce:reproduce",
        "report": "redraft.app.reproduce:report",
        "outputs": "redraft.app.reproduce:outputs",
    },
    "Models": {
        "pull": "redraft.app.pull:pull",
        "packs": "redraft.app.packs:packs",
        "recipes": "redraft.app.recipes:recipes",
        "synthesize": "redraft.app.synthesize:synthesize",
        "train": "redraft.app.train:train",
    },
}
_COMMANDS = {name: place for commands in _SECTIONS.values() for name, place in commands.items()}

_EXAMPLES = (
    ('redraft generate dog "old park" ball', "Write a sentence with two words and a phrase"),
    ('redraft infill "The mayor said ___ in the city ."', "Fill a blank"),
    ("redraft pull smollm2", "Fetch the model that writes the best text (93 MB, once)"),
    ("redraft generate --help", "Show the options of a command"),
)


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, name = _COMMANDS[cmd_name].split(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        # An option in place of a command is left to click, whose error names it.
        if args and not args[0].startswith("-") and args[0] not in _COMMANDS:
            ctx.fail(f"There is no command {args[0]!r}.{suggestion(args[0], _COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, _COMMANDS))
        for heading, names in _SECTIONS.items():
            commands = {name: self.get_command(ctx, name) for name in names}
            limit = formatter.width - width - 6
            rows = [(name.ljust(width), one.get_short_help_str(limit)) for name, one in commands.items() if one]
            with formatter.section(heading):
                formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(formatter, _EXAMPLES)


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(VERSION, message="redraft %(version)s")
def cli() -> None:
    """Write sentences that must contain given words, and fill blanks of any length."""


def main() -> None:
    """Run the command line. A user error prints one line and exits with status 2."""
    escape_unknown_letters()
    try:
        cli(standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except RedraftError as error:
        message = " ".join(str(error).split())
        click.echo(f"redraft: {message}", err=True)
        sys.exit(2)
    except OSError as error:
        place = error.filename or "standard output"
        click.echo(f"redraft: cannot read or write {place}: {error.strerror or error}", err=True)
        sys.exit(2)
