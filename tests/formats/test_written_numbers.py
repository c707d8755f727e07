# SPDX-License-Identifier: Apache-2.0
"""No inferred type changes a value: what was read says what was written, or it is an error that names the row."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.formats.row_schema import changed, inferred_type, may_change

WHOLE = ["0", "-7", "42", "9007199254740992", "9007199254740993", "-9007199254740993", "9223372036854775807"]
WHOLE += ["9223372036854775808", "18446744073709551615", "18446744073709551616", "-9223372036854775808", "1" * 400]
OTHER = ["1.5", "-0.25", "1e3", "1e400", "2.5e-3", "9007199254740993.0"]
WRITTEN = [
    "02116",
    "007",
    "00",
    "-01",
    "0x10",
    "0xffffffffffffffff",
    "00.5",
    "true",
    "false",
    "1",
    "inf",
    "12e4567",
    "word",
]


def same(value: Any, text: str) -> bool:
    """Whether a value is what its text says."""
    if isinstance(value, bytes):
        return value == text.encode()
    if isinstance(value, np.bool_):
        return text == str(bool(value)).lower()
    if text.lstrip("-").isdigit():
        return str(int(value)) == text if len(text) < 25 else False
    return bool(np.isinf(value)) if text == "inf" else float(text) == value and np.isfinite(value)


def read(made: Callable[[], Any]) -> tuple[list[Any], str | None]:
    """The values of `x`, and the error behind them."""
    values: list[Any] = []
    try:
        values.extend(element["x"] for element in made())
    except InvalidArgumentError as error:
        return values, str(error)
    return values, None


@given(st.lists(st.sampled_from(WHOLE + OTHER + WRITTEN), min_size=1, max_size=4), st.data())
def test_no_value_of_csv_is_changed_by_an_inferred_type(
    tmp_path_factory: pytest.TempPathFactory, first: list[str], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("csv")
    later = data.draw(st.lists(st.sampled_from(first + WHOLE + OTHER + WRITTEN), max_size=3))
    for name, texts in ("a", first), ("b", later):
        (folder / name).write_text("n,x\n" + "".join(f"7,{text}\n" for text in texts))
    values, error = read(lambda: di.data.CsvDataset([str(folder / "a"), str(folder / "b")]))
    assert all(map(same, values, first + later))
    if error is not None:
        assert f"b: line {len(values) - len(first) + 2}: column 'x': expected" in error


@given(st.lists(st.sampled_from(WHOLE[:-1] + OTHER[:3]), min_size=1, max_size=4), st.data())
def test_no_number_of_json_lines_is_changed_by_an_inferred_type(
    tmp_path_factory: pytest.TempPathFactory, first: list[str], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("jsonl")
    later = data.draw(st.lists(st.sampled_from(first + WHOLE + OTHER), max_size=3))
    nest = data.draw(st.sampled_from(["{}", "[{}]", '{{"y": {}}}']))
    for name, texts in ("a", first), ("b", later):
        (folder / name).write_text("".join(f'{{"n": 7, "x": {nest.format(text)}}}\n' for text in texts))
    values, error = read(lambda: di.data.JsonLinesDataset([str(folder / "a"), str(folder / "b")]))
    plain = [value["y"] if isinstance(value, dict) else np.ravel(value)[0] for value in values]
    assert all(map(same, plain, first + later))
    if error is not None and values:
        assert f"b: line {len(values) - len(first) + 1}: column 'x': " in error
    elif error is not None:
        assert re.search("key 'x.*schema=", error)


STATED: list[tuple[str, Any, Any]] = [
    ("0xffffffffffffffff", "int64", None),
    ("0xffffffff", "int32", None),
    ("0xffffffff", "uint32", 2**32 - 1),
    ("0x10", "int64", 16),
    ("007", "int64", 7),
    ("9007199254740993", "float64", 2.0**53),
    ("1e400", "float64", None),
    ("-" + "9" * 400, "float64", None),
    ("1e39", "float32", None),
    ("inf", "float32", np.inf),
]


@pytest.mark.parametrize("text, kind, value", STATED)
def test_a_stated_type_rounds_and_changes_nothing_else(text: str, kind: str, value: Any, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"n,x\n1,5\n2,{text}\n")
    dataset = di.data.CsvDataset(str(tmp_path / "a.csv"), schema={"n": int, "x": kind})
    if value is not None:
        assert dataset.to_list()[1]["x"] == value
        return
    with pytest.raises(
        InvalidArgumentError, match=r"a.csv: line 3: column 'x': expected (u?int\d+|float|double), got '"
    ):
        dataset.to_list()


@pytest.mark.parametrize(
    "texts, values, kind",
    [
        (["18446744073709551615", None], [1.8446744073709552e19, None], pa.uint64()),
        (["18446744073709551616", "1"], [1.8446744073709552e19, 1.0], pa.binary()),
        (["-1", "18446744073709551615"], [-1.0, 1.8446744073709552e19], pa.binary()),
        (["10", "20"], [10, 20], pa.int64()),
        (["10", "020"], [10, 20], pa.binary()),
        (["true", "1"], [True, True], pa.binary()),
    ],
)
def test_a_type_is_inferred_that_changes_nothing(texts: list[Any], values: list[Any], kind: Any) -> None:
    assert inferred_type(pa.array(texts).cast(pa.binary()), pa.array(values)) == kind


@given(st.lists(st.sampled_from(WHOLE + OTHER + WRITTEN + ["2024-01-05", "10:00:07", "0.001"])))
def test_what_may_change_is_seen_in_the_text(texts: list[str]) -> None:
    data = np.frombuffer(",".join(texts).encode(), np.uint8)
    for text in texts:
        for read, kind in ((int, pa.int64()), (float, pa.float64())):
            try:
                values = pa.array([read(text)], kind)
            except (ValueError, OverflowError):
                continue
            if np.isfinite(values[0].as_py()) and changed(pa.array([text.encode()]), values, True).any():
                assert may_change(data)


WRITERS: list[Callable[[dict[str, Any]], str]] = [lambda row: ",".join(map(str, row.values())), json.dumps]


@pytest.mark.parametrize("write", WRITERS, ids=["csv", "jsonl"])
def test_two_ids_stay_two(write: Callable[[dict[str, Any]], str], tmp_path: Path) -> None:
    rows = [{"id": 17651233412345678901 + number, "n": number} for number in range(3)]
    (tmp_path / "a").write_text(
        ("id,n\n" if write is not json.dumps else "") + "".join(write(row) + "\n" for row in rows)
    )
    kind = "jsonl" if write is json.dumps else "csv"
    assert di.data.FileDataset(str(tmp_path / "a"), kind).to_list() == rows
