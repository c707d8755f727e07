# SPDX-License-Identifier: Apache-2.0
"""Tables that the libraries of Delta Lake, Iceberg and Lance write, read at their versions."""

import base64
import json
import re
import string
import struct
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import deltalake
import lance
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import compute, parquet
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.types import DoubleType, LongType

import distinput as di
from distinput.data.dataset import Dataset
from distinput.errors import (
    DataLossError,
    InvalidArgumentError,
    NotFoundError,
    StateError,
    UnimplementedError,
)
from distinput.interop.tables import from_delta, from_iceberg, from_lance
from distinput.sharding.policies import auto_shard
from distinput.testing import check_dataset
from tests.depth import DEEP

Rows = list[dict[str, Any]]


def plain(rows: Rows) -> Rows:
    """Rows of Arrow with text as its bytes."""

    def of(value: Any) -> Any:
        return (
            value.encode()
            if isinstance(value, str)
            else [of(each) for each in value]
            if isinstance(value, list)
            else {name: of(each) for name, each in value.items()}
            if isinstance(value, dict)
            else value
        )

    return [{name: of(value) for name, value in row.items()} for row in rows]


def by_x(rows: Rows) -> Rows:
    return sorted(rows, key=lambda row: row["x"])


# ----------------------------------------------------------------------------
# What holds of all of them: a table of numbers, which grows by `more`, and is opened at a version.
# ----------------------------------------------------------------------------


