# SPDX-License-Identifier: Apache-2.0
import gc
import gzip
import io
import json
import os
import tarfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.formats.arrow_file import batches_of_file, batches_of_stream
from distinput.formats.arrow_ipc import write_arrow
from distinput.testing.left_behind import _open_files

Dataset = di.data.Dataset
SkipErrors = di.data.SkipErrors
INT = di.TensorSpec([], "int64")


def failing(bad: set[int]) -> Any:
    def function(x: Any) -> Any:
        if int(x) in bad:
            raise ValueError(f"bad {x}")
        return x

    return function


def total(dataset: Any) -> int:
    return sum(told.get("dropped", 0) for told in dataset.stats().values())


def skipping(bad: set[int], n: int = 9, **more: Any) -> Any:
    return Dataset.range(n).map(failing(bad), output_signature=INT, **{"on_error": "skip", **more})


def written(folder: Path, files: dict[str, list[bytes]]) -> list[str]:
    for name, records in files.items():
        with di.io.TFRecordWriter(folder / name) as writer:
            for record in records:
                writer.write(record)
    return [str(folder / name) for name in files]


def spoiled(path: str, record: int) -> None:
    """The data of a record of 4 bytes is another than its checksum says."""
    content = bytearray(Path(path).read_bytes())
    content[record * 20 + 12] ^= 1
    Path(path).write_bytes(content)


@given(st.integers(0, 40), st.sets(st.integers(0, 40)), st.sampled_from([None, 2, di.data.AUTOTUNE]), st.data())
def test_the_others_come_and_a_restart_goes_on_counting(n: int, bad: set[int], calls: Any, data: st.DataObject) -> None:
    def build() -> Any:
        mapped = skipping(bad, n, num_parallel_calls=calls, on_error=SkipErrors(None))
        return mapped.batch(3).unbatch().prefetch(2)

    expected = [x for x in range(n) if x not in bad]
    whole = build()
    assert [int(x) for x in whole] == expected
    assert total(whole) == len(bad & set(range(n)))
    at = data.draw(st.integers(0, len(expected)))
    with iter(build()) as iterator:
        for _ in range(at):
            next(iterator)
        state = json.loads(json.dumps(iterator.state()))
    rest = build()
    restored = rest.restore(state)
    assert [int(x) for x in restored] == expected[at:]
    assert total(restored) == len(bad & set(range(n)))  # none is counted twice, and those before the restart are


def test_errors_below_it_are_raised() -> None:
    ds = Dataset.range(9).map(failing({4}), output_signature=INT)
    again = ds.map(failing({2, 7}), output_signature=INT, on_error="skip")
    seen: list[int] = []
    with pytest.raises(ValueError, match="bad 4"):
        seen += [int(x) for x in again]
    iterator = iter(again)
    assert [int(next(iterator)) for _ in range(3)] == [0, 1, 3]
    with pytest.raises(ValueError, match="bad 4"):
        next(iterator)
    assert [int(x) for x in iterator] == [5, 6, 8]
    assert [int(x) for x in again.ignore_errors()] == [0, 1, 3, 5, 6, 8]


def test_errors_behind_it_are_raised() -> None:
    with pytest.raises(ValueError, match="bad 2"):
        list(skipping({1}).map(failing({2}), output_signature=INT))


