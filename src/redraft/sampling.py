"""Samples from the target distribution, drawn with an exact kernel."""

import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from redraft import checks, text
from redraft.errors import InputError
from redraft.sampler import Chain, Revision, Sampler, State
from redraft.sentence import FREE, Action, Constraints, Sentence

BURN_IN, THIN = 200, 10  # steps before the first draw, and between draws


@dataclass(frozen=True)
class Draw:
    """One sample: a state of a chain. ``log_target`` is known up to a constant that is the same for all draws."""

    sentence: Sentence
    log_prob: float
    log_target: float
    chain: int
    step: int

    @property
    def text(self) -> str:
        return self.sentence.text


@dataclass(frozen=True)
class Samples:
    """Samples from the target distribution.

    Examples:
        >>> sampler = redraft.load(recipe="l-mcmc")
        >>> words = redraft.Constraints(["dog"], max_words=6)
        >>> samples = sampler.sample(words, num=2, burn_in=2, thin=1, chains=2, seed=1)
        >>> len(samples.draws)
        4
        >>> all("dog" in draw.text.lower() for draw in samples.draws)
        True

    Attributes:
        draws: The draws, chain by chain.
        tried: Number of proposals of each action after burn-in.
        accepted: Number of accepted proposals of each action after burn-in.
        seed: The seed of the draws.
    """

    draws: tuple[Draw, ...]
    tried: dict[Action, int]
    accepted: dict[Action, int]
    seed: int

    def by_chain(self) -> list[list[Draw]]:
        """Group the draws by chain.

        Examples:
            >>> sampler = redraft.load(recipe="l-mcmc")
            >>> words = redraft.Constraints(["dog"], max_words=6)
            >>> samples = sampler.sample(words, num=2, burn_in=2, thin=1, chains=2, seed=1)
            >>> [len(draws) for draws in samples.by_chain()]
            [2, 2]
        """
        chains: dict[int, list[Draw]] = {}
        for draw in self.draws:
            chains.setdefault(draw.chain, []).append(draw)
        return list(chains.values())

    def fills(self, constraints: Constraints, top: int = 5) -> list[list[tuple[str, float]]]:
        """Return the most frequent fillings of each blank of a template, with their shares of the draws.

        Examples:
            >>> sampler = redraft.load(recipe="l-mcmc")
            >>> template = redraft.Constraints(template="The dog ___ .", max_words=6)
            >>> samples = sampler.sample(template, num=2, burn_in=2, thin=1, seed=1)
            >>> (blank,) = samples.fills(template)
            >>> 0 < blank[0][1] <= 1
            True
        """
        blanks = _blanks(constraints.start())
        counts = [Counter(text.detokenise(_filling(draw.sentence, blank)) for draw in self.draws) for blank in blanks]
        return [[(fill, count / len(self.draws)) for fill, count in one.most_common(top)] for one in counts]


def _blanks(start: Sentence) -> list[int]:
    """The blanks, each identified by the lock of the word before it; FREE for the start of the sentence."""
    return [start.locks[gap - 1] if gap else FREE for gap, is_open in enumerate(start.open_gaps) if is_open]


def _filling(sentence: Sentence, blank: int) -> list[str]:
    words, part = [], FREE
    for word, lock in zip(sentence.words, sentence.locks, strict=True):
        if lock != FREE:
            part = lock
        elif part == blank:
            words.append(word)
    return words


def sample(
    sampler: Sampler,
    constraints: Constraints,
    *,
    num: int,
    burn_in: int = BURN_IN,
    thin: int = THIN,
    chains: int = 1,
    seed: int | None = None,
    observe: Callable[[int], bool] | None = None,
) -> Samples:
    """Take ``num`` draws from each chain, one every ``thin`` steps, after ``burn_in`` steps that are discarded."""
    for name, value, least in (("num", num, 1), ("burn_in", burn_in, 0), ("thin", thin, 1), ("chains", chains, 1)):
        checks.check_count(name, value, least)
    if seed is not None:
        checks.check_seed(seed)
    if not sampler.is_exact:
        raise InputError("the paper's kernel is a search and cannot draw samples; use the exact kernel")
    seed = secrets.randbits(32) if seed is None else seed
    members = [Chain(constraints, np.random.default_rng((seed, 0, c))) for c in range(chains)]
    kept: list[list[Draw]] = [[] for _ in members]
    tried: Counter[Action] = Counter()
    accepted: Counter[Action] = Counter()
    for step, states, revisions in _steps(sampler, members, burn_in + num * thin):
        if observe and not observe(step):
            break
        if step <= burn_in:
            continue
        tried.update(revision.action for revision in revisions if revision)
        accepted.update(revision.action for revision in revisions if revision and revision.accepted)
        if (step - burn_in) % thin == 0:
            for c, state in enumerate(states):
                if state.log_target == -np.inf:
                    missing = ", ".join(constraints.unmet(state.sentence.words))
                    raise InputError(f"after {step} steps a chain has not reached {missing}; use more burn-in steps")
                kept[c].append(Draw(state.sentence, state.log_prob, state.log_target, c, step))
    return Samples(tuple(draw for one in kept for draw in one), dict(tried), dict(accepted), seed)


def _steps(
    sampler: Sampler, chains: Sequence[Chain], count: int
) -> Iterator[tuple[int, list[State], list[Revision | None]]]:
    states = sampler.init(chains)
    for step in range(1, count + 1):
        results = sampler.step(chains, states)
        states = [state for state, _ in results]
        yield step, states, [revision for _, revision in results]
