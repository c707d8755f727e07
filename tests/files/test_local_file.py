# SPDX-License-Identifier: Apache-2.0
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import distinput as di
from distinput.files.source import EMPTY, FileStream, LocalFile


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operating system reads at most seven bytes at a time."""
    pread, preadv = os.pread, os.preadv
    monkeypatch.setattr(os, "pread", lambda file, size, at: pread(file, min(size, 7), at))
    monkeypatch.setattr(os, "preadv", lambda file, buffers, at: preadv(file, [buffers[0][:7]], at))


@pytest.mark.usefixtures("short")
def test_reads_are_whole(tmp_path: Path) -> None:
    path, content = tmp_path / "a", bytes(range(100))
    path.write_bytes(content)
    with LocalFile(str(path)) as file:
        assert file.read(50) == content[:50]
        buffer = bytearray(60)
        assert file.readinto(buffer) == 50
        assert buffer[:50] == content[50:]
        assert file.read(5) == b""
        assert file.readinto(buffer) == 0
        file.seek(90)
        assert file.read() == content[90:]
        file.seek(95)
        assert file.read(10) == content[95:]


def test_the_end_of_a_file_is_looked_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, calls, preadv = tmp_path / "a", [], os.preadv

    def counted(file: int, buffers: Any, at: int) -> int:
        calls.append(len(buffers[0]))
        return preadv(file, buffers, at)

    path.write_bytes(bytes(100))
    monkeypatch.setattr(os, "preadv", counted)
    with FileStream(str(path)) as source:
        assert [len(source.more(EMPTY, 101)[0]), *calls] == [100, 101, 1]


@pytest.mark.parametrize("size", [0, 10, 100_000])
def test_it_is_a_file_as_those_of_python(tmp_path: Path, size: int) -> None:
    path = tmp_path / "a"
    path.write_bytes(bytes(range(256)) * (size // 256) + bytes(size % 256))
    with LocalFile(str(path)) as file, path.open("rb", buffering=0) as plain:
        for offset, whence in ((3, 0), (2, 1), (-4, 2), (size + 9, 0), (0, 0), (1, 1)):
            if not (whence == 2 and offset + size < 0):
                assert file.seek(offset, whence) == plain.seek(offset, whence)
            assert (file.read(3), file.tell()) == (plain.read(3), plain.tell())
        assert (file.read(), file.tell(), file.read()) == (plain.read(), plain.tell(), b"")
        for wrong in (file, plain):
            with pytest.raises(OSError, match="Invalid argument"):
                wrong.seek(-1)


def test_what_a_file_gains_while_it_is_read_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one")
    with FileStream(str(path)) as source, path.open("ab") as writer:
        assert source.more(EMPTY, 2)[0].tobytes() == b"on"
        writer.write(b"two")
        writer.flush()
        found, ended = source.more(EMPTY, 100)
        assert (found.tobytes(), ended) == (b"etwo", True)


@pytest.mark.skipif(not Path("/proc/version").exists(), reason="there is no such file")
def test_a_file_whose_size_is_not_told_is_read() -> None:
    with FileStream("/proc/version") as source:
        found, ended = source.more(EMPTY, 10_000)
        assert (found.tobytes(), ended, source.size) == (Path("/proc/version").read_bytes(), True, 0)


@pytest.mark.usefixtures("short")
def test_a_stream_of_short_reads_is_whole(tmp_path: Path) -> None:
    path, content = tmp_path / "a", bytes(range(100))
    path.write_bytes(content)
    with FileStream(str(path)) as source:
        assert [part.tobytes() for part, _ in (source.more(EMPTY, 60), source.more(EMPTY, 60))] == [
            content[:60],
            content[60:],
        ]


def _arrow(path: Path) -> Any:
    table = pa.table({"x": range(1000)})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return di.data.ArrowDataset(str(path), memory_map=False).map(lambda row: row["x"])


def _stream(path: Path) -> Any:
    di.io.write_arrow(str(path), {"x": np.arange(1000)}, stream=True)
    return di.data.ArrowDataset(str(path), memory_map=False).map(lambda row: row["x"])


def _npz(path: Path) -> Any:
    np.savez_compressed(path.with_suffix(".npz"), x=np.arange(1000))
    return di.data.NpzDataset(str(path.with_suffix(".npz"))).map(lambda row: row["x"])


def _npy(path: Path) -> Any:
    np.save(path.with_suffix(".npy"), np.arange(1000))
    return di.data.NpyDataset(str(path.with_suffix(".npy")), memory_map=False)


def _tfrecord(path: Path) -> Any:
    with di.io.TFRecordWriter(str(path)) as writer:
        for i in range(1000):
            writer.write(b"%d" % i)
    return di.data.TFRecordDataset(str(path)).map(int)


def _checkpoint(path: Path) -> Any:
    di.train.Checkpoint(x=np.arange(1000)).write(str(path))
    return di.data.Dataset.from_tensor_slices(di.train.load_variable(str(path), "x"))


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("made", [_arrow, _stream, _npz, _npy, _tfrecord, _checkpoint])
def test_files_that_give_few_bytes_at_a_time_are_not_damaged(made: Callable[[Path], Any], tmp_path: Path) -> None:
    assert [int(x) for x in made(tmp_path / "file")] == list(range(1000))
