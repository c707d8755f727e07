# SPDX-License-Identifier: Apache-2.0
"""A file is written whole or not at all, and until then whatever had its name stays."""

import gzip
import io
import os
import zlib
from pathlib import Path
from typing import Any

import fsspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.errors import NotFoundError
from distinput.files import sink as module
from distinput.files.folder import remove_file
from distinput.files.sink import Sink


@given(st.lists(st.one_of(st.binary(max_size=20), st.just("flush")), max_size=8), st.sampled_from(["", "GZIP"]))
def test_what_was_written_is_in_the_file(tmp_path_factory: Any, parts: list[Any], compression: Any) -> None:
    path = tmp_path_factory.mktemp("sink") / "a"
    with Sink(str(path), compression) as sink:
        for part in parts:
            sink.flush() if part == "flush" else sink.write(part)
    data = path.read_bytes()
    wanted = b"".join([part for part in parts if part != "flush"])
    assert (gzip.decompress(data) if compression else data) == wanted
    assert os.listdir(path.parent) == ["a"]


def test_the_old_file_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    sink = Sink(str(path))
    sink.write(b"new")
    sink.flush()
    assert path.read_bytes() == b"old"
    sink.finish()
    assert (path.read_bytes(), sink.closed) == (b"old", True)
    sink.close()
    assert path.read_bytes() == b"new"
    sink.close()
    sink.discard()
    assert path.read_bytes() == b"new"
    with pytest.raises(ValueError, match=f"{path}: writing to a closed file"):
        sink.write(b"more")


def test_large_data_is_written_out_before_the_end(tmp_path: Path) -> None:
    with Sink(str(tmp_path / "a")) as sink:
        sink.write(bytes(module._BUFFERED - 1))
        (hidden,) = os.listdir(tmp_path)
        assert (tmp_path / hidden).stat().st_size == 0
        sink.write(b"x")
        assert (tmp_path / hidden).stat().st_size == module._BUFFERED


@pytest.mark.parametrize("compression", ["", "GZIP"])
@pytest.mark.parametrize("path", ["a", "memory://written-alone/a"])
def test_large_data_may_change_once_it_was_written(tmp_path: Path, path: str, compression: Any) -> None:
    wanted, large = b"", bytearray(module.WRITTEN_ALONE)
    target = path if "://" in path else str(tmp_path / path)
    with Sink(target, compression, checksum=True) as sink:
        for number in range(1, 4):
            large[:] = bytes([number]) * len(large)
            for part in (b"small", memoryview(large)):
                sink.write(part)
                wanted += part
    with fsspec.open(target) as file:
        found = file.read()
    assert (gzip.decompress(found) if compression else found) == wanted
    assert sink.crc32 == zlib.crc32(found)


@pytest.mark.parametrize("path", ["a", "memory://sink/a"])
def test_an_error_in_the_block_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.chdir(tmp_path)
    fsspec.filesystem("memory").makedirs("/sink", exist_ok=True)

    def write() -> None:
        with Sink(path) as sink:
            sink.write(b"data")
            sink.flush()
            raise KeyError

    with pytest.raises(KeyError):
        write()
    assert os.listdir(tmp_path) == []
    assert fsspec.filesystem("memory").ls("/sink") == []


def test_a_failed_write_gives_the_file_up_for_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = Sink(str(tmp_path / "a"))

    class Full:
        def write(self, data: Any) -> int:
            raise OSError(28, "No space left on device")

        def close(self) -> None: ...

    sink._target.file.close()
    monkeypatch.setattr(sink._target, "file", Full())
    sink.write(b"x")
    with pytest.raises(OSError, match="No space left"):
        sink.flush()
    for call in (sink.flush, sink.finish, sink.close, lambda: sink.write(b"y")):
        with pytest.raises(OSError, match="was given up, and nothing is left of it, since writing failed") as caught:
            call()
        assert caught.value.errno == 28
    assert os.listdir(tmp_path) == []


def test_a_forgotten_sink_leaves_nothing_and_says_so(tmp_path: Path) -> None:
    sink = Sink(str(tmp_path / "a"))
    sink.write(b"x")
    with pytest.warns(ResourceWarning, match="was written, but never closed, so nothing was kept of it"):
        del sink
    assert os.listdir(tmp_path) == []


def test_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="is a folder"):
        Sink(str(tmp_path))
    with pytest.raises(NotFoundError):
        Sink(str(tmp_path / "gone" / "a"))


