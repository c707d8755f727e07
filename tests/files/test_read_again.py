# SPDX-License-Identifier: Apache-2.0
"""A remote file that was read to its end is read far ahead when it is opened again, and is the one that is there then."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.local import LocalFileSystem

import distinput as di
from distinput.errors import NotFoundError
from distinput.files import mounts, remote, source
from distinput.files.mounts import mount
from distinput.files.remote import RemoteStream
from distinput.testing import range_server
from distinput.testing.range_server import RangeServer

UNIT = 1 << 10
"""Stands for a megabyte."""


def content(word: bytes, size: int) -> bytes:
    return (word * (size // len(word) + 1))[: size - 1] + b"\n"


OLD = content(b"old line\n", 7 * UNIT)
NEW = {
    "longer": content(b"new line\n", 9 * UNIT),
    "shorter": content(b"new line\n", 3 * UNIT),
    "as long": content(b"new line\n", 7 * UNIT),
    "small": b"new line\n",
    "empty": b"",
}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a thousandth of the bytes."""
    monkeypatch.setattr(mounts, "_MOUNTS", {})
    monkeypatch.setattr(source, "_READ_ON", {})
    monkeypatch.setattr(source, "_BEGINNING_BYTES", UNIT)
    monkeypatch.setattr(remote, "_SMALL_BYTES", UNIT // 2)
    monkeypatch.setattr(remote, "PIECE_BYTES", 4 * UNIT)
    monkeypatch.setattr(remote, "_AHEAD_BYTES", 16 * UNIT)


@pytest.fixture(params=["fsspec", "obstore"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RangeServer]:
    pytest.importorskip("obstore" if request.param == "obstore" else "aiohttp")
    (tmp_path / "a").write_bytes(OLD)
    with RangeServer(tmp_path) as made:
        if request.param == "obstore":
            mount(f"{made.url}/", "obstore")
        yield made


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Where streams were read far ahead from."""
    starts: list[int] = []
    read_far = RemoteStream.read_far

    def noted(self: RemoteStream, start: int, first: int = 0) -> None:
        starts.append(start)
        read_far(self, start, first)

    monkeypatch.setattr(RemoteStream, "read_far", noted)
    return starts


def replace(folder: Path, data: bytes) -> None:
    (folder / "b").write_bytes(data)
    os.replace(folder / "b", folder / "a")


def lines(server: RangeServer) -> Any:
    return di.data.TextLineDataset(f"{server.url}/a")


def test_all_that_may_be_read_ahead_is_asked_for_at_once(server: RangeServer) -> None:
    wanted = OLD.splitlines()
    assert lines(server).to_list() == wanted
    assert sorted((a, b) for _, a, b in server.requests)[:2] == [(0, UNIT), (UNIT, 2 * UNIT)]
    server.reset()
    assert lines(server).to_list() == wanted
    assert sorted((a, b) for _, a, b in server.requests) == [(0, UNIT), (UNIT, 5 * UNIT), (5 * UNIT, 7 * UNIT)]


def test_it_is_read_on_from_a_place_within_it(server: RangeServer, far: list[int]) -> None:
    data, at = lines(server), 500
    wanted = data.to_list()
    with iter(data) as iterator:
        for _ in range(at):
            next(iterator)
        state = iterator.state()
    assert data.to_list() == wanted
    assert list(data.restore(state)) == wanted[at:]
    assert far[-1] > UNIT


def test_a_pass_that_looks_at_the_beginning_takes_that_back(server: RangeServer, far: list[int]) -> None:
    data = lines(server)
    data.to_list()
    assert not far
    for _ in range(3):
        assert data.take(1).to_list() == [b"old line"]
    assert far == [0]


@pytest.mark.parametrize("kind", NEW)
def test_what_was_replaced_is_read_as_it_is_now(server: RangeServer, kind: str) -> None:
    data = lines(server)
    data.to_list()
    replace(server.folder, NEW[kind])
    assert data.to_list() == NEW[kind].splitlines()


def test_what_is_gone_is_missing(server: RangeServer) -> None:
    data = lines(server)
    data.to_list()
    (server.folder / "a").unlink()
    with pytest.raises(NotFoundError, match="/a"):
        data.to_list()


@pytest.mark.parametrize("kind", NEW)
def test_where_answers_do_not_tell_the_version_the_size_is_asked_for(tmp_path: Path, far: list[int], kind: str) -> None:
    mount("lake://", LocalFileSystem())
    (tmp_path / "a").write_bytes(OLD)
    data = di.data.TextLineDataset(f"lake://{tmp_path}/a")
    assert data.to_list() == OLD.splitlines()
    replace(tmp_path, NEW[kind])
    assert data.to_list() == NEW[kind].splitlines()
    assert not far


@pytest.mark.parametrize("kind", NEW)
def test_a_version_that_only_the_answer_to_head_tells_is_not_believed(
    tmp_path: Path, far: list[int], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("aiohttp")
    send = range_server._Handler.send_header

    def without_version(self: Any, name: str, value: str) -> None:
        if self.command == "HEAD" or name not in ("ETag", "Last-Modified"):
            send(self, name, f"{value.partition('/')[0]}/*" if name == "Content-Range" else value)

    monkeypatch.setattr(range_server._Handler, "send_header", without_version)
    (tmp_path / "a").write_bytes(OLD)
    with RangeServer(tmp_path) as server:
        data = lines(server)
        assert data.to_list() == OLD.splitlines()
        replace(tmp_path, NEW[kind])
        assert data.to_list() == NEW[kind].splitlines()
    assert not far


def test_a_file_that_may_not_be_read_any_more_is_told_as_the_first_time(
    tmp_path: Path, far: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("aiohttp")
    (tmp_path / "a").write_bytes(OLD)
    with RangeServer(tmp_path) as server:
        data = lines(server)
        data.to_list()
        monkeypatch.setattr(range_server._Handler, "do_GET", lambda self: self.send_error(403))
        monkeypatch.setattr(range_server._Handler, "do_HEAD", lambda self: self.send_error(403))
        with pytest.raises(PermissionError, match="/a"):
            data.to_list()
    assert far == [0]
