# SPDX-License-Identifier: Apache-2.0
"""Of the next remote files something is asked while one is read: of each once, such as its beginning."""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import distinput as di
from distinput.files import mounts
from distinput.files.mounts import stored
from distinput.files.source import EMPTY, FileStream, wanted_until
from distinput.run.run import Run
from distinput.streaming import ahead as streaming_ahead
from distinput.streaming.ahead import BEGINNING_LASTS, FILES_AHEAD, AskedAhead
from distinput.testing.range_server import RangeServer
from tests.ops.iterating import until_error
from tests.patience import wait_until

NAMES = [f"https://example.com/{n}" for n in range(8)]
OPTIONS: dict[str, Any] = {"filesystem": "obstore", "storage_options": {"client_options": {"allow_http": True}}}


@pytest.fixture
def asked() -> list[str]:
    """The files that were asked about."""
    return []


def asking(asked: list[str], *, always: bool) -> Iterator[AskedAhead[str]]:
    def ask(path: str) -> str:
        asked.append(path)
        return f"answer {path}"

    with Run() as run, ExitStack() as stack:
        yield AskedAhead(ask, BEGINNING_LASTS, run, stack, always=always)


@pytest.fixture
def ahead(asked: list[str]) -> Iterator[AskedAhead[str]]:
    yield from asking(asked, always=False)


@pytest.fixture
def always_ahead(asked: list[str]) -> Iterator[AskedAhead[str]]:
    yield from asking(asked, always=True)


def test_nothing_is_asked_for_before_a_file_was_read(ahead: AskedAhead[str], asked: list[str]) -> None:
    assert ahead.of(NAMES[0], NAMES[1:]) is None
    assert not asked


def test_each_beginning_is_asked_for_once(ahead: AskedAhead[str], asked: list[str]) -> None:
    found = [ahead.of(name, NAMES[at + 1 :][:FILES_AHEAD]) for at, name in enumerate(NAMES)]
    assert found == [
        None,
        None,
        *(f"answer {name}" for name in NAMES[2:]),
    ]  # the first two are asked for by who reads them
    assert sorted(asked) == NAMES[2:]


def test_the_next_file_is_asked_about_from_the_first_one_on(always_ahead: AskedAhead[str], asked: list[str]) -> None:
    assert always_ahead.of(NAMES[0], NAMES[1:]) is None
    wait_until(lambda: asked == NAMES[1:2])
    assert always_ahead.of(NAMES[1], NAMES[2:]) == f"answer {NAMES[1]}"
    assert always_ahead.of(NAMES[1], NAMES[2:]) is None  # an answer is used once


def test_a_file_that_was_not_expected_is_asked_for_by_who_reads_it(ahead: AskedAhead[str], asked: list[str]) -> None:
    ahead.of(NAMES[0], NAMES[1:])
    ahead.of(NAMES[1], NAMES[2:4])
    assert ahead.of(NAMES[7], ()) is None
    assert ahead.of(NAMES[3], ()) is None  # all that was expected before it is given up


def test_local_files_are_not_asked_for(ahead: AskedAhead[str], asked: list[str]) -> None:
    for _ in range(3):
        assert ahead.of("a", ["a", "a"]) is None
    assert not asked


def test_files_between_local_ones_are_asked_about_once(ahead: AskedAhead[str], asked: list[str]) -> None:
    names = ["a", *NAMES[:3], "b", *NAMES[3:6], "c", *NAMES[6:]]
    for at, name in enumerate(names):
        if name in NAMES:
            ahead.of(name, names[at + 1 :][:FILES_AHEAD])
    assert sorted(asked) == NAMES[2:]


def test_files_that_took_long_and_old_beginnings_do_not_count(
    ahead: AskedAhead[str], asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(streaming_ahead, "monotonic", lambda: now[0])
    ahead.of(NAMES[0], NAMES[1:3])
    ahead.of(NAMES[1], NAMES[2:4])
    now[0] = 11.0
    assert ahead.of(NAMES[2], NAMES[3:]) is None
    assert ahead.of(NAMES[3], ()) is None
    assert set(asked) <= set(NAMES[2:4])


@pytest.mark.parametrize("parallel", [None, 2])
def test_a_small_file_takes_one_request(tmp_path: Path, parallel: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("obstore")
    monkeypatch.setattr(mounts, "_MOUNTS", {})
    for n in range(7):
        (tmp_path / f"{n}.txt").write_text("".join(f"{n} {i}\n" for i in range(50)))
    (tmp_path / "empty.txt").write_text("")
    names = [*map(str, range(4)), "empty", *map(str, range(4, 7))]
    local = di.data.TextLineDataset([f"{tmp_path}/{name}.txt" for name in names], num_parallel_reads=parallel)
    with RangeServer(tmp_path) as server:
        remote = di.data.TextLineDataset(
            [f"{server.url}/{name}.txt" for name in names], num_parallel_reads=parallel, **OPTIONS
        )
        assert remote.to_list() == local.to_list()
        assert Counter(name for name, *_ in server.requests) == {f"{n}.txt": 1 for n in range(7)}
        with iter(remote) as iterator:
            for _ in range(120):
                next(iterator)
            state = iterator.state()
            assert list(remote.restore(state)) == local.to_list()[120:]


def test_a_file_that_is_missing_is_an_error_behind_those_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("obstore")
    monkeypatch.setattr(mounts, "_MOUNTS", {})
    for n in range(4):
        (tmp_path / f"{n}.txt").write_text(f"{n}\n")
    with RangeServer(tmp_path) as server:
        names = [f"{server.url}/{name}.txt" for name in (0, 1, 2, "missing", 3)]
        found, error = until_error(di.data.TextLineDataset(names, **OPTIONS))
    assert found == [b"0", b"1", b"2"]
    assert isinstance(error, di.errors.NotFoundError)
    assert "missing.txt" in str(error)


def test_a_part_of_a_file_asks_for_nothing_behind_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("obstore")
    monkeypatch.setattr(mounts, "_MOUNTS", {})
    (tmp_path / "a").write_bytes(bytes(1000))
    with RangeServer(tmp_path) as server:
        stored([f"{server.url}/a"], OPTIONS["storage_options"], "obstore")
        with wanted_until(300), FileStream(f"{server.url}/a", first=200) as source:
            source.go_to(200)
            assert len(source.more(EMPTY, 100)[0]) == 100
        assert server.requests == [("a", 200, 300)]
