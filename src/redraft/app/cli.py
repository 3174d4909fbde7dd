"""The command line. A command's module is imported when the command runs or is listed; torch only when it works."""

import importlib
import sys

import click

from redraft.errors import RedraftError
from redraft.version import VERSION

# Name of each command and where it lives.
_COMMANDS = {
    "generate": "redraft.app.generate:generate",
    "infill": "redraft.app.generate:infill",
    "diagnose": "redraft.app.diagnose:diagnose",
    "explain": "redraft.app.explain:explain",
    "evaluate": "redraft.app.evaluate:evaluate",
    "testset": "redraft.app.evaluate:testset",
    "reproduce": "redraft.app.reproduce:reproduce",
    "report": "redraft.app.reproduce:report",
    "synthesize": "redraft.app.synthesize:synthesize",
    "pull": "redraft.app.pull:pull",
    "packs": "redraft.app.packs:packs",
    "recipes": "redraft.app.recipes:recipes",
    "train": "redraft.app.train:train",
}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, name = _COMMANDS[cmd_name].split(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(VERSION, message="redraft %(version)s")
def cli() -> None:
    """Write sentences that must contain given words, and fill blanks of any length."""


def main() -> None:
    """Run the command line; an error that is the person's to mend is one line and exit status 2."""
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
