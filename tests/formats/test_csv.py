# SPDX-License-Identifier: Apache-2.0
import gzip
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.errors import DataLossError, InvalidArgumentError, UnimplementedError
from distinput.formats.csv import Csv, _is_made_of_text
from tests.formats.reading import records, records_until_error


def told(value: Any = 0) -> dict[str, Any]:
    return {"value": value, "valid": value != 0}


def write(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    return str(path)


@pytest.mark.parametrize(
    "content, options, expected",
    [
        (b"a,b\n1,x\n", {}, [{"a": 1, "b": b"x"}]),
        (b"a,b\n1,x", {}, [{"a": 1, "b": b"x"}]),
        (b'a,b\n1,"x, ""y""\n"\n', {}, [{"a": 1, "b": b'x, "y"\n'}]),
        (b"a;b\n1;x\n", {"delimiter": ";"}, [{"a": 1, "b": b"x"}]),
        (b"a\tb\n'1'\t'x'\n", {"delimiter": "\t", "quote_char": "'"}, [{"a": 1, "b": b"x"}]),
        (b'a,b\n1,"x\n', {"quote_char": None}, [{"a": 1, "b": b'"x'}]),
        (b"1,x\n", {"header": False, "column_names": ["p", "q"]}, [{"p": 1, "q": b"x"}]),
        (b"1,x\n", {"header": False, "schema": {"p": "float32", "q": str}}, [{"p": 1.0, "q": b"x"}]),
        (b"a,b\n1,x\n", {"column_names": ["p", "q"]}, [{"p": 1, "q": b"x"}]),
        (b"b,a\nx,1\n", {"schema": {"a": int, "b": str}}, [{"a": 1, "b": b"x"}]),
        (b"a\nyes\nno\n", {"schema": {"a": "string"}}, [{"a": b"yes"}, {"a": b"no"}]),
        (b"a\n1\n?\n", {"null_values": ["?"], "nulls": {"a": -1}}, [{"a": 1}, {"a": -1}]),
        (b"a\ntrue\nFalse\n", {}, [{"a": True}, {"a": False}]),
        (b"a,b\n1,\n2,\n", {}, [{"a": 1, "b": b""}, {"a": 2, "b": b""}]),
        (b"a,,a,\n1,2,3,4\n", {}, [{"a": 1, "": 2, "a.1": 3, ".1": 4}]),
        (b"caf\xe9\n1\n", {"column_names": ["cafe"]}, [{"cafe": 1}]),
        (b"a,b\n5,true\nNA,\n", {}, [{"a": told(5), "b": told(True)}, {"a": told(), "b": told()}]),
        (b"a,b\n5,true\n,\n", {"nulls": {"a": 7}}, [{"a": 5, "b": told(True)}, {"a": 7, "b": told()}]),
        (b"a\n2020-01-02\n", {}, [{"a": b"2020-01-02"}]),
        (b"\xff,b\n1,2\n", {"column_names": ["a", "b"], "header": False, "schema": {"a": str, "b": str}}, None),
    ],
)
def test_each_option_changes_what_is_read(
    tmp_path: Path, content: bytes, options: dict[str, Any], expected: Any
) -> None:
    expected = expected or [{"a": b"\xff", "b": b"b"}, {"a": b"1", "b": b"2"}]
    assert records(Csv(**options), write(tmp_path / "a.csv", content)) == expected


def test_times_are_read_where_they_are_stated(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", b"at\n2020-01-02 03:04:05\n")
    (row,) = di.data.FileDataset(path, "csv", schema={"at": np.dtype("datetime64[s]")})
    assert row["at"] == np.datetime64("2020-01-02T03:04:05")


@pytest.mark.parametrize(
    "content, options, error, says",
    [
        (b"a,b\n1,2\n3\n4,5\n", {}, InvalidArgumentError, r"a\.csv: line 3: expected 2 columns, got 1: '3'"),
        (b"a,b\n1,2\n\n3,4,5\n", {}, InvalidArgumentError, r"a\.csv: line 4: expected 2 columns, got 3: '3,4,5'"),
        (
            b"a\n1\n2\r3\n",
            {"newlines_in_values": False},
            DataLossError,
            r'a\.csv: line 3: there is a "\\\\r" without "\\\\n"',
        ),
        (b'a\n1\n"2\n', {}, DataLossError, r"a\.csv: line 3: the record that begins here does not end"),
        (b'"a\n', {}, DataLossError, r"a\.csv: line 1: the header does not end; is a quote missing\?"),
        (
            b'a\n"1\n2"\n',
            {"newlines_in_values": False, "schema": {"a": str}},
            DataLossError,
            r"a\.csv: line 2: there is a newline inside of quotes; pass newlines_in_values=True",
        ),
        (
            b"a,b\n1,2\n",
            {"column_names": ["a", "a"]},
            UnimplementedError,
            "several columns have the same name; .*: a, a",
        ),
        (
            b"a,b\n1,2\n",
            {"column_names": ["a"]},
            InvalidArgumentError,
            "column_names has 1 names, but the header 2: a, b",
        ),
        (b"a,b\n1,2\n", {"schema": {"a": int}}, InvalidArgumentError, "has a column 'b' that the schema does not have"),
        (
            b"a\n1\n",
            {"schema": {"a": int, "c": int}},
            InvalidArgumentError,
            "has no column 'c'; its columns are a, those",
        ),
        (b"\xff,b\n1,2\n", {}, DataLossError, "line 1: the header cannot be read, .*iconv -f LATIN1 .* column_names="),
        ("a\n1\n".encode("utf-16"), {}, DataLossError, "looks like text in UTF-16; .*iconv"),
    ],
)
def test_errors_say_where_and_what_to_do(
    tmp_path: Path, content: bytes, options: dict[str, Any], error: type[Exception], says: str
) -> None:
    found, raised = records_until_error(Csv(**options), write(tmp_path / "a.csv", content))
    assert isinstance(raised, error)
    with pytest.raises(error, match=says.replace("\\\\\\\\", "\\\\")):
        raise raised
    assert all(row in ({"a": 1}, {"a": 1, "b": 2}) for row in found)


@pytest.mark.parametrize(
    "options, says",
    [
        ({"delimiter": ",,"}, "delimiter must be a single ASCII character, got ',,'"),
        ({"delimiter": "\n"}, "delimiter must be a single ASCII character"),
        ({"quote_char": "é"}, "quote_char must be a single ASCII character, got 'é'"),
        ({"quote_char": ","}, "delimiter and quote_char must differ, both are ','"),
        ({"header": False}, "without a header, the names of the columns come from column_names or schema"),
        ({"null_values": "x"}, "null_values must be a list, got 'x'"),
        ({"nulls": 0}, 'nulls must be "error" or a dict'),
        ({"compression_type": "ZIP"}, "Unsupported compression_type: 'ZIP'"),
        ({"schema": {"a": di.TensorSpec([None], "int64")}}, r"csv: column 'a' cannot have type list<item: int64>"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        Csv(**options)


def test_a_newline_in_quotes_is_found_whichever_part_begins_in_it(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", b'a,b\n1,"x\n2,y\n"\n3,z\n')
    format = Csv(schema={"a": int, "b": str}, newlines_in_values=False)
    for cut in range(5, 20):
        parts = [format.part(path, 0, cut), format.part(path, cut, None)]
        with pytest.raises(DataLossError, match="newline inside of quotes"):
            [list(format.read_fragment(part)) for part in parts]


def test_some_types_are_stated_and_the_others_inferred(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("a,note,b\n1,,2.5\n3,,4\n")
    found = di.data.CsvDataset(str(file), schema={"note": str})
    assert list(found.element_spec) == ["a", "note", "b"]
    assert found.to_list() == [{"a": 1, "note": b"", "b": 2.5}, {"a": 3, "note": b"", "b": 4.0}]
    assert di.data.CsvDataset(str(file), schema={"a": "float32", "note": str}, columns=["b", "a"]).to_list()[0] == {
        "b": 2.5,
        "a": 1.0,
    }
    with pytest.raises(InvalidArgumentError, match="has no column 'c'"):
        di.data.CsvDataset(str(file), schema={"note": str, "c": int}).to_list()
    with pytest.raises(InvalidArgumentError, match="has a column 'a' that the schema does not have"):
        di.data.CsvDataset(str(file), schema=pa.schema({"note": pa.string()})).to_list()


def test_no_rows_are_no_rows(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("a,b\n")
    assert di.data.CsvDataset(str(file)).batch(2).to_list() == []
    found = di.data.CsvDataset(str(file), schema={"b": int})
    assert {name: str(spec.dtype) for name, spec in found.element_spec.items()} == {"a": "object", "b": "int64"}
    assert found.to_list() == []


def test_a_row_of_very_many_columns() -> None:
    _is_made_of_text.cache_clear()
    for _ in range(2):
        Csv(schema={f"c{number}": int for number in range(2000)})
    assert _is_made_of_text.cache_info().misses == 1  # pyarrow is asked once for each type


@st.composite
def spoilt_records(draw: Any) -> tuple[list[bytes], list[bool]]:
    """Records of two values, and which of them can be read."""
    good = st.sampled_from([b"1,2\n", b'"x\ny",3\n', b'"a""b",\r\n', b",7\n", b"8,9\r"])
    bad = st.sampled_from([b"3\r", b"1,2,3\r\n", b'"q\nq",5,6\n', b"1\n", b"1,2,3\n", b'"x\ny"\r'])
    flags = draw(st.lists(st.booleans(), max_size=8))
    return [draw(good if flag else bad) for flag in flags], flags


@given(spoilt_records(), st.booleans(), st.booleans())
def test_a_bad_record_takes_no_other_along(
    tmp_path_factory: pytest.TempPathFactory, written: tuple[list[bytes], list[bool]], packed: bool, ignored: bool
) -> None:
    texts, flags = written
    content = b"a,b\n" + b"".join(texts)
    file = tmp_path_factory.mktemp("csv") / "a"
    file.write_bytes(gzip.compress(content) if packed else content)
    made = di.data.CsvDataset(
        str(file),
        compression_type="GZIP" if packed else None,
        schema={"a": str, "b": str},
        on_error=None if ignored else "skip",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of passes in which all records are left out
        found = (made.ignore_errors() if ignored else made).to_list()
    values = {b"1,2\n": b"1", b'"x\ny",3\n': b"x\ny", b'"a""b",\r\n': b'a"b', b",7\n": b"", b"8,9\r": b"8"}
    assert [row["a"] for row in found] == [values[text] for text, flag in zip(texts, flags, strict=True) if flag]
    begin, starts = 4, []
    for text in texts:
        starts.append(begin)
        begin += len(text)
    if not packed:
        reader = Csv(schema={"a": str, "b": str})
        for near in range(5, len(content)):
            wanted = next((start for start in starts if start >= near), len(content))
            assert reader._line_from(str(file), near, reader.head(str(file))) == wanted


def test_errors_of_tuples_take_no_other_record_along(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    for content, wanted in [
        (b'2\n"a",33\r\n5\n6,7\n', [(b"a", b"33"), (b"6", b"7")]),
        (b"1,2\r\r\n3,4\r\r\n", [(b"1", b"2"), (b"3", b"4")]),
        (b'"x" \r1,2\r\n', [(b"1", b"2")]),
    ]:
        file.write_bytes(content)
        dataset = di.data.CsvDataset(str(file), ["", ""])
        assert dataset.ignore_errors().to_list() == wanted
