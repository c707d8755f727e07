# SPDX-License-Identifier: Apache-2.0
"""Whole pieces of remote files become blocks as they arrived; records that two pieces share are put together."""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.files import mounts, remote, source
from distinput.run.run import Run
from distinput.testing.range_server import RangeServer

pytest.importorskip("obstore", reason="obstore is not installed")

OPTIONS: dict[str, Any] = {"filesystem": "obstore", "storage_options": {"client_options": {"allow_http": True}}}
KINDS = ["tfrecord", "fixed", "fixed with a footer", "text"]


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RangeServer]:
    """With pieces of some bytes, so that many borders are crossed."""
    monkeypatch.setattr(mounts, "_MOUNTS", {})
    monkeypatch.setattr(source, "_BEGINNING_BYTES", 64)
    monkeypatch.setattr(remote, "_SMALL_BYTES", 32)
    monkeypatch.setattr(remote, "PIECE_BYTES", 96)
    monkeypatch.setattr(remote, "_AHEAD_BYTES", 300)
    with RangeServer(tmp_path) as made:
        yield made


def written(folder: Path, kind: str, number: int, sizes: list[int]) -> tuple[str, list[bytes]]:
    """The name of a file of records, and the records."""
    random = np.random.default_rng([number, len(sizes)])
    if kind.startswith("fixed"):
        sizes = [sizes[0] + 1 for _ in sizes]
    records = [bytes(random.integers(97, 123, size, dtype=np.uint8)) for size in sizes]
    path = folder / f"{number}"
    match kind:
        case "tfrecord":
            with di.io.TFRecordWriter(path) as writer:
                for record in records:
                    writer.write(record)
        case "text":
            path.write_bytes(b"".join(record + b"\n" for record in records))
        case _:
            path.write_bytes(b"".join(records) + (b"footer" if "footer" in kind else b""))
    return path.name, records


def dataset(kind: str, names: list[str], width: int, parallel: int | None) -> di.data.Dataset:
    match kind:
        case "tfrecord":
            return di.data.TFRecordDataset(names, num_parallel_reads=parallel, **OPTIONS)
        case "text":
            return di.data.TextLineDataset(names, num_parallel_reads=parallel, **OPTIONS)
    footer = 6 if "footer" in kind else 0
    return di.data.FixedLengthRecordDataset(names, width, footer_bytes=footer, num_parallel_reads=parallel, **OPTIONS)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    sizes=st.lists(st.integers(0, 90), min_size=1, max_size=40),
    parallel=st.sampled_from([None, 2]),
    batch=st.sampled_from([None, 3]),
    at=st.integers(0, 60),
)
def test_records_are_those_of_the_files_wherever_pieces_end(
    server: RangeServer, kind: str, sizes: list[int], parallel: int | None, batch: int | None, at: int
) -> None:
    names, files = zip(*[written(server.folder, kind, n, sizes[n:] + sizes[:n]) for n in range(3)], strict=True)
    widths = {len(record) for records in files for record in records}
    if kind.startswith("fixed") and len(widths) > 1:
        sizes = [sizes[0]] * len(sizes)
        names, files = zip(*[written(server.folder, kind, n, sizes) for n in range(3)], strict=True)
    data = dataset(kind, [f"{server.url}/{name}" for name in names], len(files[0][0]), parallel)
    found = data if batch is None else data.batch(batch).unbatch()
    records = list(found)
    assert sorted(records) == sorted(record for file in files for record in file)
    if parallel is None:
        assert records == [record for file in files for record in file]
    with iter(found) as iterator:
        for _ in range(min(at, len(records))):
            next(iterator)
        assert list(found.restore(iterator.state())) == records[min(at, len(records)) :]


def test_what_was_delivered_stays_as_it_is(server: RangeServer) -> None:
    name, records = written(server.folder, "fixed", 0, [15] * 200)
    with dataset("fixed", [f"{server.url}/{name}"], 16, None).iter_blocks() as blocks:
        kept = list(blocks)
    assert [record for block in kept for record in block.elements()] == records


def test_a_record_whose_length_is_wrong_is_an_error(server: RangeServer) -> None:
    name, _ = written(server.folder, "tfrecord", 0, [10] * 50)
    path = server.folder / name
    data = bytearray(path.read_bytes())
    data[26 * 20 : 26 * 20 + 8] = struct.pack("<Q", 1 << 40)
    path.write_bytes(data)
    with pytest.raises(di.errors.DataLossError, match="corrupted record at 520"):
        dataset("tfrecord", [f"{server.url}/{name}"], 0, None).to_list()


@pytest.mark.parametrize("kind", KINDS)
def test_a_reader_tells_once_when_the_last_bytes_of_its_last_file_are_requested(server: RangeServer, kind: str) -> None:
    names = [written(server.folder, kind, n, [15] * 400)[0] for n in range(2)]
    node = dataset(kind, [f"{server.url}/{name}" for name in names], 16, None).node
    told: list[int] = []
    sizes: list[int] = []
    with Run() as run:
        for block, _ in node.open(node.start(0), run.asking(requested=lambda: told.append(sum(sizes)))):
            sizes.append(block.size)
    assert sum(sizes) == 800
    assert len(told) == 1
    assert 400 <= told[0] < 800
