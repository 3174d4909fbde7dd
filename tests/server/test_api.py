"""The server as its clients meet it: a real one, with a tiny pack."""

import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.server.serving import LONG, Served, eventually, serving

import redraft
from redraft.models.pack import Pack
from redraft.server import api
from redraft.server.api import ServerSettings


def test_a_server_writes_what_the_library_writes(server: Served, writer: redraft.Writer) -> None:
    answer = server.write(keywords=["dog", "old man"], steps=10, seed=3, num=2, id="x").json()
    expected = writer.generate("dog", "old man", steps=10, seed=3, num=2)
    assert [one["text"] for one in answer["drafts"]] == [one.text for one in expected]
    assert (answer["id"], answer["seed"], answer["number"]) == ("x", 3, 0)
    assert answer["drafts"][0]["unmet"] == []
    assert len(answer["drafts"][0]["locks"]) == len(answer["drafts"][0]["words"])
    filled = server.ask("POST", "/v1/infill", {"template": "The dog ___ .", "steps": 10, "seed": 3}).json()
    assert filled["drafts"][0]["text"] == writer.infill("The dog ___ .", steps=10, seed=3).text


def test_every_setting_is_taken(server: Served, writer: redraft.Writer) -> None:
    given: dict[str, Any] = {
        "keywords": [{"any_of": ["dog", "cat"]}, "sea"],
        "order": "any",
        "ban": ["old"],
        "endings": ["!"],
        "min_words": 4,
        "max_words": 12,
        "chains": 2,
        "steps": 6,
        "recipe": "l-mcmc",
        "temperature": 0.8,
        "candidates": 8,
        "kernel": "exact",
        "generator": "forward",
        "prefer": {"river": 1.5},
        "prefer_length": 6,
        "repetition_penalty": 0.5,
        "reference": "The sea.",
        "trace": True,
    }
    answer = server.write(**given).json()
    draft = answer["drafts"][0]
    assert draft["words"][-1] == "!"
    assert 0 < len(draft["trace"]) <= 6  # a step may find nothing to do
    again = server.write(**given, seed=answer["seed"], number=answer["number"]).json()
    assert again["drafts"][0]["text"] == draft["text"]
    for name in ("kernel:exact", "generator:forward", "candidates:8", "chains:2", "prefer river=1.5", "^1.25"):
        assert name in draft["signature"]


def test_requests_that_wait_are_written_together(server: Served) -> None:
    bodies = [{"keywords": [word], "steps": 9, "seed": seed} for seed, word in enumerate(["dog", "sea", "man"] * 3)]
    alone = [server.write(**body).json()["drafts"][0]["text"] for body in bodies]
    num_batches, num_requests = (server.metric(f"redraft_batch_size_{name}") for name in ("count", "sum"))
    connection = server.begin(time_limit=1.0)
    with ThreadPoolExecutor(len(bodies)) as pool:
        together = list(pool.map(lambda body: server.write(**body).json()["drafts"][0]["text"], bodies))
    connection.close()
    assert together == alone
    assert server.metric("redraft_batch_size_sum") - num_requests == len(bodies) + 1
    assert server.metric("redraft_batch_size_count") - num_batches == 2


