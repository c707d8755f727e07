# SPDX-License-Identifier: Apache-2.0
from datetime import date, datetime
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.arrow.record_batches import to_arrow
from distinput.cli.main import main
from distinput.errors import DataLossError, InvalidArgumentError, NotFoundError, UnimplementedError
from distinput.files.source import stamp_of
from distinput.formats.parquet import Parquet, write_parquet
from distinput.formats.parquet_file import Readers, groups_of
from distinput.values.spec import TensorSpec
from tests.depth import cases
from tests.formats.reading import check_groups, check_positions, cut_short, flipped, plain, records, records_until_error

N = 25


def table() -> pa.Table:
    return pa.table(
        {
            "i": np.arange(N),
            "f": np.arange(N, dtype="f4") / 3,
            "u": np.arange(N, dtype="u1"),
            "flag": np.arange(N) % 2 == 0,
            "text": [f"s{i}" * (i % 3) for i in range(N)],
            "binary": pa.array([b"x" * (i % 5) for i in range(N)], pa.large_binary()),
            "fixed": pa.array([b"%03d" % i for i in range(N)], pa.binary(3)),
            "list": [list(range(i % 4)) for i in range(N)],
            "texts": [["a", "bc"][: i % 3] for i in range(N)],
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(N * 3.0)), 3),
            "vectors": pa.array([[[1.0, 2.0]] * (i % 3) for i in range(N)], pa.list_(pa.list_(pa.float32(), 2))),
            "category": pa.array(["abc"[i % 3] for i in range(N)]).dictionary_encode(),
            "moment": pa.array([datetime(2020, 1, 1 + i) for i in range(N)], pa.timestamp("us")),
            "day": pa.array([date(2020, 1, 1 + i) for i in range(N)]),
            "struct": [{"a": i, "b": {"c": str(i)}} for i in range(N)],
        }
    )


def in_python(value: Any) -> Any:
    """What a value of Arrow is as an element."""
    match value:
        case str():
            return value.encode()
        case list():
            return [in_python(item) for item in value]
        case dict():
            return {key: in_python(item) for key, item in value.items()}
    return value


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = str(tmp_path / "a.parquet")
    pq.write_table(table(), path, row_group_size=10)
    return path


def test_rows_of_every_type_are_read(file: str) -> None:
    want = [in_python(row) for row in table().to_pylist()]
    check_positions(Parquet(), file, want)
    check_positions(Parquet(batch_rows=4), file, want)


@given(size=st.integers(1, 9), given_before=st.integers(0, 8), group=st.sampled_from([5, 30]))
def test_blocks_end_where_groups_do(
    tmp_path_factory: pytest.TempPathFactory, size: int, given_before: int, group: int
) -> None:
    path = str(tmp_path_factory.getbasetemp() / f"groups-{group}.parquet")
    if not Path(path).exists():
        pq.write_table(table(), path, row_group_size=group)
    want = [in_python(row) for row in table().to_pylist()]
    check_groups(Parquet(batch_rows=7), path, want, size, given_before % size)


def test_elements_fit_the_spec(file: str) -> None:
    spec = Parquet().spec(file)
    assert spec.nest["i"] == TensorSpec((), np.int64)
    assert spec.nest["list"] == TensorSpec((None,), np.int64)
    assert spec.nest["vectors"] == TensorSpec((None, 2), np.float32)
    assert spec.nest["struct"] == {"a": TensorSpec((), np.int64), "b": {"c": TensorSpec((), object)}}
    assert list(spec.nest) == table().schema.names
    for block, _ in Parquet().read(file):
        assert block.structure == spec.structure
        for leaf, column in zip(spec.leaves, block.columns, strict=True):
            assert isinstance(leaf, TensorSpec)
            assert leaf.dtype == column.dtype
        for element in block.elements():
            for leaf, value in zip(spec.leaves, spec.structure.flatten(element), strict=True):
                assert isinstance(leaf, TensorSpec)
                assert leaf.fits(np.shape(value) if not isinstance(value, bytes) else (), leaf.dtype)


