# SPDX-License-Identifier: Apache-2.0
import ctypes
from itertools import islice
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyarrow import ipc

import distinput as di
from distinput.columns.column import Dense
from distinput.data import ArrowDataset
from distinput.errors import DataLossError, InvalidArgumentError, NotFoundError, UnimplementedError
from distinput.files.whole_files import mapped
from distinput.formats import arrow_file, arrow_ipc
from distinput.formats.arrow_ipc import ArrowIpc, write_arrow
from distinput.formats.tables import LruCache
from distinput.tf.datasets import auto_shard_dataset
from distinput.values.spec import TensorSpec
from tests.depth import cases
from tests.formats.big_endian import swapped_stream
from tests.formats.reading import check_groups, check_positions, cut_short, flipped, plain, records, records_until_error
from tests.formats.test_parquet import N, in_python, table

KINDS = [(stream, compression) for stream in (False, True) for compression in (None, "lz4", "zstd")]


def write(path: str, columns: Any, rows: int, stream: bool = False, compression: str | None = None) -> None:
    write_arrow(path, {name: columns.column(name) for name in columns.schema.names}, rows, compression, stream=stream)


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = str(tmp_path / "a.arrow")
    write(path, table(), 10)
    return path


@pytest.mark.parametrize("stream, compression", KINDS)
def test_rows_of_every_type_are_read(tmp_path: Path, stream: bool, compression: str | None) -> None:
    want = [in_python(row) for row in table().to_pylist()]
    for path in (str(tmp_path / "a.arrow"), f"memory://arrow/{stream}{compression}.arrow"):
        write(path, table(), 10, stream, compression)
        if "memory" in path and stream:
            assert records(ArrowIpc(), path) == want
        else:
            check_positions(ArrowIpc(), path, want)
            rows = np.array([24, 3, 3, 11, 0, 19])
            assert [plain(e) for e in ArrowIpc().fetch(path, rows).elements()] == [want[row] for row in rows]


@given(size=st.integers(1, 9), given_before=st.integers(0, 8), group=st.sampled_from([5, 30]))
def test_blocks_end_where_groups_do(
    tmp_path_factory: pytest.TempPathFactory, size: int, given_before: int, group: int
) -> None:
    path = str(tmp_path_factory.getbasetemp() / f"groups-{group}.arrow")
    if not Path(path).exists():
        write(path, table(), group)
    want = [in_python(row) for row in table().to_pylist()]
    check_groups(ArrowIpc(), path, want, size, given_before % size)


def test_elements_fit_the_spec(file: str) -> None:
    spec = ArrowIpc().spec(file)
    assert spec.nest["list"] == TensorSpec((None,), np.int64)
    assert spec.nest["struct"] == {"a": TensorSpec((), np.int64), "b": {"c": TensorSpec((), object)}}
    assert list(spec.nest) == table().schema.names
    for block, _ in ArrowIpc().read(file):
        assert block.structure == spec.structure
        assert [leaf.dtype for leaf in spec.leaves] == [column.dtype for column in block.columns]  # type: ignore[union-attr]


def test_record_batches_are_fragments(file: str, tmp_path: Path) -> None:
    stream = str(tmp_path / "b.arrow")
    write(stream, table(), 10, stream=True)
    for path in (file, stream):
        fragments = ArrowIpc().fragments(path)
        assert [(fragment.start, fragment.stop, fragment.rows) for fragment in fragments] == [
            ({"row": 0}, {"row": 10}, 10),
            ({"row": 10}, {"row": 20}, 10),
            ({"row": 20}, {"row": 25}, 5),
        ]
        assert sum(fragment.nbytes for fragment in fragments) <= Path(path).stat().st_size


def test_a_stream_that_is_not_local_is_read_from_its_beginning() -> None:
    path = "memory://arrow/stream.arrow"
    write(path, pa.table({"x": np.arange(7)}), 3, stream=True)
    format = ArrowIpc()
    assert format.rows(path) is None
    assert format.seek(path, 3) is None
    assert format.fragments(path)[0].stop is None
    assert not format.gathers(path)
    assert records(format, path, {"row": 4}) == [{"x": 4}, {"x": 5}, {"x": 6}]
    with pytest.raises(UnimplementedError, match="can only be read from its beginning"):
        format.fetch(path, np.array([1]))
    assert di.data.ArrowDataset(path).cardinality() == di.data.UNKNOWN_CARDINALITY


