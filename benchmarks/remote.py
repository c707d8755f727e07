# SPDX-License-Identifier: Apache-2.0
"""How much of the bandwidth that obstore has alone do records and columns get, over HTTP with 20 ms before each answer?"""

import atexit
import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.checksum import in_order
from benchmarks.folders import write_litdata
from benchmarks.harness import SEED, BenchmarkError, Case, Contender, Work, scaled

QUESTION = (
    "4 remote files over HTTP on loopback, each answer after 20 ms: records of 16 KB, and columns of Parquet; and thousands of "
    "objects of 10 to 100 KB, each read whole by `map(read_file)`, or from tar archives"
)
NOTES = """
The server is a process of its own, equally slow for all. `obstore, in pieces` is the fastest that obstore is by itself:
`get_ranges` with pieces of 4 MB, ten at a time, for four files at a time; it drops what arrives. `obstore, get` asks for
whole files, four at a time. For Parquet it is told the columns, asks for their bytes alone, and decodes nothing. `obstore,
then pyarrow` decodes them on the same four threads and verifies the checksums of pages, as distinput does. distinput reads
one file after the other, and asks for the version of each first. Small objects are read 64 at a time, one request each.
WebDataset streams the same bytes from eight archives, one after the other, as it does for training; distinput reads the same
archives in a case of its own. LitData reads them from eight chunks of its layout, by its own client of S3: to that, the server
is one with a single bucket. Its client refuses plain HTTP; the benchmark lets it. It begins with an empty cache on the disk.

Loopback sends a gigabyte a second to a client that shares two cores with the server. So the cores are the bottleneck there,
and decoding is a part of the figure. With 2 Gbit/s for all answers together the network is the bottleneck, as it is between
machines.
"""
FILES, RECORD, PIECE, LATENCY = 4, 16 << 10, 4 << 20, 0.02
BANDWIDTH = 250_000_000
GROUPS = 8
OBJECTS, ARCHIVES, AT_A_TIME = 4000, 8, 64
BUCKET = "litdata"
WANTED = ["c0", "c5"]
OBSTORE, LITDATA = ("obstore",), ("litdata", "torch", "obstore")


def _bytes(scale: float) -> int:
    """The size of a file of records."""
    return scaled(64 << 20, scale, 4 << 20) // RECORD * RECORD


def _rows(scale: float) -> int:
    return scaled(2_000_000, scale, 80_000)


def prepare(folder: Path, scale: float) -> None:
    """Files of records, and wide tables."""
    import distinput as di

    random = np.random.default_rng(SEED)
    for number in range(FILES):
        (folder / f"{number}.bin").write_bytes(random.bytes(_bytes(scale)))
        columns = {f"c{i}": random.random(_rows(scale)) for i in range(8)}
        di.io.write_parquet(
            str(folder / f"{number}.parquet"), columns, row_group_size=_rows(scale) // GROUPS, compression="none"
        )
    for name in _objects(scale):
        (folder / name).write_bytes(random.bytes(int(random.integers(10_000, 100_000))))
    for number in range(ARCHIVES):
        with tarfile.open(folder / f"{number}.tar", "w") as archive:
            for name in _of_archive(number, scale):
                archive.add(folder / name, name)
    parts = [[[(folder / name).read_bytes()] for name in _of_archive(number, scale)] for number in range(ARCHIVES)]
    write_litdata(folder / BUCKET, parts)


def _objects(scale: float) -> list[str]:
    return [f"{number:06}.jpg" for number in range(scaled(OBJECTS, scale, ARCHIVES))]


