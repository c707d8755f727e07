# SPDX-License-Identifier: Apache-2.0
"""What a server says of a file is asked once a pass, while the file before it is read; what has passed is asked again."""

import math
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import fsspec
import numpy as np
import pytest

import distinput as di
from distinput.errors import DistinputError, NotFoundError
from distinput.files.source import stamp_of
from distinput.run.run import Run
from distinput.streaming import ahead
from distinput.streaming.ahead import StampsAhead
from tests.patience import wait_until

A, B = "https://example.com/a", "https://example.com/b"


class Server:
    """Stamps that count how often they were asked for, and what was looked at."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.looked: list[str] = []
        self.broken = False

    def stamp(self, path: str) -> str:
        self.asked.append(path)
        if self.broken:
            raise NotFoundError(path)
        return f"{path} {self.asked.count(path)}"

    def look(self, path: str) -> None:
        self.looked.append(stamp_of(path))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    made = Server()
    monkeypatch.setattr(ahead, "stamp_of", made.stamp)
    monkeypatch.setattr(ahead, "_LONGEST", math.inf)
    return made


@pytest.fixture
def stamps(server: Server) -> Iterator[StampsAhead]:
    with Run() as run, ExitStack() as stack:
        yield StampsAhead(server.look, run, stack)


def test_an_answer_that_was_asked_for_ahead_is_used_once(server: Server, stamps: StampsAhead) -> None:
    stamps.ask(A)
    assert stamps.of(A) == f"{A} 1"
    assert server.looked == [f"{A} 1"]  # with the stamp that is used later
    assert stamps.of(A) == f"{A} 2"
    assert server.asked == [A, A]


def test_another_file_is_asked_for(server: Server, stamps: StampsAhead) -> None:
    stamps.ask(A)
    assert stamps.of(B) == f"{B} 1"


def test_an_old_answer_is_not_used(server: Server, stamps: StampsAhead, monkeypatch: pytest.MonkeyPatch) -> None:
    stamps.ask(A)
    wait_until(lambda: server.looked)
    monkeypatch.setattr(ahead, "_LONGEST", -1.0)
    assert stamps.of(A) == f"{A} 2"


def test_an_error_is_that_of_who_reads_the_file(server: Server, stamps: StampsAhead) -> None:
    server.broken = True
    stamps.ask(A)
    with pytest.raises(NotFoundError):
        stamps.of(A)
    server.broken = False
    assert stamps.of(A) == f"{A} 3"


def test_local_files_are_not_asked_for(server: Server, stamps: StampsAhead) -> None:
    stamps.ask("a")
    assert stamps.of("a") is None
    assert server.asked == []


@pytest.fixture
def folder() -> Iterator[str]:
    made = f"memory://stamps-{uuid.uuid4().hex}"
    yield made
    fsspec.filesystem("memory").rm(made, recursive=True)


def test_a_pass_over_remote_files_asks_for_each_once(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [f"{folder}/{number}.parquet" for number in range(4)]
    for number, path in enumerate(paths):
        di.io.write_parquet(path, {"x": np.arange(100) + 100 * number}, row_group_size=30)
    rows = di.data.ParquetDataset(paths)
    assert list(rows.element_spec) == ["x"]  # it looks at the first file
    monkeypatch.setattr(ahead, "_LONGEST", math.inf)
    system = type(fsspec.filesystem("memory"))
    asked: list[str] = []
    ukey = system.ukey

    def counted(self: Any, path: str) -> Any:
        asked.append(path[-9:])
        return ukey(self, path)

    for _ in range(2):
        monkeypatch.setattr(system, "ukey", counted)
        asked.clear()
        assert [int(row["x"]) for row in rows] == list(range(400))
        assert asked == [path[-9:] for path in paths]
        monkeypatch.setattr(system, "ukey", ukey)


def test_a_file_that_was_replaced_between_passes_is_read_anew(folder: str) -> None:
    paths = [f"{folder}/{number}.parquet" for number in range(3)]
    for turn in range(3):
        for path in paths:
            di.io.write_parquet(path, {"x": np.arange(10 + turn) * (turn + 1)})
        found = [int(row["x"]) for row in di.data.ParquetDataset(paths)]
        assert found == 3 * [(turn + 1) * each for each in range(10 + turn)]


def test_a_file_that_is_gone_is_named_in_its_turn(folder: str) -> None:
    paths = [f"{folder}/{number}.parquet" for number in range(2)]
    for path in paths:
        di.io.write_parquet(path, {"x": np.arange(10)})
    rows = di.data.ParquetDataset(paths)
    fsspec.filesystem("memory").rm(paths[1])
    found = []
    with pytest.raises((DistinputError, OSError), match=r"1\.parquet"):
        found.extend(int(row["x"]) for row in rows)