def test_only_the_columns_asked_for(file: str) -> None:
    format = ArrowIpc(columns=["text", "i"])
    assert list(format.spec(file).nest) == ["text", "i"]
    assert records(format, file)[4] == {"text": b"s4", "i": 4}
    assert [plain(e) for e in format.fetch(file, np.array([13, 4])).elements()][1] == {"text": b"s4", "i": 4}
    assert records(ArrowIpc(columns=[]), file) == [{}] * N
    with pytest.raises(InvalidArgumentError, match=r"a\.arrow: has no column 'no'; its columns are i, f, u"):
        records(ArrowIpc(columns=["no"]), file)
    with pytest.raises(InvalidArgumentError, match="arrow: columns must be a list of names"):
        ArrowIpc(columns="i")


def test_numbers_are_views_of_the_file(tmp_path: Path) -> None:
    path = str(tmp_path / "a.arrow")
    for stream in (False, True):
        write_arrow(path, {"x": np.arange(1000.0), "v": np.zeros((1000, 3), "f4")}, 400, stream=stream)
        whole = mapped(path)
        for block, _ in ArrowIpc().read(path):
            for column in block.columns:
                assert isinstance(column, Dense)
                inside = column.array.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
                assert 0 <= inside < len(whole)


def test_only_rows_that_are_fetched_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "a.arrow")
    write_arrow(path, {"x": np.arange(1000)}, 10)
    looked: list[int] = []
    batch = arrow_file.ArrowFile.batch
    monkeypatch.setattr(
        arrow_file.ArrowFile, "batch", lambda self, number: looked.append(number) or batch(self, number)
    )
    found = di.data.ArrowDataset(path).skip(500).take(20).node
    assert [row["x"] for row in found.fetch(np.array([3, 15]), 0).elements()] == [503, 515]
    assert looked == [50, 51]


@given(
    rows=st.lists(st.integers(0, N - 1)),
    batch=st.sampled_from([1, 4, 30]),
    stream=st.booleans(),
    compression=st.sampled_from([None, "lz4"]),
)
def test_rows_are_fetched_by_position(
    tmp_path_factory: pytest.TempPathFactory, rows: list[int], batch: int, stream: bool, compression: str | None
) -> None:
    path = str(tmp_path_factory.getbasetemp() / f"fetch-{batch}-{stream}-{compression}.arrow")
    if not Path(path).exists():
        write(path, table(), batch, stream, compression)
    want = [in_python(row) for row in table().to_pylist()]
    block = ArrowIpc().fetch(path, np.array(rows, np.int64))
    assert [plain(element) for element in block.elements()] == [want[row] for row in rows]


def test_fetch_of_a_row_that_is_not_there(file: str) -> None:
    for row in (-1, N):
        with pytest.raises(InvalidArgumentError, match="rows must be from 0 to 24"):
            ArrowIpc().fetch(file, np.array([row]))


def test_what_is_kept_of_batches_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_ipc, "_DECODED", LruCache(10_000))
    path = str(tmp_path / "a.arrow")
    write_arrow(path, {"s": [b"%d" % i for i in range(2000)]}, 100, "lz4")
    format = ArrowIpc()
    rows = np.random.default_rng(1).permutation(2000)
    found = [row["s"] for part in np.split(rows, 20) for row in format.fetch(path, part).elements()]
    assert found == [b"%d" % i for i in rows]
    assert 0 < len(arrow_ipc._DECODED) < 10


@pytest.mark.parametrize("stream, compression", KINDS)
def test_files_of_other_writers(tmp_path: Path, stream: bool, compression: str | None) -> None:
    """Chunks of different lengths, an empty one among them, a dictionary that grows, and the oldest layout."""
    path, chunks = str(tmp_path / "a.arrow"), [["a", "b"], [], ["a", "c", "d"]]
    arrays = [pa.array(chunk, pa.string()).dictionary_encode() for chunk in chunks]
    schema = pa.schema({"x": pa.int32(), "s": arrays[0].type})
    for legacy in (False, True):
        if legacy and compression:
            continue
        version = ipc.MetadataVersion.V4 if legacy else ipc.MetadataVersion.V5
        options = ipc.IpcWriteOptions(
            compression=compression,
            metadata_version=version,
            use_legacy_format=legacy,
            unify_dictionaries=not stream,
        )
        with (ipc.new_stream if stream else ipc.new_file)(path, schema, options=options) as writer:
            if stream:
                for array in arrays:
                    writer.write_batch(pa.record_batch([pa.array(range(len(array)), pa.int32()), array], schema=schema))
            else:
                column = pa.chunked_array([pa.array(range(len(a)), pa.int32()) for a in arrays])
                writer.write_table(pa.table([column, pa.chunked_array(arrays)], schema=schema))
        want = [{"x": i, "s": s.encode()} for chunk in chunks for i, s in enumerate(chunk)]
        check_positions(ArrowIpc(), path, want)
        assert [plain(e) for e in ArrowIpc().fetch(path, np.array([4, 0, 3])).elements()] == [want[4], want[0], want[3]]