def test_a_stream_tells_what_happens(server: Served) -> None:
    body = {"keywords": ["dog", "sea"], "steps": 8, "seed": 1, "num": 2, "trace": True}
    plain = server.write(**body).json()
    answer = server.ask("POST", "/v1/generate", body, Accept="text/event-stream")
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    events = [block.split("\n") for block in answer.body.decode().strip().split("\n\n")]
    named = [(kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for kind, data in events]
    names = [name for name, _ in named]
    assert names[0] == "queued"
    assert names[-1] == "done"
    assert names.count("draft") == 2
    assert names.count("revision") == 16
    done = named[-1][1]
    assert [one["text"] for one in done["drafts"]] == [one["text"] for one in plain["drafts"]]
    best = [data for name, data in named if name == "best"][-1]
    assert best["text"] == done["drafts"][0]["text"]
    told = [data for name, data in named if name == "revision"]
    trace_keys = ("action", "position", "old", "new", "log_ratio", "accepted", "nll")
    by_chain = [[{key: one[key] for key in trace_keys} for one in told if one["chain"] == chain] for chain in (0, 1)]
    assert all(one["trace"] in by_chain for one in done["drafts"])
    assert {one["chain"] for one in told} == {0, 1}


def test_a_full_queue_refuses(tiny_pack: Pack) -> None:
    with serving(ServerSettings(str(tiny_pack.folder), most_waiting=1, time_limit=20)) as server:
        first, waiting = server.begin(), server.begin_waiting(LONG)
        eventually(lambda: server.metric("redraft_waiting") == 1)
        for accept in ("application/json", "text/event-stream"):
            refused = server.ask("POST", "/v1/generate", LONG, Accept=accept)
            assert refused.status == 429
            assert int(refused.headers["Retry-After"]) >= 1
            assert "1 requests are waiting" in refused.json()["error"]
        waiting.close()
        eventually(lambda: server.metric("redraft_waiting") == 0)  # who goes away does not wait
        first.close()


@pytest.mark.parametrize("given", [{"time_limit": 0.3}, {"time_limit": 1e300}, {}])
def test_a_time_limit_gives_the_best_so_far(tiny_pack: Pack, given: dict[str, float]) -> None:
    with serving(ServerSettings(str(tiny_pack.folder), time_limit=0.6)) as server:
        started = time.monotonic()
        draft = server.write(**LONG, **given).json()["drafts"][0]
        assert time.monotonic() - started < 10
        assert draft["constraints_met"]
        assert draft["steps"] < 10**8


def test_work_stops_when_the_client_goes(server: Served) -> None:
    for headers in ({}, {"Accept": "text/event-stream"}):
        connection = server.connection()
        connection.request("POST", "/v1/generate", json.dumps(LONG), {"Content-Type": "application/json", **headers})
        if headers:
            connection.getresponse().readline()
        else:
            time.sleep(0.3)
        assert connection.sock is not None
        connection.sock.shutdown(socket.SHUT_RDWR)
        connection.close()
        started = time.monotonic()
        assert server.write(keywords=["dog"], steps=2).status == 200
        assert time.monotonic() - started < 10  # the time limit is 20 seconds


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (b"{nope", 400, "not a JSON object"),
        (b"[1]", 400, "not a JSON object"),
        (b'"dog"', 400, "not a JSON object"),
        (b"", 400, "not a JSON object"),
        (b"\xff", 400, "not UTF-8"),
        (b'{"keywords": ["\\ud800"]}', 400, "lone surrogate"),
        (b"[" * 60_000, 400, "not a JSON object"),
        (b" " * 300_000, 413, "more than 262,144 bytes"),
        ({}, 422, "nothing to write about"),
        ({"keywords": ["dog"], "colour": "red"}, 422, "unknown field 'colour'"),
        ({"template": "a ___"}, 422, "unknown field 'template'"),
        ({"keywords": "dog"}, 422, "keywords must be an array, not 'dog'"),
        ({"keywords": [1]}, 422, "keywords must be a list of strings"),
        ({"keywords": ["dog"], "ban": ["dog"]}, 422, "'dog' is banned and required"),
        ({"keywords": ["run~VREB"]}, 422, "is no part of speech"),
        ({"keywords": ["dog"] * 300}, 422, "more than the 200"),
        ({"keywords": ["dog"], "max_words": 10**6}, 422, "max_words must be at most 200"),
        ({"keywords": ["dog"], "min_words": 10**9}, 422, "more than the 200"),
        ({"keywords": ["dog"], "num": 10**6}, 422, "num must be at most 32"),
        ({"keywords": ["dog"], "steps": "9"}, 422, "steps must be a whole number, not '9'"),
        ({"keywords": ["dog"], "steps": True}, 422, "steps must be a whole number"),
        ({"keywords": ["dog"], "steps": -1}, 422, "steps must be at least 0"),
        ({"keywords": ["dog"], "seed": -1}, 422, "the seed must not be negative"),
        ({"keywords": ["dog"], "number": -1}, 422, "number must be at least 0"),
        ({"keywords": ["dog"], "trace": 1}, 422, "trace must be true or false"),
        ({"keywords": ["dog"], "recipe": "none"}, 422, "there is no recipe 'none'"),
        ({"keywords": ["dog"], "recipe": ["gbs"]}, 422, "recipe must be a string"),
        ({"keywords": ["dog"], "recipe": "flm"}, 422, "flm"),
        ({"keywords": ["dog"], "pack": "../../etc"}, 422, "there is no pack"),
        ({"keywords": ["dog"], "target": "/etc/passwd"}, 422, "this server has no target"),
        ({"keywords": ["dog"], "temperature": 0}, 422, "temperature must be a number above 0"),
        ({"keywords": ["dog"], "time_limit": 0}, 422, "time limit"),
        ({"keywords": ["dog"], "context": "x" * 3000}, 422, "context must be at most 2,000 characters"),
        ({"keywords": ["dog"], "prefer": {"sea": "much"}}, 422, "weight of 'sea' must be a number"),
        ({"keywords": ["dog"], "generator": "masked"}, 422, "masked"),
        ({"keywords": ["dog"], "style": "News"}, 422, "has no styles"),
        ({"keywords": ["dog"], "until_settled": True}, 422, "no classifier"),
    ],
    ids=lambda one: str(one)[:40],
)
def test_bad_input_has_one_line(server: Served, body: object, status: int, reason: str) -> None:
    answer = server.ask("POST", "/v1/generate", body)
    assert (answer.status, reason in answer.json()["error"]) == (status, True), answer.json()
    assert "\n" not in answer.json()["error"]


