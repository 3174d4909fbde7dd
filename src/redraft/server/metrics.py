"""What a server counts, in the format of Prometheus."""

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from redraft.extras import extra

with extra("serve"):
    from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SECONDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_SIZES = (1, 2, 4, 8, 16, 32, 64)


class Metrics:
    """The counters of one server, in a registry of their own."""

    def __init__(self, num_waiting: Callable[[], float]):
        self._registry = CollectorRegistry()
        self.requests = Counter("redraft_requests", "Requests.", ("path", "status"), registry=self._registry)
        self.seconds = Histogram(
            "redraft_request_seconds", "Time of a request.", ("path",), buckets=_SECONDS, registry=self._registry
        )
        self.drafts = Counter("redraft_drafts", "Drafts that were written.", registry=self._registry)
        self.batches = Histogram(
            "redraft_batch_size", "Requests that were written together.", buckets=_SIZES, registry=self._registry
        )
        Gauge("redraft_waiting", "Requests in the queue.", registry=self._registry).set_function(num_waiting)

    def shown(self) -> bytes:
        """The page of /metrics."""
        return generate_latest(self._registry)


class Counted:
    """Counts every request and its time. Paths that do not exist count as "other"."""

    def __init__(self, app: "ASGIApp", metrics: Metrics, paths: frozenset[str]):
        self._app, self._metrics, self._paths = app, metrics, paths

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"] if scope["path"] in self._paths else "other"
        status = "gone"  # the client, before it had an answer
        started = time.monotonic()

        async def note(message: "Message") -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
            await send(message)

        passed: Callable[[Message], Awaitable[None]] = note
        try:
            await self._app(scope, receive, passed)
        finally:
            self._metrics.requests.labels(path, status).inc()
            self._metrics.seconds.labels(path).observe(time.monotonic() - started)