def test_a_selection_of_columns_may_stand_before_it() -> None:
    def number(row: Any) -> int:
        return 6 // int(row["x"])

    rows = di.data.Dataset.from_tensor_slices({"x": [1, 0, 3], "y": [4, 5, 6]}).select(["x"])
    for below in (rows, rows.concatenate(rows)):
        sound = below.map(number, output_signature=di.TensorSpec([], "int64"), on_error="skip")
        assert sound.concatenate(sound.take(1)).to_list() == [*[6, 2] * (len(below) // 3), 6]


def test_a_batch_behind_it_loses_nothing() -> None:
    assert [x.tolist() for x in skipping({1}, 7).batch(3)] == [[0, 2, 3], [4, 5, 6]]


def test_beyond_the_budget_the_run_ends_with_the_first_errors() -> None:
    ds = skipping(set(range(2, 9)), on_error=SkipErrors(4))
    with pytest.raises(di.errors.DataLossError) as caught:
        list(ds)
    assert str(caught.value) == (
        "map: 5 of 7 elements failed, but max_errors=4 allows fewer; the first:\n"
        "  ValueError: bad 2\n  ValueError: bad 3\n  ValueError: bad 4\n"
        "correct the data, or raise max_errors of SkipErrors(...) and continue from the last state"
    )
    assert isinstance(caught.value.__cause__, ValueError)
    with pytest.raises(di.errors.DataLossError, match="5 of 7"):  # which is no element that can be left out
        list(ds.ignore_errors())
    iterator = iter(ds)
    assert [int(next(iterator)) for _ in range(2)] == [0, 1]
    for _ in range(2):
        with pytest.raises(di.errors.DataLossError, match="5 of 7"):
            next(iterator)


def test_a_run_goes_on_with_a_larger_budget() -> None:
    iterator = iter(skipping({2, 4, 5}, on_error=SkipErrors(2)))
    seen = [int(next(iterator)) for _ in range(3)]
    with pytest.raises(di.errors.DataLossError, match="3 of 6 elements failed"):
        next(iterator)
    rest = skipping({2, 4, 5}, on_error=SkipErrors(3)).restore(iterator.state())
    assert seen + [int(x) for x in rest] == [0, 1, 3, 6, 7, 8]
    few = skipping({2, 4, 5}, on_error=SkipErrors(1)).restore(iterator.state())
    with pytest.raises(di.errors.DataLossError, match="before a restart"):
        list(few)


def test_each_pass_has_its_budget() -> None:
    assert len(list(skipping({2, 4}, on_error=SkipErrors(2)).repeat(3))) == 21
    ds = skipping({2, 4}, on_error=SkipErrors(2)).repeat(3)
    list(ds)
    assert total(ds) == 6


def test_a_pass_in_which_everything_fails_is_warned_about() -> None:
    with pytest.warns(
        di.errors.InputWarning, match="map: all 3 elements of a pass failed and were left out; the last: Val"
    ):
        assert list(skipping({0, 1, 2}, 3)) == []


@pytest.mark.parametrize("error", [MemoryError, di.errors.UnavailableError, di.errors.StateError])
def test_what_says_nothing_of_the_element_is_raised(error: type[Exception]) -> None:
    def function(x: Any) -> Any:
        if x == 3:
            raise error("the machine")
        return x

    with pytest.raises(error, match="the machine"):
        list(Dataset.range(5).map(function, output_signature=INT, on_error="skip"))


def test_map_rows_leaves_out_single_rows() -> None:
    def function(rows: Any) -> Any:
        if 3 in rows:
            raise ValueError("three")
        return rows * 10

    assert Dataset.range(6).map_rows(function, on_error="skip").to_list() == [0, 10, 20, 40, 50]


def test_worker_processes_and_compiled_functions() -> None:
    ds = Dataset.from_tensor_slices(["1", "x", "3"]).map(int, processes=True, num_parallel_calls=1, on_error="skip")
    assert ds.to_list() == [1, 3]


def test_two_maps_are_not_run_as_one() -> None:
    ds = (
        Dataset.range(9).map(failing({4}), output_signature=INT, on_error="raise").map(lambda x: x + 1, on_error="skip")
    )
    options = di.data.Options()
    options.on_error = "skip"
    plain = Dataset.range(9).map(failing({4}), on_error="raise").map(lambda x: x + 1).with_options(options)
    for made in (ds, plain):
        with pytest.raises(ValueError, match="bad 4"):
            list(made)


def test_the_order_of_options_does_not_matter(tmp_path: Path) -> None:
    def options(value: Any) -> Any:
        made = di.data.Options()
        made.on_error = value
        return made

    source, skip, strict = Dataset.range(4), options(SkipErrors(9)), options("raise")
    before = source.with_options(skip).map(failing({2}), output_signature=INT)
    behind = source.map(failing({2}), output_signature=INT).with_options(skip)
    assert [x.to_list() for x in (before, behind, behind.with_options(skip))] == [[0, 1, 3]] * 3
    assert str(before.node.input) == str(behind.node.inputs[0].input)
    with pytest.raises(ValueError, match="bad 2"):
        list(behind.with_options(strict))
    assert behind.with_options(strict).with_options(skip).to_list() == [0, 1, 3]
    own = source.map(failing({2}), output_signature=INT, on_error=SkipErrors(0))
    with pytest.raises(di.errors.DataLossError, match="max_errors=0"):
        list(own.with_options(skip))
    (path,) = written(tmp_path, {"a": [b"0123", b"4567"]})
    spoiled(path, 0)
    for files in (1, None):
        assert di.data.TFRecordDataset(path, num_parallel_reads=files).with_options(skip).to_list() == [b"4567"]
        with pytest.raises(di.errors.DataLossError, match="corrupted"):
            list(di.data.TFRecordDataset(path, num_parallel_reads=files, on_error="raise").with_options(skip))


@pytest.mark.parametrize("reads", [None, 1, 2])
@pytest.mark.parametrize("index", [False, True])
def test_one_damaged_record_of_a_file(tmp_path: Path, reads: int | None, index: bool) -> None:
    files = written(tmp_path, {"a": [b"a%03d" % i for i in range(5)], "b": [b"b000"], "c": [b"c000", b"c001"]})
    if index:
        for path in files:
            di.io.write_tfrecord_index(path)
    for path, record in ((files[0], 2), (files[1], 0), (files[2], 1)):
        spoiled(path, record)
    ds = di.data.TFRecordDataset(files, num_parallel_reads=reads, index=index, on_error="skip")
    assert sorted(ds) == [b"a000", b"a001", b"a003", b"a004", b"c000"]
    assert total(ds) == 3


def test_a_file_that_ends_too_early_and_one_that_is_not_there(tmp_path: Path) -> None:
    files = written(tmp_path, {"a": [b"a000", b"a001"], "c": [b"c000"]})
    Path(files[0]).write_bytes(Path(files[0]).read_bytes()[:-1])
    paths = [files[0], str(tmp_path / "missing"), files[1]]
    log = tmp_path / "bad.jsonl"
    assert list(di.data.TFRecordDataset(paths, on_error=SkipErrors(2, quarantine=log))) == [b"a000", b"c000"]
    told = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["file"], line["row"], line.get("byte"), line["op"], line["error"]) for line in told] == [
        (files[0], 1, 20, "tfrecord", "DataLossError"),
        (paths[1], 0, None, "tfrecord", "NotFoundError"),
    ]


