# SPDX-License-Identifier: Apache-2.0
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import distinput as di
from distinput.errors import DataLossError, InvalidArgumentError
from distinput.formats.jsonl import JsonLines
from tests.formats.reading import records, records_until_error


def write(path: Path, *lines: Any) -> str:
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return str(path)


def test_arrays_and_objects(tmp_path: Path) -> None:
    rows = [
        {"id": 1, "tags": ["a", "é"], "at": {"x": 1, "y": [1, 2]}, "rows": [[1], []], "ok": True},
        {"id": 2, "tags": [], "at": {"x": 2.5, "y": []}, "rows": [], "ok": False},
    ]
    found = di.data.FileDataset(write(tmp_path / "a.jsonl", *rows), "jsonl").to_list()
    assert found[0] == {
        "id": 1,
        "tags": [b"a", "é".encode()],
        "at": {"x": 1.0, "y": [1, 2]},
        "rows": [[1], []],
        "ok": True,
    }
    assert [row["id"] for row in found] == [1, 2]


def test_lists_of_one_size_are_arrays(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"v": [1, 2, 3]}, {"v": [4, 5, 6]}, {"v": [7, 8]})
    dataset = di.data.FileDataset(path, "jsonl", schema={"v": di.TensorSpec([3], "float32")})
    assert dataset.element_spec == {"v": di.TensorSpec([3], "float32")}
    (batch,) = dataset.take(2).batch(2)
    np.testing.assert_array_equal(batch["v"], np.array([[1, 2, 3], [4, 5, 6]], np.float32))
    with pytest.raises(InvalidArgumentError, match=r"line 3: column 'v': expected fixed_size_list.*got \[7, 8\]"):
        list(dataset)


@pytest.mark.parametrize(
    "bad, error, says",
    [
        ('{"a": 1', DataLossError, r"line 2: expected an object on a line of its own, \{...\}, got '\{\"a\": 1'"),
        ("[1]", DataLossError, r"line 2: expected an object on a line of its own, \{...\}, got '\[1\]'"),
        ('{"a": 1}{"a": 2}', InvalidArgumentError, "line 2: not a JSON object: Extra data: column 9: '"),
        ('{"a": 1} null {"a": 2}', InvalidArgumentError, "line 2: not a JSON object: Extra data"),
        ('{"a": 1,}', InvalidArgumentError, "line 2: not a JSON object: [^:]*: column [89]: '"),
        ('{"a": 1} }', InvalidArgumentError, "line 2: not a JSON object: Extra data: column 10: '"),
        ('{"a": "x"}', InvalidArgumentError, "line 2: column 'a': expected int64, got \"x\"; the schema holds"),
        ('{"a": 1.5}', InvalidArgumentError, "line 2: column 'a': expected int64, got 1.5;"),
        ('{"a": null}', InvalidArgumentError, r"line 2: column 'a' has no value, .* nulls=\{'a': value\}"),
        (
            '{"a": 1, "b": 2}',
            InvalidArgumentError,
            "line 2: column 'b': the schema has no such key, only a; .* columns=",
        ),
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", InvalidArgumentError, "line 2: "),
        ('{"b":' * 100_000 + "}" * 100_000, InvalidArgumentError, "line 2: "),
    ],
)
def test_errors_say_where_and_what_to_do(tmp_path: Path, bad: str, error: type[Exception], says: str) -> None:
    path = write(tmp_path / "a.jsonl", {"a": 1}, bad, {"a": 3})
    found, raised = records_until_error(JsonLines(schema={"a": int}), path)
    assert found == [{"a": 1}]
    with pytest.raises(error, match=r"a\.jsonl: " + says):
        raise raised  # type: ignore[misc]


@pytest.mark.parametrize(
    "line, told",
    [({"a": 1, "b": 2}, "b': {} has no such key, only a, s;"), ({"s": {"b": 2}}, "s.b': {} has no such key;")],
)
def test_a_key_that_comes_late_is_none_of_a_schema_that_nobody_gave(line: Any, told: str, tmp_path: Path) -> None:
    first = write(tmp_path / "a.jsonl", {"a": 1, "s": {"x": 1}})
    later = write(tmp_path / "b.jsonl", {"a": 1, "s": {"x": 1}} | line)
    inferred = told.format("the first megabyte, from which types are inferred,")
    with pytest.raises(InvalidArgumentError, match=rf"b\.jsonl: line 1: column '{inferred} state it with schema="):
        di.data.JsonLinesDataset([first, later]).to_list()
    with pytest.raises(
        InvalidArgumentError, match=rf"b\.jsonl: line 1: column '{told.format('the schema')} state it with"
    ):
        di.data.JsonLinesDataset([first, later], {"a": int, "s": {"x": int}}).to_list()


@pytest.mark.parametrize(
    "lines, says",
    [
        ([{"a": 1}, {"a": "x"}], "line 2: key 'a' has values of several types, int64 and text; .*schema="),
        (['{"a": '], "line 1: expected an object"),
        (['{"a": x}'], "line 1: not a JSON object: "),
        (['{"a": ' + "[" * 100_000 + "]" * 100_000 + "}"], "line 1: not a JSON object: "),
    ],
)
def test_a_schema_that_cannot_be_inferred(tmp_path: Path, lines: list[Any], says: str) -> None:
    with pytest.raises((InvalidArgumentError, DataLossError), match=says):
        _ = di.data.FileDataset(write(tmp_path / "a.jsonl", *lines), "jsonl").element_spec


