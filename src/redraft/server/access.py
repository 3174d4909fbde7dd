"""Who may use a server: whoever has the token, or without one, whoever is on this machine."""

import hmac
import ipaddress
from typing import TYPE_CHECKING

from redraft.extras import extra

with extra("serve"):
    from starlette.datastructures import Headers
    from starlette.responses import JSONResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_OPEN_PATHS = ("/healthz",)  # for the health check of a container, which has no token


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Gate:
    """Refuses requests without the token.

    A server without a token refuses names that are not those of this machine. Otherwise a web page could reach it in
    the browser of whoever runs it, under a name of the page's own.
    """

    def __init__(self, app: "ASGIApp", token: str | None):
        self._app, self._token = app, token

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] == "http" and scope["path"] not in _OPEN_PATHS:
            headers = Headers(scope=scope)
            if self._token is None:
                if not is_loopback(_name(headers.get("host", ""))):
                    refusal = {"error": f"this server is not {headers.get('host', '')!r}; it has no token"}
                    await JSONResponse(refusal, 403)(scope, receive, send)
                    return
            elif not self._has_token(headers.get("authorization", "")):
                refusal = {"error": "wrong or missing token; send the header Authorization: Bearer TOKEN"}
                await JSONResponse(refusal, 401, {"WWW-Authenticate": "Bearer"})(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _has_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), f"Bearer {self._token}".encode())


def _name(host: str) -> str:
    """The name in a Host header, without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]
