# SPDX-License-Identifier: Apache-2.0
import json
from pathlib import Path

import pytest

import distinput as di
from distinput.errors import DataLossError, InvalidArgumentError


def test_objects_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join('{"x": ' + ("no" if i % 3 == 0 else str(i)) + "}\n" for i in range(10)))
    found = di.data.JsonLinesDataset(str(path), {"x": int}, on_error="skip", num_parallel_reads=2)
    assert [row["x"] for row in found] == [1, 2, 4, 5, 7, 8]


@pytest.mark.parametrize("end", ["\n", ""])
def test_only_the_line_that_is_no_object_is_left_out(tmp_path: Path, end: str) -> None:
    path, log = tmp_path / "a.jsonl", tmp_path / "bad"
    path.write_text('[0]\n{"x": 1}\n\n \n{bad\n{"x": 2}\n{"x": "no"}\n\nnull\n{"x": 3}\n{"x":' + end)
    policy = di.data.SkipErrors(None, quarantine=log)
    found = di.data.JsonLinesDataset(str(path), {"x": int}, on_error=policy).map(lambda row: row["x"])
    assert found.to_list() == [1, 2, 3]
    assert [json.loads(line)["row"] for line in log.read_text().splitlines()] == [0, 2, 4, 5, 7]
    for at in range(4):
        iterator = iter(found)
        seen = [int(next(iterator)) for _ in range(at)]
        assert seen + [int(x) for x in found.restore(iterator.state())] == [1, 2, 3]


LINES = ["[0]", '{"x": 1}', "", " ", "{bad", '{"x": 2}', '{"x": }', "null", "", '{"x": 3}', "", '{"x":']


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("schema", [None, {"x": int}])
def test_bad_lines_are_left_out_with_and_without_a_schema_or_an_index(
    tmp_path: Path, schema: object, index: bool, first: int
) -> None:
    path, log = tmp_path / "a.jsonl", tmp_path / "bad"
    path.write_text("\n".join(LINES[first:]))
    policy = di.data.SkipErrors(None, quarantine=log)
    found = di.data.JsonLinesDataset(str(path), schema, index=index, on_error=policy)
    assert found.to_list() == [{"x": 1}, {"x": 2}, {"x": 3}]
    assert [json.loads(line)["row"] for line in log.read_text().splitlines()] == [
        row - first for row in (0, 2, 4, 5, 7) if row >= first
    ]
    values = found.map(lambda row: row["x"])
    for at in range(4):
        iterator = iter(values)
        seen = [int(next(iterator)) for _ in range(at)]
        assert seen + [int(x) for x in values.restore(iterator.state())] == [1, 2, 3]


@pytest.mark.parametrize("index", [False, True])
def test_bad_lines_are_reported_by_the_reader_where_types_are_inferred(tmp_path: Path, index: bool) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"x": 1}\n[0]\n{"x": 2.5}\n')
    found = di.data.JsonLinesDataset(str(path), index=index)
    assert found.element_spec == {"x": di.TensorSpec([], "float64")}
    with pytest.raises(DataLossError, match=r"line 2: expected an object on a line of its own, \{...\}, got '\[0\]'"):
        list(found)


def test_an_index_counts_lines_that_are_no_objects(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(LINES))
    found = di.data.JsonLinesDataset(str(path), index=True)
    assert (len(found), found[1], found[3], found[6]) == (8, {"x": 1}, {"x": 2}, {"x": 3})
    for row, says in {0: r"line 1: expected an object.*got '\[0\]'", 2: "line 5: ", 5: "line 8: .*got 'null'"}.items():
        with pytest.raises(InvalidArgumentError, match=says):
            found[row]
