# SPDX-License-Identifier: Apache-2.0
"""Remote files are read by ranges: what comes is what a local file has, and no byte is asked for twice in vain."""

import io
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import fsspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.errors import DataLossError
from distinput.files import range_requests
from distinput.files.remote import RemoteFile, RemoteStream, near
from distinput.run.threads import Pool

DATA = bytes(range(256)) * 4
SPANS = st.lists(st.tuples(st.integers(0, 900), st.integers(0, 120)).map(lambda s: (s[0], s[0] + s[1])), max_size=6)


class Asked:
    """A file system that notes which ranges it was asked for."""

    def __init__(self, data: bytes = DATA) -> None:
        self.data, self.requests = data, list[tuple[int, int]]()

    def cat_file(self) -> None:
        """Another one than fsspec's own, which opens the file for each range."""

    def info(self, name: str) -> dict[str, Any]:
        return {"size": len(self.data)}

    def cat_ranges(self, paths: Any, starts: Any, stops: Any, on_error: str) -> list[Any]:
        self.requests += zip(starts, stops, strict=True)
        return [self.data[start:stop] for start, stop in zip(starts, stops, strict=True)]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    system = fsspec.filesystem("memory")
    system.pipe("/remote/a", DATA)
    yield "memory://remote/a"
    system.rm("/remote", recursive=True)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Asked]:
    """Has remote files read what it returns."""

    def replace(data: bytes = DATA) -> Asked:
        made = Asked(data)
        monkeypatch.setattr(range_requests, "file_system", lambda path: (made, path))
        return made

    return replace


@given(SPANS)
def test_ranges_put_together_cover_all_and_hardly_more(spans: list[tuple[int, int]]) -> None:
    starts, stops = [start for start, _ in spans], [stop for _, stop in spans]
    found = near(starts, stops)
    assert all(any(a <= start and stop <= b for a, b in found) for start, stop in spans)
    assert found == sorted(found)
    assert all(after > before for (_, before), (after, _) in pairwise(found))
    wanted = {byte for start, stop in spans for byte in range(start, stop)}
    assert sum(b - a for a, b in found) <= len(wanted) * 1.05 + sum(stop - start for start, stop in spans) / 20


@given(st.lists(st.tuples(st.sampled_from(["seek", "end", "read", "into", "keep"]), st.integers(0, 1100)), max_size=8))
def test_a_remote_file_reads_like_one_in_memory(steps: list[tuple[str, int]]) -> None:
    fsspec.filesystem("memory").pipe("/remote_file", DATA)
    file, wanted = RemoteFile("memory://remote_file", len(DATA)), io.BytesIO(DATA)
    for step, number in steps:
        match step:
            case "seek":
                assert file.seek(number) == wanted.seek(number)
            case "end":
                assert file.seek(-min(number, 1000), 2) == wanted.seek(-min(number, 1000), 2)
            case "read":
                assert bytes(file.read(number)) == wanted.read(number)
            case "into":
                mine, theirs = bytearray(number), bytearray(number)
                assert file.readinto(mine) == wanted.readinto(theirs)
                assert mine == theirs
            case "keep":
                file.keep([number // 2, 0], [min(number, len(DATA)), 5])
        assert file.tell() == wanted.tell()
    assert bytes(file.readall()) == wanted.read()


def test_what_is_kept_is_not_asked_for_again(url: str, asked: Callable[..., Asked]) -> None:
    file = RemoteFile(url, len(DATA))
    system = asked()
    file.keep([100, 500], [200, 600])
    assert system.requests == [(100, 200), (500, 600)]
    file.seek(120)
    assert bytes(file.read(80)) == DATA[120:200]
    assert len(system.requests) == 2
    file.seek(190)
    assert bytes(file.read(20)) == DATA[190:210]
    assert system.requests[2:] == [(190, 210)]
    file.keep([], [])
    file.seek(100)
    file.read(1)
    assert system.requests[3:] == [(100, 101)]


def test_a_stream_asks_for_four_times_as_much_each_time_and_never_beyond_its_stop(
    url: str, asked: Callable[..., Asked]
) -> None:
    stream = RemoteStream(url, len(DATA))
    system = asked()
    stream.stop = 500
    found = b"".join([bytes(stream.read(10)) for _ in range(50)])
    assert found == DATA[:500]
    assert system.requests == [(0, 10), (10, 50), (50, 210), (210, 500)]
    assert bytes(stream.read(10)) == DATA[500:510]
    assert system.requests[4:] == [(500, 510)]


def test_a_stream_that_is_read_whole_is_whole(url: str) -> None:
    stream = RemoteStream(url, len(DATA))
    assert io.BufferedReader(stream, 100).read() == DATA


def test_a_file_that_became_shorter_is_an_error(url: str, asked: Callable[..., Asked]) -> None:
    file = RemoteFile(url, len(DATA))
    asked(DATA[:100])
    file.seek(90)
    with pytest.raises(
        DataLossError,
        match=f"{url}: should have 1024 bytes, but has 100, and bytes 90 to 110 came as 10; the file has changed",
    ):
        file.read(20)


def test_a_stream_tells_when_its_last_byte_has_been_requested(url: str) -> None:
    told: list[int] = []
    stream = RemoteStream(url, len(DATA))
    stream.requested = lambda: told.append(stream.tell())
    while stream.read(100):
        pass
    assert len(told) == 1
    assert told[0] < len(DATA)


def test_a_stream_that_has_all_from_the_beginning_tells_at_once(url: str) -> None:
    told: list[int] = []
    stream = RemoteStream(url, len(DATA))
    stream.requested = lambda: told.append(stream.tell())
    stream.begin(0, DATA)
    assert told == [0]
    assert bytes(stream.read()) == DATA
    assert told == [0]


def test_a_stream_of_which_only_a_part_is_wanted_tells_when_that_has_been_requested(url: str) -> None:
    told: list[int] = []
    stream = RemoteStream(url, len(DATA))
    stream.requested, stream.stop = lambda: told.append(stream.tell()), 300
    stream.read(100)
    stream.read(1)
    assert told == [100]


def test_a_stream_of_many_requests_little_at_a_time_by_threads_that_all_share(asked: Callable[..., Asked]) -> None:
    data = bytes(range(256)) * 4096
    system = asked(data)
    pool = Pool(2)
    stream = RemoteStream("memory://remote/a", len(data))
    stream.keep_within(1, lambda: pool)
    assert io.BufferedReader(stream, 10_000).read() == data
    assert max(stop - start for start, stop in system.requests) <= 1 << 18
    assert pool.submit(len, b"12").result() == 2  # it goes on after the stream was closed
    pool.shutdown()
