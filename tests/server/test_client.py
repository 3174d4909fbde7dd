"""The client, with a real server and a tiny pack."""

import subprocess
import sys

import pytest
from click.testing import CliRunner
from tests.server.serving import LONG, Served, eventually, serving

import redraft
from redraft.app.cli import cli
from redraft.models.pack import Pack
from redraft.server.api import ServerSettings


def test_a_client_writes_as_a_writer_does(server: Served, writer: redraft.Writer) -> None:
    client = server.client
    for words in (("dog", "sea"), (["dog", "sea"],)):
        assert (
            client.generate(*words, steps=8, seed=1).text == writer.generate(*words, steps=8, seed=1).text  # type: ignore[arg-type]
        )
    several = client.infill("The dog ___ .", num=2, steps=8, seed=1)
    assert [one.text for one in several] == [one.text for one in writer.infill("The dog ___ .", num=2, steps=8, seed=1)]
    assert client.generate("dog", recipe="gbs", seed=1).constraints_met
    assert "<mark>" in client.generate("dog", steps=2)._repr_html_()


def test_many_inputs_have_their_numbers(server: Served, writer: redraft.Writer) -> None:
    inputs = [
        redraft.Constraints(["dog", "run~"], order="any", ban=["old"], min_words=3, max_words=12, endings=["!"]),
        redraft.Constraints(template="The dog ___ ."),
        redraft.Constraints(["sea"]),
    ]
    settings = redraft.Settings(steps=8, seed=5, num=2)
    expected = writer.write_many(inputs, settings, numbers=[4, 5, 6])
    found = server.client.write_many(inputs, settings, numbers=[4, 5, 6])
    assert [[one.text for one in drafts] for drafts in found] == [[one.text for one in drafts] for drafts in expected]
    assert server.client.write(inputs[2], settings)[0].text == writer.write(inputs[2], settings)[0].text
    with pytest.raises(redraft.InputError, match="checkpoints"):
        server.client.write(inputs[2], redraft.Settings(checkpoints=(1,)))


def test_events_arrive_while_the_work_goes_on(server: Served) -> None:
    for event in server.client.stream("dog", steps=10**8):
        if event.name == "revision":
            break  # which stops the work
    assert server.client.generate("dog", steps=2).constraints_met
    *_, last = server.client.stream(template="The dog ___ .", steps=3, seed=1)
    assert last.name == "done"
    assert last.data["drafts"][0]["text"].startswith("The dog")


def test_a_client_waits_for_a_full_queue(tiny_pack: Pack) -> None:
    with serving(ServerSettings(str(tiny_pack.folder), most_waiting=1, time_limit=20)) as server:
        running = server.begin(time_limit=1.5)
        waiting = server.begin_waiting(LONG | {"time_limit": 0.1})
        eventually(lambda: server.metric("redraft_waiting") == 1)
        assert server.client.generate("dog", steps=2).constraints_met
        assert 'status="429"' in server.ask("GET", "/metrics").body.decode()
        running.close()
        waiting.close()


def test_errors_are_one_line(server: Served) -> None:
    with pytest.raises(redraft.ServerError, match="'dog' is banned and required"):
        server.client.generate("dog", ban=["dog"])
    with pytest.raises(redraft.ServerError, match="unknown field 'colour'"):
        list(server.client.stream("dog", colour="red"))
    with pytest.raises(redraft.ServerError, match="passes"):
        list(server.client.stream(template="The dog ___ .", lengths=[1], passes=1, steps=1))
    with pytest.raises(redraft.InputError, match="cannot be written as JSON"):
        server.client.generate("dog", ban={"dog"})
    for url in ("127.0.0.1:8000", "ftp://example.org", ""):
        with pytest.raises(redraft.InputError, match="must be a URL"):
            redraft.connect(url)
    with pytest.raises(redraft.ServerError, match=r"cannot reach http://127\.0\.0\.1:9: "):
        redraft.connect("http://127.0.0.1:9").recipes()
    with pytest.raises(redraft.ServerError, match="Not Found"):
        redraft.connect(f"{server.client.url}/v2").recipes()
    with pytest.raises(redraft.ServerError, match="does not answer as redraft serve does"):
        redraft.connect(f"{server.client.url}/openapi.json?").recipes()


def test_the_server_says_what_it_has(server: Served) -> None:
    assert "l-mcmc" in {one["name"] for one in server.client.recipes()}
    with pytest.raises(redraft.ServerError, match="has no classifier"):
        server.client.explain("The dog ran.")


def test_the_command_line_writes_with_a_server(server: Served, writer: redraft.Writer) -> None:
    def run(*arguments: str) -> str:
        result = CliRunner().invoke(cli, [*arguments, "--server", server.client.url])
        return result.stdout if result.exception is None else str(result.exception)

    options = ("--steps", "8", "--seed", "1")
    assert run("generate", "dog", "sea", *options).strip() == writer.generate("dog", "sea", steps=8, seed=1).text
    assert run("infill", "The dog ___ .", *options).strip() == writer.infill("The dog ___ .", steps=8, seed=1).text
    shown = run("generate", "dog", "--order", "any", "--ban", "old", "--prefer", "sea=2", "--json", "--trace", *options)
    assert '"trace"' in shown
    assert "prefer sea=2" in shown
    assert "nothing to write about" in run("generate")
    assert "one input" in run("generate", "--input", "words.txt")
    assert "do not go with --server" in run("generate", "dog", "--samples", "3")
    assert "add --json" in run("generate", "dog", "--trace")
    command = ["generate", "dog", "--min-words", "9", "--steps", "0", "--server", server.client.url]
    for more, status in (((), 0), (("--strict",), 3)):
        result = CliRunner().invoke(cli, [*command, *more])
        assert "not reached: at least 9 words" in result.stderr
        assert result.exit_code == status


def test_a_client_needs_no_heavy_library(server: Served) -> None:
    command = ["generate", "dog", "--steps", "2", "--server", server.client.url]
    script = f"import sys; from redraft.app.cli import cli; cli({command}, standalone_mode=False)"
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", script], capture_output=True, text=True, check=True
    )
    imported = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines()}
    assert "dog" in done.stdout.lower()
    assert "redraft.client" in imported
    assert not imported & {"torch", "numpy", "transformers", "rich.console", "fastapi", "redraft.sentence"}
