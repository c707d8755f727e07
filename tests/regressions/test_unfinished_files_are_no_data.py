# SPDX-License-Identifier: Apache-2.0
import errno
import multiprocessing
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
from fsspec.implementations.memory import MemoryFile, MemoryFileSystem
from fsspec.spec import AbstractBufferedFile

import distinput as di
from distinput.files import sink as unfinished
from distinput.files.manifest import save_manifest
from distinput.files.paths import list_matching
from distinput.files.sink import Sink
from distinput.formats import indexed
from tests.depth import cases

RECORD = b"x" * 1000

# Each writer, and the bytes of a whole file that it makes are larger than what it gathers before it writes.
WRITERS: dict[str, Callable[[str], object]] = {
    "a.tfrecord": lambda path: write_records(path, 1000),
    "a.indexed.tfrecord": lambda path: write_records(path, 1000, index=True),
    "a.gzip.tfrecord": lambda path: write_records(path, 1000, "GZIP"),
    "a.parquet": lambda path: di.io.write_parquet(path, {"x": np.random.default_rng(0).random(100_000)}),
    "a.arrow": lambda path: di.io.write_arrow(path, {"x": np.random.default_rng(0).random(100_000)}),
    "a.stream": lambda path: di.io.write_arrow(path, {"x": np.random.default_rng(0).random(100_000)}, stream=True),
    "a.manifest": lambda path: save_manifest(path, [__file__] * 1000),
    "a.manifest.parquet": lambda path: save_manifest(path, [__file__] * 1000),
}


def write_records(path: str, count: int, options: str | None = None, *, index: bool = False) -> None:
    rows = np.random.default_rng(0).integers(0, 256, (count, len(RECORD)), np.uint8)
    with di.io.TFRecordWriter(path, options, index=index) as writer:
        for row in rows:
            writer.write(row.tobytes())


@contextmanager
def no_file_larger_than(size: int) -> Iterator[None]:
    """Writing more is an error, as on a full disk."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, ignored)


# A writer that is killed.

KILLED = """
import sys
import distinput as di
writer = di.io.TFRecordWriter(sys.argv[1])
for number in range(10**9):
    writer.write(number.to_bytes(8, "little") * 125)
    if number == 2000:
        print("writing", flush=True)
"""


def started(program: str, *arguments: object) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)], stdout=subprocess.PIPE, text=True, bufsize=1
    )


def kill(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def test_what_a_killed_writer_leaves_is_never_matched_and_goes_with_the_next_writer(tmp_path: Path) -> None:
    folder = tmp_path / "deep"
    folder.mkdir()
    write_records(str(folder / "part-1.tfrecord"), 10)
    processes = [started(KILLED, folder / "part-0.tfrecord") for _ in range(2)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
    kill(processes[0])
    left = {path.name for path in folder.iterdir()} - {"part-1.tfrecord"}
    assert len(left) == 2
    patterns = ["*", ".*", "**", "**/*", "?part*", "[.]*", "part-*", ".part-0.tfrecord.0.distinput-*", *left]
    for prefix in ("", "file://"):
        for pattern in patterns:
            found = []
            with suppress(di.errors.NotFoundError):
                found = list_matching(f"{prefix}{folder}/{pattern}")
            assert [Path(name).name for name in found if Path(name).is_file()] in ([], ["part-1.tfrecord"]), pattern
    assert list_matching(f"{tmp_path}/**") == [f"{tmp_path}/", f"{folder}", f"{folder}/part-1.tfrecord"]
    assert len(list(di.data.TFRecordDataset(di.data.Dataset.list_files(f"{folder}/*")))) == 10
    with di.io.TFRecordWriter(str(folder / "part-0.tfrecord")) as writer:
        writer.write(b"whole")
        assert len({path.name for path in folder.iterdir()}) == 3, (
            "the other living writer's file stays, the dead one's not"
        )
    kill(processes[1])
    write_records(str(folder / "part-0.tfrecord"), 3)
    assert sorted(path.name for path in folder.iterdir()) == ["part-0.tfrecord", "part-1.tfrecord"]


TURNS = """
import sys
import distinput as di
import numpy as np
path, kind, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
print("ready", flush=True)
for turn in range(10**9):
    values = np.full(100_000, turn)
    if kind == "tfrecord":
        with di.io.TFRecordWriter(path, index=True) as writer:
            for part in values.reshape(100, -1):
                writer.write(part.tobytes())
    elif kind == "parquet":
        di.io.write_parquet(path, {"x": values})
    else:
        di.io.write_arrow(path, {"x": values})
    if turn == 0:
        print("once", flush=True)
