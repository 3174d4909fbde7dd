"""First drafts by sequential Monte Carlo: particles that write a sentence with the given parts in it.

The target is the model's distribution over sentences, restricted to those that meet the constraints. Particles grow
token by token in one batch. Between two words a particle goes on freely or starts a given part, which is then written
whole. A part that was written freely counts as well, so every sentence has one way to hold its parts: each at its
first place. The weight of a particle is the target over the proposal, summed over the two ways to come to a part.
Particles are resampled among those that hold the same number of parts: one that holds more has paid for them already.

A stretch of a sentence is rewritten in the same way, with the words before and after it as given parts. Particles then
stay independent, so that the probability of drawing each is known, and that of the present words as well.
"""

import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from redraft import text
from redraft.models.base import Words
from redraft.models.infiller import Decoder, TokenTable, Writing
from redraft.models.prompts import DEFAULT_STYLE, keywords_prompt, pieces_of, template_prompt
from redraft.numerics import Array, log_normalise, log_sum
from redraft.sentence import ENDING, FREE, Constraints, Order, Sentence, num_words
from redraft.stretches import Stretch, reads_as

_EAGER = 0.3  # how likely a particle starts a part at most, where the model would not expect it
_LONG_GAP, _PER_WORD = 8, 0.03  # after so many free words it becomes likelier with every word
_TOKENS_PER_WORD = 1.8  # room for words of several tokens
_SPARE_TOKENS = 8
_RESAMPLE = 0.5  # of the particles of a group; with fewer effective ones they are resampled
_IMPOSSIBLE = -np.inf
_LOG_SELDOM = -4.0
_STOPS = frozenset(".?!")  # a sentence has one, at its end


class Drafted(NamedTuple):
    """A sentence that meets the constraints, its log-probability given the prompt, and its log importance weight."""

    sentence: Sentence
    log_prob: float
    num_tokens: int
    log_weight: float


class Rewritten(NamedTuple):
    """A sentence with a stretch written anew, and the log-probability of drawing it."""

    sentence: Sentence
    log_drawn: float


@dataclass(frozen=True)
class _Task:
    """What has to be written: given parts in their order, with None for each gap between them."""

    constraints: Constraints
    pieces: tuple[Words | None, ...]
    any_order: bool
    fills_blanks: bool  # whether every gap needs a free word

    @classmethod
    def of(cls, constraints: Constraints) -> "_Task":
        any_order = constraints.order is Order.ANY and constraints.template is None
        return cls(constraints, tuple(pieces_of(constraints.start())), any_order, constraints.template is not None)

    @classmethod
    def around(cls, constraints: Constraints, sentence: Sentence, stretch: Stretch) -> "_Task":
        """All words but those of a stretch are given. A blank of a template must not become empty."""
        words = sentence.words
        pieces = (words[: stretch.start] or None, None, words[stretch.end :] or None)
        fills = constraints.template is not None and stretch.is_whole_gap
        return cls(constraints, tuple(one for i, one in enumerate(pieces) if one or i == 1), False, fills)

    @cached_property
    def parts(self) -> tuple[Words, ...]:
        return tuple(piece for piece in self.pieces if piece is not None)

    @property
    def opens(self) -> bool:
        """Whether free words may come before the first part."""
        return self.pieces[0] is None

    @property
    def closes(self) -> bool:
        """Whether free words may come after the last part."""
        return self.pieces[-1] is None

    def prompt(self, style: str) -> str:
        return keywords_prompt(style, self.parts) if self.any_order else template_prompt(style, self.pieces)

    @property
    def limit(self) -> int:
        """Most words, the ending left out where it is not part of what is given."""
        return self.constraints.limit - (self.constraints.has_ending and self.closes)


class _Boundary(NamedTuple):
    """A place where a word may start: how likely each part was started there, and how likely the free way to it is."""

    at: int  # in the text
    log_starts: dict[int, float]
    log_free: float

    def log_start(self, part: int) -> float:
        return self.log_starts.get(part, _IMPOSSIBLE)


