"""Servers for tests: real ones, on a free port, in a thread."""

import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn

from redraft.client import Client, connect
from redraft.server.api import ServerSettings, make_app
from redraft.server.run import bound, make_server

LONG = {"keywords": ["dog"], "steps": 10**8}  # stopped by a time limit, or when the client goes


@dataclass(frozen=True)
class Answer:
    """What a server answered."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Served:
    """A server that runs."""

    port: int
    server: uvicorn.Server
    thread: threading.Thread

    @property
    def client(self) -> Client:
        return connect(f"http://127.0.0.1:{self.port}")

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        """Send a request. A body that is not bytes is sent as JSON."""
        sent = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if sent is not None:
            named.setdefault("Content-Type", "application/json")
        connection = self.connection()
        try:
            connection.request(method, path, sent, named)
            found = connection.getresponse()
            return Answer(found.status, found.headers, found.read())
        finally:
            connection.close()

    def write(self, **body: Any) -> Answer:
        return self.ask("POST", "/v1/generate", body)

    def metric(self, name: str) -> float:
        """The value of a counter."""
        lines = self.ask("GET", "/metrics").body.decode().splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.partition("{")[0].partition(" ")[0] == name)

    def begin_waiting(self, body: dict[str, Any]) -> http.client.HTTPConnection:
        """Send a request and do not wait for its answer."""
        connection = self.connection()
        connection.request("POST", "/v1/generate", json.dumps(body), {"Content-Type": "application/json"})
        return connection

    def begin(self, **body: Any) -> http.client.HTTPConnection:
        """Begin to stream a request, and return its connection once the work has begun."""
        connection = self.connection()
        connection.request(
            "POST",
            "/v1/generate",
            json.dumps({**LONG, **body}),
            {"Content-Type": "application/json", "Accept": "text/event-stream"},
        )
        lines = connection.getresponse()
        while not lines.readline().startswith(b"event: draft"):
            pass
        return connection


@contextmanager
def serving(settings: ServerSettings) -> Iterator[Served]:
    """Run a server until the end of the block."""
    with bound("127.0.0.1", 0) as listening:
        server = make_server(make_app(settings))
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        eventually(lambda: server.started)
        try:
            yield Served(listening.getsockname()[1], server, thread)
        finally:
            server.should_exit = True
            thread.join(60)
            assert not thread.is_alive()


def eventually(holds: Any, seconds: float = 30.0) -> None:
    """Wait until something holds."""
    ends = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < ends, "it did not happen"
        time.sleep(0.01)