def test_lengths_have_a_limit(server: Served) -> None:
    body = {"template": "The dog ___ .", "lengths": [10**9], "recipe": "flm"}
    assert "more than the 200" in server.ask("POST", "/v1/infill", body).json()["error"]


def test_one_bad_request_does_not_fail_the_others(server: Served) -> None:
    """The recipe refuses only when it runs, so both requests are in its batch."""
    connection = server.begin(time_limit=1.0)
    bodies = [{"template": "The dog ___ .", "lengths": [2], "passes": 1}, {"template": "The dog ___ .", "passes": 1}]
    with ThreadPoolExecutor(2) as pool:
        good, bad = pool.map(lambda body: server.ask("POST", "/v1/infill", body), bodies)
    connection.close()
    assert (good.status, bad.status) == (200, 422)


def test_other_requests_are_refused(server: Served) -> None:
    assert server.ask("POST", "/v1/generate", b"{}", Content_Type="text/plain").status == 415
    assert server.ask("GET", "/v1/generate").status == 405
    nothing = server.ask("GET", "/nothing")
    assert (nothing.status, nothing.json()) == (404, {"error": "Not Found"})


def test_a_slow_client_is_given_up(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "_SLOW", 0.2)
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as client:
        head = ("POST /v1/generate HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json", "Content-Length: 50")
        client.sendall("\r\n".join([*head, "", "{"]).encode())
        assert b"408" in client.recv(200)


def test_a_token_is_asked_for(tiny_pack: Pack) -> None:
    with serving(ServerSettings(str(tiny_pack.folder), token="secret")) as server:
        body = {"keywords": ["dog"], "steps": 2}
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "secret"}):
            refused = server.ask("POST", "/v1/generate", body, **headers)
            assert refused.status == 401
            assert refused.headers["WWW-Authenticate"] == "Bearer"
        assert server.ask("GET", "/metrics").status == 401
        assert server.ask("POST", "/v1/generate", body, Authorization="Bearer secret").status == 200
        assert server.ask("GET", "/healthz").status == 200
        assert redraft.connect(server.client.url, token="secret").generate("dog", steps=2).constraints_met
        with pytest.raises(redraft.ServerError, match="wrong or missing token"):
            redraft.connect(server.client.url, token="other").generate("dog", steps=2)


