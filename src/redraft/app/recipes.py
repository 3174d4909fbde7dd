"""redraft recipes."""

import json

import click


@click.command()
@click.option("--pack", metavar="NAME|DIR", help="Pack to check for the models.")
@click.option("--json", "as_json", is_flag=True, help="Print the recipes as JSON, one object per line.")
def recipes(pack: str | None, as_json: bool) -> None:
    """List the recipes, what each needs, and whether it is available.

    The recipe that is used by default is marked with a star.
    """
    from redraft.assemble import opened
    from redraft.models.pack import DEFAULT
    from redraft.systems import listing

    found = listing(opened(pack or DEFAULT))
    width = max(len(one["name"]) for one in found)
    for one in found:
        if as_json:
            click.echo(json.dumps(one, ensure_ascii=False))
            continue
        click.echo(f"{'*' if one['default'] else ' '} {one['name']:<{width}}  {one['summary']}")
        needs = f"needs {', '.join(one['needs']) or 'nothing'}"
        available = "available" if one["available"] else f"unavailable: {one['reason']}"
        click.echo(f"  {'':<{width}}  {needs}; {available}")
