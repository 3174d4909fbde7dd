"""The routes of a server, and what they do with a request."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from redraft.assemble import opened
from redraft.drafts import Draft, WritingJob
from redraft.errors import InputError, RedraftError
from redraft.extras import extra
from redraft.models.pack import DEFAULT, available, open_pack
from redraft.records import object_of, record
from redraft.server.access import Gate
from redraft.server.batcher import Batcher, BusyError, ClosingError, Ticket
from redraft.server.events import Listener, event
from redraft.server.metrics import Counted, Metrics
from redraft.server.requests import (
    EXPLAIN,
    GENERATE,
    INFILL,
    MOST_BYTES,
    ExplainRequest,
    Field,
    Opening,
    WriteRequest,
    explain_request,
    schema,
    write_request,
)
from redraft.server.writers import Writers
from redraft.systems import listing
from redraft.version import VERSION

with extra("serve"):
    from fastapi import FastAPI, Request
    from starlette.concurrency import run_in_threadpool
    from starlette.exceptions import HTTPException
    from starlette.middleware.cors import CORSMiddleware
    from starlette.requests import ClientDisconnect
    from starlette.responses import JSONResponse, Response, StreamingResponse
    from starlette.types import Message, Receive, Scope, Send

_SLOW = 30.0  # seconds that a client may take to send a body, or to read what is sent at once
_RETRY = {"Retry-After": "1"}
_GONE = 499  # the client closed the connection
_EVENTS = "text/event-stream"
_Request = WriteRequest | ExplainRequest


@dataclass(frozen=True)
class ServerSettings:
    """What the operator of a server decides."""

    pack: str = DEFAULT
    token: str | None = None
    time_limit: float = 60.0  # seconds for a request, from when its work begins
    most_waiting: int = 64
    most_together: int = 32  # chains
    origins: tuple[str, ...] = ()  # of web pages that may use the server


class Service:
    """The models, the queue and the counters of a server."""

    def __init__(self, settings: ServerSettings):
        self.settings, self.writers = settings, Writers(settings.pack)
        self.metrics = Metrics(lambda: self.batcher.num_waiting)
        self.batcher: Batcher[_Request] = Batcher(
            self._work,
            most_waiting=settings.most_waiting,
            most_together=settings.most_together,
            observe=self.metrics.batches.observe,
        )

    def _work(self, tickets: Sequence[Ticket[_Request]]) -> list[dict[str, Any]]:
        """The answers to tickets with equal keys."""
        first = tickets[0].request
        if isinstance(first, ExplainRequest):
            return [self.writers.explain(first).to_dict()] * len(tickets)
        requests = [ticket.request for ticket in tickets if isinstance(ticket.request, WriteRequest)]
        jobs = [
            WritingJob(request.constraints, request.seed, request.number, ticket.watch)
            for ticket, request in zip(tickets, requests, strict=True)
        ]
        results = self.writers.write(first.opening, first.settings, jobs)
        self.metrics.drafts.inc(sum(map(len, results)))
        return [_answer(request, drafts) for request, drafts in zip(requests, results, strict=True)]

    def parse(self, given: Mapping[str, Any], fields: Mapping[str, Field]) -> WriteRequest:
        """A request to write that this server can do."""
        request = write_request(given, fields, self.settings.pack, self.settings.time_limit)
        self.writers.refuse(request)
        return request

    def parse_explain(self, given: Mapping[str, Any]) -> ExplainRequest:
        """A request to explain that this server can do."""
        request = explain_request(given, self.settings.pack)
        self.writers.refuse(request)
        return request

    async def finish(self, ticket: Ticket[_Request], http: Request) -> Response:
        """The answer to a ticket that was submitted. Work that nobody waits for any more is stopped."""
        answer = asyncio.wrap_future(ticket.answer)
        gone = asyncio.ensure_future(_disconnected(http))
        try:
            await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
            return _json(answer.result()) if answer.done() else Response(status_code=_GONE)
        finally:
            gone.cancel()
            self.batcher.withdraw(ticket)

    async def stream(self, request: WriteRequest) -> Response:
        """The events of a request. It is in the queue before the answer begins, so a full queue is a plain refusal."""
        listener = Listener()
        ticket: Ticket[_Request] = Ticket(request, listener.hear)
        num_ahead = self.batcher.num_waiting
        self.batcher.submit(ticket)
        ticket.answer.add_done_callback(lambda _: listener.end())

        async def events() -> AsyncIterator[str]:
            try:
                yield event("queued", {"ahead": num_ahead, **_about(request)})
                async for one in listener.events():
                    yield one
                yield _last(ticket)
            finally:
                self.batcher.withdraw(ticket)

        return _EventStream(events(), media_type=_EVENTS, headers={"Cache-Control": "no-store"})


def _last(ticket: Ticket[_Request]) -> str:
    """The last event of a ticket that is done."""
    error = ticket.answer.exception()
    if error is not None:
        return event("error", {"error": _line(error) if isinstance(error, RedraftError) else _INTERNAL})
    answer = ticket.answer.result()
    return event("done" if answer["drafts"] else "error", answer if answer["drafts"] else _UNFINISHED)


def _about(request: WriteRequest) -> dict[str, Any]:
    """What a client needs to ask for the same again, and words that are spelled in another way than they were given."""
    return {
        **request.about,
        "seed": request.seed,
        "number": request.number,
        "respelled": [list(pair) for pair in request.constraints.respelled],
    }


def _answer(request: WriteRequest, drafts: Sequence[Draft]) -> dict[str, Any]:
    shown = [
        {
            **record(draft, trace=request.trace),
            "locks": list(draft.locks),
            "unmet": request.constraints.unmet(draft.words),
        }
        for draft in drafts
    ]
    return {**_about(request), "drafts": shown}


_UNFINISHED = {"error": "no draft was finished within the time limit; allow more time"}
_INTERNAL = "an error of the server; its log says more"


def _json(answer: dict[str, Any]) -> Response:
    return JSONResponse(_UNFINISHED, 504) if answer.get("drafts") == [] else JSONResponse(answer)


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())


async def _disconnected(http: Request) -> None:
    while (await http.receive())["type"] != "http.disconnect":
        pass


class _EventStream(StreamingResponse):
    """A stream that gives up on a client that does not read."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_in_time(message: Message) -> None:
            async with asyncio.timeout(_SLOW):
                await send(message)

        await super().__call__(scope, receive, send_in_time)


