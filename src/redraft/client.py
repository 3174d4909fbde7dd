"""A client of ``redraft serve``. It needs no models, and imports neither torch nor numpy."""

import http.client
import json
import math
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from redraft.drafts import Draft, Settings
from redraft.errors import InputError, ServerError, reason

if TYPE_CHECKING:
    from redraft.language import Keyword
    from redraft.sentence import Constraints

_TRIES = 5  # where the queue of the server is full
_TOGETHER = 16  # requests that write_many has under way


class Event(NamedTuple):
    """Something that happened to a request: queued, draft, revision, rewrite, best or done, and its data."""

    name: str
    data: dict[str, Any]


class Client:
    """Writes with a server. ``redraft.connect(url)`` returns one.

    Examples:
        >>> client = redraft.connect("http://127.0.0.1:8000", token="secret")

    The methods are those of ``Writer``. Their other arguments are the fields of a request, such as ``recipe``,
    ``style`` or ``candidates``. A request that the server refuses raises a ``ServerError`` with the reason.
    """

    def __init__(self, url: str, *, token: str | None = None, timeout: float = 300.0):
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise InputError(f"the server must be a URL such as http://127.0.0.1:8000, not {url!r}")
        self.url, self._token, self._timeout = url.rstrip("/"), token, timeout

    def generate(self, *keywords: "Keyword | Sequence[Keyword]", num: int | None = None, **given: Any) -> Any:
        """Write a sentence that contains the given words or phrases.

        Examples:
            >>> client = redraft.connect("http://127.0.0.1:8000")
            >>> try:
            ...     draft = client.generate("dog", "old park", steps=5, seed=1)
            ... except redraft.ServerError:
            ...     print("no server is running")
            no server is running

        Returns the best ``Draft``; with ``num``, a list of that many.
        """
        return self._write("generate", {"keywords": _flat(keywords), **given}, num)

    def infill(self, template: str, *, num: int | None = None, **given: Any) -> Any:
        """Fill the blanks (``___``) of a template.

        Examples:
            >>> client = redraft.connect("http://127.0.0.1:8000")
            >>> try:
            ...     draft = client.infill("The mayor said ___ .", steps=5, seed=1)
            ... except redraft.ServerError:
            ...     print("no server is running")
            no server is running
        """
        return self._write("infill", {"template": template, **given}, num)

    def write(self, constraints: "Constraints", settings: Settings | None = None, **given: Any) -> list[Draft]:
        """Write ``settings.num`` different drafts for one input, best first.

        Examples:
            >>> client = redraft.connect("http://127.0.0.1:8000")
            >>> words = redraft.Constraints(["dog", "ball"], order="any")
            >>> try:
            ...     drafts = client.write(words, redraft.Settings(num=2, seed=7))
            ... except redraft.ServerError:
            ...     print("no server is running")
            no server is running
        """
        return self.write_many([constraints], settings, **given)[0]

    def write_many(
        self,
        inputs: "Sequence[Constraints]",
        settings: Settings | None = None,
        *,
        numbers: Sequence[int] | None = None,
        **given: Any,
    ) -> list[list[Draft]]:
        """Write drafts for several inputs. The server puts them together.

        Examples:
            >>> redraft.connect("http://127.0.0.1:8000").write_many([])
            []

        An input's drafts depend on the seed and on its number, by default its index.
        """
        common = {**_settings(settings or Settings()), **given}
        bodies = [
            (_route(constraints), {**_constraints(constraints), **common, "number": number})
            for number, constraints in zip(numbers or range(len(inputs)), inputs, strict=True)
        ]
        with ThreadPoolExecutor(_TOGETHER, "redraft-client") as pool:
            answers = list(pool.map(lambda one: self.post(*one), bodies))
        return [self._drafts(answer) for answer in answers]

    def stream(
        self, *keywords: "Keyword | Sequence[Keyword]", template: str | None = None, **given: Any
    ) -> Iterator[Event]:
        """Write, and yield what happens as it happens. The last event, done, has the drafts.

        Examples:
            >>> client = redraft.connect("http://127.0.0.1:8000")
            >>> try:
            ...     for event in client.stream("dog", "ball", seed=1):
            ...         print(event.name, event.data.get("text"))
            ... except redraft.ServerError:
            ...     print("no server is running")
            no server is running

        Leaving the loop early stops the work.
        """
        what = {"keywords": _flat(keywords)} if template is None else {"template": template}
        request = self._request("generate" if template is None else "infill", {**what, **given})
        request.add_header("Accept", "text/event-stream")
        with self._opened(request) as answer:
            for event in _events(answer):
                if event.name == "error":
                    raise ServerError(str(event.data["error"]))
                yield event

    def explain(self, draft: Draft | str, keywords: Sequence[str] = ()) -> dict[str, Any]:
        """Return where and how the classifier would revise a draft, as a JSON object.

        Examples:
            >>> client = redraft.connect("http://127.0.0.1:8000")
            >>> try:
            ...     explanation = client.explain("The dog was the the park.", keywords=["dog"])
            ... except redraft.ServerError:
            ...     print("no server is running")
            no server is running
        """
        text = " ".join(draft.words) if isinstance(draft, Draft) else draft
        locked = draft.locked_words if isinstance(draft, Draft) else ()
        return self.post("explain", {"text": text, "keywords": [*locked, *keywords]})

    def recipes(self) -> list[dict[str, Any]]:
        """List the systems of the server, and whether each is available.

        Examples:
            >>> client = redraft.connect("http://127.0.0.1:8000")
            >>> try:
            ...     names = [one["name"] for one in client.recipes() if one["available"]]
            ... except redraft.ServerError:
            ...     print("no server is running")
            no server is running
        """
        return self._part(self._answer(self._request("recipes")), "recipes")

    def post(self, route: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a request as a JSON object. A full queue is tried again.

        Examples:
            >>> client = redraft.connect("http://127.0.0.1:8000")
            >>> try:
            ...     answer = client.post("generate", {"keywords": ["dog"], "trace": True})
            ... except redraft.ServerError:
            ...     print("no server is running")
            no server is running
        """
        return self._answer(self._request(route, body))

    def _write(self, route: str, given: Mapping[str, Any], num: int | None) -> Draft | list[Draft]:
        drafts = self._drafts(self.post(route, {**given, "num": num}))
        return drafts[0] if num is None else drafts

    def _drafts(self, answer: Mapping[str, Any]) -> list[Draft]:
        return [Draft.of(one) for one in self._part(answer, "drafts")]

    def _part(self, answer: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
        """A list of an answer, which only a server of another kind lacks."""
        if not isinstance(answer, Mapping) or not isinstance(answer.get(name), list):
            raise ServerError(self._other)
        found: list[dict[str, Any]] = answer[name]
        return found

    @property
    def _other(self) -> str:
        return f"{self.url} does not answer as redraft serve does"

    def _request(self, route: str, body: Mapping[str, Any] | None = None) -> urllib.request.Request:
        headers = {"Content-Type": "application/json"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        try:
            data = None if body is None else json.dumps(body, allow_nan=False).encode()
        except (TypeError, ValueError) as error:
            raise InputError(f"the request cannot be written as JSON: {reason(error)}") from error
        return urllib.request.Request(f"{self.url}/v1/{route}", data, headers)

    def _answer(self, request: urllib.request.Request) -> dict[str, Any]:
        with self._opened(request) as answer:
            try:
                found: dict[str, Any] = json.load(answer)
            except ValueError as error:
                raise ServerError(self._other) from error
        return found

    @contextmanager
    def _opened(self, request: urllib.request.Request) -> Iterator[http.client.HTTPResponse]:
        """The answer to a request. What the server says of an error becomes the error."""
        try:
            with self._tried(request) as answer:
                yield answer
        except urllib.error.HTTPError as error:
            with error:
                raise ServerError(_said(error)) from error
        except urllib.error.URLError as error:
            why = getattr(error.reason, "strerror", None) or error.reason
            raise ServerError(f"cannot reach {self.url}: {why}") from error
        except (OSError, http.client.HTTPException) as error:
            raise ServerError(f"the connection to {self.url} broke: {reason(error)}") from error

    def _tried(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        """The answer to a request, which is sent again where the server asks for it."""
        for left in reversed(range(_TRIES)):
            try:
                answer: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=self._timeout)
                return answer
            except urllib.error.HTTPError as error:
                seconds = error.headers.get("Retry-After", "")
                if error.code != 429 or not left or not seconds.isdigit():
                    raise
                error.close()
                time.sleep(int(seconds))
        raise AssertionError("unreachable")


def connect(url: str, *, token: str | None = None, timeout: float = 300.0) -> Client:
    """Return a client of the server at a URL. Nothing is sent yet.

    Examples:
        >>> client = redraft.connect("http://127.0.0.1:8000")
        >>> client.url
        'http://127.0.0.1:8000'
    """
    return Client(url, token=token, timeout=timeout)


def _said(error: urllib.error.HTTPError) -> str:
    """What a server says of an error."""
    try:
        return str(json.load(error)["error"])
    except (ValueError, KeyError, TypeError):
        return f"the server answers {error.code} {error.reason}"


def _events(lines: Iterator[bytes] | http.client.HTTPResponse) -> Iterator[Event]:
    """The events of a stream."""
    name = ""
    for line in lines:
        kind, _, value = line.decode().rstrip("\n").partition(": ")
        if kind == "event":
            name = value
        elif kind == "data":
            yield Event(name, json.loads(value))


def _flat(keywords: Sequence[Any]) -> list[Any]:
    """Keywords that were given one by one, in lists, or both ways."""
    return [one for given in keywords for one in ([given] if isinstance(given, str | Mapping) else given)]


def _route(constraints: "Constraints") -> str:
    return "generate" if constraints.template is None else "infill"


def _constraints(constraints: "Constraints") -> dict[str, Any]:
    """Constraints as the fields of a request."""
    given = {name: getattr(constraints, name) for name in ("ban", "endings", "allow", "min_words", "max_words")}
    if constraints.template is None:
        given |= {"keywords": constraints.keywords, "order": constraints.order.value}
    else:
        given |= {"template": constraints.template, "lengths": constraints.lengths}
    return {name: value for name, value in given.items() if value not in (None, 0)}


def _settings(settings: Settings) -> dict[str, Any]:
    """Settings as the fields of a request. Checkpoints are not among them."""
    if settings.checkpoints:
        raise InputError("a server keeps no checkpoints; leave them out")
    found = {one.name: getattr(settings, one.name) for one in fields(settings) if one.name != "checkpoints"}
    return {name: value for name, value in found.items() if value not in (None, math.inf)}