@given(
    rows=st.lists(
        st.tuples(st.integers(-(2**63), 2**63 - 1), st.binary(), st.lists(st.floats(width=32, allow_nan=False)))
    ),
    batch=st.integers(1, 8),
    stream=st.booleans(),
)
def test_round_trip(rows: list[tuple[int, bytes, list[float]]], batch: int, stream: bool) -> None:
    path = "memory://arrow/any.arrow"
    columns = {
        "a": np.array([a for a, _, _ in rows], np.int64),
        "b": pa.array([b for _, b, _ in rows], pa.binary()),
        "c": pa.array([c for _, _, c in rows], pa.list_(pa.float32())),
    }
    write_arrow(path, columns, batch, stream=stream)
    assert records(ArrowIpc(), path) == [{"a": a, "b": b, "c": c} for a, b, c in rows]


def test_nulls_are_an_error_or_filled(tmp_path: Path) -> None:
    path = str(tmp_path / "a.arrow")
    write(path, pa.table({"x": [1, 2, 3, None], "y": [1, 2, 3, 4]}), 3)
    says = r"column 'x' has nulls in record batch 1 \(first in its row 0\).*nulls=\{'x': value\}"
    with pytest.raises(InvalidArgumentError, match=says):
        records(ArrowIpc(), path)
    with pytest.raises(InvalidArgumentError, match=says):
        ArrowIpc().fetch(path, np.array([3]))
    assert len(records(ArrowIpc(columns=["y"]), path)) == 4
    filled = ArrowIpc(nulls={"x": -1})
    assert [row["x"] for row in records(filled, path)] == [1, 2, 3, -1]
    assert [row["x"] for row in filled.fetch(path, np.array([3, 0])).elements()] == [-1, 1]
    with pytest.raises(InvalidArgumentError, match='arrow: nulls must be "error" or a dict'):
        ArrowIpc(nulls=0)


def test_types_that_no_array_can_hold(tmp_path: Path) -> None:
    path = str(tmp_path / "a.arrow")
    write(path, pa.table({"x": pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([5])]), "y": [1]}), 1)
    with pytest.raises(
        UnimplementedError, match=r"column 'x' is of type .*; cast it when writing, or name the columns"
    ):
        ArrowIpc().spec(path)
    assert records(ArrowIpc(columns=["y"]), path) == [{"y": 1}]


def test_no_rows(tmp_path: Path) -> None:
    path = str(tmp_path / "a.arrow")
    for stream in (False, True):
        write_arrow(path, {"x": np.empty(0, np.int64)}, stream=stream)
        check_positions(ArrowIpc(), path, [])
        assert ArrowIpc().fetch(path, np.empty(0, np.int64)).size == 0


@given(
    st.lists(st.sampled_from(["no batch", "an empty batch", "rows"]), min_size=1, max_size=4),
    st.sampled_from(table().schema.names[1:]),
)
@example(["no batch", "rows"], "list")
def test_files_without_rows_change_nothing(
    tmp_path_factory: pytest.TempPathFactory, kinds: list[str], name: str
) -> None:
    folder = tmp_path_factory.mktemp("empty")
    (batch,) = table().select(["i", name]).slice(0, 3).to_batches()
    for number, kind in enumerate(kinds):
        with ipc.new_file(folder / f"{number}.arrow", batch.schema) as writer:
            if kind != "no batch":
                writer.write_batch(batch if kind == "rows" else batch.slice(0, 0))
    dataset = ArrowDataset(sorted(map(str, folder.iterdir())))
    wanted = list(map(in_python, batch.to_pylist())) * kinds.count("rows")
    assert [plain(row) for row in dataset] == [plain(dataset[i]) for i in range(len(wanted))] == wanted
    for mixed in (dataset.shuffle(2, seed=1), dataset.global_shuffle(seed=1)):
        assert sorted(plain(row)["i"] for row in mixed) == sorted(row["i"] for row in wanted)


def test_a_changed_file_is_read_anew(tmp_path: Path) -> None:
    for path in (str(tmp_path / "a.arrow"), "memory://arrow/changed.arrow"):
        write_arrow(path, {"x": [1, 2]})
        assert ArrowIpc().rows(path) == 2
        write_arrow(path, {"x": [1, 2, 3]})
        assert ArrowIpc().rows(path) == 3
        with pytest.raises(DataLossError, match="has 3 rows, but reading must continue at row 4; the file has changed"):
            records(ArrowIpc(), path, {"row": 4})


