"""A server of the tiny pack, and a writer of the same models to compare it with."""

from collections.abc import Iterator

import pytest
from tests.server.serving import Served, serving

import redraft
from redraft.models.pack import Pack
from redraft.server.api import ServerSettings


@pytest.fixture(scope="module")
def server(tiny_pack: Pack) -> Iterator[Served]:
    with serving(ServerSettings(str(tiny_pack.folder), time_limit=20)) as found:
        yield found


@pytest.fixture(scope="module")
def writer(tiny_pack: Pack) -> redraft.Writer:
    return redraft.load(tiny_pack)