@dataclass
class _Particle:
    """A sentence that is being written. ``held`` are the parts in it, up to the latest whose end is certain."""

    tokens: list[int] = field(default_factory=list)
    text: str = ""
    held: tuple[int, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()  # of the held parts in the text
    log_weight: float = 0.0
    log_prob: float = 0.0
    log_free: float = 0.0  # of the tokens so far, had all of them been drawn freely
    boundaries: list[_Boundary] = field(default_factory=list)  # in the present gap
    part: int | None = None  # that is being written, or was just written
    queue: tuple[int, ...] = ()  # its tokens that are left
    part_log_prob: float = 0.0  # minus the log-probability of what came before it

    def copy(self) -> "_Particle":
        return replace(self, tokens=list(self.tokens), boundaries=list(self.boundaries))


class _Spelled(NamedTuple):
    """A part at the end of a text, and the place where it was started."""

    part: int
    boundary: _Boundary


class _Options(NamedTuple):
    """How a particle may go on: with parts, and with tokens that come freely. The log-probabilities of both add up."""

    log_starts: dict[int, float]
    log_tokens: Array  # [vocabulary]


class _Choice(NamedTuple):
    """A part to start, or a token."""

    part: int | None
    token: int = -1


_Choose = Callable[[_Options], _Choice | None]  # None where there is nothing to choose


class ParticleDrafter:
    """Writes drafts with a model. ``temperature`` sharpens or flattens what it expects, token by token.

    ``lowered`` are words that are written with a capital only where they open a sentence. Words that are
    ``encouraged``, by how many nats, are proposed more often; the weights take that back.
    """

    def __init__(
        self,
        model: Writing,
        *,
        style: str = DEFAULT_STYLE,
        temperature: float = 1.0,
        lowered: frozenset[str] = frozenset(),
        encouraged: Mapping[str, float] = MappingProxyType({}),
    ):
        self._model, self._style, self._temperature, self._lowered = model, style, temperature, lowered
        self._encouraged = encouraged

    @torch.inference_mode()
    def draft(
        self, constraints: Constraints, rng: np.random.Generator, num: int, deadline: float = math.inf
    ) -> list[Drafted]:
        """The particles that reached an end, up to ``num`` of them, with weights.

        Particles that are not done at the ``deadline`` (of ``time.monotonic``) are dropped.
        """
        task = _Task.of(constraints)
        rules = self._rules(task)
        most, logits, decoder = self._begin(task, num)
        particles = [_Particle() for _ in range(num)]
        log_dists = self._log_dists(logits[None].expand(num, -1))
        choose = partial(_draw, rng=rng)
        finished: list[Drafted] = []
        for _ in range(most):
            alive = []
            for i, (particle, log_dist) in enumerate(zip(particles, log_dists, strict=True)):
                rules.advance(particle, log_dist, choose)
                if self._is_complete(particle):
                    finished += rules.finished(particle)
                elif particle.log_weight > _IMPOSSIBLE:
                    alive.append(i)
            if not alive or time.monotonic() > deadline:
                break
            chosen = _resampled([particles[i] for i in alive], rng)
            rows = [alive[i] for i, _ in chosen]
            if rows != list(range(len(particles))):
                decoder.select(rows)
            particles = [particle for _, particle in chosen]
            log_dists = self._log_dists(decoder.step([particle.tokens[-1] for particle in particles]))
        return finished

    @torch.inference_mode()
    def rewrite(
        self, constraints: Constraints, sentence: Sentence, stretch: Stretch, rng: np.random.Generator, num: int
    ) -> tuple[list[Rewritten], float]:
        """Independent draws of a stretch given all other words, and the log-probability of drawing the present one.

        Up to ``num`` of them: some come to nothing. A draw that is not spelled as the model's tokenizer spells its
        words is dropped, so the probability of each sentence is that of one sequence of tokens.
        """
        task = _Task.around(constraints, sentence, stretch)
        rules = self._rules(task)
        most, logits, decoder = self._begin(task, num + 1)
        particles = [_Particle() for _ in range(num + 1)]
        script = self._script(task, sentence.words[stretch.start : stretch.end])
        choices: list[_Choose] = [lambda options: _scripted(options, script), *[partial(_draw, rng=rng)] * num]
        log_dists = self._log_dists(logits[None].expand(num + 1, -1))
        rows = list(range(num + 1))  # particles that are still being written
        for _ in range(most):
            alive = []
            for row, log_dist in zip(rows, log_dists, strict=True):
                rules.advance(particles[row], log_dist, choices[row])
                if not self._is_complete(particles[row]) and particles[row].log_weight > _IMPOSSIBLE:
                    alive.append(row)
            if not alive:
                break
            if alive != rows:
                decoder.select([rows.index(row) for row in alive])
            rows = alive
            log_dists = self._log_dists(decoder.step([particles[row].tokens[-1] for row in rows]))
        log_drawn = [self._log_drawn(particle) for particle in particles]
        found = [
            Rewritten(made, log_one)
            for particle, log_one in zip(particles[1:], log_drawn[1:], strict=True)
            for made in self._rewritten(rules, particle, sentence, stretch)
        ]
        return found, log_drawn[0]

    def _rules(self, task: _Task) -> "_Rules":
        return _Rules(task, self._model, self._lowered, self._encouraged)

    def prompt(self, constraints: Constraints) -> str:
        """What the model is asked for these constraints."""
        return _Task.of(constraints).prompt(self._style)

    def _begin(self, task: _Task, num: int) -> tuple[int, torch.Tensor, Decoder]:
        """Most tokens of a sentence, scores of the first one, and a decoder."""
        most = round(_TOKENS_PER_WORD * task.constraints.limit) + _SPARE_TOKENS
        return most, *self._model.begin(task.prompt(self._style), num, most)

    def _is_complete(self, particle: _Particle) -> bool:
        return particle.tokens[-1:] == [self._model.tokens.end]

    def _script(self, task: _Task, stretch: Words) -> Iterator[_Choice]:
        """The choices that lead to the present words of a stretch."""
        before: Words = ()
        for number, piece in enumerate(task.pieces):
            if piece is None:
                yield from (_Choice(None, token) for token in self._model.spell(before, stretch))
                before += stretch
            else:
                yield _Choice(0 if number == 0 else len(task.parts) - 1)
                before += piece
        yield _Choice(None, self._model.tokens.end)

    def _log_drawn(self, particle: _Particle) -> float:
        return particle.log_prob - particle.log_weight if self._is_complete(particle) else _IMPOSSIBLE

    def _rewritten(self, rules: "_Rules", particle: _Particle, sentence: Sentence, stretch: Stretch) -> list[Sentence]:
        """The sentence of a particle with the locks of the old one around the stretch; none where it is unusable."""
        found = rules.finished(particle) if self._is_complete(particle) else []
        if not found or particle.tokens != [*self._model.spell((), found[0].sentence.words), self._model.tokens.end]:
            return []
        return [stretch.filled(sentence, found[0].sentence.words)]

    def _log_dists(self, logits: torch.Tensor) -> Array:
        return np.asarray((logits.double() / self._temperature).log_softmax(-1).numpy())


class _Rules:
    """How the particles of one task grow."""

    def __init__(self, task: _Task, model: Writing, lowered: frozenset[str], encouraged: Mapping[str, float]):
        self._task, self._model, self._lowered = task, model, lowered
        self._table: TokenTable = model.tokens
        banned = task.constraints.banned_words
        self._free = self._table.usable
        # A banned word may become another one, but seldom does.
        self._log_bias = np.zeros(len(self._table))
        self._log_bias[[i for word in banned for i in self._table.single_words.get(word, ())]] = _LOG_SELDOM
        for word, weight in encouraged.items():
            self._log_bias[self._table.single_words.get(word.lower(), [])] += weight
        self._endings = np.zeros(len(self._table), dtype=np.bool_)
        self._endings[[self._table.marks[e] for e in task.constraints.allowed_endings if e in self._table.marks]] = True
        self._ends_word = self._table.ends_word.copy()
        self._ends_word[self._table.end] = True
        self._stops = [i for i, one in enumerate(self._table.texts) if one and one.strip()[:1] in _STOPS]
        self._first = [(model.spell((), part)[0], model.spell(("the",), part)[0]) for part in task.parts]

    def advance(self, particle: _Particle, log_dist: Array, choose: _Choose) -> None:
        """Add a token. A particle that cannot go on loses its weight."""
        spelled = self._spelled(particle)
        free = self._options(particle, log_dist, spelled)
        if particle.queue:
            self._add(particle, particle.queue[0], log_dist, free)
            particle.queue = particle.queue[1:]
            return
        after_part = None if particle.part is None else self._options(particle, log_dist, spelled, is_part=True)
        choice = choose(free if after_part is None else after_part)
        if choice is None:
            particle.log_weight = _IMPOSSIBLE
            return
        options = free
        if spelled is not None and (choice.part is not None or self._ends_word[choice.token]):
            after_part = after_part or self._options(particle, log_dist, spelled, is_part=True)
            options = self._hold(particle, spelled, free, after_part)
        particle.boundaries.append(_Boundary(len(particle.text), options.log_starts, particle.log_free))
        if choice.part is None:
            particle.log_weight += float(log_dist[choice.token]) - float(options.log_tokens[choice.token])
            self._add(particle, choice.token, log_dist, options)
        else:
            particle.part, particle.part_log_prob = choice.part, -particle.log_prob
            first, *rest = self._model.spell(tuple(text.tokenise(particle.text)), self._task.parts[choice.part])
            self._add(particle, first, log_dist, options)
            particle.queue = tuple(rest)

    def _add(self, particle: _Particle, token: int, log_dist: Array, options: _Options) -> None:
        particle.tokens.append(token)
        particle.text += "" if token == self._table.end else self._table.texts[token]
        particle.log_prob += float(log_dist[token])
        particle.log_free += float(options.log_tokens[token])

    def _spelled(self, particle: _Particle) -> _Spelled | None:
        """The part that ends the text, if one does: because it was started, or because it came about freely."""
        if particle.queue or not particle.boundaries:
            return None
        if particle.part is not None:
            return _Spelled(particle.part, particle.boundaries[-1])
        starts = {boundary.at: boundary for boundary in particle.boundaries}
        words, places = self._words(particle)
        gap_at = particle.spans[-1][1] if particle.spans else 0
        for part in sorted(self._left(particle.held), key=lambda part: -len(self._task.parts[part])):
            wanted = self._task.parts[part]
            first = len(words) - len(wanted)
            if first < 0 or (self._task.fills_blanks and places[first] <= gap_at):
                continue  # a blank before it would stay empty
            if reads_as(words, first, wanted) and places[first] in starts:
                return _Spelled(part, starts[places[first]])
        return None

    def _words(self, particle: _Particle) -> tuple[Words, list[int]]:
        """The words of the text, and where each starts, the space before it counted."""
        words = tuple(text.tokenise(particle.text))
        places, at = [], 0
        for word in words:
            places.append(at)
            at = particle.text.index(word, at) + len(word)
        return words, places

    def _left(self, held: tuple[int, ...]) -> list[int]:
        """The parts that may be started next."""
        left = [part for part in range(len(self._task.parts)) if part not in held]
        return left if self._task.any_order else left[:1]

    def _hold(self, particle: _Particle, spelled: _Spelled, free: _Options, after_part: _Options) -> _Options:
        """Count a part that is complete, and give the options after it: a mixture of the two ways to come here."""
        log_start = spelled.boundary.log_start(spelled.part)
        log_free = particle.log_free - spelled.boundary.log_free
        log_both = float(np.logaddexp(log_start, log_free))
        if particle.part is None:
            particle.log_weight += log_free - log_both
        else:
            particle.log_weight += particle.log_prob + particle.part_log_prob - log_both
        first = spelled.boundary.at
        particle.held = (*particle.held, spelled.part)
        particle.spans = (*particle.spans, (first, len(particle.text)))
        particle.part, particle.boundaries, particle.log_free = None, [], 0.0
        by_part, by_free = log_start - log_both, log_free - log_both
        return _Options(
            {
                part: float(np.logaddexp(by_part + log_prob, by_free + free.log_starts.get(part, _IMPOSSIBLE)))
                for part, log_prob in after_part.log_starts.items()
            },
            np.logaddexp(by_part + after_part.log_tokens, by_free + free.log_tokens),
        )

    def _options(
        self, particle: _Particle, log_dist: Array, spelled: _Spelled | None, *, is_part: bool = False
    ) -> _Options:
        """How a particle may go on. After a part nothing may follow that would make its last word longer.

        Where a part was spelled freely, a word's end means that it is held, and going on with the word that it is not.
        """
        if spelled is None:
            allowed, starts = self._allowed(particle, particle.held, None)
        else:
            allowed, starts = self._allowed(particle, (*particle.held, spelled.part), len(particle.text))
            allowed &= self._ends_word
            if not is_part:
                longer, _ = self._allowed(particle, particle.held, None)
                allowed |= longer & ~self._ends_word
        if self._is_banned(particle.text):
            allowed, starts = allowed & ~self._ends_word, []
        log_allowed = np.where(allowed, log_dist + self._log_bias, _IMPOSSIBLE)
        log_mass = log_sum(log_allowed)
        log_starts = self._log_starts(particle, log_dist, starts, is_forced=log_mass == _IMPOSSIBLE)
        log_any = log_sum(np.array(list(log_starts.values())))
        if log_mass == _IMPOSSIBLE:
            return _Options(log_starts, log_allowed)
        return _Options(log_starts, log_allowed - log_mass + float(np.log1p(-np.exp(log_any))))

    def _is_banned(self, written: str) -> bool:
        """Whether a text would end in a banned word if its last word ended now."""
        banned = self._task.constraints.banned_words
        return bool(banned) and any(word.lower() in banned for word in text.tokenise(written)[-1:])

    def _log_starts(
        self, particle: _Particle, log_dist: Array, starts: Sequence[int], *, is_forced: bool
    ) -> dict[int, float]:
        """How likely each part is started: likelier where the model expects it, and where a gap has grown long."""
        if not starts:
            return {}
        if is_forced:
            return dict.fromkeys(starts, -float(np.log(len(starts))))
        log_ends = log_sum(log_dist[self._ends_word]) if particle.text else 0.0
        gap = num_words(text.tokenise(particle.text[particle.spans[-1][1] if particle.spans else 0 :]))
        late = _PER_WORD * max(0, gap - _LONG_GAP)
        first = [self._first[part][bool(particle.text)] for part in starts]
        shares = [_EAGER * min(1.0, float(np.exp(log_dist[token] / 2)) + late) / len(starts) for token in first]
        return {part: float(np.log(share)) + log_ends for part, share in zip(starts, shares, strict=True)}

    def _allowed(
        self, particle: _Particle, held: tuple[int, ...], gap_at: int | None
    ) -> tuple[NDArray[np.bool_], list[int]]:
        """Which tokens may come freely, and which parts may be started."""
        task, left = self._task, self._left(held)
        if gap_at is None:
            gap_at = particle.spans[-1][1] if particle.spans else 0
        words = text.tokenise(particle.text)
        in_gap = text.tokenise(particle.text[gap_at:])
        none = np.zeros(len(self._table), dtype=np.bool_)
        if left:
            is_closed = not held and not task.opens
            num_left = sum(len(part) for i, part in enumerate(task.parts) if i not in held)
            has_room = len(words) + num_left < task.limit
            may_start = is_closed or bool(in_gap) or not task.fills_blanks
            free = none if is_closed else self._free.copy()
            if not has_room and may_start:
                free &= ~self._ends_word
            if text.tokenise(particle.text + ".")[-1:] == ["."]:  # not an abbreviation: the sentence would end
                free[self._stops] = False
            return free, left if may_start else []
        allowed = self._free.copy() if task.closes else none
        if in_gap and in_gap[-1] in _STOPS:
            allowed = none
        if task.closes and len(words) >= task.limit:
            allowed &= self._endings | ~self._ends_word
        allowed[self._table.end] = self._may_end(words, in_gap)
        return allowed, []

    def _may_end(self, words: Sequence[str], in_gap: Sequence[str]) -> bool:
        constraints = self._task.constraints
        if constraints.has_ending and (not words or words[-1] not in constraints.allowed_endings):
            return False
        if self._task.fills_blanks and self._task.closes and len(in_gap) <= constraints.has_ending:
            return False
        return num_words(words) >= (constraints.min_words or 0)

    def finished(self, particle: _Particle) -> list[Drafted]:
        """The draft of a particle that ended; none where its text does not read as the given words."""
        words = tuple(text.tokenise(particle.text))
        locks = self._locks(particle, words)
        if locks is None or not self._task.constraints.met_by(words) or len(words) > self._task.constraints.limit:
            return []
        sentence = self._sentence(words, locks)
        return [Drafted(sentence, particle.log_prob, len(particle.tokens), particle.log_weight)]

    def _locks(self, particle: _Particle, words: Words) -> list[int] | None:
        places = text_spans(words, particle.text)
        locks = [FREE] * len(words)
        for part, (start, end) in zip(particle.held, particle.spans, strict=True):
            inside = [i for i, (first, last) in enumerate(places) if start <= first and last <= end]
            if len(inside) != len(self._task.parts[part]) or not reads_as(words, inside[0], self._task.parts[part]):
                return None
            for i in inside:
                locks[i] = part
        if self._task.constraints.has_ending:
            locks[-1] = ENDING
        return locks

    def _sentence(self, words: Words, locks: Sequence[int]) -> Sentence:
        """The given words as they were given, and the first word without the capital that it has from its place."""
        shown = list(words)
        counts = dict.fromkeys(range(len(self._task.parts)), 0)
        for i, lock in enumerate(locks):
            if lock >= 0:
                shown[i] = self._task.parts[lock][counts[lock]]
                counts[lock] += 1
        first = text.opening(words)
        if first is not None and locks[first] == FREE:
            small = shown[first][:1].lower() + shown[first][1:]
            if small in self._lowered and text.capitalise(small) == shown[first]:
                shown[first] = small
        inner = (left != right or left == FREE for left, right in itertools.pairwise(locks))
        opens = self._task.opens or locks[0] == FREE
        return Sentence(tuple(shown), tuple(locks), (opens, *inner, self._task.closes and locks[-1] != ENDING))


def text_spans(words: Words, written: str) -> list[tuple[int, int]]:
    """Where each word stands in the text that it was read from."""
    places, at = [], 0
    for word in words:
        at = written.index(word, at)
        places.append((at, at + len(word)))
        at += len(word)
    return places


def _draw(options: _Options, rng: np.random.Generator) -> _Choice | None:
    level = rng.random()
    for part, log_prob in options.log_starts.items():
        level -= float(np.exp(log_prob))
        if level < 0:
            return _Choice(part)
    sums = np.cumsum(np.exp(options.log_tokens))
    if not sums[-1] > 0:
        return _Choice(next(iter(options.log_starts))) if options.log_starts else None
    return _Choice(None, int(np.searchsorted(sums, rng.random() * sums[-1], side="right").clip(0, len(sums) - 1)))


def _scripted(options: _Options, script: Iterator[_Choice]) -> _Choice | None:
    """The next choice of a script; None where it is impossible."""
    choice = next(script)
    log_prob = options.log_tokens[choice.token] if choice.part is None else options.log_starts.get(choice.part)
    return choice if log_prob is not None and log_prob > _IMPOSSIBLE else None


def _resampled(particles: Sequence[_Particle], rng: np.random.Generator) -> list[tuple[int, _Particle]]:
    """Particles to go on with, and which they were. Groups keep their size and the sum of their weights."""
    chosen: list[tuple[int, _Particle]] = []
    groups: dict[int, list[int]] = {}
    for i, particle in enumerate(particles):
        groups.setdefault(len(particle.held) + (particle.part is not None), []).append(i)
    for group in groups.values():
        log_weights = np.array([particles[i].log_weight for i in group])
        shares = np.exp(log_normalise(log_weights))
        if len(group) == 1 or 1 / float((shares**2).sum()) >= _RESAMPLE * len(group):
            chosen += [(i, particles[i]) for i in group]
            continue
        log_mean = log_sum(log_weights) - float(np.log(len(group)))
        points = (rng.random() + np.arange(len(group))) / len(group)
        for place in np.searchsorted(np.cumsum(shares), points).clip(0, len(group) - 1):
            copy = particles[group[int(place)]].copy()
            copy.log_weight = log_mean
            chosen.append((group[int(place)], copy))
    return sorted(chosen, key=lambda pair: pair[0])
