# SPDX-License-Identifier: Apache-2.0
"""Plain rows of CSV are those that pyarrow's reader makes, to the bit; what is not plain is left to it."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distinput.arrow.arrow import block_of
from distinput.formats.csv import Csv, PlainRows
from distinput.formats.text_records import Head
from tests.depth import cases

TYPES = {
    "int64": pa.int64(),
    "int32": pa.int32(),
    "float64": pa.float64(),
    "float32": pa.float32(),
    "text": pa.binary(),
}

WHOLE = st.integers(-(2**63), 2**63 - 1) | st.integers(-200, 200) | st.integers(-(2**31), 2**31 - 1)
DECIMAL = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    st.tuples(st.integers(0, 10**19), st.integers(-30, 30)).map(lambda each: f"{each[0]}e{each[1]}"),
    st.decimals(-(10**9), 10**9, allow_nan=False, places=9).map(str),
)
ODD = st.sampled_from(
    ["", "-", "1.", ".5", "+1", "NA", "nan", "inf", "1e400", "1e-320", "0x10", " 1", "007", "-0", "1_0", "1e+05"]
)
WORDS = st.text('ab ,"é\n-1', max_size=6)


def quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


@st.composite
def tables(draw: Any) -> tuple[str, list[str], int]:
    """A CSV text without a header, the types of its columns, and how many records it has."""
    kinds = draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=4))
    odd = draw(st.sampled_from([False, False, True]))
    lines = []
    for _ in range(draw(st.integers(1, 6))):
        values = []
        for kind in kinds:
            number = WHOLE.map(str) if kind.startswith("int") else DECIMAL
            value = draw(WORDS if kind == "text" else (number | ODD if odd else number))
            needed = any(letter in value for letter in ',"\n') or (len(kinds) == 1 and not value)
            values.append(quoted(value) if needed or draw(st.integers(0, 5)) == 0 else value)
        lines.append(",".join(values) + draw(st.sampled_from(["\n", "\n", "\r\n", "\n\n"])))
    return "".join(lines), kinds, len(lines)


def test_plain_rows_are_those_of_pyarrow() -> None:
    plain = []

    @settings(max_examples=cases(200, 4000), deadline=None, derandomize=True, database=None)
    @given(tables())
    def compare(table: tuple[str, list[str], int]) -> None:
        plain.append(is_plain(*table))

    compare()
    assert sum(plain) > len(plain) / 4


def is_plain(text: str, kinds: list[str], count: int) -> bool:
    """Whether the quick way reads a table, which then must be as pyarrow reads it."""
    names = tuple(f"c{i}" for i in range(len(kinds)))
    schema = pa.schema([(name, TYPES[kind]) for name, kind in zip(names, kinds, strict=True)])
    csv = Csv(schema=schema, header=False)
    data = np.frombuffer(text.encode(), np.uint8)
    assert csv.schema is not None
    found = csv.quick(data, count, csv.schema, Head(0, 0, names))
    if found is None:
        return False
    batch = csv.parse(data, csv.schema, Head(0, 0, names))
    wanted = block_of(batch, csv._spec.structure, {})
    for name, column in zip(names, wanted.columns, strict=True):
        assert found[name].dtype == column.dtype
        whole, expected = found[name].whole(), column.whole()  # type: ignore[attr-defined]
        if column.dtype == np.dtype(object):
            assert whole.tolist() == expected.tolist()
        else:
            assert whole.tobytes() == expected.tobytes()
    return True


def columns(text: str, kinds: dict[str, Any], names: tuple[str, ...], count: int, quote: int = 34) -> Any:
    rows = PlainRows.of(names, pa.schema(list(kinds.items())), ord(","), quote)
    assert rows is not None
    found = rows.columns(np.frombuffer(text.encode(), np.uint8), count)
    return None if found is None else {name: column.whole().tolist() for name, column in found.items()}  # type: ignore[attr-defined]


def test_columns_have_the_order_of_the_schema_and_others_are_left_out() -> None:
    kinds = {"c": pa.binary(), "a": pa.int64()}
    found = columns('1,2.5,x\r\n\n-3,?,"y,\nz"\n', kinds, ("a", "b", "c"), 2)
    assert list(found.items()) == [("c", [b"x", b"y,\nz"]), ("a", [1, -3])]


@pytest.mark.parametrize(
    "text",
    [
        "1,x\n2\n",  # a value too few
        "1,x\n2,y,z\n",
        "1,x\n",  # a record too few
        "1,x\n2,y\n3,z\n",
        "1,x\n2,y",  # does not end
        '1,x\n2,"y\n',
        '1,x\n2,"y""z"\n',
        '1,x\n2,"y"z\n',
        '1,x\n2,y"z\n',
        "1,x\n,y\n",
        "1,x\n2.0,y\n",
        "1,x\n9223372036854775807,y\n",
    ],
)
def test_what_is_not_plain_is_left_to_pyarrow(text: str) -> None:
    assert columns(text, {"a": pa.int64(), "b": pa.binary()}, ("a", "b"), 2) is None


def test_other_types_are_left_to_pyarrow() -> None:
    for kind in (pa.bool_(), pa.timestamp("s"), pa.float16(), pa.uint64()):
        assert PlainRows.of(("a",), pa.schema([("a", kind)]), ord(","), 34) is None
    assert PlainRows.of(("b",), pa.schema([("a", pa.int64())]), ord(","), 34) is None


def test_without_a_quote_character_quotes_are_letters() -> None:
    assert columns('1,"x\n', {"b": pa.binary()}, ("a", "b"), 1, quote=-1) == {"b": [b'"x']}


def test_stated_missing_values_are_left_to_pyarrow(tmp_path: Path) -> None:
    import distinput as di

    (tmp_path / "a.csv").write_text("a\n7\n-1\n")
    rows = di.data.CsvDataset(str(tmp_path / "a.csv"), schema={"a": "float64"}, null_values=["-1"])
    assert str([row["a"] for row in rows]) == str([np.float64(7), np.float64("nan")])


def test_rows_do_not_keep_the_text_around_them() -> None:
    rows = PlainRows.of(("a", "b"), pa.schema([("b", pa.binary())]), ord(","), 34)
    assert rows is not None
    found = rows.columns(np.frombuffer(b"%s,x\n" % (b"1" * 1000), np.uint8), 1)
    assert found is not None
    assert found["b"].nbytes < 100
    assert len(found["b"].data) == 1  # type: ignore[attr-defined]