class Numbers:
    """A table of x from 0 to 23, or fewer numbers, in four files or so, in a first version."""

    def __init__(self, folder: Path, count: int = 24) -> None:
        self.at = str(folder / "numbers")
        for first in range(0, count, count // 4):
            self.more(range(first, first + count // 4))

    def more(self, numbers: Sequence[int]) -> None:
        raise NotImplementedError

    def open(self, version: Any = None) -> Dataset[Any]:
        raise NotImplementedError

    def part(self, numbers: Sequence[int]) -> pa.Table:
        return pa.table({"x": pa.array(numbers, pa.int64()), "t": [str(each) for each in numbers]})


class DeltaNumbers(Numbers):
    def more(self, numbers: Sequence[int]) -> None:
        deltalake.write_deltalake(self.at, self.part(numbers), mode="append")

    def open(self, version: Any = None) -> Dataset[Any]:
        return from_delta(self.at, version)


class LanceNumbers(Numbers):
    def more(self, numbers: Sequence[int]) -> None:
        lance.write_dataset(self.part(numbers), self.at, mode="append" if Path(self.at).exists() else "create")

    def open(self, version: Any = None) -> Dataset[Any]:
        return from_lance(self.at, version)


class IcebergNumbers(Numbers):
    def __init__(self, folder: Path, count: int = 24) -> None:
        self.table = new_iceberg(folder, self.part([0]).schema)
        super().__init__(folder, count)

    def more(self, numbers: Sequence[int]) -> None:
        self.table.append(self.part(numbers))

    def open(self, version: Any = None) -> Dataset[Any]:
        return from_iceberg(self.table, version)


def new_iceberg(folder: Path, schema: pa.Schema, **options: Any) -> Any:
    catalog = SqlCatalog("mine", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse")
    catalog.create_namespace_if_not_exists("space")
    return catalog.create_table("space.numbers", schema, **options)


KINDS: list[type[Numbers]] = [DeltaNumbers, IcebergNumbers, LanceNumbers]


@pytest.fixture(params=KINDS)
def numbers(request: pytest.FixtureRequest, tmp_path: Path) -> Numbers:
    made: Numbers = request.param(tmp_path)
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_the_laws_hold(kind: type[Numbers], tmp_path: Path) -> None:
    names = check_dataset(kind(tmp_path, 8).open)
    assert {"restart", "rewrites", "facts", "blocks"} <= set(names)


def test_rows_are_counted_reached_and_shuffled(numbers: Numbers) -> None:
    dataset = numbers.open()
    rows = dataset.to_list()
    assert by_x(rows) == [{"x": each, "t": str(each).encode()} for each in range(24)]
    assert len(dataset) == 24
    assert [int(dataset[place]["x"]) for place in (5, 20, 0)] == [rows[place]["x"] for place in (5, 20, 0)]
    shuffled = dataset.global_shuffle(seed=3).to_list()
    assert shuffled != rows
    assert by_x(shuffled) == by_x(rows)
    assert dataset.select(["t"]).to_list() == [{"t": row["t"]} for row in rows]
    assert dataset.filter(compute.field("x") > 20).to_list() == [row for row in rows if row["x"] > 20]


@pytest.mark.parametrize("policy", ["FILE", "BALANCED", "DATA"])
def test_two_workers_share_the_rows(numbers: Numbers, policy: str) -> None:
    options = di.data.Options()
    options.experimental_distribute.auto_shard_policy = getattr(di.data.experimental.AutoShardPolicy, policy)
    dataset = numbers.open().with_options(options).batch(4)
    parts = []
    for worker in range(2):
        part = Dataset(auto_shard(dataset.node, 2, worker, 2))
        found = [batch["x"].tolist() for batch in part]
        parts += [each for batch in found for each in batch]
        with iter(part) as iterator:
            next(iterator)
            state = json.loads(json.dumps(iterator.state()))
        numbers.more([100])
        again = Dataset(auto_shard(numbers.open(state).with_options(options).batch(4).node, 2, worker, 2))
        assert [batch["x"].tolist() for batch in again.restore(state)] == found[1:]
        dataset = numbers.open(state).with_options(options).batch(4)
    assert sorted(parts) == list(range(24))


def test_a_job_goes_on_with_the_version_that_it_began_with(numbers: Numbers) -> None:
    dataset = numbers.open()
    rows = dataset.to_list()
    with iter(dataset) as iterator:
        for _ in range(7):
            next(iterator)
        state = json.loads(json.dumps(iterator.state()))
    numbers.more([100, 101])
    assert len(numbers.open()) == 26
    rest = [{"x": int(row["x"]), "t": row["t"]} for row in numbers.open(state).restore(state)]
    assert rest == rows[7:]
    with pytest.raises(
        StateError, match=r"reads (version|snapshot) \d+ of the .* table .*, and (version|snapshot) \d+ of the"
    ):
        numbers.open().restore(state)


def test_a_state_of_no_version_of_the_table_is_refused(numbers: Numbers, tmp_path: Path) -> None:
    with iter(di.data.Dataset.range(3)) as iterator:
        state = iterator.state()
    with pytest.raises(StateError, match=r"the state is of no version of the .* it knows no table of versions"):
        numbers.open(state)
    with pytest.raises(TypeError, match="a version must be a number, or a state that holds one, got a str"):
        numbers.open("3")


@pytest.mark.parametrize("version", [99, -1, np.int64(-1), 2**63 - 1, 2**63, 2**70])
def test_a_version_that_is_not_there(numbers: Numbers, version: Any) -> None:
    absent = (
        rf"has no version {version}; the newest|cannot open version {version} of|has no snapshot {version}; it has \["
    )
    with pytest.raises(InvalidArgumentError, match=absent):
        numbers.open(version)


@pytest.mark.parametrize("kind", [np.int64, np.uint64, np.array])
def test_a_version_is_a_number_of_numpy(numbers: Numbers, kind: Any) -> None:
    with iter(numbers.open()) as iterator:
        told = re.search(r"(?:version|snapshot) ([0-9]+) of the", json.dumps(iterator.state()))
    assert told
    numbers.more([100])
    assert len(numbers.open(kind(int(told[1])))) == 24


@pytest.mark.parametrize("count", [4, 24])  # the four parts have a row each, or several
def test_rows_are_reached_in_any_order(numbers: Numbers, count: int, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    whole = type(numbers)(other, count).open()
    ordered = whole.to_list()
    for dataset, rows in ((whole, ordered), (whole.take(count // 4), ordered[: count // 4])):
        for places in (np.arange(len(rows))[::-1], [*range(len(rows)), 0, 0]):
            assert dataset[places] == [rows[place] for place in places]


# ----------------------------------------------------------------------------
# Nulls: where they are in any file of the version.
# ----------------------------------------------------------------------------

FIRST = pa.table({"x": [1, 2], "n": [5, 6], "t": ["a", "b"], "f": [0.5, None], "s": [{"a": 1}] * 2, "l": [[1], [2, 3]]})
LATER = pa.table(
    {
        "x": [3, 4], "n": [None, 7], "t": ["c", "d"], "f": [1.5, 2.5], "s": [{"a": 1, "b": "q"}, None],
        "l": [[None, 4], None], "y": [True, False],
    }
)  # fmt: skip


def delta_with_nulls(folder: Path) -> tuple[Callable[..., Dataset[Any]], pa.Table]:
    at = str(folder / "t")
    deltalake.write_deltalake(at, FIRST)
    deltalake.write_deltalake(at, LATER, mode="append", schema_mode="merge")
    return lambda **options: from_delta(at, **options), pa.table(deltalake.DeltaTable(at).scan())


def iceberg_with_nulls(folder: Path) -> tuple[Callable[..., Dataset[Any]], pa.Table]:
    table = new_iceberg(folder, FIRST.schema)
    table.append(FIRST)
    with table.update_schema() as update:
        update.union_by_name(LATER.schema)
    table.append(LATER)
    return lambda **options: from_iceberg(table, **options), table.scan().to_arrow()


@pytest.mark.parametrize("make", [delta_with_nulls, iceberg_with_nulls])
def test_nulls_of_all_files_stand_in_their_place(make: Any, tmp_path: Path) -> None:
    read, table = make(tmp_path)
    rows = by_x(read().to_list())
    assert rows[0]["n"] == {"value": 5, "valid": True}
    assert [row["n"]["valid"] for row in rows] == [True, True, False, True]
    assert [row["t"] for row in rows] == [b"a", b"b", b"c", b"d"]  # no file has nulls there
    assert [row["y"]["valid"] for row in rows] == [False, False, True, True]  # younger than the first file
    assert [row["s"]["valid"] for row in rows] == [True, True, True, False]
    assert [bool(row["s"]["value"]["b"]["valid"]) for row in rows[:3]] == [False, False, True]
    assert list(rows[2]["l"]["value"]["valid"]) == [False, True]
    written = read().to_arrow().drop_columns("f")  # where nulls are NaN
    assert by_x(plain(written.to_pylist())) == by_x(plain(table.drop_columns("f").to_pylist()))
    if DEEP or make is delta_with_nulls:  # the files of both are read alike
        check_dataset(lambda: read(columns=["x", "n", "s", "l", "y"]))
    for given in ("n", "y", "s"):
        with pytest.raises(InvalidArgumentError, match=rf"column '{given}(\.[ab])?' has nulls in row group 0"):
            read(nulls="error", columns=[given]).to_list()
    beside = by_x(read(nulls="valid", columns=["x", "n", "s", "l"]).to_list())
    assert [row["n_valid"] for row in beside] == [True, True, False, True]
    assert [row["s"]["b_valid"] for row in beside] == [False, False, True, False]
    assert list(beside[2]["l_items_valid"]) == [False, True]
    assert by_x(read(valid=["n"], columns=["x", "n"]).to_list()) == [{"x": row["x"], "n": row["n"]} for row in rows]


@pytest.mark.parametrize("make", [delta_with_nulls, iceberg_with_nulls])
def test_columns_without_nulls_are_read_as_ever(make: Any, tmp_path: Path) -> None:
    read, _ = make(tmp_path)
    for dataset in (read().select(["t"]), read(columns=["t"])):
        assert {row["t"] for row in dataset.to_list()} == {b"a", b"b", b"c", b"d"}
    small = read().filter(compute.field("n") < 7).select(["n", "x"]).to_list()
    assert by_x(small) == [{"n": {"value": 4 + x, "valid": True}, "x": x} for x in (1, 2)]
    before = iter(read(nulls="error").select(["x"]))
    rows = [next(before) for _ in range(2)]
    dataset = read().select(["x"])
    assert [*rows, *dataset.restore(before.state())] == dataset.to_list()


def test_a_field_that_is_younger_than_a_file_is_null_in_its_lists(tmp_path: Path) -> None:
    at = str(tmp_path / "t")
    deltalake.write_deltalake(at, pa.table({"x": [1, 2], "m": [[[{"a": 1}]], []]}))
    deltalake.write_deltalake(at, pa.table({"x": [3], "m": [[[{"a": 3, "b": 4}]]]}), mode="append", schema_mode="merge")
    b = {"value": [[0]], "valid": [[False]]}, {"value": [], "valid": []}, {"value": [[4]], "valid": [[True]]}
    assert [row["m"]["b"] for row in by_x(from_delta(at).to_list())] == list(b)
    assert [row["m"]["b_valid"] for row in by_x(from_delta(at, nulls="valid").to_list())] == [
        each["valid"] for each in b
    ]


def test_files_are_opened_for_nulls_only_if_the_log_does_not_tell(tmp_path: Path) -> None:
    at = str(tmp_path / "t")
    deltalake.write_deltalake(at, pa.table({"x": [1, None], "t": ["a", "b"], "p": ["q", None]}), partition_by=["p"])
    for path in deltalake.DeltaTable(at).file_uris():
        Path(path).write_bytes(b"nobody reads this")
    spec = from_delta(at).element_spec
    assert [name for name, each in spec.items() if isinstance(each, di.data.Nullable)] == ["x", "p"]


# ----------------------------------------------------------------------------
# Delta Lake.
# ----------------------------------------------------------------------------


def delta_rows(table: str, version: int | None = None) -> Rows:
    """As the library gives them."""
    return plain(pa.table(deltalake.DeltaTable(table, version).scan()).to_pylist())


@pytest.fixture
def grown(tmp_path: Path) -> str:
    """A table of five versions: partitions, an added column, deleted rows, other rows."""
    at = str(tmp_path / "grown é#?")
    days = [date(2024, 1, 1), date(2024, 1, 2), date(2024, 1, 2)]
    first = pa.table({"x": [1, 2, 3], "p": ["a", "b c/é%", "a"], "day": days})
    deltalake.write_deltalake(at, first, partition_by=["p", "day"])
    added = pa.table({"x": [4, 5], "p": ["a", "="], "day": days[:2], "y": [0.5, 1.5]})
    deltalake.write_deltalake(at, added, mode="append", schema_mode="merge")
    deltalake.DeltaTable(at).delete("x = 3")
    deltalake.DeltaTable(at).update({"y": "2.5"}, predicate="x = 1")
    deltalake.write_deltalake(at, added, mode="overwrite")
    return at


@pytest.mark.parametrize("version", range(5))
def test_each_version_of_a_delta_table(grown: str, version: int) -> None:
    dataset = from_delta(grown, version)
    found = by_x(
        [{name: None if value != value else value for name, value in row.items()} for row in dataset.to_list()]
    )
    assert found == by_x(delta_rows(grown, version))
    assert len(dataset) == len(found)
    if DEEP or version == 3:  # with a column more, and rows that were changed
        check_dataset(lambda: from_delta(grown, version, columns=["p", "x"]))


def test_an_opened_table_keeps_its_version(grown: str) -> None:
    table = deltalake.DeltaTable(grown, 1)
    assert len(from_delta(table)) == 5
    assert len(from_delta(table, 0)) == 3
    assert table.version() == 1


def test_values_of_partitions_come_from_the_log(tmp_path: Path) -> None:
    at = str(tmp_path / "t")
    rows = pa.table({"x": [1, 2, 3], "n": pa.array([7, None, 8], pa.int32()), "p": ["a", "a", None]})
    deltalake.write_deltalake(at, rows, partition_by=["n", "p"])
    found = by_x(from_delta(at, nulls={"n": -1, "p": "none"}).to_list())
    assert found == [{"x": 1, "n": 7, "p": b"a"}, {"x": 2, "n": -1, "p": b"a"}, {"x": 3, "n": 8, "p": b"none"}]
    marks = from_delta(at, valid={"n": "there"}, nulls={"p": ""}).select(["there"])
    assert sorted(row["there"] for row in marks.to_list()) == [False, True, True]
    told = by_x(from_delta(at, nulls="valid").to_list())
    assert [(row["n_valid"], row["p_valid"]) for row in told] == [(True, True), (False, True), (True, False)]
    assert by_x(from_delta(at, valid={"n": "there"}, nulls={"p": ""}).to_list())[1]["there"] is False
    with pytest.raises(InvalidArgumentError, match=r"column '[np]' has nulls"):
        from_delta(at, nulls="error").to_list()
    in_place = by_x(from_delta(at).to_list())
    assert in_place[0] == {"x": 1, "n": {"value": 7, "valid": True}, "p": {"value": b"a", "valid": True}}
    assert [(row["n"]["valid"], row["p"]["valid"]) for row in in_place[1:]] == [(False, True), (True, False)]
    first = from_delta(at).filter(compute.field("p").is_null() | (compute.field("n") == 7)).select(["x"])
    assert by_x(first.to_list()) == [{"x": 1}, {"x": 3}]
    assert {row["p"] for row in from_delta(at, columns=["p"], nulls={"p": "none"}).to_list()} == {b"none", b"a"}


def test_a_filter_leaves_out_files_and_row_groups(tmp_path: Path) -> None:
    at = str(tmp_path / "t")
    for part in "ab":
        deltalake.write_deltalake(at, pa.table({"x": range(100), "p": [part] * 100}), mode="append", partition_by=["p"])
    table = deltalake.DeltaTable(at)
    for path in table.file_uris():
        if "p=a" in path:
            Path(path).write_bytes(b"nobody reads this")
    dataset = from_delta(at).filter((compute.field("p") == "b") & (compute.field("x") < 2))
    assert dataset.to_list() == [{"x": 0, "p": b"b"}, {"x": 1, "p": b"b"}]
    assert from_delta(at).filter(compute.field("p") == "c").to_list() == []


def test_a_filter_sees_what_stands_for_nulls(tmp_path: Path) -> None:
    at = str(tmp_path / "t")
    deltalake.write_deltalake(at, pa.table({"x": [5, None], "y": [5.0, None], "n": [1, 2]}))
    zero = compute.field("y") == 0
    assert from_delta(at, nulls={"x": 0, "y": 0}).filter(zero).to_list() == [{"x": 0, "y": 0, "n": 2}]
    assert from_delta(at, nulls={"x": 0, "y": 0}).filter(compute.field("x") < 5).select(["n"]).to_list() == [{"n": 2}]
    marked = from_delta(at, nulls={"x": 0}, valid={"y": "there"})
    for condition, holds in ((zero, lambda y: y == 0), (compute.field("y") > 1, lambda y: y > 1)):
        want = [row["n"] for row in marked.to_list() if holds(row["y"])]
        assert [row["n"] for row in marked.filter(condition).to_list()] == want


def test_an_empty_table(tmp_path: Path) -> None:
    at = str(tmp_path / "t")
    deltalake.write_deltalake(at, pa.table({"x": [1], "t": ["a"]}))
    deltalake.DeltaTable(at).delete()
    dataset = from_delta(at, columns=["t"])
    assert dataset.to_list() == []
    assert len(dataset) == 0
    check_dataset(lambda: from_delta(at))
    assert dataset.element_spec == {"t": di.TensorSpec([], bytes)}


def test_files_that_the_log_does_not_know(tmp_path: Path) -> None:
    at = str(tmp_path / "t")
    deltalake.write_deltalake(at, pa.table({"x": [1, 2]}))
    (path,) = deltalake.DeltaTable(at).file_uris()
    parquet.write_table(pa.table({"x": [1, 2, 3]}), path)
    with pytest.raises(DataLossError, match="has 3 rows, and the table says 2: it was changed"):
        from_delta(at).to_list()
    Path(path).unlink()
    with pytest.raises(NotFoundError):
        from_delta(at).to_list()


def test_what_is_no_delta_table(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="there is no table"):
        from_delta(str(tmp_path / "none"))
    deltalake.write_deltalake(str(tmp_path / "t"), pa.table({"x": [1]}))
    with pytest.raises(InvalidArgumentError, match="the table has no column 'y'; its columns are x"):
        from_delta(str(tmp_path / "t"), columns=["y"])
    with pytest.raises(InvalidArgumentError, match="nulls: the table has no column 'y'"):
        from_delta(str(tmp_path / "t"), nulls={"y": 0})


B85 = string.digits + string.ascii_uppercase + string.ascii_lowercase + "!#$%&()*+-;<=>?@^_`{|}~"
Z85 = string.digits + string.ascii_lowercase + string.ascii_uppercase + ".-:+=^!/*?&<>()[]{}@%$#"


def protocol(at: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the actions of the first version."""
    log = Path(at) / "_delta_log" / "00000000000000000000.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        change(action)
    log.write_text("\n".join(map(json.dumps, actions)))


def test_features_that_change_what_files_mean(tmp_path: Path) -> None:
    at = str(tmp_path / "t")
    deltalake.write_deltalake(at, pa.table({"x": [1, 2, 3]}))

    def needs_vectors(action: dict[str, Any]) -> None:
        if "protocol" in action:
            features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
            action["protocol"] = {"minReaderVersion": 3, "minWriterVersion": 7, **features}

    protocol(at, needs_vectors)
    assert len(from_delta(at)) == 3

    # A vector that deletes rows 0 and 2: its magic number, one bitmap of key 0, and that bitmap, an array of two.
    bitmap = struct.pack("<IIHHIHH", 12346, 1, 0, 1, 16, 0, 2)
    vector = struct.pack("<IQI", 1681511377, 1, 0) + bitmap
    text = base64.b85encode(vector).decode().translate(str.maketrans(B85, Z85))

    def has_a_vector(action: dict[str, Any]) -> None:
        if "add" in action:
            action["add"]["deletionVector"] = {
                "storageType": "i", "pathOrInlineDv": text, "sizeInBytes": len(vector), "cardinality": 2
            }  # fmt: skip

    protocol(at, has_a_vector)
    with pytest.raises(
        UnimplementedError, match=r"of its files have deletion vectors, which are not read; rewrite these"
    ):
        from_delta(at)
    as_the_message_says = di.data.Dataset.from_arrow(lambda: deltalake.DeltaTable(at, 0).scan())
    assert as_the_message_says.to_list() == [{"x": 2}]

    def says_nothing_of_it(action: dict[str, Any]) -> None:
        if "protocol" in action:
            action["protocol"] = {"minReaderVersion": 1, "minWriterVersion": 2}

    protocol(at, says_nothing_of_it)
    with pytest.raises(UnimplementedError, match="have deletion vectors, which are not read"):
        from_delta(at)


def test_tables_hand_out_text_and_rows_of_python(tmp_path: Path) -> None:
    at = str(tmp_path / "t")
    rows = [{"m": [{"role": "user", "n": 1}], "t": "a"}, {"m": [], "t": "b"}]
    deltalake.write_deltalake(at, pa.Table.from_pylist(rows))
    assert from_delta(at).as_text().as_rows(["m"]).to_list() == rows


def test_mapped_columns_of_delta(tmp_path: Path) -> None:
    at = str(tmp_path / "t")
    deltalake.write_deltalake(at, pa.table({"x": [1, 2, 3]}))

    def mapped(action: dict[str, Any]) -> None:
        if "protocol" in action:
            action["protocol"] = {"minReaderVersion": 2, "minWriterVersion": 5}
        if "metaData" in action:
            action["metaData"]["configuration"] = {
                "delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "1"
            }  # fmt: skip
            schema = json.loads(action["metaData"]["schemaString"])
            schema["fields"][0]["metadata"] = {
                "delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "x"
            }  # fmt: skip
            action["metaData"]["schemaString"] = json.dumps(schema)

    protocol(at, mapped)
    with pytest.raises(UnimplementedError, match=r"its columns are mapped by name.*from_arrow"):
        from_delta(at)


# ----------------------------------------------------------------------------
# Iceberg.
# ----------------------------------------------------------------------------


def iceberg_rows(table: Any, snapshot_id: int | None = None) -> Rows:
    return plain(table.scan(snapshot_id=snapshot_id).to_arrow().to_pylist())


def test_each_snapshot_of_an_iceberg_table(tmp_path: Path) -> None:
    schema = pa.schema(
        {"x": pa.int64(), "p": pa.string(), "s": pa.struct({"a": pa.int32()}), "l": pa.list_(pa.string())}
    )
    table = new_iceberg(tmp_path, schema)
    with table.update_spec() as spec:
        spec.add_identity("p")
    table.append(
        pa.table({"x": [1, 2, 3], "p": ["a", "b", "c"], "s": [{"a": 1}] * 3, "l": [["q"], [], ["r", "s"]]}, schema)
    )
    with table.update_schema() as update:
        update.rename_column("p", "part")
        update.add_column("y", DoubleType())
    assert from_iceberg(table).element_spec.keys() == {"x", "p", "s", "l"}  # the snapshot is older than the names
    table.delete("x == 2")
    with table.update_schema() as update:  # another column of an old name
        update.delete_column("y")
    with table.update_schema() as update:
        update.add_column("y", DoubleType())
    latest = pa.table({"x": [4], "part": ["a"], "s": [{"a": 2}], "l": [["t"]], "y": [1.5]}, table.schema().as_arrow())
    table.append(latest)
    table.overwrite(latest)
    snapshots = [each.snapshot_id for each in table.snapshots()]
    assert len(snapshots) >= 4
    for snapshot_id in snapshots:
        expected = iceberg_rows(table, snapshot_id)
        found = from_iceberg(table, snapshot_id).to_list()
        found = [{name: None if value != value else value for name, value in row.items()} for row in found]
        assert by_x(found) == by_x(expected)
    assert from_iceberg(table.metadata_location, snapshots[0]).to_list() == from_iceberg(table, snapshots[0]).to_list()


def test_columns_of_iceberg_are_found_by_their_ids(tmp_path: Path) -> None:
    table = new_iceberg(tmp_path, pa.schema({"x": pa.int32(), "y": pa.int32(), "z": pa.string()}))
    table.append(pa.table({"x": [1, 2], "y": [10, 20], "z": ["p", "q"]}, table.schema().as_arrow()))
    with table.update_schema() as update:
        update.rename_column("x", "w")
    with table.update_schema() as update:
        update.rename_column("y", "x")
        update.update_column("w", LongType())
    table.append(pa.table({"w": [3], "x": [30], "z": [None]}, table.schema().as_arrow()))
    rows = by_x(from_iceberg(table, nulls={"z": "none"}).to_list())
    assert [(row["w"], row["x"], row["z"]) for row in rows] == [(1, 10, b"p"), (2, 20, b"q"), (3, 30, b"none")]
    assert by_x(from_iceberg(table, nulls="valid").to_list())[2]["z_valid"] is False
    assert from_iceberg(table, columns=["x"]).filter(compute.field("x") > 25).to_list() == [{"x": 30}]
    check_dataset(lambda: from_iceberg(table, nulls={"z": "none"}))


def test_a_field_that_was_renamed_inside_is_refused(tmp_path: Path) -> None:
    table = new_iceberg(tmp_path, pa.schema({"s": pa.struct({"a": pa.int64(), "b": pa.int64()})}))
    table.append(pa.table({"s": [{"a": 1, "b": 2}]}, table.schema().as_arrow()))
    with table.update_schema() as update:
        update.rename_column("s.a", "c")
    with table.update_schema() as update:
        update.rename_column("s.b", "a")
    table.append(pa.table({"s": [{"c": 1, "a": 2}]}, table.schema().as_arrow()))
    with pytest.raises(UnimplementedError, match=r"s\.(a|c) has another name in this file, or is another field"):
        from_iceberg(table).to_list()


def test_a_partition_that_is_not_in_the_file(tmp_path: Path) -> None:
    schema = pa.schema({"x": pa.int64(), "day": pa.date32(), "p": pa.string()})
    table = new_iceberg(tmp_path, schema)
    with table.update_spec() as spec:
        spec.add_identity("p").add_identity("day")
    days = [date(2024, 1, 1), date(2024, 1, 2)]
    table.append(pa.table({"x": [1, 2], "day": days, "p": ["a", "b"]}, schema))
    for task in table.scan().plan_files():
        path = task.file.file_path.removeprefix("file://")
        parquet.write_table(parquet.read_table(path).select(["x"]), path)
    assert by_x(from_iceberg(table).to_list()) == by_x(iceberg_rows(table))
    assert from_iceberg(table).filter(compute.field("p") == "b").select(["x"]).to_list() == [{"x": 2}]


def test_files_without_ids(tmp_path: Path) -> None:
    table = new_iceberg(tmp_path, pa.schema({"x": pa.int64(), "t": pa.string()}))
    path = f"{tmp_path}/own.parquet"
    parquet.write_table(pa.table({"x": [1, 2], "t": ["a", "b"]}), path)
    table.add_files([f"file://{path}"])
    with table.update_schema() as update:
        update.rename_column("t", "text")
    table.append(pa.table({"x": [3], "text": ["c"]}, table.schema().as_arrow()))
    assert by_x(from_iceberg(table).to_list()) == by_x(iceberg_rows(table))
    with table.transaction() as changing:
        changing.remove_properties("schema.name-mapping.default")
    with pytest.raises(UnimplementedError, match=r"has no id, and the table does not say by name which one it is; let"):
        from_iceberg(table).to_list()


def test_an_iceberg_table_without_snapshots(tmp_path: Path) -> None:
    table = new_iceberg(tmp_path, pa.schema({"x": pa.int64()}))
    assert from_iceberg(table).to_list() == []
    assert from_iceberg(table).element_spec == {"x": di.TensorSpec([], "int64")}


def test_files_that_delete_rows_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_iceberg(tmp_path, pa.schema({"x": pa.int64()}))
    table.append(pa.table({"x": [1, 2]}))
    tasks = list(table.scan().plan_files())
    tasks[0].delete_files.add(tasks[0].file)  # the library reads such tables and does not write them
    monkeypatch.setattr("pyiceberg.table.DataScan.plan_files", lambda scan: tasks)
    with pytest.raises(UnimplementedError, match=r"1 delete files say which of its rows are gone.*rewrite_data_files"):
        from_iceberg(table)


# ----------------------------------------------------------------------------
# Lance.
# ----------------------------------------------------------------------------


def test_each_version_of_a_lance_table(tmp_path: Path) -> None:
    at = str(tmp_path / "t.lance")
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(40, dtype=np.float32)), 4)
    lance.write_dataset(pa.table({"x": range(10), "v": vectors}), at, max_rows_per_file=4)
    lance.dataset(at).delete("x in (1, 5)")
    lance.dataset(at).add_columns({"y": "x * 2"})
    lance.write_dataset(pa.table({"x": [50], "v": vectors[:1], "y": [1]}), at, mode="append")
    lance.write_dataset(pa.table({"x": [7], "v": vectors[:1]}), at, mode="overwrite")
    newest = lance.dataset(at).version
    assert newest >= 5
    for version in range(1, newest + 1):
        expected = lance.dataset(at, version).to_table().to_pylist()
        dataset = from_lance(at, version)
        assert [{**row, "v": list(row["v"])} for row in dataset.to_list()] == expected
        assert [int(dataset[place]["x"]) for place in range(len(dataset))] == [row["x"] for row in expected]
        if DEEP or version == 4:  # without deleted rows, with a column more, of two fragments
            check_dataset(lambda version=version: from_lance(at, version))
    assert from_lance(lance.dataset(at, 1), columns=["x"]).take(1).to_list() == [{"x": 0}]
    with pytest.raises(InvalidArgumentError, match="the table has no column 'z'; its columns are x, v"):
        from_lance(at, columns=["z"])


def test_nulls_of_lance(tmp_path: Path) -> None:
    at = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"x": [1, None], "t": ["a", None]}), at)
    with pytest.raises(InvalidArgumentError, match=r"from_lance: column 'x' has nulls.*valid=\['x'\]"):
        from_lance(at).to_list()
    in_place = from_lance(at, valid=["x"], nulls={"t": "-"})
    assert in_place.to_arrow().to_pylist() == [{"x": 1, "t": b"a"}, {"x": None, "t": b"-"}]
    assert from_lance(at, nulls={"x": 0, "t": "-"}).to_list() == [{"x": 1, "t": b"a"}, {"x": 0, "t": b"-"}]
    told = from_lance(at, valid={"x": "there"}, columns=["x"])
    assert told.to_list() == [{"x": 1, "there": True}, {"x": 0, "there": False}]
    assert told.select(["there"]).to_list() == [{"there": True}, {"there": False}]


def test_a_lance_table_that_was_made_anew_is_another_one(tmp_path: Path) -> None:
    import shutil

    at = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"x": [1, 2]}), at)
    with iter(from_lance(at)) as iterator:
        next(iterator)
        state = iterator.state()
    shutil.rmtree(at)
    lance.write_dataset(pa.table({"x": [3, 4]}), at)
    with pytest.raises(StateError, match=r"which was made .*: another table"):
        from_lance(at, state).restore(state)


def test_an_empty_lance_table(tmp_path: Path) -> None:
    at = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"x": pa.array([], pa.int64())}), at)
    assert from_lance(at).to_list() == []
