# SPDX-License-Identifier: Apache-2.0
"""TFRecord files with an index beside them."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.data.dataset import Dataset
from distinput.errors import DataLossError, InvalidArgumentError, NotFoundError
from distinput.formats.tfrecord import IndexedTFRecords, TFRecordWriter, write_tfrecord_index
from distinput.sharding.own_rows import rebatch_for
from distinput.sharding.policies import auto_shard
from tests.formats.reading import check_positions, records, small_pieces
from tests.sharding.counting import bytes_read

ITEMS = [b"x" * (i * 7 % 23) for i in range(40)]


def write(path: str | Path, items: list[bytes], *, index: bool = True) -> str:
    with TFRecordWriter(path, index=index) as writer:
        for item in items:
            writer.write(item)
    return str(path)


@given(st.lists(st.binary(max_size=60)), st.integers(1, 70), st.data())
def test_any_records_are_counted_and_fetched(items: list[bytes], chunk: int, data: st.DataObject) -> None:
    path = write("memory://indexed/any.tfr", items)
    format = IndexedTFRecords()
    with small_pieces(chunk):
        check_positions(format, path, items)
    assert format.rows(path) == len(items)
    wanted = data.draw(st.lists(st.integers(0, len(items) - 1), max_size=20)) if items else []
    assert list(format.fetch(path, np.array(wanted, np.int64)).elements()) == [items[row] for row in wanted]
    low, high = sorted(data.draw(st.tuples(*[st.integers(0, len(items))] * 2)))
    part = [e for block, _ in format.read_fragment(format.part(path, low, high)) for e in block.elements()]
    assert part == items[low:high]


def test_the_writers_index_is_that_of_the_function(tmp_path: Path) -> None:
    file = write(tmp_path / "a.tfr", ITEMS)
    written = Path(file + ".index").read_bytes()
    os.unlink(file + ".index")
    assert write_tfrecord_index(file) == len(ITEMS)
    assert Path(file + ".index").read_bytes() == written
    offsets = np.load(file + ".index")
    assert offsets.dtype == np.int64
    assert offsets.tolist() == np.cumsum([0, *[len(item) + 16 for item in ITEMS]]).tolist()


def test_an_index_of_tfrecord2idx_is_read(tmp_path: Path) -> None:
    file = write(tmp_path / "a.tfr", ITEMS, index=False)
    sizes = [len(item) + 16 for item in ITEMS]
    lines = [f"{sum(sizes[:number])} {size}\n" for number, size in enumerate(sizes)]
    Path(file + ".idx").write_text("".join(lines))
    check_positions(IndexedTFRecords(), file, ITEMS)
    assert Dataset.cardinality(di.data.TFRecordDataset(file, index=True)) == len(ITEMS)
    for damaged in ("".join(lines[1:]), "".join(lines[:5] + lines[6:]), "0\n", "a b\n", "0 12\n"):
        Path(file + ".idx").write_text(damaged)
        with pytest.raises(DataLossError, match=r"a\.tfr\.idx: not an index of a TFRecord file, or damaged"):
            IndexedTFRecords().rows(file)
    for empty in (b"", b"\n"):
        Path(file + ".idx").write_bytes(empty)
        with pytest.raises(DataLossError, match="write_tfrecord_index"):
            IndexedTFRecords().rows(file)


def test_a_damaged_index(tmp_path: Path) -> None:
    file = write(tmp_path / "a.tfr", ITEMS)
    good = Path(file + ".index").read_bytes()
    arrays = [np.zeros(3), np.zeros((1, 1), np.int64), np.array([], np.int64), np.array([1, 17]), np.array([0, 20, 30])]
    for array in arrays:
        np.save(tmp_path / "other.npy", array)
        Path(file + ".index").write_bytes((tmp_path / "other.npy").read_bytes())
        with pytest.raises(DataLossError, match=r"a\.tfr\.index: not an index of a TFRecord file, or damaged"):
            IndexedTFRecords().rows(file)
    for size in (0, 5, 100, len(good) - 1):
        Path(file + ".index").write_bytes(good[:size])
        with pytest.raises(DataLossError, match="write_tfrecord_index"):
            IndexedTFRecords().rows(file)


def test_an_index_of_an_older_version(tmp_path: Path) -> None:
    file, format = write(tmp_path / "a.tfr", ITEMS), IndexedTFRecords()
    write(file, ITEMS[:-1], index=False)
    for use in (format.rows, lambda path: format.seek(path, 3), lambda path: records(format, path)):
        with pytest.raises(
            DataLossError, match=r"a\.tfr: has .* bytes, but its index .* is of a file of .* bytes; write"
        ):
            use(file)


def test_an_index_of_an_older_version_of_the_same_size(tmp_path: Path) -> None:
    file, format = write(tmp_path / "a.tfr", [b"a" * 10, b"b" * 10, b"c" * 10]), IndexedTFRecords()
    stale = "index .*write the index again with distinput.io.write_tfrecord_index"
    for items in ([b"a" * 10, b"b" * 5, b"c" * 15], [b"a" * 62], [b"a" * 10, b"b" * 36]):
        write(file, items, index=False)
        if len(items) == 3:  # as many records, so whoever reads on from the beginning is never led astray
            assert records(format, file) == items
        else:
            with pytest.raises(DataLossError, match=stale):
                records(format, file)
        with pytest.raises(DataLossError, match=stale):
            format.fetch(file, np.array([2, 1]))
        with pytest.raises(DataLossError) as caught:
            records(format, file, format.seek(file, 2))
        assert "write_tfrecord_index" in str(caught.value) + "".join(getattr(caught.value, "__notes__", []))
    write(file, [b"d" * 10, b"e" * 10, b"f" * 10], index=False)  # the same borders: the index is right
    assert records(format, file) == [b"d" * 10, b"e" * 10, b"f" * 10]


def test_damage_is_found_by_fetch(tmp_path: Path) -> None:
    file, format = write(tmp_path / "a.tfr", [b"one", b"two", b"three"]), IndexedTFRecords()
    content = bytearray(Path(file).read_bytes())
    content[19 + 12] ^= 1
    Path(file).write_bytes(content)
    with pytest.raises(DataLossError, match="record 1 is not where the index says, or damaged"):
        format.fetch(file, np.array([0, 1, 2]))
    assert list(format.fetch(file, np.array([2, 0])).elements()) == [b"three", b"one"]
    with pytest.raises(InvalidArgumentError, match="rows must be from 0 to 2"):
        format.fetch(file, np.array([3]))


def test_without_an_index_one_is_built(tmp_path: Path) -> None:
    file = write(tmp_path / "a.tfr", ITEMS, index=False)
    ds = di.data.TFRecordDataset(file, index=True)
    assert (len(ds), ds.skip(38).to_list()) == (40, ITEMS[38:])
    assert sorted(os.listdir(tmp_path)) == [".a.tfr.tfrecord.index", "a.tfr"]


def test_an_index_needs_files_without_compression(tmp_path: Path) -> None:
    file = write(tmp_path / "a.tfr", ITEMS, index=False)
    with pytest.raises(InvalidArgumentError, match=r"an index needs files without compression, got .*'GZIP'"):
        di.data.TFRecordDataset(file, "GZIP", index=True)
    with pytest.raises(InvalidArgumentError, match="an index needs a file without compression"):
        TFRecordWriter(file, "ZLIB", index=True)
    for use in (write_tfrecord_index, IndexedTFRecords().rows):
        with pytest.raises(NotFoundError):
            use(str(tmp_path / "none.tfr"))


def test_a_writer_that_fails_leaves_no_index(tmp_path: Path) -> None:
    with suppress(KeyError), TFRecordWriter(tmp_path / "a.tfr", index=True) as writer:
        writer.write(b"new")
        raise KeyError
    assert not list(tmp_path.iterdir())


def test_a_damaged_file_gets_no_index(tmp_path: Path) -> None:
    file = write(tmp_path / "a.tfr", ITEMS, index=False)
    Path(file).write_bytes(Path(file).read_bytes()[:-1])
    with pytest.raises(DataLossError, match="truncated record"):
        write_tfrecord_index(file)
    assert not Path(file + ".index").exists()


def several(prefix: str, counts: list[int], **options: Any) -> tuple[Dataset, list[bytes]]:
    items = [[b"%d-%d" % (number, row) * (1 + row % 5) for row in range(n)] for number, n in enumerate(counts)]
    paths = [write(f"{prefix}{number}.tfr", rows) for number, rows in enumerate(items)]
    return di.data.TFRecordDataset(paths, index=True, **options), [item for rows in items for item in rows]


def test_a_data_set_knows_its_rows(tmp_path: Path) -> None:
    ds, want = several(f"{tmp_path}/", [30, 0, 12])
    assert ds.cardinality() == 42
    assert list(ds) == want
    for row in (0, 5, 30, 41, 42):
        assert list(ds.skip(row)) == want[row:]
    assert sorted(ds.global_shuffle(seed=1)) == sorted(want)
    assert ds.batch(10).cardinality() == 5


@pytest.mark.parametrize("num_workers", [1, 2, 5, 8])
def test_balanced_splits_inside_files(tmp_path: Path, num_workers: int) -> None:
    ds, want = several(f"{tmp_path}/", [100, 3, 57])
    options = di.data.Options()
    options.experimental_distribute.auto_shard_policy = di.data.experimental.AutoShardPolicy.BALANCED
    shard = di.data.experimental.auto_shard_dataset
    parts = [list(shard(ds.with_options(options), num_workers, worker)) for worker in range(num_workers)]
    assert [item for part in parts for item in part] == want
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_eight_workers_read_records_once() -> None:
    counts = [3000, 5000, 2000]
    ds, want = several("counting://indexed-", counts)
    size = sum(len(item) + 16 for item in want)
    indices = 8 * (sum(counts) + len(counts)) + 128 * len(counts)
    options = di.data.Options()
    options.experimental_distribute.auto_shard_policy = di.data.experimental.AutoShardPolicy.DATA
    node = ds.batch(64).with_options(options).node
    rows: list[bytes] = []
    bytes_read()
    for worker in range(8):
        for piece in Dataset(auto_shard(rebatch_for(node, 8, 1, worker), 8, worker, 8)):
            rows += piece.tolist()
    assert sorted(rows) == sorted(want)
    assert bytes_read() <= 1.05 * size + indices  # each process reads the indices once
