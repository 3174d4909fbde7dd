"""Drafts by the infiller: particles that hold the given words, stretches rewritten, and a choice among all of them."""

import logging
import math
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from redraft import checks
from redraft.draft.particles import DraftOrder, ParticleDrafter
from redraft.draft.task import Drafted
from redraft.drafts import Draft, JobProgress, Observer, Particle, Settings, Watch, WritingJob, keep_on, refuse_passes
from redraft.errors import InputError
from redraft.models.base import Words
from redraft.models.causal.infiller import Infiller
from redraft.models.causal.llama import LlamaDecoder
from redraft.models.causal.prompts import template_prompt
from redraft.models.pack import Pack
from redraft.numerics import Array, log_sum
from redraft.phrases import BLANKS
from redraft.predict.classifier import CLASSIFIER, pack_classifier
from redraft.predict.learned import LearnedPrior
from redraft.predict.prior import UniformPrior
from redraft.predict.stretch_prior import StretchPrior
from redraft.recipes import MOST_PARTICLES, InfillerRecipe
from redraft.revise.rewrite import Rewrite, Rewriter, RewriteState
from redraft.sentence import Constraints, Sentence, num_words
from redraft.stretches import holds_first_places
from redraft.target import SoftScore, penalise_repetition, power_of
from redraft.text import is_word
from redraft.version import VERSION
from redraft.writer import Writer

_LOG = logging.getLogger("redraft")
_TEMPERATURE = 0.7  # what the model is sharpened to where nobody asks for another temperature
_ALIKE = 8.0  # what a draft loses for sharing all its words with a better one
# Scores are divided by a power of the number of tokens: a sum (power 0) prefers stubs, a mean (power 1) long sentences.
_POWER = 0.5
_LIKELIER, _FEWEST_CANDIDATES = 0.5, 8  # the share of drafts that are scored a second time, if they are more than a few
_REPETITION = penalise_repetition(1.0)  # after that division
_FEWEST_WORDS = 8  # of a draft, if the constraints do not prefer fewer
_SHORT = 1.0  # what a draft loses for each word that it is short of them
_UNWELCOME = 0.5  # what a draft loses for each optional word that it does without
_BLANK_ROOM = 15  # words more than other systems may write into a template
_LEAST_SECONDS = 0.1  # for another system, once the time is up
_TRIES = 8  # versions of a stretch in a rewriting step


@dataclass(frozen=True)
class _Candidate:
    """A sentence to choose from: its log-probability with and without the constraints, and how it came about."""

    sentence: Sentence
    log_prob: float
    log_alone: float
    num_tokens: int
    start: Sentence  # what the rewriting began with
    rewrites: tuple[Rewrite, ...] = ()

    @property
    def nll(self) -> float:
        """Per word and sentence end."""
        return -self.log_prob / (len(self.sentence) + 1)


@dataclass(frozen=True)
class _Task:
    """An input to write for, with its draws, which continue where drafting left them."""

    given: Constraints
    seed: int
    number: int
    watch: Watch = keep_on

    @cached_property
    def rng(self) -> np.random.Generator:
        return np.random.default_rng((self.seed, self.number))

    @cached_property
    def constraints(self) -> Constraints:
        """The given constraints. By default blanks may be long, because the infiller knows when one is full."""
        given = self.given
        if given.template is None or given.max_words is not None or given.fixes_lengths:
            return given
        return replace(given, max_words=given.limit + _BLANK_ROOM)

    def order(self, num: int) -> DraftOrder:
        """Order that many particles."""
        return DraftOrder(self.constraints, self.rng, num, self.is_wanted)

    def is_wanted(self) -> bool:
        """Whether to go on with it."""
        return self.watch(JobProgress())


