"""Which parts of a task a particle may hold next, and which it must still hold."""

from collections.abc import Sequence

from redraft.draft.task import DraftTask
from redraft.models.base import Words


class Pending:
    """The parts that are left, by the realisations that a particle holds.

    ``shortest`` are the numbers of words of the shortest realisation of each part.
    """

    def __init__(self, task: DraftTask):
        self._task = task
        self._optional = frozenset(number for number, part in enumerate(task.parts) if part.is_optional)
        self.shortest = [min(map(len, part.realisations)) for part in task.parts]
        sizes = [len(part.realisations) for part in task.parts]
        # What is read where several realisations end: the longest, then one of the part with the fewest.
        order = sorted(
            range(len(task.realisations)), key=lambda i: (-len(task.realisations[i]), sizes[task.part_of[i]])
        )
        self.rank = {realisation: rank for rank, realisation in enumerate(order)}

    def realisations(self, held: tuple[int, ...]) -> list[int]:
        """The realisations that may be started next. Of equal ones, only the one that a reader would find."""
        parts = self._parts(held)
        left = [realisation for realisation, part in enumerate(self._task.part_of) if part in parts]
        if not self._task.has_forms:
            return left
        found: dict[Words, int] = {}
        for realisation in sorted(left, key=self.rank.__getitem__):
            found.setdefault(self._task.realisations[realisation], realisation)
        return sorted(found.values())

    def _parts(self, held: tuple[int, ...]) -> list[int]:
        """The parts that may be held next: all that are left, or those up to the next required one."""
        done = [self._task.part_of[one] for one in held]
        if self._task.any_order:
            return [part for part in range(len(self._task.parts)) if part not in done]
        left = range(done[-1] + 1 if done else 0, len(self._task.parts))
        num_optional = next((i for i, part in enumerate(left) if part not in self._optional), len(left))
        return list(left[: num_optional + 1])

    def required(self, held: tuple[int, ...]) -> list[int]:
        """The parts that must still be held."""
        done = [self._task.part_of[one] for one in held]
        first = 0 if self._task.any_order or not done else done[-1] + 1
        return [part for part in range(first, len(self._task.parts)) if part not in done and part not in self._optional]

    def fitting(self, realisations: Sequence[int], num_words: int) -> list[int]:
        """Realisations that leave room for the others. ``num_words`` counts the required parts at their shortest."""
        fitting = []
        for one in realisations:
            part = self._task.part_of[one]
            added = len(self._task.realisations[one]) - (0 if part in self._optional else self.shortest[part])
            if added == 0 or num_words + added <= self._task.limit:
                fitting.append(one)
        return fitting
