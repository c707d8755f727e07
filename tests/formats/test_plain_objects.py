# SPDX-License-Identifier: Apache-2.0
"""Plain objects of JSON Lines are those that pyarrow's reader makes, to the bit; what is not plain is left to it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.arrow.arrow import block_of
from distinput.formats.jsonl import JsonLines, PlainObjects
from distinput.formats.text_records import Head
from tests.depth import cases
from tests.formats.test_plain_rows import DECIMAL, WHOLE

TYPES = {
    "int64": pa.int64(),
    "int32": pa.int32(),
    "float64": pa.float64(),
    "float32": pa.float32(),
    "text": pa.binary(),
    "bool": pa.bool_(),
}
PARTS = [r"\n", r"\"", r"\\", r"\/", r"\u00e9", r"\u20AC", r"\ud83d\ude00", "é", "a", " ", ",", "{", "long text " * 8]
STRANGE = [r"\u0000", r"\ud83d", r"\udc00", r"\ud83dx", r"\x", r"\u12", "\t", "\x7f", "\0"]
ODD = ["null", "007", "-", "1.", ".5", "+1", "NaN", "-Infinity", "1e400", "0e999", "-0", "-0.0", "0e0", "1E5", "1e-320"]
ODD += ["[1]", "{}", '"1"', "1 2", "true", "123456789012345678901234567890", "0.1000000000000000055511151231257827"]
BLANKS = st.sampled_from(["", "", " ", "\t", " \r "])


@st.composite
def objects(draw: Any) -> tuple[bytes, dict[str, str], int, bool]:
    """Lines with an object each, the types of the keys that are read, how many objects, and whether others are left out."""
    kinds = dict(
        zip(
            ["a", "é", "some long key"],
            draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=3)),
            strict=False,
        )
    )
    extra = draw(st.sampled_from([[], [], ["text"], ["int64", "bool"]]))
    whole = kinds | {f"left {i}": kind for i, kind in enumerate(extra)}
    odd, lines = draw(st.sampled_from([False, False, True])), []
    parts = st.lists(st.sampled_from(PARTS + (STRANGE if odd else [])), max_size=4).map("".join)
    made = {
        "text": parts.map(lambda text: f'"{text}"'),
        "bool": st.sampled_from(["true", "false"]),
        "int64": WHOLE.map(str),
        "int32": st.integers(-(2**31), 2**31 - 1).map(str),
        "float64": DECIMAL,
        "float32": DECIMAL,
    }
    for _ in range(draw(st.integers(1, 5))):
        fields = []
        for name, kind in whole.items():
            value = draw(st.sampled_from(ODD)) if odd and draw(st.integers(0, 5)) == 0 else draw(made[kind])
            fields.append(f'{draw(BLANKS)}"{name}"{draw(BLANKS)}:{draw(BLANKS)}{value}{draw(BLANKS)}')
        if draw(st.integers(0, 5)) == 0:
            fields = draw(st.permutations(fields))
        if odd and draw(st.integers(0, 9)) == 0:
            fields = draw(st.sampled_from([fields[1:], [*fields, fields[0]], [*fields, ""], [*fields, '"new":1']]))
        lines.append("{" + ",".join(fields) + "}" + draw(st.sampled_from(["\n", "\r\n", " \n\n"])))
    content = "".join(lines).encode()
    if odd and draw(st.integers(0, 9)) == 0:
        content = content.replace("é".encode(), b"\xff")
    return content, kinds, len(lines), bool(extra)


def test_plain_objects_are_those_of_pyarrow() -> None:
    plain = []

    @settings(max_examples=cases(200, 8000), deadline=None, derandomize=True, database=None)
    @given(objects())
    def compare(table: tuple[bytes, dict[str, str], int, bool]) -> None:
        plain.append(is_plain(*table))

    compare()
    assert sum(plain) > len(plain) / 4


def is_plain(content: bytes, kinds: dict[str, str], count: int, others: bool) -> bool:
    """Whether the quick way reads lines, which then must be as pyarrow reads them."""
    schema = pa.schema([(name, TYPES[kind]) for name, kind in kinds.items()])
    reader = JsonLines(schema=schema, columns=tuple(kinds) if others else None)
    data = np.frombuffer(content, np.uint8)
    assert reader.schema is not None
    found = reader.quick(data, count, reader.schema, Head())
    if found is None:
        return False
    batch = reader.parse(data, reader.schema, Head())
    assert batch.num_rows == count
    assert list(found) == list(kinds)
    wanted = block_of(batch, reader._spec.structure, {})
    columns = reader._spec.structure.flatten(found)
    for column, expected in zip(columns, wanted.columns, strict=True):
        assert column.dtype == expected.dtype
        one, other = column.whole(), expected.whole()  # type: ignore[attr-defined]
        assert one.tolist() == other.tolist() if one.dtype == object else one.tobytes() == other.tobytes()
    return True


def columns(text: str, kinds: dict[str, Any], count: int, others: bool = False) -> Any:
    made = PlainObjects.of(pa.schema(list(kinds.items())))
    assert made is not None
    found = made.columns(np.frombuffer(text.encode(), np.uint8), count, others)
    return None if found is None else {name: column.whole().tolist() for name, column in found.items()}  # type: ignore[attr-defined]


def test_columns_have_the_order_of_the_schema_and_others_are_left_out() -> None:
    kinds = {"c": pa.binary(), "a": pa.int64()}
    text = '{"a":1,"b":null,"c":"x\\ty"}\n \n{"c" : "\\u00e9", "a":-3,"b":"\\n"}\r\n'
    assert columns(text, kinds, 2, True) == {"c": [b"x\ty", "é".encode()], "a": [1, -3]}
    assert columns(text, kinds, 2) is None


@pytest.mark.parametrize(
    "line",
    [
        '{"a":2}',
        '{"a":2,"b":"y","c":3}',
        '{"a":2,"b":"y","a":3}',
        '{"a":2,"b":"y"}{}',
        '{"a":2,"b":"y",}',
        '{"a":2,"b":["y"]}',
        '{"a":2,"b":null}',
        '{"a":2.0,"b":"y"}',
        '{"a":02,"b":"y"}',
        '{"a":9223372036854775808,"b":"y"}',
        '{"a":2,"b":"\\ud800"}',
        '{"a":2,"b":"y',
    ],
)
def test_what_is_not_plain_is_left_to_pyarrow(line: str) -> None:
    kinds = {"a": pa.int64(), "b": pa.binary()}
    assert columns(f'{{"a":1,"b":"x"}}\n{line}\n', kinds, 2) is None
    assert columns(f'{line}\n{{"a":1,"b":"x"}}\n', kinds, 2) is None


def test_other_types_and_names_are_left_to_pyarrow() -> None:
    for kind in (pa.timestamp("s"), pa.uint64(), pa.list_(pa.int64()), pa.struct([("x", pa.int64())])):
        assert PlainObjects.of(pa.schema([("a", kind)])) is None
    assert PlainObjects.of(pa.schema([('a"', pa.int64())])) is None


def test_a_record_that_is_wrong_is_named_by_its_line(tmp_path: Path) -> None:
    lines = [json.dumps({"a": i, "t": 'é\n"'}) for i in range(1000)]
    lines[700] = '{"a": 1.5, "t": "x"}'
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    found = []
    with pytest.raises(di.errors.InvalidArgumentError, match=r"line 701: column 'a': expected int64, got 1\.5"):
        found.extend(di.data.FileDataset(str(tmp_path / "a.jsonl"), "jsonl", schema={"a": "int64", "t": "object"}))
    del found


def test_escapes_do_not_change_the_bytes_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"t": "a\\nb"}\n' * 3)
    rows = di.data.FileDataset(str(tmp_path / "a.jsonl"), "jsonl")
    assert [row["t"] for row in rows] == [row["t"] for row in rows] == [b"a\nb"] * 3
