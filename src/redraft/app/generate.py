"""redraft generate, redraft infill."""

import json
import os
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import click

from redraft.app.options import RECIPES, UNMET, Options, writing_options
from redraft.app.sections import SAMPLING, Command, SectionCommand, option
from redraft.app.streams import kept
from redraft.checks import check_count
from redraft.errors import InputError
from redraft.interrupt import stop_on_interrupt

_RECIPES = {"Recipes": RECIPES}


def _sample_options(command: Command) -> Command:
    for name, metavar, explanation in (
        ("--thin", "STEPS", "Steps between samples. Default: 10."),
        ("--burn-in", "STEPS", "Steps before the first sample. Default: 200."),
        ("--samples", "N", "Draw N samples per chain from the target distribution instead of searching for drafts."),
    ):
        command = option(SAMPLING, name, type=int, metavar=metavar, help=explanation)(command)
    return command


@click.command(
    cls=SectionCommand,
    lists=_RECIPES,
    examples=(
        ('redraft generate dog "old park" ball', "Write a sentence with two words and a phrase"),
        ("redraft generate ball dog --order any --num 3 --seed 7", "Write three, with the words in any order"),
        ("redraft generate 'run~' 'dog|puppy' '?happily'", "Allow any form of a word, alternatives, an optional word"),
        ("redraft generate river --ban water --min-words 8 --max-words 15", "Ban a word and limit the length"),
        ("redraft generate company profit --seed 2 --trace", "Show how the sentence was revised"),
        ("redraft generate --input words.txt --output drafts.jsonl", "Write a sentence for each line of a file"),
        ("redraft generate --input cards.csv --output done.csv --distinct", "Write a sentence for each row of a list"),
    ),
)
@click.argument("words", nargs=-1, metavar="[WORD | 'A PHRASE']...")
@_sample_options
@writing_options
def generate(
    words: tuple[str, ...], options: Options, samples: int | None, burn_in: int | None, thin: int | None
) -> None:
    """Write a sentence that contains the given words and phrases.

    The words are kept exactly as given. Quote a phrase to keep its words together.

    run~ is any form of a word, run~VERB any form of the verb. car|automobile is one of several words. ?word is welcome,
    but not required. A backslash makes any of these marks a character.
    """
    _write({"keywords": list(words)} if words else {}, options, samples, burn_in, thin)


@click.command(
    cls=SectionCommand,
    lists=_RECIPES,
    examples=(
        ('redraft infill "The mayor said ___ in the city ."', "Fill one blank"),
        ('redraft infill "___ said ___ ." --num 3', "Fill two blanks in three ways"),
        ('redraft infill "The dog ___{3} the ball ." --recipe bayesian-mcmc', "Fill a blank with three words"),
        (
            'redraft infill "The dog ___ the ball ." --samples 200 --chains 4',
            "List the most frequent fillings of the blank",
        ),
    ),
)
@click.argument("template", required=False)
@_sample_options
@writing_options
def infill(template: str | None, options: Options, samples: int | None, burn_in: int | None, thin: int | None) -> None:
    """Fill the blanks of a TEMPLATE.

    Each ___ in the template is a blank. It takes any number of words. The rest of the template is kept as it is.

    ___{3} is a blank of exactly three words, counting punctuation and an ending, ___{2,4} one of two to four. Only some
    recipes can keep to it: infiller, and for exact numbers flm, blm, fb-lm, bayesian-mcmc, tigs-random, tigs-flm. These
    must be told the length of every blank, and take no keywords.

    The rest of the template may have forms and alternatives, as in "The car|bus ___ ." (see redraft generate).
    """
    _write({} if template is None else {"template": template}, options, samples, burn_in, thin)


def _write(
    given: dict[str, object], options: Options, samples: int | None, burn_in: int | None, thin: int | None
) -> None:
    if options.server is not None:
        if samples is not None or burn_in is not None or thin is not None:
            raise InputError("--samples, --burn-in and --thin do not go with --server")
        _write_with_server(options.server, given, options)
        return
    if samples is not None:
        if options.input is not None or options.output is not None:
            raise InputError("--samples takes one input and prints; give the words on the command line")
        is_search = options.steps is not None or options.time_limit is not None
        if is_search or options.num != 1 or options.trace or options.strict:
            raise InputError("--samples does not go with --steps, --num, --trace, --strict or --time-limit")
        check_count("--samples", samples, 1)
        _sample(given, replace(options, kernel=options.kernel or "exact"), samples, burn_in, thin)
        return
    if burn_in is not None or thin is not None:
        raise InputError("--burn-in and --thin go with --samples")
    if options.input is not None:
        if given:
            raise InputError("give words on the command line or --input, not both")
        from redraft.app.batch import run_batch

        run_batch(options)
        return
    if options.output is not None:
        raise InputError("--output goes with --input")
    if options.distinct:
        raise InputError("--distinct goes with --input; several drafts of one input (--num) always differ")
    _write_one(given, options)


