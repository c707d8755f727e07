# SPDX-License-Identifier: Apache-2.0
import json
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.columns import python_values
from distinput.columns.column import Strings
from distinput.errors import InvalidArgumentError
from distinput.testing import check_dataset
from tests.depth import cases

CHATS: list[Any] = [
    {
        "id": 1,
        "title": "Zoë",
        "messages": [
            {"role": "user", "n": None, "calls": [], "tags": ["a", None]},
            {"role": "tool", "n": 3, "calls": [{"f": "x"}, {"f": "y"}], "tags": None},
        ],
    },
    {"id": 2, "title": "", "messages": []},
    {"id": 3, "title": "c", "messages": None},
]
TEXTS = di.data.Dataset.from_tensor_slices({"t": ["a", "é", "c"], "n": [1, 2, 3], "w": [["x", "y"]] * 3})


def chats(folder: Path, rows: list[Any] = CHATS) -> di.data.Dataset[Any]:
    path = folder / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return di.data.JsonLinesDataset(str(path))


def test_tables_have_text_where_elements_have_it() -> None:
    texts = TEXTS.map(lambda row: {**row, "in": {"t": row["t"], "b": row["t"]}}).as_text(["t", "in.t"])
    row = {"t": "é", "n": 2, "w": [b"x", b"y"], "in": {"t": "é", "b": "é".encode()}}
    assert texts.to_arrow().to_pylist()[1] == pa.table(texts).to_pylist()[1] == row
    assert TEXTS.as_text().to_arrow() == TEXTS.to_arrow(text=True)
    assert TEXTS.to_arrow(text=["t"]).schema.field("w") == TEXTS.to_arrow().schema.field("w")


def test_a_text_that_is_no_utf8_is_named_by_its_record(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"t,n\n" + b"".join(b"%s,%d\n" % (b"caf\xe9" if n == 77 else b"x", n) for n in range(200)))
    read = di.data.CsvDataset(path, text="str")

    def told(dataset: Any) -> list[str]:
        found, elements = [], iter(dataset)
        while True:
            try:
                next(elements)
            except StopIteration:
                return found
            except InvalidArgumentError as error:
                found += error.__notes__

    assert told(read) == told(read.skip(70)) == told(read.shuffle(9, seed=1)) == [f"record 77 of {path}"]
    assert told(read.restore(state_after(read, 60))) == [f"record 77 of {path}"]
    assert told(read.batch(10)) == [f"record 70 of {path} and the 9 after it"]


def state_after(dataset: Any, count: int) -> Any:
    elements = iter(dataset)
    for _ in range(count):
        next(elements)
    return elements.state()


def test_text_is_str_through_the_steps_of_a_pipeline() -> None:
    texts = TEXTS.as_text()
    assert [row["t"] for row in texts] == ["a", "é", "c"]
    (batch, _) = texts.batch(2)
    assert batch["t"].dtype == np.dtypes.StringDType()
    assert batch["t"].tolist() == ["a", "é"]
    assert batch["w"].tolist() == [["x", "y"]] * 2
    assert (
        texts.shuffle(3, seed=1).take(3).prefetch(1).cache().repeat(2).select(["t"]).batch(3).to_list()[1]["t"][0]
        in "aéc"
    )
    assert texts.map(lambda row: len(row["t"])).to_list() == [1, 1, 1]
    assert texts.filter(lambda row: row["t"] > "b").to_list() == texts.to_list()[1:]
    assert texts.enumerate()[1][1]["t"] == "é"
    bare = di.data.Dataset.from_tensor_slices(["a", "b"]).as_text()
    assert bare.to_list() == ["a", "b"]
    assert di.data.Dataset.zip((bare, bare)).batch(2).to_list() == [(["a", "b"], ["a", "b"])]
    assert bare.batch(1).copied().to_list() == [["a"], ["b"]]
    assert bare.map(lambda text: text + "!").to_list() == [b"a!", b"b!"]  # what functions return is bytes


def test_text_in_ragged_rows_and_of_some_columns(tmp_path: Path) -> None:
    ragged = di.data.Dataset.from_tensor_slices(di.RaggedTensor.from_list([["a", "é"], []])).ragged_batch(2)
    assert ragged.as_text().to_list() == [[["a", "é"], []]]
    assert TEXTS.as_text(["t"]).batch(3).to_list()[0] == {"t": ["a", "é", "c"], "n": [1, 2, 3], "w": [[b"x", b"y"]] * 3}
    with pytest.raises(InvalidArgumentError, match="as_text: 'n' is not a component of text"):
        TEXTS.as_text(["n"]).to_list()
    with pytest.raises(InvalidArgumentError, match=r"a text is not UTF-8: .*; leave it as bytes"):
        di.data.Dataset.from_tensor_slices([b"\xff"]).as_text().to_list()


