"""The options that commands share, and how they are passed to the library."""

import hashlib
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from redraft.app.sections import HOW, MODELS, OUTPUT, SAMPLING, WHAT, Command, option
from redraft.errors import InputError

if TYPE_CHECKING:
    from redraft.drafts import Settings
    from redraft.sentence import Constraints
    from redraft.target import SoftScore
    from redraft.writer import Writer


UNMET = 3  # the exit status of --strict where drafts are missing or do not meet their constraints


@dataclass(frozen=True)
class Options:
    """The values of the shared options. A command that lacks an option leaves its default."""

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
    allow: str | None = None
    min_words: int | None = None
    max_words: int | None = None
    seed: int | None = None
    time_limit: float | None = None
    trace: bool = False
    as_json: bool = False
    pack: str | None = None
    input: str | None = None
    output: str | None = None
    distinct: bool = False
    strict: bool = False
    batch: int = 32
    kernel: str | None = None
    generator: str | None = None
    temperature: float = 1.0
    prefer: tuple[str, ...] = ()
    prefer_length: int | None = None
    repetition_penalty: float = 0.0
    style: str | None = None
    particles: int | None = None
    until_settled: bool = False
    passes: int | None = None
    server: str | None = None

    def settings(self) -> "Settings":
        from redraft.batch import SPARES
        from redraft.drafts import Settings

        return Settings(
            self.steps,
            self.chains,
            self.num,
            self.seed,
            self.time_limit,
            until_settled=self.until_settled,
            passes=self.passes,
            spares=SPARES if self.distinct else 0,
        )

    def writer(self, *, many_steps: bool = False) -> "Writer":
        """Load the writer. ``many_steps`` prefers the pack's own, faster language models, unless others are named."""
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
                    f"redraft: written by the small models of pack {pack.name}; for better text: "
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

    def check(self, constraints: "Constraints") -> None:
        """Refuse what the chosen recipe cannot write, before models are loaded."""
        if self.passes is not None:
            from redraft.blanks import num_missing

            num_missing(constraints)
        from redraft.models.pack import DEFAULT
        from redraft.systems import refuse_unwritable

        refuse_unwritable(constraints, self.pack or DEFAULT, self.recipe, self.target)

    def _soft(self) -> "list[SoftScore]":
        from redraft.target import penalise_repetition, prefer, prefer_length

        scores = [prefer(*_word_and_weight(given)) for given in self.prefer]
        if self.prefer_length is not None:
            scores.append(prefer_length(self.prefer_length))
        if self.repetition_penalty:
            scores.append(penalise_repetition(self.repetition_penalty))
        return scores

    def request(self) -> dict[str, Any]:
        """The options as the fields of a request to a server."""
        if self.input is not None or self.output is not None or self.distinct:
            raise InputError("--server takes one input; give the words on the command line, or leave --server out")
        prefer = dict(map(_word_and_weight, self.prefer)) or None
        sent = {name: getattr(self, name) for name in _SENT}
        usual = {one.name: one.default for one in fields(self)}
        changed = {name: value for name, value in sent.items() if value != usual[name]}
        return {**self.defaults(), **changed, **({} if prefer is None else {"prefer": prefer})}

    def defaults(self) -> dict[str, Any]:
        """Return the constraints that apply to every input unless it sets its own."""
        order = None if self.order == "given" else self.order  # JSON inputs have the same default
        given = {"order": order, "ban": list(self.ban), "min_words": self.min_words, "max_words": self.max_words}
        if self.allow is not None:
            given["allow"] = _listed(self.allow)
        return {key: value for key, value in given.items() if value not in (None, [])}

    def recorded(self, defaults: Mapping[str, Any]) -> dict[str, Any]:
        """What results say of the defaults: a list of words is named, with its hash, instead of repeated."""
        if self.allow is None:
            return dict(defaults)
        listed = hashlib.sha256("\n".join(defaults["allow"]).encode()).hexdigest()
        return {**defaults, "allow": {"file": Path(self.allow).name, "sha256": listed}}


# The options that a server takes as they are.
_SENT = (
    *("recipe", "steps", "candidates", "scored", "target", "context", "chains", "num", "seed", "time_limit", "trace"),
    *("pack", "kernel", "generator", "temperature", "prefer_length", "repetition_penalty", "style", "particles"),
    *("until_settled", "passes"),
)


