"""What a writer returns, a ``Draft``, and how long it works on it, the ``Settings``."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, Self

from redraft import checks, text
from redraft.errors import InputError

if TYPE_CHECKING:  # a client of a server has drafts without torch and numpy
    from redraft.revise.rewrite import Rewrite
    from redraft.sampler import Revision
    from redraft.sentence import Constraints, Sentence

_MOST_CHAINS = 1000  # more have too few steps within any time that somebody waits


@dataclass(frozen=True)
class Settings:
    """How long to work on an input, and how many drafts to return.

    Examples:
        >>> settings = redraft.Settings(steps=5, num=2, seed=7)
        >>> drafts = writer.write(redraft.Constraints(["dog", "ball"]), settings)
        >>> len(drafts)
        2

    Attributes:
        steps: Number of revisions to try; None for the default of the recipe.
        chains: Number of chains; at least one per draft is run.
        num: Number of different drafts to return.
        spares: Number of next best drafts to return after them, where there are as many. They take no more chains; the
            best draft is the same without them.
        seed: The same seed gives the same drafts. None draws a seed, which is part of the draft's signature.
        time_limit: Seconds per input; inputs that are written together share the total.
        checkpoints: Steps after which the best draft so far is kept as well. They do not change the draws.
        until_settled: End a chain once its draft is complete and the classifier would copy every word of it.
        passes: Number of passes over the blanks, instead of steps. A pass is as many steps as words are missing, so the
            input must have ``lengths``. Nothing else about the lengths is used.
    """

    steps: int | None = None
    chains: int = 1
    num: int = 1
    seed: int | None = None
    time_limit: float | None = None
    checkpoints: tuple[int, ...] = ()
    until_settled: bool = False
    passes: int | None = None
    spares: int = 0

    def __post_init__(self) -> None:
        if self.steps is not None:
            checks.check_count("steps", self.steps, 0)
        if self.passes is not None:
            checks.check_count("passes", self.passes, 0)
            if self.steps is not None:
                raise InputError("give a number of steps or of passes, not both")
        checks.check_count("chains", self.chains, 1, most=_MOST_CHAINS)
        checks.check_count("num", self.num, 1, most=_MOST_CHAINS)
        checks.check_count("spares", self.spares, 0, most=_MOST_CHAINS)
        if self.seed is not None:
            checks.check_seed(self.seed)
        if self.time_limit is not None:
            checks.check_positive("the time limit in seconds", self.time_limit, most=math.inf)
        checks.counts("checkpoints", self.checkpoints, 0)
        checks.check_flag("until_settled", self.until_settled)

    @property
    def num_chains(self) -> int:
        """Number of chains to run: at least one per draft."""
        return max(self.chains, self.num)

    @property
    def num_drafts(self) -> int:
        """Number of drafts to return, spares included."""
        return self.num + self.spares

    @property
    def signed_drafts(self) -> dict[str, int]:
        """What signatures say about the number of drafts."""
        return {**({"drafts": self.num} if self.num > 1 else {}), **({"spares": self.spares} if self.spares else {})}


def refuse_passes(settings: Settings, recipe: str) -> None:
    """Refuse a number of passes for a recipe that makes none."""
    if settings.passes is not None:
        raise InputError(
            f"recipe {recipe} makes no passes over blanks; recipes that do: l-mcmc-c, bayesian-mcmc, tigs-flm"
        )


@dataclass(frozen=True)
class Earlier:
    """The best draft of a chain after fewer steps."""

    steps: int
    text: str
    nll: float


@dataclass(frozen=True)
class Particle:
    """A sentence that the infiller wrote, with its NLL per word given the constraints and its normalised weight."""

    text: str
    nll: float
    weight: float


@dataclass(frozen=True)
class Draft:
    """A finished sentence. ``str(draft)`` is its text, and a notebook shows it with its keywords marked.

    Examples:
        >>> draft = writer.generate("dog", "ball", steps=5, seed=1)
        >>> draft.constraints_met
        True
        >>> "ball" in draft.words
        True
        >>> draft.signature.endswith("seed:1")
        True

    Attributes:
        text: The sentence in natural spelling and spacing.
        words: Its words; punctuation marks are words of their own.
        nll: Negative log-likelihood per word under the target; lower is better.
        steps: Number of steps of the chain that found it.
        seconds: Time per input.
        constraints_met: Whether every constraint is met.
        signature: Version, models, settings and seed: everything that is needed to reproduce the draft.
        trace: The revisions of the chain, starting from ``start``.
        start: The sentence that the chain started from.
        earlier: The best drafts at the checkpoints of the settings.
        particles: The other sentences that the infiller wrote.
        rewrites: The stretches that the infiller tried to rewrite.
        locks: For each word, the index of the keyword or known part that it belongs to; negative for free words.
    """

    text: str
    words: tuple[str, ...]
    nll: float
    steps: int
    seconds: float
    constraints_met: bool
    signature: str
    trace: "tuple[Revision, ...]" = field(default=(), repr=False)
    start: "Sentence | None" = field(default=None, repr=False)
    earlier: tuple[Earlier, ...] = field(default=(), repr=False)
    particles: tuple[Particle, ...] = field(default=(), repr=False)
    rewrites: "tuple[Rewrite, ...]" = field(default=(), repr=False)
    locks: tuple[int, ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        return self.text

    @property
    def locked_words(self) -> tuple[str, ...]:
        """The different words that a keyword or a known part holds."""
        held = (word for word, lock in zip(self.words, self.locks, strict=False) if lock >= 0)
        return tuple(dict.fromkeys(held))

    def to_dict(self, *, trace: bool = False) -> dict[str, Any]:
        """Convert the draft to a JSON object; with ``trace``, including its start, particles and revisions.

        Examples:
            >>> import json
            >>> draft = writer.generate("dog", steps=5, seed=1)
            >>> list(draft.to_dict())
            ['text', 'words', 'nll', 'steps', 'seconds', 'constraints_met', 'signature']
            >>> line = json.dumps(draft.to_dict(trace=True))
        """
        result: dict[str, Any] = {
            "text": self.text,
            "words": list(self.words),
            "nll": _rounded(self.nll),
            "steps": self.steps,
            "seconds": round(self.seconds, 3),
            "constraints_met": self.constraints_met,
            "signature": self.signature,
        }
        if self.earlier:
            result["earlier"] = [{"steps": e.steps, "text": e.text, "nll": _rounded(e.nll)} for e in self.earlier]
        if trace and self.start is not None:
            start = self.start
            result["start"] = {
                "words": list(start.words),
                "locks": list(start.locks),
                "open_gaps": list(start.open_gaps),
            }
        if trace and self.particles:
            result["particles"] = [
                {"text": one.text, "nll": _rounded(one.nll), "weight": _rounded(one.weight)} for one in self.particles
            ]
        if trace and self.rewrites:
            result["rewrites"] = [rewrite_record(one) for one in self.rewrites]
        if trace:
            result["trace"] = [revision_record(one) for one in self.trace]
        return result

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Make a draft from its JSON object. Its start, particles and revisions are left out.

        Examples:
            >>> draft = writer.generate("dog", steps=5, seed=1)
            >>> redraft.Draft.of(draft.to_dict()).text == draft.text
            True
        """
        return cls(
            text=given["text"],
            words=tuple(given["words"]),
            nll=math.inf if given["nll"] is None else given["nll"],
            steps=given["steps"],
            seconds=given["seconds"],
            constraints_met=given["constraints_met"],
            signature=given["signature"],
            locks=tuple(given.get("locks", ())),
        )

    def _repr_html_(self) -> str:
        """Show the draft in a notebook: keywords marked, accepted revisions and rewrites below."""
        marked = {i for i, lock in enumerate(self._shown_locks) if lock >= 0}
        met = "" if self.constraints_met else " <em>(constraints not met)</em>"
        shown = f"<p>{_marked(self.words, marked, 'mark')}{met}</p>"
        rows = [
            f"<tr><td>{step}</td><td>{one.action.value}</td><td>{one.nll:.2f}</td>"
            f"<td>{_marked(one.words, set() if one.new is None else {one.position}, 'b')}</td></tr>"
            for step, one in enumerate(self.trace, 1)
            if one.accepted
        ]
        rows += [
            f"<tr><td>{step}</td><td>rewrite</td><td></td>"
            f"<td><s>{escape(text.detokenise(one.old))}</s> <b>{escape(text.detokenise(one.new))}</b></td></tr>"
            for step, one in enumerate(self.rewrites, 1)
            if one.accepted
        ]
        if not rows:
            return shown
        head = "<tr><th>step</th><th>action</th><th>NLL</th><th>draft</th></tr>"
        summary = f"<summary>{len(rows)} revisions in {len(self.trace) + len(self.rewrites)} steps</summary>"
        return f"{shown}<details>{summary}<table>{head}{''.join(rows)}</table></details>"

    @property
    def _shown_locks(self) -> tuple[int, ...]:
        """The locks, or those of the start if the sentence is still the same."""
        if self.start is not None and not self.locks and self.start.words == self.words:
            return self.start.locks
        return self.locks