def test_rows_are_those_that_were_written(tmp_path: Path) -> None:
    rows = chats(tmp_path).as_rows(["messages", "messages.calls"]).as_text()
    assert rows.to_list() == CHATS
    assert rows.element_spec == chats(tmp_path).element_spec  # columns stay columns
    assert rows.shuffle(3, seed=2).cache().prefetch(1).filter(lambda row: row["id"] == 1).to_list() == CHATS[:1]
    assert rows.map(lambda row: len(row["messages"] or "")).to_list() == [2, 0, 0]
    assert rows.ragged_batch(2).to_list()[0]["messages"] == [CHATS[0]["messages"], []]
    assert chats(tmp_path).as_text().select(["title", "messages.role"]).as_rows(["messages"]).to_list()[0] == {
        "title": "Zoë",
        "messages": [{"role": "user"}, {"role": "tool"}],
    }
    columns = chats(tmp_path, CHATS[:1]).as_rows(["messages"]).to_list()
    assert columns[0]["messages"][1]["calls"] == {"f": [b"x", b"y"]}  # which nobody asked for


def test_they_keep_the_laws(tmp_path: Path) -> None:
    assert {"restart", "facts", "distributed"} <= set(check_dataset(lambda: TEXTS.repeat(2).as_text()))
    rows = chats(tmp_path, CHATS[:2]).as_rows(["messages"])
    assert {"restart", "facts"} <= set(check_dataset(lambda: rows, leave_out=["distributed"]))
    with pytest.raises(ValueError, match="as_rows makes lists of dicts, of which replicas get no parts"):
        di.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).experimental_distribute_dataset(rows.ragged_batch(2))


def test_a_column_without_a_name_is_no_whole_element(tmp_path: Path) -> None:
    records = [{"": [{"t": "a", "": [{"": "b"}]}], "t": "c"}, {"": [], "t": "d"}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    read = di.data.JsonLinesDataset(str(tmp_path / "a.jsonl"))
    assert read.as_rows().as_text().to_list() == records
    assert read.as_rows(["", "."]).as_text().to_list() == records
    assert read.as_rows(["", "."]).as_text(["t", ".."]).to_list()[0] == {"": [{"t": b"a", "": [{"": "b"}]}], "t": "c"}
    assert di.data.JsonLinesDataset(str(tmp_path / "a.jsonl"), nested="rows", text="str").to_list() == records
    with pytest.raises(InvalidArgumentError, match=r"as_rows: '.' lies inside of '', a dict of lists: name that too"):
        read.as_rows(["."]).to_list()


@pytest.mark.parametrize(
    "columns, says",
    [
        ("n", "columns must be a list of names, got 'n'"),
        ([], "columns must be at least one name"),
        (["n"], "'n' is not a dict of lists"),
        (["z"], "there is no component 'z', there are n, s, s.a"),
        (["s.b"], r"there is no component 's.b', did you mean s\.a\?"),
        (["s"], "'s' is not a dict of lists"),
    ],
)
def test_what_is_no_list_of_structs_is_refused(columns: Any, says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        di.data.Dataset.from_tensor_slices({"n": [1], "s": {"a": [1]}}).as_rows(columns).to_list()


@pytest.mark.parametrize("nullable", [False, True])
def test_rows_in_rows_need_the_names_of_both(nullable: bool, tmp_path: Path) -> None:
    calls = {"role": "user", "calls": [{"id": 1}, {"id": 2}]}
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in [{"m": [calls, calls]}, *[{"m": None}] * nullable]))
    made = di.data.JsonLinesDataset(str(path))
    with pytest.raises(
        InvalidArgumentError, match=r"as_rows: 'm\.calls' lies inside of 'm', a dict of lists: name that too"
    ):
        made.as_rows(["m.calls"]).to_list()
    row = {"role": b"user", "calls": [{"id": 1}, {"id": 2}]}
    assert made.as_rows(["m.calls", "m"]).to_list() == [{"m": [row, row]}, *[{"m": None}] * nullable]
    with pytest.raises(
        InvalidArgumentError, match=r"as_rows: there is no component 'm\.cals', did you mean m\.calls\?"
    ):
        made.as_rows(["m.cals"]).to_list()


