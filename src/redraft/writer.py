"""The base class of everything that writes, with what a user calls: generate, infill, write, sample, explain."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self, overload

from redraft import checks, text
from redraft.drafts import Draft, JobProgress, Observer, Settings, WritingJob
from redraft.errors import InputError
from redraft.models.pack import Pack
from redraft.predict.classifier import CLASSIFIER, pack_classifier
from redraft.predict.heat_map import Explanation, explain
from redraft.recipes import Overrides, Recipe, refusal_of_lengths, refusal_of_list
from redraft.sampling import BURN_IN, THIN, Samples
from redraft.sentence import Constraints, Keyword, Order, clean, keyword_texts
from redraft.target import SoftScore

Reopen = tuple[Callable[..., "Writer"], Mapping[str, Any]]  # a function and its keyword arguments


class Writer(ABC):
    """Turns constraints into drafts. ``redraft.load()`` returns one.

    Examples:
        >>> writer = redraft.load()
        >>> draft = writer.generate("dog", "ball", steps=5, seed=1)
        >>> draft.constraints_met
        True

    A new system subclasses this and implements ``write_many`` and ``signature``. The module ``redraft.systems`` has the
    registry of systems.
    """

    pack: Pack | None = None
    reopen: Reopen | None = None  # how to make the same writer again, which is how it is pickled

    @abstractmethod
    def write_many(
        self,
        inputs: Sequence[Constraints],
        settings: Settings | None = None,
        *,
        numbers: Sequence[int] | None = None,
        observe: Observer | None = None,
    ) -> list[list[Draft]]:
        """Write drafts for several inputs at once, which is faster than one by one.

        Examples:
            >>> inputs = [redraft.Constraints([word]) for word in ("river", "market")]
            >>> results = writer.write_many(inputs, redraft.Settings(steps=5, seed=1))
            >>> [drafts[0].constraints_met for drafts in results]
            [True, True]

        Returns the drafts of each input, best first. An input's drafts depend on the seed and on its number (by
        default its index), not on the other inputs. ``observe`` is called regularly with the step, the best draft so
        far and its NLL; if it returns False, the work stops.
        """

    def write_jobs(self, jobs: Sequence[WritingJob], settings: Settings | None = None) -> list[list[Draft]]:
        """Write drafts for inputs of which each has its own seed and observer, as a server does.

        Examples:
            >>> from redraft.drafts import WritingJob
            >>> jobs = [WritingJob(redraft.Constraints(["dog"]), seed) for seed in (1, 2)]
            >>> [drafts[0].signature[-6:] for drafts in writer.write_jobs(jobs, redraft.Settings(steps=5))]
            ['seed:1', 'seed:2']

        A job's drafts are those of ``write_many`` with its seed and number. Each has the whole time limit. A job that
        its ``watch`` stops ends with its best drafts so far, of which there may be none; the other jobs go on.
        Systems that cannot write such jobs together write one after the other.
        """
        settings = settings or Settings()
        return [
            self.write_many(
                [job.constraints], replace(settings, seed=job.seed), numbers=[job.number], observe=_observer(job)
            )[0]
            for job in jobs
        ]

    @abstractmethod
    def signature(self, settings: Settings, seed: int) -> str:
        """Describe in one line everything that is needed to reproduce a draft. The line ends with the seed.

        Examples:
            >>> line = writer.signature(redraft.Settings(steps=5), seed=7)
            >>> line.endswith("seed:7")
            True
        """

    def complete(self, settings: Settings) -> Settings:
        """Replace settings that are None by the defaults of the system.

        Examples:
            >>> writer.complete(redraft.Settings()).steps is None
            False
        """
        return settings

    def at_temperature(self, temperature: float) -> "Writer":
        """Return the same writer at another temperature: below 1 for likelier text, above 1 for more varied text.

        Examples:
            >>> bold = writer.at_temperature(1.5)
            >>> bold.generate("dog", steps=5, seed=1).constraints_met
            True
        """
        raise InputError(f"this system has no temperature, so {temperature} has no effect; leave it out")

    def _copy(self, temperature: float) -> Self:
        """A copy for ``at_temperature`` to change. It shares the models."""
        copied = copy.copy(self)
        if self.reopen is not None:
            function, arguments = self.reopen
            copied.reopen = function, {**arguments, "temperature": temperature}
        return copied

    def __copy__(self) -> Self:
        copied = object.__new__(type(self))  # not by __reduce__, which loads the models again
        copied.__dict__.update(self.__dict__)
        return copied

    @overload
    def generate(
        self,
        *keywords: Keyword | Sequence[Keyword],
        order: Order | str = ...,
        ban: str | Sequence[str] = ...,
        min_words: int | None = ...,
        max_words: int | None = ...,
        num: None = ...,
        steps: int | None = ...,
        chains: int | None = ...,
        seed: int | None = ...,
        time_limit: float | None = ...,
        temperature: float | None = ...,
        settings: Settings | None = ...,
    ) -> Draft: ...

    @overload
    def generate(
        self,
        *keywords: Keyword | Sequence[Keyword],
        order: Order | str = ...,
        ban: str | Sequence[str] = ...,
        min_words: int | None = ...,
        max_words: int | None = ...,
        num: int,
        steps: int | None = ...,
        chains: int | None = ...,
        seed: int | None = ...,
        time_limit: float | None = ...,
        temperature: float | None = ...,
        settings: Settings | None = ...,
    ) -> list[Draft]: ...

    def generate(
        self,
        *keywords: Keyword | Sequence[Keyword],
        order: Order | str = Order.GIVEN,
        ban: str | Sequence[str] = (),
        min_words: int | None = None,
        max_words: int | None = None,
        num: int | None = None,
        steps: int | None = None,
        chains: int | None = None,
        seed: int | None = None,
        time_limit: float | None = None,
        temperature: float | None = None,
        settings: Settings | None = None,
    ) -> Draft | list[Draft]:
        """Write a sentence that contains the given words or phrases.

        Examples:
            >>> draft = writer.generate("dog", "old park", order="any", ban="very", steps=5, seed=1)
            >>> "old park" in draft.text.lower()
            True
            >>> drafts = writer.generate(["dog", "ball"], num=2, temperature=0.8, steps=5, seed=1)
            >>> [draft.constraints_met for draft in drafts]
            [True, True]

        Returns the best ``Draft``. With ``num``, also with ``num=1``, it returns a list of that many different drafts,
        best first. ``order``, ``ban``, ``min_words`` and ``max_words`` are those of ``Constraints``; ``steps``,
        ``chains``, ``num``, ``seed`` and ``time_limit`` are those of ``Settings`` and override ``settings``.
        """
        constraints = Constraints(
            tuple(_flat(keywords)), order=order, ban=_several(ban), min_words=min_words, max_words=max_words
        )
        chosen = _settings(settings, steps=steps, chains=chains, num=num, seed=seed, time_limit=time_limit)
        return self._write_one(constraints, chosen, num, temperature)

    @overload
    def infill(
        self,
        template: str,
        *,
        ban: str | Sequence[str] = ...,
        min_words: int | None = ...,
        max_words: int | None = ...,
        num: None = ...,
        steps: int | None = ...,
        chains: int | None = ...,
        seed: int | None = ...,
        time_limit: float | None = ...,
        temperature: float | None = ...,
        settings: Settings | None = ...,
    ) -> Draft: ...

    @overload
    def infill(
        self,
        template: str,
        *,
        ban: str | Sequence[str] = ...,
        min_words: int | None = ...,
        max_words: int | None = ...,
        num: int,
        steps: int | None = ...,
        chains: int | None = ...,
        seed: int | None = ...,
        time_limit: float | None = ...,
        temperature: float | None = ...,
        settings: Settings | None = ...,
    ) -> list[Draft]: ...

    def infill(
        self,
        template: str,
        *,
        ban: str | Sequence[str] = (),
        min_words: int | None = None,
        max_words: int | None = None,
        num: int | None = None,
        steps: int | None = None,
        chains: int | None = None,
        seed: int | None = None,
        time_limit: float | None = None,
        temperature: float | None = None,
        settings: Settings | None = None,
    ) -> Draft | list[Draft]:
        """Fill the blanks (``___``) of a template.

        Examples:
            >>> draft = writer.infill("The mayor said ___ in the city .", steps=5, seed=3)
            >>> draft.text.startswith("The mayor said")
            True

        Returns the best ``Draft``; with ``num``, a list. The arguments are those of ``generate``.
        """
        constraints = Constraints(template=template, ban=_several(ban), min_words=min_words, max_words=max_words)
        chosen = _settings(settings, steps=steps, chains=chains, num=num, seed=seed, time_limit=time_limit)
        return self._write_one(constraints, chosen, num, temperature)

    def _write_one(
        self, constraints: Constraints, settings: Settings, num: int | None, temperature: float | None
    ) -> Draft | list[Draft]:
        writer = self if temperature is None else self.at_temperature(temperature)
        drafts = writer.write(constraints, settings)
        return drafts[0] if num is None else drafts

    def write(
        self, constraints: Constraints, settings: Settings | None = None, observe: Observer | None = None
    ) -> list[Draft]:
        """Write ``settings.num`` different drafts for one input, best first.

        Examples:
            >>> words = redraft.Constraints(["dog", "ball"], order="any")
            >>> drafts = writer.write(words, redraft.Settings(num=2, steps=5, seed=7))
            >>> len(drafts)
            2
        """
        return self.write_many([constraints], settings, observe=observe)[0]

    def sample(
        self,
        constraints: Constraints,
        *,
        num: int = 100,
        burn_in: int = BURN_IN,
        thin: int = THIN,
        chains: int = 1,
        seed: int | None = None,
        observe: Callable[[int], bool] | None = None,
    ) -> Samples:
        """Draw from the target distribution with the exact kernel, instead of searching for the best sentence.

        Examples:
            >>> sampler = redraft.load(recipe="l-mcmc")
            >>> words = redraft.Constraints(["dog"], max_words=6)
            >>> samples = sampler.sample(words, num=3, burn_in=2, thin=1, chains=2, seed=1)
            >>> len(samples.draws)
            6

        Each chain discards its first ``burn_in`` steps and then gives ``num`` draws, one every ``thin`` steps. Use
        many more than in this example, and check them with ``redraft.diagnostics.diagnose``. ``observe`` is called with
        the number of each step; if it returns False, sampling stops. The recipe must have chains, which the default
        does not once SmolLM2 is pulled.
        """
        raise InputError("this system has no chains to sample from; load another recipe, such as l-mcmc")

    def explain(self, draft: Draft | str, keywords: Sequence[str] = ()) -> Explanation:
        """Show where and how the classifier would revise a draft.

        Examples:
            >>> explanation = writer.explain("The dog was the the park.", keywords=["dog", "park"])
            >>> [action.value for action in explanation.actions]
            ['replace', 'insert', 'delete']
            >>> explanation.probabilities.shape  # six words, the full stop and the end of the sentence
            (3, 8)

        ``keywords`` are words that may not be changed; those of a ``Draft`` are known.
        """
        if self.pack is None or CLASSIFIER not in self.pack.parts:
            raise InputError("the pack of this writer has no classifier to explain a draft; load another pack")
        words = draft.words if isinstance(draft, Draft) else tuple(text.tokenise(draft))
        if isinstance(draft, Draft):
            keywords = (*draft.locked_words, *keywords)
        return explain(pack_classifier(self.pack), words, keywords)

    def matches_signature(self, signature: str, settings: Settings) -> bool:
        """Check whether a draft with this signature comes from the same models and settings.

        Settings without a seed match any seed.

        Examples:
            >>> draft = writer.generate("dog", steps=5, seed=1)
            >>> writer.matches_signature(draft.signature, redraft.Settings(steps=5))
            True
            >>> writer.matches_signature(draft.signature, redraft.Settings(steps=6))
            False
        """
        settings = self.complete(settings)
        seed = signature.rpartition("seed:")[2]
        return (
            seed.isdigit() and settings.seed in (None, int(seed)) and signature == self.signature(settings, int(seed))
        )

    def __reduce__(self) -> tuple[Callable[[], "Writer"], tuple[()]]:
        """Pickle a writer as the call that made it. Unpickling loads the models again."""
        if self.reopen is None:
            raise TypeError("only a writer that redraft.load has made can be pickled")
        function, arguments = self.reopen
        return partial(function, **arguments), ()


@dataclass(frozen=True)
class Shaping:
    """How the user shapes the text: the power of the target (1 / temperature), soft scores, a context, a style."""

    power: float = 1.0
    soft: tuple[SoftScore, ...] = ()
    context: str = ""
    style: str | None = None

    def __post_init__(self) -> None:
        checks.check_positive("the power", self.power)
        checks.check_text("the context", self.context)
        if not all(isinstance(score, SoftScore) for score in self.soft):
            raise InputError("soft scores are made by prefer, prefer_length, penalise_repetition or SoftScore")
        object.__setattr__(self, "context", clean(self.context, "the context"))

    def refuse_style(self, recipe: Recipe) -> None:
        """Raise an error if a style is given to a recipe that has none."""
        if self.style is not None:
            raise InputError(f"recipe {recipe.name} has no styles; the recipe infiller has")


class WritingSystem(ABC):
    """An entry of the registry ``redraft.systems``: a recipe, the models it needs, and how it is opened."""

    recipe: Recipe

    @property
    def needs(self) -> list[str]:
        """The models that it needs, as words for a list."""
        return []

    @abstractmethod
    def open(self, pack: Pack, shaping: Shaping) -> Writer:
        """Load the models of a pack and return a writer."""

    def missing(self, pack: Pack) -> list[str]:
        """The models that it needs but the pack lacks."""
        return []

    def refusal(self, constraints: Constraints) -> str | None:
        """Why the system cannot write for some constraints; None if it can. Called before models are loaded.

        By default, a system writes any words, and fills blanks with any number of them; it refuses other constraints.
        """
        name = self.recipe.name
        return refusal_of_lengths(name, constraints) or refusal_of_list(name, constraints)

    def override(self, given: Overrides) -> "WritingSystem":
        """The same system with the user's values instead of the recipe's. By default all of them are ignored."""
        return self


def _observer(job: WritingJob) -> Observer:
    return lambda step, best, nll: job.watch(JobProgress(step, best, nll))


def _settings(settings: Settings | None, **given: Any) -> Settings:
    """The settings, with the given values in place of theirs."""
    return replace(settings or Settings(), **{name: value for name, value in given.items() if value is not None})


def _flat(keywords: Sequence[Keyword | Sequence[Keyword]]) -> Iterator[Keyword]:
    """Keywords that were given one by one, in lists, or both ways."""
    for given in keywords:
        if isinstance(given, str | Mapping):
            yield given
        else:
            yield from keyword_texts(given)


def _several(words: str | Sequence[str]) -> Sequence[str]:
    """A single string is one word, not its letters."""
    return (words,) if isinstance(words, str) else words
