# SPDX-License-Identifier: Apache-2.0
"""Blocks that end where groups of rows do."""

import contextlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.columns.column import Strings
from distinput.errors import DataLossError
from distinput.formats.fixed_length import FixedLengthRecords
from distinput.formats.format import Format, Position
from distinput.formats.span_format import CHUNK_BYTES
from distinput.formats.text import TextLines
from distinput.formats.tfrecord import TFRecords, TFRecordWriter
from distinput.kernels.checksums import FOOTER, HEADER
from tests.formats.reading import check_groups, check_positions, records, records_until_error, small_pieces


def in_groups(
    format: Format, path: str, position: Position | None, size: int, given: int
) -> tuple[list[Any], list[int]]:
    """The records, and where each block ends among them; every position leads to the rest."""
    found, ends = [], []
    for block, after in format.read_groups(path, position, size, given):
        found += block.elements()
        ends.append(len(found))
        assert records(format, path, after) == records(format, path, position)[len(found) :]
    return found, ends


@given(
    st.lists(st.binary(max_size=60).filter(lambda line: b"\n" not in line and b"\r" not in line)),
    st.sampled_from([TFRecords(), TFRecords("GZIP"), TextLines()]),
    st.integers(1, 9),
    st.integers(0, 8),
    st.integers(1, 200),
)
def test_groups_change_no_record(items: list[bytes], format: Format, size: int, given: int, chunk: int) -> None:
    path = "memory://spans/groups"
    if isinstance(format, TFRecords):
        with TFRecordWriter(path, format.compression_type) as writer:
            for item in items:
                writer.write(item)
    else:
        import fsspec

        with fsspec.open(path, "wb") as file:
            file.write(b"".join([item + b"\n" for item in items]))
    with small_pieces(chunk, rows=7):
        assert in_groups(format, path, None, size, given % size)[0] == items
        for block, after in format.read_groups(path, None, size, given % size):
            assert in_groups(format, path, after, size, (given + block.size) % size)[0] == items[after["row"] :]


@given(
    st.lists(
        st.binary(min_size=1, max_size=60).filter(lambda line: b"\n" not in line and b"\r" not in line), min_size=1
    ),
    st.sampled_from([TFRecords(), TextLines()]),
    st.integers(1, 9),
    st.integers(0, 8),
    st.integers(1, 7),
    st.none() | st.tuples(st.integers(0), st.integers(0, 7)),
)
def test_a_file_that_is_read_whole_has_what_its_chunks_have(
    tmp_path_factory: pytest.TempPathFactory,
    items: list[bytes],
    format: Format,
    size: int,
    given: int,
    rows: int,
    flip: tuple[int, int] | None,
) -> None:
    path = tmp_path_factory.mktemp("spans") / "a"
    if isinstance(format, TFRecords):
        with TFRecordWriter(path) as writer:
            for item in items:
                writer.write(item)
    else:
        path.write_bytes(b"\n".join(items))
    content = bytearray(path.read_bytes())
    if flip is not None:
        content[flip[0] % len(content)] ^= 1 << flip[1]
        path.write_bytes(content)
    with small_pieces(len(content) - 1, rows):
        chunks = records_until_error(format, path)
    with small_pieces(len(content), rows):
        whole = records_until_error(format, path)
        assert (whole[0], str(whole[1])) == (chunks[0], str(chunks[1]))
        if whole[1] is None:
            check_positions(format, path, whole[0])
            size = min(size, rows)
            check_groups(format, path, whole[0], size, given % size)


def test_a_file_that_grows_as_it_is_looked_at_is_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one\ntw")
    stat, grown = os.stat, []

    def grows(*args: Any, **options: Any) -> os.stat_result:
        status = stat(*args, **options)
        if args[0] == str(path) and not grown:
            grown.append(path.write_bytes(b"one\ntwo\nthree\n"))
        return status

    monkeypatch.setattr(os, "stat", grows)
    assert records(TextLines(), path) == [b"one", b"two", b"three"]
    assert grown