def test_the_quarantine_file_names_file_and_row(tmp_path: Path) -> None:
    good = di.io.encode_example({"x": [1]})
    files = written(tmp_path, {"a": [good, b"bad1", good, good], "b": [b"bad2", good]})
    log = tmp_path / "bad.jsonl"
    policy = SkipErrors(9, quarantine=log)

    def build() -> Any:
        records = di.data.TFRecordDataset(files, on_error=policy)
        parsed = records.parse_example({"x": di.io.FixedLenFeature([], "int64")}, on_error=policy)
        return parsed.map(lambda e: e["x"], on_error=policy)

    assert build().to_list() == [1] * 4
    once = log.read_text()
    told = [json.loads(line) for line in once.splitlines()]
    assert [(line["file"], line["row"], line["op"]) for line in told] == [
        (files[0], 1, "parse_example"),
        (files[1], 0, "parse_example"),
    ]
    assert set(told[0]) == {"file", "row", "op", "made_at", "error", "message", "element"}
    iterator = iter(build().repeat(2))
    next(iterator)
    assert len(list(build().repeat(2).restore(iterator.state()))) == 7
    assert log.read_text() == once


def test_where_a_record_stood_behind_a_damaged_one(tmp_path: Path) -> None:
    files = written(tmp_path, {"a": [b"%04d" % i for i in range(6)]})
    spoiled(files[0], 1)
    log = tmp_path / "bad.jsonl"

    def function(record: bytes) -> int:
        if record == b"0003":
            raise ValueError("three")
        return int(record)

    policy = SkipErrors(9, quarantine=log)
    ds = di.data.TFRecordDataset(files, on_error=policy).map(function, on_error=policy)
    assert ds.to_list() == [0, 2, 4, 5]
    told = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["row"], line["op"], line["element"]) for line in told] == [
        (1, "tfrecord", None),
        (3, "map", "on element b'0003'"),
    ]


