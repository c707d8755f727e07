# SPDX-License-Identifier: Apache-2.0
from functools import reduce
from typing import Any

import pyarrow as pa
import pytest

from distinput.formats.jsonl import NO_TYPE, TypeConflict, arrow_type, merged, type_of


@pytest.mark.parametrize(
    "values, expected",
    [
        ([1, 2], pa.int64()),
        ([1, 2.5, None], pa.float64()),
        ([2**63, 1], pa.uint64()),
        ([2**53, 1.5], pa.float64()),
        ([2**53 + 1, -1], pa.int64()),
        ([10**22, 0.5], pa.float64()),
        ([True, None], pa.bool_()),
        (["2020-01-01"], pa.binary()),
        ([None], pa.binary()),
        ([[None], []], pa.list_(pa.binary())),
        ([[], [1], [2.0]], pa.list_(pa.float64())),
        ([{"a": 1}, {"b": None}, {"b": "x"}], pa.struct([("a", pa.int64()), ("b", pa.binary())])),
    ],
)
def test_values_have_a_type_together(values: list[Any], expected: Any) -> None:
    assert arrow_type(reduce(merged, map(type_of, values), NO_TYPE), "x") == expected


@pytest.mark.parametrize(
    "value, says",
    [
        ([1, "a"], "key 'x' has values of several types, int64 and text"),
        ([True, 1], "values of several types, bool and int64"),
        ([{}, []], "values of several types, object and array"),
        ([2**53 + 1, 1.5], "key 'x' has integers from .* beside other numbers"),
        ([1.5, 2**63 + 1], "key 'x' has integers from .* beside other numbers"),
        ([2**63, -1], "integers from -1 to 9223372036854775808, which no type holds"),
        ([10**300], "which no type holds"),
        (reduce(lambda inner, _: [inner], range(80), 1), "nested more than 64 deep"),
    ],
)
def test_values_without_a_common_type_are_refused(value: Any, says: str) -> None:
    with pytest.raises(TypeConflict, match=says):
        arrow_type(type_of(value, "x"), "x")