def _of_archive(number: int, scale: float) -> list[str]:
    names = _objects(scale)
    return names[len(names) * number // ARCHIVES : len(names) * (number + 1) // ARCHIVES]


def cases(folder: Path, scale: float) -> list[Case]:
    """Records, and columns."""
    names = [f"{number}.bin" for number in range(FILES)]
    size = _bytes(scale)
    whole = {name: [(at, min(size, at + PIECE)) for at in range(0, size, PIECE)] for name in names}
    tables = [f"{number}.parquet" for number in range(FILES)]
    small = _objects(scale)
    chunks = {name: _chunks(folder / name) for name in tables}
    small_units = {"object": len(small), "byte": sum((folder / name).stat().st_size for name in small)}
    readers = [
        Contender("webdataset", "peer", lambda: _webdataset(folder), ("webdataset",), 1.0),
        Contender("litdata", "peer", lambda: _litdata(folder), LITDATA, 1.0),
    ]
    sent = sum(stop - start for ranges in chunks.values() for start, stop in ranges)

    def records(bandwidth: int = 0) -> Work:
        import distinput as di

        urls = [f"{_url(folder, bandwidth)}/{name}" for name in names]
        dataset = di.data.FixedLengthRecordDataset(urls, RECORD, num_parallel_reads=FILES, **_options())

        def once() -> int:
            with dataset.iter_blocks() as blocks:
                return sum(block.size for block in blocks)

        def check() -> str:
            here = ((folder / name).read_bytes() for name in names)
            cut = (data[at : at + RECORD] for data in here for at in range(0, len(data), RECORD))
            return _same(sum(map(zlib.crc32, dataset)), sum(map(zlib.crc32, cut)))

        return Work(once, check)

    def columns(bandwidth: int = 0) -> Work:
        import distinput as di

        # turns row by row would cost more than the network
        files = [f"{_url(folder, bandwidth)}/{name}" for name in tables]
        dataset = di.data.ParquetDataset(files, WANTED, **_options()).batch(8192)

        def check() -> str:
            import pyarrow.parquet as pq

            wanted = [pq.read_table(folder / name, columns=WANTED) for name in tables]
            return _same(
                in_order(np.concatenate([batch[name] for batch in dataset]) for name in WANTED),
                in_order(np.concatenate([table[name].to_numpy() for table in wanted]) for name in WANTED),
            )

        return Work(lambda: sum(1 for _ in dataset), check)

    return [
        Case(
            "records",
            {"byte": FILES * size},
            [
                Contender("distinput", "ours", records),
                Contender("obstore, in pieces", "limit", lambda: _ranges(folder, whole), OBSTORE, 0.8),
                Contender("obstore, get", "limit", lambda: _gets(folder, names), OBSTORE),
            ],
        ),
        Case(
            "columns",
            {"byte": sent},
            [
                Contender("distinput", "ours", columns),
                Contender("obstore, in pieces", "limit", lambda: _ranges(folder, chunks), OBSTORE, 0.8),
                Contender("obstore, then pyarrow", "limit", lambda: _decoded(folder, chunks), OBSTORE),
            ],
        ),
        Case(
            "records, 2 Gbit/s",
            {"byte": FILES * size},
            [
                Contender("distinput", "ours", lambda: records(BANDWIDTH)),
                Contender("obstore, in pieces", "limit", lambda: _ranges(folder, whole, BANDWIDTH), OBSTORE, 0.8),
            ],
        ),
        Case(
            "columns, 2 Gbit/s",
            {"byte": sent},
            [
                Contender("distinput", "ours", lambda: columns(BANDWIDTH)),
                Contender("obstore, in pieces", "limit", lambda: _ranges(folder, chunks, BANDWIDTH), OBSTORE, 0.8),
            ],
        ),
        Case(
            "objects of 10 to 100 KB",
            small_units,
            [
                Contender("distinput", "ours", lambda: _whole_objects(folder, small)),
                Contender("obstore, get", "limit", lambda: _gets(folder, small, AT_A_TIME), OBSTORE, 0.5),
                *readers,
            ],
        ),
        Case(
            "archives of such objects",
            small_units,
            [
                Contender("distinput", "ours", lambda: _archives(folder)),
                Contender("obstore, get", "limit", lambda: _gets(folder, _tars()), OBSTORE),
                *readers,
            ],
        ),
    ]


def _whole_objects(folder: Path, names: list[str]) -> Work:
    import distinput as di

    di.io.mount(f"{_url(folder)}/", _store(folder))
    urls = di.data.Dataset.from_tensor_slices([f"{_url(folder)}/{name}" for name in names])
    dataset = urls.map(di.io.read_file, num_parallel_calls=AT_A_TIME)
    return _delivered(lambda: dataset)


def _tars() -> list[str]:
    return [f"{number}.tar" for number in range(ARCHIVES)]


def _delivered(objects: Callable[[], Iterable[bytes]]) -> Work:
    return Work(lambda: sum(map(len, objects())), lambda: str(sum(map(zlib.crc32, objects()))))


def _archives(folder: Path) -> Work:
    import distinput as di

    di.io.mount(f"{_url(folder)}/", _store(folder))
    samples = di.data.WebDataset([f"{_url(folder)}/{name}" for name in _tars()])
    return _delivered(lambda: (sample["jpg"] for sample in samples))


def _webdataset(folder: Path) -> Work:
    from webdataset import WebDataset

    urls = [f"pipe:curl -s {_url(folder)}/{name}" for name in _tars()]
    return _delivered(lambda: (sample["jpg"] for sample in WebDataset(urls, shardshuffle=False)))


def _litdata(folder: Path) -> Work:
    from litdata import StreamingDataset
    from litdata.streaming import downloader

    downloader._OBSTORE_CLIENT_OPTIONS["allow_http"] = True
    options = {"endpoint_url": _url(folder), "aws_access_key_id": "any", "aws_secret_access_key": "any"}
    options["region_name"] = "any"

    def objects() -> Iterator[bytes]:
        cache = tempfile.mkdtemp(dir=folder)
        try:
            yield from StreamingDataset(f"s3://{BUCKET}", cache, max_pre_download=ARCHIVES, storage_options=options)
        finally:
            shutil.rmtree(cache)

    return _delivered(objects)


def _chunks(path: Path) -> list[tuple[int, int]]:
    """The bytes of the wanted columns."""
    from pyarrow.parquet import read_metadata

    footer = read_metadata(path)
    found = []
    for group in range(footer.num_row_groups):
        for i in range(footer.num_columns):
            column = footer.row_group(group).column(i)
            if column.path_in_schema in WANTED:
                start = column.dictionary_page_offset or column.data_page_offset
                found.append((start, start + column.total_compressed_size))
    return found


@cache
def _url(folder: Path, bandwidth: int = 0) -> str:
    """The server of this contender."""
    bounds = ["--latency", str(LATENCY)] + (["--bandwidth", str(bandwidth)] if bandwidth else [])
    server = subprocess.Popen(
        [sys.executable, "-m", "distinput.testing.range_server", str(folder), *bounds],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    assert server.stdin is not None
    atexit.register(server.wait)
    atexit.register(server.stdin.close)
    return server.stdout.readline().strip()


def _options() -> dict[str, Any]:
    return {"filesystem": "obstore", "storage_options": {"client_options": {"allow_http": True}}}


def _store(folder: Path, bandwidth: int = 0) -> Any:
    from obstore.store import from_url

    return from_url(_url(folder, bandwidth), client_options={"allow_http": True})


Ranges = dict[str, list[tuple[int, int]]]


def _ranges(folder: Path, ranges: Ranges, bandwidth: int = 0) -> Work:
    store = _store(folder, bandwidth)
    return Work(lambda: _all(lambda name: sum(map(len, _parts(store, name, ranges))), ranges))


def _parts(store: Any, name: str, ranges: Ranges) -> Any:
    import obstore

    starts, stops = [a for a, _ in ranges[name]], [b for _, b in ranges[name]]
    return obstore.get_ranges(store, name, starts=starts, ends=stops, coalesce=0)


def _decoded(folder: Path, ranges: Ranges) -> Work:
    from pyarrow.parquet import ParquetFile, read_metadata

    store, footers = _store(folder), {name: read_metadata(folder / name) for name in ranges}

    def read(name: str) -> int:
        parts = _parts(store, name, ranges)
        source = _Fetched([a for a, _ in ranges[name]], parts, (folder / name).stat().st_size)
        file = ParquetFile(source, metadata=footers[name], page_checksum_verification=True, pre_buffer=False)
        groups = range(file.num_row_groups)
        return sum(file.read_row_group(group, columns=WANTED, use_threads=False).num_rows for group in groups)

    return Work(lambda: _all(read, ranges))


class _Fetched(io.RawIOBase):
    """A file of which only some ranges are there."""

    def __init__(self, starts: list[int], parts: Sequence[Any], size: int) -> None:
        super().__init__()
        self._parts: dict[int, Any] = {start: memoryview(part) for start, part in zip(starts, parts, strict=True)}
        self._size, self._at = size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def read(self, size: int = -1) -> Any:
        """What begins here; pyarrow reads whole columns."""
        part = self._parts[self._at][:size]
        self._at += len(part)
        return part


def _gets(folder: Path, names: list[str], at_a_time: int = FILES) -> Work:
    import obstore

    store = _store(folder)
    return Work(lambda: _all(lambda name: len(obstore.get(store, name).bytes()), names, at_a_time))


def _all(read: Any, names: Any, at_a_time: int = FILES) -> int:
    with ThreadPoolExecutor(at_a_time) as pool:
        return sum(pool.map(read, names))


def _same(found: object, wanted: object) -> str:
    """A checksum that must be that of the files themselves."""
    if found != wanted:
        raise BenchmarkError(f"delivered {found}, but the files hold {wanted}")
    return str(found)