def test_rows_in_a_struct_need_no_other_name() -> None:
    made = di.data.Dataset.from_tensors({"s": {"n": 1, "t": {"a": np.array([1, 2])}}, "l": [1]})
    assert made.as_rows(["s.t"]).to_list()[0]["s"]["t"] == [{"a": 1}, {"a": 2}]


def test_lists_of_several_lengths_are_no_rows() -> None:
    ds = di.data.Dataset.from_tensor_slices({"s": {"a": [[1, 2]], "b": [[1, 2, 3]]}})
    with pytest.raises(InvalidArgumentError, match="as_rows: the lists in 's' have 2 and 3 items"):
        ds.as_rows(["s"]).to_list()
    same = di.data.Dataset.from_tensor_slices({"s": {"a": [[1, 2]]}}).as_rows(["s"])
    with pytest.raises(InvalidArgumentError, match=r"select: 's.a' is a part of what as_rows makes"):
        same.select(["s.a"]).to_list()


NULLS = [
    {"o": [{"r": "u", "s": {"n": 1}, "q": [{"c": 1}, None]}, None], "t": "a", "st": {"m": [{"b": "x"}], "k": 1}},
    {"o": None, "t": None, "st": None},
    {"o": [None, {"r": None, "s": None, "q": None}], "t": "", "st": {"m": None, "k": None}},
    {"o": [{"r": "v", "s": {"n": None}, "q": [{"c": None}]}], "t": "é", "st": {"m": [None, {"b": None}], "k": 2}},
]


def test_rows_have_none_where_objects_of_a_list_are_null() -> None:
    ds = di.data.Dataset.from_arrow(pa.Table.from_pylist(NULLS))
    rows = ds.as_rows(["o", "o.q", "st.m"]).as_text()
    for found, wanted in zip(rows, NULLS, strict=True):
        assert found["o"] == wanted["o"]
        if wanted["st"]:
            assert found["st"]["value"]["m"] == wanted["st"]["m"]
    assert [row["o"] for row in ds.select(["o"]).as_rows(["o", "o.q"]).as_text()] == [row["o"] for row in NULLS]
    assert rows.select(["o", "t"]).to_arrow(text=["t"]).to_pylist()[1:3:2] == [{"o": None, "t": None}]
    assert [row is None for row in rows.to_arrow()["o"].to_pylist()] == [False, True, False, False]
    (batch,) = rows.select(["o"]).ragged_batch(4)
    assert batch["o"] == [row["o"] for row in NULLS]


def test_names_look_through_values_that_may_be_null() -> None:
    ds = di.data.Dataset.from_arrow(pa.Table.from_pylist(NULLS))
    for name in ("t", "t.value"):
        assert [row["t"]["value"] for row in ds.as_text([name])] == ["a", "", "", "é"]
    assert ds.as_uint8(["t"]).to_list()[3]["t"]["value"] == [195, 169]
    assert ds.as_rows(["st.value.m"]).as_text(["st.m.b"]).to_list()[0]["st"]["value"]["m"] == [{"b": "x"}]
    for call in (ds.as_text, ds.as_rows, ds.as_uint8):
        with pytest.raises(InvalidArgumentError, match=r"columns must be a list of names, got \[5\]"):
            call([5])


NO_TEXT = [b"ok", b"z", b"\xff", b"zz", b"y"]


def _length(row: Any) -> int:
    return len(row["s"])


AROUND: dict[str, Any] = {
    "map": lambda ds: ds.map(_length, vectorize=False),
    "map on threads": lambda ds: ds.map(_length, num_parallel_calls=2),
    "map on workers": lambda ds: ds.map(_length).on_workers("threads:2"),
    "filter": lambda ds: ds.filter(lambda row: len(row["s"]) > 0).map(_length),
    "take_while": lambda ds: ds.take_while(lambda row: len(row["s"]) > 0).map(_length),
    "flat_map": lambda ds: ds.flat_map(lambda row: di.data.Dataset.from_tensors(len(row["s"]))),
    "interleave": lambda ds: ds.interleave(lambda row: di.data.Dataset.from_tensors(len(row["s"])), cycle_length=1),
    "scan": lambda ds: ds.scan(np.int64(0), lambda state, row: (state, len(row["s"]))),
    "group_by_window": lambda ds: ds.group_by_window(
        lambda row: np.int64(len(row["s"]) * 0), lambda key, rows: rows.batch(1), window_size=1
    ).map(lambda batch: len(batch["s"][0])),
    "map_rows": lambda ds: ds.map_rows(lambda rows: np.array([len(text) for text in rows["s"]])),
    "the loop": lambda ds: ds,
}


