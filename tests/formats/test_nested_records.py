# SPDX-License-Identifier: Apache-2.0
"""Lists of objects (chats, boxes, tool calls): columns of ragged components, from every reader, and the way back."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import distinput as di

CHATS = [
    [{"role": "user", "content": "hi", "ids": [1, 2]}, {"role": "bot", "content": "yo", "ids": []}],
    [],
    [{"role": "user", "content": "bye", "ids": [3]}],
]
TABLE = pa.table({"id": [0, 1, 2], "messages": pa.array(CHATS)})
COLUMNS = [
    {
        "id": number,
        "messages": {
            "role": [message["role"].encode() for message in chat],
            "content": [message["content"].encode() for message in chat],
            "ids": [message["ids"] for message in chat],
        },
    }
    for number, chat in enumerate(CHATS)
]


def parquet(folder: Path) -> Any:
    pq.write_table(TABLE, folder / "a.parquet", row_group_size=2)
    return di.data.ParquetDataset(str(folder / "a.parquet"))


def arrow(folder: Path) -> Any:
    with pa.OSFile(str(folder / "a.arrow"), "wb") as sink, pa.ipc.new_file(sink, TABLE.schema) as writer:
        writer.write_table(TABLE)
    return di.data.ArrowDataset(str(folder / "a.arrow"))


def json_lines(folder: Path) -> Any:
    lines = [json.dumps({"id": number, "messages": chat}) + "\n" for number, chat in enumerate(CHATS)]
    (folder / "a.jsonl").write_text("".join(lines))
    return di.data.JsonLinesDataset(str(folder / "a.jsonl"))


READERS: dict[str, Callable[[Path], Any]] = {
    "parquet": parquet,
    "arrow": arrow,
    "jsonl": json_lines,
    "table": lambda folder: di.data.Dataset.from_arrow(TABLE),
    "slice": lambda folder: di.data.Dataset.from_arrow(pa.concat_tables([TABLE, TABLE]).slice(3)),
}


@pytest.mark.parametrize("name", READERS)
def test_a_list_of_objects_is_columns_of_lists(name: str, tmp_path: Path) -> None:
    dataset = READERS[name](tmp_path)
    assert dataset.to_list() == COLUMNS
    assert dataset.element_spec["messages"] == {
        "role": di.TensorSpec((None,), "string"),
        "content": di.TensorSpec((None,), "string"),
        "ids": di.RaggedTensorSpec((None, None), "int64", 1),
    }
    assert dataset.shard(2, 1).to_list() == COLUMNS[1:2]
    iterator = iter(dataset)
    next(iterator)
    assert dataset.restore(json.loads(json.dumps(iterator.state()))).get_next()["messages"]["role"].tolist() == []
    batch = next(iter(dataset.ragged_batch(3)))
    assert batch["messages"]["ids"].to_list() == [[[1, 2], []], [], [[3]]]
    if name != "slice":
        shuffled = dataset.global_shuffle(seed=1).to_list() if name != "jsonl" else dataset.shuffle(3, seed=1).to_list()
        assert sorted(shuffled, key=lambda row: row["id"]) == COLUMNS


@pytest.mark.parametrize("format", ["parquet", "arrow", "jsonl"])
def test_what_is_written_is_read_again(format: str, tmp_path: Path) -> None:
    di.data.Dataset.from_arrow(TABLE).write(str(tmp_path / "out"), format, shards=2)
    rows = di.data.FileDataset(str(tmp_path / "out")).to_list()
    assert sorted(rows, key=lambda row: row["id"]) == COLUMNS


def test_replicas_get_rows_of_nested_records() -> None:
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    steps = strategy.experimental_distribute_dataset(di.data.Dataset.from_arrow(TABLE).ragged_batch(2))
    found = [part["messages"]["role"].to_list() for step in steps for part in strategy.experimental_local_results(step)]
    assert found == [[[b"user", b"bot"]], [[]], [[b"user"]], []]


def test_a_map_is_a_list_of_pairs() -> None:
    tags = pa.array([[("a", 1), ("b", 2)], []], pa.map_(pa.string(), pa.int64()))
    first, second = di.data.Dataset.from_arrow(pa.table({"tags": tags}))
    assert (first["tags"]["key"].tolist(), first["tags"]["value"].tolist()) == ([b"a", b"b"], [1, 2])
    assert (len(second["tags"]["key"]), second["tags"]["value"].dtype) == (0, np.int64)


def test_a_null_inside_is_named_by_its_field_and_replaced_by_it(tmp_path: Path) -> None:
    pq.write_table(pa.table({"m": pa.array([[{"role": "u"}, {"role": None}]])}), tmp_path / "n.parquet")
    with pytest.raises(di.errors.InvalidArgumentError, match=r"m\.role"):
        di.data.ParquetDataset(str(tmp_path / "n.parquet"), nulls="error").to_list()
    filled = di.data.ParquetDataset(str(tmp_path / "n.parquet"), nulls={"m.role": b"?"})
    assert filled.to_list() == [{"m": {"role": [b"u", b"?"]}}]


def test_a_null_list_is_replaced_by_an_empty_one(tmp_path: Path) -> None:
    pq.write_table(pa.table({"m": pa.array([[{"role": "u", "x": 1.5}], None])}), tmp_path / "n.parquet")
    path = str(tmp_path / "n.parquet")
    with pytest.raises(di.errors.InvalidArgumentError, match="'m'"):
        di.data.ParquetDataset(path, columns=["m"], nulls="error").to_list()
    told = di.data.ParquetDataset(path, columns=["m"], nulls={"m.role": b""}).to_list()
    assert [bool(row["m"]["valid"]) for row in told] == [True, False]
    filled = di.data.ParquetDataset(path, nulls={"m": ()}).to_list()
    assert filled == [{"m": {"role": [b"u"], "x": [1.5]}}, {"m": {"role": [], "x": []}}]


@pytest.mark.parametrize("empty", [(), []])
def test_an_empty_list_is_no_replacement_of_what_lists_hold(empty: Any) -> None:
    table = pa.table({"m": pa.array([[{"a": 1}], None, [{"a": None}]])})
    with pytest.raises(di.errors.InvalidArgumentError, match=r"m\.a.*has nulls"):
        di.data.Dataset.from_arrow(table, nulls={"m": empty}, valid={}).to_list()
    told = [row["m"]["a"] for row in di.data.Dataset.from_arrow(table, nulls={"m": empty}).to_list()]
    assert [list(row["valid"]) for row in told] == [[True], [], [False]]
    rows = di.data.Dataset.from_arrow(table, nulls={"m": empty, "m.a": 0}).to_list()
    assert rows == [{"m": {"a": [1]}}, {"m": {"a": []}}, {"m": {"a": [0]}}]


@pytest.mark.parametrize("empty", [(), []])
def test_an_empty_list_replaces_null_lists_in_a_struct(empty: Any) -> None:
    table = pa.table({"s": pa.array([{"a": [1]}, {"a": None}, None])})
    rows = di.data.Dataset.from_arrow(table, nulls={"s": empty}).to_list()
    assert rows == [{"s": {"a": [1]}}, {"s": {"a": []}}, {"s": {"a": []}}]


@pytest.mark.parametrize("deep", [False, True])
def test_maps_of_views_are_read_by_number(deep: bool, tmp_path: Path) -> None:
    tags = pa.map_(pa.string_view(), pa.binary_view())
    pairs: list[Any] = [[("a", b"x")], []]
    array = pa.array([[each] for each in pairs], pa.list_(tags)) if deep else pa.array(pairs, tags)
    pq.write_table(pa.table({"t": array}), tmp_path / "t.parquet")
    dataset = di.data.ParquetDataset(str(tmp_path / "t.parquet"))
    by_number = dataset.global_shuffle(seed=1).to_list()
    first = {"key": [[b"a"]], "value": [[b"x"]]} if deep else {"key": [b"a"], "value": [b"x"]}
    second: dict[str, Any] = {"key": [[]], "value": [[]]} if deep else {"key": [], "value": []}
    assert sorted(by_number, key=repr) == sorted([{"t": first}, {"t": second}], key=repr)


@pytest.mark.parametrize("fill", [{"m": {"a": 0, "b": b""}}, {"m.a": 0, "m.b": b""}])
@pytest.mark.parametrize("lists", [False, True])
def test_lines_take_replacements_by_field(fill: dict[str, Any], lists: bool, tmp_path: Path) -> None:
    records: list[Any] = [{"a": 1}, {"b": "x"}]
    lines = [{"m": records}] if lists else [{"m": record} for record in records]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    rows = di.data.JsonLinesDataset(str(tmp_path / "a.jsonl"), nulls=fill).to_list()
    both = {"a": [1, 0], "b": [b"", b"x"]}
    assert rows == ([{"m": both}] if lists else [{"m": {"a": 1, "b": b""}}, {"m": {"a": 0, "b": b"x"}}])


@pytest.mark.parametrize("empty", [(), []])
def test_lines_take_an_empty_list_for_a_null_one(empty: Any, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"m": [{"a": 1}], "n": [1]}\n{"m": null}\n')
    rows = di.data.JsonLinesDataset(str(tmp_path / "a.jsonl"), nulls={"m": empty, "n": empty}).to_list()
    assert rows == [{"m": {"a": [1]}, "n": [1]}, {"m": {"a": []}, "n": []}]


@pytest.mark.parametrize("values", [[[{"a": 1, "b": "x"}], None], [[{"a": 1, "b": "x"}, {"a": None, "b": "y"}]]])
@pytest.mark.parametrize("name", ["parquet", "jsonl", "table"])
def test_the_cure_of_a_null_in_an_error_is_one(name: str, values: list[Any], tmp_path: Path) -> None:
    table = pa.table({"m": pa.array(values)})
    pq.write_table(table, tmp_path / "a.parquet")
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))

    def rows(nulls: Any) -> Any:
        if name == "table":
            return di.data.Dataset.from_arrow(table, nulls=nulls).to_list()
        constructor = di.data.ParquetDataset if name == "parquet" else di.data.JsonLinesDataset
        return constructor(str(tmp_path / f"a.{name}"), nulls=nulls).to_list()

    with pytest.raises(di.errors.InvalidArgumentError) as refused:
        rows("error")
    null_list = values[-1] is None
    assert ("nulls={'m': ()}" if null_list else "nulls={'m.a': value}") in str(refused.value)
    found = rows({"m": ()} if null_list else {"m.a": 0})
    assert found[-1]["m"]["a"] == ([] if null_list else [1, 0])


@pytest.mark.parametrize("lists", [False, True])
def test_fields_of_one_name_are_refused(lists: bool, tmp_path: Path) -> None:
    array: Any = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])
    table = pa.table({"m": pa.ListArray.from_arrays([0, 1], array) if lists else array})
    with pytest.raises(di.errors.InvalidArgumentError, match="several fields of one name"):
        di.data.Dataset.from_arrow(table)
    with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(di.errors.UnimplementedError, match="several fields of one name"):
        di.data.ArrowDataset(str(tmp_path / "a.arrow")).to_list()