def _write_one(given: dict[str, object], options: Options) -> None:
    from redraft.app.live import LiveLine
    from redraft.app.show import show_draft
    from redraft.records import constraints_of, record

    constraints = constraints_of({**options.defaults(), **given})
    options.check(constraints)
    for given_word, written in constraints.respelled:
        click.echo(f"redraft: {given_word!r} is written {written!r}", err=True)
    settings = options.settings()  # refuse wrong settings before the models are loaded
    writer = options.writer()
    settings = writer.complete(settings)
    with stop_on_interrupt() as stopped, LiveLine(settings.steps or 0) as line:

        def observe(step: int, best: object, nll: float) -> bool:
            line.update(step, best, nll)
            return not stopped()

        drafts = writer.write(constraints, settings, observe)
    with kept([draft.text for draft in drafts]):
        if options.as_json:
            records = [record(draft, trace=options.trace) for draft in drafts]
            click.echo(json.dumps({"drafts": records}, ensure_ascii=False))
        else:
            for draft in drafts:
                show_draft(draft, constraints, trace=options.trace)
    _report_missing(options, [draft.constraints_met for draft in drafts])


def _report_missing(options: Options, are_met: Sequence[bool]) -> None:
    """Say how many drafts are missing. With --strict, exit if some are, or do not meet their constraints."""
    if len(are_met) < options.num:
        message = (
            f"only {len(are_met)} of {options.num} different drafts were found; try more --steps, --chains or time"
        )
        click.echo(f"redraft: {message}", err=True)
    if options.strict and not (len(are_met) >= options.num and all(are_met)):
        sys.exit(UNMET)


def _write_with_server(url: str, given: dict[str, object], options: Options) -> None:
    """Print what a server writes, without loading anything that a client does not need."""
    from redraft.client import connect

    if options.trace and not options.as_json:
        raise InputError("--trace with --server prints JSON only; add --json")
    client = connect(url, token=os.environ.get("REDRAFT_TOKEN"))
    answer = client.post("infill" if "template" in given else "generate", {**options.request(), **given})
    for given_word, written in answer["respelled"]:
        click.echo(f"redraft: {given_word!r} is written {written!r}", err=True)
    with kept([draft["text"] for draft in answer["drafts"]]):
        if options.as_json:
            click.echo(json.dumps({"drafts": answer["drafts"]}, ensure_ascii=False))
        else:
            for draft in answer["drafts"]:
                click.echo(draft["text"])
    for draft in answer["drafts"]:
        if draft["unmet"]:
            missing = ", ".join(draft["unmet"])
            click.echo(f"redraft: not reached: {missing}; try more --steps or --chains", err=True)
    _report_missing(options, [draft["constraints_met"] for draft in answer["drafts"]])


def _sample(given: dict[str, object], options: Options, num: int, burn_in: int | None, thin: int | None) -> None:
    """Print samples as JSON, or the most frequent sentences, or the most frequent fillings of each blank."""
    from redraft.app.draws import draw
    from redraft.sampling import BURN_IN, THIN

    burn_in, thin = BURN_IN if burn_in is None else burn_in, THIN if thin is None else thin
    drawn = draw(given, options, num=num, burn_in=burn_in, thin=thin)
    samples, constraints = drawn.samples, drawn.constraints
    if not samples.draws:
        raise InputError("stopped before the first sample; use fewer --burn-in steps")
    if options.as_json:
        keys = ("text", "log_prob", "log_target", "chain", "step")
        draws = [{key: getattr(one, key) for key in keys} for one in samples.draws]
        fills = None if constraints.template is None else samples.fills(constraints)
        about = {"target": drawn.target, "seed": samples.seed}
        click.echo(json.dumps({**about, "samples": draws, "fills": fills}, ensure_ascii=False))
    elif constraints.template is not None:
        for blank, found in enumerate(samples.fills(constraints), 1):
            click.echo(f"blank {blank}")
            for fill, share in found:
                click.echo(f"  {share:6.1%}  {fill or '(nothing)'}")
    else:
        for shown, count in Counter(one.text for one in samples.draws).most_common(10):
            click.echo(f"{count / len(samples.draws):6.1%}  {shown}")
