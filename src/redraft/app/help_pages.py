"""All --help pages as one Markdown page: python -m redraft.app.help_pages > docs/cli.md"""

from collections.abc import Iterator

import click

from redraft.app.cli import cli

_WIDTH = 100


def _pages(command: click.Command, name: str, parent: click.Context | None = None) -> Iterator[str]:
    settings = {**command.context_settings, "terminal_width": _WIDTH}
    context = click.Context(command, info_name=name, parent=parent, **settings)
    yield f"## {context.command_path}\n\n```\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            if found is not None:
                yield from _pages(found, child, context)


def markdown() -> str:
    """Return the page docs/cli.md. A test fails when the two differ."""
    return "# The command line\n\n" + "\n".join(_pages(cli, "redraft"))


if __name__ == "__main__":
    print(markdown(), end="")
