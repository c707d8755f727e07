# SPDX-License-Identifier: Apache-2.0
"""What `as_rows` makes lists of dicts of is a list of structs in tables and files, and the same elements when it is read."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.inspect.conversion import convert
from tests.depth import cases

Dataset = di.data.Dataset

LEAVES = {pa.int64(): st.integers(-9, 9), pa.large_string(): st.sampled_from(["", "a", "é"]), pa.bool_(): st.booleans()}


def structs(inner: Any) -> Any:
    fields = st.lists(inner, min_size=1, max_size=3)
    return fields.map(lambda found: pa.struct([(f"f{place}", kind) for place, kind in enumerate(found)]))


KINDS = st.recursive(
    st.sampled_from(list(LEAVES)), lambda inner: structs(inner) | inner.map(pa.large_list), max_leaves=6
)


def values(kind: Any) -> Any:
    if pa.types.is_struct(kind):
        made = st.fixed_dictionaries({field.name: values(field.type) for field in kind})
    else:
        made = st.lists(values(kind.value_type), max_size=3) if pa.types.is_large_list(kind) else LEAVES[kind]
    return st.none() | made


@settings(max_examples=cases(40, 1000), deadline=None)
@given(kind=st.one_of(KINDS.map(pa.large_list), KINDS), data=st.data())
def test_a_table_of_rows_is_the_table_that_was_read(kind: Any, data: Any) -> None:
    rows = data.draw(st.lists(values(kind), min_size=1, max_size=4))
    table = pa.table({"id": pa.array(range(len(rows)), pa.int64()), "m": pa.array(rows, kind)})
    read = Dataset.from_arrow(table)
    rows_face = read.as_rows().as_text()
    made = rows_face.to_arrow()
    made.validate(full=True)
    assert made.schema.equals(table.schema)
    assert made.to_pylist() == table.to_pylist()
    rows_face.ragged_batch(2).to_arrow().validate(full=True)
    shuffled = rows_face.shuffle(3, seed=1).to_arrow()
    assert shuffled.sort_by("id").to_pylist() == table.to_pylist()
    assert str(Dataset.from_arrow(made).to_list()) == str(read.to_list())


CHATS: list[dict[str, Any]] = [
    {"m": [{"role": "user", "calls": [{"name": "f", "n": 1}, {"name": "g", "n": None}]}], "s": {"a": [1], "b": ["x"]}},
    {"m": [], "s": {"a": [], "b": []}},
    {"m": [{"role": "bot", "calls": None}, {"role": None, "calls": []}], "s": {"a": [2, 3], "b": ["y", "z"]}},
]


@pytest.fixture
def chats(tmp_path: Path) -> str:
    (tmp_path / "chats.jsonl").write_text("".join(json.dumps(row) + "\n" for row in CHATS), encoding="utf-8")
    return str(tmp_path / "chats.jsonl")


@pytest.mark.parametrize("to", ["arrow", "jsonl", "parquet"])
def test_files_hold_rows_and_are_read_as_rows(to: str, chats: str, tmp_path: Path) -> None:
    read = di.data.JsonLinesDataset(chats, text="str", nested="rows")
    read.write(str(tmp_path / "written"), to, shards=1)
    convert(chats, str(tmp_path / "converted"), to, shards=1)
    for folder in ("written", "converted"):
        found = di.data.FileDataset(str(tmp_path / folder), text="str", nested="rows")
        assert found.to_list() == read.to_list()
        assert str(found.element_spec) == str(read.element_spec)
    if to == "jsonl":
        (path,) = (tmp_path / "converted").glob("*.jsonl")
        assert [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] == CHATS
    if to == "parquet":
        (path,) = (tmp_path / "written").glob("*.parquet")
        assert pq.read_schema(path).field("m").type.value_type.field("calls").type.value_type.names == ["name", "n"]


def test_what_no_call_made_rows_stays_columns(chats: str) -> None:
    columns = di.data.JsonLinesDataset(chats)
    assert pa.types.is_struct(columns.to_arrow().schema.field("m").type)
    assert pa.types.is_struct(columns.as_rows().to_arrow().schema.field("s").type)
    outer = columns.as_rows(["m"]).to_arrow(text=True).to_pylist()[0]["m"]
    assert outer == [{"role": "user", "calls": {"name": ["f", "g"], "n": [1, None]}}]


def test_batches_have_lists_of_rows(chats: str) -> None:
    rows = di.data.JsonLinesDataset(chats, text="str", nested="rows").select(["m"])
    (batch,) = rows.ragged_batch(3).to_arrow().to_pylist()
    assert batch["m"] == [row["m"] for row in CHATS]


def test_batches_have_lists_of_rows_in_structs_that_may_be_null() -> None:
    rows = [{"m": [{"a": 1, "b": "x"}]}, None, {"m": []}]
    read = Dataset.from_arrow(pa.table({"s": rows})).as_rows().as_text()
    made = read.ragged_batch(2).to_arrow()
    made.validate(full=True)
    assert made.to_pylist() == [{"s": rows[:2]}, {"s": rows[2:]}]


def test_expressions_see_columns(chats: str) -> None:
    rows = di.data.JsonLinesDataset(chats, nested="rows")
    wanted = pc.list_value_length(pc.field("m", "role")) == 1
    assert len(rows.cache().filter(wanted).to_list()) == len(rows.filter(wanted).to_list()) == 1


def test_lists_that_cannot_be_rows_by_their_types_stay_columns() -> None:
    fixed = Dataset.from_tensor_slices({"m": {"a": np.ones((2, 3)), "b": np.ones((2, 3), int)}})
    assert str(fixed.as_rows(["m"]).to_arrow().schema.field("m").type).startswith("fixed_size_list<item: struct<")
    uneven = Dataset.from_tensor_slices({"m": {"a": np.ones((2, 3)), "b": np.ones((2, 4))}}).as_rows(["m"])
    assert pa.types.is_struct(uneven.to_arrow().schema.field("m").type)


def test_lists_that_differ_in_length_are_told() -> None:
    spec = {"m": {"a": di.TensorSpec([None], "int64"), "b": di.TensorSpec([None], "int64")}}
    made = Dataset.range(2).map(lambda n: {"m": {"a": np.arange(n), "b": np.arange(1)}}, output_signature=spec)
    with pytest.raises(InvalidArgumentError, match="column 'm': its lists differ in length"):
        made.as_rows(["m"]).to_arrow()
