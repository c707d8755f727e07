# SPDX-License-Identifier: Apache-2.0
"""`text`, `nested` and `decimals` of readers: each is the op behind the reader."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.interop.huggingface import from_hf
from distinput.testing import check_dataset

Dataset = di.data.Dataset[Any]

ROWS: list[Any] = [
    {
        "t": f"é{i}",
        "x": Decimal(i) / 4,
        "n": None if i == 1 else Decimal("0.10") * i,
        "l": [Decimal("2.5")] * (i % 2),
        "m": [{"role": "user", "cost": Decimal("0.1"), "calls": [{"f": "g"}] * i}] * (i % 3),
        "o": None if i == 2 else [{"a": "b"}],
        "s": {"a": ["q"] * i, "b": ["r"] * (i + 1)},
        "w": [["u"], []],
    }
    for i in range(5)
]
SCHEMA = pa.schema(
    {
        "t": pa.string(),
        "x": pa.decimal128(8, 2),
        "n": pa.decimal256(50, 2),
        "l": pa.list_(pa.decimal128(4, 1)),
        "m": pa.list_(
            pa.struct(
                {"role": pa.string(), "cost": pa.decimal128(4, 1), "calls": pa.list_(pa.struct({"f": pa.string()}))}
            )
        ),
        "o": pa.list_(pa.struct({"a": pa.string()})),
        "s": pa.struct({"a": pa.list_(pa.string()), "b": pa.list_(pa.string())}),
        "w": pa.list_(pa.list_(pa.string())),
    }
)
TABLE = pa.Table.from_pylist(ROWS, SCHEMA)


def _parquet(folder: Path, **arguments: Any) -> Dataset:
    (folder / "year=2024").mkdir(exist_ok=True)
    path = folder / "year=2024" / "a.parquet"
    if not path.exists():
        pq.write_table(TABLE, path, row_group_size=2)
    return di.data.ParquetDataset(str(path), **arguments)


def _arrow(folder: Path, **arguments: Any) -> Dataset:
    path = folder / "a.arrow"
    if not path.exists():
        with pa.ipc.new_file(path, SCHEMA) as writer:
            writer.write_table(TABLE, 2)
    return di.data.ArrowDataset(str(path), num_parallel_reads=2, **arguments)


def _jsonl(folder: Path, **arguments: Any) -> Dataset:
    path = folder / "a.jsonl"
    path.write_text("".join(json.dumps(row, default=str) + "\n" for row in ROWS), encoding="utf-8")
    return di.data.JsonLinesDataset(str(path), **arguments)


def _any_format(folder: Path, **arguments: Any) -> Dataset:
    _parquet(folder)
    return di.data.FileDataset(str(folder / "year=2024" / "a.parquet"), partitioning=None, **arguments)


def _hugging_face(folder: Path, **arguments: Any) -> Dataset:
    datasets = pytest.importorskip("datasets")
    return from_hf(datasets.Dataset(TABLE), **arguments)


def _delta(folder: Path, **arguments: Any) -> Dataset:
    deltalake = pytest.importorskip("deltalake")
    if not (folder / "delta").exists():
        narrow = TABLE.set_column(2, "n", TABLE["n"].cast(pa.decimal128(38, 2)))
        deltalake.write_deltalake(str(folder / "delta"), narrow)
    return di.interop.tables.from_delta(str(folder / "delta"), **arguments)


def _lance(folder: Path, **arguments: Any) -> Dataset:
    lance = pytest.importorskip("lance")
    if not (folder / "a.lance").exists():
        lance.write_dataset(TABLE.drop_columns(["n", "o"]), str(folder / "a.lance"))
    return di.interop.tables.from_lance(str(folder / "a.lance"), **arguments)


def _table(folder: Path, **arguments: Any) -> Dataset:
    return di.data.Dataset.from_arrow(TABLE, **arguments)


READERS = {
    "parquet": _parquet,
    "arrow": _arrow,
    "jsonl": _jsonl,
    "any format": _any_format,
    "hugging face": _hugging_face,
    "table": _table,
    "delta": _delta,
    "lance": _lance,
}
ARGUMENTS: dict[str, Any] = {
    "text": ({"text": "str"}, lambda ds: ds.as_text()),
    "nested": ({"nested": "rows"}, lambda ds: ds.as_rows()),
    "decimals": ({"decimals": "decimal"}, lambda ds: ds.as_decimal()),
    "float64": ({"decimals": "float64"}, lambda ds: ds.as_decimal(dtype="float64")),
    "all": (
        {"text": "str", "nested": "rows", "decimals": "decimal"},
        lambda ds: ds.as_decimal().as_rows().as_text(),
    ),
    "none": ({"text": "bytes", "nested": "columns", "decimals": "text"}, lambda ds: ds),
}


@pytest.mark.parametrize("arguments, ops", ARGUMENTS.values(), ids=ARGUMENTS)
@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_a_reader_with_an_argument_is_the_reader_and_the_op(
    reader: Any, arguments: Any, ops: Any, tmp_path: Path
) -> None:
    made, expected = reader(tmp_path, **arguments), ops(reader(tmp_path))
    assert made.to_list() == expected.to_list()
    assert made.element_spec == expected.element_spec
    assert made.explain() == expected.explain()
    assert str(made.node) == str(expected.node)
    passing = iter(expected)
    first = [next(passing) for _ in range(2)]
    rest = list(made.restore(passing.state()))
    assert str(first + rest) == str(list(expected))


@pytest.mark.parametrize(
    "reader", [READERS[name] for name in ("parquet", "arrow", "any format", "hugging face", "table")]
)
def test_rows_are_what_is_in_the_file(reader: Any, tmp_path: Path) -> None:
    found = reader(tmp_path, text="str", nested="rows", decimals="decimal").to_list()
    for row, wanted in zip(found, ROWS, strict=True):
        assert row["t"] == wanted["t"]
        assert row["x"] == wanted["x"]
        assert row["l"] == wanted["l"]
        assert row["m"] == wanted["m"]
        assert row["o"] == wanted["o"]
        assert row["s"] == wanted["s"]  # a struct of lists is no list of structs
        assert row["w"] == wanted["w"]
        assert row["n"] == {"value": wanted["n"] or 0, "valid": wanted["n"] is not None}


def test_decimals_of_a_stated_schema(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x,t\n1.50,2.0\n-0.25,3\n", encoding="utf-8")
    schema = pa.schema({"x": pa.decimal128(8, 2), "t": pa.string()})
    assert di.data.CsvDataset(str(path), schema=schema, text="str").to_list()[0] == {"x": "1.50", "t": "2.0"}
    found = di.data.CsvDataset(str(path), schema=schema, decimals="decimal").to_list()
    assert found == [{"x": Decimal("1.50"), "t": b"2.0"}, {"x": Decimal("-0.25"), "t": b"3"}]
    assert di.data.CsvDataset(str(path), schema=schema, decimals="float64").batch(2).to_list() == [
        {"x": [1.5, -0.25], "t": [b"2.0", b"3"]}
    ]


def test_lines_as_str(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("é\nb\n", encoding="utf-8")
    assert di.data.TextLineDataset(str(tmp_path / "a.txt"), text="str").to_list() == ["é", "b"]


def test_they_keep_the_laws(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    pq.write_table(TABLE.select(["t", "x"]), path, row_group_size=2)
    for arguments in ({"text": "str", "decimals": "float64"}, {"decimals": "decimal"}):
        made = di.data.ParquetDataset(path, **arguments)  # type: ignore[arg-type]
        assert {"restart", "facts"} <= set(check_dataset(lambda made=made: made, leave_out=["distributed"]))  # type: ignore[misc]


def test_columns_and_rows_that_are_not_wanted_are_not_read(tmp_path: Path) -> None:
    ds = _parquet(tmp_path, text="str", nested="rows", decimals="decimal")
    wanted = ds.filter(pc.field("t") > "é2").select(["t", "x"])
    told = str(wanted.explain()).partition("runs:")
    assert "columns=('t', 'x')" in told[2]
    assert "filter_in_files" in told[0]
    assert wanted.to_list() == [{"t": "é3", "x": Decimal("0.75")}, {"t": "é4", "x": Decimal("1.00")}]
    numbers = _parquet(tmp_path, decimals="float64").filter(pc.field("x") > 0.5).select(["x"])
    assert numbers.to_list() == [{"x": 0.75}, {"x": 1.0}]
    assert "columns=('x'" in str(numbers.explain()).partition("runs:")[2]


@pytest.mark.parametrize(
    "argument, says",
    [
        ({"text": "string"}, r"text cannot be 'string', did you mean str\?"),
        ({"text": True}, "text cannot be True, it is one of bytes, str"),
        ({"nested": "row"}, r"nested cannot be 'row', did you mean rows\?"),
        ({"decimals": "float"}, r"decimals cannot be 'float', did you mean float64\?"),
    ],
)
def test_an_unknown_value_is_refused(argument: Any, says: str, tmp_path: Path) -> None:
    for reader in (_parquet, _jsonl, _any_format):
        with pytest.raises(InvalidArgumentError, match=says):
            reader(tmp_path, **argument)


def test_what_is_written_of_them_are_the_columns(tmp_path: Path) -> None:
    ds = _parquet(tmp_path, text="str", nested="rows", decimals="decimal")
    folder = str(tmp_path / "out")
    ds.select(["t", "x"]).write(folder, "parquet")
    assert di.data.FileDataset(folder).to_list() == _parquet(tmp_path).select(["t", "x"]).to_list()
