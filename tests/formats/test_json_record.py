# SPDX-License-Identifier: Apache-2.0
"""Lines of JSON that are refused name the right column and the right reason, alone and among others."""

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.formats.jsonl import Large, changes, has_half, read_record, refusal
from tests.depth import crossed

GOOD = b'{"id": 6, "text": "fine", "x": 0.5}\n'


WRONG = [
    (rb'{"id": 7, "text": "cut \ud83d", "x": 1}', "text", "half of a surrogate pair"),
    (rb'{"id": 7, "text": "\udc00", "x": 1}', "text", "half of a surrogate pair"),
    (b'{"id": 7, "id": 8, "text": "x", "x": 1}', "id", "the key comes twice"),
    (rb'{"id": 7, "text": "x", "x": 1, "\ud83d": 7}', r"\\ud83d", "half of a surrogate pair"),
    (b'{"id": 1' + b"0" * 400 + b', "text": "x", "x": 1}', "id", "expected int64, got 1000"),
    (b'{"id": 1, "text": "x", "x": 1' + b"0" * 5000 + b"}", "x", "expected double, got 1000"),
    (b'{"id": 1, "text": "x", "x": 1e400}', "x", "no float64 is as large as 1e400"),
    (b'{"id": NaN, "text": "x", "x": 1}', "id", "expected int64, got NaN"),
    (b'{"id": 1, "text": NaN, "x": 1}', "text", "expected binary, got NaN"),
    (b'{"id": 1, "text": "\xff", "x": true}', "x", "expected double, got true"),
    (b'{"id": 1, "text": "x", "x": 1, "new": 1}', "new", "has no such key"),
]


@pytest.mark.parametrize("wrong, stated, neighbours", crossed(WRONG, [False, True], [0, 1, 50]))
def test_the_right_column_and_reason(
    wrong: tuple[bytes, str, str], stated: bool, neighbours: int, tmp_path: Path
) -> None:
    line, column, reason = wrong
    first, file = tmp_path / "first.jsonl", tmp_path / "a.jsonl"
    first.write_bytes(GOOD)
    file.write_bytes(GOOD * (neighbours + 1) + line + b"\n" + GOOD * neighbours)
    schema = pa.schema({"id": pa.int64(), "text": pa.binary(), "x": pa.float64()}) if stated else None
    dataset = di.data.JsonLinesDataset([str(first), str(file)], schema)
    with pytest.raises(InvalidArgumentError, match=f"a.jsonl: line {neighbours + 2}: column '{column}': .*{reason}"):
        dataset.to_list()


@pytest.mark.parametrize(
    "neighbour", [b"", rb'{"id": 1, "text": "\ud83d", "x": 1}' + b"\n", b'{"id": , "text": "", "x": 1}\n']
)
def test_text_is_its_bytes_whatever_is_beside_it(neighbour: bytes, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(b'{"id": 7, "text": "\xff\xc3\xa9", "x": NaN}\n' + neighbour + b"\n")
    found = di.data.JsonLinesDataset(str(file), on_error="skip").to_list()
    assert len(found) == 1
    assert found[0]["text"] == b"\xff\xc3\xa9"
    assert math.isnan(found[0]["x"])


@pytest.mark.parametrize(
    "line, columns, wanted",
    [
        (b'{"a": 1, "a": 2}', None, ("a", "the key comes twice")),
        (b'{"a": 1, "a": 2, "b": 1}', ("b",), None),
        (b'{"a": [{"b": 1, "b": 2}]}', None, ("a", "the key 'b' comes twice in it")),
        (b'{"a": {"b": 1e999}}', None, ("a", "no float64 is as large as 1e999")),
        (b'{"a": 10, "b": "\\ud83d\\ude00"}', None, None),
    ],
)
def test_objects_that_are_refused(line: bytes, columns: Any, wanted: Any) -> None:
    assert refusal(read_record(line), columns) == wanted


def test_numbers_that_are_changed() -> None:
    kind = pa.struct([("y", pa.list_(pa.float64()))])
    assert changes({"y": [1, 2**53 + 1]}, kind, True)
    assert not changes({"y": [1, 2**53]}, kind, True)
    assert changes(1e39, pa.float32(), False)
    assert changes(70000, pa.float16(), False)
    assert changes(read_record(b"-1e999"), pa.float64(), False)
    assert not changes(math.inf, pa.float64(), True)
    assert isinstance(read_record(b"9" * 5000), Large)
    assert has_half("\ud83d")
    assert not has_half("\U0001f600")
