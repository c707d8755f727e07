# SPDX-License-Identifier: Apache-2.0
"""How much of the bandwidth that obstore has alone do records and columns get, over HTTP with 20 ms before each answer?"""

import atexit
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.checksum import in_order
from benchmarks.harness import SEED, BenchmarkError, Case, Contender, Work, scaled

QUESTION = "4 remote files over HTTP on loopback, each answer after 20 ms: records of 16 KB, and columns of Parquet"
NOTES = """
The server is a process of its own, and as slow for all. `obstore, in pieces` is the fastest that obstore has by itself:
`get_ranges` with pieces of 4 MB, ten at a time, for four files at a time; what arrives is dropped. `obstore, get` asks for
whole files, four at a time. For Parquet it asks for the bytes of the columns alone, which it is told, and decodes nothing; we
read one file after the other, and ask for the version of each first.
"""
FILES, RECORD, PIECE, LATENCY = 4, 16 << 10, 4 << 20, 0.02
GROUPS = 8
WANTED = ["c0", "c5"]
OBSTORE = ("obstore",)


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


def cases(folder: Path, scale: float) -> list[Case]:
    """Records, and columns."""
    names = [f"{number}.bin" for number in range(FILES)]
    size = _bytes(scale)
    whole = {name: [(at, min(size, at + PIECE)) for at in range(0, size, PIECE)] for name in names}
    tables = [f"{number}.parquet" for number in range(FILES)]
    chunks = {name: _chunks(folder / name) for name in tables}
    sent = sum(stop - start for ranges in chunks.values() for start, stop in ranges)

    def records() -> Work:
        import distinput as di

        dataset = di.data.FixedLengthRecordDataset(
            [f"{_url(folder)}/{name}" for name in names], RECORD, num_parallel_reads=FILES, **_options()
        )

        def once() -> int:
            with dataset.iter_blocks() as blocks:
                return sum(block.size for block in blocks)

        def check() -> str:
            here = ((folder / name).read_bytes() for name in names)
            cut = (data[at : at + RECORD] for data in here for at in range(0, len(data), RECORD))
            return _same(sum(map(zlib.crc32, dataset)), sum(map(zlib.crc32, cut)))

        return Work(once, check)

    def columns() -> Work:
        import distinput as di

        files = [f"{_url(folder)}/{name}" for name in tables]  # turns row by row would cost more than the network
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
            ],
        ),
    ]


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
def _url(folder: Path) -> str:
    """The server of this contender."""
    server = subprocess.Popen(
        [sys.executable, "-m", "distinput.testing.range_server", str(folder), "--latency", str(LATENCY)],
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


def _store(folder: Path) -> Any:
    from obstore.store import from_url

    return from_url(_url(folder), client_options={"allow_http": True})


def _ranges(folder: Path, ranges: dict[str, list[tuple[int, int]]]) -> Work:
    import obstore

    store = _store(folder)

    def read(name: str) -> int:
        starts, stops = [a for a, _ in ranges[name]], [b for _, b in ranges[name]]
        return sum(map(len, obstore.get_ranges(store, name, starts=starts, ends=stops, coalesce=0)))

    return Work(lambda: _all(read, ranges))


def _gets(folder: Path, names: list[str]) -> Work:
    import obstore

    store = _store(folder)
    return Work(lambda: _all(lambda name: len(obstore.get(store, name).bytes()), names))


def _all(read: Any, names: Any) -> int:
    with ThreadPoolExecutor(FILES) as pool:
        return sum(pool.map(read, names))


def _same(found: object, wanted: object) -> str:
    """A checksum that must be that of the files themselves."""
    if found != wanted:
        raise BenchmarkError(f"delivered {found}, but the files hold {wanted}")
    return str(found)