def _listed(name: str) -> list[str]:
    """The words of a file."""
    from redraft.language import split_line

    try:
        lines = Path(name).read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise InputError(f"cannot read {name}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is not UTF-8 text ({error})") from error
    if found := list(dict.fromkeys(word for line in lines for word in split_line(line))):
        return found
    raise InputError(f"{name} has no words; give the words that a sentence may have, as in: the dog run~")


def _word_and_weight(given: str) -> tuple[str, float]:
    word, _, weight = given.rpartition("=")
    with suppress(ValueError):
        if word.strip():
            return word, float(weight)
    raise InputError(f"--prefer takes WORD=WEIGHT with a number, for example river=2, not {given!r}")


# The recipes as help pages list them. A copy, because redraft.recipes imports torch; a test compares the names.
RECIPES = {
    "infiller": "SmolLM2, trained to fill gaps, writes several sentences; the best one wins",
    "smollm2-mcmc-c": "SmolLM2 scores, the LSTM models propose, the classifier guides",
    "smollm2-mcmc": "the same without the classifier",
    "l-mcmc-c": "LSTM models, guided by the classifier",
    "l-mcmc-c-positions": "the same; the classifier chooses only positions",
    "l-mcmc-c-actions": "the same; the classifier chooses only actions",
    "l-mcmc": "LSTM models; actions and positions are drawn at random",
    "l-mcmc-deletion": "the same with deletion: CGMH as the paper builds it",
    "cgmh": "CGMH: LSTM models; replacing, inserting and deleting are equally likely",
    "x-mcmc-c": "XLNet models, guided by the classifier",
    "x-mcmc": "XLNet models; actions and positions are drawn at random",
    "gbs": "grid beam search with the forward LSTM; nothing is revised",
    "gbs-plain": "the same as the paper runs it: no noise, the best whole sentence",
    "sep-bf": "backward and forward beam search from one keyword, separately",
    "asyn-bf": "the same; the forward search continues the backward half",
    "flm": "beam search for blanks of known length, ___{3}, left to right",
    "blm": "the same, right to left",
    "fb-lm": "the better of the two by the forward LSTM",
    "bayesian-mcmc": "Bayesian MCMC for blanks of known length",
    "tigs-random": "TIGS, gradient search for blanks of known length, from random words",
    "tigs-flm": "the same from the words that the forward LSTM chooses",
}