@pytest.mark.parametrize("name", AROUND)
def test_text_that_is_none_fails_alone_in_its_place(name: str) -> None:
    def made() -> Any:
        return AROUND[name](di.data.Dataset.from_tensor_slices({"s": NO_TEXT}).as_text())

    found: list[Any] = []
    steps = iter(made())
    while len(found) < 10:
        try:
            found.append(next(steps))
        except InvalidArgumentError as error:
            found.append(str(error).split(":")[1])
        except StopIteration:
            break
    lengths = [
        each if isinstance(each, str) else _length(each) if isinstance(each, dict) else int(each) for each in found
    ]
    assert lengths == [2, 1, " a text is not UTF-8", 2, 1]
    kept = made().ignore_errors()
    assert [_length(each) if isinstance(each, dict) else int(each) for each in kept] == [2, 1, 2, 1]
    assert [told["dropped"] for step, told in kept.stats().items() if "ignore_errors" in step] == [1]


def test_rows_that_are_none_are_dropped_alone() -> None:
    spec = {"s": {"a": di.TensorSpec([None], "int32"), "b": di.TensorSpec([None], "int32")}}
    ds = di.data.Dataset.range(4).map(lambda i: {"s": {"a": [1] * int(i), "b": [2] * 2}}, output_signature=spec)
    rows = ds.as_rows(["s"]).ignore_errors()
    assert [len(row["s"]) for row in rows] == [2]
    assert [len(row["s"]) for row in rows.restore(iter(rows).state())] == [2]
    with pytest.raises(InvalidArgumentError, match="have 0 and 2 items") as caught:
        ds.as_rows(["s"]).map(lambda row: len(row["s"])).to_list()
    assert "on element {'s': {'a': array([], dtype=int32)" in caught.value.__notes__[0]


KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "role": (pa.string(), st.text(max_size=4)),
    "raw": (pa.binary(), st.sampled_from([b"", b"a", "é".encode(), b"b\0"] * 6 + [b"\xff"])),
    "n": (pa.int32(), st.integers(-9, 9)),
    "ok": (pa.bool_(), st.booleans()),
    "when": (pa.timestamp("s"), st.integers(0, 9)),
    "tags": (pa.list_(pa.string()), st.lists(st.text(max_size=3), max_size=3)),
    "grid": (pa.list_(pa.list_(pa.float64())), st.lists(st.lists(st.just(0.5), max_size=2), max_size=2)),
    "pair": (pa.list_(pa.string(), 2), st.lists(st.text(max_size=3), min_size=2, max_size=2)),
    "s": (pa.struct([("a", pa.string())]), st.fixed_dictionaries({"a": st.text(max_size=3)})),
    "calls": (
        pa.list_(pa.struct([("f", pa.string()), ("q", pa.int8())])),
        st.lists(st.fixed_dictionaries({"f": st.text(max_size=3), "q": st.integers(0, 9)}), max_size=3),
    ),
}
AFTER: dict[str, Any] = {
    "as they are": lambda ds: ds,
    "in another order": lambda ds: ds.shuffle(30, seed=1, reshuffle_each_iteration=False),
    "in batches": lambda ds: ds.ragged_batch(2),
    "in batches of batches": lambda ds: ds.ragged_batch(2).ragged_batch(2),
    "for a function": lambda ds: ds.map(lambda row: repr(_exact(row)), vectorize=False),
    "of those kept": lambda ds: ds.filter(lambda row: row["id"] % 3 > 0),
    "on threads": lambda ds: ds.map(lambda row: repr(_exact(row)), num_parallel_calls=2),
}


def _exact(value: Any) -> Any:
    """A value with the types of all that is in it."""
    if isinstance(value, dict):
        return type(value), [(key, _exact(part)) for key, part in value.items()]
    if isinstance(value, list):
        return list, [_exact(part) for part in value]
    if isinstance(value, np.ndarray):
        return np.ndarray, value.dtype, value.shape, value.tolist()
    return type(value), repr(value)


def _outcomes(ds: di.data.Dataset[Any]) -> list[Any]:
    found: list[Any] = []
    steps = iter(ds)
    for _ in range(1000):
        try:
            found.append(_exact(next(steps)))
        except StopIteration:
            break
        except InvalidArgumentError as error:
            found.append((str(error), getattr(error, "__notes__", None)))
    return found


