"""How a particle grows: what it may write next, with which probability, and what that does to its weight.

Between two words a particle goes on freely or starts a realisation of a given part, which is then written whole. A part
that was written freely counts as well, so every sentence has one way to hold its parts: each at its first place. The
weight of a particle is the target over the proposal, summed over the two ways to come to a part.

One case is not exact. With keywords in any order that overlap, such as "dog" and "dog house", a sentence may be read in
two ways; it then weighs too much.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from redraft import text
from redraft.draft.finished import SentenceReader
from redraft.draft.listed import ListedWords
from redraft.draft.particle import IMPOSSIBLE, Boundary, ChooseGrowth, GrowingParticle, GrowthOptions, TokenDist
from redraft.draft.pending import Pending
from redraft.draft.task import Drafted, DraftTask
from redraft.models.base import Words
from redraft.models.causal.infiller import Spelling, TokenTable
from redraft.models.causal.line import Tokens
from redraft.numerics import log_sum
from redraft.phrases import NumWords
from redraft.sentence import num_words
from redraft.stretches import reads_as

_EAGER = 0.3  # how likely a particle starts a part at most, where the model would not expect it
_LONG_GAP, _LATE = 8, 0.25  # after so many free words it becomes likelier, by this much when there are twice as many
_BY_MODEL = 0.9  # of the choice among the realisations of a part; the rest is equal for all
_SPARE = 10  # free words that the blanks of a template are expected to share, beside one for each
_SELDOM = math.exp(-4.0)
_STOPS = frozenset(".?!")  # a sentence has one, at its end


@lru_cache(maxsize=8)
def _listed_words(table: TokenTable, listed: frozenset[str]) -> ListedWords:
    return ListedWords(table, listed)


@lru_cache(maxsize=1 << 12)
def _words_of(written: str) -> Words:
    """The words of a text. Every step asks for those of the same texts several times."""
    return tuple(text.tokenise(written))


class _Spelled(NamedTuple):
    """A part at the end of a text, and the place where it was started."""

    part: int
    boundary: Boundary


class GrowthRules:
    """How the particles of one task grow.

    Particles draw where they start given parts, unless it ``starts_none``: then the parts are started by the caller.
    """

    def __init__(
        self,
        task: DraftTask,
        model: Spelling,
        lowered: frozenset[str],
        encouraged: Mapping[str, float],
        *,
        starts_none: bool = False,
    ):
        self._starts_none = starts_none
        self._task, self._model = task, model
        self._reader = SentenceReader(task, lowered)
        self._table: TokenTable = model.tokens
        banned = task.constraints.banned_words
        self._free = self._table.usable
        # A banned word may become another one, but seldom does.
        self._bias = np.ones(len(self._table))
        self._bias[[i for word in banned for i in self._table.single_words.get(word, ())]] = _SELDOM
        for word, weight in encouraged.items():
            self._bias[self._table.single_words.get(word.lower(), [])] *= math.exp(weight)
        self._is_biased = bool((self._bias != 1).any())
        self._endings = np.zeros(len(self._table), dtype=np.bool_)
        self._endings[[self._table.marks[e] for e in task.constraints.allowed_endings if e in self._table.marks]] = True
        self._ends_word = self._table.ends_word.copy()
        self._ends_word[self._table.end] = True
        self._ends_word_weights = self._ends_word.astype(np.float64)
        self._stops = [i for i, one in enumerate(self._table.texts) if one and one.strip()[:1] in _STOPS]
        self._periods = [i for i in self._stops if self._table.texts[i].startswith(".")]
        self._pending = Pending(task)
        listed = task.constraints.listed_words
        self._listed = None if listed is None else _listed_words(self._table, listed)
        num_gaps = task.pieces.count(None)
        self._long_gap = 1 + _SPARE / num_gaps if task.fills_blanks and num_gaps else _LONG_GAP
        self._first = [(model.spell((), one)[0], model.spell(("the",), one)[0]) for one in task.realisations]

    @property
    def num_parts(self) -> int:
        return len(self._task.parts)

    def starts(self, particle: GrowingParticle) -> list[int]:
        """The realisations that may follow the text. If the text ends in one already, that one is held there."""
        if particle.part is not None or self._spelled(particle) or self._is_banned(particle.text):
            return []
        return self._allowed(particle, particle.held, None)[1]

    def is_long(self, particle: GrowingParticle) -> bool:
        """Whether the present gap has more words than gaps usually have."""
        return self._num_in_gap(particle) > self._long_gap

    def spell(self, particle: GrowingParticle, realisation: int) -> Tokens:
        """The tokens of a realisation after the text."""
        return self._model.spell(_words_of(particle.text), self._task.realisations[realisation])

    def start(self, particle: GrowingParticle, realisation: int, tokens: Tokens, log_first: float) -> None:
        """Start a realisation with its first token. The rest waits in the queue."""
        particle.boundaries, particle.log_free = [Boundary(len(particle.text), {realisation: 0.0}, 0.0)], IMPOSSIBLE
        particle.part, particle.part_log_prob = realisation, -particle.log_prob
        particle.queue = tuple(tokens)
        self._write(particle, log_first)

    def write(self, particle: GrowingParticle, dist: TokenDist) -> None:
        """Add the next token of a part that was started."""
        self._write(particle, dist.log_prob(particle.queue[0]))

    def _write(self, particle: GrowingParticle, log_prob: float) -> None:
        token, *rest = particle.queue
        particle.tokens.append(token)
        particle.text += self._table.added_by(particle.tokens)
        particle.log_prob += log_prob
        particle.queue = tuple(rest)

    def advance(self, particle: GrowingParticle, dist: TokenDist, choose: ChooseGrowth) -> None:
        """Add a token. A particle that cannot go on loses its weight."""
        # What is being written may have a shorter form in it, at which a free writer would stand here.
        is_inside = bool(particle.queue) and self._task.has_forms
        spelled = self._read(particle) if is_inside else self._spelled(particle)
        free = self._options(particle, dist, spelled)
        if particle.queue:
            self._add(particle, particle.queue[0], dist, free)
            particle.queue = particle.queue[1:]
            return
        after_part = None if particle.part is None else self._options(particle, dist, spelled, is_part=True)
        choice = choose(free if after_part is None else after_part)
        if choice is None:
            particle.log_weight = IMPOSSIBLE
            return
        options = free
        if spelled is not None and (choice.part is not None or self._ends_word[choice.token]):
            after_part = after_part or self._options(particle, dist, spelled, is_part=True)
            options = self._hold(particle, spelled, free, after_part)
        particle.boundaries.append(Boundary(len(particle.text), options.log_starts, particle.log_free))
        if choice.part is None:
            particle.log_weight += dist.log_prob(choice.token) - options.log_token(choice.token)
            self._add(particle, choice.token, dist, options)
        else:
            particle.part, particle.part_log_prob = choice.part, -particle.log_prob
            first, *rest = self.spell(particle, choice.part)
            self._add(particle, first, dist, options)
            particle.queue = tuple(rest)

    def _add(self, particle: GrowingParticle, token: int, dist: TokenDist, options: GrowthOptions) -> None:
        particle.tokens.append(token)
        particle.text += self._table.added_by(particle.tokens)
        particle.log_prob += dist.log_prob(token)
        particle.log_free += options.log_token(token)

    def _spelled(self, particle: GrowingParticle) -> _Spelled | None:
        """The part that ends the text, if one does: because it was started, or because it came about freely."""
        if particle.queue or not particle.boundaries:
            return None
        if particle.part is not None:
            return _Spelled(particle.part, particle.boundaries[-1])
        return self._read(particle)

    def _read(self, particle: GrowingParticle) -> _Spelled | None:
        """The part that a reader of the text finds at its end."""
        starts = {boundary.at: boundary for boundary in particle.boundaries}
        words, places = self._words(particle)
        for realisation, first in self._endings_at(particle, words, places, len(words)):
            if places[first] in starts:
                return _Spelled(realisation, starts[places[first]])
        return None

    def _endings_at(
        self, particle: GrowingParticle, words: Words, places: Sequence[int], end: int
    ) -> Iterator[tuple[int, int]]:
        """Realisations that may be held and end before a word of the present gap, with their first words."""
        gap_at = particle.spans[-1][1] if particle.spans else 0
        for realisation in sorted(self._pending.realisations(particle.held), key=self._pending.rank.__getitem__):
            wanted = self._task.realisations[realisation]
            first = end - len(wanted)
            if first < 0 or places[first] < gap_at or wanted[-1].lower() != words[end - 1].lower():
                continue
            if self._task.fills_blanks:
                room, num = self._task.room[len(particle.held)], sum(gap_at <= one for one in places[:first])
                if num < max(room.least, room.most != 0):
                    continue  # the blank before it would hold too few words
            if reads_as(words, first, wanted):
                yield realisation, first

    def _is_read_otherwise(self, particle: GrowingParticle) -> bool:
        """Whether a reader of the text finds another part than the one that was started, or finds one before."""
        words, places = self._words(particle)
        gap_at = particle.spans[-1][1] if particle.spans else 0
        ends = range(sum(one < gap_at for one in places) + 1, len(words) + 1)
        found = ((one, end) for end in ends for one, _ in self._endings_at(particle, words, places, end))
        return next(found, None) != (particle.part, len(words))

    def _words(self, particle: GrowingParticle) -> tuple[Words, list[int]]:
        """The words of the text, and where each starts, the space before it counted."""
        words = _words_of(particle.text)
        places, at = [], 0
        for word in words:
            places.append(at)
            at = particle.text.index(word, at) + len(word)
        return words, places

    def _hold(
        self, particle: GrowingParticle, spelled: _Spelled, free: GrowthOptions, after_part: GrowthOptions
    ) -> GrowthOptions:
        """Count a part that is complete, and give the options after it: a mixture of the two ways to come here."""
        log_start = spelled.boundary.log_start(spelled.part)
        log_free = particle.log_free - spelled.boundary.log_free
        log_both = float(np.logaddexp(log_start, log_free))
        if particle.part is None:
            particle.log_weight += log_free - log_both
        elif self._task.has_forms and self._is_read_otherwise(particle):
            particle.log_weight = IMPOSSIBLE  # the sentence comes about in another way
        else:
            particle.log_weight += particle.log_prob + particle.part_log_prob - log_both
        first = spelled.boundary.at
        particle.held = (*particle.held, spelled.part)
        particle.spans = (*particle.spans, (first, len(particle.text)))
        particle.part, particle.boundaries, particle.log_free = None, [], 0.0
        return after_part.mixed(free, (log_start - log_both, log_free - log_both))

    def _options(
        self, particle: GrowingParticle, dist: TokenDist, spelled: _Spelled | None, *, is_part: bool = False
    ) -> GrowthOptions:
        """How a particle may go on. After a part nothing may follow that would make its last word longer.

        Where a part was spelled freely, a word's end means that it is held, and going on with the word that it is not.
        """
        if spelled is None:
            allowed, starts = self._allowed(particle, particle.held, None)
        else:
            allowed, starts = self._allowed(particle, (*particle.held, spelled.part), len(particle.text))
            allowed &= self._ends_word
            if _words_of(particle.text + ".")[-1:] != (".",):  # "Inc" would become the word "Inc."
                allowed[self._periods] = False
            if not is_part:
                longer, _ = self._allowed(particle, particle.held, None)
                allowed |= longer & ~self._ends_word
        if self._listed is not None:
            allowed &= self._listed.mask(particle.text)
        if self._is_banned(particle.text):
            allowed, starts = allowed & ~self._ends_word, []
        weights = self._weights(dist, allowed)
        mass = float(weights.sum())
        log_starts = self._log_starts(particle, dist, starts, is_forced=mass == 0)
        if mass == 0:
            return GrowthOptions(log_starts, weights, 0.0)
        log_any = log_sum(np.array(list(log_starts.values())))
        return GrowthOptions(log_starts, weights, math.log1p(-math.exp(log_any)) - math.log(mass))

    def _weights(self, dist: TokenDist, allowed: NDArray[np.bool_]) -> NDArray[np.floating]:
        """Probabilities of the allowed tokens, up to a factor."""
        weights = dist.probs * allowed
        if self._is_biased:
            weights *= self._bias
        if not weights.any():  # all are very unlikely, or none is allowed
            log_weights = np.where(allowed, dist.scores + np.log(self._bias), IMPOSSIBLE)
            top = log_weights.max()
            weights = np.exp(log_weights - top) if top > IMPOSSIBLE else weights
        return weights

    def _is_banned(self, written: str) -> bool:
        """Whether a text would end in a banned word, or one that is not listed, if its last word ended now."""
        if self._listed is not None and not self._listed.ends_word(written):
            return True
        banned = self._task.constraints.banned_words
        return bool(banned) and any(word.lower() in banned for word in _words_of(written)[-1:])

    def _log_starts(
        self, particle: GrowingParticle, dist: TokenDist, starts: Sequence[int], *, is_forced: bool
    ) -> dict[int, float]:
        """How likely each part is started: likelier where the model expects it, and where a gap has grown long."""
        if is_forced and starts:
            return dict.fromkeys(starts, -float(np.log(len(starts))))
        if self._starts_none or not starts:
            return {}
        ends = float(dist.probs @ self._ends_word_weights) if particle.text else 1.0
        log_ends = math.log(ends) if ends > 0 else IMPOSSIBLE
        late = _LATE * max(0.0, self._num_in_gap(particle) / self._long_gap - 1)
        by_part: dict[int, dict[int, float]] = {}
        for one in starts:
            log_first = dist.log_prob(self._first[one][bool(particle.text)])
            by_part.setdefault(self._task.part_of[one], {})[one] = log_first
        log_starts = {}
        for several in by_part.values():
            log_first = next(iter(several.values())) if len(several) == 1 else log_sum(np.array(list(several.values())))
            share = _EAGER * min(1.0, math.exp(log_first / 2) + late) / len(by_part)
            for one, log_share in zip(several, _log_shares(several, log_first), strict=True):
                log_starts[one] = float(np.log(share)) + log_share + log_ends
        return log_starts

    def _num_in_gap(self, particle: GrowingParticle) -> int:
        return num_words(_words_of(particle.text[particle.spans[-1][1] if particle.spans else 0 :]))

    def _allowed(
        self, particle: GrowingParticle, held: tuple[int, ...], gap_at: int | None
    ) -> tuple[NDArray[np.bool_], list[int]]:
        """Which tokens may come freely, and which parts may be started."""
        task, left = self._task, self._pending.realisations(held)
        if gap_at is None:
            gap_at = particle.spans[-1][1] if particle.spans else 0
        words = _words_of(particle.text)
        in_gap = _words_of(particle.text[gap_at:])
        none = np.zeros(len(self._table), dtype=np.bool_)
        required, gap = self._pending.required(held), task.room[len(held)] if task.fills_blanks else NumWords()
        if required:
            is_closed = not held and not task.opens
            num_left = sum(self._pending.shortest[part] for part in required)
            if task.fills_blanks:  # the words of each blank after this one
                num_left += sum(max(room.least, room.most != 0) for room in task.room[len(held) + 1 :])
            has_room = len(words) + num_left < task.limit and (gap.most is None or len(in_gap) < gap.most)
            may_start = is_closed or not task.fills_blanks or max(gap.least, 1) <= len(in_gap)
            free = none if is_closed else self._free.copy()
            if not has_room and may_start:
                free &= ~self._ends_word
            if _words_of(particle.text + ".")[-1:] == (".",):  # not an abbreviation: the sentence would end
                free[self._stops] = False
            is_over = gap.most is not None and len(in_gap) > gap.most
            return free, self._pending.fitting(left, len(words) + num_left) if may_start and not is_over else []
        allowed = self._free.copy() if task.closes else none
        starts = self._pending.fitting(left, len(words)) if task.closes else []
        fewest = self._fewest_at_end(gap)
        if in_gap and in_gap[-1] in _STOPS:
            allowed, starts = none, []
        elif task.fills_blanks and len(in_gap) + 1 < max(fewest, 2):
            allowed[self._stops] = False  # the blank would hold too few words
        is_full = gap.most is not None and len(in_gap) >= gap.most - task.constraints.has_ending
        if task.closes and (len(words) >= task.limit or is_full):
            allowed &= self._endings | ~self._ends_word
        allowed[self._table.end] = self._may_end(words, in_gap)
        return allowed, starts

    def _fewest_at_end(self, gap: NumWords) -> int:
        """The fewest words of the last gap, with the ending, if it must be filled."""
        least = max(gap.least, 1 + self._task.constraints.has_ending)
        return least if gap.most is None else min(least, gap.most)

    def _may_end(self, words: Sequence[str], in_gap: Sequence[str]) -> bool:
        constraints = self._task.constraints
        if constraints.has_ending and (not words or words[-1] not in constraints.allowed_endings):
            return False
        if self._task.fills_blanks and self._task.closes and len(in_gap) < self._fewest_at_end(self._task.room[-1]):
            return False
        return num_words(words) >= (constraints.min_words or 0)

    def finished(self, particle: GrowingParticle) -> list[Drafted]:
        """The draft of a particle that ended; none where its text does not read as the given words."""
        return self._reader.read(particle)


def _log_shares(log_firsts: Mapping[int, float], log_total: float) -> list[float]:
    """Log-probabilities of realisations of a part: mostly by what the model expects, a little for each."""
    if len(log_firsts) == 1:
        return [0.0]
    return [
        float(np.logaddexp(math.log(_BY_MODEL) + one - log_total, math.log((1 - _BY_MODEL) / len(log_firsts))))
        for one in log_firsts.values()
    ]