def rows_of_csv() -> tuple[list[str], list[int]]:
    """Lines of a table of numbers, and the numbers that are in good ones; every seventh line is no number."""
    lines = [f"x{i}" if i % 7 == 3 else str(i) for i in range(40)]
    return lines, [i for i in range(40) if i % 7 != 3]


@pytest.mark.parametrize("format", ["csv", "jsonl"])
@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_bad_lines_of_tables(tmp_path: Path, format: str, compression: str) -> None:
    lines, good = rows_of_csv()
    text = "a\n" + "\n".join(lines) if format == "csv" else "\n".join(f'{{"a": {line}}}' for line in lines)
    content = (text + "\n").encode()
    paths = [str(tmp_path / "a"), str(tmp_path / "b")]
    for path in paths:
        Path(path).write_bytes(gzip.compress(content) if compression else content)
    log = tmp_path / "bad.jsonl"
    policy = SkipErrors(None, quarantine=log)

    def build(**more: Any) -> Any:
        schema = {"a": "int64"}
        return di.data.FileDataset(
            paths, format, schema=schema, compression_type=compression, on_error=policy, **more
        ).map(lambda row: row["a"])

    assert build().to_list() == good * 2
    assert sorted(build(num_parallel_reads=2).to_list()) == sorted(good * 2)
    told = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["file"], line["row"]) for line in told] == [(path, i) for path in paths for i in range(3, 40, 7)]
    for at in (0, 3, 4, 33, 34, 35, 60):
        iterator = iter(build())
        seen = [int(next(iterator)) for _ in range(at)]
        assert seen + [int(x) for x in build().restore(json.loads(json.dumps(iterator.state())))] == good * 2
    if not compression:
        parts = [list(sharded(build(), worker)) for worker in range(2)]
        assert sorted(map(int, parts[0] + parts[1])) == sorted(good * 2)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts open files as Linux tells them")