@settings(max_examples=40)
@given(st.data())
def test_what_is_made_of_many_elements_is_what_is_made_of_each(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4, unique=True))
    nulls = data.draw(st.booleans())
    parts = {name: st.none() | KINDS[name][1] if nulls else KINDS[name][1] for name in names}
    lists: Any = st.lists(st.fixed_dictionaries(parts), max_size=3)
    text = st.text(max_size=3)
    row = st.fixed_dictionaries(
        {"text": st.none() | text if nulls else text, "m": st.none() | lists if nulls else lists}
    )
    rows = data.draw(st.lists(row, min_size=2, max_size=25))
    fields = [("id", pa.int64()), ("text", pa.string())]
    schema = pa.schema([*fields, ("m", pa.list_(pa.struct([(name, KINDS[name][0]) for name in names])))])
    table = pa.Table.from_pylist([{"id": number, **each} for number, each in enumerate(rows)], schema)
    columns = ["m", "m.calls"] if "calls" in names and data.draw(st.booleans()) else ["m"]
    ds = di.data.Dataset.from_arrow(table).as_rows(columns)
    ds = ds.as_text() if data.draw(st.booleans()) else ds
    ds = AFTER[data.draw(st.sampled_from(sorted(AFTER)))](ds)
    with mock.patch.object(python_values, "made_at_once", return_value=None):
        wanted = _outcomes(ds)
    with mock.patch.object(python_values, "_FEW", data.draw(st.sampled_from([0, 64]))):
        assert _outcomes(ds) == wanted


@st.composite
def _nests(draw: st.DrawFn, deep: int) -> tuple[pa.DataType, st.SearchStrategy[Any]]:
    """A type that is a struct, or lists of lists of such, and values of it, some of which are null."""
    fields: dict[str, pa.DataType] = {}
    parts: dict[str, st.SearchStrategy[Any]] = {}
    for name in draw(st.lists(st.sampled_from(["a", "b", "c", FLOAT]), min_size=1, max_size=3, unique=True)):
        leaf = "float" if name == FLOAT else draw(st.sampled_from(sorted({*LEAVES_OF_NESTS} - {"float"})))
        below = name != FLOAT and deep > 1 and draw(st.booleans())
        fields[name], parts[name] = draw(_nests(deep - 1)) if below else LEAVES_OF_NESTS[leaf]
    kind, values = pa.struct(list(fields.items())), st.fixed_dictionaries({k: st.none() | v for k, v in parts.items()})
    values = st.none() | values
    for _ in range(draw(st.integers(1, 3))):
        kind, values = pa.list_(kind), st.none() | st.lists(values, max_size=2)
    return kind, values


FLOAT = "f"
"""The name of a field of floats, a null of which is NaN."""

LEAVES_OF_NESTS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "float": (pa.float64(), st.floats(0, 1)),
    "list": (pa.list_(pa.int64()), st.lists(st.none() | st.integers(0, 9), max_size=2)),
    "number": (pa.int64(), st.integers(0, 9)),
    "text": (pa.string(), st.text(st.characters(codec="utf-8"), max_size=2)),
}


def _alike(value: Any, place: str = "") -> Any:
    """Rows that are equal if those are, except for a float that is null, and is NaN."""
    match value:
        case dict():
            return {name: _alike(part, name) for name, part in value.items()}
        case list():
            return [_alike(part, place if place == FLOAT else "") for part in value]
        case float() if value != value:
            return "null"
    return "null" if value is None and place == FLOAT else value


@settings(max_examples=cases(40, 2000), deadline=None)
@given(st.data())
def test_rows_are_the_lists_and_structs_of_the_table(data: st.DataObject) -> None:
    kind, values = data.draw(_nests(2))
    rows = [{"m": value} for value in data.draw(st.lists(values, min_size=1, max_size=5))]
    wanted = _alike(rows)
    ds = di.data.Dataset.from_arrow(pa.Table.from_pylist(rows, pa.schema([("m", kind)]))).as_rows().as_text()
    assert _alike(ds.to_list()) == wanted, kind
    assert _alike(ds.to_arrow().to_pylist()) == wanted, kind
    (batch,) = ds.ragged_batch(len(rows))
    assert _alike(batch["m"]) == [row["m"] for row in wanted]
    with mock.patch.object(python_values, "made_at_once", return_value=None):
        assert _alike(ds.to_list()) == wanted, kind