def test_nulls_are_told_where_they_are_at_any_depth(tmp_path: Path) -> None:
    rows = [
        {
            "m": [{"role": "user", "n": None}, {"role": None, "n": 3}],
            "t": [None, "x"],
            "s": {"q": 1},
            "e": [],
            "z": None,
        },
        {"m": [], "t": None, "s": None, "e": []},
    ]
    path = write(tmp_path / "a.jsonl", *rows)
    first, second = di.data.JsonLinesDataset(path).to_list()
    assert first == {
        "m": {
            "role": {"value": [b"user", b""], "valid": [True, False]},
            "n": {"value": [0, 3], "valid": [False, True]},
        },
        "t": {"value": {"value": [b"", b"x"], "valid": [False, True]}, "valid": True},
        "s": {"value": {"q": 1}, "valid": True},
        "e": [],
        "z": {"value": b"", "valid": False},
    }
    assert second["t"] == {"value": {"value": [], "valid": []}, "valid": False}
    assert second["s"] == {"value": {"q": 0}, "valid": False}
    filled = di.data.JsonLinesDataset(path, nulls={"m.role": b"?"}).to_list()
    assert filled[0]["m"]["role"] == [b"user", b"?"]


def test_a_null_in_the_place_of_an_empty_object_is_told(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"a": {}, "b": 1}, {"a": None, "b": 2})
    assert [row["a"] for row in di.data.JsonLinesDataset(path)] == [
        {"value": {}, "valid": True},
        {"value": {}, "valid": False},
    ]


def test_a_schema_may_leave_out_what_is_inside_of_objects(tmp_path: Path) -> None:
    rows = [
        {"id": 1, "at": {"x": 1, "y": "q", "z": {"u": 1}}, "m": [{"role": "u", "n": 1}, {"role": "v", "n": None}]},
        {"id": 2, "at": {"x": 2, "y": None, "z": {"u": 2}}, "m": []},
    ]
    path = write(tmp_path / "a.jsonl", *rows)
    schema = {"at": {"x": "float32", "z": {"u": float}}, "m": [{"role": str}]}
    told = di.data.JsonLinesDataset(path, schema).to_list()
    assert told[1]["at"] == {"x": 2.0, "z": {"u": 2.0}, "y": {"value": b"", "valid": False}}
    assert told[0]["m"] == {"role": [b"u", b"v"], "n": {"value": [1, 0], "valid": [True, False]}}
    chats = pa.list_(pa.struct({"role": pa.string(), "n": pa.float64()}))
    found = di.data.JsonLinesDataset(path, schema, nulls={"at.y": b"", "m.n": 0})
    assert found.to_list()[0] == {
        "at": {"x": 1.0, "z": {"u": 1.0}, "y": b"q"},
        "m": {"role": [b"u", b"v"], "n": [1, 0]},
        "id": 1,
    }
    assert found.element_spec["at"]["x"].dtype == np.float32
    for stated in (
        pa.schema({"at": pa.struct({"x": pa.int64()}), "m": chats, "id": pa.int64()}),
        pa.schema({"m": chats}),
    ):
        with pytest.raises(InvalidArgumentError, match=r"column '(at\.y|id)': the schema has no such key"):
            di.data.JsonLinesDataset(path, stated).to_list()
    chosen = di.data.JsonLinesDataset(path, {"at": {"x": float}}, columns=["at"])
    assert chosen.to_list() == [{"at": {"x": 1.0}}, {"at": {"x": 2.0}}]


def test_other_keys_are_passed_over_where_columns_are_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"a": 1, "b": {"c": [1, "x"]}}, {"b": 2, "a": 2})
    assert records(JsonLines(columns=["a"], schema={"a": int, "b": int}), path) == [{"a": 1}, {"a": 2}]


def test_types_that_json_does_not_have_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"jsonl: column 'a' cannot have type duration\[s\]"):
        JsonLines(schema={"a": pa.duration("s")})


def test_dates_are_text_or_numbers_of_days_and_halves_are_numbers(tmp_path: Path) -> None:
    schema = {"d": pa.date32(), "h": ["float16", 2]}
    for day in ("1970-01-03", 2):
        path = write(tmp_path / "a.jsonl", {"d": day, "h": [1.5, None]})
        assert str(records(JsonLines(schema), path)) == "[{'d': datetime.date(1970, 1, 3), 'h': [1.5, nan]}]"
    path = write(tmp_path / "a.jsonl", {"d": "1970-01-03T01:00:00", "h": [1, 2]})
    with pytest.raises(InvalidArgumentError, match=r'line 1: column .d.: expected date32.*got "1970-01-03T01:00:00"'):
        records(JsonLines(schema), path)


@pytest.mark.parametrize(
    "text, cure",
    [
        ('[{"x": 1},\n{"x": 2}]\n', r"write each on a line of its own, as `jq -c '\.\[\]'` does"),
        ('{\n  "x": 1\n}\n', r"write each on one, as `jq -c \.` does"),
    ],
)
def test_json_that_is_not_in_lines_says_how_to_write_it(tmp_path: Path, text: str, cure: str) -> None:
    (tmp_path / "a.jsonl").write_text(text)
    with pytest.raises(
        DataLossError, match=rf"a.jsonl: line 1: expected an object on a line of its own, .*; {'.*'}{cure}"
    ):
        di.data.JsonLinesDataset(tmp_path / "a.jsonl").to_list()


def test_what_is_nested_too_deeply_is_said_of_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    deep = 3000
    path.write_text('{"a": 1.5}\n{"a": 12345678901234567, "z": ' + "[" * deep + "]" * deep + "}\n")
    rows = iter(di.data.JsonLinesDataset(str(path), columns=["a"]))
    assert next(rows) == {"a": 1.5}
    with pytest.raises(InvalidArgumentError, match=r"a\.jsonl: line 2: objects and arrays are nested too deeply"):
        next(rows)
