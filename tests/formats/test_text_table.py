# SPDX-License-Identifier: Apache-2.0
"""What CSV and JSON Lines have in common: the laws of formats, a schema that is held, and errors that name the line."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.formats import text_records
from distinput.formats.csv import Csv
from distinput.formats.jsonl import JsonLines
from distinput.formats.text_table import TextTable
from distinput.testing import check_format
from tests.formats.reading import records, records_until_error

SCHEMA = {"x": int, "y": float, "t": bytes}
ROWS = [{"x": i, "y": i / 2, "t": b'a,"b"\nc' if i % 4 == 0 else b"w%d" % i} for i in range(14)]
FORMATS = [Csv, JsonLines]


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_records, "FIRST_BYTES", 40)
    monkeypatch.setattr(text_records, "CHUNK_BYTES", 40)


def written(kind: type[TextTable], rows: list[dict[str, Any]]) -> bytes:
    if kind is JsonLines:
        made = [json.dumps({k: v.decode() if isinstance(v, bytes) else v for k, v in row.items()}) for row in rows]
        return "".join(line + "\n" for line in made).encode()
    lines = [",".join(SCHEMA)]
    for row in rows:
        text = row["t"].decode()
        quoted = '"' + text.replace('"', '""') + '"' if '"' in text else text
        lines.append(f"{row['x']},{row['y']},{quoted}" + "\r" * (row["y"] > 3) + "\n" * (row["y"] % 3 == 0))
    return "".join(line + "\n" for line in lines).encode()


@pytest.mark.parametrize("compression", [None, "GZIP"])
@pytest.mark.parametrize("kind", FORMATS)
def test_the_laws_of_formats(kind: Any, compression: str | None) -> None:
    expected = [ROWS[:9], [], ROWS[:1]]

    def write(folder: Path) -> list[Path]:
        for number, rows in enumerate(expected):
            data = written(kind, rows)
            (folder / f"{number}").write_bytes(gzip.compress(data) if compression else data)
        return [folder / f"{number}" for number in range(3)]

    held = check_format(kind(schema=SCHEMA, compression_type=compression), write, expected, leave_out=["dataset"])
    assert {"positions", "fragments", "damage", "portions"} <= set(held)
    assert ("parts" in held) == (compression is None)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_schema_is_inferred_once_and_held(kind: Any, tmp_path: Path) -> None:
    files = [tmp_path / "empty", tmp_path / "a", tmp_path / "b"]
    for file, rows in zip(files, [[], ROWS[:3], ROWS[3:5]], strict=True):
        file.write_bytes(written(kind, rows))
    dataset = di.data.FileDataset([str(file) for file in files], kind.name)
    assert list(dataset) == ROWS[:5]
    assert [str(spec.dtype) for spec in dataset.element_spec.values()] == ["int64", "float64", "object"]
    files[2].write_bytes(written(kind, [ROWS[3], {**ROWS[4], "x": 1.5}]))
    with pytest.raises(InvalidArgumentError, match=r"b: line \d: column 'x': expected int64, got '?1\.5'?; .*schema="):
        list(dataset)
    stated = di.data.FileDataset([str(file) for file in files], kind.name, schema={**SCHEMA, "x": float})
    assert len(list(stated)) == 5
    if kind is Csv:  # the header names the columns, and no rows are no rows
        assert di.data.FileDataset([str(files[0])], kind.name).to_list() == []
        return
    with pytest.raises(
        InvalidArgumentError, match=r"no record shows the types of the columns, .*empty has none; .*schema="
    ):
        _ = di.data.FileDataset([str(files[0])], kind.name).element_spec


@pytest.mark.parametrize("kind", FORMATS)
def test_the_rows_before_a_bad_one_come_and_the_error_names_its_line(kind: Any, tmp_path: Path) -> None:
    file = tmp_path / "a"
    for bad in range(14):
        file.write_bytes(written(kind, [{**row, "x": "no"} if row["x"] == bad else row for row in ROWS]))
        found, error = records_until_error(kind(schema=SCHEMA), file)
        assert found == ROWS[:bad]
        line = file.read_bytes().partition(b"no")[0].count(b"\n") + 1
        assert f"a: line {line}: column 'x': expected int64, got " in str(error)
        # A part of the file finds the number of the line too.
        part = kind(schema=SCHEMA).part(str(file), 20, None)
        if bad > 3:
            with pytest.raises(InvalidArgumentError, match=rf"a: line {line}: column 'x'"):
                list(kind(schema=SCHEMA).read_fragment(part))


@pytest.mark.parametrize("kind", FORMATS)
def test_a_position_before_a_bad_row_leads_to_the_same_error(kind: Any, tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(written(kind, [*ROWS[:9], {**ROWS[9], "x": "no"}, ROWS[10]]))
    format = kind(schema=SCHEMA)
    positions: list[Any] = []
    with pytest.raises(InvalidArgumentError, match="line"):
        positions += (after for _, after in format.read(str(file)))
    assert positions[-1]["row"] == 9
    for after in positions:
        rest: list[Any] = []
        with pytest.raises(InvalidArgumentError, match="column 'x'"):
            rest.extend(row for block, _ in format.read(str(file), after) for row in block.elements())
        assert rest == ROWS[after["row"] : 9]


@pytest.mark.parametrize("kind", FORMATS)
def test_missing_values_follow_the_rule_of_tables(kind: Any, tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b'{"x":1,"t":"a"}\n{"y":2}\n' if kind is JsonLines else b"x,y,t\n1,,a\n,2,\n")
    with pytest.raises(InvalidArgumentError, match=r"a: line \d: column 'x' has no value, .* nulls=\{'x': value\}"):
        records(kind(schema=SCHEMA), file)
    found = records(kind(schema=SCHEMA, nulls={"x": -1, "t": b""}), file)
    assert repr(found) == "[{'x': 1, 'y': nan, 't': b'a'}, {'x': -1, 'y': 2.0, 't': b''}]"
    with pytest.raises(InvalidArgumentError, match=r"nulls: .*'no'"):
        records(kind(schema=SCHEMA, nulls={"x": "no"}), file)


@pytest.mark.parametrize("kind", FORMATS)
def test_nulls_of_the_first_rows_are_told_beside_the_values(kind: Any, tmp_path: Path) -> None:
    rows = [
        {"x": i if i % 3 else None, "y": i if i % 5 else None, "ok": i % 2 == 0 if i % 7 else None} for i in range(8)
    ]
    told = [
        {
            "x": {"value": row["x"] or 0, "valid": row["x"] is not None},
            "y": {"value": row["y"] or 0, "valid": row["y"] is not None},
            "ok": {"value": bool(row["ok"]), "valid": row["ok"] is not None},
        }
        for row in rows
    ]

    def text(rows: list[dict[str, Any]]) -> bytes:
        if kind is JsonLines:
            return "".join(json.dumps({k: v for k, v in row.items() if v is not None}) + "\n" for row in rows).encode()
        lines = [",".join("" if value is None else str(value) for value in row.values()) for row in rows]
        return "".join(f"{line}\n" for line in ["x,y,ok", *lines]).encode()

    def write(folder: Path) -> list[Path]:
        for number, some in enumerate([rows, rows[1:3]]):
            (folder / f"{number}").write_bytes(text(some))
        return [folder / f"{number}" for number in range(2)]

    files = [str(file) for file in write(tmp_path)]
    found = kind().held(files)
    assert {"positions", "fragments", "portions"} <= set(
        check_format(found, write, [told, told[1:3]], leave_out=["dataset"])
    )
    assert records(kind(columns=["ok"]), tmp_path / "0") == [{"ok": row["ok"]} for row in told]
    assert records(kind(nulls={"x": 0, "y": 0, "ok": False}), tmp_path / "0")[0] == {"x": 0, "y": 0, "ok": False}
    with pytest.raises(InvalidArgumentError, match="column 'x' has no value"):
        records(kind(nulls="error"), tmp_path / "0")
    indexed = di.data.FileDataset(files[0], kind.name, index=str(tmp_path))
    assert [indexed[row] for row in (3, 0)] == [told[3], told[0]]
    dataset = di.data.FileDataset([files[1], files[0]], kind.name)
    assert dataset.element_spec["ok"] == di.TensorSpec([], bool)  # a null that comes later has no place
    with pytest.raises(InvalidArgumentError, match=r"column '(x|ok|y)' has no value"):
        dataset.to_list()


@pytest.mark.parametrize("kind", FORMATS)
def test_columns_are_chosen(kind: Any, tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(written(kind, ROWS))
    chosen = [{"t": row["t"], "x": row["x"]} for row in ROWS]
    assert records(kind(columns=["t", "x"]), file) == chosen
    assert records(kind(columns=["t", "x"], schema=SCHEMA), file) == chosen
    assert records(kind(columns=[], schema=SCHEMA), file) == [{}] * 14
    with pytest.raises(InvalidArgumentError, match="there is no column 'z'; the columns are x, y, t"):
        _ = di.data.FileDataset(str(file), kind.name, columns=["z"]).element_spec
    with pytest.raises(InvalidArgumentError, match="columns must be a list of names, got 'x'"):
        kind(columns="x")


@pytest.mark.parametrize("kind", FORMATS)
def test_a_byte_order_mark_is_passed_over(kind: Any, tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"\xef\xbb\xbf" + written(kind, ROWS))
    assert records(kind(), file) == ROWS
    parts = [kind(schema=SCHEMA).part(str(file), a, b) for a, b in ((0, 2), (2, 60), (60, None))]
    assert [
        row for part in parts for block, _ in kind(schema=SCHEMA).read_fragment(part) for row in block.elements()
    ] == ROWS


@pytest.mark.parametrize("name", ["csv", "jsonl"])
def test_a_replacement_of_nulls_for_no_column_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{name}"
    path.write_text("x,y\n1,2\n" if name == "csv" else '{"x": 1, "y": 2}\n')
    for options in (
        {},
        {"schema": {"x": "int64", "y": "int64"}},
        {"schema": {"x": "int64", "y": "int64"}, "columns": ["y"]},
    ):
        with pytest.raises(di.errors.InvalidArgumentError, match="nulls: has no column 'z'; its columns are x, y"):
            di.data.FileDataset(str(path), name, nulls={"y": 0, "z": 1}, **options).to_list()
        assert len(di.data.FileDataset(str(path), name, nulls={"y": 0}, **options).to_list()) == 1
    assert len(di.data.FileDataset(str(path), name, nulls={"x": 0}, columns=["y"]).to_list()) == 1
