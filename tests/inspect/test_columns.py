# SPDX-License-Identifier: Apache-2.0
"""Columns of every type are numbers, or lengths, or neither; never an error."""

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from distinput.inspect.columns import numbers_of, parts_of


def _lists(items: Any) -> Any:
    """A null that items lie below, and a list of the last one."""
    return pa.ListArray.from_arrays(pa.array([0, 2, 3], pa.int32()), items, mask=pa.array([True, False]))


@pytest.mark.parametrize(
    "array, kind, lengths, numbers",
    [
        (pa.array([1, None, 3], pa.uint8()), "uint8", None, [1, 3]),
        (pa.array([1.5, 2.0], pa.float16()), "float16", None, [1.5, 2.0]),
        (pa.array([True, None]), "bool", None, [1]),
        (pa.array([Decimal("1.5"), None]), "decimal128(2, 1)", None, [1.5]),
        (pa.array(["ä", None, ""]), "string", [2, 0], None),
        (pa.array([b"ab"], pa.binary(2)), "string", [2], None),
        (pa.array([[1.0], None, []], pa.large_list(pa.float32())), "float32[?]", [1, 0], [1.0]),
        (pa.array([[1, 2]], pa.list_(pa.int16(), 2)), "int16[2]", [2], [1, 2]),
        (pa.array([[[1], [2, 3]], [[]]]), "int64[?][?]", [2, 1], [1, 2, 3]),
        (pa.array([["a"], []]), "string[?]", [1, 0], None),
        (pa.array([None, None]), "null", None, None),
        (pa.array(["x", "x"]).dictionary_encode(), "string", [1, 1], None),
        (pa.nulls(2, pa.list_(pa.json_())), "string[?]", [], None),
        (_lists(pa.nulls(3, pa.map_(pa.int32(), pa.json_()))), "map<int32, extension<arrow.json>>[?]", [1], None),
        (_lists(pa.array(["a", None, "b"]).dictionary_encode()), "string[?]", [1], None),
        (_lists(pa.array([5, None, 7]).dictionary_encode()), "int64[?]", [1], [7]),
        (_lists(pa.array(["a", None, "b"], pa.string_view())), "string[?]", [1], None),
        (pa.array([[1], None, [2, 3]], pa.list_view(pa.int64())), "int64[?]", [1, 2], [1, 2, 3]),
    ],
)
def test_one_part(array: Any, kind: str, lengths: Any, numbers: Any) -> None:
    (part,) = parts_of("c", array)
    assert (part.name, part.type, part.rows) == ("c", kind, len(array))
    assert part.missing == array.null_count
    assert (None if part.lengths is None else part.lengths.tolist()) == lengths
    found = None if part.values is None else numbers_of(part.values)
    assert (None if found is None else found.tolist()) == numbers


def test_slices_are_parts_too() -> None:
    array = pa.array([[9, 9], [1], None, [2, 3]]).slice(1)
    (part,) = parts_of("c", array)
    assert part.values.to_pylist() == [1, 2, 3]
    assert part.lengths.dtype == np.int64
    (part,) = parts_of("c", pa.StructArray.from_arrays([pa.array([1, 2, 3])], ["a"]).slice(1))
    assert part.values.to_pylist() == [2, 3]