@pytest.mark.parametrize("size", [32, 1000, 5000])
def test_a_group_lies_in_one_block(tmp_path: Path, size: int) -> None:
    rng = np.random.default_rng(0)
    file = str(tmp_path / "a.tfr")
    with TFRecordWriter(file) as writer:
        for _ in range(30_000):
            writer.write(bytes(int(rng.integers(20, 60))))
    _, ends = in_groups(TFRecords(), file, None, size, 10)
    # The first block is small, and after it the second one: nothing is known yet of how long records are.
    assert all((end + 10) % size == 0 for end in ends[1:-1])
    assert len(ends) < 20 + 30_000 // size


def test_a_later_file_is_read_as_the_others_were(tmp_path: Path) -> None:
    file = str(tmp_path / "a.tfr")
    with TFRecordWriter(file) as writer:
        for _ in range(100_000):
            writer.write(bytes(50))
    _, ends = in_groups(TFRecords(), file, None, 1000, 7700)
    assert ends[1] > 10_000  # nobody waits for the first record of all
    assert all((end + 7700) % 1000 == 0 for end in ends[:-1])


@pytest.mark.parametrize("rows, size, damaged", [(10, 20, None), (100, 20, None), (10, 20, 4), (100, 20, 80)])
def test_records_are_looked_through_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, size: int, damaged: int | None
) -> None:
    file = tmp_path / "a.tfr"
    with TFRecordWriter(file) as writer:
        for row in range(rows):
            writer.write(b"%4d" % row * 25)
    if damaged is not None:
        data = bytearray(file.read_bytes())
        data[damaged * (100 + HEADER + FOOTER) + 50] ^= 1
        file.write_bytes(data)
        with pytest.raises(DataLossError) as wanted:
            list(TFRecords().read(str(file)))
        with pytest.raises(DataLossError) as error:
            list(TFRecords().read_groups(str(file), None, size, 10))
        assert str(error.value) == str(wanted.value)
    looked, find = [], TFRecords.find

    def counted(self: TFRecords, *args: Any) -> Any:
        found = find(self, *args)
        looked.append(found.count)
        return found

    monkeypatch.setattr(TFRecords, "find", counted)
    with contextlib.suppress(DataLossError):
        list(TFRecords().read_groups(str(file), None, size, 10))
    assert sum(looked) == (rows if damaged is None else damaged)


def test_a_small_file_takes_little_memory(tmp_path: Path) -> None:
    file = str(tmp_path / "a.tfr")
    with TFRecordWriter(file) as writer:
        for _ in range(10):
            writer.write(bytes(50))
    (block, _), *others = TFRecords().read_groups(file, None, 100, 1000)
    column = block.columns[0]
    assert isinstance(column, Strings)
    assert (block.size, others) == (10, [])
    assert len(column.data) < 10_000
    memory = column.data if column.data.base is None else column.data.base
    assert getattr(memory, "nbytes", 0) < 100_000


def test_large_groups_end_anywhere(tmp_path: Path) -> None:
    file = tmp_path / "a.bin"
    file.write_bytes(bytes(100_000) * 90)
    format = FixedLengthRecords(100_000)
    blocks = [block.size for block, _ in format.read_groups(str(file), None, 64, 0)]
    assert sum(blocks) == 90
    assert max(blocks) * 100_000 <= CHUNK_BYTES <= 4 << 20  # 64 of them would be far too much to read at a time


def test_batches_of_a_reader_are_views(tmp_path: Path) -> None:
    files = [str(tmp_path / f"{number}.tfr") for number in range(3)]
    for number, file in enumerate(files):
        with di.io.TFRecordWriter(file) as writer:
            for row in range(2500):
                writer.write(di.io.encode_example({"x": [10_000 * number + row]}))
    features = {"x": di.io.FixedLenFeature([], "int64")}
    ds = di.data.TFRecordDataset(files).parse_example(features).batch(100)
    assert "read_for_batches" in ds.explain()
    batches = [batch["x"] for batch in ds]
    assert np.concatenate(batches).tolist() == [10_000 * number + row for number in range(3) for row in range(2500)]
    assert [len(batch) for batch in batches] == [100] * 75