@pytest.mark.parametrize("format", ["csv", "jsonl"])
@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_a_bad_line_leaves_no_file_open(tmp_path: Path, format: str, compression: str) -> None:
    """Not even until garbage is collected."""
    lines, good = rows_of_csv()
    text = "a\n" + "\n".join(lines) if format == "csv" else "\n".join(f'{{"a": {line}}}' for line in lines)
    (tmp_path / "a").write_bytes(gzip.compress(text.encode()) if compression else text.encode())
    dataset = di.data.FileDataset(
        str(tmp_path / "a"), format, schema={"a": "int64"}, compression_type=compression, on_error=SkipErrors(None)
    )
    gc.collect()
    gc.disable()
    try:
        for at in (4, len(good) // 2, len(good)):
            iterator = iter(dataset)
            for _ in range(at):
                next(iterator)
            del iterator
            assert not _open_files()[str(tmp_path / "a")]
    finally:
        gc.enable()


def sharded(dataset: Any, worker: int) -> Any:
    options = di.data.Options()
    options.experimental_distribute.auto_shard_policy = di.data.experimental.AutoShardPolicy.BALANCED
    return di.data.experimental.auto_shard_dataset(dataset.with_options(options), 2, worker)


def damaged_arrow(path: Path, stream: bool) -> list[int]:
    """Four record batches of which the second one has wrong offsets of texts."""
    words = [b"w%02d" % i for i in range(40)]
    write_arrow(path, {"n": np.arange(40), "w": words}, batch_rows=10, stream=stream)
    data = bytearray(path.read_bytes())
    places = batches_of_stream("", np.frombuffer(bytes(data), np.uint8)) if stream else batches_of_file(str(path))
    offsets = data.index(np.array([0, 3, 6, 9], "<i4").tobytes(), int(places.starts[1]))
    data[offsets + 4 : offsets + 8] = np.array([1 << 30], "<i4").tobytes()
    path.write_bytes(data)
    return [*range(10), *range(20, 40)]


def damaged_npy(path: Path) -> list[int]:
    with path.open("wb") as file:
        np.save(file, np.arange(40))
        file.truncate(file.tell() - 60)
    return list(range(32))


def damaged_gzip(path: Path) -> list[int]:
    """Records behind which the end of the compressed data is missing."""
    with di.io.TFRecordWriter(path) as writer:
        for number in range(40):
            writer.write(str(number).encode())
    compressor = zlib.compressobj(wbits=31)
    sound = path.read_bytes()[: 10 * 17 + 10 * 18]
    path.write_bytes(compressor.compress(sound) + compressor.flush(zlib.Z_SYNC_FLUSH))
    return list(range(20))


DAMAGED: dict[str, tuple[Any, Any, int, int | None, bool]] = {
    "arrow file": (
        lambda path: damaged_arrow(path, False),
        lambda paths, **more: di.data.ArrowDataset(paths, **more).map(lambda row: row["n"]),
        10,
        10,
        False,
    ),
    "arrow file, not mapped": (
        lambda path: damaged_arrow(path, False),
        lambda paths, **more: di.data.ArrowDataset(paths, memory_map=False, **more).map(lambda row: row["n"]),
        10,
        10,
        False,
    ),
    "arrow stream": (
        lambda path: damaged_arrow(path, True),
        lambda paths, **more: di.data.ArrowDataset(paths, **more).map(lambda row: row["n"]),
        10,
        10,
        False,
    ),
    "npy": (damaged_npy, di.data.NpyDataset, 32, 8, True),
    "npy, not mapped": (
        damaged_npy,
        lambda paths, **more: di.data.NpyDataset(paths, memory_map=False, **more),
        32,
        8,
        True,
    ),
    "tfrecord.gz": (
        damaged_gzip,
        lambda paths, **more: di.data.TFRecordDataset(paths, "GZIP", **more).map(int, output_signature=INT),
        20,
        None,
        True,
    ),
}
"""By name: makes a damaged file, which has these sound numbers; reads files; the row, the lost records, if it is the rest."""


@pytest.mark.parametrize("name", DAMAGED)
def test_what_is_lost_of_a_damaged_file_is_told_and_states_lead_past_it(tmp_path: Path, name: str) -> None:
    make, read, row, lost, rest = DAMAGED[name]
    log, paths = tmp_path / "bad.jsonl", [tmp_path / "a", tmp_path / "b"]
    good = make(paths[0])
    assert make(paths[1]) == good

    def build() -> Any:
        return read(list(map(str, paths)), on_error=SkipErrors(None, quarantine=log))

    whole = build()
    assert [int(x) for x in whole] == good * 2
    assert total(whole) == 2
    text = whole.stats()["2:on_error"]["last_error"]
    count = "" if lost is None else f", {lost} records"
    assert text.endswith(f"; the rest of the file is lost{count}" if rest else f"; {lost} records are lost")
    told = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["file"], line["row"], line["lost"], line["rest_of_file"]) for line in told] == [
        (str(path), row, lost, rest) for path in paths
    ]
    for at in (0, row - 1, row, row + 1, len(good), len(good) + row, 2 * len(good)):
        with iter(build()) as iterator:
            seen = [int(next(iterator)) for _ in range(at)]
            state = json.loads(json.dumps(iterator.state()))
        assert seen + [int(x) for x in build().restore(state)] == good * 2
    assert len(log.read_text().splitlines()) == 2
    parts = [list(sharded(build(), worker)) for worker in range(2)]
    assert sorted(map(int, parts[0] + parts[1])) == sorted(good * 2)
    with pytest.raises(di.errors.DataLossError):
        read(list(map(str, paths))).to_list()