@pytest.mark.parametrize("kind", ["arrow", "jsonl", "parquet"])
def test_a_null_struct_in_a_list_is_none_also_where_nan_could_tell_its_fields(tmp_path: Path, kind: str) -> None:
    rows = [
        {"m": [{"x": 0.5, "at": {"y": 1.5}}, None, {"x": 1.0, "at": None}]},
        {"m": []},
        {"m": [{"x": 2.0, "at": {"y": 2.5}}]},
    ]
    ds = di.data.Dataset.from_arrow(pa.Table.from_pylist(rows), nested="rows")
    assert ds.to_list() == ds.to_arrow().to_pylist() == rows
    ds.write(tmp_path / kind, kind)
    assert di.data.FileDataset(tmp_path / kind, kind, nested="rows").to_list() == rows


def test_lists_of_lists_of_structs_are_rows_from_every_reader(tmp_path: Path) -> None:
    rows = [{"m": [[{"a": 1, "b": "u"}, {"a": 2, "b": "v"}], []]}, {"m": []}, {"m": [[{"a": 3, "b": "w"}]]}]
    table = pa.Table.from_pylist(rows)
    pq.write_table(table, tmp_path / "a.parquet")
    with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name in ("a.parquet", "a.arrow", "a.jsonl"):
        read = di.data.FileDataset(str(tmp_path / name), text="str", nested="rows")
        assert read.to_list() == rows, name
        assert read.element_spec == di.data.Dataset.from_arrow(table).element_spec


@pytest.mark.parametrize("behind", ["cache", "none", "shuffle", "snapshot"])
@pytest.mark.parametrize("make", ["flat_map", "group_by_window", "interleave"])
def test_datasets_that_a_function_makes_keep_them(make: str, behind: str, tmp_path: Path) -> None:
    rows = di.data.Dataset.from_arrow(pa.table({"m": [[{"a": "x", "n": 1}], []]}), text="str", nested="rows")
    made = {
        "flat_map": lambda: di.data.Dataset.range(1).flat_map(lambda n: rows),
        "group_by_window": lambda: rows.group_by_window(lambda row: 0, lambda key, group: group.prefetch(1), 2),
        "interleave": lambda: di.data.Dataset.range(1).interleave(lambda n: rows, num_parallel_calls=2),
    }[make]()
    kept = {
        "cache": lambda: made.cache(str(tmp_path / "cache")),
        "none": lambda: made,
        "shuffle": lambda: made.shuffle(9, seed=1),
        "snapshot": lambda: made.snapshot(str(tmp_path / "snapshot")),
    }[behind]()
    for _ in range(2):
        assert sorted(kept.to_list(), key=str) == [{"m": []}, {"m": [{"a": "x", "n": 1}]}]


def test_caches_of_the_same_columns_are_handed_out_as_each_says(tmp_path: Path) -> None:
    columns = di.data.Dataset.from_arrow(pa.table({"m": [[{"a": "x", "n": 1}]]}))
    faces = [columns, columns.as_rows(), columns.as_rows().as_text(), columns]
    for place, face in enumerate(faces):
        cached = face.cache(str(tmp_path / str(place)))
        assert [str(cached.to_list()) for _ in range(2)] == [str(face.to_list())] * 2
    loaded = columns.as_rows().cache(str(tmp_path / "again"))
    loaded.to_list()
    assert loaded.as_text().to_list() == [{"m": [{"a": "x", "n": 1}]}]


def test_few_elements_are_made_alone(tmp_path: Path) -> None:
    with mock.patch.object(python_values.RowDicts, "__call__", return_value=[]) as alone:
        found = list(chats(tmp_path, CHATS[:1] * 3000).as_text().as_rows(["messages", "messages.calls"]))
    assert len(found) == 3000
    assert 0 < alone.call_count < 20  # the first one of each block
    (one,) = chats(tmp_path, CHATS[:1] * 3000).as_text().as_rows(["messages", "messages.calls"]).take(1)
    assert found[-1] == one == CHATS[0]


def _numbers(value: Any) -> Any:
    """What is expected of `as_uint8`, of the same value with its text as bytes."""
    return list(value) if isinstance(value, bytes) else [_numbers(part) for part in value]