class InfillTarget:
    """The infiller's distribution over sentences given the constraints, at a temperature, with soft scores."""

    def __init__(
        self, model: Infiller, drafter: ParticleDrafter[LlamaDecoder], temperature: float, soft: tuple[SoftScore, ...]
    ):
        self._model, self._drafter, self._temperature, self._soft = model, drafter, temperature, soft

    def log_targets(self, constraints: Constraints, sentences: Sequence[Sentence]) -> Array:
        """Log weights; minus infinity for sentences that break a constraint."""
        words = [one.words for one in sentences]
        log_probs = self._model.log_probs(self._drafter.prompt(constraints), words, self._temperature)
        soft = [self.log_soft(one) for one in sentences]
        is_inside = [
            constraints.met_by(one.words) and len(one) <= constraints.limit and holds_first_places(one, constraints)
            for one in sentences
        ]
        return np.where(is_inside, np.array(log_probs) + np.array(soft), -np.inf)

    def log_soft(self, sentence: Sentence) -> float:
        """The sum of the soft scores."""
        return sum(score.log_weight(sentence.words) for score in self._soft)


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
        self._style, self._soft = style, soft
        self._temperature = _TEMPERATURE * temperature
        self._open_fallback = fallback
        encouraged = {score.word: score.weight for score in soft if score.word}
        self._drafter = ParticleDrafter(
            model, style=style, temperature=self._temperature, lowered=lowered, encouraged=encouraged
        )
        self._target = InfillTarget(model, self._drafter, self._temperature, soft)
        self._remade = partial(InfillWriter, pack, recipe, model, style=style, soft=soft, lowered=lowered)

    def at_temperature(self, temperature: float) -> "InfillWriter":
        """The same writer at another temperature."""
        power_of(temperature)  # refuses what is not a temperature
        opens = self._open_fallback
        fallback = (lambda: opens().at_temperature(temperature)) if opens else None
        writer = self._remade(temperature=temperature, fallback=fallback)
        writer.reopen = self._copy(temperature).reopen
        return writer

    @cached_property
    def _fallback(self) -> Writer | None:
        return self._open_fallback() if self._open_fallback else None

    @cached_property
    def _rewriter(self) -> Rewriter:
        """Loaded when it is needed: the classifier says where to rewrite."""
        has_classifier = CLASSIFIER in self.pack.parts
        prior = LearnedPrior(pack_classifier(self.pack)) if has_classifier else UniformPrior()
        return Rewriter(self._drafter, StretchPrior(prior), self._target, _TRIES)

    def complete(self, settings: Settings) -> Settings:
        """Settings with the recipe's number of rewriting steps where none is given."""
        refuse_passes(settings, self.recipe.name)
        most = settings.chains * max(self.recipe.particles, self.recipe.particles_of_templates)
        checks.check_count("chains times particles", most, 1, most=MOST_PARTICLES)
        return settings if settings.steps is not None else replace(settings, steps=self.recipe.steps)

    def write_many(
        self,
        inputs: Sequence[Constraints],
        settings: Settings | None = None,
        *,
        numbers: Sequence[int] | None = None,
        observe: Observer | None = None,
    ) -> list[list[Draft]]:
        """Drafts for several inputs. Without a time limit, their particles are read together.

        Inputs that are not finished when the work is stopped have none.
        """
        settings = self.complete(settings or Settings())
        seed = secrets.randbits(32) if settings.seed is None else settings.seed
        tasks = [
            _Task(constraints, seed, number)
            for number, constraints in zip(numbers or range(len(inputs)), inputs, strict=True)
        ]
        results: list[list[Draft]] = []
        started = time.monotonic()
        size = 1 if settings.time_limit else max(1, len(tasks))
        for first in range(0, len(tasks), size):
            deadline = started + settings.time_limit * (first + 1) if settings.time_limit else math.inf
            results += self._write_together(tasks[first : first + size], settings, deadline, observe)
        return results

    def write_jobs(self, jobs: Sequence[WritingJob], settings: Settings | None = None) -> list[list[Draft]]:
        """Drafts for jobs, whose particles are read together. A job that is stopped before its drafts has none."""
        settings = self.complete(settings or Settings())
        tasks = [_Task(job.constraints, job.seed, job.number, job.watch) for job in jobs]
        deadline = time.monotonic() + settings.time_limit if settings.time_limit else math.inf
        return self._write_together(tasks, settings, deadline, None)

    def _write_together(
        self, tasks: Sequence[_Task], settings: Settings, deadline: float, observe: Observer | None
    ) -> list[list[Draft]]:
        started = time.monotonic()
        chosen: dict[int, list[Draft]] = {}
        for place, found in self._drafted(tasks, settings, deadline):
            chosen[place] = self._finish(tasks[place], found, settings, deadline)
            best = chosen[place][:1]
            if observe is not None and not all(observe(0, tasks[place].constraints.start(), one.nll) for one in best):
                return [chosen.get(place, []) for place in range(len(tasks))]
        seconds = (time.monotonic() - started) / max(1, len(tasks))
        return [
            [replace(draft, seconds=seconds) for draft in chosen[place]] or self._fall_back(task, settings, deadline)
            for place, task in enumerate(tasks)
        ]

    def _drafted(
        self, tasks: Sequence[_Task], settings: Settings, deadline: float
    ) -> Iterator[tuple[int, Sequence[Drafted]]]:
        """Particles of each task; tried a second time where none of the first came to an end."""
        failed, orders = [], [one.order(self._num_particles(one.constraints, settings)) for one in tasks]
        for place, found in self._drafter.draft_many(orders, deadline):
            if found:
                yield place, found
            else:
                failed.append(place)
        for place in failed:
            is_over = time.monotonic() > deadline or not tasks[place].is_wanted()
            yield place, [] if is_over else self._drafter.draft(orders[place], deadline)

    def _finish(self, task: _Task, found: Sequence[Drafted], settings: Settings, deadline: float) -> list[Draft]:
        """The best drafts, that is none where no particle came to an end."""
        candidates = self._candidates(task.constraints, found, settings.num_drafts)
        candidates += self._rewritten(task, candidates, settings, deadline)
        particles = self._particles(found)
        signature = self.signature(settings, task.seed)
        return [
            Draft(
                text=one.sentence.text,
                words=one.sentence.words,
                nll=one.nll,
                steps=len(one.rewrites),
                seconds=0.0,
                constraints_met=task.constraints.met_by(one.sentence.words),
                signature=signature,
                start=one.start,
                locks=one.sentence.locks,
                particles=particles,
                rewrites=one.rewrites,
            )
            for one in self._chosen(task.constraints, candidates, settings.num_drafts)
        ]

    def _candidates(self, constraints: Constraints, found: Sequence[Drafted], num: int) -> list[_Candidate]:
        """The different sentences among drafts; for keywords the likelier ones, which nearly always have the best."""
        different: dict[Words, Drafted] = {}
        for one in found:
            different.setdefault(one.sentence.words, one)
        kept = list(different.values())
        if constraints.template is None:
            kept.sort(key=self._likely, reverse=True)
            kept = kept[: max(_FEWEST_CANDIDATES, 2 * num, math.ceil(_LIKELIER * len(kept)))]
        log_alone = self._log_alone([one.sentence.words for one in kept])
        return [
            _Candidate(one.sentence, one.log_prob, log_one, one.num_tokens, one.sentence)
            for one, log_one in zip(kept, log_alone, strict=True)
        ]

    def _likely(self, drafted: Drafted) -> float:
        """How likely a draft is given the constraints: higher is better."""
        return drafted.log_prob / float(drafted.num_tokens**_POWER) + self._target.log_soft(drafted.sentence)

    def _log_alone(self, sentences: Sequence[Words]) -> list[float]:
        """Log-probabilities of sentences after a prompt that gives no words."""
        return self._model.log_probs(template_prompt(self._style, [None]), sentences)

    def _rewritten(
        self,
        task: _Task,
        candidates: Sequence[_Candidate],
        settings: Settings,
        deadline: float,
    ) -> list[_Candidate]:
        """What chains of rewriting steps visit that start at the best candidates, one chain for each draft."""
        constraints, visited = task.constraints, []
        best = self._chosen(constraints, candidates, settings.num)
        if not best:
            return []
        seen = JobProgress(0, best[0].sentence, best[0].nll, tuple(one.sentence for one in candidates))
        if not task.watch(seen):
            return []
        traces: list[tuple[Rewrite, ...]] = []
        for start in best if settings.steps else ():
            state: RewriteState = self._rewriter.init(constraints, start.sentence)
            made: tuple[Rewrite, ...] = ()
            for step in range(settings.steps or 0):
                if time.monotonic() > deadline or not task.watch(replace(seen, step=step, traces=(*traces, made))):
                    break
                state, rewrite = self._rewriter.step(constraints, state, task.rng)
                made += () if rewrite is None else (rewrite,)
                if rewrite is not None and rewrite.accepted:
                    visited.append(self._visited(state, start.sentence, made))
            traces.append(made)
        task.watch(replace(seen, step=settings.steps or 0, traces=tuple(traces)))
        return visited

    def _visited(self, state: RewriteState, start: Sentence, rewrites: tuple[Rewrite, ...]) -> _Candidate:
        log_prob = state.log_target - self._target.log_soft(state.sentence)
        num_tokens = len(self._model.spell((), state.sentence.words)) + 1
        (log_alone,) = self._log_alone([state.sentence.words])
        return _Candidate(state.sentence, log_prob, log_alone, num_tokens, start, rewrites)

    def _particles(self, found: Sequence[Drafted]) -> tuple[Particle, ...]:
        log_total = log_sum(np.array([one.log_weight for one in found]))
        particles = [
            Particle(
                one.sentence.text,
                -one.log_prob / (len(one.sentence) + 1),
                math.exp(one.log_weight - log_total),
            )
            for one in found
        ]
        return tuple(sorted(particles, key=lambda one: one.nll))

    def _num_particles(self, constraints: Constraints, settings: Settings) -> int:
        if constraints.template is not None:
            num = self.recipe.particles_of_templates
        elif self.recipe.particles_per_word is None:
            num = self.recipe.particles
        else:
            num = min(self.recipe.particles, self.recipe.particles_per_word * len(constraints.parts))
            # The last of many drafts should still be chosen from some.
            num = max(num, min(2 * settings.num_drafts, MOST_PARTICLES // settings.chains))
        return num * settings.chains

    def _score(self, constraints: Constraints, candidate: _Candidate) -> float:
        """Higher is better: how likely the sentence is, however well it answers the prompt.

        Given the constraints, words that do not belong together are likely to be forced into one clause. Such a
        sentence is unlikely without them (docs/decisions/0014-the-infiller.md).
        """
        fewest = min(constraints.preferred_words, _FEWEST_WORDS)
        num_missing = max(0, fewest - num_words(candidate.sentence.words))
        soft = self._target.log_soft(candidate.sentence)  # in full, or it would have too little effect
        power = _length_power(constraints)
        repetition = _REPETITION.log_weight(candidate.sentence.words)
        num_left_out = sum(part.is_optional for part in constraints.parts) - len(_held_optional(constraints, candidate))
        loss = _SHORT * num_missing + _UNWELCOME * num_left_out
        return candidate.log_alone / float(candidate.num_tokens**power) + soft + repetition - loss

    def _chosen(self, constraints: Constraints, candidates: Sequence[_Candidate], num: int) -> list[_Candidate]:
        """The best candidate, then the best among those that differ from it, and so on."""
        found: dict[Words, _Candidate] = {}
        for one in candidates:
            found.setdefault(one.sentence.words, one)  # rewriting may come back to where it started
        left = list(found.values())
        scores = np.array([self._score(constraints, one) for one in left])
        overlaps = np.zeros(len(left))  # of each with the most similar one that is taken
        taken: list[int] = []
        while len(taken) < min(num, len(left)):
            taken.append(int(np.argmax(scores - _ALIKE * overlaps)))
            scores[taken[-1]] = -np.inf
            overlaps = np.maximum(overlaps, [_overlap(one, left[taken[-1]]) for one in left])
        return [left[i] for i in taken]

    def _fall_back(self, task: _Task, settings: Settings, deadline: float) -> list[Draft]:
        if not task.is_wanted():
            return []
        if self._fallback is None or task.given.fixes_lengths:
            raise InputError("the infiller found no sentence that meets the constraints; allow more words")
        _LOG.warning("redraft: the infiller found no sentence for this input; another system writes it")
        left = max(_LEAST_SECONDS, round(deadline - time.monotonic(), 1)) if settings.time_limit else None
        again = Settings(None, settings.chains, settings.num, time_limit=left, spares=settings.spares)
        return self._fallback.write_jobs([WritingJob(task.given, task.seed, task.number, task.watch)], again)[0]

    def signature(self, settings: Settings, seed: int) -> str:
        numbers = [num * settings.chains for num in (self.recipe.particles, self.recipe.particles_of_templates)]
        parts = {
            "redraft": VERSION,
            "recipe": self.recipe.name,
            "pack": f"{self.pack.name}@{self.pack.fingerprint}",
            "particles": "/".join(map(str, dict.fromkeys(numbers))),
            **({"per_word": self.recipe.particles_per_word} if self.recipe.particles_per_word else {}),
            "rewrites": settings.steps,
            "style": self._style,
            "target": " + ".join([self._model.name, *(score.name for score in self._soft)]),
            "temperature": f"{self._temperature:g}",
            **({} if self._model.precision == "float32" else {"precision": self._model.precision}),
            **({"seconds": f"{settings.time_limit:g}"} if settings.time_limit else {}),
            **settings.signed_drafts,
            "seed": seed,
        }
        return "|".join(f"{key}:{value}" for key, value in parts.items())


def _held_optional(constraints: Constraints, candidate: _Candidate) -> set[int]:
    """The optional parts that a sentence has."""
    return {lock for lock in candidate.sentence.locks if lock >= 0 and constraints.parts[lock].is_optional}


def _length_power(constraints: Constraints) -> float:
    """The power of the number of tokens by which the score of a sentence is divided.

    One blank may be of any length, so its stubs must be discouraged; among many blanks most have a word or two.
    """
    if constraints.template is None:
        return _POWER
    return float(max(1, len(BLANKS.findall(constraints.template))) ** -2)


def _overlap(left: _Candidate, right: _Candidate) -> float:
    """Share of common words that no constraint asked for."""
    a, b = (
        {word.lower() for word, lock in zip(one.words, one.locks, strict=True) if lock < 0 and is_word(word)}
        for one in (left.sentence, right.sentence)
    )
    return len(a & b) / max(1, len(a | b))