@pytest.mark.parametrize("bad", range(1, 20))
def test_a_damaged_record_may_be_the_first_one_of_a_part(tmp_path: Path, bad: int) -> None:
    lines = ["no object\n" if number == bad else f'{{"x": {number + 10}}}\n' for number in range(20)]
    (tmp_path / "a").write_text("".join(lines))
    whole = di.data.JsonLinesDataset(str(tmp_path / "a"), on_error=SkipErrors(None))
    parts = [int(row["x"]) for worker in range(2) for row in sharded(whole, worker)]
    assert parts == [number + 10 for number in range(20) if number != bad]


def test_a_sample_of_an_archive_that_lacks_a_member(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as archive:
        for name in ("0.txt", "0.cls", "1.txt", "2.txt", "2.cls", "2.more", "3.txt", "3.cls"):
            header = tarfile.TarInfo(name)
            header.size = 1
            archive.addfile(header, io.BytesIO(name[:1].encode()))
    ds = di.data.WebDataset(str(path), on_error="skip")
    assert [row["txt"] for row in ds] == [b"0", b"3"]
    assert total(ds) == 2
    path.write_bytes(path.read_bytes()[:5000])
    assert [row["txt"] for row in di.data.WebDataset(str(path), on_error="skip")] == [b"0"]


def test_a_damaged_row_group_of_a_parquet_file(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    table = pa.table({"x": np.arange(30)})
    pyarrow.parquet.write_table(table, path, row_group_size=10, compression="none", use_dictionary=False)
    content = bytearray(Path(path).read_bytes())
    at = content.index(np.arange(10, 20).tobytes()[:32])
    content[at - 60 : at + 60] = bytes(120)
    Path(path).write_bytes(content)
    ds = di.data.ParquetDataset(path, on_error="skip").map(lambda row: row["x"])
    assert ds.to_list() == [*range(10), *range(20, 30)]
    assert total(ds) == 1


def test_workers_stay_in_step(tmp_path: Path) -> None:
    """Workers that leave out different numbers of records go through equally many steps, and deliver all others once."""
    records = {f"f{i}": [b"%d%03d" % (i, j) for j in range(9)] for i in range(4)}
    files = written(tmp_path, records)
    for record in (0, 3, 4, 8):
        spoiled(files[1], record)
    expected = sorted(
        x for name, file in records.items() for j, x in enumerate(file) if name != "f1" or j not in (0, 3, 4, 8)
    )
    for policy in ("FILE", "DATA", "BALANCED"):
        options = di.data.Options()
        options.experimental_distribute.auto_shard_policy = di.data.experimental.AutoShardPolicy[policy]
        parts = []
        for worker in range(2):
            ds = di.data.TFRecordDataset(files, on_error="skip").with_options(options)
            parts.append(list(di.data.experimental.auto_shard_dataset(ds, 2, worker)))
        assert sorted(parts[0] + parts[1]) == expected, policy


def test_the_cardinality_is_unknown_or_infinite() -> None:
    assert skipping({2}).cardinality() == di.data.UNKNOWN_CARDINALITY
    assert skipping({2}).repeat().cardinality() == di.data.INFINITE_CARDINALITY
    assert np.array_equal(list(skipping(set(), 3)), [0, 1, 2])


def test_a_wrong_word() -> None:
    with pytest.raises(di.errors.InvalidArgumentError, match='map: on_error must be "raise", "skip" or SkipErrors'):
        Dataset.range(3).map(abs, on_error="ignore")
    options = di.data.Options()
    options.on_error = "never"
    with pytest.raises(di.errors.InvalidArgumentError, match='with_options: on_error must be "raise", "skip" or'):
        Dataset.range(3).with_options(options)