WORDS = [b"Ada", b"", "Zoë".encode(), b"x" * 5000, b"\xff\0"]
PAIRS = np.array(WORDS[:4], object).reshape(2, 2)
OF_TEXT: dict[str, Any] = {
    "text": lambda: di.data.Dataset.from_tensor_slices(WORDS),
    "batches": lambda: di.data.Dataset.from_tensor_slices(WORDS).batch(2),
    "batches of batches": lambda: di.data.Dataset.from_tensor_slices(WORDS * 4).batch(2).batch(3),
    "in another order": lambda: di.data.Dataset.from_tensor_slices(WORDS).shuffle(5, seed=1).batch(4),
    "arrays": lambda: di.data.Dataset.from_tensor_slices(PAIRS),
    "ragged": lambda: di.data.Dataset.from_tensor_slices(di.RaggedTensor.from_list([WORDS[:3], [], WORDS[3:]])),
    "ragged batches": lambda: OF_TEXT["ragged"]().ragged_batch(2),
    "of a function": lambda: di.data.Dataset.range(4).map(lambda n: WORDS[int(n)], vectorize=False).batch(3),
    "of a generator": lambda: di.data.Dataset.from_generator(
        lambda: iter(WORDS), output_signature=di.TensorSpec([], "string")
    ),
}


@pytest.mark.parametrize("make", OF_TEXT.values(), ids=OF_TEXT)
def test_bytes_as_numbers_are_those_of_the_text(make: Any) -> None:
    given, found = make(), make().as_uint8()
    assert [_numbers(each) for each in given.to_list()] == found.to_list()
    assert all(found.element_spec.is_compatible_with(each) for each in found)
    check_dataset(lambda: found, leave_out=["distributed"])


def test_bytes_as_numbers_of_some_columns() -> None:
    assert TEXTS.as_uint8(["t"]).batch(1).to_list()[0] == {"t": [[97]], "n": [1], "w": [[b"x", b"y"]]}
    assert TEXTS.as_text().as_uint8(["t"]).to_list()[2] == {"t": [99], "n": 3, "w": ["x", "y"]}
    with pytest.raises(InvalidArgumentError, match="as_uint8: 'n' is not a component of text"):
        TEXTS.as_uint8(["n"]).to_list()
    with pytest.raises(ValueError, match="read-only"):
        next(iter(TEXTS.as_uint8()))["t"][0] = 1
    sparse = di.SparseTensor([[0, 0]], [b"a"], [1, 1])
    with pytest.raises(InvalidArgumentError, match="as_uint8: text of sparse tensors or of as_rows has no arrays"):
        di.data.Dataset.from_tensors(sparse).as_uint8().to_list()


def test_bytes_as_numbers_make_no_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("".join(f"line {number}\n" for number in range(1000)))
    made: list[int] = []
    objects = Strings.objects
    monkeypatch.setattr(Strings, "objects", lambda texts: made.append(texts.starts.size) or objects(texts))  # type: ignore[func-returns-value]
    lines = di.data.TextLineDataset(str(tmp_path / "a.txt")).shuffle(100, seed=1).batch(50).as_uint8()
    assert sum(len(batch.flat_values) for batch in lines) == sum(len(f"line {number}") for number in range(1000))
    assert set(made) <= {1}  # the name of the file


PRICES = di.data.Dataset.from_tensor_slices({"p": ["1.50", "-2", "1e3"], "t": ["a", "b", "c"]})


def test_digits_become_numbers_where_they_are_handed_out() -> None:
    made = PRICES.as_decimal(["p"])
    assert [row["p"] for row in made] == [Decimal("1.50"), Decimal(-2), Decimal(1000)]
    assert made.element_spec == PRICES.element_spec
    assert made.map(lambda row: row["p"] * 2 == 3).to_list() == [True, False, False]
    (batch,) = made.as_text().batch(3)
    assert batch["p"].tolist() == [Decimal("1.50"), Decimal(-2), Decimal(1000)]
    assert batch["t"].tolist() == ["a", "b", "c"]
    assert made.as_text(["p"]).to_list()[0]["p"] == "1.50"
    assert PRICES.as_decimal().to_list() == PRICES.to_list()  # no file says that they are decimals
    assert made.copied().cache().shuffle(3, seed=1).batch(3).to_list()[0]["p"] != []


@given(
    st.lists(st.decimals(allow_nan=False).map(str) | st.sampled_from(["x", "", "1_0", " 2 "]), min_size=2, max_size=100)
)
def test_many_decimals_are_those_of_each(texts: list[str]) -> None:
    ds = di.data.Dataset.from_tensor_slices({"p": texts}).as_decimal(["p"])
    with mock.patch.object(python_values, "made_at_once", return_value=None):
        wanted = _outcomes(ds)
    assert _outcomes(ds) == wanted


