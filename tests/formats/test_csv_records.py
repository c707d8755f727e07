# SPDX-License-Identifier: Apache-2.0
"""Fields of CSV records; the answers are TensorFlow 2.21's."""

from typing import Any

import numpy as np
import pytest

from distinput.errors import InvalidArgumentError
from distinput.formats.csv_tuples import decode_csv

REQUIRED = np.array([], np.int32)


@pytest.mark.parametrize(
    "records, defaults, how, expected",
    [
        (["1,2.5,a", '4,,"b,c"'], [REQUIRED, 0.5, "x"], {}, [[1, 4], [2.5, 0.5], [b"a", b"b,c"]]),
        ("1,2.5,a", [0, 0.5, "x"], {}, [1, 2.5, b"a"]),
        ("NA,2", [5, 0], {"na_value": "NA"}, [5, 2]),
        (",2", [5, 0], {"na_value": "NA"}, [5, 2]),
        ("1,2,3", [0, 0], {"select_cols": [0, 2]}, [1, 3]),
        ('"a",2', ["x", 0], {"use_quote_delim": False}, [b'"a"', 2]),
        ('"a""b",2', ["x", 0], {}, [b'a"b', 2]),
        (" 1 , 2", [0, 0], {}, [1, 2]),
        (" a ,2", ["", 0], {}, [b" a ", 2]),
        ("1\t2", [0, 0], {"field_delim": "\t"}, [1, 2]),
        ("1e3,-inf", [0.0, 0.0], {}, [1000.0, -np.inf]),
        ([["1"], ["2"]], [0], {}, [[[1], [2]]]),
        ("1,", [0, 7], {}, [1, 7]),
    ],
)
def test_fields_are_read_as_by_tensorflow(
    records: Any, defaults: list[Any], how: dict[str, Any], expected: Any
) -> None:
    assert [np.asarray(column).tolist() for column in decode_csv(records, defaults, **how)] == expected


def test_dtypes_are_those_of_the_defaults() -> None:
    dtypes = ["int64", "float64", "float32", "int32"]
    found = decode_csv("1,2,3,4,5", [*[np.array([], dtype) for dtype in dtypes], ""])
    assert [str(value.dtype) for value in found[:4]] == dtypes
    assert found[4] == b"5"


@pytest.mark.parametrize(
    "record, defaults, says",
    [
        (",2", [REQUIRED, 0], "Field 0 is required but missing in record 1!"),
        ("z,2", [0, 0], "Field 0 in record 1 is not a valid int32: z"),
        ("99999999999,2", [0, 0], "Field 0 in record 1 is not a valid int32"),
        ("1_0,2", [0, 0], "Field 0 in record 1 is not a valid int32"),
        ("1,0x1", [0, 0.5], "Field 1 in record 1 is not a valid float32: 0x1"),
        ("1", [0, 0], "Expect 2 fields but have 1 in record 1"),
        ("", [0, 0], "Expect 2 fields but have 0 in record 1"),
        ('1,"a', [0, ""], "Quoted field has to end with quote followed by delim or end, in record 1"),
        ('1,"a"b', [0, ""], "Quoted field has to end with quote followed by delim or end"),
        ('1,a"b', [0, ""], "Unquoted fields cannot have quotes/CRLFs inside, in record 1"),
        ("1,a\n", [0, ""], "Unquoted fields cannot have quotes/CRLFs inside"),
    ],
)
def test_a_record_that_does_not_fit_is_named(record: str, defaults: list[Any], says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"decode_csv: {says}"):
        decode_csv(["1,2", record], defaults)


@pytest.mark.parametrize(
    "defaults, how, says",
    [
        ([], {}, "record_defaults must have a value for each field, got none"),
        ([True], {}, "the default of field 0 must be one value"),
        ([[1, 2]], {}, "the default of field 0 must be one value"),
        ([0], {"field_delim": ",,"}, "field_delim must be one character"),
        ([0, 0], {"select_cols": [1, 0]}, "select_cols must have as many ascending numbers"),
        ([0], {"select_cols": [4]}, "Expect at least 5 fields but have 2 in record 0"),
    ],
)
def test_arguments_are_checked(defaults: list[Any], how: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"decode_csv: {says}"):
        decode_csv("1,2", defaults, **how)


@pytest.mark.parametrize("field", ["1" * 5000, "-" + "9" * 19, "9223372036854775808"])
def test_an_integer_that_no_type_holds_is_refused(field: str) -> None:
    with pytest.raises(InvalidArgumentError, match="Field 0 in record 0 is not a valid int64"):
        decode_csv([field], [np.int64(0)])


def test_zeros_in_front_count_for_nothing() -> None:
    zeros = "0" * 5000
    assert [int(column[0]) for column in decode_csv([f"{zeros}7,-{zeros}8,{zeros}"], [0, 0, 5])] == [7, -8, 0]


@pytest.mark.parametrize("record", [3, None, [1]])
def test_a_record_is_bytes_or_text(record: object) -> None:
    records = np.empty(1, object)
    records[0] = record
    with pytest.raises(InvalidArgumentError, match="decode_csv: expected byte strings"):
        decode_csv(records, ["x"])
