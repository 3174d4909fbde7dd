"""redraft serve."""

import click

from redraft.app.sections import SectionCommand
from redraft.errors import InputError


@click.command(
    cls=SectionCommand,
    examples=(
        ("redraft serve", "Serve this machine on port 8000"),
        ("REDRAFT_TOKEN=secret redraft serve --host 0.0.0.0", "Serve other machines too"),
        ('redraft generate dog "old park" --server http://127.0.0.1:8000', "Write with a server that runs"),
    ),
)
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="The port. 0 takes any.")
@click.option(
    "--token",
    envvar="REDRAFT_TOKEN",
    metavar="TEXT",
    help="What clients must send. Better given as REDRAFT_TOKEN: other users of a machine see command lines.",
)
@click.option("--pack", metavar="NAME|DIR", help="The models to use. Default: english, which is included.")
@click.option(
    "--time-limit",
    type=float,
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="The longest that a request is worked on. It then gets the best draft so far.",
)
@click.option("--queue", type=click.IntRange(1), default=64, show_default=True, help="Requests that may wait.")
@click.option("--batch", type=click.IntRange(1), default=32, show_default=True, help="Chains to run together.")
@click.option(
    "--allow-origin",
    "origins",
    multiple=True,
    metavar="URL",
    help="Let the pages of a site use the server. Repeatable.",
)
def serve(
    host: str,
    port: int,
    token: str | None,
    pack: str | None,
    time_limit: float,
    queue: int,
    batch: int,
    origins: tuple[str, ...],
) -> None:
    """Serve the models over HTTP.

    docs/server.md describes the requests. Only this machine reaches the default address; any other needs a token.
    """
    from redraft.extras import require

    require("serve", "fastapi", "uvicorn", "prometheus_client")
    from redraft.models.pack import DEFAULT
    from redraft.server.api import ServerSettings
    from redraft.server.run import serve as run

    if not 0 < time_limit < float("inf"):
        raise InputError(f"--time-limit must be a number of seconds above 0, not {time_limit:g}")
    settings = ServerSettings(pack or DEFAULT, token or None, time_limit, queue, batch, origins)
    run(settings, host, port, lambda line: click.echo(f"redraft: {line}", err=True))