def test_what_was_read_stays_when_the_file_is_replaced(tmp_path: Path) -> None:
    path = str(tmp_path / "a.arrow")
    write_arrow(path, {"x": np.arange(100)})
    block, _ = next(ArrowIpc().read(path))
    write_arrow(path, {"x": np.zeros(100, np.int64)})
    assert [row["x"] for row in block.elements()] == list(range(100))


@pytest.mark.parametrize("stream", [False, True])
def test_a_file_cut_short_is_an_error(tmp_path: Path, stream: bool) -> None:
    for path in (str(tmp_path / "small.arrow"), "memory://arrow/small.arrow"):
        write_arrow(path, {"i": np.arange(6), "s": [b"%d" % i for i in range(6)]}, 3, stream=stream)
        with di.files.source.open_binary(path) as file:  # type: ignore[attr-defined]
            content = file.read()
        for size, damaged in islice(enumerate(cut_short(content)), 0, None, cases(3, 1)):
            with di.files.sink.Sink(path) as sink:  # type: ignore[attr-defined]
                sink.write(damaged)
            found, error = records_until_error(ArrowIpc(), path)
            assert found == []
            assert isinstance(error, DataLossError), size
            assert path in str(error)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"memory_map": False}])
def test_streams_one_after_the_other_are_an_error(tmp_path: Path, options: Any) -> None:
    """Readers of streams end with the first one, so the rows of the others would be lost."""
    one, path = tmp_path / "one.arrows", tmp_path / "two.arrows"
    write(str(one), pa.table({"x": [1, 2]}), 1, stream=True)
    path.write_bytes(2 * one.read_bytes())
    with pytest.raises(
        DataLossError, match=r"two\.arrows: .*there is more behind the end of the stream at byte \d+; if streams"
    ):
        ArrowDataset(str(path), **options).to_list()
    with fsspec.open("memory://two.arrows", "wb") as remote:
        remote.write(path.read_bytes())
    with pytest.raises(DataLossError, match="there is more behind the end of the stream"):
        ArrowDataset("memory://two.arrows", **options).to_list()
    path.write_bytes(one.read_bytes() + bytes(64))
    assert ArrowDataset(str(path)).to_list() == [{"x": 1}, {"x": 2}]


@pytest.mark.parametrize("stream", [False, True])
def test_a_flipped_bit_is_an_error_or_other_values(tmp_path: Path, stream: bool) -> None:
    path = tmp_path / "small.arrow"
    write_arrow(
        str(path), {"i": np.arange(6), "s": [b"%d" % i for i in range(6)], "l": [[1], []] * 3}, 3, stream=stream
    )
    for damaged in islice(flipped(path.read_bytes()), 0, None, cases(23, 1)):  # tests of `hostile` damage more
        path.write_bytes(damaged)
        _, error = records_until_error(ArrowIpc(), path)
        if error is not None:
            assert isinstance(error, DataLossError | UnimplementedError | InvalidArgumentError), error
            assert str(path) in str(error)


def test_missing_and_other_files(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="No such file or directory"):
        records(ArrowIpc(), tmp_path / "no.arrow")
    for content in (b"", b"hello, world", b"PAR1" + bytes(100)):
        (tmp_path / "a.txt").write_bytes(content)
        with pytest.raises(DataLossError, match=r"a\.txt: not an Arrow IPC file, or damaged"):
            ArrowIpc().rows(str(tmp_path / "a.txt"))
    with pytest.raises(InvalidArgumentError, match="name at least one file"):
        ArrowIpc().spec(None)


def test_a_path_may_be_an_object(tmp_path: Path) -> None:
    write_arrow(tmp_path / "a.arrow", {"x": [1, 2]})
    assert records(ArrowIpc(), tmp_path / "a.arrow") == [{"x": 1}, {"x": 2}]


def test_what_cannot_be_written(tmp_path: Path) -> None:
    path = str(tmp_path / "a.arrow")
    with pytest.raises(
        InvalidArgumentError, match="write_arrow: columns must have the same number of rows, got a: 1, b: 2"
    ):
        write_arrow(path, {"a": [1], "b": [1, 2]})
    with pytest.raises(InvalidArgumentError, match="compression must be None, 'lz4' or 'zstd', got 'gzip'"):
        write_arrow(path, {"a": [1]}, compression="gzip")
    with pytest.raises(InvalidArgumentError, match="batch_rows must be at least 1, got 0"):
        write_arrow(path, {"a": [1]}, 0)
    assert list(tmp_path.iterdir()) == []


