# SPDX-License-Identifier: Apache-2.0
"""The cache of remote files: right, bounded, and whole whatever kills the processes that share it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import fsspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.files import local_cache as module
from distinput.files import mounts
from distinput.files.local_cache import BLOCK_BYTES, LocalCache
from distinput.testing.range_server import RangeServer
from tests.patience import wait_until

DATA = os.urandom(3 * BLOCK_BYTES + 1000)
BIG = 1 << 30
NUMBERS = st.integers(0, len(DATA))


class Fetched:
    """Gives parts of `data`, and notes which."""

    def __init__(self, data: bytes = DATA) -> None:
        self.data, self.ranges = data, list[tuple[int, int]]()

    def __call__(self, ranges: list[tuple[int, int]]) -> list[bytes]:
        self.ranges += ranges
        return [self.data[a:b] for a, b in ranges]


@pytest.fixture
def on(tmp_path: Path) -> Iterator[Path]:
    di.io.cache_remote(tmp_path / "cache", BIG)
    yield tmp_path / "cache"
    di.io.cache_remote(None)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("cache"))


@given(st.lists(st.tuples(NUMBERS, NUMBERS).map(lambda pair: (min(pair), max(pair))), max_size=4))
def test_ranges_are_those_of_the_file(shared: str, ranges: list[tuple[int, int]]) -> None:
    found = LocalCache(shared, BIG).read("a", len(DATA), ranges, Fetched())
    assert found == [DATA[a:b] for a, b in ranges]


def test_what_is_kept_is_not_fetched_again(tmp_path: Path) -> None:
    fetched = Fetched()
    for cache in (LocalCache(str(tmp_path), BIG), LocalCache(str(tmp_path), BIG)):
        cache.read("a", len(DATA), [(10, 20), (2 * BLOCK_BYTES + 1, len(DATA))], fetched)
        assert fetched.ranges == [(0, BLOCK_BYTES), (2 * BLOCK_BYTES, len(DATA))]
    cache.read("b", len(DATA), [(0, 1)], fetched)
    assert fetched.ranges[2:] == [(0, BLOCK_BYTES)]


@pytest.mark.parametrize("size", [0, 50_000, 3 << 20])
@pytest.mark.parametrize("file_system, package", [("fsspec", "aiohttp"), ("obstore", "obstore")])
def test_files_that_are_read_whole_are_kept(
    on: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file_system: str, package: str, size: int
) -> None:
    pytest.importorskip(package)
    monkeypatch.setattr(mounts, "_MOUNTS", {})
    data = os.urandom(size)
    (tmp_path / "a").write_bytes(data)
    with RangeServer(tmp_path) as server:
        if file_system == "obstore":
            di.io.mount(f"{server.url}/", "obstore")
        assert di.io.read_file(f"{server.url}/a") == data
        assert server.sent == size
        assert di.io.read_file(f"{server.url}/a") == data
        assert server.sent == size, "the second time it came from the folder"


@pytest.mark.parametrize("damage", ["cut", "bit", "empty", "longer"])
def test_a_block_that_is_damaged_is_fetched_again(tmp_path: Path, damage: str) -> None:
    cache, fetched = LocalCache(str(tmp_path), BIG), Fetched()
    cache.read("a", len(DATA), [(0, 10)], fetched)
    (block,) = tmp_path.glob("*/0")
    whole = block.read_bytes()
    other = {"cut": whole[:-1], "bit": bytes([whole[0] ^ 1]) + whole[1:], "empty": b"", "longer": whole + b"x"}
    block.write_bytes(other[damage])
    assert cache.read("a", len(DATA), [(0, 10)], fetched) == [DATA[:10]]
    assert len(fetched.ranges) == 2
    assert block.read_bytes() == whole


def test_what_was_used_least_recently_is_removed(tmp_path: Path) -> None:
    limit, cache = 16 << 20, LocalCache(str(tmp_path), 16 << 20)
    data = bytes(limit * 2)
    for first in range(0, len(data), 1 << 20):
        cache.read("a", len(data), [(0, 1), (first, first + (1 << 20))], Fetched(data))
        assert sum(path.stat().st_size for path in tmp_path.glob("*/*")) <= limit * 17 // 16
        os.utime(next(iter(tmp_path.glob("*/0"))), (time.time() + 100, time.time() + 100))
    assert list(tmp_path.glob("*/0"))
    assert not list(tmp_path.glob("*/5"))


def test_files_without_name_that_were_left_behind_are_removed(tmp_path: Path) -> None:
    cache = LocalCache(str(tmp_path), BIG)
    cache.read("a", len(DATA), [(0, 1)], Fetched())
    (home,) = [path for path in tmp_path.iterdir() if path.is_dir()]
    (home / ".old").write_bytes(b"x")
    (home / ".new").write_bytes(b"x")
    os.utime(home / ".old", (0, 0))
    LocalCache(str(tmp_path), BIG).read("a", len(DATA), [(BLOCK_BYTES, BLOCK_BYTES + 1)], Fetched())
    assert sorted(path.name for path in home.iterdir()) == [".new", "0", "1"]


def test_a_folder_that_cannot_be_written_is_a_warning_and_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.warns(RuntimeWarning, match="the cache of remote files cannot be used"):
        assert LocalCache(str(tmp_path / "file"), BIG).read("a", len(DATA), [(0, 5)], Fetched()) == [DATA[:5]]


@pytest.mark.needs("aiohttp")
def test_a_second_pass_asks_the_server_for_no_bytes(on: Path, tmp_path: Path) -> None:
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "a.txt").write_bytes(b"".join(b"%d\n" % n for n in range(200_000)))
    with RangeServer(tmp_path / "served") as server:
        url = f"{server.url}/a.txt"
        for count in (1, 0):
            server.reset()
            assert sum(1 for _ in di.data.TextLineDataset(url).batch(1000)) == 200
            assert bool(server.sent) == bool(count)
        (tmp_path / "served" / "a.txt").write_bytes(b"other\n")
        assert di.data.TextLineDataset(url).to_list() == [b"other"]


def test_processes_that_are_started_use_it_too(on: Path) -> None:
    program = "import distinput.files.local_cache as c; print(c.local_cache()._folder)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    assert ran.stdout.strip() == str(on)


WRITER = """
import os, sys
from distinput.files import local_cache as module
from distinput.files import mounts
from distinput.files.local_cache import BLOCK_BYTES, LocalCache
data = bytes(range(256)) * (BLOCK_BYTES // 256) * 64
cache = LocalCache(sys.argv[1], 16 << 20)
print("begun", flush=True)
while True:
    for version in "abc":
        cache.read(version, len(data), [(0, len(data))], lambda ranges: [data[a:b] for a, b in ranges])
"""


def test_processes_that_are_killed_leave_nothing_that_is_wrong(tmp_path: Path) -> None:
    data = bytes(range(256)) * (BLOCK_BYTES // 256) * 64
    for _ in range(2):
        writers = [
            subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE) for _ in range(2)
        ]
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"begun\n"
        wait_until(lambda: list(tmp_path.glob("*/[0-9]*")))
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
            writer.communicate()
        for version in "abc":
            cache = LocalCache(str(tmp_path), BIG)
            found = cache.read(version, len(data), [(0, len(data))], lambda ranges: [data[a:b] for a, b in ranges])
            assert found == [data]


def test_the_limit_is_not_tiny(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"max_bytes must be at least 16 MB \(16777216\), got 1"):
        di.io.cache_remote(tmp_path, 1)


def test_a_file_whose_size_is_unknown_is_read_as_without(on: Path) -> None:
    fsspec.filesystem("memory").pipe("/cached/a.txt", b"one\n")
    ranges: Any = di.data.TextLineDataset("memory://cached/a.txt").to_list()
    assert ranges == [b"one"]


def test_links_in_the_folder_lead_nowhere(tmp_path: Path) -> None:
    data, folder, home = bytes(BLOCK_BYTES), tmp_path / "cache", tmp_path / "home"
    home.mkdir()
    folder.mkdir()
    (home / "0").write_text("precious")
    (home / "lock").write_text("precious")
    name = blake2b(b"version", digest_size=16).hexdigest()
    os.symlink(home, folder / name)
    os.symlink(home / "lock", folder / ".lock")
    cache = LocalCache(str(folder), 16 << 20)
    with pytest.warns(RuntimeWarning, match="is a symbolic link, and must be a folder of the cache; remove it"):
        found = [
            cache.read(version, len(data), [(0, len(data))], lambda ranges: [data[a:b] for a, b in ranges])
            for version in ("version", *map(str, range(20)))
        ]
    assert found == 21 * [[data]]
    assert sorted(path.name for path in home.iterdir()) == ["0", "lock"]
    assert {path.read_text() for path in home.iterdir()} == {"precious"}


def test_a_folder_that_others_write_to_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(InvalidArgumentError, match="others could change what is read from there"):
        di.io.cache_remote(tmp_path)
    monkeypatch.setenv("DISTINPUT_REMOTE_CACHE", f"{BIG}:{tmp_path}")
    with pytest.warns(RuntimeWarning, match="others could change what is read from there.*; it is not used"):
        assert module.local_cache() is None
    tmp_path.chmod(0o700)


@pytest.mark.usefixtures("on")
def test_a_file_system_with_words_of_its_own_has_versions_too(tmp_path: Path) -> None:
    memory, path = fsspec.filesystem("memory"), f"memory://{tmp_path.name}/a.bin"
    for content in (b"aabb", b"ccdd"):
        memory.pipe_file(path, content)
        assert di.data.FixedLengthRecordDataset(path, 2).take(2).to_list() == [content[:2], content[2:]]
        assert di.data.TextLineDataset(path, index=str(tmp_path / "index"))[0] == content


def test_the_limit_is_an_integer(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"cache_remote: max_bytes must be an integer, got 1000000000\.0"):
        di.io.cache_remote(tmp_path, max_bytes=1e9)  # type: ignore[arg-type]
