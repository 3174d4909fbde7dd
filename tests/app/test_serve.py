"""redraft serve as a process: its end, a port in use, who may reach it, a missing library."""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import redraft
from redraft.app.cli import cli
from redraft.errors import InputError, RedraftError
from redraft.extras import MissingExtraError
from redraft.models.pack import Pack
from redraft.server.run import check_access


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_the_shipped_pack_is_served(ending: signal.Signals) -> None:
    command = [sys.executable, "-m", "redraft", "serve", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ}) as process:
        assert process.stderr is not None
        try:
            line = process.stderr.readline()
            found = re.fullmatch(r"redraft: serving on (http://127\.0\.0\.1:\d+)\n", line)
            assert found, line
            client = redraft.connect(found[1])
            local = redraft.load(recipe="l-mcmc-c").generate("dog", "old park", steps=5, seed=1)
            assert client.generate("dog", "old park", steps=5, seed=1, recipe="l-mcmc-c").text == local.text
            shown = client.explain(local, ["dog"])
            assert shown["words"] == list(local.words)
            assert shown["probabilities"]["replace"][local.words.index("park")] == 0
            names = [event.name for event in client.stream("dog", steps=3, seed=1)]
            assert (names[0], names[-1], names.count("revision")) == ("queued", "done", 3)
        finally:
            process.send_signal(ending)
        assert process.stderr.read() == ""
        assert process.wait(60) == 0


def test_a_port_in_use_is_told(tiny_pack: Pack) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        result = CliRunner().invoke(cli, ["serve", "--port", port, "--pack", str(tiny_pack.folder)])
    assert isinstance(result.exception, InputError)
    assert f"port {port} is in use" in str(result.exception)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--host", "0.0.0.0"), "give a token"),
        (("--host", "::"), "give a token"),
        (("--host", "0.0.0.0", "--token", ""), "give a token"),
        (("--token", "naïve"), "letters, digits and marks of ASCII"),
        (("--token", " secret"), "without spaces"),
        (("--host", "no.such.host.invalid", "--token", "secret"), "cannot listen"),
        (("--time-limit", "0"), "--time-limit"),
        (("--pack", "nothing", "--port", "0"), "there is no pack 'nothing'"),
    ],
)
def test_a_server_that_cannot_be_is_refused(arguments: tuple[str, ...], reason: str) -> None:
    result = CliRunner().invoke(cli, ["serve", *arguments], env={"REDRAFT_TOKEN": None})
    assert isinstance(result.exception, RedraftError)
    assert reason in str(result.exception)


def test_a_token_opens_other_addresses() -> None:
    check_access("0.0.0.0", "secret")
    for host in ("127.0.0.1", "localhost", "::1"):
        check_access(host, None)


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = __import__("importlib.util").util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *rest: None if name == "fastapi" else plain(name))
    result = CliRunner().invoke(cli, ["serve"])
    assert isinstance(result.exception, MissingExtraError)
    assert str(result.exception) == "fastapi is not installed; run: pip install 'redraft[serve]'"


def test_other_commands_do_not_import_the_server(tmp_path: Path) -> None:
    script = "import sys, redraft.systems, redraft.app.generate; print({'fastapi', 'uvicorn'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", script], text=True).strip() == "set()"
