"""Drafts by the infiller: particles that hold the given words, and a choice among them."""

import logging
import math
import secrets
import time
from collections.abc import Callable, Sequence
from functools import cached_property, partial

import numpy as np

from redraft.draft.particles import Drafted, ParticleDrafter
from redraft.drafts import Draft, Observer, Particle, Settings
from redraft.errors import InputError
from redraft.models.infiller import Infiller
from redraft.models.pack import Pack
from redraft.numerics import log_sum
from redraft.recipes import InfillerRecipe
from redraft.sentence import Constraints
from redraft.target import SoftScore, power_of
from redraft.text import is_word
from redraft.version import VERSION
from redraft.writer import Writer

_LOG = logging.getLogger("redraft")
_TEMPERATURE = 0.8  # what the model is sharpened to where nobody asks for another temperature
_ALIKE = 0.5  # nats a token that a draft loses for each word in two that it shares with one that is better


class InfillWriter(Writer):
    """The infiller at work. ``fallback`` opens another system for constraints that no particle meets."""

    pack: Pack

    def __init__(
        self,
        pack: Pack,
        recipe: InfillerRecipe,
        model: Infiller,
        *,
        style: str,
        temperature: float = 1.0,
        soft: tuple[SoftScore, ...] = (),
        lowered: frozenset[str] = frozenset(),
        fallback: Callable[[], Writer] | None = None,
    ):
        self.pack, self.recipe, self._model = pack, recipe, model
        self._style, self._temperature, self._soft = style, temperature, soft
        self._open_fallback = fallback
        encouraged = {score.word: score.weight for score in soft if score.word}
        self._open_drafter = partial(ParticleDrafter, model, style=style, lowered=lowered, encouraged=encouraged)
        self._drafter = self._open_drafter(temperature=_TEMPERATURE * temperature)

    def at_temperature(self, temperature: float) -> "InfillWriter":
        """The same writer at another temperature."""
        power_of(temperature)  # refuses what is no temperature
        writer, opens = self._copy(temperature), self._open_fallback
        writer._temperature, writer._drafter = temperature, self._open_drafter(temperature=_TEMPERATURE * temperature)
        writer._open_fallback = (lambda: opens().at_temperature(temperature)) if opens else None
        writer.__dict__.pop("_fallback", None)  # that of the old temperature
        return writer

    @cached_property
    def _fallback(self) -> Writer | None:
        return self._open_fallback() if self._open_fallback else None

    def write_many(
        self,
        inputs: Sequence[Constraints],
        settings: Settings | None = None,
        *,
        numbers: Sequence[int] | None = None,
        observe: Observer | None = None,
    ) -> list[list[Draft]]:
        """Drafts for several inputs, one input after the other: its particles are a batch of their own."""
        settings = settings or Settings()
        if settings.steps:
            raise InputError(f"recipe {self.recipe.name} revises nothing, so --steps {settings.steps} has no meaning")
        seed = secrets.randbits(32) if settings.seed is None else settings.seed
        results: list[list[Draft]] = []
        started = time.monotonic()
        for place, (number, constraints) in enumerate(zip(numbers or range(len(inputs)), inputs, strict=True)):
            deadline = started + settings.time_limit * (place + 1) if settings.time_limit else math.inf
            drafts = self._write(constraints, settings, (seed, number), deadline)
            results.append(drafts or self._fall_back(constraints, settings, seed, number))
            if observe is not None:
                observe(0, constraints.start(), results[-1][0].nll)
        return results

    def _write(
        self, constraints: Constraints, settings: Settings, seed: tuple[int, int], deadline: float
    ) -> list[Draft]:
        """The best drafts, that is none where no particle came to an end."""
        started = time.monotonic()
        rng = np.random.default_rng(seed)
        num = self.recipe.particles * settings.num_chains if settings.chains > 1 else self._num(settings)
        found = self._drafter.draft(constraints, rng, num, deadline)
        if not found and time.monotonic() < deadline:
            found = self._drafter.draft(constraints, rng, num, deadline)
        seconds = time.monotonic() - started
        log_total = log_sum(np.array([one.log_weight for one in found]))
        particles = tuple(
            Particle(one.sentence.text, _nll(one), math.exp(one.log_weight - log_total))
            for one in sorted(found, key=self._score, reverse=True)
        )
        signature = self.signature(settings, seed[0])
        return [
            Draft(
                text=one.sentence.text,
                words=one.sentence.words,
                nll=_nll(one),
                steps=0,
                seconds=seconds,
                constraints_met=constraints.met_by(one.sentence.words),
                signature=signature,
                start=one.sentence,
                locks=one.sentence.locks,
                particles=particles,
            )
            for one in self._chosen(found, settings.num)
        ]

    def _num(self, settings: Settings) -> int:
        """Particles for an input: several drafts need more to choose from."""
        return self.recipe.particles * (1 if settings.num == 1 else 2)

    def _score(self, drafted: Drafted) -> float:
        """What the best draft has most of: log-probability a token given the constraints, and soft scores."""
        soft = sum(score.log_weight(drafted.sentence.words) for score in self._soft)
        return (drafted.log_prob + soft) / drafted.num_tokens

    def _chosen(self, found: Sequence[Drafted], num: int) -> list[Drafted]:
        """The best draft, then the best among those that differ from it, and so on."""
        left = list({one.sentence.words: one for one in found}.values())
        taken: list[Drafted] = []
        while left and len(taken) < num:
            fines = [max((_overlap(one, other) for other in taken), default=0.0) for one in left]
            scores = [self._score(one) - 2 * _ALIKE * fine for one, fine in zip(left, fines, strict=True)]
            taken.append(left.pop(int(np.argmax(scores))))
        return taken

    def _fall_back(self, constraints: Constraints, settings: Settings, seed: int, number: int) -> list[Draft]:
        if self._fallback is None:
            raise InputError("the infiller found no sentence that meets the constraints; allow more words")
        _LOG.warning("redraft: the infiller found no sentence for this input; another system writes it")
        again = Settings(None, settings.chains, settings.num, seed, settings.time_limit)
        return self._fallback.write_many([constraints], again, numbers=[number])[0]

    def signature(self, settings: Settings, seed: int) -> str:
        parts = {
            "redraft": VERSION,
            "recipe": self.recipe.name,
            "pack": f"{self.pack.name}@{self.pack.fingerprint}",
            "particles": self._num(settings),
            "style": self._style,
            "target": " + ".join([self._model.name, *(score.name for score in self._soft)]),
            "temperature": f"{_TEMPERATURE * self._temperature:g}",
            **({} if self._model.precision == "float32" else {"precision": self._model.precision}),
            **({"chains": settings.num_chains} if settings.chains > 1 else {}),
            **({"seconds": f"{settings.time_limit:g}"} if settings.time_limit else {}),
            **({"drafts": settings.num} if settings.num > 1 else {}),
            "seed": seed,
        }
        return "|".join(f"{key}:{value}" for key, value in parts.items())


def _nll(drafted: Drafted) -> float:
    """Per word and sentence end, given the constraints."""
    return -drafted.log_prob / (len(drafted.sentence) + 1)


def _overlap(left: Drafted, right: Drafted) -> float:
    """Share of common words that no constraint asked for."""
    a, b = (
        {word.lower() for word, lock in zip(one.words, one.locks, strict=True) if lock < 0 and is_word(word)}
        for one in (left.sentence, right.sentence)
    )
    return len(a & b) / max(1, len(a | b))