async def _body(http: Request) -> dict[str, Any]:
    """The JSON object of a request."""
    kind = http.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":  # a page of another origin may send other types without asking
        raise HTTPException(415, "send JSON, with the header Content-Type: application/json")
    body = bytearray()
    try:
        async with asyncio.timeout(_SLOW):
            async for chunk in http.stream():
                body += chunk
                if len(body) > MOST_BYTES:
                    raise HTTPException(413, f"the body has more than {MOST_BYTES:,} bytes")
    except TimeoutError as error:
        raise HTTPException(408, f"the body did not come within {_SLOW:g} seconds") from error
    try:
        return object_of(body.decode())
    except UnicodeDecodeError as error:
        raise HTTPException(400, f"the body is not UTF-8 text ({error})") from error
    except InputError as error:
        raise HTTPException(400, f"the body is {error}") from error


def _documented(fields: Mapping[str, Field], *, streams: bool = False) -> dict[str, Any]:
    """The arguments of a route that takes JSON, for its documentation."""
    kinds = ("application/json", *([_EVENTS] if streams else []))
    errors = {
        400: "Not a JSON object",
        401: "No token",
        413: "Too long",
        422: "Cannot be done",
        429: "The queue is full",
    }
    return {
        "response_class": JSONResponse,
        "responses": {
            200: {"description": "What was asked for", "content": {kind: {} for kind in kinds}},
            **{status: {"description": why} for status, why in errors.items()},
        },
        "openapi_extra": {
            "requestBody": {"required": True, "content": {"application/json": {"schema": schema(fields)}}}
        },
    }