"""


@pytest.mark.parametrize("kind", ["tfrecord", "parquet", "arrow"])
def test_a_file_is_the_old_or_the_new_one_whenever_its_writer_is_killed(tmp_path: Path, kind: str) -> None:
    dice = random.Random(kind)
    path = tmp_path / f"a.{kind}"
    for case in range(cases(2, 33)):
        process = started(TURNS, path, kind, case)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        if case % 4:
            time.sleep(dice.random() / 20)  # before the first one is whole, perhaps
        else:
            assert process.stdout.readline() == "once\n"
            time.sleep(dice.random() / 5)
        kill(process)
        names = [] if not any(tmp_path.glob("a*")) else list_matching(f"{tmp_path}/*")
        assert set(names) <= {str(path), f"{path}.index"}
        if not path.exists():
            continue
        if kind == "tfrecord":
            found = np.frombuffer(b"".join(di.data.TFRecordDataset(str(path))), np.int64)
        else:
            dataset = di.data.ParquetDataset(str(path)) if kind == "parquet" else di.data.ArrowDataset(str(path))
            found = np.concatenate([batch["x"] for batch in dataset.batch(10_000)])
        assert found.shape == (100_000,)
        assert (found == found[0]).all()
    with Sink(str(path)) as sink:
        sink.write(b"x")
    assert {file.name for file in tmp_path.iterdir()} <= {
        path.name,
        f"{path.name}.index",
        f".{path.name}.index.0.distinput-unfinished",
    }


# A disk that is full.


@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    WRITERS[name](str(path))
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    sizes = [len(before[name]) - 1, len(before[name]) // 2, 0]
    if f"{name}.index" in before:
        sizes.append(len(before[f"{name}.index"]) - 1)
    for size in sizes:
        with no_file_larger_than(size), pytest.raises(OSError, match="File too large") as caught:
            WRITERS[name](str(path))
        assert caught.value.errno == errno.EFBIG
        assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    path.unlink()
    with no_file_larger_than(sizes[0]), pytest.raises(OSError, match="File too large"):
        WRITERS[name](str(path))
    assert not path.exists()


def test_an_index_that_cannot_be_written_keeps_the_records_from_their_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.tfrecord"
    writer = di.io.TFRecordWriter(path, index=True)
    for _ in range(100):
        writer.write(b"")
    with monkeypatch.context() as patch:
        patch.setattr(indexed, "ENDING", "/no/such/folder")
        with pytest.raises(OSError, match=r"a\.tfrecord/no/such/folder"):
            writer.close()
    writer.close()
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_published_after_a_write_that_failed(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    writer = di.io.TFRecordWriter(path)
    with no_file_larger_than(1 << 19):
        for _ in range(500):
            writer.write(RECORD)
        with pytest.raises(OSError, match="File too large") as caught:
            writer.write(bytes(1 << 20))
        assert caught.value.__notes__ == [f"while writing {str(path)!r}"]
    for call in (writer.close, writer.flush, lambda: writer.write(RECORD), writer.close):
        with pytest.raises(
            OSError, match=r"a\.tfrecord: was given up, and nothing is left of it, since writing failed"
        ) as caught:
            call()
        assert caught.value.errno == errno.EFBIG
    assert list(tmp_path.iterdir()) == []


# A writer that is forgotten, or left by an error.


@pytest.mark.parametrize("records", [1, 1000])
@pytest.mark.parametrize("folder", ["", "memory://forgotten/"])
def test_a_forgotten_writer_publishes_nothing_and_warns(tmp_path: Path, folder: str, records: int) -> None:
    root = folder or f"{tmp_path}/"
    writer = di.io.TFRecordWriter(f"{root}a.tfrecord", index=True)
    for _ in range(records):
        writer.write(RECORD)
    writer.flush()
    with pytest.warns(ResourceWarning, match=r"a\.tfrecord: was written, but never closed, so nothing was kept of it"):
        del writer
    with pytest.raises(di.errors.NotFoundError):
        list_matching(f"{root}*")
    assert list(tmp_path.iterdir()) == []
    assert not folder or not fsspec.filesystem("memory").find("/forgotten")


@pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt, GeneratorExit])
@pytest.mark.parametrize("folder", ["", "memory://left/"])
def test_an_error_in_a_with_block_leaves_the_old_file(tmp_path: Path, folder: str, error: type[BaseException]) -> None:
    path = f"{folder or f'{tmp_path}/'}a.tfrecord"
    write_records(path, 3)
    with suppress(error), di.io.TFRecordWriter(path) as writer:
        for _ in range(1000):
            writer.write(RECORD)
        writer.flush()
        raise error
    assert len(list(di.data.TFRecordDataset(path))) == 3
    assert list_matching(path.replace("a.tfrecord", "*")) == [path]
    assert len(list(tmp_path.iterdir())) == (0 if folder else 1)


def test_a_flushed_file_has_no_name_yet(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    with di.io.TFRecordWriter(path) as writer:
        writer.write(RECORD)
        writer.flush()
        assert not path.exists()
    assert list(di.data.TFRecordDataset(str(path))) == [RECORD]


def test_a_forked_process_does_not_take_its_parents_file_away(tmp_path: Path) -> None:
    writer = di.io.TFRecordWriter(tmp_path / "a.tfrecord")
    writer.write(RECORD)
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            writer._sink.discard()
        os._exit(0)
    os.waitpid(child, 0)
    writer.close()
    assert list(di.data.TFRecordDataset(str(tmp_path / "a.tfrecord"))) == [RECORD]


# Several writers of one file.


def test_writers_of_one_file_at_a_time_do_not_meet(tmp_path: Path) -> None:
    path = str(tmp_path / "a.tfrecord")
    with di.io.TFRecordWriter(path) as first, di.io.TFRecordWriter(path) as second:
        for _ in range(1000):
            first.write(b"first")
            second.write(b"second")
    assert list(di.data.TFRecordDataset(path)) == [b"first"] * 1000
    assert os.listdir(tmp_path) == ["a.tfrecord"]


def write_again_and_again(path: str, turns: int) -> None:
    for _ in range(turns):
        with Sink(path) as sink:
            sink.write(str(os.getpid()).encode() * 1000)


def test_processes_that_write_one_file_leave_one_of_theirs(tmp_path: Path) -> None:
    path = str(tmp_path / "a")
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=write_again_and_again, args=(path, cases(200, 5000))) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 3
    assert Path(path).read_text() in {str(process.pid) * 1000 for process in processes}
    assert os.listdir(tmp_path) == ["a"]


def test_where_there_are_no_locks_age_tells_what_was_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unfinished, "locked", lambda descriptor: None)
    path = tmp_path / "a"
    young, old = (tmp_path / f".a.{number}.distinput-unfinished" for number in range(2))
    for left in (young, old):
        left.write_bytes(b"left")
    os.utime(old, (0, 0))
    with Sink(str(path)) as sink:
        sink.write(b"new")
    assert {file.name for file in tmp_path.iterdir()} == {"a", young.name}
    with suppress(KeyError), Sink(str(path)) as sink:
        raise KeyError
    assert {file.name for file in tmp_path.iterdir()} == {"a", young.name}
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("name", ["a" * 255, "\u20ac" * 85, "a[1]*", ".hidden", "\udcff"])
def test_names_that_are_long_or_strange(tmp_path: Path, name: str) -> None:
    with Sink(str(tmp_path / name)) as sink:
        sink.write(b"x")
    assert os.listdir(tmp_path) == [name]


# Elsewhere.


@pytest.mark.parametrize("name", ["a.tfrecord", "a[1].tfrecord"])
def test_elsewhere_a_file_appears_when_it_is_whole(name: str) -> None:
    path = f"memory://whole/{name}"
    write_records(path, 2)
    with di.io.TFRecordWriter(path) as writer:
        for _ in range(1000):
            writer.write(RECORD)
        writer.flush()
        assert len(list(di.data.TFRecordDataset(path))) == 2
        for pattern in ("*", ".*", "**", "?a*"):
            with suppress(di.errors.NotFoundError):
                assert {*list_matching(f"memory://whole/{pattern}")} - {"memory://whole"} == {path}
    assert len(list(di.data.TFRecordDataset(path))) == 1000
    assert fsspec.filesystem("memory").find("/whole") == [f"/whole/{name}"]
    fsspec.filesystem("memory").rm("/whole", recursive=True)


def test_elsewhere_what_was_left_behind_goes_when_it_is_old() -> None:
    system = fsspec.filesystem("memory")
    for name in ("old", "young"):
        system.pipe(f"/old/.a.{name}.distinput-unfinished", b"left")
    system.store["/old/.a.old.distinput-unfinished"].modified -= timedelta(days=2)
    with Sink("memory://old/a") as sink:
        sink.write(b"x")
    assert sorted(system.find("/old")) == ["/old/.a.young.distinput-unfinished", "/old/a"]
    assert list_matching("memory://old/*") == ["memory://old/a"]


class Store(MemoryFileSystem):
    """Objects that appear when their upload is complete, as those of S3."""

    protocol = "s3"
    cachable = False

    def _open(self, path: str, mode: str = "rb", **kwargs: Any) -> Any:
        return StoreFile(self, path, mode, **kwargs) if mode == "wb" else super()._open(path, mode, **kwargs)

    def cp_file(self, path1: str, path2: str, **kwargs: Any) -> None:
        raise AssertionError("an object is not copied")


class StoreFile(AbstractBufferedFile):
    def _initiate_upload(self) -> None:
        self.parts: list[bytes] = []

    def _upload_chunk(self, final: bool = False) -> bool:
        self.parts.append(self.buffer.getvalue())
        if final:
            self.fs.store[self.path] = MemoryFile(self.fs, self.path, b"".join(self.parts))
        return True


def test_an_object_store_gets_the_object_at_once_and_only_when_it_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store()
    monkeypatch.setattr(unfinished, "file_system", lambda path: (store, path.removeprefix("s3:/")))
    write_records("s3://published/a", 3)
    whole = store.cat("/published/a")
    with suppress(KeyError), Sink("s3://published/a") as sink:
        sink.write(bytes(1 << 20))
        raise KeyError
    sink = Sink("s3://published/a")
    sink.write(bytes(1 << 20))
    with pytest.warns(ResourceWarning, match="never closed"):
        del sink
    assert store.find("/published") == ["/published/a"]
    assert store.cat("/published/a") == whole