def test_a_server_without_a_token_answers_to_its_own_name(server: Served) -> None:
    assert server.ask("GET", "/v1/packs", Host="example.org").status == 403
    assert server.ask("GET", "/v1/packs", Host=f"localhost:{server.port}").status == 200
    assert server.ask("GET", "/v1/packs", Host="[::1]:80").status == 200


def test_pages_of_other_sites_are_let_in_only_if_asked(server: Served, tiny_pack: Pack) -> None:
    ask = {"Origin": "https://example.org", "Access_Control_Request_Method": "POST"}
    assert "Access-Control-Allow-Origin" not in server.ask("OPTIONS", "/v1/generate", **ask).headers
    with serving(ServerSettings(str(tiny_pack.folder), origins=("https://example.org",), token="secret")) as open_one:
        found = open_one.ask("OPTIONS", "/v1/generate", **ask)
        assert (found.status, found.headers["Access-Control-Allow-Origin"]) == (200, "https://example.org")


def test_what_there_is_is_listed(server: Served) -> None:
    recipes = {one["name"]: one for one in server.ask("GET", "/v1/recipes").json()["recipes"]}
    assert recipes["l-mcmc"]["default"]
    assert not recipes["l-mcmc-c"]["available"]
    packs = {one["name"]: one for one in server.ask("GET", "/v1/packs").json()["packs"]}
    assert "folder" not in packs["english"]
    assert server.ask("GET", "/healthz").json()["status"] == "ok"
    properties = server.ask("GET", "/openapi.json").json()["paths"]["/v1/infill"]["post"]["requestBody"]["content"]
    assert {"template", "seed", "recipe"} <= set(properties["application/json"]["schema"]["properties"])


def test_explain_needs_a_classifier_and_words(server: Served) -> None:
    answer = server.ask("POST", "/v1/explain", {"text": "The dog was the the park."})
    assert (answer.status, "has no classifier" in answer.json()["error"]) == (422, True)
    shown = server.ask(
        "POST", "/v1/explain", {"text": "The dog was the the park.", "keywords": ["dog"], "pack": "english"}
    )
    assert shown.json()["words"] == ["The", "dog", "was", "the", "the", "park", "."]
    assert shown.json()["probabilities"]["replace"][1] == 0
    assert "give the draft" in server.ask("POST", "/v1/explain", {}).json()["error"]
    assert "more than 200" in server.ask("POST", "/v1/explain", {"text": "dog " * 201}).json()["error"]


def test_requests_are_counted(server: Served) -> None:
    before = server.metric("redraft_drafts_total")
    server.write(keywords=["dog"], steps=1, num=2)
    assert server.metric("redraft_drafts_total") == before + 2
    server.ask("GET", "/no/such/place")
    shown = server.ask("GET", "/metrics").body.decode()
    assert 'redraft_requests_total{path="other",status="404"}' in shown
    assert "/no/such/place" not in shown


def test_a_server_finishes_what_runs_and_turns_away_what_waits(tiny_pack: Pack) -> None:
    answers: dict[str, int] = {}
    with serving(ServerSettings(str(tiny_pack.folder), time_limit=20)) as server:

        def ask(name: str, **body: object) -> None:
            answers[name] = server.write(**{**LONG, **body}).status

        running = threading.Thread(target=ask, args=("running",), kwargs={"time_limit": 2.0})
        running.start()
        eventually(lambda: server.metric("redraft_batch_size_count") == 1)
        waiting = threading.Thread(target=ask, args=("waiting",))
        waiting.start()
        eventually(lambda: server.metric("redraft_waiting") == 1)
        server.server.should_exit = True
        running.join(30)
        waiting.join(30)
    assert answers == {"running": 200, "waiting": 503}
