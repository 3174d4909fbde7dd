"""Running a server: its address, its signals and its end."""

import errno
import signal
import socket
from collections.abc import Callable
from types import FrameType

from redraft.errors import InputError
from redraft.extras import extra
from redraft.server.access import is_loopback
from redraft.server.api import ServerSettings, Service, make_app

with extra("serve"):
    import uvicorn
    from fastapi import FastAPI

_MOST_CONNECTIONS = 512
_GRACE = 5.0  # seconds beyond the time limit, in which the last answers are sent


class _Server(uvicorn.Server):
    """Ends on SIGINT and SIGTERM with status 0, after what runs is finished; a second signal does not wait."""

    def __init__(self, config: uvicorn.Config, service: Service):
        super().__init__(config)
        self._service = service

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.batcher.close()
        await super().shutdown(sockets)


def check_access(host: str, token: str | None) -> None:
    """Refuse an address that others reach without a token, and a token that no header can hold."""
    if token is not None and not (token.isascii() and token.isprintable() and token.strip() == token and token):
        raise InputError("the token must be letters, digits and marks of ASCII, without spaces at its ends")
    if token is None and not is_loopback(host):
        raise InputError(f"{host} is reached from other machines; give a token: --token or REDRAFT_TOKEN")


def serve(settings: ServerSettings, host: str, port: int, say: Callable[[str], None]) -> None:
    """Serve until a signal. The address is taken before the models are loaded, and told once they are."""
    check_access(host, settings.token)
    with bound(host, port) as listening:
        app = make_app(settings)
        server = make_server(app)
        listening.listen()
        shown = f"[{host}]" if ":" in host else host
        say(f"serving on http://{shown}:{listening.getsockname()[1]}")
        if not is_loopback(host):
            say("other machines reach this address; whoever has the token can write with the models of this server")
        server.run([listening])


def make_server(app: FastAPI) -> uvicorn.Server:
    """The server of an application of ``make_app``."""
    service: Service = app.state.service
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=int(service.settings.time_limit + _GRACE),
    )
    return _Server(config, service)


def bound(host: str, port: int) -> socket.socket:
    """A socket with an address. A port that is in use is an error that says so."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, kind, protocol)
    except OSError as error:
        raise InputError(f"cannot listen on {host}: {error.strerror}") from error
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
    except OSError as error:
        found.close()
        if error.errno == errno.EADDRINUSE:
            raise InputError(f"port {port} is in use; choose another one with --port") from error
        raise InputError(f"cannot listen on {host}, port {port}: {error.strerror}") from error
    return found