# The options that define the target distribution, for writing and for diagnosing.
_TARGET = (
    option(
        WHAT,
        "--order",
        type=click.Choice(["given", "any"]),
        default="given",
        show_default=True,
        help="Keep the words in the given order, or allow any order.",
    ),
    option(WHAT, "--ban", multiple=True, metavar="WORD", help="A word or phrase that must not occur. Repeatable."),
    option(
        WHAT,
        "--allow",
        metavar="FILE",
        help="A file of words, such as a learner's: no others are used. It must have the given words, too. run~ is all "
        "forms.",
    ),
    option(WHAT, "--min-words", type=int, metavar="N", help="Minimum number of words, not counting punctuation."),
    option(
        WHAT,
        "--max-words",
        type=int,
        metavar="N",
        help="Maximum number of words, counting punctuation. Default: 25, or 10 more than are given if that is larger.",
    ),
    option(
        WHAT,
        "--prefer",
        multiple=True,
        metavar="WORD=WEIGHT",
        help="Make sentences with a word more likely: 2 for 7 times, 5 for 150 times. Repeatable.",
    ),
    option(WHAT, "--prefer-length", type=int, metavar="N", help="Make lengths near N words more likely."),
    option(
        WHAT,
        "--repetition-penalty",
        type=float,
        default=0.0,
        metavar="W",
        help="Make repeated words less likely. Default: 0, no penalty.",
    ),
    option(
        WHAT,
        "--context",
        default="",
        metavar="TEXT",
        help="Text that comes before the sentence. Needs a causal model: smollm2 or a --target.",
    ),
    option(
        WHAT,
        "--style",
        metavar="NAME",
        help="The kind of text to write: News, Encyclopedia or Everyday. Only for the recipe infiller.",
    ),
    option(
        HOW,
        "--temperature",
        type=float,
        default=1.0,
        show_default=True,
        help="Below 1 for likelier text, above 1 for more varied text.",
    ),
    option(
        HOW,
        "--particles",
        type=int,
        metavar="N",
        help="Sentences that the recipe infiller writes, to choose the best. Default: 12 for each given word, 48 at "
        "most; 32 for a template.",
    ),
    option(
        MODELS,
        "--recipe",
        metavar="NAME",
        help="The system that writes. Default: the best one for the models at hand; see Recipes below.",
    ),
    option(MODELS, "--pack", metavar="NAME|DIR", help="The models to use. Default: english, which is included."),
    option(
        MODELS,
        "--target",
        metavar="MODEL",
        help="A causal language model that scores the sentences: smollm2, a hub name or a path.",
    ),
    option(
        MODELS,
        "--generator",
        type=click.Choice(["forward", "backward", "both", "masked"]),
        metavar="NAME",
        help="The model that proposes words: forward, backward, both (their product), or masked (an XLNet that "
        "reads both sides). Default: both.",
    ),
    option(
        MODELS,
        "--candidates",
        type=int,
        metavar="K",
        help="Words to consider in each step, K in the paper. Default: 50, or 100 for cgmh and tigs.",
    ),
    option(
        MODELS,
        "--scored",
        type=int,
        metavar="M",
        help="Number of the K candidates that a causal model scores. Default: 4.",
    ),
)
# The options of writing.
_WRITING = (
    option(
        HOW,
        "--steps",
        type=int,
        metavar="N",
        help="Revisions to try. Default: 200, or 10 with a causal model, which starts from a beam search. "
        "With the recipe infiller: stretches to rewrite, by default none. For bayesian-mcmc and tigs: passes over the "
        "missing words, by default 20.",
    ),
    option(
        HOW,
        "--chains",
        type=int,
        default=1,
        show_default=True,
        metavar="N",
        help="Chains to run; the best draft is returned.",
    ),
    option(HOW, "--seed", type=int, metavar="N", help="Seed of the random draws; the same seed gives the same result."),
    option(
        HOW,
        "--time-limit",
        type=float,
        metavar="SECONDS",
        help="Stop after this time and return the best draft so far.",
    ),
    option(
        HOW,
        "--passes",
        type=int,
        metavar="N",
        help="Passes over the blanks instead of --steps: each is as many steps as words are missing. The inputs must "
        "have lengths, as those of redraft testset infill have.",
    ),
    option(
        HOW,
        "--until-settled",
        is_flag=True,
        help="Stop a chain early, once its draft is complete and the classifier would leave every word as it is.",
    ),
    option(
        OUTPUT,
        "--num",
        type=int,
        default=1,
        show_default=True,
        metavar="N",
        help="Number of different drafts to write.",
    ),
    option(
        OUTPUT,
        "--strict",
        is_flag=True,
        help="Exit with status 3 if a draft does not meet the constraints, or if there are fewer than --num.",
    ),
    option(OUTPUT, "--trace", is_flag=True, help="Show every revision."),
    option(OUTPUT, "--json", "as_json", is_flag=True, help="Print the result as JSON."),
    option(
        OUTPUT,
        "--input",
        metavar="FILE|-",
        help="Read one input per line: words, a template, or a JSON object. - is standard input. Of NAME.csv, one per "
        "row: its column word or words.",
    ),
    option(
        OUTPUT,
        "--output",
        metavar="FILE",
        help="Write the results of --input here, one JSON line each. An interrupted run resumes. To NAME.csv, write "
        "the rows of an --input in CSV, with their sentences.",
    ),
    option(
        OUTPUT,
        "--distinct",
        is_flag=True,
        help="No sentence twice in the results of --input: an input whose sentence is taken gets its next best one.",
    ),
    option(
        MODELS,
        "--server",
        metavar="URL",
        help="Let a server write (see redraft serve), so that nothing is loaded here. Its token is REDRAFT_TOKEN.",
    ),
    option(OUTPUT, "--batch", type=int, default=32, show_default=True, metavar="N", help="Inputs to process together."),
    option(
        SAMPLING,
        "--kernel",
        type=click.Choice(["paper", "exact", "cgmh"]),
        metavar="NAME",
        help="paper: search as in the paper. exact: sample from the target. cgmh: search as in CGMH. Default: exact "
        "with --samples, else that of the recipe.",
    ),
)


def target_options(command: Command) -> Command:
    """Add the options of the target. The command receives them, and its own of the same names, as one ``Options``."""
    return _gathered(command, _TARGET)


def writing_options(command: Command) -> Command:
    """Add all shared options; the command receives them as one ``Options``."""
    return _gathered(command, (*_TARGET, *_WRITING))


def _gathered(command: Command, options: Sequence[Callable[[Command], Command]]) -> Command:
    def run(**arguments: Any) -> None:
        given = {name: arguments.pop(name) for name in Options.__dataclass_fields__ if name in arguments}
        command(**arguments, options=Options(**given))

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    for add in reversed(options):
        run = add(run)
    return run
