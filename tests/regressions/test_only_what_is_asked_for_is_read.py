# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Barrier, Lock, Thread
from typing import Any, ClassVar

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

import distinput as di
from distinput.files.remote import near
from distinput.formats.npy import Npy

ROWS = 100_000


class Counted(MemoryFileSystem):
    """Files in memory; what is read of them is counted as it would cross a network."""

    protocol = "counted"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    cachable = False
    asked: ClassVar[list[tuple[str, int]]] = []
    infos = 0

    @classmethod
    def reset(cls) -> None:
        cls.asked.clear()
        cls.infos = 0

    @classmethod
    def nbytes(cls) -> int:
        return sum(size for _, size in cls.asked)

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path

    def info(self, path: str, **kwargs: Any) -> Any:
        type(self).infos += 1
        return {**super().info(path, **kwargs)}

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any) -> bytes:
        data: bytes = super().cat_file(path, start, end, **kwargs)
        self.asked.append((path, len(data)))
        return data

    def _open(self, path: str, mode: str = "rb", **kwargs: Any) -> Any:
        return CountedFile(self, path, mode, **kwargs) if mode == "rb" else super()._open(path, mode, **kwargs)


class CountedFile(AbstractBufferedFile):
    def _fetch_range(self, start: int, end: int) -> bytes:
        data = bytes(self.fs.store[self.path].getbuffer()[start:end])
        self.fs.asked.append((self.path, len(data)))
        return data


class Plain(Counted):
    """The same without a way of its own to read ranges."""

    protocol = "plain"
    cat_file = AbstractFileSystem.cat_file


@pytest.fixture(params=["counted", "plain"])
def root(request: pytest.FixtureRequest) -> Iterator[str]:
    fsspec.register_implementation("counted", Counted, clobber=True)
    fsspec.register_implementation("plain", Plain, clobber=True)
    Counted.reset()
    yield f"{request.param}://folder"
    Counted.store.clear()


def numbers(columns: int, rows: int = ROWS) -> dict[str, Any]:
    dice = np.random.default_rng(0)
    return {f"c{number}": dice.random(rows) for number in range(columns)}


def wanted(path: str, columns: list[str], groups: list[int] | None = None) -> int:
    """Bytes of the chunks of some columns, by pyarrow's account."""
    content = Counted.store[path].getvalue()
    footer = pq.read_metadata(pa.BufferReader(content))
    return sum(
        footer.row_group(group).column(number).total_compressed_size
        for group in (range(footer.num_row_groups) if groups is None else groups)
        for number in range(footer.num_columns)
        if footer.row_group(group).column(number).path_in_schema.split(".")[0] in columns
    )


FOOTER = 1 << 16  # what is read of the end of a file


@pytest.mark.parametrize("columns", [["c3"], ["c7", "c0"], ["c1", "c2", "c3"]])
@pytest.mark.parametrize("group", [None, 10_000])
def test_of_a_parquet_file_only_the_columns_asked_for_cross_the_network(
    root: str, columns: list[str], group: int | None
) -> None:
    path = f"{root}/a.parquet"
    table = numbers(8)
    di.io.write_parquet(path, table, row_group_size=group)
    dataset = di.data.ParquetDataset(path, columns=columns)
    assert len(dataset) == ROWS
    found = next(iter(dataset.batch(ROWS)))
    assert all((found[name] == table[name]).all() for name in columns)
    assert wanted(path, columns) <= Counted.nbytes() <= 1.1 * wanted(path, columns) + FOOTER
    before = Counted.nbytes()
    list(dataset.batch(ROWS))
    assert Counted.nbytes() - before <= 1.1 * wanted(path, columns), "the footer is read once"


def test_large_row_groups_are_read_in_pieces_and_no_byte_twice(root: str) -> None:
    path = f"{root}/a.parquet"
    table = {"wide": np.random.default_rng(0).random((20_000, 64)), "other": np.random.default_rng(0).random(20_000)}
    di.io.write_parquet(path, table)
    found = next(iter(di.data.ParquetDataset(path, columns=["wide"]).batch(20_000)))
    assert (found["wide"] == table["wide"]).all()
    assert wanted(path, ["wide"]) <= Counted.nbytes() <= 1.1 * wanted(path, ["wide"]) + FOOTER


def test_a_part_of_the_rows_reads_its_own_row_groups(root: str) -> None:
    path = f"{root}/a.parquet"
    di.io.write_parquet(path, numbers(4), row_group_size=10_000)
    dataset = di.data.ParquetDataset(path, columns=["c2"])
    len(dataset)
    Counted.reset()
    assert len(list(dataset.skip(45_000).take(1000))) == 1000
    assert Counted.nbytes() <= 1.1 * wanted(path, ["c2"], [4]), "the row group that holds them"
    Counted.reset()
    assert len(list(dataset.shard(10, 3))) == ROWS // 10
    assert Counted.nbytes() <= 1.1 * wanted(path, ["c2"])


def test_a_long_footer_is_read_in_two_requests(root: str) -> None:
    path = f"{root}/a.parquet"
    di.io.write_parquet(path, {f"column {number}": np.arange(20) for number in range(100)}, row_group_size=1)
    dataset = di.data.ParquetDataset(path, columns=["column 7"])
    assert len(dataset) == 20
    assert len(Counted.asked) == 2
    assert [int(row["column 7"]) for row in dataset] == list(range(20))


def test_each_footer_is_read_once_a_process(root: str) -> None:
    paths = [f"{root}/{number}.parquet" for number in range(300)]
    di.io.write_parquet(paths[0], {"x": np.arange(3)})
    with fsspec.open(paths[0], "rb") as file:
        content = file.read()
    for path in paths[1:]:
        with fsspec.open(path, "wb") as file:
            file.write(content)
    Counted.reset()
    dataset = di.data.ParquetDataset(paths, columns=["x"])
    assert len(dataset) == 900
    for _ in range(2):
        assert len(list(dataset.batch(100))) == 9
    footers = len(Counted.asked) - 2 * len(paths)
    assert footers == len(paths)


