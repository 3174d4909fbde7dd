"""Server-sent events: what happens to a request, as it happens."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from redraft.drafts import JobProgress, revision_record, rewrite_record
from redraft.sampler import Revision
from redraft.sentence import Sentence

KEEP_ALIVE = 10.0  # seconds after which a comment tells proxies that the connection is in use
_MOST_UNSENT = 1000  # events; a client that reads slower misses revisions


def event(name: str, data: dict[str, Any]) -> str:
    """An event as it is sent."""
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False, allow_nan=False)}\n\n"


def _shown(sentence: Sentence) -> dict[str, Any]:
    return {"text": sentence.text, "words": list(sentence.words), "locks": list(sentence.locks)}


class Listener:
    """Turns the progress of a request into events. ``hear`` is called in another thread than the rest."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._unsent: asyncio.Queue[str | None] = asyncio.Queue()
        self._num_starts = 0
        self._num_told: dict[int, int] = {}  # what was told of each trace
        self._best: Sentence | None = None

    def hear(self, progress: JobProgress) -> None:
        """Send what is new: first drafts, revisions and a better draft."""
        for chain, start in enumerate(progress.starts[self._num_starts :], self._num_starts):
            self._send("draft", {"chain": chain, **_shown(start)})
        self._num_starts = max(self._num_starts, len(progress.starts))
        for chain, trace in enumerate(progress.traces):
            told = self._num_told.get(chain, 0)
            for step, change in enumerate(trace[told:], told + 1):
                if self._unsent.qsize() < _MOST_UNSENT:
                    about = revision_record(change) if isinstance(change, Revision) else rewrite_record(change)
                    name = "revision" if isinstance(change, Revision) else "rewrite"
                    self._send(name, {"chain": chain, "step": step, **about, "words": list(change.words)})
            self._num_told[chain] = len(trace)
        if progress.best is not None and progress.best != self._best:
            self._best = progress.best
            self._send("best", {"step": progress.step, "nll": round(progress.nll, 6), **_shown(progress.best)})

    def end(self) -> None:
        """End the events. Called in any thread."""
        self._put(None)

    def _send(self, name: str, data: dict[str, Any]) -> None:
        self._put(event(name, data))

    def _put(self, item: str | None) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._unsent.put_nowait, item)

    async def events(self) -> AsyncIterator[str]:
        """The events, until the end."""
        while True:
            try:
                async with asyncio.timeout(KEEP_ALIVE):
                    item = await self._unsent.get()
            except TimeoutError:
                yield ": at work\n\n"
                continue
            if item is None:
                return
            yield item
