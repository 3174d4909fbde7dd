"""redraft generate, redraft infill."""

import json

import click

from redraft.app.options import Options, shared_options
from redraft.errors import InputError


@click.command()
@click.argument("words", nargs=-1, metavar="[WORD | 'A PHRASE']...")
@shared_options
def generate(words: tuple[str, ...], options: Options) -> None:
    """Write a sentence that contains the given words and phrases."""
    _write({"keywords": list(words)} if words else {}, options)


@click.command()
@click.argument("template", required=False)
@shared_options
def infill(template: str | None, options: Options) -> None:
    """Fill the blanks of a TEMPLATE; each ___ takes any number of words."""
    _write({} if template is None else {"template": template}, options)


def _write(given: dict[str, object], options: Options) -> None:
    if options.input is not None:
        if given:
            raise InputError("give words on the command line or --input, not both")
        from redraft.app.batch import run_batch

        run_batch(options)
        return
    if options.output is not None:
        raise InputError("--output goes with --input")
    _write_one(given, options)


def _write_one(given: dict[str, object], options: Options) -> None:
    from redraft.app.live import LiveLine, stop_on_interrupt
    from redraft.app.records import constraints_of, record
    from redraft.app.show import show_draft

    constraints = constraints_of({**options.defaults(), **given})
    settings, writer = options.settings(), options.writer()
    with stop_on_interrupt() as stopped, LiveLine(options.steps) as line:

        def observe(step: int, best: object, nll: float) -> bool:
            line.update(step, best, nll)
            return not stopped()

        drafts = writer.write(constraints, settings, observe)
    if options.as_json:
        click.echo(json.dumps({"drafts": [record(draft, trace=options.trace) for draft in drafts]}, ensure_ascii=False))
        return
    for draft in drafts:
        show_draft(draft, constraints, trace=options.trace)