BATCHES = [
    pa.RecordBatch.from_pydict(
        {
            "x": range(a, a + 5),
            "t": [f"text {i}" * (i % 3) for i in range(a, a + 5)],
            "l": [[i] * (i % 4) for i in range(5)],
        }
    )
    for a in range(0, 40, 5)
]


@pytest.mark.parametrize("columns", [None, ["x"], ["t"], ["l", "x"]])
@pytest.mark.parametrize("memory_map", [True, False])
def test_values_in_the_byte_order_of_other_machines(
    tmp_path: Path, columns: list[str] | None, memory_map: bool
) -> None:
    path = tmp_path / "big.stream"
    path.write_bytes(swapped_stream(BATCHES))
    with pa.ipc.open_stream(path) as reader:
        rows = reader.read_all().to_pylist()
    assert rows == pa.Table.from_batches(BATCHES).to_pylist()
    texts = [{**row, "t": row["t"].encode()} for row in rows]
    want = [{name: row[name] for name in columns or row} for row in texts]
    ds = ArrowDataset(str(path), columns=columns, memory_map=memory_map)

    def plainly(found: Any) -> list[Any]:
        return [{name: getattr(value, "tolist", lambda v=value: v)() for name, value in row.items()} for row in found]

    assert plainly(ds) == want
    assert plainly(ds.skip(17)) == want[17:]
    assert plainly(ds.shard(3, 1)) == want[1::3]
    shuffled = plainly(ds.shuffle(100, seed=1))
    assert shuffled != want
    assert sorted(map(str, shuffled)) == sorted(map(str, want))
    iterator = iter(ds)
    for _ in range(13):
        next(iterator)
    assert plainly(ds.restore(iterator.state())) == want[13:]
    both = [plainly(auto_shard_dataset(ds, 2, worker)) for worker in range(2)]
    assert sorted(map(str, both[0] + both[1])) == sorted(map(str, want))


def test_a_stream_of_other_byte_order_is_checked_as_often_as_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "big.stream"
    content = bytearray(swapped_stream(BATCHES))
    at = content.find(b"\0\0\0\x06\0\0\0\x12")  # offsets of the first batch
    assert at > 0
    content[at : at + 4] = b"\x7f\xff\0\0"
    path.write_bytes(content)
    for _ in range(2):
        with pytest.raises(DataLossError, match=r"record batch 0.*column 't': offsets must"):
            list(ArrowDataset(str(path), columns=["t"]).shuffle(100, seed=1))


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("options", [{}, {"valid": ["m"]}, {"nulls": "error"}, {"schema": "union"}, {"nulls": "valid"}])
@pytest.mark.parametrize("stream", [False, True])
def test_a_type_that_pyarrow_has_no_arrays_of_is_told(
    tmp_path: Path, stream: bool, options: dict[str, Any], inside: bool
) -> None:
    path = str(tmp_path / "a.arrow")
    batch = with_months(inside)
    with (ipc.new_stream if stream else ipc.new_file)(path, batch.schema) as writing:
        writing.write_batch(batch)
    message = r"a\.arrow: column 'm(\.f)?' is of type .*month_interval.*, or name the columns"
    with pytest.raises(UnimplementedError, match=message):
        ArrowDataset(path, **options).to_list()
    with pytest.raises(UnimplementedError, match=message):
        di.inspect.head(path, 1, "arrow")
    assert ArrowDataset(path, columns=["a"]).to_list() == [{"a": 1}, {"a": 2}]


def with_months(inside: bool) -> Any:
    """Rows with an interval of months and a null, which pyarrow reads, and of which it makes no arrays."""
    numbers = pa.array([5, None], pa.int32())
    made = pa.StructArray.from_arrays([numbers], ["f"]) if inside else numbers
    array, schema = (ctypes.c_byte * 80)(), (ctypes.c_byte * 72)()
    batch = pa.record_batch({"a": pa.array([1, 2]), "m": made})
    batch._export_to_c(ctypes.addressof(array), ctypes.addressof(schema))
    place = ctypes.addressof(schema)
    for number in (1, 0) if inside else (1,):  # the child of this number, by the pointers behind its 40 bytes
        children = ctypes.c_size_t.from_address(place + 40).value
        place = ctypes.c_size_t.from_address(children + 8 * number).value
    ctypes.c_char_p.from_address(place).value = b"tiM"  # the format of the column, which was "i"
    return pa.RecordBatch._import_from_c(ctypes.addressof(array), ctypes.addressof(schema))
