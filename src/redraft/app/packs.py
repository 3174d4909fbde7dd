"""redraft packs."""

import json
import sys

import click

from redraft.app.sections import SectionCommand
from redraft.errors import PackError


@click.command(
    cls=SectionCommand,
    examples=(
        ("redraft packs", "List the packs"),
        ("redraft packs english --json", "Show sources, licences and scores of a pack"),
    ),
)
@click.argument("names", nargs=-1, metavar="[NAME|DIR]...")
@click.option("--json", "as_json", is_flag=True, help="Print the cards of the packs as JSON.")
def packs(names: tuple[str, ...], as_json: bool) -> None:
    """List packs of models and verify their files."""
    from redraft.models.pack import available, open_pack

    bad = 0
    for name in names or [str(folder) for folder in available()]:
        try:
            pack = open_pack(name)
        except PackError as error:
            bad += 1
            click.echo(f"redraft: {error}", err=True)
            continue
        if as_json:
            click.echo(json.dumps({"name": pack.name, "folder": str(pack.folder), "card": pack.card}))
        else:
            kinds = ", ".join(f"{part} ({entry['kind']})" for part, entry in pack.parts.items())
            over = f" over {pack.base.name}" if pack.base else ""
            click.echo(f"{pack.name}@{pack.fingerprint}  {pack.num_bytes / 1e6:.1f} MB{over}  whole  {kinds}")
            if description := pack.card.get("description"):
                click.echo(f"  {description}")
    if bad:
        sys.exit(2)