def test_digits_become_float64() -> None:
    made = PRICES.as_decimal(["p"], "float64")
    assert made.element_spec["p"] == di.TensorSpec([], "float64")
    assert made.batch(2).to_list() == [{"p": [1.5, -2.0], "t": [b"a", b"b"]}, {"p": [1000.0], "t": [b"c"]}]
    ragged = di.data.Dataset.from_tensor_slices(di.RaggedTensor.from_list([["1", "0.1"], []])).map(lambda x: {"r": x})
    assert ragged.as_decimal(["r"], "float64").to_list() == [{"r": [1.0, 0.1]}, {"r": []}]
    assert ragged.ragged_batch(2).as_decimal(["r"], "float64").to_list() == [{"r": [[1.0, 0.1], []]}]
    assert ragged.ragged_batch(2).as_decimal(["r"]).to_list() == [{"r": [[Decimal(1), Decimal("0.1")], []]}]
    check_dataset(lambda: made)


def test_what_is_no_number_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"as_decimal: b'a' is no number; leave it as text"):
        PRICES.as_decimal(["t"]).to_list()
    with pytest.raises(InvalidArgumentError, match="as_decimal: a text is not a number: could not convert"):
        PRICES.as_decimal(["t"], "float64").to_list()
    with pytest.raises(InvalidArgumentError, match=r"as_decimal: there is no dtype 'float', did you mean float64\?"):
        PRICES.as_decimal(dtype="float")
    with pytest.raises(InvalidArgumentError, match="as_decimal: 'z' is not a component of text"):
        PRICES.as_decimal(["z"]).to_list()


def test_what_a_reader_tells_of_its_columns_is_told_in_another_process(tmp_path: Path) -> None:
    table = pa.table({"m": [[{"a": 1, "b": "x"}], []], "p": [Decimal("1.50"), Decimal("2.00")]})
    pq.write_table(table, str(tmp_path / "a.parquet"))
    for ds in (
        di.data.ParquetDataset(str(tmp_path / "a.parquet")),
        di.data.Dataset.from_arrow(table),
        di.data.Dataset.from_arrow(pa.concat_tables([table, table])),
    ):
        for made in (lambda given: given.as_rows(), lambda given: given.as_decimal()):
            wanted = made(ds).to_list()
            assert pickle.loads(pickle.dumps(made(ds))).to_list() == wanted
            assert made(pickle.loads(pickle.dumps(ds))).to_list() == wanted


ROWS: list[Any] = [[{"a": 1, "b": "x"}, {"a": 2, "b": "y"}], [{"a": 3, "b": "z"}]]


def test_arrow_arrays_and_tables_in_a_nest_tell_of_their_rows_and_decimals() -> None:
    table = pa.table({"m": ROWS, "p": [Decimal("1.50"), Decimal("2.00")]})
    slices = di.data.Dataset.from_tensor_slices
    wanted = [{"m": row, "p": price} for row, price in zip(ROWS, table["p"].to_pylist(), strict=True)]

    def handed_out(ds: Any) -> Any:
        return ds.as_rows().as_decimal().as_text().to_list()

    assert handed_out(slices((table, [1, 2]))) == [(wanted[0], 1), (wanted[1], 2)]
    assert handed_out(slices((None, {"t": table}))) == [(None, {"t": wanted[0]}), (None, {"t": wanted[1]})]
    assert handed_out(slices({name: table[name] for name in "mp"})) == wanted
    assert handed_out(slices((table["m"], table["p"].chunk(0)))) == [(row["m"], row["p"]) for row in wanted]
    columns = di.data.Dataset.from_arrow(dict(zip("mp", table.columns, strict=True)), nested="rows", text="str")
    assert columns.as_decimal().to_list() == wanted


@pytest.mark.parametrize(
    "options, second, marks",
    [
        ({}, None, [{}, {}]),
        ({"nulls": {"m": ()}}, [], [{}, {}]),
        ({"valid": {"m": "known"}}, [], [{"known": True}, {"known": False}]),
    ],
)
def test_columns_with_nulls_tell_of_their_rows(options: Any, second: Any, marks: list[Any]) -> None:
    columns = {"m": pa.array([ROWS[0], None]), "k": [1, 2]}
    made = di.data.Dataset.from_arrow(columns, nested="rows", text="str", **options).to_list()
    assert made == [{"m": ROWS[0], "k": 1, **marks[0]}, {"m": second, "k": 2, **marks[1]}]