def test_many_files_are_asked_at_a_time(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [f"{root}/{number}.npy" for number in range(4)]
    for path in paths:
        with fsspec.open(path, "wb") as file:
            np.save(file, np.arange(3))
    together = Barrier(len(paths), timeout=60)
    rows = Npy.rows

    def waiting(self: Npy, path: str) -> int | None:
        together.wait()
        return rows(self, path)

    monkeypatch.setattr(Npy, "rows", waiting)
    assert len(di.data.NpyDataset(paths)) == 12


def test_of_an_arrow_file_only_the_columns_asked_for_cross_the_network(root: str) -> None:
    path = f"{root}/a.arrow"
    table = numbers(8)
    di.io.write_arrow(path, table, batch_rows=10_000)
    dataset = di.data.ArrowDataset(path, columns=["c3"])
    found = next(iter(dataset.batch(ROWS)))
    assert (found["c3"] == table["c3"]).all()
    assert 8 * ROWS <= Counted.nbytes() <= 1.1 * 8 * ROWS + FOOTER


def test_an_arrow_stream_is_read_once_and_in_few_requests(root: str) -> None:
    path = f"{root}/a.stream"
    table = numbers(2)
    di.io.write_arrow(path, table, batch_rows=1000, stream=True)
    rows = sum(len(batch["c1"]) for batch in di.data.ArrowDataset(path).batch(1000))
    size = len(Counted.store[path].getvalue())
    assert rows == ROWS
    assert size <= Counted.nbytes() <= 1.1 * size + FOOTER
    assert len(Counted.asked) < 40


def test_of_an_npy_file_only_the_rows_asked_for_cross_the_network(root: str) -> None:
    path = f"{root}/a.npy"
    with fsspec.open(path, "wb") as file:
        np.save(file, np.arange(1_000_000))
    dataset = di.data.NpyDataset(path)
    assert dataset.skip(500_000).take(10).to_list() == list(range(500_000, 500_010))
    assert Counted.nbytes() < 2 << 20


@pytest.mark.parametrize("compression", [None, "GZIP"])
def test_records_are_read_once_and_not_far_ahead(root: str, compression: str | None) -> None:
    path = f"{root}/a.tfrecord"
    dice = np.random.default_rng(0)
    with di.io.TFRecordWriter(path, compression) as writer:
        for _ in range(1000):
            writer.write(dice.bytes(20_000))
    size = len(Counted.store[path].getvalue())
    dataset = di.data.TFRecordDataset(path, compression)
    assert len(list(dataset)) == 1000
    assert Counted.nbytes() == size
    assert len(Counted.asked) < 20
    Counted.reset()
    assert len(list(dataset.take(2))) == 2
    assert Counted.nbytes() < 2 << 20


def test_ranges_that_are_near_are_read_together() -> None:
    assert near([], []) == []
    assert near([10, 0], [20, 10]) == [(0, 20)]
    assert near([0, 11], [10, 20]) == [(0, 10), (11, 20)]
    dice = np.random.default_rng(0)
    for _ in range(100):
        sizes, gaps = dice.integers(1, 10**6, 50), dice.choice([0, 1, 100, 10_000, 10**5], 50)
        starts = np.cumsum(sizes + gaps) - sizes
        together = near(starts.tolist(), (starts + sizes).tolist())
        assert sum(b - a for a, b in together) <= 1.05 * sizes.sum()
        assert all(any(a <= start < b for a, b in together) for start in starts)


# A server of the real protocol, if fsspec can speak it.


class Ranges(BaseHTTPRequestHandler):
    """Serves parts of files, and counts them."""

    files: ClassVar[dict[str, bytes]] = {}
    sent = 0
    requests = 0
    lock = Lock()

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        content = self.files[self.path]
        asked = self.headers.get("Range")
        first, last = 0, len(content) - 1
        if asked:
            first, last = (int(x) for x in asked.removeprefix("bytes=").split("-"))
            last = min(last, len(content) - 1)
        part = content[first : last + 1]
        self.send_response(206 if asked else 200)
        self.send_header("Content-Length", str(len(part)))
        self.send_header("Accept-Ranges", "bytes")
        if asked:
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
        self.end_headers()
        with self.lock:
            type(self).requests += 1
        if body:
            self.wfile.write(part)
            with self.lock:
                type(self).sent += len(part)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    pytest.importorskip("aiohttp", reason="fsspec needs it for http://")
    with ThreadingHTTPServer(("127.0.0.1", 0), Ranges) as served:
        thread = Thread(target=served.serve_forever)
        thread.start()
        Ranges.sent = Ranges.requests = 0
        yield f"http://127.0.0.1:{served.server_port}"
        served.shutdown()
        thread.join()


def test_one_column_of_a_parquet_file_over_http(server: str, tmp_path: Any) -> None:
    di.io.write_parquet(str(tmp_path / "a"), numbers(20, 150_000), row_group_size=50_000)
    Ranges.files["/a.parquet"] = (tmp_path / "a").read_bytes()
    path = f"{server}/a.parquet"
    assert sum(len(batch["c7"]) for batch in di.data.ParquetDataset(path, columns=["c7"]).batch(1000)) == 150_000
    footer = pq.read_metadata(tmp_path / "a")
    size = sum(footer.row_group(group).column(7).total_compressed_size for group in range(3))
    assert size <= Ranges.sent <= 1.1 * size + FOOTER
    assert Ranges.requests == 2 + 3, "the size, the end of the file, and a chunk of each row group"
