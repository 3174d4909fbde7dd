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
    from redraft import recipes as values
    from redraft.assemble import opened
    from redraft.models.pack import DEFAULT
    from redraft.systems import SYSTEMS, absence

    found = opened(pack or DEFAULT)
    default = values.default(found).name
    width = max(map(len, SYSTEMS))
    for name, system in SYSTEMS.items():
        reason, recipe = absence(system, found), system.recipe
        if as_json:
            given = {
                "name": name,
                "summary": recipe.summary,
                "target": recipe.target,
                "steps": recipe.steps,
                "needs": system.needs,
                "available": reason is None,
                "reason": reason,
                "default": name == default,
            }
            click.echo(json.dumps(given, ensure_ascii=False))
            continue
        click.echo(f"{'*' if name == default else ' '} {name:<{width}}  {recipe.summary}")
        needs = f"needs {', '.join(system.needs) or 'nothing'}"
        click.echo(f"  {'':<{width}}  {needs}; {'available' if reason is None else f'unavailable: {reason}'}")
