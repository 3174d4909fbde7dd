"""The contract of everything that writes, and what a user calls: generate, infill, write, sample, explain."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self, overload

from redraft import checks, text
from redraft.drafts import Draft, Observer, Settings
from redraft.errors import ConstraintError, InputError
from redraft.models.pack import Pack
from redraft.predict.classifier import CLASSIFIER, pack_classifier
from redraft.predict.heat_map import Explanation, explain
from redraft.recipes import Overrides, Recipe, refusal_of_lengths
from redraft.sampling import BURN_IN, THIN, Samples
from redraft.sentence import Constraints, Order, clean
from redraft.target import SoftScore

Reopen = tuple[Callable[..., "Writer"], Mapping[str, Any]]  # a function and its keyword arguments


class Writer(ABC):
    """Turns constraints into drafts. Make one with ``redraft.load()``.

    >>> writer = redraft.load()
    >>> writer.generate("dog", "ball", seed=1).text
    >>> writer.infill("The mayor said ___ in the city .", min_words=8)

    A new system subclasses this and implements ``write_many`` and ``signature``. ``redraft.systems`` lists the systems
    that there are.
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
        """Drafts for each input, best first. ``observe`` is called now and then; the work stops if it returns False.

        The draws for an input depend on the seed and on its number (by default its index), not on the other inputs.
        """

    @abstractmethod
    def signature(self, settings: Settings, seed: int) -> str:
        """Everything that is needed to get a draft again, as one line that ends with ``seed:`` and the seed."""

    def complete(self, settings: Settings) -> Settings:
        """The settings, with the values of the system where none are given."""
        return settings

    def at_temperature(self, temperature: float) -> "Writer":
        """The same writer at another temperature: below 1 for likelier text, above 1 for more varied text."""
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
        *keywords: str | Sequence[str],
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
        *keywords: str | Sequence[str],
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
        *keywords: str | Sequence[str],
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

        >>> writer.generate("dog", "old park", order="any", ban="very", min_words=8)
        >>> writer.generate(["dog", "ball"], seed=1, temperature=0.8)
        >>> for draft in writer.generate("dog", "ball", num=3):
        ...     print(draft)

        Returns one ``Draft``, the best. With ``num`` it returns a list of that many different drafts, best first: a
        list for ``num=1`` as well. ``order``, ``ban``, ``min_words`` and ``max_words`` are those of ``Constraints``;
        ``steps``, ``chains``, ``num``, ``seed`` and ``time_limit`` are those of ``Settings`` and override ``settings``.
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

        >>> writer.infill("The mayor said ___ in the city .", min_words=10, seed=3)

        Returns one ``Draft``; with ``num``, a list. The arguments are those of ``generate``.
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
        """``settings.num`` different drafts for one input, best first.

        >>> writer.write(redraft.Constraints(["dog", "ball"], order="any"), redraft.Settings(num=3, seed=7))
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
        """Draw from the target distribution with the exact kernel, rather than search for the best sentence.

        >>> samples = writer.sample(redraft.Constraints(["dog"]), num=200, chains=4, seed=1)
        >>> from redraft.diagnostics import diagnose
        >>> diagnose(samples).verdict

        Each chain makes ``burn_in`` steps, then gives ``num`` draws, one every ``thin`` steps.
        """
        raise InputError("this system has no chains to sample from; load another recipe, such as l-mcmc")

    def explain(self, draft: Draft | str, keywords: Sequence[str] = ()) -> Explanation:
        """Show where and how the classifier would revise a draft.

        >>> writer.explain("The dog was the the park.", keywords=["dog", "park"])

        ``keywords`` are words that may not be touched; those of a ``Draft`` are known.
        """
        if self.pack is None or CLASSIFIER not in self.pack.parts:
            raise InputError("the pack of this writer has no classifier to explain a draft; load another pack")
        words = draft.words if isinstance(draft, Draft) else tuple(text.tokenise(draft))
        if isinstance(draft, Draft):
            locked = {word for word, lock in zip(draft.words, draft.locks, strict=False) if lock >= 0}
            keywords = (*locked, *keywords)
        return explain(pack_classifier(self.pack), words, keywords)

    def matches_signature(self, signature: str, settings: Settings) -> bool:
        """Whether a draft with this signature comes from the same models and settings. No seed matches any seed."""
        settings = self.complete(settings)
        seed = signature.rpartition("seed:")[2]
        return (
            seed.isdigit() and settings.seed in (None, int(seed)) and signature == self.signature(settings, int(seed))
        )

    def __reduce__(self) -> tuple[Callable[[], "Writer"], tuple[()]]:
        """Pickle a writer as the call that made it: the models are loaded again."""
        if self.reopen is None:
            raise TypeError("only a writer that redraft.load has made can be pickled")
        function, arguments = self.reopen
        return partial(function, **arguments), ()


@dataclass(frozen=True)
class Shaping:
    """How a user shapes the text: the power of the target (1 / temperature), soft scores, a context, a style."""

    power: float = 1.0
    soft: tuple[SoftScore, ...] = ()
    context: str = ""
    style: str | None = None

    def __post_init__(self) -> None:
        checks.check_positive("the power", self.power)
        checks.check_text("the context", self.context)
        object.__setattr__(self, "context", clean(self.context, "the context"))

    def refuse_style(self, recipe: Recipe) -> None:
        """Raise where a style is given to a recipe that has none."""
        if self.style is not None:
            raise InputError(f"recipe {recipe.name} has no styles; the recipe infiller has")


class WritingSystem(ABC):
    """An entry of the registry ``redraft.systems``: a recipe, the models it needs, and how it is opened."""

    recipe: Recipe

    @property
    def needs(self) -> list[str]:
        """The models that it needs, in words for a list."""
        return []

    @abstractmethod
    def open(self, pack: Pack, shaping: Shaping) -> Writer:
        """A writer with the models of a pack."""

    def missing(self, pack: Pack) -> list[str]:
        """The models that it needs and that a pack lacks."""
        return []

    def refusal(self, constraints: Constraints) -> str | None:
        """Why the system cannot write for some constraints; None if it can. It is asked before models are loaded.

        By default it fills blanks with any number of words, and refuses templates that fix one.
        """
        return refusal_of_lengths(self.recipe.name, constraints)

    def override(self, given: Overrides) -> "WritingSystem":
        """The same system with the values that a user gives in place of the recipe's. By default none is taken."""
        return self


def _settings(settings: Settings | None, **given: Any) -> Settings:
    """The settings, with the values that are given in their place."""
    return replace(settings or Settings(), **{name: value for name, value in given.items() if value is not None})


def _flat(keywords: Sequence[str | Sequence[str]]) -> Iterator[str]:
    """Keywords that were given one by one, in lists, or both."""
    for given in keywords:
        if isinstance(given, str):
            yield given
        else:
            yield from checks.texts("keywords", given, ConstraintError)


def _several(words: str | Sequence[str]) -> Sequence[str]:
    """A single string is one word, not its letters."""
    return (words,) if isinstance(words, str) else words