def _marked(words: tuple[str, ...], positions: set[int], tag: str) -> str:
    """The text of a sentence as HTML, with the words at some positions in a tag."""
    shown, parts, at = text.render(words), [], 0
    for i, (start, end) in enumerate(text.spans(text.surface(words))):
        if i in positions:
            parts += [escape(shown[at:start]), f"<{tag}>{escape(shown[start:end])}</{tag}>"]
            at = end
    return "".join([*parts, escape(shown[at:])])


def revision_record(revision: "Revision") -> dict[str, Any]:
    """A revision as a JSON object."""
    return {
        "action": revision.action.value,
        "position": revision.position,
        "old": revision.old,
        "new": revision.new,
        "log_ratio": _rounded(revision.log_ratio),
        "accepted": revision.accepted,
        "nll": _rounded(revision.nll),
    }


def rewrite_record(rewrite: "Rewrite") -> dict[str, Any]:
    """A rewrite as a JSON object."""
    return {
        "start": rewrite.start,
        "old": list(rewrite.old),
        "new": list(rewrite.new),
        "log_ratio": _rounded(rewrite.log_ratio),
        "accepted": rewrite.accepted,
    }


def _rounded(number: float) -> float | None:
    """Six decimals, or None for an infinite number, which JSON cannot express."""
    return round(number, 6) if math.isfinite(number) else None


Observer = Callable[[int, "Sentence", float], bool]  # step, best draft so far, its NLL; False stops the work


@dataclass(frozen=True)
class JobProgress:
    """What was done for one input so far.

    Attributes:
        step: Steps that were made.
        best: The best draft so far, if there is one yet, and its NLL per word.
        starts: The first draft of each chain, or the drafts of the infiller.
        traces: What each chain has done. They grow while the work goes on.
    """

    step: int = 0
    best: "Sentence | None" = None
    nll: float = math.inf
    starts: "tuple[Sentence, ...]" = ()
    traces: "tuple[Sequence[Revision | Rewrite], ...]" = ()


Watch = Callable[[JobProgress], bool]  # False stops the work on an input


def keep_on(progress: JobProgress) -> bool:
    """Watch without ever stopping the work."""
    return True


@dataclass(frozen=True)
class WritingJob:
    """An input with draws and an observer of its own. ``Writer.write_jobs`` writes several together."""

    constraints: "Constraints"
    seed: int
    number: int = 0
    watch: Watch = keep_on
