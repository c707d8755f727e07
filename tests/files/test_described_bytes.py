# SPDX-License-Identifier: Apache-2.0
"""What a server says of a file comes with the bytes at one of its ends."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from distinput.files import mounts
from distinput.files.mounts import stored
from distinput.files.source import beginning, ending
from distinput.testing.range_server import RangeServer

pytest.importorskip("obstore", reason="obstore is not installed")

DATA = bytes(range(256)) * 4


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RangeServer]:
    (tmp_path / "a").write_bytes(DATA)
    (tmp_path / "empty").write_bytes(b"")
    with RangeServer(tmp_path) as made:
        yield made


@pytest.fixture
def url(server: RangeServer, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(mounts, "_MOUNTS", {})
    stored([f"{server.url}/a"], {"client_options": {"allow_http": True}}, "obstore")
    return server.url


def test_both_ends_come_with_the_size_and_the_version(server: RangeServer, url: str) -> None:
    for found, data in (
        (beginning(f"{url}/a", 0, 10), DATA[:10]),
        (beginning(f"{url}/a", 1000, 5000), DATA[1000:]),
        (ending(f"{url}/a", 10), DATA[-10:]),
        (ending(f"{url}/a", 5000), DATA),
    ):
        assert found is not None
        assert (found[0].size, bytes(found[1])) == (len(DATA), data)
        assert found[0].etag
    assert len(server.requests) == 4


@pytest.mark.parametrize("name", ["missing", "empty"])
def test_what_cannot_be_had_is_none(url: str, name: str) -> None:
    assert beginning(f"{url}/{name}", 0, 10) is None
    assert ending(f"{url}/{name}", 10) is None


def test_file_systems_without_such_requests_are_not_asked(server: RangeServer) -> None:
    assert ending(f"{server.url}/a", 10) is None  # fsspec's own
    assert server.requests == []
