# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from distinput.formats.csv_tuples import FieldError, fields_of, record_values, splits_as_tensorflow


@pytest.mark.parametrize(
    "record, fields",
    [
        (b"", [b""]),
        (b"a,,b", [b"a", b"", b"b"]),
        (b'"a,""b""",""', [b'a,"b"', b""]),
        (b'"a\nb"', [b"a\nb"]),
    ],
)
def test_a_line_is_split_as_tensorflow_does(record: bytes, fields: list[bytes]) -> None:
    assert fields_of(record, b",", b'"') == fields
    assert splits_as_tensorflow(np.frombuffer(record + b"\n", np.uint8), 44, 34)


@pytest.mark.parametrize("record", [b'a"b', b'"a"b', b'"a', b' "a"', b'"a" ', b'a,"b"x', b'a""'])
def test_quotes_where_there_must_be_none(record: bytes) -> None:
    with pytest.raises(FieldError, match="quote"):
        fields_of(record, b",", b'"')
    assert not splits_as_tensorflow(np.frombuffer(record + b"\n", np.uint8), 44, 34)
    assert fields_of(record, b",", None) == record.split(b",")


def test_errors_are_those_of_tensorflow() -> None:
    dtypes = [np.dtype("int32"), np.dtype("float64")]
    with pytest.raises(FieldError, match="Field 1 in record is not a valid double: x"):
        record_values([b"1", b"x"], None, dtypes, [None, None], b"")
    with pytest.raises(FieldError, match="Field 0 is required but missing in record!"):
        record_values([b"NA", b"1"], None, dtypes, [None, None], b"NA")
    assert record_values([b"NA", b"", b"z"], [0, 1], dtypes, [3, 0.5], b"NA") == [3, 0.5]