def test_row_groups_are_fragments(file: str) -> None:
    fragments = Parquet().fragments(file)
    assert [(fragment.start, fragment.stop, fragment.rows) for fragment in fragments] == [
        ({"row": 0}, {"row": 10}, 10),
        ({"row": 10}, {"row": 20}, 10),
        ({"row": 20}, {"row": 25}, 5),
    ]
    assert all(fragment.nbytes > 0 for fragment in fragments)


def test_only_the_columns_asked_for(file: str) -> None:
    format = Parquet(columns=["text", "i"])
    assert list(format.spec(file).nest) == ["text", "i"]
    assert records(format, file)[4] == {"text": b"s4", "i": 4}
    assert records(Parquet(columns=[]), file) == [{}] * N
    with pytest.raises(InvalidArgumentError, match=r"a\.parquet: has no column 'no'; its columns are i, f, u"):
        records(Parquet(columns=["no"]), file)
    with pytest.raises(InvalidArgumentError, match="must be a list of names"):
        Parquet(columns="i")


def test_numbers_are_not_copied(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    write_parquet(path, {"x": np.arange(1000)})
    block, _ = next(Parquet().read(path))
    assert not block.columns[0].array.flags.owndata  # type: ignore[attr-defined]


@given(st.lists(st.integers(0, N - 1)))
def test_rows_are_fetched_by_position(rows: list[int]) -> None:
    path = "memory://parquet/fetch.parquet"
    write_parquet(path, {"i": np.arange(N), "text": [f"{i}" for i in range(N)]}, row_group_size=7)
    block = Parquet().fetch(path, np.array(rows, np.int64))
    assert [plain(element) for element in block.elements()] == [{"i": i, "text": b"%d" % i} for i in rows]


def test_fetch_of_a_row_that_is_not_there(file: str) -> None:
    for row in (-1, N):
        with pytest.raises(InvalidArgumentError, match="rows must be from 0 to 24"):
            Parquet().fetch(file, np.array([row]))


@given(
    rows=st.lists(
        st.tuples(st.integers(-(2**63), 2**63 - 1), st.binary(), st.lists(st.floats(width=32, allow_nan=False)))
    ),
    group=st.integers(1, 8),
    batch=st.integers(1, 8),
)
def test_round_trip(rows: list[tuple[int, bytes, list[float]]], group: int, batch: int) -> None:
    path = "memory://parquet/any.parquet"
    columns = {
        "a": np.array([a for a, _, _ in rows], np.int64),
        "b": pa.array([b for _, b, _ in rows], pa.binary()),
        "c": pa.array([c for _, _, c in rows], pa.list_(pa.float32())),
    }
    write_parquet(path, columns, row_group_size=group)
    check_positions(Parquet(batch_rows=batch), path, [{"a": a, "b": b, "c": c} for a, b, c in rows])


def test_blocks_can_be_written_again(file: str, tmp_path: Path) -> None:
    for block, _ in Parquet(batch_rows=7).read(file):
        batch = to_arrow(block.rows(1, 6, 2))
        again = str(tmp_path / "b.parquet")
        write_parquet(again, {name: batch.column(name) for name in batch.schema.names})
        names = block.structure.paths
        flat = [block.structure.flatten(element) for element in block.rows(1, 6, 2).elements()]
        assert records(Parquet(), again) == [
            {name: plain(value) for name, value in zip(names, leaves, strict=True)} for leaves in flat
        ]


def test_nulls_are_an_error_that_names_the_cure(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": [1, 2, 3, None], "y": [1, 2, 3, 4]}), path, row_group_size=3)
    with pytest.raises(
        InvalidArgumentError, match=r"column 'x' has nulls in row group 1 \(first in its row 0\)"
    ) as caught:
        records(Parquet(), path)
    assert "nulls={'x': value}" in str(caught.value)
    assert len(records(Parquet(columns=["y"]), path)) == 4


def test_nulls_are_filled(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    nulls = pa.table(
        {
            "x": [1, None],
            "s": ["a", None],
            "l": [[1, None], None],
            "v": pa.array([[1, None], None], pa.list_(pa.int64(), 2)),
            "d": [{"a": 1}, {"a": None}],
            "t": pa.array([1, None], pa.timestamp("s")),
        }
    )
    pq.write_table(nulls, path)
    format = Parquet(nulls={"x": -1, "s": "?", "l": 0, "v": 7, "d": 9, "t": datetime(1970, 1, 1)})
    first, second = records(format, path)
    assert [first[key] for key in "xslvd"] == [1, b"a", [1, 0], [1, 7], {"a": 1}]
    assert [second[key] for key in "xslvd"] == [-1, b"?", [], [7, 7], {"a": 9}]
    assert second["t"] == datetime(1970, 1, 1)
    assert hash(format) == hash(Parquet(nulls=dict(format.nulls)))
    with pytest.raises(InvalidArgumentError, match="column 'x' is of type int64, and 'k' is not"):
        records(Parquet(columns=["x"], nulls={"x": "k"}), path)
    with pytest.raises(InvalidArgumentError, match='nulls must be "error" or a dict'):
        Parquet(nulls=0)


def test_decimals_are_text_and_a_column_of_no_type_holds_nulls(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    decimals = pa.array([Decimal("-1.50"), Decimal("99999999999999999999999999999999999.99")], pa.decimal128(38, 2))
    pq.write_table(pa.table({"d": decimals, "x": pa.nulls(2), "y": [1, 2]}), path)
    found = [b"-1.50", b"99999999999999999999999999999999999.99"]
    assert [row["d"] for row in records(Parquet(columns=["d"]), path)] == found
    with pytest.raises(InvalidArgumentError, match="column 'x' has nulls in row group 0"):
        records(Parquet(), path)
    assert di.data.ParquetDataset(path, nulls="valid").skip(1).to_list() == [
        {"d": found[1], "x": b"", "y": 2, "x_valid": False}
    ]
    assert di.data.ParquetDataset(path, schema={"d": "float64", "y": "int64"}).take(1).to_list() == [
        {"d": -1.5, "y": 1}
    ]


@pytest.mark.parametrize("name", ["a.parquet", "file.arrow", "stream.arrow"])
def test_several_columns_of_one_name(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / name)
    table = pa.table([pa.array([1, 2]), pa.array([3, None]), pa.array(["u", None]), pa.array([4, 5])], list("xxsn"))
    if name == "a.parquet":
        pq.write_table(table, path)
    else:
        opened = pa.ipc.new_file if name == "file.arrow" else pa.ipc.new_stream
        with pa.OSFile(path, "wb") as sink, opened(sink, table.schema) as writer:
            writer.write_table(table)
    says = r"several columns have the same name; give each its own, or name the columns .*: x, x, s, n"
    with pytest.raises(UnimplementedError, match=says):
        di.data.FileDataset(path).to_list()
    with pytest.raises(UnimplementedError, match="several columns have the same name; give each its own: x, x, s, n"):
        di.data.FileDataset(path, columns=["n", "x"]).to_list()
    for command in ("head", "stats", "schema", "verify"):
        assert main([command, path]) != 0
        assert "several columns have the same name" in "".join(capsys.readouterr())
    others = di.data.FileDataset(path, columns=["n", "s"])
    known = [{"n": 4, "s": {"value": b"u", "valid": True}}, {"n": 5, "s": {"value": b"", "valid": False}}]
    assert others.to_list() == known
    assert others.skip(1).to_list() == known[1:]
    assert sorted(others.global_shuffle(seed=1).to_list(), key=lambda row: row["n"]) == known
    assert di.data.FileDataset(path, columns=["n", "s"], nulls={"s": "?"}).to_list()[1] == {"n": 5, "s": b"?"}


def test_no_rows(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    write_parquet(path, {"x": np.empty(0, np.int64)})
    check_positions(Parquet(), path, [])
    assert Parquet().fetch(path, np.empty(0, np.int64)).size == 0


def test_a_changed_file_is_read_anew(tmp_path: Path) -> None:
    for path in (str(tmp_path / "a.parquet"), "memory://parquet/changed.parquet"):
        write_parquet(path, {"x": [1, 2]})
        assert Parquet().rows(path) == 2
        write_parquet(path, {"x": [1, 2, 3]})
        assert Parquet().rows(path) == 3
        with pytest.raises(DataLossError, match="has 3 rows, but reading must continue at row 4; the file has changed"):
            records(Parquet(), path, {"row": 4})


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.parquet"
    write_parquet(str(path), {"i": np.arange(6), "s": [b"%d" % i for i in range(6)]}, row_group_size=3)
    return path


def test_a_file_cut_short_is_an_error(small: Path) -> None:
    for damaged in cut_short(small.read_bytes()):
        small.write_bytes(damaged)
        found, error = records_until_error(Parquet(), small)
        assert found == []
        assert isinstance(error, DataLossError)
        assert f"{small}: not a Parquet file, or damaged" in str(error)


@pytest.mark.slow
def test_a_flipped_bit_is_an_error_wherever_there_is_a_checksum(small: Path) -> None:
    content = small.read_bytes()
    values = [{"i": i, "s": b"%d" % i} for i in range(6)]
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    for bit, damaged in islice(enumerate(flipped(content)), 0, None, cases(29, 1)):
        small.write_bytes(damaged)
        found, error = records_until_error(Parquet(), small)
        if error is not None:
            assert isinstance(error, DataLossError | UnimplementedError)
            assert str(small) in str(error)
        if bit // 8 < footer:  # the pages; a footer has no checksum, so a column may have another name there
            assert found == values[: len(found)]


def test_missing_and_other_files(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="No such file or directory"):
        records(Parquet(), tmp_path / "no.parquet")
    (tmp_path / "a.txt").write_bytes(b"hello")
    with pytest.raises(DataLossError, match=r"a\.txt: not a Parquet file"):
        Parquet().rows(str(tmp_path / "a.txt"))
    with pytest.raises(InvalidArgumentError, match="name at least one file"):
        Parquet().spec(None)


def test_a_path_may_be_an_object(tmp_path: Path) -> None:
    for path in (tmp_path / "a.parquet", str(tmp_path / "b.parquet"), bytes(tmp_path / "c.parquet")):
        write_parquet(path, {"x": [1, 2]})  # type: ignore[arg-type]  # bytes are taken as by the readers
    assert all(records(Parquet(), tmp_path / f"{name}.parquet") == [{"x": 1}, {"x": 2}] for name in "abc")


def test_the_bytes_of_a_row_group_follow_from_the_types(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    n = 10_000
    columns = {
        "equal": np.zeros(n, np.int64),
        "flag": np.zeros(n, bool),
        "vector": np.zeros((n, 4), np.float32),
        "struct": pa.StructArray.from_arrays([pa.array(np.zeros(n, np.int16)), pa.array(["t"] * n)], ["a", "b"]),
        "text": [f"long enough to matter {i}" for i in range(n)],
    }
    write_parquet(path, columns)
    assert Path(path).stat().st_size < 200_000

    def nbytes(*names: str) -> int:
        (group,) = groups_of(path, stamp_of(path), names or None)
        assert group.rows == n
        return group.nbytes

    assert nbytes("equal") == 8 * n
    assert nbytes("vector", "equal") == 24 * n
    assert nbytes("flag") == n // 8
    assert nbytes("struct") >= 2 * n
    assert nbytes("text") >= 16 * n
    assert nbytes() >= 26 * n


def test_the_largest_column_of_a_row_group(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    n = 10_000
    text = [f"{i:0100}" for i in range(n)]
    write_parquet(path, {"number": np.arange(n), "vector": np.zeros((n, 4), np.float32), "text": text, "short": text})

    def widest(*names: str) -> int:
        (group,) = groups_of(path, stamp_of(path), names or None)
        return group.widest

    assert widest("number") == 8 * n
    assert widest("number", "vector") == 16 * n
    assert 90 * n <= widest("number", "text", "short") <= 110 * n  # each text half of what both take
    assert widest() == widest("text", "short")


@pytest.mark.parametrize("width, portions", [(100, 1), (500, 1), (2500, 5)])
def test_a_row_group_with_a_wide_column_is_decoded_in_slices(width: int, portions: int, tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    n = 1000
    write_parquet(path, {"x": np.arange(n), "vector": np.zeros((n, width), np.float32)}, compression="zstd")
    parquet = Parquet()
    found = list(parquet.portions(path, None, None, 1, 0))
    assert len(found) == portions
    assert [portion.follows for portion in found] == [False, *[True] * (portions - 1)]
    assert records(parquet, path, {"row": n - 1})[0]["x"] == n - 1


@pytest.mark.parametrize("columns, rows", [(1, 32_768), (32, 16_384), (200, 4_096)])
def test_blocks_of_many_columns_are_larger(columns: int, rows: int, tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    write_parquet(path, {f"c{number}": np.zeros(40_000) for number in range(columns)})
    block, _ = next(Parquet().read(path))
    assert block.size == rows


def test_a_reader_is_lent_to_one_at_a_time(small: Path) -> None:
    readers = Readers(str(small), stamp_of(str(small)))
    with readers.lent(at_once=True) as first, readers.lent(at_once=True) as second:
        assert first is not second
    with readers.lent(at_once=True) as again:
        assert again in (first, second)
        readers.close()
        assert again.row_group(0, None).num_rows == 3


def test_what_cannot_be_written(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    with pytest.raises(InvalidArgumentError, match="same number of rows, got a: 1, b: 2"):
        write_parquet(path, {"a": [1], "b": [1, 2]})
    with pytest.raises(InvalidArgumentError, match="write_parquet: column 'a'"):
        write_parquet(path, {"a": [1, "x"]})
    assert list(tmp_path.iterdir()) == []


def test_rows_are_those_of_the_row_groups_where_the_footer_does_not_say_them(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": range(5)}), path, row_group_size=2)
    data = path.read_bytes()
    size = int.from_bytes(data[-8:-4], "little")
    footer = data[-8 - size : -8]
    schema_ends = footer.index(b"\x16\x0a", 4)  # the number of rows, 5, in zigzag
    path.write_bytes(data[: -8 - size] + footer[:schema_ends] + b"\x16\x00" + footer[schema_ends + 2 :] + data[-8:])
    assert pq.read_metadata(path).num_rows == 0
    dataset = di.data.ParquetDataset(str(path))
    assert [int(row["x"]) for row in dataset] == [0, 1, 2, 3, 4]
    assert sorted(int(row["x"]) for row in dataset.shuffle(5, seed=1)) == [0, 1, 2, 3, 4]
    assert dataset.cardinality() == 5
    path.write_bytes(data[: -8 - size] + footer[:schema_ends] + b"\x16\x08" + footer[schema_ends + 2 :] + data[-8:])
    with pytest.raises(di.errors.DataLossError, match="says 4 rows, but its row groups have 5"):
        di.data.ParquetDataset(str(path)).to_list()


@pytest.mark.parametrize(
    "compression, codecs",
    [("lz4_raw", ["LZ4", "LZ4"]), ({"x": "zstd", "y": None}, ["ZSTD", "UNCOMPRESSED"]), (None, ["UNCOMPRESSED"] * 2)],
)
def test_columns_are_compressed_as_pyarrow_would(compression: Any, codecs: list[str], tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_parquet(path, {"x": [1, 2], "y": [3, 4]}, compression=compression)
    group = pq.ParquetFile(path).metadata.row_group(0)
    assert [group.column(number).compression for number in range(2)] == codecs
    with pytest.raises(InvalidArgumentError, match=r"write_parquet: compression of Parquet files must be .* got 'lzo'"):
        write_parquet(path, {"x": [1]}, compression={"x": "lzo"})


@pytest.mark.parametrize("levels", [True, False])
def test_text_that_arrow_does_not_count_below_null_structs_is_null(
    levels: bool, tmp_path: Path, monkeypatch: Any
) -> None:
    text = pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int8()), pa.array(["a"]))
    structs = pa.StructArray.from_arrays([text], ["t"], mask=pa.array([True, False]))
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"s": structs, "n": [1, 2]}), path)
    assert pq.read_metadata(path).row_group(0).column(0).statistics.null_count == 0  # a fault of pyarrow's writer
    if not levels:  # as files of older versions are
        monkeypatch.setattr("distinput.formats.parquet._SIZES", 99)
    assert di.data.ParquetDataset(path).to_arrow()["s"].to_pylist() == [None, {"t": b"a"}]


@pytest.mark.parametrize("kind, typed, looks", [("texts", True, 0), ("category", True, 1), ("category", False, 1)])
def test_only_categories_are_read_to_see_whether_there_are_nulls(
    kind: str, typed: bool, looks: int, tmp_path: Path, monkeypatch: Any
) -> None:
    text = pa.array(["a", "b"]) if kind == "texts" else pa.array(["a", "b"]).dictionary_encode()
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"s": pa.StructArray.from_arrays([text], ["t"])}), path, store_schema=typed)
    monkeypatch.setattr("distinput.formats.parquet._SIZES", 99)  # as files of older versions are
    looked: list[Any] = []

    def look(batch: Any, **options: bool) -> list[str]:
        looked.append(batch)
        return []

    monkeypatch.setattr("distinput.formats.parquet.null_paths", look)
    assert di.data.ParquetDataset(path).to_list() == [{"s": {"t": b"a"}}, {"s": {"t": b"b"}}]
    assert len(looked) == looks


@pytest.mark.parametrize("rows", [(2, 3), (3, 3), (50_000, 50_000), (50_000, 50_001)])
@pytest.mark.parametrize("index", [False, True])
def test_files_that_were_joined_byte_by_byte_are_refused(tmp_path: Path, rows: tuple[int, int], index: bool) -> None:
    parts = []
    for count in rows:
        table = pa.table({"text": ["PAR1PAR1"] * count, "n": np.random.default_rng(1).random(count)})
        pq.write_table(table, tmp_path / "part.parquet", write_page_index=index, use_dictionary=False)
        parts.append((tmp_path / "part.parquet").read_bytes())
        (batch,) = di.data.ParquetDataset(tmp_path / "part.parquet").batch(count + 1).to_list()
        assert len(batch["n"]) == len(batch["text"]) == count
    (tmp_path / "joined.parquet").write_bytes(b"".join(parts))
    message = f"joined.parquet: holds several Parquet files one behind the other, the last from byte {len(parts[0])} on"
    with pytest.raises(DataLossError, match=message):
        di.data.ParquetDataset(tmp_path / "joined.parquet").to_list()


@pytest.mark.parametrize("kind", ["numbers", "text", "compressed", "most compressed", "small first"])
def test_later_files_that_were_joined_are_refused(tmp_path: Path, kind: str) -> None:
    parts = []
    for seed in (1, 2):
        values: Any = np.random.default_rng(seed).random(50_000)
        if kind == "text":
            values = [f"{value:.16f}" for value in values]
        if kind in ("compressed", "small first"):  # to less than half of what they take, and more than a megabyte
            values = np.repeat((np.random.default_rng(seed).random(500_000) * 2**20).astype(np.int64), 4)
        if kind == "most compressed":  # to less than a megabyte, of columns that have more
            values = np.repeat((np.random.default_rng(seed).random(10_000) * 2**20).astype(np.int64), 20)
        if kind == "small first" and seed == 1:
            values = values[:100]
        pq.write_table(pa.table({"x": values, "y": values}), tmp_path / "a.parquet", use_dictionary=False)
        parts.append((tmp_path / "a.parquet").read_bytes())
    assert len(parts[0]) == len(parts[1]) or kind != "numbers"
    (tmp_path / "b.parquet").write_bytes(b"".join(parts))
    for columns in (None, ["x"]):
        files = di.data.ParquetDataset([tmp_path / "a.parquet", tmp_path / "b.parquet"], columns=columns)
        with pytest.raises(DataLossError, match=r"b.parquet: holds several Parquet files one behind the other"):
            files.to_list()