def test_a_link_is_followed_and_stays(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    with Sink(str(tmp_path / "link")) as sink:
        sink.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


def test_a_device_is_written_to_under_its_own_name() -> None:
    with Sink(os.devnull) as sink:
        sink.write(b"x")
    assert not os.path.isfile(os.devnull)


def test_a_durable_file_is_on_the_disk_before_it_gets_its_name_and_the_name_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[str, bool]] = []
    sync = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append((os.readlink(f"/proc/self/fd/{descriptor}"), (tmp_path / "a").exists()))
        sync(descriptor)

    if not Path("/proc/self/fd").exists():
        pytest.skip("the names of open files are read from /proc")
    monkeypatch.setattr(os, "fsync", fsync)
    with Sink(str(tmp_path / "a"), durable=True) as sink:
        sink.write(b"x")
    assert synced == [(str(tmp_path / ".a.0.distinput-unfinished"), False), (str(tmp_path), True)]
    with Sink(str(tmp_path / "b")) as sink:
        sink.write(b"x")
    assert len(synced) == 2


@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_the_checksum_is_that_of_the_bytes_in_the_file(tmp_path: Path, compression: Any) -> None:
    with Sink(str(tmp_path / "a"), compression, checksum=True) as sink:
        sink.write(b"abc")
        sink.flush()
        sink.write(bytes(module._BUFFERED))
    data = (tmp_path / "a").read_bytes()
    assert (sink.size, sink.crc32) == (len(data), zlib.crc32(data))


def test_a_name_of_the_library_s_own_is_replaced_whatever_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    os.symlink("precious", tmp_path / "link")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        with Sink(str(tmp_path / name), own=True) as sink:
            sink.write(b"new")
        assert not (tmp_path / name).is_symlink()
        assert (tmp_path / name).read_bytes() == b"new"
    assert (tmp_path / "precious").read_text() == "precious"
    with pytest.raises(IsADirectoryError, match="is a folder"):
        Sink(str(tmp_path), own=True)


def test_a_file_system_that_can_only_be_read_says_so() -> None:
    from fsspec.implementations.memory import MemoryFileSystem

    class Web(MemoryFileSystem):
        """As the one for plain HTTP: it opens files for reading, and removes none."""

        protocol, store, pseudo_dirs = "web-of-others", {"/a.txt": None}, [""]

        def _open(self, path: str, mode: str = "rb", **_: Any) -> Any:
            if mode != "rb":
                raise NotImplementedError
            self.info(path)
            return io.BytesIO(b"1\n2\n")

        def info(self, path: str, **_: Any) -> dict[str, Any]:
            if not path.endswith("a.txt"):
                raise FileNotFoundError(path)
            return {"name": path, "size": 4, "type": "file", "ETag": "1"}

        def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
            self.info(path)
            return b"1\n2\n"[start:end]

        def modified(self, path: str) -> Any:
            raise NotImplementedError

        def rm_file(self, path: str) -> None:
            raise NotImplementedError

    di.io.mount("web-of-others://", Web())
    try:
        numbers = di.data.Dataset.range(2)
        for write in (
            lambda: di.io.TFRecordWriter("web-of-others://b.tfrecord"),
            lambda: numbers.save("web-of-others://saved"),
            lambda: list(numbers.cache("web-of-others://cache")),
            lambda: list(numbers.snapshot("web-of-others://snapshot")),
        ):
            with pytest.raises(di.errors.UnimplementedError, match="can be read, but not written"):
                write()
        with pytest.raises(di.errors.UnimplementedError, match="not removed"):
            remove_file("web-of-others://a.txt")
        remove_file("web-of-others://nothing.txt")
    finally:
        di.io.unmount("web-of-others://")


class Silent:
    """A file whose `write` says nothing, as that of paramiko does."""

    def __init__(self, path: str) -> None:
        self.file, self.written = self, 0

    def write(self, data: memoryview) -> None:
        self.written += len(data)
        assert self.written <= 3, "written again and again"

    def flush(self) -> None: ...
    def publish(self, *, durable: bool) -> None: ...
    def discard(self) -> None: ...


def test_files_that_do_not_say_how_much_they_wrote_have_written_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Upload", Silent)
    with Sink("lake://a") as sink:
        sink.write(b"abc")
    assert sink.size == 3