def make_app(settings: ServerSettings) -> FastAPI:
    """The application. Its ``state.service`` has the queue."""
    service = Service(settings)
    service.writers.get(Opening(settings.pack))  # so that the first request does not wait for the models

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.batcher.start()
        yield
        service.batcher.close()
        await run_in_threadpool(service.batcher.join)

    app = FastAPI(title="redraft", version=VERSION, lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.service = service
    _add_routes(app, service)
    _add_errors(app)
    paths = frozenset(app.openapi()["paths"])
    app.add_middleware(Gate, token=settings.token)
    app.add_middleware(Counted, metrics=service.metrics, paths=paths)
    if settings.origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=settings.origins, allow_methods=["*"], allow_headers=["*"], max_age=600
        )
    return app


def _add_routes(app: FastAPI, service: Service) -> None:
    async def write(http: Request, fields: Mapping[str, Field]) -> Response:
        request = await run_in_threadpool(service.parse, await _body(http), fields)
        if _EVENTS in http.headers.get("accept", ""):
            return await service.stream(request)
        ticket: Ticket[_Request] = Ticket(request)
        service.batcher.submit(ticket)
        return await service.finish(ticket, http)

    @app.post("/v1/generate", **_documented(GENERATE, streams=True))
    async def generate(http: Request) -> Response:
        """Write sentences that contain the given words and phrases."""
        return await write(http, GENERATE)

    @app.post("/v1/infill", **_documented(INFILL, streams=True))
    async def infill(http: Request) -> Response:
        """Fill the blanks of a template."""
        return await write(http, INFILL)

    @app.post("/v1/explain", **_documented(EXPLAIN))
    async def explain(http: Request) -> Response:
        """Show where and how the classifier would revise a draft."""
        ticket: Ticket[_Request] = Ticket(await run_in_threadpool(service.parse_explain, await _body(http)))
        service.batcher.submit(ticket)
        return await service.finish(ticket, http)

    @app.get("/v1/recipes")
    async def recipes() -> Response:
        """List the systems, and whether each is available with the pack of the server."""
        pack = await run_in_threadpool(opened, service.settings.pack)
        return JSONResponse({"recipes": await run_in_threadpool(listing, pack)})

    @app.get("/v1/packs")
    async def packs() -> Response:
        """List the packs by their names."""
        return JSONResponse({"packs": await run_in_threadpool(_packs)})

    @app.get("/healthz")
    async def healthz() -> Response:
        """Say that the server works."""
        return JSONResponse({"status": "ok", "version": VERSION})

    @app.get("/metrics")
    async def metrics() -> Response:
        """Show the counters in the format of Prometheus."""
        return Response(service.metrics.shown(), media_type="text/plain; version=0.0.4")


def _packs() -> list[dict[str, Any]]:
    packs = [open_pack(str(folder)) for folder in available()]
    return [
        {"name": pack.name, "fingerprint": pack.fingerprint, "parts": sorted(pack.parts), "card": pack.card}
        for pack in packs
    ]


def _add_errors(app: FastAPI) -> None:
    """Every error is a JSON object with one line."""

    @app.exception_handler(RedraftError)
    async def refused(_: Request, error: RedraftError) -> Response:
        if isinstance(error, BusyError | ClosingError):
            return JSONResponse({"error": _line(error)}, 429 if isinstance(error, BusyError) else 503, _RETRY)
        return JSONResponse({"error": _line(error)}, 422)

    @app.exception_handler(HTTPException)
    async def failed(_: Request, error: HTTPException) -> Response:
        return JSONResponse({"error": error.detail}, error.status_code, error.headers)

    @app.exception_handler(ClientDisconnect)
    async def gone(_: Request, error: ClientDisconnect) -> Response:
        return Response(status_code=_GONE)

    @app.exception_handler(Exception)
    async def broken(_: Request, error: Exception) -> Response:
        return JSONResponse({"error": _INTERNAL}, 500)
