"""The options that commands share, and what they mean to the library."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from redraft.errors import InputError

if TYPE_CHECKING:
    from redraft.drafts import Settings
    from redraft.target import SoftScore
    from redraft.writer import Writer


@dataclass(frozen=True)
class Options:
    """What a person asked for, apart from the words; a command that does not offer an option leaves its default."""

    recipe: str | None = None
    steps: int | None = None
    candidates: int | None = None
    scored: int | None = None
    target: str | None = None
    context: str = ""
    chains: int = 1
    num: int = 1
    order: str = "given"
    ban: tuple[str, ...] = ()
    min_words: int | None = None
    max_words: int | None = None
    seed: int | None = None
    time_limit: float | None = None
    trace: bool = False
    as_json: bool = False
    pack: str | None = None
    input: str | None = None
    output: str | None = None
    batch: int = 32
    kernel: str | None = None
    generator: str | None = None
    temperature: float = 1.0
    prefer: tuple[str, ...] = ()
    prefer_length: int | None = None
    repetition_penalty: float = 0.0
    style: str | None = None
    particles: int | None = None

    def settings(self) -> "Settings":
        from redraft.drafts import Settings

        return Settings(self.steps, self.chains, self.num, self.seed, self.time_limit)

    def writer(self, *, many_steps: bool = False) -> "Writer":
        """The writer that was asked for. For ``many_steps`` the pack's own language models, unless others are named."""
        from redraft import load, recipes
        from redraft.assemble import opened
        from redraft.models.pack import DEFAULT

        if not self.temperature > 0:
            raise InputError(f"--temperature must be above 0, not {self.temperature}")
        recipe = self.recipe
        if recipe is None and self.target is None:
            pack = opened(self.pack or DEFAULT)
            recipe = (recipes.unguided(pack) if many_steps else recipes.default(pack)).name
            if not many_steps and recipes.gains_from_pulling(pack):
                print(
                    f"redraft: the small models of pack {pack.name} write this; for better text: "
                    f"redraft pull {recipes.PULLED}",
                    file=sys.stderr,
                )
        return load(
            self.pack or DEFAULT,
            recipe,
            candidates=self.candidates,
            scored=self.scored,
            target=self.target,
            context=self.context,
            kernel=self.kernel,
            generator=self.generator,
            temperature=self.temperature,
            soft=self._soft(),
            style=self.style,
            particles=self.particles,
        )

    def _soft(self) -> "list[SoftScore]":
        from redraft.target import penalise_repetition, prefer, prefer_length

        scores = [prefer(*_word_and_weight(given)) for given in self.prefer]
        if self.prefer_length is not None:
            scores.append(prefer_length(self.prefer_length))
        if self.repetition_penalty:
            scores.append(penalise_repetition(self.repetition_penalty))
        return scores

    def defaults(self) -> dict[str, Any]:
        """The constraints that hold for every input unless it says otherwise."""
        order = None if self.order == "given" else self.order  # JSON inputs have the same default
        given = {"order": order, "ban": list(self.ban), "min_words": self.min_words, "max_words": self.max_words}
        return {key: value for key, value in given.items() if value not in (None, [])}


def _word_and_weight(given: str) -> tuple[str, float]:
    word, _, weight = given.rpartition("=")
    try:
        return word or given, float(weight) if word else 1.0
    except ValueError as error:
        raise InputError(f"--prefer takes WORD=WEIGHT with a number, such as river=2, not {given!r}") from error


# What is sampled from.
_TARGET = (
    click.option("--recipe", metavar="NAME", help="Which system to use, e.g. l-mcmc-c, gbs or smollm2-mcmc."),
    click.option("--target", metavar="MODEL", help="A causal model that decides: smollm2, a hub name or a path."),
    click.option(
        "--context", default="", metavar="TEXT", help="What the sentence comes after; a causal model must decide."
    ),
    click.option("--candidates", type=int, metavar="K", help="Words to weigh at each step (the paper's K; 50)."),
    click.option("--scored", type=int, metavar="M", help="How many of them a causal model scores (4)."),
    click.option("--style", metavar="NAME", help="The kind of text the infiller writes: News, Article or Scene."),
    click.option("--particles", type=int, metavar="N", help="Sentences that the infiller writes to choose from (24)."),
    click.option("--order", type=click.Choice(["given", "any"]), default="given", show_default=True),
    click.option("--ban", multiple=True, metavar="WORD", help="A word that must not occur. Repeatable."),
    click.option("--min-words", type=int, help="Fewest words, without punctuation marks."),
    click.option(
        "--max-words", type=int, help="Most words, punctuation marks counted (25; where more is given, 10 more)."
    ),
    click.option("--pack", metavar="NAME|DIR", help="Which models to use."),
    click.option(
        "--generator",
        type=click.Choice(["forward", "backward", "both", "masked"]),
        metavar="WHO",
        help="Who suggests words: forward, backward, both multiplied, or masked (an XLNet that sees both sides).",
    ),
    click.option("--temperature", type=float, default=1.0, show_default=True, help="Above 1 for bolder drafts."),
    click.option("--prefer", multiple=True, metavar="WORD=WEIGHT", help="Make a word likelier. Repeatable."),
    click.option("--prefer-length", type=int, metavar="N", help="Draw the length towards N words."),
    click.option("--repetition-penalty", type=float, default=0.0, metavar="W", help="Make repeated words rarer."),
)
# What is done with it to write.
_WRITING = (
    click.option("--steps", type=int, help="Revisions to try (200; with a causal model 10, after a beam search)."),
    click.option("--chains", type=int, default=1, show_default=True, help="Chains to run; the best draft wins."),
    click.option("--num", type=int, default=1, show_default=True, help="How many different drafts to give."),
    click.option("--seed", type=int, help="For the same drafts again."),
    click.option("--time-limit", type=float, metavar="SECONDS", help="Stop then, with the best draft so far."),
    click.option("--trace", is_flag=True, help="Show every revision."),
    click.option("--json", "as_json", is_flag=True, help="Print the result as JSON."),
    click.option("--input", metavar="FILE|-", help="One input a line: words, a template, or a JSON object."),
    click.option(
        "--output", metavar="FILE", help="Where --input's results go, a JSON line each. Goes on if run again."
    ),
    click.option("--batch", type=int, default=32, show_default=True, help="Inputs of --input to work on at once."),
    click.option("--kernel", type=click.Choice(["paper", "exact"]), help="Search as the paper does, or sample."),
)

_Command = Callable[..., None]


def target_options(command: _Command) -> _Command:
    """Add the options that say what is sampled from; the command receives them, and its own of such names, as one."""
    return _gathered(command, _TARGET)


def writing_options(command: _Command) -> _Command:
    """Add all shared options; the command receives them as one ``Options``."""
    return _gathered(command, (*_TARGET, *_WRITING))


def _gathered(command: _Command, options: Sequence[Callable[[_Command], _Command]]) -> _Command:
    def run(**arguments: Any) -> None:
        given = {name: arguments.pop(name) for name in Options.__dataclass_fields__ if name in arguments}
        command(**arguments, options=Options(**given))

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    for option in reversed(options):
        run = option(run)
    return run
